"""The table: rows, targets and whether they are met, as Markdown, and the page that holds it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hockney.stats import Interval

WHOLE = "scripts/bench"  # the command whose table it is

YES, NO, INCONCLUSIVE, UNKNOWN = "yes", "**no**", "inconclusive", "–"
ANY = "any"  # state of the machine


@dataclass(frozen=True)
class Target:
    """A value must be in [low, high]; None: no limit on that side. `text` is the printed form.

    Without any limit a value is only shown, and not judged.
    """

    text: str
    low: float | None = None
    high: float | None = None

    def judge(self, value: Interval) -> str:
        """Met if the whole interval is within the limits, missed if all of it is outside; else inconclusive."""
        if self.low is None and self.high is None:
            return UNKNOWN
        if value.low is None or value.high is None:
            return INCONCLUSIVE
        if self._holds(value.low) and self._holds(value.high):
            return YES
        above = self.high is not None and value.low > self.high
        below = self.low is not None and value.high < self.low
        return NO if above or below else INCONCLUSIVE

    def judge_alone(self, value: float) -> str:
        """For a value that was taken only once, or that has no interval."""
        if self.low is None and self.high is None:
            return UNKNOWN
        return YES if self._holds(value) else NO

    def _holds(self, value: float) -> bool:
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


@dataclass(frozen=True)
class Row:
    """One line of the table: the compared things, the target, the value, its conditions, and the verdict."""

    what: str
    target: str
    measured: str
    state: str
    met: str


HEAD = Row("what", "target", "measured (95 % interval)", "state, or number", "met?")


def not_measured(what: str, target: Target, why: str) -> Row:
    """A row for a missing value: it is shown with its reason, never silently left out."""
    return Row(what, target.text, f"not measured: {why}", UNKNOWN, UNKNOWN)


def row_of(what: str, target: Target, value: Interval, unit: str) -> Row:
    """A row of a value with its interval."""
    digits = 0 if value.value >= 10 else 2
    interval = f" ({value.low:.{digits}f}–{value.high:.{digits}f})" if value.low and value.high else ""
    measured = f"{value.value:.{digits}f} {unit}{interval}"
    met = target.judge(value) if interval else target.judge_alone(value.value)
    return Row(what, target.text, measured, f"{ANY}; {value.n} times", met)


def row_of_one(what: str, target: Target, value: float, shown: str) -> Row:
    """A row of a value that was taken once."""
    return Row(what, target.text, shown, ANY, target.judge_alone(value))


def show_interval(value: Interval, digits: int) -> str:
    """`1.003 (0.998–1.009)`, or that there is no interval."""
    if value.low is None or value.high is None:
        return f"{value.value:.{digits}f} (no interval)"
    return f"{value.value:.{digits}f} ({value.low:.{digits}f}–{value.high:.{digits}f})"


def markdown(rows: Iterable[Row]) -> str:
    """The rows as a Markdown table."""
    lines = [_line(HEAD), "| --- | --- | --- | --- | --- |", *(_line(row) for row in rows)]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    cells = (row.what, row.target, row.measured, row.state, row.met)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def put_between(page: str, text: str, command: str = WHOLE) -> str:
    """The page with `text` between a command's markers. Raises ValueError where it has not exactly one of each."""
    begin, end = markers(command)
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise ValueError(f"the page must hold the line '{begin}' once, and '{end}' once after it")
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{text.strip()}\n{end}{after}"


def markers(command: str) -> tuple[str, str]:
    """The lines around the table of a command."""
    return f"<!-- table of {command}: begin -->", f"<!-- table of {command}: end -->"


def summary(rows: Sequence[Row]) -> str:
    """`21 of 30 met, 2 missed, 7 inconclusive` for the end of a run."""
    count = {word: sum(row.met == word for row in rows) for word in (YES, NO, INCONCLUSIVE, UNKNOWN)}
    words = [f"{count[YES]} of {len(rows)} met", f"{count[NO]} missed", f"{count[INCONCLUSIVE]} inconclusive"]
    return ", ".join([*words, *([f"{count[UNKNOWN]} not judged"] if count[UNKNOWN] else [])])
