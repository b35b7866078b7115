"""Completion of words in a shell: what can be found fast, and nothing on errors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from hockney.results.store import RunSummary


def runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of runs: `last`, and labels."""
    return _beginning(incomplete, ["last", "last~1", *sorted({run.label for run in _stored(ctx) if run.label})])


def states(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Machine states of the run, except names of several words, which a shell would split."""
    words: list[str] = []
    with _quietly():
        from hockney.results.runs import open_results

        with open_results(ctx.find_root().params.get("store")) as results:
            run = results.run(ctx.params.get("reference") or "last")
            words += sorted({state.name for _, measurements in run.summaries() for _, state in measurements})
    return _beginning(incomplete, (word for word in words if " " not in word))


def _stored(ctx: click.Context) -> list[RunSummary]:
    with _quietly():
        from hockney.results.store import Store

        with Store.open(ctx.find_root().params.get("store"), readonly=True) as store:
            return store.runs()
    return []


def suites_and_patterns(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Suites, patterns, and TOML files in this folder or the one that is being typed."""
    words: list[str] = []
    with _quietly():
        from hockney.suites import builtin_names

        words += builtin_names()
    with _quietly():
        from hockney.worker.catalogue import native_patterns

        words += native_patterns()
    folder = incomplete.rpartition("/")[0]
    here = Path(folder or ("/" if incomplete.startswith("/") else "."))
    with _quietly():
        for path in sorted(here.iterdir()):
            if path.suffix == ".toml" or path.is_dir():
                words.append(f"{path}/" if path.is_dir() else str(path))
    return _beginning(incomplete, words)


def transports(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of transports, also after a comma."""
    words: list[str] = ["mpi", "pvm"]
    with _quietly():
        from hockney.worker.catalogue import load

        words += load().transports
    before, comma, word = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{item.value}") for item in _beginning(word, words)]


def patterns(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of patterns."""
    words: list[str] = []
    with _quietly():
        from hockney.worker.catalogue import native_patterns

        words += native_patterns()
    return _beginning(incomplete, words)


def machines(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the machines of the archive."""
    from hockney.archive import machines as known

    return _beginning(incomplete, known())


def _beginning(incomplete: str, words: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(word) for word in dict.fromkeys(words) if word.startswith(incomplete) and word.isprintable()]


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Ignore errors and warnings: the user is typing."""
    import warnings

    from hockney.errors import HockneyError

    with warnings.catch_warnings(), contextlib.suppress(HockneyError, OSError):
        warnings.simplefilter("ignore")
        yield
