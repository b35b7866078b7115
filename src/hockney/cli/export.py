"""`hockney export`: a run for other programs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from hockney.cli import complete
from hockney.cli.common import command, refuse_output
from hockney.cli.streams import holds_document, remark
from hockney.errors import HockneyError, UsageError

if TYPE_CHECKING:
    from hockney.worker.machine_model import Model


@command(
    "export",
    example="""hockney export last --csv -o figures.csv
    hockney export last --json --samples > run.json
    hockney export monday > monday.csv
    hockney export last --simgrid -t tcp -n 64 -o platform.xml
    hockney export --simgrid --machine mine.toml -o platform.xml""",
)
@click.argument("reference", required=False, metavar="[RUN]", shell_complete=complete.runs)
@click.option("--csv", "as_csv", is_flag=True, help="One row per series and machine state. [default]")
@click.option("--samples", is_flag=True, help="With --json: include every sample of every rank.")
@click.option("--simgrid", "as_platform", is_flag=True, help="A platform of SimGrid, calibrated for its SMPI.")
@click.option(
    "-t",
    "--transport",
    metavar="NAME",
    help="With --simgrid: the transport of RUN to fit.",
    shell_complete=complete.transports,
)
@click.option(
    "-n", "--ranks", type=click.IntRange(1), metavar="N", help="With --simgrid: ranks of the fit. [default: 64]"
)
@click.option(
    "--machine", metavar="MODEL", help="With --simgrid: a model instead of RUN.", shell_complete=complete.models
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to FILE instead of standard output."
)
def export(
    reference: str | None,
    *,
    as_csv: bool,
    samples: bool,
    as_platform: bool,
    transport: str | None,
    ranks: int | None,
    machine: str | None,
    output: Path | None,
    as_json: bool,
    store: Path | None,
) -> None:
    """Write a run as CSV, JSON or a platform of SimGrid.

    RUN is a number, a label, `last` (the default), or `last~1` for the one before. The CSV has one row per series and
    state of the machine, with its confidence interval; an empty field is unknown. The JSON has all that is known of
    the run: the machine, the launches, the warnings, and every measurement. docs/metrics.md defines the columns.
    The platform is a machine fitted to the run's figures of two ranks, or a model; docs/machines.md describes it.
    """
    if as_csv + as_json + as_platform > 1:
        raise UsageError("a run is exported as --csv, --json or --simgrid: give one of them")
    if samples and not as_json:
        raise UsageError("--samples needs --json: a CSV has one row per figure")
    if not as_platform and (transport, ranks, machine) != (None, None, None):
        raise UsageError("--transport, --ranks and --machine need --simgrid")
    if machine is not None and (reference, transport, ranks) != (None, None, None):
        raise UsageError("--machine names a whole model: leave RUN, --transport and --ranks out")
    if output is not None:
        refuse_output("--output", output, [Path(machine)] if machine is not None else [])
    if as_platform:
        from hockney.worker.machine_model import load_model

        model = (
            load_model(machine) if machine is not None else _fitted(reference or "last", transport, ranks or 64, store)
        )
        _write_platform(model, output)
        return
    from hockney.results.export import write_csv, write_json
    from hockney.results.store import Store

    with Store.open(store, readonly=True) as results:
        run_id = results.find_run(reference or "last")
        with written(output) as stream:
            if as_json:
                write_json(results, run_id, stream, samples=samples)
            else:
                write_csv(results, run_id, stream)


def _fitted(reference: str, transport: str | None, ranks: int, store: Path | None) -> Model:
    """The machine that a transport of a run shows. Raises UsageError where it shows none, or several might be meant."""
    from hockney.analysis.predict.fit import fit_machine
    from hockney.results.runs import open_results
    from hockney.stats.fit import NoFit
    from hockney.worker.machine_model import Model

    with open_results(store) as results:
        run = results.run(reference)
        names = sorted({series.point.transport for series in run.find(transport=transport)})
        if len(names) != 1:
            those = ", ".join(names or sorted({series.point.transport for series in run.series}))
            raise UsageError(f"name one transport of the run with --transport: {those}")
        fit = fit_machine(run, names[0])
        if isinstance(fit, NoFit):
            raise UsageError(f"{fit.reason}; to measure them", argv=("hockney", "run", "basics", "-t", names[0]))
        return Model.from_content(f"run {run.id} on {names[0]}", fit.content(ranks))


def _write_platform(model: Model, output: Path | None) -> None:
    from hockney.worker.simgrid import platform_of

    platform = platform_of(model)
    with written(output) as stream:
        stream.write(platform.xml)
    if platform.left_out:
        remark(f"hockney: SimGrid has nothing for {', '.join(platform.left_out)} of {model.name}: left out")


@contextlib.contextmanager
def written(path: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears when all of it is written."""
    if path is None:
        holds_document.set(True)
        yield sys.stdout
    elif path.exists() and not path.is_file():  # /dev/stdout, a named pipe
        holds_document.set(True)
        with path.open("w", encoding="utf-8", newline="") as stream:
            yield stream
    else:
        scratch = path.with_name(f".{path.name}.part")
        try:
            with scratch.open("w", encoding="utf-8", newline="") as stream:
                yield stream
            scratch.replace(path)
        except OSError as error:
            raise HockneyError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from error
        finally:
            with contextlib.suppress(OSError):
                scratch.unlink()
