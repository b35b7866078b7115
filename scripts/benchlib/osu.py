"""The part `osu`: the programs of OSU and IMB beside hockney's own definitions of their benchmarks.

For each benchmark that both have on two ranks, the tool's own program and hockney's worker are measured in alternation,
under the same launcher, library and CPUs, with as many repetitions. hockney's figure is made as the tool makes its own:
a mean over all repetitions of one run, of the ranks that the tool takes.

The programs of IMB come with Intel's library; others, built for a library, are given by their folder.
"""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from scripts.benchlib.contests import Absent, Contest, Measured, Question, Series
from scripts.benchlib.place import BareFailed, Place, Shot, measure
from scripts.benchlib.table import Row, Target, show_interval

from hockney.errors import UsageError, unknown
from hockney.stats import Interval, median
from hockney.suites.tools import NamedSeries, tools
from hockney.units import format_bytes
from hockney.worker.answers import MeasureAnswer
from hockney.worker.catalogue import TransportInfo

_COLLECTIVES = "bcast allreduce reduce allgather alltoall gather scatter barrier reduce_scatter"
_MESSAGES = ("PingPong", "PingPing", "Sendrecv", "Exchange", "Uniband")
_OSU = ("osu_latency", "osu_bw", "osu_bibw", *(f"osu_{name}" for name in _COLLECTIVES.split()))
_USUAL = (*_OSU, *_MESSAGES, *map(str.capitalize, _COLLECTIVES.split()))  # if none is named
_SIZES = (8, 1 << 10, 1 << 16)
_RANKS = 2
_TARGET = Target("0.98–1.02 × the tool", low=0.98, high=1.02)
_EXACT = 0.001  # a rounding that the table does not mention
# As many again warm up: Intel MPI's first 500 round trips take eight times as long as later ones.
_REPETITIONS, _OF_WINDOWS, _SHORT = 1_000, 100, 100
# A library may allocate memory in each call, as MPICH 4.0's reduce_scatter does. Whether glibc returns it to the system
# each time depends on what else the program has allocated: then each call has page faults (32 of 64 KiB blocks, four
# times as long). Both programs keep their memory.
_KEEPS_MEMORY = "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=1073741824"
_RANK = "${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-$PMI_RANK}}"
# Where all ranks are timed, IMB shows the slowest one's speed of these, and a mean time of the others.
_BY_THE_SLOWEST = ("ring", "pingping", "putring", "getring")


class Line(NamedTuple):
    """A figure in ns per message or operation; `rounding_ns`: half a unit of its last digit."""

    ns: float
    rounding_ns: float


@dataclass(frozen=True)
class Pair:
    """One benchmark over one library."""

    tool: str
    name: str
    series: NamedSeries
    library: str
    program: Path

    @property
    def transport(self) -> str:
        return self.library + (self.series.transports or ("mpi",))[0].removeprefix("mpi")

    @property
    def options(self) -> dict[str, str]:
        """Of several values the first. OSU's program prints the pure time too, where it measures the overlap."""
        options = {name: value.split(",")[0] for name, value in self.series.options.items()}
        options.pop("overlap", None)
        return options

    @property
    def sizes(self) -> tuple[int, ...]:
        """By the tool's count; one of 0 for a benchmark without sizes."""
        return tuple(size for size in _SIZES if size in self.series.bytes) or (0,)

    @property
    def is_rate(self) -> bool:
        return int(self.options.get("window", "1")) > 1

    def time_of(self, answer: MeasureAnswer) -> float:
        """The ranks' times as the tool combines them."""
        whose, ranks = answer.timed, [sum(times) for times in answer.elapsed_ns]
        if self.tool == "imb" and whose in ("mean", "slowest"):
            whose = "slowest" if self.series.pattern in _BY_THE_SLOWEST else "mean"
        if whose == "mean":
            total = sum(ranks) / len(ranks)
        else:
            total = max(ranks) if whose == "slowest" else ranks[int(whose.removeprefix("rank ")) if " " in whose else 0]
        return total / (answer.batch * answer.samples * answer.divisor)


