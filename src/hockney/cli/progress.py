"""What is seen while a run measures: figures as they come, and an honest time to go. All of it on standard error.

On a terminal one line is rewritten at most a few times a second, and only between measurements: on a small machine the
display would disturb what it shows. In a pipe there is a line for each job that comes up, its first figure, each
failure, and every half minute how far it is. Only that the time is over is said at once, whatever is being measured.
"""

from __future__ import annotations

import math
import sys
import threading
import time

from hockney.cli.curves import size_text, sizes_text
from hockney.cli.render import line_width, wrapped
from hockney.cli.streams import silence
from hockney.measure.estimate import FIRST_ROUNDS_MIN, enough_text, first_rounds_s
from hockney.measure.plan import Plan
from hockney.measure.sampler import Progress
from hockney.model import CurveKey, Launch, Measurement, Point, PointStatus, curve_of
from hockney.units import counted, format_duration_s, format_ns, percent_digits, printable

_REDRAW_S = 0.25
_LOG_S = 30.0  # how often a log hears that it goes on


def _places(launch: Launch) -> str:
    """The CPU of each rank; one that all are on is said once."""
    ranks = "rank" if launch.ranks == 1 else "ranks"
    if len(set(launch.cpus)) == 1:
        return f"{ranks} on CPU {launch.cpus[0]}"
    return f"{ranks} on CPUs {', '.join(map(str, launch.cpus[:8]))}{', …' if len(launch.cpus) > 8 else ''}"


