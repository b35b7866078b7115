"""What is fitted to a run: the straight segments of each transport's curve, and LogGP's parameters where prtt ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hockney.explain.curve import Curve, Reading
from hockney.explain.finding import sizes_text
from hockney.explain.shape import curves_of_shapes, segments_of
from hockney.fit import Estimate, LogGP, NoFit


@dataclass(frozen=True)
class Line:
    """A segment of a curve: t_0 where its line meets size 0, the rate it approaches, and what it misses at most.

    `relative_rms` is of (measured - fitted) / fitted. r_inf and n_1/2 are None where the figures don't tell them.
    """

    transport: str
    pattern: str
    ranks: int
    state: str
    first_bytes: int
    last_bytes: int
    sizes: int
    t0_ns: Estimate
    r_inf_bytes_per_s: Estimate | None
    n_half_bytes: Estimate | None
    relative_rms: float


@dataclass(frozen=True)
class Parameters:
    """LogGP's parameters of one segment of a transport's round trips (`pattern` has their options) in one state."""

    transport: str
    pattern: str
    ranks: int
    state: str
    loggp: LogGP


def lines_of(reading: Reading) -> tuple[tuple[Line, ...], dict[str, str]]:
    """The lines of each curve whose shape is looked at, and by its name why a curve has none.

    Of curves between several pairs of ranks there are none: the matrix tells of them.
    """
    lines: list[Line] = []
    without: dict[str, str] = {}
    curves = curves_of_shapes(reading)
    pairs = Counter(curve.place for curve in curves if _names_its_pair(curve))
    for curve in curves:
        if _names_its_pair(curve) and pairs[curve.place] > 1:
            continue
        fit = segments_of(curve)
        if isinstance(fit, NoFit):
            without[f"{curve.name} on {curve.transport}"] = fit.reason
            continue
        lines.extend(
            Line(
                curve.transport,
                curve.name,
                curve.ranks,
                curve.state,
                segment.first_bytes,
                segment.last_bytes,
                segment.sizes,
                segment.t0_ns,
                segment.r_inf_bytes_per_s,
                segment.n_half_bytes,
                segment.relative_rms,
            )
            for segment in fit.segments
        )
    return tuple(lines), without


def _names_its_pair(curve: Curve) -> bool:
    return curve.option("source") is not None or curve.option("target") is not None


def parameters_of(reading: Reading) -> tuple[tuple[Parameters, ...], dict[str, str]]:
    """LogGP's parameters, and by its name why a transport that ran prtt has none."""
    found: list[Parameters] = []
    without: dict[str, str] = {}
    for one in reading.loggp:
        pattern = " ".join(["prtt", *(f"{name}={value}" for name, value in one.options)])
        name = f"LogGP of {pattern} on {one.transport}, {one.ranks} ranks ({one.state})"
        if isinstance(one.found, NoFit):
            without[name] = one.found.reason
        else:
            found.extend(Parameters(one.transport, pattern, one.ranks, one.state, each) for each in one.found)
        if one.short_bytes:
            without[f"{name} {sizes_text(one.short_bytes)}"] = "the delay is shorter than the round trip there"
    return tuple(found), without


def by_reason(found: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """What has no fit and why: names that share a reason together."""
    names: dict[str, list[str]] = {}
    for name, reason in found.items():
        names.setdefault(reason, []).append(name)
    return ((", ".join(own), reason) for reason, own in names.items())
