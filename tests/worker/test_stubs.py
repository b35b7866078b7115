"""Sessions with stubs instead of launchers and workers: each wrong answer or end is one sentence, and nothing hangs."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

import hockney.worker.channel
from hockney.worker.answers import parse
from hockney.worker.channel import Channel
from hockney.worker.diagnose import reason, summary, unreachable
from hockney.worker.errors import LaunchFailed, ProtocolError, WorkerDied, WorkerError, WorkerTimedOut
from hockney.worker.launch import StartCommand
from hockney.worker.processes import find_members
from hockney.worker.session import WorkerSession

# As a worker writes them.
HELLO: dict[str, Any] = json.loads(
    '{"v": 1, "kind": "hello", "id": 1, "worker": "0.1.0", "family": "native", "transport": "stub", "library": "stub",'
    ' "size": 1, "clock_ns": 20.5, "floor_why": null, "ranks": [{"rank": 0, "host": "here", "machine": "this",'
    ' "network": "net:[1]", "pid": 1, "cpu": 0, "cpus_usable": 1, "bound": "0", "strangers": 0}]}'
)
MEASURE: dict[str, Any] = json.loads(
    '{"v": 1, "kind": "measure", "id": 2, "pattern": "pingpong", "transport": "stub", "size": 1, "bytes": 8,'
    ' "batch": 1, "samples": 2, "warmup": 1, "timed": "root", "divisor": 2, "algorithm": null, "bytes_per_rep": 16,'
    ' "messages_per_rep": 2, "cpu_user_ns": [0], "cpu_system_ns": [0], "wall_ns": [9], "verified": true,'
    ' "floor_ns": [30.25, 31], "floor_kind": "line", "pace_ns": [[0.63], [0.64]], "solo_ns": null,'
    ' "wake_ns": [9000.5, 9100], "started_ns": 9007199254740993, "counters": {"lost": [0.5]}, "elapsed_ns": [[5, 4]]}'
)


class Stub:
    """Makes launches of a small Python program that has `answer`, `hear`, and the usual modules."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def launch(self, body: str) -> StartCommand:
        path = self._folder / "stub.py"
        path.write_text(
            "import json, os, signal, subprocess, sys, time\n"
            f"inf, nan = float('inf'), float('nan')\nHELLO = {HELLO!r}\nMEASURE = {MEASURE!r}\n"
            "def answer(content):\n"
            "    text = content if isinstance(content, bytes) else json.dumps(content).encode()\n"
            "    sys.stdout.buffer.write(b'\\n@hk ' + text + b'\\n')\n"
            "    sys.stdout.buffer.flush()\n"
            "def hear():\n    return sys.stdin.readline()\n" + body
        )
        return StartCommand("stub", (sys.executable, str(path)))


@pytest.fixture
def stub(tmp_path: Path) -> Stub:
    return Stub(tmp_path)


def ask(launched: StartCommand) -> WorkerSession:
    """A session that asks for hello and one point; for stubs that answer wrongly."""
    with WorkerSession(launched, start_limit_s=20) as session:
        session.hello()
        session.measure("pingpong", bytes=8, batch=1, samples=2, timeout_s=1)
        return session


def answering(answer: object, verb: str = "measure") -> str:
    """A stub that gives this answer to one command; its hello is right unless hello is that command."""
    greeting = "" if verb == "hello" else "hear(); answer(HELLO)\n"
    return f"{greeting}hear(); answer({answer!r}); hear()\n"


# ---- answers -------------------------------------------------------------------------------------------------------


def test_a_right_answer_is_read(stub: Stub) -> None:
    launched = stub.launch(answering(MEASURE) + "answer({'v': 1, 'kind': 'bye', 'id': 3})\n")
    with WorkerSession(launched) as session:
        assert session.hello().floor_why is None
        answer = session.measure("pingpong", bytes=8, batch=1, samples=2)
        assert answer.elapsed_ns == [[5, 4]]
        assert (answer.floor_ns, answer.floor_kind) == ((30.25, 31.0), "line")
        assert (answer.pace_ns, answer.solo_ns) == (((0.63,), (0.64,)), None)
        assert answer.wake_ns == (9000.5, 9100.0)
        assert answer.counters == {"lost": (0.5,)}
        assert answer.started_ns == 2**53 + 1


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"\xff\xfe\x00", b"[" * 100_000, b'{"v":1}', b'{"v":1,"kind":7,"id":2}',
     b'{"v":1,"kind":"bye","id":"2"}', b'{"v":2,"kind":"bye","id":2}',
     b'{"v":1,"kind":"bye","id":2} {"v":1}', b'{"v":1,"kind":"bye","id":' + b"9" * 5000 + b"}"],
    ids=lambda text: text[:20].decode(errors="replace"),
)  # fmt: skip
def test_an_unreadable_answer_is_a_protocol_error(text: bytes) -> None:
    assert parse(b'{"v":1,"kind":"bye","id":2}').id == 2
    with pytest.raises(ProtocolError):
        parse(text)


