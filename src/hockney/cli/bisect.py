"""`hockney bisect`: the commit that made a pattern slower."""

from __future__ import annotations

import functools
import hashlib
import platform
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hockney.cli.common import command, count_of, duration_option
from hockney.cli.run import run
from hockney.errors import ExitCode, UsageError
from hockney.render.json import print_json
from hockney.render.streams import remark
from hockney.units import format_duration_s

if TYPE_CHECKING:
    from hockney.measure.plan import Plan
    from hockney.suites import Suite
    from hockney.worker.catalogue import Catalogue
    from hockney.worker.commits import Commit, Repository
    from hockney.worker.points import RunOptions

# The options of `hockney run` that a pattern may have here.
_OF_RUN = {"what", "transport", "ranks", "sizes", "options", "precision", "time_s", "hosts", "cpus", "timeout_s"}
_PREFIX = re.compile(r"\$PREFIX\b|\$\{PREFIX\}")
_TIME_S = 120.0  # of one comparison, unless it is certain before
_BUILD_LIMIT_S = 3600.0


@command(
    "bisect",
    example="""hockney bisect --good v5.0.1 --bad HEAD --repo ~/src/openmpi --build './build.sh $COMMIT $PREFIX' -- \
pingpong --bytes 64K -t 'mpi@$PREFIX'""",
)
@click.option("--good", metavar="COMMIT", required=True, help="An older commit, with which others are compared.")
@click.option("--bad", metavar="COMMIT", default="HEAD", help="A commit that is slower, or faster. [default: HEAD]")
@click.option(
    "--repo",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="The git repository, which is only read. [default: this folder]",
)
@click.option("--build", required=True, metavar="COMMAND", help="Installs a checkout in $PREFIX; in single quotes.")
@duration_option("--build-limit", "build_limit_s", help="Time limit of a build. [default: 1h]")
@click.option("--jobs", type=count_of("jobs", 64), metavar="NUMBER", help="Builds at a time. [default: 1]")
@click.argument("pattern", metavar="-- PATTERN [OPTION]…", nargs=-1, required=True, type=click.UNPROCESSED)
def bisect(
    good: str,
    bad: str,
    repo: Path,
    build: str,
    build_limit_s: float | None,
    jobs: int | None,
    pattern: tuple[str, ...],
    *,
    as_json: bool,
    store: Path | None,
) -> int:
    """Find the commit that made a pattern slower, or faster.

    Builds commits, compares each with the good one in alternation until the verdict is certain, and names the first
    bad one. PATTERN takes options of `run`, and $PREFIX in the name of the library; --time limits a comparison. The
    same command continues a search that was stopped.
    """
    from hockney.cli.measuring import measuring
    from hockney.measure.bisect import CommitJudge, Ending, Trial, search
    from hockney.render.text import say, show
    from hockney.report.documents.bisection import bisection_document, bisection_json, trial_sentence
    from hockney.worker.catalogue import load
    from hockney.worker.commits import Builder, Repository, builds_folder

    words = ["mpi@$PREFIX" if word == "mpi@" else word for word in pattern]  # a shell removes it without quotes
    _refuse_without_prefix(build, words)
    repository = Repository(repo)
    older, newer = _ends(repository, good, bad)
    builder = Builder(repository, build, build_limit_s or _BUILD_LIMIT_S, builds_folder())
    _read_pattern(words, builder.prefix(older.id))  # what is mistyped is refused before anything is built
    builder.retry([older.id, newer.id])  # a search needs both
    if repository.is_dirty:
        remark(f"{repo} has uncommitted changes: they are part of no commit, so they are not measured.")
    commit_of = functools.cache(repository.commit)

    def told(trial: Trial) -> None:
        (remark if as_json else say)(trial_sentence(trial, commit_of))

    catalogue = load(())
    _refuse_many(_points_on_shm(words, catalogue))
    with measuring("bisect", store, catalogue, quiet=True) as lab:
        series = [word for word, last in zip(words, ["", *words], strict=False) if "--time" not in (last, word[:6])]
        about = (builder.key, older.id, newer.id, platform.node(), str(lab.store.path.resolve()), *series)
        kept = builder.folder / f"{hashlib.sha256(chr(0).join(about).encode()).hexdigest()[:24]}-verdicts.json"
        judge = CommitJudge(builder, lab, _plans(words, lab.catalogue), told, kept, jobs or 1)
        found = search(repository, older.id, newer.id, judge)
    if found.ending in (Ending.NO_CHANGE, Ending.CONTRADICTED):
        kept.unlink(missing_ok=True)
    if as_json:
        print_json("bisect", bisection_json(found, commit_of))
    else:
        show(bisection_document(found, commit_of))
    return ExitCode.DONE if found.ending is Ending.FOUND else ExitCode.INCOMPLETE


