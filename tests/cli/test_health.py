"""The screens of `hockney health`, from made-up runs."""

from __future__ import annotations

import json
import platform
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.health.made import known_host, read_health, store_health
from tests.cli.support import call_here

from hockney.analysis.finding import Absence, NotChecked
from hockney.analysis.health import UNSAID
from hockney.analysis.health.matrices import DEMAND, REMEDIES
from hockney.analysis.pairs import partners
from hockney.analysis.repeat import further, longer_health
from hockney.cli.health import exit_code_of
from hockney.errors import ExitCode
from hockney.measure.health import remember
from hockney.measure.recorder import RunOutcome
from hockney.model import RunStatus
from hockney.report.documents.health import bad_hosts, drain_lines, health_json, undrained
from hockney.report.documents.pairs import host_values
from hockney.results.runs import Run
from hockney.results.store import Store
from hockney.worker.points import RunOptions

WAYS = ("sends", "receives")


def shown(path: Path) -> str:
    ended = call_here(path.parent, "show", "--tables", "--store", str(path))
    assert ended.returncode == 0, ended.stderr
    return " ".join(ended.stdout.split())


def test_a_slow_host_a_lossy_link_and_a_host_that_differs(tmp_path: Path) -> None:
    hosts = [known_host(f"n{number}") for number in range(1, 8)] + [known_host("n8", kernel="Linux 5.4")]
    slow = dict.fromkeys([(2, other) for other in range(8) if other != 2], 0.4)
    store_health(tmp_path / "r.db", 8, rates=slow, lost={(0, 5): 10.0}, known=hosts, unusable={"n9": "no answer"})
    screen = shown(tmp_path / "r.db")
    assert "8 hosts, 28 of 28 pairs measured" in screen
    assert "usually 100 MB/s" in screen
    assert "n3 is slow where it sends. 40.0 MB/s, 40% of the usual 100 MB/s, with 7 of 7 other hosts." in screen
    assert "the link from n1 to n6 loses packets. 1% (90 of 9,000) under load" in screen
    assert "kernel is not the same on all hosts. n8 Linux 5.4; the other 7 have Linux 6.1." in screen
    assert "n9 cannot be used. no answer." in screen


def test_a_fix_for_several_findings_about_a_host_is_printed_once(tmp_path: Path) -> None:
    ways = [{"host": "n2", "way": way, "now": 0.8, "before": 0.8, "usual": 1.0, "runs": 9} for way in WAYS]
    store_health(tmp_path / "r.db", 4, worse=[*ways, {**ways[0], "host": "n4"}])
    screen = shown(tmp_path / "r.db")
    assert "Findings: 3" in screen
    slower = [("n2", WAYS[0]), ("n2", WAYS[1]), ("n4", WAYS[0])]
    assert all(f"{host} {way} more slowly" in screen for host, way in slower)
    assert screen.count("Fix: See whether its CPUs are idle") == 2


def test_many_hosts_have_a_table_of_the_slowest(tmp_path: Path) -> None:
    slow = {pair: 0.5 for other in range(20) if other != 7 for pair in ((7, other), (other, 7))}
    store_health(tmp_path / "r.db", 20, rates=slow)
    screen = shown(tmp_path / "r.db")
    assert "The slowest hosts by the median" in screen
    assert "host sends receives latency n8 50.0 MB/s 50.0 MB/s 20.0 us" in screen
    assert "n8 is slow" in screen


def test_of_many_hosts_one_that_only_sends_slowly_comes_first(tmp_path: Path) -> None:
    store_health(tmp_path / "r.db", 20, rates={(7, other): 0.5 for other in range(20) if other != 7})
    assert "host sends receives latency n8 50.0 MB/s 100 MB/s 20.0 us" in shown(tmp_path / "r.db")