def tool_lines(text: Sequence[str]) -> dict[int, Line]:
    """The figures of one benchmark's output by size, 0 for one without sizes; of several tables the first."""
    titles: list[str] = []
    found: dict[int, Line] = {}
    for line in text:
        if line.lstrip().startswith("#"):
            if found:
                break
            if re.search(r"\(us\)|usec|MB/s|Mbytes/sec", line):
                titles = re.split(r"\s{2,}", line.replace("#", "  ").strip())
            continue
        words = line.split()
        if titles and len(words) == len(titles) and all(re.fullmatch(r"[\d.]+", word) for word in words):
            size, read = _read(dict(zip(titles, words, strict=True)))
            found[size] = read
    return found


def _read(cells: Mapping[str, str]) -> tuple[int, Line]:
    size = int(cells.get("bytes", cells.get("Size", "0")))
    rate = next((cells[name] for name in cells if "MB/s" in name or "Mbytes" in name), None)
    times = ("t[usec]", "t_avg[usec]", "Pure Comm.(us)", "Avg Latency(us)", "Latency (us)")
    time = next((cells[name] for name in times if name in cells), None)
    if rate is not None and float(rate) > 0 and size > 0:
        # A speed has more digits than a time. IMB's counts a message for each way in its table of ranges.
        slowest_us = float(cells.get("t_max[usec]", time or 0))
        messages = max(1, round(float(rate) * slowest_us / size)) if time is not None else 1
        ns = messages * size / float(rate) * 1e3
        return size, Line(ns, ns * _half_digit(rate) / float(rate))
    if time is None:
        raise BareFailed(f"no time is among {', '.join(cells)}")
    return size, Line(float(time) * 1e3, _half_digit(time) * 1e3)


def _half_digit(number: str) -> float:
    return 0.5 * 10.0 ** -len(number.partition(".")[2])


@dataclass
class SideBySide(Contest):
    """The ratio of hockney's figure to the tool's; the tool's rounding widens its interval."""

    rounding: dict[int, float] = field(default_factory=dict)  # the largest of each size, in parts of the figure

    def rows(self) -> list[Row]:
        return [self._row(question, key) for key, question in self.questions.items()]

    def _row(self, question: Question, key: int) -> Row:
        taken, near = self.quadruples.get(key, []), self.rounding.get(key, 0.0)
        row = question.row(taken)
        ratio = median([one.ratio for one in taken]) if taken else None
        if ratio is None or ratio.low is None or ratio.high is None:
            return row
        wide = Interval(ratio.value, ratio.low * (1 - near), ratio.high * (1 + near), ratio.n, ratio.coverage)
        rounds = f"; {question.theirs} rounds by {near:.1%}" if near > _EXACT else ""
        return Row(row.what, row.target, row.measured, row.state + rounds, question.target.judge(wide))


@dataclass
class Together:
    """All figures of a tool over one library: the middle ratio of times in each round, over the rounds.

    Launches scatter by more than the target allows, each benchmark's by itself. What hockney's way of measuring adds
    would be added to all.
    """

    name: str
    tool: str
    contests: Sequence[Contest]

    def measure(self, number: int) -> None:
        return

    def rows(self) -> list[Row]:
        series = [taken for one in self.contests for taken in one.quadruples.values()]
        rounds = [median([one.ratio for one in taken]).value for taken in zip(*series, strict=False)]
        if not rounds:
            return []
        ratio, what = median(rounds), f"{self.name}: the median of {len(series)} figures of each round"
        measured = f"{show_interval(ratio, 3)} × the time of {self.tool}"
        return [Row(what, _TARGET.text, measured, f"{len(rounds)} rounds", _TARGET.judge(ratio))]


def osu(place: Place) -> list[Series]:
    """The part `osu`. Raises UsageError for a library or a benchmark that is not here."""
    pairs = list(_pairs(place))
    if not pairs:
        what = f"osu: {', '.join(place.choice.names) or 'any benchmark'}"
        why = "no program of that name is beside an MPI or in a given folder (--osu, --imb)"
        return [Absent("osu", what, _TARGET, why)]
    found: dict[tuple[str, str], list[Contest]] = {}
    for pair in pairs:
        found.setdefault((pair.library, pair.tool.upper()), []).append(_contest(place, pair))
    together = [Together(f"{library}: {tool}", tool, contests) for (library, tool), contests in found.items()]
    return [*(one for contests in found.values() for one in contests), *together]


