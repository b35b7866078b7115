"""Talks to the processes of a job: lines in, lines out, and a time limit on every wait.

Nothing here blocks without a limit, and nothing needs a thread: each wait for an answer also reads the launcher's
standard error, so its pipe can't fill up and stop the job.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import selectors
import struct
import subprocess
import termios
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from hockney.worker.answers import PREFIX
from hockney.worker.errors import LaunchFailed
from hockney.worker.processes import MARK, end_job, find_members, shared_memory_of

FILES_OF_PROCESS = 4
"""What a process of a job opens here: three pipes, and one that says when it ends."""

_CHUNK_BYTES = 1 << 18
_NOISE_LINE_BYTES = 4096


class Channel:
    """The processes of one job and the pipes to them. The first process is the one that answers."""

    def __init__(self) -> None:
        self.noise: deque[str] = deque(maxlen=100)  # the last lines that are no answers: output of a library
        self.processes: list[subprocess.Popen[bytes]] = []
        self.said_bytes = 0  # on standard error, in all: more than is kept
        self._mark = secrets.token_hex(16)  # that no other job has
        self._selector = selectors.DefaultSelector()
        self._ends: dict[int, subprocess.Popen[bytes]] = {}  # by pidfd, of those that have not ended
        self._lines: deque[bytes] = deque()
        self._line = bytearray()  # that has not ended
        self._said = bytearray()
        self._answers_end = False

    def spawn(
        self, argv: Sequence[str], environment: Mapping[str, str | None], *, instead_of: int | None = None
    ) -> None:
        """Start a process in its own session, safe from Ctrl-C, or one in the place of another. Raises LaunchFailed."""
        merged: dict[str, str | None] = {**os.environ, **environment, MARK: self._mark}
        try:
            process = subprocess.Popen(
                argv,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={name: value for name, value in merged.items() if value is not None},
                start_new_session=True,
            )
        except OSError as error:
            raise LaunchFailed(argv[0], error.strerror or str(error)) from error
        if instead_of is None:
            self.processes.append(process)
        else:
            self._forget(self.processes[instead_of])
            self.processes[instead_of] = process
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            if pipe is not process.stdin:
                is_of_answers = pipe is process.stdout and len(self.processes) == 1
                self._selector.register(pipe, selectors.EVENT_READ, is_of_answers)
        # Ends a wait when the process ends, even if a process that it started keeps its pipes open.
        with suppress(OSError, AttributeError):  # not every system can, and not every sandbox lets us
            end = os.pidfd_open(process.pid)
            self._ends[end] = process
            self._selector.register(end, selectors.EVENT_READ)

    # ---- waiting ----------------------------------------------------------------------------------------------------

    def write(self, data: bytes, deadline_s: float, number: int = 0) -> None:
        """Write all of `data` to the process of that number. If it reads no more, the end of the output says why.

        Raises TimeoutError when `deadline_s` (of time.monotonic) has passed.
        """
        process = self.processes[number]
        assert process.stdin is not None
        left = memoryview(data)
        with selectors.DefaultSelector() as writable, suppress(BrokenPipeError):
            writable.register(process.stdin, selectors.EVENT_WRITE)
            while left:
                if not writable.select(max(0.0, deadline_s - time.monotonic())):
                    raise TimeoutError
                left = left[os.write(process.stdin.fileno(), left) :]

    def read_line(self, deadline_s: float) -> bytes | None:
        """The next answer without its prefix; None at the end. Other lines go to `noise`.

        The failure of one of several processes is also the end: the others would wait for it forever. Raises
        TimeoutError when `deadline_s` (of time.monotonic) has passed.
        """
        while True:
            while self._lines:
                line = self._lines.popleft()
                if line.startswith(PREFIX):
                    return line[len(PREFIX) :]
                if line.strip():
                    self.noise.append(line[:_NOISE_LINE_BYTES].decode(errors="replace"))
            if self._answers_end or self.failed_join() is not None:
                return None
            self._take(deadline_s)

    def has_read(self, number: int) -> bool:
        """Whether a process has read all that was written to it, as a login does once it is made; or it has ended."""
        process = self.processes[number]
        assert process.stdin is not None
        (left_bytes,) = struct.unpack("i", fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)))
        return left_bytes == 0 or process.poll() is not None

    def _take(self, deadline_s: float) -> None:
        ready = self._selector.select(max(0.0, deadline_s - time.monotonic()))
        if not ready:
            raise TimeoutError
        ended = [key.fd for key, _ in ready if key.fd in self._ends]
        for key, _ in ready:
            if key.fd not in ended:
                self._read(key)
        for end in ended:
            self._after(end)

    def _read(self, key: selectors.SelectorKey) -> int:
        """Read a pipe as far as it has data; returns the number of bytes."""
        try:
            data = os.read(key.fd, _CHUNK_BYTES)
        except BlockingIOError:
            return 0
        if not data:
            self._hang_up(key)
        elif key.data:
            self._split(data)
        else:
            self._said += data
            self.said_bytes += len(data)
            del self._said[: -(1 << 16)]
        return len(data)

    def _split(self, data: bytes) -> None:
        """Cut standard output into lines. One that is no answer is cut short: it is kept for people only."""
        first, *others = data.split(b"\n")
        self._line += first
        for piece in others:
            self._lines.append(bytes(self._line))
            self._line = bytearray(piece)
        if not self._line.startswith(PREFIX):
            del self._line[_NOISE_LINE_BYTES:]

    def _after(self, end: int) -> None:
        """A process has ended: read the rest of its pipes, no more than they hold, as its children may still write."""
        process = self._ends.pop(end)
        self._selector.unregister(end)
        os.close(end)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None and pipe in self._selector.get_map():
                key = self._selector.get_key(pipe)
                left_bytes = 1 << 20
                while left_bytes > 0 and (count := self._read(key)):
                    left_bytes -= count
                if pipe in self._selector.get_map():
                    self._hang_up(key)

    def _forget(self, process: subprocess.Popen[bytes]) -> None:
        """Read the rest of what an ended process has said, and close its pipes."""
        for end in [end for end, known in self._ends.items() if known is process]:
            self._after(end)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None and pipe in self._selector.get_map():
                self._selector.unregister(pipe)
            if pipe is not None:
                pipe.close()

    def _hang_up(self, key: selectors.SelectorKey) -> None:
        self._selector.unregister(key.fileobj)
        if key.data:
            self._lines.append(bytes(self._line))
            self._answers_end = True

    def failed_join(self) -> int | None:
        """The exit code of a process that has failed, the first one excepted."""
        return next(filter(None, self.joined()), None)

    def joined(self) -> list[int | None]:
        """The exit codes of all processes but the first; None for one that runs."""
        return [process.poll() for process in self.processes[1:]]

    def hear(self, limit_s: float) -> None:
        """Read output for up to limit_s. Answers that come meanwhile are kept."""
        deadline_s = time.monotonic() + limit_s
        with suppress(TimeoutError):
            while self._selector.get_map() and time.monotonic() < deadline_s:
                self._take(deadline_s)

    def wait_exit(self, limit_s: float) -> int | None:
        """The first process's exit code, negative for a signal; None if it still runs at limit_s. Reads output."""
        deadline_s = time.monotonic() + limit_s
        self.hear(limit_s)
        try:
            return self.processes[0].wait(max(0.0, deadline_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None

    # ---- ending -----------------------------------------------------------------------------------------------------

    def output(self, since: int = 0) -> str:
        """The last output of the job's processes on standard error; `since`: an earlier said_bytes to begin at."""
        fresh = min(len(self._said), self.said_bytes - since)
        text = self._said[len(self._said) - fresh :].decode(errors="replace")
        return text if fresh == self.said_bytes - since else text.partition("\n")[2]  # the first line is cut

    def close_input(self) -> None:
        """The end of standard input for all."""
        for process in self.processes:
            if process.stdin is not None:
                process.stdin.close()

    def shared_memory(self) -> frozenset[Path]:
        """The files in shared memory that the job's processes on this host use now."""
        return shared_memory_of(process.pid for process in find_members(self.processes, self._mark))

    def end(self) -> bool:
        """End all processes and close all pipes; see processes.end_job. May be called again."""
        gone = end_job(self.processes, self._mark)
        self.close()
        return gone

    def close(self) -> None:
        """Close all pipes. May be called again."""
        self._selector.close()
        self._answers_end = True
        while self._ends:
            os.close(self._ends.popitem()[0])
        for process in self.processes:
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
