"""Building workers: the inputs of a build, the cache, and every failure."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.shared import Fakes, finished, script
from tests.worker.extra import QUICK

from hockney.worker import build, cache
from hockney.worker.build import Recipe, build_worker, family_sources
from hockney.worker.cache import Probes
from hockney.worker.compiler import find_c_compiler, identify
from hockney.worker.errors import CacheUnusable, CompileFailed, NoCompiler


def recording(path: Path, log: Path) -> Path:
    """A compiler that logs its command line, then compiles without optimising."""
    return script(path, f'echo "$@" >> {log}', f'exec {shutil.which("cc")} "$@" -O0')


@pytest.fixture
def folder(kept: Path, tmp_path: Path) -> Path:
    shutil.copytree(kept, tmp_path / "cache")
    return tmp_path / "cache"


# ---- contents of a build --------------------------------------------------------------------------------------------


def test_a_worker_is_built_and_runs(folder: Path) -> None:
    worker = build_worker(QUICK, folder=folder)
    said = finished([worker, "--version"], check=True).stdout
    assert "family native" in said


def test_a_worker_that_is_there_costs_no_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = build_worker(QUICK, folder=folder)

    def no_run(*_: object, **__: object) -> None:
        raise AssertionError("a program was started")

    monkeypatch.setattr(subprocess, "run", no_run)
    monkeypatch.setattr(subprocess, "Popen", no_run)
    assert build_worker(QUICK, folder=folder) == worker


@pytest.mark.parametrize("family", ["native", "sim"])
def test_compiling_any_family_is_said(family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The native worker may have been there before the others."""
    said: list[str] = []
    monkeypatch.setattr(build, "_build", lambda *_: said.append("built"))
    monkeypatch.setattr(build, "notice", SimpleNamespace(get=lambda: said.append))

    @contextmanager
    def passing(text: str) -> Iterator[None]:
        said.append(text)
        yield
        said.append("over")

    monkeypatch.setattr(build, "working", SimpleNamespace(get=lambda: passing))
    build_worker(Recipe(family), folder=tmp_path)
    assert "compiling the workers" in said.pop(0)
    assert said == [f"compiling {family}", "built", "over"]


def test_a_build_leaves_only_results_in_the_folder(folder: Path) -> None:
    worker = build_worker(QUICK, folder=folder)
    assert {path.name for path in folder.iterdir()} == {worker.name, "objects", "probes"}


@pytest.mark.parametrize("name", ["measure.c", "transport.h", "patterns/pingpong.c"])
def test_a_changed_source_is_another_worker(tmp_path: Path, sources: Path, name: str) -> None:
    before = build_worker(folder=tmp_path / "cache")
    (sources / name).write_text((sources / name).read_text() + "/* changed */\n")
    after = build_worker(folder=tmp_path / "cache")
    assert after != before
    assert before.exists()


def test_only_changed_units_are_compiled(tmp_path: Path, sources: Path) -> None:
    log = tmp_path / "log"
    recipe = Recipe(compiler=(str(recording(tmp_path / "mycc", log)),))
    build_worker(recipe, folder=tmp_path / "cache")
    log.unlink()
    (sources / "status.c").write_text((sources / "status.c").read_text() + "/* changed */\n")
    build_worker(recipe, folder=tmp_path / "cache")
    compiled = [line for line in log.read_text().splitlines() if " -c " in line]
    assert len(compiled) == 1
    assert "-O0" in compiled[0]  # the unit without timed loops


@pytest.mark.usefixtures("sources")
def test_defines_flags_and_sources_on_top(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    extra = tmp_path / "extra.c"
    extra.write_text('#include "status.h"\n#ifndef SEEN\n#error not seen\n#endif\nint hk_extra;\n')
    more = Recipe(flags=("-DSEEN=1", "-O0"), extra_sources=(extra,))
    assert build_worker(more, folder=folder) != build_worker(folder=folder)


def test_two_sources_of_one_name_are_both_in(folder: Path, tmp_path: Path) -> None:
    texts = {"one": "int hk_one;\n", "other": "extern int hk_one;\nint hk_other(void) { return hk_one; }\n"}
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "extra.c").write_text(text)
    both = Recipe(flags=QUICK.flags, extra_sources=tuple(tmp_path / name / "extra.c" for name in texts))
    assert build_worker(both, folder=folder).exists()  # without the one the other can't be linked


