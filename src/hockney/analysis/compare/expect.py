"""What is expected of a machine: thresholds in a TOML file, and whether a run's figures keep them.

A threshold is kept if the whole 95 % interval of a figure keeps it, missed if the whole interval misses it, and else
inconclusive: a value that lies beside its limit by less than it is known is no answer. All measurements of a run
count, in a run that was measured for it as in a stored one: what `show` says of it is what is judged. With a pair
class only those of the launches count in which the ranks were of that class; `show` does not divide them.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from hockney.analysis.explain.pairs import PAIR_CLASSES, classes_of, pair_of
from hockney.errors import UsageError, unknown
from hockney.model import NOT_MEASURED, Point
from hockney.results.runs import Run, Series
from hockney.stats import MIXED, Figure, State, figures_of
from hockney.stats.states import is_state, parse_state
from hockney.suites import Fraction, Launches, Names, Options, Ranks, Seconds, Sizes, Suite, read_sizes
from hockney.suites import Series as SuiteSeries
from hockney.suites.toml_models import read_model, said, some, well_formed
from hockney.suites.words import as_pairs, check_words, filled
from hockney.units import counted, format_bytes, ordinal, parse_rate_bytes_per_s, parse_time_ns
from hockney.worker.catalogue import Catalogue, matches


def _limit(sign: str, parse: Any, example: str) -> Any:
    def read(value: Any) -> float:
        text = value.strip() if isinstance(value, str) else ""
        if not text.startswith(sign):
            raise ValueError(
                f"'{value}' is not a limit that begins with {sign}: write for example \"{sign} {example}\""
            )
        limit: float = said(parse, text.removeprefix(sign).strip())
        return limit

    return BeforeValidator(read)


def _state(value: Any) -> State:
    if not isinstance(value, str):
        raise ValueError(f"'{value}' is not a state of the machine: write for example \"near\"")
    found: State = said(parse_state, value)
    return found


def _known_class(value: str) -> str:
    if value not in PAIR_CLASSES:
        raise ValueError(str(unknown("pair class", value, PAIR_CLASSES)))
    return value


class Expectation(BaseModel):
    """One table of the file: limits for a pattern on some transports, at some sizes.

    `latency` is an upper limit of the pattern's time, `bandwidth` a lower one of its rate. With `state`, figures of
    other states of the machine don't count; else each does. With `pair_class` the limits are for every pair of ranks
    of that class, as placed, and for no other; of a pattern between two ranks that are chosen. Ranks and sizes that
    are not given are the pattern's own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pattern: str
    transports: Annotated[Names, AfterValidator(some)]
    ranks: Ranks = (2,)
    bytes: Annotated[tuple[int, ...], BeforeValidator(read_sizes), AfterValidator(some)] = (8,)
    options: Options = Field(default_factory=dict)
    state: Annotated[State | None, BeforeValidator(_state)] = None
    pair_class: Annotated[str | None, AfterValidator(_known_class)] = None
    latency_ns: Annotated[float | None, _limit("<=", parse_time_ns, "1.5 us")] = Field(default=None, alias="latency")
    bandwidth_bytes_per_s: Annotated[float | None, _limit(">=", parse_rate_bytes_per_s, "2 GB/s")] = Field(
        default=None, alias="bandwidth"
    )


class Expectations(BaseModel):
    """The whole file. `time`, `precision` and `launches` say how a fresh measurement is made."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    time_s: Seconds = Field(default=30.0, alias="time")
    precision: Fraction = 0.02
    launches: Launches = 1
    expect: Annotated[tuple[Expectation, ...], AfterValidator(some)]

    def suite(self) -> Suite:
        """What to measure, so that every limit can be looked at."""
        series = tuple(
            SuiteSeries(
                pattern=one.pattern,
                ranks=one.ranks,
                bytes=one.bytes,
                options=one.options,
                transports=one.transports,
                pairs=None if one.pair_class is None else "all",
            )
            for one in self.expect
        )
        return Suite(
            name="expect",
            title="What is expected",
            precision=self.precision,
            time_s=self.time_s,
            launches=self.launches,
            series=series,
        )


def load_expectations(path: Path, catalogue: Catalogue) -> Expectations:
    """Raises UsageError: a file that can't be read, or all that is wrong in it, each with its path in the file."""

    def check(content: dict[str, Any]) -> list[tuple[str, str]]:
        if "series" in content and "expect" not in content:
            raise UsageError(
                f"{path} is a suite, which says what to measure, not what is expected: a file of expectations has "
                '[[expect]], and below it pattern = "pingpong", transports = "shm", latency = "<= 1.5 us"'
            )
        return [*check_words(content, catalogue, "expect"), *_check_limits(content, catalogue)]

    found = read_model(path, "file of expectations", Expectations, Expectation, check)
    whole = tuple(filled(one, catalogue.pattern(one.pattern)) for one in found.expect)
    return found.model_copy(update={"expect": whole})


