"""`-o rate=100kHz`, and the search of the highest rate with `-o rate=max -o deadline=1ms`."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.builders import make_info, make_launch, make_measurement
from tests.cli.support import FACTS, Cli

from hockney.measure.plan import Plan
from hockney.model import Definition, Point, RunStatus
from hockney.report.documents.rates import rates_section
from hockney.results.rates import HighestRates, SustainedRate, at_rate
from hockney.results.store import Store
from hockney.units import format_rate

FARM = ("-t", "unix", "-n", "3", "--oversubscribe")
BASE = Point("unix", "pushfarm", 3, 1024, (("in_flight", "4"),))
T3D_HZ = 1e9 / (1e6 + 2 * 37_967)  # a receiver computes for 1 ms; its CPU takes a message in and reports


def test_a_rate_has_its_unit_and_percentiles_are_printed(cli: Cli) -> None:
    ended = cli("run", "pushfarm", *FARM, "-o", "rate=2kHz", "--bytes", "1K", "--time", "2", "--launches", "1")
    assert ended.returncode in (0, 3), ended.stderr  # 3: so short a run may have no interval
    # On a busy machine half a second may have too few events for p99.9.
    title, head, *_ = (line for line in ended.stdout.splitlines() if "rates offered" in line or " p99 " in line)
    assert title.startswith("pushfarm on unix, 3 ranks, rates offered")
    assert ("rate" in head.split(), "offered" in head.split(), "p99" in head.split()) == (False, True, True)


def test_a_search_prints_the_highest_rate_and_stores_every_rate(cli: Cli, tmp_path: Path) -> None:
    words = ("-o", "rate=max", "-o", "deadline=1s", "-o", "in_flight=4", "--time", "2")
    ended = cli("run", "pushfarm", *FARM, *words)
    assert ended.returncode in (0, 3), ended.stderr  # 3: it has not ended on a busy machine
    assert "until the highest rate of each is found" in ended.stderr
    assert "Highest rate of events with a deadline of 1.00 s" in ended.stdout
    with Store.open(tmp_path / "results.db", readonly=True) as store:
        points = [row.point for row in store.points(1)]
    assert points[0] == BASE
    assert len(points) > 1
    assert {at_rate(point, 0) for point in points} == {BASE}
    document = json.loads(cli("show", "--tables", "--json").stdout)
    assert document["deadline_ns"] == 1e9
    (rate,) = document["rates"]
    assert rate["point"]["pattern"] == "pushfarm"
    assert {rate["sustained_hz"], rate["missed_hz"]} & {point.rate_hz for point in points}


def test_a_search_finds_how_many_events_in_flight_are_best_and_predict_finds_the_same(cli: Cli) -> None:
    """One event in flight waits for its round trip; four keep the receiver busy, and more bring nothing."""
    farm = ("pushfarm", "--machine", "t3d", "-n", "3", "-o", "delay_us=1000", "-o", "rate=max", "-o", "deadline=100ms")
    measured, predicted = (
        json.loads(cli("run", *farm, "--json").stdout),
        json.loads(cli("predict", *farm, "--json").stdout),
    )
    assert predicted["rates"] == measured["rates"]
    assert [rate["point"]["options"].get("in_flight", "1") for rate in predicted["rates"]] == ["1", "4", "16", "64"]
    alone, four, *more = predicted["rates"]
    assert alone["sustained_hz"] < 900
    for rate in (four, *more):
        assert rate["sustained_hz"] == pytest.approx(T3D_HZ, rel=0.02)
        assert rate["bytes_per_s"] == 1024 * rate["sustained_hz"]
        assert rate["is_over"]
    said = " ".join(cli("predict", *farm).stdout.split())
    assert "in_flight=4 of 1 KiB on sim@t3d, 3 ranks: " in said
    assert " is the highest, with 2 others within 2 %" in said
    assert any(format_rate(rate["bytes_per_s"]) in said for rate in (four, *more))


def test_a_search_on_a_model_ends_at_its_receivers_limit(cli: Cli) -> None:
    """One percent more is not seen to fall behind."""
    farm = ("--machine", "t3d", "-n", "3", "-o", "in_flight=64", "-o", "delay_us=1000")
    ended = cli("run", "pushfarm,eventbuilder", *farm, "-o", "rate=max", "-o", "deadline=100ms", "--json")
    assert ended.returncode == 0, ended.stderr
    for rate in json.loads(ended.stdout)["rates"]:
        assert 0.98 * T3D_HZ <= rate["sustained_hz"] <= 1.01 * T3D_HZ
        assert rate["sustained_hz"] < rate["missed_hz"] <= 1.02 * rate["sustained_hz"]
        assert 1e6 < rate["p50_ns"] <= rate["p99_ns"] <= rate["p999_ns"] <= 100e6


def test_where_no_search_has_ended_the_run_is_incomplete(cli: Cli) -> None:
    """Two rates with six measurements of 50 ms each take 0.6 s at least, and the run has 0.3 s."""
    ended = cli("run", "pushfarm", *FARM, "-o", "rate=max", "-o", "deadline=1s", "-o", "in_flight=4", "--time", "0.3")
    assert ended.returncode == 3, ended.stderr
    said = " ".join(ended.stderr.split())
    assert "time is up; no search has found its highest rate." in said
    assert "run --resume 1`" in said
    assert "‡: 1 of 1 search has not ended; continue: `hockney run --resume 1`." in ended.stdout


def store_search(
    path: Path, times_us: dict[int, Any], deadline_ns: float = 1e6, free_us: float = 100, measurements: int = 6
) -> None:
    """A run that has tried these rates, with these times of events; without a rate each takes `free_us`."""
    plan = Plan("pushfarm", (), deadline_ns=deadline_ns).as_json()
    points = [BASE, *(at_rate(BASE, rate_hz) for rate_hz in times_us)]
    with Store.open(path) as store:
        run_id = store.create_run(make_info(facts=FACTS, plan=plan, suite="pushfarm"), points)
        launch_id = store.add_launch(run_id, make_launch())
        rows = [
            make_measurement(
                point,
                np.array([np.asarray(times_us.get(point.rate_hz, [free_us])) * 1000]),
                launch_id=launch_id,
                definition=Definition("root", 1, 0 if point.rate_hz else 1024, 0),
                floor_ns=None,
            )
            for point in points
            for _ in range(measurements)
        ]
        store.write_round(run_id, rows)
        store.finish_run(run_id, RunStatus.DONE)


def test_the_table_of_a_search_is_of_known_data(cli: Cli, tmp_path: Path) -> None:
    """1 to 1,000 us at 10 kHz; a queue that grows at 30 kHz, though no event is late; 2 % above 1 ms at 40 kHz."""
    spread = np.random.default_rng(3).permutation(np.arange(2000) % 1000 + 1)
    late = np.where(np.arange(2000) % 50 == 0, 2000, spread)
    growing = np.linspace(0, 900, 2000)
    store_search(tmp_path / "results.db", {10_000: spread, 40_000: late, 30_000: growing})
    (rate,) = json.loads(cli("show", "--tables", "--json").stdout)["rates"]
    assert (rate["sustained_hz"], rate["missed_hz"]) == (10_000, 30_000)
    assert rate["p50_ns"] == pytest.approx(500.5e3)
    assert rate["p99_ns"] == pytest.approx(990e3, rel=2e-3)
    assert rate["p999_ns"] == pytest.approx(999e3, rel=2e-3)
    row = next(line for line in cli("show", "--tables").stdout.splitlines() if line.startswith("pushfarm"))
    assert "10.0–30.0 k/s‡" in row
    assert row.rstrip().endswith("30.0 k/s (backlog)")
    assert "‡: 1 of 1 search has not ended; continue: `hockney run --resume 1`." in cli("show", "--tables").stdout


IN_TIME, LATE = np.full(1000, 10), np.full(1000, 2000)


@pytest.mark.parametrize(
    ("times_us", "measurements", "events"),
    [
        ({1000: IN_TIME, 1010: LATE}, 6, "1.00 k/s"),
        ({1000: IN_TIME, 1010: LATE}, 5, "1.00–1.01 k/s‡"),
        ({1000: IN_TIME, 2000: LATE}, 6, "1.00–2.00 k/s‡"),
        ({1000: IN_TIME, 2000: LATE, 3000: IN_TIME}, 6, "1.00–2.00 k/s‡"),
        ({900: IN_TIME, 1010: LATE}, 6, "900 /s–1.01 k/s‡"),
        ({1000: IN_TIME}, 6, "above 1.00 k/s‡"),
        ({1000: LATE}, 6, "below 1.00 k/s‡"),
        ({}, 6, "none yet‡"),
        ({100: LATE}, 6, "not found"),
    ],
)
def test_a_search_that_has_not_ended_is_a_range(
    cli: Cli, tmp_path: Path, times_us: dict[int, Any], measurements: int, events: str
) -> None:
    store_search(tmp_path / "results.db", times_us, measurements=measurements)
    (rate,) = json.loads(cli("show", "--tables", "--json").stdout)["rates"]
    assert rate["is_over"] is ("‡" not in events)
    assert rate["is_provisional"] is (measurements < 6)
    shown = cli("show", "--tables").stdout
    row = next(line for line in shown.splitlines() if line.startswith("pushfarm"))
    assert f" {events}" in row
    assert ("‡: 1 of 1 search has not ended" in shown) is ("‡" in events)
    judged = "Provisional, of fewer than 6 measurements: 1."
    assert (judged in " ".join(shown.split())) is (measurements < 6)


def test_all_forms_of_output_have_the_verdicts(cli: Cli, tmp_path: Path) -> None:
    store_search(tmp_path / "results.db", {1000: IN_TIME, 2000: LATE, 30_000: np.linspace(0, 900, 1000)})
    verdicts = {"1000": "held", "2000": "missed: deadline", "30000": "missed: backlog"}
    shown = cli("show", "--all").stdout
    assert shown.count("rates offered") == 1
    for rate, verdict in zip(("1.00", "2.00", "30.0"), verdicts.values(), strict=True):
        assert re.search(rf"^ *1 KiB +{rate} k/s .* {verdict} ", shown, re.MULTILINE)
    rows = csv.DictReader(cli("export", "--csv").stdout.splitlines())
    assert {row["options"].partition("rate_hz=")[2]: row["verdict"] for row in rows} == {"": "", **verdicts}
    tables, exported = (json.loads(cli(*words, "--json").stdout) for words in (("show", "--tables"), ("export",)))
    assert exported["deadline_ns"] == tables["deadline_ns"] == 1e6
    assert exported["rates"] == tables["rates"]
    assert tables["rates"][0]["missed_by"] == "deadline"
    for name in ("page.html", "page.md"):
        assert cli("report", "-o", str(tmp_path / name)).returncode == 0
        text = (tmp_path / name).read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
        assert "Highest rate of events with a deadline of 1.00 ms" in text
        assert text.index("1 of 1 search has not ended") < text.index("1.00–2.00 k/s‡")  # it is the verdict, too
        assert "2.00 k/s (deadline)" in text


@pytest.mark.parametrize(
    ("free_us", "times_us", "said"),
    [
        (100, {100: np.arange(1000) * 65}, "even 100 /s misses the deadline: 1 % of the events took over 64.3 ms."),
        (100, {100: np.arange(1000) * 900}, "Allow more: deadline=2s, or in_flight=32."),
        (0.5, {30_000: np.linspace(0, 900, 1000)}, "even 30.0 k/s is too fast: events queue up. Allow more receivers"),
    ],
)
def test_where_no_rate_is_found_it_names_the_next_step(
    cli: Cli, tmp_path: Path, free_us: float, times_us: dict[int, Any], said: str
) -> None:
    store_search(tmp_path / "results.db", times_us, free_us=free_us)
    assert said in " ".join(cli("show", "--tables").stdout.split())


@pytest.mark.parametrize("command", ["run", "predict"])
def test_where_no_search_finds_a_rate_the_exit_code_is_3(command: str, cli: Cli) -> None:
    farm = ("pushfarm", "--machine", "t3d", "-n", "3", "-o", "in_flight=4")
    ended = cli(command, *farm, "-o", "rate=max", "-o", "deadline=10ns")
    assert ended.returncode == 3, ended.stderr
    assert "not found" in ended.stdout
    assert "has not ended" not in ended.stdout
    assert "resume" not in ended.stderr


@pytest.mark.parametrize(
    ("p50_us", "quickest"), [((100, 100, 300), ""), ((100, 95, 100), ""), ((100, 80, 85), "4"), ((100, 110, 60), "16")]
)
def test_of_equal_rates_the_fewest_in_flight_are_named_and_a_clearly_shorter_p50(
    p50_us: tuple[float, ...], quickest: str
) -> None:
    points = [replace(BASE, options=(("in_flight", str(count)),)) for count in (1, 4, 16)]
    rates = [
        SustainedRate(point, 1000 - count, 2000, "deadline", 1e7, False, True, 1e6, 1e3 * p50, 1e7, None)
        for count, (point, p50) in enumerate(zip(points, p50_us, strict=True))
    ]
    best, *_ = rates_section(HighestRates(1e6, tuple(rates))).notes
    more = f" (in_flight={quickest} has the shortest p50)" if quickest else ""
    assert best.startswith("pushfarm in_flight=1 of 1 KiB on unix, 3 ranks: 1.00 k/s is the highest, with 2 others")
    assert best.endswith(f" within 2 %{more}.")
