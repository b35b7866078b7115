"""`hockney health` on a bed: faults are planted, and it names them and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.shared import killed_at_the_end, script
from tests.truth.bed.bed import Bed, Host, Link
from tests.truth.conftest import MakeBed
from tests.truth.planted import (
    KINDS,
    RATE_MBIT,
    Planted,
    code_of,
    equal_hosts,
    health,
    health_with,
    named_in,
    plant,
)
from tests.truth.runs import argv, hockney

from hockney.worker.build import build_worker

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def four(make_bed: MakeBed) -> Bed:
    return make_bed(*equal_hosts(4))


@pytest.fixture(scope="module")
def eight(make_bed: MakeBed) -> Bed:
    return make_bed(*equal_hosts(8))


def test_a_slow_host_and_a_slow_direction_among_four(four: Bed, tmp_path: Path) -> None:
    links = (Link("n1", "n4", RATE_MBIT / 2),)
    plant(four, Planted({"n2": Host(RATE_MBIT / 4)}, links))
    code, health_json = health(four, tmp_path / "r.db", "--time", "60s")
    assert named_in(health_json) == {("slow host", "n2", "both"), ("slow link", "n1", "n4", "sending")}
    assert code == 1
    assert health_json["usual_bytes_per_s"] < RATE_MBIT * 125e3  # the burst of a cable is in no rate
    shown = hockney(four, tmp_path / "r.db", "show", "--tables").stdout
    assert "6 of 6 pairs measured" in shown
    assert "n2 is slow" in shown
    explained = json.loads(hockney(four, tmp_path / "r.db", "explain", "--json").stdout)
    assert {finding["code"] for finding in explained["findings"]} == {"slow host", "slow link"}
    hockney(four, tmp_path / "r.db", "report", "last", "--output", str(tmp_path / "r.html"))
    assert "n2 is slow" in (tmp_path / "r.html").read_text()
    words = ("allpairs", "-t", "tcp", "--bytes", "64K", "--hosts", "n[1-4]", "--launches", "1", "-q")
    # The slow host's pairs take four times as long: 20 % are precise enough, on a busy machine after a while.
    hockney(four, tmp_path / "pairs.db", "run", *words, "--time", "30s", "--precision", "20%")
    explained = json.loads(hockney(four, tmp_path / "pairs.db", "explain", "--json").stdout)
    assert [each["facts"]["host"] for each in explained["findings"] if each["code"] == "slow host"] == ["n2"]


def test_two_slow_hosts_of_four_are_no_lossy_ones(four: Bed, tmp_path: Path) -> None:
    plant(four, Planted({name: Host(RATE_MBIT / 4) for name in ("n2", "n3")}))
    code, health_json = health(four, tmp_path / "r.db", "--time", "60s")  # it ends when each pair is certain
    assert named_in(health_json) == frozenset()
    assert code == 3
    assert "n1, n4 reach" in health_json["not_checked"][0]["detail"]


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_planted_faults_among_eight_are_named(eight: Bed, tmp_path: Path, kind: str) -> None:
    """scripts/plant-faults does it twenty times each."""
    planted = KINDS[kind](eight.names, random.Random(f"7 {kind}"))
    plant(eight, planted)
    code, health_json = health_with(eight, planted, tmp_path / "r.db", "--time", "60s")
    assert named_in(health_json) == planted.named
    assert code == code_of(planted)


@pytest.mark.full
@pytest.mark.timeout(600)
def test_the_commands_of_the_guide_work(four: Bed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of docs/hosts.md, in their order, with less time: they end when all is certain. n3 is slow, as there."""
    page = (ROOT / "docs/hosts.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(console|cron)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    lines = [line for _, block in blocks for line in block.splitlines()]
    commands = [line.removeprefix("$ ").rpartition("~/hockney && ")[2].replace("2m", "60s") for line in lines]
    assert len(commands) == 4
    plant(four, Planted({"n3": Host(RATE_MBIT / 4)}))
    script(tmp_path / "hockney", f'exec {shlex.quote(sys.executable)} -m hockney "$@"')
    (tmp_path / "contrib").symlink_to(ROOT / "contrib")
    (tmp_path / "hosts").write_text("".join(f"{name}\n" for name in four.names))
    monkeypatch.chdir(tmp_path)
    known = {**os.environ, "HOCKNEY_STORE": str(tmp_path / "r.db"), "DURATION": "60s"}
    ended = [four.run("n1", ["sh", "-c", command], limit_s=180, env=known) for command in commands]
    assert [each.returncode for each in ended] == [0, 1, 1, 1], [each.stderr for each in ended]
    (drain,) = re.findall(r"^scontrol .*", page, re.MULTILINE)
    assert "n3 is slow" in ended[1].stdout
    assert ended[2].stdout == f"{drain}\n"
    assert (tmp_path / "bad").read_text() == "n3\n"
    assert "n3 is slow" in ended[3].stdout
    assert ended[3].stdout.endswith(f"{drain}\n")


def test_a_host_without_cpu_time_is_named(four: Bed, tmp_path: Path) -> None:
    """One whose ssh server, and what that starts, may use 2 % of a CPU; the network is as usual."""
    plant(four, Planted())
    with throttled(four, "n3", 0.02):
        code, health_json = health(four, tmp_path / "r.db", "--time", "20s")
    (finding,) = health_json["findings"]
    assert (code, finding["code"], finding["facts"]["host"]) == (1, "throttled host", "n3")
    assert finding["facts"]["quota_cpus"] == 0.02
    assert finding["facts"]["held_share"] > 0.1


@contextlib.contextmanager
def throttled(bed: Bed, host: str, cpus: float) -> Iterator[None]:
    """A cgroup of version 1 or 2 that holds a host's ssh server, and what it starts from now on."""
    first = Path("/sys/fs/cgroup/cpu")
    top = first if first.is_dir() else first.parent
    group = top / f"hockney-{os.getpid()}-{host}"
    try:
        group.mkdir()
        if first.is_dir():
            (group / "cpu.cfs_quota_us").write_text(f"{100_000 * cpus:.0f}")
        else:
            (group / "cpu.max").write_text(f"{100_000 * cpus:.0f} 100000")
    except OSError as error:
        pytest.skip(f"cgroups cannot be made here: {error}")
    try:
        bed.run(host, ["sh", "-c", f"echo {bed.pid_of(host)} >{group}/cgroup.procs"], check=True)
        yield
    finally:
        bed.run(host, ["sh", "-c", f"echo {bed.pid_of(host)} >{top}/cgroup.procs"])
        deadline_s = time.monotonic() + 30
        while (group / "cgroup.procs").read_text() and time.monotonic() < deadline_s:
            time.sleep(0.1)  # what it has started ends
        group.rmdir()


LIMIT = """
[[expect]]
hosts = "n*"
pattern = "flows"
transports = "tcp"
bandwidth = ">= 5 MB/s"
"""


def test_all_hosts_below_their_interfaces(four: Bed, tmp_path: Path) -> None:
    """All cables carry 100 Mbit/s, and the interfaces say ten times more, if no limit of the user's counts instead."""
    plant(four, Planted())
    device, store = tmp_path / "eth0", tmp_path / "r.db"
    (device / "device").mkdir(parents=True)
    (device / "mtu").write_text("1500\n")
    (device / "speed").write_text("1000\n")
    (tmp_path / "limits.toml").write_text(LIMIT)
    for name in four.names:
        assert four.run(name, ["mount", "--bind", str(device), "/sys/class/net/eth0"]).returncode == 0
    try:
        code, all_slow = health(four, store, "--time", "20s")
        limited, within = health(four, store, "--time", "20s", "--expect", str(tmp_path / "limits.toml"))
    finally:
        for name in four.names:
            four.run(name, ["umount", "/sys/class/net/eth0"])
    (finding,) = all_slow["findings"]
    assert (code, finding["code"], finding["facts"]["names"]) == (1, "below interface", "n[1-4]")
    assert finding["facts"]["of_speed_share"] == pytest.approx(0.095, rel=0.1)
    assert (limited, within["findings"]) == (0, [])
    listed = json.loads(hockney(four, store, "runs", "--json").stdout)["runs"]
    assert [run["health"]["findings"] for run in listed] == [1, 0]
    assert "flows of" in hockney(four, store, "compare", "1", "2").stdout


AHEAD = r"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now)
{
    const long failed = syscall(SYS_clock_gettime, clock, now);
    const long ns = now->tv_nsec + (clock == CLOCK_REALTIME) * 50000000L;
    now->tv_sec += ns / 1000000000L;
    now->tv_nsec = ns % 1000000000L;
    return (int)failed;
}
"""


def test_a_host_with_another_mtu_and_a_wrong_clock(four: Bed, tmp_path: Path) -> None:
    """The clock is 50 ms ahead, less than the logins can tell."""
    plant(four, Planted())
    build_worker()
    (tmp_path / "ahead.c").write_text(AHEAD)
    built = ["cc", "-shared", "-fPIC", "-o", str(tmp_path / "ahead.so"), str(tmp_path / "ahead.c")]
    subprocess.run(built, check=True)
    # A worker that is another file would be replaced: all programs of the host get the clock.
    for name in ("upper", "work"):
        (tmp_path / name).mkdir()
    (tmp_path / "upper/ld.so.preload").write_text(f"{tmp_path}/ahead.so\n")
    layers = f"lowerdir=/etc,upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    assert four.run("n3", ["mount", "-t", "overlay", "overlay", "-o", layers, "/etc"]).returncode == 0
    assert four.run("n2", ["ip", "link", "set", "eth0", "mtu", "1400"]).returncode == 0
    try:
        code, health_json = health(four, tmp_path / "r.db", "--time", "10s")
    finally:
        four.run("n3", ["umount", "/etc"])
        four.run("n2", ["ip", "link", "set", "eth0", "mtu", "1500"])
    facts = {finding["code"]: finding["facts"] for finding in health_json["findings"]}
    assert code == 1
    assert facts["differing hosts"]["differing"] == ["n2 1400"]
    assert facts["wrong clock"]["host"] == "n3"
    assert facts["wrong clock"]["off_ns"] == pytest.approx(50e6, rel=0.1)


@pytest.mark.full
def test_hosts_that_cannot_be_used_are_named_and_the_rest_is_measured(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed(*[Host(RATE_MBIT)] * 4)
    bed.cut("n3")
    code, health_json = health(bed, tmp_path / "r.db", "--time", "10s", hosts="n[1-4],n9")
    unusable = {finding["facts"]["host"]: finding["facts"]["said"] for finding in health_json["findings"]}
    assert code == 3
    assert sorted(unusable) == ["n3", "n9"]
    assert "Could not resolve hostname n9" in unusable["n9"]
    assert health_json["hosts"] == ["n1", "n2", "n4"]
    assert (health_json["measured_pairs"], health_json["pairs"]) == (3, 3)


@pytest.mark.full
def test_a_host_that_dies_is_named_and_the_rest_is_judged(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed(Host(RATE_MBIT), Host(RATE_MBIT), Host(RATE_MBIT), Host(RATE_MBIT))
    command = bed.argv("n1", argv(tmp_path / "r.db", "health", "--hosts", "n[1-4]", "--time", "40s", "--json"))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with killed_at_the_end(process) as measuring:
        assert measuring.stdout is not None
        assert measuring.stderr is not None
        assert any("first figure" in line for line in measuring.stderr)
        bed.cut("n3")
        of_health = json.loads(measuring.stdout.read())["health"]
        measuring.wait(timeout=90)
    assert measuring.returncode in (1, 3), of_health  # 1: what was lost on its way may name it, too
    unusable = [finding["facts"]["host"] for finding in of_health["findings"] if finding["code"] == "unusable host"]
    assert unusable == ["n3"], of_health
    assert of_health["hosts"] == ["n1", "n2", "n4"]
    assert (of_health["measured_pairs"], of_health["pairs"]) == (3, 3)


@pytest.mark.full
def test_a_host_with_another_worker_that_cannot_be_replaced_is_named(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed(*[Host(RATE_MBIT)] * 3)
    assert bed.run("n3", ["mount", "--bind", "/bin/false", str(build_worker())]).returncode == 0
    code, health_json = health(bed, tmp_path / "r.db", "--time", "5s", hosts="n[1-3]")
    (finding,) = [finding for finding in health_json["findings"] if finding["code"] == "unusable host"]
    assert (code, finding["facts"]["host"], health_json["hosts"]) == (3, "n3", ["n1", "n2"])
    assert "is not there, and cannot be copied: " in finding["facts"]["said"]


def test_one_host_has_nothing_to_be_compared_with(four: Bed, tmp_path: Path) -> None:
    done = hockney(four, tmp_path / "r.db", "health", "--hosts", "n1", codes=(2,))
    assert "name two or more" in done.stderr
