"""Checks against a baseline: slowdowns and faults made on purpose, and runs that cannot be a baseline."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripts.benchlib import rates
from tests.analysis.compare import delayed
from tests.analysis.compare.made import add_run, curve
from tests.builders import make_point, set_columns
from tests.cli.support import call_here
from tests.measure.test_run import Silent
from tests.shared import Fakes, finished

from hockney.analysis.compare import Reason, ReasonCode, SeriesChange, Verdict
from hockney.analysis.expect import Expectations
from hockney.errors import HockneyError, UsageError
from hockney.measure import run as running
from hockney.measure.check import (
    END_SHARE,
    FAR,
    LOOKS,
    Gate,
    check_expectations,
    may_be_decided,
    plan_of_baseline,
    settled,
)
from hockney.measure.recorder import Lab, RunOutcome
from hockney.model import Launch, Point, RunStatus
from hockney.results.runs import Run
from hockney.results.store import Store
from hockney.stats.shift import Shift
from hockney.worker.catalogue import Catalogue, load

MODEL = """
title = "made up"
[topology]
kind = "switch"
nodes = 2
source = "made up"
[[class.all.segment]]
up_to_bytes = 8000
latency = 1000
source = "made up"
[[class.all.segment]]
up_to_bytes = 70000
latency = {latency_ns}
source = "made up"
[[class.all.segment]]
latency = 9000
source = "made up"
[noise]
law = "lognormal"
sigma = 0.02
source = "made up"
"""


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return delayed.load_catalogue()


def test_a_slowdown_is_found_where_it_is(tmp_path: Path) -> None:
    """On a noisy model whose middle sizes become a quarter slower, which is not by far: the whole time is taken."""
    model = tmp_path / "m.toml"
    model.write_text(MODEL.format(latency_ns=2000))
    what = ("pingpong", "-t", "sim@m.toml", "--bytes", "64,16K,64K,128K", "--launches", "6", "--label", "base")
    assert call_here(tmp_path, "run", *what, "--time", "4s").returncode == 0
    model.write_text(MODEL.format(latency_ns=2500))
    done = call_here(tmp_path, "check", "--baseline", "base", "--json")
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    shifts = {each["point"]["bytes"]: each["shift"] for each in document["series"] if each["verdict"] == "slower"}
    assert shifts.keys() == {16384, 65536}
    assert all(shift["ratio"] == pytest.approx(1.25, abs=0.03) for shift in shifts.values())
    assert document["judged_again"] == 0
    with Store.open(tmp_path / "results.db", readonly=True) as opened:
        checked = Run(opened, 2)
        assert checked.status is RunStatus.DONE
        (launches,) = {len({launch.index for launch in series.launches}) for series in checked.series}  # alike
    assert launches >= 6


@pytest.mark.parametrize(("latency_ns", "code", "is_early"), [(2000, 0, True), (52000, 1, True), (2400, 1, False)])
def test_a_check_ends_when_every_series_is_certain(
    latency_ns: int, code: int, tmp_path: Path, *, is_early: bool
) -> None:
    """Where nothing changed, and where two of four sizes take 26 times as long; with a fifth more it lasts its time."""
    model = tmp_path / "m.toml"
    model.write_text(MODEL.format(latency_ns=2000))
    what = ("pingpong", "-t", "sim@m.toml", "--bytes", "64,16K,64K,128K", "--launches", "6", "--label", "base")
    assert call_here(tmp_path, "run", *what).returncode == 0
    model.write_text(MODEL.format(latency_ns=latency_ns))
    words = ("--time", "10m" if is_early else "3s")
    done = call_here(tmp_path, "check", "--baseline", "base", "--json", *words)
    assert done.returncode == code, done.stderr
    slower = {each["point"]["bytes"] for each in json.loads(done.stdout)["series"] if each["verdict"] == "slower"}
    assert slower == (set() if code == 0 else {16384, 65536})
    with Store.open(tmp_path / "results.db", readonly=True) as opened:
        checked = Run(opened, 2)
        assert checked.status is RunStatus.DONE
        (launches,) = {len(series.launches) for series in checked.series}
        assert launches in LOOKS if is_early else launches >= 6
        assert plan_of_baseline(opened, 2, with_model(tmp_path)).limits.launches == 6


def with_model(folder: Path) -> Catalogue:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        catalogue = load(libraries=())
        catalogue.add("sim@m.toml")
    return catalogue


def test_a_baseline_keeps_its_plan(catalogue: Catalogue, store: Store) -> None:
    base = delayed.measure(catalogue, store, delayed.plan(sizes=(8, 64), launches=3, time_s=0.3))
    result = delayed.check_again(catalogue, store, base, slowdown=0.9, patience_s=1)
    again = Run(store, result.new)
    assert [series.point for series in again.series] == [series.point for series in Run(store, base).series]
    assert again.info.plan["launches"] == 6
    assert result.again is not None
    assert result.again.argv == (
        *("hockney", "check", "--baseline", str(base), "--max-slowdown", "90%", "--patience", "2s"),
    )
    assert again.info.plan["precision"] == Run(store, base).info.plan["precision"]


def test_launches_that_a_check_added_are_not_in_the_next_plan(catalogue: Catalogue, store: Store) -> None:
    """A run planned with five launches that got more because it was a check."""
    base = add_run(store, curve("shm", (8,)), launches=30)
    set_columns(store.db, "run", "plan = ?", json.dumps(delayed.plan("shm", launches=5).as_json()))
    assert plan_of_baseline(store, base, catalogue).limits.launches == 6


def test_a_baseline_of_two_launches_is_refused(catalogue: Catalogue, store: Store) -> None:
    base = delayed.measure(catalogue, store, delayed.plan(sizes=(8,), launches=2, time_s=0.1))
    with pytest.raises(UsageError, match=r"2 launches, and a baseline needs 3") as error:
        delayed.check_again(catalogue, store, base)
    assert error.value.fix is not None
    assert (error.value.fix.code, error.value.fix.facts["launches"]) == ("more launches", 6)
    assert len(store.runs()) == 1


def test_a_transport_that_is_gone_is_inconclusive(catalogue: Catalogue, store: Store) -> None:
    base = add_run(store, curve("shm", (8,)) | curve("mpi@gone-1.0", (8,)))
    plan = delayed.plan("shm", sizes=(8,))
    set_columns(store.db, "run", "plan = ?", json.dumps(plan.as_json()))  # as a real run has one
    result = delayed.check_again(catalogue, store, base, patience_s=0.1)
    reasons = {change.point.transport: change.reasons for change in result.changes}
    facts = {"run": result.new, "message": "mpi@gone-1.0 is no longer here"}
    assert reasons["mpi@gone-1.0"] == (Reason(ReasonCode.SKIPPED, facts),)
    assert result.counts[Verdict.INCONCLUSIVE]


def test_only_a_new_library_replaces_one_that_is_gone(catalogue: Catalogue, store: Store) -> None:
    gone, other = "mpi@mpich-4.0.2", "mpi@mpich-5.0.2"
    here = replace(catalogue, transports={"shm": catalogue.transports["shm"], other: catalogue.transports["shm"]})
    plans = []
    for had in (["shm", gone, other], ["shm", gone]):
        base = add_run(store, curve(gone, (8,)) | curve("shm", (8,)), facts={"transports": had})
        set_columns(store.db, "run", "plan = ?", json.dumps(delayed.plan("shm").as_json()))
        plans.append(plan_of_baseline(store, base, here))
    assert [[point.transport for point in plan.points] for plan in plans] == [["shm"], [other, "shm"]]
    assert [skipped.reason for skipped in plans[0].skipped] == [f"{gone} is no longer here"]


def test_a_run_stores_which_transports_existed(catalogue: Catalogue, store: Store) -> None:
    run = delayed.measure(catalogue, store, delayed.plan("shm", sizes=(8,), launches=1, time_s=0.1))
    assert store.run(run).info.facts["transports"] == list(catalogue.transports)


def test_a_failure_of_the_baseline_is_inconclusive(
    catalogue: Catalogue, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setenv("HOCKNEY_FAULT", "fail 1 64")
        base = delayed.measure(catalogue, store, delayed.plan(sizes=(8, 64), time_s=0.3))
    result = delayed.check_again(catalogue, store, base, slowdown=0.9, patience_s=1)
    (change,) = [change for change in result.changes if change.point.bytes == 64]
    codes = [(reason.code, reason.facts["run"]) for reason in change.reasons]
    assert codes == [(ReasonCode.FAILED, base), (ReasonCode.SKIPPED, result.new)]
    assert result.counts[Verdict.INCONCLUSIVE]


class _FailsInTheEnd(Silent):
    """Breaks receives of 16 KiB in the last of five launches: by then four have samples."""

    def launched(self, launch: Launch) -> None:
        if launch.index == 3:
            os.environ["HOCKNEY_FAULT"] = f"fail 1 {delayed.DELAYED[0]}"


def test_a_suspect_that_fails_later_is_inconclusive(
    catalogue: Catalogue, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hockney.measure.check.LOOKS", ())  # it would end as soon as it is certain
    base = delayed.measure(catalogue, store, delayed.plan(sizes=(8, 16384), time_s=0.5))
    with delayed.delayed(percent=2000):
        result = delayed.check_again(catalogue, store, base, slowdown=0.5, patience_s=1, display=_FailsInTheEnd())
    (change,) = [change for change in result.changes if change.point.bytes == 16384]
    assert change.verdict is Verdict.INCONCLUSIVE
    assert [(reason.code, reason.facts["run"]) for reason in change.reasons] == [(ReasonCode.FAILED, result.new)]
    assert result.counts[Verdict.INCONCLUSIVE]


def test_inconclusive_series_are_measured_again_while_patience_lasts(catalogue: Catalogue, store: Store) -> None:
    """The baseline was taken in a state of the machine that no machine has: a floor of less than a clock tick."""
    plan = delayed.plan("shm", sizes=(8,), time_s=0.3)
    here = store.run(delayed.measure(catalogue, store, plan)).info  # between CPUs of two kinds no floors are compared
    base = add_run(store, curve("shm", (8,)), floor_ns=0.1, facts=here.facts, plan=plan.as_json())
    launches = []
    for patience_s, again in ((0.0, 0), (0.1, 1)):
        result = delayed.check_again(catalogue, store, base, patience_s=patience_s)
        (change,) = result.changes
        assert [reason.code for reason in change.reasons] == [ReasonCode.NO_COMMON_STATE]
        assert result.judged_again == again
        launches.append(len({launch.index for launch in Run(store, result.new).launches.values()}))
    assert launches[0] >= 6
    assert launches[1] >= 6 + 6  # however short the patience


@pytest.mark.parametrize(("limit", "budgets_s"), [("<= 1 s", []), ("<= 1500 ns", [(1, 1.0)]), ("<= 1 ns", [(1, 3.0)])])
def test_series_that_miss_a_limit_get_their_share_of_the_time_again(
    limit: str, budgets_s: list[tuple[int, float]], store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a model whose middle size takes twice as long as the shortest ones."""
    catalogue = load(libraries=())
    (tmp_path / "m.toml").write_text(MODEL.format(latency_ns=2000))
    word = f"sim@{tmp_path / 'm.toml'}"
    catalogue.add(word)
    table = {"transports": word, "pattern": "pingpong", "bytes": [8, 64, 16384], "latency": limit}
    again: list[tuple[int, float]] = []
    real = running.add_launches

    def add_launches(run_id: int, points: Sequence[Point], launches: int, time_s: float, *to: Any) -> RunOutcome:
        again.append((launches, time_s))
        return real(run_id, points, launches, time_s, *to)

    monkeypatch.setattr(running, "add_launches", add_launches)
    limits = Expectations.model_validate({"expect": [table]})
    run_id, judged = check_expectations(limits, Lab(catalogue, store, Silent(), "test"), time_s=3.0)
    assert again == budgets_s
    assert len(judged) == 3
    launches = {series.point.bytes: len(series.launches) for series in Run(store, run_id).series}
    assert sum(launches.values()) == 3 + (0 if not again else int(again[0][1]))


