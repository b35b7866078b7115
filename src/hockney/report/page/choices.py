"""Which transport is fastest, of your own library first: for short and long messages, and from size to size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hockney.analysis.repeat import same_hosts
from hockney.errors import Fix
from hockney.model import split_placed
from hockney.report.charts import Strip
from hockney.report.commands import command_line
from hockney.report.document import Cell, Column, Section, Table, Text
from hockney.report.page.curves import CurveData
from hockney.report.page.material import Material
from hockney.report.words import NOTHING, ROUGH, whole_text
from hockney.results.traits import transport_traits
from hockney.stats import Estimate
from hockney.units import format_bytes, format_ns, format_rate, listed

_KINDS = {"library": "MPI and other libraries", "kernel": "sockets and pipes", "memory": "shared memory"}  # in order
_SHORT_NAMES = {"MPI and other libraries": "libraries", "sockets and pipes": "sockets, pipes"}
_SHORT_MAX = 4096  # bytes


@dataclass(frozen=True)
class Candidate:
    """A transport with a figure of one size; `what` are words with that size, `is_range` as of a Figure."""

    transport: str
    value: Estimate
    bytes: int
    what: str = ""
    is_range: bool = False

    def known(self, text: Callable[[float], str]) -> str:
        """`13.5 GB/s ±3%`."""
        return whole_text(self.value, text, is_range=self.is_range)

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends of its interval. Those of a range, of few measurements, lie half of it farther out."""
        return self.value.low * (1 - ROUGH * self.is_range), self.value.high * (1 + ROUGH * self.is_range)


def leaders(candidates: Sequence[Candidate], sign: int = 1) -> list[Candidate]:
    """The best of each transport, the best of all first, where bounds overlap with that; a `sign` of 1: the least."""
    of_each: dict[str, Candidate] = {}
    for each in sorted(candidates, key=lambda each: sign * each.value.value):
        of_each.setdefault(each.transport, each)
    ordered = list(of_each.values())
    low, high = ordered[0].bounds if ordered else (0.0, 0.0)
    return [each for each in ordered if each.bounds[0] <= high and low <= each.bounds[1]]


def classes_of(material: Material) -> dict[str, list[CurveData]]:
    """The ping-pongs of two ranks that no scheduler timed, by the words for their class, your own library's first."""
    oversubscribed = {launch.transport for launch in material.run.launches.values() if launch.oversubscribed}
    curves = [each for each in material.pingpongs(material.run) if each.transport not in oversubscribed]
    carriers = {each.transport: transport_traits(material.run.facts, each.transport).carrier for each in curves}
    classes = {words: [each for each in curves if carriers[each.transport] == kind] for kind, words in _KINDS.items()}
    return {words: members for words, members in classes.items() if members}


def fastest(curves: Sequence[CurveData], size: int) -> list[Candidate]:
    """The transport with the shortest time of a message of this size, and those that are equal to it."""
    timed, what = [each for each in curves if size in each.times_ns], f"a message of {format_bytes(size)}"
    return leaders([Candidate(each.transport, each.times_ns[size], size, what, size in each.ranges) for each in timed])


def _sizes(curves: Sequence[CurveData]) -> list[int]:
    """The sizes that all curves of a class have."""
    return sorted(set.intersection(*(set(curve.times_ns) for curve in curves)) - {0})


def names_text(material: Material, best: Sequence[Candidate], word: str) -> str:
    """`Open MPI 4.1.4 and MPICH 4.0.2 (1 MiB)`, with the size of those that have another than the first."""
    names = [
        material.name_of(each.transport) + f" ({format_bytes(each.bytes)})" * (each.bytes != best[0].bytes)
        for each in best
    ]
    return listed(names, word)


def _fastest_text(material: Material, best: Sequence[Candidate]) -> str:
    return "probably " * (len(best) > 1) + names_text(material, best, "or")


Span = tuple[list[int], list[Candidate]]  # sizes, and the fastest at all of them


def _spans(curves: Sequence[CurveData], sizes: Iterable[int]) -> list[Span]:
    """The sizes, divided where the fastest changes; with its figure of the first of them."""
    spans: list[Span] = []
    for size in sizes:
        best = fastest(curves, size)
        if spans and {each.transport for each in best} == {each.transport for each in spans[-1][1]}:
            spans[-1][0].append(size)
        else:
            spans.append(([size], best))
    return spans