@pytest.mark.parametrize(
    ("key", "value"),
    [("id", 3), ("kind", "hello"), ("pattern", "oneway"), ("bytes", 9), ("samples", 3), ("batch", 2), ("timed", "x")],
)
def test_a_wrong_answer_is_a_protocol_error_and_ends_the_job(stub: Stub, key: str, value: object) -> None:
    session = WorkerSession(stub.launch(answering({**MEASURE, key: value})))
    session.start()
    session.hello()
    with pytest.raises(ProtocolError) as error:
        session.measure("pingpong", bytes=8, batch=1, samples=2)
    assert "\n" not in str(error.value)
    assert not any(psutil.pid_exists(process.pid) for process in session.channel.processes)


WRONG: dict[str, list[object]] = {
    "kind": ["floor"],
    "verified": [1, None],
    "divisor": [2.0, 0, -1, 2**70],
    "batch": [0],
    "bytes_per_rep": [-1],
    "messages_per_rep": [2**64],
    "size": [2],
    "samples": [3],
    "timed": ["nobody", "rank x", "rank 1"],
    "started_ns": [2**70, 1.5],
    "elapsed_ns": [[], [[5, 4], [5, 4]], [[5]], [[5, 4, 3]], [[5, 2**70]], [5, 4], [[5, -4]], [[5, 4.5]], [[5, True]]],
    "wall_ns": [[2**63], {"0": 1}, []],
    "least_ns": [[5]],
    "floor_ns": [[0.0, 30.0], [float("inf"), 30.0], [float("nan"), 30.0], [10**400, 30.0], [1.0], ["1", "2"]],
    "floor_kind": ["loop"],
    "pace_ns": [[[-1.0], [0.6]], [[0.6], []], [0.63, 0.63], [[0.63]], [[0.63], ["1"]]],
    "solo_ns": [[1]],
    "wake_ns": [[1], [-1.0, 9000.0], 9000.0],
    "counters": [{"lost": [float("nan")]}, {"lost": []}, [1], {"lost": ["1"]}],
    "algorithm": [1],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in WRONG.items() for value in values], ids=str)
def test_a_wrong_field_is_a_protocol_error(key: str, value: object) -> None:
    assert parse(json.dumps(MEASURE).encode()).kind == "measure"
    with pytest.raises(ProtocolError, match=r"^a wrong answer of the worker: [^\n]*$"):
        parse(json.dumps({**MEASURE, key: value}).encode())


@pytest.mark.parametrize("key", sorted(MEASURE.keys() - {"kind"}))
def test_a_missing_field_is_a_protocol_error(key: str) -> None:
    with pytest.raises(ProtocolError, match=f"measure.{key}: Field required"):
        parse(json.dumps({name: value for name, value in MEASURE.items() if name != key}).encode())


@pytest.mark.parametrize(
    ("key", "value"),
    [("ranks", None), ("ranks", [{}]), ("ranks", [[]]), ("clock_ns", "20"), ("library", 1)],
)
def test_a_wrong_hello_is_a_protocol_error(key: str, value: object) -> None:
    with pytest.raises(ProtocolError):
        parse(json.dumps({**HELLO, key: value}).encode())


