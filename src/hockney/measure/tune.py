"""Races the choices of an MPI library, writes what won as rules, and proves these against the default.

Each choice is raced as the rules that always choose it, so what is raced is what is written. A library that ignores a
rules file looks like one without gain, so a file is tried first with a choice that the library must refuse. Of the
rules that win, the proof leaves those that it shows faster. References run with the choices, to show what a library
could reach. Each run is stored with its tune and its step of that, so that a tune that was stopped can go on.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import secrets
import shlex
import statistics
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hockney.analysis.compare import compare_runs
from hockney.analysis.compare.values import Comparison, Verdict
from hockney.analysis.repeat import TUNE, resumed
from hockney.analysis.tune.files import RuleFiles, can_be_ruled, rule_files
from hockney.analysis.tune.race import Referee
from hockney.analysis.tune.rules import Rule, other_values, proved, rules_of
from hockney.errors import HockneyError, UsageError, notice, working
from hockney.machine.placement import choose_cpus, usable_cpus
from hockney.measure import interleave
from hockney.measure.plan import Plan, refuse_empty
from hockney.measure.recorder import Lab
from hockney.measure.run import Variant
from hockney.model import Point, PointStatus, RunStatus
from hockney.stats.sequence import VALUES_MIN
from hockney.units import counted, format_duration_s
from hockney.worker.catalogue import Catalogue, TransportInfo
from hockney.worker.errors import WorkerError, WorkerTimedOut
from hockney.worker.launch import Job, launch
from hockney.worker.libraries import NATIVE, Library
from hockney.worker.session import WorkerSession
from hockney.worker.settings import DEFAULT, Choice, algorithms, is_taken, selection_trees, thresholds

HIDDEN = 1.03
"""A slowdown up to this ratio may hide in the proof."""
_PROOF = 1 / 3  # of the time
_SLOWER_SOMEWHERE = "it holds for all sizes, and is slower at some"
_OTHER_VALUE = "it holds for all sizes, and another value gains more"
# Algorithms that are not made of messages alone; and flat, which moves one block less than the library.
_NO_REFERENCES = {"auto", "native", "parts", "flat"}
_NO_FAULTS = ("MPI_ERR_UNSUPPORTED_OPERATION", _SLOWER_SOMEWHERE, _OTHER_VALUE)


@dataclass
class Contest:
    """What is raced: the default's plan, and by pattern the choices, and algorithms over messages as references.

    `left_out`: those that failed, with the reason; DEFAULT where it was not measured.

    `too_short`: of a pattern whose race had too few launches, how many there were, and how many it takes.

    `start_s`: how long a job's start takes, once it is tried. `id` is that of the tune, `stored` the runs of each step
    if it goes on.
    """

    plan: Plan
    transport: TransportInfo
    choices: dict[str, list[Choice]]
    references: dict[str, list[Choice]]
    trees: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    left_out: dict[tuple[str, Choice], str] = field(default_factory=dict)
    too_short: dict[str, tuple[int, int]] = field(default_factory=dict)
    start_s: float | None = None
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    stored: dict[str, list[int]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether each choice was raced, but those that the library itself refuses, and long enough."""
        reasons = self.left_out.values()
        return not self.too_short and self.is_raced and all(any(no in why for no in _NO_FAULTS) for why in reasons)

    @property
    def is_raced(self) -> bool:
        """Whether the default was measured at all points."""
        return all(choice != DEFAULT for _, choice in self.left_out)

    @property
    def library(self) -> Library:
        """The library that is tuned."""
        return self.transport.library or NATIVE

    @property
    def key(self) -> str:
        """Equal for tunes that race the same."""
        return _digest(self.library.id, self.library.name, self.plan.as_json(), self.plan.points, self.choices)

    def go_on(self, lab: Lab) -> None:
        """Take the runs of the last tune of the same. Raises UsageError if there is none."""
        infos = {run.id: lab.store.run(run.id).info for run in lab.store.runs()}
        links = {run_id: info.plan[TUNE] for run_id, info in infos.items() if TUNE in info.plan}
        same = {run_id: link for run_id, link in links.items() if link[0] == self.key}
        if not same:
            no = "no tune with these settings is stored, so there is nothing to resume: leave out --resume"
            if not links:
                raise UsageError(no)
            then, now = ([*shlex.split(command)] for command in (infos[max(links)].command, lab.command))
            pairs = itertools.pairwise(then)
            other = [f"{name} {word}" if name[0] == "-" else word for name, word in pairs if word not in now]
            had = f"had {', '.join(other)}" if other else "had fewer settings, or another version of the library"
            raise UsageError(f"{no}, or go on with the last one, which {had}", argv=resumed(then))
        self.id = same[max(same)][1]
        for run_id, (_, tune_id, step) in same.items():
            if tune_id == self.id:
                self.stored.setdefault(step, []).append(run_id)

    def measure(self, variants: Sequence[Variant], lab: Lab, decide: interleave.Decide, *step: object) -> list[int]:
        """The runs of variants in alternation, for this step. Raises HockneyError when stopped."""
        key = _digest(*step)
        runs = self.stored.get(key, [])[-len(variants) :]
        linked = [replace(variant, link={TUNE: [self.key, self.id, key]}) for variant in variants]
        return _measured(linked, lab, decide, runs if len(runs) == len(variants) else ())

    def files(self, rules: Sequence[Rule], head: Sequence[str] = ()) -> RuleFiles:
        """The files of rules."""
        return rule_files(self.library.kind, rules, head, self.trees)

    def points(self, pattern: str) -> tuple[Point, ...]:
        """Those of a pattern."""
        return tuple(point for point in self.plan.points if point.pattern == pattern)

    def hardest(self, pattern: str) -> Point:
        """The point of a pattern with the most ranks and bytes."""
        return max(self.points(pattern), key=lambda each: (each.ranks, each.bytes))

    def running(self, pattern: str) -> list[Choice]:
        """The choices that did not fail."""
        return [choice for choice in self.choices[pattern] if (pattern, choice) not in self.left_out]

    def variants(self, pattern: str, environments: Iterable[Mapping[str, str]]) -> list[Variant]:
        """Of a race: the default, the choices with their environments, and the references."""
        plan, found = self.race_plan(pattern), [Variant(self.race_plan(pattern), label=TUNE)]
        found += [Variant(plan, environment, TUNE) for environment in environments]
        for pair in (("algorithm", each.word) for each in self.references[pattern]):
            points = tuple(point.having(*pair) for point in plan.points)
            found.append(Variant(replace(plan, points=points), label=TUNE, having=pair))
        return found

    def race_plan(self, pattern: str) -> Plan:
        """The plan of a pattern's race, with its share of the time."""
        plan = replace(self.plan, points=self.points(pattern))
        return plan.within(time_s=self.plan.limits.time_s * (1 - _PROOF) / len(self.choices), launches=VALUES_MIN)

    def least(self) -> list[Least]:
        """The launches made in any case: of each pattern's race, and of the proof. Times are estimates."""
        races = {name: self.variants(name, [{}] * len(self.running(name))) for name in self.choices}
        proof = [Variant(_with_sizes_between(self.plan).within(time_s=self.plan.limits.time_s * _PROOF))] * 2
        return [
            Least(
                name,
                len(raced),
                interleave.race_s(raced, VALUES_MIN, self.start_s),
                is_enough=interleave.can_race(raced, self.start_s),
            )
            for name, raced in [*races.items(), ("the proof", proof)]
        ]

    def always(self, pattern: str, choice: Choice) -> RuleFiles:
        """The files that choose it at all points of a pattern."""
        points = self.points(pattern)
        most = max(point.bytes for point in points)
        ranks = sorted({point.ranks for point in points})
        return self.files([Rule(pattern, count, 0, most, choice, _NO_GAIN) for count in ranks])


