"""From suites and options to points: measured ones, skipped ones with the reason, and refusals."""

from __future__ import annotations

from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.analysis.predict.machines import model
from tests.builders import make_pattern, make_placement, make_stored, make_transport

from hockney.analysis.repeat import same_hosts
from hockney.cli.run_options import find_suite
from hockney.errors import UsageError
from hockney.measure.plan import Plan, _launches, make_plan
from hockney.model import PatternTraits, Point
from hockney.report.document import Table
from hockney.report.documents.plan import plan_document
from hockney.suites import Limits, Suite, pattern_suite
from hockney.worker.catalogue import Catalogue, OptionInfo, TransportInfo, load
from hockney.worker.hosts import parse_hosts
from hockney.worker.libraries import Missing
from hockney.worker.placement import Placement
from hockney.worker.points import RunOptions
from hockney.worker.words import check_words

WINDOW = OptionInfo("window", (), "1", 1, 1024, "")
UNTIL = OptionInfo("until", ("acked", "sent"), "acked", 0, 0, "")
SOURCE = OptionInfo("source", (), "0", 0, 4095, "")
TARGET = OptionInfo("target", (), "1", 0, 4095, "")
DISTANCE = OptionInfo("distance", (), "1", 1, 4095, "")
ROUND = OptionInfo("round", (), "1", 1, 4095, "")
SEND = frozenset({"send"})
BOTH = frozenset({"send", "nonblocking"})


def transport(name: str, caps: frozenset[str] = BOTH, max_bytes: int = 0) -> TransportInfo:
    return make_transport(name, caps, max_bytes=max_bytes)


CATALOGUE = Catalogue(
    patterns={
        "pingpong": make_pattern("pingpong", SEND, (2, 0, 1), "root"),
        "oneway": make_pattern("oneway", BOTH, (2, 0, 1), "root", (UNTIL, WINDOW)),
        "pairs": make_pattern("pairs", SEND, (2, 0, 2), "sources"),
        "put": make_pattern("put", SEND, (2, 0, 1), "root", (SOURCE, TARGET)),
        "rounds": make_pattern("rounds", SEND, (2, 0, 1), "slowest", (ROUND,)),
        "ring": make_pattern("ring", SEND, (2, 0, 1), "mean", (DISTANCE,)),
        "memload": make_pattern("memload", (), (1, 1, 1), "root", grain_bytes=64),
        "barrier": make_pattern("barrier", SEND, (2, 0, 1), "slowest", sized=False),
    },
    transports={
        name: transport(name)
        for name in ("shm", "tcp", "tcp:spin", "mpi@openmpi-4.1.4", "mpi@mpich-4.0.2", "mpi@mpich-5.0.2:sync")
    }
    | {"udp": make_transport("udp", BOTH, worker_name="udp")},
    missing=(Missing("pvm", "pvmd is not installed", "apt install pvm"),),
)


def suite(**series: object) -> Suite:
    return Suite.model_validate({"name": "s", "title": "S", "transports": ["shm"], "series": [series]})


def points(plan: Plan) -> set[tuple[str, str, int, int]]:
    return {(p.transport, p.pattern, p.ranks, p.bytes) for p in plan.points}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ((("source", "1"),), "source and target must differ, but both are rank 1"),  # target is 1 by itself
        ((("source", "2"), ("target", "0")), "source is rank 2, and the last of 2 ranks is 1"),
        ((("target", "3"),), "target is rank 3, and the last of 2 ranks is 1"),
        ((("source", "1"), ("target", "0")), None),
    ],
)
def test_ends_that_cannot_be_are_refused_before_anything_runs(
    options: tuple[tuple[str, str], ...], why: str | None
) -> None:
    plan = make_plan(suite(pattern="put", bytes="8:16"), RunOptions(options=options), CATALOGUE, cpus=2)
    assert {skipped.reason for skipped in plan.skipped} == ({why} if why else set())
    assert len(plan.points) == (0 if why else 2)


@pytest.mark.parametrize(
    ("time_s", "asked_s", "limit_s"),
    [(None, None, 60), (5, None, 20), (33, None, 33), (7200, None, 60), (5, 300, 300), (7200, 1, 1)],
)
def test_the_limit_of_a_measurement_follows_the_budget_unless_it_is_asked_for(
    time_s: float | None, asked_s: int | None, limit_s: int
) -> None:
    limits = suite(pattern="pingpong").limits(time_s=time_s, timeout_s=asked_s)
    assert (limits.timeout_s, limits.limit_adapts) == (limit_s, asked_s is None)


