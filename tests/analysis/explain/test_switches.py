"""Protocol switches and bends on curves of known truth: real ones are found, and none are invented."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.analysis.explain import smooth
from tests.analysis.explain.readings import SIZES, curve, found, line, not_checked, reading
from tests.analysis.explain.smooth import knee

from hockney.analysis.explain import explain
from hockney.analysis.explain.curve import MeasuredCurve
from hockney.analysis.finding import Absence, Finding
from hockney.report.findings import evidence_of
from hockney.stats.fit import SegmentFit

LONG = [*SIZES, 131072, 262144]
OPENMPI = "mpi@openmpi-4.1.4"
LIBRARIES = {
    OPENMPI: "Open MPI 4.1.4 (ob1:vader tcp)",
    "mpi@mpich-5.0.2": "MPICH 5.0.2 (ch4:ofi)",
    "mpi@mpich-4.0.2": "MPICH 4.0.2 (ch4:ucx)",
}


def stepped(after: int, jump_ns: float, transport: str = OPENMPI, **more: Any) -> MeasuredCurve:
    return curve(lambda size: 500 + 0.1 * size + (jump_ns if size > after else 0.0), transport=transport, **more)


def switches(made: MeasuredCurve, **more: Any) -> list[Finding]:
    """The findings of a curve."""
    return found("protocol switches", reading(made, **{"libraries": LIBRARIES, **more}))


def test_a_jump_has_its_place_its_height_and_its_documented_cause() -> None:
    (switch,) = switches(stepped(2048, 1500.0))
    assert (switch.code, switch.facts["answer"], switch.cause) == ("protocol switch", "confirmed", "documented")
    assert switch.subject.sizes_bytes == (2048, 4096)
    assert switch.facts["jump_ns"].low <= 1500 <= switch.facts["jump_ns"].high
    assert switch.facts["threshold"] == "btl_vader_eager_limit"
    assert [source.rpartition("/")[2] for source in switch.sources] == ["btl_vader_component.c"]
    assert switch.fix is None


@pytest.mark.parametrize(
    ("transport", "at", "at_of_ucx", "layer"),
    [
        ("mpi@mpich-4.0.2", 1024, 1024, "ucx@1.13"),
        ("mpi@mpich-4.0.2", 1024, 4096, None),  # another place
        (OPENMPI, 1024, 1024, None),  # not on UCX
    ],
)
def test_a_switch_of_both_layers_belongs_to_the_lower_one(
    transport: str, at: int, at_of_ucx: int, layer: str | None
) -> None:
    sizes = sorted({*SIZES, 1100, 4400})  # its place is then known to an eighth
    curves = (stepped(at, 1500.0, transport, sizes=sizes), stepped(at_of_ucx, 1500.0, "ucx@1.13", sizes=sizes))
    of_ucx, of_mpi = sorted(found("protocol switches", reading(*curves, libraries=LIBRARIES)), key=_is_of_mpi)
    assert {of_ucx.facts["answer"], of_mpi.facts["answer"]} == {"confirmed"}
    assert (of_mpi.facts.get("layer"), "layer" in of_ucx.facts) == (layer, False)
    text = "It belongs to the layer below: ucx@1.13 switches there, too."
    assert (text in evidence_of(of_mpi)) is (layer is not None)


def _is_of_mpi(finding: Finding) -> bool:
    return finding.subject.transport.startswith("mpi")


def test_a_jump_downwards_falls() -> None:
    (switch,) = switches(stepped(2048, -300.0))
    assert switch.facts["fall_ns"].low <= 300 <= switch.facts["fall_ns"].high
    assert 0.3 < switch.effect < 0.5


def test_a_jump_without_a_documented_size_is_suspected_until_its_place_is_known() -> None:
    (far,) = switches(stepped(128, 1500.0))
    assert (far.subject.sizes_bytes, far.facts["answer"], far.cause) == ((128, 256), "suspected", "")
    assert far.fix is not None
    assert " ".join(far.fix.argv) == f"hockney run pingpong -t {OPENMPI} -n 2 --bytes 16:2K --refine --launches 1"
    for first_bytes, answer in ((144, "confirmed"), (145, "suspected")):  # an eighth longer
        (close,) = switches(stepped(128, 1500.0, sizes=sorted({*SIZES, first_bytes})))
        assert (close.subject.sizes_bytes, close.facts["answer"]) == ((128, first_bytes), answer)


def test_a_documented_size_does_not_confirm_a_jump_over_a_wide_range() -> None:
    sizes = (8, 64, 512, 1024, 8192, 65536, 131072, 1 << 20)
    (switch,) = switches(stepped(1024, 5000.0, sizes=sizes))
    assert (switch.subject.sizes_bytes, switch.facts["answer"]) == ((1024, 8192), "suspected")
    assert switch.facts["threshold"] == "btl_vader_eager_limit"


@pytest.mark.parametrize(
    ("last_bytes", "first_bytes", "is_known"),
    [(32767, 65535, False), (32768, 65536, True), (65536, 131072, True), (65537, 131072, False)],
    ids=["below", "just full", "full", "beyond"],
)
def test_a_documented_size_may_be_the_longer_one_of_a_jump(last_bytes: int, first_bytes: int, is_known: bool) -> None:
    """A pipe holds 64 KiB: longer messages wait for the reader."""
    others = [size for size in (*LONG, 524288) if not last_bytes < size < first_bytes]
    (switch,) = switches(stepped(last_bytes, 40000.0, "pipe", sizes=sorted({*others, last_bytes, first_bytes})))
    assert switch.subject.sizes_bytes == (last_bytes, first_bytes)
    assert (switch.facts.get("threshold") == "capacity of a pipe") is is_known


def test_the_fix_measures_the_same_curve_in_the_multiples_of_its_sizes() -> None:
    options = {"options": {"x": "y"}, "pattern": "putpong", "ranks": 4}
    (switch,) = switches(stepped(2048, 1500.0, "shm", **options), plan={"grains": {"putpong": 8}})
    assert switch.fix is not None
    assert " ".join(switch.fix.argv[2:]) == "putpong -t shm -n 4 -o x=y --bytes 256:32K --refine --launches 1"
    (known,) = switches(
        stepped(2048, 1500.0, "shm", **options, sizes=sorted({*SIZES, 2056})), plan={"grains": {"putpong": 8}}
    )
    assert (known.subject.sizes_bytes, known.fix) == ((2048, 2056), None)


def test_the_fix_measures_between_the_same_hosts() -> None:
    plan = {"hosts": [f"n{number}" for number in range(1, 9)]}
    (switch,) = switches(stepped(2048, 1500.0, "tcp/1"), plan=plan)
    assert switch.fix is not None
    assert switch.fix.argv[3:9] == ("-t", "tcp", "--hosts", "n[1-8]", "--per-node", "1")


def test_a_refined_run_that_does_not_know_the_place_takes_longer() -> None:
    (switch,) = switches(stepped(128, 1500.0), plan={"exact": True, "time_s": 25.0})
    assert switch.fix is not None
    assert switch.fix.argv[-2:] == ("--time", "50s")


@pytest.mark.parametrize(("cache_bytes", "is_cause"), [(64, False), (128, True), (512, True), (1024, False)])
def test_a_cache_that_ends_where_the_time_jumps_may_be_the_cause(cache_bytes: int, is_cause: bool) -> None:
    """The buffers of sender and receiver share it. It costs no more than the message takes from the slowest memory."""
    facts = {"topology": {"caches": [{"level": 2, "kind": "unified", "size_bytes": cache_bytes}]}}
    (small,) = switches(stepped(128, 100.0), facts=facts)
    assert (small.cause == "cache") is is_cause
    (large,) = switches(stepped(128, 1500.0), facts=facts)
    assert large.cause == ""


@pytest.mark.parametrize("seed", range(20))
def test_a_straight_curve_with_noise_shows_nothing(seed: int) -> None:
    random = np.random.default_rng(seed)
    start_ns, slope = 10 ** random.uniform(1.5, 5), 10 ** random.uniform(-2, 0)
    made = curve(line(start_ns, slope), transport="udp", random=random)
    codes = {finding.code for finding in explain(reading(made)).findings}
    assert codes.isdisjoint({"protocol switch", "bend", "cache limit"})


def test_five_sizes_can_hold_no_switch() -> None:
    assert not_checked("protocol switches", reading(curve(sizes=SIZES[:5]))).reason is Absence.INSUFFICIENT_DATA


def test_wide_intervals_make_no_switch() -> None:
    assert switches(stepped(2048, 20.0, "udp", precision=0.2)) == []


@pytest.mark.parametrize("seed", range(10))
def test_a_jump_that_two_launches_do_not_establish_is_suspected(seed: int) -> None:
    """Times of two launches that differ by some per cent, and three times as long from 4 KiB on."""
    random = np.random.default_rng(seed)

    def times(size: int) -> float:
        return (700 if size < 4096 else 2100) + 0.1 * size

    made = smooth.curve_of(times, 0.03, random, is_of_two=True)
    around = [one for one in switches(made) if one.subject.sizes_bytes[0] <= 2048 < 4096 <= one.subject.sizes_bytes[-1]]
    assert [(one.code, one.facts["answer"]) for one in around] == [("protocol switch", "suspected")]
    assert around[0].fix is not None
    assert around[0].effect > 0.25


@pytest.mark.parametrize("made", [smooth.straight, smooth.knee, smooth.power])
def test_smooth_curves_of_two_launches_are_seldom_suspected(made: Callable[..., smooth.Times]) -> None:
    count = smooth.answers(made, 0.1, 40, is_of_two=True)
    assert count["confirmed"] == 0
    assert count["suspected"] <= 4


# ---- bends and curves -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "after", "at"), [(0.5, 0.05, 2048), (0.05, 0.5, 3000)])
def test_a_change_of_slope_is_a_bend_and_no_switch(before: float, after: float, at: int) -> None:
    made = curve(lambda size: 500 + before * min(size, at) + after * max(0, size - at), sizes=LONG)
    (bend,) = switches(made)
    assert bend.code == "bend"
    assert bend.subject.sizes_bytes[0] <= at <= bend.subject.sizes_bytes[1]
    assert bend.facts["slope_ratio"].value == pytest.approx(after / before, rel=0.1)
    straight_ns = 500 + before * LONG[-1]
    assert bend.effect == pytest.approx(abs(made.points[-1].time_ns.value / straight_ns - 1), rel=0.05)


def test_a_bend_may_be_documented() -> None:
    """A single copy from 8 KiB on, which takes longer to begin and less for each byte: 8 KiB is near both lines."""

    def time_ns(size: int) -> float:
        return 1300 + (0.43 * size if size < 8192 else 3200 + 0.05 * size)

    (bend,) = switches(curve(time_ns, transport="mpi@mpich-5.0.2", sizes=LONG))
    assert (bend.code, bend.cause, bend.subject.sizes_bytes) == ("bend", "documented", (4096, 16384))
    assert [source.rpartition("/")[2] for source in bend.sources] == ["iqueue_init.c", "cma_post.h"]


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_smooth_curves_are_no_confirmed_switches(noise: float) -> None:
    confirmed = suspected = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        times = knee(random, 4.1)
        noisy = {size: times(size) * (1 + noise * random.standard_normal()) for size in SIZES}
        made = curve(noisy.__getitem__, transport="udp", precision=1.96 * noise)
        findings = switches(made)
        assert sum(finding.code == "bend" for finding in findings) <= 1
        confirmed += any(finding.facts.get("answer") == "confirmed" for finding in findings)
        suspected += any(finding.facts.get("answer") == "suspected" for finding in findings)
    assert confirmed == 0
    assert suspected <= 10


def udp(time_ns: Callable[[int], float], precision: float = 0.001) -> MeasuredCurve:
    """Of no documented limit, from 4 B to 2 MiB."""
    return curve(time_ns, transport="udp", sizes=[4 << n for n in range(20)], precision=precision)


@pytest.mark.parametrize(("precision", "cause"), [(0.09, "curved"), (0.11, "noisy")])
def test_a_curve_like_a_root_is_curved_once_if_its_intervals_are_within_a_tenth(precision: float, cause: str) -> None:
    (bend,) = switches(udp(lambda size: 100 + 20 * size**0.5, precision))
    assert (bend.code, bend.cause) == ("bend", cause)


@pytest.mark.parametrize(
    ("code", "made"),
    [
        ("slow size", lambda part: udp(lambda size: (500 + 0.1 * size) * (1 + part * (size == 512)))),
        ("bend", lambda part: udp(lambda size: 100 + 0.5 * size + 0.5 * part * max(0, size - 16384))),
        ("protocol switch", lambda part: udp(lambda size: 1000 * (1 + part * (size > 512)), 0.1)),
    ],
    ids=["a size over its line", "a slope", "a jump that may be none"],
)
def test_a_change_is_told_from_a_quarter_on(code: str, made: Callable[[float], MeasuredCurve]) -> None:
    assert [[each.code for each in switches(made(part))] for part in (0.22, 0.3)] == [[], [code]]


@pytest.mark.parametrize(("power", "codes"), [(0.97, []), (0.96, ["bend"])], ids=["23 %", "29 %"])
def test_a_curve_is_told_from_a_quarter_off_its_first_line_on(power: float, codes: list[str]) -> None:
    made = udp(lambda size: 100 + size**power)
    assert isinstance(made.segments, SegmentFit)
    assert made.segments.curved
    assert [each.code for each in switches(made)] == codes