_NO_GAIN = ((1.0, 1.0, 1.0),)


@dataclass(frozen=True)
class Least:
    """The launches of a race that are made even if the time is over, and their time. `is_enough`: for any verdict."""

    of: str
    variants: int
    time_s: float
    is_enough: bool
    launches: int = VALUES_MIN

    def __str__(self) -> str:
        """`bcast: 7 launches of 12 variants, about 3 min`."""
        time = format_duration_s(self.time_s)
        return f"{self.of}: {self.launches} launches of {self.variants} variants, about {time}"


@dataclass(frozen=True)
class Tuned:
    """The rules that are proved, and the proof of all that won; None where none did.

    `references`: as rules, where one is certainly faster than the library's best choice. `won`: the rules of the proof.
    """

    rules: list[Rule]
    proof: Comparison | None = None
    references: Sequence[Rule] = ()
    won: Sequence[Rule] = ()

    @property
    def slower(self) -> int:
        """How many points the proof shows slower."""
        return self.proof.counts[Verdict.SLOWER] if self.proof is not None else 0

    @property
    def slower_without_rule(self) -> int:
        """How many of these keep the default, so that the file itself costs their time."""
        slower = [each.point for each in self.proof.changes if each.verdict is Verdict.SLOWER] if self.proof else []
        return sum(not any(rule.holds_for(point) for rule in self.won) for point in slower)

    @property
    def undecided(self) -> int:
        """How many points the proof leaves undecided."""
        return self.proof.counts[Verdict.INCONCLUSIVE] if self.proof is not None else 0


def _digest(*what: object) -> str:
    return hashlib.sha256(repr(what).encode()).hexdigest()


