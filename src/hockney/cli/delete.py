"""`hockney delete`: remove runs from the results file."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from hockney.analysis.repeat import OF_COMMANDS
from hockney.cli.common import command, complete, duration_option
from hockney.model import RunStatus
from hockney.render.json import print_json
from hockney.render.streams import remark
from hockney.render.text import say
from hockney.results.store import RunSummary, Store
from hockney.units import counted, local_time


@command(
    "delete",
    example="""hockney delete last
    hockney delete 3 4 trial --yes
    hockney delete --older 90d --keep 30 --yes""",
)
@click.argument("references", metavar="[RUN]...", nargs=-1, shell_complete=complete("run"))
@duration_option(
    "--older", "older_s", help="Delete runs begun longer ago, such as 90d; labelled or accepted ones stay."
)
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="Keep the newest N runs, and those.")
@click.option("-y", "--yes", is_flag=True, help="Delete without asking.")
def delete(
    references: tuple[str, ...],
    older_s: float | None,
    keep: int | None,
    yes: bool,
    *,
    as_json: bool,
    store: Path | None,
) -> int:
    """Delete stored runs.

    RUN is a number, a label, `last` or `last~1`. --older and --keep choose runs without a label, and those of tune
    and bisect, that no one accepted as a baseline; with both, those that are older and not among the newest. On a
    terminal, hockney asks before it deletes. A run that is being measured is not deleted. The numbers of deleted
    runs are not used again, but later runs reuse their space.
    """
    with Store.open(store, create=False) as results:
        numbers, runs = {results.find_run(reference) for reference in references}, results.runs()
        old = [run.id for run in runs[: max(0, len(runs) - (keep or 0))] if _may_go(run, older_s)]
        runs = [run for run in runs if run.id in (numbers or old)]
        lines = [
            f"run {run.id}{f' ({run.label})' if run.label else ''}: {run.suite}, {local_time(run.started_unix_s)}, "
            f"{counted(run.measured, 'point')} measured"
            for run in runs
        ]
        if runs and not yes and sys.stdin.isatty():
            for line in lines:
                remark(line)
            if not click.confirm(f"Delete {counted(len(runs), 'run')}?", err=True):
                runs, lines = [], []
        results.delete_runs([run.id for run in runs])
        if as_json:
            print_json("delete", {"store": str(results.path), "deleted": [run.id for run in runs]})
        else:
            for line in lines:
                say(f"deleted {line}")
        if not runs:
            remark("nothing was deleted")
    return 0


def _may_go(run: RunSummary, older_s: float | None) -> bool:
    """Whether a run may be deleted that nobody named."""
    is_old = older_s is None or run.started_unix_s < time.time() - older_s
    return is_old and run.label in (None, *OF_COMMANDS) and not run.accepted and run.status is not RunStatus.RUNNING
