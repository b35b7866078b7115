"""`hockney delete`: remove runs from the results file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from hockney.cli import render
from hockney.cli.common import command, complete
from hockney.cli.render import local_time
from hockney.cli.streams import remark
from hockney.results.store import Store
from hockney.units import counted


@command(
    "delete",
    example="hockney delete last\nhockney delete last~1\nhockney delete 3 4 trial --yes\nhockney delete 1 --json",
)
@click.argument("references", metavar="RUN...", nargs=-1, required=True, shell_complete=complete("run"))
@click.option("-y", "--yes", is_flag=True, help="Delete without asking.")
def delete(references: tuple[str, ...], yes: bool, *, as_json: bool, store: Path | None) -> int:
    """Delete stored runs.

    RUN is a number, a label, `last` or `last~1`. On a terminal, hockney asks before it deletes. A run that is being
    measured is not deleted. The numbers of deleted runs are not used again, but later runs reuse their space.
    """
    with Store.open(store, create=False) as results:
        numbers = list(dict.fromkeys(results.find_run(reference) for reference in references))
        runs = [run for run in results.runs() if run.id in numbers]
        lines = [
            f"run {run.id}{f' ({run.label})' if run.label else ''}: {run.suite}, {local_time(run.started_unix_s)}, "
            f"{counted(run.measured, 'point')} measured"
            for run in runs
        ]
        if not yes and sys.stdin.isatty():
            for line in lines:
                remark(line)
            if not click.confirm(f"Delete {counted(len(runs), 'run')}?", err=True):
                remark("nothing was deleted")
                runs, lines = [], []
        results.delete_runs([run.id for run in runs])
        if as_json:
            render.print_json("delete", {"store": str(results.path), "deleted": [run.id for run in runs]})
        else:
            for line in lines:
                render.say(f"deleted {line}")
    return 0
