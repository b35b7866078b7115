"""`hockney runs`: list the stored runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hockney.cli import complete, render
from hockney.cli.common import check_label, command
from hockney.cli.render import Column, local_time
from hockney.units import format_duration_s

if TYPE_CHECKING:
    from hockney.results.store import RunSummary


@command(
    "runs",
    example="""hockney runs
    hockney runs --label 12 nightly
    hockney runs --json""",
)
@click.option(
    "--label",
    nargs=2,
    metavar="RUN NAME",
    help="Set the label of a run; '' removes it.",
    shell_complete=complete.runs,
)
def runs(label: tuple[str, str] | None, *, as_json: bool, store: Path | None) -> None:
    """List the runs that are stored.

    A run has a number and may have a label. Commands take either, or `last`; `last~1` is the run before the last. A
    label names the newest run that has it, LABEL~1 the one before. The column `points` counts the points that were
    measured, of all that were not skipped. `measured` is the time for measuring, without the pause before a resume;
    for a killed run, the time until its last stored measurement. With --label nothing is listed.
    """
    from hockney.results.store import Store, default_path
    from hockney.results.store.opening import refuse_mistyped

    path = store or default_path()
    refuse_mistyped(path)
    if label is not None:
        _relabel(path, *label, as_json=as_json)
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
        from hockney.cli.rerun import typed

        render.say(f"There are no runs yet: {typed('quick')} makes one.")


def _relabel(path: Path, reference: str, label: str, *, as_json: bool) -> None:
    from hockney.results.store import Store

    check_label(label or None)
    with Store.open(path, create=False) as results:
        number = results.find_run(reference)
        results.label_run(number, label or None)
    if as_json:
        render.print_json("runs", {"store": str(path), "labelled": number})
    else:
        render.say(f"run {number} has the label '{label}' now" if label else f"run {number} has no label now")


def _row(run: RunSummary) -> list[str]:
    return [
        str(run.id),
        run.label or "",
        run.suite,
        local_time(run.started_unix_s),
        run.status.value,
        f"{run.measured}/{run.planned}",
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
        "planned_points": run.planned,
        "measured_points": run.measured,
        "points": {status.value: count for status, count in run.points.items()},
    }
