"""`hockney tune`: race the settings of an MPI library, and write the rules that are proved faster."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hockney.cli.common import (
    command,
    complete,
    duration_option,
    file_option,
    limit_option,
    point_options,
    quiet_option,
    refuse_output,
    transport_option,
)
from hockney.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hockney.analysis.tune import RuleFiles
    from hockney.measure.tune import Contest, Tuned


@command(
    "tune",
    example="""hockney tune allreduce,bcast -t mpi@openmpi -n 4,8,16 --bytes 8:1M --time 20m --write rules.conf
    hockney tune pingpong -t mpi@openmpi --bytes 1K:256K
    hockney tune bcast -t mpi@mpich-4 -n 8 --dry-run""",
    codes=(ExitCode.DONE, ExitCode.WORSE, ExitCode.USAGE, ExitCode.INCOMPLETE),
)
@click.argument("what", metavar="PATTERN,…", shell_complete=complete("pattern"))
@transport_option(required=True, metavar="NAME", help="The library: mpi@openmpi, or mpi@/opt/a.")
@point_options
@duration_option("--time", "time_s", help="Time for the race and the proof. [default: 10m for each pattern]")
@limit_option(help="Time limit of one measurement. [default: 20s to 60s]")
@file_option("--write", "output", help="Write the rules that are proved faster to FILE.")
@quiet_option
@click.option("--dry-run", is_flag=True, help="List the choices and the time; measure nothing.")
def tune(
    *,
    as_json: bool,
    store: Path | None,
    what: str,
    transport: str,
    output: Path | None,
    quiet: bool,
    dry_run: bool,
    **words: object,
) -> int:
    """Find settings of an MPI library that are faster than its defaults, and write them as its rules.

    Races what the library lets you choose: algorithms of collective operations; thresholds for other patterns. What
    loses leaves the race. Rules are written where a gain of 5 % or more is certain, and then proved against the default
    at all sizes and at those between. docs/tuning.md describes the files.
    """
    from hockney.cli.measuring import measuring
    from hockney.cli.progress import ProgressDisplay
    from hockney.cli.run_options import find_suite, read_limits, read_options
    from hockney.measure import tune as racing
    from hockney.measure.plan import make_plan
    from hockney.render.json import print_json
    from hockney.render.text import show
    from hockney.report.documents.tune import contest_document, head_lines, tune_json, tuned_document
    from hockney.worker.catalogue import load

    if output is not None:
        refuse_output("--write", output, [store] if store else [])
    suite = find_suite(what)
    asked = read_options({**words, "transport": (transport,), "refine": False, "hosts": ("local",)})
    words["time_s"] = words["time_s"] or 600.0 * len(suite.series)
    catalogue = load([transport])
    found = [info.name for info in catalogue.select([transport])]
    if len(found) > 1:
        raise UsageError(f"{transport} is {', '.join(found[:3])}{', …' * (len(found) > 3)}: tune one library at a time")
    plan = make_plan(suite, replace(asked, limits=read_limits(suite, words)), catalogue)
    contest = racing.contest(plan, catalogue)
    if dry_run:
        if as_json:
            print_json("tune", tune_json(contest, None))
        else:
            show(contest_document(contest))
        return ExitCode.DONE
    with measuring("tune", store, catalogue, quiet=quiet, make_display=ProgressDisplay) as lab:
        tuned = racing.tune(contest, lab, head_lines(contest, lab.command, time.time()))
    code = exit_code_of(contest, tuned)
    is_written = output is not None and tuned.files is not None and code != ExitCode.WORSE
    if is_written and output is not None and tuned.files is not None:
        write_all(output, tuned.files)
    if as_json:
        print_json("tune", {**tune_json(contest, tuned), "written": str(output) if is_written else None})
    else:
        show(tuned_document(contest, tuned, str(output) if is_written else None))
    return code


def exit_code_of(contest: Contest, tuned: Tuned) -> ExitCode:
    """1 where the proof has something slower; 3 where a choice failed or the proof decides nothing."""
    from hockney.analysis.compare.values import Verdict

    counts = tuned.proof.counts if tuned.proof is not None else {}
    if counts.get(Verdict.SLOWER):
        return ExitCode.WORSE
    return ExitCode.DONE if contest.is_whole and not counts.get(Verdict.INCONCLUSIVE) else ExitCode.INCOMPLETE


def write_all(output: Path, files: RuleFiles) -> None:
    """All files or none: the first is the last, and names the others."""
    from hockney.cli.export import written

    made: list[Path] = []
    try:
        for suffix, text in reversed(list(files.texts.items())):
            path = output.with_name(output.name + suffix)
            with written(path) as stream:
                stream.write(text.replace("{file}", str(output.resolve())))
            made.append(path)
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise
