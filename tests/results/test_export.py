"""Exports, read back by the parsers that users have."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.builders import SLOWEST, make_info, make_launch, make_measurement, make_point, measurements_with_medians

from hockney.model import PointStatus, RunStatus, Warning_
from hockney.results.export import CSV_COLUMNS, write_csv, write_json
from hockney.results.runs import Run
from hockney.results.store import Store

BARRIER = make_point(0, pattern="barrier", options=(("algorithm", "tree"), ("window", "2")), role="refined")
SKIPPED = make_point(8, "udp")


@pytest.fixture
def full(store: Store) -> int:
    """A run with two states in one series, a barrier, and a point that was skipped."""
    run_id = store.create_run(make_info('a, "quoted"\nlabel'), [make_point(8), BARRIER, SKIPPED])
    store.add_launch(run_id, make_launch())
    store.write_round(
        run_id,
        [
            *measurements_with_medians([100, 101, 102, 103, 104, 105], make_point(8)),
            *measurements_with_medians([300], make_point(8), floor_ns=(184.0, 186.0), steal=0.5),
            make_measurement(
                BARRIER, [[10, 30], [20, 20]], definition=SLOWEST, floor_ns=None, verified=False, started_ns=71
            ),
        ],
    )
    store.set_status(run_id, make_point(8), PointStatus.TIME_UP, "the time was up")
    store.set_status(run_id, SKIPPED, PointStatus.SKIPPED, "udp can't; see docs")
    store.add_warning(run_id, Warning_("governor", "cpu0", "Slow.", "Try performance."))
    store.finish_run(run_id, RunStatus.DONE)
    return run_id


def csv_of(store: Store, run_id: int) -> list[dict[str, str]]:
    stream = io.StringIO(newline="")
    write_csv(Run(store, run_id), stream)
    stream.seek(0)
    return list(csv.DictReader(stream))


def json_of(store: Store, run_id: int, **how: bool) -> Any:
    stream = io.StringIO()
    write_json(Run(store, run_id), stream, **how)
    return json.loads(stream.getvalue(), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def test_csv_has_a_row_per_series_and_state(store: Store, full: int) -> None:
    rows = csv_of(store, full)
    assert [(row["pattern"], row["transport"], row["state"]) for row in rows] == [
        ("pingpong", "shm", "near"),
        ("pingpong", "shm", "far"),
        ("barrier", "shm", "unknown"),
        ("pingpong", "udp", ""),
    ]
    assert all(list(row) == list(CSV_COLUMNS) for row in rows)


def test_csv_row_is_complete(store: Store, full: int) -> None:
    near = csv_of(store, full)[0]
    assert near == {
        "run": str(full),
        "label": 'a, "quoted"\nlabel',
        "transport": "shm",
        "library": "hockney shm",
        "pattern": "pingpong",
        "ranks": "2",
        "bytes": "8",
        "options": "",
        "role": "asked",
        "status": "time up",
        "reason": "the time was up",
        "state": "near",
        "floor_ns": "27.5",
        "time_ns": "102.5",
        "time_low_ns": "100.0",
        "time_high_ns": "105.0",
        "coverage": "0.96875",
        "interval_over": "within one launch",
        "between_launches": "",
        "within_launches": near["within_launches"],
        "launches_needed": "",
        "measurements": "6",
        "samples": "18",
        "launches": "1",
        "minimum_ns": "90.0",
        "p99_ns": "",
        "p999_ns": "",
        "rate_bytes_per_s": near["rate_bytes_per_s"],
        "rate_low_bytes_per_s": near["rate_low_bytes_per_s"],
        "rate_high_bytes_per_s": near["rate_high_bytes_per_s"],
        "messages_per_s": near["messages_per_s"],
        "messages_low_per_s": near["messages_low_per_s"],
        "messages_high_per_s": near["messages_high_per_s"],
        "shown": "True",
        "mixed": "False",
        "slowest_rank": "",
        "slowest_share": "",
        "verified": "True",
        "batch": "1",
        "left_out": "0",
        "short": "False",
        "timed": "root",
        "divisor": "2",
        "bytes_per_rep": "16",
        "messages_per_rep": "2",
        "algorithm": "",
        "oversubscribed": "False",
        **dict.fromkeys(("events_per_s", "late_share", "lost", "fairness", "resent", "timeouts"), ""),
        "verdict": "",
    }
    assert float(near["rate_bytes_per_s"]) == pytest.approx(16 / 205e-9)
    assert float(near["messages_per_s"]) == pytest.approx(2 / 205e-9)
    assert float(near["messages_low_per_s"]) == pytest.approx(2 / 210e-9)
    assert float(near["messages_high_per_s"]) == pytest.approx(2 / 200e-9)


def test_csv_says_unknown_by_an_empty_field(store: Store, full: int) -> None:
    _, far, barrier, skipped = csv_of(store, full)
    assert (far["time_ns"], far["time_low_ns"], far["coverage"]) == ("300.0", "290.0", "")
    assert (barrier["floor_ns"], barrier["rate_bytes_per_s"], barrier["verified"]) == ("", "", "")
    assert (barrier["options"], barrier["role"]) == ("algorithm=tree window=2", "refined")
    assert (barrier["slowest_share"], barrier["algorithm"]) == ("0.5", "portable")
    assert (skipped["status"], skipped["reason"]) == ("skipped", "udp can't; see docs")
    assert {skipped[name] for name in [*CSV_COLUMNS][11:]} == {""}


def test_csv_says_where_any_launch_had_more_ranks_than_cpus(store: Store) -> None:
    point = make_point(8)
    run_id = store.create_run(make_info(), [point])
    numbers = [store.add_launch(run_id, make_launch(oversubscribed=oversubscribed)) for oversubscribed in (False, True)]
    for number in numbers:
        store.write_round(run_id, [make_measurement(point, [[10, 30], [20, 20]], launch_id=number)])
    assert {row["oversubscribed"] for row in csv_of(store, run_id)} == {"True"}


def test_json_names_its_format_and_the_request(store: Store, full: int) -> None:
    document = json_of(store, full)
    assert (document["format"], document["version"]) == ("hockney-export", 3)
    assert set(document) == {"format", "version", "run", "facts", "launches", "warnings", "series"}
    info = make_info()
    assert document["run"] == {
        "id": full,
        "label": 'a, "quoted"\nlabel',
        "command": info.command,
        "suite": info.suite,
        "status": "time up",
        "started_unix_s": info.started_unix_s,
        "finished_unix_s": store.run(full).finished_unix_s,
        "rounds": 1,
        "seed": info.seed,
        "hockney_version": info.version,
        "plan": info.plan,
    }
    assert document["facts"] == info.facts
    assert document["launches"][0]["id"] == 1
    assert document["launches"][0]["cpus"] == [0, -1]
    assert document["warnings"] == [
        {"kind": "governor", "subject": "cpu0", "cause": "Slow.", "remedy": "Try performance."}
    ]


def test_json_has_every_series(store: Store, full: int) -> None:
    pingpong, barrier, skipped = json_of(store, full)["series"]
    assert [figure["state"] for figure in pingpong["figures"]] == ["near", "far"]
    assert pingpong["figures"][0]["definition"]["divisor"] == 2
    assert [measurement["state"] for measurement in pingpong["measurements"]] == ["near"] * 6 + ["far"]
    assert (pingpong["measurements"][6]["steal"], pingpong["measurements"][0]["steal"]) == (0.5, None)
    assert "elapsed_ns" not in pingpong["measurements"][0]
    assert barrier["options"] == {"algorithm": "tree", "window": "2"}
    assert barrier["measurements"][0]["floor_ns"] is None
    assert (barrier["measurements"][0]["started_ns"], pingpong["measurements"][0]["started_ns"]) == (71, None)
    assert (skipped["figures"], skipped["measurements"], skipped["status"]) == ([], [], "skipped")


def test_json_holds_every_sample_if_asked(store: Store, full: int) -> None:
    pingpong, barrier, _ = json_of(store, full, samples=True)["series"]
    assert barrier["measurements"][0]["elapsed_ns"] == [[10, 30], [20, 20]]
    assert pingpong["measurements"][0]["elapsed_ns"] == [[180, 200, 220]] * 2


def test_every_name_in_the_exports_is_explained(store: Store, full: int) -> None:
    docs = Path(__file__).parents[2] / "docs"
    section = (docs / "metrics.md").read_text(encoding="utf-8").partition("\n## Exports\n")[2]
    explained = set(re.findall(r"\w+", section + (docs / "json.md").read_text(encoding="utf-8")))
    document = json_of(store, full, samples=True)
    series = document["series"][0]
    parts = [document, document["run"], document["launches"][0], document["warnings"][0], series]
    parts += [series["figures"][0], series["figures"][0]["definition"], series["measurements"][0]]
    assert {*CSV_COLUMNS, *itertools.chain(*parts)} - explained == set()


def test_run_without_points(store: Store) -> None:
    run_id = store.create_run(make_info(), [])
    assert csv_of(store, run_id) == []
    assert json_of(store, run_id)["series"] == []


@pytest.mark.parametrize("label", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_no_text_in_csv_is_a_formula(label: str, store: Store) -> None:
    """Only texts: a number below 0 stays one."""
    run_id = store.create_run(make_info(label), [make_point(options=(("-x", "1"),))])
    stream = io.StringIO()
    write_csv(Run(store, run_id), stream)
    (row,) = csv.DictReader(io.StringIO(stream.getvalue()))
    assert row["label"] == {"\t=1": r"\t=1", "\r=1": r"\r=1"}.get(label, f"'{label}")
    assert row["options"] == "'-x=1"
    assert row["bytes"] == "8"
