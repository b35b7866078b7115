"""Rows of a report that need more ranks than there are CPUs, predicted from the run's own figures."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.matrix import matrix
from tests.report.cells import MPI, about, figure, measured, point, reason, report_of, row, shown, tables
from tests.report.runs import FACTS, Made, oversubscribed, store_run

from hockney.archive import published
from hockney.report.classic import predicted
from hockney.report.classic.predicted import ASSUMED
from hockney.report.classic.values import ClassicTable
from hockney.report.classic.view import view_of
from hockney.results.runs import Run
from hockney.stats.fit import NoFit
from hockney.worker.cache import Probes
from hockney.worker.errors import LaunchFailed, WorkerRefused

TWO_CPUS = {**FACTS, "limits": {"usable_cpus": "0-1"}}
PINGPONG = point("shm", "pingpong", 2, 8)


class MadeUp:
    """A message takes 900 ns and its receiver 100 ns, a put 500 ns; each byte is 1 ns on the way out."""

    title = "made up"
    sizes_bytes = (4, 4 << 20)

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


def tables_of(path: Path, suite: str, made: Sequence[Made]) -> dict[str, ClassicTable]:
    return tables(path, suite, made, facts=TWO_CPUS)


def test_points_with_more_ranks_than_cpus_are_predicted_next_to_measured_ones(tmp_path: Path) -> None:
    made = [
        Made(point("shm", "alltoall", 4, 4, algorithm="flat"), 700),
        oversubscribed("shm", "alltoall", 8, 4, algorithm="flat"),
    ]
    table = tables_of(tmp_path, "atlas", made)["com-1.3"]
    assert [column.title for column in table.columns] == [
        "processors",
        "packet size",
        "published",
        "shm, algorithm=flat",
        "shm, algorithm=flat: predicted here",
    ]
    *_, measured, none = row(table, "4", "4")
    assert (figure(measured), none) == (about(0.7), "")
    *_, absent, guessed = row(table, "8", "4")
    assert reason(absent).startswith("skipped: more ranks than CPUs")
    assert figure(guessed) == about(0.9 + 0.7)  # all seven come together, and are received one after the other
    assert ASSUMED in table.notes


def test_a_table_that_needs_more_ranks_than_cpus_throughout_is_not_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [
        oversubscribed("shm", "funnel", 5, 64),
        oversubscribed("shm", "pushfarm", 5, 16, senders=2),
        Made(PINGPONG, 500),
    ]
    store_run(tmp_path / "r.db", "atlas", made, facts=TWO_CPUS)
    text = shown(tmp_path, capsys)
    funnel = text.partition("Com-1.7")[2].partition("Com-2.1")[0]
    assert "shm: predicted here" in " ".join(funnel.split())
    there = next(one for one in published("atlas") if one.matches({"benchmark": "Com-1.7", "senders": 4, "bytes": 64}))
    assert re.search(rf"^4 +64 +{there.printed} +0\.400 x", funnel, re.MULTILINE)
    assert "±" not in funnel
    assert text.count(" ".join(ASSUMED.split()[:4])) == 1
    of = {table["name"]: table for table in json.loads(shown(tmp_path, capsys, "--json"))["tables"]["of"]}
    assert [column["kind"] for column in of["com-2.1"]["columns"]][-2:] == ["measured", "predicted"]
    (guessed,) = (one[-1] for one in of["com-2.1"]["rows"] if one[:2] == ["2", "2"])
    assert guessed["value"] > 3  # three messages, one after the other
    assert (guessed["low"], guessed["high"], guessed["exact"], guessed["computed"]) == (None, None, False, True)


def test_predictions_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [oversubscribed("shm", "funnel", 5, 64), oversubscribed("shm", "multicast", 5, 4, algorithm="native")]
    first = tables_of(tmp_path, "atlas", made)
    monkeypatch.setattr("hockney.measure.predict.times_of", None)
    assert tables_of(tmp_path, "atlas", made)["com-1.7"] == first["com-1.7"]
    assert figure(row(first["com-1.7"], "4", "64")[-1]) > 0


def test_points_of_a_broken_job_are_predicted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_launch(job: object) -> None:
        raise LaunchFailed("fork", "no process is left")

    made = [oversubscribed("shm", "funnel", 5, 64)]
    with monkeypatch.context() as patch:
        patch.setattr("hockney.measure.predict.launch", broken_launch)
        broken = tables_of(tmp_path, "atlas", made)["com-1.7"]
    assert "no process is left" in reason(row(broken, "4", "64")[-1])
    assert figure(row(tables_of(tmp_path, "atlas", made)["com-1.7"], "4", "64")[-1]) > 0


@pytest.mark.parametrize("kept", [{}, {"of": []}, {"of": None}, {"of": [{"batch": 1}]}, {"of": [[7]]}])
def test_a_damaged_stored_prediction_is_made_again(
    kept: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, get = [oversubscribed("shm", "funnel", 5, 64)], Probes.get
    tables_of(tmp_path, "atlas", made)

    def damaged(probes: Probes, key: Iterable[str], *texts: str) -> dict[str, Any] | None:
        known = get(probes, key, *texts)
        return kept if known and "of" in known else known

    monkeypatch.setattr(Probes, "get", damaged)
    assert figure(row(tables_of(tmp_path, "atlas", made)["com-1.7"], "4", "64")[-1]) > 0


@pytest.mark.parametrize(("code", "is_kept"), [("unsupported", True), ("memory", False)])
def test_a_refusal_is_kept_unless_memory_was_short(
    code: str, is_kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise WorkerRefused(code, "not now")

    made = [oversubscribed("shm", "funnel", 5, 64)]
    with monkeypatch.context() as patch:
        patch.setattr("hockney.measure.predict._measurement", refused)
        first = tables_of(tmp_path, "atlas", made)["com-1.7"]
    assert "not now" in reason(row(first, "4", "64")[-1])
    again = row(tables_of(tmp_path, "atlas", made)["com-1.7"], "4", "64")[-1]
    assert "not now" in reason(again) if is_kept else figure(again) > 0


def test_best_rates_and_means_are_those_of_the_model(tmp_path: Path) -> None:
    made = [oversubscribed("shm", "bisection", 16, size) for size in (64, 4096)]
    best = measured(row(tables_of(tmp_path, "scabench", made)["bisection"], "16")[-1])
    assert (best.at_bytes, best.state) == (4096, None)
    assert figure(best) == about(16_000)  # eight pairs; each rank's way out is busy for 4096 ns of a round trip
    event = row(tables_of(tmp_path, "atlas", [oversubscribed("shm", "robpull", 3, 1024)])["com-3.2"], "3", "0")[-1]
    assert figure(event) > 2  # asked, and answered


def test_the_t3d_is_compared_with_as_many_ranks_as_it_had(tmp_path: Path) -> None:
    """On one switch one pair stands for all: half a round trip of puts is 500 ns, and 1 ns a byte busy on its way."""
    made = [Made(point("shm", "putpong", 2, 8, **ends), 40, divisor=2) for ends in ({}, {"source": 1, "target": 0})]
    made += [Made(point("shm", "putring", 2, size), 20 + size) for size in (8, 4096)]
    report = tables_of(tmp_path, "t3d", [*made, Made(point("mpi", "putpong", 2, 8), skipped="it has no puts")])
    single, loaded = report["ping_pong"], report["multiple_pairs"]
    assert single.columns[-1].title == "shm, putpong, 16 ranks: predicted here"
    assert [figure(row(single, f"{which} latency")[-1]) for which in ("max", "min", "average")] == [about(0.5)] * 3
    assert loaded.columns[-1].title == "shm, put (store rate), 16 ranks: predicted here"
    assert figure(row(loaded, "Rmax (Rinf)")[-1]) == pytest.approx(1000, rel=0.1)


def test_ft_computes_as_fast_as_one_rank_did(tmp_path: Path) -> None:
    made = [Made(point("shm", "ft", 1, 0, **{"class": kind}), ns) for kind, ns in (("S", 1e8), ("A", 7.1e9))]
    table = tables_of(tmp_path, "scabench", [*made, oversubscribed("shm", "ft", 4, 0, **{"class": "A"})])["npb-ft"]
    assert figure(row(table, "Scali-1", "A", "4")[-1]) == pytest.approx(1000, rel=0.1)  # less the time of its exchanges


def test_a_librarys_own_collective_is_predicted_as_hockneys(tmp_path: Path) -> None:
    """The dissemination of four ranks has two rounds, each of a message."""
    crowd = oversubscribed("shm", "barrier", 4, 0)
    table = tables_of(tmp_path, "scabench", [crowd, Made(point("shm", "barrier", 2, 0), 50, algorithm="native")])[
        "barrier"
    ]
    assert figure(row(table, "4")[-1]) == about(2)
    assert (
        table.notes[-1] == "Predicted with hockney's own algorithm over messages, where a library's own was measured."
    )
    alone = tables_of(tmp_path, "scabench", [crowd])["barrier"]
    assert alone.notes[-1] == ASSUMED


def test_why_nothing_is_predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = [oversubscribed(name, "funnel", 5, size) for name in ("shm", MPI) for size in (4, 64)]
    made += [oversubscribed("shm", "multicast", 5, 4, algorithm="native"), oversubscribed(MPI, "outfarm", 5, 4)]
    report = tables_of(tmp_path, "atlas", made)
    assert reason(row(report["com-1.7"], "4", "4")[-1]) == "not predicted: no pingpong was measured"
    assert reason(row(report["com-1.6"], "4", "4")[-1]) == "not predicted: sim has no native broadcast"
    views = {name: view_of(table) for name, table in report.items()}
    assert views["com-1.7"].left_out[-1].sentence("(2)") == f"Not predicted (2): {MPI}."
    assert views["com-1.5"].left_out[-1].sentence("(2)") == "Not predicted (2)."
    assert [column.kind for column in views["com-1.5"].columns] == ["key", "key", "published"]
    assert shown(tmp_path, capsys).count("not predicted: no pingpong was measured") == 1


def test_points_far_beyond_the_fit_are_not_predicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MadeUp, "sizes_bytes", (4, 128))
    made = [oversubscribed("shm", "funnel", 5, size) for size in (256, 1024)]
    table = tables_of(tmp_path, "atlas", made)["com-1.7"]
    assert figure(row(table, "4", "256")[-1]) > 0
    assert reason(row(table, "4", "1024")[-1]) == (
        "not predicted: its messages of 1 KiB are far longer than those of the fit, 128 B"
    )


def test_conclusions_are_judged_on_measurements(tmp_path: Path) -> None:
    made = [oversubscribed("shm", "outfarm", 5, 4), oversubscribed("shm", "multicast", 5, 4), Made(PINGPONG, 500)]
    report = report_of(tmp_path, "atlas", made, facts=TWO_CPUS)
    verdicts = {judgement.verdict for conclusion in report.conclusions for judgement in conclusion.judgements}
    assert verdicts == {"not testable"}


def test_a_machine_with_a_cpu_for_every_rank_needs_no_prediction(tmp_path: Path) -> None:
    made = [Made(point("shm", "funnel", 5, 64), 500), Made(point("shm", "funnel", 9, 64), skipped="it cannot")]
    table = tables(tmp_path, "atlas", made, facts={**FACTS, "limits": {"usable_cpus": "0-15"}})["com-1.7"]
    assert {column.kind for column in table.columns} == {"key", "published", "measured"}


@pytest.mark.parametrize("width", matrix([60, 80, 100], short=[60]))
def test_no_line_is_wider_than_the_screen(
    width: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    names = ("shm", "mpi@mpich-5.0.2", "mpi@mpich-4.0.2")
    made = [Made(point(name, "oneway", 2, 4), 500) for name in names]
    made += [oversubscribed(name, "alltoall", 62, size, algorithm="flat") for name in names for size in (4, 64)]
    made += [oversubscribed(name, "pushfarm", ranks, 16, senders=2) for name in names for ranks in (5, 7)]
    store_run(tmp_path / "r.db", "atlas", made, facts=TWO_CPUS)
    lines = shown(tmp_path, capsys).splitlines()
    assert [line for line in lines if len(line) > width] == []