def test_of_many_hosts_the_ten_slowest_are_shown_the_slowest_first(tmp_path: Path) -> None:
    """n1 receives from each at a tenth of the usual rate, n2 at two tenths, … of 20 hosts."""
    rates = {(a, b): (b + 1) / 10 for a in range(20) for b in range(20) if a != b and b < 12}
    store_health(tmp_path / "r.db", 20, rates=rates, latencies={(3, other): 2.0 for other in range(4, 20)})
    ended = call_here(tmp_path, "show", "--tables", "--store", "r.db")
    slowest = ended.stdout.partition("The slowest hosts")[2]
    rows = [re.split(r" {2,}", line) for line in slowest.splitlines() if re.match(r"n\d+ {2,}", line)]
    assert [row[0] for row in rows] == [f"n{number}" for number in range(1, 11)]
    assert [row[2] for row in rows[:3]] == ["10.0 MB/s", "20.0 MB/s", "30.0 MB/s"]
    assert rows[0][1] == "100 MB/s"
    assert [row[3] for row in rows[2:5]] == ["20.0 us", "40.0 us", "20.0 us"]


def test_beyond_32_hosts_the_slowest_hosts_and_links_take_the_place_of_a_matrix(tmp_path: Path) -> None:
    """The slow host has no links in the table; on the page it is framed."""
    slow = {pair: 0.2 for other in range(33) if other != 7 for pair in ((7, other), (other, 7))}
    for number in (32, 33):
        store_health(tmp_path / f"{number}.db", number, rates={**slow, (2, 3): 0.5})
    assert "Bandwidth, all pairs of a round at once" in shown(tmp_path / "32.db")
    ended = call_here(tmp_path, "show", "--tables", "--store", "33.db").stdout
    hosts, links = ended.partition("The slowest hosts")[2].split("The slowest links of the other hosts")
    assert "Bandwidth, all pairs" not in ended
    assert [line.split()[0] for line in hosts.splitlines()[2:18]][:1] == ["n8"]
    rows = [line.split() for line in links.partition("Findings")[0].splitlines() if line.startswith("n")]
    assert (len(rows), rows[0][:3]) == (20, ["n3", "n4", "50.0"])
    assert not any("n8" in row[:2] for row in rows)
    assert {each.framed for each in host_values(read_health(tmp_path / "33.db"))} == {((7,), (2, 3))}


def test_a_topology_that_cannot_be_read_ends_the_command_before_it_measures(tmp_path: Path) -> None:
    (tmp_path / "racks").write_text("rack1 = n1,n2\nrack2\n")
    ended = call_here(tmp_path, "health", "--hosts", "n[1-4]", "--topology", "racks", "--store", "r.db")
    assert ended.returncode == 2
    assert "line 2 of racks, 'rack2', names no switch with its hosts: write for example" in " ".join(
        ended.stderr.split()
    )


@pytest.mark.parametrize("option", ["--topology", "--expect"])
def test_bad_hosts_are_not_written_over_a_file_that_is_read(option: str, tmp_path: Path) -> None:
    (tmp_path / "read").write_text("rack1 = n1,n2\n")
    words = ("--hosts", "n1,n2", option, "read", "--bad-hosts", "read", "--store", "r.db")
    ended = call_here(tmp_path, "health", *words)
    assert (ended.returncode, (tmp_path / "read").read_text()) == (2, "rack1 = n1,n2\n")
    assert "--bad-hosts would write over read, " in ended.stderr


def test_an_inconclusive_result_has_the_command_that_measures_more(tmp_path: Path) -> None:
    store_health(tmp_path / "r.db", 6, rates={(0, 1): 0.5}, measurements=3)
    screen = shown(tmp_path / "r.db")
    assert "No fault found" not in screen
    assert "bandwidth: insufficient data: too few measurements to judge n1 to n2" in screen
    assert "health --hosts 'n[1-6]' --time 10m" in screen


@pytest.mark.parametrize(("links", "code"), [(1, ExitCode.DONE), (3, ExitCode.INCOMPLETE)])
def test_a_few_links_that_are_slow_only_at_times_are_no_reason_for_a_mail(
    links: int, code: ExitCode, tmp_path: Path
) -> None:
    slow = {pair: 0.8 for a in range(links) for pair in ((a, 7 - a), (7 - a, a))}
    store_health(tmp_path / "r.db", 8, rates=slow, scatter=0.3)
    found = read_health(tmp_path / "r.db")
    assert (exit_code_of(found), len(found.findings)) == (code, 0)
    assert ("2 of 56 rates are low in some measurements and usual in others" in shown(tmp_path / "r.db")) == (
        links == 1
    )


