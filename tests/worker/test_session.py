"""Sessions with real workers under every launcher found here, and with faults really provoked."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tests.matrix import matrix
from tests.shared import Fakes, finished
from tests.worker.extra import EXTRA

from hockney.errors import UsageError
from hockney.units import START_LIMIT_S
from hockney.worker.build import Recipe, build_worker
from hockney.worker.errors import LaunchFailed, ProtocolError, WorkerDied, WorkerRefused, WorkerTimedOut
from hockney.worker.hosts import parse_hosts
from hockney.worker.launch import Job, StartCommand, launch
from hockney.worker.libraries import MPI, Library
from hockney.worker.placement import Placement
from hockney.worker.processes import MARK, find_members, shared_memory_of
from hockney.worker.session import WorkerSession

HERE = Path(__file__).parent
NATIVE = Recipe()
MPIS = MPI()[0]
# Of two versions of one library the first is in every scripts/test.
SHORT_MPIS = list({mpi.kind: mpi for mpi in reversed(MPIS)}.values())
EVERY_MPI = pytest.mark.parametrize("mpi", matrix(MPIS, short=SHORT_MPIS), ids=lambda mpi: mpi.id)
# Native ranks and those of every MPI; without any MPI the native ones are still tested.
EVERY_JOB = pytest.mark.parametrize(
    "mpi", matrix([None, *MPIS], short=[None, *SHORT_MPIS]), ids=lambda mpi: mpi.id if mpi else "native"
)
CPUS = tuple(sorted(os.sched_getaffinity(0)))
ENDLESS = 10**12


def job(
    library: Library | None = None,
    transport: str = "",
    ranks: int = 2,
    recipe: Recipe | None = None,
    *,
    shares: bool = False,
    environment: Mapping[str, str] = os.environ,
) -> StartCommand:
    """`shares`: ranks share CPUs, so that no point takes its machine state, which lasts far longer."""
    executable = build_worker(recipe or (library.recipe if library else NATIVE))
    name, oversubscribed = transport or ("mpi" if library else "shm"), shares or ranks > len(CPUS)
    return launch(
        Job(executable, name, ranks, Placement(cpus=CPUS), oversubscribed=oversubscribed), library, environment
    )


shared_job = functools.partial(job, shares=True)


@contextmanager
def opened(command: StartCommand) -> Iterator[WorkerSession]:
    """A session that has said hello, and ends with the block unless that raises."""
    with WorkerSession(command) as session:
        session.hello()
        yield session
        session.close()


def faulty(fault: str, ranks: int = 2) -> StartCommand:
    plain = job(transport="fault", ranks=ranks, recipe=EXTRA)
    return StartCommand(plain.launcher, plain.argv, {"HOCKNEY_FAULT": fault})


def mark_of(session: WorkerSession) -> str:
    environment: dict[str, str] = {}
    while MARK not in environment:  # for a moment after its start a process has none
        environment = psutil.Process(session.channel.processes[0].pid).environ()
    return environment[MARK]


@contextmanager
def nothing_stays(session: WorkerSession) -> Iterator[None]:
    """After the block no process of the session is left, under any parent."""
    mark = mark_of(session)
    pids = [process.pid for process in session.channel.processes]
    yield
    assert find_members([], mark) == []
    assert not any(psutil.pid_exists(pid) for pid in pids)


@contextmanager
def within_10_s_of(limit_s: float) -> Iterator[None]:
    """A promised bound, not a speed: a hang costs no more than 10 s beyond its limit.

    Time in which the machine was busy with others is excluded: a short sleep then ends equally late.
    """
    is_over = threading.Event()
    stalls_s: list[float] = []

    def watch() -> None:
        begin_s = time.monotonic()
        while not is_over.wait(0.05):
            begin_s, before_s = time.monotonic(), begin_s
            stalls_s.append(max(0.0, begin_s - before_s - 0.1))

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin_s = time.monotonic()
    yield
    took_s = time.monotonic() - begin_s
    is_over.set()
    watcher.join()
    assert took_s - sum(stalls_s) <= limit_s + 10


@contextmanager
def soon(action: Callable[[], object]) -> Iterator[None]:
    """Does something while the block waits for an answer that does not come by itself."""

    def act() -> None:
        with contextlib.suppress(ProcessLookupError):  # a stall of the machine: the wait is over already
            action()

    timer = threading.Timer(0.3, act)
    timer.start()
    yield
    timer.join()


# ---- answers -------------------------------------------------------------------------------------------------------


@EVERY_JOB
def test_a_session_from_hello_to_quit(mpi: Library | None) -> None:
    with WorkerSession(job(mpi)) as session, nothing_stays(session):
        hello = session.hello()
        assert [rank.rank for rank in hello.ranks] == [0, 1]
        if len(CPUS) > 1:
            assert [rank.cpu for rank in hello.ranks] == list(CPUS[:2])
            assert {rank.cpus_usable for rank in hello.ranks} == {1}
        if mpi:
            assert (hello.family, hello.transport, hello.library.partition(" (")[0]) == ("mpi", "mpi", mpi.name)
        answer = session.measure("pingpong", bytes=1024, batch=10, samples=7, warmup=3, timeout_s=30)
        assert (answer.bytes, answer.batch, answer.warmup, answer.divisor) == (1024, 10, 3, 2)
        assert [len(series) for series in answer.elapsed_ns] == [7, 7]
        assert answer.verified
        if hello.floor_why is None:
            assert (answer.floor_kind, len(answer.floor_ns or ())) == ("line", 2)
        session.close()
    assert not session.channel.noise


@EVERY_JOB
def test_where_memory_runs_out_the_kernel_ends_a_rank_first(mpi: Library | None) -> None:
    own = Path("/proc/self/oom_score_adj")
    before = own.read_text()
    with WorkerSession(job(mpi)) as session:
        assert {Path(f"/proc/{rank.pid}/oom_score_adj").read_text() for rank in session.hello().ranks} == {"1000\n"}
    assert own.read_text() == before


@EVERY_MPI
def test_ranks_with_one_local_number_are_pinned_by_rank(mpi: Library, tmp_path: Path, fake: Fakes) -> None:
    """A batch shell of Slurm passes its SLURM_LOCALID to all ranks that an mpiexec starts in it."""
    if len(CPUS) < 2:
        pytest.skip("ranks can be pinned apart on two CPUs or more only")
    worker = tmp_path / "worker"
    others = "OMPI_COMM_WORLD_LOCAL_RANK MPI_LOCALRANKID MV2_COMM_WORLD_LOCAL_RANK PALS_LOCAL_RANKID"
    fake(worker, f"unset {others}", f'SLURM_LOCALID=0 exec {build_worker(mpi.recipe)} "$@"')
    with WorkerSession(launch(Job(worker, "mpi", 2, Placement(cpus=CPUS)), mpi)) as session:
        assert [rank.bound for rank in session.hello().ranks] == list(map(str, CPUS[:2]))


@EVERY_JOB
def test_more_ranks_than_cpus(mpi: Library | None) -> None:
    with WorkerSession(job(mpi, ranks=2 * len(CPUS))) as session, nothing_stays(session):
        assert len(session.hello().ranks) == 2 * len(CPUS)
        assert session.measure("alltoall", bytes=64, samples=3, timeout_s=60).verified
        session.close()


@pytest.mark.parametrize(
    ("chosen", "path"),
    [
        ({}, "ob1:vader"),  # the copy by the kernel may be forbidden
        ({"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}, "ob1:vader tcp"),
        ({"OMPI_MCA_btl": "self,tcp"}, "ob1:tcp"),
        ({"OMPI_MCA_btl_vader_single_copy_mechanism": "emulated", "OMPI_MCA_btl": "self,vader"}, "ob1:vader:emulated"),
    ],
    ids=["by itself", "two copies", "tcp", "emulated"],
)
def test_an_open_mpi_names_its_device(chosen: dict[str, str], path: str) -> None:
    mpis = [mpi for mpi in MPIS if mpi.id.startswith("mpi@openmpi-4.")]
    if not mpis:
        pytest.skip("Open MPI 4 is not here")
    plain = job(mpis[0])
    with WorkerSession(StartCommand(plain.launcher, plain.argv, {**plain.environment, **chosen})) as session:
        library = session.hello().library.removeprefix(mpis[0].name)
    assert library.startswith(f" ({path}") if not chosen else library == f" ({path})"


@EVERY_JOB
@pytest.mark.parametrize("ranks", matrix([1, 2], short=[2]))
@pytest.mark.parametrize("name", matrix(["S", "W"], short=["S"]))
def test_ft_is_verified(mpi: Library | None, ranks: int, name: str) -> None:
    with WorkerSession(job(mpi, ranks=ranks)) as session:
        session.hello()
        answer = session.measure("ft", samples=1, warmup=0, timeout_s=60, options=[("class", name)])
        assert answer.verified
        assert answer.algorithm == ("native" if mpi else "flat")


# ---- refusals ------------------------------------------------------------------------------------------------------


def test_a_refusal_has_its_reason_and_leaves_the_session_usable() -> None:
    with WorkerSession(job(ranks=3)) as session:
        session.hello()
        with pytest.raises(WorkerRefused, match="unknown pattern: 'pingpog'") as refusal:
            session.measure("pingpog")
        assert not refusal.value.unsupported
        with pytest.raises(WorkerRefused, match="pairs") as refusal:
            session.measure("pairs", bytes=8)
        assert refusal.value.unsupported
        with pytest.raises(WorkerRefused, match="ft: class S, 64 x 64 x 64, cannot be divided among 3") as refusal:
            session.measure("ft")
        assert refusal.value.unsupported
        assert session.measure("pingpong", bytes=8).verified


@EVERY_MPI
def test_a_message_too_long_for_mpi_is_unsupported(mpi: Library) -> None:
    with WorkerSession(job(mpi)) as session:
        session.hello()
        with pytest.raises(WorkerRefused) as refusal:
            session.measure("pingpong", bytes=1 << 31)
        assert refusal.value.unsupported
        assert session.measure("pingpong", bytes=8).verified


@pytest.mark.parametrize("word", ["ping pong", "x\nquit", "", "ümlaut"])
def test_a_word_that_would_break_the_line_is_not_sent(word: str) -> None:
    with WorkerSession(job()) as session:
        session.hello()
        with pytest.raises(UsageError, match="cannot be a word of a command"):
            session.measure(word)
        assert session.measure("pingpong").verified


# ---- faults --------------------------------------------------------------------------------------------------------


def test_a_corrupt_payload_is_named_and_the_session_continues() -> None:
    with WorkerSession(faulty("corrupt 1 17")) as session:
        session.hello()
        with pytest.raises(WorkerRefused, match=r"rank 1.*64 B.*rank 0.*byte 17") as fault:
            session.measure("pingpong", bytes=64)
        assert fault.value.code == "corrupt"
        assert session.measure("pingpong", bytes=8).verified


def test_other_lines_on_standard_output_are_noise() -> None:
    with WorkerSession(faulty("rubbish 0 64")) as session:
        session.hello()
        assert session.measure("pingpong", bytes=64, samples=200).samples == 200
        assert any("library: 3 warnings suppressed" in line for line in session.channel.noise)
        assert len(session.channel.noise) <= 100


@EVERY_JOB
@pytest.mark.parametrize("victim", matrix([0, 1], short=[1]))
def test_a_killed_rank_ends_the_job_and_is_named(mpi: Library | None, victim: int) -> None:
    with WorkerSession(job(mpi)) as session, nothing_stays(session):
        pid = session.hello().ranks[victim].pid
        with soon(lambda: os.kill(pid, signal.SIGKILL)), pytest.raises(WorkerDied) as death:
            session.measure("pingpong", batch=ENDLESS, timeout_s=60)
        assert str(death.value).startswith(f"rank {victim} was killed by SIGKILL")


@EVERY_JOB
@pytest.mark.parametrize("victim", matrix([0, 1], short=[1]))
def test_a_stopped_rank_ends_at_the_time_limit(mpi: Library | None, victim: int) -> None:
    with WorkerSession(job(mpi)) as session, nothing_stays(session):
        pid = session.hello().ranks[victim].pid
        late = pytest.raises(WorkerTimedOut, match=f"^rank {victim} does not answer: no end after 1 s in pingpong")
        with within_10_s_of(1), soon(lambda: os.kill(pid, signal.SIGSTOP)), late:
            session.measure("pingpong", batch=ENDLESS, timeout_s=1)


def test_a_credit_that_never_comes_is_named() -> None:
    """The builder is stopped: its readouts wait for it to ask."""
    options = [("senders", "2"), ("schedule", "credits")]
    with WorkerSession(job(transport="unix", ranks=4)) as session, nothing_stays(session):
        pid = session.hello().ranks[3].pid
        said = r"^rank 3 does not answer: no end after 1 s in eventbuilder of 8 B; "
        late = pytest.raises(WorkerTimedOut, match=said + r"rank 1 waits for the credit of event \d+ from rank 3$")
        with within_10_s_of(1), soon(lambda: os.kill(pid, signal.SIGSTOP)), late:
            session.measure("eventbuilder", bytes=8, batch=ENDLESS, timeout_s=1, options=options)


def test_ranks_that_others_wait_for_at_the_time_limit_are_named() -> None:
    """The third rank has no part in a pingpong."""
    with WorkerSession(job(ranks=3)) as session, nothing_stays(session):
        session.hello()
        with pytest.raises(WorkerTimedOut, match=r"^no end after 1 s in pingpong of 0 B: ranks 0 and 1 are not done$"):
            session.measure("pingpong", batch=ENDLESS, samples=1, timeout_s=1)


@EVERY_JOB
def test_a_stopped_launcher_ends_at_the_time_limit(mpi: Library | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hockney.worker.session.GRACE_S", 0.5)  # for a rank that ends the point itself
    with WorkerSession(job(mpi)) as session, nothing_stays(session):
        session.hello()
        os.kill(session.channel.processes[0].pid, signal.SIGSTOP)
        with within_10_s_of(1), pytest.raises(WorkerTimedOut):
            session.measure("pingpong", batch=ENDLESS, timeout_s=1)


@EVERY_JOB
def test_a_killed_launcher_takes_its_ranks_along(mpi: Library | None) -> None:
    with WorkerSession(job(mpi)) as session, nothing_stays(session):
        session.hello()
        launcher = session.channel.processes[0].pid
        killed = pytest.raises(WorkerDied, match="killed by SIGKILL")
        with soon(lambda: os.kill(launcher, signal.SIGKILL)), killed:
            session.measure("pingpong", batch=ENDLESS, timeout_s=60)


@EVERY_JOB
@pytest.mark.parametrize("busy", matrix([False, True], short=[True]), ids=["idle", "measuring"])
def test_no_rank_outlives_a_killed_control_plane(mpi: Library | None, busy: bool, tmp_path: Path) -> None:
    started = job(mpi)
    script = tmp_path / "control_plane.py"
    script.write_text(
        f"""