def _pairs(place: Place) -> Iterator[Pair]:
    known = [name for tool in tools().values() for name in tool.benchmarks]
    wanted = {name for word in place.choice.names or _USUAL for name in _matching(word, known)}
    for info in place.mpis():
        for tool, folder in _folders(place, info):
            programs = {path.name: path for path in folder.rglob(f"{tool}*" if tool == "osu" else "IMB-*")}
            for name, series in tools()[tool].benchmarks.items():
                program = programs.get(name.partition(":")[0])
                fits = series.ranks == (_RANKS,) and (tool == "osu" or "overlap" not in series.options)
                if name in wanted and fits and program is not None:
                    pair = Pair(tool, name, series, info.name, program)
                    if pair.transport in place.catalogue.transports:
                        yield pair


def _matching(word: str, known: Sequence[str]) -> list[str]:
    found = fnmatch.filter(known, word) or fnmatch.filter(known, f"IMB-MPI1:{word}")
    if not found:
        raise unknown("benchmark", word, known)
    return found


def _folders(place: Place, info: TransportInfo) -> Iterator[tuple[str, Path]]:
    """Each tool with the folder of its programs for a library: those given, and that of the library's own programs."""
    names = [one.name for one in place.mpis()]
    for tool, words in place.choice.folders.items():
        for library, is_given, path in (word.partition("=") for word in words):
            if not is_given or not Path(path).is_dir():
                raise UsageError(
                    f"--{tool} {library}{is_given}{path}: must be LIBRARY=FOLDER, and the folder must exist"
                )
            if library not in names:
                raise unknown("library", library, names)
            if library == info.name:
                yield tool, Path(path).resolve()
    if info.library is not None:
        yield "imb", info.library.program.parent


def _contest(place: Place, pair: Pair) -> Contest:
    title = pair.tool.upper()
    repetitions = _SHORT if place.short else _OF_WINDOWS if pair.is_rate else _REPETITIONS
    rounding: dict[int, float] = {}

    def ours() -> Measured:
        with place.worker(pair.transport, before=("env", _KEEPS_MEMORY)) as session:
            shots = [(size, Shot(size, repetitions, 1, repetitions)) for size in pair.sizes]
            options = tuple(pair.options.items())
            return {size: pair.time_of(measure(session, pair.series.pattern, shot, options)) for size, shot in shots}

    def theirs() -> Measured:
        lines = tool_lines(place.mpiexec(pair.library, _command(place, pair, repetitions)))
        if pair.sizes == (0,):
            lines = dict(zip((0,), lines.values(), strict=False))
        if absent := [format_bytes(size) for size in pair.sizes if size not in lines]:
            raise BareFailed(f"{pair.program.name} has printed no figure for {', '.join(absent)}")
        for size in pair.sizes:
            rounding[size] = max(rounding.get(size, 0.0), lines[size].rounding_ns / max(lines[size].ns, 1e-3))
        return {size: lines[size].ns for size in pair.sizes}

    def question(size: int) -> Question:
        what = f"{pair.library}: {pair.name}" + (f", {format_bytes(size)}" if size else "")
        return Question(what, _TARGET, "hockney", title, size if pair.is_rate else 0, fractional=True)

    questions = {size: question(size) for size in pair.sizes}
    return SideBySide(f"{pair.library} {pair.name}", questions, ours, theirs, rounding=rounding)


def _command(place: Place, pair: Pair, repetitions: int) -> list[str]:
    """The tool's program on the CPUs of hockney's ranks: it can't pin itself, so a shell does it."""
    words = [str(pair.program)]
    if pair.tool == "osu":
        words += ["-i", str(repetitions), "-x", str(repetitions)]
        words += ["-m", f"{pair.sizes[0]}:{pair.sizes[-1]}"] if pair.sizes != (0,) else []
    else:
        lengths = place.folder / "imb.lengths"
        lengths.write_text("".join(f"{size}\n" for size in pair.sizes))
        words += ["-npmin", str(_RANKS), "-msglen", str(lengths), "-iter", str(repetitions), "-iter_policy", "off"]
        words.append(pair.name.partition(":")[2])
    beside = pair.program.parent.parent / "lib"  # of a wheel, whose programs do not find their library
    path = f"export LD_LIBRARY_PATH={shlex.quote(str(beside))}; " if any(beside.glob("libmpi.so*")) else ""
    cpus = " ".join(map(str, place.cpus))
    return [
        "sh",
        "-c",
        f'export {_KEEPS_MEMORY}; {path}set -- {cpus}; shift "{_RANK}"; exec taskset -c "$1" {shlex.join(words)}',
    ]
