"""What every command has: --json, --store, help with an example, and an exit code as its return value."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import click

from hockney.cli import complete
from hockney.cli.rerun import named_store
from hockney.errors import ExitCode, UsageError

Function = Callable[..., Any]


HELP_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_LABEL_MAX = 40  # characters
_CODES = {
    ExitCode.DONE: "done",
    ExitCode.WORSE: "slower",
    ExitCode.USAGE: "wrong usage or file",
    ExitCode.INCOMPLETE: "incomplete or inconclusive",
}


class _Command(click.Command):
    """A command whose help ends with examples and its exit codes."""

    example = ""
    codes: tuple[ExitCode, ...] = ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does; an option without its value is a UsageError that names the value, with an example."""
        try:
            return super().parse_args(ctx, args)
        except click.BadOptionUsage as error:
            name = error.option_name
            option = next((option for option in self.params if name in option.opts), None)
            if option is None or option.metavar is None:
                raise  # a flag, which takes none, as --help
            line = next((line.strip() for line in self.example.splitlines() if f" {name} " in line), None)
            more = f"for example `{line}`" if line else f"see `{ctx.command_path} --help`"
            raise UsageError(f"{name} needs {option.metavar}: {more}") from error

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        lines = self.example.splitlines()
        with formatter.section("Example" if len(lines) == 1 else "Examples"):
            for line in lines:
                formatter.write(f"  {line.strip()}\n")
        formatter.write_paragraph()
        codes = ", ".join(f"{code:d} {_CODES[code]}" for code in self.codes)
        formatter.write(f"Exit codes: {codes}.\n")


def _refuse_empty(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
    """A path without characters would be the folder one is in."""
    if path == Path():
        raise UsageError("--store names no file: name one, or leave it out")
    return path


def common_options(function: Function) -> Function:
    """Adds --json and --store, given to the function as `as_json` and `store`.

    They may stand before the command too: `hockney --store FILE runs`.
    """

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @click.option(
        "--store",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        callback=_refuse_empty,
        help="The results file. [default: HOCKNEY_STORE]",
    )
    @functools.wraps(function)
    def with_common(*args: Any, as_json: bool, store: Path | None, **rest: Any) -> Any:
        before = click.get_current_context().find_root().params
        store = store or before.get("store")
        named_store.set(None if store is None else str(store))
        return function(*args, as_json=as_json or bool(before.get("as_json")), store=store, **rest)

    return with_common


def command(
    name: str, *, example: str, codes: tuple[ExitCode, ...] = (ExitCode.DONE, ExitCode.USAGE, ExitCode.INCOMPLETE)
) -> Callable[[Function], _Command]:
    """Makes a command of hockney out of a function with the keywords `as_json` and `store`.

    Its docstring is the help; an int that it returns is the exit code, one of `codes`. `example` has a command line
    on each line.
    """

    def decorate(function: Function) -> _Command:
        made = click.command(name, cls=_Command, context_settings=HELP_SETTINGS)(common_options(function))
        made.example, made.codes = example, codes
        return made

    return decorate


def run_argument(function: Function) -> Function:
    """The argument RUN: a number, a label, `last` (the default) or `last~1`."""
    return click.argument("reference", metavar="[RUN]", default="last", shell_complete=complete.runs)(function)


def names(option: str, texts: Sequence[str]) -> tuple[str, ...]:
    """The words between commas, over all uses of an option. Raises UsageError where it names none."""
    words = tuple(word.strip() for text in texts for word in text.split(",") if word.strip())
    if texts and not words:
        raise UsageError(f"{option} names nothing: name something, or leave it out")
    return words


def check_label(label: str | None) -> None:
    """Raises UsageError for a label that cannot name a run."""
    if label is None:
        return
    if label.isdecimal() or label == "last" or "~" in label:
        raise UsageError(f"'{label}' cannot be a label: a number, 'last' and '~' already mean something; use another")
    if not label.strip() or not label.isprintable() or label.startswith("-") or len(label) > _LABEL_MAX:
        raise UsageError(f"a label is one line of 1 to {_LABEL_MAX} characters and does not begin with '-'")


def refuse_unwritable(path: Path) -> None:
    """Raises UsageError where a file cannot be written, as far as that is known beforehand."""
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {path}: there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder; name a file")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"cannot write {path}: permission denied; name another file")


def refuse_loss(option: str, path: Path, needed: Collection[Path] = ()) -> None:
    """Raises UsageError where writing this file would destroy one that the command needs, or results of hockney."""
    from hockney.results.store.opening import is_results_file

    if any(_is_same(path, other) for other in needed):
        lost = f"which the {click.get_current_context().info_name} itself needs"
    elif is_results_file(path):
        lost = "a results file of hockney"
    else:
        return
    raise UsageError(f"{option} would write over {path}, {lost}: name another file")


def _is_same(path: Path, other: Path) -> bool:
    with contextlib.suppress(OSError):  # one of them isn't there
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)
