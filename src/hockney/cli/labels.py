"""Labels that several runs have: the newest has it, and that is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hockney.cli.streams import remark
from hockney.errors import UsageError

if TYPE_CHECKING:
    from hockney.cli.progress import Display
    from hockney.results.store import Store

_LABEL_MAX = 40  # characters


def check_label(label: str | None, *, of: str | None = None) -> None:
    """Raises UsageError for a label that cannot name a run; `of` is the run that gets another label."""
    if label is None:
        return
    if not label.strip():
        without, run = ("leave --label out", "") if of is None else ("use '' to remove the label", f"{of} ")
        raise UsageError(f"the label is empty: {without}, or give a name, for example --label {run}before-upgrade")
    if label.isdecimal() or label == "last" or "~" in label:
        raise UsageError(
            f"'{label}' cannot be a label: a number, 'last' and '~' already mean something; use another name"
        )
    if not label.isprintable() or label.startswith("-") or len(label) > _LABEL_MAX:
        raise UsageError(f"a label is one line of 1 to {_LABEL_MAX} characters and does not begin with '-': shorten it")


def find_run(results: Store, reference: str) -> int:
    """As Store.find_run; where several runs have the label, a remark says which one it names."""
    run_id = results.find_run(reference)
    same = _runs_labelled(reference, results)
    if run_id in same and len(same) > 1:
        remark(
            f"'{reference}' names {len(same)} runs: the newest is taken, run {run_id}; {reference}~1 is run {same[-2]}"
        )
    return run_id


def tell_of_label(label: str | None, results: Store, display: Display) -> None:
    """Before a run is made with this label: a remark where an older run has it."""
    older = [] if label is None else _runs_labelled(label, results)
    if older:
        display.say(f"run {older[-1]} has the label '{label}' too: it now names the new run, and {label}~1 the old one")


def relabel(results: Store, reference: str, label: str | None) -> int:
    """Give a run another label, or none; returns its number. Remarks say which runs the labels name now."""
    check_label(label, of=reference)
    run_id = find_run(results, reference)
    old = next(run.label for run in results.runs() if run.id == run_id)
    results.label_run(run_id, label)
    if old is not None and old != label:
        left = _runs_labelled(old, results)
        if left:
            remark(f"the label '{old}' names run {left[-1]} now")
    same = [] if label is None else _runs_labelled(label, results)
    if len(same) > 1:
        remark(f"{len(same)} runs have the label '{label}': it names the newest of them, run {same[-1]}")
    return run_id


def _runs_labelled(label: str, results: Store) -> list[int]:
    """Their numbers, oldest first."""
    return [run.id for run in results.runs() if run.label == label]
