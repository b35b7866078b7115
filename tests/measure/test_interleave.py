"""Two variants measured in alternation, with real workers."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.compare.delayed import load_catalogue
from tests.builders import make_library, make_settings
from tests.cli.support import call_here, write_model
from tests.measure.test_run import Silent
from tests.shared import Fakes

from hockney.analysis.compare import ReasonCode, Verdict, compare_runs
from hockney.analysis.compare.comparison import Entry, Ratios
from hockney.errors import UsageError
from hockney.measure import interleave
from hockney.measure import run as running
from hockney.measure.estimate import MIN_MEASUREMENTS, SAMPLES_MIN
from hockney.measure.plan import Plan
from hockney.measure.pool import WorkerPool
from hockney.measure.recorder import Lab, RunOutcome
from hockney.measure.run import Variant, resume
from hockney.model import NOT_MEASURED, Measurement, Point, PointStatus, RunStatus
from hockney.results.store import Store
from hockney.stats.sequence import VALUES_MIN, values_needed
from hockney.suites import Limits
from hockney.worker.catalogue import Catalogue
from hockney.worker.machine_model import load_model

SIZES = (8, 16384)
SLOW = {"HOCKNEY_FAULT": "slow 1 16384 65536 200"}


def plan(transport: str = "fault", launches: int = 6, time_s: float = 1.5) -> Plan:
    points = tuple(Point(transport, "pingpong", 2, size) for size in SIZES)
    return Plan("test", points, limits=Limits(precision=0.2, time_s=time_s, launches=launches, timeout_s=60))


def test_both_sides_are_whole_runs_of_one_difference(store: Store) -> None:
    variants = Variant(plan(time_s=0.6), {}, "a"), Variant(plan(time_s=0.6), SLOW, "b")
    base, new = interleave.measure(variants, Lab(load_catalogue(), store, Silent(), "test"))
    assert (base.status, new.status) == (RunStatus.DONE, RunStatus.DONE)
    comparison = compare_runs(store, base.run_id, new.run_id)
    verdicts = {change.point.bytes: change.verdict for change in comparison.changes}
    assert verdicts[16384] in (Verdict.SLOWER, Verdict.INCONCLUSIVE)  # the latter on a busy machine
    assert [difference.what for difference in comparison.differences] == ["variable HOCKNEY_FAULT"]
    assert comparison.launches == (6, 6)
    for outcome in (base, new):  # both are ordinary runs, with every measurement
        measurements = store.summaries(outcome.run_id)
        assert {measurement.launch_id: None for measurement in measurements}.keys() == store.run(
            outcome.run_id
        ).launches.keys()
        per_round = {(measurement.point_id, measurement.round) for measurement in measurements}
        assert len(measurements) == 2 * len(per_round)
    batches = [
        {
            (measurement.point.bytes, measurement.round): measurement.batch
            for row in store.points(run)
            for measurement in store.measurements(row).values()
        }
        for run in (base.run_id, new.run_id)
    ]
    assert batches[0] == batches[1]


def test_two_transports_are_one_series(store: Store) -> None:
    variants = Variant(plan("shm"), {}), Variant(plan("threads"), {})
    base, new = interleave.measure(variants, Lab(load_catalogue(), store, Silent(), "test"))
    comparison = compare_runs(store, base.run_id, new.run_id)
    assert [(change.point.transport, change.point.bytes) for change in comparison.changes] == [
        ("threads", size) for size in SIZES
    ]
    assert all(change.shift is not None for change in comparison.changes)
    with pytest.raises(UsageError, match="no series in common"):  # the other way round they are two runs like others
        compare_runs(store, new.run_id, base.run_id)


def test_a_point_that_fails_on_one_side_is_skipped_on_the_other(store: Store) -> None:
    ok, broken = ({"HOCKNEY_FAULT": what} for what in ("count 9 9", "fail 1 8"))
    variants = Variant(plan(launches=1), ok), Variant(plan(launches=1), broken)
    base, new = interleave.measure(variants, Lab(load_catalogue(), store, Silent(), "test"))
    assert store.points(new.run_id)[0].status is PointStatus.FAILED
    row = store.points(base.run_id)[0]
    assert row.status is PointStatus.SKIPPED
    assert (row.reason or "").startswith("new could not measure it: ")
    assert (base.status, new.status) == (RunStatus.DONE, RunStatus.PARTIAL)
    comparison = compare_runs(store, base.run_id, new.run_id)
    assert {change.verdict for change in comparison.changes} == {Verdict.INCONCLUSIVE}


@pytest.mark.parametrize(("side", "words"), [("base", ("--json",)), ("new", ())])
def test_a_side_that_fails_is_named_with_its_cause(side: str, words: tuple[str, ...], tmp_path: Path) -> None:
    if shutil.which("mpiexec.openmpi") is None:
        pytest.skip("there is no Open MPI of the system here")
    how = ("--bytes", "8", "--launches", "6", "--time", "1s", f"--{side}-env", "OMPI_MCA_btl=no_such", *words)
    done = call_here(tmp_path, "compare", "--interleave", "pingpong", "-t", "mpi@openmpi", *how)
    assert done.returncode == 3
    said = json.loads(done.stdout)["error"] if words else done.stderr.splitlines()[-1]
    assert f"{side} failed, so nothing can be compared: pingpong of 8 B on mpi@openmpi-" in said
    assert "mpiexec.openmpi" in said


def test_a_side_that_fails_in_part_ends_with_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is compared."""
    real = interleave.measure

    def measure(variants: Sequence[Variant], lab: Lab, **how: Any) -> tuple[RunOutcome, ...]:
        both = [replace(each, plan=replace(each.plan, points=plan().points)) for each in variants]
        both[1] = replace(both[1], environment={"HOCKNEY_FAULT": "fail 1 8"})
        return real(both, lab._replace(catalogue=load_catalogue()), **how)

    monkeypatch.setattr(interleave, "measure", measure)
    how = ("--bytes", "8,16K", "--launches", "6", "--time", "2s", "--new-env", "HOME=/nowhere", "--margin", "1000%")
    done = call_here(tmp_path, "compare", "--interleave", "pingpong", "-t", "shm", *how)
    assert done.returncode == 3, done.stderr
    assert "inconclusive" in done.stdout
    assert "run 1 -> run 2" in done.stdout


