"""The search for a commit, on histories whose truth is known: noise and wrong verdicts lead to ranges, never astray."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.worker.test_commits import Written

from hockney.errors import HockneyError
from hockney.measure.bisect import (
    Bisection,
    CommitJudge,
    Ending,
    Rule,
    Trial,
    TrialVerdict,
    beyond,
    comparisons_max,
    search,
    whole_change,
)
from hockney.stats.sequence import interval
from hockney.worker.commits import Repository

GOOD, BAD, SKIPPED = TrialVerdict.GOOD, TrialVerdict.BAD, TrialVerdict.SKIPPED
LAUNCHES_MAX = 60  # of a comparison, which its time limits


class Line:
    """Commits "0" to "n" one after the other, ranked as git ranks them."""

    def ranked(self, bad: str, good: Sequence[str]) -> list[str]:
        first, last = max(map(int, good)) + 1, int(bad)
        return sorted(map(str, range(first, last + 1)), key=lambda each: -min(int(each) - first + 1, last - int(each)))

    def parent(self, commit: str, good: str) -> str:
        return str(int(commit) - 1)


@dataclass
class MadeUp:
    """Judges by `ratio(base, new)` of each launch pair, which may be drawn. `broken` commits cannot be built."""

    ratio: Callable[[int, int], float]
    broken: Collection[int] = ()
    lies: Collection[int] = ()  # the numbers of comparisons whose verdict is turned round
    number: Callable[[str], int] = int  # of a commit
    prepared: list[list[str]] = field(default_factory=list)
    count: int = 0

    def prepare(self, needed: Sequence[str], ahead: Iterable[str]) -> None:
        self.prepared.append([*needed, *ahead])

    def __call__(self, base: str, new: str, rule: Rule, *, again: bool = False) -> Trial:
        pair = self.number(base), self.number(new)
        if {*pair} & {*self.broken}:
            return Trial(base, new, SKIPPED, reason="it does not compile")
        self.count += 1
        ratios: list[float] = []
        verdict = None
        while verdict is None and len(ratios) < LAUNCHES_MAX:
            ratios.append(self.ratio(*pair))
            verdict = rule(ratios)
        if self.count in self.lies:
            verdict = GOOD if verdict is BAD else BAD
        return Trial(base, new, verdict or TrialVerdict.UNDECIDED, interval(ratios))


def planted(*steps: tuple[int, float]) -> Callable[[int, int], float]:
    """Times that are longer by these factors from these commits on."""

    def level(commit: int) -> float:
        return math.prod(factor for first, factor in steps if commit >= first)

    return lambda base, new: level(new) / level(base)


def found(judge: MadeUp, commits: int = 64) -> Bisection:
    return search(cast(Repository, Line()), "0", str(commits), cast(CommitJudge, judge))


@pytest.mark.parametrize("factor", [1.04, 3.0, 0.7])
def test_each_commit_of_64_is_found_in_at_most_9_comparisons(factor: float) -> None:
    for commit in range(1, 65):
        judge = MadeUp(planted((commit, factor)))
        end = found(judge)
        assert (end.ending, end.candidates) == (Ending.FOUND, (str(commit),))
        assert judge.count <= 9
        assert end.trials[-1].base == str(commit - 1)  # the last comparison is of the commit before
    assert found(MadeUp(planted((1, factor))), commits=1).candidates == ("1",)


def noisy(rng: random.Random, scatter: float, ratio: Callable[[int, int], float]) -> Callable[[int, int], float]:
    """With long tails, and one launch in ten that is up to twice as fast or slow."""

    def drawn(base: int, new: int) -> float:
        tail = rng.gauss(0, scatter) / math.sqrt(rng.gammavariate(1.5, 2 / 3))  # Student's t with 3 degrees of freedom
        return ratio(base, new) * math.exp(tail + (rng.uniform(-0.7, 0.7) if rng.random() < 0.1 else 0.0))

    return drawn


@pytest.mark.parametrize("factor", [1.15, 0.8])
def test_noise_costs_launches_and_no_comparisons(factor: float) -> None:
    """A commit takes 13 launches or so; two comparisons may be undecided, in one search of some hundred."""
    rng = random.Random()
    ends = []
    for _ in range(100):
        commit = rng.randint(1, 64)
        judge = MadeUp(noisy(rng, 0.03, planted((commit, factor))))
        end = found(judge)
        assert end.ending is not Ending.FOUND or end.candidates == (str(commit),)
        ends.append(end.ending is Ending.FOUND and judge.count <= 9)
    assert sum(ends) >= 95


def test_too_much_noise_ends_without_a_commit() -> None:
    """Or, rarely, with the right one."""
    rng = random.Random()
    for _ in range(40):
        commit = rng.randint(1, 64)
        end = found(MadeUp(noisy(rng, 0.5, planted((commit, 1.1)))))
        assert end.ending is not Ending.FOUND or end.candidates == (str(commit),)


def test_one_wrong_verdict_never_leads_to_a_wrong_commit() -> None:
    for commit, lie in itertools.product(range(1, 65), range(1, comparisons_max(64) + 1)):
        end = found(MadeUp(planted((commit, 1.3)), lies=[lie]))
        assert end.ending is not Ending.FOUND or end.candidates == (str(commit),)


@pytest.mark.parametrize("first", range(1, 16))
def test_commits_that_cannot_be_built_are_left_out_as_git_does(first: int) -> None:
    """The answer is the commit, or a range with it whose others are all broken."""
    for last, commit in itertools.product(range(first, 16), range(1, 17)):
        broken = range(first, last + 1)
        judge = MadeUp(planted((commit, 1.3)), broken=broken)
        end = found(judge, commits=16)
        touched = commit in broken or commit - 1 in broken
        assert end.ending is (Ending.BETWEEN if touched else Ending.FOUND)
        assert str(commit) in end.candidates
        assert {*map(int, end.candidates)} <= ({*broken, last + 1} if touched else {commit})
        assert judge.count <= comparisons_max(16)


def test_a_long_broken_range_is_left_in_steps_that_grow() -> None:
    judge = MadeUp(planted((60, 1.3)), broken=range(10, 55))
    end = found(judge)
    assert end.candidates == ("60",)
    assert sum(trial.verdict is SKIPPED for trial in end.trials) <= 10


def test_two_halves_of_the_change_are_a_range_with_both_or_the_larger_one() -> None:
    assert found(MadeUp(planted((20, 1.2), (40, 1.05)))).candidates == ("20",)
    rng = random.Random()
    end = found(MadeUp(noisy(rng, 0.02, planted((20, 1.1), (40, 1.1)))))
    assert end.ending is not Ending.FOUND or end.candidates in (("20",), ("40",))


def test_a_change_in_many_steps_has_no_commit() -> None:
    end = found(MadeUp(planted(*((commit, 1.01) for commit in range(2, 65)))))
    assert (end.ending, end.candidates) == (Ending.CONTRADICTED, ())
    assert end.trials[-1].verdict is GOOD


def test_a_merge_that_alone_is_slow_is_found_and_so_is_a_commit_of_its_branch(tmp_path: Path) -> None:
    """The good commit is a parent of the merge: both were compared first, and others after them."""
    written = Written(tmp_path / "repository")
    commits = [written.commit("good")]
    written.git("checkout", "--quiet", "-b", "side")
    commits += [written.commit(str(number)) for number in range(2)]
    written.git("checkout", "--quiet", "main")
    written.git("merge", "--quiet", "--no-ff", "-m", "merge", "side")
    commits.append(written.git("rev-parse", "HEAD"))
    repository = Repository(written.folder)
    assert repository.parent(commits[3], commits[0]) == commits[0]
    for first in (1, 2, 3):
        judge = MadeUp(planted((first, 1.3)), number=commits.index)
        end = search(repository, commits[0], commits[3], cast(CommitJudge, judge))
        assert (end.ending, end.candidates) == (Ending.FOUND, (commits[first],))


def test_without_a_change_nothing_is_searched() -> None:
    rng = random.Random()
    same, alike = MadeUp(planted()), MadeUp(noisy(rng, 0.02, planted((9, 1.004))))
    assert (found(same).ending, same.count) == (Ending.NO_CHANGE, 1)
    assert found(alike).ending in (Ending.UNCERTAIN, Ending.NO_CHANGE)
    with pytest.raises(HockneyError, match="the good and the bad commit cannot be compared: it does not compile"):
        found(MadeUp(planted((9, 2.0)), broken=[64]))


def test_with_fewer_launches_than_certainty_takes_the_end_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """No change is certain with fewer, and a plain one is with as many."""
    needed = found(MadeUp(planted((9, 2.0)))).launches_needed
    for most, ending in ((needed - 1, Ending.UNCERTAIN), (needed, Ending.FOUND)):
        monkeypatch.setattr("tests.measure.test_bisect.LAUNCHES_MAX", most)
        end = found(MadeUp(planted((9, 2.0))))
        assert (end.ending, end.is_short(end.trials[0])) == (ending, ending is Ending.UNCERTAIN)


def test_the_two_commits_that_may_be_next_are_built_ahead() -> None:
    judge = MadeUp(planted((33, 1.3)))
    found(judge)
    assert judge.prepared[:3] == [["0", "64", "32"], ["32", "48", "16"], ["48", "56", "40"]]


def test_the_change_must_be_known_to_a_factor_of_two() -> None:
    rule = whole_change(0.005)
    assert rule([1.3] * 9) is None  # too few launches
    assert rule([1.3] * 20) is BAD
    assert rule([0.7] * 20) is BAD
    assert rule([1.005] * 20) is GOOD
    assert rule([1.02, 1.3] * 20) is None


def test_a_verdict_needs_the_ratios_on_one_side_of_the_limit() -> None:
    assert beyond(1.1, 0.005)([1.2] * 12) is BAD
    assert beyond(1.1, 0.005)([1.05] * 12) is GOOD
    assert beyond(0.9, 0.005)([0.8] * 12) is BAD
    assert beyond(0.9, 0.005)([0.95] * 12) is GOOD
    assert beyond(1.1, 0.005)([1.05, 1.2] * 20) is None


@pytest.mark.parametrize(
    ("kept", "verdict"),
    [
        ([[1.3] * 20, [1, 2], None], BAD),
        (5, SKIPPED),  # this and what follows is damage: the commits are built, which fails
        ([[1.3] * 20, [1, 2]], SKIPPED),
        ([["1.3"] * 20, [1, 2], None], SKIPPED),
        ([[1.3, math.nan] * 10, [1, 2], None], SKIPPED),
        ([[], [1, 2], None], SKIPPED),
        ([[1.3] * 20, ["one", 2], None], SKIPPED),
    ],
)
def test_a_damaged_file_of_comparisons_is_measured_again(kept: object, verdict: TrialVerdict, tmp_path: Path) -> None:
    (tmp_path / "kept.json").write_text(json.dumps({"a b False": kept}))
    broken = SimpleNamespace(error=lambda commit: "it does not compile")
    judge = CommitJudge(cast(Any, broken), cast(Any, None), cast(Any, None), lambda trial: None, tmp_path / "kept.json")
    assert judge("a", "b", beyond(1.1, 0.005)).verdict is verdict
