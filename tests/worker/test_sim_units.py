"""The simulation under sanitizers: its parts by themselves, and whole jobs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.matrix import matrix
from tests.worker.sim import lines, simulate
from tests.worker.test_c_units import run_unit
from tests.worker.test_native import HERE, PATTERNS, measure

from hockney.worker.build import SOURCES, Recipe

PARTS = [
    SOURCES / "status.c",
    *(path for path in sorted((SOURCES / "sim").glob("*.c")) if path.stem not in ("job", "summary")),
]
COMPILERS = matrix(["gcc", "clang"], short=["gcc"])


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_engine(compiler: str, tmp_path: Path, checks: tuple[str, ...]) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    family = tmp_path / "family.c"
    family.write_text('#include "family.h"\nconst hk_family_t hk_family = {.name = "test"};\n')
    parts = [family, SOURCES / "machine.c", SOURCES / "collectives.c", *PARTS]
    run_unit(HERE / "sim_engine.c", compiler, tmp_path, checks, parts)


@pytest.mark.full
@pytest.mark.parametrize("protocol", ["eager", "rendezvous", "synchronous"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_every_pattern_under_sanitizers(compiler: str, protocol: str, tmp_path: Path) -> None:
    """Two ranks share a CPU, all share links; and results are the same without sanitizers."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    flags = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    costs = {"send_cpu": 10, "recv_cpu": 20, "latency": 100, "out": 5, "in_": 6, "node": 7, "transfer": "0 1 1"}
    model = ["slice_ns 2000", "noise lognormal 0.1", "place 0 0", "place 1 0", "place 2 1", "place 3 5"]
    model += lines("link 0 1e9 10", topology="torus 3 2", late=3, ack=4, handshake=5, **costs)
    model = [line.replace("eager", protocol) for line in model]
    commands = [measure(pattern, size) for pattern in PATTERNS for size in (0, 1000)]
    commands.append(measure("robpull", 100, delay_us=20, buffers=2))
    checked, done = simulate(tmp_path, model, 4, *commands, recipe=Recipe("sim", (compiler,), flags=flags))
    assert (done.returncode, done.stderr) == (0, "")
    assert {answer["kind"] for answer in checked[:-1]} == {"measure"}
    plain, _ = simulate(tmp_path, model, 4, *commands)
    assert plain == checked