def contest(plan: Plan, catalogue: Catalogue) -> Contest:
    """The choices at a plan's points. Raises UsageError where some are missing or no rules can be written."""
    there = {(point.pattern, point.ranks) for point in plan.points}
    if lost := [each for each in plan.skipped if (each.point.pattern, each.point.ranks) not in there]:
        pattern, ranks = lost[0].point.pattern, lost[0].point.ranks
        reason = statistics.mode(
            each.reason for each in lost if (each.point.pattern, each.point.ranks) == (pattern, ranks)
        )
        raise UsageError(f"{pattern} on {counted(ranks, 'rank')} cannot be raced: {reason}; leave it out")
    refuse_empty(plan, what="tune")
    transport = catalogue.transports[plan.points[0].transport]
    library = transport.library or NATIVE
    kind, version = library.kind, tuple(map(int, re.findall(r"\d+", library.name)))
    choices: dict[str, list[Choice]] = {}
    if any(name == "algorithm" for point in plan.points for name, _ in point.options):
        raise UsageError("tune chooses the algorithm: leave out -o algorithm")
    if len({(point.pattern, point.ranks, point.bytes) for point in plan.points}) < len(plan.points):
        raise UsageError("a rule is for an operation, ranks and a size: give each option (-o) one value")
    for pattern in dict.fromkeys(point.pattern for point in plan.points):
        most = max(point.bytes for point in plan.points if point.pattern == pattern)
        choices[pattern] = algorithms(transport, pattern, most)
        why = can_be_ruled(kind, pattern, version) if choices[pattern] else ""
        if why:
            raise UsageError(f"{pattern} cannot be tuned on {transport.name}: {why}; leave it out")
        choices[pattern] = choices[pattern] or thresholds(transport)
        if not choices[pattern]:
            raise UsageError(f"{transport.name} has nothing to choose for {pattern}; leave it out")
    if len({each[0].is_threshold for each in choices.values()}) > 1:
        raise UsageError(f"{', '.join(choices)}: collectives and others have different settings; tune them apart")
    trees = selection_trees(transport) if kind == "mpich" else {}
    return Contest(plan, transport, choices, {name: _references(name, catalogue) for name in choices}, trees)


def _references(pattern: str, catalogue: Catalogue) -> list[Choice]:
    """The pattern's algorithms over the library's messages."""
    options = {option.name: option.choices for option in catalogue.patterns[pattern].options}
    words = [word for word in options.get("algorithm", ()) if word not in {*_NO_REFERENCES, *catalogue.patterns}]
    return [Choice(f"{word} over the library's own messages", word) for word in words]


def tune(contest: Contest, lab: Lab, *, resume: bool = False) -> Tuned:
    """Race, and prove; `resume`: go on with the last tune of the same.

    Raises HockneyError where the library ignores the rules, and when stopped; UsageError without a tune to resume,
    StoreError.
    """
    if resume:
        contest.go_on(lab)
    _leave_out(contest)
    least = contest.least()
    if not all(each.is_enough for each in least):
        every = "; ".join(map(str, least))
        notice.get()(f"--time may be too short for certainty: give more, or fewer sizes. In any case: {every}")
    races = {pattern: _race(contest, lab, pattern) for pattern in contest.choices}
    rules = _winners(contest, races)
    references = [rule for race in races.values() for rule in rules_of(race.references())]
    if not rules:
        return Tuned([], references=references)
    with kept(contest.files(rules)) as environment:
        plan = _with_sizes_between(contest.plan).within(time_s=contest.plan.limits.time_s * _PROOF, launches=VALUES_MIN)
        sides = Variant(plan, label=TUNE), Variant(plan, environment, TUNE)
        runs = contest.measure(sides, lab, interleave.until_verdicts(HIDDEN), "proof", rules)
    proof = compare_runs(lab.store, *runs, margin=HIDDEN)
    return Tuned(proved(rules, proof.changes), proof, references, rules)


def _leave_out(contest: Contest) -> None:
    """Try each choice once, with the payload checked, at the most ranks and bytes, and whether rules are followed."""
    took_s: list[float] = []
    for pattern, choices in contest.choices.items():
        point = contest.hardest(pattern)
        for choice in choices:
            begin_s = time.monotonic()
            with working.get()(f"trying {pattern}: {choice.name}"):
                why = _fault(contest, point, choice)
            if why:
                contest.left_out[pattern, choice] = why
            else:
                took_s.append(time.monotonic() - begin_s)
                contest.start_s = statistics.median(took_s)
        running = contest.running(pattern)
        if not running:
            raise HockneyError(f"every choice for {pattern} fails, the first: {contest.left_out[pattern, choices[0]]}")
        if not is_read(contest, Rule(pattern, point.ranks, point.bytes, point.bytes, running[0], _NO_GAIN), point):
            raise HockneyError(
                f"{contest.library.name} ignores rules for {pattern}: a variable or another component of the "
                "library overrides them; unset those that choose its collectives"
            )