def test_a_variable_that_one_side_sets_is_inherited_by_the_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOCKNEY_TEST_SET", "secret")
    monkeypatch.delenv("HOCKNEY_TEST_UNSET", raising=False)
    for base, new in (({}, {"HOCKNEY_TEST_SET": "1", "HOCKNEY_TEST_UNSET": "2"}), ({"HOCKNEY_TEST_SET": "1"}, {})):
        variants = tuple(Variant(plan("shm", launches=1, time_s=0.1), side) for side in (base, new))
        outcomes = interleave.measure((variants[0], variants[1]), Lab(load_catalogue(), store, Silent(), "test"))
        comparison = compare_runs(store, *(outcome.run_id for outcome in outcomes))
        listed = {each.what.removeprefix("variable "): (each.base, each.new) for each in comparison.differences}
        if base:
            assert listed == {"HOCKNEY_TEST_SET": ("1", "inherited")}
        else:
            assert listed == {"HOCKNEY_TEST_SET": ("inherited", "1"), "HOCKNEY_TEST_UNSET": ("not set", "2")}


def test_the_command(tmp_path: Path) -> None:
    """On two models: without noise all ratios are the same."""
    words = ("compare", "--interleave", "pingpong", "--bytes", "8", "--launches", "6", "--time", "2s", "--label", "x")
    for name, latency_ns in (("a", 1000), ("b", 500)):
        write_model(tmp_path / f"{name}.toml", latency_ns)
    sides = ("--base-transport", "sim@a.toml", "--new-transport", "sim@b.toml")
    done = call_here(tmp_path, *words, *sides, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["base"], document["new"]) == (1, 2)
    assert document["counts"] == {"faster": 1}
    assert document["ranges"][0]["sentence"].startswith("faster: pingpong on model a -> model b, 8 B: ")
    runs = json.loads(call_here(tmp_path, "runs", "--json").stdout)["runs"]
    assert {run["label"] for run in runs} == {"x-base", "x-new"}
    again = json.loads(call_here(tmp_path, "compare", "x-base", "x-new", "--json").stdout)
    assert (document["margin"], again["margin"], again["series"]) == (1.01, 1.01, document["series"])


