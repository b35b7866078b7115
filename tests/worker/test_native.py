"""The native worker by its line protocol alone: every pattern on every transport, plainly and under sanitizers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.matrix import matrix
from tests.shared import finished
from tests.worker.extra import ADDRESS, EXTRA, THREAD

from hockney.worker.build import Recipe, build_worker
from hockney.worker.catalogue import describe

HERE = Path(__file__).parent
NATIVE = Recipe()
DESCRIPTION = describe(build_worker())
# On a busy machine a rank that spins may wait a time slice for each message; one that hangs ends after its timeout_s.
pytestmark = pytest.mark.timeout(700)
# Patterns of messages between two ranks or more; those with more needs, or options, have separate tests, as has forked.
_OF_MESSAGES = [
    row
    for row in DESCRIPTION["patterns"]
    if set(row["needs"]) <= {"send", "nonblocking"} and row["ranks"][1] == 0 and row["grain_bytes"] == 0
    if row["name"] != "forked"
]
PATTERNS = [row["name"] for row in _OF_MESSAGES if row["ranks"][0] <= 2]
FARMS = [row["name"] for row in _OF_MESSAGES if row["ranks"][0] > 2]
EVEN = [row["name"] for row in _OF_MESSAGES if row["ranks"][2] == 2]  # they refuse three ranks
_ONE_SIDED = [row for row in DESCRIPTION["patterns"] if row["needs"] == ["one_sided"]]
ONE_SIDED = [row["name"] for row in _ONE_SIDED]
_EVEN_ONE_SIDED = [row["name"] for row in _ONE_SIDED if row["ranks"][2] == 2]
_HERE = [row["name"] for row in DESCRIPTION["transports"] if "lossy" not in row["caps"] and not row["absent"]]
TRANSPORTS = [name for name in _HERE if name != "tcp:uring-sqpoll"]  # whose threads take all CPUs: test_sockets.py
TRANSPORTS = [name for name in TRANSPORTS if not name.startswith("cuda")]  # test_devices.py
SHORT = [name for name in TRANSPORTS if ":" not in name or name in ("shm:sleep", "unix:seqpacket", "tcp:uring")]
"""Of each way to wait, one is in every scripts/test."""


def converse(
    worker: Path, commands: list[str], *arguments: str, env: dict[str, str] | None = None, limit_s: float = 600
) -> tuple[list[dict[str, Any]], subprocess.CompletedProcess[str]]:
    """The steps of a user: type lines, read answers."""
    done = finished(
        [worker, *arguments],
        input="".join(f"{line}\n" for line in commands),
        timeout_s=limit_s,
        env={**os.environ, **(env or {})},
    )
    lines = done.stdout.splitlines()
    return [json.loads(line[4:]) for line in lines if line.startswith("@hk ")], done


def measured(commands: list[str], *arguments: str, recipe: Recipe = NATIVE, **more: Any) -> list[dict[str, Any]]:
    """The answers to commands that are all measured, by a worker that ends well and says nothing of faults."""
    answers, done = converse(build_worker(recipe), commands, *arguments, **more)
    kinds = [answer["kind"] for answer in answers]
    assert (kinds, done.returncode) == (["measure"] * len(commands) + ["bye"], 0), done.stdout[-2000:] + done.stderr
    assert not re.search("runtime error|Sanitizer", done.stderr), done.stderr[:3000]
    return answers[:-1]


def all_unsupported(commands: list[str], transport: str, ranks: int) -> list[str]:
    """Why the worker refuses each of these points, in one line; the job goes on."""
    answers, done = converse(build_worker(), [*commands, measure("barrier", 0)], "-t", transport, *shared(ranks))
    assert [answer["kind"] for answer in answers] == [*["error"] * len(commands), "measure", "bye"], done.stderr
    assert {answer["code"] for answer in answers[:-2]} == {"unsupported"}
    messages = [str(answer["message"]) for answer in answers[:-2]]
    assert not any("\n" in message for message in messages)
    return messages


def why_unsupported(command: str, transport: str, ranks: int) -> str:
    """Why the worker refuses a point, in one line."""
    return all_unsupported([command], transport, ranks)[0]


def shared(ranks: int = 2) -> list[str]:
    """The words that start ranks which share CPUs: no point then takes its machine state, which lasts far longer."""
    return ["-n", str(ranks), "--oversubscribed"]


def on_virtual(costs: str, command: str, ranks: int = 2) -> dict[str, Any]:
    """The answer to a point on a virtual clock, whose costs and ranks' clocks are known exactly (virtual.c)."""
    arguments, env = ["-t", "virtual", *shared(ranks)], {"HOCKNEY_VIRTUAL": costs}
    return measured([command], *arguments, recipe=EXTRA, env=env)[0]


