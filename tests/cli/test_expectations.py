"""The screens, documents and reports of `hockney check --expect`."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.analysis.compare.made import add_run, curve
from tests.analysis.test_expect import of_8_bytes
from tests.builders import make_point
from tests.cli.support import call_here, write_model

from hockney.cli import execute
from hockney.results.store import Store
from hockney.units import counted


def test_it_measures_and_judges(tmp_path: Path) -> None:
    """On a model without noise."""
    write_model(tmp_path / "m.toml", 1010)
    tables = (of_8_bytes(f'latency = "<= {limit}"').replace("shm", "sim@m.toml") for limit in ("1 s", "1 ns"))
    (tmp_path / "expect.toml").write_text("\n".join(tables))
    done = call_here(tmp_path, "check", "--expect", "expect.toml", "--junit", "j.xml")
    assert done.returncode == 1, done.stderr
    missed, *_, summary = done.stdout.splitlines()
    assert missed.startswith("missed: pingpong of 8 B on sim@m.toml, 2 ranks: latency 1.01 us ")
    assert missed.endswith("expected <= 1.00 ns (the 2nd [[expect]])")
    assert summary == "1 missed, 1 met, 0 inconclusive: 2 limits, run 1"
    suite = ET.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert all(float(case.get("time") or 0) > 0 for case in suite.iter("testcase"))
    values = [each.get("value") for each in suite.iter("property") if each.get("name") == "value_ns"]
    assert values == ["1010", "1010"]
    stored = call_here(tmp_path, "check", "--expect", "expect.toml", "last")
    assert stored.stdout == done.stdout  # the same measurements count
    again = call_here(tmp_path, "check", "--expect", "expect.toml", "last", "--json")
    assert again.returncode == 1
    document = json.loads(again.stdout)
    limits = [(limit["outcome"], limit["limit_ns"], limit["limit_bytes_per_s"]) for limit in document["limits"]]
    assert limits == [("met", 1e9, None), ("missed", 1.0, None)]


def test_a_limit_holds_for_each_value_of_an_option(tmp_path: Path) -> None:
    write_model(tmp_path / "m.toml", 1010)
    table = of_8_bytes('latency = "<= 1 s"', 'options = { receive = ["blocking", "posted"] }').replace(
        "shm", "sim@m.toml"
    )
    (tmp_path / "expect.toml").write_text(table)
    done = call_here(tmp_path, "check", "--expect", "expect.toml")
    assert (done.returncode, done.stdout) == (0, "0 missed, 2 met, 0 inconclusive: 2 limits, run 1\n"), done.stderr


def test_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    """A limit that is met, missed, inconclusive without a series, without measurements, and because a point failed."""
    with Store.open(tmp_path / "results.db") as opened:
        add_run(opened, curve(sizes=(8,)), launches=6, failed={make_point(64): "rank 1 hung"})
    limits = [
        of_8_bytes('latency = "<= 1 s"'),
        of_8_bytes('latency = "<= 1 ns"', 'bandwidth = ">= 1 TB/s"'),
        of_8_bytes('latency = "<= 1 s"').replace("bytes = 8", "bytes = 9"),
        of_8_bytes('latency = "<= 1 s"').replace("bytes = 8", "bytes = 64"),
        of_8_bytes('latency = "<= 1 s"', 'state = "far"'),
    ]
    (tmp_path / "expect.toml").write_text("\n".join(limits))
    words = ["check", "--expect", str(tmp_path / "expect.toml"), "last", "--store", str(tmp_path / "results.db")]
    assert execute(words) == 1
    assert capsys.readouterr().out == snapshot


@pytest.mark.parametrize(
    ("sizes", "code", "counts"),
    [
        (("8",), 0, "0 missed, 1 met, 0 inconclusive"),
        (("8", "9"), 3, "0 missed, 1 met, 1 inconclusive"),
        (("9", "64"), 1, "1 missed, 0 met, 1 inconclusive"),
    ],
)
def test_exit_code(sizes: tuple[str, ...], code: int, counts: str, tmp_path: Path) -> None:
    """The run has no 9 B, and its 64 B take longer than the limit."""
    with Store.open(tmp_path / "results.db") as opened:
        add_run(opened, {make_point(8): 1000.0, make_point(64): 3000.0}, launches=6)
    limits = [of_8_bytes('latency = "<= 2 us"').replace("bytes = 8", f"bytes = {size}") for size in sizes]
    (tmp_path / "expect.toml").write_text("\n".join(limits))
    done = call_here(tmp_path, "check", "--expect", "expect.toml", "last")
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.splitlines()[-1] == f"{counts}: {counted(len(sizes), 'limit')}, run 1"


@pytest.mark.parametrize("launches", [1, 6])
def test_intervals_within_one_launch_are_noted(launches: int, tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        add_run(opened, curve(), launches=launches)
    (tmp_path / "expect.toml").write_text(of_8_bytes('latency = "<= 1 ns"'))
    done = call_here(tmp_path, "check", "--expect", "expect.toml", "last")
    assert ("Intervals are within one launch." in done.stdout.splitlines()) == (launches == 1)


def test_sizes_have_units(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        add_run(opened, curve(), launches=6)
    (tmp_path / "expect.toml").write_text(of_8_bytes('latency = "<= 1 ns"').replace("bytes = 8", 'bytes = "64K"'))
    done = call_here(tmp_path, "check", "--expect", "expect.toml", "last", "--junit", "j.xml")
    assert done.stdout.startswith("missed: pingpong of 64 KiB on shm, 2 ranks: latency ")
    (case,) = ET.parse(tmp_path / "j.xml").getroot().iter("testcase")
    assert case.get("name") == "latency: pingpong of 64 KiB on shm, 2 ranks"
    (failure,) = case.iter("failure")
    assert f"missed: {failure.get('message')}" == done.stdout.splitlines()[0]


def test_each_limit_is_a_test_of_one_name(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        add_run(opened, curve(), launches=6)

    def names(*tables: str) -> list[str]:
        (tmp_path / "expect.toml").write_text("\n".join(tables))
        call_here(tmp_path, "check", "--expect", "expect.toml", "last", "--junit", "j.xml")
        cases = list(ET.parse(tmp_path / "j.xml").getroot().iter("testcase"))
        assert {case.get("classname") for case in cases} == {"expectations"}
        return [case.get("name") or "" for case in cases]

    near = 'state = "near"\nlatency = "<= 1 {}"'
    there, absent = of_8_bytes(near.format("s")), of_8_bytes(near.format("s")).replace("bytes = 8", "bytes = 9")
    name = "latency: pingpong of 8 B on shm, 2 ranks, near"
    assert names(there) == names(of_8_bytes(near.format("ns"))) == [name]
    assert names(absent, there) == ["latency: pingpong of 9 B on shm, 2 ranks, near", name]
    of_mpi = there.replace('"shm"', '"mpi"')
    assert names(of_mpi) == ["latency: pingpong of 8 B on mpi, 2 ranks, near"]  # as of the only one, if there were one


def test_control_characters_are_escaped_in_the_report(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        add_run(opened, curve(sizes=(64,)), failed={make_point(8): "\x1b[31mrank 1\x00 hung"})
    (tmp_path / "expect.toml").write_text(of_8_bytes('latency = "<= 1 s"'))
    done = call_here(tmp_path, "check", "--expect", "expect.toml", "last", "--junit", "j.xml")
    assert done.returncode == 3, done.stderr
    (skipped,) = ET.parse(tmp_path / "j.xml").getroot().iter("skipped")
    assert "\\x1b[31mrank 1\\x00 hung" in (skipped.get("message") or "")
