"""Findings, fixes and gaps as data: analysis returns these; report/findings.py makes the sentences."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hockney.errors import Fix
from hockney.model import Warning_

Facts = Mapping[str, Any]
"""Figures and names: Estimate, number, text, or a sequence of them. The end of a key is its unit: `_ns`, `_bytes`,
`_bytes_per_s`, `_ns_per_byte`, `_ratio`, `_share` (of 1); any other key is a count or a text."""


@dataclass(frozen=True)
class Subject:
    """The curves that a finding is about.

    `transport` is "" where there are several, `pattern` includes the options (`oneway window=16`), `ranks` is None
    where there are several numbers. `state` is the machine state, or the scope of a published figure.
    """

    transport: str = ""
    pattern: str = ""
    ranks: int | None = None
    state: str = ""
    sizes_bytes: tuple[int, ...] = ()


# Of the others, a machine or a library that works as it should has some: a switch of protocols, a cache that ends.
_PROBLEMS = {
    *("slower than its parts", "broken scaling law", "slow rank or pair", "slow group", "outliers"),
    *("yielding library", "far above the floor", "identical rows", "kinked scaling law", "two speeds"),
    *("differing hosts", "wrong clock", "unusable host", "stuck host", "stuck link", "silent host"),
    *("throttled host", "lost carrier", "interface errors", "slower host", "all slower"),
    *("below interface", "missed limit", "hardware limit", "below its limit"),
    *(f"{what} {where}" for what in ("slow", "late", "lossy", "interrupted") for where in ("host", "link", "uplink")),
}


@dataclass(frozen=True)
class Finding:
    """One result of a detector. `cause` is a code, "" if none is known.

    `effect` orders findings: the fraction of a time or rate that is at stake (1: it doubles).
    """

    code: str
    subject: Subject
    facts: Facts = field(default_factory=dict)
    cause: str = ""
    fix: Fix | None = None
    effect: float = 0.0
    sources: tuple[str, ...] = ()

    @property
    def is_problem(self) -> bool:
        """Whether something is wrong, and not only worth knowing."""
        return self.code in _PROBLEMS


@dataclass(frozen=True)
class Note:
    """A caveat on all findings of a run, with the same fields as a finding."""

    code: str
    facts: Facts = field(default_factory=dict)
    fix: Fix | None = None


class Absence(str, enum.Enum):
    """Why there is no result."""

    NOT_MEASURED = "not measured"
    INSUFFICIENT_DATA = "insufficient data"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class NotChecked:
    """Why something was not checked: `what` names the check, `why` is a code with its facts, `how` measures it."""

    reason: Absence
    what: str = ""
    why: str = ""
    facts: Facts = field(default_factory=dict, hash=False)
    how: Fix | None = None
    subject: Subject = Subject()


def as_warned(remedy: str) -> Fix:
    """The remedy of a warning that is stored with the run, in its own words."""
    return Fix("as warned", facts={"remedy": remedy})


def load_of(warnings: Iterable[Warning_]) -> Warning_ | None:
    """The load of other programs: the last that was seen during a run, else before it."""
    by_kind = {warning.kind: warning for warning in warnings}
    return by_kind.get("others") or by_kind.get("load")


@dataclass(frozen=True)
class Detector:
    """One kind of finding: a record of the table of detectors.

    `code` is that of its findings, `what` names the check in "Not checked", `find` returns the findings or the reason
    for none. `suite` measures the data it needs.
    """

    code: str
    what: str
    find: Callable[[Any], Iterable[Finding] | NotChecked]
    suite: str = ""
