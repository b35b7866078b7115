"""`hockney compare`: the differences between two runs, series by series."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hockney.cli.common import Function, command, complete, quiet_option, together
from hockney.cli.run import run
from hockney.errors import ExitCode, HockneyError, UsageError
from hockney.model import NOT_MEASURED, PointStatus, RunStatus
from hockney.render.json import print_json
from hockney.render.streams import remark
from hockney.results.store import Store
from hockney.units import parse_increase

if TYPE_CHECKING:
    from hockney.measure.run import Variant
    from hockney.worker.catalogue import Catalogue
    from hockney.worker.points import RunOptions

# The options of `hockney run` that both variants share.
_SHARED = {
    *("transport", "ranks", "sizes", "options", "precision", "time_s", "launches", "hosts", "cpus"),
    *("timeout_s", "oversubscribe", "label"),
}
_DEFAULTS = {  # help of options whose default is another than that of `run`
    "launches": "Launches of each variant. [default: until all have a verdict]",
    "time_s": "How long to measure at most. [default: 2m]",
}
_SIDES = ("base", "new")


def interleave_options(function: Function) -> Function:
    """Adds --interleave, the options of each side, and those of `run` that both share."""
    options = [
        click.option("--interleave", is_flag=True, help="Measure two variants of PATTERN or SUITE in alternation.")
    ]
    for side in _SIDES:
        options += [
            click.option(f"--{side}-env", multiple=True, metavar="NAME=VALUE", help=f"A variable of {side}'s jobs."),
            click.option(
                f"--{side}-transport",
                metavar="NAME",
                help=f"The transport of {side}; an MPI also as mpi@/opt/a.",
                shell_complete=complete("transport"),
            ),
        ]
    function = together(*options)(function)
    shared = [copy.copy(param) for param in run.params if param.name in _SHARED]
    for param in shared:
        if isinstance(param, click.Option) and param.name in _DEFAULTS:
            param.help = _DEFAULTS[param.name]
    function.__click_params__ = [*reversed(shared), *function.__click_params__]  # type: ignore[attr-defined]
    return function


@command(
    "compare",
    example="""hockney compare last~1 last --margin 2%
    hockney compare --interleave pingpong --base-transport shm --new-transport threads
    hockney compare --interleave pingpong -t mpi --new-env OMPI_MCA_btl_vader_eager_limit=8192""",
)
@click.argument("base", metavar="BASE", required=False, shell_complete=complete("run"))
@click.argument("new", metavar="[NEW]", required=False, shell_complete=complete("run"))
@click.option("--all", "everything", is_flag=True, help="Print every difference, reason and note in full.")
@click.option(
    "--margin",
    type=parse_increase,
    metavar="PERCENT",
    help="Report only differences larger than this. [default: 0; interleaved 1%]",
)
@interleave_options
@quiet_option
def compare(
    base: str | None,
    new: str | None,
    everything: bool,
    margin: float | None,
    *,
    as_json: bool,
    store: Path | None,
    interleave: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Compare two runs: which series became faster or slower.

    A run is a number, a label or `last~1`, of 3 launches or more. --interleave measures two variants.
    """
    from hockney.analysis.compare import compare_runs
    from hockney.render.text import show
    from hockney.report.documents.comparison import caution, comparison_document, comparison_json

    if base is None or (new is None) != interleave:
        raise UsageError("name two runs, BASE and NEW, or with --interleave one pattern or suite to measure")
    is_whole = True
    if new is None:
        base, new, is_whole = _measure_interleaved(base, options, margin, store, quiet=quiet)
    with Store.open(store, readonly=True) as results:
        runs = results.find_run(base), results.find_run(new)
        comparison = compare_runs(results, *runs, margin=0.0 if margin is None else 1 + margin)
    if as_json:
        print_json("compare", {**comparison_json(comparison), "caution": caution(comparison)})
    else:
        show(comparison_document(comparison, everything=everything))
    return ExitCode.DONE if is_whole and not comparison.has_no_verdict else ExitCode.INCOMPLETE