def measure(pattern: str, size: int, **keys: object) -> str:
    words = {"batch": 3, "samples": 4, "timeout_s": 120, **keys}
    return f"measure pattern={pattern} bytes={size} " + " ".join(f"{key}={value}" for key, value in words.items())


def sent_by(transport: str, size: int) -> int:
    """The size, or the largest that the transport sends in one message; a multiple of a word like the size."""
    most = next(row["max_bytes"] for row in DESCRIPTION["transports"] if row["name"] == transport)
    return min(size, most // 8 * 8 or size)


def reductions(transport: str) -> list[str]:
    """Of one word, of some, and of more than any buffer on the way holds, where one message may have as much."""
    return [
        measure("allreduce", sent_by(transport, size), algorithm=algorithm)
        for size in (8, 1024, 300_000)
        for algorithm in ("auto", "ring", "rabenseifner")
    ]


def sizes_around_thresholds(transport: str) -> list[int]:
    sizes = [0, 1, 8, 9, 64, 1025, 70_001] if transport == "shm" else [0, 8, 4097, 70_001]
    return [sent_by(transport, size) for size in sizes]


@pytest.mark.parametrize("ranks", matrix([2, 4], short=[2]))
@pytest.mark.parametrize("transport", matrix(TRANSPORTS, short=SHORT))
def test_every_pattern_on_every_transport(transport: str, ranks: int) -> None:
    """Ranks with CPUs of their own wait otherwise, and that is the transport's matter whatever the pattern."""
    sizes, twice = sizes_around_thresholds(transport), {"batch": 2, "samples": 2}
    commands = [measure(name, size, **twice) for name in PATTERNS + FARMS * (ranks > 2) for size in sizes]
    alone = [measure(name, size, **twice) for name in ("pingpong", "twoway") for size in (8, sizes[-1])]
    answers = measured(commands, "-t", transport, *shared(ranks))
    answers += measured(alone, "-t", transport, "-n", "2") if ranks == 2 else []
    for answer in answers:
        assert len(answer["elapsed_ns"]) == ranks
        assert all(len(row) == 2 and all(ns > 0 for ns in row) for row in answer["elapsed_ns"])
        assert len(answer["cpu_user_ns"]) == ranks
        carries = transport != "null" and answer["pattern"] != "barrier"
        assert answer["verified"] is carries, answer["pattern"]


@pytest.mark.parametrize("transport", matrix([name for name in TRANSPORTS if name != "null"], short=SHORT))
def test_windows_and_ends_of_the_clock(transport: str) -> None:
    streams: tuple[tuple[str, dict[str, Any]], ...] = (
        *((pattern, {"until": until}) for pattern in ("oneway", "pairs") for until in ("acked", "sent")),
        ("twoway", {}),
    )
    commands = [
        measure(pattern, sent_by(transport, size), window=window, **until)
        for pattern, until in streams
        for window in (1, 64)
        for size in (8, 5000, 300_000)
    ]
    answers = measured(commands, "-t", transport, *shared())
    for answer, command in zip(answers, commands, strict=True):
        window = int(command.partition("window=")[2].split()[0])
        assert answer["divisor"] == window * (2 if answer["pattern"] == "twoway" else 1)
        assert answer["bytes_per_rep"] == answer["messages_per_rep"] * answer["bytes"]


@pytest.mark.parametrize("transport", matrix(TRANSPORTS, short=["shm"]))
def test_every_pattern_of_three_ranks_and_of_four(transport: str, checked: Recipe) -> None:
    commands = [measure(pattern, size, id=size) for pattern in PATTERNS + FARMS for size in (0, 8, 1000, 70_001)]
    commands += [measure("oneway", 5000, window=64), measure("twoway", 200_000, window=16), "hello", "floor", "quit"]
    answers, done = converse(build_worker(checked), commands, "-t", transport, *shared(3))
    kinds = [answer["kind"] for answer in answers]
    assert done.returncode == 0, done.stderr
    assert "ERROR" not in done.stderr
    assert "runtime error" not in done.stderr
    refused = [a["message"] for a in answers if a["kind"] == "error"]
    assert len(refused) == 4 * len(EVEN) + 1, refused  # in four sizes, and no floor with too many ranks
    assert kinds[-1] == "bye"
    even = [line for line in commands if any(f"pattern={pattern} " in line for pattern in EVEN)]
    answers = measured(even, "-t", transport, *shared(4), recipe=checked)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.full
@pytest.mark.parametrize("recipe", [ADDRESS, THREAD], ids=["address", "thread"])
@pytest.mark.parametrize(("transport", "ranks"), [("shm", 2), ("shm", 3), ("threads", 2)])
def test_all_but_the_farms_under_each_sanitizer(transport: str, ranks: int, recipe: Recipe) -> None:
    patterns = [name for name in PATTERNS if ranks == 2 or name not in EVEN]
    commands = [measure(pattern, size) for pattern in patterns for size in (0, 8, 1000, 70_001)] + reductions(transport)
    one_sided = [name for name in ONE_SIDED if ranks == 2 or name not in _EVEN_ONE_SIDED]
    commands += [measure(pattern, size) for pattern in one_sided for size in (8, 1000, 70_000)]
    commands += [measure("oneway", 5000, window=64), measure("twoway", 200_000, window=16)]
    commands += [measure("put", 8, quiet="each"), measure("put", 16, quiet="seen"), measure("ring", 1000)]
    measured(commands, "-t", transport, *shared(ranks), recipe=recipe)


@pytest.mark.parametrize("ranks", matrix([2, 3, 5], short=[5]))
@pytest.mark.parametrize("transport", matrix([*TRANSPORTS, "udp"], short=[*SHORT, "udp"]))
def test_allreduces_add_up_all_ranks_values(transport: str, ranks: int) -> None:
    answers = measured(reductions(transport), "-t", transport, *shared(ranks))
    for answer in answers:
        assert (answer["timed"], answer["divisor"]) == ("slowest", 1)
        assert answer["bytes_per_rep"] == 2 * (ranks - 1) * answer["bytes"]
        assert answer["verified"] is (transport != "null")
    assert [a["algorithm"] for a in answers[:3]] == ["doubling", "ring", "rabenseifner"]


# ---- ft: the NPB's own verification --------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", matrix([1, 2, 4], short=[4]))
@pytest.mark.parametrize("transport", ["shm", "threads", "pipe", "unix:nonblock", "tcp"])
def test_ft_has_the_published_checksums(transport: str, ranks: int) -> None:
    commands = [
        f"measure pattern=ft class={name} samples=1 batch=2 warmup=0"
        for name in (("S", "W") if transport == "shm" else ("S",))
    ]
    for answer in measured(commands, "-t", transport, *shared(ranks)):
        assert answer["verified"] is True
        assert (answer["timed"], answer["divisor"], answer["algorithm"]) == ("root", 1, "flat")
        assert answer["bytes_per_rep"] == 0


@pytest.mark.full
@pytest.mark.parametrize(
    ("recipe", "transport", "name"),
    [(NATIVE, "shm", "A"), *((ADDRESS, transport, name) for transport in ("shm", "threads") for name in ("S", "W"))],
)
def test_ft_in_all_classes_and_under_sanitizers(recipe: Recipe, transport: str, name: str) -> None:
    command = f"measure pattern=ft class={name} samples=1 warmup=0"
    measured([command], "-t", transport, *shared(), recipe=recipe)


def test_ft_over_a_transport_that_corrupts_is_no_figure() -> None:
    env = {"HOCKNEY_FAULT": "corrupt 1 23"}
    commands = ["measure pattern=ft samples=1 warmup=0 id=3", measure("pingpong", 8)]
    answers, done = converse(build_worker(EXTRA), commands, "-t", "fault", env=env)
    assert [a["kind"] for a in answers] == ["error", "measure", "bye"], done.stderr
    assert (answers[0]["code"], answers[0]["id"]) == ("corrupt", 3)
    assert "ft: class S is wrong: the checksum of iteration 1 is " in done.stderr
    assert "and should be 5.546087004964e+02 4.845363331978e+02" in done.stderr


def test_ft_needs_messages_that_arrive() -> None:
    why = "ft needs messages that really arrive, which null does not offer"
    assert why_unsupported("measure pattern=ft", "null", 2) == why


@pytest.mark.parametrize(("ranks", "name", "most"), [(3, "S", 64), (6, "A", 128), (64, "W", 32)])
def test_ft_on_ranks_that_do_not_divide_its_grid(ranks: int, name: str, most: int) -> None:
    why = why_unsupported(f"measure pattern=ft class={name}", "pipe", ranks)
    assert why.endswith(f"cannot be divided among {ranks} ranks: use a power of two up to {most}")


def test_programs_on_another_machine_cannot_connect(tmp_path: Path) -> None:
    """Sockets that wait for others are bound to the loopback alone, those of unix to no name at all."""
    library, log = tmp_path / "note.so", tmp_path / "binds"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, HERE / "note_binds.c"], check=True)
    env = {"LD_PRELOAD": str(library), "HK_BINDS": str(log)}
    for transport in ("tcp", "udp", "unix", "pipe", "shm"):
        log.write_text("")
        measured([measure("alltoall", 100)], "-t", transport, *shared(3), env=env)
        assert set(log.read_text().split()) == ({"127.0.0.1"} if transport in ("tcp", "udp") else set()), transport


