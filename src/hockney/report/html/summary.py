"""The top of the page: which machine, the verdict in three sentences, and the answers to the questions people have."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hockney.analysis.explain import Explanation
from hockney.analysis.explain.curve import MeasuredCurve
from hockney.analysis.health.matrices import SUITE
from hockney.report.findings import check_name, evidence_of, gap_text, grouped, title_of
from hockney.report.html.curves import CurveData
from hockney.report.html.machines import archive_points, pingpongs
from hockney.report.html.material import Material
from hockney.report.table import TextTable, text_rows
from hockney.report.words import (
    NOTHING,
    ROUGH,
    figure_text,
    launches_text,
    machine_text,
    percent_text,
    placement_text,
    precision_reached,
)
from hockney.results.runs import Run
from hockney.results.traits import transport_traits
from hockney.stats import Estimate
from hockney.units import format_bytes, format_ns, format_rate, listed

_TITLES_MAX = 5
_KINDS = {"library": "MPI and other libraries", "kernel": "sockets and pipes", "memory": "shared memory"}  # in order
_LEADERS_MAX = 3


@dataclass(frozen=True)
class Card:
    """An answer: a question, the answer in a few words, and a line below."""

    question: str
    answer: str
    detail: str


@dataclass(frozen=True)
class Summary:
    """The top of the page; `facts` are pairs of a word and its value, `choices` say which transport for which size."""

    machine: str
    host: str
    date: str
    facts: tuple[tuple[str, str], ...]
    verdict: tuple[str, ...]
    cards: tuple[Card, ...]
    choices: TextTable | None


@dataclass(frozen=True)
class Candidate:
    """A transport with a figure of it; `what` says of which messages, `is_range` as of a Figure."""

    transport: str
    value: Estimate
    what: str = ""
    is_range: bool = False


def summary_of(material: Material) -> Summary:
    """The top of the page of these runs."""
    run, models = material.run, _models(material)
    latency, rate = _headlines(material)
    return Summary(
        machine=" and ".join(models) or machine_text(run.facts),
        host=str(run.facts.get("hostname") or "unknown host"),
        date=utc(run.info.started_unix_s),
        facts=(*_facts(run), *[("On", machine_text(run.facts))] * bool(models)),
        verdict=tuple(_verdict(material, latency, rate)),
        cards=tuple(_cards(material, latency, rate)),
        choices=choices_of(material),
    )


def _models(material: Material) -> list[str]:
    """`Model gpmimd`; none where the run is of a real machine, too."""
    run = material.run
    measured = {series.point.transport for series in run.series if series.counts}
    if not measured <= run.info.plan.get("virtual", {}).keys():
        return []
    names = sorted({transport.partition(":")[0] for transport in measured})
    return [name[:1].upper() + name[1:] for name in map(material.name_of, names)]


def utc(unix_s: float) -> str:
    """`2026-03-01 14:05 UTC`."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(unix_s))


def _facts(run: Run) -> Iterable[tuple[str, str]]:
    label = f" “{run.label}”" if run.label else ""
    yield "Run", f"{run.id}{label}, {run.info.suite}, {run.ending}"
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


def _classes(material: Material) -> dict[str, list[CurveData]]:
    """The ping-pongs of two ranks that no scheduler timed, by the words for their class, your own library's first."""
    oversubscribed = {launch.transport for launch in material.run.launches.values() if launch.oversubscribed}
    curves = [each for each in pingpongs(material, material.run) if each.transport not in oversubscribed]
    carriers = {each.transport: transport_traits(material.run.facts, each.transport).carrier for each in curves}
    classes = {words: [each for each in curves if carriers[each.transport] == kind] for kind, words in _KINDS.items()}
    return {words: members for words, members in classes.items() if members}


def _headlines(material: Material) -> tuple[list[Candidate], list[Candidate]]:
    """The shortest times of a message, and the highest rates, of the first class that has any; see _leaders."""
    rates = _rates(material)
    for curves in _classes(material).values():
        size = min((size for curve in curves for size in curve.times_ns if size), default=None)
        if size is not None:
            what = f"a message of {format_bytes(size)}"
            timed = [each for each in curves if size in each.times_ns]
            times = [Candidate(each.transport, each.times_ns[size], what, size in each.ranges) for each in timed]
            names = {each.transport for each in curves}
            return _leaders(times), _leaders([each for each in rates if each.transport in names], -1)
    return [], _leaders(rates, -1)