import psutil
from hockney.worker.launch import StartCommand
from hockney.worker.session import WorkerSession
with WorkerSession(StartCommand("worker", {started.argv!r}, {dict(started.environment)!r})) as session:
    session.hello()
    print(psutil.Process(session.channel.processes[0].pid).environ()["{MARK}"], flush=True)
    if {busy}:
        session.measure("pingpong", batch={ENDLESS}, timeout_s=600)
    input()
"""
    )
    plane = subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    with plane:
        assert plane.stdout is not None
        mark = plane.stdout.readline().decode().strip()
        members = find_members([], mark)
        assert len(members) >= 2
        memory = shared_memory_of(process.pid for process in members)
        plane.kill()
    _, left = psutil.wait_procs(members, timeout=60)
    try:
        assert [process for process in left if process.status() != psutil.STATUS_ZOMBIE] == []
    finally:
        for process in left:
            process.kill()
    assert [path for path in memory if path.exists()] == []


@EVERY_JOB
@pytest.mark.parametrize("whole", [False, True], ids=["ranks", "all"])
def test_a_hung_job_is_ended_whole(mpi: Library | None, whole: bool) -> None:
    """MPICH's launcher does not end by SIGTERM while its ranks hang."""
    with WorkerSession(job(mpi)) as session, nothing_stays(session):
        pids = [rank.pid for rank in session.hello().ranks]
        memory = shared_memory_of(pids)
        (launcher,) = session.channel.processes
        others = psutil.Process(launcher.pid).children(recursive=True) if whole else []
        for pid in {*pids, *(process.pid for process in others)}:
            os.kill(pid, signal.SIGSTOP)
        assert session.kill()
        assert launcher.poll() is not None
        assert [path for path in memory if path.exists()] == []