def _check_limits(content: dict[str, Any], catalogue: Catalogue) -> Iterable[tuple[str, str]]:
    """Tables without a limit, and keys that say nothing to their pattern; malformed tables are passed by."""
    listed = content.get("expect")
    for number, one in enumerate(listed if isinstance(listed, list) else ()):
        if not isinstance(one, dict):
            continue
        place, name = f"expect[{number}]", one.get("pattern")
        if not one.keys() & {"latency", "bandwidth"}:
            yield place, 'it has no limit: give latency = "<= 1.5 us" or bandwidth = ">= 2 GB/s"'
        if "bandwidth" in one and 0 in well_formed(Sizes, one.get("bytes")):
            yield place, "messages of 0 B have no bandwidth: leave 0 out of bytes, or give latency alone"
        pattern = catalogue.patterns.get(name) if isinstance(name, str) else None
        if pattern is None:
            continue
        if "pair_class" in one and not {"source", "target"} <= {option.name for option in pattern.options}:
            yield f"{place}.pair_class", f"{name} has no source and target, so it has no pairs to choose"
        if "bandwidth" in one and not pattern.sized:
            remedy = 'give latency = "<= 1.5 us" in its place'
            yield f"{place}.bandwidth", f"{name} counts no bytes, so it has no bandwidth: {remedy}"


class Outcome(enum.Enum):
    """What became of a limit."""

    MET = "met"
    MISSED = "missed"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Judged:
    """One limit at one point.

    `place` says which table of the file it is from, `subject` what it is for, whatever became of it: "pingpong of 8 B
    on shm, 2 ranks, near". `reason`, without a figure, says why there is none.
    """

    place: str
    subject: str
    what: str  # "latency" or "bandwidth"
    limit: float  # ns, or bytes/s
    outcome: Outcome
    point: Point | None = None
    figure: Figure | None = None
    reason: str | None = None


def judge(run: Run, expectations: Expectations, catalogue: Catalogue) -> list[Judged]:
    """Every limit at every point that it is for, in the order of the file."""
    judged: list[Judged] = []
    for number, one in enumerate(expectations.expect, start=1):
        place = f"the {ordinal(number)} [[expect]]"
        classes = _by_class(run, one, catalogue)
        own = classes.get(one.pair_class, {})
        wanted = as_pairs(catalogue.pattern(one.pattern), one.options)
        traits = catalogue.pattern(one.pattern)
        for word in one.transports:
            for ranks in one.ranks or sorted({series.point.ranks for series in own}) or (None,):
                for size in one.bytes:
                    found = [series for series in own if _is_meant(series.point, word, ranks, size)]
                    on_ranks = f", {counted(ranks, 'rank')}" if ranks else ""
                    of = f" of {format_bytes(size)}" if catalogue.pattern(one.pattern).sized else ""
                    lack = f"run {run.id} has no {one.pattern}{of} on {word}{on_ranks}"
                    if one.pair_class is not None:
                        lack += f" between ranks of the class '{one.pair_class}'"
                        seen = ", ".join(sorted(filter(None, classes))) or "none"
                        lack += "" if own else f"; of its classes there are: {seen}"
                    asked = _Asked(place, one, Point(word, one.pattern, ranks or 0, size, wanted, traits=traits))
                    for what, limit in _limits(one):
                        judged += [
                            _judged(asked, what, limit, series, own[series], is_one=len(found) == 1) for series in found
                        ] or [Judged(place, asked.subject, what, limit, Outcome.INCONCLUSIVE, reason=lack)]
    return judged


@dataclass(frozen=True)
class _Asked:
    """One limit's table, and one point of it as the file has it: its transport may be a word for several."""

    place: str
    of: Expectation
    point: Point

    @property
    def subject(self) -> str:
        """`pingpong of 8 B on mpi, 2 ranks, near`."""
        narrower = (self.of.state.name if self.of.state else None, self.of.pair_class)
        point = str(self.point).removesuffix(", 0 ranks")  # where neither the file nor a series says how many
        return ", ".join(filter(None, (point, *narrower)))

    def subject_of(self, point: Point) -> str:
        """The same, of one of several points for which it is: `… (mpi@openmpi-4.1.4 source=0 target=1)`."""
        more = (f"{name}={value}" for name, value in point.options if (name, value) not in self.point.options)
        return f"{self.subject} ({' '.join([point.transport, *more])})"


