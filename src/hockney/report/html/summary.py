"""The top of the page: which machine, the verdict in three sentences, and the answers to the questions people have."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hockney.analysis.explain import Explanation
from hockney.analysis.explain.curve import MeasuredCurve
from hockney.analysis.health.matrices import SUITE
from hockney.report.findings import check_name, evidence_of, gap_text, grouped, title_of
from hockney.report.html.findings import is_problem
from hockney.report.html.machines import archive_points, best_rate, pingpongs
from hockney.report.html.material import Material
from hockney.report.words import launches_text, machine_text, placement_text, spread_text
from hockney.results.runs import Run
from hockney.results.traits import transport_traits
from hockney.stats import Estimate
from hockney.units import counted, format_bytes, format_ns, format_rate

_TITLES_MAX = 5
_ROUGH = 0.3  # the typical uncertainty of figures that are no good for small differences
_KINDS = {"memory": "through shared memory", "library": "of libraries", "kernel": "through the kernel"}


@dataclass(frozen=True)
class Card:
    """An answer: a question, the answer in a few words, and a line below."""

    question: str
    answer: str
    detail: str


@dataclass(frozen=True)
class Summary:
    """The top of the page; `facts` are pairs of a word and its value."""

    machine: str
    host: str
    date: str
    facts: tuple[tuple[str, str], ...]
    verdict: tuple[str, ...]
    cards: tuple[Card, ...]


@dataclass(frozen=True)
class Short:
    """A transport's time of the shortest message. `is_equal`: its interval overlaps with the best one's."""

    transport: str
    kind: str
    bytes: int
    time_ns: Estimate
    times_best: float
    is_equal: bool


@dataclass(frozen=True)
class Rate:
    """The highest rate in one direction between two ranks, and the messages that it was measured with."""

    transport: str
    rate: Estimate
    messages: str


def summary_of(material: Material) -> Summary:
    """The top of the page of these runs."""
    run, models = material.run, _models(material)
    shorts, rate = short_messages(material), _best_rate(material)
    return Summary(
        machine=" and ".join(models) or machine_text(run.facts),
        host=str(run.facts.get("hostname") or "unknown host"),
        date=utc(run.info.started_unix_s),
        facts=(*_facts(run), *[("On", machine_text(run.facts))] * bool(models)),
        verdict=tuple(_verdict(material, shorts, rate)),
        cards=tuple(_cards(material, shorts, rate)),
    )


def _models(material: Material) -> list[str]:
    """`Model gpmimd`; none where the run is of a real machine, too."""
    run = material.run
    measured = {series.point.transport for series in run.series if series.measurements_by_state}
    if not measured <= run.info.plan.get("virtual", {}).keys():
        return []
    names = sorted({transport.partition(":")[0] for transport in measured})
    return [name[:1].upper() + name[1:] for name in map(material.name_of, names)]


def utc(unix_s: float) -> str:
    """`2026-03-01 14:05 UTC`."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(unix_s))


def _facts(run: Run) -> Iterable[tuple[str, str]]:
    label = f" “{run.label}”" if run.label else ""
    yield "Run", f"{run.id}{label}, {run.info.suite}, {run.status.value}"
    placement = placement_text(run)
    if placement:
        yield "Ranks", placement.removesuffix(".")
    yield "Launches", launches_text(run)
    yield "Command", run.info.command
    yield "Version", f"hockney {run.info.version}"


# ---- figures --------------------------------------------------------------------------------------------------------


def _curves(material: Material) -> list[MeasuredCurve]:
    if material.reading is None:
        return []
    return [curve for curve in material.reading.curves if curve.points and not curve.oversubscribed]


def short_messages(material: Material) -> list[Short]:
    """The transports of the state of the fastest one by their shortest message that is not empty, the best first."""
    points = [
        (curve, next((point for point in curve.points if point.bytes), curve.points[0]))
        for curve in _curves(material)
        if curve.name == "pingpong"
    ]
    if not points:
        return []
    size = min(point.bytes for _, point in points)
    best, least = min(
        ((curve, point.time_ns) for curve, point in points if point.bytes == size), key=lambda pair: pair[1].value
    )
    shorts = [
        Short(
            curve.transport,
            transport_traits(material.run.facts, curve.transport).carrier,
            size,
            time_ns,
            time_ns.value / least.value,
            time_ns.low <= least.high and least.low <= time_ns.high,
        )
        for curve, _ in points
        if (curve.state, curve.ranks) == (best.state, best.ranks) and (time_ns := curve.at(size)) is not None
    ]
    return sorted(shorts, key=lambda short: short.times_best)