def test_sources_of_families() -> None:
    names = ("native", "mpi", "pvm", "shmem", "sim", "ucx", "ofi", "zmq")
    native, mpi, pvm, shmem, sim, ucx, ofi, zmq = (set(map(str, family_sources(name))) for name in names)
    everything = {str(path.relative_to(build.SOURCES)) for path in build.SOURCES.rglob("*.c")}
    assert native | mpi | pvm | shmem | sim | ucx | ofi | zmq == everything
    for base, family in (("ucx", ucx), ("ofi", ofi)):
        assert family - native == {name for name in everything if name.startswith(f"transports/{base}")}
        assert "local.c" in family
    for base, family in (("mpi", mpi), ("shmem", shmem)):
        of_base = {name for name in everything if name.startswith(f"transports/{base}")}
        assert f"transports/{base}.c" in of_base
        assert family - native == of_base
        assert "local.c" not in family
        assert not any(name.startswith("transports/") for name in family - of_base)
    assert pvm - native == {"pvm_daemon.c", "pvm_hosts.c", "transports/pvm.c"}
    assert zmq - native == {"transports/zmq_messages.c", "transports/zmq_open.c"}
    assert "local.c" in pvm & zmq
    assert sim - native == {name for name in everything if name.startswith("sim/")}
    assert not {"session.c", "measure.c", "floor.c", "local.c"} & sim


@pytest.mark.usefixtures("sources")
def test_the_compiler_in_cc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("CC", f"{recording(tmp_path / 'mycc', log)} -DFROM_CC=1")
    build_worker(folder=tmp_path / "cache")
    lines = log.read_text().splitlines()
    assert all(line.startswith("-DFROM_CC=1") for line in lines)
    assert sum("-O2 -ftree-vectorize" in line for line in lines) >= 3  # patterns, transports, core


def test_a_compiler_that_changes_is_asked_again(tmp_path: Path) -> None:
    compiler = script(tmp_path / "mycc", "echo mycc 1.0")
    probes = Probes(tmp_path / "cache")
    assert identify([str(compiler)], probes, wrapper=False).version == "mycc 1.0"
    script(compiler, "echo mycc version 2.0")
    assert identify([str(compiler)], probes, wrapper=False).version == "mycc version 2.0"


def test_16_byte_stores_of_aarch64(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: Fakes) -> None:
    log = tmp_path / "log"
    compiler = fake(tmp_path / "mycc", f'echo "$@" >> {log}; [ "$1" = --version ] && echo mycc || exit 1')
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="aarch64"))
    read_text = Path.read_text
    cpuinfo = "Features\t: fp asimd uscat ilrcpc\n"
    monkeypatch.setattr(Path, "read_text", lambda path: cpuinfo if str(path) == "/proc/cpuinfo" else read_text(path))
    with pytest.raises(CompileFailed):
        build_worker(Recipe(compiler=(str(compiler),)), folder=tmp_path / "cache")
    assert "-DHK_LSE2" in log.read_text()


@pytest.mark.usefixtures("sources")
def test_two_concurrent_builders(tmp_path: Path) -> None:
    built: list[Path] = []
    builders = [
        threading.Thread(target=lambda: built.append(build_worker(folder=tmp_path / "cache"))) for _ in range(2)
    ]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    assert len(built) == 2
    assert built[0] == built[1]
    subprocess.run([built[0], "--version"], check=True, stdout=subprocess.DEVNULL)
    assert {path.name for path in (tmp_path / "cache").iterdir()} == {built[0].name, "objects", "probes"}


def test_an_empty_worker_file_is_rebuilt(folder: Path) -> None:
    worker = build_worker(QUICK, folder=folder)
    worker.write_bytes(b"")
    assert build_worker(QUICK, folder=folder) == worker
    subprocess.run([worker, "--version"], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.usefixtures("sources")
def test_files_unused_for_a_month_are_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    worker = build_worker(folder=folder)
    long_ago = time.time() - 40 * 86400
    crumbs = folder / "tmp-killed"
    crumbs.mkdir()
    for path in [worker, crumbs, *(folder / "objects").iterdir()]:
        os.utime(path, (long_ago, long_ago))
    build_worker(Recipe(flags=("-DOTHER=1",)), folder=folder)
    assert not worker.exists()
    assert not crumbs.exists()
    assert build_worker(folder=folder) == worker


# ---- failures -------------------------------------------------------------------------------------------------------


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompiler, match=r"no C compiler found: cc, gcc and clang are not on PATH; install one with: "):
        build_worker(folder=tmp_path / "cache")


def test_a_compiler_in_cc_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "nocc -O2")
    with pytest.raises(NoCompiler, match="CC is 'nocc -O2', which is not here"):
        find_c_compiler()
    with pytest.raises(NoCompiler, match="'nowrapper'"):
        build_worker(Recipe(family="mpi", compiler=("nowrapper",)), folder=tmp_path)


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_a_compiler_without_a_version(stream: str, tmp_path: Path, fake: Fakes) -> None:
    compiler = fake(tmp_path / "mycc", f"echo 'mycc: licence expired' {stream}; exit 1")
    with pytest.raises(CompileFailed, match="mycc cannot answer --version: mycc: licence expired"):
        build_worker(Recipe(compiler=(str(compiler),)), folder=tmp_path / "cache")