# ---- the protocol --------------------------------------------------------------------------------------------------


WRONG_LINES = [
    ("", "empty line"),
    ("mesure pattern=pingpong", "'mesure'"),
    ("measure bytes=8", "pattern="),
    ("measure pattern=pingpog", "'pingpog'"),
    ("measure pattern=pingpong pattern=oneway", "given twice"),
    ("measure pattern=pingpong bytes=8 bytes=9", "given twice"),
    ("measure pattern=pingpong bytes=-1", "'-1'"),
    ("measure pattern=pingpong bytes=99999999999999999999", "not a number"),
    ("measure pattern=pingpong samples=0", "samples must be from 1"),
    ("measure pattern=pingpong window=4", "'window'"),
    ("measure pattern=oneway window=0", "window must be from 1 to 1024"),
    ("measure pattern=oneway until=soon", "acked|sent"),
    ("measure pattern=pingpong bytes", "key=value"),
    ("measure pattern=pingpong\tbytes=8", "byte 25"),
    ("hello version=2", "version must be from 1 to 1"),
    ("quit now=1", "'now'"),
]


def test_a_wrong_line_is_refused_by_name_and_the_next_one_works() -> None:
    lines = [each for line, _ in WRONG_LINES for each in (line, measure("pingpong", 8, id=7))]
    answers, done = converse(build_worker(), lines, "-t", "null", *shared())
    assert [answer["kind"] for answer in answers] == [*["error", "measure"] * len(WRONG_LINES), "bye"], done.stdout
    for (_, culprit), refusal, answer in zip(WRONG_LINES, answers[::2], answers[1::2], strict=False):
        assert (refusal["code"], answer["id"]) == ("argument", 7)
        assert culprit in refusal["message"]


