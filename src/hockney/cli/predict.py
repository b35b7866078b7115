"""`hockney predict`: times of a suite or some patterns on a model of a machine."""

from __future__ import annotations

from pathlib import Path

import click

from hockney.cli import complete
from hockney.cli.common import command, file_option
from hockney.errors import ExitCode

_EXAMPLES = """hockney predict pingpong --machine gpmimd
hockney predict halo2d --machine t3d -n 8 --set L=0.5x --set link.bandwidth=2x
hockney predict alltoall --machine gpmimd -n 16 --bytes 1K --sensitivity --tolerance"""


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
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=CHANGE",
    help="What if: L=0.5x, o_s=+1us, link.bandwidth=2x, or a key of the model.",
    shell_complete=complete.parameters,
)
@click.option("--sensitivity", is_flag=True, help="Rank the parameters by what each gains where it is twice as good.")
@click.option(
    "--tolerance", is_flag=True, help="How much latency is added or bandwidth lost until 1, 2 and 5 % slower."
)
@file_option("--write", help="Also write the model, changed, to FILE for --machine.")
def predict(
    *,
    as_json: bool,
    store: Path | None,
    what: tuple[str, ...],
    machine: str | None,
    changes: tuple[str, ...],
    sensitivity: bool,
    tolerance: bool,
    write: Path | None,
    **words: tuple[str, ...],
) -> int:
    """Predict times of a suite or some patterns on a model of a machine.

    Nothing is measured or stored: the patterns run in virtual time, each point once. A model without noise is exact.
    NAME is L, o_s, o_r, g, G, bandwidth, link.bandwidth, compute, or a key of the model as docs/machines.md has it.
    """
    from hockney.analysis.predict import changed, parse_change
    from hockney.cli.common import refuse_output
    from hockney.cli.predicted import Predicted, of_model, predicted_json, print_predicted
    from hockney.cli.render import print_json
    from hockney.cli.rerun import typed
    from hockney.cli.run_options import find_suite, read_model_options
    from hockney.errors import UsageError
    from hockney.measure.plan import make_plan, refuse_empty
    from hockney.measure.predict import effects_of, times_of, tolerances_of
    from hockney.worker.catalogue import load
    from hockney.worker.machine_model import load_model, write_model

    if not what or machine is None:
        example = typed("predict", "pingpong", "--machine", "gpmimd")
        raise UsageError(f"name what to predict, and on which model, for example: {example}")
    if write is not None:
        refuse_output("--write", write, [Path(machine)])
    suite, asked = find_suite(",".join(what)), read_model_options(machine, words)
    wanted = [parse_change(word) for word in changes]
    model, catalogue = load_model(machine), load(["null"])
    plan = make_plan(suite, asked, catalogue)
    refuse_empty(plan)
    models = {point.transport: catalogue.transports[point.transport].model or model for point in plan.points}
    after = changed(models, wanted)
    times = times_of(plan.points, models)
    new = times_of(plan.points, after) if wanted else times
    predicted = Predicted(
        model,
        plan.suite,
        *of_model(plan, times),
        changes=[change.word for change in wanted],
        changed_ns=new.time_ns if wanted else None,
        effects=effects_of(new.time_ns, after) if sensitivity else None,
        tolerances=tolerances_of(new.time_ns, after, with_curves=as_json) if tolerance else None,
    )
    if write is not None:
        head = "Written by hockney predict. docs/machines.md explains the keys; times are ns."
        write_model(changed({"": model}, wanted)[""], write, head)
    if as_json:
        print_json("predict", predicted_json(predicted))
    else:
        print_predicted(predicted)
    return ExitCode.DONE if times.time_ns else ExitCode.INCOMPLETE
