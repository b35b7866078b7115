"""A run among the data sheets of machines that resemble it: what is usual, and what is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hockney.analysis.explain import explain_run
from hockney.errors import HockneyError
from hockney.machine.facts import fact
from hockney.report.document import Block, Column, Section, Table, Text, Title
from hockney.report.sharing import figures_of
from hockney.results.runs import Run
from hockney.results.sheets import MachineSheet, SheetFigure, SheetValue, archived, cpu_family
from hockney.units import counted, format_bytes

_FEW = 2  # sheets: with fewer no claim is made
_FAR = 1.5  # times as long: machines of one family differ by less, and the CPU's frequency by less than that
_MOST = 0.75  # of the sheets
_ORDER = ("slower", "faster", "usual")
_LEGEND = f"Of each sheet the best library counts. Usual: within a factor of {_FAR} of most others."


@dataclass(frozen=True)
class Place:
    """A figure of the run, and those of other machines, the best first; `cause`: of a slow one, where it is known."""

    figure: SheetFigure
    others: tuple[SheetValue, ...]
    cause: str = ""

    @property
    def verdict(self) -> str:
        """`slower` or `faster` than most others, `usual`, or `too few sheets` to say."""
        if len(self.others) < _FEW:
            return "too few sheets"
        for word, group in (("slower", self._beyond(1)), ("faster", self._beyond(-1))):
            if len(group) >= max(_FEW, _MOST * len(self.others)):
                return word
        return "usual"

    @property
    def text(self) -> str:
        """`slower: 3 of 4 have 101 ns–170 ns; yours yields the CPU`."""
        group = {"slower": self._beyond(1), "faster": self._beyond(-1)}.get(self.verdict, self.others)
        ends = "–".join(dict.fromkeys(map(str, (min(group), max(group)))))
        count = f"{len(group)} of {len(self.others)} have" if len(self.others) >= _FEW else "one sheet has"
        return f"{self.verdict}: {count} {ends}{f'; {self.cause}' if self.cause and self.verdict == 'slower' else ''}"

    def _beyond(self, way: int) -> tuple[SheetValue, ...]:
        """The others that are better (1) or worse (-1) by far than the whole interval of the figure."""
        own = self.figure.low if (way > 0) != self.figure.value.is_rate else self.figure.high
        value, is_rate = (own or self.figure.value).value, self.figure.value.is_rate
        ratios = ((each, each.value / value if is_rate else value / each.value) for each in self.others)
        return tuple(each for each, ratio in ratios if (ratio > _FAR if way > 0 else ratio * _FAR < 1))


def places_of(run: Run, more: Sequence[MachineSheet] = ()) -> tuple[str, list[Place]]:
    """Which sheets were taken, and the place of each figure that one of them has, too."""
    family, sheets = cpu_family(fact(run.facts, "cpu.model")), [*archived().values(), *more]
    alike = [sheet for sheet in sheets if family and sheet.family == family]
    enough = len(alike) >= _FEW
    of_family = f"of this CPU family ({family or 'unknown'})"
    which = (
        f"{len(alike)} data sheets {of_family}"
        if enough
        else f"all {len(sheets)} data sheets, {len(alike)} {of_family}"
    )
    yielding: set[str] = set()
    with suppress(HockneyError):  # no figure has an interval
        found = explain_run(run).findings
        yielding = {each.subject.transport for each in found if each.code == "yielding library"}
    places = []
    for figure in () if run.info.plan.get("virtual") else figures_of(run):
        best = (_best(figure, sheet) for sheet in (alike if enough else sheets))
        others = sorted((each for each in best if each is not None), reverse=figure.value.is_rate)
        if others:
            cause = "yours yields the CPU while it waits" if figure.transport in yielding else ""
            places.append(Place(figure, tuple(others), cause))
    return which, places


def _best(figure: SheetFigure, sheet: MachineSheet) -> SheetValue | None:
    """The best of a sheet's figures of the same point, over its libraries."""
    alike = [each.value for each in sheet.figure if each.key == figure.key]
    return (max if figure.value.is_rate else min)(alike, default=None)


def like_document(run: Run, more: Sequence[MachineSheet] = ()) -> Iterator[Block]:
    """The screen of `show --like`; what is not usual comes first."""
    which, places = places_of(run, more)
    yield Title(f"Among {which}", end=run.name)
    enough = [place for place in places if place.verdict in _ORDER]
    if enough:
        yield from (_table(enough), Text(_LEGEND))
    else:
        yield Text("No figure of this run is in two of them, so nothing is compared.")
    if few := len(places) - len(enough):
        yield Text(f"In one sheet only, so without a claim: {counted(few, 'figure')}.")


def like_section(run: Run) -> Section | None:
    """The same for the page; None where there is nothing to compare with."""
    which, places = places_of(run)
    enough = [place for place in places if place.verdict in _ORDER]
    return Section("Other machines", (Text(f"Among {which}."), _table(enough), Text(_LEGEND))) if enough else None


def _table(places: Sequence[Place]) -> Table:
    rows = []
    for place in sorted(places, key=lambda place: _ORDER.index(place.verdict)):
        of = place.figure
        size = f" of {format_bytes(of.bytes)}" if of.bytes else ""
        rows.append([f"{of.library or of.transport}: {of.pattern}{size}", str(of.value), place.text])
    return Table([Column("", wrap=True), Column("here", right=True), Column("others", wrap=True)], rows)


def like_json(run: Run, more: Sequence[MachineSheet] = ()) -> dict[str, Any]:
    """The same as values."""
    which, places = places_of(run, more)
    return {
        "sheets": which,
        "places": [
            {
                **each.figure.model_dump(include={"transport", "pattern", "ranks", "hosts", "bytes", "options"}),
                "value": str(each.figure.value),
                "others": [*map(str, each.others)],
                "verdict": each.verdict,
                "text": each.text,
            }
            for each in places
        ],
    }
