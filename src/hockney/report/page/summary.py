"""The top of the page: which machine, the verdict in three sentences, and the answers to the questions people have."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hockney.analysis.explain import Explanation
from hockney.analysis.explain.curve import MeasuredCurve
from hockney.analysis.host_series import SUITE
from hockney.report.findings import check_name, evidence_of, gap_text, grouped, title_of
from hockney.report.page.choices import Candidate, classes_of, fastest, leaders, names_text
from hockney.report.page.material import Material
from hockney.report.page.views import archive_points
from hockney.report.words import (
    ROUGH,
    figure_text,
    launches_text,
    machine_text,
    percent_text,
    placement_text,
    precision_reached,
    whole_text,
)
from hockney.results.runs import Run
from hockney.units import format_bytes, format_ns, format_rate

_TITLES_MAX = 5


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


def _headlines(material: Material) -> tuple[list[Candidate], list[Candidate]]:
    """The shortest times of a message, and the highest rates, of the first class that has any."""
    rates = _rates(material)
    for curves in classes_of(material).values():
        size = min((size for curve in curves for size in curve.times_ns if size), default=None)
        if size is not None:
            names = {each.transport for each in curves}
            return fastest(curves, size), leaders([each for each in rates if each.transport in names], -1)
    return [], leaders(rates, -1)


def _rates(material: Material) -> list[Candidate]:
    """The bandwidth of the data sheet; without one, the rates of all curves."""
    rows = [] if material.sheet is None else [row for row in material.sheet.rows if not row.oversubscribed]
    rates = [
        Candidate(row.transport, value, size, f"messages of {format_bytes(size)}, 16 in flight,", value.is_range)
        for row in rows
        if (value := row.values["bandwidth_bytes_per_s"]) is not None and (size := value.at_bytes)
    ]
    return rates or [
        Candidate(curve.transport, rate, point.bytes, f"messages of {format_bytes(point.bytes)}")
        for curve in _curves(material)
        if curve.pattern in ("pingpong", "oneway") and curve.ranks == 2
        for point in curve.points
        if (rate := point.rate_bytes_per_s) is not None
    ]


def _on(material: Material, best: Sequence[Candidate]) -> str:
    """` on Open MPI 4.1.4`, or `: Open MPI 4.1.4 and MPICH 4.0.2 are equal within their intervals`.

    Ranges of few measurements say neither that they are equal nor which is faster.
    """
    names = names_text(material, best, "and")
    if len(best) == 1:
        return f" on {names}"
    if any(each.is_range for each in best):
        return f": {names}, with too few measurements to say which"
    return f": {names} are equal within their intervals"


# ---- the verdict ----------------------------------------------------------------------------------------------------


def _verdict(material: Material, latency: Sequence[Candidate], rate: Sequence[Candidate]) -> Iterable[str]:
    """The speed of your own library, the strongest problem, and the certainty of all this."""
    if material.run.info.suite == SUITE and material.explanation is not None:
        yield from _verdict_on_hosts(material.explanation)
        return
    if material.rates is not None and len(material.rates.notes) > 1:
        yield from material.rates.notes[:-1]
        return
    if material.reading is None:
        yield "No figure of this run has a confidence interval in one machine state yet, so there is no verdict."
        return
    speeds = []
    for best, verb, text in ((latency, "takes", format_ns), (rate, "reach", format_rate)):
        if best:
            speeds.append(f"{best[0].what} {verb} {best[0].known(text)}{_on(material, best)}")
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


def _cards(material: Material, latency: Sequence[Candidate], rate: Sequence[Candidate]) -> Iterable[Card]:
    for question, best, text in (("Latency", latency, format_ns), ("Bandwidth", rate, format_rate)):
        if best:
            what = best[0].what.rstrip(",").removeprefix("a message of ")
            value, bounds = figure_text(best[0].value, text, is_range=best[0].is_range)
            yield Card(question, value, f"{what}{_on(material, best)}{', ' * bool(bounds)}{bounds}")
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
    ends = "two hosts of this cluster" if row and row.is_between_hosts else "two cores of this chip"
    detail = f"between {ends}, {utc(material.run.info.started_unix_s)[:4]}. Two nodes of a {then.title}, {then.year}: "
    detail += f"{format_ns(then.latency_ns)}, {format_rate(then.rate_bytes_per_s)}."
    if is_local and latency[0].transport != "shm":
        detail += f" {material.name_of(latency[0].transport)} here: {latency[0].known(format_ns)}."
    values = (
        whole_text(time_ns, format_ns, is_range=time_ns.is_range),
        whole_text(rate, format_rate, is_range=rate.is_range),
    )
    yield Card("Then and now", ", ".join(values), detail)
