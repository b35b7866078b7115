"""`hockney compare`: the differences between two runs, series by series."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hockney.cli import render
from hockney.cli.common import command
from hockney.cli.complete import complete
from hockney.cli.interleaved import interleave_options, measure_interleaved
from hockney.errors import ExitCode, UsageError
from hockney.units import counted, parse_increase

if TYPE_CHECKING:
    from hockney.analysis.compare import Comparison

_LINES_MAX = 5  # besides the rows: the head of the table, notes, and the summary


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
def compare(
    base: str | None,
    new: str | None,
    everything: bool,
    margin: float | None,
    *,
    as_json: bool,
    store: Path | None,
    interleave: bool,
    **options: Any,
) -> int:
    """Compare two runs: which series became faster or slower.

    A run is a number, a label, `last` or `last~1`. It needs 3 launches, better 6. --interleave measures two variants
    of a pattern or suite in alternation: both see the same machine.
    """
    from hockney.analysis.compare import Verdict, compare_runs
    from hockney.analysis.compare.comparison import names_of_pair
    from hockney.results.store import Store

    if base is None or (new is None) != interleave:
        raise UsageError("name two runs, BASE and NEW, or with --interleave one pattern or suite to measure")
    if new is None:
        base, new = measure_interleaved(base, options, store)
    elif any(options.values()):
        raise UsageError("options of measuring need --interleave: two stored runs are only read")
    with Store.open(store, readonly=True) as results:
        runs = results.find_run(base), results.find_run(new)
        is_pair = names_of_pair(*(results.run(run).info for run in runs)) is not None
        usual = 1.01 if is_pair else 1.0  # the size of the environment alone moves times by some tenths of a per cent
        comparison = compare_runs(results, *runs, margin=usual if margin is None else 1 + margin)
    if as_json:
        from hockney.cli.changes import caution, comparison_json

        render.print_json("compare", {**comparison_json(comparison), "caution": caution(comparison)})
    else:
        _print(comparison, everything=everything)
    return ExitCode.INCOMPLETE if comparison.counts[Verdict.INCONCLUSIVE] == len(comparison.changes) else ExitCode.DONE


def _print(comparison: Comparison, *, everything: bool) -> None:
    from hockney.analysis.compare import Verdict
    from hockney.cli.changes import notes
    from hockney.cli.curves import SHORT_NOTE
    from hockney.report import changes

    columns: list[render.TableColumn | str] = [
        render.TableColumn("series", wrap=True, key=True),
        render.TableColumn("base", right=True, optional=True),
        render.TableColumn("new", right=True, optional=True),
        render.TableColumn("change (95 % CI)", wrap=True),
        "verdict",
    ]
    names = changes.names_of(comparison)
    nothing = changes.nothing_sentence(comparison)
    listed = [each for each in comparison.ranges if not (nothing or each.first.is_without_common_state)]
    ranges = comparison.ranges if everything else listed
    render.table(
        columns,
        [changes.row(alike, names) for alike in ranges],
        narrow=[changes.narrow_row(alike, comparison, names) for alike in ranges],
    )
    room = _LINES_MAX * max(100, render.line_width()) // render.line_width() - bool(ranges)
    if not everything:
        for sentence in changes.states_sentence(comparison) or filter(None, [nothing]):
            room -= render.say(sentence)
    below = [note for note in notes(comparison, everything=everything) if ranges or note != SHORT_NOTE]
    if everything:
        others = [alike for alike in ranges if alike.verdict is not Verdict.SAME]
        below += changes.range_sentences(others, comparison)
    launches = "{} and {} launches".format(*comparison.launches)
    summary = f"run {comparison.base} -> run {comparison.new}: {changes.counts_text(comparison)}; {launches}"
    room -= len(render.said(f"{summary}; 9 more notes: --all"))
    hidden = 0
    for note in below:
        lines = render.said(note)
        if everything or len(lines) <= room:
            room -= render.lines(lines)
        else:
            hidden += 1
    render.say(summary + (f"; {counted(hidden, 'more note')}: --all" if hidden else ""))
