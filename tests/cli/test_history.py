"""`hockney history`: what it prints, and its exit codes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.analysis.compare.nights import FACTS, SHM, TCP, TIMES_NS, night, slower, step_of_tcp

from hockney.cli import execute
from hockney.results.store import Store

Told = Callable[..., tuple[int, str, str]]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOCKNEY_STORE", str(tmp_path / "r.db"))
    monkeypatch.setenv("TZ", "UTC")
    return tmp_path / "r.db"


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    def call(*words: str) -> tuple[int, str, str]:
        code = execute(["history", *words])
        output = capsys.readouterr()
        return code, output.out, output.err

    return call


def test_a_change_is_shown_with_its_size_its_series_and_its_cause(store: Path, told: Told) -> None:
    with Store.open(store) as results:
        step_of_tcp(results)
    code, text, _ = told()
    assert code == 0
    row = re.search(
        r"^(\S+ \S+)  pingpong on tcp, 8 B-64 KiB  .* us  \+2\d\.\d % \(\+1\d to \+2\d\)$", text, re.MULTILINE
    )
    assert row
    assert f"{row[1]}, run 10 -> run 11: kernel: Linux 6.1 -> Linux 6.6\n" in text
    assert "The machine over these runs: floor 30.1 ns, pace 0.63 ns.\n" in text
    assert re.search(
        r"^1 change in 2 of 3 series over 20 runs, 20.* to 20.*; changes below \d\.\d % may not show$", text, re.M
    )
    assert re.match(r"pingpong on tcp, (8 B|64 KiB): 100 % is ", text)
    assert "| change" in text


def test_a_series_that_is_asked_for_is_plotted_beside_the_floor(store: Path, told: Told) -> None:
    with Store.open(store) as results:
        step_of_tcp(results)
    code, text, _ = told("pingpong@shm")
    assert code == 0
    assert text.startswith("pingpong on shm, 8 B: 100 % is ")
    assert re.search(r"^\s*x pace .*\+ floor .*o time$|^.*floor.*time$", text, re.MULTILINE)
    assert "no change in 1 series over 20 runs" in text


def test_imported_outputs_have_a_history(store: Path, told: Told, tmp_path: Path) -> None:
    for number in range(16):
        output = tmp_path / f"{number}.txt"
        time_us = 1.5 * (1 + number % 3 / 100) * (1.2 if number >= 8 else 1)
        output.write_text(f"# OSU MPI Latency Test v7.2\n# Size       Avg Latency(us)\n8          {time_us:.3f}\n")
        assert execute(["import", str(output), "-t", "mpi"]) == 0
    told()
    code, text, _ = told("pingpong@mpi")
    assert code == 0
    assert re.search(r"  pingpong on mpi, 8 B +1.5\d us +1.8\d us  \+[12]\d\.\d % \(.*\)$", text, re.MULTILINE)
    assert "run 8 -> run 9: no known difference" in text
    assert "1 change in 1 of 1 series over 16 runs" in text


def test_a_cpu_with_a_new_name_is_another_machine_and_is_named(store: Path, told: Told) -> None:
    """As after an update of the kernel."""
    with Store.open(store) as results:
        for number in range(18):
            cpu = {"model": "Ω-9" if number < 8 else "Ω-9 Processor"}
            night(results, number, TIMES_NS, facts={**FACTS, "cpu": cpu})
    code, text, _ = told()
    assert code == 0
    named = "Ω-9 in here (8 runs) and Ω-9 Processor in here (10 runs)"
    assert f"2 machines, each with separate series: {named}." in " ".join(text.split())


def test_few_runs_have_no_changes_yet(store: Path, told: Told) -> None:
    with Store.open(store) as results:
        for number in range(7):
            night(results, number, TIMES_NS)
    code, text, _ = told()
    assert code == 3
    assert text.endswith("changes show from 8 runs on, and the longest series has 7\n")


def test_one_run_is_one_sentence_with_the_remedy(store: Path, told: Told) -> None:
    with Store.open(store) as results:
        night(results, 0, TIMES_NS, command="hockney run nightly.toml")
    why = "run 1 is the only one, and a history has several"
    assert told() == (3, "", f"hockney: {why}: repeat it every night with `hockney run nightly.toml`\n")


def test_a_clock_that_jumps_is_one_sentence(store: Path, told: Told) -> None:
    with Store.open(store) as results:
        for number in (0, 1, 2, 3, -4, 5, 6, 7, 8000):
            night(results, number, slower([TCP, SHM], 1.0))
    code, text, _ = told()
    assert code == 0
    odd = "By its date run 5 begins before the one before it ended and run 9 is dated in the future"
    assert f"{odd}: a clock was set, or runs are of several files. Runs are in the order of dates." in " ".join(
        text.split()
    )