def test_both_sides_have_the_batch_that_the_faster_one_needs(tmp_path: Path) -> None:
    """Whichever is calibrated first, for each of eight sizes."""
    for name, latency_ns in (("a", 100_000), ("b", 1000)):
        write_model(tmp_path / f"{name}.toml", latency_ns)
    words = ("compare", "--interleave", "pingpong", "--bytes", "1:128", "--launches", "6")
    sides = ("--base-transport", "sim@a.toml", "--new-transport", "sim@b.toml")
    done = call_here(tmp_path, *words, "--time", "2s", *sides)
    assert done.returncode == 0, done.stderr
    with Store.open(tmp_path / "results.db", readonly=True) as store:
        batches = [{each.batch for each in store.summaries(run_id)} for run_id in (1, 2)]
    assert batches == [{10}, {10}]


def models(folder: Path, latencies_ns: Sequence[int], **asked: Any) -> tuple[Catalogue, list[Variant]]:
    """Variants of eight sizes on models of these latencies: sim@a, sim@b …"""
    catalogue, variants = load_catalogue(), []
    for name, latency_ns in zip("abcdef", latencies_ns, strict=False):
        write_model(folder / f"{name}.toml", latency_ns)
        catalogue.add_model(f"sim@{name}", load_model(str(folder / f"{name}.toml")))
        points = tuple(Point(f"sim@{name}", "pingpong", 2, 1 << n) for n in range(8))
        variants.append(Variant(Plan("test", points, virtual={f"sim@{name}": True}, **make_settings(**asked))))
    return catalogue, variants


def on_models(
    store: Store,
    folder: Path,
    latencies_ns: Sequence[int],
    measured: Callable[..., Measurement],
    decide: interleave.Decide | None = None,
    runs: Sequence[int] = (),
    **asked: Any,
) -> tuple[RunOutcome, ...]:
    """The runs of eight sizes on models; `measured` may change each measurement: (it, round_, **how)."""
    catalogue, variants = models(folder, latencies_ns, **asked)
    real = WorkerPool.measure

    def measure(pool: WorkerPool, point: Point, *, round_: int, **how: Any) -> Measurement:
        return measured(real(pool, point, round_=round_, **how), round_, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorkerPool, "measure", measure)
        return interleave.measure(variants, Lab(catalogue, store, Silent(), "test"), decide=decide, runs=runs)


@pytest.mark.parametrize(
    ("precision", "time_s", "end"), [(0.04, 20.0, PointStatus.PRECISE), (0.02, 3.0, PointStatus.TIME_UP)]
)
def test_a_point_ends_when_ten_ratios_are_as_precise_as_asked_for(
    precision: float, time_s: float, end: PointStatus, store: Store, tmp_path: Path
) -> None:
    """Every other ratio is 6 % above the rest, so its median is known to 3 %."""

    def measured(it: Measurement, round_: int, **how: Any) -> Measurement:
        is_slower = it.point.transport == "sim@b" and round_ % 2
        return replace(it, elapsed_ns=(it.elapsed_ns * 1.06).round().astype("int64")) if is_slower else it

    for outcome in on_models(store, tmp_path, (100_000, 50_000), measured, precision=precision, time_s=time_s):
        rows = store.points(outcome.run_id)
        assert {row.status for row in rows} == {end}
        if end is PointStatus.PRECISE:
            assert {len(store.measurements(row)) for row in rows} == {2 * MIN_MEASUREMENTS}


def test_a_slow_side_leaves_the_quick_one_its_warm_up(store: Store, tmp_path: Path) -> None:
    """Whichever is calibrated first. A repetition of the slow one is a measurement by itself."""
    warmups: set[int] = set()

    def measured(it: Measurement, round_: int, **how: Any) -> Measurement:
        if it.point.transport == "sim@b" and how["samples"] > SAMPLES_MIN:
            warmups.add(how["warmup"])
        return it

    on_models(store, tmp_path, (1_000_000_000, 1000), measured, time_s=1.0)
    assert warmups == {2}


