"""LogGP's parameters of a run that has measured the pattern prtt, per state of the machine; as the suite loggp does."""

from __future__ import annotations

from collections.abc import Mapping

from hockney.fit import LogGP, NoFit, RoundTrips, fit_loggp
from hockney.library import Run, Series

_Times = dict[tuple[int, int], float]  # by messages and the delay that was asked for


def loggp_of(run: Run, transport: str) -> dict[str, tuple[LogGP, ...] | NoFit]:
    """By the state's name, over the sizes that have all four times in that state."""
    states: dict[str, dict[int, _Times]] = {}
    delays: dict[int, float] = {}
    for series in run.find(transport=transport, pattern="prtt"):
        messages, delay_ns = _options(series)
        for figure in series.figures():
            states.setdefault(figure.state, {}).setdefault(series.point.bytes, {})[messages, delay_ns] = figure.value_ns
        if delay_ns > 0 and messages > 1 and (really_ns := _delay_ns(series)) is not None:
            delays[series.point.bytes] = really_ns
    return {state: _fit(sizes, delays) for state, sizes in states.items()}


def _options(series: Series) -> tuple[int, int]:
    given = dict(series.point.options)
    return int(given.get("messages", 1)), int(given.get("delay_ns", 0))


def _delay_ns(series: Series) -> float | None:
    """What a delay really took: the source alone counts them."""
    counted = [visit.counters for visit in series.visits if visit.counters]
    delays = sum(sum(counters["delays"]) for counters in counted)
    return sum(sum(counters["delay_ns"]) for counters in counted) / delays if delays else None


def _fit(sizes: Mapping[int, _Times], delays: Mapping[int, float]) -> tuple[LogGP, ...] | NoFit:
    messages = max((n for times in sizes.values() for n, _ in times), default=1)
    delay_ns = max((d for times in sizes.values() for _, d in times), default=0)
    wanted = [(1, 0), (messages, 0), (1, delay_ns), (messages, delay_ns)]
    if messages == 1 or delay_ns == 0:
        return NoFit("LogGP needs prtt with one message and with several, each with a delay and without")
    trips = []
    for size, times in sizes.items():
        if size in delays and all(key in times for key in wanted):
            one_ns, burst_ns, one_delayed_ns, spaced_ns = (times[key] for key in wanted)
            trips.append(RoundTrips(size, messages, one_ns, burst_ns, one_delayed_ns, spaced_ns, delays[size]))
    return fit_loggp(trips)
