"""The part `quick`: how much of the data sheet is known after one `hockney quick`, alone and with two busy loops."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scripts.benchlib.commands import call_hockney
from scripts.benchlib.place import Place
from scripts.benchlib.table import ANY, UNKNOWN, Row, Target, not_measured, row_of_one

_LOOPS = 2
_FIGURES = ("latency_ns", "bandwidth_bytes_per_s", "bidirectional_bytes_per_s", "barrier_ns")
_FITTED = ("r_inf_bytes_per_s", "n_half_bytes")
_ROUGH, _GOOD = 0.30, 0.05
_ALL, _MOST = Target("none", high=0.0), Target("≥ 90 %", low=0.9)
_ANY_SHARE = Target("-")


@dataclass(frozen=True)
class Shares:
    """The figures of a data sheet: the half-width of each figure over its value, and how many figures are `missing`.

    `fitted` of `fits` values of r_inf and n_1/2 are there.
    """

    widths: Sequence[float]
    missing: int
    fitted: int
    fits: int

    def within(self, width: float) -> float:
        """The share of all figures, missing ones included, that are known to this part of their value."""
        return sum(each <= width for each in self.widths) / max(1, len(self.widths) + self.missing)


def shares_of(document: Mapping[str, Any]) -> Shares:
    """The shares of a document of `hockney quick --json`. A transport without a row misses all figures."""
    rows = {row["transport"]: row for row in document["rows"]}
    carried = (series for series in document["series"] if series["bytes"] > 0 and series["transport"] != "null")
    names = dict.fromkeys(series["transport"] for series in carried if series["status"] != "skipped")
    figures = [rows.get(name, {}).get(key) for name in names for key in _FIGURES]
    fits = [rows.get(name, {}).get(key) for name in names for key in _FITTED]
    widths = [width for width in map(_width, figures) if width is not None]
    return Shares(widths, len(figures) - len(widths), sum(fit is not None for fit in fits), len(fits))


def _width(figure: Mapping[str, Any] | None) -> float | None:
    """The larger half-width over the value; None without a figure, or without both of its bounds."""
    if figure is None or not figure["low"] or figure["high"] is None:
        return None
    return float(max(figure["high"] - figure["value"], figure["value"] - figure["low"]) / figure["value"])


def quick(place: Place) -> list[Row]:
    """One run of the command alone, and one with two busy loops; nothing with --short."""
    if place.short:
        return [not_measured("`hockney quick`: shares of its sheet", _MOST, "left out by --short")]
    call_hockney(["quick", "--time", "1s"], place.folder / "set-up.db")  # compiles the workers
    rows = []
    for is_busy in (False, True):
        place.say(f"quick: {f'with {_LOOPS} busy loops' if is_busy else 'alone'}, about a minute")
        place.look_round()
        with _busy_loops(_LOOPS if is_busy else 0):
            begin_s = time.perf_counter()
            document = json.loads(call_hockney(["quick", "--json"], place.folder / "quick.db"))
            took_s = time.perf_counter() - begin_s
        what = f"`hockney quick`{f' with {_LOOPS} busy loops' if is_busy else ''}"
        rows += [*share_rows(what, shares_of(document), is_busy=is_busy), _time(what, took_s)]
    return rows


def share_rows(what: str, shares: Shares, *, is_busy: bool) -> list[Row]:
    """A row for each share; precision has other targets with busy loops."""
    count = len(shares.widths) + shares.missing
    rough, good = (_MOST, _ANY_SHARE) if is_busy else (_ANY_SHARE, _MOST)
    wanted = {
        f"narrower than ±{_ROUGH:.0%}": (rough, shares.within(_ROUGH)),
        f"within ±{_GOOD:.0%}": (good, shares.within(_GOOD)),
        "r_inf and n_1/2": (_ANY_SHARE if is_busy else _MOST, shares.fitted / max(1, shares.fits)),
    }
    rows = [row_of_one(f"{what}: figures missing", _ALL, shares.missing, f"{shares.missing} of {count}")]
    for name, (target, share) in wanted.items():
        met = UNKNOWN if target is _ANY_SHARE else target.judge_alone(share)
        rows.append(Row(f"{what}: {name}", target.text, f"{share:.0%}", ANY, met))
    return rows


def _time(what: str, took_s: float) -> Row:
    return row_of_one(f"{what}: wall time", Target("≤ 75 s", high=75.0), took_s, f"{took_s:.1f} s")


@contextlib.contextmanager
def _busy_loops(count: int) -> Iterator[None]:
    """Programs that use all CPU time they get."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