def test_the_reason_why_pairs_failed_is_printed_once(tmp_path: Path) -> None:
    store_health(tmp_path / "r.db", 4, failed="n3 does not answer (no route to host)")
    screen = shown(tmp_path / "r.db")
    assert "4 hosts, 0 of 6 pairs measured" in screen
    assert screen.count("n3 does not answer") == 1
    assert "all pairs: not measured: n3 does not answer (no route to host)" in screen
    assert exit_code_of(read_health(tmp_path / "r.db")) is ExitCode.INCOMPLETE
    explained = call_here(tmp_path, "explain", "--store", str(tmp_path / "r.db")).stdout
    assert " ".join(explained.split()).count("n3 does not answer (no route to host)") == 1


@pytest.mark.parametrize(
    ("demand", "fix"),
    [
        ({DEMAND: "reachable by `srun`"}, "Fix: Make it reachable by `srun`, or leave it out."),
        ({}, "Fix: Make it reachable, or leave it out."),
        ({REMEDIES: {"n9": "run X"}, DEMAND: "reachable"}, "Fix: Make it usable: run X; or leave it out."),
    ],
    ids=["srun", "stored without it", "it answers"],
)
def test_a_host_that_cannot_be_used_has_a_fix_for_the_way_to_it(
    demand: dict[str, object], fix: str, tmp_path: Path
) -> None:
    store_health(tmp_path / "r.db", 4, unusable={"n9": "no answer"}, plan=demand)
    assert fix in shown(tmp_path / "r.db")


def test_a_health_run_is_measured_again_and_not_resumed(tmp_path: Path) -> None:
    store_health(tmp_path / "r.db", 4)
    ended = call_here(tmp_path, "run", "--resume", "1", "--store", "r.db")
    assert ended.returncode == 2
    assert "run 1 is a health run, which cannot be resumed" in ended.stderr
    assert "hockney health --hosts 'n[1-4]'" in " ".join(ended.stderr.split())
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        fix, info = further(Run(store, 1)), store.run(1).info
    assert fix is not None
    assert fix.argv == ("hockney", "health", "--hosts", "n[1-4]", "--time", "10m")
    asked = replace(info, command="hockney health --time 2m --topology=racks --expect limits.toml -q")
    files = ("--topology=racks", "--expect", "limits.toml")
    assert longer_health(asked).argv == (*fix.argv[:-2], *files, *fix.argv[-2:])


