"""How protocol switches are placed on a busy machine; `python -m tests.analysis.explain.busy` prints the rates.

Curves are recorded ones (tests/report/quick.csv), whose switches are known, times noise that no fit assumes: other
programs come and go, so that the factor of a measurement is a walk of heavy-tailed steps (Student's t, 3 degrees of
freedom) that depends on the measurements before it, and some measurements take several times as long. All sizes are
measured in rounds, in random order.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from tests.analysis.explain.readings import found, reading
from tests.builders import make_measurement, make_point

from hockney.analysis.explain.curve import CurvePoint, MeasuredCurve
from hockney.analysis.finding import Finding
from hockney.results.store import summary_of
from hockney.stats import median
from hockney.units import parse_bytes

PLACES = {"mpi@openmpi-4.1.4": 2048, "mpi@mpich-5.0.2": 4096, "mpi@mpich-4.0.2": 8192}  # the last size below the switch
LIBRARIES = {
    "mpi@openmpi-4.1.4": "Open MPI 4.1.4 (ob1:vader tcp)",
    "mpi@mpich-5.0.2": "MPICH 5.0.2 (ch4:ofi)",
    "mpi@mpich-4.0.2": "MPICH 4.0.2 (ch4:ucx)",
}
NOISES = (0.05, 0.1, 0.2)  # intervals of about ±15, ±30 and ±60 %
WAITS_NS = (0.0, 1000.0, 2000.0)
ROUNDS = 12


@cache
def recorded(transport: str) -> dict[int, float]:
    """The times in ns of half a round trip, by size."""
    with (Path(__file__).parents[2] / "report" / "quick.csv").open() as rows:
        return {
            int(row["bytes"]): float(row["time_ns"])
            for row in sorted(csv.DictReader(rows), key=lambda row: int(row["bytes"]))
            if (row["transport"], row["pattern"], row["state"]) == (transport, "pingpong", "near")
        }


def factors(count: int, noise: float, rng: np.random.Generator) -> list[float]:
    """By how much the measurements, in their order, take longer."""
    walk, steps = 0.0, noise * rng.standard_t(3, count)
    slow = rng.random(count) < 0.15
    made = []
    for step, is_slow in zip(steps.tolist(), slow.tolist(), strict=True):
        walk = 0.7 * walk + step
        made.append(float(np.exp(np.clip(walk, -1, 3))) * (float(rng.uniform(2, 6)) if is_slow else 1.0))
    return made


def curve(transport: str, noise: float, added_ns: float, rng: np.random.Generator) -> MeasuredCurve:
    """A recorded curve, as a busy machine would show it, where each message waits `added_ns` for its rank."""
    true_ns = {size: time_ns + added_ns for size, time_ns in recorded(transport).items()}
    template = summary_of(make_measurement(make_point(), [[1, 1, 1]] * 2))
    order = [(round_, size) for round_ in range(ROUNDS) for size in rng.permutation([*true_ns]).tolist()]
    seen: dict[int, list[tuple[int, float]]] = {size: [] for size in true_ns}
    for (round_, size), factor in zip(order, factors(len(order), noise, rng), strict=True):
        seen[size].append((round_, true_ns[size] * factor))
    points = []
    for size, each in seen.items():
        time = median([time_ns for _, time_ns in each]).estimate
        assert time is not None
        measurements = [template._replace(round=round_, launch_id=1, median_ns=time_ns) for round_, time_ns in each]
        points.append(CurvePoint(size, time, float(size) or None, measurements))
    return MeasuredCurve(transport, "pingpong", 2, (), "near", tuple(points))


@dataclass
class Score:
    """Counts of curves, each of which has a switch.

    `told`: with a finding of a switch; `right`: one of these has it in its range; `refined`: the command of each
    suspected one measures there. `denied`: findings that say that there is no switch, or something else in its place.
    `widths`: median half-widths of the intervals.
    """

    curves: int = 0
    told: int = 0
    right: int = 0
    suspected: int = 0
    refined: int = 0
    denied: list[str] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)

    def add(self, made: MeasuredCurve) -> None:
        """Judge the findings of a curve."""
        below = PLACES[made.transport]
        above = min(size for size in made.sizes if size > below)
        findings = found("protocol switches", reading(made, libraries=LIBRARIES))
        switches = [each for each in findings if each.code == "protocol switch"]
        self.curves += 1
        self.widths.append(float(np.median([point.time_ns.relative for point in made.points])))
        self.told += bool(switches)
        self.right += any(_holds(each.subject.sizes_bytes, below, above) for each in switches)
        asked = [each.fix for each in switches if each.fix and _holds(each.subject.sizes_bytes, below, above)]
        self.suspected += len(asked)
        self.refined += sum(_holds(_range(fix.argv), below, above) for fix in asked)
        self.denied += [_text(each) for each in findings if _denies(each, below, above)]


def _holds(sizes: Sequence[int], below: int, above: int) -> bool:
    return sizes[0] <= below < above <= sizes[-1]


def _range(argv: Sequence[str]) -> list[int]:
    return [parse_bytes(word) for word in argv[argv.index("--bytes") + 1].split(":")]


def _denies(finding: Finding, below: int, above: int) -> bool:
    is_here = finding.subject.sizes_bytes[0] <= above and below <= finding.subject.sizes_bytes[-1]
    return is_here and (finding.code in ("drift", "slow size") or finding.cause == "curved")


def _text(finding: Finding) -> str:
    return f"{finding.code} {finding.cause} {finding.subject.sizes_bytes}"


def score(transport: str, noise: float, added_ns: float, curves: int) -> Score:
    counts = Score()
    for seed in range(curves):
        counts.add(curve(transport, noise, added_ns, np.random.default_rng((seed, round(1000 * noise)))))
    return counts


def main(curves: int = 300) -> None:
    for transport, noise, added_ns in itertools.product(PLACES, NOISES, WAITS_NS):
        one = score(transport, noise, added_ns, curves)
        print(
            f"{transport:18} noise {noise}, +{added_ns:.0f} ns: intervals of ±{np.median(one.widths):.0%}, "
            f"told {one.told / curves:.0%}, right {one.right / max(1, one.told):.1%} of these, "
            f"refined {one.refined} of {one.suspected}, denied {len(one.denied)} {sorted(set(one.denied))[:4]}"
        )


if __name__ == "__main__":
    main()
