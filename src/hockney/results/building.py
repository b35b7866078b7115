"""How well a farm builds events: the rate that it reaches, each builder's share, late and lost ones, and fairness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hockney.model import Measurement, Point

SENDING = "send_ns"  # the counter of readouts: how long their sends took


@dataclass(frozen=True)
class Building:
    """Figures of events besides their time; None: not counted, or no such role.

    `events_per_s` is the rate that was reached, `kept` that rate over the one offered, on schedule. `late`: the share
    of the events that started late, because as many as allowed were under way. `lost`: messages. `fairness` among
    readouts is Jain's index of the rates at which they could send: 1 if all are alike, 1/S if one has everything.
    `resent` and `timeouts` are TCP's segments and timers.
    """

    events_per_s: float | None
    kept: float | None
    builder_bytes_per_s: float | None
    late: float | None
    fairness: float | None
    lost: int
    resent: int
    timeouts: int


Counters = Mapping[str, Sequence[float]]  # of a measurement, by name: a value for each rank


def building_of(
    point: Point, time_ns: float, counters: Sequence[Counters], measurements: Sequence[Measurement]
) -> Building:
    """The figures of events, from their time, the counters of all measurements, and those with samples."""
    options = dict(point.options)
    counted = _summed(counters)
    readouts, streams = int(options.get("senders", 1)), int(options.get("streams", 1))
    reached, events = (
        _reached(measurements, point.rate_hz) if point.rate_hz else (1e9 / time_ns if time_ns else None, 0)
    )
    sending = counted.get(SENDING, ())[1 : 1 + readouts]
    event_bytes = readouts * streams * point.bytes if sending else 0
    return Building(
        events_per_s=reached,
        kept=reached / point.rate_hz if reached and point.rate_hz else None,
        builder_bytes_per_s=reached * event_bytes / (point.ranks - 1 - readouts) if reached and event_bytes else None,
        late=counted["late_events"][0] / events if events and "late_events" in counted else None,
        fairness=jain([1 / ns for ns in sending]) if sending and all(sending) else None,
        lost=round(sum(counted.get("lost", ()))),
        resent=round(sum(counted.get("retransmits", ()))),
        timeouts=round(sum(counted.get("timeouts", ()))),
    )


def _summed(counters: Sequence[Counters]) -> dict[str, tuple[float, ...]]:
    """Each counter of each rank, over all measurements."""
    return {
        name: tuple(map(sum, zip(*(each[name] for each in counters if name in each), strict=True)))
        for name in {name for each in counters for name in each}
    }


def _reached(measurements: Sequence[Measurement], offered_hz: float) -> tuple[float | None, int]:
    """The events on schedule per second of rank 0's time, and how many there were.

    The last period is not in that time, so the rate is at most the one offered.
    """
    events = sum(each.elapsed_ns.shape[1] for each in measurements)
    wall_ns = sum(each.wall_ns[0] for each in measurements)
    return (min(1e9 * events / wall_ns, offered_hz) if wall_ns else None), events


def jain(rates: Sequence[float]) -> float:
    """The fairness of rates above 0, from 1 / their number to 1 (Jain, Chiu and Hawe 1984)."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))