def test_a_session_that_never_said_hello_closes_and_may_be_ended_again() -> None:
    with WorkerSession(job()) as session, nothing_stays(session):
        session.close()
    assert session.kill()
    session.close()
    with pytest.raises(WorkerDied, match="session is over"):
        session.hello()


# ---- ranks that join over TCP ---------------------------------------------------------------------------------------


@pytest.fixture
def agent(tmp_path: Path, fake: Fakes) -> Path:
    """Takes the place of ssh: runs the command here, but not for the hosts `nowhere`, `walled` and `silent`."""
    return fake(
        tmp_path / "agent",
        "host=$1",
        "shift",
        'if [ "$host" = walled ]; then echo "hockney worker: rank 1: rendezvous: no way" >&2; exit 15; fi',
        'if [ "$host" = nowhere ]; then echo "agent: connection refused" >&2; exit 255; fi',
        'if [ "$host" = silent ]; then exec sleep 600; fi',
        'exec sh -c "$*"',
    )


def remote_job(agent: Path, hosts: tuple[str, ...], ranks: int, start_limit_s: int = START_LIMIT_S) -> StartCommand:
    spread = Job(
        build_worker(),
        "tcp",
        ranks,
        Placement(hosts=parse_hosts(",".join(hosts))),
        oversubscribed=True,
        start_limit_s=start_limit_s,
    )
    return launch(spread, environment={"HOCKNEY_RSH": str(agent)})


