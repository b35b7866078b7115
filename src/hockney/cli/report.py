"""`hockney report`: runs as one HTML file, as Markdown, or as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from hockney.cli.common import OneOf, command, complete, output_option, refuse_output
from hockney.cli.export import written
from hockney.errors import UsageError
from hockney.render.json import print_json
from hockney.render.streams import remark
from hockney.render.text import show
from hockney.report.document import Text
from hockney.results.runs import Results, Run, open_results
from hockney.units import listed

_SUFFIXES = {"html": (".html", ".htm"), "md": (".md", ".markdown"), "svg": (".svg",), "png": (".png",)}
_BY_SUFFIX = {suffix: form for form, suffixes in _SUFFIXES.items() for suffix in suffixes}


@command(
    "report",
    example="""hockney report last -o report.html
    hockney report monday tuesday -o changes.html
    hockney report last~1 last -o changes.html
    hockney report last -o latency.svg
    hockney report last --format svg -o pictures""",
)
@click.argument("references", nargs=-1, metavar="[RUN]...", shell_complete=complete("run"))
@output_option(
    help="The file to write (required): *.html, *.md, or one chart, as latency.svg; for all charts of --format svg or "
    "png a folder.",
)
@click.option(
    "--format",
    "form",
    type=OneOf("format", tuple(_SUFFIXES)),
    metavar="FORMAT",
    help="html; md: comparison, verdict, tables and findings of each run as Markdown, for issue trackers; svg or "
    "png: a picture of each chart. [default: the suffix of FILE]",
)
def report(
    references: tuple[str, ...], output: Path | None, form: str | None, *, as_json: bool, store: Path | None
) -> None:
    """Write an HTML report of runs.

    The page is one file that needs no network: findings, the data sheet, curves, distributions and more as charts, each
    with its figures as a table. Open it in a browser; it prints, too. It is about the first run; every further one is
    compared with it. RUN is a number, a label, `last` (the default), or `last~1` for the one before.
    """
    if output is None:
        named = ("--format", form, "-o", "pictures") if form in ("svg", "png") else ("-o", f"report.{form or 'html'}")
        raise UsageError("name the file to write", argv=("hockney", "report", *references, *named))
    with open_results(store) as results:
        refuse_output("--output", output, [results.path], is_folder=form in ("svg", "png") and not is_one_chart(output))
        form = form_of(output, form)
        runs = [results.run(reference) for reference in references or ("last",)]
        ids = [run.id for run in runs]
        if len(set(ids)) < len(ids):
            raise UsageError(f"run {max(ids, key=ids.count)} is named twice: name each run once")
        size_bytes = write_report(results, runs, output, form)
    if as_json:
        print_json("report", {"runs": ids, "file": str(output), "size_bytes": size_bytes})
    else:
        show([Text(f"Wrote {output} ({size_bytes / 1e3:,.0f} kB).")])


def is_one_chart(output: Path) -> bool:
    """Whether pictures are one file, which names the chart, and not a folder of all."""
    return _BY_SUFFIX.get(output.suffix.lower()) in ("svg", "png")


def form_of(output: Path, form: str | None = None) -> str:
    """The format to write: as --format says, else as the suffix of the file. Raises UsageError where they differ."""
    suffix = output.suffix.lower()
    by_suffix = _BY_SUFFIX.get(suffix)
    if form is None and by_suffix is not None:
        return by_suffix
    if form is None:
        suffixes = listed([first for first, *_ in _SUFFIXES.values()], "or")
        raise UsageError(f"{output} does not show the format: end its name with {suffixes}")
    if by_suffix not in (None, form):
        raise UsageError(f"--format {form} contradicts {suffix} of {output}: leave out --format, or use another name")
    return form


def write_report(results: Results, runs: Sequence[Run], output: Path, form: str = "html") -> int:
    """Write the page, pictures or one chart of the first run, compared with the others; returns the size in bytes.

    Markdown has a section of each run after the comparison.
    """
    if form in ("svg", "png"):
        from hockney.render.drawing import drawn
        from hockney.render.pictures import write_pictures, writer
        from hockney.report.page.material import material_of
        from hockney.report.page.pictures import picture_named, pictures_of

        write = writer(form)
        material = material_of(results, runs[0], runs[1:])
        pictures = pictures_of(material)
        if is_one_chart(output):
            return write(drawn(picture_named(pictures, output.stem), material.color_of), output)
        return write_pictures(pictures, material.color_of, output, form, remark)
    text = _TEXTS[form](results, runs)
    with written(output) as stream:
        stream.write(text)
    return len(text.encode())


def _markdown(results: Results, runs: Sequence[Run]) -> str:
    from hockney.render.markdown import markdown
    from hockney.report.page.markdown import report_document

    return markdown(report_document(results, runs))


def _page(results: Results, runs: Sequence[Run]) -> str:
    from hockney.render.html.page import html_page
    from hockney.report.page import page_of

    return html_page(page_of(results, runs[0], runs[1:]))


_TEXTS = {"html": _page, "md": _markdown}