def test_who_is_decided_is_measured_no_more_and_the_others_go_on(store: Store, tmp_path: Path) -> None:
    """Of three: `b` leaves small sizes after two launches, all others after three."""
    seen: list[Ratios] = []
    orders: dict[tuple[int, int], list[str]] = {}

    def measured(it: Measurement, round_: int, **how: Any) -> Measurement:
        if how["samples"] > 1:
            orders.setdefault((round_, it.point.bytes), []).append(it.point.transport)
        return it

    def decide(ratios: Ratios) -> list[Entry]:
        seen.append({entry: list(values) for entry, values in ratios.items()})
        launches = max(map(len, ratios.values()))
        return [entry for entry in ratios if launches > 2 or (launches == 2 and entry[0] == 1 and entry[1].bytes < 8)]

    base, *new = on_models(store, tmp_path, (1000, 2000, 500), measured, decide, time_s=60.0, launches=2)
    assert len(seen) == 3
    for (number, point), ratios in seen[-1].items():
        assert len(ratios) == (2 if number == 1 and point.bytes < 8 else 3)
        assert ratios == pytest.approx([(2.0, 0.5)[number - 1]] * len(ratios), rel=0.01)
    for (_, size), names in orders.items():
        mirrored = names[-2 * len({*names}) :]  # after the calibration of a first round
        assert mirrored == mirrored[::-1]
        assert len({*names}) in ((2, 3) if size < 8 else (3,))
    for outcome, ratio in zip(new, (2.0, 0.5), strict=True):
        comparison = compare_runs(store, base.run_id, outcome.run_id)
        assert {change.has(ReasonCode.FEW_PAIRS) for change in comparison.changes} == {True}  # seven are needed
        assert [change.shift and change.shift.ratio for change in comparison.changes] == pytest.approx(
            [ratio] * 8, 0.01
        )
        assert outcome.status is RunStatus.DONE


