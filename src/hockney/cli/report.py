"""`hockney report`: runs as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hockney.cli import complete, render
from hockney.cli.common import OneOf, command, refuse_output
from hockney.errors import UsageError

if TYPE_CHECKING:
    from hockney.results.runs import Results, Run


@command(
    "report",
    example="""hockney report last -o report.html
    hockney report monday tuesday -o changes.html
    hockney report last~1 last -o changes.html""",
)
@click.argument("references", nargs=-1, required=True, metavar="RUN [RUN …]", shell_complete=complete.runs)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="The file to write.",
)
@click.option(
    "--format",
    "form",
    type=OneOf("format", ("html", "md")),
    default="html",
    metavar="FORMAT",
    help="html or md: verdict, findings and data sheet as Markdown, for issue trackers. [default: html]",
)
def report(references: tuple[str, ...], output: Path, form: str, *, as_json: bool, store: Path | None) -> None:
    """Write an HTML report of runs.

    The page is one file that needs no network: findings, the data sheet, curves, distributions and more as charts, each
    with its figures as a table. Open it in a browser; it prints, too. It is about the first run; every further one is
    compared with it. RUN is a number, a label, `last`, or `last~1` for the one before.
    """
    from hockney.results.runs import open_results

    with open_results(store) as results:
        refuse_output("--output", output, [results.path])
        runs = [results.run(reference) for reference in references]
        ids = [run.id for run in runs]
        if len(set(ids)) < len(ids):
            raise UsageError(f"run {max(ids, key=ids.count)} is named twice: name each run once")
        if form == "md" and len(ids) > 1:
            raise UsageError("Markdown is of one run: name one, or leave out --format md to compare them")
        size_bytes = write_report(results, runs, output, form)
    if as_json:
        render.print_json("report", {"runs": ids, "file": str(output), "size_bytes": size_bytes})
    else:
        render.note(f"Wrote {output} ({size_bytes / 1e3:,.0f} kB).")


def write_report(results: Results, runs: Sequence[Run], output: Path, form: str = "html") -> int:
    """Write the page of the first run, which the others are compared with; returns its size in bytes."""
    from hockney.cli.export import written
    from hockney.cli.rerun import command_line

    if form == "md":
        from hockney.report.markdown import markdown_report

        text = markdown_report(results, runs[0], command_line)
    else:
        from hockney.report.html import html_report

        text = html_report(results, runs[0], runs[1:], command_line)
    with written(output) as stream:
        stream.write(text)
    return len(text.encode())
