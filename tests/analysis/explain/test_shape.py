"""Detectors of one curve, on curves of known truth: what is there is found, what is not is not invented."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.analysis.explain.readings import SIZES, curve, found, lacking, lacking_of, line, reading

from hockney.analysis.explain import explain
from hockney.analysis.explain.curve import Curve
from hockney.analysis.explain.thresholds import thresholds_of


def stepped(at: int, jump_ns: float, start_ns: float = 500.0, ns_per_byte: float = 0.1) -> Curve:
    return curve(
        lambda size: start_ns + ns_per_byte * size + (jump_ns if size > at else 0.0), transport="mpi@openmpi-4.1.4"
    )


@pytest.mark.parametrize(("next_bytes", "is_told"), [(512, True), (4096, False)])
def test_a_line_that_begins_far_off_says_nothing_of_short_messages(next_bytes: int, is_told: bool) -> None:
    """The shortest takes what the line gives for 10 times its size."""
    sizes = (32, *(next_bytes * factor for factor in (1, 2, 4, 8)))
    found_ = found("latency independent of size", reading(curve(lambda size: max(size, 320) * 1.0, sizes=sizes)))
    assert bool(found_) is is_told


def test_a_jump_is_a_switch_with_its_place_its_height_and_what_the_library_documents() -> None:
    (switch,) = found("protocol switches", reading(stepped(2048, 1500.0)))
    assert switch.kind == "protocol switch"
    assert switch.sizes_bytes == (2048, 4096)
    (jump,) = [one.value for one in switch.evidence if one.what == "jump"]
    assert jump.low <= 1500 <= jump.high
    assert "btl_vader_eager_limit, 4 KiB" in switch.sentence
    assert [one.rpartition("/")[2] for one in switch.sources] == ["btl_vader_component.c"]
    assert switch.remedy == (
        "`hockney run pingpong -t mpi@openmpi-4.1.4 -n 2 --bytes 256:32K --refine --launches 1` looks for the place, "
        "to a byte."
    )


def test_the_remedy_measures_the_same_curve_as_closely_as_its_sizes_lie() -> None:
    made = curve(lambda size: 500 + 0.1 * size + (1500.0 if size > 2048 else 0), "putpong", ranks=4, options={"x": "y"})
    (switch,) = found("protocol switches", reading(made, grains={"putpong": 8}))
    assert switch.remedy == (
        "`hockney run putpong -t shm -n 4 -o x=y --bytes 256:32K --refine --launches 1` looks for the place, to 8 B, "
        "as closely as its sizes lie."
    )
    sizes = sorted({*SIZES, 2056})
    close = curve(lambda size: 500 + 0.1 * size + (1500.0 if size > 2048 else 0), "putpong", sizes=sizes)
    (known,) = found("protocol switches", reading(close, grains={"putpong": 8}))
    assert known.sizes_bytes == (2048, 2056)
    assert known.kind == "jump", "hockney's own sizes are documented, and none of them lies there"
    assert known.remedy is None


def test_a_run_that_looked_for_the_place_in_vain_is_told_to_take_longer() -> None:
    (switch,) = found("protocol switches", reading(stepped(2048, 1500.0), refined_s=25.0))
    assert switch.remedy == (
        "This run does not know the place to a byte: `hockney run pingpong -t mpi@openmpi-4.1.4 -n 2 "
        "--bytes 256:32K --refine --launches 1 --time 50s` looks around it alone, for twice as long."
    )


def test_a_rise_in_two_small_steps_has_no_place_to_look_for() -> None:
    """9 % from 16,000 to 19,000 B, half of it up to 17,500 B, which lies on neither line."""
    sizes = [1000, 2000, 4000, 8000, 16_000, 17_500, 19_000, 32_000, 64_000, 128_000]
    made = curve(lambda size: (10_000 + 0.01 * size) * (1 + 0.045 * ((size > 16_000) + (size > 18_000))), sizes=sizes)
    (switch,) = found("protocol switches", reading(made))
    assert (switch.kind, switch.sizes_bytes) == ("jump", (16_000, 19_000))
    assert switch.remedy is None


def test_a_jump_downwards_falls() -> None:
    (switch,) = found("protocol switches", reading(stepped(2048, -300.0)))
    assert switch.kind == "protocol switch"
    assert "the time of pingpong falls by 300 ns" in switch.sentence
    assert 0.3 < switch.effect < 0.5
    (jump,) = [one.value for one in switch.evidence if one.what == "jump"]
    assert jump.low <= -300 <= jump.high


def test_a_threshold_in_a_wide_range_is_not_said_to_be_the_switch() -> None:
    sizes = (8, 64, 512, 1024, 8192, 65536, 131072, 1 << 20)
    made = curve(
        lambda size: 500 + 0.1 * size + (5000 if size > 1024 else 0), transport="mpi@openmpi-4.1.4", sizes=sizes
    )
    (switch,) = found("protocol switches", reading(made))
    assert switch.sizes_bytes == (1024, 8192)
    assert "Documented there" not in switch.sentence
    assert "In that range lies btl_vader_eager_limit, 4 KiB" in switch.sentence


def test_a_jump_elsewhere_is_said_to_be_undocumented() -> None:
    (switch,) = found("protocol switches", reading(stepped(128, 1500.0)))
    assert switch.sizes_bytes == (128, 256)
    assert "No documented threshold" in switch.sentence
    assert switch.sources == ()


@pytest.mark.parametrize(
    ("cache_bytes", "is_there"), [(64, False), (128, True), (256, True), (512, True), (1024, False)]
)
def test_a_cache_that_ends_where_the_time_jumps_is_named(cache_bytes: int, is_there: bool) -> None:
    """Two buffers share it: what is sent, and what is received."""
    facts = {"topology": {"caches": [{"level": 2, "kind": "unified", "size_bytes": cache_bytes}]}}
    (switch,) = found("protocol switches", reading(stepped(128, 100.0), facts=facts))
    assert ("cache" in switch.sentence) == is_there
    assert (f"At about that size ends the L2 cache, {cache_bytes} B, which" in switch.sentence) == is_there
    # The whole message doesn't take so long from the slowest of memories.
    (switch,) = found("protocol switches", reading(stepped(128, 1500.0), facts=facts))
    assert "cache" not in switch.sentence


@pytest.mark.parametrize(("above_bytes", "is_there"), [(4097, False), (4128, False), (4160, True)])
def test_a_jump_whose_place_is_known_well_is_no_caches(above_bytes: int, is_there: bool) -> None:
    made = curve(
        lambda size: 500 + 0.1 * size + (1500.0 if size > 4096 else 0),
        sizes=sorted({*SIZES, above_bytes}),
        transport="udp",
    )
    facts = {"topology": {"caches": [{"level": 1, "kind": "data", "size_bytes": 4096}]}}
    (switch,) = found("protocol switches", reading(made, facts=facts))
    assert switch.sizes_bytes == (4096, above_bytes)
    assert ("cache" in switch.sentence) is is_there


def test_thresholds_hold_for_the_versions_they_are_of() -> None:
    def library(name: str) -> str:
        made = curve(lambda size: 500 + 0.1 * size + (2000 if size > 4096 else 0), transport=name)
        (switch,) = found("protocol switches", reading(made))
        return str(switch.sentence)

    assert "IQUEUE_CELL_SIZE" in library("mpi@mpich-5.0.2")
    assert "IQUEUE_CELL_SIZE" not in library("mpi@mpich-4.0.2")  # its cells hold 68 KiB
    assert "IQUEUE_CELL_SIZE" not in library("mpi@mpich")  # of no known version


def test_what_ucx_copies_in_one_piece_is_a_threshold_of_the_mpich_over_it() -> None:
    made = curve(lambda size: 500 + 0.1 * size + (2000 if size > 8255 else 0), transport="mpi@mpich-4.0.2")
    (switch,) = found("protocol switches", reading(made))
    assert switch.sizes_bytes == (8192, 16384)
    assert "Documented there: UCX_POSIX_SEG_SIZE, UCX_SYSV_SEG_SIZE, 8,256 B" in switch.sentence
    assert "with ch4:ucx, what" in switch.sentence  # a run of an earlier version doesn't say which it was


def test_of_a_known_build_only_its_own_sizes_are_quoted() -> None:
    def told(device: str, last_bytes: int) -> str:
        transport, sizes = "mpi@mpich-4.0.2", [*SIZES, 131072, 262144, 524288]
        made = curve(
            lambda size: 500 + 0.1 * size + (9000 if size > last_bytes else 0), transport=transport, sizes=sizes
        )
        known = reading(made, libraries={transport: f"MPICH 4.0.2 ({device})"})
        return " ".join(one.sentence for one in found("protocol switches", known))

    for device, last_bytes, name in (("ch4:ucx", 8192, "UCX_POSIX_SEG_SIZE"), ("ch4:ofi", 65536, "IQUEUE_CELL_SIZE")):
        assert f"Documented there: {name}" in told(device, last_bytes).replace("MPIR_CVAR_CH4_SHM_POSIX_", "")
        assert f"with {device}," not in told(device, last_bytes)
        assert name not in told("ch3:nemesis", last_bytes)


@pytest.mark.parametrize(
    ("library", "documented"),
    [
        ("MPICH 5.0.2 (ch4:ucx ofi)", ["IQUEUE_CELL_SIZE", "IPC_CMA_P2P_THRESHOLD"]),
        ("MPICH 5.0.2 (ch4)", ["IQUEUE_CELL_SIZE", "IPC_CMA_P2P_THRESHOLD"]),
        ("MPICH 5.0.2 (ch3:nemesis)", []),
        ("MPICH 4.0.2 (ch4:ofi:tcp)", ["IQUEUE_CELL_SIZE"]),
        ("MPICH 4.0.2 (ch4:ucx ofi)", ["UCX_POSIX_SEG_SIZE, UCX_SYSV_SEG_SIZE"]),
        ("MPICH 4.0.2 (ch4:ofix)", []),
        ("Open MPI 4.1.4 (ob1:vader:cma tcp)", ["btl_vader_eager_limit", "btl_vader_max_send_size"]),
        ("Open MPI 4.1.4 (ob1:tcp)", ["btl_tcp_eager_limit"]),
        ("Open MPI 5.0.11 (ob1:tcp)", ["btl_tcp_eager_limit"]),
        ("Open MPI 4.1.4 (cm:ofi)", []),
        ("Open MPI 5.0.11 (ob1:sm:cma tcp)", ["btl_sm_eager_limit"]),
    ],
)
def test_a_size_of_a_device_is_that_of_all_builds_whose_device_begins_with_it(
    library: str, documented: list[str]
) -> None:
    name, version = library.partition(" (")[0].rsplit(maxsplit=1)
    known = thresholds_of(f"mpi@{name.lower().replace(' ', '')}-{version}", {}, library)
    assert [one.name.removeprefix("MPIR_CVAR_CH4_").removeprefix("SHM_POSIX_") for one in known] == documented


@pytest.mark.parametrize(
    ("transport", "name", "first_bytes"),
    [
        ("pipe", "capacity of a pipe", 65537),
        ("shm", "hockney's own word beside the number", 9),
        ("threads", "hockney's own first cache line", 49),
        ("threads", "hockney's own single copy", 257),
        ("mpi@openmpi-4.1.4", "btl_vader_eager_limit", 4041),  # with its header, 4,096 B hold 4,040
        ("mpi@openmpi-4.1.4", "btl_tcp_eager_limit", 65481),
        ("mpi@mpich-4.0.2", "UCX_POSIX_SEG_SIZE", 8256),
        ("mpi@mpich-5.0.2", "MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_CELL_SIZE", 8113),
        ("mpi@mpich-5.0.2", "MPIR_CVAR_CH4_IPC_CMA_P2P_THRESHOLD", 8192),  # messages as long, too
    ],
)
def test_a_threshold_lies_between_the_last_size_before_the_change_and_the_first_after_it(
    transport: str, name: str, first_bytes: int
) -> None:
    (threshold,) = [one for one in thresholds_of(transport, {}) if one.name.startswith(name)]
    assert threshold.lies_between(first_bytes - 1, first_bytes)
    assert not threshold.lies_between(first_bytes, first_bytes + 1)
    assert not threshold.lies_between(first_bytes - 2, first_bytes - 1)


def test_a_pipe_that_is_just_full_is_not_documented_to_wait_but_right_beside_it() -> None:
    sizes = [*SIZES, 131072, 262144, 524288, 1 << 20]

    def told(last_bytes: int) -> str:
        made = curve(lambda size: 500 + 0.1 * size + (40000 if size > last_bytes else 0), transport="pipe", sizes=sizes)
        (switch,) = found("protocol switches", reading(made))
        assert switch.sizes_bytes == (last_bytes, 2 * last_bytes)
        return str(switch.sentence)

    assert "Documented right beside it: capacity of a pipe, 64 KiB by default" in told(32768)
    assert "capacity of a pipe" not in told(16384)
    assert "Documented there: capacity of a pipe, 64 KiB by default" in told(65536)


def test_nothing_seen_needs_two_sizes_on_either_side_of_the_change() -> None:
    """A line that begins at the last size before the change, or ends at the first after it, follows that size."""
    name, sizes = "nothing at a documented size", [*SIZES, 131072, 262144, 524288, 1 << 20]
    through = curve(line(), transport="pipe", sizes=sizes)
    (unseen,) = found(name, reading(through))
    assert unseen.sizes_bytes == (65536, 131072)
    begun = curve(lambda size: 500 + 0.1 * size + (40000 if size > 32768 else 0), transport="pipe", sizes=sizes)
    assert found(name, reading(begun)) == []
    ended = curve(line(), transport="pipe", sizes=[size for size in sizes if size <= 131072])
    assert found(name, reading(ended)) == []


def test_a_size_off_its_line_beside_a_documented_size_is_not_nothing() -> None:
    name, sizes = "nothing at a documented size", [*SIZES, 131072, 262144, 524288, 1 << 20]
    spiked = curve(lambda size: (500 + 0.1 * size) * (1.7 if size == 65536 else 1), transport="pipe", sizes=sizes)
    assert found(name, reading(spiked)) == []


def test_nothing_is_said_of_sizes_that_only_some_builds_have() -> None:
    made = curve(line(), transport="mpi@mpich-4.0.2", sizes=[*SIZES, 131072, 262144, 524288])
    assert {one.is_of_build for one in thresholds_of(made.transport, {})} == {True}
    assert found("nothing at a documented size", reading(made)) == []
    known = reading(made, libraries={made.transport: "MPICH 4.0.2 (ch4:ofi)"})
    (unseen,) = found("nothing at a documented size", known)
    assert "IQUEUE_CELL_SIZE" in unseen.sentence
    assert "UCX" not in unseen.sentence


def test_a_library_is_asked_by_the_programs_beside_its_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(transport: str, size: int, launcher: str) -> str:
        made = curve(lambda at: 500 + 0.1 * at + (2000 if at > size else 0), transport=transport)
        (switch,) = found("protocol switches", reading(made, launchers={transport: launcher}))
        return str(switch.sentence)

    def program(path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)

    for name in ("own/mpivars", "own/ompi_info", "path/mpivars", "path/ucx_info"):
        program(tmp_path / name)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    own, other = f"{tmp_path}/own", f"{tmp_path}/other"
    assert f"(see {own}/mpivars)" in told("mpi@mpich-5.0.2", 4096, f"{own}/mpiexec")
    assert "(see mpivars)" in told("mpi@mpich-5.0.2", 4096, "mpiexec")
    assert f"(see {own}/ompi_info --param" in told("mpi@openmpi-4.1.4", 2048, f"{own}/mpiexec")
    assert "(see ucx_info -f)" in told("mpi@mpich-4.0.2", 8192, f"{own}/mpiexec")
    # Where there is no such program, nobody is sent to it: the documentation is named. One on the PATH is another's.
    assert "(see https://github.com/pmodels/mpich/" in told("mpi@mpich-5.0.2", 4096, f"{other}/mpiexec")
    monkeypatch.setenv("PATH", other)
    assert "(see https://github.com/openucx/ucx/" in told("mpi@mpich-4.0.2", 8192, f"{own}/mpiexec")
    assert "(see docs/transports.md" in told("shm", 256, "")


def test_a_documented_size_that_the_curve_passes_straight_is_said_once() -> None:
    name = "nothing at a documented size"
    made = stepped(2048, 1500.0)
    libraries = {made.transport: "Open MPI 4.1.4 (ob1:vader tcp)"}
    (unseen,) = found(name, reading(made, libraries=libraries))
    # The eager limit is seen; the longest fragment, 32 KiB with its header, is not.
    assert "btl_vader_max_send_size, 32 KiB by default" in unseen.sentence
    assert "btl_vader_eager_limit" not in unseen.sentence
    assert unseen.effect == 0
    all_of_it = explain(reading(made, libraries=libraries)).findings
    assert len([one for one in all_of_it if one.kind == unseen.kind]) == 1
    assert found(name, reading(made)) == []  # of a run that doesn't tell what carried its bytes
    # Sizes too far apart don't tell, and a curve that misses its lines neither.
    few = (8, 64, 512, 1024, 8192, 262144, 1 << 20, 4 << 20)
    assert found(name, reading(curve(line(), transport="mpi@openmpi-4.1.4", sizes=few))) == []
    assert "no size is documented" in lacking(name, reading(curve(line(), transport="udp")))


def test_the_buffers_of_tcp_are_those_of_the_machine() -> None:
    made = curve(lambda size: 5000 + 0.3 * size + (9000 if size > 8192 else 0), transport="tcp")
    # The send buffer is no threshold: the kernel makes it larger as soon as a connection stands.
    facts = {"network": {"tcp_send_buffer_bytes": 8192, "tcp_receive_buffer_bytes": 8192}}
    (switch,) = found("protocol switches", reading(made, facts=facts))
    assert "Documented there: net.ipv4.tcp_rmem (default), 8 KiB here: " in switch.sentence
    assert "tcp_wmem" not in switch.sentence
    (elsewhere,) = found("protocol switches", reading(made, facts={}))
    assert "No documented threshold" in elsewhere.sentence


@pytest.mark.parametrize("first_bytes", [65400, 65500])
def test_sizes_close_together_beyond_a_jump_are_the_way_and_no_bend(first_bytes: int) -> None:
    """As where `--refine` looked for a limit at the longest size of a run."""
    sizes = [*(1 << k for k in range(16)), 61440, 63488, 64512, 65024, 65152, 65344, 65535, 65536]
    made = curve(lambda size: 10000 + 0.037 * size + (8200 if size >= first_bytes else 0), sizes=sizes, transport="udp")
    (rise,) = found("protocol switches", reading(made))
    assert rise.kind == "gradual rise"
    assert (
        "From 65,152 B to 64 KiB the time of pingpong goes from 12.4 us to 20.6 us, where the line of" in rise.sentence
    )


def test_bytes_that_cost_more_from_between_two_sizes_on_are_a_bend_and_no_switch() -> None:
    made = curve(lambda size: 500 + 0.05 * min(size, 3000) + 0.5 * max(0, size - 3000), sizes=[*SIZES, 131072, 262144])
    (bend,) = found("protocol switches", reading(made))
    assert bend.kind == "bend"
    assert bend.sizes_bytes == (2048, 4096)
    assert bend.sentence.endswith("times.")


def test_beside_a_bend_stands_what_is_documented_there() -> None:
    """A single copy from 8 KiB on, which takes longer to begin and less for each byte."""
    sizes = [*SIZES, 131072, 262144]
    made = curve(lambda size: 1300 + (0.43 * size if size < 8192 else 3200 + 0.05 * size), transport="mpi@mpich-5.0.2",
                 sizes=sizes)  # fmt: skip
    (bend,) = found("protocol switches", reading(made))
    assert (bend.kind, bend.sizes_bytes) == ("bend", (4096, 8192))
    assert "Documented there: " in bend.sentence
    assert "MPIR_CVAR_CH4_IPC_CMA_P2P_THRESHOLD" in bend.sentence
    # Each of what is quoted has its source, where the same one is said once.
    assert [one.rpartition("/")[2] for one in bend.sources] == ["iqueue_init.c", "cma_post.h"]


def test_a_change_of_slope_is_a_bend_and_no_switch() -> None:
    made = curve(lambda size: 500 + 0.5 * min(size, 2048) + 0.05 * max(0, size - 2048), sizes=[*SIZES, 131072, 262144])
    (bend,) = found("protocol switches", reading(made))
    assert bend.kind == "bend"
    assert 1024 <= bend.sizes_bytes[0] <= 4096
    # At 256 KiB the line of before would have come to 0.5 ns a byte, nine times as much.
    assert bend.effect == pytest.approx(1 - (500 + 0.45 * 2048 + 0.05 * 262144) / (500 + 0.5 * 262144), rel=0.05)


@pytest.mark.parametrize("seed", range(20))
def test_a_straight_curve_with_noise_shows_nothing(seed: int) -> None:
    random = np.random.default_rng(seed)
    start_ns, slope = 10 ** random.uniform(1.5, 5), 10 ** random.uniform(-2, 0)
    kinds = {
        one.kind for one in explain(reading(curve(line(start_ns, slope), transport="udp", random=random))).findings
    }
    assert kinds <= {"flat latency"}


def test_five_sizes_can_hold_no_switch() -> None:
    assert "six sizes" in lacking("protocol switches", reading(curve(sizes=SIZES[:5])))


def test_a_rate_that_falls_beyond_a_cache() -> None:
    made = curve(lambda size: 10 + 0.05 * size + (0.15 * size if size > 8192 else 0), "oneway")
    (fall,) = found("a bandwidth that falls beyond a cache", reading(made))
    assert fall.sizes_bytes == (4096, 65536)
    assert "L2 cache, 8 KiB" in fall.sentence


@pytest.mark.parametrize(
    ("last_bytes", "beyond_ns_per_byte", "told"),
    [(8255, 0.0, []), (8255, 1.0, [(24576, 262144)]), (40000, 0.0, []), (40000, 1.0, [(24576, 262144)])],
)
def test_a_fall_that_a_jump_explains_is_no_caches(
    last_bytes: int, beyond_ns_per_byte: float, told: list[tuple[int, ...]]
) -> None:
    """After a rendezvous rates rise again, however far below the best one of short messages, but for what a cache does.

    It holds 48 KiB, beyond which each byte may cost more; the jump lies below it, or where it ends.
    """
    sizes = sorted({*SIZES, last_bytes, last_bytes + 1, 24576, 131072, 262144})
    made = curve(
        lambda size: (
            (180 + 0.02 * size if size <= last_bytes else 2400 + 0.055 * size)
            + (beyond_ns_per_byte * size if size > 49152 else 0.0)
        ),
        sizes=sizes,
    )
    facts = {"topology": {"caches": [{"level": 1, "kind": "data", "size_bytes": 49152}]}}
    falls = found("a bandwidth that falls beyond a cache", reading(made, facts=facts))
    assert [one.sizes_bytes for one in falls] == told


def test_a_jump_that_is_not_told_explains_no_fall() -> None:
    """Jumps are told of one pattern of a place; what another one loses stands at the cache, or nowhere."""
    sizes = (8, 512, 4096, 32768, *(131072 << n for n in range(7)))
    facts = {"topology": {"caches": [{"level": 2, "kind": "unified", "size_bytes": 1 << 20}]}}
    smooth = curve(line(500, 0.05), sizes=sizes)
    jumps = curve(
        lambda size: 300 + 0.05 * size if size <= 1 << 19 else 60_000 + 0.07 * size, sizes=sizes, pattern="oneway"
    )
    (fall,) = found("a bandwidth that falls beyond a cache", reading(smooth, jumps, facts=facts))
    assert "oneway" in fall.sentence
    assert found("a bandwidth that falls beyond a cache", reading(jumps, facts=facts)) == []


def test_a_rate_that_only_grows_does_not_fall() -> None:
    assert found("a bandwidth that falls beyond a cache", reading(curve(pattern="oneway"))) == []


def test_a_cache_larger_than_every_message_is_said() -> None:
    facts = {"topology": {"caches": [{"level": 3, "kind": "unified", "size_bytes": 1 << 25}]}}
    reason = lacking("a bandwidth that falls beyond a cache", reading(curve(), facts=facts))
    assert "here they go from 8 B to 64 KiB, and the L3 holds 32 MiB" in reason
    assert reason.endswith("(`hockney run pingpong -t shm --bytes 8M:128M`)")


def test_each_cache_that_the_sizes_do_not_reach_is_said_beside_those_that_they_do() -> None:
    """So of a run of `quick`, whose sizes end at 1 MiB: the advice has sizes on both sides of each of them."""
    own = ((1, 8192), (2, 3 << 19), (3, 1 << 25))
    caches = [{"level": level, "kind": "unified", "size_bytes": size} for level, size in own]
    facts = {"topology": {"caches": caches}}
    told = lacking_of(explain(reading(curve(), facts=facts)))
    assert told["a bandwidth that falls beyond the L2 or L3 cache"] == (
        "needs sizes within and beyond it: here they go from 8 B to 64 KiB, and the L2 holds 1,536 KiB and the L3 "
        "holds 32 MiB (`hockney run pingpong -t shm --bytes 256K:128M`)"
    )
    followed = curve(sizes=[1 << n for n in range(18, 28)], pattern="oneway")
    told = lacking_of(explain(reading(curve(), followed, facts=facts)))
    assert not [name for name in told if name.startswith("a bandwidth that falls")]


def test_sizes_that_cost_nothing() -> None:
    (flat,) = found(
        "latency independent of size", reading(curve(lambda size: 500.0 if size <= 64 else 500 + 2.0 * size))
    )
    assert flat.subject.sizes_bytes == (8, 16, 32, 64)


def test_a_shortest_message_as_slow_as_the_line_makes_a_longer_one() -> None:
    made = curve(lambda size: 100 + 10.0 * max(size, 32), sizes=(4, 64, 256, 1024))
    (flat,) = found("latency independent of size", reading(made))
    reached = flat.facts["flat_bytes"]
    assert reached.low <= 32 <= reached.high


def test_a_size_that_costs_from_the_first_byte() -> None:
    assert found("latency independent of size", reading(curve(line(100, 10)))) == []


def test_wide_intervals_make_no_switch() -> None:
    made = curve(lambda size: 500 + 0.1 * size + (20.0 if size > 2048 else 0), precision=0.2)
    assert found("protocol switches", reading(made)) == []
