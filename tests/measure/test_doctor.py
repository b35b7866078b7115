"""Results of doctor: fake floors, a machine without a compiler, and this machine."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hockney.cli import execute
from hockney.machine.activity import Moment
from hockney.machine.facts import facts
from hockney.measure import doctor as checkup
from hockney.measure.doctor import Checkup, FloorSeen, PairFigures, check_up, summarize_floor
from hockney.model import MachineProbe
from hockney.stats.states import CONTENTION
from hockney.worker.answers import HelloAnswer, MeasureAnswer
from hockney.worker.build import build_worker
from hockney.worker.catalogue import Catalogue
from hockney.worker.errors import NoCompiler
from hockney.worker.launch import Job, launch
from hockney.worker.session import WorkerSession

Answers = tuple[HelloAnswer, MeasureAnswer]


@pytest.fixture(scope="module")
def answers() -> Answers:
    """What a real pair of ranks says of itself and of a measurement."""
    with WorkerSession(launch(Job(build_worker(), "shm", 2, oversubscribed=True))) as session:
        return session.hello(), session.measure("pingpong", bytes=8, batch=10)


def sessions(hello: HelloAnswer, answer: MeasureAnswer) -> type:
    """In place of WorkerSession: jobs that say this."""

    class Session(contextlib.AbstractContextManager[Any]):
        def __init__(self, *_: object) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

        def hello(self) -> HelloAnswer:
            return hello.model_copy(update={"floor_why": None})

        def measure(self, *_: object, **how: object) -> MeasureAnswer:
            return answer

    return Session


def probes(floors_ns: Sequence[float], pace_ns: float = 0.6) -> list[MachineProbe]:
    """Measurements with these floors before and after; their ranks have one pace."""
    return [MachineProbe((floor_ns, floor_ns), ((pace_ns, 0.6), (pace_ns, 0.6))) for floor_ns in floors_ns]


def test_one_steady_floor_is_one_state() -> None:
    assert summarize_floor(probes([27.0, 28.0, 27.0, 27.5])) == (FloorSeen("near", 27.25, 1.0),)


def test_two_floors_are_two_states_with_their_shares() -> None:
    changed = MachineProbe((27.0, 184.0), None)
    seen = summarize_floor([*probes([27.0] * 30), *probes([184.0] * 9), changed])
    assert [one.state for one in seen] == ["near", "far", "mixed"]
    assert [one.share for one in seen] == [30 / 40, 9 / 40, 1 / 40]
    assert seen[1].median_ns == 184.0


def test_contention_is_seen_without_load_and_steal() -> None:
    seen = summarize_floor([*probes([27.0] * 60), *probes([27.0] * 20, pace_ns=1.1)])
    assert seen == (FloorSeen("near", 27.0, 0.75), FloorSeen("near, contended", 27.0, 0.25))
    (warning,) = checkup.warnings_after(PairFigures(floor=seen))
    assert warning.cause == f"The CPUs were contended in 25% of the measurements: {CONTENTION}."


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (PairFigures(pinned=False), "were not found on their CPUs"),
        (
            PairFigures(floor=(FloorSeen("near", 27.0, 0.7), FloorSeen("far", 184.0, 0.3))),
            "changed during the check: 27 ns for 70% of the time and 184 ns for 30% of the time.",
        ),
        (PairFigures(floor=(FloorSeen("time-sliced", 40_000.0, 1.0),)), "take turns on a CPU"),
    ],
)
def test_results_of_measuring(measured: PairFigures, said: str) -> None:
    (warning,) = checkup.warnings_after(measured)
    assert said in warning.cause
    assert warning.remedy


def test_a_quiet_machine() -> None:
    quiet = PairFigures(floor=(FloorSeen("near", 27.0, 1.0),), pinned=True)
    assert list(checkup.warnings_after(quiet)) == []


def test_without_a_compiler_doctor_says_so_and_continues(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> Catalogue:
        raise NoCompiler("no C compiler found; install one with: apt-get install gcc")

    monkeypatch.setattr(checkup, "load", fail)
    monkeypatch.setattr(checkup, "observe", lambda *_: Moment(0.5))
    assert execute(["doctor"]) == 0
    output = capsys.readouterr().out
    assert "not measured: no C compiler found" in output
    assert "\nMissing\n" in output
    assert "apt-get install gcc" in output


def test_cause_and_remedy_of_a_missing_worker_are_separate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    missing = next(one for one in check_up(0.1).missing if one.name == "worker")
    assert missing.why.startswith(f"cannot keep builds in {tmp_path / 'file'}")
    assert missing.how == "let XDG_CACHE_HOME name a folder that only you can write"


@pytest.mark.parametrize(
    ("cpus", "said"),
    [
        (["0-1"], "1, CPUs 0-1"),
        (["0"], "1, CPU 0"),
        (["0-3,8-11", "4-7", ""], "3, CPUs 0-3,8-11 | CPUs 4-7 | memory only"),
        ([], "unknown"),
    ],
)
def test_nodes_are_counted_and_their_cpus_named(
    cpus: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = facts()
    known["topology"]["nodes"] = [{"cpus": one, "memory_bytes": None} for one in cpus]
    monkeypatch.setattr(checkup, "check_up", lambda: Checkup(known, Moment(0.5), PairFigures(), (), ()))
    assert execute(["doctor"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("NUMA nodes")]
    assert line.removeprefix("NUMA nodes").strip() == said


@pytest.mark.parametrize(("compiler", "said"), [("cc 12.2", "cc 12.2"), (None, "none")])
def test_the_compiler_is_named(
    compiler: str | None, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = facts()
    known["software"]["c_compiler"] = compiler
    monkeypatch.setattr(checkup, "check_up", lambda: Checkup(known, Moment(0.5), PairFigures(), (), ()))
    assert execute(["doctor"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("compiler")]
    assert line.removeprefix("compiler").strip() == said


def test_the_screen_without_facts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    measured = PairFigures(
        floor=(FloorSeen("far", 184.0, 0.75), FloorSeen("mixed", None, 0.25)),
        clock_ns=22.4,
        pinned=True,
        cpus=(0, 1),
        harness_ns=2.5,
    )
    seen = Checkup({}, Moment(0.5, steal=0.02, busy_cpus=0.1), measured, (), ())
    monkeypatch.setattr(checkup, "check_up", lambda: seen)
    assert execute(["doctor", "--no-facts"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Measured",
        "floor, far                184 ns in 75% of the measurements",
        "floor, mixed              between states in 25% of the measurements",
        "reading the clock         22.4 ns",
        "one empty repetition      2.50 ns",
        "pinning                   works (CPUs 0 and 1)",
        "stolen by a hypervisor    2.0% of the CPU time",
        "busy with other programs  0.1 CPUs",
        "",
        "Limits to precision",
        "Nothing was found.",
    ]
    monkeypatch.setattr(checkup, "check_up", lambda: replace(seen, measured=PairFigures(why="one CPU only")))
    assert execute(["doctor", "--no-facts"]) == 0
    assert "not measured: one CPU only" in capsys.readouterr().out


def test_this_machine() -> None:
    result = check_up(0.1)
    json.dumps(result.facts)
    measured = result.measured
    assert measured.clock_ns is not None
    assert measured.clock_ns > 0
    assert measured.harness_ns is not None
    assert measured.harness_ns > 0
    assert measured.why or measured.floor
    assert sum(seen.share for seen in measured.floor) == pytest.approx(1 if measured.floor else 0)


@pytest.mark.parametrize(
    ("places", "chosen", "pinned"),
    [
        ([(3, 1), (5, 1)], (3, 5), True),
        ([(3, 1), (4, 1)], (3, 5), False),  # on another CPU
        ([(3, 1), (5, 2)], (3, 5), False),  # on its CPU, but it may move
        ([(3, 2), (5, 2)], (), None),
    ],
)
def test_a_rank_is_pinned_if_it_is_on_its_cpu_and_may_use_no_other(
    places: list[tuple[int, int]],
    chosen: tuple[int, ...],
    pinned: bool | None,
    answers: Answers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranks = tuple(
        rank.model_copy(update={"cpu": cpu, "cpus_usable": usable})
        for rank, (cpu, usable) in zip(answers[0].ranks, places, strict=True)
    )
    monkeypatch.setattr(checkup, "WorkerSession", sessions(answers[0].model_copy(update={"ranks": ranks}), answers[1]))
    monkeypatch.setattr(checkup, "choose_cpus", lambda _: chosen)
    monkeypatch.setattr(checkup, "observe", lambda *_: Moment(0.5))
    assert check_up(0.0).measured.pinned is pinned


def test_doctor_as_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["doctor", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "hockney-doctor"
    assert document["measured"]["clock_ns"] > 0


@pytest.mark.parametrize(("duration_s", "times"), [(0.0, 1), (5.0, 5), (5.5, 6)])
def test_the_floor_is_watched_for_the_whole_duration_and_once_at_least(
    duration_s: float, times: int, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each read of the clock takes a second."""
    floors_ns: list[float] = []

    class Watched(sessions(*answers)):  # type: ignore[misc]
        def measure(self, *_: object, batch: int, **how: object) -> MeasureAnswer:
            if batch != 100:
                return answers[1]
            floors_ns.append(100.0 + len(floors_ns))
            return answers[1].model_copy(update={"floor_ns": (floors_ns[-1], floors_ns[-1])})

    monkeypatch.setattr(checkup, "WorkerSession", Watched)
    monkeypatch.setattr(checkup, "observe", lambda *_: Moment(0.5))
    monkeypatch.setattr(checkup, "time", SimpleNamespace(monotonic=lambda: float(len(floors_ns)), sleep=lambda _: None))
    figures = check_up(duration_s).measured
    assert len(floors_ns) == times
    assert (figures.floor_low_ns, figures.floor_high_ns) == (100.0, 99.0 + times)
