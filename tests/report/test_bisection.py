"""The sentences at the end of a bisection."""

from __future__ import annotations

import pytest

from hockney.measure.bisect import Bisection, Ending, Trial, TrialVerdict
from hockney.render.text import fit
from hockney.report.documents.bisection import bisection_document, trial_sentence
from hockney.stats import Interval
from hockney.worker.commits import Commit

WHOLE = Trial("old", "new", TrialVerdict.BAD, Interval(1.3, 1.25, 1.35, 12, 0.95), (1, 2))
LAST = Trial("mid", "bad", TrialVerdict.UNDECIDED, Interval(1.04, None, None, 3, None), (3, 4))


def commit_of(name: str) -> Commit:
    return Commit(name, "Jane Doe <jane@example.org>", "2026-01-02", f"change {name}")


@pytest.mark.parametrize(
    ("ending", "candidates", "said"),
    [
        (Ending.FOUND, ("bad",), "bad is the first slower commit: +4.0 % against the commit before it, mid ("),
        (Ending.FOUND, ("new",), "new is the first slower commit: +30.0 % (+25 to +35) against the commit before"),
        (Ending.BETWEEN, ("bad",), "Probably bad made it slower (+30.0 % (+25 to +35) from old to new), but the"),
        (Ending.BETWEEN, ("bad", "mid"), "One of 2 commits up to bad made it slower (+30.0 % (+25 to +35) from"),
        (Ending.CONTRADICTED, (), "No commit by itself made it slower: bad seemed the first, but differs"),
        (Ending.NO_CHANGE, (), "There is no change to look for: new takes as long as old, within 1 %."),
        (Ending.UNCERTAIN, (), "The change is too uncertain to look for: +30.0 % (+25 to +35) from old to new."),
    ],
)  # fmt: skip
def test_each_end_has_its_sentence(ending: Ending, candidates: tuple[str, ...], said: str) -> None:
    printed = [
        line
        for lines in fit(bisection_document(Bisection(ending, (WHOLE, LAST), candidates), commit_of))
        for line in lines
    ]
    assert " ".join(printed).strip().startswith(said)
    assert [line.split(":")[0].strip() for line in printed if "Jane Doe" in line] == [*candidates]


def test_a_comparison_of_too_few_launches_says_how_many_it_takes() -> None:
    few = Bisection(Ending.UNCERTAIN, (LAST,), launches_needed=13)
    (said,) = [" ".join(lines) for lines in fit(bisection_document(few, commit_of)) if any(lines)]
    assert said.startswith("The change is not certain yet: +4.0 % from mid to bad. The comparison had 3 launches, and")
    assert said.endswith("certainty takes 13: give more --time.")


def test_a_long_list_of_candidates_is_cut() -> None:
    names = tuple(f"c{number}" for number in range(25))
    *_, last = fit(bisection_document(Bisection(Ending.BETWEEN, (WHOLE, LAST), names), commit_of))
    assert " ".join(last).strip() == "and 5 more"


def test_each_comparison_has_its_sentence() -> None:
    skipped = Trial("old", "mid", TrialVerdict.SKIPPED, reason="mid: the build ended with exit code 2: no header")
    assert [trial_sentence(trial, commit_of) for trial in (WHOLE, LAST, skipped)] == [
        "bad: new +30.0 % (+25 to +35) against old; 12 launches, runs 1 and 2: change new",
        "undecided: bad +4.0 % against mid; 3 launches, runs 3 and 4: change bad",
        "skipped: mid: the build ended with exit code 2: no header: change mid",
    ]
