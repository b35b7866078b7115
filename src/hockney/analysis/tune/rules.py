"""From proved cells to rules.

A cell is one operation on a number of ranks with one size. Neighbouring sizes with one winner become one rule, which
ends at the sizes that were measured. Everything else keeps the library's own choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hockney.analysis.compare.values import SeriesChange, Verdict
from hockney.model import Point
from hockney.units import format_bytes
from hockney.worker.settings import DEFAULT, Choice

GAIN_MIN = 1.05
"""A smaller gain keeps the default."""


@dataclass(frozen=True)
class RaceCell:
    """A proved cell: how many times as fast the winner is as the default, with its interval. Sizes are in bytes."""

    operation: str
    ranks: int
    bytes: int
    winner: Choice = DEFAULT
    gain: tuple[float, float, float] = (1.0, 1.0, 1.0)  # low, value, high

    @property
    def is_rule(self) -> bool:
        """Whether the gain is certain and large enough to be written."""
        low, value, _ = self.gain
        return self.winner != DEFAULT and low > 1 and value >= GAIN_MIN


@dataclass(frozen=True)
class Rule:
    """One winner for messages of `least` to `most` bytes, and its gains at the sizes that were measured there."""

    operation: str
    ranks: int
    least: int
    most: int
    winner: Choice
    gains: tuple[tuple[float, float, float], ...]

    @property
    def words(self) -> tuple[str, str, str]:
        """Its sizes, its gains, and the least that is certain."""
        sizes = format_bytes(self.least) + (f" to {format_bytes(self.most)}" if self.most > self.least else "")
        values = sorted(value for _, value, _ in self.gains)
        span = dict.fromkeys((f"{values[0]:.2f}x", f"{values[-1]:.2f}x"))
        return sizes, " to ".join(span), f"{min(low for low, _, _ in self.gains):.2f}x"

    def __str__(self) -> str:
        sizes, span, least = self.words
        doubt = "" if self.winner.can_be_verified else "; not verified: the library does not show what it takes"
        return (
            f"{self.operation}, {self.ranks} ranks, {sizes}: {self.winner.name}, {span} as fast (at least {least})"
            f"{doubt}"
        )

    def holds_for(self, point: Point) -> bool:
        """Whether it is for this point."""
        return (self.operation, self.ranks) == (point.pattern, point.ranks) and self.least <= point.bytes <= self.most


def rules_of(cells: Iterable[RaceCell]) -> list[Rule]:
    """The rules of cells, by operation, ranks and size."""
    rules: list[Rule] = []
    before: RaceCell | None = None
    for cell in sorted(cells, key=lambda cell: (cell.operation, cell.ranks, cell.bytes)):
        key = (cell.operation, cell.ranks, cell.winner)
        if cell.is_rule:
            goes_on = before is not None and before.is_rule and (before.operation, before.ranks, before.winner) == key
            last = rules.pop() if goes_on else Rule(cell.operation, cell.ranks, cell.bytes, cell.bytes, cell.winner, ())
            rules.append(Rule(*key[:2], last.least, cell.bytes, cell.winner, (*last.gains, cell.gain)))
        before = cell
    return rules


def proved(rules: Sequence[Rule], changes: Sequence[SeriesChange]) -> list[Rule]:
    """What a proof leaves of rules: the sizes at which it shows them faster, with its gains.

    Thresholds hold for all sizes, so they stay together, and only where the proof decided all.
    """
    cells = []
    for change in changes:
        point, ratio = change.point, change.ratio
        winner = next((rule.winner for rule in rules if rule.holds_for(point)), DEFAULT)
        if change.verdict is Verdict.FASTER and ratio is not None:
            gain = (1 / ratio.high, 1 / ratio.value, 1 / ratio.low)
            cells.append(RaceCell(point.pattern, point.ranks, point.bytes, winner, gain))
        else:
            cells.append(RaceCell(point.pattern, point.ranks, point.bytes))
    found = rules_of(cells)
    wanted = {rule.winner for rule in rules if rule.winner.is_threshold}
    is_open = any(change.verdict is Verdict.INCONCLUSIVE for change in changes)
    return [] if wanted and (is_open or wanted != {rule.winner for rule in found}) else found


def other_values(rules: Sequence[Rule], choices: Iterable[Choice]) -> set[Choice]:
    """The choices of other values than a threshold's best one: that with the largest certain gain, for all sizes."""
    taken: dict[str, Choice] = {}
    for rule in sorted(rules, key=lambda rule: -max(low for low, _, _ in rule.gains)):
        for variable in rule.winner.environment if rule.winner.is_threshold else ():
            taken.setdefault(variable, rule.winner)
    return {each for each in choices if any(taken.get(variable, each) != each for variable in each.environment)}
