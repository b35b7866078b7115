"""Rows of a report that need more ranks than there are CPUs, predicted from the run's own figures."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.report.cells import MPI, about, cell, groups, number, point, report_of, row, shown
from tests.report.runs import FACTS, Made, oversubscribed, store_run

from hockney.analysis.predict.fit import Basics, Figures
from hockney.archive import published
from hockney.report.classic import predicted
from hockney.report.classic.predicted import ASSUMED
from hockney.report.classic.values import BenchmarkRows
from hockney.results.runs import Run
from hockney.stats.fit import NoFit
from hockney.stats.interval import Estimate
from hockney.worker.cache import Probes
from hockney.worker.errors import LaunchFailed, WorkerRefused

TWO_CPUS = {**FACTS, "limits": {"usable_cpus": "0-1"}}
PINGPONG = point("shm", "pingpong", 2, 8)


class MadeUp:
    """A message takes 900 ns and its receiver 100 ns, a put 500 ns; each byte is 1 ns on the way out."""

    title = "made up"
    sizes_bytes = (4, 4 << 20)

    @property
    def figures(self) -> Figures:
        """Each known to 10 %."""
        time = Estimate(1000.0, 900.0, 1100.0)
        basics = (Basics(size, {"half": time, "gap": time}) for size in self.sizes_bytes)
        return Figures("shm", None, tuple(basics), {})

    def content(self, ranks: int) -> dict[str, Any]:
        message = {"latency": 900, "recv_cpu": 100, "out": {"per_byte_ns": 1}, "source": "made up"}
        put = {"latency": 500, "out": {"per_byte_ns": 1}, "source": "made up"}
        return {
            "title": self.title,
            "topology": {"kind": "switch", "nodes": ranks, "source": "made up"},
            "class": {"all": {"segment": [message]}},
            "put": {"all": {"segment": [put]}},
        }


def fitted(run: Run, transport: str) -> MadeUp | NoFit:
    return NoFit("no pingpong was measured") if transport == MPI else MadeUp()


@pytest.fixture(autouse=True)
def _made_up_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicted, "fit_machine", fitted)
    monkeypatch.setattr(MadeUp, "title", uuid.uuid4().hex)  # no test sees the cache of another one


def groups_of(path: Path, suite: str, made: Sequence[Made]) -> dict[str, BenchmarkRows]:
    return groups(path, suite, made, facts=TWO_CPUS)


def test_points_with_more_ranks_than_cpus_are_predicted_in_the_column_of_measured_ones(tmp_path: Path) -> None:
    made = [
        Made(point("shm", "alltoall", 4, 4, algorithm="flat"), 700),
        oversubscribed("shm", "alltoall", 8, 4, algorithm="flat"),
    ]
    group = groups_of(tmp_path, "atlas", made)["Com-1.3 all-to-all"]
    assert group.columns == ("shm",)
    measured, guessed = (cell(group, ranks, 4).value for ranks in (4, 8))
    assert (measured.number, measured.is_predicted) == (about(0.7), False)
    assert guessed.is_predicted
    assert guessed.number == about(0.9 + 0.7)  # all seven come together, and are received one after the other
    assert any(ASSUMED in note for note in group.notes)


def test_predicted_rows_are_one_line_of_the_page_and_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = [oversubscribed("shm", "funnel", 5, 64), oversubscribed("shm", "pushfarm", 5, 16, senders=2)]
    store_run(tmp_path / "r.db", "atlas", [*made, Made(PINGPONG, 500)], facts=TWO_CPUS)
    page, text = shown(tmp_path, capsys, "--page"), shown(tmp_path, capsys)
    assert "Rows that need more ranks than this run had CPUs are predicted: 2 of 208 (~)" in " ".join(page.split())
    there = next(one for one in published("atlas") if one.matches({"benchmark": "Com-1.7", "senders": 4, "bytes": 64}))
    assert re.search(rf"^4 +64 +{there.printed} +~0\.400 ±", text, re.MULTILINE)
    document = json.loads(shown(tmp_path, capsys, "--json"))
    rows = [row for group in document["classic"]["benchmarks"] for row in group["rows"] if row["here"]]
    (guessed,) = (row["here"][0]["figure"] for row in rows if row["names"] == {"senders": "2", "receivers": "2"})
    assert guessed["value"] > 3  # three messages, one after the other
    assert guessed["low"] < guessed["value"] < guessed["high"]
    assert (guessed["exact"], guessed["predicted"]) == (False, True)


def test_predictions_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [oversubscribed("shm", "funnel", 5, 64), oversubscribed("shm", "multicast", 5, 4)]
    first = groups_of(tmp_path, "atlas", made)["Com-1.7 funnel"]
    monkeypatch.setattr("hockney.measure.predict.times_of", None)
    assert number(groups_of(tmp_path, "atlas", made)["Com-1.7 funnel"], 4, 64) == number(first, 4, 64) > 0


def test_points_of_a_broken_job_are_predicted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_launch(job: object) -> None:
        raise LaunchFailed("fork", "no process is left")

    made = [oversubscribed("shm", "funnel", 5, 64)]
    with monkeypatch.context() as patch:
        patch.setattr("hockney.measure.predict.launch", broken_launch)
        broken = groups_of(tmp_path, "atlas", made)["Com-1.7 funnel"]
    assert "no process is left" in str(row(broken, 4, 64).reason)
    assert number(groups_of(tmp_path, "atlas", made)["Com-1.7 funnel"], 4, 64) > 0


@pytest.mark.parametrize("kept", [{}, {"of": []}, {"of": None}, {"of": [{"batch": 1}]}, {"of": [[7]]}])
def test_a_damaged_stored_prediction_is_made_again(
    kept: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, get = [oversubscribed("shm", "funnel", 5, 64)], Probes.get
    groups_of(tmp_path, "atlas", made)

    def damaged(probes: Probes, key: Iterable[str], *texts: str) -> dict[str, Any] | None:
        known = get(probes, key, *texts)
        return kept if known and "of" in known else known

    monkeypatch.setattr(Probes, "get", damaged)
    assert number(groups_of(tmp_path, "atlas", made)["Com-1.7 funnel"], 4, 64) > 0


@pytest.mark.parametrize(("code", "is_kept"), [("unsupported", True), ("memory", False)])
def test_a_refusal_is_kept_unless_memory_was_short(
    code: str, is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise WorkerRefused(code, "not now")

    made = [oversubscribed("shm", "funnel", 5, 64)]
    with monkeypatch.context() as patch:
        patch.setattr("hockney.measure.predict._measurement", refused)
        first = groups_of(tmp_path, "atlas", made)["Com-1.7 funnel"]
    assert "not now" in str(row(first, 4, 64).reason)
    again = row(groups_of(tmp_path, "atlas", made)["Com-1.7 funnel"], 4, 64)
    assert again.reason is None or "not now" in again.reason
    assert (again.reason is not None) == is_kept


def test_best_rates_and_means_are_those_of_the_model(tmp_path: Path) -> None:
    made = [oversubscribed("shm", "bisection", 16, size) for size in (64, 4096)]
    best = cell(groups_of(tmp_path, "scabench", made)["Bisection"], 16).value
    assert (best.at_bytes, best.state) == (4096, None)
    assert best.number == about(16_000)  # eight pairs; each rank's way out is busy for 4096 ns of a round trip
    made = [oversubscribed("shm", "robpull", 3, 1024, buffers=2)]
    assert number(groups_of(tmp_path, "atlas", made)["Com-3.2 passive ROBs"], 3, 0) > 2  # asked, and answered


def test_the_t3d_is_compared_with_as_many_ranks_as_it_had(tmp_path: Path) -> None:
    """On one switch one pair stands for all: half a round trip of puts is 500 ns, and 1 ns a byte busy on its way."""
    made = [Made(point("shm", "putpong", 2, 8, **ends), 40, divisor=2) for ends in ({}, {"source": 1, "target": 0})]
    made += [Made(point("shm", "putring", 2, size), 20 + size) for size in (8, 4096)]
    found = groups_of(tmp_path, "t3d", [*made, Made(point("mpi", "putpong", 2, 8), skipped="it has no puts")])
    assert found["ping_pong"].columns == ("shm putpong, 2 ranks", "mpi putpong, 2 ranks", "shm putpong, 16 ranks")
    for which in ("largest time of a pair", "least time of a pair", "mean time of the pairs"):
        assert number(found["ping_pong"], which, column="shm putpong, 16 ranks") == about(0.5)
    assert number(found["multiple_pairs"], "Rmax", column="shm putring, 16 ranks") == pytest.approx(1000, rel=0.1)


def test_ft_computes_as_fast_as_one_rank_did(tmp_path: Path) -> None:
    made = [Made(point("shm", "ft", 1, 0, **{"class": kind}), ns) for kind, ns in (("S", 1e8), ("A", 7.1e9))]
    made.append(oversubscribed("shm", "ft", 4, 0, **{"class": "A"}))
    ft = groups_of(tmp_path, "scabench", made)["NPB FT, class A"]
    assert number(ft, "Scali-1", 4) == pytest.approx(1000, rel=0.1)  # less the time of its exchanges


def test_a_size_that_fell_out_of_the_fit_is_predicted_with_a_wider_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine 1 KiB may not have been reached: 256 B are the longest messages of the fit."""
    monkeypatch.setattr(MadeUp, "sizes_bytes", (4, 256))
    made = [oversubscribed("shm", "robpull", 3, size, buffers=2) for size in (256, 1024)]
    made += [oversubscribed("shm", "funnel", 5, size) for size in (256, 1024)]
    found = groups_of(tmp_path, "atlas", made)
    assert number(found["Com-3.2 passive ROBs"], 3, 0) > 0
    short, long = (cell(found["Com-1.7 funnel"], 4, size).value.estimate for size in (256, 1024))
    assert short is not None
    assert long is not None
    assert (short.high / short.value, long.high / long.value) == (about(1.1), about(4.4))


