"""Checks against a baseline: real runs of a transport that is slowed down on purpose, and what can't be a baseline."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from tests.analysis.compare import slowed
from tests.analysis.compare.made import add_run, curve
from tests.builders import make_point
from tests.cli.support import call
from tests.measure.test_run import Silent

from hockney.analysis.compare import Comparison, Difference, SeriesChange, Verdict
from hockney.cli import check as cli_check
from hockney.cli.junit import reported, write_junit
from hockney.errors import HockneyError, UsageError
from hockney.measure.check import Checked, _plan, _Suspect
from hockney.model import Launch, RunStatus
from hockney.results.runs import Run
from hockney.results.store import Store
from hockney.stats.shift import Shift
from hockney.worker.catalogue import Catalogue

_TRIES = 6  # a state of the machine that changes between two runs is no fault of the check


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return slowed.load_catalogue()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def check_slowed(catalogue: Catalogue, store: Store) -> Checked:
    """A check in which two sizes take four times as long; a new pair of runs where a mood decided another size."""
    plan = slowed.plan(sizes=(64, 16384, 65536, 131072), time_s=1.0)
    for _ in range(_TRIES):
        base = slowed.measure(catalogue, store, plan)
        with slowed.slowed(percent=300):
            found = slowed.check_again(catalogue, store, base)
        of_slowed = {one.verdict for one in found.comparison.changes if one.point.bytes in slowed.SLOWED}
        assert of_slowed <= {Verdict.SLOWER, Verdict.INCONCLUSIVE}  # whatever the mood
        if slower(found) == set(slowed.SLOWED):
            break
    return found


def slower(found: Checked) -> set[int]:
    return {change.point.bytes for change in found.comparison.changes if change.verdict is Verdict.SLOWER}


def test_an_injected_slowdown_is_found_where_it_is(catalogue: Catalogue, store: Store) -> None:
    found = check_slowed(catalogue, store)
    worse = [change for change in found.comparison.changes if change.verdict is Verdict.SLOWER]
    assert slower(found) == set(slowed.SLOWED)
    assert found.is_worse
    assert found.judged_again >= 2
    for change in worse:
        assert change.shift is not None
        assert change.shift.ratio > 2
        assert change.shift.low is not None
        assert change.shift.low > 1.05


def test_a_slowdown_of_a_quarter_is_found_and_never_called_well(catalogue: Catalogue, store: Store) -> None:
    """A real one, as scripts/check-rates has it: a moody machine may leave it inconclusive, or hide it at some size."""
    plan = slowed.plan(sizes=(64, 16384, 32768, 65536, 131072), time_s=1.5)
    for _ in range(_TRIES):
        base = slowed.measure(catalogue, store, plan)
        with slowed.slowed():
            found = slowed.check_again(catalogue, store, base)
        assert found.is_worse or Verdict.INCONCLUSIVE in found.comparison.counts
        if slower(found) and slower(found) <= {16384, 32768, 65536}:
            break
    assert slower(found) <= {16384, 32768, 65536}
    assert found.is_worse


def test_what_looks_suspicious_is_judged_by_new_launches_of_the_whole_plan(catalogue: Catalogue, store: Store) -> None:
    found = check_slowed(catalogue, store)
    run = Run(store, found.run_id)
    made = {len({launch.index for launch in series.launches}) for series in run.series}
    assert len(made) == 1  # what is not suspicious runs beside what is, as in the baseline
    assert made.pop() >= 12
    judged = {change.point.bytes: change.shift.n_new for change in found.comparison.changes if change.shift is not None}
    assert sum(count > 6 for count in judged.values()) <= found.judged_again
    assert found.judged_again >= 2
    assert run.status is RunStatus.DONE


def test_a_baseline_keeps_its_plan(catalogue: Catalogue, store: Store) -> None:
    base = slowed.measure(catalogue, store, slowed.plan(sizes=(8, 64), launches=3, time_s=0.3))
    found = slowed.check_again(catalogue, store, base, slowdown=0.9, patience_s=1)
    again = Run(store, found.run_id)
    assert [series.point for series in again.series] == [series.point for series in Run(store, base).series]
    assert again.info.plan["launches"] == 6
    assert again.info.plan["precision"] == Run(store, base).info.plan["precision"]


def test_what_a_check_measured_again_makes_no_later_check_longer(catalogue: Catalogue, store: Store) -> None:
    """A run that was planned with five launches, and got more for some points as it was a check."""
    base = add_run(store, curve("shm", (8,)), launches=30)
    store._db.execute("UPDATE run SET plan = ?", (json.dumps(slowed.plan("shm", launches=5).as_json()),))
    assert _plan(store, base, catalogue).launches == 6


def test_a_baseline_of_two_launches_is_refused_before_anything_is_measured(catalogue: Catalogue, store: Store) -> None:
    base = slowed.measure(catalogue, store, slowed.plan(sizes=(8,), launches=2, time_s=0.1))
    with pytest.raises(UsageError, match=r"it has 2 launches, and it takes 3 .*--launches 6"):
        slowed.check_again(catalogue, store, base)
    assert len(store.runs()) == 1


def test_a_transport_that_is_gone_is_inconclusive(catalogue: Catalogue, store: Store) -> None:
    base = add_run(store, curve("shm", (8,)) | curve("mpi@gone-1.0", (8,)))
    plan = slowed.plan("shm", sizes=(8,))
    store._db.execute("UPDATE run SET plan = ?", (json.dumps(plan.as_json()),))  # as a real run has one
    found = slowed.check_again(catalogue, store, base, patience_s=0.1)
    reasons = {change.point.transport: change.reason for change in found.comparison.changes}
    assert reasons["mpi@gone-1.0"] == f"skipped in run {found.run_id}: mpi@gone-1.0 is not here any more"
    assert not found.is_whole


def test_a_long_present_library_is_no_stand_in_for_one_that_is_gone(catalogue: Catalogue, store: Store) -> None:
    gone, other = "mpi@mpich-4.0.2", "mpi@mpich-5.0.2"
    here = replace(catalogue, transports={"shm": catalogue.transports["shm"], other: catalogue.transports["shm"]})
    plans = []
    for had in (["shm", gone, other], ["shm", gone]):
        base = add_run(store, curve(gone, (8,)) | curve("shm", (8,)), facts={"transports": had})
        store._db.execute("UPDATE run SET plan = ?", (json.dumps(slowed.plan("shm").as_json()),))
        plans.append(_plan(store, base, here))
    assert [[point.transport for point in plan.points] for plan in plans] == [["shm"], [other, "shm"]]
    assert [skipped.reason for skipped in plans[0].skipped] == [f"{gone} is not here any more"]


def test_a_run_knows_which_transports_there_were(catalogue: Catalogue, store: Store) -> None:
    run = slowed.measure(catalogue, store, slowed.plan("shm", sizes=(8,), launches=1, time_s=0.1))
    assert store.run(run).info.facts["transports"] == list(catalogue.transports)


def test_what_failed_in_the_baseline_is_inconclusive(
    catalogue: Catalogue, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setenv("HOCKNEY_FAULT", "fail 1 64")
        base = slowed.measure(catalogue, store, slowed.plan(sizes=(8, 64), time_s=0.3))
    found = slowed.check_again(catalogue, store, base, slowdown=0.9, patience_s=1)
    reasons = {change.point.bytes: change.reason or "" for change in found.comparison.changes}
    assert reasons[64].startswith(f"failed in run {base}: ")
    assert reasons[64].endswith(f"; skipped in run {found.run_id}: run {base} has nothing to check it against")
    assert not found.is_whole


class _FailsInTheEnd(Silent):
    """Breaks receives of 16 KiB in the last of five launches: by then four have samples."""

    def launched(self, launch: Launch) -> None:
        if launch.index == 3:
            os.environ["HOCKNEY_FAULT"] = f"fail 1 {slowed.SLOWED[0]}"


def test_what_looked_slower_and_failed_then_is_inconclusive(catalogue: Catalogue, store: Store) -> None:
    base = slowed.measure(catalogue, store, slowed.plan(sizes=(8, 16384), time_s=0.5))
    with slowed.slowed(percent=300):
        found = slowed.check_again(catalogue, store, base, slowdown=0.9, display=_FailsInTheEnd())
    (change,) = [change for change in found.comparison.changes if change.point.bytes == 16384]
    assert change.verdict is Verdict.INCONCLUSIVE
    assert (change.reason or "").startswith(f"failed in run {found.run_id}: ")
    assert not found.is_whole


def test_what_could_not_be_tested_is_measured_on_until_patience_is_over(catalogue: Catalogue, store: Store) -> None:
    """The baseline was taken in a state of the machine that no machine has: a floor of less than a clock tick."""
    plan = slowed.plan("shm", sizes=(8,), time_s=0.3)
    here = store.run(slowed.measure(catalogue, store, plan)).info  # between CPUs of two kinds no floors are compared
    base = add_run(store, curve("shm", (8,)), floor_ns=0.1, facts=here.facts, plan=plan.as_json())
    launches = []
    for patience_s in (0.5, 1.2, 3.0):
        clock = itertools.count().__next__  # a second passes from one look to the next
        found = slowed.check_again(catalogue, store, base, patience_s=patience_s, clock=clock)
        (change,) = found.comparison.changes
        assert f"no state of the machine in common: run {base} saw near" in (change.reason or "")
        launches.append(len({launch.index for launch in Run(store, found.run_id).launches.values()}))
    # New launches are made, however short the patience; more only if they can end in time.
    assert launches == [6 + 6, 6 + 6, 6 + 3 * 6]


def count_tests(*looks: SeriesChange) -> int:
    suspect = _Suspect()
    for look in looks:
        if suspect.change is None or suspect.is_open:
            suspect.look(look, margin=1.05, among=8)
    return suspect.tests


def looked(launches: int, *, is_tested: bool = True) -> SeriesChange:
    """What a look at so many new launches leaves inconclusive: slower by a quarter, but not surely."""
    found = Shift(1.25, 0.9, 1.4, 0.98, 5, launches)
    if not is_tested:
        return SeriesChange(make_point(8), Verdict.INCONCLUSIVE, "too few", shift=found, is_open=True)
    return SeriesChange(make_point(8), Verdict.SAME, shift=found, chance=0.03, is_open=True)


def test_each_test_of_a_series_takes_twice_the_launches_and_there_are_three() -> None:
    assert [count_tests(*map(looked, range(5, 5 * n + 1, 5))) for n in (1, 2, 3, 4, 8, 20)] == [1, 2, 2, 3, 3, 3]


def test_what_could_not_be_tested_costs_no_test() -> None:
    untested = [looked(launches, is_tested=False) for launches in range(5, 105, 5)]
    assert count_tests(*untested) == 0
    assert count_tests(*untested, looked(105)) == 1


def test_a_verdict_is_kept_until_the_next_test_and_not_beyond_a_failure() -> None:
    suspect = _Suspect()
    suspect.look(looked(5), margin=1.05, among=8)
    suspect.look(looked(6, is_tested=False), margin=1.05, among=8)
    assert suspect.change is not None
    assert "not surely" in (suspect.change.reason or "")
    suspect.look(
        SeriesChange(make_point(8), Verdict.INCONCLUSIVE, "failed in run 2: rank 1 hung"), margin=1.05, among=8
    )
    assert suspect.change.reason == "failed in run 2: rank 1 hung"
    assert not suspect.is_open


@pytest.mark.parametrize(
    ("among", "said"), [(8, "but among 8 series so much may come by chance; "), (1, "but so much ")]
)
def test_what_is_surely_slower_by_itself_is_not_called_unsure(among: int, said: str) -> None:
    suspect = _Suspect()
    beyond = replace(looked(6), shift=Shift(1.1, 1.064, 1.155, 0.998, 6, 6), is_beyond=True)
    suspect.look(beyond, margin=1.05, among=among)
    assert suspect.change is not None
    assert suspect.change.verdict is Verdict.INCONCLUSIVE
    assert (suspect.change.reason or "").startswith(f"it looks slower by more than is allowed, {said}")


def test_a_baseline_of_another_version_is_refused(catalogue: Catalogue, store: Store) -> None:
    base = add_run(store, curve("shm", (8,)))  # its plan has nothing but a precision
    with pytest.raises(UsageError, match="stored by another version of hockney"):
        slowed.check_again(catalogue, store, base)


def test_a_baseline_without_samples_is_refused(catalogue: Catalogue, store: Store) -> None:
    base = add_run(store, {}, failed=dict.fromkeys(curve(), "no"))
    with pytest.raises(UsageError, match="none of its points has samples"):
        slowed.check_again(catalogue, store, base)


def test_a_point_that_fails_now_is_inconclusive_and_the_run_stays_partial(
    catalogue: Catalogue, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = slowed.measure(catalogue, store, slowed.plan(sizes=(8, 64), time_s=0.3))
    monkeypatch.setenv("HOCKNEY_FAULT", "fail 1 64")
    found = slowed.check_again(catalogue, store, base, slowdown=1000, patience_s=1)
    reasons = {change.point.bytes: change.reason for change in found.comparison.changes}
    assert (reasons[64] or "").startswith(f"failed in run {found.run_id}: ")
    assert not found.is_whole
    assert not found.is_worse
    assert Run(store, found.run_id).status is RunStatus.PARTIAL


def test_ctrl_c_decides_nothing(catalogue: Catalogue, store: Store) -> None:
    base = slowed.measure(catalogue, store, slowed.plan(sizes=(8,), time_s=0.2))
    with pytest.raises(HockneyError, match="stopped, so nothing is decided") as caught:
        slowed.check_again(catalogue, store, base, display=Silent(stop_after_rounds=1))
    assert caught.value.exit_code == 3


# ---- what it says ---------------------------------------------------------------------------------------------------


def found_fine(*highs: float) -> Checked:
    """A check in which nothing is slower, with intervals that end at these ratios, one a size from 1 KiB on."""
    changes = tuple(
        SeriesChange(make_point(1024 << i, "tcp"), Verdict.SAME, None, ("near",), Shift(1.0, 0.9, high, 0.95, 5, 6))
        for i, high in enumerate(highs)
    )
    comparison = Comparison(3, 7, (5, 6), 1.05, 0.95, (), changes, (), ())
    return Checked(7, comparison, 0)


def say(checked: Checked) -> None:
    cli_check._print(checked, 0.05)


def test_ok_says_how_large_a_slowdown_it_may_hide(capsys: pytest.CaptureFixture[str]) -> None:
    say(found_fine(1.2, 1.302, 1.04))
    assert capsys.readouterr().out == (
        "ok: 3 of 3 series: no slowdown beyond 5 % against run 3 seen; an interval reaches as far as +30.2 %: "
        "pingpong on tcp, 2 ranks, 2 KiB; the check is run 7\n"
    )


def test_ok_names_no_size_of_a_pattern_that_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    checked = found_fine(1.302)
    (change,) = checked.comparison.changes
    barrier = replace(change, point=make_point(0, "tcp", pattern="barrier"))
    say(replace(checked, comparison=replace(checked.comparison, changes=(barrier,))))
    assert "+30.2 %: barrier on tcp, 2 ranks; the check" in capsys.readouterr().out


def test_ok_says_no_more_where_every_interval_ends_within_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    say(found_fine(1.02, 1.05))
    assert "interval" not in capsys.readouterr().out
    assert cli_check._hidden_json(found_fine(1.02, 1.05).comparison) is None


def test_documents_say_how_large_a_slowdown_may_be_hidden(tmp_path: Path) -> None:
    comparison = found_fine(1.2, 1.302).comparison
    hidden = cli_check._hidden_json(comparison)
    assert hidden is not None
    assert (hidden["ratio"], hidden["point"]["bytes"]) == (1.302, 2048)
    for made, is_remarked in ((comparison, True), (found_fine(1.02).comparison, False)):
        write_junit(tmp_path / "j.xml", "title", cli_check._cases(made), 0)
        texts = [element.text or "" for element in ET.parse(tmp_path / "j.xml").getroot().iter("system-out")]
        assert ["to +30.2 %" in text for text in texts] == ([False, True] if is_remarked else [])


def test_each_series_is_a_test_whose_name_no_verdict_changes(tmp_path: Path) -> None:
    fine = found_fine(1.02, 1.03, 1.04).comparison
    slow = tuple(replace(change, verdict=Verdict.SLOWER) for change in fine.changes[1:])
    worse = replace(
        fine, changes=(fine.changes[0], *slow), only_base=(make_point(8, "shm", options=(("window", "4"),)),)
    )
    names = []
    for made in (fine, worse):
        write_junit(tmp_path / "j.xml", "title", cli_check._cases(made), 0, [("changed: kernel", "6.1 -> 6.6")])
        suite = ET.parse(tmp_path / "j.xml").getroot()
        names.append([(case.get("classname"), case.get("name")) for case in suite.iter("testcase")])
        assert [one.attrib for one in suite.iter("property")] == [{"name": "changed: kernel", "value": "6.1 -> 6.6"}]
        assert datetime.fromisoformat(suite.get("timestamp") or "").tzinfo is not None
    assert names[0] == [("pingpong on tcp", f"2 ranks, {size} KiB") for size in (1, 2, 4)]
    assert names[1] == [*names[0], ("pingpong on shm", "2 ranks, window=4, 8 B")]
    failures = list(suite.iter("failure"))
    for failure, size in zip(failures, (2, 4), strict=True):
        assert f"slower by 0.0 % at {size} KiB" in (failure.get("message") or "")
    assert all("from 2 KiB to 4 KiB" in (one.text or "") for one in failures)


def test_a_baseline_of_another_cpu_is_never_fine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Another host alone may be the same kind of machine, as in CI."""
    checked = found_fine(1.02)
    host, cpu = Difference("host", "there", "here"), Difference("CPU", "Xeon", "EPYC")
    of_host = replace(checked, comparison=replace(checked.comparison, differences=(host,)))
    assert cli_check.exit_code(of_host) == 0
    say(of_host)
    assert "\nok: 1 of 1 series" in (said := capsys.readouterr().out)
    assert "; run 3 was measured on another host, there;" in said
    of_cpu = replace(checked, comparison=replace(checked.comparison, differences=(host, cpu)))
    assert cli_check.exit_code(of_cpu) == 3
    say(of_cpu)
    said = capsys.readouterr().out
    assert "inconclusive: run 3 was measured on another CPU (Xeon, and this is EPYC)" in said
    assert "ok:" not in said
    assert [case.inconclusive is not None for case in cli_check._cases(of_cpu.comparison)] == [False, True]