def looked(chance: float | None = 0.03, **more: Any) -> SeriesChange:
    """A series that seems slower by a quarter in new launches."""
    return SeriesChange(make_point(8), Verdict.SAME, shift=Shift(1.25, 0.9, 1.4, 0.95, 6, 6), chance=chance, **more)


def fine(*, high: float = 1.04, verdict: Verdict = Verdict.SAME, **more: Any) -> SeriesChange:
    return SeriesChange(make_point(64), verdict, shift=Shift(1.0, 0.97, high, 0.95, 6, 3), chance=1.0, **more)


def test_a_slowdown_without_certainty_is_inconclusive() -> None:
    unsure = settled(looked(), margin=1.05, among=8)
    assert (unsure.verdict, unsure.reasons) == (Verdict.INCONCLUSIVE, (Reason(ReasonCode.NOT_SIGNIFICANT),))
    beyond = replace(looked(), shift=Shift(1.1, 1.064, 1.155, 0.95, 6, 6))
    assert settled(beyond, margin=1.05, among=8).reasons == (Reason(ReasonCode.MAY_BE_CHANCE, {"among": 8}),)
    for other in (looked(), replace(looked(), verdict=Verdict.SLOWER)):
        assert settled(other, margin=1.3 if other.verdict is Verdict.SAME else 1.05, among=8) == other


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(1.06, Verdict.INCONCLUSIVE), (1.05, Verdict.SAME), (None, Verdict.SAME)]
)
def test_a_series_slower_than_allowed_is_not_called_fine(ratio: float | None, verdict: Verdict) -> None:
    shift = None if ratio is None else Shift(ratio, 0.9 * ratio, 1.1 * ratio, 0.95, 6, 6)
    assert settled(replace(looked(), shift=shift), margin=1.05, among=8).verdict is verdict