def test_native_ranks_on_several_hosts(agent: Path) -> None:
    with WorkerSession(remote_job(agent, ("127.0.0.1", "localhost"), 3)) as session, nothing_stays(session):
        hello = session.hello()
        assert [rank.rank for rank in hello.ranks] == [0, 1, 2]
        assert session.measure("alltoall", bytes=1000, samples=3).verified
        # The secret goes through standard input: a command line or an environment can be read by others.
        shown = [*(psutil.Process(rank.pid).cmdline() for rank in hello.ranks)]
        assert not any("token" in word for line in shown for word in line)
        session.close()


def test_an_unreachable_host_is_reported_immediately(agent: Path) -> None:
    session = WorkerSession(remote_job(agent, ("127.0.0.1", "nowhere"), 2))
    with (
        pytest.raises(
            LaunchFailed, match="agent said: connection refused; each host must be reachable by `agent HOST`"
        ),
        session,
    ):
        session.hello()
    session = WorkerSession(remote_job(agent, ("nowhere", "127.0.0.1"), 2))
    with pytest.raises(
        LaunchFailed, match="agent said: connection refused; each host must be reachable by `agent HOST`"
    ):
        session.start()


def test_the_remote_shell_is_no_remedy_where_it_has_started_a_rank(agent: Path) -> None:
    session = WorkerSession(remote_job(agent, ("127.0.0.1", "walled"), 2))
    with pytest.raises(LaunchFailed, match="rank 1: rendezvous: no way") as caught, session:
        session.hello()
    assert "must be reachable" not in str(caught.value)


