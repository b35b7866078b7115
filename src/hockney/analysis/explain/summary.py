"""The few findings that matter most: the strongest first, and what holds for several transports once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from hockney.analysis.explain.finding import Finding, sizes_text


@dataclass(frozen=True)
class Gathered:
    """A finding, and those of its kind on other transports or in other states, the stronger ones first."""

    strongest: Finding
    others: tuple[Finding, ...]

    @property
    def also(self) -> str:
        """`Also on tcp (at 1 MiB), unix.`: each with what differs; "" where there is no other."""
        names = ", ".join(self._named(one) for one in self.others)
        return f"Also on {names}." if names else ""

    def _named(self, other: Finding) -> str:
        first = self.strongest
        differs = [
            text
            for own, of_first, text in (
                (other.pattern, first.pattern, other.pattern),
                (other.ranks, first.ranks, f"{other.ranks} ranks"),
                (other.sizes_bytes, first.sizes_bytes, sizes_text(other.sizes_bytes) if other.sizes_bytes else ""),
                (other.state, first.state, other.state),
            )
            if own and own != of_first
        ]
        return other.transport + (f" ({', '.join(differs)})" if differs else "")


def gather(findings: Iterable[Finding]) -> list[Gathered]:
    """All of them, by effect. A rise and a fall are two things, and so is what one transport shows twice in a state.

    What is found of several transports together is gathered with nothing: it is on no one transport.
    """
    groups: dict[tuple[str, bool, bool, int], list[Finding]] = {}
    seen: Counter[tuple[str, bool, str, str]] = Counter()
    for finding in sorted(findings, key=lambda one: -one.effect):
        falls = any(one.value.value < 0 for one in finding.evidence[:1])  # the figure that the sentence is about
        is_of_several = not finding.transport
        own = (finding.kind, falls, finding.transport, "" if is_of_several else finding.state)
        groups.setdefault((finding.kind, falls, is_of_several, seen[own]), []).append(finding)
        seen[own] += 1
    return [Gathered(group[0], tuple(group[1:])) for group in groups.values()]
