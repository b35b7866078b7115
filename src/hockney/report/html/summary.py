"""The top of the page: which machine, the verdict in three sentences, and the answers to the questions people have."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hockney.analysis.estimates import relative
from hockney.analysis.explain.curve import Curve, CurvePoint
from hockney.analysis.finding import Finding
from hockney.report.findings import evidence_of, grouped, title_of
from hockney.report.html.machines import ArchivePoint, archive_points
from hockney.report.html.material import Material
from hockney.report.words import machine_text, placement_text, spread_text
from hockney.results.runs import Run
from hockney.results.traits import transport_traits
from hockney.stats import Estimate
from hockney.units import counted, format_bytes, format_ns, format_rate

SHORT_BYTES = 4096  # a message up to this size is short
_KINDS = {"memory": "through shared memory", "library": "with a library", "kernel": "through the kernel"}
_GRAVE = 0.25  # effect of a finding that the verdict names
_EVIDENCE_MAX = 150  # characters that it quotes


@dataclass(frozen=True)
class Card:
    """An answer: a question, the answer in a few words, and a line below."""

    question: str
    answer: str
    detail: str


@dataclass(frozen=True)
class Summary:
    """The top of the page; `facts` are pairs of a word and what it is."""

    machine: str
    host: str
    date: str
    facts: tuple[tuple[str, str], ...]
    verdict: tuple[str, ...]
    cards: tuple[Card, ...]


@dataclass(frozen=True)
class Short:
    """A transport's short messages: how many times as long as the best one's, over the sizes that both have."""

    curve: Curve
    kind: str
    times_best: float
    is_equal: bool


def summary_of(material: Material) -> Summary:
    """The top of the page of these runs."""
    run = material.run
    return Summary(
        machine=machine_text(run.facts),
        host=str(run.facts.get("hostname") or "unknown host"),
        date=utc(run.info.started_unix_s),
        facts=tuple(_facts(run)),
        verdict=tuple(_verdict(material)),
        cards=tuple(_cards(material)),
    )


def utc(unix_s: float) -> str:
    """`2026-03-01 14:05 UTC`."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(unix_s))


def _facts(run: Run) -> Iterable[tuple[str, str]]:
    label = f" “{run.label}”" if run.label else ""
    launches = len({launch.index for launch in run.launches.values()})
    yield "Run", f"{run.id}{label}, {run.info.suite}, {run.status.value}"
    placement = placement_text(run)
    if placement:
        yield "Ranks", placement
    yield "Launches", f"{counted(launches, 'launch', 'launches')} of each job"
    yield "Command", run.info.command
    yield "Version", f"hockney {run.info.version}"


# ---- the verdict ----------------------------------------------------------------------------------------------------


def _verdict(material: Material) -> Iterable[str]:
    """How fast; what to use for short messages; what is wrong, and how sure all this is."""
    if material.reading is None:
        yield "No figure of this run has a confidence interval yet, so there is no verdict."
        return
    latency, rate = _best_latency(material), _best_rate(material)
    if latency is not None:
        text = f"A message of {format_bytes(latency[1].bytes)} takes {_time(latency[1].time_ns)} on "
        text += f"{material.name_of(latency[0].transport)}, the fastest transport of this run"
        text += f"; long messages reach {_rate(rate[1])} on {material.name_of(rate[0].transport)}." if rate else "."
        yield text
    elif rate is not None:
        yield f"Messages reach {_rate(rate[1])} on {material.name_of(rate[0].transport)}, the most of this run."
    elif not _curves(material):
        yield "There were more ranks than CPUs, so these are times of the scheduler."
    else:
        yield "This run has no messages between two ranks alone; its times are in the charts and tables below."
    shorts = short_messages(material)
    if len(shorts) > 1:
        yield _choice(material, shorts)
    grave = _gravest(material)
    yield f"{_wrong(material, grave)} {_certainty(material)}"


def _time(time: Estimate) -> str:
    return f"{format_ns(time.value)} {_spread(time)}".rstrip()


def _rate(rate: Estimate) -> str:
    return f"{format_rate(rate.value)} {_spread(rate)}".rstrip()


def _spread(value: Estimate) -> str:
    """Empty of a model, which is exact."""
    return spread_text(relative(value)) if value.low < value.high else ""


def _curves(material: Material) -> list[Curve]:
    if material.reading is None:
        return []
    return [curve for curve in material.reading.curves if curve.points and not curve.oversubscribed]


def _best_latency(material: Material) -> tuple[Curve, CurvePoint] | None:
    """The shortest half round trip of the smallest size that is no empty message."""
    points = [
        (curve, next((point for point in curve.points if point.bytes), curve.points[0]))
        for curve in _curves(material)
        if curve.name == "pingpong"
    ]
    smallest = min((point.bytes for _, point in points), default=0)
    return min(
        (pair for pair in points if pair[1].bytes == smallest), key=lambda pair: pair[1].time_ns.value, default=None
    )


def _best_rate(material: Material) -> tuple[Curve, Estimate] | None:
    """The highest rate in one direction between two ranks."""
    rates = [
        (curve, rate)
        for curve in _curves(material)
        if curve.pattern in ("pingpong", "oneway") and curve.ranks == 2
        for point in curve.points
        if (rate := point.rate_bytes_per_s) is not None
    ]
    return max(rates, key=lambda pair: pair[1].value, default=None)