def test_an_endless_line_ends_the_job() -> None:
    answers, done = converse(build_worker(), ["x" * 100_000], "-t", "null")
    assert [a["kind"] for a in answers] == ["error", "bye"]
    assert done.returncode == 0


def test_sizes_with_suffix_and_a_last_line_without_its_end() -> None:
    done = finished([build_worker(), "-t", "shm"], input="measure bytes=4K pattern=pingpong", check=True)
    assert '"bytes":4096' in done.stdout


def test_ranks_that_wait_for_others_have_the_given_limit() -> None:
    words = ["-t", "tcp", "-n", "2", "--rank", "0", "--listen", "localhost", "--start-limit", "1"]
    done = subprocess.run(
        [build_worker(), *words],
        input=f"token {'0' * 32}\n",
        capture_output=True,
        text=True,
        timeout=20,  # below the default limit
        check=False,
    )
    assert '"kind":"listening"' in done.stdout
    assert "1 of 1 ranks did not join in time, including rank 1" in done.stderr
    assert done.returncode != 0


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["-t", "carrier-pigeon"], "carrier-pigeon"),
        (["-n", "0"], "'0'"),
        (["--bind", "a"], "'a'"),
        (["--wrong"], "--wrong"),
        *((["--start-limit", limit], f"'{limit}'") for limit in ("0", "-1", "1x", "86401")),
        (["--rank", "1"], "--join"),
        (["--join", "localhost:1"], "--rank"),
        (["--listen", "localhost"], "--rank"),
        *((["-t", name, "-n", "2", "--rank", "0", "--listen", "localhost"], name) for name in ("shm", "pipe", "unix")),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], culprit: str) -> None:
    answers, done = converse(build_worker(), [], *arguments)
    assert (done.returncode, answers) == (2, [])
    assert culprit in done.stderr


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_hello_has_the_congestion_control_of_tcp(ranks: int) -> None:
    answers, _ = converse(build_worker(), ["hello"], "-t", "tcp", *shared(ranks))
    control = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip() if ranks > 1 else "unknown"
    assert f"congestion control {control}," in answers[0]["library"]


