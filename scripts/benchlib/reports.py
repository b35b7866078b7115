"""The part `reports`: the suites of the classic reports against plain C loops, where two or three ranks do.

Both sides give the fastest of equal batches, which a busy machine disturbs least; launches alternate.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scripts.benchlib.contests import Absent, Contest, Measured, Question, Series
from scripts.benchlib.native import loads
from scripts.benchlib.place import Place, Shot, measure
from scripts.benchlib.table import INCONCLUSIVE, NO, UNKNOWN, YES, Row, Target

from hockney import archive
from hockney.stats import Interval, median
from hockney.units import counted, format_bytes
from hockney.worker.answers import MeasureAnswer

_TARGET = Target("0.95 to 1.05 × plain C", low=0.95, high=1.05)
_SAMPLES = 25
_WRITES = 256  # of a repetition of `stream`
_COLUMNS = {"root": 0, "sources": 0, "mean": 1, "slowest": 2}  # of reports_bare.c
_PVM_WAYS = ("psend", "inplace", "raw", "default")
_PARAGON = (0, 8, 1024, 65536, 1 << 20, 4 << 20)


class Case(NamedTuple):
    """A benchmark of a suite over one transport. `plain` is its loop in reports_bare.c, `extra` the number it takes."""

    suite: str
    title: str
    transport: str
    pattern: str
    sizes: tuple[int, ...]
    plain: str
    extra: int = 0
    options: tuple[tuple[str, str], ...] = ()
    ranks: int = 2

    @property
    def name(self) -> str:
        sizes = format_bytes(self.sizes[0]) + (f" to {format_bytes(self.sizes[-1])}" if self.sizes[1:] else "")
        return f"{self.suite}: {self.title}, {sizes}, {self.ranks} ranks on {self.transport}"

    def shot(self, size: int) -> Shot:
        """Batches of half a millisecond and more: short beside the time slices of other programs."""
        each_ns, bytes_per_ns = (60.0, 20.0) if self.transport.startswith("shm") else (2e4, 1.0)
        delay_ns = 1e3 * self.extra if self.pattern.startswith("rob") else 0.0
        batch = int(5e5 / (each_ns + delay_ns + size / bytes_per_ns))
        least = 1 if self.pattern == "stream" or self.transport.startswith("pvm") else 4
        return Shot(size, least if self.pattern == "stream" else max(least, batch), _SAMPLES)


def _cases() -> Iterable[Case]:
    atlas, scali, ancor = (4, 64, 256, 1024), (0, 32, 1024, 65536, 1 << 20, 4 << 20), (1, 256, 4096, 65500)
    words = (8, 16, 64, 176, 1024, 8192, 65536)
    yield Case("atlas", "Com-1.1 one-way", "shm", "oneway", atlas, "oneway")
    yield Case("atlas", "Com-1.1 one-way", "shm:sync", "oneway", atlas, "oneway")
    yield Case("atlas", "Com-1.2 two-way", "shm", "twoway", atlas, "twoway")
    yield Case("atlas", "Com-1.3 all-to-all", "shm", "alltoall", atlas, "ring", options=(("algorithm", "flat"),))
    yield Case("atlas", "Com-1.7 funnel", "unix", "funnel", atlas, "robpush", ranks=3)
    yield Case("atlas", "Com-2.1 push farm", "unix", "pushfarm", (16,), "pushfarm", ranks=3)
    yield Case("atlas", "Com-2.2 pull farm", "unix", "pullfarm", (16,), "pullfarm", ranks=3)
    for (title, pattern, sizes), delay_us in itertools.product(
        (("Com-3.1 active ROBs", "robpush", atlas[1:]), ("Com-3.2 passive ROBs", "robpull", atlas[3:])),
        (0, 100, 400, 1600),
    ):
        options = (("delay_us", str(delay_us)), ("delay_kind", "clock"), ("buffers", "2"))
        yield Case("atlas", f"{title}, {delay_us} us", "unix", pattern, sizes, pattern, delay_us, options, ranks=3)
    yield Case("scabench", "one-way", "shm", "oneway", scali, "oneway")
    yield Case("scabench", "two-way", "shm", "twoway", scali, "twoway")
    yield Case("scabench", "ping-pong", "shm", "pingpong", scali, "pingpong")
    yield Case("scabench", "bisection", "shm", "bisection", scali[:-1], "pingpong")
    yield Case("scabench", "barrier", "shm", "barrier", (0,), "barrier")
    yield Case("scabench", "all-to-all", "shm", "alltoall", scali[:-2], "ring")
    yield Case("t3d", "ping_pong", "shm", "putpong", words[:1], "putpong")
    yield Case("t3d", "single_pairs", "shm", "put", words, "put")
    yield Case("t3d", "single_pairs, seen", "shm", "put", words[:1], "putseen", 2, (("quiet", "seen"),))
    yield Case("t3d", "multiple_pairs", "shm", "putring", words, "put", 1)
    yield Case("t3d", "multiple_pairs, seen", "shm", "putring", words[:1], "putseen", 3, (("quiet", "seen"),))
    yield Case("t3d", "messages: ping_pong", "shm", "pingpong", words[:1], "pingpong")
    yield Case("t3d", "messages: single_pairs", "shm", "oneway", words, "oneway")
    yield Case("t3d", "messages: multiple_pairs", "shm", "ring", words, "ring")
    yield Case("t3d", "remote load", "shm", "get", (8, 64, 4096), "get")
    for transport, source, write, read in itertools.product(("unix", "tcp", "pipe"), (0, 1), (0, 1), (0, 1)):
        if source == 0 or transport == "unix":
            kinds = [("nonblocking" if one else "blocking") for one in (write, read)]
            options = (("write", kinds[0]), ("read", kinds[1]), ("source", str(source)))
            title = f"write {kinds[0]}, read {kinds[1]}, from rank {source}"
            yield Case("ancor", title, transport, "stream", ancor, "stream", write + 2 * read + 4 * source, options)
    yield Case("paragon", "native", "tcp", "pingpong", _PARAGON, "pingpong")
    yield Case("paragon", "native, posted", "tcp", "pingpong", (65536,), "polled", -1, (("receive", "posted"),))
    yield Case("paragon", "native, probed", "tcp", "pingpong", (65536,), "polled", 0, (("receive", "probe"),))


@dataclass
class Reports(Contest):
    """Cases that share their launches; a row for each, over its sizes."""

    cases: Sequence[tuple[Case, Sequence[int]]] = ()  # with the keys of its points

    def rows(self) -> list[Row]:
        return [self._row(case, [self._ratio(key) for key in keys]) for case, keys in self.cases]

    def within(self) -> list[bool]:
        """Of each point with a figure, whether its ratio is within the target."""
        ratios = (self._ratio(key) for _, keys in self.cases for key in keys)
        return [_TARGET.judge_alone(ratio.value) == YES for ratio in ratios if ratio is not None]

    def _ratio(self, key: int) -> Interval | None:
        taken = self.quadruples.get(key, [])
        return median([one.ratio for one in taken]) if taken else None

    def _row(self, case: Case, ratios: Sequence[Interval | None]) -> Row:
        known = [ratio for ratio in ratios if ratio is not None]
        if not known:
            return Row(case.name, _TARGET.text, "nothing was measured", UNKNOWN, INCONCLUSIVE)
        values = [ratio.value for ratio in known]
        verdicts = {_TARGET.judge(ratio) for ratio in known}
        met = next((word for word in (NO, INCONCLUSIVE) if word in verdicts), YES)
        beyond = [
            f"{format_bytes(size)} {ratio.value:.2f}"
            for size, ratio in zip(case.sizes, ratios, strict=True)
            if ratio is not None and _TARGET.judge_alone(ratio.value) != YES
        ]
        measured = f"{median(values).value:.3f}" + (f"; beyond it: {', '.join(beyond)}" if beyond else "")
        return Row(case.name, _TARGET.text, measured, counted(known[0].n, "quadruple"), met)


def _contest(place: Place, cases: Sequence[Case]) -> Reports:
    """Of cases with the same transport and ranks."""
    first = cases[0]
    points = [(case, case.shot(size)) for case in cases for size in case.sizes]
    columns = [_COLUMNS[place.catalogue.patterns[case.pattern].timed] for case, _ in points]
    cpus = ",".join(map(str, place.cpus_of(first.ranks)))

    def ours() -> Measured:
        with place.worker(first.transport, first.ranks) as session:
            answers = [measure(session, case.pattern, shot, case.options) for case, shot in points]
        return dict(enumerate(map(_least_ns, answers)))

    def theirs() -> Measured:
        words = [
            f"{case.plain}:{shot.bytes}:{shot.batch * (_WRITES if case.pattern == 'stream' else 1)}:{shot.samples}"
            f":{case.extra}"
            for case, shot in points
        ]
        times = place.bare("reports_bare.c", first.transport, cpus, *words, columns=3)
        return {key: time[column] for key, (time, column) in enumerate(zip(times, columns, strict=True))}

    def theirs_on_pvm() -> Measured:
        way, _, route = first.transport.partition(":")[2].partition("-")
        words = (
            way,
            route or "direct",
            cpus,
            points[0][1].samples,
            *(f"{shot.bytes}:{shot.batch}" for _, shot in points),
        )
        library = place.catalogue.transports[first.transport].library
        (folder := place.folder / "pvm").mkdir(exist_ok=True)
        variables = {**place.environment(first.transport), "PVM_TMP": str(folder)}
        recipe = library.recipe if library is not None else None
        times = place.bare("pvm_bare.c", *words, columns=1, recipe=recipe, environment=variables)
        return {key: time for key, (time,) in enumerate(times)}

    keys = iter(range(len(points)))
    question = Question("", _TARGET, "hockney", "plain C", fractional=True)
    return Reports(
        f"{first.suite} on {first.transport}, {first.ranks} ranks",
        dict.fromkeys(range(len(points)), question),
        ours,
        theirs_on_pvm if first.transport.startswith("pvm") else theirs,
        cases=[(case, [next(keys) for _ in case.sizes]) for case in cases],
    )


def _least_ns(answer: MeasureAnswer) -> float:
    """As reports_bare.c takes it of its own times."""
    batches = zip(*answer.elapsed_ns, strict=True)
    if answer.timed == "slowest":
        times = [float(max(batch)) for batch in batches]
    elif answer.timed == "mean":
        times = [sum(batch) / answer.size for batch in batches]
    else:
        times = [float(batch[0]) for batch in batches]
    return min(times) / (answer.batch * answer.divisor)


@dataclass
class Summary:
    """How many points are within the target, and how many rows of each report are covered."""

    contests: Sequence[Reports]
    has_pvm: bool
    name: str = "reports"

    def measure(self, number: int) -> None:
        return

    def rows(self) -> list[Row]:
        within = [one for contest in self.contests for one in contest.within()]
        patterns = {case.pattern for contest in self.contests for case, _ in contest.cases} | {"memload"}
        shown = f"{sum(within)} of {len(within)}"
        rows = [Row("reports: points within 5 %", "all", shown, UNKNOWN, YES if all(within) else NO)]
        for report in archive.reports():
            figures = archive.published(report)
            why = Counter(_why_not(figure, patterns, has_pvm=self.has_pvm) for figure in figures)
            left_out = [f"{number} {reason}" for reason, number in why.items() if reason]
            shown = f"{why['']} of {len(figures)}" + (f"; left out: {', '.join(left_out)}" if left_out else "")
            rows.append(Row(f"{report}: published rows whose measurement is compared", "–", shown, UNKNOWN, UNKNOWN))
        return rows


def _why_not(figure: archive.Published, patterns: Iterable[str], *, has_pvm: bool) -> str:
    """Why the measurement behind a published figure is not compared; empty if it is."""
    spec = figure.spec
    if spec is None:
        return "with no measurement"
    if spec.ranks is not None and spec.ranks > 3:
        return "of more than three ranks"
    if not set(spec.patterns) & set(patterns):
        return "of an application, NPB FT"
    if any(name.startswith("CPU") for name in figure.quantities):
        return "of CPU time"
    if set(figure.quantities) & {"base", "each hop", "each change of direction"}:
        return "of ranks at several distances"
    return "of PVM, which is not here" if spec.on not in ("", "native") and not has_pvm else ""


def reports(place: Place) -> Sequence[Series]:
    """The part `reports`."""
    pvm = next((name for name in place.catalogue.transports if name.startswith("pvm@") and ":" not in name), None)
    layers = [f"{pvm}:{way}{end}" for end in ("", "-daemon") for way in _PVM_WAYS if pvm is not None]
    of_pvm = [Case("paragon", "PVM", name, "pingpong", _PARAGON, "") for name in layers]
    cases = sorted([*_cases(), *of_pvm], key=_shared)
    contests = [_contest(place, list(group)) for _, group in itertools.groupby(cases, _shared)]
    local = [one for access in ("chase", "read-ahead", "stream") for one in loads(place, access)]
    absent = [] if layers else [Absent("pvm", "paragon: the layers of PVM", _TARGET, "no PVM is here")]
    return [*contests, *absent, *local, Summary(contests, has_pvm=bool(layers))]


def _shared(case: Case) -> tuple[str, str, int]:
    return case.suite, case.transport, case.ranks
