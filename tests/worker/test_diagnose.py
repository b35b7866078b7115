"""Which ranks ended a job, from the messages of ranks and launchers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hockney.machine.warned import fix_of
from hockney.worker import diagnose
from hockney.worker.answers import Rank
from hockney.worker.diagnose import (
    gone_ranks,
    is_consequence,
    killed_rank,
    late_ranks,
    limits_met,
    reason,
    remedy,
    silent_ranks,
    summary,
    who,
    with_hosts,
)

LATE = "hockney worker: rank {}: no end after 5 s in pingpong of 8 B"
WAITING = f"{LATE}, waiting for others"
SHM = "hockney worker: rank {}: shm: the segment is too small"


def ranks_on(*hosts: str, pids: Sequence[int] | None = None) -> list[Rank]:
    """A rank on each of these hosts; a process each."""
    return [
        Rank(rank=number, host=host, machine=host, network="", pid=pid, cpu=0, cpus_usable=1, bound="0", strangers=0)
        for number, (host, pid) in enumerate(zip(hosts, pids or range(100, 100 + len(hosts)), strict=True))
    ]


FOUR = ranks_on("n1", "n1", "n2", "n3")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (["mpiexec: starting", SHM.format(1), "mpiexec: aborting"], SHM.format(1)),
        (["mpiexec: no slots", "hockney worker: rank 0: control: rank 1 is gone"],
         "mpiexec: no slots hockney worker: rank 0: control: rank 1 is gone"),
        ([SHM.format(1), LATE.format(0)], SHM.format(1)),
        (["a", "b", "a", "c", "d", "e"], "a b c d e"),
    ],
)  # fmt: skip
def test_a_failed_start_is_what_the_ranks_say_else_the_launcher(said: list[str], expected: str) -> None:
    assert summary("\n".join(said)) == expected


def test_last_words_are_whole_lines_and_the_others_are_counted() -> None:
    assert summary("x" * 5000) == "x" * 5000
    lines = [f"{number:03} {'x' * 95}" for number in range(100)]
    text = summary("\n".join(lines))
    assert text == f"{' '.join(lines[:40])} (60 more lines)"
    assert reason("\n".join(lines[:3])) == " ".join(lines[:3])


def test_what_hydra_says_of_every_program_is_no_cause() -> None:
    said = ["=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", "=   PID 7 RUNNING AT vm", "=   EXIT CODE: 7"]
    assert summary("\n".join(said)) == "=   PID 7 RUNNING AT vm =   EXIT CODE: 7"
    assert summary(said[0]) == said[0]


FATAL = "Abort({}): Fatal error in internal_Init: Other MPI error,{}"
STACK = FATAL.format(4, " error stack:")


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ([FATAL.format(1, " "), FATAL.format(2, " ")], "Fatal error in internal_Init: Other MPI error"),
        ([FATAL.format(each, " Invalid MPIR_CVAR_X value (y)") for each in (1, 2)],
         "Fatal error in internal_Init: Other MPI error, Invalid MPIR_CVAR_X value (y)"),
        ([STACK, "internal_Init(70)....: MPI_Init(argc=0x1, argv=0x2) failed", "MPII_Init_thread(206): ",
          "(unknown)(): Other MPI error", "Invalid character a in MPIR_CVAR_X", STACK],
         "Invalid character a in MPIR_CVAR_X"),
        ([STACK, "internal_Init(5): MPI_Init(argc=0x1) failed", "MPIDI_UCX_init_local(2): no device"],
         "MPIDI_UCX_init_local(2): no device"),
        (["Component: x", "[vm:1] *** An error occurred in MPI_Init", "[vm:1] 1 more process has sent help message"],
         "Component: x"),
        (["[vm:1] *** An error occurred in MPI_Recv", "[vm:1] *** MPI_ERR_TRUNCATE: message truncated",
          "[vm:1] ***    and potentially your MPI job)"],
         "[vm:1] *** An error occurred in MPI_Recv [vm:1] *** MPI_ERR_TRUNCATE: message truncated"),
        (["Component: x", "It looks like MPI_INIT failed;", "relevant to an Open MPI", "developer):", "", "failed"],
         "Component: x failed"),
    ],
)  # fmt: skip
def test_the_line_of_a_library_with_the_cause_is_said_alone(said: list[str], cause: str) -> None:
    assert summary("\n".join(said)) == cause


def test_settings_are_named_where_the_library_names_none() -> None:
    settings = ["MPIR_CVAR_X=y", "OMPI_MCA_btl=z"]
    assert diagnose.doubts("Other MPI error", settings) == (
        "check MPIR_CVAR_X=y and OMPI_MCA_btl=z: a wrong value may be the cause"
    )
    assert diagnose.doubts("Invalid MPIR_CVAR_X value (y)", settings) == ""
    assert diagnose.doubts("Framework: btl", settings) == ""
    assert diagnose.doubts("Other MPI error", []) == ""


@pytest.mark.parametrize(
    ("said", "kinds"),
    [
        ("[vm:12] Read -1, expected 65536, errno = 1", ["cma"]),
        ("copy_iovs(224).........: process_vm_readv failed (errno 1)", ["cma"]),
        ("[vm:12] Read -1, expected 65536, errno = 14", []),
        ("there is not enough space for /dev/shm/vader_segment.vm.0", ["shm"]),
        ("Not enough memory to write. Please check that /dev/shm has more available memory.", ["shm"]),
        ("WARNING: the limit of locked memory (RLIMIT_MEMLOCK) is 64 KiB", ["memlock"]),
        ("[vm:12] opal_ifinit: unable to find network interfaces.", ["ipv4"]),
        ("[proxy:1@n2] HYDU_sock_connect (sock.c:110): unable to get host address for n1", ["ipv4"]),
        ("it was killed by SIGKILL: its cgroup's memory limit of 1 GiB was reached", ["memory"]),
        ("mpiexec: no slots", []),
    ],
)
def test_a_limit_that_a_library_met_has_its_fix(said: str, kinds: list[str]) -> None:
    assert limits_met(said) == kinds
    assert remedy(said) == "".join(fix_of(kind) for kind in kinds)


@pytest.mark.parametrize(("free_bytes", "kinds"), [(1 << 20, ["shm"]), (1 << 30, [])])
def test_a_bus_error_is_of_a_small_shared_memory(
    free_bytes: int, kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnose, "free_shared_memory", lambda: free_bytes)
    assert limits_met("YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Bus error (signal 7)") == kinds
    assert limits_met("[proxy:0@n1] HYDU_sock_write (lib/utils/sock.c:250): write error (Broken pipe)") == kinds


def test_the_cause_comes_before_its_consequences() -> None:
    gone = "hockney worker: rank 0: control: lost rank 1: "
    assert reason("\n".join([gone, SHM.format(1), "KILLED BY SIGNAL"])) == "rank 1: shm: the segment is too small"
    assert reason("\n".join(["mpiexec: bye", gone])) == "rank 0: control: lost rank 1:"
    assert is_consequence("rank 0: control: lost rank 1: ")
    assert not is_consequence("rank 1: shm: the segment is too small")


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ([0, 1, 2, 3], []),
        ([], []),
        ([0, 1, 2], [3]),
        ([2], [0, 1, 3]),
    ],
)
def test_ranks_that_did_not_report_a_limit_do_not_answer(reported: list[int], expected: list[int]) -> None:
    said = "\n".join(LATE.format(number) for number in reported)
    assert [rank.rank for rank in silent_ranks(said, FOUR)] == expected


def test_threads_of_a_process_report_once() -> None:
    threads = ranks_on("n1", "n1", "n2", "n2", pids=[7, 7, 7, 7])
    assert silent_ranks(LATE.format(0), threads) == list(threads[2:])
    assert silent_ranks(f"{LATE.format(1)}\n{LATE.format(2)}", threads) == []


@pytest.mark.parametrize(
    ("waiting", "late", "expected"),
    [
        ([0, 1], [2], [2]),
        ([0], [2, 3], [2, 3]),
        ([], [0, 1], []),
        ([0, 1], [], []),
    ],
)
def test_ranks_that_others_waited_for_are_not_done(waiting: list[int], late: list[int], expected: list[int]) -> None:
    said = [*map(WAITING.format, waiting), *map(LATE.format, late)]
    assert [rank.rank for rank in late_ranks("\n".join(said), FOUR)] == expected


def test_ranks_that_others_lost_and_that_said_nothing_are_gone() -> None:
    lost = "hockney worker: rank 0: control: lost rank {}: Connection reset by peer"
    assert gone_ranks(lost.format(2), FOUR) == "rank 2 on n2 is gone"
    assert gone_ranks(f"{lost.format(2)}\n{lost.format(3)}", FOUR) == "ranks 2 and 3 on n2 and n3 are gone"
    assert gone_ranks(f"{lost.format(2)}\n{SHM.format(2)}", FOUR) == ""
    assert gone_ranks("hockney worker: rank 0: control: rank 1 is gone", FOUR) == "rank 1 on n1 is gone"


@pytest.mark.parametrize(
    ("said", "number", "signal"),
    [
        ("mpirun noticed that process rank 2 with PID 0 on node n2 exited on signal 9 (Killed).", 2, 9),
        ("=   PID 103 RUNNING AT n3\n=   EXIT CODE: 11\n", 3, 11),
        ("=   PID 103 RUNNING AT n3.cluster\n=   EXIT CODE: 9\n", 3, 9),
        ("=   PID 103 RUNNING AT elsewhere\n=   EXIT CODE: 9\n", 3, 9),  # a name that ranks do not have
        ("=   PID 100 RUNNING AT n2\n=   EXIT CODE: 9\n", 2, 9),
        ("=   PID 103 RUNNING AT n3\n=   EXIT CODE: 1\n", None, 0),  # no signal
        ("process rank 7 with PID 1 on node n2 exited on signal 9", None, 0),
        ("mpirun has exited", None, 0),
    ],
)
def test_the_rank_that_a_launcher_saw_killed(said: str, number: int | None, signal: int) -> None:
    """Two hosts may have the same process number, so the host decides."""
    ranks = ranks_on("n1", "n1", "n2", "n3", pids=[100, 101, 100, 103])
    assert killed_rank(said, ranks) == (None if number is None else (ranks[number], signal))


@pytest.mark.parametrize(
    ("count", "hosts", "text"),
    [
        (1, 1, "rank 0"),
        (1, 2, "rank 0 on n0"),
        (2, 1, "ranks 0 and 1"),
        (4, 4, "ranks 0, 1, 2 and 3 on n0, n1, n2 and n3"),
        (5, 5, "ranks 0, 1, 2 and 2 more on n0, n1, n2 and 2 more hosts"),
    ],
)
def test_many_ranks_and_hosts_are_counted(count: int, hosts: int, text: str) -> None:
    ranks = ranks_on(*(f"n{number % hosts}" for number in range(max(count, hosts))))
    assert who(ranks[:count], ranks) == text


def test_a_missing_rank_is_named_with_its_host() -> None:
    said = "1 of 2 ranks did not join in time, including rank {}"
    assert with_hosts(said.format(1), ["n1", "n2"]) == f"{said.format(1)} on n2"
    assert with_hosts(said.format(2), ["n1", "n2"]) == said.format(2)