def test_noise_around_answers_is_kept_and_bounded(stub: Stub) -> None:
    body = """
for n in range(5000):
    print("warning", n)
sys.stdout.flush()
sys.stdout.buffer.write(b"x" * 3_000_000 + b"\\n" + b"\\x00\\xff\\n" + b"@hkx\\n" + b"no end")
sys.stdout.buffer.flush()
hear(); answer(HELLO); print("@ hk", flush=True)
hear(); answer(MEASURE); hear(); answer({"v": 1, "kind": "bye", "id": 3})
"""
    with WorkerSession(stub.launch(body)) as session:
        session.hello()
        assert session.measure("pingpong", bytes=8, batch=1, samples=2).verified
        assert len(session.channel.noise) <= 100
        assert max(map(len, session.channel.noise)) <= 4096
        assert {"no end", "@hkx", "@ hk"} <= set(session.channel.noise)


def test_a_flood_on_standard_error_is_bounded(stub: Stub) -> None:
    body = "hear()\nfor n in range(200_000):\n    print('warning number', n, file=sys.stderr)\nanswer(HELLO); hear()\n"
    with WorkerSession(stub.launch(body)) as session:
        session.hello()
        assert len(session.channel.output()) <= 1 << 16
        session.kill()


# ---- ends ----------------------------------------------------------------------------------------------------------


def test_a_missing_launcher_is_a_failed_launch() -> None:
    with pytest.raises(LaunchFailed, match="No such file"):
        WorkerSession(StartCommand("mpiexec", ("/nowhere/mpiexec", "-n", "2"))).start()


def test_a_launcher_that_fails_is_quoted(stub: Stub) -> None:
    script = "print('-' * 60, file=sys.stderr); print('There are not enough slots', file=sys.stderr); sys.exit(3)"
    with pytest.raises(LaunchFailed) as error:
        ask(stub.launch(script))
    assert str(error.value) == (
        "stub did not start the ranks: it ended with exit code 3; stub said: There are not enough slots"
    )