@pytest.mark.parametrize(
    ("ratio", "later", "verdict", "is_over"),
    [
        (1.2, 1.2, Verdict.SLOWER, False),  # small ones count at the end only
        (1.2, 1.01, Verdict.INCONCLUSIVE, False),  # something came and went
        (2.0, 2.0, Verdict.SLOWER, True),
        (1.0, 1.0, Verdict.SAME, True),
    ],
)
def test_a_slowdown_counts_at_the_end_if_the_later_half_shows_it(
    ratio: float, later: float, verdict: Verdict, *, is_over: bool
) -> None:
    asked = list[tuple[float, float, int]]()

    def compare(margin: float, share: float, first: int) -> list[SeriesChange]:
        asked.append((margin, share, first))
        seen = later if first else ratio
        moved = Verdict.SLOWER if seen / 1.02 > margin else Verdict.SAME
        return [
            SeriesChange(make_point(8), moved, shift=Shift(seen, seen / 1.02, seen * 1.02, 0.95, 6, 24), chance=0.01)
        ]

    gate = Gate(compare, 1.05, base_id=1)
    assert gate.is_over() is is_over
    asked.clear()
    gate.answer(24, END_SHARE)
    (change,) = gate.changes.values()
    assert change.verdict is verdict
    assert set(asked) == {(1.05, END_SHARE, 12), (1.05, END_SHARE, 0), (1.05 * FAR, END_SHARE, 0)}
    assert gate.is_over() is (verdict is not Verdict.INCONCLUSIVE or is_over)  # others have had their answer


