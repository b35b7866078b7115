"""Jobs that open more files than the usual limit."""

from __future__ import annotations

import sys

from tests.shared import finished

from hockney.worker.build import build_worker

RANKS = 40
SOFT = 64
LIMITED = f'ulimit -Sn {SOFT} && ulimit -Hn "$0" && exec "$@"'
# Hosts are addresses of the loopback, and `env` takes the place of ssh.
JOB = f"""
from hockney.worker.build import build_worker
from hockney.worker.errors import LaunchFailed
from hockney.worker.hosts import parse_hosts
from hockney.worker.launch import Job, ssh
from hockney.worker.placement import Placement
from hockney.worker.session import WorkerSession

hosts = parse_hosts("127.0.0.[1-{RANKS}]")
template = "env HOST={{hosts}} {{worker}}"
placement = Placement(hosts=hosts, launcher=template)
command = ssh(Job(build_worker(), "tcp", len(hosts), placement, oversubscribed=True))
try:
    with WorkerSession(command) as session:
        print(len(session.hello().ranks), "ranks")
except LaunchFailed as error:
    print(error)
"""


def with_limits(hard: int, argv: list[str], typed: str = "") -> str:
    """What a program prints that may open SOFT files, or `hard` where it asks for more."""
    build_worker()
    command = ["sh", "-c", LIMITED, str(hard), *argv]
    done = finished(command, input=typed, timeout_s=100)
    return done.stdout + done.stderr


def test_a_job_on_many_hosts() -> None:
    argv = [sys.executable, "-c", JOB]
    assert with_limits(1000, argv) == f"{RANKS} ranks\n"
    said = with_limits(200, argv)
    assert said.startswith("env did not start the ranks: it needs 2")
    assert "open files, and this system allows 200 (ulimit -Hn)" in said


def test_many_ranks_on_this_host() -> None:
    argv = [str(build_worker()), "-t", "tcp", "-n", str(RANKS), "--oversubscribed"]
    assert '"kind":"hello"' in with_limits(1000, argv, "hello version=1 id=1\nquit id=2\n")
    said = with_limits(100, argv)
    assert said == (
        "hockney worker: rank 0: tcp: 40 ranks need 144 open files, and this system allows 100 (ulimit -Hn)\n"
    )