@pytest.mark.parametrize("body", ["time.sleep(600)", "while True: print('.', flush=True)"])
def test_a_start_that_hangs_is_ended(stub: Stub, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hockney.worker.session.GRACE_S", 0.5)
    session = WorkerSession(stub.launch(body), start_limit_s=1)
    with pytest.raises(LaunchFailed) as error, session:
        session.hello()
    remedy = "to wait longer, measure again with --limit above 1 s"
    assert f"stub did not start the ranks: no answer within 1 s ({remedy})" in str(error.value)
    assert not psutil.pid_exists(session.channel.processes[0].pid)


def test_a_longer_limit_is_not_advised_where_it_would_not_help(stub: Stub) -> None:
    """The message of tcp's ranks when they cannot meet although all have started."""
    said = "hockney worker: rank 0: rendezvous: 1 of 1 ranks did not join in time"
    session = WorkerSession(stub.launch(f"print({said!r}, file=sys.stderr); sys.exit(3)"), start_limit_s=20)
    with pytest.raises(LaunchFailed, match="it ended with exit code 3; stub said: ") as error, session:
        session.hello()
    assert "--limit" not in str(error.value)


def test_a_missing_answer_times_out(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hockney.worker.session.GRACE_S", 0.5)
    with pytest.raises(WorkerTimedOut, match="no end after 1 s in pingpong of 8 B"):
        ask(stub.launch("hear(); answer(HELLO); hear(); time.sleep(600)"))


def test_a_rank_that_reports_the_time_limit_does_not_say_it_again() -> None:
    late = WorkerTimedOut("flows of 16 KiB", 20, "rank 1: no end after 20 s in flows of 16384 B")
    assert str(late) == "no end after 20 s in flows of 16 KiB"
    assert str(WorkerTimedOut("ring of 8 B", 1, "rank 1: out of memory")).endswith("ring of 8 B: rank 1: out of memory")


def test_output_before_a_command_is_no_reason_for_its_failure(stub: Stub) -> None:
    said = "print('hockney worker: rank 0: once', file=sys.stderr, flush=True)\n"
    with pytest.raises(WorkerDied) as error:
        ask(stub.launch(said + "hear(); answer(HELLO); hear(); sys.exit(5)"))
    assert str(error.value) == "the worker ended with exit code 5"


def test_half_an_answer_is_a_protocol_error(stub: Stub) -> None:
    body = "hear(); answer(HELLO); hear(); sys.stdout.write('@hk ' + json.dumps(MEASURE)[:50]); sys.exit(0)"
    with pytest.raises(ProtocolError, match="Invalid JSON"):
        ask(stub.launch(body))


@pytest.mark.parametrize(
    ("end", "text"),
    [
        ("sys.exit(5)", "the worker ended with exit code 5: libfoo: out of credits"),
        ("os.kill(os.getpid(), 11)", "the worker was killed by SIGSEGV: libfoo: out of credits"),
        ("answer({'v':1,'kind':'lost','id':0,'rank':3,'signal':9,'exit':0})", "rank 3 was killed by SIGKILL: libfoo"),
    ],
)
def test_an_early_end_names_the_rank_and_the_cause(stub: Stub, end: str, text: str) -> None:
    body = f"hear(); answer(HELLO); hear(); print('libfoo: out of credits', file=sys.stderr, flush=True); {end}"
    with pytest.raises(WorkerDied) as death:
        ask(stub.launch(body))
    assert str(death.value).startswith(text)
    assert death.value.exit_code == 3  # of the command: measured in part


def test_children_in_other_sessions_are_ended_too(stub: Stub) -> None:
    hidden = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    body = f"""
signal.signal(signal.SIGTERM, signal.SIG_IGN)
shell = "setsid {sys.executable} -c '{hidden}' & wait"
child = subprocess.Popen(["sh", "-c", shell], stdout=subprocess.PIPE)
child.stdout.readline()
orphan = "import subprocess as s, sys; s.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True)"
subprocess.run([sys.executable, "-c", orphan, "{hidden}"], stdout=subprocess.DEVNULL)
hear(); answer(HELLO); time.sleep(600)
"""
    session = WorkerSession(stub.launch(body))
    session.start()
    session.hello()
    mark = psutil.Process(session.channel.processes[0].pid).environ()["HOCKNEY_JOB"]
    members = find_members([], mark)
    assert len(members) >= 4
    assert session.kill()
    assert find_members([], mark) == []


# ---- pieces --------------------------------------------------------------------------------------------------------


def test_lines_do_not_depend_on_chunks(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = ["noise", "@h", "x" * 4096, "", "@hk " + "y" * 10_000, "@hk {}", "the rest"]
    launched = stub.launch(f"sys.stdout.write({chr(10).join(pieces)!r})")
    for chunk_bytes in (1, 3, 4097, 1 << 18):
        monkeypatch.setattr(hockney.worker.channel, "_CHUNK_BYTES", chunk_bytes)
        channel = Channel()
        channel.spawn(launched.argv, {})
        deadline_s = time.monotonic() + 60
        lines = []
        while (line := channel.read_line(deadline_s)) is not None:
            lines.append(line)
        channel.end()
        assert lines == [b"y" * 10_000, b"{}"]
        assert list(channel.noise) == ["noise", "@h", "x" * 4096, "the rest"]


NO_ROUTE = "ssh: connect to host n9 port 22: No route to host"


@pytest.mark.parametrize(
    "line",
    [
        NO_ROUTE,
        "ssh: Could not resolve hostname n9: Name or service not known",
        "root@n9: Permission denied (publickey,password).",
        "Host key verification failed.",
        "Connection closed by 10.0.0.9 port 22",
    ],
)
def test_a_shell_that_cannot_reach_a_host_is_heard(line: str) -> None:
    assert unreachable(f"noise\n{line}\n") == line


@pytest.mark.parametrize(
    ("line", "may_be_chance"), [(NO_ROUTE, True), ("HYDU_sock_connect (1): unable to get host address for n1", False)]
)
def test_a_launcher_that_missed_a_host_is_not_waited_for(line: str, *, may_be_chance: bool, stub: Stub) -> None:
    """It is started again, unless it finds an address of the kind that it needs nowhere."""
    launched = stub.launch(f"sys.stderr.write('noise\\n{line}\\n'); sys.stderr.flush(); time.sleep(600)\n")
    with pytest.raises(LaunchFailed, match=f"cannot reach a host: {re.escape(line)}") as caught:
        ask(launched)
    assert not caught.value.timed_out
    assert caught.value.missed is may_be_chance


def test_the_advice_of_a_launcher_that_missed_a_host_is_left_out(stub: Stub) -> None:
    line = "ssh: Could not resolve hostname n9: Name or service not known"
    launched = stub.launch(f"sys.stderr.write('{line}\\nORTE was unable to start: * not finding\\n'); sys.exit(1)\n")
    with pytest.raises(LaunchFailed) as caught:
        ask(launched)
    assert str(caught.value).endswith(f"it cannot reach a host: {line}")


def test_a_job_that_outlives_the_limit_that_its_ranks_reported_is_not_waited_for(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hockney.worker.session.GRACE_S", 600)
    report = "hockney worker: rank 0: no end after 1 s in pingpong\\n"
    launched = stub.launch(
        f"hear(); answer(HELLO); hear(); sys.stderr.write('{report}'); sys.stderr.flush(); time.sleep(600)\n"
    )
    with pytest.raises(WorkerTimedOut, match="no end after 1 s in pingpong"):
        ask(launched)


def test_messages_of_a_rank_about_its_connections_are_no_such_failure() -> None:
    assert unreachable("[n1:12] recv failed: Connection reset by peer (104)\nPermission denied\n") == ""


def test_a_launcher_that_comes_up_after_all_is_heard(stub: Stub) -> None:
    late = "sys.stderr.write('ssh: connect to host n9 port 22: once\\n'); sys.stderr.flush(); time.sleep(1)\n"
    launched = stub.launch(late + answering(MEASURE) + "answer({'v': 1, 'kind': 'bye', 'id': 3})\n")
    assert ask(launched).channel.output().startswith("ssh: connect")


def test_the_reason_is_the_first_cause() -> None:
    said = (
        "libfoo: hello\n"
        "hockney worker: rank 1: shm: the peer is gone\n"
        "hockney worker: rank 0: control: rank 1 is gone\n"
        "hockney worker: rank 2: no end after 3 s in pingpong of 8 B\n"
        "--------------------\n"
    )
    assert reason(said) == "rank 1: shm: the peer is gone"
    assert reason("libfoo: hello\n=====\n") == "libfoo: hello"
    backtrace = "/lib/libmpi.so.12(+0x4627a1) [0x7fbb9e0627a1]\n/lib/libc.so.6(abort+0x12b) [0x7fbb9e0627a2]\n"
    backtrace += "[h:12] [ 0] /lib/libc.so.6(+0x38d90)[0x7f1]\n[h:12] [ 1] ./w(main+0x2) [0x7f2]\n"
    backtrace += " 0 /lib/libucs.so.0(ucs_handle_error+0x2dc) [0x7f]\n"
    assert reason(f"Assertion failed in file mpidig.c\n{backtrace}") == "Assertion failed in file mpidig.c"
    assert reason("") == ""
    open_mpi = (
        "--------\nmpirun noticed that process rank 1 with PID 0 on node n7 exited on signal 9 (Killed).\n-----\n"
    )
    assert reason(open_mpi).startswith("mpirun noticed that process rank 1")
    hydra = "=   EXIT CODE: 9\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\nSee the FAQ\n"
    assert reason(hydra) == "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)"
    assert summary("----\nNot enough slots\n\nAsk for fewer\n----\n") == "Not enough slots Ask for fewer"
    assert summary("word " * 1000) == ("word " * 1000).strip()  # a line is never cut


def test_no_descriptor_leaks(stub: Stub) -> None:
    before = psutil.Process().num_fds()
    for body in (answering({}), "sys.exit(1)", "hear(); answer(HELLO)"):
        with pytest.raises(WorkerError):
            ask(stub.launch(body))
    assert psutil.Process().num_fds() == before


def test_output_is_heard_until_its_end_or_the_limit() -> None:
    channel = Channel()
    channel.spawn(["sh", "-c", "sleep 0.3; echo late >&2"], {})
    channel.hear(0.01)
    early = channel.output()
    channel.hear(60.0)
    late = channel.output()
    channel.end()
    assert (early, late) == ("", "late\n")


def test_orphans_that_print_do_not_delay_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hockney.worker.channel, "_CHUNK_BYTES", 16)  # slower than they print
    channel = Channel()
    channel.spawn(["sh", "-c", "for n in 1 2 3 4 5 6 7 8; do yes >&2 & done; exit 3"], {})
    codes: list[int | None] = []
    waiting = threading.Thread(target=lambda: codes.append(channel.wait_exit(10.0)), daemon=True)
    waiting.start()
    waiting.join(60.0)
    ended = not waiting.is_alive()
    channel.end()
    assert ended
    assert codes == [3]
