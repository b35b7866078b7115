"""Measures models of known truth through the whole chain, and judges the results.

The sampler measures them in the worker of models, a store keeps the samples, explain reads them: only the machine is
replaced. Seeds are fixed, so every test gives the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hockney.analysis.explain import Explanation, explain_run
from hockney.analysis.finding import Finding
from hockney.measure import run as running
from hockney.measure.plan import make_plan
from hockney.measure.recorder import Display, Lab
from hockney.results.runs import Run
from hockney.results.store import Store
from hockney.stats.fit import Estimate
from hockney.suites import Limits, Suite
from hockney.worker.catalogue import Catalogue
from hockney.worker.machine_model import Model
from hockney.worker.points import RunOptions

NEAR = 0.02  # a figure this close to the truth, as a fraction, is met

Truth = Mapping[int, Mapping[str, float]]
"""True figures by name, for each segment of messages up to a size (0: the longest)."""


def explained(
    content: Mapping[str, Any],
    suite: Suite,
    catalogue: Catalogue,
    folder: Path,
    *,
    seed: int,
    ranks: int = 2,
) -> Explanation:
    """The explanation of a run of the suite on a model; its results stay in the folder."""
    catalogue.add_model("sim@made-up", Model.from_content("made-up", content))
    asked = RunOptions(machine="made-up", ranks=(ranks,), limits=Limits(launches=1, time_s=60.0))
    plan = make_plan(suite, asked, catalogue)
    with Store.open(folder / "results.db", create=True) as store:
        outcome = running.measure(plan, Lab(catalogue, store, Display(), "hockney run"), seed=seed)
        return explain_run(Run(store, outcome.run_id))


# ---- what explain says of a model ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FittedFigure:
    """A figure of a fit and its true value. `name` ends with its unit; `up_to_bytes` is the end of its segment."""

    name: str
    up_to_bytes: int
    truth: float
    estimate: Estimate

    @property
    def is_covered(self) -> bool:
        return self.estimate.low <= self.truth <= self.estimate.high

    @property
    def error(self) -> float:
        """Relative to the truth."""
        return self.estimate.value / self.truth - 1


def figures_of(truth: Truth, explanation: Explanation) -> Iterator[FittedFigure]:
    """The figures with a known truth of the lines, and of LogGP's segments, that lie within one segment."""
    for first_bytes, last_bytes, estimates in _fits(explanation):
        first, last = (
            next((end for end in truth if size <= (end or math.inf)), None) for size in (first_bytes, last_bytes)
        )
        if first is not None and first == last:
            for name, estimate in estimates.items():
                if estimate is not None and name in truth[first]:
                    yield FittedFigure(name, first, truth[first][name], estimate)


def _fits(explanation: Explanation) -> Iterator[tuple[int, int, Mapping[str, Estimate | None]]]:
    """The first and the last size of each fit, and its figures."""
    for line in explanation.lines:
        figures = {"t0_ns": line.t0_ns, "r_inf_bytes_per_s": line.r_inf_bytes_per_s, "n_half_bytes": line.n_half_bytes}
        yield line.first_bytes, line.last_bytes, figures
    for parameters in explanation.loggp:
        fit = parameters.loggp
        of_loggp = {
            "L_ns": fit.latency_ns,
            "o_s_ns": fit.send_ns,
            "o_r_ns": fit.receive_ns,
            "g_ns": fit.gap_ns,
            "G_ns_per_byte": fit.gap_ns_per_byte,
        }
        yield fit.first_bytes, fit.last_bytes, of_loggp


@dataclass(frozen=True)
class Switches:
    """Protocol switches by the sizes (below, above) between which explain finds them.

    `placed` and `invented` have and have not a true jump between them, `missed` are true jumps that none of them has.
    """

    placed: tuple[tuple[int, int], ...]
    invented: tuple[tuple[int, int], ...]
    missed: tuple[int, ...]


def switches_of(
    jumps: Sequence[int], explanation: Explanation, answers: Collection[str] = ("confirmed", "suspected")
) -> Switches:
    """The switches of ping-pongs that are known this certainly; `jumps` are the sizes after which the time jumps."""
    found = [
        (int(finding.facts["below_bytes"]), int(finding.facts["above_bytes"]))
        for finding in explanation.findings
        if finding.code == "protocol switch" and finding.facts["answer"] in answers
    ]
    placed = tuple((low, high) for low, high in found if any(low <= jump < high for jump in jumps))
    missed = tuple(jump for jump in jumps if not any(low <= jump < high for low, high in placed))
    return Switches(placed, tuple(switch for switch in found if switch not in placed), missed)


def slow_in(explanation: Explanation) -> list[frozenset[int]]:
    """The ranks, pairs and groups that explain calls slow."""
    slow = ("slow rank or pair", "slow group")
    findings = (finding for finding in explanation.findings if finding.code in slow)
    return list(dict.fromkeys(ranks for finding in findings for ranks in _slow_in(finding)))


def _slow_in(finding: Finding) -> Iterator[frozenset[int]]:
    facts = finding.facts
    for key in ("slow_pair", "slow_group"):
        if key in facts:
            yield frozenset(facts[key])
    if "slow_rank" in facts:
        yield frozenset((int(facts["slow_rank"]),))
    for text in (*facts.get("others", ()), *facts.get("links", ())):
        yield frozenset(map(int, str(text).split("-")))
