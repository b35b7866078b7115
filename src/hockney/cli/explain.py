"""`hockney explain`: findings about a run, or about the published figures of a machine of the archive."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hockney.cli.common import command, complete
from hockney.errors import UsageError, unknown
from hockney.render.json import print_json
from hockney.report.words import readable_names
from hockney.results.runs import open_results

if TYPE_CHECKING:
    from hockney.analysis.explain import Explanation


@command("explain", example="hockney explain last\nhockney explain --machine t3d")
@click.argument("reference", required=False, metavar="[RUN]", shell_complete=complete("run"))
@click.option(
    "-m",
    "--machine",
    metavar="NAME",
    help="A machine of the archive instead of a run: its published figures.",
    shell_complete=complete("machine"),
)
@click.option("--all", "everything", is_flag=True, help="Every finding, fit and layer, and every check not made.")
def explain(reference: str | None, machine: str | None, everything: bool, *, as_json: bool, store: Path | None) -> None:
    """Explain the figures of a run.

    Prints the ten strongest findings: protocol switches, bends, cache limits, slow ranks, outliers and others. Each has
    the evidence, the likely cause and the fix. Then it lists the checks that were not possible, and why. RUN is a
    number, a label, `last` (the default), or `last~1` for the one before. docs/explain.md describes each finding.
    """
    from hockney.render.text import show
    from hockney.report.documents.findings import explanation_json, strongest_document, whole_document

    explanation, names = (_of_machine(machine), {}) if machine is not None else _of_run(reference, store)
    if as_json:
        print_json("explain", explanation_json(explanation))
    else:
        show(whole_document(explanation, names) if everything else strongest_document(explanation, names))


def _of_run(reference: str | None, store: Path | None) -> tuple[Explanation, dict[str, str]]:
    """The explanation of a run, with the readable names of its transports."""
    from hockney.analysis.explain import explain_run

    with open_results(store) as results:
        run = results.run(reference or "last")
        return explain_run(run), readable_names(run.launches.values())


def _of_machine(name: str) -> Explanation:
    from hockney.archive import machines
    from hockney.archive.explained import explain_machine
    from hockney.worker.machine_model import builtin_models

    if name not in machines() and (name.endswith(".toml") or name in builtin_models()):
        raise UsageError(
            f"{name} is a model, and --machine explains published figures: run the model, and explain the run",
            argv=("hockney", "run", "quick", "-t", f"sim@{name}"),
        )
    if name not in machines():
        raise unknown("machine", name, machines())
    return explain_machine(machines()[name])
