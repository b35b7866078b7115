"""What the tables of one kind of run are made with: a module of this folder has each function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hockney.report.document import Block, Document, Plot
from hockney.results.runs import Run
from hockney.worker.libraries import Missing

Values = TypeVar("Values")


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
