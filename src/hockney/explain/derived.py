"""Figures that a report computed from others of its own: done again, where it prints what they come from."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from hockney.archive import Published
from hockney.explain.curve import Reading
from hockney.explain.finding import Evidence, Finding, Found, Lacking, ratio
from hockney.explain.printed import estimate_of
from hockney.fit import Estimate

_OFF = 0.02  # beyond what rounding explains


def derived_columns(reading: Reading) -> Found:
    """Rates that are not words over clock periods, as the other rows' are."""
    rows = [one for one in reading.published if one.value and _number(one, "words") and _number(one, "cp")]
    if len(rows) < 4:
        return Lacking("needs a printed table with a column that follows from others")
    # words / cp -> rate: the clock rate, in the report's own units, which most rows agree on.
    scale = statistics.median((one.value or 0.0) / _computed(one) for one in rows)
    found = []
    for one in rows:
        computed = scale * _computed(one)
        printed = estimate_of(one)
        away = (one.value or 0.0) / computed - 1
        if abs(away) > _OFF and not printed.low <= computed <= printed.high:
            found.append((one, computed, away))
    if not found:
        return []
    return [_finding(reading, found, scale)]


def _finding(reading: Reading, found: Sequence[tuple[Published, float, float]], scale: float) -> Finding:
    texts = [
        f"{one.get('source')} to {one.get('destination')} {one.get('page') or ''}".strip()
        + f" is printed as {one.printed} and follows as {computed:.1f} ({away:+.0%})"
        for one, computed, away in found
    ]
    return Finding(
        kind="a derived figure that does not follow",
        transport=reading.subject,
        sentence=f"Of the rates that follow from words and clock periods (times {scale:.4g}), {'; '.join(texts)}.",
        effect=max(abs(away) for _, _, away in found),
        evidence=tuple(
            Evidence("printed over computed", ratio(estimate_of(one), Estimate(computed, computed, computed)), "")
            for one, computed, _ in found
        ),
    )


def _number(one: Published, name: str) -> float | None:
    value = one.get(name)
    return float(value) if isinstance(value, (int, float)) else None


def _computed(one: Published) -> float:
    return (_number(one, "words") or 0.0) / (_number(one, "cp") or 1.0)
