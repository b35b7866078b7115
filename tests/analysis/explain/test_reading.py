"""From a stored run to curves, layers and an explanation; and runs of which little or nothing can be said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.analysis.compare.made import add_run
from tests.analysis.explain.readings import curve, gaps_of, line, near, reading
from tests.analysis.places import TWO_CORES
from tests.builders import SLOWEST, make_info, make_launch, make_point, set_columns
from tests.report.runs import Made, measurement_of, options, store_run, stored

from hockney.analysis.explain import Explanation, explain, explain_run
from hockney.analysis.explain.curve import Reading, subject_of
from hockney.analysis.explain.layers import layers_of
from hockney.analysis.explain.read import read_run
from hockney.analysis.finding import Absence, Detector, Finding, NotChecked, Note, Subject
from hockney.errors import Fix, HockneyError
from hockney.model import Point, PointStatus, Warning_
from hockney.report.findings import layer_text, note_text, sentence_of
from hockney.results.runs import Run
from hockney.results.store import Store
from hockney.results.store.lock import alone
from hockney.stats.fit import Estimate

SIZES = (8, 64, 512, 1024, 2048, 4096, 8192, 16384, 32768)


def pingpongs(
    transport: str = "shm", sizes: tuple[int, ...] = SIZES, jump_ns: float = 0.0, **more: object
) -> list[Made]:
    return [
        Made(
            Point(transport, "pingpong", 2, size),
            500 + 0.1 * size + (jump_ns if size > 2048 else 0),
            divisor=2,
            bytes_per_rep=2 * size,
            **more,  # type: ignore[arg-type]
        )
        for size in sizes
    ]


def read(path: Path, made: list[Made], **info: object) -> Reading:
    store_run(path, "mine", made, **info)  # type: ignore[arg-type]
    with Store.open(path) as store:
        return read_run(stored(store))


def explained(path: Path, made: list[Made], **info: object) -> Explanation:
    store_run(path, "mine", made, **info)  # type: ignore[arg-type]
    with Store.open(path) as store:
        return explain_run(stored(store))


def test_a_run_becomes_curves(tmp_path: Path) -> None:
    barrier = Made(Point("shm", "barrier", 2, 0, options(algorithm="portable")), 80.0, timed="slowest")
    of = read(tmp_path / "r.db", [*pingpongs(), barrier])
    pingpong, barriers = of.curves
    assert pingpong.sizes == SIZES
    assert pingpong.state == "near"
    first = pingpong.points[0]
    assert first.time_ns.low <= 500.8 <= first.time_ns.high
    assert first.rate_bytes_per_s is not None
    assert first.rate_bytes_per_s.value == pytest.approx(8 / 500.8 * 1e9, rel=0.01)
    assert barriers.name == "barrier algorithm=portable"
    floor = of.floors["shm", 2]
    assert floor.value == pytest.approx(30)
    assert 0.9 * 30 < floor.low <= 30 <= floor.high < 1.1 * 30


def test_only_patterns_between_two_ranks_have_curves_by_class(tmp_path: Path) -> None:
    ring = [Made(replace(one.point, pattern="ring"), 900.0) for one in pingpongs()]
    assert {each.pattern for each in read(tmp_path / "r.db", [*pingpongs(), *ring]).by_class} == {"pingpong"}


def test_only_the_state_with_most_measurements_is_read(tmp_path: Path) -> None:
    slow = Made(Point("shm", "pingpong", 2, 8), 2000.0, divisor=2, measurements=7, floor_ns=200.0)
    point = Made(Point("shm", "pingpong", 2, 8), 500.0, divisor=2, measurements=9, then=slow)
    (only,) = read(tmp_path / "r.db", [point]).curves
    assert only.state == "near"
    assert only.points[0].time_ns.value == pytest.approx(500, rel=0.01)


def test_the_state_with_most_sizes_is_read_though_another_has_more_measurements(tmp_path: Path) -> None:
    """As where the machine changes while --refine measures a few sizes over and over."""
    slow = Made(Point("shm", "pingpong", 2, 8), 2000.0, divisor=2, measurements=90, floor_ns=200.0)
    points = [*pingpongs(sizes=SIZES[1:]), Made(Point("shm", "pingpong", 2, 8), 500.8, divisor=2, then=slow)]
    (only,) = read(tmp_path / "r.db", points).curves
    assert (only.state, only.sizes) == ("near", SIZES)


def test_a_switch_is_found_in_a_stored_run(tmp_path: Path) -> None:
    of = explained(tmp_path / "r.db", pingpongs(jump_ns=2000.0))
    (switch,) = [finding for finding in of.findings if finding.facts.get("answer") == "suspected"]
    assert switch.subject.sizes_bytes == (2048, 4096)


@pytest.mark.parametrize(("status", "how"), [("stopped", "stopped"), ("running", "killed")])
def test_a_run_that_ended_early_says_so_and_how_to_resume_it(tmp_path: Path, status: str, how: str) -> None:
    """One that is running while nobody measures it was killed."""
    path = tmp_path / "r.db"
    assert [note.code for note in explained(path, pingpongs()).notes] == ["one launch"]
    with Store.open(path) as store:
        set_columns(store.db, "run", "status = ?", status)
        (note,) = explain_run(stored(store)).notes
    assert (note.code, note.facts["how"]) == ("ended early", how)
    assert note.fix is not None
    assert note.fix.argv == ("hockney", "run", "--resume", "1")


def test_a_note_says_that_a_run_is_being_measured(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    store_run(path, "mine", pingpongs())
    with Store.open(path) as store:
        set_columns(store.db, "run", "status = 'running'")
        with alone(path, 1):
            assert [note.code for note in explain_run(stored(store)).notes] == ["still running"]


def test_layers_are_of_one_size() -> None:
    """That of a latency; the shortest where one has none of it."""
    lower, upper = curve(line(50)), curve(line(350), transport="mpi@mpich-4.0.2")
    switched = curve(lambda size: 150 + 0.1 * size + (2000 if size > 4096 else 0), transport="mpi@openmpi-4.1.4")
    of = reading(lower, upper, switched, floors={("shm", 2): near(40.0)})
    floor, mpich, openmpi = layers_of(of)
    assert (floor.upper, floor.lower) == ("shm", "the floor")
    assert {each.bytes for each in (floor, mpich, openmpi)} == {8}
    assert mpich.low_ns <= 300 <= mpich.high_ns
    assert openmpi.low_ns <= 100 <= openmpi.high_ns < 2100
    for sizes, at_bytes in (([0, 64, 128], 64), ([4, 8, 16], 8)):
        below = curve(line(50), sizes=[*sizes, *SIZES[3:]])
        (other,) = layers_of(reading(below, curve(line(350), transport="threads", sizes=sizes)))
        assert other.bytes == at_bytes


def test_shm_may_be_below_the_floor() -> None:
    (layer,) = layers_of(reading(curve(line(30), precision=0.01), floors={("shm", 2): near(40.0)}))
    assert (layer.added_ns < 0, layer.floor_ns) == (True, 40.0)
    assert layer_text(layer, str) == "shm saves 9.20 ns ±6% compared with the floor of 40.0 ns"


@pytest.mark.parametrize(
    ("sizes", "at_bytes"), [((0, 1, 2, 4), [1]), ((0, 64, 128), [64]), ((0, 65, 128), []), ((0,), [])]
)
def test_shm_is_compared_with_the_floor_at_its_shortest_message_of_a_cache_line(
    sizes: tuple[int, ...], at_bytes: list[int]
) -> None:
    layers = layers_of(reading(curve(line(90), sizes=sizes), floors={("shm", 2): near(40.0)}))
    assert [layer.bytes for layer in layers] == at_bytes


def test_layers_are_of_the_ping_pong_without_options() -> None:
    """With a source and a target it may be between other CPUs."""
    lower, upper = curve(line(500), sizes=[8, 64]), curve(line(600), transport="threads", sizes=[8, 64])
    far = curve(line(2000), transport="threads", sizes=[8, 64], options={"source": 0, "target": 1})
    assert layers_of(reading(lower, far)) == []
    (layer,) = layers_of(reading(lower, upper, far))
    assert layer.low_ns <= 100 <= layer.high_ns


def test_layers_of_different_states_are_not_subtracted() -> None:
    assert layers_of(reading(curve(), curve(line(900), transport="mpi@x-1", state="far"))) == []


def test_the_direct_variants_of_pvm_use_a_unix_domain_socket() -> None:
    ways = [curve(line(900), transport=name) for name in ("pvm@3.4.6", "pvm@3.4.6:raw", "pvm@3.4.6:raw-daemon")]
    stored = {"traits": {"transports": {way.transport: {"below": "unix"} for way in ways[:2]}}}
    layers = layers_of(reading(curve(line(500), transport="unix"), *ways, facts=stored))
    assert [(layer.upper, layer.lower) for layer in layers] == [("pvm@3.4.6", "unix"), ("pvm@3.4.6:raw", "unix")]
    assert all(layer.low_ns <= 400 <= layer.high_ns for layer in layers)


@pytest.mark.parametrize(
    ("library", "is_on_ucx"),
    [
        ("MPICH 4.0.2 (ch4:ucx)", True),
        ("Open MPI 5.0.3 (ucx)", True),
        ("MPICH 4.2.1 (ch4:ucx)", False),  # it has shared memory of its own
        ("MPICH 4.0.2 (ch4:ucx ofi)", False),
        ("Open MPI 4.1.4 (ob1:vader:cma tcp)", False),
    ],
)
def test_an_mpi_that_is_sure_to_use_ucx_is_a_layer_on_it(library: str, is_on_ucx: bool) -> None:
    names = {"shm": 50.0, "ucx@1.13": 110.0, "ucx@1.13:put": 60.0, "mpi@x-1": 150.0}
    below = {"traits": {"transports": {name: {"below": "shm"} for name in names if name != "shm"}}}
    curves = [curve(line(time_ns), transport=name) for name, time_ns in names.items()]
    layers = layers_of(reading(*curves, facts=below, libraries={"mpi@x-1": library}))
    lower = {layer.upper: (layer.lower, round(layer.added_ns)) for layer in layers}
    assert lower["ucx@1.13"] == ("shm", 60)
    assert lower["mpi@x-1"] == (("ucx@1.13", 40) if is_on_ucx else ("shm", 100))
    other = curve(line(120.0), transport="ucx@1.17")
    layers = layers_of(reading(*curves, other, facts=below, libraries={"mpi@x-1": library}))
    assert next(layer.lower for layer in layers if layer.upper == "mpi@x-1") == "shm"  # on which one is not known
    faster = [
        replace(each, points=curve(line(80.0)).points) if each.transport == "mpi@x-1" else each for each in curves
    ]
    uppers = {layer.upper for layer in layers_of(reading(*faster, facts=below, libraries={"mpi@x-1": library}))}
    assert ("mpi@x-1" in uppers) == (not is_on_ucx)  # a wheel brings a UCX of its own


@pytest.mark.parametrize("hosts", [("here", "here"), ("here", "there")])
def test_a_library_is_compared_with_tcp_between_hosts_only(tmp_path: Path, hosts: tuple[str, ...]) -> None:
    slower = [replace(one, time_ns=one.time_ns + 400) for one in pingpongs("mpi@x-1")]
    made = [*pingpongs("tcp"), *slower]
    layers = explained(tmp_path / "r.db", made, hosts=hosts).layers
    assert [(layer.upper, layer.lower) for layer in layers] == ([("mpi@x-1", "tcp")] if len(set(hosts)) > 1 else [])
    assert all(layer.low_ns <= 400 <= layer.high_ns for layer in layers)


def test_a_layer_without_a_difference_says_so() -> None:
    (layer,) = layers_of(reading(curve(precision=0.02), curve(line(502), transport="threads", precision=0.02)))
    assert not layer.is_seen
    assert layer_text(layer, str).startswith("threads: no difference from shm (95 % CI ")


@pytest.mark.parametrize(
    ("added_ns", "half_width_ns", "is_seen"),
    [(100.0, 20.0, True), (60.0, 80.0, False), (-60.0, 50.0, True), (27.0, 5.0, False), (33.0, 5.0, True)],
)
def test_a_small_difference_does_not_count_even_if_the_interval_excludes_zero(
    added_ns: float, half_width_ns: float, is_seen: bool
) -> None:
    """Of a dozen layers one or another misses by chance."""
    lower, upper = curve(line(1000, 0), precision=0), curve(line(1000, 0), transport="mpi@x-1")
    time = Estimate(1000 + added_ns, 1000 + added_ns - half_width_ns, 1000 + added_ns + half_width_ns)
    points = (replace(upper.points[0], time_ns=time), *upper.points[1:])
    (layer,) = layers_of(reading(lower, replace(upper, points=points)))
    assert (layer.added_ns, layer.is_seen) == (added_ns, is_seen)
    assert ("no difference of 3 % or more" in layer_text(layer, str)) == (added_ns == 27.0)


def test_pairs_are_of_the_class_that_each_launch_put_them_in(tmp_path: Path) -> None:
    """Ranks 0 and 1 on one core in one launch, on two in the next, where messages take twice as long."""
    made, path = pingpongs(), tmp_path / "r.db"
    store_run(path, "mine", made, pinned=True, facts=TWO_CORES)
    with Store.open(path) as store:
        elsewhere = store.add_launch(1, make_launch("shm", cpus=(0, 2)))
        for round_ in range(9, 18):
            slower = [measurement_of(replace(one, time_ns=2 * one.time_ns), elsewhere, round_) for one in made]
            store.write_round(1, slower)
        of = read_run(stored(store))
    by_class = {one.pair_class: one for one in of.by_class}
    assert by_class.keys() == {"one core", "one package"}
    for name, factor in (("one core", 1), ("one package", 2)):
        assert by_class[name].n_measurements == 9 * len(SIZES)
        times_ns = [point.time_ns.value for point in by_class[name].points]
        assert times_ns == pytest.approx([factor * one.time_ns for one in made], rel=0.01)


# ---- little or nothing to say --------------------------------------------------------------------------------------


def notes_of(of: Explanation) -> dict[str, Note]:
    return {note.code: note for note in of.notes}


def test_a_run_with_one_size(tmp_path: Path) -> None:
    of = explained(tmp_path / "r.db", pingpongs(sizes=(8,)))
    assert gaps_of(of)["protocol switches"].reason is Absence.INSUFFICIENT_DATA
    assert not {finding.code for finding in of.findings} & {"protocol switch", "bend", "flat latency"}


def test_a_run_with_a_failed_point(tmp_path: Path) -> None:
    failed = Made(Point("shm", "pingpong", 2, 128), failed="rank 1 was killed by SIGKILL")
    note = notes_of(explained(tmp_path / "r.db", [*pingpongs(), failed]))["failed points"]
    assert (note.facts["points"], note.facts["why"]) == (1, "rank 1 was killed by SIGKILL")


def test_a_run_of_another_version(tmp_path: Path) -> None:
    note = notes_of(explained(tmp_path / "r.db", pingpongs(), version="0.0.9"))["another version"]
    assert note.facts["version"] == "0.0.9"


@pytest.mark.parametrize("launches", [1, 2])
def test_intervals_of_one_launch_are_noted(tmp_path: Path, launches: int) -> None:
    of = explained(
        tmp_path / "r.db", pingpongs(measurements=12), launches=[{"index": number} for number in range(launches)]
    )
    assert ("one launch" in notes_of(of)) is (launches == 1)


def test_points_with_too_few_measurements_are_left_out_and_counted(tmp_path: Path) -> None:
    few = Made(Point("shm", "pingpong", 2, 128), 500.0, divisor=2, measurements=3)
    note = notes_of(explained(tmp_path / "r.db", [*pingpongs(), few]))["points without interval"]
    assert note.facts["points"] == 1


@pytest.mark.parametrize(("few", "is_most"), [(7, True), (1, False)])
def test_where_most_points_have_no_interval_the_time_for_them_is_said(few: int, is_most: bool, tmp_path: Path) -> None:
    short = [Made(Point("shm", "oneway", 2, 2**size), 500.0, divisor=1, measurements=3) for size in range(few)]
    said = {"command": "hockney run guidelines -n 2 --time 27s", "plan": {"time_s": 27.0, "launches": 1}}
    note = notes_of(explained(tmp_path / "r.db", [*pingpongs(sizes=(8, 64)), *short], **said))[
        "points without interval"
    ]
    words = ("hockney", "run", "guidelines", "-n", "2", "--time", "30s")  # 27 s gave 9 rounds
    assert (note.fix and note.fix.argv) == (words if is_most else None)


@pytest.mark.parametrize("rounds", [3, 0])
def test_without_any_interval_the_time_for_them_is_said(rounds: int, tmp_path: Path) -> None:
    few = [Made(Point("shm", "pingpong", 2, 8), 500.0, divisor=2, measurements=3)]
    command = "hockney run guidelines --time=9s" if rounds else "python program.py"
    with pytest.raises(HockneyError, match="no figure of run 1 has a confidence interval") as caught:
        explained(tmp_path / "r.db", few, command=command, plan={"time_s": 9.0})
    assert caught.value.fix is not None
    assert caught.value.fix.argv[-1] == ("30s" if rounds else "1")  # else the run goes on


def test_measurements_of_mixed_state_make_no_curve(tmp_path: Path) -> None:
    mixed = pingpongs("threads", (8, 64), floor_after_ns=300.0)
    of = read(tmp_path / "r.db", [*pingpongs(), Made(Point("shm", "oneway", 2, 8), 90.0, floor_ns=300.0), *mixed])
    assert {curve.transport for curve in of.curves} == {"shm"}
    (note,) = [note for note in of.notes if note.code == "points without interval"]
    assert note.facts["points"] == 3


def test_samples_of_mixed_state_are_not_read(tmp_path: Path) -> None:
    mixed = Made(Point("shm", "pingpong", 2, 8), 500.8, divisor=2, floor_after_ns=300.0)
    far = Made(Point("shm", "oneway", 2, 8), 90.0, floor_ns=300.0)
    store_run(tmp_path / "r.db", "mine", [replace(mixed, floor_after_ns=None, then=mixed), far])
    with Store.open(tmp_path / "r.db") as store:
        samples = read_run(stored(store)).samples(1000, ())
    assert [(measurement.point.pattern, state.name) for measurement, state in samples] == [
        *[("pingpong", "near")] * 9,
        *[("oneway", "far")] * 9,
    ]


@pytest.mark.parametrize(("floor_after_ns", "is_found"), [(None, True), (300.0, False)])
def test_outliers_while_the_machine_state_changed_are_not_counted(
    tmp_path: Path, floor_after_ns: float | None, is_found: bool
) -> None:
    """The change itself may have delayed them."""
    far = Made(Point("shm", "oneway", 2, 8), 90.0, floor_ns=300.0)
    late = pingpongs("threads", floor_after_ns=floor_after_ns, late_ns=5000.0)
    of = explained(tmp_path / "r.db", [*pingpongs(), far, *late])
    assert ("threads" in {each.subject.transport for each in of.findings if each.code == "outliers"}) == is_found


def test_a_point_that_failed_with_samples_is_left_out(tmp_path: Path) -> None:
    store_run(tmp_path / "r.db", "mine", pingpongs())
    with Store.open(tmp_path / "r.db") as store:
        store.set_status(1, Point("shm", "pingpong", 2, 512), PointStatus.FAILED, "a byte was wrong")
        of = read_run(stored(store))
        samples = of.samples(1000, ())
    (only,) = of.curves
    assert 512 not in only.sizes
    assert 512 not in {measurement.point.bytes for measurement, _ in samples}
    assert "a byte was wrong" in [note.facts.get("why") for note in of.notes]


def test_the_samples_of_oversubscribed_ranks_are_not_used(tmp_path: Path) -> None:
    with_samples = [Made(Point("shm", "putring", 2, 8), 50.0, by_rank=[50.0, 90.0])]
    for oversubscribed in (False, True):
        of = explained(tmp_path / f"{oversubscribed}.db", with_samples, oversubscribed=oversubscribed)
        assert ("slow rank or pair" in {finding.code for finding in of.findings}) != oversubscribed
        assert ("oversubscribed" in notes_of(of)) is oversubscribed
        assert ("outliers" in gaps_of(of)) is oversubscribed


def test_facts_may_be_missing(tmp_path: Path) -> None:
    for number, facts in enumerate(({}, {"memory": None, "topology": None, "network": None}, {"topology": {}})):
        path, made = tmp_path / f"{number}.db", pingpongs("tcp", jump_ns=2000.0)
        assert explained(path, made, facts=facts).findings
        with Store.open(path) as store:
            of = read_run(stored(store))
        assert of.caches == []
    caches = [{"level": 2, "kind": "data", "size_bytes": None}, {"level": 3, "kind": "unified", "size_bytes": 1 << 20}]
    assert reading(curve(), facts={"topology": {"caches": caches}}).caches == [(3, 1 << 20)]


def test_a_run_without_an_interval(tmp_path: Path) -> None:
    with pytest.raises(HockneyError, match="no figure of run 1") as error:
        explained(tmp_path / "r.db", pingpongs(measurements=3))
    fix = Fix("resume", ("hockney", "run", "--resume", "1"), {"run": 1})
    assert (error.value.exit_code, error.value.fix) == (3, fix)


def test_a_run_without_a_figure(tmp_path: Path) -> None:
    with Store.open(tmp_path / "r.db") as store:
        run = store.create_run(make_info(), [Point("shm", "pingpong", 2, 8)])
        store.set_status(run, Point("shm", "pingpong", 2, 8), PointStatus.SKIPPED, "there is no compiler")
        with pytest.raises(HockneyError, match=r"no figures.*there is no compiler"):
            explain_run(stored(store))


def test_a_run_of_the_harness_alone(tmp_path: Path) -> None:
    with pytest.raises(HockneyError, match="no measurement of a transport"):
        explained(tmp_path / "r.db", pingpongs("null"))


def test_oversubscribed_ranks_are_only_checked_for_yielding(tmp_path: Path) -> None:
    of = explained(tmp_path / "r.db", pingpongs(), oversubscribed=True)
    assert "oversubscribed" in notes_of(of)
    reasons = {gap.what: gap.reason for gap in of.not_checked}
    assert reasons["protocol switches"] is Absence.NOT_APPLICABLE
    assert reasons["duplex limits"] is Absence.NOT_APPLICABLE
    assert "yielding libraries" not in reasons


def test_a_run_without_a_ping_pong(tmp_path: Path) -> None:
    made = [Made(Point("mpi@openmpi-4.1.4", "alltoall", 2, size), 50.0) for size in SIZES]
    gaps = gaps_of(explained(tmp_path / "r.db", made))
    for what in ("protocol switches", "flat latency", "latency above the floor"):
        assert gaps[what].reason is Absence.NOT_MEASURED
        how = gaps[what].how
        assert how is not None
        assert how.argv == ("hockney", "run", "quick")


def test_the_greatest_effect_comes_first() -> None:
    of = explain(
        reading(
            curve(lambda size: 500 + 0.1 * size + (400 if size > 512 else 0)),
            curve(lambda size: 500 + 0.1 * size + (900 if size > 512 else 0), transport="threads"),
        )
    )
    effects = [finding.effect for finding in of.findings]
    assert of.findings[0].subject.transport == "threads"
    assert effects == sorted(effects, reverse=True)


def test_a_finding_is_added_by_one_record() -> None:
    """It is searched, named, and printed by its facts before it has any wording."""

    def slow(of: Reading) -> list[Finding] | NotChecked:
        points = [(one, point) for one in of.of("pingpong") for point in one.points if point.time_ns.low > 900]
        return [Finding("slow", subject_of(one), {"slow_ns": point.time_ns.value}) for one, point in points]

    (finding,) = explain(reading(curve(line(1000, 1), sizes=[8])), [Detector("slow", "slow sizes", slow)]).findings
    assert sentence_of(finding) == "Slow. slow 1.01 us"


def test_findings_between_hosts_come_before_those_within_one() -> None:
    effects = {("tcp/2", 2): 9.0, ("tcp", 2): 1.0, ("tcp/2", 4): 3.0, ("mpi/2", None): 2.0}

    def loaded(_: Reading) -> list[Finding] | NotChecked:
        return [Finding("impact", Subject(name, "pingpong", ranks), effect=by) for (name, ranks), by in effects.items()]

    findings = explain(reading(curve(line(1000, 1))), [Detector("impact", "impacts", loaded)]).findings
    assert [finding.effect for finding in findings] == [3.0, 2.0, 1.0, 9.0]


def test_of_streams_of_few_events_a_busy_machine_is_the_cause(tmp_path: Path) -> None:
    """More time would not help while other programs run."""
    load = Warning_("others", "machine", "Other programs used 1.5 CPUs while the run measured.", "Stop them.")
    with Store.open(tmp_path / "r.db") as store:
        run = add_run(store, {make_point(8, pattern="oneway"): 1000.0}, definition=SLOWEST, batch=1)
        for is_busy in (False, True):
            if is_busy:
                store.add_warning(run, load)
            (note,) = (note for note in explain_run(Run(store, run)).notes if note.code == "short streams")
            assert (load.cause in note_text(note), "--time" in note_text(note)) == (is_busy, not is_busy)


def test_streams_of_few_events_are_noted(tmp_path: Path) -> None:
    for batch, is_noted in ((1, True), (8, False)):
        with Store.open(tmp_path / f"{batch}.db") as store:
            run = add_run(store, {make_point(8, pattern="oneway"): 1000.0}, definition=SLOWEST, batch=batch)
            codes = [note.code for note in explain_run(Run(store, run)).notes]
        assert ("short streams" in codes) == is_noted