def _measure_interleaved(
    what: str, given: dict[str, Any], margin: float | None, store: Path | None, *, quiet: bool
) -> tuple[str, str, bool]:
    """Measure both variants; returns the numbers of their runs, and whether both measured all.

    Without --launches, until each series has a verdict; where the time is too short for that, in 8 launches. Raises
    UsageError; HockneyError when stopped, or where a side failed so that nothing can be compared.
    """
    from hockney.analysis.compare.comparison import MARGIN_OF_PAIRS
    from hockney.cli.measuring import measuring
    from hockney.cli.progress import ProgressDisplay, VerdictDisplay
    from hockney.cli.run_options import find_suite, parse_pair, read_limits, read_options
    from hockney.measure.interleave import can_race, measure, until_verdicts
    from hockney.measure.plan import make_plan
    from hockney.measure.run import Variant
    from hockney.stats.sequence import VALUES_MIN
    from hockney.worker.catalogue import load
    from hockney.worker.points import transport_words

    environments = [dict(parse_pair("a variable", word) for word in given.pop(f"{side}_env")) for side in _SIDES]
    transports = [given.pop(f"{side}_transport") for side in _SIDES]
    label = given.pop("label")
    given["hosts"] = given["hosts"] or ("local",)  # also in a batch job: its hosts are used only if named
    is_open = given["launches"] is None
    given["launches"] = given["launches"] or 8  # with six the interval is a quarter wider
    given["time_s"] = given["time_s"] or 120.0
    common = read_options({"refine": False, **given})
    suite = find_suite(what, on_hosts=bool(common.placement.hosts))
    common = replace(common, limits=read_limits(suite, given))
    _refuse_contradictions(common, environments, transports)
    options = [common if transport is None else replace(common, transports=(transport,)) for transport in transports]
    catalogue = load([word for of_side in options for word in transport_words(suite, of_side)])
    variants = [
        Variant(make_plan(suite, of_side, catalogue), environment, label and f"{label}-{side}")
        for side, environment, of_side in zip(_SIDES, environments, options, strict=True)
    ]
    decide, make_display = None, ProgressDisplay
    if is_open and can_race(variants):
        variants = [replace(each, plan=each.plan.within(launches=VALUES_MIN)) for each in variants]
        decide, make_display = until_verdicts(MARGIN_OF_PAIRS if margin is None else 1 + margin), VerdictDisplay
    with measuring("compare", store, catalogue, quiet=quiet, make_display=make_display) as lab:
        for variant in variants:
            _name_unknown_variables(variant, catalogue)
        outcomes = measure(variants, lab, decide=decide)
        runs = [str(outcome.run_id) for outcome in outcomes]
        if any(outcome.status is RunStatus.STOPPED for outcome in outcomes):
            stored = f"stopped; the measurements are stored as runs {' and '.join(runs)}; compare them"
            raise HockneyError(stored, argv=("hockney", "compare", *runs))
        points = [(side, row) for side, run in zip(_SIDES, runs, strict=True) for row in lab.store.points(int(run))]
    failed = [(side, row) for side, row in points if row.status is PointStatus.FAILED]
    if failed and all(row.status in NOT_MEASURED for _, row in points):
        side, row = failed[0]
        raise HockneyError(f"{side} failed, so nothing can be compared: {row.point}: {row.reason}")
    return runs[0], runs[1], not failed


def _name_unknown_variables(variant: Variant, catalogue: Catalogue) -> None:
    """Say on standard error which variables of a side the libraries of its transports do not know."""
    from hockney.worker.variables import unknown_variables

    named = dict.fromkeys(catalogue.transports[point.transport].library for point in variant.plan.points)
    for library in filter(None, named):
        for text in unknown_variables(library, variant.environment):
            remark(f"hockney: {text}")


def _refuse_contradictions(
    common: RunOptions, environments: Sequence[Mapping[str, str]], transports: Sequence[str | None]
) -> None:
    from hockney.analysis.compare.comparison import PAIRS_MIN

    if environments[0] == environments[1] and transports[0] == transports[1]:
        raise UsageError("both variants are the same: give what differs, for example --new-env NAME=VALUE")
    if common.limits is not None and common.limits.launches < PAIRS_MIN:
        raise UsageError(f"so few launches of each variant decide nothing: give --launches {PAIRS_MIN} or more")