def _best_rate(material: Material) -> Rate | None:
    """The bandwidth of the data sheet; without one, the highest rate of the curves."""
    rows = [] if material.sheet is None else [row for row in material.sheet.rows if not row.oversubscribed]
    rates = [
        Rate(row.transport, value, f"messages of {format_bytes(value.at_bytes)}, 16 in flight,")
        for row in rows
        if (value := row.values["bandwidth_bytes_per_s"]) is not None and value.has_interval and value.at_bytes
    ]
    rates = rates or [
        Rate(curve.transport, rate, f"messages of {format_bytes(point.bytes)}")
        for curve in _curves(material)
        if curve.pattern in ("pingpong", "oneway") and curve.ranks == 2
        for point in curve.points
        if (rate := point.rate_bytes_per_s) is not None
    ]
    return max(rates, key=lambda each: each.rate.value, default=None)


def _spreads(material: Material) -> list[float]:
    return [point.time_ns.relative for curve in _curves(material) for point in curve.points]


def _spread(value: Estimate) -> str:
    """` ±4%`; empty of a model, which is exact."""
    return f" {spread_text(value.relative)}" if value.low < value.high else ""


# ---- the verdict ----------------------------------------------------------------------------------------------------


def _verdict(material: Material, shorts: Sequence[Short], rate: Rate | None) -> Iterable[str]:
    """Speed, the choice for short messages, the strongest problem, and the certainty of all this."""
    if material.run.info.suite == SUITE and material.explanation is not None:
        yield from _verdict_on_hosts(material.explanation)
        return
    if material.reading is None:
        yield "No figure of this run has a confidence interval yet, so there is no verdict."
        return
    speeds = []
    for best in shorts[:1]:
        time_text = f"{format_ns(best.time_ns.value)}{_spread(best.time_ns)}"
        speeds.append(
            f"a message of {format_bytes(best.bytes)} takes {time_text} on {material.name_of(best.transport)}"
        )
    if rate is not None:
        reached = f"{format_rate(rate.rate.value)}{_spread(rate.rate)} on {material.name_of(rate.transport)}"
        speeds.append(f"{rate.messages} reach {reached}")
    if speeds:
        text = "; ".join(speeds)
        yield f"{text[0].upper()}{text[1:]}."
    elif not _curves(material):
        yield "There were more ranks than CPUs, so these are times of the scheduler."
    else:
        yield "This run has no messages between two ranks alone; its times are in the charts and tables below."
    if len(shorts) > 1:
        yield _choice(material, shorts)
    yield f"{_wrong(material)} {_certainty(material)}"


def _verdict_on_hosts(explanation: Explanation) -> Iterable[str]:
    """The faults, the worst first, and what is inconclusive."""
    titles = [title_of(finding) for finding in explanation.findings]
    more = f"; and {len(titles) - _TITLES_MAX} more" if len(titles) > _TITLES_MAX else ""
    if titles:
        yield f"Found among the hosts: {'; '.join(titles[:_TITLES_MAX])}{more}."
    else:
        yield "No fault was found, but not all was checked." if explanation.not_checked else "No fault was found."
    for gap in explanation.not_checked:
        text = f"{check_name(gap)}: {gap.reason.value}: {gap_text(gap)}"
        yield f"{text[0].upper()}{text[1:]}".rstrip(".?") + ("?" if text.endswith("?") else ".")


def _choice(material: Material, shorts: Sequence[Short]) -> str:
    """`At 8 B, threads and shm show no measurable difference; of libraries, MPICH 4.0.2 is fastest (137 ns, …)`."""
    equal = [short for short in shorts if short.is_equal]
    names = listed([material.name_of(short.transport) for short in equal], "and")
    parts = [f"At {format_bytes(shorts[0].bytes)}, {names} "]
    parts[0] += "show no measurable difference" if len(equal) > 1 else "is fastest"
    for kind, words in _KINDS.items():
        first = next((short for short in shorts if short.kind == kind), None)
        if first is not None and kind not in {short.kind for short in equal}:
            times = f"{format_ns(first.time_ns.value)}, {_times(first.times_best)} as long"
            parts.append(f"{words}, {material.name_of(first.transport)} is fastest ({times})")
    return f"{'; '.join(parts)}."


