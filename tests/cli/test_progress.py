"""Progress on standard error while a run measures."""

from __future__ import annotations

import contextlib
import math
import os
import pty
import re
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import make_launch, make_placement
from tests.cli.support import PINGPONG, Cli, command_line, environment, make_measurement

from hockney.cli import execute
from hockney.cli.progress import ProgressDisplay, progress_text
from hockney.measure.estimate import first_rounds_s
from hockney.measure.plan import Plan
from hockney.measure.recorder import Recorder
from hockney.measure.sampler import Progress
from hockney.model import Launch, PatternTraits, Point, PointStatus
from hockney.results.store import Store
from hockney.suites import Limits

HOSTS = ("n1:1", "n2:1")
POINTS = tuple(replace(PINGPONG, bytes=size) for size in (8, 64, 1024))


def sentences(text: str) -> list[str]:
    """Without the breaks of lines that are too long."""
    return text.replace("\n    ", " ").splitlines()


def begun(capsys: pytest.CaptureFixture[str], plan: Plan, *, goes_on: bool = False, precise: int = 0) -> list[str]:
    display = ProgressDisplay()
    display.begun(3, plan, goes_on=goes_on, precise=precise)
    display.close()
    return sentences(capsys.readouterr().err)


def test_begin_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    plan = Plan("test", POINTS, limits=Limits(time_s=60, precision=0.005))
    rest = "on 1 transport, until all are known to 0.5 % or for 1 min 00 s, but at least one round"
    assert begun(capsys, plan) == [f"run 3: 3 points {rest}; Ctrl-C keeps all measurements"]
    assert begun(capsys, plan, goes_on=True, precise=1)[0].startswith(f"run 3 resumed: 2 of its 3 points {rest};")
    several = begun(capsys, plan.within(launches=2))
    assert "at least one round of each of 2 launches;" in several[0]


