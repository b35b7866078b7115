"""A table as shown: all published figures, and those of this machine; and its curves over the message size.

Columns and rows without figures become sentences that say why. The JSON has all values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hockney import stats
from hockney.archive import Published
from hockney.report.classic.layout import layouts
from hockney.report.classic.values import NOTHING, Cell, ClassicTable, LeftOut, Measured
from hockney.results.figures import SEVERAL_STATES


def view_of(table: ClassicTable) -> ClassicTable:
    """The table without the columns and rows that have no figure, and why; rows with a published one stay."""
    published, measured, predicted = (
        [place for place, column in enumerate(table.columns) if column.kind == kind]
        for kind in ("published", "measured", "predicted")
    )
    full = [place for place in measured if any(_has_figure(row[place]) for row in table.rows)]
    modelled = [place for place in predicted if any(_has_figure(row[place]) for row in table.rows)]
    missing: dict[str, list[str]] = {}  # names of columns and rows, by reason
    for place in measured if full else ():
        if place not in full:
            reasons = Counter(cell.reason for row in table.rows if isinstance(cell := row[place], Measured))
            missing.setdefault(str(reasons.most_common(1)[0][0]), []).append(table.columns[place].title)
    rows: list[tuple[Cell, ...]] = []
    for row in table.rows:
        if not measured or any(_has_figure(row[place]) for place in full):
            rows.append(row)
            continue
        cells = (row[place] for place in full or measured)
        for reason in dict.fromkeys(cell.reason for cell in cells if isinstance(cell, Measured)):
            missing.setdefault(str(reason), []).append(_name(table, row))
        if any(row[place] for place in published):
            rows.append(tuple(NOTHING if place in measured else cell for place, cell in enumerate(row)))
    printed = [place for place in published if any(row[place] for row in rows)]
    empty = {*published, *measured, *predicted}.difference(printed, full, modelled)
    shown = [place for place in range(len(table.columns)) if place not in empty]
    return replace(
        table,
        columns=tuple(table.columns[place] for place in shown),
        rows=tuple(tuple(row[place] for place in shown) for row in rows),
        left_out=(
            *(LeftOut(why, () if len(names) == len(table.rows) else tuple(names)) for why, names in missing.items()),
            *_not_predicted(table, [place for place in predicted if place not in modelled], bool(modelled)),
        ),
        heading=sum(place < table.heading for place in shown),
    )


def _not_predicted(table: ClassicTable, places: Sequence[int], is_named: bool) -> Iterable[LeftOut]:
    """The reason why columns have no prediction at all; they are named if others have some."""
    missing: dict[str, list[str]] = {}
    for place in places:
        cells = (row[place] for row in table.rows)
        reason = next((cell.reason for cell in cells if isinstance(cell, Measured)), None)
        if reason is not None:
            missing.setdefault(reason, []).append(table.columns[place].parts[0])
    for reason, names in missing.items():
        yield LeftOut(reason, tuple(names) if is_named or len(missing) > 1 else (), predicted=True)


def _has_figure(cell: Cell) -> bool:
    return isinstance(cell, Measured) and cell.value is not None


def _name(table: ClassicTable, row: Sequence[Cell]) -> str:
    keys = (text_of(cell) for column, cell in zip(table.columns, row, strict=True) if column.kind == "key")
    return " ".join(filter(None, keys))


def text_of(cell: Cell) -> str:
    """The text of a cell, or a published figure as printed."""
    return cell if isinstance(cell, str) else (cell.printed or "na") if isinstance(cell, Published) else ""


def states_note(cells: Iterable[Measured]) -> tuple[str | None, str | None]:
    """The most frequent state of some cells, and the sentence for it; None without any."""
    count = Counter(cell.state for cell in cells if cell.value is not None and cell.state is not None)
    if not count:
        return None, None
    common = max(count, key=lambda state: (state not in (stats.MIXED.name, SEVERAL_STATES), count[state]))
    if set(count) == {stats.UNKNOWN.name}:
        return common, None
    return common, f"State of the machine: {common}{'' if len(count) == 1 else ', unless a cell names another'}."


# ---- plots ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassicPlot:
    """The figures of a table, or of its rows that differ in size only: (size, value) by the name of the curve."""

    title: str
    unit: str
    curves: dict[str, list[tuple[int, float]]]


def plots_of(report: str, tables: Iterable[ClassicTable]) -> list[ClassicPlot]:
    """A plot for each table over sizes, and for each set of its other keys with two published sizes or more."""
    titles = {layout.name: layout.keys["bytes"] for layout in layouts(report) if "bytes" in layout.keys}
    plots = [plot for table in tables if table.name in titles for plot in _plots(table, titles[table.name])]
    return [plot for plot in plots if len(plot.curves.get("published", ())) > 1]


def _plots(table: ClassicTable, size_title: str) -> Iterable[ClassicPlot]:
    keys = [place for place, column in enumerate(table.columns) if column.kind == "key"]
    at_size = next(place for place in keys if table.columns[place].title == size_title)
    groups: dict[str, list[tuple[Cell, ...]]] = {}
    for row in table.rows:
        others = (f"{table.columns[place].title} {row[place]}" for place in keys if place != at_size)
        groups.setdefault(", ".join(others), []).append(row)
    for name, rows in groups.items():
        curves: dict[str, list[tuple[int, float]]] = {}
        units = [cell.unit for row in rows for cell in row if isinstance(cell, Published)]
        for row in rows:
            size = str(row[at_size]).partition(" ")[0]
            for column, cell in zip(table.columns, row, strict=True) if size.isdecimal() else ():
                if isinstance(cell, Published | Measured) and cell.unit in units and cell.value is not None:
                    curves.setdefault(column.title, []).append((int(size), cell.value))
        yield ClassicPlot(f"{table.title}{f': {name}' if name else ''}", units[0] if units else "", curves)