def short_messages(material: Material) -> list[Short]:
    """The transports of the state of the fastest one by their short messages, the best first."""
    curves = [curve for curve in _curves(material) if curve.name == "pingpong"]
    best = _best_latency(material)
    if best is None:
        return []
    alike = [curve for curve in curves if (curve.state, curve.ranks) == (best[0].state, best[0].ranks)]
    sizes = [size for size in best[0].sizes if 0 < size <= SHORT_BYTES and all(curve.at(size) for curve in alike)]
    if not sizes:
        return []
    logs = {
        curve.transport: statistics.fmean(math.log(time.value) for size in sizes if (time := curve.at(size)))
        for curve in alike
    }
    first = min(alike, key=lambda curve: logs[curve.transport])
    shorts = [
        Short(
            curve,
            transport_traits(material.run.facts, curve.transport).carrier,
            math.exp(logs[curve.transport] - logs[first.transport]),
            all(_overlap(curve.at(size), first.at(size)) for size in sizes),
        )
        for curve in alike
    ]
    return sorted(shorts, key=lambda short: short.times_best)


def _overlap(a: Estimate | None, b: Estimate | None) -> bool:
    return a is not None and b is not None and a.low <= b.high and b.low <= a.high


def _choice(material: Material, shorts: Sequence[Short]) -> str:
    """`Up to 4 KiB, shm is the fastest; with a library it is MPICH 4.0.2 (3.2 times as long), …`."""
    best = shorts[0]
    others = []
    if best.curve.transport == "threads":
        between = (short for short in shorts if short.kind == "memory" and short is not best)
        others += [f"between processes it is {_named(material, short)}" for short in between][:1]
    for kind, words in _KINDS.items():
        first = next((short for short in shorts if short.kind == kind), None)
        if first is not None and kind != best.kind:
            others.append(f"{words} it is {_named(material, first)}")
    text = f"Up to {format_bytes(SHORT_BYTES)}, {material.name_of(best.curve.transport)} is the fastest"
    return f"{text}; {', '.join(others)}." if others else f"{text}."


def _named(material: Material, short: Short) -> str:
    digits = 2 if short.times_best < 1.995 else 1 if short.times_best < 9.95 else 0
    times = f"{short.times_best:,.{digits}f}"
    factor = "as fast within the intervals" if short.is_equal else f"{times} times as long"
    return f"{material.name_of(short.curve.transport)} ({factor})"


def _gravest(material: Material) -> Finding | None:
    """The strongest finding that something can be done about, else the strongest."""
    if material.explanation is None:
        return None
    groups = [group[0] for group in grouped(material.explanation.findings)]
    wrong = [each for each in groups if each.code not in ("flat latency", "drift") and each.effect >= _GRAVE]
    return next((each for each in wrong if each.fix), wrong[0] if wrong else None)


def _wrong(material: Material, finding: Finding | None) -> str:
    if finding is None:
        return "Nothing stands out as wrong in this run."
    about = material.name_of(finding.subject.transport)
    evidence = evidence_of(finding)
    shown = f" {evidence[:1].upper()}{evidence[1:]}" if len(evidence) <= _EVIDENCE_MAX else ""
    title = f"{title_of(finding)}.{shown}".rstrip()
    return f"Look first at {about}: {title}" if about else f"Look first at this: {title}"


def _certainty(material: Material) -> str:
    spread = _typical_spread(material)
    if spread == 0:
        return "The figures are those of a model, which is exact."
    launches = len({launch.index for launch in material.run.launches.values()})
    known = f"Half of the figures are known to {spread_text(spread)} or better" if spread is not None else ""
    if launches == 1:
        return f"{known}, within one launch: how much launches differ is not known." if known else ""
    return f"{known}, over {launches} launches." if known else ""


def _typical_spread(material: Material) -> float | None:
    spreads = [relative(point.time_ns) for curve in _curves(material) for point in curve.points]
    return statistics.median(spreads) if spreads else None


# ---- the cards ------------------------------------------------------------------------------------------------------


def _cards(material: Material) -> Iterable[Card]:
    latency, rate, spread = _best_latency(material), _best_rate(material), _typical_spread(material)
    if latency is not None:
        size = format_bytes(latency[1].bytes)
        where = material.name_of(latency[0].transport)
        yield Card("Latency", format_ns(latency[1].time_ns.value), f"{size} on {where} {_spread(latency[1].time_ns)}")
    if rate is not None:
        yield Card(
            "Bandwidth", format_rate(rate[1].value), f"on {material.name_of(rate[0].transport)} {_spread(rate[1])}"
        )
    shorts = short_messages(material)
    if len(shorts) > 1:
        library = next((short for short in shorts if short.kind == "library"), None)
        detail = f"for MPI programs: {material.name_of(library.curve.transport)}" if library else "the least time"
        yield Card(f"Up to {format_bytes(SHORT_BYTES)}, use", material.name_of(shorts[0].curve.transport), detail)
    if spread:  # a model's is 0
        launches = len({launch.index for launch in material.run.launches.values()})
        detail = f"half of all figures, 95 % intervals, {counted(launches, 'launch', 'launches')}"
        yield Card("How sure", spread_text(spread), detail)
    then = _in_the_nineties(latency)
    if then is not None and latency is not None and _spread(latency[1].time_ns):  # a model may be one of these
        factor = then.latency_ns / latency[1].time_ns.value
        detail = f"{then.title}, {then.year}: {format_ns(then.latency_ns)}"
        yield Card("Latency in the 1990s", f"{factor:,.0f} times" if factor >= 9.5 else f"{factor:.1f} times", detail)


def _in_the_nineties(latency: object) -> ArchivePoint | None:
    """The fastest machine of the archive before 2000."""
    old = [point for point in archive_points() if point.year < 2000]
    return min(old, key=lambda point: point.latency_ns, default=None) if latency else None
