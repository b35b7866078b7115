"""A suite's impossible requests cost one sentence each, and the rest of the suite is measured."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.measure.test_run import Silent, children, command
from tests.shared import finished
from tests.worker.extra import EXTRA

from hockney.cli import execute
from hockney.measure import run as running
from hockney.measure.plan import Plan, make_plan
from hockney.measure.recorder import Lab, RunOutcome
from hockney.model import Measurement, Point, PointStatus, RunStatus
from hockney.results.runs import Run
from hockney.results.store import Store
from hockney.suites import Limits, Suite, pattern_suite
from hockney.worker.answers import MeasureAnswer
from hockney.worker.catalogue import Catalogue, load
from hockney.worker.libraries import Missing, find_pvms
from hockney.worker.points import RunOptions
from hockney.worker.session import WorkerSession


def measure(
    path: Path, catalogue: Catalogue, *series: dict[str, object], display: Silent | None = None, time_s: float = 0.5
) -> tuple[RunOutcome, dict[str, tuple[PointStatus, str | None]]]:
    """A suite of these series, measured; how each point ended, by its pattern, transport and size."""
    suite = Suite.model_validate({"name": "mine", "title": "mine", "series": series, "time": time_s})
    plan = make_plan(suite, RunOptions(oversubscribe=True), catalogue, cpus=2)
    with Store.open(path) as store:
        outcome = running.measure(plan, Lab(catalogue, store, display or Silent(), "test"))
        stored = Run(store, outcome.run_id).series
        return outcome, {
            f"{of.point.pattern} {of.point.transport} {of.point.bytes}": (of.status, of.reason) for of in stored
        }


def is_a_sentence(text: str | None) -> bool:
    return text is not None and "\n" not in text and "Traceback" not in text and 10 < len(text) < 200


def test_impossible_requests_are_reported_and_the_rest_is_measured(tmp_path: Path) -> None:
    catalogue = load(recipe=EXTRA, libraries=())
    catalogue = Catalogue(catalogue.patterns, catalogue.transports, (Missing("pvm", "no PVM was found", "install it"),))
    outcome, ended = measure(
        tmp_path / "r.db",
        catalogue,
        {"pattern": "pushfarm", "ranks": 3, "bytes": 16, "options": {"senders": 2}, "transports": "shm"},
        {"pattern": "pingpong", "bytes": [65_491, 65_492], "transports": ["udp", "pvm"]},
        {"pattern": "robpush", "bytes": 64, "options": {"delay_us": 100}, "transports": ["coarse", "shm"]},
        {"pattern": "prtt", "bytes": 64, "options": {"delay_ns": 4_999_999}, "transports": "coarse"},
        {"pattern": "barrier", "transports": "shm"},
    )
    said = {
        "pushfarm shm 16": "pushfarm with senders=2 on 3 ranks has no receivers: it needs 4 ranks or more",
        "pingpong udp 65492": "udp sends at most 65491 B in one message",
        "robpush coarse 64": "a delay of 100000 ns is below the clock resolution of coarse, 5000000 ns",
        "prtt coarse 64": "a delay of 4999999 ns is below the clock resolution of coarse, 5000000 ns",
    }
    for name, why in said.items():
        status, reason = ended.pop(name)
        assert status is PointStatus.SKIPPED, name
        assert is_a_sentence(reason)
        assert why in str(reason)
    assert set(ended) == {"pingpong udp 65491", "robpush shm 64", "barrier shm 0"}  # nothing of PVM, which is not here
    assert all(status in (PointStatus.PRECISE, PointStatus.TIME_UP) for status, _ in ended.values()), ended
    assert outcome.status is RunStatus.DONE
    assert not children()


@pytest.mark.parametrize(("ranks", "divides"), [(2, True), (3, False), (64, False)])
def test_a_grid_that_cannot_be_divided_is_known_beforehand_in_the_words_of_the_worker(
    tmp_path: Path, ranks: int, divides: bool
) -> None:
    catalogue = load(libraries=())
    point = Point("threads", "ft", ranks, 0, (("class", "W"),))
    asked = RunOptions(transports=("threads",), ranks=(ranks,), options=point.options, oversubscribe=True)
    skipped = make_plan(pattern_suite("ft"), asked, catalogue, cpus=2).skipped
    plan = Plan("test", (point,), limits=Limits(time_s=0.1), oversubscribe=True)
    with Store.open(tmp_path / "r.db") as store:
        outcome = running.measure(plan, Lab(catalogue, store, Silent(), "test"))
        (row,) = store.points(outcome.run_id)
    assert (row.status is not PointStatus.SKIPPED) == divides
    assert [skipped_point.reason for skipped_point in skipped] == ([] if divides else [row.reason])


class DaemonKiller(Silent):
    """Kills the daemon of PVM after its first measurement: the first round has another one."""

    has_killed = False

    def measured(self, measurement: Measurement) -> None:
        if measurement.point.transport.startswith("pvm") and not self.has_killed:
            (daemon,) = [each for each in children() if "pvmd" in each.name()]
            daemon.kill()
            psutil.wait_procs([daemon], timeout=60)
            self.has_killed = True


@pytest.mark.skipif(not find_pvms()[0], reason="no PVM here: apt-get install pvm pvm-dev")
def test_a_pvm_daemon_that_dies_costs_one_point(tmp_path: Path) -> None:
    catalogue = load(libraries=find_pvms()[0])
    pvm = next(name for name in catalogue.transports if name.startswith("pvm@"))
    outcome, ended = measure(
        tmp_path / "r.db",
        catalogue,
        {"pattern": "pingpong", "bytes": [8, 1000], "transports": [pvm, "shm"]},
        display=DaemonKiller(),
        time_s=2.0,
    )
    failed = [reason for status, reason in ended.values() if status is PointStatus.FAILED]
    assert len(failed) == 1
    assert is_a_sentence(failed[0])
    assert "the PVM daemon" in str(failed[0])
    assert len(ended) == 4
    assert outcome.status is RunStatus.PARTIAL
    assert not children()


def test_messages_that_no_memory_holds_are_refused_before_a_run_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "r.db"

    def call(sizes: str) -> subprocess.CompletedProcess[str]:
        arguments = ("run", "pingpong", "-t", "shm", "--bytes", sizes, "--time", "1s", "--precision", "90%")
        return finished(command(*arguments, store=path))

    done = call("1024G")
    assert done.returncode == 2, done.stderr
    assert "nothing to measure: buffers of 2097152 MiB are above a rank's share" in done.stderr
    assert "--time" not in done.stderr
    with Store.open(path, readonly=True) as store:
        assert store.runs() == []
    assert call("8,1024G").returncode in (0, 3)  # 3: no interval in so little time
    with Store.open(path, readonly=True) as store:
        ended = {row.point.bytes: row.status for row in store.points(1)}
    assert ended[1 << 40] is PointStatus.SKIPPED
    assert ended[8] in (PointStatus.PRECISE, PointStatus.TIME_UP)


HUGE = "9" * 5000
DEEP = 5000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--time", HUGE), "is too long: at most 8784h"),
        (("--time", "99999999h"), "is too long: at most 8784h"),
        (("--time", "1e308"), "is not a duration"),
        (("--limit", HUGE), "is too long"),
        (("--bytes", HUGE), "is too large a message"),
        (("-n", HUGE), "is not a number of ranks"),
        (("--launches", HUGE), "is not a number of launches"),
        (("-o", f"source={HUGE}"), "must be a whole number from 0 to 4095"),
        (("--precision", "nan%"), "is not a precision"),
        (("--precision", f"{HUGE}%"), "is not a precision"),
        (("--resume", HUGE), "results"),
    ],
)
def test_strange_numbers_on_the_command_line_are_refused(
    tmp_path: Path, words: tuple[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    what = () if words[0] == "--resume" else ("pingpong", "-t", "shm")
    assert execute(["run", *what, *words, "--store", str(tmp_path / "r.db")]) == 2
    refusal = capsys.readouterr().err
    assert said in refusal
    assert "fault" not in refusal
    assert refusal.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "[" * DEEP + "]" * DEEP, "nested too deeply"),
        ("a = " + "{a=" * DEEP + "1" + "}" * DEEP, "nested too deeply"),
        (f"time = {HUGE}", "is not TOML"),
        ("time = 1e308", "1e+308: input should be less than or equal to 316224"),
        ("time = inf", "inf: "),
        ("time = nan", "nan: "),
        ("time = -1", "-1"),
        ("launches = -1", "-1: input should be greater"),
        ("precision = inf", "'inf' is not a precision"),
        ("[[series]]\npattern = 'pingpong'\nranks = inf", "ranks of the 1st [[series]]: inf: "),
        ("[[series]]\npattern = 'pingpong'\nbytes = nan", "bytes of the 1st [[series]]"),
        ("[[series]]\npattern = 'pingpong'\nbytes = -8", "'-8' is not a size"),
        (
            "name = 'a'\ntitle = 'b'\n[[series]]\npattern = 'pingpong'\noptions = { source = nan }",
            "option source of pingpong must be a whole",
        ),
        ("[[expect]]\npattern = 'pingpong'\nlatency = '<= " + HUGE + " s'", "latency of the 1st [[expect]]"),
    ],
)
def test_strange_files_are_refused(tmp_path: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "strange.toml"
    path.write_text(text)
    command = ("check", "--expect") if "[[expect]]" in text else ("run",)
    assert execute([*command, str(path), "--store", str(tmp_path / "r.db")]) in (2, 3)
    refusal = "".join(capsys.readouterr())
    assert "fault" not in refusal
    assert said in " ".join(refusal.split())
    assert not (tmp_path / "r.db").exists()


@pytest.mark.parametrize(("transport", "code"), [("shm", 3), ("udp", 0)])
def test_a_payload_that_the_worker_did_not_verify_fails_unless_messages_may_be_lost(
    transport: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = WorkerSession.measure

    def unverified(self: WorkerSession, *words: str, **more: Any) -> MeasureAnswer:
        return measured(self, *words, **more).model_copy(update={"verified": False})

    monkeypatch.setattr(WorkerSession, "measure", unverified)
    path = tmp_path / "r.db"
    words = ("run", "pingpong,barrier", "-t", transport, "--bytes", "8", "--time", "0.2s", "--store", str(path))
    assert execute(words) in (code, 3)  # 3 also where so short a run has no interval
    assert ("the payload was not verified" in capsys.readouterr().out) == (code == 3)
    with Store.open(path, readonly=True) as store:
        assert store.run(1).status is (RunStatus.PARTIAL if code else RunStatus.DONE)
        ended = {row.point.pattern: row.status for row in store.points(1)}
    assert (ended["pingpong"] is PointStatus.FAILED) == (code == 3)
    assert ended["barrier"] in (PointStatus.PRECISE, PointStatus.TIME_UP)  # nothing arrives there
