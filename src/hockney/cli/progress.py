"""Progress on standard error while a run measures or a prediction runs.

On a terminal one line is rewritten at most four times a second, and only between measurements: on a small machine the
display would disturb the measurement. In a pipe there is a line per job, first figure and failure, and one every half
minute.
"""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Callable

from hockney.analysis.host_series import SUITE
from hockney.machine.files import format_cpus, named_cpus
from hockney.measure.health import pairs_text
from hockney.measure.plan import Plan
from hockney.measure.recorder import Display
from hockney.measure.sampler import Progress
from hockney.model import CurveKey, Launch, Measurement, Point, PointStatus, curve_of
from hockney.render.streams import silence
from hockney.render.terminal import line_width, wrapped
from hockney.report.commands import typed
from hockney.report.documents.plan import idle_hosts_text, short_text
from hockney.report.notes import sizes_text
from hockney.report.words import size_text
from hockney.units import counted, format_duration_s, format_ns, percent_digits, printable

FIRST_FIGURE = "  first figure: "  # scripts/bench waits for it
_LOG_S = 30.0
_LONG_S = 10.0  # a step that takes longer says so


class ProgressDisplay(Display):
    """On standard error; `quiet` prints nothing. `goal`: what ends the run; by default that its points are known."""

    goal = ""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._drawn_s = 0.0 if self._terminal else time.monotonic()
        self._line = ""  # on a terminal, the one that is rewritten
        self._seen: set[str] = set()  # transports with a figure, jobs and failures that were printed
        self._run_id: int | None = None
        self._launches, self._on_hosts, self._are_pairs = 1, False, False
        self._launch = 0
        self._done = ""  # the progress of the run
        self._unseen: set[Point] = set()  # of the first round
        self._end_s = math.inf
        self._failed: dict[tuple[CurveKey, str | None], list[Point]] = {}  # not printed yet
        self._first_failed: dict[str | None, str] = {}  # by reason
        self._has_failed: set[Point] = set()

    def begun(self, run_id: int, plan: Plan, *, goes_on: bool, precise: int) -> None:
        """Print the plan; a run that gets more launches has it only once. Of hosts the pairs, and their time."""
        self._are_pairs = plan.suite == SUITE
        if self._are_pairs:
            self._run_id, most = run_id, format_duration_s(plan.limits.time_s)
            pairs = pairs_text(len(plan.placement.hosts), plan.limits.time_s)
            self.say(f"run {run_id}: {pairs}; at most {most}; Ctrl-C keeps all measurements")
            return
        points = counted(len(plan.points), "point")
        is_known = run_id == self._run_id
        limits, how_long = plan.limits, format_duration_s(plan.limits.time_s)
        self._run_id, self._launches, self._launch = run_id, limits.launches, 0
        self._on_hosts = bool(plan.placement.hosts)
        self._unseen, self._end_s = set(plan.points), time.monotonic() + limits.time_s
        if is_known:  # a check measures again
            launches = counted(limits.launches, "more launch", "more launches")
            self.say(
                f"run {run_id} continues, as some series are inconclusive: {points} in {launches}, "
                f"for {how_long} or longer"
            )
            return
        transports = counted(len({point.transport for point in plan.points}), "transport")
        left = f"{len(plan.points) - precise} of its {points}" if precise else points
        least = f"one round of each of {limits.launches} launches" if limits.launches > 1 else "one round"
        is_search = plan.deadline_ns is not None
        goal = self.goal or (
            "the highest rate of each is found"
            if is_search
            else f"all are known to {percent_digits(limits.precision)} %"
        )
        self.say(
            f"run {run_id}{' resumed' if goes_on else ''}: {left} on {transports}, until {goal} "
            f"or for {how_long}, but at least {least}; "
            "Ctrl-C keeps all measurements"
        )
        idle = idle_hosts_text(plan.as_json(), max((point.ranks for point in plan.points), default=0))
        if idle:
            self.say(f"{idle}.")
        if not goes_on and (short := short_text(plan)):
            self.say(short)

    def launched(self, launch: Launch) -> None:
        """Print the library and the CPUs of the ranks, once for all launches in which they are the same."""
        self._say_failed()
        self._launch = launch.index
        where = f"; ranks on {named_cpus(format_cpus(launch.cpus))}" if min(launch.cpus, default=-1) >= 0 else ""
        self._say_once(f"{launch.transport}: {launch.library}{where}")

    def measured(self, measurement: Measurement) -> None:
        """Print the first figure of each transport; it has no interval yet."""
        self._say_failed()
        point = measurement.point
        times_ns = sorted(measurement.times_ns().tolist())
        name = " ".join(filter(None, (point.pattern, size_text(point), "on", point.transport)))
        text = f"{name}: {format_ns(times_ns[len(times_ns) // 2])}"
        if point.transport not in self._seen:
            self._seen.add(point.transport)
            self.say(f"{FIRST_FIGURE}{text}")
        self._unseen.discard(point)
        if not self._done and time.monotonic() >= self._end_s and self._unseen:
            self._end_s = math.inf
            left = f"{counted(len(self._unseen), 'point')} to go"
            whole = "the first round continues" if self._launches == 1 else "each launch makes one round"
            left += " in this one" if self._launches > 1 else ""
            left += ", without long messages where they are slow" if self._on_hosts else ""
            self.say(f"  the time is up, but {whole}: {left}")
        self._draw(text)

    def progressed(self, progress: Progress) -> None:
        launch = f"launch {self._launch + 1}: " if self._launches > 1 or self._launch else ""
        self._done = launch + progress_text(progress)
        self._say_failed()
        self._draw("")

    def point_ended(self, point: Point, status: PointStatus, reason: str | None) -> None:
        """Keep failures for the next event, so that alike ones are printed together; the result has those of pairs."""
        self._unseen.discard(point)
        if status is PointStatus.FAILED and point not in self._has_failed and not self._are_pairs:
            self._has_failed.add(point)  # in each launch, maybe with other numbers
            self._failed.setdefault((curve_of(point), reason), []).append(point)

    def simulating(self, step: str, points: int) -> Callable[[], None]:
        """Show a step of a prediction, and how long it takes; call the returned function after each of its points."""
        numbers, begin_s = itertools.count(), time.monotonic()

        def show() -> None:
            done = next(numbers)
            left_s = (time.monotonic() - begin_s) / max(1, done) * (points - done)
            if done == 1 and left_s > _LONG_S:
                self.say(f"  Next: {step}, about {format_duration_s(left_s)}.")
            left = f", about {format_duration_s(left_s)} to go" if done and left_s >= 1 else ""
            self._done = f"{step}: {done} of {counted(points, 'point')} done{left}"
            self._draw("")

        show()
        return show

    def kept(self) -> str:
        """The sentence about stored data when the user stops the run."""
        if self._run_id is None:
            return "nothing new was measured yet"
        return f"everything measured so far is stored (see: {typed('runs')})"

    def _say_failed(self) -> None:
        """Print failures since the last event: sizes of one curve in one line, each line and each reason once."""
        failed, self._failed = self._failed, {}
        for (_, reason), points in failed.items():
            name = points[0].text(points[0].transport, sizes_text(points))
            first = self._first_failed.setdefault(reason, name)
            self._say_once(f"failed: {name}: {reason if first == name else f'as {first}, see above'}")

    def close(self) -> None:
        """Print the remaining output, and remove the rewritten line."""
        self._say_failed()
        self._clear()

    def _clear(self) -> None:
        if self._line:
            self._write(f"\r{' ' * len(self._line)}\r")
            self._line = ""

    def _draw(self, figure: str) -> None:
        since_s = time.monotonic() - self._drawn_s
        if self._quiet or since_s < (0.25 if self._terminal else _LOG_S):
            return
        self._drawn_s = time.monotonic()
        if not self._terminal:
            self.say(f"  {self._done or figure}")
            return
        # A line that wraps cannot be rewritten.
        line = printable("  ".join(filter(None, (self._done, figure))), keep="")[: line_width() - 1]
        before, self._line = self._line, line  # first: Ctrl-C may come as soon as it is written
        self._write(f"\r{line.ljust(len(before))}")

    def _say_once(self, text: str) -> None:
        if text not in self._seen:
            self._seen.add(text)
            self.say(text)

    def say(self, text: str) -> None:
        """Print a sentence, with a hanging indent where it is too long for a line."""
        if not self._quiet:
            self._clear()
            self._write("".join(f"{line}\n" for line in wrapped(text, rest="    ")))

    def _write(self, text: str) -> None:
        """Write to standard error. A reader that left (`2>&1 | head`) does not stop the run."""
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            self._quiet = True
            silence(sys.stderr.fileno())


class VerdictDisplay(ProgressDisplay):
    """The same of what is measured until series differ, or do not."""

    goal = "each series has a verdict"


def progress_text(progress: Progress) -> str:
    """The round, the points that have ended, and the least and the most time that the others may take."""
    least, most = (format_duration_s(seconds) for seconds in (progress.left_s, progress.left_most_s))
    few = f"at least {least}, " if progress.left_s else ""
    left = f"about {most}" if least == most else f"{few}at most {most}"
    return f"round {progress.round}, {progress.finished} of {counted(progress.points, 'point')} done, {left} to go"
