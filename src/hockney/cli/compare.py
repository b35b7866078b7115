"""`hockney compare`: what became of a run's series in another one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hockney.cli import complete, render
from hockney.cli.changes import (
    alone_sentence,
    caution_sentence,
    comparison_json,
    difference_seen,
    gathered_sentences,
    range_sentence,
    surroundings_lines,
    verdict_sentence,
)
from hockney.cli.common import command
from hockney.cli.interleaved import interleave_options, measure_in_turns, refuse_idle, refuse_second
from hockney.cli.labels import find_run
from hockney.errors import ExitCode, UsageError
from hockney.units import counted

if TYPE_CHECKING:
    from hockney.analysis.compare import Comparison


@command(
    "compare",
    example="""hockney compare before after
    hockney compare last~1 last --margin 2%
    hockney compare --interleave pingpong --base-transport shm --new-transport threads
    hockney compare --interleave pingpong -t mpi --new-env OMPI_MCA_btl_vader_eager_limit=8192""",
)
@click.argument("base", metavar="BASE", shell_complete=complete.runs)
@click.argument("new", metavar="[NEW]", required=False, shell_complete=complete.runs)
@click.option("--all", "everything", is_flag=True, help="Each inconclusive range of sizes in a line of its own.")
@click.option(
    "--margin",
    metavar="PERCENT",
    help="Report only differences larger than this [default: 1% of runs measured in alternation, else 0].",
)
@interleave_options
def compare(
    base: str,
    new: str | None,
    everything: bool,
    margin: str | None,
    *,
    as_json: bool,
    store: Path | None,
    interleave: bool,
    **wishes: Any,
) -> int:
    """Say which series of a run are faster or slower in another one.

    Launches are compared, not samples, within one state of the machine. It takes three launches of each run; take six
    (`hockney run SUITE --launches 6`). Where the machine drifted, what that may explain is inconclusive. Runs are
    named by number, label (of several runs that have it the newest), `last`, or `last~1` for the one before. Ends with
    0, or with 3 where nothing could be decided.

    With --interleave, measures two variants of a pattern or suite in alternation, so that both see the same machine,
    and compares them: `--base-…` says what one has, `--new-…` what the other has. It takes six launches of each.
    """
    from hockney.analysis.compare import Verdict, compare_runs
    from hockney.analysis.compare.paired import names_of_pair
    from hockney.results.store import Store
    from hockney.units import parse_increase

    asked = None if margin is None else 1 + parse_increase(margin)
    if interleave:
        refuse_second(new)
        base, new = measure_in_turns(base, wishes, store)
    if new is None:
        raise UsageError("name two runs, BASE and NEW, or measure two variants with --interleave")
    if not interleave:
        refuse_idle(wishes)
    with Store.open(store, readonly=True) as results:
        runs = find_run(results, base), find_run(results, new)
        is_pair = names_of_pair(*(results.run(one).info for one in runs)) is not None
        usual = 1.01 if is_pair else 1.0  # the size of an environment alone moves times by some tenths of a per cent
        found = compare_runs(results, *runs, margin=usual if asked is None else asked)
    if as_json:
        render.print_json("compare", {**comparison_json(found), "caution": caution_sentence(found)})
    else:
        _print(found, everything=everything)
    return ExitCode.INCOMPLETE if found.counts[Verdict.INCONCLUSIVE] == len(found.changes) else ExitCode.DONE


def _print(found: Comparison, *, everything: bool) -> None:
    from hockney.analysis.compare import Verdict

    least = found.launches_least or found.launches
    launches = " against ".join(map(_launches_text, least, found.launches))
    render.title(f"Run {found.base} -> run {found.new}: {len(found.changes)} series, {launches}", first=True)
    if not found.differences:
        render.say("Surroundings: no difference known.")
    for line in surroundings_lines(found):
        render.say(line)
    render.say(verdict_sentence(found))
    caution = caution_sentence(found)
    if caution:
        render.say(caution)
    titles = {
        Verdict.SLOWER: "Slower",
        Verdict.FASTER: "Faster",
        Verdict.INCONCLUSIVE: "Inconclusive",
        Verdict.SAME: f"No {difference_seen(found.margin)}",
    }
    ranges = found.ranges
    for verdict, title in titles.items():
        own = [one for one in ranges if one.verdict is verdict]
        if own:
            render.title(f"{title}: {found.counts[verdict]} series")
            is_gathered = verdict is Verdict.INCONCLUSIVE and not everything
            sentences = (range_sentence(one, margin=found.margin) for one in own)
            for line in gathered_sentences(own) if is_gathered else sentences:
                render.say(line)
        if verdict is Verdict.INCONCLUSIVE:
            for remedy in found.remedies:
                render.say(f"remedy: {remedy}")
    if found.by_chance:
        render.say()
        each = "would be one by itself, but does" if found.by_chance == 1 else "would be one by themselves, but do"
        render.say(
            f"Of those without a {difference_seen(found.margin)} {found.by_chance} {each} not stand out among "
            f"{len(found.changes)}.",
            style="dim",
        )
    for run, points in ((found.base, found.only_base), (found.new, found.only_new)):
        if points:
            render.say()
            render.say(alone_sentence(run, points))


def _launches_text(least: int, most: int) -> str:
    """`5 launches`; `6 to 72 launches` where some were judged again."""
    return counted(most, "launch", "launches") if least == most else f"{least} to {most} launches"