def listed(names: Sequence[str], word: str) -> str:
    """`shm, threads and tcp`."""
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _times(factor: float) -> str:
    """`3.1 times`."""
    digits = 2 if factor < 1.995 else 1 if factor < 9.95 else 0
    return f"{factor:,.{digits}f} times"


def _wrong(material: Material) -> str:
    """The strongest problem that has a fix, else the strongest one."""
    groups = grouped(material.explanation.findings) if material.explanation is not None else []
    wrong = [group[0] for group in groups if is_problem(group[0]) and group[0].effect >= 0.25]
    finding = next((each for each in wrong if each.fix), wrong[0] if wrong else None)
    if finding is None:
        return "Nothing stands out as wrong in this run."
    about = material.name_of(finding.subject.transport)
    values = {name: fact.value if isinstance(fact, Estimate) else fact for name, fact in finding.facts.items()}
    short = replace(finding, facts=values)  # the list of findings has the intervals
    evidence = evidence_of(short)
    shown = f" {evidence[:1].upper()}{evidence[1:]}" if len(evidence) <= 150 else ""
    return f"Strongest problem{f', on {about}' if about else ''}: {title_of(short)}.{shown}".rstrip()


def _certainty(material: Material) -> str:
    spreads, launches = _spreads(material), material.run.launch_count
    if not spreads:
        return ""
    spread = statistics.median(spreads)
    if spread == 0:
        return "The figures are those of a model, which is exact."
    begin, end = ("Rough figures: the", " Good for factors of two, not for 10 %.") if spread > _ROUGH else ("The", "")
    over = "within one launch: how much launches differ is not known" if launches == 1 else f"over {launches} launches"
    return f"{begin} typical uncertainty is {spread_text(spread)}, {over}.{end}"


# ---- the cards ------------------------------------------------------------------------------------------------------


def _cards(material: Material, shorts: Sequence[Short], rate: Rate | None) -> Iterable[Card]:
    best = shorts[0] if shorts else None
    if best is not None:
        where = f"{format_bytes(best.bytes)} on {material.name_of(best.transport)}"
        yield Card("Latency", format_ns(best.time_ns.value), f"{where}{_spread(best.time_ns)}")
    if rate is not None:
        where = f"{rate.messages.rstrip(',')} on {material.name_of(rate.transport)}"
        yield Card("Bandwidth", format_rate(rate.rate.value), f"{where}{_spread(rate.rate)}")
    if best is not None and len(shorts) > 1:
        library = next((short for short in shorts if short.kind == "library"), None)
        detail = f"for MPI programs: {material.name_of(library.transport)}" if library else "the least time"
        names = listed([material.name_of(short.transport) for short in shorts if short.is_equal], "or")
        yield Card(f"At {format_bytes(best.bytes)}, use", names, detail)
    spreads, launches = _spreads(material), counted(material.run.launch_count, "launch", "launches")
    if spreads and (spread := statistics.median(spreads)):  # a model's is 0
        headline = f"latency above{_spread(best.time_ns)}, " if best is not None else ""
        detail = f"half of all figures; {headline}the worst {spread_text(max(spreads))} (95 %, {launches})"
        yield Card("How sure", spread_text(spread), detail)
    if best is not None and best.time_ns.low < best.time_ns.high:  # a model may be one of these
        then = min((point for point in archive_points() if point.year < 2000), key=lambda point: point.latency_ns)
        factor = then.latency_ns / best.time_ns.value
        answer = f"{_times(factor)} shorter" if factor >= 1 else f"{_times(1 / factor)} longer"
        detail = f"than a {then.title}'s ({format_ns(then.latency_ns)}, {then.year})"
        rates = [best_rate(curve) for curve in pingpongs(material, material.run)]
        if any(rates):
            detail += f"; {_times(max(rates) / then.rate_bytes_per_s)} its bandwidth"
        yield Card("Latency now", answer, detail)