@pytest.mark.parametrize(
    ("code", "facts", "is_open"),
    [
        (ReasonCode.FEW_LAUNCHES, {}, True),
        (ReasonCode.NO_SAMPLES, {"run": 2}, True),
        (ReasonCode.NO_STEADY_STATE, {"run": 1}, False),
        (ReasonCode.FAILED, {"run": 2}, False),
        (ReasonCode.OTHER_DEFINITION, {}, False),
    ],
)
def test_series_that_more_launches_may_decide(code: ReasonCode, facts: dict[str, Any], is_open: bool) -> None:
    change = SeriesChange(make_point(8), Verdict.INCONCLUSIVE, (Reason(code, facts),))
    assert may_be_decided(change, base_id=1) == is_open
    assert not may_be_decided(looked(), base_id=1)


@pytest.mark.parametrize(
    ("changes", "is_over"),
    [
        ([fine()], True),
        ([fine(high=1.06)], False),
        ([fine(), looked()], False),
        ([fine(verdict=Verdict.FASTER)], True),
        ([fine(verdict=Verdict.INCONCLUSIVE, reasons=(Reason(ReasonCode.FAILED, {"run": 2}),))], True),
        ([fine(verdict=Verdict.INCONCLUSIVE, reasons=(Reason(ReasonCode.FEW_LAUNCHES, {}),))], False),
        ([fine(verdict=Verdict.SLOWER, high=30.0)], False),  # slower, but not surely by far
    ],
)
def test_a_check_is_over_when_no_series_needs_another_launch(changes: list[SeriesChange], *, is_over: bool) -> None:
    gate = Gate(lambda margin, share, first: changes if margin == 1.05 else [], 1.05, base_id=1)
    assert gate.is_over() is is_over
    gate.changes |= {change.point: replace(change, verdict=Verdict.SAME, reasons=()) for change in changes}
    assert gate.is_over()