class Display:
    """Implements run.Display on standard error; `quiet` shows nothing at all."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._drawn_s = 0.0 if self._terminal else time.monotonic()
        self._line = ""
        self._shown: set[str] = set()
        self._progress: Progress | None = None
        self._run_id: int | None = None
        self._stored = ""  # what to say of the run that is to go on
        self._plan: Plan | None = None
        self._again = ""
        self._jobs: set[str] = set()
        self._launch: int | None = None
        self._failed: dict[tuple[CurveKey, str | None], list[Point]] = {}  # and not yet said
        self._told: set[str] = set()
        self._unseen: set[Point] = set()  # points that the first round of this launch has still to measurement
        self._launches_left = 0  # after the one under way
        self._deadline_s = math.inf
        self._alarm: threading.Timer | None = None  # when the time is over, a measurement may be under way for long
        self._writing = threading.RLock()

    def begun(self, run_id: int, plan: Plan, *, goes_on: bool, several: bool, precise: int) -> None:
        """Says what comes; of more launches of the same run only how many points they are of."""
        points = counted(len(plan.points), "point")
        if run_id == self._run_id:
            if points != self._again:
                self.say(f"measured again in new launches: {points}")
            self._again = points
        else:
            if plan.launches > 1:
                least = "one whole round of each launch is made"
            else:
                least = "one whole round is made" if goes_on else "each is measured once"
            transports = len({point.transport for point in plan.points})
            left = f"{len(plan.points) - precise} of its {points}" if precise else points
            self.say(
                f"run {run_id}{' goes on' if goes_on else ''}: {left} on "
                f"{counted(transports, 'transport')}, until all are known to {percent_digits(plan.precision)} %; after "
                f"{format_duration_s(plan.time_s)} it ends, but {least}; "
                "Ctrl-C keeps what is measured"
            )
            if not goes_on or several:  # of a launch that goes on, how much is left isn't known
                self._say_whether_short(plan, goes_on=goes_on)
        self._run_id = run_id
        self._plan = plan
        self._launch = None
        self._launches_left = plan.launches - 1
        self._unseen = set(plan.points)
        self._deadline_s = math.inf if self._again else time.monotonic() + plan.time_s

    def _set_alarm(self) -> None:
        left_s = self._deadline_s - time.monotonic()
        if self._alarm is None and left_s < threading.TIMEOUT_MAX:
            self._alarm = threading.Timer(max(0.0, left_s), self._say_late)
            self._alarm.daemon = True
            self._alarm.start()

    def _say_whether_short(self, plan: Plan, *, goes_on: bool) -> None:
        """How long a whole measurement takes, roughly, where the time is less; a run that goes on has no other."""
        first_s = first_rounds_s(plan.points, plan.launches, plan.time_s)
        if plan.time_s >= FIRST_ROUNDS_MIN * first_s:
            return
        rounds = "first round takes" if plan.launches == 1 else f"first rounds of {plan.launches} launches take"
        made = " and will be made whole" if plan.time_s < first_s else ""
        advice = "" if goes_on else f", for example --time {enough_text(first_s)}"
        self.say(
            f"the time is {'too ' if made else ''}short: the {rounds} about {format_duration_s(first_s)}{made}; "
            f"intervals take several times that{advice}"
        )

    def launched(self, launch: Launch) -> None:
        """Says what really carries the bytes, and where the ranks are, once for all launches in which that is so."""
        self._say_failed()
        if self._plan is not None and self._launch not in (None, launch.index):
            self._unseen = set(self._plan.points)
            self._launches_left = max(0, self._launches_left - 1)
        self._launch = launch.index
        job = f"{launch.transport}: {launch.library}; {_places(launch)}"
        if job not in self._jobs:
            self._jobs.add(job)
            self.say(job)
        self._set_alarm()  # only now: what is precise already has been told

    def measured(self, measurement: Measurement) -> None:
        """The first figure of each transport is said at once; it is one measurement's, so it has no interval yet."""
        self._say_failed()
        point, size = measurement.point, size_text(measurement.point)
        times_ns = sorted(measurement.times_ns().tolist())
        seen = f"{point.pattern}{f' {size}' if size else ''} on {point.transport}"
        now = f"{seen}: {format_ns(times_ns[len(times_ns) // 2])}"
        if point.transport not in self._shown:
            self._shown.add(point.transport)
            self.say(f"  first look: {now}")
        self._unseen.discard(point)
        self._say_when_late()
        self._draw(now)

    def _say_when_late(self) -> None:
        if time.monotonic() > self._deadline_s:
            self._say_late()

    def _say_late(self) -> None:
        """First rounds that are made whole take longer than was asked for: said once, when the time is up."""
        with self._writing:
            count = len(self._unseen)
            if not (count or self._launches_left) or self._plan is None or self._deadline_s == math.inf:
                return
            self._deadline_s = math.inf
            left = []
            if count:
                points = f"{counted(count, 'point')} {'is' if count == 1 else 'are'}"
                left.append(f"{points} still to be measured in this round, which takes longer")
            if self._launches_left:
                more = counted(self._launches_left, "launch", "launches")
                left.append(f"{more} {'is' if self._launches_left == 1 else 'are'} to come")
            self.say(f"{format_duration_s(self._plan.time_s)} are over: {'; '.join(left)}")

    def progressed(self, progress: Progress) -> None:
        """Remembers how far it is for the next line."""
        self._progress = progress
        self._say_failed()
        self._draw("")

    def point_ended(self, point: Point, status: PointStatus, reason: str | None) -> None:
        """Failures are said with the next event, or at the end; the rest is in the figures."""
        self._unseen.discard(point)
        if status is PointStatus.FAILED:
            self._failed.setdefault((curve_of(point), reason), []).append(point)

    def reads(self, run_id: int, rounds: int) -> None:
        """Before `begun` of a run that goes on: what is stored of it is read, which may take a while."""
        self._stored = (
            f", and run {run_id} keeps its {counted(rounds, 'round')}: `hockney run --resume {run_id}` goes on with it"
        )

    def kept(self) -> str:
        """What a stop leaves: for who presses Ctrl-C."""
        if self._run_id is None:
            return f"nothing new was measured yet{self._stored}"
        return "whatever had been measured is stored (see: `hockney runs`)"

    def _say_failed(self) -> None:
        """What failed alike since the last event, sizes of one curve in one line, once for all launches."""
        failed, self._failed = self._failed, {}
        for (_, reason), points in failed.items():
            line = f"failed: {points[0].text(sizes_text(points))}: {reason}"
            if line not in self._told:
                self._told.add(line)
                self.say(line)

    def close(self) -> None:
        """Takes the rewritten line away, after what is still to be said."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._say_failed()
        with self._writing:
            self._deadline_s = math.inf  # an alarm that has just gone off says nothing any more
            self._clear()

    def _clear(self) -> None:
        if self._line:
            self._write(f"\r{' ' * len(self._line)}\r")
            self._line = ""

    def _draw(self, now: str) -> None:
        since_s = time.monotonic() - self._drawn_s
        if self._quiet or since_s < (_REDRAW_S if self._terminal else _LOG_S):
            return
        self._drawn_s = time.monotonic()
        done = ""
        if self._progress is not None:
            p = self._progress
            several = self._launch is not None and (self._launch > 0 or self._launches_left > 0)
            done = f"launch {(self._launch or 0) + 1}: " if several else ""
            done += f"round {p.round}, {p.finished} of {p.points} points ended, {_to_go(p)}"
        if not self._terminal:
            self.say(f"  {done or now}")
            return
        done += "  " if done else ""
        line = printable(f"{done}{now}", keep="")[: line_width() - 1]  # a line that wraps can't be rewritten
        with self._writing:
            self._write(f"\r{line.ljust(len(self._line))}")
            self._line = line

    def say(self, text: str) -> None:
        """A sentence; what is too long for a line goes on below, set in."""
        if self._quiet:
            return
        with self._writing:
            self._clear()
            self._write("".join(f"{line}\n" for line in wrapped(text, rest="    ")))

    def _write(self, text: str) -> None:
        """Somebody who has stopped looking (`2>&1 | head`) does not stop the measuring."""
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            self._quiet = True
            silence(sys.stderr.fileno())


def _to_go(progress: Progress) -> str:
    """How soon it may end, and when it does at the latest: nobody knows whether intervals will narrow as hoped."""
    least, most = (format_duration_s(one_s) for one_s in (progress.left_s, progress.left_most_s))
    return f"about {most} to go" if least == most else f"at least {least}, at most {most} to go"
