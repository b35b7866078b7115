"""The bare command: the main commands and the last run, on one screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hockney.cli.commands import COMMANDS
from hockney.cli.rerun import error_text, typed
from hockney.errors import HockneyError
from hockney.units import printable


def welcome(*, as_json: bool, store: Path | None) -> None:
    """Print the main commands with examples, and the last run if there is one."""
    last = _last_run(store)
    if as_json:
        from hockney.cli import render

        commands = [
            {"name": name, "summary": entry.summary, "example": f"hockney {entry.example}"}
            for name, entry in COMMANDS.items()
        ]
        render.print_json("welcome", {"commands": commands, "last_run": last})
        return
    click.echo("hockney measures how fast programs talk to each other, and explains the figures.\n")
    for name in ("quick", "run", "list", "show", "doctor"):
        click.echo(f"  {click.style('hockney ' + COMMANDS[name].example, bold=True)}")
        click.echo(f"      {COMMANDS[name].summary}")
    click.echo("\nAll commands: hockney --help. Each one with its options: hockney COMMAND --help.")
    if last is None:
        end = f"No runs are stored yet. Start with {typed('quick')}."
    elif "number" in last:
        name = f"{last['number']}" + (f" ({last['label']})" if last["label"] else "")
        end = (
            f"Last run: {name}, {last['suite']}, {last['started']}, {last['status']}.\nSee it: {typed('show', 'last')}"
        )
    else:
        end = f"The results cannot be read: {last['error']}"
    click.echo(printable(end))


def _last_run(path: Path | None) -> dict[str, Any] | None:
    """None without runs; a store that cannot be read gives its error."""
    from hockney.results.store import Store, default_path
    from hockney.results.store.opening import refuse_mistyped

    where = path or default_path()
    try:
        refuse_mistyped(where)
        if not where.exists():
            return None
        with Store.open(path, readonly=True) as store:
            runs = store.runs()
    except HockneyError as error:
        return {"error": error_text(error)}
    if not runs:
        return None
    from hockney.cli.render import local_time

    last = runs[-1]
    return {
        "number": last.id,
        "label": last.label,
        "suite": last.suite,
        "started": local_time(last.started_unix_s),
        "status": last.status.value,
    }
