"""What is printed on standard error while a run measures: the first figures, failures, and the time to go.

On a terminal one line is rewritten at most four times a second, and only between measurements: on a small machine the
display would disturb what it shows. In a pipe there is a line per job, first figure and failure, and one every half
minute. That the time is up is printed at once, whatever is being measured.
"""

from __future__ import annotations

import math
import sys
import threading
import time

from hockney.cli.curves import size_text, sizes_text
from hockney.cli.render import line_width, wrapped
from hockney.cli.rerun import typed
from hockney.cli.streams import silence
from hockney.measure.estimate import FIRST_ROUNDS_MIN, enough_text, first_rounds_s
from hockney.measure.interfaces import Progress
from hockney.measure.plan import Plan
from hockney.model import CurveKey, Launch, Measurement, Point, PointStatus, curve_of
from hockney.units import counted, format_duration_s, format_ns, percent_digits, printable

_REDRAW_S = 0.25
_LOG_S = 30.0
_CPUS_MAX = 8


class Display:
    """Implements run.Display on standard error; `quiet` prints nothing."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._drawn_s = 0.0 if self._terminal else time.monotonic()
        self._line = ""  # on a terminal, the one that is rewritten
        self._seen: set[str] = set()  # transports with a figure, jobs and failures that were printed
        self._progress: Progress | None = None
        self._run_id: int | None = None
        self._stored = ""  # of a run that is resumed
        self._plan: Plan | None = None
        self._is_again = False
        self._launch: int | None = None
        self._launches_left = 0  # after the present one
        self._failed: dict[tuple[CurveKey, str | None], list[Point]] = {}  # not printed yet
        self._unmeasured: set[Point] = set()  # in the first round of this launch
        self._deadline_s = math.inf
        self._alarm: threading.Timer | None = None  # goes off during a long measurement
        self._writing = threading.RLock()

    def begun(self, run_id: int, plan: Plan, *, goes_on: bool, several: bool, precise: int) -> None:
        """Print what comes; of more launches of the same run only how many points they have."""
        points = counted(len(plan.points), "point")
        self._is_again = run_id == self._run_id
        if self._is_again:
            self._say_once(f"measured again in new launches: {points}")
        else:
            transports = counted(len({point.transport for point in plan.points}), "transport")
            left = f"{len(plan.points) - precise} of its {points}" if precise else points
            least = "one round of each launch" if plan.launches > 1 else "one round"
            self.say(
                f"run {run_id}{' resumed' if goes_on else ''}: {left} on {transports}, until all are known to "
                f"{percent_digits(plan.precision)} % or for {format_duration_s(plan.time_s)}, but at least {least}; "
                "Ctrl-C keeps what is measured"
            )
            if not goes_on or several:  # how much is left of a launch that is resumed is not known
                self._say_if_short(plan, goes_on=goes_on)
        self._run_id = run_id
        self._plan = plan
        self._launch = None
        self._launches_left = plan.launches - 1
        self._unmeasured = set(plan.points)
        self._deadline_s = math.inf if self._is_again else time.monotonic() + plan.time_s

    def _say_if_short(self, plan: Plan, *, goes_on: bool) -> None:
        """Warn if the time is too short for intervals; a resumed run has no other --time."""
        first_s = first_rounds_s(plan.points, plan.launches, plan.time_s)
        if plan.time_s >= FIRST_ROUNDS_MIN * first_s:
            return
        rounds = "the first round takes" if plan.launches == 1 else f"the first rounds of {plan.launches} launches take"
        advice = "" if goes_on else f", for example --time {enough_text(first_s)}"
        self.say(
            f"the time is too short for confidence intervals: {rounds} about {format_duration_s(first_s)}; "
            f"intervals take several times that{advice}"
        )

    def launched(self, launch: Launch) -> None:
        """Print the library and the CPUs of the ranks, once for all launches in which they are the same."""
        self._say_failed()
        if self._plan is not None and self._launch not in (None, launch.index):
            self._unmeasured = set(self._plan.points)
            self._launches_left = max(0, self._launches_left - 1)
        self._launch = launch.index
        self._say_once(f"{launch.transport}: {launch.library}; {_cpus_text(launch)}")
        if self._alarm is None and self._deadline_s - time.monotonic() < threading.TIMEOUT_MAX:
            self._alarm = threading.Timer(max(0.0, self._deadline_s - time.monotonic()), self.say_late)
            self._alarm.daemon = True
            self._alarm.start()

    def measured(self, measurement: Measurement) -> None:
        """Print the first figure of each transport; it has no interval yet."""
        self._say_failed()
        point = measurement.point
        times_ns = sorted(measurement.times_ns().tolist())
        name = " ".join(filter(None, (point.pattern, size_text(point), "on", point.transport)))
        text = f"{name}: {format_ns(times_ns[len(times_ns) // 2])}"
        if point.transport not in self._seen:
            self._seen.add(point.transport)
            self.say(f"  first figure: {text}")
        self._unmeasured.discard(point)
        if time.monotonic() > self._deadline_s:
            self.say_late()
        self._draw(text)

    def say_late(self) -> None:
        """Print once, when the time is up, why the run takes longer: first rounds are completed."""
        with self._writing:
            if not (self._unmeasured or self._launches_left) or self._plan is None or self._deadline_s == math.inf:
                return
            self._deadline_s = math.inf
            left = [f"{counted(len(self._unmeasured), 'point')} of this round"] if self._unmeasured else []
            left += [counted(self._launches_left, "launch", "launches")] if self._launches_left else []
            self.say(f"{format_duration_s(self._plan.time_s)} are over; still to be measured: {' and '.join(left)}")

    def progressed(self, progress: Progress) -> None:
        """Keep how far the run is for the next line."""
        self._progress = progress
        self._say_failed()
        self._draw("")

    def point_ended(self, point: Point, status: PointStatus, reason: str | None) -> None:
        """Keep failures for the next event, so that alike ones are printed together."""
        self._unmeasured.discard(point)
        if status is PointStatus.FAILED:
            self._failed.setdefault((curve_of(point), reason), []).append(point)

    def reads(self, run_id: int, rounds: int) -> None:
        """Called before `begun` of a run that is resumed: reading it may take a while."""
        rounds_text = counted(rounds, "round")
        self._stored = f", and run {run_id} keeps its {rounds_text}: {typed('run', '--resume', run_id)} goes on with it"

    def kept(self) -> str:
        """What is stored when the user stops the run."""
        if self._run_id is None:
            return f"nothing new was measured yet{self._stored}"
        return f"everything measured so far is stored (see: {typed('runs')})"

    def _say_failed(self) -> None:
        """Print failures since the last event: sizes of one curve in one line, once for all launches."""
        failed, self._failed = self._failed, {}
        for (_, reason), points in failed.items():
            self._say_once(f"failed: {points[0].text(sizes_text(points))}: {reason}")

    def close(self) -> None:
        """Print what is left, and remove the rewritten line."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._say_failed()
        with self._writing:
            self._deadline_s = math.inf  # an alarm that waits for the lock prints nothing any more
            self._clear()

    def _clear(self) -> None:
        if self._line:
            self._write(f"\r{' ' * len(self._line)}\r")
            self._line = ""

    def _draw(self, figure: str) -> None:
        since_s = time.monotonic() - self._drawn_s
        if self._quiet or since_s < (_REDRAW_S if self._terminal else _LOG_S):
            return
        self._drawn_s = time.monotonic()
        done = ""
        if self._progress is not None:
            is_several = self._launch is not None and (self._launch > 0 or self._launches_left > 0)
            launch = f"launch {(self._launch or 0) + 1}: " if is_several else ""
            done = launch + progress_text(self._progress)
        if not self._terminal:
            self.say(f"  {done or figure}")
            return
        # A line that wraps cannot be rewritten.
        line = printable("  ".join(filter(None, (done, figure))), keep="")[: line_width() - 1]
        with self._writing:
            self._write(f"\r{line.ljust(len(self._line))}")
            self._line = line

    def _say_once(self, text: str) -> None:
        if text not in self._seen:
            self._seen.add(text)
            self.say(text)

    def say(self, text: str) -> None:
        """Print a sentence, with a hanging indent where it is too long for a line."""
        if self._quiet:
            return
        with self._writing:
            self._clear()
            self._write("".join(f"{line}\n" for line in wrapped(text, rest="    ")))

    def _write(self, text: str) -> None:
        """A reader that left (`2>&1 | head`) does not stop the run."""
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            self._quiet = True
            silence(sys.stderr.fileno())


def _cpus_text(launch: Launch) -> str:
    """`ranks on CPUs 0, 1`."""
    ranks = "rank" if launch.ranks == 1 else "ranks"
    if len(set(launch.cpus)) == 1:
        return f"{ranks} on CPU {launch.cpus[0]}"
    more = ", …" if len(launch.cpus) > _CPUS_MAX else ""
    return f"{ranks} on CPUs {', '.join(map(str, launch.cpus[:_CPUS_MAX]))}{more}"


def progress_text(progress: Progress) -> str:
    """The round, the points that have ended, and the least and the most time that the others may take."""
    least, most = (format_duration_s(seconds) for seconds in (progress.left_s, progress.left_most_s))
    left = f"about {most}" if least == most else f"at least {least}, at most {most}"
    return f"round {progress.round}, {progress.finished} of {progress.points} points ended, {left} to go"
