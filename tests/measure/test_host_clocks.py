"""Clocks of a run's hosts before and after it: by ranks that a remote shell of the test starts on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.builders import make_info
from tests.measure.test_run import Silent
from tests.shared import script
from tests.worker.test_strangers import AGENT

from hockney.analysis.clocks import Seen
from hockney.measure import host_clocks
from hockney.measure.host_clocks import clocks_compared
from hockney.measure.plan import Plan
from hockney.measure.recorder import Recorder
from hockney.model import RunStatus
from hockney.results.store import Store
from hockney.suites import Limits
from hockney.worker.catalogue import load
from hockney.worker.errors import LaunchFailed
from hockney.worker.launch import Job, StartCommand

FIRST = "127.0.0.1"
PLAN = Plan("test", (), limits=Limits(time_s=1))


@pytest.fixture(autouse=True)
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hosts on which ranks were started, a line for each; `nowhere` refuses."""
    agent, log = tmp_path / "agent", tmp_path / "started"
    refuses = 'if [ "$host" = nowhere ]; then echo "agent: connection refused" >&2; exit 255; fi'
    script(agent, "host=$1", "shift", f'echo "$host" >>{log}', refuses, 'exec sh -c "$*"')
    monkeypatch.setenv("HOCKNEY_RSH", str(agent))
    return log


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[list[Recorder]]:
    """The two runs of an interleaved comparison."""
    with Store.open(tmp_path / "r.db") as store:
        yield [Recorder(store, store.create_run(make_info(), []), Silent()) for _ in range(2)]


def readings(recorder: Recorder) -> list[list[str]]:
    """The hosts of each comparison that is stored."""
    stored = recorder.store.run(recorder.run_id).info.facts.get("clocks", [])
    for reading in stored:
        assert all(abs(seen["ahead_ns"]) <= seen["error_ns"] for seen in reading.values())  # one clock
    return [list(reading) for reading in stored]


def test_two_runs_in_alternation_share_a_comparison(sides: list[Recorder], started: Path) -> None:
    with clocks_compared(PLAN, sides, [FIRST, "b"]):
        pass
    assert [readings(side) for side in sides] == [[[FIRST, "b"]] * 2] * 2
    assert len(started.read_text().split()) == 4


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The hosts of each comparison, which says that their clocks are one, and starts no job."""
    hosts_of_each: list[list[str]] = []

    def read(_: Plan, hosts: Sequence[str]) -> tuple[dict[str, Seen], int]:
        hosts_of_each.append([*hosts])
        return {host: Seen(1.0, 0.0, 0.0) for host in hosts}, 0

    monkeypatch.setattr(host_clocks, "_read", read)
    return hosts_of_each


@pytest.mark.usefixtures("asked")
def test_hosts_that_were_lost_are_left_out(sides: list[Recorder]) -> None:
    with clocks_compared(PLAN, sides, [FIRST, "b", "c"]):
        sides[1].lost_hosts["b"] = "it is gone"
    assert readings(sides[0]) == [[FIRST, "b", "c"], [FIRST, "c"]]


@pytest.mark.parametrize("lost", [{FIRST}, {"b", "c"}])
def test_without_the_reference_or_others_nothing_is_compared(
    sides: list[Recorder], asked: list[list[str]], lost: set[str]
) -> None:
    with clocks_compared(PLAN, sides, [FIRST, "b", "c"]):
        sides[0].lost_hosts.update(dict.fromkeys(lost, "it is gone"))
    assert len(asked) == 1


def test_a_comparison_that_fails_is_a_warning_and_not_tried_again(sides: list[Recorder], started: Path) -> None:
    with clocks_compared(PLAN, sides, [FIRST, "nowhere"]):
        tried = started.read_text()
    assert started.read_text() == tried
    for side in sides:
        (warning,) = side.store.run(side.run_id).warnings
        assert "The clocks of the hosts could not be compared" in warning.cause
        assert "connection refused" in warning.cause
        assert readings(side) == []


def test_a_host_whose_ranks_do_not_come_is_named_without_a_useless_remedy(
    sides: list[Recorder], started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = started.with_name("agent")
    agent.write_text('#!/bin/sh\nhost=$1\nshift\n[ "$host" = c ] && exec sleep 600\nexec sh -c "$*"\n')
    monkeypatch.setattr(host_clocks, "_LIMIT_S", 2)
    with clocks_compared(PLAN, sides, [FIRST, "b", "c"]):
        pass
    (warning,) = sides[0].store.run(sides[0].run_id).warnings
    assert "did not join in time, including rank 2 on c" in warning.cause
    assert "--limit" not in warning.cause


@pytest.mark.parametrize(("hosts", "asked_s", "limit_s"), [(2, 60, 10), (19, 60, 11), (200, 60, 30), (200, 12, 12)])
def test_ten_hosts_more_have_a_second_more_to_start(
    hosts: int, asked_s: int, limit_s: int, sides: list[Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[Job] = []

    def refuse(job: Job, **_: object) -> StartCommand:
        jobs.append(job)
        raise LaunchFailed("agent", "not in this test")

    monkeypatch.setattr(host_clocks, "launch", refuse)
    with clocks_compared(PLAN.within(start_limit_s=asked_s), sides, [f"n{number}" for number in range(hosts)]):
        pass
    assert [(job.ranks, job.start_limit_s) for job in jobs] == [(hosts, limit_s)]


def test_strangers_are_reported(sides: list[Recorder], started: Path) -> None:
    started.with_name("agent").write_text(AGENT)
    with clocks_compared(PLAN, sides, [FIRST, "b"]):
        pass
    for side in sides:
        side.finish(PLAN, RunStatus.DONE, load(["tcp"]), goes_on=False)
        assert "stranger" in {warning.kind for warning in side.store.run(side.run_id).warnings}


def test_one_host_has_no_other_to_compare_with(sides: list[Recorder], started: Path) -> None:
    with clocks_compared(PLAN, sides, [FIRST]):
        pass
    assert not started.exists()


@pytest.mark.usefixtures("asked")
def test_ctrl_c_after_the_run_ends_only_the_comparison(sides: list[Recorder], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    with clocks_compared(PLAN, sides, [FIRST, "b"]):
        monkeypatch.setattr(host_clocks, "_read", interrupted)
    assert readings(sides[0]) == [[FIRST, "b"]]
