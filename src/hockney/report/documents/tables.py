"""The tables of a run: quick's data sheet, a classic report's, all pairs, highest rates, impacts, or clocks."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from hockney.archive import reports
from hockney.errors import UsageError
from hockney.report.commands import typed
from hockney.report.document import Block, Document, Plot, Text
from hockney.report.notes import caveats_of
from hockney.report.words import placement_text
from hockney.results.runs import Run
from hockney.worker.libraries import Missing

Values = TypeVar("Values")

_MAY_HAVE: dict[str, Callable[[Run], bool]] = {  # so that only the module is loaded that a run needs
    "sheet": lambda run: run.info.suite == "quick",
    "health": lambda run: run.info.suite == "health",
    "impacts": lambda run: bool(run.info.plan.get("background")),
    "rates": lambda run: run.info.plan.get("deadline_ns") is not None,
    "clocks": lambda run: any(series.point.pattern == "clocks" for series in run.series),
    "classic": lambda run: run.info.suite in reports(),
    "pairs": lambda run: any(series.point.pattern in ("pingpong", "rounds") for series in run.series),
}
"""The modules of this folder that make tables, the first that has any wins; and which runs may have them."""


@dataclass(frozen=True)
class TableKind(Generic[Values]):
    """`values_of` a run, None or empty where it has nothing to show; `document` of them, with what is missing here.

    `in_full`: the document of all of them, for --all and --tables, where `document` is a page of them.
    `in_every_state`: the values of every machine state. `is_whole`: the document is the whole screen. Below others are
    the placement of the ranks, if they are `with_placement`, and caveats.
    """

    values_of: Callable[[Run], Values | None]
    document: Callable[[Values, Run, Sequence[Missing], bool], Iterable[Block] | Document]
    as_json: Callable[[Values], dict[str, Any]]
    plots_of: Callable[[Values], Sequence[Plot]] = lambda _: ()
    in_full: Callable[[Values], Iterable[Block]] | None = None
    in_every_state: Callable[[Run], Values] | None = None
    is_whole: bool = False
    with_placement: bool = True


@dataclass(frozen=True)
class Tables:
    """The values that the tables of a run are made of; `name` is that of their module."""

    name: str
    values: Any

    @property
    def kind(self) -> TableKind[Any]:
        return _kind(self.name)


def _kind(name: str) -> TableKind[Any]:
    kind: TableKind[Any] = importlib.import_module(f"hockney.report.documents.{name}").KIND
    return kind


def tables_of(run: Run, *, every_state: bool = False) -> Tables | None:
    """The tables of the run's suite; None without any. Raises UsageError for states that they don't show."""
    may_have = (name for name, is_likely in _MAY_HAVE.items() if is_likely(run))
    found = (Tables(name, values) for name in may_have if (values := _kind(name).values_of(run)))
    tables = next(found, None)
    if tables is None or not every_state:
        return tables
    if tables.kind.in_every_state is None:
        raise UsageError(
            "--tables shows every state only for quick. Here each figure names its state; "
            f"run {typed('show', run.id, '--states')} for all states"
        )
    return replace(tables, values=tables.kind.in_every_state(run))


def tables_document(
    tables: Tables, run: Run, missing: Sequence[Missing] = (), *, verbose: bool = False, everything: bool = False
) -> Document:
    """Tables and caveats, the most important or `everything`; `missing`: what the machine has not, if known."""
    kind = tables.kind
    if everything and kind.in_full is not None:
        return Document((*kind.in_full(tables.values), *caveats_of(run, verbose=verbose)))
    made = kind.document(tables.values, run, missing, verbose)
    if isinstance(made, Document) and kind.is_whole:
        return made
    placement = placement_text(run) if kind.with_placement else None
    return Document((*made, *([Text(placement)] if placement else ()), *caveats_of(run, verbose=verbose)))


def tables_json(tables: Tables | None) -> dict[str, Any]:
    """The same values; {} where there are no tables."""
    return {} if tables is None else tables.kind.as_json(tables.values)


def table_plots_document(tables: Tables) -> Document:
    """Plots of the published and measured figures of a classic report. Raises UsageError where there are none."""
    plots = tuple(tables.kind.plots_of(tables.values))
    if not plots:
        raise UsageError("these tables have no published curve over sizes. Leave out --tables to plot your curves")
    return Document(plots)
