"""The environment of all measurements: the workers, the CPUs and a folder for builds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from scripts.benchlib.bare import build

from hockney.errors import HockneyError
from hockney.machine.activity import observe
from hockney.machine.placement import choose_cpus
from hockney.worker import answers
from hockney.worker.catalogue import Catalogue, TransportInfo
from hockney.worker.launch import Job, StartCommand, launch
from hockney.worker.session import WorkerSession

_LOOK_S = 0.1


@dataclass(frozen=True)
class Shot:
    """The parameters of one point: the same for hockney and for the bare program. No `warmup`: one batch."""

    bytes: int
    batch: int
    samples: int
    warmup: int | None = None


class Place:
    """Everything that contests share. `cpus` are those of ranks 0 and 1."""

    def __init__(self, catalogue: Catalogue, folder: Path, *, short: bool, say: Callable[[str], None]) -> None:
        self.catalogue = catalogue
        self.folder = folder
        self.short = short
        self.say = say
        cpus = choose_cpus(2)
        if len(set(cpus)) < 2:
            raise HockneyError("two CPUs are needed, and processes must be pinned to them, which this machine refuses")
        self.cpus = (cpus[0], cpus[1])
        self.others_cpus: list[float] = []
        self._built: dict[tuple[str, ...], Path] = {}

    def look_round(self) -> None:
        """Notes how many CPUs other programs use at this moment, while nothing of ours runs."""
        busy = observe(_LOOK_S).busy_cpus
        if busy is not None:
            self.others_cpus.append(busy)

    @contextmanager
    def worker(self, transport: str, ranks: int = 2, before: Sequence[str] = ()) -> Iterator[WorkerSession]:
        """A new job of one or two pinned ranks over a transport; `before` is a program that starts it."""
        whole = self.launch(transport, ranks)
        with WorkerSession(replace(whole, argv=(*before, *whole.argv))) as session:
            session.hello()
            yield session

    def launch(self, transport: str, ranks: int = 2) -> StartCommand:
        """How such a job is started."""
        info = self.catalogue.transports[transport]
        oversubscribed = ranks > len(self.cpus)
        job = Job(info.executable, info.worker_name, ranks, self.cpus_of(ranks), oversubscribed=oversubscribed)
        return launch(job, info.library)

    def cpus_of(self, ranks: int) -> tuple[int, ...]:
        """The CPU of each rank: the two in turn."""
        return tuple(self.cpus[rank % 2] for rank in range(max(2, ranks)))

    def mpiexec(self, transport: str, argv: Sequence[str]) -> StartCommand:
        """The start of another program in the place of the worker: same mpiexec, same flags, same environment."""
        info = self.catalogue.transports[transport]
        whole = launch(Job(info.executable, info.worker_name, 2, self.cpus), info.library)
        before = whole.argv[: whole.argv.index(str(info.executable))]
        return StartCommand(whole.launcher, (*before, *argv), whole.environment)

    def mpis(self, kind: str | None = None) -> list[TransportInfo]:
        """The plain transport of each MPI found, or of those of one kind."""
        infos = [
            info for name, info in self.catalogue.transports.items() if name.startswith("mpi@") and ":" not in name
        ]
        return [info for info in infos if kind is None or (info.library is not None and info.library.kind == kind)]

    def bare(self, compiler: Sequence[str], source: str) -> Path:
        """A bare program, built once."""
        key = (*compiler, source)
        if key not in self._built:
            executable = self.folder / f"{len(self._built)}-{Path(source).stem}"
            self._built[key] = build(compiler, source, executable)
        return self._built[key]


def take(session: WorkerSession, pattern: str, shot: Shot, options: Sequence[tuple[str, str]] = ()) -> list[float]:
    """The times of one point, sorted, in ns per message by the pattern's definition."""
    return sorted(times_ns(measure(session, pattern, shot, options)))


def measure(
    session: WorkerSession, pattern: str, shot: Shot, options: Sequence[tuple[str, str]] = ()
) -> answers.MeasureAnswer:
    """One point. Payloads are not verified: the bare programs do no such thing between their measurements."""
    return session.measure(
        pattern,
        bytes=shot.bytes,
        batch=shot.batch,
        samples=shot.samples,
        warmup=shot.batch if shot.warmup is None else shot.warmup,
        verify=False,
        options=options,
    )


def times_ns(answer: answers.MeasureAnswer) -> list[float]:
    """Rank 0's time of each sample, divided as the pattern says."""
    return [elapsed / (answer.batch * answer.divisor) for elapsed in answer.elapsed_ns[0]]


def middle_ns(answer: answers.MeasureAnswer) -> float:
    """The median of one measurement, in ns."""
    return statistics.median(times_ns(answer))
