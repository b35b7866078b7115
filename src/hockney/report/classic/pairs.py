"""Statistics over all pairs of ranks, as the T3D newsletter has them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from hockney.report.classic.reading import NOT_PLANNED, RunReader, rank_us
from hockney.report.classic.values import Measured, blank
from hockney.results.runs import Series
from hockney.stats import ONE_LAUNCH

WORD_BYTES = 8
# For one word: over the pairs, or over the means of series of pairs; its rate. For all sizes: the best mean rate, the
# fewest words that reach half the rate, and that rate.
STATISTICS: Mapping[str, Callable[[Sequence[float]], float] | None] = {
    "max": max, "min": min, "mean": fmean, "mean rate": fmean, "best rate": None, "half words": None, "half rate": None,
}  # fmt: skip


def statistic(how: str, series: Sequence[Series], reader: RunReader) -> Measured:
    """A statistic over all pairs of a pattern on one transport, in us, MB/s or words; of one state for each size."""
    choose = STATISTICS[how]
    if choose is not None:
        cell = _over_pairs(series, WORD_BYTES, reader, choose)
        return _rate(WORD_BYTES, cell) if how == "mean rate" else cell
    sizes = sorted({each.point.bytes for each in series if each.point.bytes > 0})
    cells = {size: _rate(size, _over_pairs(series, size, reader)) for size in sizes}
    rates = {size: (cell.value, cell) for size, cell in cells.items() if cell.value is not None}
    if len(rates) < 2:
        return blank("MB/s", "only one size was measured" if rates else reader.reason(series[0]))
    size = max(rates, key=lambda size: rates[size][0])
    if how == "best rate":
        return replace(rates[size][1], at_bytes=size)
    half, cell = next((at, cell) for at, (value, cell) in rates.items() if value >= rates[size][0] / 2)
    if how == "half rate":
        return cell
    return replace(cell, unit="words", value=half / WORD_BYTES, low=None, high=None, at_bytes=half, computed=True)


def _rate(size_bytes: int, time_us: Measured) -> Measured:
    """B/us are MB/s."""
    return time_us.converted("MB/s", lambda value: size_bytes / value)


def _over_pairs(
    series: Sequence[Series],
    size_bytes: int,
    reader: RunReader,
    choose: Callable[[Sequence[float]], float] | None = None,
) -> Measured:
    """A statistic over the pairs of ranks in one state; the same of their intervals' ends encloses it.

    If all ranks send concurrently, each rank and its target are a pair. Without `choose`: the mean over series, each of
    which is a mean over its pairs.
    """
    of_size = [each for each in series if each.point.bytes == size_bytes]
    measured = reader.together(of_size)
    if not measured:
        return blank("us", reader.reason(of_size[0]) if of_size else NOT_PLANNED)
    cells, pairs = [cell for _, cell in measured], 1
    figures = [(each, reader.figure(each, cell.state)) for each, cell in measured]
    if any(figure is not None and figure.definition.timed == "mean" for _, figure in figures):
        pairs = of_size[0].point.ranks
        if choose is not None:
            cells = [
                reader.median(each, figure, "us", functools.partial(rank_us, rank=rank))
                for each, figure in figures
                for rank in range(pairs)
                if figure is not None
            ]
    known = [cell.estimate for cell in cells if cell.estimate is not None]
    complete, of = len(known) == len(cells), choose or fmean
    overs = {cell.interval_over for cell in cells}
    return Measured(
        "us",
        of([cell.value for cell in cells if cell.value is not None]),
        of([each.low for each in known]) if complete else None,
        of([each.high for each in known]) if complete else None,
        cells[0].state,
        any(cell.oversubscribed for cell in cells),
        pairs=(len(measured) * pairs, len(of_size) * pairs),
        interval_over=(ONE_LAUNCH if ONE_LAUNCH in overs else cells[0].interval_over) if complete else None,
        exact=cells[0].exact,
    )
