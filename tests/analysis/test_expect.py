"""Limits from a file: kept, missed, inconclusive, and a list of all errors in a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.analysis.compare.made import add_run, curve
from tests.analysis.places import TWO_CORES
from tests.builders import make_point
from tests.cli.support import call_here

from hockney.analysis.expect import (
    Expectation,
    Judged,
    LimitReason,
    Outcome,
    judge_expectations,
    load_expectations,
)
from hockney.analysis.host_series import series_of
from hockney.errors import UsageError
from hockney.results.runs import Run
from hockney.results.store import Store
from hockney.stats.states import is_state, parse_state
from hockney.worker.catalogue import Catalogue
from hockney.worker.words import as_pairs


def judged(catalogue: Catalogue, store: Store, run: int, text: str) -> list[Judged]:
    path = store.path.with_name("expect.toml")
    path.write_text(text)
    known = Run(store, run)
    return judge_expectations(known, load_expectations(path, catalogue), catalogue, series_of(known))


def of_8_bytes(*lines: str) -> str:
    """A file with one expectation of the ping-pong of 8 B, which takes 1000.8 ns in a made-up run."""
    return "\n".join(["[[expect]]", 'transports = "shm"', 'pattern = "pingpong"', "bytes = 8", *lines])


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [
        ('latency = "<= 1.1 us"', Outcome.MET),
        ('latency = "<= 900ns"', Outcome.MISSED),
        ('latency = "<= 1000.8 ns"', Outcome.INCONCLUSIVE),  # in the middle of the interval
        ('bandwidth = ">= 7 MB/s"', Outcome.MET),
        ('bandwidth = ">= 9 MB/s"', Outcome.MISSED),
    ],
)
def test_a_limit_is_kept_missed_or_inconclusive(
    catalogue: Catalogue, store: Store, limit: str, outcome: Outcome
) -> None:
    run = add_run(store, curve(), launches=6)
    (limit_judged,) = judged(catalogue, store, run, of_8_bytes(limit))
    assert limit_judged.outcome is outcome
    assert limit_judged.figure is not None
    assert limit_judged.figure.time.value == pytest.approx(1000.8, rel=0.03)
    assert (limit_judged.reason is None) == (outcome is not Outcome.INCONCLUSIVE)


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [
        ('latency = "<= 10 ns"', Outcome.MET),
        ('latency = "<= 9.9 ns"', Outcome.MISSED),
        ('bandwidth = ">= 800 MB/s"', Outcome.MET),
        ('bandwidth = ">= 801 MB/s"', Outcome.MISSED),
    ],
)
def test_a_time_that_is_the_limit_keeps_it(catalogue: Catalogue, store: Store, limit: str, outcome: Outcome) -> None:
    """8 B take 10 ns on a model without noise."""
    plan = {"precision": 0.01, "virtual": {"shm": True}}
    run = add_run(store, {make_point(8): 10.0}, launches=1, measurements=(1.0,), scatter=0.0, plan=plan)
    (limit_judged,) = judged(catalogue, store, run, of_8_bytes(limit))
    assert limit_judged.outcome is outcome


def test_a_file_without_settings_is_measured_for_30_seconds_to_2_percent(catalogue: Catalogue, tmp_path: Path) -> None:
    path = tmp_path / "expect.toml"
    path.write_text(of_8_bytes('latency = "<= 1 us"'))
    suite = load_expectations(path, catalogue).suite()
    assert (suite.time_s, suite.precision, suite.launches) == (30.0, 0.02, 1)


def test_two_limits_at_every_size_and_transport(catalogue: Catalogue, store: Store) -> None:
    run = add_run(store, curve("shm") | curve("tcp"))
    text = """
        [[expect]]
        transports = ["shm", "tcp"]
        pattern = "pingpong"
        bytes = [8, "1K"]
        latency = "<= 2 us"
        bandwidth = ">= 1 TB/s"
    """
    limits = judged(catalogue, store, run, text)
    assert len(limits) == 8
    assert {limit.outcome for limit in limits if limit.what == "latency"} == {Outcome.MET}
    assert {limit.outcome for limit in limits if limit.what == "bandwidth"} == {Outcome.MISSED}


def test_a_limit_may_be_for_one_state(catalogue: Catalogue, store: Store) -> None:
    run = add_run(store, curve(), floor_ns=180)
    (of_any,) = judged(catalogue, store, run, of_8_bytes('latency = "<= 900 ns"'))
    assert of_any.outcome is Outcome.MISSED
    (of_near,) = judged(catalogue, store, run, of_8_bytes('latency = "<= 900 ns"', 'state = "near"'))
    assert of_near.outcome is Outcome.INCONCLUSIVE
    assert of_near.reason is LimitReason.FEW_MEASUREMENTS


def test_a_state_with_too_few_measurements_for_an_interval_may_not_break_the_limit(
    catalogue: Catalogue, store: Store
) -> None:
    """Nine launches keep it, and one that saw another state took four times as long."""
    run = add_run(store, curve(), launches=10, measurements=(1.0,), far={9})
    for limit in ('latency = "<= 1.1 us"', 'bandwidth = ">= 7 MB/s"'):
        (only,) = judged(catalogue, store, run, of_8_bytes(limit))
        assert only.outcome is Outcome.INCONCLUSIVE
        assert only.reason is LimitReason.OTHER_STATE
        assert only.figure is not None
        assert only.figure.time.value == pytest.approx(4 * 1000.8, rel=0.03)
        assert (only.figure.state, only.figure.has_interval) == ("far", False)
        (kept,) = judged(catalogue, store, run, of_8_bytes(limit, 'state = "near"'))
        assert kept.outcome is Outcome.MET
    (only,) = judged(catalogue, store, run, of_8_bytes('latency = "<= 5 us"'))
    assert only.outcome is Outcome.MET


@pytest.mark.parametrize("limit", ['latency = "<= 1.1 us"', 'bandwidth = ">= 7 MB/s"', 'latency = "<= 1 s"'])
def test_contended_figures_decide_nothing_unless_their_state_is_asked_for(
    catalogue: Catalogue, store: Store, limit: str
) -> None:
    """Nine launches keep the limit, and nine took twice as long beside another program."""
    run = add_run(store, curve(), launches=18, measurements=(1.0,), contended=range(9))
    (state,) = {state for series in Run(store, run).series for state in series.states if state.is_contended}
    (quiet,) = judged(catalogue, store, run, of_8_bytes(limit))
    assert (quiet.outcome, quiet.figure and quiet.figure.state) == (Outcome.MET, "near")
    # One quiet launch is too few for an interval.
    run = add_run(store, curve(), launches=10, measurements=(1.0,), contended=range(9))
    (found,) = judged(catalogue, store, run, of_8_bytes(limit))
    assert (found.outcome, found.reason) == (Outcome.INCONCLUSIVE, LimitReason.CONTENDED)
    assert (found.figure and found.figure.state) == state.name
    (found,) = judged(catalogue, store, run, of_8_bytes(limit, f'state = "{state.name}"'))
    assert found.outcome is (Outcome.MET if "1 s" in limit else Outcome.MISSED)


def test_mpi_means_the_libraries_that_the_file_names(catalogue: Catalogue, store: Store) -> None:
    """A wheel of MPICH, which hockney brings along, is not judged where the file names Open MPI."""
    libraries = ("mpi@openmpi-4.1.4", "mpi@mpich-5.0.2")
    here = {name: replace(catalogue.transports["shm"], name=name) for name in libraries}
    catalogue = replace(catalogue, transports={**catalogue.transports, **here})
    run = add_run(store, curve(libraries[0]) | curve(libraries[1]))
    of_mpi = of_8_bytes('latency = "<= 1 s"').replace("shm", "mpi")
    assert [limit.point and limit.point.transport for limit in judged(catalogue, store, run, of_mpi)] == [*libraries]
    named = of_mpi.replace('"mpi"', '"mpi@openmpi"').replace("bytes = 8", "bytes = 64")
    limits = judged(catalogue, store, run, f"{of_mpi}\n{named}")
    assert {limit.point and limit.point.transport for limit in limits} == {"mpi@openmpi-4.1.4"}
    assert [limit.point and limit.point.bytes for limit in limits] == [8, 64]


def test_a_measurement_during_which_the_state_changed_keeps_no_limit(catalogue: Catalogue, store: Store) -> None:
    run = add_run(store, curve(), unsteady=[make_point(8)])
    (found,) = judged(catalogue, store, run, of_8_bytes('latency = "<= 1 s"'))
    assert (found.outcome, found.reason) == (Outcome.INCONCLUSIVE, LimitReason.FEW_MEASUREMENTS)


def test_a_point_without_measurements_is_inconclusive(catalogue: Catalogue, store: Store) -> None:
    run = add_run(store, curve(sizes=(64,)), failed={make_point(8): "rank 1 hung"})
    text = of_8_bytes('latency = "<= 1 s"') + "\n" + of_8_bytes('latency = "<= 1 s"').replace("8", "1024")
    failed, missing = judged(catalogue, store, run, text)
    assert failed.outcome is missing.outcome is Outcome.INCONCLUSIVE
    assert (failed.reason, failed.message) == (LimitReason.NOT_MEASURED, "failed: rank 1 hung")
    assert (missing.reason, missing.subject) == (LimitReason.NO_SERIES, "pingpong of 1 KiB on shm, 2 ranks")


def test_a_limit_for_all_cpus_with_no_series_is_inconclusive(catalogue: Catalogue, store: Store) -> None:
    run = add_run(store, curve())
    (limit,) = judged(
        catalogue, store, run, of_8_bytes('latency = "<= 1 s"', 'ranks = "cpus"').replace("pingpong", "oneway")
    )
    assert limit.outcome is Outcome.INCONCLUSIVE
    assert (limit.reason, limit.subject) == (LimitReason.NO_SERIES, "oneway of 8 B on shm")


def test_errors_name_their_place(catalogue: Catalogue, tmp_path: Path) -> None:
    def places(text: str) -> set[str]:
        path = tmp_path / "expect.toml"
        path.write_text(text)
        with pytest.raises(UsageError) as caught:
            load_expectations(path, catalogue)
        lines = str(caught.value).splitlines()
        assert lines[0] == f"{path} has {len(lines) - 1} errors:"
        return {line.strip().partition(": ")[0] for line in lines[1:]}

    forms = """
        tim = "4s"
        [[expect]]
        pattern = "pingpng"
        bytes = [8, "1Q"]
        latency = "> 500 ns"
        [[expect]]
        transports = "shm"
        pattern = "oneway"
        option = { window = 16 }
        bandwidth = ">= 4 GiB"
    """
    assert places(forms) == {
        "tim", *(f"{key} of the 1st [[expect]]" for key in ("transports", "bytes", "latency")),
        *(f"{key} of the 2nd [[expect]]" for key in ("option", "bandwidth")),
    }  # fmt: skip
    words = """
        [[expect]]
        transports = "shn"
        pattern = "pingpng"
        latency = "<= 500 ns"
        [[expect]]
        transports = "shm"
        pattern = "pingpong"
        options = { window = 16 }
    """
    assert places(words) == {
        "transports of the 1st [[expect]]", "pattern of the 1st [[expect]]", "options.window of the 2nd [[expect]]",
        "the 2nd [[expect]]",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('state = "naer"', "state of the 1st [[expect]]: unknown state 'naer': did you mean 'near'?"),
        ('state = "near, contend"', "unknown addition to a state 'contend': did you mean 'contended'?"),
        ('state = "mixed"', "the state mixed has no figures"),
        ("state = 3", "'3' is not a state of the machine"),
        ('pair_class = "one hots"', "unknown pair class 'one hots': did you mean 'one host'?"),
        (
            'pattern = "rounds"\npair_class = "one host"',
            "rounds has no source and target, so it has no pairs to choose",
        ),
        ('pattern = "ft"\nbandwidth = ">= 1 GB/s"', "ft counts no bytes, so it has no bandwidth: give latency = "),
    ],
)
def test_limits_that_match_no_figure_are_refused(catalogue: Catalogue, tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "expect.toml"
    given = {one.partition(" = ")[0] for one in line.splitlines()}
    others = [one for one in of_8_bytes('latency = "<= 1 s"').splitlines() if one.partition(" = ")[0] not in given]
    path.write_text("\n".join([*others, line]))
    with pytest.raises(UsageError) as caught:
        load_expectations(path, catalogue)
    assert said in str(caught.value)


def test_impossible_points_are_refused_before_measuring(catalogue: Catalogue, tmp_path: Path) -> None:
    path = tmp_path / "expect.toml"
    tables = (
        'pattern = "oneway"\nranks = 1\nlatency = "<= 1 s"',
        'pattern = "pingpong"\nbytes = [0, 8]\nbandwidth = ">= 1 GB/s"',
        'pattern = "barrier"\nbytes = 8\nbandwidth = ">= 1 GB/s"',
        'pattern = "putpong"\nbytes = 4',
    )
    path.write_text("".join(f'[[expect]]\ntransports = "shm"\n{table}\n' for table in tables))
    with pytest.raises(UsageError) as caught:
        load_expectations(path, catalogue)
    for line in (
        "the 1st [[expect]]: oneway runs on 2 or more ranks, not on 1",
        "the 2nd [[expect]]: messages of 0 B have no bandwidth: leave 0 out of bytes",
        "the 3rd [[expect]]: barrier has no message sizes to choose: leave bytes out",
        "bandwidth of the 3rd [[expect]]: barrier counts no bytes",
        "the 4th [[expect]]: putpong accepts multiples of 8 B, not 4 B",
        "the 4th [[expect]]: no limit",
    ):
        assert f"\n  {line}" in str(caught.value), line
    done = call_here(tmp_path, "check", "--expect", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert not (tmp_path / "results.db").exists()  # nothing was measured


def test_a_barrier_that_is_not_there_is_named_without_a_size(catalogue: Catalogue, store: Store) -> None:
    text = "[[expect]]\ntransports = 'shm'\npattern = 'barrier'\nlatency = '<= 1 s'\n"
    (lacking,) = judged(catalogue, store, add_run(store, curve()), text)
    assert (lacking.reason, lacking.subject) == (LimitReason.NO_SERIES, "barrier on shm, 2 ranks")
    assert {name for name, pattern in catalogue.patterns.items() if not pattern.sized} >= {
        name for name in catalogue.patterns if not make_point(0, pattern=name).is_sized
    }


def test_ranks_and_size_default_to_those_of_the_pattern(catalogue: Catalogue, tmp_path: Path) -> None:
    path = tmp_path / "expect.toml"
    text = "[[expect]]\ntransports = 'shm'\npattern = '{}'\nlatency = '<= 1 s'\n"
    path.write_text(text.format("memload") + text.format("barrier"))
    load, barrier = load_expectations(path, catalogue).expect
    assert (load.ranks, load.bytes, barrier.ranks, barrier.bytes) == ((1,), (64,), (2,), (0,))
    done = call_here(tmp_path, "check", "--expect", str(path), "--time", "0.3s")
    assert done.returncode in (0, 3), done.stderr
    with Store.open(tmp_path / "results.db", readonly=True) as opened:
        limits = judge_expectations(Run(opened, 1), load_expectations(path, catalogue), catalogue)
    # In so short a time a measurement may be alone, its interval endless or its core shared, but the run has it.
    unsure = {LimitReason.FEW_MEASUREMENTS, LimitReason.UNCERTAIN, LimitReason.CONTENDED}
    assert {limit.reason for limit in limits} <= {None, *unsure}
    assert [limit.subject.partition(",")[0] for limit in limits] == ["memload of 64 B on shm", "barrier on shm"]


@pytest.mark.parametrize(
    ("seen", "wanted", "same"),
    [
        ("near", "near", True),
        ("near 30.0 ns", "near", True),
        ("near, contended", "near", False),
        ("near 30.0 ns, contended", "near", False),
        ("near 30.0 ns, contended", "near, contended", True),
        ("far", "near", False),
    ],
)
def test_a_state_matches_with_any_floor_but_not_contended(seen: str, wanted: str, same: bool) -> None:
    assert is_state(seen, parse_state(wanted)) == same


def test_a_limit_may_be_for_the_pairs_of_a_class(catalogue: Catalogue, store: Store) -> None:
    """Ranks on CPUs 0 and 1, which share a core, and on 2, which doesn't."""
    ends = [(source, target) for source in range(3) for target in range(3) if source != target]
    options = [{"source": str(source), "target": str(target)} for source, target in ends]
    points = [
        replace(make_point(8), ranks=3, options=as_pairs(catalogue.pattern("pingpong"), of_pair)) for of_pair in options
    ]
    times = {point: 100.0 if {0, 1} == set(of_pair) else 1e6 for point, of_pair in zip(points, ends, strict=True)}
    run = add_run(store, times, cpus=(0, 1, 2), facts=TWO_CORES)
    limit = ('latency = "<= 1 us"', "ranks = 3")
    of_core = judged(catalogue, store, run, of_8_bytes(*limit, 'pair_class = "one core"'))
    assert [(one.outcome, one.point and one.point.options) for one in of_core] == [
        (Outcome.MET, ()),
        (Outcome.MET, (("source", "1"), ("target", "0"))),
    ]
    # Where the class is there, it is the size that is not.
    (of_size,) = judged(
        catalogue, store, run, of_8_bytes(*limit, 'pair_class = "one core"').replace("bytes = 8", "bytes = 64")
    )
    assert (of_size.reason, of_size.classes) == (LimitReason.NO_SERIES, ())
    of_package = judged(catalogue, store, run, of_8_bytes(*limit, 'pair_class = "one package"'))
    assert [one.outcome for one in of_package] == [Outcome.MISSED] * 4
    (of_none,) = judged(catalogue, store, run, of_8_bytes(*limit, 'pair_class = "between hosts"'))
    assert of_none.outcome is Outcome.INCONCLUSIVE
    assert (of_none.reason, of_none.classes) == (LimitReason.NO_SERIES, ("one core", "one package"))


