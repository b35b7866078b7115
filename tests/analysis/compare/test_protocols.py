"""On which side of a protocol switch a difference lies, in each run by its own switches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.analysis.compare.made import add_run, curve, slower

from hockney.analysis.compare import Range, Verdict, compare_runs
from hockney.analysis.compare.protocols import KnownSwitch, known_switches
from hockney.model import Point
from hockney.report.changes import protocol_text
from hockney.results.store import Store

OPENMPI, MPICH = "mpi@openmpi-4.1.4", "mpi@mpich-4.0.2"
LIBRARIES = {OPENMPI: "Open MPI 4.1.4 (ob1:vader:cma tcp)", MPICH: "MPICH 4.0.2 (ch4:ucx)"}
SIZES = [2**n for n in range(3, 17)]
# With its header a message of 4 KiB is longer than Open MPI's eager limit.
LIMIT = "the switch between 2 KiB and 4 KiB (btl_vader_eager_limit)"


def jumping(transport: str, last_below: int, sizes: Sequence[int] = SIZES) -> dict[Point, float]:
    """A curve whose time jumps by 2000 ns behind a size."""
    return {point: ns + 2000 * (point.bytes > last_below) for point, ns in curve(transport, sizes).items()}


def moved(store: Store, before: Mapping[Point, float], after: Mapping[Point, float], **of_new: Any) -> list[Range]:
    base = add_run(store, before, scatter=0.003, libraries=LIBRARIES)
    new = add_run(store, after, scatter=0.003, seed=2, libraries=LIBRARIES, **of_new)
    return [one for one in compare_runs(store, base, new).ranges if one.verdict is not Verdict.SAME]


@pytest.mark.parametrize(
    ("transport", "first", "last", "said"),
    [
        ("tcp", 4096, 65536, "above the switch between 2 KiB and 4 KiB"),
        ("tcp", 8, 1024, "below the switch between 2 KiB and 4 KiB"),
        (OPENMPI, 16384, 32768, f"rendezvous: above {LIMIT}"),
        (OPENMPI, 64, 512, f"eager: below {LIMIT}"),
    ],
)
def test_a_range_names_its_side_of_the_switch(store: Store, transport: str, first: int, last: int, said: str) -> None:
    times = jumping(transport, 2048)
    (found,) = moved(store, times, slower(times, 1.25, first, last))
    assert protocol_text(found, (1, 2)) == said


def test_a_range_ends_at_a_switch(store: Store) -> None:
    times = jumping(OPENMPI, 2048)
    found = moved(store, times, slower(times, 1.25, 1024, 16384))
    assert [protocol_text(one, (1, 2)) for one in found] == [f"eager: below {LIMIT}", f"rendezvous: above {LIMIT}"]
    assert [[change.point.bytes for change in one.changes] for one in found] == [[1024, 2048], [4096, 8192, 16384]]


@pytest.mark.parametrize("is_swapped", [False, True])
def test_a_switch_that_moved_is_told_of_each_run(store: Store, is_swapped: bool) -> None:
    """And which limit the run itself had set."""
    environment = {"environment": {"OMPI_MCA_btl_vader_eager_limit": "16384"}}
    before, after = jumping(OPENMPI, 2048), jumping(OPENMPI, 8192)
    if is_swapped:
        base = add_run(store, after, scatter=0.003, libraries=LIBRARIES, facts=environment)
        new = add_run(store, before, scatter=0.003, seed=2, libraries=LIBRARIES, facts={"environment": {}})
        found = [one for one in compare_runs(store, base, new).ranges if one.verdict is not Verdict.SAME]
    else:
        found = moved(store, before, after, facts=environment)
    (one,) = found
    assert one.verdict is (Verdict.SLOWER if is_swapped else Verdict.FASTER)
    assert [change.point.bytes for change in one.changes] == [4096, 8192]
    here, there = "2 KiB and 4 KiB (btl_vader_eager_limit)", "8 KiB and 16 KiB (btl_vader_eager_limit)"
    assert protocol_text(one, (1, 2)) == (
        f"eager: below the switch between {there} in run 1, rendezvous: above the switch between {here} in run 2"
        if is_swapped
        else f"rendezvous: above the switch between {here} in run 1, eager: below the switch between {there} in run 2"
    )


def test_what_overrules_the_documented_limit_is_the_cause(store: Store) -> None:
    """With two sizes below it there are too few for a line, but the limit is known."""
    sizes = [512, 1024, 2048, 4096, 8192, 12288, 16384, 32768, 65536]
    before, after = jumping(MPICH, 8192, sizes), jumping(MPICH, 1024, sizes)
    (found,) = moved(store, before, after, facts={"environment": {"UCX_RNDV_THRESH": "2048"}})
    assert [change.point.bytes for change in found.changes] == [2048, 4096, 8192]
    assert protocol_text(found, (1, 2)) == (
        "below the switch between 8 KiB and 12 KiB (UCX_POSIX_SEG_SIZE, UCX_SYSV_SEG_SIZE) in run 1, "
        "above the switch between 1 KiB and 2 KiB (UCX_POSIX_SEG_SIZE, UCX_SYSV_SEG_SIZE) in run 2"
    )


def test_a_library_in_place_of_another_has_its_own_switch(store: Store) -> None:
    """Nothing is documented where it lies: no limit of the other version is its name."""
    newer = "mpi@mpich-9.9"
    found = moved(store, jumping(MPICH, 8192), slower(jumping(newer, 1024), 1.25, 8, 65536))
    assert [protocol_text(one, (1, 2)) for one in found][1] == (
        "below the switch between 8 KiB and 16 KiB (UCX_POSIX_SEG_SIZE, UCX_SYSV_SEG_SIZE) in run 1, "
        "above the switch between 1 KiB and 2 KiB in run 2"
    )


@pytest.mark.parametrize("last_below", [2048, 1 << 20])
def test_where_a_slowdown_begins_is_no_switch(store: Store, last_below: int) -> None:
    times = jumping("tcp", last_below)
    (found,) = moved(store, times, slower(times, 3.0, 128, 1024))
    assert protocol_text(found, (1, 2)) == ("below the switch between 2 KiB and 4 KiB" if last_below == 2048 else None)


@pytest.mark.parametrize(
    ("library", "name"), [("Open MPI 4.1.4", None), ("Open MPI 4.1.4 (ob1:tcp)", "btl_tcp_eager_limit")]
)
def test_a_limit_of_another_way_of_the_library_is_no_name_of_a_switch(library: str, name: str | None) -> None:
    """Where it isn't told which way the messages go, a jump at 64 KiB may be anything."""
    times = {2**n: 1000.0 + 2**n / 10 + (9000 if n > 15 else 0) for n in range(8, 21)}
    (switch,) = known_switches(times, OPENMPI, {}, library)
    assert (switch.below_bytes, switch.above_bytes, switch.name) == (1 << 15, 1 << 16, name)


@pytest.mark.parametrize(("above_ns", "switches"), [(4100.0, 0), (4300.0, 1)])
def test_a_limit_between_few_sizes_is_a_switch_where_time_rises_more_than_the_size(
    above_ns: float, switches: int
) -> None:
    found = known_switches({1024: 1000.0, 4096: above_ns}, OPENMPI, {}, LIBRARIES[OPENMPI])
    assert found == (KnownSwitch(1024, 4096, "btl_vader_eager_limit"),) * switches


def test_a_curve_without_a_switch_names_no_protocol(store: Store) -> None:
    times = curve(sizes=SIZES)
    (found,) = moved(store, times, slower(times, 1.25, 8192, 65536))
    assert protocol_text(found, (1, 2)) is None
