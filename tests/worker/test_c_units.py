"""Parts of the worker by themselves, as C programs of checks compiled with them; with --full under sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from tests.matrix import matrix
from tests.shared import finished, made_once
from tests.worker.test_native import HERE, measure

from hockney.worker.build import SOURCES, Recipe, units_of

FLAGS = ["-O0", "-std=c17", "-D_GNU_SOURCE", "-DHK_FAMILY_NATIVE", "-Wall", "-Wextra", "-Werror", "-pthread",
         f"-I{SOURCES}", f"-I{SOURCES / 'transports'}"]  # fmt: skip


@pytest.fixture(scope="session")
def objects(tmp_path_factory: pytest.TempPathFactory, checks: tuple[str, ...]) -> Callable[[str], list[Path]]:
    """The worker's objects, compiled once by each compiler, in few units: a hundred are slow to link."""

    def made(compiler: str) -> list[Path]:
        def compile_all(folder: Path) -> None:
            for (unit, _), sources in units_of(Recipe()).items():
                text = "".join(
                    f'#include "{source}"\n' for source in sources if source.name not in ("main.c", "local.c")
                )
                argv = [compiler, *FLAGS, *checks, "-x", "c", "-c", "-", "-o", str(folder / f"{unit}.o")]
                subprocess.run(argv, input=text, text=True, check=True)

        return sorted(made_once(tmp_path_factory, f"objects-{compiler}", compile_all).glob("*.o"))

    return made


def run_unit(
    program: Path, compiler: str, folder: Path, checks: Sequence[str], parts: Iterable[Path], *arguments: str
) -> None:
    """Compile a program of checks with these sources or objects of the worker, and run it with these arguments."""
    executable = folder / program.stem
    # Programs that fill and check megabytes byte by byte take a third of the time with -O1.
    argv = [compiler, *FLAGS, "-O1", *checks, *map(str, (program, *parts)), "-o", str(executable), "-lrt", "-lm"]
    subprocess.run(argv, check=True)
    done = finished([executable, *arguments])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("program", sorted(HERE.glob("test_*.c")), ids=lambda path: path.stem)
@pytest.mark.parametrize("compiler", matrix(["gcc", "clang"], short=["gcc"]))
def test_c_units(
    program: Path,
    compiler: str,
    tmp_path: Path,
    objects: Callable[[str], list[Path]],
    checks: tuple[str, ...],
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    family = tmp_path / "family.c"
    family.write_text('#include "family.h"\nconst hk_family_t hk_family = {.name = "test"};\n')
    arguments = () if checks else ("short",)
    run_unit(program, compiler, tmp_path, checks, [family, *objects(compiler)], *arguments)


@pytest.mark.parametrize("compiler", matrix(["gcc", "clang"], short=["gcc"]))
def test_the_engine_of_the_simulation(compiler: str, tmp_path: Path, checks: tuple[str, ...]) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    family = tmp_path / "family.c"
    family.write_text('#include "family.h"\nconst hk_family_t hk_family = {.name = "test"};\n')
    parts = [path for path in (SOURCES / "sim").glob("*.c") if path.stem not in ("job", "point", "summary", "verify")]
    parts += sorted((SOURCES / "algorithms").glob("*.c"))
    parts += [family, *(SOURCES / f"{name}.c" for name in ("machine", "sync", "status", "operations", "reductions"))]
    run_unit(HERE / "sim_engine.c", compiler, tmp_path, checks, parts)


@pytest.mark.full
@pytest.mark.parametrize(
    "checks",
    [("-DHK_LANE_PORTABLE", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"), ("-fsanitize=thread",)],
    ids=["address", "thread"],
)
def test_lanes_of_machines_without_16_byte_stores(checks: tuple[str, ...], tmp_path: Path) -> None:
    """The thread sanitizer knows no others."""
    parts = [*sorted((SOURCES / "transports").glob("channel*.c")), SOURCES / "transports/shm.c"]
    parts += [SOURCES / f"{name}.c" for name in ("machine", "onesided", "operations", "reductions", "status")]
    run_unit(HERE / "test_channel.c", "gcc", tmp_path, checks, parts)


@pytest.mark.full
def test_the_parser_withstands_any_bytes(tmp_path: Path) -> None:
    if shutil.which("clang") is None:
        pytest.skip("clang is not installed: no libFuzzer")
    core = ("command", "machine", "onesided", "operations", "payload", "payload_types", "reductions", "registry")
    sources = [SOURCES / f"{name}.c" for name in (*core, "device", "device_cuda", "sleepers", "status", "sync", "team")]
    sources += [path for name in ("algorithms", "patterns") for path in sorted((SOURCES / name).glob("*.c"))]
    flags = ["-g", "-O1", "-std=c17", "-D_GNU_SOURCE", "-fsanitize=fuzzer,address,undefined", f"-I{SOURCES}"]
    fuzzer = tmp_path / "fuzz"
    subprocess.run(["clang", *flags, HERE / "fuzz_command.c", *sources, "-o", fuzzer, "-lm"], check=True)
    seeds = tmp_path / "seeds"
    seeds.mkdir()
    for number, line in enumerate(
        ["hello version=1 eof=abort id=1", measure("oneway", 8, window=4), "floor", "quit id=9"]
    ):
        (seeds / str(number)).write_text(line)
    argv = [str(fuzzer), "-runs=400000", "-max_len=400", "-seed=1", str(seeds)]
    done = finished(argv, timeout_s=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
