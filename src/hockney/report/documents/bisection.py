"""A search for a commit: a sentence for each comparison, and its end as a document and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hockney.measure.bisect import MARGIN, Bisection, Ending, Trial, TrialVerdict
from hockney.report.changes import change_percent, interval_text
from hockney.report.document import Block, Document, Item, Sentence
from hockney.stats import Interval
from hockney.units import counted
from hockney.worker.commits import Commit

_LISTED_MAX = 20  # candidates

CommitOf = Callable[[str], Commit]
"""What is known of a commit, by its number."""


def trial_sentence(trial: Trial, commit_of: CommitOf) -> str:
    """`bad: 9d1e002abc +28.4 % (+27 to +30) against 5f3a1c2def; 10 launches, runs 1 and 2: Copy large messages`."""
    new, base = commit_of(trial.new), commit_of(trial.base)
    if trial.verdict is TrialVerdict.SKIPPED:
        return f"skipped: {trial.reason}: {new.subject}"
    return (
        f"{trial.verdict.value}: {new.short} {_ratio_text(trial.ratio)} against {base.short}; "
        f"{counted(trial.ratio.n if trial.ratio else 0, 'launch', 'launches')}, {_runs_text(trial)}: {new.subject}"
    )


def _ratio_text(ratio: Interval | None) -> str:
    if ratio is None or ratio.estimate is None:
        return "without an interval" if ratio is None else change_percent(ratio.value)
    return interval_text(ratio.estimate, by_factor=not 0.5 < ratio.value < 2)


def _launches_text(found: Bisection, trial: Trial) -> str:
    """`The comparison had 8 launches, and certainty takes 13`."""
    made = trial.ratio.n if trial.ratio else 0
    return f"The comparison had {counted(made, 'launch', 'launches')}, and certainty takes {found.launches_needed}"


def _runs_text(trial: Trial) -> str:
    return f"runs {' and '.join(map(str, trial.runs))}"


def bisection_document(found: Bisection, commit_of: CommitOf) -> Document:
    """The commit, or those one of which it is, or why there is none."""
    return Document((Sentence(), *_blocks(found, commit_of)))


def _blocks(found: Bisection, commit_of: CommitOf) -> Iterator[Block]:
    whole = found.trials[0]
    last = next((trial for trial in reversed(found.trials) if trial.new in found.candidates[:1]), found.trials[-1])
    good, bad = commit_of(whole.base).short, commit_of(whole.new).short
    slower = "faster" if whole.ratio and whole.ratio.value < 1 else "slower"
    change = f"{_ratio_text(whole.ratio)} from {good} to {bad}"
    match found.ending:
        case Ending.NO_CHANGE:
            within = change_percent(MARGIN).lstrip("+").replace(".0", "")
            yield Sentence(f"There is no change to look for: {bad} takes as long as {good}, within {within}.")
        case Ending.UNCERTAIN if found.is_short(whole):
            yield Sentence(
                f"The change is not certain yet: {change}. {_launches_text(found, whole)}: give more --time."
            )
        case Ending.UNCERTAIN:
            yield Sentence(f"The change is too uncertain to look for: {change}. Stop other load, or give more --time.")
        case Ending.CONTRADICTED:
            yield Sentence(
                f"No commit by itself made it {slower}: {commit_of(last.new).short} seemed the first, but differs from "
                f"the commit before it by {_ratio_text(last.ratio)} only, of {change}. Several commits may have a part "
                "each, or a verdict was wrong; the same command starts again."
            )
        case Ending.BETWEEN if len(found.candidates) > 1:
            count, newest = len(found.candidates), commit_of(found.candidates[0]).short
            yield Sentence(
                f"One of {count} commits up to {newest} made it {slower} ({change}): the others of these were skipped "
                "or stayed undecided. The same command tries undecided ones again; more --time decides more."
            )
        case Ending.BETWEEN:
            few = f" {_launches_text(found, last)}." if found.is_short(last) else ""
            yield Sentence(
                f"Probably {commit_of(last.new).short} made it {slower} ({change}), but the comparison with the commit "
                f"before it stayed undecided.{few} The same command tries again; more --time decides more."
            )
        case Ending.FOUND:
            of = "" if last is whole else f", of {change}"
            yield Sentence(
                f"{commit_of(last.new).short} is the first {slower} commit: {_ratio_text(last.ratio)} against the "
                f"commit before it, {commit_of(last.base).short} ({_runs_text(last)}){of}."
            )
    for commit in map(commit_of, found.candidates[:_LISTED_MAX]):
        yield Item(f"{commit.date} {commit.author}: {commit.subject}", head=commit.short)
    if len(found.candidates) > _LISTED_MAX:
        yield Item(f"and {len(found.candidates) - _LISTED_MAX} more")


def bisection_json(found: Bisection, commit_of: CommitOf) -> dict[str, Any]:
    """The same as data. `commits` describes those that were compared, and the first candidates."""
    whole = found.trials[0]
    named = {*(commit for trial in found.trials for commit in (trial.base, trial.new))}
    named |= {*found.candidates[:_LISTED_MAX]}
    return {
        "good": whole.base,
        "bad": whole.new,
        "ending": found.ending,
        "candidates": found.candidates,
        "launches_needed": found.launches_needed,
        "trials": found.trials,
        "commits": [commit_of(each) for each in sorted(named)],
    }