def _fault(contest: Contest, point: Point, choice: Choice) -> str:
    """Why a choice cannot be raced; empty if it can."""
    with kept(contest.always(point.pattern, choice)) as environment:
        why = failure(contest, point, environment)
    if why is None:
        try:
            return "" if is_taken(contest.transport, choice) else "the library does not take this value"
        except WorkerError as error:
            why = error
    return why.reason  # a remedy would be for the user's own settings


def _winners(contest: Contest, races: Mapping[str, Referee]) -> list[Rule]:
    """The rules that the races say. A threshold may be slower nowhere, and has one value."""
    slower = {choice for race in races.values() for choice in race.slower()}
    every = [choice for of_pattern in contest.choices.values() for choice in of_pattern]

    def rules(without: Collection[Choice] = ()) -> list[Rule]:
        failed = {pattern: {each for name, each in contest.left_out if name == pattern} for pattern in races}
        cells = {pattern: race.cells(without={*failed[pattern], *without}) for pattern, race in races.items()}
        return [rule for of_pattern in cells.values() for rule in rules_of(of_pattern)]

    others = other_values(rules(slower), every)
    found = rules({*slower, *others})
    for why, gone, left in ((_SLOWER_SOMEWHERE, slower, rules()), (_OTHER_VALUE, others, rules(slower))):
        contest.left_out.update({(rule.operation, rule.winner): why for rule in left if rule.winner in gone})
    return found


def _race(contest: Contest, lab: Lab, pattern: str) -> Referee:
    choices, references = contest.running(pattern), contest.references[pattern]
    referee = Referee(choices, contest.points(pattern), references)

    with _all_kept([contest.always(pattern, choice) for choice in choices]) as environments:
        runs = contest.measure(
            contest.variants(pattern, environments), lab, referee.decide, pattern, choices, references
        )
    for choice, run in zip((*choices, *references), runs[1:], strict=True):
        failed = [row.reason for row in lab.store.points(run) if row.status is PointStatus.FAILED]
        if failed:
            contest.left_out[pattern, choice] = str(failed[0])
    if missing := referee.unmeasured():
        why = next((row.reason for row in lab.store.points(runs[0]) if row.point in missing and row.reason), None)
        contest.left_out[pattern, DEFAULT] = why or "it was not measured in the time"
    if too_few := referee.too_few():
        contest.too_short[pattern] = too_few
    return referee


def _measured(variants: Sequence[Variant], lab: Lab, decide: interleave.Decide, stored: Sequence[int]) -> list[int]:
    """The runs of variants in alternation, which may be stored. Raises HockneyError when stopped."""
    outcomes = interleave.measure(variants, lab, decide=decide, runs=stored)
    runs = [outcome.run_id for outcome in outcomes]
    if any(outcome.status is RunStatus.STOPPED for outcome in outcomes):
        said = f"stopped; the measurements are stored as runs {runs[0]} to {runs[-1]}, nothing is written; continue"
        raise HockneyError(said, argv=resumed(shlex.split(lab.command)))
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
            for suffix, text in files.named(str(name)).items():
                name.with_name(name.name + suffix).write_text(text, encoding="utf-8")
        yield [files.variables(str(name)) for name, files in zip(names, all_files, strict=True)]


def failure(contest: Contest, point: Point, environment: Mapping[str, str]) -> WorkerError | None:
    """Why a job with these variables cannot do a point, with its payload checked; None if it can."""
    transport, where, limits = contest.transport, contest.plan.placement, contest.plan.limits
    too_many = point.ranks > where.cpus_for(point.ranks, len(usable_cpus()))
    where = where if where.bind else replace(where, cpus=choose_cpus(point.ranks))
    names = transport.executable, transport.worker_name, point.ranks
    job = Job(*names, where, oversubscribed=too_many, start_limit_s=limits.start_limit_s)
    command = launch(job, transport.library, {**os.environ, **environment})
    command = replace(command, environment={**environment, **command.environment})
    try:
        with WorkerSession(command, start_limit_s=limits.start_limit_s) as session:
            session.hello()
            session.measure(
                point.pattern, bytes=point.bytes, samples=2, options=point.options, timeout_s=limits.timeout_s
            )
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
        why = failure(contest, point, environment)
    return why is not None and not isinstance(why, WorkerTimedOut)


# An algorithm that Open MPI does not have; conditions that MPICH has for other operations alone.
_REFUSED = {
    ("openmpi", ""): "9999 0 0",
    ("mpich", ""): "is_commutative=yes/{}",
    **{("mpich", name): "is_block_regular=yes/{}" for name in ("allreduce", "reduce")},
    **{("mpich", name): "is_op_built_in=yes/{}" for name in ("reduce_scatter", "reduce_scatter_block")},
}
