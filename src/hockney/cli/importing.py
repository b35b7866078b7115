"""`hockney import`: outputs of other benchmarks as a run, or the runs of another results file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hockney.cli.common import command, complete, label_option, pattern_option, read_count, transport_option
from hockney.errors import ExitCode, UsageError
from hockney.files import named_bytes
from hockney.machine.files import format_cpus
from hockney.model import IMPORTED
from hockney.render.json import print_json
from hockney.render.text import say
from hockney.report.commands import typed
from hockney.results.store import Store
from hockney.results.store.merging import LEFT_OUT, merge
from hockney.results.store.opening import is_database
from hockney.units import RANKS_MAX, counted

if TYPE_CHECKING:
    from hockney.results.formats import ReadOutputs

_NAME = re.compile(r"[\w.:@+-]{1,80}", re.ASCII)


@command(
    "import",
    example="""hockney import osu_latency.txt -t mpi@openmpi-4.1.4
    hockney import osu_bw-1.txt osu_bw-2.txt osu_bw-3.txt -o window=64 -l before
    hockney import osu_allreduce.txt -n 16
    hockney import np.out -t tcp
    hockney import nightly.db""",
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
) -> int:
    """Store the outputs of other benchmarks as a run.

    Supported formats are text of the OSU micro-benchmarks, IMB, nccl-tests, perftest, ucx_perftest, fabtests and
    nvbandwidth, np.out of NetPIPE, and JSON of iperf3, nccl-tests, perftest and nvbandwidth.
    Each output counts as a launch: import several to get intervals. A property that a file does not contain stays
    unknown, or needs an option. docs/import.md lists the pattern of each figure. Of a results file of hockney, the runs
    that are not here yet are copied.
    """
    from hockney.cli.measuring import command_line
    from hockney.cli.run_options import parse_pair
    from hockney.results.formats import read_outputs
    from hockney.results.importing import ImportOptions, store_outputs

    databases = [path for path in files if is_database(path)]
    if databases:
        if len(databases) < len(files) or transport or ranks or pattern or options or label:
            raise UsageError(f"{databases[0]} holds runs of hockney: import it without outputs of others and options")
        return _merge(files, store, as_json=as_json)
    for option, name in (("--transport", transport), ("--pattern", pattern)):
        if name is not None and not _NAME.fullmatch(name):
            raise UsageError(f"{option} '{name}' is not a name: write letters, digits and @ : . _ + -")
    count = None if ranks is None else read_count("ranks", RANKS_MAX, ranks)
    given = ImportOptions(transport, pattern, count, dict(parse_pair("an option", word) for word in options))
    texts = {path: _text(path) for path in files}
    if len({*texts.values()}) < len(files):
        raise UsageError("two of the files hold the same output: each one counts as a launch, so give it once")
    are_unique = len({path.name for path in files}) == len(files)
    readings = [(path.name if are_unique else str(path), read_outputs(text, str(path))) for path, text in texts.items()]
    outputs = [(name, reading.outputs) for name, reading in readings]
    with Store.open(store) as results:
        run = store_outputs(results, outputs, given, command=command_line("import"), label=label)
        documents = results.run(run).info.plan[IMPORTED]
    notes = [f"{name}: {note}" for name, reading in readings for note in [*reading.notes, *_repeated(name, documents)]]
    if as_json:
        numbers = ("rows", "rows_read", "lines_left_out")
        counts = [{"file": name, **{key: getattr(of, key) for key in numbers}} for name, of in readings]
        fields = {"store": str(results.path), "run": run, "files": counts, "outputs": documents, "notes": notes}
        print_json("import", fields)
    else:
        for note in notes:
            say(note)
        say(f"Saved as run {run}: {_summary([reading for _, reading in readings])}. Next: {typed('show', run)}")
    return ExitCode.DONE


def _merge(files: Sequence[Path], store: Path | None, *, as_json: bool) -> int:
    """Copy the runs of results files, and name those that are not copied."""
    with Store.open(store) as results:
        merged = {path: merge(results, path) for path in files}
    runs = [run for of_file in merged.values() for run in of_file]
    if as_json:
        keys = [{"file": str(path), **run._asdict()} for path, of_file in merged.items() for run in of_file]
        print_json("import", {"store": str(results.path), "runs": keys})
    else:
        for path, of_file in merged.items():
            for why in dict.fromkeys(run.why for run in of_file if run.why):
                numbers = [run.was for run in of_file if run.why == why]
                say(f"{path}: {counted(len(numbers), 'run')} not copied, {why}: {format_cpus(numbers)}")
        copied = sum(not run.why for run in runs)
        say(f"{copied} of {counted(len(runs), 'run')} copied. Next: {typed('history')}")
    return ExitCode.INCOMPLETE if any(run.why in LEFT_OUT for run in runs) else ExitCode.DONE


def _text(path: Path) -> str:
    """The text of a file. Raises UsageError for a file that cannot be read or is no text."""
    from hockney.results.formats.lines import decode

    try:
        return decode(named_bytes(path, "output"))
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot import {path}: it is not text") from error


def _repeated(name: str, documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence for each curve of which the file has several outputs: they count as launches."""
    counts = Counter(document["curve"] for document in documents if document["file"] == name)
    return [
        f"{count} outputs of {curve} count as its launches; if their options differ, import a file of each with -o"
        for curve, count in counts.items()
        if count > 1 and "column=" not in curve
    ]


def _summary(readings: Sequence[ReadOutputs]) -> str:
    """`41 of 41 rows read; 3 other lines left out (OSU MPI Latency Test v5.9)`."""
    tools = ", ".join(dict.fromkeys(output.tool for reading in readings for output in reading.outputs))
    rows, read = (sum(getattr(reading, name) for reading in readings) for name in ("rows", "rows_read"))
    others = sum(reading.lines_left_out for reading in readings)
    left_out = f"; {counted(others, 'other line')} left out" if others else ""
    return f"{read} of {counted(rows, 'row')} read{left_out} ({tools})"