def test_hello_has_the_place_of_each_rank() -> None:
    answers, _ = converse(build_worker(), ["hello id=5"], "-t", "shm", "-n", "2", "--bind", "0,0")
    hello = answers[0]
    assert (hello["kind"], hello["id"], hello["size"]) == ("hello", 5, 2)
    assert [rank["cpu"] for rank in hello["ranks"]] == [0, 0]
    assert hello["floor_why"] == "ranks 0 and 1 share a CPU"


def test_a_floor_is_half_a_round_trip_between_two_cpus() -> None:
    answers, _ = converse(build_worker(), ["floor batch=200 samples=7"], "-t", "shm", "-n", "2")
    assert answers[0]["kind"] == "floor"
    assert len(answers[0]["half_round_trip_ns"]) == 7
    assert all(value > 0 for value in answers[0]["half_round_trip_ns"])


def test_measurements_say_when_they_began_by_the_clock_of_the_kernel() -> None:
    before_ns = time.monotonic_ns()
    first, second, _ = converse(build_worker(), [measure("pingpong", 8)] * 2, "-t", "shm", "-n", "2")[0]
    began_ns = [before_ns, first["started_ns"], second["started_ns"], time.monotonic_ns()]
    assert began_ns == sorted(began_ns)
    assert second["started_ns"] - first["started_ns"] >= first["wall_ns"][0]


def test_every_point_has_the_machine_state() -> None:
    point = [measure("pingpong", 8), measure("barrier", 0)]
    for answer in measured(point, "-t", "shm", "-n", "3"):
        assert answer["floor_kind"] == "line"
        assert all(value > 0 for value in answer["floor_ns"] + answer["solo_ns"])
        assert [len(paces) for paces in answer["pace_ns"]] == [3, 3]
        assert all(pace > 0 for paces in answer["pace_ns"] for pace in paces)
    for arguments in (shared(3), ["-n", "2", "--bind", "0,0"]):
        (answer,) = measured(point[:1], "-t", "shm", *arguments)
        assert (answer["floor_kind"], answer["floor_ns"], answer["solo_ns"]) == (None, None, None)
        assert (answer["pace_ns"] is None) == ("--oversubscribed" in arguments)


