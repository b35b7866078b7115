"""A session with a running job: commands go out, answers come back, and every wait has a time limit.

    with WorkerSession(launch(job)) as session:
        session.hello()
        answer = session.measure("pingpong", bytes=8, batch=1000, samples=20, timeout_s=10)

The worker stays up between commands. It ends at `quit`, at the end of its standard input, or when a time limit passes
or a rank is lost. So it never outlives the control plane.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
import secrets
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from hockney.errors import UsageError
from hockney.machine.limits import count_oom_kills, why_killed
from hockney.units import START_LIMIT_S, format_bytes
from hockney.worker import answers, diagnose, processes
from hockney.worker.answers import ErrorAnswer, HelloAnswer, LostAnswer, MeasureAnswer, Rank
from hockney.worker.channel import FILES_OF_PROCESS, Channel
from hockney.worker.errors import (
    LaunchFailed,
    ProtocolError,
    WorkerDied,
    WorkerError,
    WorkerRefused,
    WorkerTimedOut,
    how_to_wait_longer,
)
from hockney.worker.launch import JOIN_ADDRESS, StartCommand
from hockney.worker.programs import how_it_ended
from hockney.worker.starters import LOGINS_MAX, PAUSE_S, TRIES, failed_by_chance

Answer = TypeVar("Answer", bound=answers.Answer)

# At the limit of a command or of its start the worker ends itself, and reports its wait. This much later the session
# ends it.
GRACE_S = 4.0
_REPORTS_S = 1.5  # after the limit, and all ranks that live have reported it
_LONG_START_S = 2.0
_LAST_WORDS_S = 3.0
_DRAIN_S = 0.2
_POLL_S = 0.01


class WorkerSession:
    """One job from its start to its end. Not for use by several threads at once.

    `start_limit_s` is the limit from the start of the job to its first answer, in s. Its ranks have the same limit, and
    a moment more to report missing ranks. `has_option`: the user sets that limit with --limit. `misses_host` is called
    once the limit of a command has passed, and again and again while a start takes long: True ends the start.
    """

    def __init__(
        self,
        launch: StartCommand,
        *,
        start_limit_s: float = START_LIMIT_S,
        has_option: bool = True,
        misses_host: Callable[[], bool] = lambda: False,
    ) -> None:
        self._launch = launch
        self._misses_host = misses_host
        self._start_limit_s = start_limit_s
        self._has_option = has_option
        self._started_s = 0.0
        self.channel = Channel()
        self._id = 0
        self._lost: LostAnswer | None = None
        self._ranks: tuple[Rank, ...] = ()
        self._files: frozenset[Path] = frozenset()  # ours to remove if the library can't
        self._heard_bytes = 0  # position in the output when the last command was sent
        self._greeted = False
        self._ended = False
        self._token = ""
        self._joins: list[list[str]] = []  # the command lines of the other hosts
        self._tries: Counter[int] = Counter()  # of these, how often each has failed
        self._tried_bytes = 0  # position in the output when they were tried again last
        self._tried_s = 0.0  # when that was
        self._oom_kills = 0  # before this job

    def __enter__(self) -> WorkerSession:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.kill()

    # ---- commands ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the job. Raises LaunchFailed if a process can't be started, or no rank listens for those to join."""
        self._started_s = time.monotonic()
        self._oom_kills = count_oom_kills()
        left = TRIES
        while True:
            try:
                return self._start_once()
            except LaunchFailed as failure:
                left -= 1
                took_s = time.monotonic() - self._tried_s
                exit_code = next((process.poll() for process in self.channel.processes), None)
                if not (left and failed_by_chance(exit_code, str(failure), took_s)):
                    raise
            time.sleep(PAUSE_S)
            self.channel, self._ended = Channel(), False

    def _start_once(self) -> None:
        self._tried_s = time.monotonic()
        with contextlib.ExitStack() as undo:
            undo.callback(self.kill)
            self.channel.spawn(self._launch.argv, self._launch.environment)
            if self._launch.needs_token:
                self._join()
            undo.pop_all()

    def hello(self) -> HelloAnswer:
        """The ranks of the job. This is its first answer, so the limit of its start applies.

        From now on the job ends as soon as its standard input is closed, also by `kill -9` of this program. Raises
        LaunchFailed with the launcher's message, ProtocolError.
        """
        limit_s = self._started_s + self._start_limit_s - time.monotonic() if not self._greeted else GRACE_S
        answer = self._begin("hello", ["version=1", "eof=abort"], max(0.0, limit_s), "hello", HelloAnswer)()
        self._files = processes.shared_memory_of(rank.pid for rank in answer.ranks if rank.host == socket.gethostname())
        self._greeted = True
        self._ranks = answer.ranks
        return answer

    def measure(self, pattern: str, **how: Any) -> MeasureAnswer:
        """Measure one point; takes what `begin_measure` takes, and raises the same."""
        return self.begin_measure(pattern, **how)()

    def begin_measure(
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
    ) -> Callable[[], MeasureAnswer]:
        """Begin to measure one point: `samples` batches of `batch` repetitions each, after `warmup` repetitions.

        The function returned waits for the answer; no other command may come between. The job is ended when `timeout_s`
        (whole seconds) pass; that shows within 10 s. Raises WorkerRefused (the job continues), WorkerTimedOut,
        WorkerDied, ProtocolError.
        """
        words = [
            f"pattern={pattern}",
            *(f"{name}={value}" for name, value in options),
            *(f"bytes={bytes}", f"batch={batch}", f"samples={samples}", f"warmup={warmup}"),
            *(f"timeout_s={timeout_s}", f"verify={'yes' if verify else 'no'}"),
        ]
        wait = self._begin("measure", words, timeout_s, f"{pattern} of {format_bytes(bytes)}", MeasureAnswer)

        def end() -> MeasureAnswer:
            answer = wait()
            if (answer.pattern, answer.bytes, answer.batch, answer.samples) != (pattern, bytes, batch, samples):
                self.kill()
                raise ProtocolError("the worker has measured another point than it was asked for")
            return answer

        return end

    def close(self) -> None:
        """Ask the job to quit, wait for it, and kill the processes that do not end in time. May be called again."""
        if self._ended:
            return
        try:
            if self._greeted:
                self._begin("quit", [], 10.0, "quit", answers.ByeAnswer)()
            else:
                self.channel.close_input()  # after hello this ends it immediately, even in its last steps
            left = self.channel.wait_exit(_LAST_WORDS_S) is None
        except WorkerError:
            left = True
        if left or len(self.channel.processes) > 1:
            self.kill()
        self._ended = True
        self.channel.close()

    def kill(self) -> bool:
        """End the job within about 5 s, and return whether all its processes are gone. May be called again.

        Its processes on this host are killed, and its library's shared-memory files removed. Ranks on other hosts end
        by themselves when rank 0 is gone.
        """
        self._ended = True
        if not self._greeted:
            self._files |= self.channel.shared_memory()
        gone = self.channel.end()
        if gone:
            processes.remove_unused(self._files)
        return gone

    # ---- asking -----------------------------------------------------------------------------------------------------

    def _begin(
        self, verb: str, words: list[str], limit_s: float, doing: str, kind: type[Answer]
    ) -> Callable[[], Answer]:
        """Send a command; the function returned waits for its answer of that kind. Another one ends the job."""
        if self._ended:
            raise WorkerDied("the worker has ended: its session is over")
        for word in words:
            if not re.fullmatch(r"[!-<>-~]+=[!-~]+", word):
                raise UsageError(f"'{word}' cannot be a word of a command to a worker")
        self._id += 1
        self._heard_bytes = self.channel.said_bytes
        return self._send(" ".join([verb, *words, f"id={self._id}"]), kind, doing, limit_s)

    def _send(self, line: str, kind: type[Answer], doing: str, limit_s: float) -> Callable[[], Answer]:
        deadline_s = time.monotonic() + limit_s + GRACE_S
        try:
            self.channel.write(f"{line}\n".encode(), deadline_s)
        except TimeoutError:
            raise self._timed_out(doing, limit_s) from None
        return functools.partial(self._wait, kind, doing, limit_s, deadline_s)

    def _wait(self, kind: type[Answer], doing: str, limit_s: float, deadline_s: float) -> Answer:
        try:
            while (text := self._read_line(deadline_s)) is not None:
                answer = answers.parse(text)
                if isinstance(answer, LostAnswer):
                    self._lost = answer
                elif isinstance(answer, answers.ByeAnswer) and answer.id == 0:
                    break  # its input ended, as a launcher closes it when a rank is gone
                elif isinstance(answer, ErrorAnswer) and answer.id in (0, self._id):  # 0: it did not read the number
                    raise self._refusal(answer)
                elif not isinstance(answer, kind) or answer.id != self._id:
                    raise ProtocolError(f"the worker answers '{answer.kind}' number {answer.id} to command {self._id}")
                else:
                    return answer
            raise self._died(doing, limit_s, deadline_s)
        except TimeoutError:
            raise self._timed_out(doing, limit_s) from None
        except ProtocolError:
            self.kill()
            raise

    def _read_line(self, deadline_s: float) -> bytes | None:
        """The next answer, as of Channel.read_line.

        One that waits for a dead host is not waited for, once the other ranks have reported the time limit.
        """
        if not self._greeted:
            return self._read_first_line(deadline_s)
        with suppress(TimeoutError):
            return self.channel.read_line(deadline_s - GRACE_S)
        self._misses_host()
        with suppress(TimeoutError):
            return self.channel.read_line(deadline_s - GRACE_S + _REPORTS_S)
        if diagnose.is_late(self.channel.output(self._heard_bytes)):
            raise TimeoutError
        return self.channel.read_line(deadline_s)

    def _read_first_line(self, deadline_s: float) -> bytes | None:
        """The same while a job starts. A launcher that missed a host soon fails, if it cannot be started again."""
        missed_s = math.inf
        while True:
            now_s = time.monotonic()
            if missed_s == math.inf and diagnose.unreachable(self.channel.output(self._tried_bytes)):
                missed_s = now_s + _LAST_WORDS_S
            is_long = now_s >= self._tried_s + _LONG_START_S
            if now_s >= min(deadline_s, missed_s) or (is_long and self._misses_host()):
                raise TimeoutError
            with suppress(TimeoutError):
                line = self.channel.read_line(min(deadline_s, missed_s, now_s + 0.5))
                if line is not None or not self._join_again(deadline_s):
                    return line
                missed_s = math.inf

    def _refusal(self, answer: ErrorAnswer) -> WorkerRefused:
        if not answer.message.endswith("standard error has the reason"):
            return WorkerRefused(answer.code, answer.message)
        self.channel.hear(_DRAIN_S)  # standard error is another pipe, and may be later
        return WorkerRefused(answer.code, self._reason() or answer.message)

    def _reason(self) -> str:
        """The cause, from the output since the last command. Hydra prints on standard output."""
        return diagnose.reason(self.channel.output(self._heard_bytes)) or diagnose.reason("\n".join(self.channel.noise))

    # ---- when it ends -----------------------------------------------------------------------------------------------

    def _timed_out(self, doing: str, limit_s: float) -> WorkerError:
        self.kill()
        if self._greeted:
            return self._late(doing, limit_s)
        return self._not_started(f"no answer within {self._start_limit_s:g} s", timed_out=True)

    def _died(self, doing: str, limit_s: float, deadline_s: float) -> WorkerError:
        """The error for the end of the job, after a short wait for its last messages.

        The wait ends at the deadline: a time limit and the killing of all processes then take less than 10 s.
        """
        join = self.channel.failed_join()  # rank 0 then still waits
        left_s = max(_DRAIN_S, deadline_s - time.monotonic())
        words_s = 1.0 if self._launch.joins else _LAST_WORDS_S  # a host that is gone never hangs up
        exit_code = self.channel.wait_exit(min(words_s, left_s) if join is None else _DRAIN_S)
        self.kill()
        exit_code = exit_code if join is None else join
        if not self._greeted:
            return self._not_started(f"it {self._how_it_ended(exit_code)}")
        lost = self._lost_rank()
        # Each rank has its own watch, and a launcher may end the others before the first has reported.
        said = self.channel.output(self._heard_bytes)
        if 14 in (exit_code, lost and lost.exit) or diagnose.is_late(said):
            return self._late(doing, limit_s)
        text = diagnose.gone_ranks(said, self._ranks)
        killed = diagnose.killed_rank(self.words(self._heard_bytes), self._ranks)
        if lost and (lost.signal or not (text or killed)):
            rank = [rank for rank in self._ranks if rank.rank == lost.rank]
            who = diagnose.who(rank, self._ranks) if rank else f"rank {lost.rank}"
            text = f"{who} {self._how_it_ended(-lost.signal or lost.exit)}"
        elif killed:
            text = f"{diagnose.who([killed[0]], self._ranks)} {self._how_it_ended(-killed[1])}"
        reason = diagnose.last_words(said) if killed else self._reason()
        if text and diagnose.is_consequence(reason):
            reason = ""
        text = text or f"the worker {self._how_it_ended(exit_code)}"
        remedy = diagnose.remedy(f"{text}\n{self.words(self._heard_bytes)}")
        return WorkerDied(": ".join(filter(None, (text, reason))), remedy)

    def _late(self, doing: str, limit_s: float) -> WorkerTimedOut:
        said = self.channel.output(self._heard_bytes)
        late, silent = (of(said, self._ranks) for of in (diagnose.late_ranks, diagnose.silent_ranks))
        why = diagnose.said_of(late, self._ranks, "is not done", "are not done") or self._reason()
        who = diagnose.said_of(silent, self._ranks, "does not answer", "do not answer")
        waits = diagnose.waited_for(said)
        return WorkerTimedOut(doing, limit_s, why, who, [rank.rank for rank in silent or late], waits)

    def _lost_rank(self) -> LostAnswer | None:
        """The rank that a host's process reported first; one that was killed counts before those that ended."""
        lost = [self._lost] if self._lost else []
        for line in self.channel.output(self._heard_bytes).encode().splitlines():
            if line.startswith(answers.PREFIX):  # of another host than rank 0's
                with contextlib.suppress(ProtocolError):  # it may be cut short
                    answer = answers.parse(line.removeprefix(answers.PREFIX))
                    lost += [answer] if isinstance(answer, LostAnswer) else []
        return max(lost, key=lambda each: each.signal != 0, default=None)

    def _not_started(self, reason: str, *, timed_out: bool = False) -> LaunchFailed:
        demand = f"each host must be {self._launch.demand}" if self._launch.demand else ""
        remedy = diagnose.remedy(f"{reason}\n{self.words()}")
        if missed := diagnose.unreachable(self.channel.output(self._tried_bytes)):
            why = f"it cannot reach a host: {missed}"
            is_chance = not remedy  # a limit of the system is there at the next start, too
            return LaunchFailed(self._launch.launcher, why, missed=is_chance, remedy=remedy or demand)
        if self._has_option and time.monotonic() >= self._started_s + self._start_limit_s:
            reason += f" ({how_to_wait_longer(self._start_limit_s)})"
        said = diagnose.summary(self.channel.output()) or diagnose.summary("\n".join(self.channel.noise))
        said = diagnose.with_hosts(said, self._launch.rank_hosts)
        # A rank of ours that named the cause: its launcher has then done its part.
        if not said.startswith(diagnose.OURS):
            remedy = remedy or demand or ("" if timed_out else diagnose.doubts(said, self._launch.settings))
        return LaunchFailed(self._launch.launcher, reason, said, timed_out=timed_out, remedy=remedy)

    def _how_it_ended(self, exit_code: int | None) -> str:
        how = how_it_ended(exit_code)
        why = why_killed(-exit_code, self._oom_kills) if exit_code is not None and exit_code < 0 else ""
        return ": ".join(filter(None, (how, why)))

    def words(self, since: int = 0) -> str:
        """All that the job said for people: Hydra prints on standard output."""
        return "\n".join([self.channel.output(since), *self.channel.noise])

    # ---- a job of several hosts -------------------------------------------------------------------------------------

    def _join(self) -> None:
        """Start the other ranks as soon as rank 0 has said where it listens; all share a fresh secret."""
        token = self._token = f"token {secrets.token_hex(16)}"
        answer = self._send(token, answers.ListeningAnswer, "start", self._start_limit_s)()
        try:
            processes.allow_files(FILES_OF_PROCESS * len(self._launch.joins))
        except OSError as error:
            raise LaunchFailed(self._launch.launcher, str(error)) from error
        address = f"{answer.host}:{answer.port}"
        self._joins = [[word.replace(JOIN_ADDRESS, address) for word in argv] for argv in self._launch.joins]
        deadline_s = self._started_s + self._start_limit_s
        logging_in: list[int] = []
        for number, words in enumerate(self._joins, 1):
            while len(logging_in) >= LOGINS_MAX and time.monotonic() < deadline_s:
                self.channel.hear(_POLL_S)
                logging_in = [each for each in logging_in if not self.channel.has_read(each)]
            self.channel.spawn(words, self._launch.environment)
            self.channel.write(f"{token}\n".encode(), deadline_s, number=number)
            logging_in.append(number)
        self._tried_s = time.monotonic()

    def _join_again(self, deadline_s: float) -> bool:
        """Start ranks again whose login was refused by accident, if nothing else has failed."""
        took_s = time.monotonic() - self._tried_s
        failed = {number: code for number, code in enumerate(self.channel.joined()) if code}
        self._tries.update([*failed])
        self.channel.hear(PAUSE_S)  # its words come later than its end
        is_chance = all(failed_by_chance(code, self.channel.output(), took_s) for code in failed.values())
        if not failed or not is_chance or max(self._tries.values()) >= TRIES:
            return False
        self._tried_s = time.monotonic()
        for number in failed:
            self.channel.spawn(self._joins[number], self._launch.environment, instead_of=number + 1)
            self.channel.write(f"{self._token}\n".encode(), deadline_s, number=number + 1)
        self._tried_bytes = self.channel.said_bytes  # after all that the old ones have said
        return True
