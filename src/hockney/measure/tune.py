"""Races the choices of an MPI library, writes what won as rules, and proves these against the default.

Each choice is raced as the rules that always choose it, so what is raced is what is written. A library that ignores a
rules file looks like one without gain, so a file is tried first with a choice that the library must refuse.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hockney.analysis.compare import compare_runs
from hockney.analysis.compare.values import Comparison
from hockney.analysis.tune import Referee, Rule, RuleFiles, can_be_ruled, rule_files, rules_of
from hockney.errors import HockneyError, UsageError, working
from hockney.machine.placement import choose_cpus, usable_cpus
from hockney.measure import interleave
from hockney.measure.plan import Plan, refuse_empty
from hockney.measure.recorder import Lab
from hockney.measure.run import Variant
from hockney.model import Point, PointStatus, RunStatus
from hockney.stats.sequence import VALUES_MIN
from hockney.worker.catalogue import Catalogue, TransportInfo
from hockney.worker.errors import WorkerError, WorkerTimedOut
from hockney.worker.launch import Job, launch
from hockney.worker.libraries import NATIVE, Library
from hockney.worker.placement import Placement
from hockney.worker.session import WorkerSession
from hockney.worker.settings import Choice, algorithms, is_taken, selection_trees, thresholds

HIDDEN = 1.03
"""A slowdown up to this ratio may hide in the proof."""
_LIMIT_S = 20
_PROOF = 1 / 3  # of the time


@dataclass
class Contest:
    """What is raced: the default's plan, and the choices by pattern. `left_out`: those that failed, with the reason.

    `too_short`: of a pattern whose race had too few launches, how many there were, and how many it takes.
    """

    plan: Plan
    transport: TransportInfo
    choices: dict[str, list[Choice]]
    trees: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    left_out: dict[tuple[str, Choice], str] = field(default_factory=dict)
    too_short: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether each choice was raced, but those that the library itself refuses, and long enough."""
        return not self.too_short and all("MPI_ERR_UNSUPPORTED_OPERATION" in why for why in self.left_out.values())

    @property
    def library(self) -> Library:
        """The library that is tuned."""
        return self.transport.library or NATIVE

    def files(self, rules: Sequence[Rule], head: Sequence[str] = ()) -> RuleFiles:
        """The files of rules."""
        return rule_files(self.library.kind, rules, head, self.trees)

    def always(self, pattern: str, choice: Choice) -> RuleFiles:
        """The files that choose it at all points of a pattern."""
        points = [point for point in self.plan.points if point.pattern == pattern]
        most = max(point.bytes for point in points)
        ranks = sorted({point.ranks for point in points})
        return self.files([Rule(pattern, count, 0, most, choice, ((1.0, 1.0, 1.0),)) for count in ranks])


@dataclass(frozen=True)
class Tuned:
    """The rules that won, their files, and their proof; None without rules."""

    rules: list[Rule]
    files: RuleFiles | None = None
    proof: Comparison | None = None


def contest(plan: Plan, catalogue: Catalogue) -> Contest:
    """The choices at a plan's points. Raises UsageError where there are none or no rules can be written."""
    refuse_empty(plan, what="tune")
    transport = catalogue.transports[plan.points[0].transport]
    kind = transport.library.kind if transport.library is not None else ""
    choices: dict[str, list[Choice]] = {}
    for pattern in dict.fromkeys(point.pattern for point in plan.points):
        most = max(point.bytes for point in plan.points if point.pattern == pattern)
        choices[pattern] = algorithms(transport, pattern, most)
        why = can_be_ruled(kind, pattern) if choices[pattern] else ""
        if why:
            raise UsageError(f"{pattern} cannot be tuned on {transport.name}: {why}; leave it out")
        choices[pattern] = choices[pattern] or thresholds(transport)
        if not choices[pattern]:
            raise UsageError(f"{transport.name} has nothing to choose for {pattern}; leave it out")
    trees = selection_trees(transport) if kind == "mpich" else {}
    return Contest(plan, transport, choices, trees)


def tune(contest: Contest, lab: Lab, head: Sequence[str]) -> Tuned:
    """Race, and prove. Raises HockneyError where the library ignores the rules, and when stopped; StoreError."""
    _leave_out(contest)
    time_s = contest.plan.limits.time_s * (1 - _PROOF) / len(contest.choices)
    rules = [rule for pattern in contest.choices for rule in _race(contest, lab, pattern, time_s)]
    if not rules:
        return Tuned([])
    for rule in {rule.operation: rule for rule in rules}.values():
        if not is_read(contest, rule):
            raise HockneyError(
                f"{contest.library.name} ignores rules for {rule.operation}: a variable or another component of the "
                "library overrides them; unset those that choose its collectives"
            )
    files = contest.files(rules, head)
    with kept(files) as environment:
        plan = _with_sizes_between(contest.plan).within(time_s=contest.plan.limits.time_s * _PROOF)
        runs = _measured([Variant(plan), Variant(plan, environment, "rules")], lab, interleave.until_verdicts(HIDDEN))
    return Tuned(rules, files, compare_runs(lab.store, *runs, margin=HIDDEN))


def _leave_out(contest: Contest) -> None:
    """Try each choice once, with the payload checked, at the most ranks and bytes."""
    for pattern, choices in contest.choices.items():
        of_pattern = [point for point in contest.plan.points if point.pattern == pattern]
        point = max(of_pattern, key=lambda each: (each.ranks, each.bytes))
        for choice in choices:
            with working.get()(f"trying {pattern}: {choice.name}"):
                with kept(contest.always(pattern, choice)) as environment:
                    why = failure(contest.transport, point, environment)
                if not is_taken(contest.transport, choice):
                    contest.left_out[pattern, choice] = "the library does not take this value"
                elif why is not None:
                    contest.left_out[pattern, choice] = str(why)
        if all((pattern, choice) in contest.left_out for choice in choices):
            raise HockneyError(f"every choice for {pattern} fails, the first: {contest.left_out[pattern, choices[0]]}")