@pytest.mark.parametrize("transport", ["tcp", "pipe:nonblock", "udp", "shm:sleep", "shm", "unix:spin"])
def test_a_wake_up_is_measured_where_ranks_sleep(transport: str) -> None:
    """Between two CPUs of one host, of any number of ranks; not where the scheduler would be measured."""
    sleeps = transport in ("tcp", "pipe:nonblock", "udp", "shm:sleep")
    for arguments, is_alone in ((["-n", "3"], True), (shared(3), False), (["-n", "2", "--bind", "0,0"], False)):
        (answer,) = measured([measure("barrier", 0)], "-t", transport, *arguments)
        assert (answer["wake_ns"] is not None) == (sleeps and is_alone)
        assert all(value > 0 for value in answer["wake_ns"] or ())


# ---- faults --------------------------------------------------------------------------------------------------------


def test_a_corrupted_payload_is_named_by_rank_size_and_offset() -> None:
    env = {"HOCKNEY_FAULT": "corrupt 1 17"}
    commands = [measure("pingpong", 8), measure("pingpong", 64, id=3), measure("pingpong", 8)]
    answers, done = converse(build_worker(EXTRA), commands, "-t", "fault", env=env)
    assert [a["kind"] for a in answers] == ["measure", "error", "measure", "bye"], done.stderr
    error = answers[1]
    assert (error["code"], error["id"]) == ("corrupt", 3)
    assert (error["rank"], error["from"], error["bytes"], error["offset"]) == (1, 0, 64, 17)
    assert "byte 17" in error["message"]


def test_a_corrupted_byte_is_shown_with_the_expected_one() -> None:
    """The fault adds 1 to the last byte."""
    env = {"HOCKNEY_FAULT": "wrong 0 0"}
    answers, done = converse(build_worker(EXTRA), [measure("pingpong", 64)], "-t", "fault", env=env)
    shown = re.search(r"byte 63 is (0x..), expected (0x..)$", answers[0]["message"])
    assert shown is not None, done.stderr
    found, expected = (int(byte, 16) for byte in shown.groups())
    assert found == (expected + 1) % 256


@pytest.mark.parametrize("algorithm", ["doubling", "linear"])
def test_a_sum_over_corrupted_vectors_is_wrong(algorithm: str) -> None:
    commands = [measure("allreduce", size, id=size, algorithm=algorithm) for size in (8, 64)]
    answers, done = converse(build_worker(EXTRA), commands, "-t", "fault", env={"HOCKNEY_FAULT": "corrupt 1 17"})
    assert [a["kind"] for a in answers] == ["measure", "error", "bye"], done.stderr
    error = answers[1]
    assert (error["code"], error["id"], error["rank"], error["from"]) == ("corrupt", 64, 1, -1)
    assert error["message"].startswith("rank 1 got a wrong reduction of 64 B: byte 17 is 0x")


# What a program may leave to the worker that it becomes: a child, or that no end of a child shows.
INHERITED = ["if os.fork() == 0: os._exit(3)", "signal.signal(signal.SIGCHLD, signal.SIG_IGN)"]


def becoming(worker: Path, before: str) -> tuple[Path, str, str, str]:
    """A command line of a program that does something and then becomes a worker."""
    script = f"import os, signal, sys\n{before}\nos.execv(sys.argv[1], sys.argv[1:])"
    return Path(sys.executable), "-c", script, str(worker)


@pytest.mark.parametrize("before", ["", *INHERITED])
def test_a_killed_rank_is_reported_and_no_process_stays(before: str) -> None:
    commands = [measure("pingpong", 8), measure("pingpong", 64), measure("pingpong", 8)]
    program, *words = becoming(build_worker(EXTRA), before)
    answers, done = converse(program, commands, *words, "-t", "fault", env={"HOCKNEY_FAULT": "kill 1 64"}, limit_s=60)
    assert [a["kind"] for a in answers] == ["measure", "lost"]
    assert (answers[1]["rank"], answers[1]["signal"]) == (1, 9)
    assert done.returncode == 15


@pytest.mark.parametrize("before", INHERITED)
def test_inherited_descriptors_and_signals_harm_no_job(before: str) -> None:
    program, *words = becoming(build_worker(), before)
    answers, done = converse(program, [measure("pingpong", 8)], *words, "-t", "shm")
    assert ([a["kind"] for a in answers], done.returncode) == (["measure", "bye"], 0), done.stderr


