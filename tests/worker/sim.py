"""Models of machines for tests, and simulated jobs on them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from tests.worker.test_native import converse, measure

from hockney.worker.build import Recipe, build_worker

SIM = Recipe("sim")


def lines(*more: str, topology: str = "switch", **costs: Any) -> list[str]:
    """A model with one class for all pairs: send_cpu=100, transfer="0 2 0" …; `more` follows, in its order."""
    segment = [f"cost {name.rstrip('_')} {cost if ' ' in str(cost) else f'{cost} 0 0'}" for name, cost in costs.items()]
    return [f"topology {topology}", "class all any", "segment 0 eager 32", *segment, *more]


def simulate(
    tmp_path: Path, model: list[str], ranks: int, *commands: str, recipe: Recipe = SIM, seed: int = 0
) -> tuple[list[dict[str, Any]], subprocess.CompletedProcess[str]]:
    """All answers of a job on a model, and how it ended."""
    path = tmp_path / "machine.model"
    path.write_text("\n".join(["hockney-model 1", *model]) + "\n")
    words = ("-t", "sim", "-n", str(ranks), "--model", str(path), "--seed", str(seed))
    return converse(build_worker(recipe), list(commands), *words)


def times(tmp_path: Path, model: list[str], ranks: int, pattern: str, size: int = 0, **keys: Any) -> list[list[int]]:
    """Elapsed ns of each rank's samples."""
    elapsed_ns: list[list[int]] = answer(tmp_path, model, ranks, pattern, size, **keys)["elapsed_ns"]
    return elapsed_ns


def answer(
    tmp_path: Path, model: list[str], ranks: int, pattern: str, size: int = 0, *, seed: int = 0, **keys: Any
) -> dict[str, Any]:
    """The answer to one point."""
    command = measure(pattern, size, **{"batch": 1, "samples": 1, **keys})
    answers, done = simulate(tmp_path, model, ranks, command, seed=seed)
    assert (done.returncode, done.stderr, answers[0]["kind"]) == (0, "", "measure"), (answers, done.stderr)
    return answers[0]


def refused(tmp_path: Path, model: list[str], ranks: int = 2) -> str:
    """The worker's error for a model that it refuses."""
    answers, done = simulate(tmp_path, model, ranks, "quit")
    assert (answers, done.returncode) == ([], 2)
    return done.stderr
