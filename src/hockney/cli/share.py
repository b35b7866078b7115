"""`hockney share`: a run as a data sheet for others."""

from __future__ import annotations

from pathlib import Path

import click

from hockney.cli.common import command, complete, output_option, refuse_output
from hockney.cli.export import say_written, written
from hockney.render.json import print_json
from hockney.results.runs import open_results


@command("share", example="hockney share\nhockney share last~1\nhockney share monday -o server.toml")
@click.argument("reference", required=False, metavar="[RUN]", default="last", shell_complete=complete("run"))
@output_option(help="Write to FILE instead of standard output.")
def share(reference: str, *, output: Path | None, as_json: bool, store: Path | None) -> None:
    """Write a run as a data sheet that you can give to others.

    The file has the hardware, versions, and figures with intervals: of each curve the time of the shortest message and
    the best rate. It has no names of hosts, users or files, no addresses and no serial numbers. Read it before you send
    it.

    `hockney show --sheet FILE` compares a run with it.
    """
    from hockney.report.sharing import shared, sheet_text

    if output is not None:
        refuse_output("--output", output, [])
    with open_results(store) as results:
        content = shared(results.run(reference))
    if as_json:
        print_json("share", {"sheet": content})
        return
    with written(output) as stream:
        stream.write(sheet_text(content))
    say_written(output)