@pytest.mark.parametrize(("asked_s", "limit_s"), [(None, 60), (1, 10), (30, 30), (600, 600)])
def test_the_limit_of_a_start_is_the_one_asked_for_but_long_enough(asked_s: int | None, limit_s: int) -> None:
    limits = suite(pattern="pingpong").limits(time_s=5, timeout_s=asked_s)
    plan = make_plan(suite(pattern="pingpong"), RunOptions(limits=limits), CATALOGUE, cpus=2)
    again = Plan.of_run(make_stored("s", plan.as_json()), ())
    assert again.limits.start_limit_s == plan.limits.start_limit_s == limit_s


def test_of_a_series_own_transports_those_asked_for_stay() -> None:
    plan_suite = suite(pattern="pingpong", transports=["shm", "tcp"])
    plan = make_plan(plan_suite, RunOptions(transports=("shm",)), CATALOGUE, cpus=4)
    assert {point.transport for point in plan.points} == {"shm"}
    with pytest.raises(UsageError, match="no series of s is for udp: name one of shm, tcp"):
        make_plan(plan_suite, RunOptions(transports=("udp",)), CATALOGUE, cpus=4)


def test_of_a_series_own_transports_the_variants_of_those_asked_for_stay() -> None:
    """So that Com-1.1 has the synchronous send next to the plain one: `run atlas -t shm`."""
    plan_suite = suite(pattern="pingpong", transports=["tcp:spin", "mpi:sync"])
    plan = make_plan(plan_suite, RunOptions(transports=("tcp",)), CATALOGUE, cpus=4)
    assert {point.transport for point in plan.points} == {"tcp:spin"}


