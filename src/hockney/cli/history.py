"""`hockney history`: series over the runs of a machine, and when they changed."""

from __future__ import annotations

from pathlib import Path

import click

from hockney.cli.common import command, complete, parse_label
from hockney.errors import ExitCode, working
from hockney.render.json import print_json
from hockney.results.store import Store


@command(
    "history",
    example="""hockney history
    hockney history pingpong@tcp 64K --label nightly
    hockney history pingpong barrier --json""",
)
@click.argument("words", nargs=-1, metavar="[WHAT]...", shell_complete=complete("pattern"))
@click.option("-l", "--label", type=parse_label, metavar="NAME", help="Only runs with this label. [default: all]")
def history(words: tuple[str, ...], label: str | None, *, as_json: bool, store: Path | None) -> int:
    """Show series over all runs, and when they changed.

    WHAT is a pattern, pattern@transport or a size; by default all series are shown. A change is a new level that stays;
    single bad runs and drift of floor and pace are none. Each change is printed with its interval, the series that
    moved together, and what differed between the last run before and the first one after. Eight runs are needed.
    """
    from hockney.analysis.compare.history import history_of
    from hockney.render.text import show
    from hockney.report.documents.history import history_document, history_json, is_long_enough

    with Store.open(store, readonly=True) as results, working.get()("reading all runs"):
        made = history_of(results, words, label)
    if as_json:
        print_json("history", history_json(made))
    else:
        show(history_document(made))
    return ExitCode.DONE if is_long_enough(made) else ExitCode.INCOMPLETE
