"""`hockney runs`: list the stored runs."""

from __future__ import annotations

from pathlib import Path

import click

from hockney.analysis.repeat import OF_COMMANDS
from hockney.cli.common import command, complete, parse_label, stored_runs
from hockney.render.json import print_json
from hockney.render.text import say, show
from hockney.report.documents.runs import runs_document
from hockney.results.store import RunSummary, Store, default_path


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
    shell_complete=complete("run"),
)
@click.option("--all", "everything", is_flag=True, help="List those that tune and bisect made, too.")
def runs(label: tuple[str, str] | None, *, everything: bool, as_json: bool, store: Path | None) -> None:
    """List the runs that are stored.

    A run has a number and may have a label. Commands take either, or `last`; `last~1` is the run before the last. A
    label names the newest run that has it, LABEL~1 the one before. The column `points` counts the points that were
    measured, of all that were not skipped. `measured` is the time for measuring, without the pause before a resume;
    for a killed run, the time until its last stored measurement. Runs that `tune` and `bisect` made, with these labels,
    are listed with --all. With --label nothing is listed.
    """
    if label is not None:
        reference, name = label[0], parse_label(label[1]) if label[1] else None
        with Store.open(store, create=False) as results:
            number = results.find_run(reference)
            results.label_run(number, name)
        if as_json:
            print_json("runs", {"store": str(results.path), "labelled": number})
        else:
            say(f"run {number} has the label '{name}' now" if name else f"run {number} has no label now")
        return
    stored = stored_runs(store)
    if as_json:
        documents = [_as_json(run) for run in stored]
        print_json("runs", {"store": str(store or default_path()), "runs": documents})
    else:
        listed = [run for run in stored if everything or run.label not in OF_COMMANDS]
        show(runs_document(listed, left_out=len(stored) - len(listed)))


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
        "status": run.ending,
        "rounds": run.rounds,
        "transports": list(run.transports),
        "planned_points": run.planned,
        "measured_points": run.measured,
        "accepted": run.accepted,
        "health": run.verdict,
        "points": {status.value: count for status, count in run.points.items()},
    }
