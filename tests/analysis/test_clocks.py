"""Clocks of hosts from known differences."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from tests.builders import make_info, make_launch, make_measurement, make_point
from tests.cli.support import FACTS

from hockney.analysis.clocks import (
    READINGS,
    HostClock,
    JobClocks,
    Seen,
    added_up,
    clocks_around,
    clocks_of,
    drift_ppm,
)
from hockney.measure.plan import Plan
from hockney.model import RunStatus
from hockney.render.text import show
from hockney.report.documents.clocks import clocks_around_document, clocks_document
from hockney.results.runs import Run
from hockney.results.store import Store


def test_differences_add_up_along_the_tree() -> None:
    steps = [0.0, 1.0, 10.0, 2.0, 100.0, 5.0, 20.0, 3.0]
    assert added_up(steps) == [0, 1, 10, 12, 100, 105, 120, 123]


def test_a_drift_is_the_slope_of_a_line() -> None:
    (value, low, high) = drift_ppm([Seen(time_s, 50_000 - 2500 * time_s, 10.0) for time_s in range(10)]) or (0, 0, 0)
    assert (value, low, high) == pytest.approx((-2.5, -2.5, -2.5))
    assert drift_ppm([Seen(time_s, 0.0, 10.0) for time_s in range(5)]) is None
    assert drift_ppm([Seen(3.0, 0.0, 10.0)] * 10) is None


def test_the_interval_of_a_drift_covers_it_as_often_as_it_says() -> None:
    noise, missed = random.Random(5), 0
    for _ in range(400):
        seen = [Seen(time_s, 1000 * time_s + noise.gauss(0, 500), 10.0) for time_s in range(20)]
        _, low, high = drift_ppm(seen) or (0.0, 0.0, 0.0)
        missed += not low <= 1.0 <= high
    assert 8 <= missed <= 34  # 20 expected


def store_clocks(path: Path, rounds: int = 8) -> None:
    """Two ranks on each of two hosts; the second host's clock gains 0.1 ppm."""
    point = make_point(0, "tcp", "clocks", ranks=4)
    launch = make_launch(transport="tcp", ranks=4, cpus=(0, 1, 0, 1), hosts=("a", "a", "b", "b"))
    with Store.open(path) as store:
        plan = Plan("clocks", ()).as_json()
        run_id = store.create_run(make_info(facts=FACTS, plan=plan, suite="clocks"), [point])
        launch_id = store.add_launch(run_id, launch)
        rows = [
            make_measurement(
                point,
                [[5, 5, 5]] * 4,
                launch_id=launch_id,
                round_=number,
                places=launch.places,
                started_unix_s=1e9 + number,
                counters={
                    "clock_ahead_ns": (0.0, 7.0, 9000.0 + 100 * number, 30.0),
                    "clock_error_ns": (0.0, 3.0, 500.0 if number == 4 else 600.0, 2.0),
                },
            )
            for number in range(rounds)
        ]
        store.write_round(run_id, rows)
        store.finish_run(run_id, RunStatus.DONE)


def test_a_host_counts_by_its_best_rank_and_exchange(tmp_path: Path) -> None:
    store_clocks(tmp_path / "r.db")
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        clocks = clocks_of(Run(store, 1))
    assert clocks is not None
    first, second = clocks[0].hosts
    assert (first.host, first.ahead_ns, first.error_ns) == ("a", 0.0, 0.0)
    assert (second.host, second.ahead_ns, second.error_ns) == ("b", 9400.0, 500.0)
    assert second.drift_ppm == pytest.approx(0.1)


def test_ranks_within_one_host_get_no_table_without_rows(capsys: pytest.CaptureFixture[str]) -> None:
    first, two = (HostClock(host, error_ns, error_ns, None, None, None) for host, error_ns in (("a", 0.0), ("b", 5.0)))
    across, within = (
        JobClocks(make_point(0, "tcp", "clocks"), (first, two)),
        JobClocks(make_point(0, "unix", "clocks"), (first,)),
    )
    show(clocks_document((across, within)))
    assert "over unix" not in capsys.readouterr().out
    show(clocks_document((within,)))
    assert "over unix" in capsys.readouterr().out