def _by_class(run: Run, one: Expectation, catalogue: Catalogue) -> dict[str | None, dict[Series, set[int]]]:
    """The series of the pattern with its options, by the class of their ranks, each with the launches of that class.

    All are under None where no class is asked, and under "" where it is not known, because no job of its kind started.
    """
    wanted = as_pairs(catalogue.pattern(one.pattern), one.options)
    class_of = classes_of(run)
    found: dict[str | None, dict[Series, set[int]]] = {}
    for series, measurements in run.summaries():
        point = series.point
        options = point.options
        if one.pair_class is not None:
            options = tuple(option for option in options if option[0] not in ("source", "target"))
        if (point.pattern, options) != (one.pattern, wanted):
            continue
        ids = {measurement.launch_id for measurement, _ in measurements}
        if not ids or series.status in NOT_MEASURED:  # then it is of each class that it might have been measured in
            ids |= _launches_like(point, run)
        for id_ in ids or {-1}:
            name = None if one.pair_class is None else class_of(pair_of(point), id_)
            found.setdefault(name, {}).setdefault(series, set()).add(id_)
    return found


def _launches_like(point: Point, run: Run) -> set[int]:
    kind = (point.transport, point.ranks)
    return {id_ for id_, launch in run.launches.items() if (launch.transport, launch.ranks) == kind}


def _is_meant(point: Point, word: str, ranks: int | None, size: int) -> bool:
    return (point.ranks, point.bytes) == (ranks, size) and matches(word, point.transport)


def _limits(one: Expectation) -> Iterable[tuple[str, float]]:
    for what, limit in (("latency", one.latency_ns), ("bandwidth", one.bandwidth_bytes_per_s)):
        if limit is not None:
            yield what, limit


def _judged(
    asked: _Asked, what: str, limit: float, series: Series, launches: Collection[int], *, is_one: bool
) -> Judged:
    """The worst of the figures of these launches that count decides; among equals the one of the first state."""
    one, place = asked.of, asked.place
    subject = asked.subject if is_one else asked.subject_of(series.point)
    if series.status in NOT_MEASURED:
        reason = f"{series.status.value}: {series.reason or 'no reason is known'}"
        return Judged(place, subject, what, limit, Outcome.INCONCLUSIVE, series.point, reason=reason)
    seen = [
        figure
        for figure in _figures(series, launches)
        if figure.state != MIXED.name and (one.state is None or is_state(figure.state, one.state))
    ]
    figures = [figure for figure in seen if figure.low_ns is not None]
    if not figures:
        where = "any one state" if one.state is None else f"the state {one.state.name}"
        of = "" if one.pair_class is None else f" between ranks of the class '{one.pair_class}'"
        reason = f"there were too few measurements{of} in {where} of the machine for an interval"
        return Judged(place, subject, what, limit, Outcome.INCONCLUSIVE, series.point, reason=reason)
    outcomes = [(_outcome(what, limit, figure), figure) for figure in figures]
    order = (Outcome.MISSED, Outcome.INCONCLUSIVE, Outcome.MET)
    outcome, figure = min(outcomes, key=lambda pair: order.index(pair[0]))
    unsure = _UNSURE if outcome is Outcome.INCONCLUSIVE else None
    over = next((thin for thin in seen if thin.low_ns is None and not _keeps(what, limit, thin)), None)
    if outcome is Outcome.MET and over is not None:
        outcome, figure, unsure = Outcome.INCONCLUSIVE, over, _THIN
    return Judged(place, subject, what, limit, outcome, series.point, figure, unsure)


def _figures(series: Series, launches: Collection[int]) -> list[Figure]:
    pairs = zip(series.measurements, series.states, strict=True)
    counted = [(measurement, state) for measurement, state in pairs if measurement.launch_id in launches]
    return figures_of([measurement for measurement, _ in counted], [state for _, state in counted])


_UNSURE = "its interval holds the limit; one measured longer (`--time`) is narrower"
_THIN = "the limit is kept in other states of the machine, and this one had too few measurements for an interval"


def _keeps(what: str, limit: float, figure: Figure) -> bool:
    """Whether the value does, which nothing says how well it is known."""
    return figure.value_ns <= limit if what == "latency" else (figure.rate_bytes_per_s or 0.0) >= limit


def _outcome(what: str, limit: float, figure: Figure) -> Outcome:
    if what == "latency":
        low, high = figure.low_ns, figure.high_ns
        kept, missed = high is not None and high <= limit, low is not None and low > limit
    else:
        low, high = figure.rate_low_bytes_per_s, figure.rate_high_bytes_per_s
        kept, missed = low is not None and low >= limit, high is not None and high < limit
    return Outcome.MET if kept else Outcome.MISSED if missed else Outcome.INCONCLUSIVE


def points_of(judged: Iterable[Judged], outcomes: Sequence[Outcome]) -> list[Point]:
    """The points with one of these outcomes, each once."""
    return list(dict.fromkeys(one.point for one in judged if one.point is not None and one.outcome in outcomes))