bisect.ignore_unknown_options = True  # the pattern's own, also where -- was left out


# ---- options and commits --------------------------------------------------------------------------------------------


def _refuse_without_prefix(build: str, words: Sequence[str]) -> None:
    if not _PREFIX.search(build):
        raise UsageError(
            "--build has no $PREFIX, the folder to install in: write for example --build './build.sh $COMMIT $PREFIX', "
            "in single quotes"
        )
    if not any(map(_PREFIX.search, words)):
        raise UsageError(
            "the pattern has no $PREFIX, so it would measure the same library for each commit: write for example "
            "-t 'mpi@$PREFIX', in single quotes"
        )


def _ends(repository: Repository, good: str, bad: str) -> tuple[Commit, Commit]:
    older, newer = repository.commit(good), repository.commit(bad)
    if older.id == newer.id:
        raise UsageError(f"--good and --bad are the same commit {older.short}: name an older one with --good")
    if not repository.has_in(older.id, newer.id):
        if repository.is_shallow:
            raise UsageError(
                f"{repository.path} is a shallow clone, in which {newer.short} does not reach back to {older.short}: "
                "run git fetch --unshallow there"
            )
        raise UsageError(
            f"--bad {newer.short} does not contain --good {older.short}: exchange them if it is older (faster ones "
            f"are found, too), or give --good what `git merge-base {older.short} {newer.short}` prints"
        )
    return older, newer


def _read_pattern(words: Sequence[str], prefix: Path) -> tuple[Suite, RunOptions]:
    """The suite and the options of `run` in these words, with a folder for $PREFIX. Raises UsageError."""
    from hockney.cli.run_options import find_suite, read_limits, read_options
    from hockney.stats.sequence import VALUES_MIN

    params = [param for param in run.params if param.name in _OF_RUN]
    typed = [_PREFIX.sub(lambda _: str(prefix), word) for word in words]
    given = click.Command("run", params=params).make_context("hockney run", typed).params
    given["hosts"] = given["hosts"] or ("local",)  # also in a batch job: its hosts are used only if named
    given["time_s"] = given["time_s"] or _TIME_S
    given["launches"] = VALUES_MIN  # at least; certainty decides
    options = read_options({"refine": False, **given})
    suite = find_suite(",".join(given["what"]), on_hosts=bool(options.placement.hosts))
    return suite, replace(options, limits=read_limits(suite, given))


def _refuse_many(points: int) -> None:
    if points > 1:
        raise UsageError(
            f"bisect measures one series, and this pattern has {points}: name one pattern, transport, size (--bytes) "
            "and number of ranks (-n)"
        )


def _points_on_shm(words: Sequence[str], catalogue: Catalogue) -> int:
    """How many points the pattern has on shm; 0 if it is not for that. The library's own are known once it is built."""
    from hockney.measure.plan import make_plan

    suite, options = _read_pattern(words, Path("prefix"))
    try:
        return len(make_plan(suite, replace(options, transports=("shm",)), catalogue).points)
    except UsageError:
        return 0


def _plans(words: Sequence[str], catalogue: Catalogue) -> Callable[[Path], Plan]:
    """Makes the plan that measures the library in a folder."""
    from hockney.measure.bisect import LibraryUnusable
    from hockney.measure.interleave import can_race
    from hockney.measure.plan import make_plan, refuse_empty
    from hockney.measure.run import Variant

    def plan_on(prefix: Path) -> Plan:
        suite, options = _read_pattern(words, prefix)
        try:
            catalogue.select(options.transports)
            plan = make_plan(suite, options, catalogue)
            refuse_empty(plan)
        except UsageError as error:
            raise LibraryUnusable(str(error)) from error
        _refuse_many(len(plan.points))
        if not can_race([Variant(plan)] * 2):
            time = format_duration_s(plan.limits.time_s)
            raise UsageError(f"--time {time} is too short for the launches of a comparison: give more, such as 2m")
        return plan

    return plan_on