@pytest.mark.parametrize(
    "address", ['"127.0.0.1;touch made","port":1', '"$(touch made)","port":1', '"::1","port":65536']
)
def test_output_of_rank_0_is_no_command_for_other_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, fake: Fakes
) -> None:
    """Their remote shells read its address as part of a command line."""
    monkeypatch.chdir(tmp_path)
    agent = tmp_path / "agent"
    answer = f'@hk {{"v":1,"id":0,"kind":"listening","host":{address}}}'
    fake(agent, f"if [ $1 = first ]; then echo '{answer}'; exec sleep 60; fi", "shift", 'exec sh -c "$*"')
    with pytest.raises(ProtocolError, match="a wrong answer of the worker: listening"):
        WorkerSession(remote_job(agent, ("first", "second"), 2)).start()
    assert not (tmp_path / "made").exists()


def test_a_rank_that_never_comes_is_named(agent: Path) -> None:
    session = WorkerSession(remote_job(agent, ("127.0.0.1", "silent"), 2, start_limit_s=2), start_limit_s=2)
    with pytest.raises(LaunchFailed, match="1 of 1 ranks did not join in time, including rank 1") as error, session:
        session.hello()
    assert "no answer within" not in str(error.value)
    assert "(to wait longer, measure again with --limit above 2 s)" in str(error.value)


def test_a_long_start_ends_once_a_host_is_missed(agent: Path) -> None:
    begun_s = time.monotonic()
    session = WorkerSession(remote_job(agent, ("127.0.0.1", "silent"), 2), misses_host=lambda: True)
    with pytest.raises(LaunchFailed), session:
        session.hello()
    assert time.monotonic() - begun_s < START_LIMIT_S


