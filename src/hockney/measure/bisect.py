"""Finds the commit that changed a time: measures commits against a good one until each is certain.

First good and bad are compared: the change that is looked for. A commit is bad if its ratio to the good one is beyond
half of that change, in logarithms, and good if it is certainly below. One that stays undecided, or that cannot be built
or run, is left out, and a neighbour is taken. At the end the commit before the first bad one is compared with it: the
change must show there, too. So a wrong verdict leads to a range, not to a wrong commit.

Launches go on until a verdict is certain at every look (stats/sequence.py). Each is wrong with ERROR over the most
comparisons of the search, which is 0.4 % for 64 commits: so any is with 5 % at most.
"""

from __future__ import annotations

import enum
import itertools
import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hockney.errors import HockneyError, UsageError, working
from hockney.measure import interleave
from hockney.measure.plan import Plan
from hockney.measure.recorder import Lab
from hockney.measure.run import Variant
from hockney.model import PointStatus, RunStatus
from hockney.stats import Interval
from hockney.stats.sequence import chance_above, chance_below, interval
from hockney.worker.commits import Builder, Repository

ERROR = 0.05  # the chance that any verdict of a search is wrong
MARGIN = 1.01  # a smaller ratio of good and bad is no change, as in all comparisons by launch pairs
HALF = 0.5  # of the logarithm of the whole change: a commit beyond it is bad
QUARTER = 0.25  # what the first bad commit must change by itself, since others may have a part
_MORE = 6  # comparisons besides those that halve: of good and bad, of the pair at the end, and next to what is left out


class LibraryUnusable(UsageError):
    """What was built for a commit cannot be measured: it has no compiler wrapper, or no worker can be linked."""


class TrialVerdict(enum.Enum):
    """What a comparison says of its newer commit."""

    BAD = "bad"
    GOOD = "good"
    UNDECIDED = "undecided"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Trial:
    """A commit that was compared with an older one. `ratio`: of its times to those of `base`; `reason`: why skipped."""

    base: str
    new: str
    verdict: TrialVerdict
    ratio: Interval | None = None
    runs: tuple[int, ...] = ()
    reason: str | None = None


class Ending(enum.Enum):
    """How a search ended."""

    FOUND = "found"
    BETWEEN = "between"  # one of several, as others are undecided or cannot be built
    CONTRADICTED = "contradicted"  # the change does not show between the last good commit and the first bad one
    NO_CHANGE = "no change"
    UNCERTAIN = "uncertain"  # the change of good and bad is not known well enough


@dataclass(frozen=True)
class Bisection:
    """The end of a search. `candidates`: the commits one of which it is, a bad one first."""

    ending: Ending
    trials: tuple[Trial, ...]
    candidates: tuple[str, ...] = ()


Rule = Callable[[Sequence[float]], TrialVerdict | None]
"""The verdict on ratios of launch pairs, new to base; None while it is not certain."""


def whole_change(error: float) -> Rule:
    """Certain if its interval is beyond MARGIN and known to a factor of two, or within MARGIN."""

    def rule(ratios: Sequence[float]) -> TrialVerdict | None:
        known = interval(ratios, error).estimate
        if known is None:
            return None
        near, far = sorted((math.log(known.low), math.log(known.high)), key=abs)
        is_change = near * far > 0 and math.log(MARGIN) < abs(near) and abs(far) <= 2 * abs(near)
        return TrialVerdict.BAD if is_change else TrialVerdict.GOOD if abs(far) < math.log(MARGIN) else None

    return rule


def beyond(limit: float, error: float) -> Rule:
    """Certain if the ratio is beyond a limit or not; above it is bad where the limit is above 1, else below it."""

    def rule(ratios: Sequence[float]) -> TrialVerdict | None:
        above, below = chance_above(ratios, limit) <= error, chance_below(ratios, limit) <= error
        is_bad, is_good = (above, below) if limit > 1 else (below, above)
        return TrialVerdict.BAD if is_bad else TrialVerdict.GOOD if is_good else None

    return rule


# ---- the search -----------------------------------------------------------------------------------------------------


def comparisons_max(commits: int) -> int:
    """The most comparisons that a search among this number of commits makes."""
    return math.ceil(math.log2(commits)) + _MORE