def test_each_launch_is_judged_by_the_limits_for_the_class_of_its_ranks(catalogue: Catalogue, store: Store) -> None:
    """Ranks that share a core in four launches, and are more distant in two, one of them the last."""
    point = make_point(8)
    run = add_run(
        *(store, {point: 100.0}),
        launches=6,
        cpus=(0, 1),
        far={1, 5},
        cpus_far=(0, 2),
        facts=TWO_CORES,
    )
    text = "\n".join(
        of_8_bytes(f'latency = "<= {limit_ns} ns"', f'pair_class = "{name}"')
        for name, limit_ns in (("one core", 150), ("one package", 150), ("one package", 600))
    )
    core, *package = judged(catalogue, store, run, text)
    assert [one.outcome for one in (core, *package)] == [Outcome.MET, Outcome.MISSED, Outcome.MET]
    assert [one.figure and one.figure.n_launches for one in (core, *package)] == [4, 2, 2]
    (of_none,) = judged(catalogue, store, run, of_8_bytes('latency = "<= 1 s"', 'pair_class = "one host"'))
    assert of_none.outcome is Outcome.INCONCLUSIVE


def test_a_failure_in_every_class_is_reported_for_each(catalogue: Catalogue, store: Store) -> None:
    run = add_run(
        *(store, curve(sizes=(64,))),
        failed={make_point(8): "rank 1 hung"},
        cpus=(0, 1),
        far={0},
        cpus_far=(0, 2),
        facts=TWO_CORES,
    )
    for name in ("one core", "one package"):
        (limit,) = judged(catalogue, store, run, of_8_bytes('latency = "<= 1 s"', f'pair_class = "{name}"'))
        assert (limit.outcome, limit.message) == (Outcome.INCONCLUSIVE, "failed: rank 1 hung")


