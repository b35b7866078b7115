"""`hockney import`: outputs of other benchmarks as a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import click

from hockney.cli import render
from hockney.cli.common import check_label, command, complete, label_option, pattern_option, transport_option
from hockney.cli.rerun import typed
from hockney.errors import UsageError
from hockney.results.formats import Output, read_outputs
from hockney.results.store import Store
from hockney.units import RANKS_MAX, counted, parse_count

_NAME = re.compile(r"[\w.:@+-]{1,80}", re.ASCII)
_BYTES_MAX = 1 << 26


@command(
    "import",
    example="""hockney import osu_latency.txt -t mpi@openmpi-4.1.4
    hockney import osu_bw-1.txt osu_bw-2.txt osu_bw-3.txt -o window=64 -l before
    hockney import osu_allreduce.txt -n 16
    hockney import np.out -t tcp""",
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@transport_option(help="The transport that carried the messages.")
@click.option("-n", "--ranks", metavar="N", help="The number of ranks, if the file does not say it.")
@click.option(
    "--pattern", metavar="NAME", help="The pattern, if the file does not say it.", shell_complete=complete("pattern")
)
@pattern_option(help="An option of the pattern: window=64.")
@label_option()
def import_(
    files: Sequence[Path],
    transport: str | None,
    ranks: str | None,
    pattern: str | None,
    options: Sequence[str],
    label: str | None,
    *,
    as_json: bool,
    store: Path | None,
) -> None:
    """Store the outputs of other benchmarks as a run.

    Supported formats are text of the OSU micro-benchmarks, IMB and nccl-tests, np.out of NetPIPE, and JSON of iperf3.
    Each output counts as a launch: import several to get intervals. A property that a file does not contain stays
    unknown, or needs an option. docs/import.md lists the pattern of each figure.
    """
    from hockney.cli.measuring import command_line
    from hockney.cli.run_options import parse_pair
    from hockney.results.importing import ImportOptions, store_outputs

    check_label(label)
    for option, name in (("--transport", transport), ("--pattern", pattern)):
        if name is not None and not _NAME.fullmatch(name):
            raise UsageError(f"{option} '{name}' is not a name: write letters, digits and @ : . _ + -")
    count = None if ranks is None else parse_count(ranks, RANKS_MAX)
    if ranks is not None and count is None:
        raise UsageError(f"'{ranks}' is not a number of ranks: write 1 to {RANKS_MAX}, for example --ranks 2")
    given = ImportOptions(transport, pattern, count, dict(parse_pair("an option", word) for word in options))
    texts = {path: _text(path) for path in files}
    if len({*texts.values()}) < len(files):
        raise UsageError("two of the files hold the same output: each one counts as a launch, so give it once")
    outputs = [(path.name, read_outputs(text, str(path))) for path, text in texts.items()]
    with Store.open(store) as results:
        run = store_outputs(results, outputs, given, command=command_line("import"), label=label)
    if as_json:
        documents = [
            {"file": name, "tool": output.tool, "points": len(output.rows)} for name, of in outputs for output in of
        ]
        render.print_json("import", {"store": str(results.path), "run": run, "outputs": documents})
    else:
        render.say(f"Saved as run {run}: {_summary(outputs)}. Next: {typed('show', run)}")


def _text(path: Path) -> str:
    """The text of a file. Raises UsageError for a file that cannot be read or is no text."""
    try:
        with path.open("rb") as file:
            content = file.read(_BYTES_MAX + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from error
    if len(content) > _BYTES_MAX:
        raise UsageError(f"cannot import {path}: it has more than {_BYTES_MAX >> 20} MiB, as no output has")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot import {path}: it is not text") from error


def _summary(files: Sequence[tuple[str, Sequence[Output]]]) -> str:
    """`46 figures of 2 outputs (OSU MPI Latency Test v5.9)`."""
    outputs = [output for _, of in files for output in of]
    tools = ", ".join(dict.fromkeys(output.tool for output in outputs))
    figures = counted(sum(len(output.rows) for output in outputs), "figure")
    return f"{figures} of {counted(len(outputs), 'output')} ({tools})"