@pytest.mark.parametrize("transport", ["shm", "tcp"])
@pytest.mark.parametrize(("closed", "kinds"), [("<&-", ["bye"]), (">&-", []), ("2>&-", ["measure", "error", "bye"])])
def test_a_closed_standard_descriptor_is_not_reused_by_the_job(closed: str, kinds: list[str], transport: str) -> None:
    commands = [measure("pingpong", 8), measure("paramserver", 1 << 40, timeout_s=5)]  # the log has why not
    words = ("-c", f'exec "$@" {closed}', "sh", str(build_worker()), "-t", transport, *shared(3))
    answers, done = converse(Path("/bin/sh"), commands, *words, limit_s=60)
    assert ([a["kind"] for a in answers], done.returncode) == (kinds, 0), done.stderr


def test_more_samples_than_memory_are_refused() -> None:
    commands = [measure("barrier", 0, samples=300_000), measure("barrier", 0)]
    words = ("-c", 'ulimit -v 40000 && exec "$@"', "sh", str(build_worker()), "-t", "null", *shared(16))
    answers, done = converse(Path("/bin/sh"), commands, *words)
    assert [a["kind"] for a in answers] == ["error", "measure", "bye"], done.stderr
    assert answers[0]["code"] == "memory"
    assert answers[0]["message"] == "no memory for the samples of all ranks; take fewer"


def test_a_hanging_rank_is_ended_by_its_time_limit() -> None:
    commands = [measure("pingpong", 64, timeout_s=1)]
    answers, done = converse(
        build_worker(EXTRA), commands, "-t", "fault", env={"HOCKNEY_FAULT": "hang 1 64"}, limit_s=60
    )
    assert [a["kind"] for a in answers] == ["lost"]
    assert done.returncode == 14
    assert "no end after 1 s in pingpong of 64 B" in done.stderr


def descriptors_by_thread(job: int) -> list[set[int]]:
    """Of rank 0, the process with two threads."""
    tasks = [list(Path(f"/proc/{rank.pid}/task").iterdir()) for rank in psutil.Process(job).children()]
    return [{int(each.name) for each in (task / "fd").iterdir()} for of in tasks if len(of) > 1 for task in of]