def test_a_job_of_one_host_is_told_what_to_ask_for(tmp_path: Path) -> None:
    ended = call_here(tmp_path, "health", SLURM_JOB_ID="7", SLURM_JOB_NODELIST=platform.node())
    assert ended.returncode == 2
    said = " ".join(ended.stderr.split())
    assert "Slurm job 7 has one host, and health compares several: ask for more (sbatch -N 8), or name the" in said
    ended = call_here(tmp_path, "health", "--hosts", "local", SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n[1-2]")
    assert "one host" not in ended.stderr


def test_run_does_not_measure_the_suite_health(tmp_path: Path) -> None:
    ended = call_here(tmp_path, "run", "health")
    assert ended.returncode == 2
    assert "hockney health --hosts" in ended.stderr


@pytest.mark.parametrize(
    ("made", "code"),
    [
        ({}, ExitCode.DONE),
        ({"rates": {(0, 1): 0.5}}, ExitCode.WORSE),
        ({"rates": {(0, 1): 0.5}, "measurements": 3}, ExitCode.INCOMPLETE),
        ({"unusable": {"n9": "no answer"}}, ExitCode.INCOMPLETE),
        ({"unusable": {"n9": "no answer"}, "lost": {(0, 1): 20.0}}, ExitCode.WORSE),
    ],
)
def test_exit_codes(tmp_path: Path, made: dict[str, object], code: ExitCode) -> None:
    store_health(tmp_path / "r.db", 5, **made)  # type: ignore[arg-type]
    health = read_health(tmp_path / "r.db")
    assert exit_code_of(health) is code
    assert exit_code_of(health, is_done=False) is (ExitCode.INCOMPLETE if code is ExitCode.DONE else code)


@pytest.mark.parametrize(
    ("made", "status", "code"),
    [
        ({}, RunStatus.DONE, ExitCode.DONE),
        ({}, RunStatus.STOPPED, ExitCode.INCOMPLETE),
        ({"rates": {(0, 1): 0.5}}, RunStatus.STOPPED, ExitCode.WORSE),
    ],
)
def test_the_command_prints_the_run_it_measured_and_ends_with_its_code(
    made: dict[str, Any], status: RunStatus, code: ExitCode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(asked: RunOptions, *_: object, label: str | None, **__: object) -> RunOutcome:
        assert asked.limits is not None
        names = [host.name for host in asked.placement.hosts]
        seen.append((names, asked.transports, asked.limits.time_s, asked.limits.timeout_s, label))
        return RunOutcome(1, status, failed=0)

    seen: list[object] = []
    monkeypatch.setattr("hockney.measure.health.measure_health", measured)
    store_health(tmp_path / "r.db", 4, **made)
    words = ("health", "--hosts", "n[1-4]", "--time", "5s", "--limit", "20s", "--label", "mine", "--store", "r.db")
    ended = call_here(tmp_path, *words)
    assert "4 hosts, 6 of 6 pairs measured" in ended.stdout
    assert "Saved as run 1" in ended.stderr
    document = call_here(tmp_path, *words, "--json", "--quiet")
    assert document.stderr == ""
    shown = json.loads(document.stdout)
    assert (shown["run"], shown["exit_code"], shown["health"]["pairs"]) == (1, code, 6)
    line = call_here(tmp_path, *words, "-q")
    assert (line.stderr, line.stdout.count("\n")) == ("", 1)
    assert line.stdout.startswith("run 1: " + ("the link from n1 to n2 is slow" if made else "no fault found"))
    assert line.stdout.endswith("; 6 of 6 pairs of 4 hosts measured\n")
    assert ended.returncode == document.returncode == line.returncode == code
    assert seen == [(["n1", "n2", "n3", "n4"], ("tcp",), 5.0, 20, "mine")] * 3


def test_the_matrices_of_json_are_from_and_to(tmp_path: Path) -> None:
    """n1 sends slowly to n2, and loses one of 100 segments to n3; the round in which n1 meets n4 was not reached."""
    (unmeasured,) = (round_ for round_ in (1, 2, 3) if (0, 3) in partners(4, round_))
    latencies = dict.fromkeys(((0, 1), (1, 0)), 2.0)
    store_health(
        tmp_path / "r.db", 4, rates={(0, 1): 0.25}, latencies=latencies, lost={(0, 2): 10.0}, unmeasured=(unmeasured,)
    )
    known = health_json(read_health(tmp_path / "r.db"))
    assert known["hosts"] == ["n1", "n2", "n3", "n4"]
    assert (known["pairs"], known["measured_pairs"]) == (6, 4)
    for end in ("", "_low", "_high"):
        rates, latencies_ns = known[f"bytes_per_s{end}"], known[f"latency_ns{end}"]
        assert rates[0] == [None, pytest.approx(25e6, rel=1e-3), pytest.approx(100e6, rel=1e-3), None]
        assert rates[1][:2] == [pytest.approx(100e6, rel=1e-3), None]
        assert latencies_ns[0] == [None, pytest.approx(40e3, rel=1e-3), pytest.approx(20e3, rel=1e-3), None]
    assert known["bytes_per_s_low"][0][1] < known["bytes_per_s"][0][1] < known["bytes_per_s_high"][0][1]
    assert known["lost_share"][0] == [None, 0.0, pytest.approx(0.01), None]
    assert known["lost_share"][2][0] == 0.0


@pytest.mark.parametrize(("hosts", "has_matrix"), [(16, True), (17, False)])
def test_a_page_has_the_matrix_of_16_hosts_and_less(hosts: int, has_matrix: bool, tmp_path: Path) -> None:
    store_health(tmp_path / "r.db", hosts)
    done = call_here(tmp_path, "report", "last", "-o", "r.md", "--store", str(tmp_path / "r.db"))
    assert done.returncode == 0, done.stderr
    assert ("| from |" in (tmp_path / "r.md").read_text(encoding="utf-8")) == has_matrix
    assert ("The slowest hosts" in shown(tmp_path / "r.db")) != has_matrix


def test_bad_hosts_are_drained_with_the_reason_and_links_are_not(tmp_path: Path) -> None:
    slow = {pair: 0.4 for other in range(8) if other != 2 for pair in ((2, other), (other, 2))}
    store_health(tmp_path / "r.db", 8, rates=slow, lost={(0, 5): 10.0}, unusable={"n9": "it's no answer"})
    health = read_health(tmp_path / "r.db")
    assert bad_hosts(health) == {"n9": "n9 cannot be used", "n3": "n3 is slow"}
    assert drain_lines(health)[1] == "scontrol update NodeName=n3 State=DRAIN 'Reason=hockney: n3 is slow'"
    assert undrained(health) == "the link from n1 to n6 loses packets"
    unsaid = NotChecked(Absence.NOT_MEASURED, "differences", UNSAID, {"properties": ["speed"]})
    assert undrained(replace(health, findings=(), not_checked=(unsaid,))) == ""  # cron would send it each night


@pytest.mark.parametrize(
    ("made", "status", "verdict"),
    [
        ({}, "done: no fault found", {"findings": 0, "is_clear": True}),
        ({"rates": {(0, 1): 0.5}, "lost": {(2, 3): 10.0}}, "done: 2 findings", {"findings": 2, "is_clear": False}),
        ({"rates": {(0, 1): 0.5}, "measurements": 3}, "done: inconclusive", {"findings": 0, "is_clear": False}),
    ],
)
def test_the_list_of_runs_has_the_verdict(
    made: dict[str, Any], status: str, verdict: dict[str, object], tmp_path: Path
) -> None:
    store_health(tmp_path / "r.db", 6, **made)
    with Store.open(tmp_path / "r.db") as store:
        remember(store, 1)
    assert status in call_here(tmp_path, "runs", "--store", "r.db").stdout
    (run,) = json.loads(call_here(tmp_path, "runs", "--store", "r.db", "--json").stdout)["runs"]
    assert run["health"] == verdict
    shown_json = json.loads(call_here(tmp_path, "show", "1", "--store", "r.db", "--json").stdout)
    assert len(shown_json["health"]["findings"]) == verdict["findings"]


LIMITS = """
[[expect]]
hosts = ["n[1-2]", "m*"]
pattern = "flows"
transports = "tcp"
bandwidth = ">= 110 MB/s"
"""


def test_limits_of_hosts_are_stored_with_the_run_and_checked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(*_: object, expected: list[dict[str, object]], **__: object) -> RunOutcome:
        store_health(tmp_path / "r.db", 4, plan={"expected": expected})
        return RunOutcome(1, RunStatus.DONE, failed=0)

    monkeypatch.setattr("hockney.measure.health.measure_health", measured)
    (tmp_path / "limits.toml").write_text(LIMITS)
    words = ("health", "--hosts", "n[1-4]", "--expect", "limits.toml", "--store", "r.db")
    ended = call_here(tmp_path, *words, "--drain", "-q")
    assert ended.returncode == ExitCode.WORSE, ended.stderr
    assert [line.split()[2] for line in ended.stdout.splitlines()] == ["NodeName=n1", "NodeName=n2"]
    assert "It sends 100 MB/s, expected >= 110 MB/s (the 1st [[expect]])." in shown(tmp_path / "r.db")
    again = call_here(tmp_path, "check", "--expect", "limits.toml", "1", "--store", "r.db")
    assert again.returncode == ExitCode.WORSE
    assert again.stdout.splitlines()[-1] == "4 missed, 0 met, 0 inconclusive: 4 limits, run 1"
    measuring = call_here(tmp_path, "check", "--expect", "limits.toml")
    assert measuring.returncode == ExitCode.USAGE
    assert "hockney health --expect limits.toml" in " ".join(measuring.stderr.split())


@pytest.mark.parametrize(
    ("was", "instead", "said"),
    [
        ('hosts = ["n[1-2]", "m*"]', "", "names no hosts"),
        ('"n[1-2]"', '"n[2-1]"', "hosts of the 1st [[expect]]"),
        ('"flows"', '"pingpong"', "of hosts write flows (bandwidth) or rounds (latency)"),
        ("bandwidth", 'state = "near"\nbandwidth', "state of the 1st [[expect]]: hockney health chooses it"),
    ],
)
def test_limits_that_are_not_of_hosts_are_refused(tmp_path: Path, was: str, instead: str, said: str) -> None:
    (tmp_path / "limits.toml").write_text(LIMITS.replace(was, instead))
    ended = call_here(tmp_path, "health", "--hosts", "n[1-4]", "--expect", "limits.toml")
    assert ended.returncode == ExitCode.USAGE
    assert said in " ".join(ended.stderr.split())
