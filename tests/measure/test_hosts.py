"""Ranks on several hosts: two network namespaces with host names of their own, which this test makes and takes away."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.matrix import matrix

from hockney.machine import usable_cpus
from hockney.results.runs import Run
from hockney.results.store import Store

FIRST, SECOND = (f"hk-test-{os.getpid()}-{end}" for end in "ab")
HOSTS = {"10.231.7.1": FIRST, "10.231.7.2": SECOND}


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def remote_shell(script: Path, hosts: Mapping[str, str]) -> Path:
    """Write a script that starts commands in the namespace of an address, as on a machine of its own.

    It has its own host name and boot id: by the latter hockney knows that several names are one machine.
    """
    cases = "".join(f"{address}) name={name} ;;\n" for address, name in hosts.items())
    script.write_text(
        f'#!/bin/sh\nhost=$1; shift\ncase $host in\n{cases}*) echo "no route to $host" >&2; exit 255 ;;\nesac\n'
        f'echo "$name" >"{script}.$name"\n'
        f'mount="mount --bind {script}.$name /proc/sys/kernel/random/boot_id"\n'
        'exec ip netns exec "$name" unshare --uts sh -c "hostname $name; $mount; exec $*"\n'
    )
    script.chmod(0o755)
    return script


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Path]:
    """A remote shell that leads into the namespaces, as ssh would lead to two machines joined by a cable."""
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("network namespaces need root, ip and unshare")
    with ExitStack() as undo:
        for name in HOSTS.values():
            ip("netns", "add", name)
            undo.callback(ip, "netns", "delete", name)
        ip("-n", FIRST, "link", "add", "v0", "type", "veth", "peer", "name", "v0", "netns", SECOND)
        for address, name in HOSTS.items():
            ip("-n", name, "address", "add", f"{address}/24", "dev", "v0")
            ip("-n", name, "link", "set", "v0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield remote_shell(tmp_path / "agent", HOSTS)


def run(
    agent: Path, store: Path, hosts: str, *arguments: str, transport: str = "tcp"
) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "hockney", "run", "pingpong", "-t", transport, "--bytes", "8,1K", "--time", "0.5s"]
    return subprocess.run(
        [*argv, "--hosts", hosts, "--store", str(store), *arguments],
        env={**os.environ, "HOCKNEY_RSH": str(agent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_sockets_between_two_hosts(agent: Path, tmp_path: Path, transport: str) -> None:
    done = run(agent, tmp_path / "r.db", ",".join(HOSTS), transport=transport)
    assert done.returncode in (0, 3), done.stderr  # 3: no interval in so little time
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        found = Run(store, 1)
        (launch,) = found.launches.values()
        assert launch.hosts == tuple(HOSTS.values())
        for series in found.series:
            assert series.measurements
            for measurement in series.measurements:
                assert measurement.verified
                assert measurement.floor_kind == "transport"
                assert measurement.floor_ns is not None
                assert min(measurement.floor_ns) > 500  # no message gets through a kernel as fast as a cache line
                assert measurement.pace_ns is not None
                assert all(len(paces) == 2 and min(paces) > 0 for paces in measurement.pace_ns)
                assert measurement.solo_ns is None
            states = {figure.state for figure in series.figures()} - {"mixed"}
            assert all(state.startswith("reference") for state in states), states


def test_more_ranks_than_one_host_has(agent: Path, tmp_path: Path) -> None:
    done = run(agent, tmp_path / "r.db", ",".join(HOSTS), "-n", "4")
    assert done.returncode in (0, 3), done.stderr  # 3: no interval in so little time
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        (launch,) = Run(store, 1).launches.values()
        assert launch.hosts == (FIRST, FIRST, SECOND, SECOND)


def test_a_host_that_is_not_there_is_named(agent: Path, tmp_path: Path) -> None:
    done = run(agent, tmp_path / "r.db", "10.231.7.1,10.231.7.9")
    assert done.returncode == 3
    assert "agent said: no route to 10.231.7.9; each host must be reachable by" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A remote shell that leads to this very host, whatever name it is given."""
    script = tmp_path / "here"
    script.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    script.chmod(0o755)
    return script


@pytest.mark.skipif(len(usable_cpus()) < 2, reason="two CPUs are needed to tell whether ranks share one")
@pytest.mark.parametrize("hosts", matrix(["localhost,127.0.0.1", "localhost,localhost"], short=["localhost,127.0.0.1"]))
@pytest.mark.parametrize("transport", ["tcp", "mpi"])
def test_one_host_under_two_names_is_one_machine(here: Path, tmp_path: Path, hosts: str, transport: str) -> None:
    done = run(here, tmp_path / "r.db", hosts, "--launches", "1", transport=transport)
    assert done.returncode in (0, 3), done.stderr  # 3: no interval in so little time
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        launches = Run(store, 1).launches.values()
    assert launches
    for launch in launches:
        assert len(set(launch.cpus)) == 2, launch
        assert not launch.oversubscribed


def test_ranks_that_share_a_cpu_are_marked_wherever_a_figure_is_printed(here: Path, tmp_path: Path) -> None:
    ranks = str(2 * len(usable_cpus()))
    path = tmp_path / "r.db"
    done = run(here, path, "localhost,127.0.0.1", "-n", ranks, "--launches", "1")
    assert done.returncode in (0, 3), done.stderr  # 3: no interval in so little time
    with Store.open(path, readonly=True) as store:
        (launch,) = Run(store, 1).launches.values()
        assert launch.oversubscribed
        assert "--oversubscribed" in " ".join(launch.argv)
    assert "(more ranks than CPUs: scheduling times)" in done.stdout