def _rates(material: Material) -> list[Candidate]:
    """The bandwidth of the data sheet; without one, the rates of all curves."""
    rows = [] if material.sheet is None else [row for row in material.sheet.rows if not row.oversubscribed]
    rates = [
        Candidate(row.transport, value, f"messages of {format_bytes(value.at_bytes)}, 16 in flight,", value.is_range)
        for row in rows
        if (value := row.values["bandwidth_bytes_per_s"]) is not None and value.at_bytes
    ]
    return rates or [
        Candidate(curve.transport, rate, f"messages of {format_bytes(point.bytes)}")
        for curve in _curves(material)
        if curve.pattern in ("pingpong", "oneway") and curve.ranks == 2
        for point in curve.points
        if (rate := point.rate_bytes_per_s) is not None
    ]


def _leaders(candidates: Sequence[Candidate], sign: int = 1) -> list[Candidate]:
    """The best of each transport, the best of all first, where bounds overlap with that; a `sign` of 1: the least."""
    of_each: dict[str, Candidate] = {}
    for each in sorted(candidates, key=lambda each: sign * each.value.value):
        of_each.setdefault(each.transport, each)
    ordered = list(of_each.values())
    return [
        each for each in ordered if each.value.low <= ordered[0].value.high and ordered[0].value.low <= each.value.high
    ]


def choices_of(material: Material) -> TextTable | None:
    """Which transport of each class is fastest up to 4 KiB, and above; None where no class has a choice."""
    rows = []
    for words, curves in _classes(material).items():
        sizes = sorted(set.intersection(*(set(curve.times_ns) for curve in curves)) - {0})
        parts = [size for size in sizes if size <= 4096], [size for size in sizes if size > 4096]
        means = [
            [
                Candidate(each.transport, _mean([each.times_ns[n] for n in part]), is_range=bool(each.ranges & {*part}))
                for each in curves
                if part
            ]
            for part in parts
        ]
        rows.append((words, *(_leader_text(material, _leaders(part)) or NOTHING for part in means)))
    return (
        TextTable(
            "Which transport up to 4 KiB, and above?",
            ("class", "up to 4 KiB", "above"),
            text_rows(rows),
            notes=("By the mean of ping-pong times over all sizes; probably: bounds overlap, or are ranges.",),
        )
        if any(len(curves) > 1 for curves in _classes(material).values())
        else None
    )


def _mean(times: Sequence[Estimate]) -> Estimate:
    """The geometric mean of times, with those of their bounds."""
    ends = zip(*((time.value, max(time.low, 1e-3), time.high) for time in times), strict=True)
    return Estimate(*map(statistics.geometric_mean, ends))


def _known(value: Estimate, text: Callable[[float], str], *, is_range: bool) -> str:
    return " ".join(filter(None, figure_text(value, text, is_range=is_range)))


def _leader_text(material: Material, leaders: Sequence[Candidate], on: str = "") -> str:
    """`Open MPI 4.1.4`, or `probably Open MPI 4.1.4 or MPICH 4.0.2`; with `on ` before the names if that is given."""
    names = [material.name_of(each.transport) for each in leaders]
    is_probable = len(leaders) > 1 or any(each.is_range for each in leaders)
    return f"{'probably ' * is_probable}{on}{listed(names, _LEADERS_MAX, word='or')}" if names else ""


# ---- the verdict ----------------------------------------------------------------------------------------------------


def _verdict(material: Material, latency: Sequence[Candidate], rate: Sequence[Candidate]) -> Iterable[str]:
    """The speed of your own library, the strongest problem, and the certainty of all this."""
    if material.run.info.suite == SUITE and material.explanation is not None:
        yield from _verdict_on_hosts(material.explanation)
        return
    if material.reading is None:
        yield "No figure of this run has a confidence interval in one machine state yet, so there is no verdict."
        return
    speeds = []
    for leaders, verb, text in ((latency, "takes", format_ns), (rate, "reach", format_rate)):
        if leaders:
            where = _leader_text(material, leaders, "on ")
            known = _known(leaders[0].value, text, is_range=leaders[0].is_range)
            speeds.append(f"{leaders[0].what} {verb} {known} {where}")
    if speeds:
        joined = "; ".join(speeds)
        yield f"{joined[0].upper()}{joined[1:]}."
    elif not _curves(material):
        yield "There were more ranks than CPUs, so these are times of the scheduler."
    else:
        yield "This run has no messages between two ranks alone; its times are in the charts and tables below."
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


