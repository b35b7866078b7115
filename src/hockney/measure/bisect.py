"""Finds the commit that changed a time: compares commits with a good one until each verdict is certain.

The first comparison, of good and bad, gives the change to find. A commit is bad if its ratio to the good one is beyond
half of that change (in logarithms), and good if it is below. A commit that stays undecided, or cannot be built or run,
is left out for a neighbour. The last comparison is of the first bad commit with the one before it, and must show the
change too: so a wrong verdict leads to a range, not to a wrong commit.

Each comparison makes launches until its verdict is certain (stats/sequence.py). The error of one is ERROR over the
number of comparisons at most, 0.4 % for 64 commits: so a search has a wrong one with 5 % at most.
"""

from __future__ import annotations

import enum
import functools
import itertools
import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hockney.analysis.compare.comparison import Entry, Ratios
from hockney.analysis.repeat import BISECT
from hockney.errors import HockneyError, UsageError, working
from hockney.measure import interleave
from hockney.measure.plan import Plan
from hockney.measure.recorder import Lab
from hockney.measure.run import Variant
from hockney.model import PointStatus, RunStatus
from hockney.stats import Interval
from hockney.stats.sequence import chance_above, chance_below, interval, values_needed
from hockney.worker.commits import Builder, Repository

ERROR = 0.05  # the chance that any verdict of a search is wrong
MARGIN = 1.01  # a smaller ratio of good and bad is no change, as in all comparisons by launch pairs
HALF = 0.5  # of the logarithm of the whole change: a commit beyond it is bad
QUARTER = 0.25  # of the whole change: the least of the first bad commit by itself, since others may have a part
_MORE = 6  # comparisons that do not halve: the first one, the last one, and those next to commits that are left out


class LibraryUnusable(UsageError):
    """The build of a commit cannot be measured: it has no compiler wrapper, or no worker can be linked."""


class TrialVerdict(enum.Enum):
    """The verdict of a comparison on its newer commit."""

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
    UNCERTAIN = "uncertain"  # the interval of the whole change is too wide


