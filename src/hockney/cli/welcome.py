"""The bare command: the main commands and the last run, on one screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hockney.cli.commands import COMMANDS
from hockney.cli.common import stored_runs
from hockney.cli.rerun import error_text, typed
from hockney.errors import HockneyError
from hockney.units import printable


def welcome(*, as_json: bool, store: Path | None) -> None:
    """Print the main commands with examples, and the last run if there is one."""
    from hockney.cli.render import local_time, print_json

    last: dict[str, Any] | None = None
    try:
        for run in stored_runs(store)[-1:]:
            last = {
                "number": run.id,
                "label": run.label,
                "suite": run.suite,
                "started": local_time(run.started_unix_s),
                "status": run.status.value,
            }
    except HockneyError as error:
        last = {"error": error_text(error)}
    if as_json:
        commands = [
            {"name": name, "summary": entry.summary, "example": f"hockney {entry.example}"}
            for name, entry in COMMANDS.items()
        ]
        print_json("welcome", {"commands": commands, "last_run": last})
        return
    click.echo("hockney measures how fast programs talk to each other, and explains the figures.\n")
    for name in ("quick", "run", "list", "show", "doctor"):
        click.echo(f"  {click.style('hockney ' + COMMANDS[name].example, bold=True)}")
        click.echo(f"      {COMMANDS[name].summary}")
    click.echo("\nAll commands: hockney --help. Each one with its options: hockney COMMAND --help.")
    if last is None:
        end = f"No runs are stored yet. Start with {typed('quick')}."
    elif "error" in last:
        end = f"The results cannot be read: {last['error']}"
    else:
        label = f" ({last['label']})" if last["label"] else ""
        end = f"Last run: {last['number']}{label}, {last['suite']}, {last['started']}, {last['status']}.\n"
        end += f"See it: {typed('show', 'last')}"
    click.echo(printable(end))
