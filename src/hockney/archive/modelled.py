"""Results of the models of the reports' machines for their suites: modelled.csv, by scripts/draw-machines.

A page that draws the reports' figures needs no worker for it, and no time.
"""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from pathlib import Path

PATH = Path(__file__).with_name("modelled.csv")


@dataclass(frozen=True)
class Modelled:
    """The time of a point on a model; of a stream also the share of CPU time of writer and reader."""

    report: str
    variant: str
    pattern: str
    ranks: int
    bytes: int
    time_ns: float
    cpu: tuple[float, ...] = ()

    @property
    def options(self) -> dict[str, str]:
        """The pattern's."""
        return dict(word.split("=", 1) for word in self.pattern.split()[1:])


@functools.cache
def modelled(report: str) -> tuple[Modelled, ...]:
    """The points of a report in the order of its suite."""
    with PATH.open(encoding="utf-8", newline="") as file:
        return tuple(_point(row) for row in csv.DictReader(file) if row["report"] == report)


def _point(row: dict[str, str]) -> Modelled:
    return Modelled(
        row["report"],
        row["variant"],
        row["pattern"],
        int(row["ranks"]),
        int(row["bytes"]),
        float(row["time_ns"]),
        tuple(map(float, row["cpu"].split())),
    )
