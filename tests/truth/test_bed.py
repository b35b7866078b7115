"""The bed of hosts keeps its promises: every truth that tests of networks rely on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.truth.bed.bed import Bed, Host
from tests.truth.bed.command import read_hosts, welcome

from hockney.errors import UsageError
from hockney.machine.placement import usable_cpus
from hockney.model import RunStatus
from hockney.results.runs import open_results

ROOT = Path(__file__).parents[2]
FIRST_CPU = usable_cpus()[0]
# The shortest of many round trips of a byte in ms, over a connection to an echo that runs on the host named.
ECHO = """
import socket
listener = socket.create_server(("", 7))
print("ready", flush=True)
peer, _ = listener.accept()
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while byte := peer.recv(1):
    peer.send(byte)
"""
ROUND_TRIP = """
import socket, sys, time
peer = socket.create_connection((sys.argv[1], 7))
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
trips = []
for _ in range(50):
    start = time.monotonic()
    peer.send(b"x")
    peer.recv(1)
    trips.append(time.monotonic() - start)
print(min(trips) * 1e3)
"""
# Of 500 datagrams, how many come back.
ECHO_DATAGRAMS = """
import socket
own = socket.socket(type=socket.SOCK_DGRAM)
own.bind(("", 7))
print("ready", flush=True)
while True:
    own.sendto(*own.recvfrom(1))
"""
RETURNED = """
import socket, sys
peer = socket.socket(type=socket.SOCK_DGRAM)
peer.settimeout(1)
returned = 0
def hear(most):
    global returned
    try:
        for _ in range(most):
            peer.recv(1)
            returned += 1
    except TimeoutError:
        pass
for _ in range(50):
    for _ in range(10):
        peer.sendto(b"x", (sys.argv[1], 7))
    hear(5)