def search(repository: Repository, good: str, bad: str, judge: CommitJudge) -> Bisection:
    """Find the first commit after `good` that has the change of `bad`, slower or faster.

    Raises HockneyError if these two cannot be measured.
    """
    most = comparisons_max(len(repository.ranked(bad, [good])))
    error, good_ones, first_bad, left_out = ERROR / most, [good], bad, set[str]()

    def choose(bad: str, good: Sequence[str]) -> Iterator[str]:
        """The commit to try next, if one is left; the more were left out here, the farther away."""
        ranked = [commit for commit in repository.ranked(bad, good) if commit != bad]
        known = [commit for commit in ranked if commit not in left_out]
        if known:
            yield known[(1 << (len(ranked) - len(known))) // 4 % len(known)]

    judge.prepare([good, bad], choose(bad, [good]))
    whole = judge(good, bad, whole_change(error))
    if whole.verdict is TrialVerdict.SKIPPED:
        raise HockneyError(f"the good and the bad commit cannot be compared: {whole.reason}")
    if whole.verdict is not TrialVerdict.BAD or whole.ratio is None:
        return Bisection(Ending.NO_CHANGE if whole.verdict is TrialVerdict.GOOD else Ending.UNCERTAIN, (whole,))
    trials = [whole]
    while sum(trial.verdict is not TrialVerdict.SKIPPED for trial in trials) < most - 1:
        commit = next(choose(first_bad, good_ones), None)
        if commit is None:
            break
        judge.prepare([commit], itertools.chain(choose(first_bad, [*good_ones, commit]), choose(commit, good_ones)))
        trials.append(trial := judge(good, commit, beyond(whole.ratio.value**HALF, error)))
        if trial.verdict is TrialVerdict.BAD:
            first_bad = commit
        elif trial.verdict is TrialVerdict.GOOD:
            good_ones.append(commit)
        else:
            left_out.add(commit)
    others = [commit for commit in repository.ranked(first_bad, good_ones) if commit != first_bad]
    if others:
        return Bisection(Ending.BETWEEN, tuple(trials), (first_bad, *others))
    pair = (repository.parent(first_bad, good), first_bad)
    last = whole
    if pair != (good, bad):  # else there is one commit; all others are measured again, even if they were compared so
        judge.prepare(pair, ())
        trials.append(last := judge(*pair, beyond(whole.ratio.value**QUARTER, error), again=True))
    if last.verdict is TrialVerdict.GOOD:
        return Bisection(Ending.CONTRADICTED, tuple(trials))
    ending = Ending.FOUND if last.verdict is TrialVerdict.BAD else Ending.BETWEEN
    return Bisection(ending, tuple(trials), (first_bad,))


# ---- comparisons ----------------------------------------------------------------------------------------------------


@dataclass
class CommitJudge:
    """Builds commits and compares them in alternation. Certain verdicts are kept in a file, so that a search can go on.

    `plan_on`: the plan, of one point, that measures what is installed in a folder. `told` hears of each comparison.
    """

    builder: Builder
    lab: Lab
    plan_on: Callable[[Path], Plan]
    told: Callable[[Trial], None]
    kept: Path
    jobs: int = 1
    _known: dict[tuple[str, str, bool], Trial] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):  # there is none, or it was damaged
            rows = json.loads(self.kept.read_text(encoding="utf-8"))
            trials = [(row.pop("again"), _trial_of(row)) for row in rows]
            self._known = {(trial.base, trial.new, again): trial for again, trial in trials}

    def prepare(self, needed: Sequence[str], ahead: Iterable[str]) -> None:
        """Build what is needed, and side by side with it others up to `jobs`. Nothing is built while jobs measure."""
        first = [commit for commit in needed if not self.builder.is_tried(commit)]
        queue = [*first, *itertools.islice(ahead, max(0, self.jobs - len(first)) if first else 0)]
        for begin in range(0, len(queue), self.jobs):
            self.builder.build(queue[begin : begin + self.jobs])

    def __call__(self, base: str, new: str, rule: Rule, *, again: bool = False) -> Trial:
        """The verdict on a commit; with `again` not that of an earlier comparison of the same two."""
        trial = self._known.get((base, new, again)) or self._measured(base, new, rule)
        if trial.verdict in (TrialVerdict.GOOD, TrialVerdict.BAD):
            self._known[base, new, again] = trial
            rows = [
                {**asdict(each), "verdict": each.verdict.value, "again": again}
                for (_, _, again), each in self._known.items()
            ]
            self.kept.with_suffix(".new").write_text(json.dumps(rows), encoding="utf-8")
            self.kept.with_suffix(".new").replace(self.kept)
        self.told(trial)
        return trial

    def _measured(self, base: str, new: str, rule: Rule) -> Trial:
        pair, variants, ratios = (base, new), list[Variant](), list[float]()

        def skipped(commit: str, why: object, runs: tuple[int, ...] = ()) -> Trial:
            return Trial(base, new, TrialVerdict.SKIPPED, runs=runs, reason=f"{commit[:10]}: {why}")

        for commit in pair:
            if (error := self.builder.error(commit)) is not None:
                return skipped(commit, error)
            try:
                plan = self.plan_on(self.builder.prefix(commit))
            except LibraryUnusable as unusable:
                return skipped(commit, unusable)
            variants.append(Variant(plan))

        def decide(look: interleave.Look) -> Collection[interleave.Entry]:
            ratios[:] = next(iter(look.ratios.values()), ())
            return look.ratios if ratios and rule(ratios) else ()

        with working.get()(f"measuring {new[:10]} against {base[:10]}"):
            outcomes = interleave.measure(variants, self.lab, decide=decide)
        runs = tuple(outcome.run_id for outcome in outcomes)
        if any(outcome.status is RunStatus.STOPPED for outcome in outcomes):
            raise HockneyError("stopped; the verdicts so far are kept: the same command continues")
        for commit, run in zip(pair, runs, strict=True):
            for row in self.lab.store.points(run):
                if row.status is PointStatus.FAILED:
                    return skipped(commit, row.reason, runs)
        known = interval(ratios) if ratios else None
        return Trial(base, new, (ratios and rule(ratios)) or TrialVerdict.UNDECIDED, known, runs)


def _trial_of(row: dict[str, Any]) -> Trial:
    ratio = row["ratio"] and Interval(**row["ratio"])
    return Trial(**{**row, "verdict": TrialVerdict(row["verdict"]), "ratio": ratio, "runs": tuple(row["runs"])})
