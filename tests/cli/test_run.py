"""`hockney run`: several patterns together, tables of several transports, and files written or left unchanged."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from tests.cli.support import Cli

from hockney.results.store import Store

SHORT = ("--bytes", "8,1K", "--time", "0.3s", "--precision", "90%")


def test_several_patterns_are_one_run_with_a_column_for_each_transport(cli: Cli, tmp_path: Path) -> None:
    ended = cli("run", "pingpong,oneway,pingpong", "-t", "shm,threads", "-o", "window=4", *SHORT)
    assert ended.returncode in (0, 3), ended.stderr  # 3: no interval in so little time
    with Store.open(tmp_path / "results.db", readonly=True) as store:
        (stored,) = store.runs()
        points = [row.point for row in store.points(stored.id)]
    assert stored.suite == "pingpong,oneway"
    assert len({(point.pattern, point.transport, point.bytes) for point in points}) == len(points) == 8
    lines = ended.stdout.splitlines()
    titles = [line.split() for line in lines if re.match(r" *size +shm", line)]
    assert len(titles) == 4  # the times of each, and where there is a window rates of bytes and messages
    rows = [line for line in lines if re.match(r" *8 B ", line)]
    assert len(rows) == 4
    figure = re.compile(r"[\d.]+ [num]s|[\d.]+ [kMG]?B?/s| -(?: |$)")  # -: not measured in the state that is shown
    assert all(len(figure.findall(row)) == 2 for row in rows)
    again = cli("show", "--by-size", "--pattern", "oneway")
    assert again.stdout.count("size") == 3
    assert all(row in again.stdout.splitlines() for row in rows[1:])


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("pingpong,onway", "unknown pattern 'onway': did you mean 'oneway'?"),
        ("pingpong,", "unknown pattern ''"),
    ],
)
def test_an_unknown_pattern_among_several_is_named(cli: Cli, what: str, said: str) -> None:
    ended = cli("run", what, "-t", "shm")
    assert ended.returncode == 2
    assert said in ended.stderr


def test_message_rate_is_shown_where_a_window_is_used(cli: Cli) -> None:
    ended = cli("run", "pingpong,twoway", "-t", "shm", "-o", "window=4", *SHORT)
    assert ended.returncode in (0, 3), ended.stderr  # 3: no interval in so little time
    windowed, plain = (
        next(part for part in ended.stdout.split("\n\n") if part.startswith(name)) for name in ("twoway", "pingpong")
    )
    assert "messages" in windowed.splitlines()[1].split()
    assert re.search(r"\d [kM]/s", windowed)
    assert "messages" not in plain


def test_csv_is_written_at_the_end(cli: Cli, tmp_path: Path) -> None:
    ended = cli("run", "oneway", "-t", "shm", *SHORT, "--csv", "figures.csv")
    assert ended.returncode in (0, 3), ended.stderr
    exported = cli("export", "last", "--csv").stdout
    assert (tmp_path / "figures.csv").read_text() == exported
    rows = list(csv.DictReader(exported.splitlines()))
    assert all(float(row["messages_per_s"]) > 0 for row in rows)
    assert {row["bytes"] for row in rows} == {"8", "1024"}


@pytest.mark.parametrize("name", ["nowhere/figures.csv", ".", "results.db"])
def test_a_csv_that_cannot_or_must_not_be_written_is_refused_before_anything_is_measured(
    cli: Cli, tmp_path: Path, name: str
) -> None:
    Store.open(tmp_path / "results.db").close()
    ended = cli("run", "pingpong", "-t", "shm", *SHORT, "--csv", name)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    with Store.open(tmp_path / "results.db", readonly=True) as store:
        assert store.runs() == []


def test_quiet_shows_the_result_alone(cli: Cli) -> None:
    ended = cli("run", "pingpong", "-t", "shm", *SHORT, "-q")
    assert ended.stderr == "" if ended.returncode == 0 else "; nothing is known to " in " ".join(ended.stderr.split())
    assert "pingpong on shm" in ended.stdout


def test_dry_run_lists_the_points_and_leaves_nothing(cli: Cli, tmp_path: Path) -> None:
    words = ("run", "pingpong,memload", "-t", "shm,tcp", "--bytes", "8,64", "--time", "7s", "--launches", "2")
    ended = cli(*words, "--dry-run")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.search(r"pingpong, 2 ranks +shm, tcp +8 B, 64 B", ended.stdout)
    skipped = ended.stdout.partition("Skipped")[2]
    assert re.search(r"^Because memload accepts .*:\nmemload, 1 rank +shm, tcp +8 B *$", skipped, re.MULTILINE)
    assert "after about 7 s at the latest: 2 launches" in " ".join(ended.stdout.split())
    document = json.loads(cli(*words, "--dry-run", "--json").stdout)
    sizes = [(point["pattern"], point["transport"], point["bytes"]) for point in document["points"]]
    assert sizes == [
        ("pingpong", "shm", 8), ("pingpong", "shm", 64), ("pingpong", "tcp", 8), ("pingpong", "tcp", 64),
        ("memload", "shm", 64), ("memload", "tcp", 64),
    ]  # fmt: skip
    assert document["plan"]["launches"] == 2
    assert {skipped_point["point"]["bytes"] for skipped_point in document["skipped"]} >= {8}
    assert list(tmp_path.iterdir()) == []


def test_patterns_may_be_several_words(cli: Cli) -> None:
    ended = cli("run", "pingpong", "oneway", "-t", "shm", "--bytes", "8", "--dry-run", "--json")
    assert [point["pattern"] for point in json.loads(ended.stdout)["points"]] == ["pingpong", "oneway"]


def test_dry_run_of_nothing_ends_as_the_run_would(cli: Cli) -> None:
    ended = cli("run", "memload", "-t", "shm", "--bytes", "8", "--dry-run")
    assert ended.returncode == 2
    assert "nothing to measure" in ended.stderr


def test_dry_run_says_a_tiny_precision(cli: Cli) -> None:
    ended = cli("run", "pingpong", "-t", "shm", "--bytes", "8", "--precision", "0.00000002%", "--dry-run")
    assert "known to 0.00000002 %" in " ".join(ended.stdout.split())


@pytest.mark.parametrize("option", ["--dry-run", "--refine", "--no-refine", "--time=1s", "--label=x"])
def test_resume_takes_no_other_option(cli: Cli, option: str) -> None:
    ended = cli("run", "--resume", option)
    assert ended.returncode == 2
    assert "--resume continues a run" in ended.stderr
