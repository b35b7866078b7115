"""The environment of all measurements: the workers, the bare programs, the CPUs and a folder for builds."""

from __future__ import annotations

import os
import resource
import secrets
import statistics
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from hockney.errors import HockneyError
from hockney.machine.activity import observe
from hockney.machine.placement import choose_cpus
from hockney.worker import answers
from hockney.worker.build import Recipe
from hockney.worker.catalogue import Catalogue, TransportInfo
from hockney.worker.compiler import find_c_compiler
from hockney.worker.launch import Job, StartCommand, launch
from hockney.worker.placement import Placement
from hockney.worker.processes import MARK, end_job
from hockney.worker.session import WorkerSession

SOURCES = Path(__file__).resolve().parent.parent / "bench_bare"
# No less optimised than the worker's timed sources are.
_FLAGS = ("-O3", "-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-pthread")


class BareFailed(HockneyError):
    """A bare program can't be built, fails, hangs, or prints something unknown."""


@dataclass(frozen=True)
class Shot:
    """The parameters of one point: the same for hockney and for the bare program. No `warmup`: one batch."""

    bytes: int
    batch: int
    samples: int
    warmup: int | None = None


@dataclass(frozen=True)
class Choice:
    """What the part `osu` compares: names of benchmarks, with wildcards, and folders `LIBRARY=FOLDER` by the tool."""

    names: Sequence[str] = ()
    folders: Mapping[str, Sequence[str]] = field(default_factory=dict)


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
        self.choice = Choice()
        self.nvbandwidth: Path | None = None
        self.about: dict[str, str] = {}  # further lines below the table, by their name
        self.others_cpus: list[float] = []
        self._built: dict[tuple[object, ...], Path] = {}

    def look_round(self) -> None:
        """Notes how many CPUs other programs use at this moment, while nothing of ours runs."""
        busy = observe().busy_cpus
        if busy is not None:
            self.others_cpus.append(busy)

    @contextmanager
    def worker(self, transport: str, ranks: int = 2, before: Sequence[str] = ()) -> Iterator[WorkerSession]:
        """A new job of one or two pinned ranks over a transport; `before` is a program that starts it."""
        whole = self._launch(transport, ranks)
        with WorkerSession(replace(whole, argv=(*before, *whole.argv))) as session:
            session.hello()
            yield session

    def _launch(self, transport: str, ranks: int = 2) -> StartCommand:
        info = self.catalogue.transports[transport]
        where = Placement(cpus=self.cpus_of(ranks))
        return launch(Job(info.executable, info.worker_name, ranks, where, ranks > len(self.cpus)), info.library)

    def cpus_of(self, ranks: int) -> tuple[int, ...]:
        """The CPU of each rank: the two in turn."""
        return tuple(self.cpus[rank % 2] for rank in range(max(2, ranks)))

    def mpiexec(self, transport: str, argv: Sequence[str]) -> list[str]:
        """The output of another program in the place of the worker: same mpiexec, same flags, same environment."""
        whole = self._launch(transport)
        before = whole.argv[: whole.argv.index(str(self.catalogue.transports[transport].executable))]
        return output_of([*before, *argv], whole.environment)

    def mpis(self, kind: str | None = None) -> list[TransportInfo]:
        """The plain transport of each MPI found, or of those of one kind."""
        infos = [
            info for name, info in self.catalogue.transports.items() if name.startswith("mpi@") and ":" not in name
        ]
        return [info for info in infos if kind is None or (info.library is not None and info.library.kind == kind)]

    def built(self, source: str, compiler: Sequence[str] | None = None, recipe: Recipe | None = None) -> Path:
        """The executable of a bare program, made once, with the flags and libraries of a recipe.

        Raises BareFailed with the compiler's words."""
        compiler, recipe = compiler or find_c_compiler(), recipe or Recipe()
        key = (*compiler, source, recipe)
        if key not in self._built:
            executable = self.folder / f"{len(self._built)}-{Path(source).stem}"
            argv = [*compiler, *_FLAGS, *recipe.flags, "-o", str(executable), str(SOURCES / source), *recipe.libraries]
            done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
            if done.returncode != 0:
                raise BareFailed(f"{source} cannot be built: {done.stderr.strip()[:500]}")
            self._built[key] = executable
        return self._built[key]

    def bare(
        self,
        source: str,
        *words: object,
        columns: int,
        before: Sequence[str] = (),
        recipe: Recipe | None = None,
        environment: Mapping[str, str | None] | None = None,
    ) -> list[list[float]]:
        """The numbers that a bare program prints; `before` is a program that starts it."""
        argv = [*before, str(self.built(source, recipe=recipe)), *map(str, words)]
        return numbers(output_of(argv, environment), columns)

    def environment(self, transport: str) -> Mapping[str, str | None]:
        """The variables with which a transport's job is started."""
        return self._launch(transport).environment


def output_of(
    argv: Sequence[str], environment: Mapping[str, str | None] | None = None, limit_s: float = 60.0
) -> list[str]:
    """The output of a program, line by line; `environment` has changes to ours, None removes a variable.

    All its processes are ended if it takes longer than limit_s. Raises BareFailed.
    """
    mark = secrets.token_hex(16)
    merged: dict[str, str | None] = {**os.environ, **(environment or {}), MARK: mark}
    process = subprocess.Popen(
        argv,
        env={name: value for name, value in merged.items() if value is not None},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=limit_s)
    except BaseException as error:  # Ctrl-C too: nothing may go on spinning
        end_job([process], mark)
        if isinstance(error, subprocess.TimeoutExpired):
            raise BareFailed(f"{Path(argv[0]).name} did not end within {limit_s:g} s") from error
        raise
    if process.returncode != 0:
        said = err.decode(errors="replace").strip()[-300:]
        raise BareFailed(f"{Path(argv[0]).name} ended with {process.returncode}: {said}")
    return out.decode(errors="replace").splitlines()


def usage_of(argv: Sequence[str], out: Path, stdin: str = "", **variables: str) -> resource.struct_rusage:
    """The costs of a program that writes to a file. Raises BareFailed."""
    environment = {**os.environ, **variables}
    with out.open("w") as file, subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=file) as process:
        assert process.stdin is not None
        process.stdin.write(stdin.encode())
        process.stdin.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise BareFailed(f"{' '.join(argv)} ended with {process.returncode}: {out.read_text()[-300:]}")
    return usage


def numbers(lines: Sequence[str], count: int) -> list[list[float]]:
    """The lines with exactly `count` numbers; other output of a library is ignored."""
    found = []
    for line in lines:
        try:
            values = [float(word) for word in line.split()]
        except ValueError:
            continue
        if len(values) == count:
            found.append(values)
    return found


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
    """Rank 0's time of each sample, divided as the pattern says, sorted."""
    return sorted(elapsed / (answer.batch * answer.divisor) for elapsed in answer.elapsed_ns[0])


def middle_ns(answer: answers.MeasureAnswer) -> float:
    """The median of one measurement, in ns."""
    return statistics.median(times_ns(answer))
