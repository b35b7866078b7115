"""LogGP's parameters L, o_s, o_r, g, G for each protocol segment, from round trips with and without delays.

docs/methods.md, "LogGP", has the formulas, in PRTT(n, d): the time of `prtt` for n messages of one size, a delay d
after each, and one answer. Each is a line over the sizes of a segment of the half round trip; L is the half round trip
less the busy times. Negative values stay: LogGP does not describe such a transport.

Sources: A. Alexandrov, M. F. Ionescu, K. E. Schauser, C. Scheiman, LogGP: Incorporating long messages into the LogP
model, SPAA 1995; T. Hoefler, A. Lichei, W. Rehm, Low-overhead LogGP parameter assessment for modern interconnection
networks, IPDPS workshops 2007 (the parametrised round trip); T. Kielmann, H. E. Bal, K. Verstoep, Fast measurement of
LogP parameters for message passing platforms, IPDPS workshops 2000 (o_r behind a delay).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hockney.stats.fit.lines import Lines, NoFit, fit_lines
from hockney.stats.fit.segments import SegmentFit, fit_segments
from hockney.stats.interval import Estimate, t_quantile
from hockney.units import format_bytes

if TYPE_CHECKING:
    from hockney.model import FloatArray


@dataclass(frozen=True)
class RoundTrips:
    """The four times of one size for n messages, and the real length of a delay.

    `errors_ns` are the half-widths of the times' 95 % intervals.
    """

    size_bytes: int
    messages: int
    one_ns: float  # PRTT(1, 0)
    burst_ns: float  # PRTT(n, 0)
    one_delayed_ns: float  # PRTT(1, d)
    spaced_ns: float  # PRTT(n, d)
    delay_ns: float
    errors_ns: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class LogGP:
    """The parameters of one segment. `busy_ns` is o_s + o_r, which is known better than each.

    `residuals` are relative, by line and size: half round trip, time per message, o_s, o_s + o_r. `relative_rms` is
    that of all.
    """

    first_bytes: int
    last_bytes: int
    latency_ns: Estimate  # L
    send_ns: Estimate  # o_s
    receive_ns: Estimate  # o_r
    busy_ns: Estimate
    gap_ns: Estimate  # g
    gap_ns_per_byte: Estimate  # G
    sizes_bytes: tuple[int, ...]
    residuals: Mapping[str, tuple[float, ...]]
    relative_rms: float

    @property
    def rate_bytes_per_s(self) -> Estimate | None:
        """1 / G; None where G's interval includes zero."""
        gap = self.gap_ns_per_byte
        return 1e9 / gap if gap.low > 0 else None

    @property
    def holds(self) -> bool | None:
        """Whether LogGP applies: not if L, o_s or o_r is negative; None if an interval includes zero."""
        parts = (self.latency_ns, self.send_ns, self.receive_ns)
        if any(part.high < 0 for part in parts):
            return False
        return True if all(part.low > 0 for part in parts) else None


def fit_loggp(trips: Sequence[RoundTrips]) -> tuple[LogGP, ...] | NoFit:
    """The parameters of each segment, from sizes in any order, each once."""
    import numpy as np

    rows = sorted(trips, key=lambda row: row.size_bytes)
    if any(row.messages < 2 for row in rows):
        return NoFit("LogGP needs bursts of two messages at least")
    short = next((row for row in rows if row.delay_ns < row.one_ns), None)
    if short is not None:
        return NoFit(
            f"o_s and o_r need a delay longer than a round trip: at {format_bytes(short.size_bytes)} that takes "
            f"{short.one_ns:.0f} ns, the delay {short.delay_ns:.0f} ns"
        )
    sizes = [row.size_bytes for row in rows]
    errors = np.array([row.errors_ns for row in rows]).T
    single = np.array([row.one_ns for row in rows])
    relative = (errors[0] / np.maximum(single, 0.01)).tolist()
    segments = fit_segments(sizes, (single / 2).tolist(), relative)
    if isinstance(segments, NoFit):
        return segments

    n, delays = np.array([row.messages for row in rows]), np.array([row.delay_ns for row in rows])
    alone = np.array([row.one_delayed_ns for row in rows]) - delays  # delays end by the clock
    spaced = np.array([row.spaced_ns for row in rows]) - n * delays
    times = np.array([single, [row.burst_ns for row in rows], alone, spaced])
    none, each = np.zeros(len(rows)), 1 / (n - 1)
    work = np.abs(alone) + 0.01 * single / 2
    # Each value as a sum of the four times without their delays, and the time that its scatter is relative to.
    made = {
        "half_round_trip": ((none + 0.5, none, none, none), single / 2),
        "per_message": ((-each, each, none, none), times[1] * each),
        "send": ((none, none, -each, each), work),
        "busy": ((none, none, none + 1, none), work),
        "receive": ((none, none, 1 + each, -each), work),
    }
    fits: dict[str, tuple[Lines, FloatArray]] = {}
    for name, (parts, level) in made.items():
        off = np.linalg.norm(parts * errors, axis=0) / level / t_quantile(1000)
        values = np.sum(parts * times, axis=0)
        lines, residuals, _ = fit_lines(np.array(sizes, dtype=float), values, off, *segments.groups(), level)
        fits[name] = lines, residuals
    receiving, _ = fits.pop("receive")
    return tuple(_of_segment(segments, which, fits, receiving) for which in range(len(segments.segments)))


def _of_segment(
    segments: SegmentFit, which: int, fits: Mapping[str, tuple[Lines, FloatArray]], receiving: Lines
) -> LogGP:
    (on_way, _), (per_message, _), (sending, _), (both, _) = fits.values()
    on_line = segments.on_line(segments.segments[which])
    residuals = {name: tuple(missed[on_line].tolist()) for name, (_, missed) in fits.items()}
    # The half round trip at 0 B less the busy times; the two lines come from different measurements.
    (whole_ns, whole_var), (busy_ns, busy_var) = on_way.at(which, 0.0), both.at(which, 0.0)
    return LogGP(
        first_bytes=segments.segments[which].first_bytes,
        last_bytes=segments.segments[which].last_bytes,
        latency_ns=on_way.estimate(whole_ns - busy_ns, whole_var + busy_var),
        send_ns=sending.value(which, 0.0),
        receive_ns=receiving.value(which, 0.0),
        busy_ns=both.value(which, 0.0),
        gap_ns=per_message.value(which, 0.0),
        gap_ns_per_byte=per_message.slope_of(which),
        sizes_bytes=tuple(segments.sizes_bytes[at] for at in on_line),
        residuals=residuals,
        relative_rms=math.sqrt(statistics.fmean(off**2 for missed in residuals.values() for off in missed)),
    )
