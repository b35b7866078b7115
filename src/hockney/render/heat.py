"""A matrix as figures, or as a heat map of characters: dark is slow, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Callable

from hockney.render.terminal import is_terminal, line_width, text_width, wrapped
from hockney.report.document import Column, Matrix, Table
from hockney.units import format_ns, format_rate

_FORMATS: dict[str, Callable[[float], str]] = {"ns": format_ns, "bytes/s": format_rate}
_RAMPS = {True: "·░▒▓█", False: ".:-=+*#%@"}  # on a terminal, in a pipe
_FACTOR_MIN = 2.0  # of the whole scale, so that chance has no shades
_NAME_MAX = 20


def formatter(unit: str) -> Callable[[float], str]:
    """What writes a value: `183 ns`, `1.2 GB/s`, or a number with another unit."""
    return _FORMATS.get(unit) or (
        lambda value: (f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}").strip()
    )


def figure_table(matrix: Matrix) -> Table:
    """The values as texts, empty where there is none."""
    text = formatter(matrix.unit)
    columns = [Column("from", key=True), *(Column(f"to {name}", right=True) for name in matrix.names)]
    rows = [
        [name, *("" if value is None else text(value) for value in row)]
        for name, row in zip(matrix.names, matrix.values, strict=True)
    ]
    return Table(columns, rows)


def heat_lines(matrix: Matrix) -> list[str]:
    """A row for each end, and the scale; none without values."""
    known = [value for row in matrix.values for value in row if value is not None]
    if not known:
        return []
    ramp = _RAMPS[is_terminal()]
    low, high = min(known), max(known)
    span = math.log(max(high / low, _FACTOR_MIN)) if low > 0 else 1.0

    def shade(value: float | None) -> str:
        if value is None:
            return " "
        share = math.log(high / value if matrix.is_rate else value / low) / span
        return ramp[min(int(share * len(ramp)), len(ramp) - 1)]

    names = [name if len(name) <= _NAME_MAX else f"{name[: _NAME_MAX - 1]}…" for name in matrix.names]
    left = max(map(text_width, names))
    wide = 2 if left + 2 + 2 * len(names) <= line_width() else 1
    ticks = "".join(f"{rank:<{8 * wide}}" for rank in range(0, len(names), 8)).rstrip()
    lines = [f"{'':{left}}  {ticks}"]
    for name, row in zip(names, matrix.values, strict=True):
        lines.append(
            f"{name}{' ' * (left - text_width(name))}  {''.join(shade(value) * wide for value in row)}".rstrip()
        )
    text, begins = formatter(matrix.unit), [math.exp(span * step / len(ramp)) for step in range(len(ramp))]
    used = sorted({ramp.index(shade(value)) for value in known})
    scale = (f"{ramp[at]} from {text(high / begins[at] if matrix.is_rate else low * begins[at])}" for at in used)
    return [*lines, *wrapped(f"From rows to columns; {', '.join(scale)}. Dark is slow.", rest="  ")]
