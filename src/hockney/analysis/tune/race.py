"""The race of choices: who leaves when, and who wins which cell."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from hockney.analysis.compare.comparison import Entry, Ratios
from hockney.analysis.tune.rules import GAIN_MIN, RaceCell
from hockney.model import Point
from hockney.stats.sequence import chance_above, chance_below, interval, wins_needed
from hockney.worker.settings import DEFAULT, Choice

_ALPHA = 0.05
_ALIKE = 1.02  # a smaller difference is not worth measuring, nor a second rule


class Referee:
    """Says after each launch who leaves which point.

    A choice leaves if it seems not to be 5 % faster than the default, or not 2 % faster than the best one of now. Each
    of these tests is wrong of one entry in 20 at most, both together of more; that costs gains, and makes no rule. The
    best one leaves when nobody else is left and its gain is certain, among all entries.

    References, whose numbers follow those of the choices, run with them: nobody leaves for one but another reference.
    """

    def __init__(self, choices: Sequence[Choice], points: Sequence[Point], references: Sequence[Choice] = ()) -> None:
        self.ratios: Ratios = {}
        self._choices, self._points, self._left = (*choices, *references), points, set[Entry]()
        self._own, self._foreign = (range(1, len(choices) + 1), range(len(choices) + 1, len(self._choices) + 1))
        self._chance = _ALPHA / max(1, len(points) * len(choices))
        self._chance_of_reference = _ALPHA / max(1, len(points) * len(references))

    def decide(self, ratios: Ratios) -> set[Entry]:
        """The entries that have left."""
        self.ratios = ratios
        for point, values in self._by_point().items():
            launches = max(map(len, values.values()))
            there = [n for n in values if len(values[n]) == launches and (n, point) not in self._left]
            best, reference = (_best(values, there, among) for among in (self._own, self._foreign))
            for number in there:
                rivals = {best} if number in self._own else {best, reference}
                beaten = (chance_above(_over(values, number, rival), 1 / _ALIKE) for rival in rivals - {number})
                if min(chance_above(values[number], 1 / GAIN_MIN), *beaten, 1) <= _ALPHA:
                    self._left.add((number, point))
            if there == [best] and chance_below(values[best], 1) <= self._chance:
                self._left.add((best, point))
            over_best = _over(values, reference, best) if reference and {*there} <= {best, reference} else ()
            if chance_below(over_best, 1) <= self._chance_of_reference:
                self._left.add((reference, point))
        return self._left

    def too_few(self) -> tuple[int, int] | None:
        """If the race ended before anybody could be certain: how many launches it had, and how many it takes."""
        needed = next(count for count in itertools.count(1) if wins_needed(count, self._chance) <= count)
        made = max(map(len, self.ratios.values()), default=0)
        own = {entry: values for entry, values in self.ratios.items() if entry[0] in self._own}
        is_open = any(len(values) == made and entry not in self._left for entry, values in own.items())
        return (made, needed) if is_open and made < needed else None

    def cells(self, without: Collection[Choice] = ()) -> list[RaceCell]:
        """The winner of each point, of those that may win. It keeps that of the size before, if that is as good."""
        cells, before, known = list[RaceCell](), dict[tuple[str, int], Choice](), self._by_point()
        for point in sorted(self._points, key=lambda point: point.bytes):
            curve, values = (point.pattern, point.ranks), known.get(point, {})
            of = {
                choice: cell
                for choice, cell in (
                    (self._choices[n - 1], self._cell(n, point, values[n], self._chance))
                    for n in values
                    if n in self._own
                )
                if cell.is_rule and choice not in without
            }
            best = max(of, key=lambda choice: of[choice].gain[1], default=DEFAULT)
            kept = before.get(curve, DEFAULT)
            if kept in of and of[kept].gain[1] * _ALIKE >= of[best].gain[1]:
                best = kept
            before[curve] = best
            cells.append(of.get(best, RaceCell(*curve, point.bytes)))
        return cells

    def references(self) -> list[RaceCell]:
        """At each point the best reference with its gain over the best choice, of those that were measured as long."""
        cells = []
        for point, values in self._by_point().items():
            if number := _best(values, values, self._foreign):
                best = _best(values, [n for n in values if len(values[n]) >= len(values[number])], self._own)
                cells.append(self._cell(number, point, _over(values, number, best), self._chance_of_reference))
        return cells

    def unmeasured(self) -> list[Point]:
        """The points of which nothing is known."""
        known = self._by_point()
        return [point for point in self._points if point not in known]

    def slower(self) -> set[Choice]:
        """The thresholds that seem slower than the default at some point: they hold for all."""
        slower = {n for (n, _), values in self.ratios.items() if values and statistics.median(values) > GAIN_MIN}
        return {self._choices[n - 1] for n in slower if self._choices[n - 1].is_threshold}

    def _cell(self, number: int, point: Point, ratios: Sequence[float], chance: float) -> RaceCell:
        time = interval(ratios, 2 * chance)
        gain = (1 / time.high if time.high else 0.0, 1 / time.value, 1 / time.low if time.low else float("inf"))
        return RaceCell(point.pattern, point.ranks, point.bytes, self._choices[number - 1], gain)

    def _by_point(self) -> dict[Point, dict[int, Sequence[float]]]:
        found: dict[Point, dict[int, Sequence[float]]] = {}
        for (number, point), values in self.ratios.items():
            if values:
                found.setdefault(point, {})[number] = values
        return found


def _best(values: Mapping[int, Sequence[float]], of: Iterable[int], among: Container[int]) -> int:
    """The fastest of these in a kind; 0, the default, where none seems faster than that."""
    medians = [(statistics.median(values[n]), n) for n in of if n in among]
    return min([(1.0, 0), *medians])[1]


def _over(values: Mapping[int, Sequence[float]], number: int, rival: int) -> Sequence[float]:
    """The times of one over those of another, from launch to launch; 0 is the default."""
    others = values[rival] if rival else itertools.repeat(1.0)
    return [own / other for own, other in zip(values[number], others, strict=False)]
