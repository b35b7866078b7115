"""`hockney export`: a run for other programs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import click

from hockney.cli import complete
from hockney.cli.common import command, refuse_output
from hockney.cli.streams import holds_document, remark
from hockney.errors import HockneyError, UsageError


@command(
    "export",
    example="""hockney export last --csv -o figures.csv
    hockney export last --json --samples > run.json
    hockney export monday > monday.csv
    hockney export --simgrid --machine mine.toml -o platform.xml""",
)
@click.argument("reference", required=False, metavar="[RUN]", shell_complete=complete.runs)
@click.option("--csv", "as_csv", is_flag=True, help="One row per series and machine state. [default]")
@click.option("--samples", is_flag=True, help="With --json: include every sample of every rank.")
@click.option("--simgrid", "as_platform", is_flag=True, help="A model as a platform of SimGrid, for its SMPI.")
@click.option("--machine", metavar="MODEL", help="With --simgrid: the model.", shell_complete=complete.models)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to FILE instead of standard output."
)
def export(
    reference: str | None,
    *,
    as_csv: bool,
    samples: bool,
    as_platform: bool,
    machine: str | None,
    output: Path | None,
    as_json: bool,
    store: Path | None,
) -> None:
    """Write a run as CSV or JSON, or a model as a platform of SimGrid.

    RUN is a number, a label, `last` (the default), or `last~1` for the one before. The CSV has one row per series and
    state of the machine, with its confidence interval; an empty field is unknown. The JSON has all that is known of
    the run: the machine, the launches, the warnings, and every measurement. docs/metrics.md defines the columns.
    docs/machines.md describes the platform.
    """
    if as_csv + as_json + as_platform > 1:
        raise UsageError("a run is exported as --csv, --json or --simgrid: give one of them")
    if samples and not as_json:
        raise UsageError("--samples needs --json: a CSV has one row per figure")
    if as_platform != (machine is not None) or (as_platform and reference is not None):
        raise UsageError("--simgrid --machine MODEL writes a model: give both, and no run")
    if output is not None:
        refuse_output("--output", output)
    if machine is not None:
        _write_platform(machine, output)
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


def _write_platform(machine: str, output: Path | None) -> None:
    from hockney.worker.machine_model import load_model
    from hockney.worker.simgrid import platform_of

    platform = platform_of(load_model(machine))
    with written(output) as stream:
        stream.write(platform.xml)
    if platform.left_out:
        remark(f"hockney: SimGrid has nothing for {', '.join(platform.left_out)} of {machine}: left out")


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