def test_a_compiler_that_fails_is_quoted(folder: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.c"
    wrong.write_text("int hk_wrong(void) { return undeclared_name; }\n")
    with pytest.raises(CompileFailed) as error:
        build_worker(Recipe(flags=QUICK.flags, extra_sources=(wrong,)), folder=folder)
    assert "cannot compile wrong.c" in str(error.value)
    assert "undeclared_name" in str(error.value)
    assert "\n" not in str(error.value)
    assert "wrong.c:1:" in error.value.output
    assert not any(path.name.startswith("tmp-") for path in folder.iterdir())


def test_a_linker_that_fails_is_quoted(folder: Path, tmp_path: Path) -> None:
    lacking = tmp_path / "lacking.c"
    lacking.write_text("int hk_nowhere(void);\nint hk_lacking(void) { return hk_nowhere(); }\n")
    with pytest.raises(CompileFailed, match=r"cannot link the worker: .*hk_nowhere"):
        build_worker(Recipe(flags=QUICK.flags, extra_sources=(lacking,)), folder=folder)


def test_a_compiler_that_crashes_in_silence(tmp_path: Path, fake: Fakes) -> None:
    compiler = fake(tmp_path / "mycc", 'case "$*" in *--version*) echo mycc 1;; *) kill -9 $$;; esac')
    with pytest.raises(CompileFailed, match="it said nothing: "):
        build_worker(Recipe(compiler=(str(compiler),)), folder=tmp_path / "cache")


def test_a_compiler_that_prints_rubbish_and_makes_nothing_is_named(folder: Path, tmp_path: Path, fake: Fakes) -> None:
    rubbish = fake(tmp_path / "cc", "echo no such thing")
    with pytest.raises(CompileFailed, match=r"cc cannot compile \w+: no such thing"):
        build_worker(Recipe(compiler=(str(rubbish),)), folder=tmp_path / "workers")


def test_a_cc_that_cannot_be_read_as_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", 'gcc "-O2')
    with pytest.raises(NoCompiler, match="CC is 'gcc \"-O2', which is not here"):
        build_worker(folder=tmp_path)


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CacheUnusable, match="XDG_CACHE_HOME"):
        build_worker(folder=tmp_path / "file" / "workers")


@contextmanager
def as_anyone() -> Iterator[None]:
    """Root may write everywhere; on Linux this thread can step down for file access alone."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None)
    libc.setfsuid(65534)
    try:
        yield
    finally:
        libc.setfsuid(0)


def test_a_folder_that_may_only_be_read(tmp_path: Path) -> None:
    said = "Permission denied; let XDG_CACHE_HOME name a folder that only you can write"
    tmp_path.chmod(0o555)
    try:
        with as_anyone(), pytest.raises(CacheUnusable, match=said), cache.scratch(tmp_path / "workers"):
            raise AssertionError("it was made")
    finally:
        tmp_path.chmod(0o755)


def test_probes_without_a_folder_only_cost_time(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    probes = Probes(tmp_path / "file")
    probes.put(["key"], {"answer": 1}, [])
    assert probes.get(["key"]) is None


@pytest.mark.parametrize("answer", [{}, [], {"version": 7, "show": ""}, {"version": "mycc 1.0"}])
def test_an_edited_answer_of_a_compiler_is_asked_again(answer: object, tmp_path: Path) -> None:
    compiler = [str(script(tmp_path / "mycc", "echo mycc 1.0"))]
    asked = identify(compiler, Probes(tmp_path), wrapper=False)
    (record,) = (tmp_path / "probes").iterdir()
    record.write_text(json.dumps({"stamps": {}, "answer": answer}))
    assert identify(compiler, Probes(tmp_path), wrapper=False) == asked


def test_a_damaged_probe_is_asked_again(tmp_path: Path) -> None:
    probes = Probes(tmp_path)
    probes.put(["key"], {"answer": 1}, [])
    assert probes.get(["key"]) == {"answer": 1}
    (record,) = (tmp_path / "probes").iterdir()
    for damage in ("", "[]", '{"stamps": 1, "answer": {}}', "\x00"):
        record.write_text(damage)
        assert probes.get(["key"]) is None


@pytest.mark.parametrize(
    ("said", "quoted"),
    [
        ("note 1\nerror 2\nnote 3\nerror 4\nerror 5\nerror 6\n", ["error 2", "error 4", "error 5"]),
        ("note 1\n\nnote 2\nnote 3\nnote 4\n", ["note 1", "note 2", "note 3"]),
    ],
)
def test_the_first_errors_of_a_compiler_are_quoted(said: str, quoted: list[str]) -> None:
    assert re.findall(r"(?:error|note) \d", str(CompileFailed("cc", "compile it", said))) == quoted
