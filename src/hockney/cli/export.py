"""`hockney export`: a run for other programs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import click

from hockney.cli.common import command, refuse_output, run_argument
from hockney.cli.streams import holds_document
from hockney.errors import HockneyError, UsageError


@command(
    "export",
    example="""hockney export last --csv -o figures.csv
    hockney export last --json --samples > run.json
    hockney export monday > monday.csv""",
)
@run_argument
@click.option("--csv", "as_csv", is_flag=True, help="One row per series and machine state. [default]")
@click.option("--samples", is_flag=True, help="With --json: include every sample of every rank.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to FILE instead of standard output."
)
def export(
    reference: str, as_csv: bool, samples: bool, output: Path | None, *, as_json: bool, store: Path | None
) -> None:
    """Write a run as CSV or JSON.

    RUN is a number, a label, `last` (the default), or `last~1` for the one before. The CSV has one row per series and
    state of the machine, with its confidence interval; an empty field is unknown. The JSON has all that is known of
    the run: the machine, the launches, the warnings, and every measurement. docs/metrics.md defines the columns.
    """
    if as_csv and as_json:
        raise UsageError("a run is exported as --csv or as --json, not both: leave one out")
    if samples and not as_json:
        raise UsageError("--samples needs --json: a CSV has one row per figure")
    if output is not None:
        refuse_output("--output", output)
    from hockney.results.export import write_csv, write_json
    from hockney.results.store import Store

    with Store.open(store, readonly=True) as results:
        run_id = results.find_run(reference)
        with written(output) as stream:
            if as_json:
                write_json(results, run_id, stream, samples=samples)
            else:
                write_csv(results, run_id, stream)


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
