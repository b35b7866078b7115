"""`hockney export`: a run for other programs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import click

from hockney.cli.common import command, complete, file_option, output_option, refuse_output, transports_option
from hockney.errors import HockneyError
from hockney.render.streams import holds_document, remark
from hockney.results.runs import Run
from hockney.results.store import Store


@command(
    "export",
    example="""hockney export last --csv -o figures.csv
    hockney export last --json --samples > run.json
    hockney export last --parquet run.parquet
    hockney export last --osu -t mpi@openmpi""",
)
@click.argument("reference", required=False, metavar="[RUN]", shell_complete=complete("run"))
@click.option("--csv", "as_csv", is_flag=True, help="One row per series and machine state. [default]")
@file_option("--parquet", help="Write the same rows to this Parquet file.")
@click.option("--osu", is_flag=True, help="Write text in the form of the OSU micro-benchmarks.")
@click.option("--samples", is_flag=True, help="With --json and --parquet: every sample of every rank.")
@transports_option(help="With --osu: only these.")
@output_option(help="Write to FILE instead of standard output.")
def export(
    reference: str | None,
    *,
    as_csv: bool,
    parquet: Path | None,
    osu: bool,
    samples: bool,
    transport: tuple[str, ...],
    output: Path | None,
    as_json: bool,
    store: Path | None,
) -> None:
    """Write a run as CSV, JSON, Parquet or OSU text.

    RUN is a number, a label, `last` (the default), or `last~1` for the one before. The CSV has one row per series and
    state of the machine, with its confidence interval; an empty field is unknown. The JSON has all that is known of
    the run: the machine, the launches, the warnings, and every measurement. docs/metrics.md defines the columns.
    """
    for option, path in (("--output", output), ("--parquet", parquet)):
        if path is not None:
            refuse_output(option, path, [])
    from hockney.results.export import write_csv, write_json, write_parquet
    from hockney.results.osu_text import write_osu

    with Store.open(store, readonly=True) as results, results.snapshot():
        run = Run(results, results.find_run(reference or "last"))
        if parquet is not None:
            with replaced(parquet, "wb") as file:
                write_parquet(run, file, samples=samples)
            say_written(parquet)
            return
        with written(output) as stream:
            if osu:
                from hockney.cli.show import select

                write_osu(run, select(run, (), transport), stream)
            elif as_json:
                write_json(run, stream, samples=samples)
            else:
                write_csv(run, stream)
    say_written(output)


def say_written(path: Path | None) -> None:
    """Say that a file was written; nothing of standard output or a special file."""
    if path is not None and path.is_file():
        remark(f"Wrote {path} ({path.stat().st_size / 1e3:,.0f} kB).")


@contextlib.contextmanager
def written(path: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears once it is complete."""
    if path is None:
        holds_document.set(True)
        yield sys.stdout
    else:
        with replaced(path, "w", encoding="utf-8", newline="") as stream:
            yield stream


@contextlib.contextmanager
def replaced(path: Path, mode: str, **how: str) -> Iterator[Any]:
    """A file that appears once it is complete, or the target of a special path: /dev/stdout, a named pipe."""
    if path.exists() and not path.is_file():
        holds_document.set(True)
        with path.open(mode, **how) as stream:  # type: ignore[call-overload]
            yield stream
        return
    scratch = path.with_name(f".{path.name}.part")
    try:
        with scratch.open(mode, **how) as stream:  # type: ignore[call-overload]
            yield stream
        scratch.replace(path)
    except OSError as error:
        raise HockneyError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from error
    finally:
        with contextlib.suppress(OSError):
            scratch.unlink()