def test_eof_abort_ends_a_running_measurement() -> None:
    worker = subprocess.Popen(
        [build_worker(EXTRA), "-t", "fault"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOCKNEY_FAULT": "hang 1 64"},
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"hello eof=abort\n{measure('pingpong', 64)}\n".encode())
    worker.stdin.flush()
    assert b"hello" in worker.stdout.readline() + worker.stdout.readline()
    until_s = time.monotonic() + 60
    while ({0} not in (open_ := descriptors_by_thread(worker.pid))) and time.monotonic() < until_s:
        time.sleep(0.01)
    assert {0} in open_, "descriptors that threads share cost time in each call"
    assert len(open_) == 2
    worker.stdin.close()
    assert worker.wait(timeout=60) != 0
    worker.stdout.close()


# ---- roles, rings, one-sided access, loads -------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("transport", ["null", "shm", "threads"])
def test_one_sided_patterns(transport: str, ranks: int) -> None:
    commands = [measure(pattern, size) for pattern in ONE_SIDED for size in (8, 64, 1024, 70_000)]
    commands += [measure(pattern, 72, source=ranks - 1, target=0) for pattern in ("putpong", "put", "get")]
    commands += [measure(pattern, size, quiet="each") for pattern in ("put", "putring") for size in (0, 8, 1001)]
    commands += [measure(pattern, size, quiet="seen") for pattern in ("put", "putring") for size in (8, 1000, 70_000)]
    commands += [measure("putring", 1001, distance=distance) for distance in range(1, ranks)]
    answers = measured(commands, "-t", transport, *shared(ranks))
    if ranks == 2:  # with CPUs of their own they wait otherwise
        answers += measured([measure(pattern, 64) for pattern in ONE_SIDED], "-t", transport, "-n", "2")
    assert all(answer["verified"] is (transport != "null") for answer in answers)


@pytest.mark.parametrize("transport", ["null", "shm", "tcp"])
@pytest.mark.parametrize("pattern", ["pingpong", "oneway", "prtt"])
def test_any_two_ranks_and_the_source_is_timed(transport: str, pattern: str) -> None:
    pairs = [(source, target) for source in range(3) for target in range(3) if source != target]
    commands = [measure(pattern, 100, source=source, target=target) for source, target in pairs]
    answers = measured(commands, "-t", transport, *shared(3))
    for answer, (source, _) in zip(answers, pairs, strict=True):
        assert answer["timed"] == ("root" if source == 0 else f"rank {source}")
        assert answer["verified"] is (transport != "null")


def test_a_ring_over_every_distance() -> None:
    commands = [measure("ring", size, distance=distance) for distance in (1, 2, 3) for size in (0, 8, 70_001)]
    answers = measured(commands, "-t", "shm", *shared(4))
    assert {(a["timed"], a["messages_per_rep"], a["verified"]) for a in answers} == {("mean", 4, True)}


@pytest.mark.parametrize("ranks", [3, 4])
def test_the_last_round_of_a_tournament_is_measured(ranks: int) -> None:
    measured([measure("rounds", 8, round=3)], "-t", "shm", *shared(ranks))


@pytest.mark.parametrize("transport", ["null", "shm"])
def test_loads(transport: str, checked: Recipe) -> None:
    kinds = ("chase", "stream", "read-ahead")
    commands = [measure("memload", size, access=access) for access in kinds for size in (64, 128, 4096, 1 << 20)]
    answers = measured(commands, "-t", transport, *shared(1), recipe=checked)
    assert [answer["divisor"] for answer in answers] == [1] * 4 + [8] * 4 + [1] * 4
    assert all(answer["bytes_per_rep"] == 8 * answer["divisor"] for answer in answers)


# On shm, by the number of ranks.
CONTRADICTORY = {
    2: [
        (measure("pingpong", 8, source=1, target=1), "source and target must differ, but both are rank 1"),
        (measure("oneway", 8, target=0), "source and target must differ, but both are rank 0"),
        (measure("put", 8, target=2), "target is rank 2, and the last of 2 ranks is 1"),
        (measure("get", 8, source=7), "source is rank 7, and the last of 2 ranks is 1"),
        (measure("ring", 8, distance=2), "the distance on 2 ranks is at most 1, not 2"),
        (measure("putring", 8, distance=9), "the distance on 2 ranks is at most 1, not 9"),
        (measure("put", 9, quiet="seen"), "a multiple of 8 B, not 9 B"),
        (measure("putring", 0, quiet="seen"), "a multiple of 8 B, not 0 B"),
        (measure("putpong", 9), "multiples of 8 B, not 9 B"),
        (measure("putpong", 0), "multiples of 8 B, not 0 B"),
        (measure("memload", 64), "runs on 1 rank, not on 2"),
        (measure("allreduce", 12, algorithm="auto"), "allreduce accepts multiples of 8 B, not 12 B"),
        (measure("allreduce", 0, dtype="float32"), "allreduce accepts multiples of 4 B, not 0 B"),
        (measure("allreduce", 8, algorithm="native"), "shm has no allreduce of its own"),
    ],
    3: [
        (measure("rounds", 8, round=4), "3 ranks need only 3 rounds, so there is no round 4"),
        (measure("pingpong", 8, target=3), "target is rank 3, and the last of 3 ranks is 2"),
    ],
    4: [(measure("rounds", 8, round=4), "4 ranks need only 3 rounds, so there is no round 4")],
}


@pytest.mark.parametrize("ranks", CONTRADICTORY)
def test_contradictory_commands_are_refused_in_a_sentence(ranks: int) -> None:
    commands, culprits = zip(*CONTRADICTORY[ranks], strict=True)
    for message, culprit in zip(all_unsupported(list(commands), "shm", ranks), culprits, strict=True):
        assert culprit in message


@pytest.mark.parametrize(("transport", "other"), [("tcp", ""), ("shm:sync", "; shm does")])
def test_a_transport_without_one_sided_access_says_so_and_names_the_variant_that_has_it(
    transport: str, other: str
) -> None:
    why = f"put needs put and get, which {transport} does not offer{other}"
    assert why_unsupported(measure("put", 8), transport, 2) == why
