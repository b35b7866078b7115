"""A table as it is shown: all published figures, and this machine's as far as there are any.

Columns and rows without figures become sentences that say why. The JSON has all values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hockney.archive import Published
from hockney.report.classic.values import Cell, Column, Measured, Table

NOTHING = "\N{EN DASH}"
_STATE_MIN = 3  # figures in a row: then their state has a column
_NAMED_MAX = 6  # values that a sentence lists


@dataclass(frozen=True)
class View:
    """A table to show. `shared` holds for every measured column; `left_out` says why figures are missing."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    shared: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    heading: int = 0


def view_of(table: Table) -> View:
    """The table without the columns and rows that are empty for one reason each, unless they were published."""
    blanks = {place: _only_reason(row[place] for row in table.rows) for place in range(len(table.columns))}
    kept = [place for place, reason in blanks.items() if reason is None]
    measured = [place for place in kept if table.columns[place].kind == "measured"]
    left_out: dict[str, list[Column]] = {}
    for place, reason in blanks.items():
        if reason is not None:
            left_out.setdefault(reason, []).append(table.columns[place])
    if left_out and not measured:
        names = map(_titles, left_out.values()) if len(left_out) > 1 else [""]
        sentences = [_sentence(reason, text) for reason, text in zip(left_out, names, strict=True)]
    else:
        sentences = [_sentence(reason, _titles(columns)) for reason, columns in left_out.items()]
    reasons = [_only_reason(row[place] for place in measured) if measured else None for row in table.rows]
    for reason in dict.fromkeys(reasons):
        without = [row for row, own in zip(table.rows, reasons, strict=True) if own == reason]
        if reason is not None and len(set(reasons)) == 2 and None in reasons and _is_shown(table, without):
            sentences.append(f"{NOTHING}: {reason}.")
        elif reason is not None:
            sentences.append(_sentence(reason, "" if len(without) == len(table.rows) else _named(table, without)))
    is_empty = [reason is not None or bool(left_out and not measured) for reason in reasons]
    rows = [
        tuple(NOTHING if empty and isinstance(cell, Measured) else cell for cell in row)
        for row, empty in zip(table.rows, is_empty, strict=True)
        if not empty or _is_published(table, row)
    ]
    if not rows:
        return View((), (), left_out=tuple(sentences))
    told = [place for place in kept if table.columns[place].kind != "published" or any(row[place] for row in rows)]
    columns, shared = _without_shared([table.columns[place] for place in told])
    shown = tuple(tuple(row[place] for place in told) for row in rows)
    heading = sum(place < table.heading for place in told)
    return _with_states(View(tuple(columns), shown, shared, tuple(sentences), heading))


def _with_states(view: View) -> View:
    """The view with a column for the machine state, if it is the same within rows and differs between them."""
    states = [{cell.state for cell in _figures(row) if cell.state is not None} for row in view.rows]
    is_short = max((len(_figures(row)) for row in view.rows), default=0) < _STATE_MIN
    if is_short or any(len(own) > 1 for own in states) or len(set().union(*states)) < 2:
        return view
    rows = tuple(
        (*(replace(cell, state=None) if isinstance(cell, Measured) else cell for cell in row), *(own or ("",)))
        for row, own in zip(view.rows, states, strict=True)
    )
    return replace(view, columns=(*view.columns, Column("state")), rows=rows)


def _figures(row: Sequence[Cell]) -> list[Measured]:
    return [cell for cell in row if isinstance(cell, Measured) and cell.value is not None]


def _is_shown(table: Table, rows: Iterable[Sequence[Cell]]) -> bool:
    return all(_is_published(table, row) for row in rows)


def _is_published(table: Table, row: Sequence[Cell]) -> bool:
    pairs = zip(table.columns, row, strict=True)
    return any(isinstance(cell, Published) or (column.kind == "published" and cell) for column, cell in pairs)


def text_of(cell: Cell) -> str:
    """The text of a cell, or a published figure as printed."""
    return cell if isinstance(cell, str) else (cell.printed or "na") if isinstance(cell, Published) else ""


def _only_reason(cells: Iterable[Cell]) -> str | None:
    """The reason why none of these cells has a figure; None if one has, or if reasons differ."""
    reasons = {cell.reason if isinstance(cell, Measured) and cell.value is None else None for cell in cells}
    return next(iter(reasons)) if len(reasons) == 1 else None


def _sentence(reason: str, names: str = "") -> str:
    return f"Not measured ({reason}): {names}." if names else f"Not measured: {reason}."


def _titles(columns: Sequence[Column]) -> str:
    """`shm, tcp: put, 2 ranks`: common parts once."""
    named, shared = _without_shared(columns)
    return ", ".join(column.title for column in named) + (f": {', '.join(shared)}" if shared else "")


def _named(table: Table, rows: Sequence[tuple[Cell, ...]]) -> str:
    """Rows by their keys: the values of each key if all combinations occur, else row by row."""
    keys = [place for place, column in enumerate(table.columns) if column.kind == "key"]
    own = [place for place in keys if place >= table.heading]
    places = own if any(row[place] for row in rows for place in own) else keys
    names = dict.fromkeys(tuple(text_of(row[place]) for place in places) for row in rows)
    values = [tuple(dict.fromkeys(one)) for one in zip(*names, strict=True)]
    if math.prod(map(len, values)) != len(names) or any("," in value for one in values for value in one):
        return "; ".join(" ".join(part for part in name if part) for name in names)
    titled = zip((table.columns[place].title for place in places), values, strict=True)
    return "; ".join(f"{title} {_shortened(one)}" for title, one in titled if any(one))


def _shortened(values: Sequence[str]) -> str:
    if len(values) <= _NAMED_MAX:
        return ", ".join(values)
    return f"{', '.join(values[: _NAMED_MAX - 1])}, … {values[-1]}"


def _without_shared(columns: Sequence[Column]) -> tuple[list[Column], tuple[str, ...]]:
    """Columns named by what distinguishes them, and the parts that all of them share."""
    parts = [column.parts for column in columns if column.kind == "measured"]
    if len(parts) < 2:
        return list(columns), ()
    shared = tuple(part for part in parts[0][1:] if all(part in one[1:] for one in parts))
    return [
        Column(" ".join(part for part in column.parts if part not in shared), column.kind, column.parts)
        if shared and column.kind == "measured"
        else column
        for column in columns
    ], shared