def test_what_is_fine_is_counted_beside_what_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    checked = found_fine(1.02, 1.04)
    fine, other = checked.comparison.changes
    inconclusive = replace(other, verdict=Verdict.INCONCLUSIVE, reason="too few")
    say(replace(checked, comparison=replace(checked.comparison, changes=(fine, inconclusive))))
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("ok: 1 of 2 series: no slowdown beyond 5 % against run 3 seen; ")


def test_nothing_fine_is_not_called_ok(capsys: pytest.CaptureFixture[str]) -> None:
    checked = found_fine(1.02)
    (change,) = checked.comparison.changes
    inconclusive = replace(change, verdict=Verdict.INCONCLUSIVE, reason="too few")
    say(replace(checked, comparison=replace(checked.comparison, changes=(inconclusive,))))
    assert capsys.readouterr().out.splitlines()[-1].startswith("none of 1 series can be called ok against run 3; ")


# ---- the command ----------------------------------------------------------------------------------------------------


def test_command_on_an_unchanged_machine(tmp_path: Path) -> None:
    """Whatever this machine does meanwhile, nothing here takes a thousand times as long."""
    measured = call(
        tmp_path,
        "run",
        "pingpong",
        "-t",
        "shm",
        "--bytes",
        "8,64",
        "--time",
        "1s",
        "--launches",
        "5",
        "--label",
        "base",
    )
    assert measured.returncode == 0, measured.stderr
    done = call(
        tmp_path,
        "check",
        "--baseline",
        "base",
        "--max-slowdown",
        "100000%",
        "--patience",
        "5s",
        "--junit",
        "j.xml",
        "--json",
    )
    assert done.stderr.count("ranks on CPUs") == 1  # said once, however many launches
    assert done.stderr.count("until all are known to ") == 1
    document = json.loads(done.stdout)
    assert document["format"] == "hockney-check"
    assert document["exit_code"] == done.returncode
    assert done.returncode == (3 if "inconclusive" in document["counts"] else 0)
    suite = ET.parse(tmp_path / "j.xml").getroot()
    assert suite.get("failures") == "0"
    assert int(suite.get("tests") or 0) == len(list(suite.iter("testcase"))) == len(document["series"])


