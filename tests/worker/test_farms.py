"""The trigger-farm patterns by the line protocol: every option, the counts, refusals, contents."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from tests.worker.test_native import measure, measured, shared, why_unsupported

from hockney.measure.plan import make_plan
from hockney.model import Point
from hockney.suites import load_suite
from hockney.worker.catalogue import Catalogue
from hockney.worker.libraries import Missing
from hockney.worker.points import RunOptions


def run(commands: list[str], ranks: int, transport: str = "shm") -> list[dict[str, Any]]:
    return measured(commands, "-t", transport, *shared(ranks))


@pytest.mark.parametrize("transport", ["shm", "unix", "null"])
@pytest.mark.parametrize("pattern", ["pushfarm", "pullfarm"])
def test_farms_of_all_shapes(pattern: str, transport: str) -> None:
    """With 5,000 B no message is buffered by shm: nobody may wait for somebody who waits for him."""
    shapes = list(itertools.product((1, 2, 3), (1, 2, 5), (16, 5000), (1, 2)))
    commands = [
        measure(pattern, size, senders=senders, in_flight=in_flight, batch=batch, samples=2)
        for senders, in_flight, size, batch in shapes
    ]
    for answer, (senders, in_flight, size, _) in zip(run(commands, 5, transport), shapes, strict=True):
        events = 1 if in_flight == 1 else 16 * in_flight
        assert answer["divisor"] == events
        assert answer["messages_per_rep"] == events * senders
        assert answer["bytes_per_rep"] == events * senders * size
        assert answer["timed"] == "root"
        assert answer["verified"] is (transport != "null")


@pytest.mark.parametrize("transport", ["shm", "unix", "null"])
@pytest.mark.parametrize("pattern", ["robpush", "robpull"])
def test_robs_with_all_options(pattern: str, transport: str) -> None:
    options = list(itertools.product(("in-turn", "parallel"), (1, 2), ("loop", "clock", "sleep"), (0, 20)))
    commands = [
        measure(pattern, 1024, read=read, buffers=buffers, delay_kind=kind, delay_us=delay_us, batch=3, samples=2)
        for read, buffers, kind, delay_us in options
    ]
    for answer, (_, _, kind, delay_us) in zip(run(commands, 4, transport), options, strict=True):
        assert answer["verified"] is (transport != "null")
        assert answer["messages_per_rep"] == 3
        assert answer["counters"]["delays"] == [6 if delay_us else 0, 0, 0, 0]
        taken_ns, *others = answer["counters"]["delay_ns"]
        assert others == [0, 0, 0]
        assert (taken_ns > 0) is (delay_us > 0)
        if kind != "loop":  # the loop keeps its calibrated duration
            assert taken_ns >= answer["counters"]["delays"][0] * delay_us * 1000
        assert sum(answer["elapsed_ns"][0]) >= taken_ns


@pytest.mark.parametrize("pattern", ["pushfarm", "pullfarm"])
@pytest.mark.parametrize("senders", [2, 3, 4094])
def test_a_farm_without_receivers_is_refused_before_and_in_the_worker(
    pattern: str, senders: int, catalogue: Catalogue
) -> None:
    said = f"{pattern} with senders={senders} on 3 ranks has no receivers: it needs {senders + 2} ranks or more"
    command = measure(pattern, 16, senders=senders)
    assert why_unsupported(command, "null", 3) == said
    point = Point("shm", pattern, 3, 16, (("senders", str(senders)),))
    enough = replace(point, ranks=senders + 2)
    assert catalogue.obstacles([point, enough], one_host=False) == {point: said}


# ---- the suite -----------------------------------------------------------------------------------------------------

# Rows of the report's tables.
ROWS = {
    "oneway": 4, "twoway": 4, "alltoall": 16, "pairs": 16, "outfarm": 16, "multicast": 16, "funnel": 16,
    "pushfarm": 36, "pullfarm": 36, "robpush": 36, "robpull": 12,
}  # fmt: skip


def planned(catalogue: Catalogue, *, oversubscribe: bool) -> tuple[list[Point], list[tuple[Point, str]]]:
    asked = RunOptions(transports=("shm",), oversubscribe=oversubscribe)
    without_mpi = replace(catalogue, missing=(Missing("mpi", "no MPI is here", "install one"),))
    plan = make_plan(load_suite("atlas"), asked, without_mpi, cpus=2)
    published = (point for point in plan.points if point.transport == "shm" and point.role != "basic")
    plan = replace(plan, points=tuple(published))
    return list(plan.points), [(skipped.point, skipped.reason) for skipped in plan.skipped]


def test_the_suite_has_the_reports_grid(catalogue: Catalogue) -> None:
    points, skipped = planned(catalogue, oversubscribe=True)
    assert not skipped
    assert {name: sum(point.pattern == name for point in points) for name in ROWS} == ROWS
    assert len(points) == sum(ROWS.values())
    for point in points:
        if point.pattern.endswith("farm") and point.pattern != "outfarm":
            senders = int(dict(point.options).get("senders", 1))
            assert {senders, point.ranks - 1 - senders} <= {2, 4, 6, 8, 16, 26}


def test_on_two_cpus_the_rest_is_skipped_with_the_reason(catalogue: Catalogue) -> None:
    points, skipped = planned(catalogue, oversubscribe=False)
    assert {point.pattern for point in points} == {"oneway", "twoway"}
    assert len(skipped) == sum(ROWS.values()) - 8
    assert all("than CPUs (2) would measure the scheduler" in reason for _, reason in skipped)
