"""Completion of words in a shell: only fast answers, and nothing on errors."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import click
from click.shell_completion import CompletionItem

from hockney.cli.common import stored_runs
from hockney.errors import HockneyError

_Kind = Literal["run", "state", "what", "transport", "pattern", "machine", "model", "parameter"]


def complete(kind: _Kind) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Completes to the words of a kind with the typed prefix. An error ends the list: the user is still typing."""

    def completed(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        known: dict[str, None] = {}
        with warnings.catch_warnings(), contextlib.suppress(HockneyError, OSError):
            warnings.simplefilter("ignore")
            for word in _words(kind, ctx, incomplete):
                known[word] = None
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
                names = {state.name for _, measurements in run.summaries() for _, state in measurements}
            yield from sorted(name for name in names if " " not in name)  # a shell would split the others
        case "what":
            folder = incomplete.rpartition("/")[0] or ("/" if incomplete.startswith("/") else ".")
            files = [f"{path}/" if path.is_dir() else str(path) for path in sorted(Path(folder).iterdir())]
            yield from (file for file in files if file.endswith((".toml", "/")))
            yield from things_to_run()
        case "transport":
            from hockney.worker.catalogue import load

            before, comma, _ = incomplete.rpartition(",")
            yield from (f"{before}{comma}{name}" for name in ("mpi", "pvm"))
            yield from (f"{before}{comma}{name}" for name in load().transports)
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


def things_to_run() -> Iterator[str]:
    """Names of suites and patterns. Raises BuildError, ProtocolError."""
    from hockney.suites import builtin_names
    from hockney.worker.catalogue import native_patterns

    yield from builtin_names()
    yield from native_patterns()