def test_a_rank_killed_on_another_host_ends_the_job(agent: Path) -> None:
    with WorkerSession(remote_job(agent, ("127.0.0.1", "localhost"), 2)) as session, nothing_stays(session):
        pid = session.hello().ranks[1].pid
        with soon(lambda: os.kill(pid, signal.SIGKILL)), pytest.raises(WorkerDied):
            session.measure("pingpong", batch=ENDLESS, timeout_s=60)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux reports the end of a process by a descriptor")
def test_an_ended_launcher_is_not_waited_for_though_its_pipes_stay_open() -> None:
    left_behind = ("sh", "-c", "sleep 60 & read hello; echo no such host >&2; exit 7")
    session = WorkerSession(StartCommand("mpiexec", left_behind), start_limit_s=30)
    session.start()
    with (
        nothing_stays(session),
        pytest.raises(LaunchFailed, match="it ended with exit code 7; mpiexec said: no such host"),
    ):
        session.hello()


@pytest.mark.parametrize("mpi", [mpi for mpi in MPIS if mpi.kind == "mpich"], ids=lambda mpi: mpi.name)
def test_an_mpich_names_its_device(mpi: Library) -> None:
    said = finished([mpi.program.with_name("mpichversion")], check=True).stdout
    device = re.search(r"^MPICH Device:\s*(.+?)\s*$", said, re.MULTILINE)
    assert device is not None
    with WorkerSession(job(mpi)) as session:
        assert session.hello().library == f"{mpi.name} ({device[1]})"


# ---- the wrong mpiexec ---------------------------------------------------------------------------------------------


@EVERY_MPI
def test_the_mpiexec_of_another_library_is_recognised(mpi: Library) -> None:
    strangers = [other for other in MPIS if other.kind != mpi.kind]
    if not strangers:
        pytest.skip("there is only one kind of MPI here")
    right, wrong = job(mpi), job(strangers[0])
    place = wrong.argv.index(str(build_worker(strangers[0].recipe)))
    argv = (*wrong.argv[:place], str(build_worker(mpi.recipe)), *wrong.argv[place + 1 :])
    session = WorkerSession(StartCommand(wrong.launcher, argv, {**wrong.environment, **right.environment}))
    # Some libraries notice by themselves; where each rank thinks it is alone, the worker does.
    with pytest.raises(LaunchFailed, match=r"the library that the worker was built with|_Init"), session:
        session.hello()


@pytest.mark.parametrize("library", MPIS, ids=lambda library: library.id)
def test_the_last_words_of_a_library_are_kept_whole(library: Library, tmp_path: Path) -> None:
    """Whatever its launcher adds: backtraces, boxes, boilerplate."""
    preloaded = tmp_path / "dying.so"
    source = Path(__file__).with_name("dying.c")
    subprocess.run([*library.recipe.compiler, "-shared", "-fPIC", "-o", str(preloaded), str(source)], check=True)
    command = job(library)
    place = command.argv.index(str(build_worker(library.recipe)))
    dying = (*command.argv[:place], "env", f"LD_PRELOAD={preloaded}", *command.argv[place:])
    with WorkerSession(replace(command, argv=dying)) as session:
        session.hello()
        with pytest.raises(WorkerDied) as died:
            session.measure("pingpong", bytes=8, batch=100, samples=5, timeout_s=60)
    assert str(died.value) == (
        "rank 1 was killed by SIGABRT: fabric: fatal error in the progress engine queue pair 17 is in the state error "
        "vendor syndrome 0x81: remote access Assertion failed at qp.c:99: qp->ok"
    )


def test_a_rank_without_memory_names_the_limit_of_its_user() -> None:
    command = launch(Job(build_worker(), "tcp", 2))
    limited = ("sh", "-c", 'ulimit -v 400000; exec "$@"', "sh", *command.argv)
    with WorkerSession(replace(command, argv=limited)) as session:
        session.hello()
        with pytest.raises(WorkerRefused, match=r"a process may have 400000 KiB \(ulimit -v\)$") as refused:
            session.measure("pingpong", bytes=1 << 29, timeout_s=60)
        assert refused.value.code == "memory"
