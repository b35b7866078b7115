"""What commands share: help with examples and exit codes, completion in a shell, options, and checks of values."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import textwrap
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.shell_completion import CompletionItem

from hockney.cli.clashes import refuse_clashes
from hockney.errors import ExitCode, HockneyError, UsageError, notice, unknown, working
from hockney.render.streams import passing, remark
from hockney.report.commands import named_store, program
from hockney.units import parse_count, parse_duration_s

if TYPE_CHECKING:
    from hockney.results.store import RunSummary

Function = Callable[..., Any]
_Kind = Literal["run", "state", "what", "transport", "pattern", "machine", "model", "parameter"]
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
            for line in map(str.strip, self.example.splitlines()):
                line = re.sub("^hockney ", f"{program()} ", line)
                # Continued lines end as a shell wants them, so that an example can be copied from any width.
                continued = textwrap.wrap(
                    _WITH_VALUE.sub("\\1\N{NO-BREAK SPACE}", line),
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


# ---- completion in a shell: only fast answers, and nothing on errors -------------------------------------------------


def complete(kind: _Kind) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Completes to the words of a kind with the typed prefix. An error ends the list: the user is still typing."""

    def completed(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        known: dict[str, None] = {}
        with warnings.catch_warnings(), contextlib.suppress(HockneyError, OSError):
            warnings.simplefilter("ignore")
            before = incomplete[: incomplete.rfind(",") + 1] if kind in ("what", "transport") else ""
            for word in _words(kind, ctx, incomplete.removeprefix(before)):
                known[before + word] = None
        return [CompletionItem(word) for word in known if word.startswith(incomplete) and word.isprintable()]

    return completed


def _words(kind: _Kind, ctx: click.Context, incomplete: str) -> Iterator[str]:
    store = ctx.find_root().params.get("store")
    match kind:
        case "run":
            yield from ("last", "last~1")
            yield from sorted({run.label for run in stored_runs(store) if run.label})
        case "state":
            from hockney.results.runs import open_results

            with open_results(store) as results:
                run = results.run(ctx.params.get("reference") or "last")
                names = {name for series in run.series for name in series.counts}
            yield from sorted(name for name in names if " " not in name)  # a shell would split the others
        case "what":
            folder = incomplete.rpartition("/")[0] or ("/" if incomplete.startswith("/") else ".")
            files = [f"{path}/" if path.is_dir() else str(path) for path in sorted(Path(folder).iterdir())]
            yield from (file for file in files if file.endswith((".toml", "/")))
            yield from things_to_run(incomplete)
        case "transport":
            from hockney.worker.catalogue import load

            yield from ("mpi", "pvm", *load().transports)
        case "pattern":
            from hockney.worker.catalogue import native_patterns

            yield from native_patterns()
        case "machine":
            from hockney.archive import machines

            yield from machines()
        case "model":
            from hockney.worker.machine_model import builtin_models

            yield from builtin_models()
        case "parameter":
            from hockney.analysis.predict.change import PARAMETERS

            yield from (f"{name}=" for name in PARAMETERS)


def things_to_run(word: str) -> Iterator[str]:
    """Names of suites, patterns, and the benchmarks of a tool that the word names. Raises BuildError, ProtocolError."""
    from hockney.suites import builtin_names
    from hockney.suites.tools import tools
    from hockney.worker.catalogue import native_patterns

    yield from builtin_names()
    yield from native_patterns()
    yield from (name for tool in tools().values() if word for name in tool.words)


# ---- options --------------------------------------------------------------------------------------------------------


def read_count(what: str, most: int, word: str) -> int:
    """A whole number from 1 to `most`. Raises UsageError."""
    number = parse_count(word, most)
    if number is None:
        raise UsageError(f"'{word}' is not a number of {what}: write 1 to {most}, for example --{what} 6")
    return number


def count_of(what: str, most: int) -> Callable[[str], int]:
    """The type of an option that takes such a number."""

    def count(word: str) -> int:
        return read_count(what, most, word)

    return count


def _parse_limit(word: str) -> int:
    """The limit of a measurement in whole seconds. Raises UsageError."""
    limit_s = parse_duration_s(word)
    if not 1 <= limit_s <= 86400:
        raise UsageError("--limit is not a time limit: write 1s to 24h")
    return round(limit_s)


def parse_label(label: str) -> str:
    """A label for a run. Raises UsageError for one that cannot name a run."""
    if label.isdecimal() or label == "last" or "~" in label:
        raise UsageError(f"'{label}' cannot be a label: a number, 'last' and '~' already mean something; use another")
    if not label.strip() or not label.isprintable() or label.startswith("-") or len(label) > 40:
        raise UsageError("a label is one line of 1 to 40 characters and does not begin with '-'")
    return label


duration_option = functools.partial(click.option, type=parse_duration_s, metavar="DURATION")
limit_option = functools.partial(
    click.option, "--limit", "timeout_s", type=_parse_limit, metavar="DURATION"
)  # named as the field of the limits
file_option = functools.partial(click.option, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")
output_option = functools.partial(click.option, "-o", "--output", type=click.Path(path_type=Path), metavar="FILE")
label_option = functools.partial(
    click.option, "-l", "--label", type=parse_label, metavar="NAME", help="A name for this run."
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print no progress, only the result.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Show the plan and the time it needs; measure nothing.")
model_option = functools.partial(click.option, "--machine", metavar="MODEL", shell_complete=complete("model"))
transport_option = functools.partial(
    click.option, "-t", "--transport", metavar="NAME", shell_complete=complete("transport")
)
transports_option = functools.partial(transport_option, multiple=True, metavar="NAME,…")
pattern_option = functools.partial(
    click.option, "-o", "--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the pattern."
)


def together(*options: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """One decorator for these options, which the help lists in this order."""

    def add(function: Function) -> Function:
        return functools.reduce(lambda made, option: option(made), reversed(options), function)

    return add


host_options = together(
    click.option(
        "--hosts",
        multiple=True,
        metavar="HOST,…",
        help="Hosts: n1,n2 or n[1-4]; n1:2 for two ranks. [default: the batch job's]",
    ),
    file_option("--hostfile", help="Run on the hosts in FILE, one on a line."),
    click.option(
        "--launcher", metavar="NAME", help="Start ranks with mpiexec, srun, ssh, flux or a template. [default: auto]"
    ),
    click.option("--interface", metavar="NAME", help="The network interface of each host to use. [default: any]"),
)
place_options = together(
    host_options,
    click.option(
        "--per-node", multiple=True, metavar="N,…", help="Fill each host with N ranks. [default: spread evenly]"
    ),
    click.option("--cpus", multiple=True, metavar="CPU,…", help="Pin rank 0 to the first CPU and so on: 0,2 or 0-3."),
    click.option(
        "--map",
        "map_by",
        type=OneOf("placement", ("core", "socket", "node")),
        metavar="WORD",
        help="Place ranks on consecutive cores, sockets or NUMA nodes. [default: core]",
    ),
)
point_options = together(
    click.option("-n", "--ranks", multiple=True, metavar="N,…", help="Numbers of ranks. [default: the suite's]"),
    click.option(
        "--bytes",
        "sizes",
        multiple=True,
        metavar="SIZES",
        help="Message sizes: 8, or 0,8,1K, or 1:1M for powers of two.",
    ),
    pattern_option(),
)


def common_options(function: Function) -> Function:
    """Adds --json and --store, as `as_json` and `store`; they may stand before the command too."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @file_option("--store", help="The results file. [default: HOCKNEY_STORE]")
    @functools.wraps(function)
    def with_common(*args: Any, as_json: bool, store: Path | None, **rest: Any) -> Any:
        context = click.get_current_context()
        before, as_json = context.find_root().params, as_json or bool(context.find_root().params.get("as_json"))
        store = store or before.get("store")
        named_store.set(None if store is None else str(store))
        say_once = functools.cache(lambda text: remark(f"hockney: {text}"))
        notice.set((lambda _: None) if rest.get("quiet") else say_once)
        working.set((lambda _: contextlib.nullcontext()) if rest.get("quiet") else passing)
        if "junit" not in rest:  # else the report says so, too
            refuse_clashes(context, as_json=as_json)
        return function(*args, as_json=as_json, store=store, **rest)

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


# ---- values ---------------------------------------------------------------------------------------------------------


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
