"""Which commands there are. A command's module is loaded when it is called, so that the others cost nothing."""

from __future__ import annotations

import contextlib
import importlib
from pathlib import Path
from typing import Any

import click

from hockney.cli.common import HELP_SETTINGS, Command, common_options, stored_runs, things_to_run
from hockney.errors import HockneyError, UsageError, unknown
from hockney.render.json import print_json
from hockney.report.commands import error_text, program, typed
from hockney.units import local_time, printable
from hockney.version import __version__

# In the order of the help. A test compares the summaries with the commands' own.
COMMANDS = {
    "quick": "Measure this machine in about a minute, and print its data sheet.",
    "run": "Measure a suite or some patterns.",
    "health": "Find the slow host, the bad cable, and what else is wrong among hosts.",
    "list": "List suites, patterns, transports and launchers, and how to get missing ones.",
    "runs": "List the runs that are stored.",
    "show": "Show the figures of a run.",
    "delete": "Delete stored runs.",
    "explain": "Explain the figures of a run.",
    "compare": "Compare two runs: which series became faster or slower.",
    "history": "Show series over all runs, and when they changed.",
    "check": "Check for slowdowns against a baseline, or limits in a file.",
    "baseline": "Accept a run as the baseline of checks, or say which is.",
    "bisect": "Find the commit that made a pattern slower, or faster.",
    "tune": "Find settings of an MPI library that are faster than its defaults, and write them as its rules.",
    "predict": "Predict times of a suite or some patterns on a machine fitted to a run, or on a model.",
    "share": "Write a run as a data sheet that you can give to others.",
    "export": "Write a run as CSV, JSON, Parquet or OSU text.",
    "import": "Store the outputs of other benchmarks as a run.",
    "report": "Write an HTML report of runs.",
    "setup": "Install MPI libraries from the Python package index, without root.",
    "doctor": "Show what limits precision here, and how to fix it.",
    "completion": "Print the script that completes commands in a shell.",
}


class Commands(click.Group):
    """A group whose commands are loaded when they are needed, each from its own module."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Command | None:
        if cmd_name not in COMMANDS:
            return None
        words_of_python = {"list": "listing", "import": "importing"}
        module = importlib.import_module(f"hockney.cli.{words_of_python.get(cmd_name, cmd_name)}")
        commands = (value for value in vars(module).values() if isinstance(value, Command))
        return next(command for command in commands if command.name == cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            raise _unknown(args[0])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table above: importing each for one line would take most of the time."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(f"Example: {program()} quick. Every command has --help with examples.")
        formatter.write_paragraph()
        formatter.write_text("The pages docs/*.md that screens name are in")
        formatter.write(f"  {docs_folder()}\n")  # an address is not broken


def docs_folder() -> Path:
    """The folder of the pages: in the package if it was installed, next to its sources in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "docs"
    return installed if installed.is_dir() else package.parents[1] / "docs"


def _unknown(word: str) -> UsageError:
    if word == "help":
        return UsageError("unknown command 'help'. For help", argv=("hockney", "--help"))
    with contextlib.suppress(HockneyError):  # no compiler
        if word in things_to_run(word):
            return UsageError(f"unknown command '{word}'. To measure it", argv=("hockney", "run", word))
    return unknown("command", word, COMMANDS)


@click.group(cls=Commands, invoke_without_command=True, context_settings=HELP_SETTINGS)
@click.version_option(__version__, message="hockney %(version)s", help="Print the version.")
@common_options
@click.pass_context
def hockney(ctx: click.Context, /, **common: Any) -> None:
    """Measure how fast programs communicate, with confidence intervals, and explain the results.

    Without a command, hockney shows what it can do on this machine.
    """
    if ctx.invoked_subcommand is None:
        _welcome(ctx, **common)


def _welcome(ctx: click.Context, *, as_json: bool, store: Path | None) -> None:
    """Print the main commands with examples, and the last run if there is one."""
    last: dict[str, Any] | None = None
    try:
        for run in stored_runs(store)[-1:]:
            last = {
                "number": run.id,
                "label": run.label,
                "suite": run.suite,
                "started": local_time(run.started_unix_s),
                "status": run.ending,
            }
    except HockneyError as error:
        last = {"error": error_text(error)}
    if as_json:
        commands = [
            {"name": name, "summary": summary, "example": _example(ctx, name)} for name, summary in COMMANDS.items()
        ]
        print_json("welcome", {"commands": commands, "last_run": last})
        return
    click.echo("hockney measures how fast programs talk to each other, and explains the figures.\n")
    for name in ("quick", "run", "list", "show", "doctor"):
        example = _example(ctx, name).replace("hockney", program(), 1)
        click.echo(f"  {click.style(example, bold=True)}")
        click.echo(f"      {COMMANDS[name]}")
    click.echo(f"\nAll commands: {program()} --help. Each one with its options: {program()} COMMAND --help.")
    if last is None:
        end = f"No runs are stored yet. Start with {typed('quick')}."
    elif "error" in last:
        end = f"The results cannot be read: {last['error']}"
    else:
        label = f" ({last['label']})" if last["label"] else ""
        end = f"Last run: {last['number']}{label}, {last['suite']}, {last['started']}, {last['status']}.\n"
        end += f"See it: {typed('show', 'last')}"
    click.echo(printable(end))


def _example(ctx: click.Context, name: str) -> str:
    """The first of a command's examples."""
    command = hockney.get_command(ctx, name)
    assert isinstance(command, Command)
    return command.example.partition("\n")[0]
