"""`hockney predict`: times of a suite or some patterns on a model of a machine, or on one fitted to a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hockney.cli.common import (
    command,
    complete,
    duration_option,
    file_option,
    model_option,
    names,
    point_options,
    quiet_option,
    refuse_output,
    transports_option,
)
from hockney.errors import ExitCode, UsageError

_EXAMPLES = """hockney predict alltoall -n 64 --bytes 8,64K
hockney predict halo2d --from 3 -t tcp -n 64 --topology torus:8x8
hockney predict --validate -t shm,tcp
hockney predict halo2d --machine t3d -n 8 --set L=0.5x --set bandwidth=2x
hockney predict alltoall --machine gpmimd -n 16 --bytes 1K --sensitivity --tolerance"""


@command("predict", example=_EXAMPLES)
@click.argument("what", metavar="[SUITE|PATTERN,…|FILE.toml]", nargs=-1, shell_complete=complete("what"))
@click.option(
    "--from",
    "reference",
    metavar="RUN",
    help="Fit the machine to this run's figures of two ranks. [default: the newest run that has them]",
    shell_complete=complete("run"),
)
@model_option(help="Use a model instead, as `hockney list machines` names it.")
@transports_option(help="Transports of the run. [default: all]")
@point_options
@click.option(
    "--topology", metavar="TOPOLOGY", help="torus:4x4x4, mesh:8x8, or FILE.toml with [topology]. [default: one switch]"
)
@click.option("--link", metavar="RATE,LATENCY", help="Rate, latency or both of each link: 10Gbit/s,2us.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="NAME=CHANGE",
    help="What if: L=0.5x, o_s=+1us, link.bandwidth=2x, or a key of the model.",
    shell_complete=complete("parameter"),
)
@click.option("--sensitivity", is_flag=True, help="Rank the parameters by the time gained if each is twice as good.")
@click.option(
    "--tolerance", is_flag=True, help="Find the added latency and lost bandwidth that cost 1, 2 and 5 % of time."
)
@click.option("--validate", is_flag=True, help="Compare with points that no fit uses; without --from, measure them.")
@duration_option("--time", "time_s", help="Time for intervals, or measuring with --validate. [default: 1m; 6m]")
@file_option("--write", help="Also write the changed model to FILE, for --machine.")
@quiet_option
def predict(
    *,
    as_json: bool,
    store: Path | None,
    what: tuple[str, ...],
    reference: str | None,
    machine: str | None,
    transport: tuple[str, ...],
    changes: tuple[str, ...],
    sensitivity: bool,
    tolerance: bool,
    validate: bool,
    time_s: float | None,
    write: Path | None,
    quiet: bool,
    **words: Any,
) -> int:
    """Predict times of a suite or some patterns on a machine fitted to a run, or on a model.

    Nothing is measured: patterns run in virtual time, for intervals 20 times more. NAME is L, o_s, o_r, g, G,
    bandwidth, link.bandwidth, compute, or a key of the model (docs/machines.md).
    """
    from hockney.analysis.predict.change import changed, parse_change
    from hockney.cli.predicted import on_fits, on_machine, predicted, show_validation
    from hockney.cli.run_options import find_suite
    from hockney.render.json import print_json
    from hockney.render.text import show
    from hockney.report.documents.prediction import predicted_json, prediction_document
    from hockney.worker.machine_model import write_model

    wanted = [parse_change(word) for word in changes]
    named = names("--transport", transport)
    if validate:
        return show_validation(store, reference, named, time_s, as_json=as_json, quiet=quiet)
    if write is not None:
        refuse_output("--write", write, [] if machine is None else [Path(machine)])
        if write.suffix != ".toml":
            name = write.with_suffix(".toml")
            raise UsageError(f"--write makes a model for --machine, whose name ends in .toml: write {name}")
    suite = find_suite(",".join(what))
    if machine is not None:
        cases = [on_machine(suite, machine, words)]
    else:
        cases = on_fits(suite, store, reference, named, words)
    if len(cases) > 1 and (write is not None or as_json):
        option, known = "--json" if as_json else "--write", ", ".join(case.model.name for case in cases)
        raise UsageError(f"{option} is for one transport: add -t with one of {known}")
    asked = {"sensitivity": sensitivity, "tolerance": tolerance, "as_json": as_json, "quiet": quiet}
    draws_s = (60.0 if time_s is None else time_s) / len(cases)
    done = [predicted(case, wanted, **asked, draws_s=draws_s) for case in cases]
    if write is not None:
        head = "Written by hockney predict. docs/machines.md explains the keys; times are ns."
        write_model(changed({"": cases[0].model}, wanted)[""], write, head)
    if as_json:
        print_json("predict", predicted_json(done[0]))
    else:
        show(prediction_document(done))
    has_result = any(each.predictions if each.rates is None else each.rates.has_result for each in done)
    is_whole = has_result and all(each.is_whole for each in done)
    return ExitCode.DONE if is_whole else ExitCode.INCOMPLETE
