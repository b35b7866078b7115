"""`hockney runs`: what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hockney.cli import complete, render
from hockney.cli.common import command
from hockney.cli.render import Column
from hockney.cli.times import local_time
from hockney.errors import UsageError
from hockney.model import PointStatus
from hockney.units import format_duration_s

if TYPE_CHECKING:
    from hockney.store import RunSummary, Store

_ENDED = (PointStatus.PRECISE, PointStatus.BUDGET, PointStatus.STOPPED)


@command(
    "runs",
    example="""hockney runs
    hockney runs --label 12 nightly
    hockney runs --delete 12 --yes""",
)
@click.option(
    "--label",
    nargs=2,
    metavar="RUN NAME",
    help="Give a run this label in place of its own; '' takes it away.",
    shell_complete=complete.runs,
)
@click.option(
    "--delete",
    "doomed",
    multiple=True,
    metavar="NUMBER",
    help="Take a run away with all that was measured in it; its number is not given again.",
    shell_complete=complete.run_numbers,
)
@click.option("--yes", "is_sure", is_flag=True, help="Really delete: without it, what would be is said.")
def runs(
    label: tuple[str, str] | None, doomed: Sequence[str], is_sure: bool, *, as_json: bool, store: Path | None
) -> None:
    """List the runs that are stored.

    A run is named by its number, by its label (the newest that has it; LABEL~1 is the one before), by `last`, or by
    `last~1` for the one before. `measured` is how long each was, without the time before it was resumed; of one that
    was killed, until its last measurement that is stored. With --label or --delete runs are changed and not listed.
    """
    from hockney.store import Store, default_path
    from hockney.store.opening import refuse_mistyped

    path = store or default_path()
    refuse_mistyped(path)
    if label is not None or doomed:
        _change(path, label, doomed, is_sure=is_sure, as_json=as_json)
        return
    if store is None and not path.exists():
        found: list[RunSummary] = []  # nothing is wrong yet; a file that was named and isn't there is
    else:
        with Store.open(path, readonly=True) as results:
            found = results.runs()
    if as_json:
        render.print_json("runs", {"store": str(path), "runs": [_as_json(run) for run in found]})
        return
    columns: list[Column | str] = [
        Column("run", right=True, style="bold"), "label", "suite", "started", "status",
        Column("points", right=True), Column("measured", right=True), Column("transports", wrap=True, optional=True),
    ]  # fmt: skip
    render.table(columns, [_row(run) for run in found])
    if not found:
        render.say("There are no runs yet: hockney quick makes one.")


def _change(path: Path, label: tuple[str, str] | None, doomed: Sequence[str], *, is_sure: bool, as_json: bool) -> None:
    from hockney.cli.labels import delete, numbers_of, relabel
    from hockney.store import Store

    with Store.open(path, create=False) as results:
        numbers = numbers_of(results, doomed)
        if numbers and not is_sure:
            raise UsageError(f"{_named(results, numbers)} would be deleted from {path} for good: --yes does it")
        labelled = None if label is None else relabel(results, label[0], label[1] or None)
        deleted = delete(results, numbers)
    if as_json:
        render.print_json("runs", {"store": str(path), "labelled": labelled, "deleted": deleted})
        return
    if label is not None:
        words = f"the label '{label[1]}'" if label[1] else "no label"
        render.say(f"run {labelled} has {words} now")
    for number in deleted:
        render.say(f"run {number} is deleted from {path}")


def _named(results: Store, numbers: Sequence[int]) -> str:
    """`run 3 (quick, 2026-11-21 04:43), run 4 (…)`."""
    runs = {run.id: run for run in results.runs()}
    return ", ".join(
        f"run {number} ({runs[number].suite}, {local_time(runs[number].started_unix_s)})" for number in numbers
    )


def _row(run: RunSummary) -> list[str]:
    asked = sum(run.points.values()) - run.points.get(PointStatus.SKIPPED, 0)
    done = sum(run.points.get(status, 0) for status in _ENDED)
    return [
        str(run.id),
        run.label or "",
        run.suite,
        local_time(run.started_unix_s),
        run.status.value,
        f"{done}/{asked}",
        _measured(run),
        " ".join(run.transports),
    ]


def _measured(run: RunSummary) -> str:
    if run.measured_least_s is None:
        return "-"
    return format_duration_s(run.measured_least_s) + (" or more" if run.measured_s is None else "")


def _as_json(run: RunSummary) -> dict[str, object]:
    return {
        "number": run.id,
        "label": run.label,
        "command": run.command,
        "suite": run.suite,
        "started_unix_s": run.started_unix_s,
        "finished_unix_s": run.finished_unix_s,
        "measured_s": run.measured_s,
        "measured_least_s": run.measured_least_s,
        "status": run.status.value,
        "rounds": run.rounds,
        "transports": list(run.transports),
        "points": {status.value: count for status, count in run.points.items()},
    }
