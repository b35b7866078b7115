"""Detectors that compare two patterns, on figures of known truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.analysis.explain.readings import SIZES, curve, found, line, near, not_checked, reading

from hockney.analysis.explain.curve import CurvePoint, MeasuredCurve
from hockney.analysis.finding import Finding, as_warned
from hockney.cli.tune import tune
from hockney.model import Warning_
from hockney.report.findings import evidence_of, fix_sentence, sentence_of, title_of
from hockney.stats.fit import Estimate
from hockney.units import bytes_word


def pattern(name: str, start_ns: float, ns_per_byte: float = 0.1, **more: Any) -> MeasuredCurve:
    return curve(line(start_ns, ns_per_byte), name, **more)


def duplex_of(*curves: MeasuredCurve) -> list[Finding]:
    return found("duplex limits", reading(*curves))


@pytest.mark.parametrize(
    ("ratio", "cause", "effect"),
    [
        (1.0, "directions take turns", 0.98),
        (0.565, "directions slow each other down", 0.12),
        (0.545, None, None),
        (0.46, None, None),
        (0.44, "one direction waits", 0.11),
        (0.2, "one direction waits", 0.6),
    ],
)
def test_a_duplex_limit_is_a_tenth_off_half_the_time(ratio: float, cause: str | None, effect: float | None) -> None:
    """With the whole interval, of 1 %; its effect is 1 where directions take turns."""
    findings = duplex_of(pattern("twoway", 500 * ratio, 0.1 * ratio), pattern("oneway", 500))
    assert [finding.cause for finding in findings] == ([] if cause is None else [cause])
    assert [finding.effect for finding in findings] == ([] if effect is None else [pytest.approx(effect, abs=0.01)])


@pytest.mark.parametrize(
    ("ratios", "title", "sizes"),
    [
        ((1.0, 1.0), "limited duplex", (8, 16)),
        ((0.116, 0.2), "one direction alone is slow", (8, 16)),
        ((0.116, 1.0), "limited duplex", (16,)),  # and nothing of the size that is faster than full duplex
    ],
)
def test_the_title_of_a_duplex_limit_follows_its_ratio(
    ratios: tuple[float, float], title: str, sizes: tuple[int, ...]
) -> None:
    one = curve(lambda _: 500.0, "oneway", sizes=[8, 16])
    two = curve(lambda size: 500.0 * ratios[size > 8], "twoway", sizes=[8, 16])
    (finding,) = duplex_of(two, one)
    assert (title_of(finding), finding.subject.sizes_bytes) == (title, sizes)


@pytest.mark.parametrize(
    ("value", "low", "high", "cause"),
    [
        (1.0, 0.76, 1.32, "directions take turns"),
        (1.0, 0.74, 1.2, "directions slow each other down"),
        (1.0, 0.9, 1.34, "directions slow each other down"),
        (5.39, 1.33, 21.8, "directions slow each other down"),
    ],
)
def test_directions_take_turns_if_the_whole_interval_says_so(value: float, low: float, high: float, cause: str) -> None:
    one, two = (curve(line(1000, 0), name, sizes=[8], precision=0) for name in ("oneway", "twoway"))
    time = Estimate(1000 * value, 1000 * low, 1000 * high)
    (finding,) = duplex_of(one, replace(two, points=(replace(two.points[0], time_ns=time),)))
    assert finding.cause == cause


@pytest.mark.parametrize("limited", [(8,), (8, 16), (8, 16, 32)])
def test_a_duplex_limit_has_the_ratios_of_its_first_and_its_last_size(limited: tuple[int, ...]) -> None:
    (finding,) = duplex_of(
        curve(lambda size: 500.0 if size in limited else 250.0, "twoway"), curve(lambda _: 500.0, "oneway")
    )
    assert finding.subject.sizes_bytes == limited
    ends = {name: value for name, value in finding.facts.items() if name.endswith("_bytes")}
    assert ends == {"first_bytes": 8, **({"last_bytes": limited[-1]} if len(limited) > 1 else {})}
    assert [finding.facts[name].value for name in finding.facts if name.endswith("_ratio")] == [1.0] * len(ends)


def test_patterns_of_different_states_are_not_compared() -> None:
    of = reading(pattern("twoway", 500, state="near"), pattern("oneway", 500, state="far"))
    not_checked("duplex limits", of)


@pytest.mark.parametrize(
    ("ns_per_byte", "more", "sharing"),
    [
        (0.2, {}, [2]),
        (0.14, {}, []),  # no whole number
        (0.2, {"precision": 0.026}, [2]),
        (0.2, {"precision": 0.03}, []),  # too wide an interval
        (0.3, {}, []),  # more than there are pairs
        (0.79, {"ranks": 32}, []),
    ],
)
def test_a_path_that_several_pairs_share(ns_per_byte: float, more: dict[str, Any], sharing: list[int]) -> None:
    sizes = [*SIZES, 1 << 20]
    loaded = pattern("pairs", 500, ns_per_byte, sizes=sizes, **{"ranks": 4, **more})
    findings = found("shared paths", reading(loaded, pattern("oneway", 500, sizes=sizes)))
    assert [finding.facts["sharing"] for finding in findings] == sharing


def test_a_shared_path_is_not_checked_without_messages_of_64_kib_alone() -> None:
    sizes = [*SIZES, 1 << 20]
    loaded = pattern("pairs", 500, ranks=4, sizes=sizes)
    for alone in ([], [pattern("oneway", 500, sizes=SIZES[:-1])]):
        not_checked("shared paths", reading(loaded, *alone))
    assert found("shared paths", reading(loaded, pattern("oneway", 500))) == []


# ---- collectives and their parts -------------------------------------------------------------------------------------


def slower(*curves: MeasuredCurve, **more: Any) -> list[Finding]:
    return found("collectives and their parts", reading(*curves, **more))


def barrier_of(start_ns: float, **more: Any) -> MeasuredCurve:
    return pattern("barrier", start_ns, **{"ranks": 4, "sizes": [0], **more})


@pytest.mark.parametrize(
    ("barrier", "is_slow"),
    [
        (barrier_of(2000), True),
        (barrier_of(1000), False),
        (barrier_of(1000, ranks=3), False),  # in two rounds, too
        (barrier_of(1100, precision=0.2), False),
    ],
)
def test_a_barrier_slower_than_its_rounds(barrier: MeasuredCurve, is_slow: bool) -> None:
    findings = slower(barrier, pattern("pingpong", 500))
    assert [each.facts["slower_ratio"].value for each in findings] == ([pytest.approx(2, 0.01)] if is_slow else [])


@pytest.mark.parametrize(("barrier_ns", "is_slow"), [(1055, False), (1066, True)])
def test_a_collective_is_slower_by_a_twentieth_with_its_whole_interval(barrier_ns: float, is_slow: bool) -> None:
    """The parts take 1,002 ns, and the interval of the ratio is 1 %."""
    assert bool(slower(barrier_of(barrier_ns), pattern("pingpong", 500))) is is_slow


def test_a_barrier_is_compared_with_the_one_by_messages_if_there_is_one() -> None:
    native = barrier_of(2000, algorithm="native")
    by_hand = barrier_of(1990, options={"algorithm": "binomial"}, algorithm="binomial")
    assert slower(native, by_hand, pattern("pingpong", 500)) == []
    (slow,) = slower(native, replace(by_hand, points=(CurvePoint(0, near(1500)),)), pattern("pingpong", 500))
    assert (slow.facts["parts"], slow.facts["algorithm"]) == ("messages", "binomial")


def test_a_broadcast_slower_than_messages() -> None:
    native = pattern("bcast", 900, ranks=4, options={"algorithm": "native", "root": "1"}, algorithm="native")
    by_hand = pattern("bcast", 500, ranks=4, options={"algorithm": "chain", "root": "1"}, algorithm="chain")
    (slow,) = slower(native, by_hand)
    assert slow.facts["size_bytes"] == 8
    assert slow.facts["points"] == len(slow.subject.sizes_bytes) > 1
    faster = pattern("bcast", 500, ranks=4, algorithm="native")
    assert slower(faster, replace(by_hand, options=())) == []


@pytest.mark.parametrize(
    "curves",
    [
        # another start
        (
            pattern("bcast", 900, ranks=4, options={"start": "barrier"}, algorithm="native"),
            pattern("bcast", 500, ranks=4, algorithm="chain"),
        ),
        # a stream hides the waits of an exchange
        (pattern("alltoall", 9000, ranks=4, algorithm="native"), pattern("pairs", 500, ranks=4)),
        # one of many pairs
        (barrier_of(2000), pattern("pingpong", 500, ranks=4, options={"source": 2, "target": 3})),
        # hockney's own
        (barrier_of(2000, algorithm="dissemination"), pattern("pingpong", 500)),
        # more ranks than CPUs
        (barrier_of(2000, oversubscribed=True), pattern("pingpong", 500)),
    ],
    ids=["another start", "a stream", "one of many pairs", "hockney's own", "oversubscribed"],
)
def test_patterns_timed_differently_are_not_compared(curves: tuple[MeasuredCurve, ...]) -> None:
    not_checked("collectives and their parts", reading(*curves))


def test_a_collective_has_one_finding_with_the_best_algorithm_and_the_sizes_around_its_worst() -> None:
    """Slow from 4 KiB to 16 KiB, most at 8 KiB; at 64 B another algorithm is faster."""
    factors = {4096: 1.3, 8192: 1.8, 16384: 1.3}

    def by(algorithm: str, time_ns: Callable[[int], float]) -> MeasuredCurve:
        options = {"algorithm": algorithm}
        return curve(time_ns, "allgather", MPI, ranks=4, options=options, algorithm=algorithm)

    native = by("native", lambda size: 2000 * factors.get(size, 1.0))
    ring = by("ring", lambda size: 2000 if size >= 1024 else 4000)
    bruck = by("bruck", lambda size: 2200 if size != 64 else 1600)
    (slow,) = slower(native, bruck, ring)
    assert slow.subject.sizes_bytes == (64, 4096, 8192, 16384)
    assert {name: fact for name, fact in slow.facts.items() if name.endswith("_bytes")} == {
        "size_bytes": 8192,
        "first_bytes": 4096,
        "last_bytes": 16384,
        "others_bytes": [64],
    }
    assert sentence_of(slow) == (
        "allgather at 4 KiB to 16 KiB takes up to 1.80 times as long as ring (1.78-1.82) over the same library. "
        "At 8 KiB among 4, it takes 3.60 us ±1%, not 2.00 us ±1%. It is slower than others at 64 B, too."
    )


@pytest.mark.parametrize(
    ("transport", "pattern_name", "form", "variable"),
    [
        ("mpi@openmpi-4.1.4", "alltoallv", None, "OMPI_MCA_coll_tuned_alltoallv_algorithm"),
        ("mpi@openmpi-4.0.7", "gather", "blocking", "OMPI_MCA_coll_tuned_gather_algorithm"),
        ("mpi@openmpi-4.1.4", "gatherv", None, None),
        ("mpi@openmpi-4.1.4", "neighbor_alltoall", None, None),
        ("mpi@openmpi-4.1.4", "allgather", "nonblocking", None),
        ("mpi@mpich-5.0.2", "gatherv", None, "MPIR_CVAR_GATHERV_INTRA_ALGORITHM"),
        ("mpi@mpich-5.0.2", "neighbor_alltoall", None, "MPIR_CVAR_NEIGHBOR_ALLTOALL_INTRA_ALGORITHM"),
        ("mpi@mpich-5.0.2", "reduce_local", None, None),
        ("shmem@openmpi-4.1.4", "allgather", None, None),
    ],
)
def test_a_setting_is_named_where_the_library_has_it(
    transport: str, pattern_name: str, form: str | None, variable: str | None
) -> None:
    def by(algorithm: str, start_ns: float) -> MeasuredCurve:
        options = {"algorithm": algorithm, **({} if form is None else {"form": form})}
        return pattern(pattern_name, start_ns, ranks=4, transport=transport, options=options, algorithm=algorithm)

    (slow,) = slower(by("native", 900), by("ring", 500))
    assert (slow.fix and str(slow.fix.facts["variable"]).rpartition(" ")[2]) == variable


def test_a_collective_that_can_be_tuned_is_to_be_tuned() -> None:
    """With its ranks, options and slow sizes, where ranks of one host were measured here."""

    def by(algorithm: str, start_ns: float, transport: str = MPI, name: str = "bcast") -> MeasuredCurve:
        options = {"algorithm": algorithm, "root": "1"}
        return pattern(name, start_ns, 0, ranks=4, transport=transport, options=options, algorithm=algorithm)

    sizes = ",".join(map(bytes_word, SIZES))
    for transport in (MPI, "mpi@mpich-5.0.2", "mpi@intel-2021.17"):
        (slow,) = slower(by("native", 900, transport), by("ring", 500, transport))
        assert slow.fix
        line = f"hockney tune bcast -t {transport} -n 4 -o root=1 --bytes {sizes}"
        assert (slow.fix.code, " ".join(slow.fix.argv)) == ("tune", line)
        tune.make_context("tune", list(slow.fix.argv[2:]))  # it is understood
        assert fix_sentence(slow.fix).startswith("See whether another algorithm of the library is faster")
    (barrier,) = slower(barrier_of(2000, transport=MPI), pattern("pingpong", 500, transport=MPI))
    assert barrier.fix
    assert barrier.fix.argv == ("hockney", "tune", "barrier", "-t", MPI, "-n", "4")
    for plan in ({"imported": "osu"}, {"hosts": ["a", "b"]}):
        (slow,) = slower(by("native", 900), by("ring", 500), plan=plan)
        assert slow.fix
        assert slow.fix.code == "list algorithms"


def test_a_point_slower_than_several_of_its_parts_counts_once() -> None:
    pingpongs = [pattern("pingpong", start_ns, options={"x": start_ns}) for start_ns in (400, 500, 600)]
    (slow,) = slower(barrier_of(2000), *pingpongs)
    assert slow.facts["points"] == 1
    (slow,) = slower(*(barrier_of(2000, ranks=ranks) for ranks in (3, 4)), *pingpongs)
    assert slow.facts["points"] == 2


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_own_block_of_an_all_to_all_is_no_fault(ranks: int) -> None:
    """Among 2 a library without fault moves two blocks where messages move one."""

    def all_to_all(start_ns: float, ns_per_byte: float, **more: Any) -> list[Finding]:
        native = pattern("alltoall", start_ns, ns_per_byte, ranks=ranks, algorithm="native", **more)
        options = {"algorithm": "flat"}
        flat = pattern("alltoall", 500, 0.1 * (ranks - 1), ranks=ranks, options=options, algorithm="flat", **more)
        return slower(native, flat)

    assert all_to_all(500, 0.1 * ranks) == []
    assert len(all_to_all(500, 0.15 * ranks)) == 1


def test_an_allreduce_slower_than_a_reduction_and_a_broadcast() -> None:
    transport = "mpi@mpich-5.0.2"
    options = {"algorithm": "parts"}
    parts = pattern("allreduce", 700, options=options, algorithm="parts", transport=transport)

    def whole(start_ns: float) -> MeasuredCurve:
        return pattern("allreduce", start_ns, algorithm="native", transport=transport)

    (slow,) = slower(whole(800), parts)
    assert slow.subject.pattern == "allreduce"
    assert slow.effect == pytest.approx(800.8 / 700.8 - 1)  # at the shortest size, where the parts save most
    assert slower(whole(600), parts) == []
    assert slower(whole(720), parts) == []
    for alone in (whole(800), parts):
        not_checked("collectives and their parts", reading(alone, pattern("pingpong", 500)))


# ---- the floor, and libraries that yield -----------------------------------------------------------------------------

FLOORS = {(name, 2): near(40.0) for name in ("shm", "tcp", "mpi@openmpi-4.1.4")}
MPI = "mpi@openmpi-4.1.4"


def floors_of(time_ns: float, transport: str, precision: float = 0.005, **more: Any) -> list[Finding]:
    latency = pattern("pingpong", time_ns, 0.01, transport=transport, precision=precision)
    return found("latency above the floor", reading(latency, floors=FLOORS, **more))


@pytest.mark.parametrize(
    ("time_ns", "transport", "is_above"),
    [(500, "shm", True), (60, "shm", False), (20_000, "tcp", False), (390, MPI, False), (410, MPI, True)],
)
def test_a_short_message_far_above_the_floor(time_ns: float, transport: str, is_above: bool) -> None:
    """Transports through the kernel have no usual factor."""
    findings = floors_of(time_ns, transport)
    assert [finding.subject.transport for finding in findings] == ([transport] if is_above else [])


@pytest.mark.parametrize(("precision", "is_above"), [(0.01, True), (0.2, True), (0.4, False)])
def test_the_whole_interval_is_above_the_usual_limit(precision: float, is_above: bool) -> None:
    """170 ns are 4.25 floors, and 3 are usual."""
    assert bool(floors_of(170, "shm", precision)) is is_above


@pytest.mark.parametrize(
    ("chosen", "cause"),
    [("ob1:vader:cma tcp", ""), ("ob1:tcp", "another path"), ("ob1:smcuda tcp", ""), ("cm:ofi", "another path")],
)
def test_a_library_that_does_not_use_memory_is_the_cause(chosen: str, cause: str) -> None:
    (above,) = floors_of(5700, MPI, libraries={MPI: f"Open MPI 4.1.4 ({chosen})"})
    assert above.cause == cause


def test_a_library_that_yields_is_far_above_the_floor_for_that() -> None:
    warnings = (
        Warning_("yield", MPI, f"{MPI} spends 50% of its time in the kernel.", "Set it to spin."),
        Warning_("yield", MPI, f"{MPI} spends 60% of its time in the kernel.", "Set it to spin."),
        Warning_("steal", "machine", "a", "b"),
    )
    (above,) = floors_of(5700, MPI, warnings=warnings)
    assert above.cause == "yields"
    assert above.fix == as_warned("Set it to spin.")
    of = reading(pattern("pingpong", 500), warnings=warnings, libraries={MPI: "Open MPI 4.1.4"})
    (once,) = found("yielding libraries", of)  # though the run was resumed, and warned twice
    assert (once.subject.transport, once.fix) == (MPI, as_warned("Set it to spin."))
    assert evidence_of(once) == "It spends 60% of its time in the kernel."


def test_without_a_floor_nothing_is_compared() -> None:
    not_checked("latency above the floor", reading(pattern("pingpong", 500)))
