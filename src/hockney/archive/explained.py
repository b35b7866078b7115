"""Findings in the published figures of the archive's machines (`hockney explain --machine`).

curves.toml maps the figures to hockney's patterns. The bounds of a figure are the rounding error of its digits, times
the factor for a report that does not say whether it counts one direction or both (`times`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hockney.analysis.explain import Explanation, explain
from hockney.analysis.explain.curve import CurvePoint, MeasuredCurve, Options, Reading
from hockney.analysis.finding import Absence, NotChecked
from hockney.archive import Machine, Published, benchmarks
from hockney.machine.files import rows_of
from hockney.stats.fit import Estimate

_SCALE = {"us": 1e3, "MB/s": 1e6}  # to ns and bytes/s

_Key = tuple[str, int, Options, str]


def explain_machine(machine: Machine) -> Explanation:
    """Findings in the published figures, and statements of the report without figures (unseen.toml)."""
    explanation = explain(read_machine(machine))
    rows = [row for row in rows_of(Path(__file__).with_name("unseen.toml")) if row["machine"] == machine.name]
    unseen = {
        row["what"]: NotChecked(Absence.INSUFFICIENT_DATA, row["what"], "of report", {"reason": row["why"]})
        for row in rows
    }
    rest = [gap for gap in explanation.not_checked if gap.what not in unseen]
    return replace(explanation, not_checked=(*unseen.values(), *rest), oddities=tuple(_oddities(machine)))


def _oddities(machine: Machine) -> Iterator[str]:
    """What is odd in the printed figures: each note once, with its benchmark and its first figures."""
    for benchmark in benchmarks(machine.report):
        noted: dict[str, list[str]] = {}
        for figure in machine.figures:
            if figure.note and figure.matches(benchmark.where):
                noted.setdefault(figure.note, []).append(figure.printed or "no figure")
        for note, printed in noted.items():
            more = " …" if len(printed) > 3 else ""
            yield f"{benchmark.title}, {', '.join(printed[:3])}{more}: {note}."
        yield from (f"{benchmark.title}: {oddity}" for oddity in benchmark.oddities)


def read_machine(machine: Machine) -> Reading:
    """All that was published of a machine, as curves; none for a report that prints no figures."""
    points: dict[_Key, list[CurvePoint]] = {}
    peaks: dict[_Key, Estimate] = {}
    for figure in machine.figures:
        for row in _rows(figure):
            key = _key(figure, row)
            if row.get("is") == "peak":
                peaks[key] = _estimate(figure, row)
            else:
                points.setdefault(key, []).append(_point(figure, row))
    curves = [
        MeasuredCurve(
            machine.name,
            *key,
            points=tuple(sorted(points.get(key, ()), key=lambda point: point.bytes)),
            peak_bytes_per_s=peaks.get(key),
        )
        for key in dict.fromkeys([*points, *peaks])
    ]
    return Reading(machine.name, tuple(curves))


def estimate_of(figure: Published) -> Estimate:
    """A published figure with the rounding error of its printed digits, in its unit."""
    value = figure.value or 0.0
    return Estimate(value, value - figure.within, value + figure.within)


def _estimate(figure: Published, row: Mapping[str, Any]) -> Estimate:
    """In ns or bytes/s, by the factors that the report leaves open."""
    least, most = row.get("times", (1, 1))
    value = estimate_of(figure) * _SCALE[figure.unit]
    return Estimate(value.value, value.low * least, value.high * most)


def _rows(figure: Published) -> Iterator[Mapping[str, Any]]:
    rows = rows_of(Path(__file__).with_name("curves.toml"))
    return (row for row in rows if row["report"] == figure.report and figure.value and figure.matches(row["where"]))


def _key(figure: Published, row: Mapping[str, Any]) -> _Key:
    # Reports spell a mode as they like; ours are words without a hyphen.
    named = {name: str(figure.get(name)).replace("non-", "non") for name in row.get("options", ())}
    ranks, state = int(figure.at[row["ranks"]]) if "ranks" in row else 2, row.get("state", figure.get("scope") or "")
    return row["pattern"], ranks, tuple(sorted({**named, **row.get("fixed", {})}.items())), state


def _point(figure: Published, row: Mapping[str, Any]) -> CurvePoint:
    """A rate at a size is a time."""
    size, value = int(row.get("bytes", figure.get("bytes")) or 0), _estimate(figure, row)
    if "is" not in row:
        return CurvePoint(size, value)
    time_ns = 1e9 * size / value
    if row["is"] == "half":  # the smallest number of words that reaches half the best rate: one word fewer did not
        words = float(figure.at["words"])
        time_ns = Estimate(time_ns.value, time_ns.value * (words - 1) / words, time_ns.value)
    return CurvePoint(size, time_ns)
