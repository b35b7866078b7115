"""What a user calls a run: its number, its label, `last`, `last~1`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hockney.errors import UsageError, unknown
from hockney.units import counted, parse_count

_REFERENCE = re.compile(r"(?P<name>.+?)(?:~(?P<back>\d{1,18}))?")


def find_run(reference: str, known: Sequence[tuple[int, str | None]]) -> int:
    """The number of a run; `known` are numbers and labels, the newest run first. Raises UsageError."""
    numbers = [run_id for run_id, _ in known]
    number = parse_count(reference, 1 << 62, 0)
    if number in numbers:
        return number
    exact = [run_id for run_id, label in known if label == reference and label != "last"]
    if exact:
        return exact[0]
    if number is not None:
        nearest = min(numbers, key=lambda run_id: abs(run_id - number))
        newest = "the newest" if nearest == numbers[0] else f"the newest {numbers[0]}"
        raise UsageError(f"there is no run {reference}: the nearest is {nearest}, {newest}")
    if reference.startswith("~"):
        raise UsageError(f"unknown run '{reference}': did you mean 'last{reference if reference[1:] else '~1'}'?")
    match = _REFERENCE.fullmatch(reference)
    name, back = (match["name"], int(match["back"] or 0)) if match else (reference, 0)
    named = numbers if name == "last" else [run_id for run_id, label in known if label == name]
    if not named:
        labels = dict.fromkeys(label for _, label in known if label)
        raise unknown("run", reference, ["last", *labels, *map(str, numbers)], listed_by="hockney runs")
    if back >= len(named):
        raise UsageError(
            f"unknown run '{reference}': '{name}' names {counted(len(named), 'run')}, "
            f"the oldest is {name}~{len(named) - 1}, run {named[-1]}"
        )
    return named[back]