def test_command_prints_what_the_baseline_could_not_tell(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        add_run(opened, curve("shm", (8,)), failed={make_point(64): "rank 1\x07 hung"})
        opened._db.execute("UPDATE run SET plan = ?", (json.dumps(slowed.plan("shm", time_s=0.3).as_json()),))
    arguments = ("--baseline", "last", "--max-slowdown", "1000000%", "--patience", "1s", "--junit", "j.xml")
    done = call(tmp_path, "check", *arguments)
    assert done.returncode == 3, done.stderr
    assert (
        "inconclusive: pingpong on shm, 2 ranks: inconclusive at 64 B, because failed in run 1: rank 1" in done.stdout
    )
    messages = [one.get("message") or "" for one in ET.parse(tmp_path / "j.xml").getroot().iter("skipped")]
    assert any("rank 1\\x07 hung" in message for message in messages)


def test_command_refuses_what_can_be_no_baseline_in_a_sentence(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        add_run(opened, curve(sizes=(8,)), launches=1, label="single")
        add_run(opened, {}, failed={make_point(8): "rank 1 hung"}, label="failed")
        add_run(opened, curve(sizes=(8,)), label="old")  # its plan has nothing but a precision
    for label, said in (
        ("single", "run 1 can't be a baseline: it has 1 launch"),
        ("failed", "run 2 can't be a baseline: none of its points has samples"),
        ("old", "run 3 was stored by another version of hockney and cannot be measured again: take a new baseline"),
        ("odl", "unknown run 'odl': did you mean 'old'?"),
    ):
        done = call(tmp_path, "check", "--baseline", label)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("content", [None, b"", b"no database", b"SQLite format 3\0" + bytes(5000)])
def test_command_without_a_usable_results_file_has_measured_nothing(tmp_path: Path, content: bytes | None) -> None:
    """3 would look like noise to a script."""
    if content is not None:
        (tmp_path / "results.db").write_bytes(content)
    done = call(tmp_path, "check", "--baseline", "base")
    assert done.returncode == 2, done.stderr
    assert "results.db" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--baseline", "nope"], "unknown run 'nope'"), (["--baseline", "a", "--expect", "b"], "give one of them")],
)
def test_command_leaves_no_report_of_an_earlier_check(tmp_path: Path, arguments: list[str], said: str) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        add_run(opened, curve(sizes=(8,)), label="base")
    (tmp_path / "j.xml").write_text('<testsuite tests="1" errors="0"><testcase name="green"/></testsuite>')
    assert call(tmp_path, "check", *arguments, "--junit", "j.xml").returncode == 2
    suite = ET.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
    (error,) = suite.iter("error")
    assert said in (error.get("message") or "")


@pytest.mark.parametrize(
    "name", ["expect.toml", "sub/../expect.toml", "results.db", "other.db", "linked.db", "none.db"]
)
def test_command_writes_its_report_over_nothing_that_it_needs(tmp_path: Path, name: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "linked.db").symlink_to("results.db")
    files = [tmp_path / file for file in ("expect.toml", "results.db", "other.db")]
    for file in files:
        file.write_text("is kept")
    named = ["--store", name] if name in ("other.db", "none.db") else []
    done = call(tmp_path, "check", "--expect", "expect.toml", "--junit", name, *named)
    assert done.returncode == 2
    assert done.stderr == (
        f"hockney: --junit would write over {name}, which the check itself needs: name another file\n"
    )
    assert [file.read_text() for file in files] == ["is kept"] * 3
    assert not (tmp_path / "none.db").exists()


def test_a_check_that_is_killed_leaves_a_report_that_says_so(tmp_path: Path) -> None:
    def message() -> str:
        (error,) = ET.parse(tmp_path / "j.xml").getroot().iter("error")
        return error.get("message") or ""

    with reported(tmp_path / "j.xml"):
        assert "has not come to its end" in message()
    with contextlib.suppress(KeyboardInterrupt), reported(tmp_path / "j.xml"):
        raise KeyboardInterrupt
    assert "broke off" in message()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["x"],
            "say how many checks of each kind, one or more, and of which transports: scripts/check-rates 50 tcp",
        ),
        (
            ["0"],
            "say how many checks of each kind, one or more, and of which transports: scripts/check-rates 50 tcp",
        ),
        (["5", "tpc"], "unknown transport 'tpc': did you mean 'tcp'?"),
        (["5", "tcp", "udp"], "65,536 B is above the 65,491 B that udp sends in one message"),
    ],
)
def test_rates_of_what_there_is_not_are_refused_in_a_sentence(words: list[str], sentence: str) -> None:
    script = Path(__file__).parents[2] / "scripts/check-rates"
    done = subprocess.run([script, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == f"check-rates: {sentence}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say what to check against"),
        (["--baseline", "last", "--expect", "e.toml"], "give one of them, not both"),
        (["--baseline", "last", "last"], "it takes no RUN"),
        (["--expect", "e.toml", "--max-slowdown", "5%"], "--max-slowdown goes with --baseline"),
        (["--expect", "e.toml", "--patience", "5s"], "--patience goes with --baseline"),
        (["--baseline", "last", "--patience", "long"], "write for example 30s"),
        (["--baseline", "last", "--max-slowdown", "0"], "write for example 1%"),
        (["--baseline", "last", "--max-slowdown", ""], "write for example 1%"),
        (["--baseline", "last", "--max-slowdown", "5"], "write 5%, or 500%"),
        (["--baseline", "last", "--junit", "none/j.xml"], "there is no folder none; make it first"),
        (["--expect", "none.toml", "--junit", "none/j.xml"], "there is no folder none; make it first"),
        (["--expect", "none.toml"], "cannot read the file of expectations none.toml"),
    ],
)
def test_command_refuses_in_a_sentence(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = call(tmp_path, "check", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