def test_a_drift_between_two_comparisons_is_wrong_by_both_their_errors(store: Store) -> None:
    run_id = store.create_run(make_info(facts=FACTS), [make_point()])
    for seen in (Seen(1000.0, 4000.0, 300.0), Seen(1010.0, 9000.0, 700.0)):
        store.add_to_facts(run_id, READINGS, {"a": Seen(seen.time_s, 0.0, 0.0)._asdict(), "b": seen._asdict()})
    first, second = clocks_around(Run(store, run_id))
    assert (first.drift_ppm, first.drift_error_ppm) == (0.0, 0.0)
    assert (second.drift_ppm, second.drift_error_ppm) == pytest.approx((0.5, 0.1))


def test_the_clocks_after_a_resumed_run_are_those_of_its_last_comparison(store: Store) -> None:
    run_id = store.create_run(make_info(facts=FACTS), [make_point()])
    for seen in (Seen(1000.0, 0.0, 10.0), Seen(1010.0, 90_000.0, 10.0), Seen(1020.0, 2000.0, 10.0)):
        store.add_to_facts(run_id, READINGS, {"b": seen._asdict()})
    (clock,) = clocks_around(Run(store, run_id))
    assert (clock.before.time_s, clock.after and clock.after.time_s) == (1000.0, 1020.0)
    assert clock.drift_ppm == pytest.approx(0.1)


def columns_of(text: str, *hosts: str) -> list[list[str]]:
    return [re.split(r" {2,}", line.strip()) for line in text.splitlines() if line.startswith(hosts)]


def test_a_host_is_ahead_or_behind_the_first_one(capsys: pytest.CaptureFixture[str]) -> None:
    hosts = (
        HostClock("n1", 0.0, 0.0, None, None, None),
        HostClock("n2", -1200.0, 500.0, -0.126, -0.2, 0.05),
        HostClock("n3", 80.0, 3.0, None, None, None),
    )
    show(clocks_document((JobClocks(make_point(0, "tcp", "clocks"), hosts),)))
    text = capsys.readouterr().out
    assert "with n1, over tcp" in text
    assert columns_of(text, "n1 ", "n2 ", "n3 ") == [
        ["n1", "reference"],
        ["n2", "-1.20 us", "±500 ns", "-0.13 ppm (-0.20 to +0.05)"],
        ["n3", "+80.0 ns", "±3.00 ns"],
    ]


def test_clocks_before_and_after_a_run_have_their_drift(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """n2 drifts by 5 us in 10 s; n3 by -10 ns, which is no drift with two digits."""
    run_id = store.create_run(make_info(facts=FACTS), [make_point()])
    for time_s, of_hosts in ((1000.0, (0.0, 4000.0, 100.0)), (1010.0, (0.0, 9000.0, 90.0))):
        readings = zip(("n1", "n2", "n3"), of_hosts, (0.0, 500.0, 1.0), strict=True)
        seen = {host: Seen(time_s, ahead_ns, error_ns)._asdict() for host, ahead_ns, error_ns in readings}
        store.add_to_facts(run_id, READINGS, seen)
    show(clocks_around_document(Run(store, run_id)))
    text = capsys.readouterr().out
    assert "with n1, before" in text
    assert columns_of(text, "n1 ", "n2 ", "n3 ") == [
        ["n1", "reference"],
        ["n2", "+4.00 us ±500 ns", "+9.00 us ±500 ns", "+0.50 ppm ±0.10"],
        ["n3", "+100 ns ±1.00 ns", "+90.0 ns ±1.00 ns", "+0.00 ppm ±0.00"],
    ]
