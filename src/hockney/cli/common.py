"""Options of every command: --json, --store, help with an example, and an exit code as its return value."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import textwrap
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hockney.cli.rerun import named_store, program
from hockney.cli.streams import passing, remark
from hockney.errors import ExitCode, UsageError, notice, unknown, working
from hockney.units import parse_duration_s

if TYPE_CHECKING:
    from hockney.results.store import RunSummary

Function = Callable[..., Any]
duration_option = functools.partial(click.option, type=parse_duration_s, metavar="DURATION")
file_option = functools.partial(click.option, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")


HELP_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_WITH_VALUE = re.compile(r"( --?[a-z-]+) (?!-)")  # an option, which stays with its value
_CODES = {
    ExitCode.DONE: "done",
    ExitCode.WORSE: "slower, or a fault was found",
    ExitCode.USAGE: "wrong usage or file",
    ExitCode.INCOMPLETE: "incomplete or inconclusive",
}


class Command(click.Command):
    """A command whose help ends with examples and its exit codes."""

    example = ""
    codes: tuple[ExitCode, ...] = ()

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            for line in self.example.splitlines():
                line = re.sub("^hockney ", f"{program()} ", line)
                # Continued lines end as a shell wants them, so that an example can be copied from any width.
                continued = textwrap.wrap(
                    _WITH_VALUE.sub("\\1\N{NO-BREAK SPACE}", line.strip()),
                    formatter.width - len("   \\"),
                    subsequent_indent="    ",
                    break_long_words=False,
                    break_on_hyphens=False,
                )
                formatter.write("  " + " \\\n  ".join(continued).replace("\N{NO-BREAK SPACE}", " ") + "\n")
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), _CODES[code]) for code in self.codes])


class OneOf(click.Choice[str]):
    """One of some words; an unknown one is an error like all others of hockney."""

    def __init__(self, kind: str, words: Sequence[str]) -> None:
        super().__init__(words)
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word itself. Raises UsageError with the nearest one."""
        if value not in self.choices:
            raise unknown(self.kind, str(value), self.choices)
        return str(value)


def host_options(function: Function, *, has_per_node: bool = True) -> Function:
    """Adds --hosts, --hostfile, --per-node, --launcher and --interface."""
    hosts = click.option(
        "--hosts",
        multiple=True,
        metavar="HOST,…",
        help="Hosts: n1,n2 or n[1-4]; n1:2 for two ranks. [default: the batch job's]",
    )
    launcher = click.option(
        "--launcher",
        metavar="NAME",
        help="Start ranks with mpiexec, srun, ssh, flux or a template. [default: auto]",
    )
    per_node = click.option(
        "--per-node", multiple=True, metavar="N,…", help="Fill each host with N ranks. [default: spread evenly]"
    )
    hostfile = file_option("--hostfile", help="Run on the hosts in FILE, one on a line.")
    interface = click.option(
        "--interface", metavar="NAME", help="The network interface of each host to use. [default: any]"
    )
    options = launcher(interface(function))
    return hosts(hostfile(per_node(options) if has_per_node else options))


def cpu_options(function: Function) -> Function:
    """Adds --cpus and --map, given to the function as `cpus` and `map_by`."""
    cpus = click.option(
        "--cpus", multiple=True, metavar="CPU,…", help="Pin rank 0 to the first CPU and so on: 0,2 or 0-3."
    )
    map_by = click.option(
        "--map",
        "map_by",
        type=OneOf("placement", ("core", "socket", "node")),
        metavar="WORD",
        help="Place ranks on consecutive cores, sockets or NUMA nodes. [default: core]",
    )
    return cpus(map_by(function))


def point_options(function: Function) -> Function:
    """Adds --ranks, --bytes and --option, given to the function as `ranks`, `sizes` and `options`."""
    ranks = click.option("-n", "--ranks", multiple=True, metavar="N,…", help="Numbers of ranks. [default: the suite's]")
    sizes = click.option(
        "--bytes",
        "sizes",
        multiple=True,
        metavar="SIZES",
        help="Message sizes: 8, or 0,8,1K, or 1:1M for powers of two.",
    )
    options = click.option(
        "-o", "--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the pattern."
    )
    return ranks(sizes(options(function)))


def common_options(function: Function) -> Function:
    """Adds --json and --store, given to the function as `as_json` and `store`.

    They may stand before the command too: `hockney --store FILE runs`.
    """

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @file_option("--store", help="The results file. [default: HOCKNEY_STORE]")
    @functools.wraps(function)
    def with_common(*args: Any, as_json: bool, store: Path | None, **rest: Any) -> Any:
        before = click.get_current_context().find_root().params
        store = store or before.get("store")
        named_store.set(None if store is None else str(store))
        say_once = functools.cache(lambda text: remark(f"hockney: {text}"))
        notice.set((lambda _: None) if rest.get("quiet") else say_once)
        working.set((lambda _: contextlib.nullcontext()) if rest.get("quiet") else passing)
        return function(*args, as_json=as_json or bool(before.get("as_json")), store=store, **rest)

    return with_common


def command(
    name: str, *, example: str, codes: tuple[ExitCode, ...] = (ExitCode.DONE, ExitCode.USAGE, ExitCode.INCOMPLETE)
) -> Callable[[Function], Command]:
    """Makes a command of hockney out of a function with the keywords `as_json` and `store`.

    Its docstring is the help; an int that it returns is the exit code, one of `codes`. `example` has a command line
    on each line.
    """

    def decorate(function: Function) -> Command:
        made = click.command(name, cls=Command, context_settings=HELP_SETTINGS)(common_options(function))
        made.example, made.codes = example, codes
        return made

    return decorate


def names(option: str, texts: Sequence[str]) -> tuple[str, ...]:
    """The words between commas, over all uses of an option. Raises UsageError where it names none."""
    words = tuple(word.strip() for text in texts for word in text.split(",") if word.strip())
    if texts and not words:
        raise UsageError(f"{option} names nothing: name something, or leave it out")
    return words


def stored_runs(store: Path | None) -> list[RunSummary]:
    """The runs of a results file, oldest first; none where the default one does not exist yet."""
    from hockney.results.store import Store, default_path
    from hockney.results.store.opening import refuse_mistyped

    path = store or default_path()
    refuse_mistyped(path)
    if store is None and not path.exists():
        return []
    with Store.open(path, readonly=True) as results:
        return results.runs()


def check_label(label: str | None) -> None:
    """Refuse a label that cannot name a run. Raises UsageError."""
    if label is None:
        return
    if label.isdecimal() or label == "last" or "~" in label:
        raise UsageError(f"'{label}' cannot be a label: a number, 'last' and '~' already mean something; use another")
    if not label.strip() or not label.isprintable() or label.startswith("-") or len(label) > 40:
        raise UsageError("a label is one line of 1 to 40 characters and does not begin with '-'")


def refuse_output(option: str, path: Path, needed: Collection[Path] = (), *, is_folder: bool = False) -> None:
    """Raises UsageError if a file or folder cannot be written, or a file is `needed` or holds results of hockney."""
    from hockney.results.store.opening import is_results_file

    wanted, other = ("folder", "file") if is_folder else ("file", "folder")
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {path}: there is no folder {path.parent}; make it first")
    if path.exists() and path.is_dir() != is_folder:
        raise UsageError(f"cannot write {path}: it is a {other}; name a {wanted}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"cannot write {path}: permission denied; name another {wanted}")
    if os.path.realpath(path) in map(os.path.realpath, needed) or is_results_file(path):
        raise UsageError(f"{option} would write over {path}, which is input or results of hockney: name another file")
