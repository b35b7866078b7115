"""The figures of a run that models are fitted to, those of two ranks, and the others, which check a fit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hockney.analysis.explain.fits import delay_of
from hockney.model import Point
from hockney.results.figures import Figure
from hockney.results.runs import Run
from hockney.stats import UNKNOWN
from hockney.stats.interval import Estimate
from hockney.suites import Suite
from hockney.worker.words import each_of

WINDOW = 16
_STREAM = (("window", str(WINDOW)),)
_BASIC = {  # the basic figures of two ranks that a pattern with these options measures
    ("pingpong", ()): "half",
    ("oneway", _STREAM): "gap",
    ("twoway", _STREAM): "both",
    ("put", ()): "put",
    ("putpong", ()): "putpong",
    ("get", ()): "get",
}


@dataclass(frozen=True)
class Basics:
    """The times of two ranks at one message size, in ns, by name.

    `half`: half a round trip; `gap`: per message of a stream; `both`: likewise, of two streams at once; `one`, `burst`,
    `one_delayed`, `spaced`: of prtt with 1 and n messages, without and with a delay; `put`, `putpong`, `get`.
    `messages` is that n, `delay_ns` the real length of the delay. A stream ends with one acknowledgement after
    `acknowledged` messages.
    """

    bytes: int
    times: dict[str, Estimate] = field(default_factory=dict)
    messages: int = 0
    delay_ns: float = 0.0
    acknowledged: int = 0


@dataclass(frozen=True)
class Figures:
    """The times of a transport in a run, those that tables show.

    `state` is that of the two ranks, or None. `has_ranges`: the bounds of a basic figure are no interval of one state.
    """

    transport: str
    state: str | None
    basics: tuple[Basics, ...]
    others: dict[Point, Estimate]
    has_ranges: bool = False

    @property
    def complete(self) -> tuple[Basics, ...]:
        """The sizes with all figures that a fit needs."""
        return tuple(each for each in self.basics if {"half", "gap"} <= each.times.keys())


def figures_of(run: Run, transport: str, checks: Suite | None = None) -> Figures:
    """The figures of a transport: those of two ranks that a fit uses, by size, and the others.

    A fit does not use the points of the suite `checks`.
    """
    left_out = {
        (series.pattern, tuple(sorted(options.items())), size)
        for series in (() if checks is None else checks.series)
        for options in each_of(series.options)
        for size in series.bytes
    }
    basics: dict[int, Basics] = {}
    others: dict[Point, Estimate] = {}
    has_ranges = False
    for series in run.series:
        point, figure = series.point, series.shown
        if point.transport != transport or point.background or point.rate_hz or figure is None:
            continue
        if (point.pattern, point.options, point.bytes) in left_out or not _takes(basics, figure):
            others[point] = figure.time
        else:
            has_ranges |= figure.is_range
    state = run.state_of(transport, 2)
    state = None if state == UNKNOWN.name else state
    return Figures(transport, state, tuple(basics[size] for size in sorted(basics)), others, has_ranges)


def _takes(basics: dict[int, Basics], figure: Figure) -> bool:
    """Whether a figure is a basic one: then it is entered."""
    point = figure.point
    options = dict(point.options)
    messages, delay = int(options.pop("messages", 1)), int(options.pop("delay_ns", 0))
    name = _BASIC.get((point.pattern, point.options))
    if point.pattern == "prtt" and not options:
        name = ("one_delayed" if delay else "one") if messages == 1 else "spaced" if delay else "burst"
    if name is None or point.ranks != 2:
        return False
    of_size = basics.get(point.bytes, Basics(point.bytes))
    of_size = replace(of_size, times={**of_size.times, name: figure.time}, messages=max(messages, of_size.messages))
    if delay:
        of_size = replace(of_size, delay_ns=delay_of(figure.measurements) or of_size.delay_ns)
    if name == "gap":
        of_size = replace(of_size, acknowledged=figure.measurements[-1].batch * figure.definition.divisor)
    basics[point.bytes] = of_size
    return True