def test_a_grid() -> None:
    plan = make_plan(suite(pattern="pingpong", ranks=[2, 4], bytes="8:16"), RunOptions(), CATALOGUE, cpus=4)
    assert points(plan) == {("shm", "pingpong", ranks, size) for ranks in (2, 4) for size in (8, 16)}
    assert not plan.skipped
    assert not plan.refine


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("mpi",), ["mpi@openmpi-4.1.4", "mpi@mpich-4.0.2"]),
        (("mpi@mpich",), ["mpi@mpich-4.0.2"]),
        (("mpi:sync",), ["mpi@mpich-5.0.2:sync"]),
        (("tcp",), ["tcp"]),
        (("tcp*",), ["tcp", "tcp:spin"]),
        (("tcp:*", "shm", "tcp:spin"), ["tcp:spin", "shm"]),
        (("mpi:*",), ["mpi@mpich-5.0.2:sync"]),
        (("mpi:s*",), ["mpi@mpich-5.0.2:sync"]),
        (("mpi@mpich:*",), ["mpi@mpich-5.0.2:sync"]),
        (("mpi@*",), ["mpi@openmpi-4.1.4", "mpi@mpich-4.0.2", "mpi@mpich-5.0.2:sync"]),
    ],
)
def test_transports_are_selected_by_words(words: tuple[str, ...], names: list[str]) -> None:
    assert [info.name for info in CATALOGUE.select(words)] == names


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("mpi@foo", "known are mpi@openmpi-4.1.4, mpi@mpich-4.0.2"),
        ("mpi@mpihc-4.0.2", "did you mean 'mpi@mpich-4.0.2'?"),
        ("mpi@mpich:snc", "did you mean 'mpi@mpich-5.0.2:sync'?"),
    ],
)
def test_a_library_that_is_not_here_is_answered_with_the_nearest_or_all(word: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        CATALOGUE.select([word])
    assert str(refused.value).startswith(f"unknown transport '{word}': {hint}")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (RunOptions(transports=("shn",)), "unknown transport 'shn': did you mean 'shm'"),
        (RunOptions(transports=("pvm",)), "pvm is not here: pvmd is not installed; apt install pvm"),
        (RunOptions(options=(("windw", "2"),)), "unknown option of oneway 'windw': did you mean 'window'"),
        (RunOptions(options=(("distance", "2"),)), "s has no option 'distance': it is of ring"),
        (RunOptions(options=(("window", "0"),)), "window of oneway must be a whole number from 1 to 1024, not '0'"),
        (RunOptions(options=(("until", "later"),)), "until of oneway must be one of acked, sent, not 'later'"),
    ],
)
def test_unknown_words_are_refused(asked: RunOptions, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make_plan(suite(pattern="oneway"), asked, CATALOGUE, cpus=2)


def test_a_missing_variant_is_left_out_of_a_suite_but_not_of_options() -> None:
    listed = suite(pattern="pingpong", transports=["pvm:raw", "shm"])
    assert {point.transport for point in make_plan(listed, RunOptions(), CATALOGUE, 2).points} == {"shm"}
    with pytest.raises(UsageError, match="pvm:raw is not here: pvmd is not installed; apt install pvm"):
        make_plan(suite(pattern="pingpong"), RunOptions(transports=("pvm:raw",)), CATALOGUE, 2)


def test_a_family_without_a_working_library_has_the_reason() -> None:
    broken = Missing("mpi@lam-7.1", "gcc cannot compile it: mpi.h is not there", "repair or remove this library")
    others = {name: info for name, info in CATALOGUE.transports.items() if not name.startswith("mpi")}
    none = replace(CATALOGUE, transports=others, missing=(broken,))
    with pytest.raises(UsageError, match=r"mpi is not here: gcc cannot compile it: mpi\.h is not there; repair or"):
        make_plan(suite(pattern="pingpong"), RunOptions(transports=("mpi",)), none, 2)
    other = replace(CATALOGUE, missing=(broken,))
    assert make_plan(suite(pattern="pingpong"), RunOptions(transports=("mpi",)), other, 2).points
    with pytest.raises(UsageError, match="unknown transport 'mpi:bogus'"):  # not the fault of another library
        make_plan(suite(pattern="pingpong"), RunOptions(transports=("mpi:bogus",)), other, 2)
    with pytest.raises(UsageError, match=r"mpi@lam is not here: gcc cannot compile it"):
        make_plan(suite(pattern="pingpong"), RunOptions(transports=("mpi@lam",)), other, 2)


def test_an_unknown_pattern_is_asked_back() -> None:
    with pytest.raises(UsageError, match="unknown pattern 'pingpog': did you mean 'pingpong'"):
        make_plan(suite(pattern="pingpog"), RunOptions(), CATALOGUE, cpus=2)


@pytest.mark.parametrize(
    ("series", "asked", "reason"),
    [
        ({"pattern": "pairs", "ranks": 3}, RunOptions(oversubscribe=True), "a multiple of 2, not on 3"),
        (
            {"pattern": "pingpong", "ranks": 4},
            RunOptions(),
            "would measure the scheduler; allow this process more CPUs, or use run --oversubscribe",
        ),
        ({"pattern": "put"}, RunOptions(transports=("udp",)), "which udp does not offer"),
        ({"pattern": "pingpong", "bytes": 70000}, RunOptions(transports=("udp",)), "udp sends at most 65491 B"),
    ],
)
def test_points_that_cannot_run_are_skipped_with_the_reason(
    series: dict[str, object], asked: RunOptions, reason: str
) -> None:
    plan = make_plan(suite(**series), asked, CATALOGUE, cpus=2)
    assert not plan.points
    assert [reason in skipped.reason for skipped in plan.skipped] == [True]


def test_a_suite_of_sizes_that_a_transport_cannot_send_is_measured_at_the_largest_one_that_it_can() -> None:
    udp = {"udp": transport("udp", max_bytes=65491)}
    catalogue = replace(CATALOGUE, transports=CATALOGUE.transports | udp)

    def planned(*sizes: int, **asked: Any) -> set[int]:
        plan = make_plan(suite(pattern="oneway", bytes=sizes), RunOptions(**asked), catalogue, cpus=2)
        return {point.bytes for point in plan.points} | {skipped.point.bytes for skipped in plan.skipped}

    only_udp: dict[str, Any] = {"transports": ("udp",)}
    assert planned(65536, 1 << 20, **only_udp) == {32768, 65536, 1 << 20}
    assert planned(65491, 1 << 20, **only_udp) == {65491, 1 << 20}
    assert planned(65536, **only_udp, sizes=(65536,)) == {65536}  # what the user names is skipped with a reason
    assert planned(65536) == {65536}


@pytest.mark.parametrize("by_suite", [True, False])
def test_oversubscription_runs_when_asked_for(by_suite: bool) -> None:
    oversubscribed = suite(pattern="pingpong", ranks=4).model_copy(update={"oversubscribe": by_suite})
    plan = make_plan(oversubscribed, RunOptions(oversubscribe=not by_suite), CATALOGUE, cpus=2)
    assert points(plan) == {("shm", "pingpong", 4, 8)}
    assert plan.oversubscribe


def test_a_pattern_without_a_size_has_one_point() -> None:
    plan = make_plan(pattern_suite("barrier"), RunOptions(transports=("shm",)), CATALOGUE, cpus=2)
    assert points(plan) == {("shm", "barrier", 2, 0)}
    assert not plan.refine


def test_a_pattern_alone_is_started_as_often_as_an_interval_over_launches_needs_where_there_is_time() -> None:
    def launches(sizes: tuple[int, ...], time_s: float, asked: int | None = None) -> int:
        limits = pattern_suite("pingpong").limits(time_s=time_s, launches=asked)
        options = RunOptions(transports=("shm",), sizes=sizes, limits=limits)
        return make_plan(pattern_suite("pingpong"), options, CATALOGUE, cpus=2).limits.launches

    assert launches((8,), 3.0) == 6
    assert launches((8,), 1.5) == 6  # a quarter of a second of each for the point
    assert launches((8,), 1.49) == 1
    assert launches((8, 16, 32, 64), 3.0) == 1
    assert launches((8,), 3.0, asked=2) == 2
    assert [_launches([Point("mpi@x", "barrier", ranks, 8)], 8.0) for ranks in (2, 64)] == [6, 1]  # starts take longer
    asked = RunOptions(limits=suite(pattern="pingpong").limits(time_s=600.0))
    assert make_plan(suite(pattern="pingpong"), asked, CATALOGUE, cpus=2).limits.launches == 1


def test_a_point_has_the_traits_of_its_pattern_on_its_transport() -> None:
    """Nothing arrives over a transport that carries nothing."""
    traits = PatternTraits(stream=True, law="messages", links="ends", alone="pingpong")
    catalogue = Catalogue(
        patterns={"oneway": make_pattern("oneway", SEND, **asdict(traits))},
        transports={"shm": make_transport("shm"), "null": make_transport("null", SEND)},
        missing=(),
    )
    plan = make_plan(suite(pattern="oneway"), RunOptions(transports=("shm", "null")), catalogue, cpus=2)
    seen = {point.transport: point.traits for point in plan.points}
    assert seen == {"shm": traits, "null": replace(traits, payload=False)}


def test_a_pattern_alone_is_a_refined_curve_from_0_to_4_mib() -> None:
    plan = make_plan(pattern_suite("pingpong"), RunOptions(transports=("shm",)), CATALOGUE, cpus=2)
    sizes = [point.bytes for point in plan.points]
    assert sizes == [0, *(1 << n for n in range(23))]
    assert plan.refine == {("shm", "pingpong", 2, ())}


def test_options_are_stored_without_defaults_so_one_point_has_one_name() -> None:
    asked = RunOptions(options=(("until", "acked"), ("window", "4")))
    plan = make_plan(suite(pattern="oneway"), asked, CATALOGUE, cpus=2)
    assert plan.points == (Point("shm", "oneway", 2, 8, (("window", "4"),)),)


@pytest.mark.parametrize(
    ("default", "asked", "series", "ranks"),
    [
        (16, (), {}, 16),
        (0, (), {}, 2),
        (16, (3,), {}, 3),
        (16, (), {"ranks": 4}, 4),
    ],
)
def test_a_model_has_a_number_of_ranks_by_default(
    default: int, asked: tuple[int, ...], series: dict[str, object], ranks: int
) -> None:
    catalogue = load(libraries=())
    catalogue.add_model("sim@mine", model(default_ranks=default))
    options = RunOptions(machine="mine", ranks=asked)
    plan = make_plan(suite(pattern="barrier", **series), options, catalogue, cpus=6)
    assert {point.ranks for point in plan.points} == {ranks}


def wrong_words(*series: dict[str, object], catalogue: Catalogue = CATALOGUE, **given: object) -> list[tuple[str, str]]:
    """The errors in a suite of these tables."""
    whole = Suite.model_validate({"name": "a", "title": "A", "transports": "shm", **given, "series": series})
    return check_words(whole, "series", catalogue)


def test_words_of_a_file_are_checked_with_their_places() -> None:
    tables: tuple[dict[str, object], ...] = (
        {"pattern": "pingpnog", "transports": "shn"},
        {"pattern": "oneway", "options": {"windw": 1, "until": "never", "window": 16}},
    )
    assert wrong_words(*tables, transports=["shm", "tpc", "pvm"]) == [
        ("transports", "unknown transport 'tpc': did you mean 'tcp'?"),
        ("series[0].transports", "unknown transport 'shn': did you mean 'shm'?"),
        ("series[0].pattern", "unknown pattern 'pingpnog': did you mean 'pingpong'?"),
        ("series[1].options.windw", "unknown option of oneway 'windw': did you mean 'window'?"),
        ("series[1].options.until", "option until of oneway must be one of acked, sent, not 'never'"),
    ]


def test_sizes_that_are_named_are_not_refined_unless_asked_for() -> None:
    for asked, refined in (
        (RunOptions(sizes=(8,)), False),
        (RunOptions(sizes=(8,), refine=True), True),
        (RunOptions(), True),
    ):
        assert bool(make_plan(pattern_suite("oneway"), asked, CATALOGUE, cpus=2).refine) is refined


@pytest.mark.parametrize("refined", [(True, False), (False, True)])
def test_a_curve_is_refined_if_one_of_its_series_is(refined: tuple[bool, bool]) -> None:
    series = [{"pattern": "pingpong", "bytes": "8:64", "refine": one} for one in refined]
    both = Suite.model_validate({"name": "s", "title": "S", "transports": ["shm"], "series": series})
    assert make_plan(both, RunOptions(), CATALOGUE, cpus=2).refine == {("shm", "pingpong", 2, ())}


def test_exact_places_are_searched_only_on_request_and_keep_the_grain() -> None:
    assert not make_plan(pattern_suite("memload"), RunOptions(sizes=(64, 128)), CATALOGUE, cpus=2).exact
    plan = make_plan(pattern_suite("memload"), RunOptions(sizes=(64, 128), refine=True), CATALOGUE, cpus=2)
    assert plan.exact
    assert plan.grains == {"memload": 64}


def test_a_plan_survives_its_way_through_the_store() -> None:
    limits = Limits(precision=0.02, time_s=7, launches=3, timeout_s=9)
    asked = RunOptions((), placement=Placement(map_by="node", interface="eth1"), limits=limits, oversubscribe=True)
    asked = replace(asked, refine=True)
    for pattern in ("oneway", "memload"):
        plan = replace(make_plan(pattern_suite(pattern), asked, CATALOGUE, cpus=2), skipped=())
        assert Plan.of_run(make_stored(plan.suite, plan.as_json()), plan.points) == plan


@pytest.mark.parametrize(("one_per_host", "ranks"), [(False, 6), (True, 2)])
def test_patterns_of_all_ranks_have_one_for_each_slot_that_was_asked_for(*, one_per_host: bool, ranks: int) -> None:
    """An allocation has slots that nobody has asked for."""
    tcp = make_transport("tcp", BOTH | {"hosts"})
    catalogue = replace(CATALOGUE, transports={**CATALOGUE.transports, "tcp": tcp})
    asked = RunOptions(
        placement=Placement(hosts=parse_hosts("n1:4,n2:2"), one_per_host=one_per_host), transports=("tcp",)
    )
    plan = make_plan(pattern_suite("rounds", with_all_ranks=("rounds",)), asked, catalogue)
    assert {point.ranks for point in plan.points} == {ranks}
    (_, hosts) = same_hosts(plan.as_json(), slots=True)  # of a command that measures as many
    again = make_plan(
        pattern_suite("rounds", with_all_ranks=("rounds",)),
        replace(asked, placement=make_placement((hosts,))),
        catalogue,
    )
    assert {point.ranks for point in again.points} == {ranks}


def test_all_pairs_are_all_ordered_pairs_of_every_number_of_ranks() -> None:
    plan = make_plan(suite(pattern="put", ranks=[2, 3], pairs="all"), RunOptions(), CATALOGUE, cpus=4)
    ends = [(p.ranks, {"source": "0", "target": "1", **dict(p.options)}) for p in plan.points]
    assert [(n, int(end["source"]), int(end["target"])) for n, end in ends] == [
        *[(2, 0, 1), (2, 1, 0)],
        *[(3, 0, 1), (3, 0, 2), (3, 1, 0), (3, 1, 2), (3, 2, 0), (3, 2, 1)],
    ]
    plain = make_plan(suite(pattern="put"), RunOptions(), CATALOGUE, cpus=4)
    assert plain.points[0] == plan.points[0]  # the default pair is the same point, however it was written


def test_all_pairs_of_a_ring_are_all_distances() -> None:
    plan = make_plan(suite(pattern="ring", ranks=4, pairs="all"), RunOptions(), CATALOGUE, cpus=4)
    assert [point.options for point in plan.points] == [(), (("distance", "2"),), (("distance", "3"),)]


@pytest.mark.parametrize(("ranks", "last"), [(2, 1), (4, 3), (5, 5)])
def test_all_pairs_in_rounds_are_all_rounds(ranks: int, last: int) -> None:
    plan = make_plan(suite(pattern="rounds", ranks=ranks, pairs="all"), RunOptions(), CATALOGUE, cpus=8)
    assert [dict(point.options).get("round", "1") for point in plan.points] == [str(n) for n in range(1, last + 1)]


def test_as_many_ranks_as_there_are_cpus() -> None:
    plan = make_plan(suite(pattern="barrier", ranks="cpus"), RunOptions(), CATALOGUE, cpus=6)
    assert {point.ranks for point in plan.points} == {6}
    chosen = make_plan(suite(pattern="barrier", ranks="cpus"), RunOptions(ranks=(3,)), CATALOGUE, cpus=6)
    assert {point.ranks for point in chosen.points} == {3}


def test_pairs_say_nothing_to_a_barrier() -> None:
    with pytest.raises(UsageError, match="barrier has no source and target"):
        make_plan(suite(pattern="barrier", pairs="all"), RunOptions(), CATALOGUE, cpus=4)
    wrong = wrong_words({"pattern": "barrier", "pairs": "all"}, {"pattern": "put", "pairs": "all"})
    assert [place for place, _ in wrong] == ["series[0].pairs"]


def with_caches(monkeypatch: pytest.MonkeyPatch, sizes: dict[int, int]) -> None:
    monkeypatch.setattr("hockney.worker.points.read_topology", lambda: SimpleNamespace(cache_sizes=lambda: sizes))


def test_sizes_after_caches_and_a_cache_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    with_caches(monkeypatch, {1: 32 << 10, 2: 1 << 20})
    plan = make_plan(suite(pattern="memload", bytes=["64", "L1/2", "L2/2", "4*L3"]), RunOptions(), CATALOGUE, 2)
    assert points(plan) == {("shm", "memload", 1, size) for size in (64, 16 << 10, 512 << 10)}
    assert [(skipped.point.bytes, skipped.reason) for skipped in plan.skipped] == [
        (0, "the size of the cache is not known here, so 4*L3 is left out")
    ]
    (rows,) = [block.rows for block in plan_document(plan) if isinstance(block, Table) and len(block.rows) == 2]
    assert rows[1][-1] == "", "neither 0 B nor another size"


def test_caches_are_not_asked_for_without_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hockney.worker.points.read_topology", None)
    assert make_plan(suite(pattern="pingpong"), RunOptions(), CATALOGUE, 2).points


def test_a_pattern_for_one_rank_keeps_it_in_a_suite_and_is_refused_alone() -> None:
    asked = RunOptions(ranks=(4,), sizes=(64,))
    assert points(make_plan(suite(pattern="memload", ranks=1), asked, CATALOGUE, cpus=4)) == {("shm", "memload", 1, 64)}
    alone = make_plan(pattern_suite("memload"), RunOptions(transports=("shm",), ranks=(4,)), CATALOGUE, cpus=4)
    assert not alone.points
    assert "memload runs on 1 rank, not on 4" in alone.skipped[0].reason


def test_a_table_without_any_point_is_refused() -> None:
    tables: tuple[dict[str, object], ...] = (
        {"pattern": "oneway", "ranks": 1},
        {"pattern": "pairs", "ranks": [3, 1]},
        {"pattern": "barrier", "bytes": 8},
        {"pattern": "memload", "bytes": [8, 100]},
        {"pattern": "put", "options": {"source": 1}},
        {"pattern": "put", "options": {"target": "first"}, "ranks": 1},
        {"pattern": "put", "options": {"target": 3}, "ranks": [2, 3]},
        {"pattern": "put", "options": {"target": 3}, "ranks": "cpus", "bytes": "L1"},
        {"pattern": "barrier", "bytes": [0, "L1"]},
    )
    assert wrong_words(*tables) == [
        ("series[0]", "oneway runs on 2 or more ranks, not on 1"),
        ("series[1]", "pairs runs on 2 or more ranks, a multiple of 2, not on 3"),
        ("series[2]", "barrier has no message sizes to choose: leave bytes out"),
        ("series[3]", "memload accepts multiples of 64 B, not 8 B"),
        ("series[4]", "source and target must differ, but both are rank 1"),
        ("series[5].options.target", "option target of put must be a whole number from 0 to 4095, not 'first'"),
        ("series[5]", "put runs on 2 or more ranks, not on 1"),
        ("series[6]", "target is rank 3, and the last of 2 ranks is 1"),
        ("series[8]", "barrier has no message sizes to choose: leave bytes out"),
    ]


@pytest.mark.parametrize(
    ("series", "asked", "measured", "skipped"),
    [
        ({"pattern": "ring", "options": {"distance": 3}}, (4,), {(4, 8)}, set()),
        ({"pattern": "put", "options": {"target": 3}}, (4,), {(4, 8)}, set()),
        ({"pattern": "put", "options": {"target": 3}, "ranks": [2, 4]}, (), {(4, 8)}, {(2, 8)}),
        ({"pattern": "pairs", "ranks": [2, 3, 4]}, (), {(2, 8), (4, 8)}, {(3, 8)}),
        ({"pattern": "rounds", "options": {"round": 3}, "ranks": [2, 4]}, (), {(4, 8)}, {(2, 8)}),
        ({"pattern": "barrier", "bytes": 0}, (), {(2, 0)}, set()),
        ({"pattern": "memload", "bytes": "0:128"}, (), {(1, 64), (1, 128)}, {(1, 1 << n) for n in range(6)} | {(1, 0)}),
        ({"pattern": "memload", "bytes": [8, "L1"]}, (), {(1, 32 << 10)}, {(1, 8)}),
    ],
)
def test_points_that_fit_are_measured_and_the_rest_skipped(
    series: dict[str, object],
    asked: tuple[int, ...],
    measured: set[tuple[int, int]],
    skipped: set[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not wrong_words(series)
    with_caches(monkeypatch, {1: 32 << 10})
    plan = make_plan(suite(**series), RunOptions(ranks=asked), CATALOGUE, 4)
    assert {(point.ranks, point.bytes) for point in plan.points} == measured
    assert {(row.point.ranks, row.point.bytes) for row in plan.skipped} == skipped
    assert all(row.reason for row in plan.skipped)


def test_how_many_only_send_may_depend_on_ranks_that_are_asked_for_later() -> None:
    senders = OptionInfo("senders", (), "1", 1, 4095, "")
    farm = make_pattern("pushfarm", SEND, (3, 0, 1), "root", (senders,), senders="senders")
    catalogue = replace(CATALOGUE, patterns={"pushfarm": farm})
    series: dict[str, object] = {"pattern": "pushfarm", "options": {"senders": 3}}
    assert not wrong_words(series, catalogue=catalogue)
    [(place, _)] = wrong_words({**series, "ranks": [3, 4]}, catalogue=catalogue)
    assert place == "series[0]"


def test_ranks_and_size_that_are_not_given_are_the_patterns_own() -> None:
    assert points(make_plan(suite(pattern="memload"), RunOptions(), CATALOGUE, cpus=2)) == {("shm", "memload", 1, 64)}
    assert points(make_plan(suite(pattern="barrier"), RunOptions(), CATALOGUE, cpus=2)) == {("shm", "barrier", 2, 0)}
    assert points(make_plan(suite(pattern="pairs"), RunOptions(), CATALOGUE, cpus=2)) == {("shm", "pairs", 2, 8)}
    three = replace(CATALOGUE, patterns={"ring": replace(CATALOGUE.patterns["ring"], ranks=(3, 0, 1))})
    assert points(make_plan(suite(pattern="ring"), RunOptions(), three, cpus=4)) == {("shm", "ring", 3, 8)}
    for pattern in ("memload", "barrier", "pairs", "oneway"):
        assert not wrong_words({"pattern": pattern})


def test_a_plan_whose_first_round_goes_far_beyond_its_time_is_refused_with_the_time_it_takes() -> None:
    series = {"pattern": "pingpong", "bytes": "1,2,4", "ranks": list(range(2, 4002)), "transports": ["shm", "tcp"]}

    def planned(time_s: float, series: dict[str, Any]) -> int:
        asked = RunOptions(limits=Limits(time_s=time_s), oversubscribe=True)
        return len(make_plan(suite(**series), asked, CATALOGUE, cpus=2).points)

    assert planned(3600, series) == planned(36, series) == 24_000
    for time_s in (1, 35):  # a tenth of the round's time is too little, but up to a minute any is enough
        with pytest.raises(UsageError, match=r"24000 points: .* about 6 min, .* \(--time 6m\)"):
            planned(time_s, series)
    assert planned(0.001, {**series, "ranks": [2, 3]}) == 12


@pytest.mark.parametrize(
    ("hosts", "ranks"), [(("n1", "n2", "n3"), (3, 2)), (("n1:2", "n2:3"), (5, 4)), (("n1",), (2, 2)), ((), (8, 8))]
)
def test_across_hosts_each_has_a_rank_by_default(hosts: tuple[str, ...], ranks: tuple[int, int]) -> None:
    tcp = replace(CATALOGUE, transports={"tcp": make_transport("tcp", BOTH | {"hosts"})})
    for pattern, number in zip(("ring", "pairs"), ranks, strict=True):
        suited = suite(pattern=pattern, ranks="cpus", transports=["tcp"])
        plan = make_plan(suited, RunOptions(placement=make_placement(hosts)), tcp, cpus=8)
        assert {point.ranks for point in plan.points} == {number}
        asked = make_plan(suited, RunOptions(placement=make_placement(hosts), ranks=(2,)), tcp, cpus=8)
        assert {point.ranks for point in asked.points} == {2}


@pytest.mark.parametrize(
    ("hosts", "ranks", "per_host", "transports"),
    [
        (("n1", "n2"), 2, (), {"tcp", "tcp/2"}),
        (("n1:2", "n2:1"), 2, (), {"tcp", "tcp/2"}),
        (("n1:1", "n2:2"), 2, (), {"tcp"}),
        (("n1",), 2, (), {"tcp"}),
        (("n1", "n2"), 3, (), {"tcp"}),
        (("n1", "n2"), 4, (4, 2), {"tcp/4", "tcp/2"}),
        ((), 2, (), {"tcp"}),
    ],
)
def test_two_ranks_are_measured_between_hosts_and_within_the_first(
    hosts: tuple[str, ...], ranks: int, per_host: tuple[int, ...], transports: set[str]
) -> None:
    tcp = replace(CATALOGUE, transports={"tcp": make_transport("tcp", BOTH | {"hosts"})})
    asked = RunOptions(placement=make_placement(hosts, per_host=per_host), ranks=(ranks,))
    plan = make_plan(suite(pattern="ring", transports=["tcp"]), asked, tcp, cpus=8)
    assert {point.transport for point in plan.points} == transports
    assert not plan.skipped


def test_a_pattern_alone_has_a_rank_on_each_host_if_all_ranks_take_part() -> None:
    tcp = replace(CATALOGUE, transports={"tcp": make_transport("tcp", BOTH | {"hosts"})})
    asked = RunOptions(placement=Placement(hosts=parse_hosts("n1,n2,n3,n4")), transports=("tcp",), sizes=(8,))
    plan = make_plan(find_suite("ring,barrier,pingpong", on_hosts=True), asked, tcp, cpus=1)
    assert {(point.pattern, point.ranks) for point in plan.points} == {("ring", 4), ("barrier", 4), ("pingpong", 2)}