def _race(contest: Contest, lab: Lab, pattern: str, time_s: float) -> list[Rule]:
    points = tuple(point for point in contest.plan.points if point.pattern == pattern)
    plan = replace(contest.plan, points=points).within(time_s=time_s)
    choices = [choice for choice in contest.choices[pattern] if (pattern, choice) not in contest.left_out]
    referee = Referee(choices, len(points))

    def decide(look: interleave.Look) -> Collection[interleave.Entry]:
        return referee.decide(look.ratios)

    with _all_kept([contest.always(pattern, choice) for choice in choices]) as environments:
        raced = [
            Variant(plan, environment, f"{pattern}: {choice.name}")
            for choice, environment in zip(choices, environments, strict=True)
        ]
        runs = _measured([Variant(plan), *raced], lab, decide)
    for choice, run in zip(choices, runs[1:], strict=True):
        failed = [row.reason for row in lab.store.points(run) if row.status is PointStatus.FAILED]
        if failed:
            contest.left_out[pattern, choice] = str(failed[0])
    if too_few := referee.too_few():
        contest.too_short[pattern] = too_few
    return rules_of(referee.cells(without=[choice for _, choice in contest.left_out]))


def _measured(variants: Sequence[Variant], lab: Lab, decide: interleave.Decide) -> list[int]:
    """The runs of variants in alternation. Raises HockneyError when stopped."""
    variants = [replace(each, plan=each.plan.within(launches=VALUES_MIN)) for each in variants]
    outcomes = interleave.measure(variants, lab, decide=decide)
    runs = [outcome.run_id for outcome in outcomes]
    if any(outcome.status is RunStatus.STOPPED for outcome in outcomes):
        raise HockneyError(f"stopped; the measurements are stored as runs {runs[0]} to {runs[-1]}, nothing is written")
    return runs


def _with_sizes_between(plan: Plan) -> Plan:
    """The plan with a size between any two neighbours of a curve."""
    curves: dict[Point, list[int]] = {}
    for point in plan.points:
        curves.setdefault(replace(point, bytes=0), []).append(point.bytes)
    points = []
    for curve, sizes in curves.items():
        grain = max(8, plan.grains.get(curve.pattern, 1))
        between = {(a + b) // 2 // grain * grain for a, b in zip(sorted(sizes), sorted(sizes)[1:], strict=False)}
        all_sizes = sorted({*sizes, *(size for size in between if size > min(sizes))})
        points += [replace(curve, bytes=size) for size in all_sizes]
    return replace(plan, points=tuple(points))


# ---- jobs that read files -------------------------------------------------------------------------------------------


@contextmanager
def kept(files: RuleFiles) -> Iterator[dict[str, str]]:
    """The variables of jobs that read the files, which exist meanwhile."""
    with _all_kept([files]) as (environment,):
        yield environment


@contextmanager
def _all_kept(all_files: Sequence[RuleFiles]) -> Iterator[list[dict[str, str]]]:
    with tempfile.TemporaryDirectory(prefix="hockney-tune-") as folder:
        names = [Path(folder) / str(number) for number in range(len(all_files))]
        for name, files in zip(names, all_files, strict=True):
            for suffix, text in files.texts.items():
                name.with_name(name.name + suffix).write_text(text, encoding="utf-8")
        yield [files.variables(str(name)) for name, files in zip(names, all_files, strict=True)]


def failure(transport: TransportInfo, point: Point, environment: Mapping[str, str]) -> WorkerError | None:
    """Why a job with these variables cannot do a point, with its payload checked; None if it can."""
    where = Placement(cpus=choose_cpus(point.ranks))
    too_many = point.ranks > len(usable_cpus())
    names = transport.executable, transport.worker_name, point.ranks
    job = Job(*names, where, oversubscribed=too_many, start_limit_s=_LIMIT_S)
    command = launch(job, transport.library, {**os.environ, **environment})
    command = replace(command, environment={**environment, **command.environment})
    try:
        with WorkerSession(command, start_limit_s=_LIMIT_S) as session:
            session.hello()
            session.measure(point.pattern, bytes=point.bytes, samples=2, options=point.options, timeout_s=_LIMIT_S)
    except WorkerError as error:
        return error
    return None


def is_read(contest: Contest, rule: Rule, point: Point | None = None) -> bool:
    """Whether the library follows a rule: with a choice that it must refuse, `point` fails, by default one of the rule.

    Always true for rules that are variables: is_taken reads those back where the library shows them.
    """
    word = _REFUSED.get((contest.library.kind, rule.operation)) or _REFUSED.get((contest.library.kind, ""))
    if rule.winner.is_threshold or word is None:
        return True
    planted = replace(rule, winner=Choice("refused", word.format(rule.winner.word)))
    with kept(contest.files([planted])) as environment:
        point = point or Point(contest.transport.name, rule.operation, rule.ranks, rule.least)
        why = failure(contest.transport, point, environment)
    return why is not None and not isinstance(why, WorkerTimedOut)


# An algorithm that Open MPI does not have; conditions that MPICH has for other operations alone.
_REFUSED = {
    ("openmpi", ""): "9999 0 0",
    ("mpich", ""): "is_commutative=yes/{}",
    **{("mpich", name): "is_block_regular=yes/{}" for name in ("allreduce", "reduce")},
    **{("mpich", name): "is_op_built_in=yes/{}" for name in ("reduce_scatter", "reduce_scatter_block")},
}
