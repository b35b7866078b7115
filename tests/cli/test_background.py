"""`run --background`: the table of impacts, and what is refused."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from tests.builders import make_info, make_launch, make_measurement, make_point
from tests.cli.support import FACTS, Cli, command_line, environment, let_sigint_in
from tests.shared import killed_at_the_end

from hockney.analysis.explain.read import read_run
from hockney.analysis.pairs import usable
from hockney.analysis.repeat import alternate
from hockney.measure.plan import Plan
from hockney.model import Definition, PointStatus, RunInfo, RunStatus
from hockney.results.runs import open_results
from hockney.results.store import Store, StoredPoint
from hockney.worker.background import Background

IDLE = make_point(8, "tcp")
ON_HOSTS = Background("incast", 3, hosts=("n3", "n4", "n5"))
ALONE = make_point(64, "tcp")  # its loaded points failed


def store_impact(
    path: Path, *, rounds: int = 8, launches: int = 1, samples: int = 1000, where: Background = ON_HOSTS
) -> None:
    """Times of 1 us to 1 ms in each measurement; loaded ones take three times as long, and all drift by the round."""
    plan = Plan("pingpong", (), background=where).as_json()
    points = [IDLE, IDLE.under("incast"), ALONE, ALONE.under("incast")]
    times_ns = (np.arange(samples) + 1) * 1_000_000 // samples
    with Store.open(path) as store:
        run_id = store.create_run(make_info(facts=FACTS, plan=plan, suite="pingpong"), points)
        ids = [store.add_launch(run_id, make_launch(transport="tcp", index=index)) for index in range(launches)]
        for number in range(rounds):
            rows = [
                make_measurement(
                    point,
                    np.array([times_ns * (number + 1) * (3 if point.background else 1)]),
                    launch_id=ids[number * launches // rounds],
                    round_=number,
                    definition=Definition("root", 1, 0, 0),
                    floor_ns=None,
                )
                for point in points[:3]
            ]
            store.write_round(run_id, rows)
        store.set_status(run_id, points[3], PointStatus.FAILED, "the background failed: rank 1 was killed by SIGKILL")
        store.finish_run(run_id, RunStatus.PARTIAL)


@pytest.mark.parametrize(("launches", "over"), [(1, "within one launch"), (4, "launches")])
def test_the_table_of_impacts_is_of_known_data(cli: Cli, tmp_path: Path, launches: int, over: str) -> None:
    store_impact(tmp_path / "results.db", launches=launches)
    document = json.loads(cli("show", "--tables", "--json").stdout)
    assert document["background"] == "incast"
    (impact,) = document["impacts"]  # the failed point has none
    assert (impact["factor"], impact["low"], impact["high"]) == pytest.approx((3.0, 3.0, 3.0))
    assert (impact["interval_over"], impact["rounds"]) == (over, 8)
    for which, factor in (("idle", 1), ("loaded", 3)):
        assert impact[which]["p50_ns"] == pytest.approx(500_500 * 4.5 * factor)
        pooled = np.outer(np.arange(1, 9), np.arange(1, 1001)).ravel() * 1000 * factor
        assert impact[which]["p99_ns"] == pytest.approx(np.quantile(pooled, 0.99))
        assert impact[which]["p999_ns"] == pytest.approx(np.quantile(pooled, 0.999))
    printed = cli("show", "--tables").stdout
    assert "Impact of incast by 3 ranks on n3, n4, n5" in printed
    assert "3.00x (3.00 to 3.00)" in printed
    assert "p50 is the median over all rounds, so loaded over idle may differ" in " ".join(printed.split())
    assert "–:" not in printed


def test_an_impact_of_few_rounds_has_no_interval_and_a_remedy(cli: Cli, tmp_path: Path) -> None:
    store_impact(tmp_path / "results.db", rounds=3)
    printed = cli("show", "--tables").stdout
    assert "3.00x –" in printed
    assert "–: too few rounds for an interval. Continue: `hockney run --resume 1" in printed


def test_percentiles_of_few_samples_are_not_printed(cli: Cli, tmp_path: Path) -> None:
    store_impact(tmp_path / "results.db", samples=3)
    (impact,) = json.loads(cli("show", "--tables", "--json").stdout)["impacts"]
    assert impact["idle"]["p99_ns"] is None
    assert "p99" not in cli("show", "--tables").stdout


def test_runs_with_a_background_are_not_measured_in_alternation() -> None:
    def info(variable: str, **more: Any) -> RunInfo:
        return make_info(
            command="hockney run pingpong -t tcp", suite="pingpong", facts={"environment": {"A": variable}}, plan=more
        )

    assert alternate(info("1"), info("2")) is not None
    assert alternate(info("1"), info("2", background={"name": "incast"})) is None


def test_explain_reads_idle_points_alone(cli: Cli, tmp_path: Path) -> None:
    store_impact(tmp_path / "results.db")
    with open_results(tmp_path / "results.db") as results:
        run = results.run()
        assert {series.point for series, _ in usable(run)} == {IDLE, ALONE}
        assert {curve.options for curve in read_run(run).curves} == {()}


def test_explain_names_the_greatest_impact(cli: Cli, tmp_path: Path) -> None:
    store_impact(tmp_path / "results.db")
    said = " ".join(cli("explain").stdout.split())
    assert "3.00 times as long under incast" in said
    assert "over 8 rounds" in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--background", "flood"), "unknown background 'flood'"),
        (("--background", "bulk:x"), "'x' is not a number of ranks"),
        (("--background", "bulk", "-t", "sim@t3d"), "--background needs real ranks"),
        (
            ("--background", "bulk", "-t", "tcp", "--hosts", "n1,n2,n3"),
            "needs 2 hosts, but the other ranks (2) leave 1 of 3",
        ),
    ],
)
def test_wrong_backgrounds_are_refused(cli: Cli, words: tuple[str, ...], why: str) -> None:
    ended = cli("run", "pingpong", "--dry-run", *words)
    assert ended.returncode == 2
    assert why in " ".join(ended.stderr.split())


def test_a_search_of_the_highest_rate_takes_none(cli: Cli) -> None:
    search = ("-t", "unix", "-n", "3", "--oversubscribe", "-o", "rate=max", "-o", "deadline=1ms")
    ended = cli("run", "pushfarm", *search, "--background", "bulk")
    assert ended.returncode == 2
    assert "--background measures at one rate" in ended.stderr


def test_idle_and_loaded_points_are_measured_on_one_machine(cli: Cli, tmp_path: Path) -> None:
    """With ranks and background on the same CPUs; what is tested is that both are there, not how fast they are."""
    words = ("-t", "tcp", "--bytes", "64", "--time", "1s", "--launches", "1", "--oversubscribe")
    ended = cli("run", "pingpong", *words, "--background", "alltoall:2")
    assert ended.returncode in (0, 3), ended.stderr  # 3: so short a run may have no interval
    assert "Impact of alltoall by 2 ranks" in ended.stdout
    with Store.open(tmp_path / "results.db", readonly=True) as store:
        rows = {row.point.background: row for row in store.points(1)}
        assert rows.keys() == {None, "alltoall"}
        for row in rows.values():
            measurements = store.measurements(row).values()
            assert measurements
            assert all(measurement.verified for measurement in measurements)
        assert [launch.ranks for launch in store.run(1).launches.values()] == [2]  # the background's is none of them


def ranks_of(run: subprocess.Popen[str], ranks: int) -> list[psutil.Process]:
    """The processes of a job that a run has started, once all of its ranks are up."""
    end_s = time.monotonic() + 90
    while time.monotonic() < end_s and run.poll() is None:
        with contextlib.suppress(psutil.Error):
            children = psutil.Process(run.pid).children(recursive=True)
            members = [child for child in children if f"-n {ranks}" in " ".join(child.cmdline())]
            if len(members) >= ranks:
                return members
        time.sleep(0.01)
    run.kill()  # its output would not end
    raise AssertionError(f"no job of {ranks} ranks came up: {run.communicate()}")


def wait_for(path: Path, seen: Callable[[Store, dict[str | None, StoredPoint]], bool]) -> None:
    """Waits until a run has stored something, by its points idle (None) and loaded."""
    end_s = time.monotonic() + 90
    while time.monotonic() < end_s:
        with Store.open(path, readonly=True) as store:
            if seen(store, {row.point.background: row for row in store.points(1)}):
                return
        time.sleep(0.05)
    with Store.open(path, readonly=True) as store:
        raise AssertionError([(str(row.point), row.status, row.reason) for row in store.points(1)])


@pytest.mark.timeout(300)  # several waits, each with an end
@pytest.mark.parametrize("dies", [False, True])
def test_nothing_of_a_background_outlives_its_run(tmp_path: Path, *, dies: bool) -> None:
    """A rank of it dies: its point fails with the reason, the idle one goes on. The run ends by Ctrl-C."""
    path = tmp_path / "results.db"
    words = ("run", "pingpong", "-t", "tcp", "--bytes", "64", "--time", "5m", "--precision", "0.001%")
    more = ("--oversubscribe", "--launches", "1", "--background", "incast:4")
    process = subprocess.Popen(
        command_line(*words, *more),
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=let_sigint_in,
    )
    with killed_at_the_end(process) as run:
        members = ranks_of(run, 4)
        wait_for(path, lambda store, points: bool(store.measurements(points["incast"])))
        if dies:
            members[-1].kill()
            wait_for(path, lambda _, points: points["incast"].status is PointStatus.FAILED)
            with Store.open(path, readonly=True) as store:
                before = store.run(1).rounds
            wait_for(path, lambda store, _: store.run(1).rounds > before + 2)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=60)
    assert run.returncode == 3, said
    assert psutil.wait_procs(members, timeout=10)[1] == []
    with Store.open(path, readonly=True) as store:
        assert store.run(1).status is RunStatus.STOPPED
        idle, loaded = sorted(store.points(1), key=lambda row: row.point.background or "")
    assert idle.status is PointStatus.STOPPED
    if dies:
        assert re.match(r"the background failed: rank \d was killed by SIGKILL", loaded.reason or "")
    else:
        assert loaded.status is PointStatus.STOPPED
