"""Logins that fail by chance are tried again, host by host; those without permission are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.shared import Fakes

from hockney.worker.build import build_worker
from hockney.worker.errors import LaunchFailed
from hockney.worker.hosts import parse_hosts
from hockney.worker.launch import Job, StartCommand, launch
from hockney.worker.placement import Placement
from hockney.worker.session import WorkerSession
from hockney.worker.starters import TRIES


def job_of(agent: Path, hosts: tuple[str, ...], ranks: int) -> StartCommand:
    spread = Job(build_worker(), "tcp", ranks, Placement(hosts=parse_hosts(",".join(hosts))), oversubscribed=True)
    return launch(spread, environment={"HOCKNEY_RSH": str(agent)})


HUNG_UP = "kex_exchange_identification: Connection closed by remote host"
REFUSED = "ssh: connect to host n2 port 22: Connection refused"


@pytest.mark.parametrize(
    ("host", "failures", "said"),
    [
        ("127.0.0.1", 1, HUNG_UP),
        ("127.0.0.2", 1, HUNG_UP),
        ("127.0.0.2", TRIES - 1, HUNG_UP),
        ("127.0.0.2", 1, REFUSED),
    ],
)
def test_a_login_that_fails_now_and_then_is_tried_again(
    tmp_path: Path, fake: Fakes, host: str, failures: int, said: str
) -> None:
    """Of the first host, or of another one."""
    agent, tries = tmp_path / "agent", tmp_path / "tries"
    fake(
        agent,
        f"if [ $1 = {host} ]; then echo >>{tries}; fi",
        f"if [ $1 = {host} ] && [ $(wc -l <{tries}) -le {failures} ]; then echo {said} >&2; exit 255; fi",
        "shift",
        'exec sh -c "$*"',
    )
    with WorkerSession(job_of(agent, ("127.0.0.1", "127.0.0.2", "127.0.0.3"), 3)) as session:
        session.hello()
        assert session.measure("ring", bytes=8, samples=3).verified
        session.close()
    assert len(tries.read_text().splitlines()) == failures + 1


def test_logins_of_many_hosts_that_fail_at_once_are_tried_again(tmp_path: Path, fake: Fakes) -> None:
    """The last of them comes only after the time that words of a failed launcher have."""
    agent = tmp_path / "agent"
    fake(
        agent,
        f"if [ $1 != 127.0.0.1 ] && ! [ -e {tmp_path}/$1 ]; then",
        f"  touch {tmp_path}/$1; echo Connection reset by peer >&2; exit 255",
        "fi",
        "if [ $1 = 127.0.0.7 ]; then sleep 4; fi",
        "shift",
        'exec sh -c "$*"',
    )
    hosts = tuple(f"127.0.0.{number}" for number in range(1, 8))
    with WorkerSession(job_of(agent, hosts, 7)) as session:
        assert len(session.hello().ranks) == 7
        session.close()


def test_few_hosts_are_logged_into_at_once(tmp_path: Path, fake: Fakes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one when one of them reads."""
    monkeypatch.setattr("hockney.worker.session.LOGINS_MAX", 2)
    agent = tmp_path / "agent"
    fake(
        agent,
        "host=$1; shift",
        f"cd {tmp_path}",
        "if [ $host != 127.0.0.1 ]; then touch at.$host; ls | grep -c ^at >>counts; fi",
        "sleep 0.1",
        "rm -f at.$host",
        'exec sh -c "$*"',
    )
    with WorkerSession(job_of(agent, tuple(f"127.0.0.{number}" for number in range(1, 8)), 7)) as session:
        assert len(session.hello().ranks) == 7
        session.close()
    counts = [int(count) for count in (tmp_path / "counts").read_text().split()]
    assert len(counts) == 6
    assert max(counts) <= 2


def test_a_login_without_permission_is_not_tried_again(tmp_path: Path, fake: Fakes) -> None:
    agent, tries = tmp_path / "agent", tmp_path / "tries"
    said = "root@n2: Permission denied (publickey)."
    fake(agent, f"echo >>{tries}", f"echo '{said}' >&2; exit 255")
    with pytest.raises(LaunchFailed, match="Permission denied"):
        WorkerSession(job_of(agent, ("127.0.0.1", "127.0.0.2"), 2)).start()
    assert len(tries.read_text().splitlines()) == 1


def test_a_login_that_always_fails_ends_the_start(tmp_path: Path, fake: Fakes) -> None:
    agent = tmp_path / "agent"
    fake(agent, f"if [ $1 = 127.0.0.2 ]; then echo {REFUSED} >&2; exit 255; fi", "shift", 'exec sh -c "$*"')
    session = WorkerSession(job_of(agent, ("127.0.0.1", "127.0.0.2"), 2))
    with pytest.raises(LaunchFailed, match="it cannot reach a host: ssh: connect to host n2") as caught, session:
        session.hello()
    assert caught.value.missed