@pytest.mark.parametrize(("launches", "goes_on", "lines"), [(1, False, 2), (2, False, 2), (1, True, 1)])
def test_a_short_time_is_mentioned_before_anything_is_measured(
    launches: int, goes_on: bool, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    said = begun(capsys, Plan("test", POINTS, limits=Limits(time_s=0.001, launches=launches)), goes_on=goes_on)
    assert len(said) == lines
    assert goes_on or re.fullmatch(
        r"The time is too short for confidence intervals: one round takes about .*\. Try: --time \ds", said[1]
    )


def test_a_run_without_enough_time(cli: Cli) -> None:
    """One round is made; the user learns why there are no intervals, and how to get them."""
    ended = cli("run", "pingpong", "-t", "shm", "--bytes", "8,64,1K", "--time", "1ms")
    shown = ended.stdout.replace("\n  ", " ")
    assert shown.count("3 of 3 figures have too few measurements in one machine state for an interval (‡).") == 1
    advice = "Continue: `hockney run --resume 1`"
    assert advice in shown
    said = " ".join(ended.stderr.split())
    assert f"; time is up; nothing is known to 1 % yet. {advice}." in said
    again = sentences(cli("run", "--resume").stderr)
    assert again[0].startswith("run 1 resumed: 3 points on 1 transport, ")
    assert not any("--time" in line for line in again)


def test_a_first_round_that_is_longer_than_the_time_says_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    display = ProgressDisplay()
    display.begun(1, Plan("test", POINTS, limits=Limits(time_s=0.0001)), goes_on=False, precise=0)
    for point in POINTS:
        display.measured(make_measurement(point, 1, 0, 50.0, 27.0))
    said = [line for line in sentences(capsys.readouterr().err) if "the time is up" in line]
    assert said == ["  the time is up, but the first round continues: 2 points to go"]


def test_points_that_have_failed_are_not_to_go(capsys: pytest.CaptureFixture[str]) -> None:
    display = ProgressDisplay()
    display.begun(
        1,
        Plan("test", POINTS, placement=make_placement(HOSTS), limits=Limits(time_s=0.0001, launches=2)),
        goes_on=False,
        precise=0,
    )
    display.point_ended(POINTS[0], PointStatus.FAILED, "it is gone")
    display.measured(make_measurement(POINTS[1], 1, 0, 50.0, 27.0))
    said = [line for line in sentences(capsys.readouterr().err) if "the time is up" in line]
    left = "1 point to go in this one, without long messages where they are slow"
    assert said == [f"  the time is up, but each launch makes one round: {left}"]


def test_time_to_go() -> None:
    now = Progress(round=80, points=2, finished=1, elapsed_s=0.5, left_s=0.25, left_most_s=3)
    assert progress_text(now) == "round 80, 1 of 2 points done, at least 250 ms, at most 3 s to go"
    assert progress_text(replace(now, left_s=3)) == "round 80, 1 of 2 points done, about 3 s to go"
    assert progress_text(replace(now, left_s=0)) == "round 80, 1 of 2 points done, at most 3 s to go"


def test_launches_that_may_be_added_are_to_go(tmp_path: Path) -> None:
    """The last planned launch is over, and others are made until the end of the time."""
    said = list[Progress]()
    display = ProgressDisplay(quiet=True)
    display.progressed = said.append  # type: ignore[method-assign, assignment]
    done = Progress(round=9, points=2, finished=2, elapsed_s=5, left_s=0, left_most_s=0)
    with Store.open(tmp_path / "r.db") as store:
        recorder = Recorder(store, 1, display)
        recorder.round_done([], done)
        recorder.end_s = time.monotonic() + 1000
        recorder.round_done([], done)
    assert said[0] == done
    assert 900 < said[1].left_most_s <= 1000


def test_estimate_of_the_first_round() -> None:
    def first_s(*points: Point, launches: int = 1) -> float:
        return first_rounds_s(points, launches)

    short, long = Point("shm", "oneway", 2, 8), Point("shm", "oneway", 2, 1 << 30)
    windowed = replace(long, options=(("window", "16"),))
    assert first_s(short) < 0.1 < 5 < first_s(long) < 20 < first_s(windowed) < 100
    assert first_s(short, launches=1000) > 10
    assert first_s(short) < first_s(replace(short, transport="mpi@openmpi-4.1.4"))
    between = first_rounds_s([replace(windowed, bytes=1 << 20)], 1, on_hosts=True)
    assert 0.5 < between < 0.7  # 16 MiB take 0.13 s at 1 Gbit/s
    within = replace(windowed, transport="tcp/2")
    assert first_rounds_s([within], 1, on_hosts=True) == first_s(within)


def test_a_time_that_is_too_short_for_a_network_says_of_which(capsys: pytest.CaptureFixture[str]) -> None:
    stream = Point("tcp", "oneway", 2, 1 << 20, (("window", "16"),))
    plan = Plan("test", (stream,), limits=Limits(time_s=2))
    assert len(begun(capsys, plan)) == 1
    assert (
        "one round takes about 572 ms at 1 Gbit/s. Try: --time 6s"
        in begun(capsys, replace(plan, placement=make_placement(HOSTS)))[-1]
    )


def test_alike_failures_are_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    display = ProgressDisplay()
    for _ in range(2):  # launches
        for point in POINTS:
            display.point_ended(point, PointStatus.FAILED, "no way there")
        display.point_ended(replace(PINGPONG, transport="tcp"), PointStatus.FAILED, "no way there")
        display.close()
    first = "pingpong of 8 B, 64 B, 1 KiB on shm, 2 ranks"
    assert " ".join(capsys.readouterr().err.split()) == (
        f"failed: {first}: no way there failed: pingpong of 8 B on tcp, 2 ranks: as {first}, see above"
    )


def test_a_point_that_fails_in_each_launch_is_printed_once_whatever_its_numbers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    display = ProgressDisplay()
    for delay in ("1.23", "1.31"):  # launches
        display.point_ended(PINGPONG, PointStatus.FAILED, f"a delay of {delay} us is too short")
        display.close()
    name = "pingpong of 8 B on shm, 2 ranks"
    assert sentences(capsys.readouterr().err) == [f"failed: {name}: a delay of 1.23 us is too short"]


def test_the_first_figure_of_a_transport(capsys: pytest.CaptureFixture[str]) -> None:
    display = ProgressDisplay()
    barrier = Point("shm", "barrier", 2, 0, traits=PatternTraits(sized=False))
    for point in (barrier, *POINTS, replace(PINGPONG, transport="tcp")):
        display.measured(make_measurement(point, 1, 0, 50.0, 27.0))
    assert capsys.readouterr().err.splitlines() == [
        "  first figure: barrier on shm: 50.0 ns",
        "  first figure: pingpong 8 B on tcp: 50.0 ns",
    ]


@pytest.mark.parametrize(("cpus", "said"), [((3, 3), "CPU 3"), ((0, 1), "CPUs 0-1"), ((4, 0), "CPUs 0,4")])
def test_cpus_of_the_ranks(cpus: tuple[int, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    ProgressDisplay().launched(Launch("null", "nothing", 2, 0.0, (), cpus, ("h", "h"), False, 20.0))
    assert capsys.readouterr().err == f"null: nothing; ranks on {said}\n"


def test_a_terminal_has_one_line_that_is_removed(tmp_path: Path) -> None:
    words = ["run", "pingpong", "-t", "shm", "--bytes", "8,64", "--launches", "1", "--precision=0.0001%", "--time=30s"]
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command_line(*words),
        env=environment(tmp_path, TERM="xterm", NO_COLOR="1"),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ) as run:
        os.close(theirs)
        seen, is_stopped = b"", False
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(ours, 4096):
                seen += part
                if b"to go" in seen and not is_stopped:
                    run.send_signal(signal.SIGINT)
                    is_stopped = True
    os.close(ours)
    assert run.returncode == 3
    said = seen.decode()
    assert re.search(r"\rround \d+, 0 of 2 points done, (at least .*, at most|about) \d+ m?(s|in .*) to go", said)
    left = []
    for line in said.split("\n"):
        shown = ""
        for drawn in line.split("\r"):
            shown = drawn + shown[len(drawn) :]
        left.append(shown.rstrip())
    assert "pingpong on shm, 2 ranks" in left
    assert not any("points done" in line or "to go" in line for line in left)


def test_a_prediction_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("hockney.cli.progress._LOG_S", 0.0)
    monkeypatch.setattr(
        "hockney.cli.progress._LONG_S", math.inf
    )  # a busy machine would say how long the next step takes
    assert execute(["predict", "pingpong", "--machine", "t3d", "--bytes", "8,64", "--sensitivity", "--tolerance"]) == 0
    lines = [line.strip().partition(", about ")[0] for line in capsys.readouterr().err.splitlines()]
    assert lines[:3] == [f"times: {done} of 2 points done" for done in range(3)]
    assert {line.partition(":")[0] for line in lines} == {"times", "sensitivity", "tolerance"}
    assert lines[-1] == "tolerance: 2 of 2 points done"
    (last,) = (line for line in lines if line.startswith("sensitivity") and re.search(r" (\d+) of \1 points", line))
    assert int(last.split()[1]) % 2 == 0


@pytest.mark.parametrize(("launches", "said"), [(2, ["launch 1: ", "launch 2: "]), (1, [""])])
def test_a_log_has_lines(
    launches: int, said: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hockney.cli.progress._LOG_S", 0.0)
    display = ProgressDisplay()
    plan = Plan("test", (PINGPONG,), limits=Limits(launches=launches))
    display.begun(1, plan, goes_on=False, precise=0)
    for index in range(launches):
        display.launched(make_launch(index=index))
        display.progressed(Progress(round=3, points=2, finished=1, elapsed_s=1.0, left_s=4.0, left_most_s=4.0))
    lines = [line for line in capsys.readouterr().err.splitlines() if "points done" in line]
    assert lines == [f"  {one}round 3, 1 of 2 points done, about 4 s to go" for one in said]


def test_a_check_says_that_it_measures_again(capsys: pytest.CaptureFixture[str]) -> None:
    display, plan = ProgressDisplay(), Plan("test", POINTS, limits=Limits(time_s=60, launches=6))
    display.begun(3, plan, goes_on=False, precise=0)
    display.begun(3, plan.within(launches=12), goes_on=True, precise=0)
    said = sentences(capsys.readouterr().err)
    assert said[1:] == [
        "run 3 continues, as some series are inconclusive: 3 points in 12 more launches, for 1 min 00 s or longer"
    ]


def test_a_long_prediction_says_how_long_after_its_first_point(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    tick = ProgressDisplay().simulating("times", 21)
    now_s = 2.0
    tick()
    now_s = 40.0
    tick()
    assert sentences(capsys.readouterr().err) == [
        "  Next: times, about 40 s.",
        "  times: 2 of 21 points done, about 6 min 20 s to go",
    ]