@dataclass(frozen=True)
class Bisection:
    """The end of a search. `candidates`: the commits one of which it is, a bad one first.

    `launches_needed`: of a comparison, for a certain verdict on any change.
    """

    ending: Ending
    trials: tuple[Trial, ...]
    candidates: tuple[str, ...] = ()
    launches_needed: int = 0

    def is_short(self, trial: Trial) -> bool:
        """Whether a comparison had too few launches for any certain verdict."""
        return trial.ratio is not None and trial.ratio.n < self.launches_needed


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
    ended = functools.partial(Bisection, launches_needed=values_needed(1, error))

    def choose(bad: str, good: Sequence[str]) -> Iterator[str]:
        """The commit to try next, if one is left; the farther away the more are left out here."""
        ranked = [commit for commit in repository.ranked(bad, good) if commit != bad]
        known = [commit for commit in ranked if commit not in left_out]
        if known:
            yield known[(1 << (len(ranked) - len(known))) // 4 % len(known)]

    judge.prepare([good, bad], choose(bad, [good]))
    whole = judge(good, bad, whole_change(error))
    if whole.verdict is TrialVerdict.SKIPPED:
        raise HockneyError(f"the good and the bad commit cannot be compared: {whole.reason}")
    if whole.verdict is not TrialVerdict.BAD or whole.ratio is None:
        return ended(Ending.NO_CHANGE if whole.verdict is TrialVerdict.GOOD else Ending.UNCERTAIN, (whole,))
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
        return ended(Ending.BETWEEN, tuple(trials), (first_bad, *others))
    pair = (repository.parent(first_bad, good), first_bad)
    last = whole
    if pair != (good, bad):  # else there is one commit only
        judge.prepare(pair, ())
        trials.append(last := judge(*pair, beyond(whole.ratio.value**QUARTER, error), again=True))
    if last.verdict is TrialVerdict.GOOD:
        return ended(Ending.CONTRADICTED, tuple(trials))
    ending = Ending.FOUND if last.verdict is TrialVerdict.BAD else Ending.BETWEEN
    return ended(ending, tuple(trials), (first_bad,))


# ---- comparisons ----------------------------------------------------------------------------------------------------


_Measured = tuple[list[float], Sequence[int], str | None]
"""The ratios of the launch pairs, the two runs, and why a commit is skipped."""


@dataclass
class CommitJudge:
    """Builds commits and compares them in alternation. Certain comparisons stay in the file `kept`, for a search again.

    `plan_on`: the plan, of one point, that measures what is installed in a folder. `told` is called with each trial.
    """

    builder: Builder
    lab: Lab
    plan_on: Callable[[Path], Plan]
    told: Callable[[Trial], None]
    kept: Path
    jobs: int = 1

    @functools.cached_property
    def _known(self) -> dict[str, _Measured]:
        """By the two commits, and whether they were compared again; empty without the file, or if it is damaged."""
        with suppress(OSError, ValueError, TypeError):
            known = dict(json.loads(self.kept.read_text(encoding="utf-8")))
            return {key: _certain(*measured) for key, measured in known.items()}
        return {}

    def prepare(self, needed: Sequence[str], ahead: Iterable[str]) -> None:
        """Build what is needed, and at the same time others, up to `jobs`. Nothing is built while jobs measure."""
        first = [commit for commit in needed if not self.builder.is_tried(commit)]
        queue = [*first, *itertools.islice(ahead, max(0, self.jobs - len(first)) if first else 0)]
        for begin in range(0, len(queue), self.jobs):
            self.builder.build(queue[begin : begin + self.jobs])

    def __call__(self, base: str, new: str, rule: Rule, *, again: bool = False) -> Trial:
        """The verdict on a commit; with `again` not that of an earlier comparison of the same two."""
        key = f"{base} {new} {again}"
        ratios, runs, why = self._known.get(key) or self._measured(base, new, rule)
        certain, known = rule(ratios) if ratios else None, interval(ratios) if ratios else None
        verdict = TrialVerdict.SKIPPED if why else certain or TrialVerdict.UNDECIDED
        if certain:
            self._known[key] = ratios, runs, None
            self.kept.with_suffix(".new").write_text(json.dumps(self._known), encoding="utf-8")
            self.kept.with_suffix(".new").replace(self.kept)
        trial = Trial(base, new, verdict, known, tuple(runs), why)
        self.told(trial)
        return trial

    def _measured(self, base: str, new: str, rule: Rule) -> _Measured:
        variants, ratios = list[Variant](), list[float]()
        for commit in (base, new):
            why = self.builder.error(commit)
            try:
                variants += [] if why else [Variant(self.plan_on(self.builder.prefix(commit)), label=BISECT)]
            except LibraryUnusable as unusable:
                why = str(unusable)
            if why:
                return [], (), f"{commit[:10]}: {why}"

        def decide(known: Ratios) -> Collection[Entry]:
            ratios[:] = next(iter(known.values()), ())
            return known if ratios and rule(ratios) else ()

        with working.get()(f"measuring {new[:10]} against {base[:10]}"):
            outcomes = interleave.measure(variants, self.lab, decide=decide)
        if any(outcome.status is RunStatus.STOPPED for outcome in outcomes):
            raise HockneyError("stopped; the verdicts so far are kept: the same command continues")
        runs = tuple(outcome.run_id for outcome in outcomes)
        for commit, run in zip((base, new), runs, strict=True):
            for row in self.lab.store.points(run):
                if row.status is PointStatus.FAILED:
                    return [], runs, f"{commit[:10]}: {row.reason}"
        return ratios, runs, None


def _certain(ratios: list[float], runs: Sequence[int], why: None) -> _Measured:
    """A comparison from the file. Raises ValueError or TypeError for another shape."""
    if not ratios or not all(0 < ratio < math.inf for ratio in ratios) or [*map(type, runs)] != [int, int] or why:
        raise ValueError("no comparison")
    return ratios, runs, None
