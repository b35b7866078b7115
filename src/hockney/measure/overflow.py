"""Which port of a model's switches drops segments first, and from which rate of events on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hockney.measure.predict import Models, Tick, times_of
from hockney.model import Measurement, Point
from hockney.results.rates import at_rate
from hockney.stats.rates import bounds, next_hz

_INNER, _ALL = "inner_drops", "drops"
_OFFERED_MAX = 2  # times what the farm can do: more changes nothing


@dataclass(frozen=True)
class Overflow:
    """The port that drops most at a point, of a searched rate at the lowest one with drops; `rank` None: none drops.

    `rank` is the one that the port leads to, `role` its part in a farm; `is_inner`: most drops are at ports to another
    switch. `drops` are segments of a measurement. `drops_hz` is the lowest rate with drops, `clean_hz` the
    highest below it without; None: none was found, or no rate is searched.
    """

    point: Point
    buffer_bytes: int
    is_shared: bool
    rank: int | None = None
    role: str | None = None
    is_inner: bool = False
    drops: int = 0
    drops_hz: int | None = None
    clean_hz: int | None = None


def overflows_of(
    measured: Mapping[Point, Measurement], models: Models, *, is_searched: bool, tick: Tick = lambda: None
) -> list[Overflow]:
    """Where the models' buffers overflow first at points, each measured once; the rates of searched ones are tried.

    Raises as times_of.
    """
    found = []
    for point, measurement in measured.items():
        switch = models[point.transport].machine.switch
        if switch is not None:
            of = Overflow(point, switch.buffer_bytes, switch.shared)
            found.append(_searched(of, measurement, models, tick) if is_searched else _seen(of, measurement))
    return found


def _searched(of: Overflow, free: Measurement, models: Models, tick: Tick) -> Overflow:
    """The overflow at the lowest rate with drops, to 2 %."""
    first_hz = 1e9 / max(1.0, float(free.times_ns().mean()))
    tried: dict[int, Measurement] = {}
    while (rate_hz := next_hz(first_hz, _clean(tried))) is not None:
        point = at_rate(of.point, rate_hz)
        measured = times_of([point], models).measured
        if point not in measured or rate_hz > _OFFERED_MAX * first_hz:
            break
        tried[rate_hz] = measured[point]
    tick()
    clean_hz, drops_hz = bounds(_clean(tried))
    ends = replace(of, drops_hz=drops_hz, clean_hz=clean_hz)
    return ends if drops_hz is None else _seen(ends, tried[drops_hz])


def _clean(tried: Mapping[int, Measurement]) -> dict[int, bool]:
    return {rate_hz: not sum(measurement.counters.get(_ALL, ())) for rate_hz, measurement in tried.items()}


def _seen(of: Overflow, measurement: Measurement) -> Overflow:
    drops = measurement.counters.get(_ALL, ())
    if not sum(drops):
        return of
    rank = max(range(len(drops)), key=lambda each: drops[each])
    is_inner = 2 * sum(measurement.counters.get(_INNER, ())) > sum(drops)
    return replace(of, rank=rank, role=_role(of.point, rank), is_inner=is_inner, drops=round(sum(drops)))


def _role(point: Point, rank: int) -> str | None:
    """`builder 1`: the part of a rank in a farm of events."""
    if not point.traits.events:
        return None
    senders = int(dict(point.options).get("senders", 1))
    sending, taking = ("readout", "builder") if point.pattern == "eventbuilder" else ("sender", "receiver")
    return "manager" if rank == 0 else f"{sending} {rank}" if rank <= senders else f"{taking} {rank - senders}"
