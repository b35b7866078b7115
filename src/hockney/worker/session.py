"""A session with a running job: commands go out, answers come back, and every wait has a time limit.

    with WorkerSession(launch(job)) as session:
        session.hello()
        answer = session.measure("pingpong", bytes=8, batch=1000, samples=20, timeout_s=10)

The worker stays up between commands. It ends with the control plane however that ends: at `quit`, at the end of its
standard input, or because it is ended here when a time limit passes or a rank is lost.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from hockney.errors import UsageError
from hockney.units import format_bytes
from hockney.worker import answers, diagnose, leftovers
from hockney.worker.answers import (
    ByeAnswer,
    ErrorAnswer,
    FloorAnswer,
    HelloAnswer,
    ListeningAnswer,
    LostAnswer,
    MeasureAnswer,
)
from hockney.worker.channel import Channel
from hockney.worker.diagnose import Death
from hockney.worker.errors import (
    LaunchFailed,
    PayloadCorrupt,
    ProtocolError,
    WorkerDied,
    WorkerError,
    WorkerRefused,
    WorkerTimedOut,
    how_to_wait_longer,
)
from hockney.worker.launch import JOIN_ADDRESS, START_LIMIT_S, StartCommand

Answer = TypeVar("Answer", HelloAnswer, MeasureAnswer, FloorAnswer, ByeAnswer)

# The worker ends itself when the limit of a command or of its start passes, and says what it waited for; only when it
# can't, this much later, we do.
_GRACE_S = 4.0
_LAST_WORDS_S = 3.0
_DRAIN_S = 0.2
_QUIT_LIMIT_S = 10.0
_TIMED_OUT_EXIT = 14
_SEE_LOG = "standard error has the reason"  # how the worker ends a refusal whose sentence a rank has logged
_WORD = re.compile(r"[!-<>-~]+=[!-~]+")


class WorkerSession:
    """One job from its start to its end. Not for use by several threads at once.

    `start_limit_s` is how long the job may take from its start to its first answer, in s: as the launch tells its
    ranks, who have a moment more to say which of them didn't come.
    """

    def __init__(self, launch: StartCommand, *, start_limit_s: float = START_LIMIT_S) -> None:
        self._launch = launch
        self._start_limit_s = start_limit_s
        self._started_s = 0.0
        self._channel = Channel()
        self._id = 0
        self._ranks_by_pid: dict[int, int] = {}
        self._lost: Death | None = None
        self._files: frozenset[Path] = frozenset()  # ours to remove if the library can't
        self._record: Path | None = None  # of these files, for who comes after us if we can't
        self._heard = 0  # what had been said when the last command was sent
        self._greeted = False
        self._ended = False

    def __enter__(self) -> WorkerSession:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.kill()

    # ---- commands ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the job. Raises LaunchFailed if a process can't be started, or no rank listens for those to join."""
        self._started_s = time.monotonic()
        try:
            self._channel.spawn(self._launch.argv, self._launch.environment)
            if self._launch.needs_token:
                self._join()
        except BaseException:
            self.kill()
            raise

    def hello(self) -> HelloAnswer:
        """Who is there. The first answer of all, so the time that the job takes to start counts here.

        From now on the job ends at once when our end of its standard input is closed, even by `kill -9`. Raises
        LaunchFailed with the launcher's own words, ProtocolError.
        """
        limit_s = self._started_s + self._start_limit_s - time.monotonic() if not self._greeted else _GRACE_S
        answer = self._ask("hello", ["version=1", "eof=abort"], max(0.0, limit_s), "hello", HelloAnswer)
        self._ranks_by_pid = {rank.pid: rank.rank for rank in answer.ranks}
        here = [rank.pid for rank in answer.ranks if rank.host == socket.gethostname()]
        self._files = leftovers.used_by_job(here, self.pids)
        self._record = leftovers.record(self._channel.mark, self._files)
        self._greeted = True
        return answer

    def measure(
        self,
        pattern: str,
        *,
        bytes: int = 0,  # noqa: A002 - the protocol's word
        batch: int = 1,
        samples: int = 10,
        warmup: int = 1,
        timeout_s: int = 60,
        verify: bool = True,
        options: Iterable[tuple[str, str]] = (),
    ) -> MeasureAnswer:
        """Measure one point: `samples` batches of `batch` repetitions each, after `warmup` repetitions.

        The job is ended when `timeout_s` (whole seconds) pass; that shows within 10 s. Raises WorkerRefused (the job
        goes on), PayloadCorrupt (the job goes on), WorkerTimedOut, WorkerDied, ProtocolError.
        """
        words = [
            f"pattern={pattern}",
            *(f"{name}={value}" for name, value in options),
            *(f"bytes={bytes}", f"batch={batch}", f"samples={samples}", f"warmup={warmup}"),
            *(f"timeout_s={timeout_s}", f"verify={'yes' if verify else 'no'}"),
        ]

        answer = self._ask("measure", words, timeout_s, f"{pattern} of {format_bytes(bytes)}", MeasureAnswer)
        if (answer.pattern, answer.bytes, answer.batch, answer.samples) != (pattern, bytes, batch, samples):
            self.kill()
            raise ProtocolError("the worker has measured another point than it was asked for")
        return answer

    def floor(self, *, batch: int = 100, samples: int = 10, timeout_s: int = 10) -> FloorAnswer:
        """The cache-line floor between the CPUs of ranks 0 and 1.

        Raises WorkerRefused with `unsupported` where there is none, WorkerTimedOut, WorkerDied, ProtocolError.
        """
        words = [f"batch={batch}", f"samples={samples}", f"timeout_s={timeout_s}"]
        return self._ask("floor", words, timeout_s, "floor", FloorAnswer)

    def close(self) -> None:
        """Ask the job to quit and wait until it has; what does not end in time is ended. May be called again."""
        if self._ended:
            return
        try:
            if self._greeted:
                self._ask("quit", [], _QUIT_LIMIT_S, "quit", ByeAnswer)
            else:
                self._channel.close_input()  # never after hello: that means an end at once, in mid-farewell too
            left = self._channel.wait_exit(_LAST_WORDS_S) is None
        except WorkerError:
            left = True
        if left or len(self._channel.processes) > 1:
            self.kill()
        else:
            self._forget()
        self._ended = True
        self._channel.close()

    def kill(self) -> bool:
        """End the job now, whatever it is doing, within about 5 s; whether nothing of it is left. May be called again.

        Every process of it on this host is ended, and the files that its library had are removed; ranks on
        other hosts end by themselves when rank 0 is gone.
        """
        self._ended = True
        if not self._greeted:  # ranks that have just begun may have made some, too
            self._files |= leftovers.used_by(self._channel.members())
        gone = self._channel.end()
        if gone:
            leftovers.remove(self._files)
            self._forget()
        return gone

    def _forget(self) -> None:
        if self._record is not None:
            with contextlib.suppress(OSError):
                self._record.unlink(missing_ok=True)

    # ---- what libraries say -----------------------------------------------------------------------------------------

    @property
    def noise(self) -> tuple[str, ...]:
        """The last lines on standard output that are no answers: what a library prints there."""
        return tuple(line.decode(errors="replace") for line in self._channel.noise)

    @property
    def said(self) -> str:
        """The last 64 KiB of what the launcher and the ranks have said on standard error."""
        return self._channel.said()

    @property
    def pids(self) -> tuple[int, ...]:
        """The launcher's processes on this host: the first is the one that answers."""
        return tuple(process.pid for process in self._channel.processes)

    # ---- asking -----------------------------------------------------------------------------------------------------

    def _ask(self, verb: str, words: list[str], limit_s: float, doing: str, kind: type[Answer]) -> Answer:
        """Send a command and wait for its answer of that kind. Another one ends the job."""
        if self._ended:
            raise WorkerDied(None, None, None, "its session is over")
        for word in words:
            if not _WORD.fullmatch(word):
                raise UsageError(f"'{word}' cannot stand in a command to a worker")
        self._id += 1
        self._heard = self._channel.said_so_far()
        line = " ".join([verb, *words, f"id={self._id}"])
        deadline_s = time.monotonic() + limit_s + _GRACE_S
        try:
            self._channel.write(line.encode() + b"\n", deadline_s)  # if nobody reads, the end below tells why
            return self._answer(kind, deadline_s, doing, limit_s)
        except TimeoutError:
            raise self._timed_out(doing, limit_s) from None
        except ProtocolError:
            self.kill()
            raise

    def _answer(self, kind: type[Answer], deadline_s: float, doing: str, limit_s: float) -> Answer:
        while True:
            line = self._channel.read_line(deadline_s)
            if line is None:
                raise self._died(doing, limit_s, deadline_s)
            answer = answers.parse(line)
            if isinstance(answer, LostAnswer):
                self._lost = Death(answer.rank, answer.signal or None, answer.exit or None)
            elif isinstance(answer, ErrorAnswer) and answer.id in (0, self._id):  # 0: it did not read the number
                raise self._refusal(answer)
            elif not isinstance(answer, kind) or answer.id != self._id:
                raise ProtocolError(f"the worker answers '{answer.kind}' number {answer.id} to command {self._id}")
            else:
                return answer

    def _refusal(self, answer: ErrorAnswer) -> WorkerError:
        if answer.message.endswith(_SEE_LOG):
            self._channel.hear(_DRAIN_S)  # what was said comes by another pipe, maybe later
            return WorkerRefused(answer.code, self._reason() or answer.message)
        if answer.code == "corrupt":
            return PayloadCorrupt(answer.message, answer.rank, answer.sender, answer.bytes, answer.offset)
        return WorkerRefused(answer.code, answer.message)

    def _reason(self) -> str:
        """What was said since the last command, cut to what tells the cause."""
        return diagnose.reason(self._channel.said(self._heard))

    # ---- when it ends -----------------------------------------------------------------------------------------------

    def _timed_out(self, doing: str, limit_s: float) -> WorkerError:
        self.kill()
        if not self._greeted:
            remedy = how_to_wait_longer(self._start_limit_s)
            return self._not_started(f"no answer within {self._start_limit_s:g} s ({remedy})", timed_out=True)
        return WorkerTimedOut(doing, limit_s, self._reason())

    def _died(self, doing: str, limit_s: float, deadline_s: float) -> WorkerError:
        """The end of the job's output: wait a moment for its last words, then say what is known.

        Not past the deadline: it and the ending of what is left are what shows within 10 s of a time limit.
        """
        join = self._channel.failed_join()  # then rank 0 is still there, and waits in vain
        left_s = max(_DRAIN_S, deadline_s - time.monotonic())
        exit_code = self._channel.wait_exit(min(_LAST_WORDS_S, left_s) if join is None else _DRAIN_S)
        self.kill()
        if join is not None:
            exit_code = join[1]
        if not self._greeted:
            how = "" if exit_code is None else f" with exit code {exit_code}"
            waited = time.monotonic() - self._started_s >= self._start_limit_s
            late = waited and diagnose.is_a_rank_missing(self.said)
            remedy = f" ({how_to_wait_longer(self._start_limit_s)})" if late else ""
            return self._not_started(f"it ended{how}{remedy}")
        death = self._death(join, exit_code)
        # A launcher that ends the others after a rank's time was up may name one of those first; the kernel hangs up on
        # ranks that stand still when their launcher goes.
        ended_by_launcher = death is not self._lost and death.signal in (signal.SIGKILL, signal.SIGHUP)
        late = ended_by_launcher and "no end after" in self._channel.said(self._heard)
        if late or _TIMED_OUT_EXIT in (exit_code, death.status):
            return WorkerTimedOut(doing, limit_s, self._reason())
        return WorkerDied(death.rank, death.signal, death.status, self._reason() or death.note)

    def _death(self, join: tuple[int, int] | None, exit_code: int | None) -> Death:
        """Who ended first and how: by the worker's own account, by its launcher's, or by the exit code alone."""
        noise = "\n".join(self.noise)  # Hydra speaks on standard output
        death = self._lost or diagnose.find_cause(f"{self.said}\n{noise}", self._ranks_by_pid)
        if death != Death() or exit_code is None:
            return death
        rank = join[0] if join else None
        return Death(rank, signal=-exit_code) if exit_code < 0 else Death(rank, status=exit_code)

    def _not_started(self, reason: str, *, timed_out: bool = False) -> LaunchFailed:
        port = diagnose.taken_port(self.said, os.environ)
        if port:
            return LaunchFailed(self._launch.launcher, port, "")
        said = diagnose.summary(self.said) or diagnose.summary("\n".join(self.noise))
        return LaunchFailed(self._launch.launcher, reason, said, timed_out=timed_out)

    # ---- a job of several hosts -------------------------------------------------------------------------------------

    def _join(self) -> None:
        """Start the other ranks as soon as rank 0 tells where it listens; all know one fresh secret."""
        deadline_s = self._started_s + self._start_limit_s
        token = f"token {secrets.token_hex(16)}\n".encode()
        try:
            self._channel.write(token, deadline_s)
            line = self._channel.read_line(deadline_s)
            if line is None:
                raise self._died("start", self._start_limit_s, deadline_s)
            answer = answers.parse(line)
            if not isinstance(answer, ListeningAnswer):
                raise ProtocolError(f"the worker answers '{answer.kind}' where it should say where it listens")
            address = f"{answer.host}:{answer.port}"
            for argv in self._launch.joins:
                words = [word.replace(JOIN_ADDRESS, address) for word in argv]
                self._channel.spawn(words, self._launch.environment)
                self._channel.write(token, deadline_s, self._channel.processes[-1])
        except TimeoutError:
            raise self._timed_out("start", self._start_limit_s) from None
