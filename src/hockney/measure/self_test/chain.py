"""Runs a model machine through the whole chain, and compares the result of explain with the truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hockney.analysis.explain import Explanation, explain_run
from hockney.analysis.finding import Finding
from hockney.measure import run as running
from hockney.measure.plan import RunOptions, make_plan
from hockney.measure.recorder import Display
from hockney.measure.self_test.curves import CurveMachine
from hockney.measure.self_test.pairs import PairsMachine
from hockney.results.runs import Run
from hockney.results.store import Store
from hockney.stats.fit import Estimate
from hockney.suites import Suite
from hockney.worker.catalogue import Catalogue
from hockney.worker.machine_model import Model


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
    asked = RunOptions(machine="made-up", ranks=(ranks,), launches=1, time_s=60.0)
    plan = make_plan(suite, asked, catalogue)
    with Store.open(folder / "results.db", create=True) as store:
        outcome = running.measure(plan, catalogue, store, Display(), command="hockney doctor --self-test", seed=seed)
        return explain_run(Run(store, outcome.run_id))


# ---- curves ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CheckedFigure:
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


def figures_of_lines(machine: CurveMachine, explanation: Explanation) -> Iterator[CheckedFigure]:
    """t_0, r_inf and n_1/2 of the lines within one segment of the machine."""
    for line in explanation.lines:
        segment = machine.segment(line.first_bytes, line.last_bytes)
        if segment is None:
            continue
        start_ns = segment.way_ns(machine.noise)
        for name, truth, estimate in (
            ("t0_ns", start_ns, line.t0_ns),
            ("r_inf_bytes_per_s", 1e9 / segment.ns_per_byte, line.r_inf_bytes_per_s),
            ("n_half_bytes", start_ns / segment.ns_per_byte, line.n_half_bytes),
        ):
            if estimate is not None:
                yield CheckedFigure(name, segment.up_to_bytes, truth, estimate)


def figures_of_loggp(machine: CurveMachine, explanation: Explanation) -> Iterator[CheckedFigure]:
    """L, o_s, o_r, g and G of LogGP's segments within one of the machine."""
    for parameters in explanation.loggp:
        fit = parameters.loggp
        segment = machine.segment(fit.first_bytes, fit.last_bytes)
        if segment is None:
            continue
        mean = machine.noise.mean
        for name, truth, estimate in (
            ("L_ns", mean(segment.latency_ns) + segment.gap_ns, fit.latency_ns),
            ("o_s_ns", mean(segment.send_ns), fit.send_ns),
            ("o_r_ns", mean(segment.receive_ns), fit.receive_ns),
            ("g_ns", segment.gap_ns, fit.gap_ns),
            ("G_ns_per_byte", segment.ns_per_byte, fit.gap_ns_per_byte),
        ):
            yield CheckedFigure(name, segment.up_to_bytes, truth, estimate)


@dataclass(frozen=True)
class Switches:
    """Protocol switches by the sizes (below, above) between which explain finds them.

    `placed` and `invented` are confirmed or suspected ones with and without a true jump between them, `missed` true
    jumps that none of them has.
    """

    placed: tuple[tuple[int, int], ...]
    invented: tuple[tuple[int, int], ...]
    confirmed_invented: int
    missed: tuple[int, ...]


def switches_of(machine: CurveMachine, explanation: Explanation) -> Switches:
    """The switches of ping-pongs."""
    findings = [
        finding
        for finding in explanation.findings
        if finding.code == "protocol switch" and finding.facts["answer"] != "not seen"
    ]
    placed, invented, confirmed = [], [], 0
    for finding in findings:
        between = int(finding.facts["below_bytes"]), int(finding.facts["above_bytes"])
        if any(between[0] <= jump < between[1] for jump in machine.jumps):
            placed.append(between)
        else:
            invented.append(between)
            confirmed += finding.facts["answer"] == "confirmed"
    missed = tuple(jump for jump in machine.jumps if not any(low <= jump < high for low, high in placed))
    return Switches(tuple(placed), tuple(invented), confirmed, missed)


# ---- pairs ----------------------------------------------------------------------------------------------------------


def named(explanation: Explanation) -> list[frozenset[int]]:
    """The ranks, pairs and groups that explain calls slow."""
    slow = ("slow rank or pair", "slow group")
    findings = (finding for finding in explanation.findings if finding.code in slow)
    return list(dict.fromkeys(ranks for finding in findings for ranks in _named(finding)))


def _named(finding: Finding) -> Iterator[frozenset[int]]:
    facts = finding.facts
    for key in ("slow_pair", "slow_group"):
        if key in facts:
            yield frozenset(facts[key])
    if "slow_rank" in facts:
        yield frozenset((int(facts["slow_rank"]),))
    for text in (*facts.get("others", ()), *facts.get("links", ())):
        yield frozenset(map(int, str(text).split("-")))


def verdict(machine: PairsMachine, said: Sequence[frozenset[int]]) -> str:
    """`right`, `silent`, `in part` or `false`."""
    if any(machine.is_false(ranks) for ranks in said):
        return "false"
    if not machine.slow or machine.is_right(said):
        return "right"
    return "in part" if said else "silent"
