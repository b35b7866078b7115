"""The form of a finding's sentences; report/findings.py fills them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Wording:
    """Templates: `evidence` are alternatives and parts in order, `causes` are by the finding's cause."""

    title: str
    evidence: tuple[str, ...] = ()
    causes: dict[str, str] = field(default_factory=dict)