hear(500)
print(returned)
"""


@pytest.fixture(scope="module")
def bed(make_bed: Any) -> Bed:
    made: Bed = make_bed(
        Host(), Host(rate_mbit=100), Host(delay_ms=5), Host(loss=0.1, cpus=[FIRST_CPU]), Host(), Host()
    )
    return made


def said(bed: Bed, host: str, *command: str) -> str:
    done = bed.run(host, command)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def iperf(bed: Bed, server: str, *options: str) -> dict[str, Any]:
    with bed.serve(server, ["iperf3", "--server", "--one-off", "--forceflush"], "listening"):
        return dict(json.loads(said(bed, "n1", "iperf3", "--json", "--client", server, *options))["end"])


def test_hosts_differ_like_separate_machines(bed: Bed) -> None:
    paths = ("/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/hostname")
    told = {said(bed, name, "cat", *paths) for name in bed.names}
    assert len(told) == len(bed.names)
    Path("/dev/shm/hockney-outside").touch()
    try:
        assert said(bed, "n1", "ls", "/dev/shm") == ""
    finally:
        Path("/dev/shm/hockney-outside").unlink()


def test_ssh_leads_from_host_to_host(bed: Bed) -> None:
    assert (
        said(bed, "n1", "ssh", "-o", "BatchMode=yes", "n3", "hostname; ls -d /sys/class/net/eth0")
        == "n3\n/sys/class/net/eth0\n"
    )
    stray = bed.run("n1", ["ssh", "-o", "BatchMode=yes", "n99", "true"])
    assert "Could not resolve hostname n99: Name or service not known" in stray.stderr


def test_a_share_of_the_logins_fails(bed: Bed) -> None:
    """All of them: by one chance in a million in one way only."""
    tries = ["sh", "-c", "for _ in $(seq 20); do ssh -o BatchMode=yes n3 true; echo $?; done"]
    bed.fail_logins(1)
    done = bed.run("n1", tries)
    assert done.stdout.split() == ["255"] * 20
    assert "port 22: Connection refused" in done.stderr
    assert "kex_exchange_identification: read: Connection reset by peer" in done.stderr
    bed.fail_logins(0)
    assert said(bed, "n1", *tries).split() == ["0"] * 20


def test_programs_of_a_host_are_stopped_and_go_on(bed: Bed) -> None:
    with bed.serve("n5", [sys.executable, "-c", ECHO], "ready"):
        command = bed.argv("n1", [sys.executable, "-c", ROUND_TRIP, "n5"])
        assert bed.signal("STOP", "n5", "^python")
        assert not bed.signal("STOP", "n5", "^cobol")
        with subprocess.Popen(command, stdout=subprocess.PIPE) as asking:
            with pytest.raises(subprocess.TimeoutExpired):
                asking.communicate(timeout=1)
            assert bed.signal("CONT", "n5")
            assert float(asking.communicate(timeout=60)[0]) > 0


def test_a_host_has_the_cpus_that_it_is_given(bed: Bed) -> None:
    status = said(bed, "n1", "ssh", "n4", "cat /proc/self/status")
    assert f"Cpus_allowed_list:\t{FIRST_CPU}\n" in status


def test_a_cable_has_its_rate(bed: Bed) -> None:
    for direction in ([], ["--reverse"]):
        end = iperf(bed, "n2", "--time", "2", *direction)
        assert 50e6 < end["sum_received"]["bits_per_second"] < 100e6


def test_a_cable_has_its_delay(bed: Bed) -> None:
    with bed.serve("n3", [sys.executable, "-c", ECHO], "ready"):
        assert 10 < float(said(bed, "n1", sys.executable, "-c", ROUND_TRIP, "n3")) < 15


def test_a_cable_loses_its_share_in_each_direction(bed: Bed) -> None:
    with bed.serve("n4", [sys.executable, "-c", ECHO_DATAGRAMS], "ready"):
        assert 360 < int(said(bed, "n1", sys.executable, "-c", RETURNED, "n4")) < 445  # 0.9 of 0.9


def test_a_host_that_is_cut_is_gone(bed: Bed) -> None:
    bed.cut("n6")
    done = bed.run("n1", ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=2", "n6", "true"])
    assert done.returncode == 255
    assert said(bed, "n1", "ssh", "n5", "hostname") == "n5\n"


def test_nothing_outlives_the_maker_of_the_bed(bed: Bed, tmp_path: Path) -> None:
    mark = f"1234.{os.getpid()}"
    script = f'ssh n2 "sleep {mark}" & echo up; wait'
    with subprocess.Popen(
        [str(ROOT / "scripts/try-hosts"), "2", "n2:delay=1ms", "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as made:
        assert made.stdout is not None
        assert made.stdout.readline() == b"up\n"
        wait_for(lambda: is_running(f"sleep {mark}"))
        made.send_signal(signal.SIGKILL)
    wait_for(lambda: not is_running(f"sleep {mark}"))


def is_running(command: str) -> bool:
    return subprocess.run(["pgrep", "-f", f"^{command}$"], check=False, capture_output=True).returncode == 0


def wait_for(condition: Any) -> None:
    deadline_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def test_the_shell_says_what_to_try() -> None:
    assert welcome("4", ["n3:rate=25Mbit/s", "n4:delay=1ms"]) == (
        "Hosts n[1-4] at 100 Mbit/s, but n3:rate=25Mbit/s n4:delay=1ms. This shell is on n1; exit takes them away.\n"
        "A cable that was idle lets the bytes of 1 ms pass at once, and 16 kB at least:\n"
        "a message that is not longer is faster than the cable's rate.\n"
        "Try: ./hockney quick --hosts 'n[1-4]' or ./hockney health --hosts 'n[1-4]'"
    )
    assert welcome("2", []).startswith("Hosts n[1-2] at 100 Mbit/s. This ")


def test_hosts_raise_the_limit_of_neighbours_and_put_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "gc_thresh3"
    limit.write_text("1024")
    monkeypatch.setattr("tests.truth.bed.bed._NEIGHBOURS", limit)
    bed = Bed([Host()] * 32)
    bed._raise_neighbours()
    assert limit.read_text() == "2048"
    bed._end()
    assert limit.read_text() == "1024"


def test_more_hosts_than_neighbours_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.truth.bed.bed._NEIGHBOURS", tmp_path / "none" / "gc_thresh3")
    with pytest.raises(RuntimeError, match=r"32 hosts need .*=2048, which cannot be set here: use up to 22 hosts"):
        Bed([Host()] * 32)._raise_neighbours()


def test_words_of_the_command() -> None:
    assert read_hosts("2", ["n2:rate=1Gbit/s,delay=2ms,loss=1%,cpus=0-1"]) == [
        Host(rate_mbit=100),
        Host(rate_mbit=1000, delay_ms=2, loss=0.01, cpus=(0, 1)),
    ]
    for count, word in (("0", "n1:loss=1%"), ("1", "n2:loss=1%"), ("1", "n1:colour=red"), ("1", "x")):
        with pytest.raises(UsageError):
            read_hosts(count, [word])


def test_hockney_needs_no_folder_and_a_wrong_name_is_said(bed: Bed) -> None:
    del bed  # where there can be none, this is skipped
    tried = [str(ROOT / "scripts/try-hosts"), "1", "--"]
    done = subprocess.run([*tried, "hockney", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()[:1]) == (0, ["hockney"]), done.stderr
    done = subprocess.run([*tried, "hokney", "list"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "try-hosts: there is no program hokney here: check its name after --\n"


def test_ctrl_c_ends_the_command_and_not_its_hosts(tmp_path: Path) -> None:
    run = ("run", "pingpong", "-t", "tcp", "--bytes", "8", "--hosts", "n1,n2", "--time", "60s", "--launches", "1")
    hockney = (sys.executable, "-m", "hockney", *run, "--store", str(tmp_path / "r.db"))
    command = [str(ROOT / "scripts/try-hosts"), "2", "--", *hockney]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as tried:
        assert tried.stderr is not None
        said = ""
        while "first figure" not in said:
            line = tried.stderr.readline()
            assert line, said
            said += line
        os.killpg(tried.pid, signal.SIGINT)  # as a terminal does
        shown, more = tried.communicate(timeout=60)
    assert tried.returncode == 3, more
    assert "hockney run --resume 1" in shown + more
    assert "Traceback" not in more
    with open_results(tmp_path / "r.db") as results:
        assert results.run(1).status is RunStatus.STOPPED
