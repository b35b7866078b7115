"""What is said on standard error while a run measures."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import make_launch
from tests.cli.support import FACTS, PINGPONG, Cli, command_line, environment, make_measurement

from hockney.cli import progress
from hockney.cli.curves import why_no_intervals
from hockney.cli.progress import Display, _to_go
from hockney.measure.estimate import first_rounds_s
from hockney.measure.plan import Plan
from hockney.measure.sampler import Progress
from hockney.model import Launch, Point, PointStatus, RunInfo, RunStatus
from hockney.results.runs import Run
from hockney.results.store import Store


def sentences(text: str) -> list[str]:
    """Without the breaks of lines that are too long."""
    return text.replace("\n    ", " ").splitlines()


def late_text(points: str) -> str:
    return f"1 ms are over: {points} still to be measured in this round, which takes longer"


def test_too_short_a_time_is_said_before_anything_is_measured(cli: Cli) -> None:
    short, long = (
        sentences(cli("run", "pingpong", "-t", "shm", "--bytes", "0:64", "--time", time_).stderr)
        for time_ in ("100ms", "3s")
    )
    assert "after 100 ms it ends" in short[0]
    assert short[1].startswith("the time is too short: the first round takes ")
    assert short[1].endswith(", for example --time 2s")
    assert not any("short: " in line for line in long)


def test_a_first_round_that_takes_longer_than_asked_is_told_and_so_is_why_nothing_has_an_interval(cli: Cli) -> None:
    ended = cli("run", "pingpong", "-t", "shm", "--bytes", "8,64,1K", "--time", "1ms")
    said = sentences(ended.stderr)
    (late,) = (line for line in said if "are over" in line)
    assert re.fullmatch(late_text("[23] points are"), late), "said at the first measurement at the latest"
    shown = ended.stdout.replace("\n  ", " ")
    assert shown.count("Each point was measured once: too few measurements for an interval.") == 1
    assert "Fix: `hockney run --resume 1`" in shown


def test_of_a_run_that_goes_on_only_what_is_left_is_said_to_be_measured_and_as_a_round(
    cli: Cli, tmp_path: Path
) -> None:
    cli("run", "pingpong", "-t", "shm", "--bytes", "8,64,1K", "--time", "1ms")
    again = sentences(cli("run", "--resume").stderr)
    assert again[0].startswith("run 1 goes on: 3 points on 1 transport, ")
    assert "after 1 ms it ends, but one whole round is made" in again[0]
    assert any(re.fullmatch(late_text("[23] points are"), line) for line in again)
    assert not any("--time" in line or "measured once" in line for line in again)
    with Store.open(tmp_path / "results.db") as store:
        done, *_ = store.points(1)
        steady = [  # whatever the machine did at the measurement itself
            replace(measurement, round=measurement.round + 10 * n, floor_ns=(40.0, 40.0), pace_ns=None, solo_ns=None)
            for measurement in store.measurements(done)
            for n in range(1, 40)
        ]
        store.write_round(1, steady)
        store._db.execute("UPDATE run SET plan = json_set(plan, '$.precision', 0.9)")
    precise = sentences(cli("run", "--resume").stderr)
    assert precise[0].startswith("run 1 goes on: 3 points on 1 transport, "), "none was precise so far"
    assert any(re.fullmatch(late_text("(2 points are|1 point is)"), line) for line in precise)
    again = sentences(cli("run", "--resume").stderr)
    assert again[0].startswith("run 1 goes on: 2 of its 3 points on 1 transport, ")


def test_of_several_launches_a_round_of_each_is_said_to_be_made_and_a_short_time_to_be_short(
    cli: Cli, tmp_path: Path
) -> None:
    first = sentences(cli("run", "barrier", "-t", "shm", "--launches", "2", "--time", "1ms").stderr)
    with Store.open(tmp_path / "results.db") as store:  # as if four launches had been asked for
        store._db.execute("UPDATE run SET plan = json_set(plan, '$.launches', 4)")
    again = sentences(cli("run", "--resume").stderr)
    assert again[0].startswith("run 1 goes on: ")
    for said in (first, again):
        assert "after 1 ms it ends, but one whole round of each launch is made" in said[0]
        assert said[1].startswith("the time is too short: the first rounds of 2 launches take ")
    assert first[1].endswith("; intervals take several times that, for example --time 2s")
    assert again[1].endswith("; intervals take several times that")
    assert not any("--time" in line for line in again)


def test_of_the_last_of_several_launches_a_short_time_is_said_to_be_short(cli: Cli, tmp_path: Path) -> None:
    cli("run", "barrier", "-t", "shm", "--launches", "2", "--time", "1ms")
    with Store.open(tmp_path / "results.db") as store:  # as if a third launch had been asked for
        store._db.execute("UPDATE run SET plan = json_set(plan, '$.launches', 3)")
    again = sentences(cli("run", "--resume").stderr)
    assert "after 1 ms it ends, but one whole round is made" in again[0]
    assert again[1].startswith("the time is too short: the first round takes ")
    assert again[1].endswith("; intervals take several times that")


@pytest.mark.parametrize(
    ("measured", "said_last"),
    [
        (1, "1 point is still to be measured in this round, which takes longer; 2 launches are to come"),
        (2, "2 launches are to come"),
    ],
)
def test_a_measurement_that_is_under_way_when_the_time_is_over_does_not_hide_it(measured: int, said_last: str) -> None:
    display = Display()
    said: list[str] = []
    told = threading.Event()
    display.say = lambda text: (said.append(text), told.set() if "over" in text else None)  # type: ignore[method-assign, assignment, func-returns-value]
    points = (Point("shm", "pingpong", 2, 8), Point("shm", "pingpong", 2, 16))
    plan = Plan("test", points, time_s=0.01, launches=3)
    display.begun(1, plan, goes_on=True, several=False, precise=1)
    for point in points[:measured]:
        display.point_ended(point, PointStatus.PRECISE, None)
    display.launched(make_launch())
    assert told.wait(10), "nothing comes back from a measurement, and nothing is said"
    display.close()
    assert said[-1] == f"10 ms are over: {said_last}"


def test_an_alarm_that_goes_off_as_the_display_is_closed_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    display = Display()
    display.begun(1, Plan("test", (PINGPONG,)), goes_on=False, several=False, precise=0)
    display.close()
    capsys.readouterr()
    display._say_late()  # as its thread does, which waited for the last line to be written
    assert capsys.readouterr().err == ""


def test_when_a_run_may_end_and_when_it_does_are_both_said() -> None:
    progress = Progress(round=80, points=1, finished=0, elapsed_s=0.5, left_s=0.25, left_most_s=3)
    assert _to_go(progress) == "at least 250 ms, at most 3 s to go"
    assert _to_go(replace(progress, left_s=3)) == "about 3 s to go"


def test_long_messages_and_ft_are_known_to_take_long() -> None:
    def first_s(*points: Point, launches: int = 1, time_s: float = 60) -> float:
        return first_rounds_s(points, launches, time_s)

    def ft(class_: str) -> Point:
        return Point("shm", "ft", 2, 0, (("class", class_),))

    assert first_s(ft("S")) < first_s(ft("W")) < first_s(ft("A"))
    assert first_s(ft("A")) > 1
    assert first_s(ft("W"), time_s=1) < first_s(ft("W")), "where the time is short fewer samples are taken"
    short, long = Point("shm", "oneway", 2, 8), Point("shm", "oneway", 2, 1 << 30)
    windowed = replace(long, options=(("window", "16"),))
    assert first_s(short) < 0.1 < 5 < first_s(long) < first_s(windowed)
    assert first_s(short, launches=1000) > 10
    assert first_s(short) < first_s(replace(short, transport="mpi@openmpi-4.1.4"))


def test_a_time_that_is_too_short_for_a_long_message_is_said_and_one_that_would_do(cli: Cli) -> None:
    ended = cli("run", "pingpong", "-t", "shm", "--bytes", "32M", "--time", "50ms", "--launches", "1")
    said = sentences(ended.stderr)
    assert said[1].startswith("the time is too short: the first round takes about ")
    assert " or more" not in said[1]
    shown = ended.stdout.replace("\n  ", " ")
    assert re.search(r"or a new run with --time [3-9]s\.", shown)


def test_a_label_goes_to_the_newest_run_and_that_is_said(cli: Cli, tmp_path: Path) -> None:
    arguments = ("run", "barrier", "-t", "shm", "--time", "10ms", "-l", "monday")
    first, second = (sentences(cli(*arguments).stderr) for _ in range(2))
    assert not any("monday" in line for line in first)
    assert second[0] == "run 1 has the label 'monday' too: it now names the new run, and monday~1 the old one"
    with Store.open(tmp_path / "results.db", readonly=True) as store:
        assert [store.find_run(name) for name in ("monday", "monday~1")] == [2, 1]


def test_what_fails_alike_is_said_once_with_its_sizes_and_that_nothing_was_measured(cli: Cli, tmp_path: Path) -> None:
    shell = tmp_path / "no-way-there"
    shell.write_text("#!/bin/sh\necho 'no way there' >&2\nexit 255\n")
    shell.chmod(0o755)
    words = ("run", "pingpong", "-t", "tcp", "--hosts", "one,other", "--bytes", "8,64,1K")
    ended = cli(*words, "--launches", "2", HOCKNEY_RSH=str(shell))
    assert ended.returncode == 3
    (failed,) = [line for line in sentences(ended.stderr) if line.startswith("failed: ")]
    assert failed.startswith("failed: pingpong of 8 B, 64 B, 1 KiB on tcp, 2 ranks: ")
    assert ended.stderr.splitlines()[-1].endswith("; 3 points failed: `hockney show 1` shows why; nothing was measured")


def test_a_barrier_has_no_size_to_be_said(cli: Cli) -> None:
    ended = cli("run", "barrier", "-t", "shm", "--time", "10ms", "--launches", "1")
    assert any(line.startswith("  first look: barrier on shm: ") for line in sentences(ended.stderr))
    assert "0 B" not in ended.stdout


@pytest.mark.parametrize(
    ("ranks", "cpus", "said"),
    [
        (1, (0,), "null: nothing; rank on CPU 0"),
        (2, (3, 3), "null: nothing; ranks on CPU 3"),
        (2, (0, 1), "null: nothing; ranks on CPUs 0, 1"),
        (9, tuple(range(9)), "null: nothing; ranks on CPUs 0, 1, 2, 3, 4, 5, 6, 7, …"),
    ],
)
def test_where_the_ranks_are(ranks: int, cpus: tuple[int, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Display().launched(Launch("null", "nothing", ranks, 0.0, (), cpus, ("h",) * ranks, False, 20.0))
    assert capsys.readouterr().err == f"{said}\n"


def test_the_precision_that_was_asked_for_is_said(cli: Cli) -> None:
    ended = cli("run", "barrier", "-t", "shm", "--time", "10ms", "--precision", "0.5%")
    assert "1 point on 1 transport, until all are known to 0.5 %; after 10 ms" in sentences(ended.stderr)[0]


@pytest.mark.parametrize(
    ("status", "advice"),
    [(RunStatus.INTERRUPTED, ""), (RunStatus.DONE, ", or a new run with --time 5m")],
)
def test_of_a_run_that_was_stopped_early_is_said_what_was_not_reached(
    tmp_path: Path, status: RunStatus, advice: str
) -> None:
    points = [replace(PINGPONG, bytes=size) for size in (8, 64, 1024)]
    with Store.open(tmp_path / "r.db") as store:
        info = RunInfo("hockney run mine", "mine", None, 1_760_000_000.0, 2, "0.1.0", FACTS, {"time_s": 30.0})
        number = store.create_run(info, points)
        launch = Launch("shm", "shared memory", 2, 1_760_000_000.0, ("worker",), (0, 1), ("h", "h"), False, 20.0)
        store.write_round(number, [make_measurement(points[0], store.add_launch(number, launch), 0, 50.0, 30.0)])
        store.set_status(number, points[0], PointStatus.STOPPED)
        store.finish_run(number, status)
        assert why_no_intervals(Run(store, number)) == (
            "2 of 3 points were not reached. Each point was measured once: too few measurements for an interval. "
            f"Fix: `hockney run --resume 1`{advice}."
        )


def test_a_terminal_sees_how_far_it_is_and_is_left_clean(tmp_path: Path) -> None:
    words = ["run", "pingpong", "-t", "shm", "--bytes", "8,64", "--launches", "1", "--precision=0.0001%", "--time=2s"]
    code = f"import pty, sys; sys.exit(pty.spawn({command_line(*words)!r}) >> 8)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(tmp_path, TERM="xterm", NO_COLOR="1"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    said = done.stdout.decode()
    assert re.search(r"\rround \d+, 0 of 2 points ended, (at least .*, at most|about) \d+ m?s to go", said)
    left = []
    for line in said.split("\n"):
        shown = ""
        for drawn in line.split("\r"):
            shown = drawn + shown[len(drawn) :]
        left.append(shown.rstrip())
    assert "pingpong on shm, 2 ranks" in left
    assert not any("points ended" in line or "to go" in line for line in left)


@pytest.mark.parametrize(("launches", "said"), [(2, ["launch 1: ", "launch 2: "]), (1, [""])])
def test_a_log_hears_how_far_it_is(
    launches: int, said: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_LOG_S", 0.0)
    display = Display()
    plan = Plan("test", (PINGPONG,), launches=launches)
    display.begun(1, plan, goes_on=False, several=launches > 1, precise=0)
    for index in range(launches):
        display.launched(make_launch(index=index))
        display.progressed(Progress(round=3, points=2, finished=1, elapsed_s=1.0, left_s=4.0, left_most_s=4.0))
    lines = [line for line in capsys.readouterr().err.splitlines() if "points ended" in line]
    assert lines == [f"  {one}round 3, 1 of 2 points ended, about 4 s to go" for one in said]