def _wrong(material: Material) -> str:
    """The strongest problem."""
    groups = grouped(material.explanation.findings) if material.explanation is not None else []
    strongest = (group[0] for group in groups if group[0].is_problem or group[0].code == "busy machine")
    finding = next(strongest, None)
    if finding is None:
        return "Nothing stands out as wrong in this run."
    about = material.name_of(finding.subject.transport)
    evidence = evidence_of(finding)
    shown = f" {evidence}" if len(evidence) <= 150 else ""
    return f"Strongest problem{f', on {about}' if about else ''}: {title_of(finding)}.{shown}".rstrip()


def _certainty(material: Material) -> str:
    run, spread = material.run, precision_reached(material.run)
    if spread == 0:
        return "The figures are those of a model, which is exact."
    if spread == math.inf:
        return "Rough figures: most have no confidence interval in one machine state." if run.shown else ""
    is_of_one = all(figure.n_launches == 1 for figure in run.shown)
    over = "within one launch: how much launches differ is not known" if is_of_one else f"over {launches_text(run)}"
    if spread > ROUGH / 2:
        good = "factors of two, not for 10 %" if spread < 1 else "orders of magnitude"
        return f"Rough figures: the typical uncertainty is {percent_text(spread)}. Good for {good}; {over}."
    return f"The typical uncertainty is {percent_text(spread)}, {over}."


# ---- the cards ------------------------------------------------------------------------------------------------------


def _cards(material: Material, latency: Sequence[Candidate], rate: Sequence[Candidate]) -> Iterable[Card]:
    for question, leaders, text in (("Latency", latency, format_ns), ("Bandwidth", rate, format_rate)):
        if leaders:
            what = leaders[0].what.rstrip(",").removeprefix("a message of ")
            value, bounds = figure_text(leaders[0].value, text, is_range=leaders[0].is_range)
            yield Card(question, value, f"{what} {_leader_text(material, leaders, 'on ')} {bounds}".rstrip())
    run, spread = material.run, precision_reached(material.run)
    if 0 < spread < math.inf:  # a model's is 0
        detail = f"half of all figures (95\N{NO-BREAK SPACE}%, {launches_text(run)})"
        yield Card("How sure", percent_text(spread), detail)
    yield from _then_and_now(material, latency)


def _then_and_now(material: Material, latency: Sequence[Candidate]) -> Iterable[Card]:
    """One word between two ranks here, and between two nodes of the fastest machine of the archive before 2000."""
    rows = {} if material.sheet is None else {row.transport: row for row in material.sheet.rows}
    is_local = "shm" in rows and not rows["shm"].is_between_hosts
    row = rows.get("shm" if is_local else latency[0].transport) if latency else None
    time_ns, rate = (row and row.values[key] for key in ("latency_ns", "bandwidth_bytes_per_s"))
    if not time_ns or not rate or material.run.info.plan.get("virtual"):
        return
    then = min((point for point in archive_points() if point.year < 2000), key=lambda point: point.latency_ns)
    ends = "two cores of this chip" if is_local else "two hosts of this cluster"
    detail = f"between {ends}, {utc(material.run.info.started_unix_s)[:4]}. Two nodes of a {then.title}, {then.year}: "
    detail += f"{format_ns(then.latency_ns)}, {format_rate(then.rate_bytes_per_s)}."
    if is_local and latency[0].transport != "shm":
        known = _known(latency[0].value, format_ns, is_range=latency[0].is_range)
        detail += f" {material.name_of(latency[0].transport)} here: {known}."
    values = _known(time_ns, format_ns, is_range=time_ns.is_range), _known(rate, format_rate, is_range=rate.is_range)
    yield Card("Then and now", ", ".join(values), detail)
