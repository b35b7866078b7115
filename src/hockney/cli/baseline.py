"""`hockney baseline`: the run that `check` measures against, which moves only when someone accepts another."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import click

from hockney.cli.common import command, complete
from hockney.errors import UsageError
from hockney.render.json import print_json
from hockney.render.text import say
from hockney.report.documents.runs import accepted_sentence, no_baseline
from hockney.results.store import Store


@command(
    "baseline",
    example="""hockney baseline
    hockney baseline accept last
    hockney baseline accept nightly""",
)
@click.argument("verb", metavar="[accept]", required=False, type=click.Choice(["accept"]))
@click.argument("reference", metavar="[RUN]", required=False, shell_complete=complete("run"))
def baseline(verb: str | None, reference: str | None, *, as_json: bool, store: Path | None) -> None:
    """Accept a run as the baseline of checks, or say which is.

    `check` without --baseline takes the run that was accepted last; it moves only by `accept`, as after a review. Other
    commands know it as `accepted`.

    Who accepted it and when, and the run that it replaced, are stored with it, and `runs` shows them. `delete` spares
    accepted runs unless you name them; after that of the baseline there is none until you accept another.
    """
    if (verb is None) != (reference is None):
        raise UsageError("name the run to accept, for example", argv=("hockney", "baseline", "accept", "last"))
    with Store.open(store, create=False, readonly=reference is None) as results:
        if reference is not None:
            from hockney.measure.check import usable_baseline

            run_id = results.find_run(reference)
            usable_baseline(results, run_id)
            results.accept_run(run_id, _user())
        stored = results.accepted()
    if as_json:
        number, replaces = (stored.id, (stored.accepted or {})["replaces"]) if stored else (None, None)
        print_json("baseline", {"store": str(results.path), "accepted": number, "replaces": replaces})
    else:
        say(accepted_sentence(stored) if stored else no_baseline())


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        return f"user {os.getuid()}"
