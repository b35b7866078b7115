"""`hockney run --machine` and `-t sim@…`: a suite on a model, stored and shown like a run on real CPUs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.support import document

from hockney.cli import execute
from hockney.model import Point
from hockney.results.runs import open_results
from hockney.worker.machine_model import builtin_models

MODEL = """
title = "two boards"
[topology]
kind = "clos"
boards = 2
nodes_per_board = 4
crossbars = 1
source = "made up"
[class.board]
switches = 1
segment = [{ send_cpu = 100, latency = 1000, transfer = { per_byte_ns = 1 }, source = "made up" }]
[class.boards]
segment = [{ send_cpu = 100, latency = 3000, transfer = { per_byte_ns = 1 }, source = "made up" }]
[variant.spread.placement]
nodes = "0-3"
second_half = "4-7"
source = "made up"
[[run]]
pattern = "pairs"
ranks = 2
variants = ["spread"]
read_from = "made up"
"""
SUITE = """
name = "mine"
title = "made up"
transports = ["shm"]
[[series]]
pattern = "pingpong"
bytes = [0, 1000]
[[series]]
pattern = "pairs"
ranks = [2, 4, 10]
bytes = 0
[[series]]
pattern = "put"
[[series]]
pattern = "memload"
transports = ["null"]
ranks = 1
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "m.toml").write_text(MODEL, encoding="utf-8")
    (tmp_path / "mine.toml").write_text(SUITE, encoding="utf-8")
    return tmp_path / "m.toml"


def run(folder: Path, *words: str) -> int:
    return execute(["run", *words, "--store", str(folder / "r.db"), "--quiet"])


def times_us(folder: Path, reference: str = "last") -> dict[tuple[str, str, int, int], float]:
    with open_results(folder / "r.db") as results:
        measured = [series for series in results.run(reference).series if series.measurements]
        return {_key(series.point): series.figures()[0].time.value / 1e3 for series in measured}


def _key(point: Point) -> tuple[str, str, int, int]:
    """The variant of the model, and the point."""
    return point.transport.rpartition(".toml")[2], point.pattern, point.ranks, point.bytes


def test_a_suite_runs_on_a_model_with_the_variants_that_it_names(model: Path) -> None:
    assert run(model.parent, str(model.parent / "mine.toml"), "--machine", str(model)) == 0
    assert times_us(model.parent) == {
        ("", "pingpong", 2, 0): pytest.approx(1.1),
        ("", "pingpong", 2, 1000): pytest.approx(2.1),
        (":spread", "pairs", 2, 0): pytest.approx(0.1, abs=0.05),
        ("", "pairs", 4, 0): pytest.approx(0.1, abs=0.05),
    }
    with open_results(model.parent / "r.db") as results:
        stored = results.run("last")
        reasons = {series.point.pattern: series.reason for series in stored.series if not series.measurements}
        facts = stored.facts["models"]
        (spread,) = {launch.hosts for launch in stored.launches.values() if launch.transport.endswith(":spread")}
        assert {launch.bound for launch in stored.launches.values()} == {()}
        # The model file of the job is gone; the transport has its place.
        assert {launch.argv[launch.argv.index("--model") + 1] for launch in stored.launches.values()} == {
            launch.transport for launch in stored.launches.values()
        }
    assert str(reasons["pairs"]).startswith(f"the model {model} has 8 nodes, so ")
    assert "put and get" in str(reasons["put"])
    assert "memload" not in reasons
    assert spread == ("node 0", "node 4")
    assert {record["variant"] for record in facts.values()} == {"", "spread"}
    assert facts[f"sim@{model}"]["parameters"][0] == ["topology.kind", "clos", "made up"]


def test_a_model_without_noise_gives_the_same_again_and_is_exact(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pingpong", "-t", f"sim@{model}", "--bytes", "0,8"]
    assert run(model.parent, *words) == run(model.parent, *words) == 0
    assert times_us(model.parent, "1") == times_us(model.parent, "2")
    capsys.readouterr()
    store = ["--store", str(model.parent / "r.db")]
    assert execute(["show", *store]) == 0
    assert not {"±", "–"} & {*capsys.readouterr().out}
    figures = document(capsys, "show", *store, "--json")["series"][0]["figures"][0]
    assert (figures["interval_over"], figures["low_ns"]) == ("exact", figures["value_ns"])
    assert execute(["explain", "1", *store]) == 0
    assert execute(["run", "--resume", "1", *store]) == 2


def test_one_row_summarises_thousands_of_ranks(model: Path) -> None:
    large = model.with_name("large.toml")
    large.write_text('base = "m.toml"\n[topology]\nnodes_per_board = 2100\n', encoding="utf-8")
    assert run(model.parent, "ring", "-t", f"sim@{large}", "-n", "4100", "--bytes", "8") == 0
    with open_results(model.parent / "r.db") as results:
        (series,) = results.run("last").series
        assert series.measurements[0].elapsed_ns.shape == (1, 3)
        assert series.figures()[0].time.value > 1000


def test_noise_is_measured_like_a_machine(model: Path) -> None:
    noisy = model.with_name("noisy.toml")
    noisy.write_text('base = "m.toml"\n[noise]\nlaw = "lognormal"\nsigma = 0.05\nsource = "made up"\n')
    assert run(model.parent, "pingpong", "-t", f"sim@{noisy}", "--bytes", "0", "--launches", "1", "--time", "3s") == 0
    with open_results(model.parent / "r.db") as results:
        figure = results.run("last").series[0].figures()[0]
    assert figure.has_interval
    assert figure.time.low < figure.time.high
    assert figure.time.value == pytest.approx(1100, rel=0.05)


def test_the_machines_are_listed_with_their_models(capsys: pytest.CaptureFixture[str]) -> None:
    machines: list[dict[str, Any]] = document(capsys, "list", "machines", "--json")["machines"]
    models = {machine["name"]: machine["models"] for machine in machines}
    assert models["gpmimd"] == ["gpmimd", "gpmimd-calibrated"]
    assert models["t3e"] == []


def test_every_machine_of_the_list_is_a_model_or_says_that_it_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["list"]) == 0
    (listed,) = re.findall("models for --machine: (.*)", capsys.readouterr().out)
    assert sorted(listed.split(", ")) == builtin_models()
    assert execute(["run", "atlas", "--machine", "t3e"]) == 2
    assert "published figures of t3e, but no model of it" in capsys.readouterr().err
