"""Completion of words in a shell: what can be found fast, and nothing on errors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem


def runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of runs: `last`, and labels."""
    labels: set[str] = set()
    with _quietly():
        from hockney.cli.common import stored_runs

        labels = {run.label for run in stored_runs(ctx.find_root().params.get("store")) if run.label}
    return _beginning(incomplete, ["last", "last~1", *sorted(labels)])


def states(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Machine states of the run, except names of several words, which a shell would split."""
    words: list[str] = []
    with _quietly():
        from hockney.results.runs import open_results

        with open_results(ctx.find_root().params.get("store")) as results:
            run = results.run(ctx.params.get("reference") or "last")
            words += sorted({state.name for _, measurements in run.summaries() for _, state in measurements})
    return _beginning(incomplete, (word for word in words if " " not in word))


def things_to_run() -> list[str]:
    """Names of suites and patterns."""
    from hockney.suites import builtin_names

    return [*builtin_names(), *_patterns()]


def suites_and_patterns(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Suites, patterns, and TOML files in this folder or the one that is being typed."""
    folder = incomplete.rpartition("/")[0] or ("/" if incomplete.startswith("/") else ".")
    words: list[str] = []
    with _quietly():
        files = [f"{path}/" if path.is_dir() else str(path) for path in sorted(Path(folder).iterdir())]
        words = [file for file in files if file.endswith((".toml", "/"))]
    return _beginning(incomplete, [*things_to_run(), *words])


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
    return _beginning(incomplete, _patterns())


def _patterns() -> list[str]:
    with _quietly():
        from hockney.worker.catalogue import native_patterns

        return native_patterns()
    return []


def machines(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the machines of the archive."""
    from hockney.archive import machines as known

    return _beginning(incomplete, known())


def models(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the models that come with hockney."""
    words: list[str] = []
    with _quietly():
        from hockney.worker.machine_model import builtin_models

        words += builtin_models()
    return _beginning(incomplete, words)


def parameters(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names that --set takes."""
    from hockney.analysis.predict import PARAMETERS

    return _beginning(incomplete, (f"{name}=" for name in PARAMETERS))


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