def test_a_baseline_of_another_version_is_refused(catalogue: Catalogue, store: Store) -> None:
    base = add_run(store, curve("shm", (8,)))  # its plan has nothing but a precision
    with pytest.raises(UsageError, match="stored by another version of hockney"):
        delayed.check_again(catalogue, store, base)


def test_a_baseline_without_samples_is_refused(catalogue: Catalogue, store: Store) -> None:
    base = add_run(store, {}, failed=dict.fromkeys(curve(), "no"))
    with pytest.raises(UsageError, match="none of its points has samples"):
        delayed.check_again(catalogue, store, base)


def test_a_point_that_fails_now_is_inconclusive(
    catalogue: Catalogue, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = delayed.measure(catalogue, store, delayed.plan(sizes=(8, 64), time_s=0.3))
    monkeypatch.setenv("HOCKNEY_FAULT", "fail 1 64")
    result = delayed.check_again(catalogue, store, base, slowdown=1000, patience_s=1)
    reasons = {change.point.bytes: [reason.code for reason in change.reasons] for change in result.changes}
    assert reasons[64] == [ReasonCode.FAILED]
    assert result.counts[Verdict.INCONCLUSIVE]
    assert not result.counts[Verdict.SLOWER]
    assert Run(store, result.new).status is RunStatus.PARTIAL


@pytest.mark.parametrize(
    ("high", "verdict"), [(1.04, Verdict.SAME), (1.05, Verdict.SAME), (1.06, Verdict.INCONCLUSIVE)]
)
def test_a_wide_interval_without_a_slowdown_is_fine(high: float, verdict: Verdict) -> None:
    reason, shift = Reason(ReasonCode.WIDE_INTERVAL, {"by": 0.25}), Shift(0.9, 0.7, high, 0.95, 6, 6)
    change = SeriesChange(make_point(8), Verdict.INCONCLUSIVE, (reason,), ("near", "near"), shift, 1.0)
    judged = settled(change, margin=1.05, among=1)
    assert (judged.verdict, bool(judged.reasons)) == (verdict, verdict is Verdict.INCONCLUSIVE)
    assert may_be_decided(change, 1)


def test_ctrl_c_decides_nothing(catalogue: Catalogue, store: Store) -> None:
    base = delayed.measure(catalogue, store, delayed.plan(sizes=(8,), time_s=0.2))
    with pytest.raises(HockneyError, match="stopped, so nothing is decided") as caught:
        delayed.check_again(catalogue, store, base, display=Silent(stop_after_rounds=1))
    assert caught.value.exit_code == 3


CALLED_WRONGLY = "say how many checks of each kind, one or more, and of which transports: scripts/check-rates 50 tcp"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["x"], CALLED_WRONGLY),
        (["0"], CALLED_WRONGLY),
        (["5", "tpc"], "unknown transport 'tpc': did you mean 'tcp'?"),
        pytest.param(*(["5", "tcp", "udp"], "udp sends at most 65491 B in one message"), marks=pytest.mark.full),
    ],
)
def test_check_rates_refuses_unknown_transports(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rates.run(words) == 2
    assert capsys.readouterr().err == f"check-rates: {sentence}\n"


def test_check_rates_hands_its_words_on(tmp_path: Path, fake: Fakes) -> None:
    fake(tmp_path / "call", 'echo "$@"')
    program = shutil.copy(Path(__file__).parents[2] / "scripts/check-rates", tmp_path)
    assert finished([program, "5", "tcp"]).stdout == "scripts.benchlib.rates 5 tcp\n"