def choices_of(material: Material) -> Section | None:
    """The fastest transport of each class for short and for long messages; None where no class has a choice."""
    classes = {words: curves for words, curves in classes_of(material).items() if _sizes(curves)}
    if all(len(curves) == 1 for curves in classes.values()):
        return None
    rows, unsure = [], list[Candidate]()
    for words, curves in classes.items():
        cells = []
        for is_short in (True, False):
            spans = _spans(curves, [size for size in _sizes(curves) if (size <= _SHORT_MAX) is is_short])
            best = _best(spans)
            unsure = unsure or best[:2] * (len(best) > 1)
            cells.append(_cell(material, curves, spans, best) if best else Cell(NOTHING))
        rows.append((words, *cells))
    columns = (Column(""), *(Column(f"{word} {format_bytes(_SHORT_MAX)}", right=True) for word in ("up to", "above")))
    note = "The fastest ping-pong at most of these sizes. Probably: intervals overlap."
    return Section("Fastest transport", (Table(columns, rows), *map(Text, (note, *_to_settle(material, unsure)))))


def _best(spans: Sequence[Span]) -> list[Candidate]:
    """The transport that is among the fastest at most sizes, and those that are equal to it at more than half."""
    sizes_of: dict[str, set[int]] = {}
    for sizes, best in spans:
        for each in best:
            sizes_of.setdefault(each.transport, set()).update(sizes)
    if not spans:
        return []
    total = sum(len(sizes) for sizes, _ in spans)
    first = max(sizes_of, key=lambda name: len(sizes_of[name]))
    equal = [name for name in sizes_of if 2 * len(sizes_of[name] & sizes_of[first]) > total and name != first]
    of_each = {each.transport: each for _, best in reversed(spans) for each in best}
    return [of_each[name] for name in (first, *equal)]


def _cell(material: Material, curves: Sequence[CurveData], spans: Sequence[Span], best: Sequence[Candidate]) -> Cell:
    """Names; `113 ns at 8 B` of short messages, `14.1 GB/s at 1 MiB` of long ones; and where another is faster."""
    curve = next(each for each in curves if each.transport == best[0].transport)
    first, last = spans[0][0][0], spans[-1][0][-1]
    rate = curve.rate_at(last)
    figure = f"{format_ns(curve.times_ns[first].value)} at {format_bytes(first)}"
    if last > _SHORT_MAX and rate:
        figure = f"{format_rate(rate.value)} at {format_bytes(last)}"
    others = [
        f"{' to '.join(dict.fromkeys(map(format_bytes, (sizes[0], sizes[-1]))))}: {_fastest_text(material, faster)}"
        for sizes, faster in spans
        if best[0].transport not in {each.transport for each in faster}
    ]
    return Cell(_fastest_text(material, best), "; ".join([figure, *others]))


def strips_of(material: Material) -> list[Strip]:
    """The fastest of each class at each size that all of the class have; neighbours that are alike are one span."""
    strips = []
    for words, curves in classes_of(material).items():
        spans = _spans(curves, _sizes(curves)) if len(curves) > 1 else []
        edges = [math.sqrt(before[0][-1] * after[0][0]) for before, after in pairwise(spans)]
        ends = zip([spans[0][0][0], *edges], [*edges, spans[-1][0][-1]], strict=True) if spans else ()
        of_strip = [
            (low, high, tuple(each.transport for each in best), _fastest_text(material, best))
            for (low, high), (_, best) in zip(ends, spans, strict=True)
        ]
        strips += [Strip(_SHORT_NAMES.get(words, words), of_strip)] if of_strip else []
    return strips


def _to_settle(material: Material, equal: Sequence[Candidate]) -> Iterable[str]:
    """How to learn which of two transports is faster, where hockney can measure them here."""
    info, names = material.run.info, [each.transport for each in equal]
    if names and not (info.is_imported or info.plan.get("virtual") or any(split_placed(name)[1] for name in names)):
        sides = ("--base-transport", names[0], "--new-transport", names[1])
        words = ("hockney", "compare", "--interleave", "pingpong", *sides, *same_hosts(info.plan))
        command = command_line(Fix("measure variants", words, run_facts=info.facts))
        yield f"To settle which of two is faster, measure them in alternation: `{command}`."
