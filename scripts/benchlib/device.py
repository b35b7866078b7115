"""The part `device`: copies, kernels and messages of an NVIDIA device, next to bare calls of its driver.

`--nvbandwidth FILE` adds the program of NVIDIA with that name; `--sheet FILE` writes the machine's data sheet.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from scripts.benchlib.contests import Contest, Measured, Question, Series
from scripts.benchlib.place import BareFailed, Place, Shot, measure, middle_ns, output_of
from scripts.benchlib.table import INCONCLUSIVE, UNKNOWN, Row, Target, show_interval

from hockney.errors import HockneyError
from hockney.stats import median
from hockney.units import counted, format_bytes
from hockney.worker.build import Recipe

_WITHIN = Target("0.98–1.02 × bare calls", low=0.98, high=1.02)
_NVBANDWIDTH = Target("0.98–1.02 × nvbandwidth", low=0.98, high=1.02)
_SHOWN = Target("–")
_LARGE_BYTES = 64 << 20
_RATE_BYTES_MIN = 1 << 20  # from here on a row has a rate
_SAMPLES = 11
_BATCHES = {8: 100, 64 << 10: 50, 1 << 20: 10, _LARGE_BYTES: 2}
_MEMORIES = ("pinned:device", "device:pinned", "host:device", "device:host", "device")
# The copies of nvbandwidth by the copy engine that are those of devcopy, with `memory`.
_TESTCASES = {"host_to_device_memcpy_ce": "pinned:device", "device_to_host_memcpy_ce": "device:pinned"}
_SHEET = ["gpu", "--time", "2m"]
_SHEET_SHORT = ["devcopy,devlaunch", "-t", "cuda", "--bytes", "8,1M", "--time", "5s"]


class Case(NamedTuple):
    """One figure. `bare`: what device_bare calls it; None where it has none."""

    title: str
    pattern: str
    shot: Shot
    options: tuple[tuple[str, str], ...] = ()
    bare: str | None = None
    transport: str = "cuda"
    ranks: int = 1

    @property
    def rate_bytes(self) -> int:
        ways = 2 if ("ways", "both") in self.options else 1
        return ways * self.shot.bytes if self.shot.bytes >= _RATE_BYTES_MIN else 0


def _cases(*, short: bool) -> list[Case]:
    sizes = (8, 1 << 20) if short else _BATCHES
    shots = [Shot(size, _BATCHES[size], _SAMPLES) for size in sizes]
    empty = Shot(0, _BATCHES[8], _SAMPLES)
    cases = [
        Case(f"copy {memory}, {format_bytes(shot.bytes)}", "devcopy", shot, (("memory", memory),), memory)
        for memory in _MEMORIES
        for shot in shots
    ]
    cases += [Case("empty kernel", "devlaunch", empty, bare="launch"), Case("flag", "devflag", empty, bare="flag")]
    for way, value in (("ways", "both"), ("by", "kernel")):
        for memory in ("pinned:device", "device"):
            options = (("memory", memory), (way, value))
            cases.append(
                Case(f"copy {memory}, {format_bytes(shots[-1].bytes)}, {way}={value}", "devcopy", shots[-1], options)
            )
    for transport, who in (("cuda", "processes"), ("cuda:threads", "threads")):
        for shot in (shots[0], shots[-1]):
            title = f"{transport}: half round trip between two {who}, {format_bytes(shot.bytes)}"
            cases.append(Case(title, "pingpong", shot, (), None, transport, 2))
    return cases


@dataclass
class Shown:
    """Figures without a peer, each measured once in a round."""

    place: Place
    transport: str
    ranks: int
    cases: Sequence[Case]
    name: str = "device"
    times_ns: list[list[float]] = field(default_factory=list)

    def measure(self, number: int) -> None:
        self.times_ns.append(list(_ours(self.place, self.transport, self.ranks, self.cases).values()))

    def rows(self) -> list[Row]:
        columns = zip(*self.times_ns, strict=True) if self.times_ns else [()] * len(self.cases)
        return [self._row(case, column) for case, column in zip(self.cases, columns, strict=True)]

    def _row(self, case: Case, times_ns: Sequence[float]) -> Row:
        if not times_ns:
            return Row(case.title, _SHOWN.text, "nothing was measured", UNKNOWN, INCONCLUSIVE)
        if case.rate_bytes:
            shown = f"{show_interval(median([case.rate_bytes / ns for ns in times_ns]), 1)} GB/s"
        else:
            shown = f"{show_interval(median([ns / 1e3 for ns in times_ns]), 2)} us"
        return Row(case.title, _SHOWN.text, shown, counted(len(times_ns), "launch", "launches"), UNKNOWN)


def device(place: Place) -> list[Series]:
    """The part `device`. Raises HockneyError without a device."""
    if "cuda" not in place.catalogue.transports:
        missing = place.catalogue.missing_for("cuda")
        raise HockneyError(f"the part device needs a device: {missing.why}; {missing.how}" if missing else "no cuda")
    with place.worker("cuda", 1) as session:
        place.about["Device"] = session.hello().library
    cases = _cases(short=place.short)
    twins = [case for case in cases if case.bare is not None]
    series: list[Series] = [_contest(place, twins)]
    jobs = dict.fromkeys((case.transport, case.ranks) for case in cases if case.bare is None)
    for transport, ranks in jobs:
        mine = [case for case in cases if case.bare is None and (case.transport, case.ranks) == (transport, ranks)]
        series.append(Shown(place, transport, ranks, mine))
    return [*series, *([_beside(place, place.nvbandwidth)] if place.nvbandwidth is not None else [])]


def _ours(place: Place, transport: str, ranks: int, cases: Sequence[Case]) -> Measured:
    with place.worker(transport, ranks) as session:
        return {at: middle_ns(measure(session, case.pattern, case.shot, case.options)) for at, case in enumerate(cases)}


def _contest(place: Place, cases: Sequence[Case]) -> Contest:
    words = [f"{case.bare},{case.shot.bytes},{case.shot.batch},{case.shot.samples}" for case in cases]

    def theirs() -> Measured:
        recipe = Recipe(libraries=("-ldl",))
        times = place.bare("device_bare.c", place.cpus[0], *words, columns=1, recipe=recipe)
        return {at: time for at, (time,) in enumerate(times)}

    questions = {
        at: Question(case.title, _WITHIN, "hockney", "bare", rate_bytes=case.rate_bytes, fractional=True)
        for at, case in enumerate(cases)
    }
    return Contest("device", questions, lambda: _ours(place, "cuda", 1, cases), theirs)


def _beside(place: Place, program: Path) -> Contest:
    """Pinned copies of 64 MiB next to nvbandwidth."""
    size = 1 << 20 if place.short else _LARGE_BYTES
    cases = [
        Case(f"copy {memory}, {format_bytes(size)}", "devcopy", Shot(size, 2, _SAMPLES), (("memory", memory),))
        for memory in _TESTCASES.values()
    ]

    def theirs() -> Measured:
        argv = [str(program), "-t", *_TESTCASES, "-b", str(size >> 20), "-s", "-i", str(_SAMPLES)]
        return {at: size / rate for at, rate in enumerate(rates_of(output_of(argv), list(_TESTCASES)))}

    questions = {
        at: Question(case.title, _NVBANDWIDTH, "hockney", "nvbandwidth", rate_bytes=size, fractional=True)
        for at, case in enumerate(cases)
    }
    return Contest("nvbandwidth", questions, lambda: _ours(place, "cuda", 1, cases), theirs)


def rates_of(lines: Sequence[str], testcases: Sequence[str]) -> list[float]:
    """What nvbandwidth prints as `SUM host_to_device_memcpy_ce 55.63`, in GB/s. Raises BareFailed."""
    found = dict(re.findall(r"^SUM (\w+) ([\d.]+)$", "\n".join(line.strip() for line in lines), re.MULTILINE))
    if missing := [name for name in testcases if not float(found.get(name, 0)) > 0]:
        raise BareFailed(f"nvbandwidth has no line 'SUM {missing[0]} …': {' '.join(lines)[-200:]}")
    return [float(found[name]) for name in testcases]


def write_sheet(place: Place, file: Path) -> None:
    """The machine's data sheet, of a run of the suite gpu. Raises BareFailed."""
    hockney = str(Path(__file__).parents[2] / "hockney")
    store = {"HOCKNEY_STORE": str(place.folder / "results.db")}
    output_of([hockney, "run", *(_SHEET_SHORT if place.short else _SHEET)], store, limit_s=600)
    output_of([hockney, "share", "last", "-o", str(file)], store)