def test_a_failure_in_a_later_launch_is_inconclusive_in_its_class_too(catalogue: Catalogue, store: Store) -> None:
    """Ranks 0 and 1 share a core in the first launch, with measurements; then they failed, on distant cores.

    Ranks 1 and 2 share a package in both, and keep the limit.
    """
    pair, other = (
        replace(make_point(8), ranks=3, options=as_pairs(catalogue.pattern("pingpong"), ends))
        for ends in ({"source": "0", "target": "1"}, {"source": "1", "target": "2"})
    )
    run = add_run(
        *(store, {pair: 100.0, other: 100.0}),
        launches=2,
        failed={pair: "rank 1 hung"},
        cpus=(0, 1, 2),
        far={1},
        cpus_far=(0, 2, 1),
        facts=TWO_CORES,
    )
    for name, points in (("one core", [pair]), ("one package", [pair, other])):
        limits = judged(catalogue, store, run, of_8_bytes('latency = "<= 1 us"', "ranks = 3", f'pair_class = "{name}"'))
        assert [limit.point for limit in limits] == points
        assert (limits[0].outcome, limits[0].message) == (Outcome.INCONCLUSIVE, "failed: rank 1 hung")


def test_names_and_patterns_of_hosts_may_share_a_word() -> None:
    table = Expectation(pattern="flows", transports=("tcp",), hosts=("n[1,3],gpu*, x", "y?"))
    assert table.hosts == ("n1", "n3", "gpu*", "x", "y?")
