"""Labels that several runs have: the newest has it, and that is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hockney.cli.streams import remark

if TYPE_CHECKING:
    from hockney.cli.progress import Display
    from hockney.store import Store


def find_run(results: Store, reference: str) -> int:
    """As Store.find_run; says on standard error which run a label stands for that several have."""
    run_id = results.find_run(reference)
    same = _runs_labelled(reference, results)
    if run_id in same and len(same) > 1:
        remark(
            f"'{reference}' names {len(same)} runs: the newest is taken, run {run_id}; {reference}~1 is run {same[-2]}"
        )
    return run_id


def tell_of_label(label: str | None, results: Store, display: Display) -> None:
    """Before a run is made with this label: which one it takes it from."""
    older = [] if label is None else _runs_labelled(label, results)
    if older:
        display.say(f"run {older[-1]} has the label '{label}' too: it now names the new run, and {label}~1 the old one")


def _runs_labelled(label: str, results: Store) -> list[int]:
    """Their numbers, oldest first."""
    return [run.id for run in results.runs() if run.label == label]
