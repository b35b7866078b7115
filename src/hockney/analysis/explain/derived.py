"""Figures that a report computed from others of its own: done again, where it prints what they come from."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from hockney.analysis.explain.curve import Reading
from hockney.analysis.explain.finding import Evidence, Finding, Found, Lacking, ratio
from hockney.analysis.explain.published import estimate_of
from hockney.archive import Published
from hockney.stats.fit import Estimate

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


def long_latencies(reading: Reading) -> Found:
    """Latencies that are printed as longer than all that they are a part of."""
    rows = [
        (one, latency, total)
        for one in reading.published
        if (latency := _number(one, "latency_cp")) and (total := _number(one, "cp"))
    ]
    if not rows:
        return Lacking("needs a printed table with latencies beside the times of the whole")
    longer = [(one, latency, total) for one, latency, total in rows if latency > total]
    if not longer:
        return []
    texts = [f"{_where(one)} {latency:.0f} of {total:.0f}" for one, latency, total in longer]
    return [
        Finding(
            kind="a part longer than the whole",
            transport=reading.subject,
            sentence=(
                f"In {len(longer)} of {len(rows)} rows the latency is printed as longer than the clock periods of all "
                f"that is loaded: {'; '.join(texts)}. Either such loads overlap, or one of the two columns is wrong."
            ),
            effect=min(latency / total for _, latency, total in longer) - 1,
            evidence=tuple(
                Evidence(f"latency over all, {_where(one)}", ratio(_whole(latency), _whole(total)), "")
                for one, latency, total in longer
            ),
        )
    ]


def _whole(count: float) -> Estimate:
    """Clock periods as they are printed."""
    return Estimate(count, count - 0.5, count + 0.5)


def _where(one: Published) -> str:
    return f"{one.get('source')} to {one.get('destination')} {one.get('page') or ''}".strip()


def _finding(reading: Reading, found: Sequence[tuple[Published, float, float]], scale: float) -> Finding:
    texts = [
        f"{_where(one)} is printed as {one.printed} and follows as {computed:.1f} ({away:+.0%})"
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