def test_why_nothing_is_predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = [oversubscribed(MPI, "funnel", 5, size) for size in (4, 64)]
    found = groups_of(tmp_path, "atlas", made)
    reasons = {one.value.reason for one in row(found["Com-1.7 funnel"], 4, 4).cells.values()}
    assert any("more ranks than CPUs" in str(reason) for reason in reasons)


def test_conclusions_are_judged_on_measurements(tmp_path: Path) -> None:
    made = [oversubscribed("shm", "outfarm", 5, 4), oversubscribed("shm", "multicast", 5, 4), Made(PINGPONG, 500)]
    report = report_of(tmp_path, "atlas", made, facts=TWO_CPUS)
    verdicts = {judgement.verdict for conclusion in report.conclusions for judgement in conclusion.judgements}
    assert verdicts == {"not testable"}


def test_a_machine_with_a_cpu_for_every_rank_needs_no_prediction(tmp_path: Path) -> None:
    made = [Made(point("shm", "funnel", 5, 64), 500), Made(point("shm", "funnel", 9, 64), skipped="it cannot")]
    found = groups(tmp_path, "atlas", made, facts={**FACTS, "limits": {"usable_cpus": "0-15"}})["Com-1.7 funnel"]
    assert not any(one.value.is_predicted for line in found.rows for one in line.cells.values())
