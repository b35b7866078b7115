"""Which commands there are. A command's module is loaded when it is called, so that the others cost nothing."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import click

from hockney import __version__
from hockney.cli.common import HELP_SETTINGS, common_options
from hockney.errors import UsageError, unknown


@dataclass(frozen=True)
class Entry:
    """What a command does in one line, and an example."""

    summary: str
    example: str


# In the order of the help. A test compares the summaries with the commands' own.
COMMANDS = {
    "quick": Entry("Measure this machine in about a minute, and print its data sheet.", "quick"),
    "run": Entry("Measure a suite or some patterns.", "run pingpong,oneway -t shm,tcp --precision 1%"),
    "list": Entry("List what can be measured here, and how to get what is missing.", "list"),
    "runs": Entry("List the runs that are stored.", "runs"),
    "show": Entry("Show the figures of a run.", "show last --transport shm"),
    "delete": Entry("Delete stored runs.", "delete last"),
    "explain": Entry("Explain the figures of a run.", "explain last"),
    "compare": Entry("Compare two runs: which series became faster or slower.", "compare before after"),
    "check": Entry(
        "Check for slowdowns against a baseline, or limits in a file.", "check --baseline before --max-slowdown 5%"
    ),
    "predict": Entry(
        "Predict times of a suite or some patterns on a machine fitted to a run, or on a model.",
        "predict alltoall -n 64",
    ),
    "export": Entry(
        "Write a run as CSV, JSON, Parquet, OSU text or a platform of SimGrid.", "export last --csv -o figures.csv"
    ),
    "import": Entry("Store the outputs of other benchmarks as a run.", "import osu_latency.txt"),
    "report": Entry("Write an HTML report of runs.", "report last -o report.html"),
    "doctor": Entry("Show what limits precision here, and how to fix it.", "doctor"),
    "completion": Entry("Print the script that completes commands in a shell.", "completion bash"),
}


_MODULES = {"list": "listing", "import": "importing"}  # their names are words of Python


class Commands(click.Group):
    """A group whose commands are loaded when they are needed, each from its own module."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"hockney.cli.{_MODULES.get(cmd_name, cmd_name)}")
        return next(value for value in vars(module).values() if isinstance(value, click.Command))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            raise _unknown(args[0])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """From the table above: importing every command for one line each would take most of the time."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text("Example: hockney quick. Every command has --help with examples.")


def _unknown(word: str) -> UsageError:
    from hockney.cli.complete import things_to_run

    if word in things_to_run():
        return UsageError(f"unknown command '{word}'. To measure it", argv=("hockney", "run", word))
    return unknown("command", word, COMMANDS)


@click.group(cls=Commands, invoke_without_command=True, context_settings=HELP_SETTINGS)
@click.version_option(__version__, message="hockney %(version)s", help="Print the version.")
@common_options
@click.pass_context
def hockney(ctx: click.Context, /, **common: Any) -> None:
    """Measure how fast programs talk to each other, with confidence intervals, and explain the results.

    Without a command, hockney shows what it can do on this machine.
    """
    if ctx.invoked_subcommand is None:
        from hockney.cli.welcome import welcome

        welcome(**common)
