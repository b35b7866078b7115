"""`hockney predict`: times of a suite or some patterns on a model of a machine."""

from __future__ import annotations

from pathlib import Path

import click

from hockney.cli import complete
from hockney.cli.common import command, file_option
from hockney.errors import ExitCode

_EXAMPLES = """hockney predict pingpong --machine gpmimd
hockney predict alltoall,barrier --machine mine.toml -n 64 --bytes 8,64K
hockney predict atlas --machine t3d --json"""


@command("predict", example=_EXAMPLES)
@click.argument("what", metavar="SUITE|PATTERN,…|FILE.toml", nargs=-1, shell_complete=complete.suites_and_patterns)
@click.option(
    "--machine",
    metavar="MODEL",
    help="A model of a machine, as `hockney list machines` names it.",
    shell_complete=complete.models,
)
@click.option("-n", "--ranks", multiple=True, metavar="N,…", help="Numbers of ranks. [default: the suite's]")
@click.option(
    "--bytes", "sizes", multiple=True, metavar="SIZES", help="Message sizes: 8, or 0,8,1K, or 1:1M for powers of two."
)
@click.option("-o", "--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the pattern.")
@file_option("--write", help="Also write the model to FILE, for --machine.")
def predict(
    *,
    as_json: bool,
    store: Path | None,
    what: tuple[str, ...],
    machine: str | None,
    write: Path | None,
    **words: tuple[str, ...],
) -> int:
    """Predict times of a suite or some patterns on a model of a machine.

    Nothing is measured or stored: the patterns run in virtual time, each point once. A model without noise is exact.
    """
    from hockney.cli.common import refuse_output
    from hockney.cli.predicted import Predicted, predicted_json, print_predicted
    from hockney.cli.render import print_json
    from hockney.cli.rerun import typed
    from hockney.cli.run_options import find_suite, read_model_options
    from hockney.errors import UsageError
    from hockney.measure.plan import make_plan, refuse_empty
    from hockney.measure.predict import times_of
    from hockney.worker.catalogue import load
    from hockney.worker.machine_model import load_model, write_model

    if not what or machine is None:
        example = typed("predict", "pingpong", "--machine", "gpmimd")
        raise UsageError(f"name what to predict, and on which model, for example: {example}")
    if write is not None:
        refuse_output("--write", write, [Path(machine)])
    suite, asked = find_suite(",".join(what)), read_model_options(machine, words)
    model, catalogue = load_model(machine), load(["null"])
    plan = make_plan(suite, asked, catalogue)
    refuse_empty(plan)
    predicted = Predicted.of(model, plan, times_of(plan.points, catalogue))
    if write is not None:
        write_model(model, write, "Written by hockney predict. docs/machines.md explains the keys; times are ns.")
    if as_json:
        print_json("predict", predicted_json(predicted))
    else:
        print_predicted(predicted)
    return ExitCode.DONE if predicted.predictions else ExitCode.INCOMPLETE