def test_a_race_that_was_stopped_goes_on_from_its_launches(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`b` leaves small sizes after two launches. In the fourth one the round of base alone is stored."""
    looks: list[dict[Entry, list[float]]] = []
    times: list[Point] = []
    rng, is_stopping = random.Random(1), True
    real = Store.write_round

    def write_round(self: Store, run_id: int, measurements: Sequence[Measurement]) -> None:
        if is_stopping and len(looks) == 3 and run_id == 2:
            raise KeyboardInterrupt
        real(self, run_id, measurements)

    def measured(it: Measurement, *_: object, **__: object) -> Measurement:
        times.append(it.point)
        return replace(it, elapsed_ns=(it.elapsed_ns * rng.uniform(1, 1.2)).round().astype("int64"))

    def decide(known: Ratios) -> list[Entry]:
        looks.append({entry: list(ratios) for entry, ratios in known.items()})
        launches = max(map(len, known.values()))
        small = [entry for entry in known if launches >= 2 and entry[0] == 1 and entry[1].bytes < 8]
        return [*known] if launches >= 6 else small

    def race(**how: Any) -> tuple[RunOutcome, ...]:
        return on_models(store, tmp_path, (1000, 2000, 500), measured, decide, time_s=60.0, launches=2, **how)

    monkeypatch.setattr(Store, "write_round", write_round)
    stopped = race()
    assert {outcome.status for outcome in stopped} == {RunStatus.STOPPED}
    before, runs, is_stopping = looks.copy(), [outcome.run_id for outcome in stopped], False
    assert store.run(1).rounds > store.run(2).rounds
    times.clear()
    looks.clear()
    assert [(outcome.run_id, outcome.status) for outcome in race(runs=runs)] == [(run, RunStatus.DONE) for run in runs]
    for then, now in zip(before, looks, strict=False):
        assert now == {entry: pytest.approx(ratios) for entry, ratios in then.items()}
    assert {len(ratios) for (number, at), ratios in looks[-1].items() if number == 2 or at.bytes >= 8} == {6}
    assert {len(ratios) for (number, at), ratios in looks[-1].items() if number == 1 and at.bytes < 8} == {2}
    assert {point.bytes for point in times if point.transport == "sim@b"} == {8, 16, 32, 64, 128}
    for launch in (3, 4, 5, 6):  # 3 is the one that was cut short
        assert all(launch in {each.index for each in store.run(run).launches.values()} for run in runs)
    times.clear()
    ended = looks[-1]
    assert {outcome.run_id for outcome in race(runs=runs)} == {*runs}
    assert (times, looks[-1]) == ([], ended)
    monkeypatch.setattr(interleave, "facts", lambda: {"limits": {"usable_cpus": "77"}})
    with pytest.raises(UsageError, match="run 1 cannot be resumed here, because its list of usable CPUs was"):
        race(runs=runs)


def test_a_variant_may_have_another_option_of_the_pattern(store: Store) -> None:
    base = Plan("test", (Point("shm", "bcast", 2, 8),), limits=Limits(time_s=0.3, launches=2, timeout_s=60))
    chain = replace(base, points=(base.points[0].having("algorithm", "chain"),))
    looks: list[Ratios] = []

    def decide(known: Ratios) -> list[Entry]:
        looks.append(known)
        return [*known]

    variants = Variant(base), Variant(chain, having=("algorithm", "chain"))
    outcomes = interleave.measure(variants, Lab(load_catalogue(), store, Silent(), "test"), decide=decide)
    assert [*looks[-1]] == [(1, base.points[0])]
    assert [row.point for each in outcomes for row in store.points(each.run_id)] == [*base.points, *chain.points]


def test_where_nothing_is_decided_the_time_ends_it(store: Store, tmp_path: Path) -> None:
    counts: list[set[int]] = []

    def decide(ratios: Ratios) -> list[Entry]:
        counts.append({*map(len, ratios.values())})
        return []

    outcomes = on_models(store, tmp_path, (1000, 500), lambda it, *_, **__: it, decide, time_s=0.5, launches=3)
    assert [outcome.status for outcome in outcomes] == [RunStatus.DONE] * 2
    assert counts == [{number} for number in range(1, len(counts) + 1)]
    assert len(counts) >= 3


def test_one_of_three_that_fails_does_not_stop_the_others(store: Store) -> None:
    faults = ({"HOCKNEY_FAULT": what} for what in ("count 9 9", "fail 1 8", "count 9 9"))
    variants = [Variant(plan(launches=2, time_s=1.0), fault, f"v{number}") for number, fault in enumerate(faults)]
    base, broken, fine = interleave.measure(variants, Lab(load_catalogue(), store, Silent(), "test"))
    assert [row.status is PointStatus.FAILED for row in store.points(broken.run_id)] == [True, False]
    ends = {row.status for outcome in (base, fine) for row in store.points(outcome.run_id)}
    assert ends.isdisjoint(NOT_MEASURED)
    (failed, _), whole = (compare_runs(store, base.run_id, new.run_id).changes for new in (broken, fine))
    assert failed.has(ReasonCode.FAILED)
    assert {change.launches for change in whole} == {(2, 2)}


def test_base_that_fails_at_a_point_ends_it_for_all(store: Store) -> None:
    faults = ({"HOCKNEY_FAULT": what} for what in ("fail 1 8", "count 9 9", "count 9 9"))
    variants = [Variant(plan(launches=1, time_s=1.0), fault) for fault in faults]
    base, *others = interleave.measure(variants, Lab(load_catalogue(), store, Silent(), "test"))
    assert store.points(base.run_id)[0].status is PointStatus.FAILED
    for other in others:
        small, large = store.points(other.run_id)
        assert (small.status, (small.reason or "").partition(":")[0]) == (
            PointStatus.SKIPPED,
            "base could not measure it",
        )
        assert large.status not in NOT_MEASURED


@pytest.mark.parametrize(
    ("latencies_ns", "counts"), [((1000, 500), {"faster": 2}), ((1000, 1000), {"no difference seen": 2})]
)
def test_a_comparison_ends_when_each_series_has_a_verdict(
    latencies_ns: tuple[int, int], counts: dict[str, int], tmp_path: Path
) -> None:
    """Long before the time is up; its launches are as many as two series need."""
    for name, latency_ns in zip("ab", latencies_ns, strict=True):
        write_model(tmp_path / f"{name}.toml", latency_ns)
    sides = ("--base-transport", "sim@a.toml", "--new-transport", "sim@b.toml")
    done = call_here(
        tmp_path, "compare", "--interleave", "pingpong", "--bytes", "8,64", "--time", "10m", *sides, "--json"
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["counts"] == counts
    needed = values_needed(2) if "faster" in counts else VALUES_MIN
    assert {change["shift"]["n_new"] for change in document["series"]} == {needed}
    assert "until each series has a verdict" in done.stderr


def test_an_mpi_named_by_its_folder(tmp_path: Path, fake: Fakes) -> None:
    mpicc, mpiexec = shutil.which("mpicc.openmpi"), shutil.which("mpiexec.openmpi")
    if mpicc is None or mpiexec is None:
        pytest.skip("there is no Open MPI of the system here")
    prefix = tmp_path / "opt" / "mine"
    for name, real in (("mpicc", mpicc), ("mpiexec", mpiexec)):
        fake(prefix / "bin" / name, f'exec {real} "$@"')
    done = call_here(tmp_path, "run", "pingpong", "-t", f"mpi@{prefix}", "--bytes", "8", "--time", "0.2s", "--json")
    assert done.returncode in (0, 3), done.stderr  # 3: no interval in so little time
    (series,) = json.loads(done.stdout)["series"]
    assert series["transport"] == f"mpi@{prefix}"
    resumed = call_here(tmp_path, "run", "--resume", "--json")
    assert (
        resumed.returncode in (0, 3) or "nothing left to measure" in resumed.stderr or "is complete" in resumed.stderr
    )


@pytest.mark.parametrize(("holder", "name"), [(Store, "create_run"), (running, "warnings_before")])
def test_ctrl_c_before_the_first_measurement_ends_both_runs(
    store: Store, monkeypatch: pytest.MonkeyPatch, holder: Any, name: str
) -> None:
    real = getattr(holder, name)

    def interrupted(*words: Any, **more: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return real(*words, **more)

    monkeypatch.setattr(holder, name, interrupted)
    variants = Variant(plan(), {}), Variant(plan(), SLOW)
    outcomes = interleave.measure(variants, Lab(load_catalogue(), store, Silent(), "test"))
    assert [outcome.status for outcome in outcomes] == [RunStatus.STOPPED] * 2
    assert [store.run(outcome.run_id).status for outcome in outcomes] == [RunStatus.STOPPED] * 2


def test_one_side_alone_cannot_be_resumed(store: Store) -> None:
    variants = Variant(plan(), {}), Variant(plan(), SLOW)
    stopped = Silent(stop_after_rounds=1)
    _, new = interleave.measure(variants, Lab(load_catalogue(), store, stopped, "hockney compare"))
    assert new.status is RunStatus.STOPPED
    with pytest.raises(UsageError, match="in alternation with another and cannot be continued alone"):
        resume(str(new.run_id), Lab(load_catalogue(), store, Silent()))


def test_a_variable_that_hockney_sets_itself_is_refused(store: Store) -> None:
    catalogue = load_catalogue()
    wheel = make_library("mpi@mpich-4.2", "mpich", is_wheel=True)
    of_wheel = replace(catalogue.transports["shm"], library=wheel)
    variants = Variant(plan("shm"), {}), Variant(plan("shm"), {"LD_LIBRARY_PATH": "/opt/b"})
    catalogue = replace(catalogue, transports={**catalogue.transports, "shm": of_wheel})
    with pytest.raises(UsageError, match="hockney sets LD_LIBRARY_PATH itself for this library"):
        interleave.measure(variants, Lab(catalogue, store, Silent(), "test"))
    assert store.runs() == []
