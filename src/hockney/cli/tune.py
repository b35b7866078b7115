"""`hockney tune`: race the settings of an MPI library, and write the rules that are proved faster."""

from __future__ import annotations

import contextlib
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
from hockney.units import counted

if TYPE_CHECKING:
    from hockney.analysis.tune.files import RuleFiles
    from hockney.measure.tune import Contest, Tuned


def _refuse_hosts(*given: object) -> None:
    if given[-1] is not None:
        raise UsageError("tune races settings on this host alone; between hosts others win: leave out --hosts")


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
@click.option("--hosts", hidden=True, expose_value=False, callback=_refuse_hosts)
@file_option("--write", "output", help="Write the rules that are proved faster to FILE.")
@quiet_option
@click.option("--resume", is_flag=True, help="Go on with the last tune of these settings, if it was stopped.")
@click.option("--dry-run", is_flag=True, help="List the choices and the time; measure nothing.")
def tune(
    *,
    as_json: bool,
    store: Path | None,
    what: str,
    transport: str,
    output: Path | None,
    quiet: bool,
    resume: bool,
    dry_run: bool,
    **words: object,
) -> int:
    """Find settings of an MPI library that are faster than its defaults, and write them as its rules.

    Races what the library lets you choose: algorithms of collective operations; thresholds for other patterns. Choices
    that lose leave the race. Where one is certainly faster, by about 5 % or more, it is proved against the default at
    all sizes and at those between; rules are written for the sizes at which the proof shows it faster. docs/tuning.md
    describes the files.
    """
    from hockney.cli.measuring import measuring
    from hockney.cli.progress import VerdictDisplay
    from hockney.cli.run_options import find_suite, read_limits, read_options
    from hockney.measure import tune as racing
    from hockney.measure.plan import make_plan
    from hockney.render.json import print_json
    from hockney.render.text import show
    from hockney.report.documents.tune import (
        contest_document,
        head_lines,
        tune_json,
        tuned_document,
    )
    from hockney.worker.catalogue import load

    if output is not None:
        refuse_output("--write", output, [store] if store else [])
    suite = find_suite(what)
    asked = read_options({**words, "transport": (transport,), "refine": False, "hosts": ("local",)})
    words["time_s"] = words["time_s"] or 600.0 * len(suite.series)
    catalogue = load([transport])
    found = [info.name for info in catalogue.select([transport])]
    if len(found) > 1:
        count = counted(len(found), "library", "libraries")
        raise UsageError(f"{transport} names {count}: write -t {' or -t '.join(found)}")
    plan = make_plan(suite, replace(asked, limits=read_limits(suite, words)), catalogue)
    contest = racing.contest(plan, catalogue)
    if output is not None:
        refuse_beside(output, contest.files([]))
    if dry_run:
        if as_json:
            print_json("tune", tune_json(contest, None))
        else:
            show(contest_document(contest))
        return ExitCode.DONE
    with measuring("tune", store, catalogue, create=not resume, quiet=quiet, make_display=VerdictDisplay) as lab:
        tuned = racing.tune(contest, lab, resume=resume)
    code, written = exit_code_of(contest, tuned), str(output) if output is not None else None
    if output is not None and tuned.rules and code != ExitCode.WORSE:
        write_all(output, contest.files(tuned.rules, head_lines(contest, tuned, lab.command, time.time())))
    else:
        written = None
    if as_json:
        print_json("tune", {**tune_json(contest, tuned), "written": written})
    else:
        show(tuned_document(contest, tuned, written))
    return code


def exit_code_of(contest: Contest, tuned: Tuned) -> ExitCode:
    """1 where the proof has something slower; 3 where a choice failed or the proof decides nothing."""
    if tuned.slower:
        return ExitCode.WORSE
    return ExitCode.DONE if contest.is_whole and not tuned.undecided else ExitCode.INCOMPLETE


def refuse_beside(output: Path, files: RuleFiles) -> None:
    """Raises UsageError for a further file that cannot be written, or that is there without FILE, so is another's."""
    for suffix in filter(None, files.texts):
        path = output.with_name(output.name + suffix)
        refuse_output("--write", path)
        if path.exists() and not output.exists():
            raise UsageError(f"--write would also write {path}, which exists: remove it, or name another file")


def write_all(output: Path, files: RuleFiles) -> None:
    """All files or none: under other names first, and then the first, which names the others, last."""
    from hockney.cli.export import written

    first, *others = files.named(str(output.resolve())).items()
    with written(output) as stream, contextlib.ExitStack() as all_:
        for suffix, text in others:
            all_.enter_context(written(output.with_name(output.name + suffix))).write(text)
        stream.write(first[1])
