"""The limits of an expectations file (TOML), and whether a run's figures keep them.

A limit is met if the whole 95 % interval of a figure keeps it, missed if the whole interval misses it, and else
inconclusive. All measurements of a run count, as in `show`; with a pair class those of the launches in which the ranks
were of that class.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from hockney.analysis.explain.pairs import PAIR_CLASSES, classes_of, pair_of
from hockney.errors import unknown
from hockney.model import NOT_MEASURED, Point
from hockney.results.runs import Run, Series
from hockney.stats import MIXED, Figure, State, figures_of
from hockney.stats.states import is_state, parse_state
from hockney.suites import (
    SOME,
    Fraction,
    Launches,
    Names,
    Options,
    Ranks,
    Seconds,
    Suite,
    SuiteSeries,
    read_sizes,
)
from hockney.suites.toml_models import read_model, said
from hockney.suites.words import as_pairs, check_words, filled
from hockney.units import ordinal, parse_rate_bytes_per_s, parse_time_ns
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

    `latency` is an upper limit of the time, `bandwidth` a lower one of the rate. With `state`, only figures of that
    machine state count. With `pair_class`, the limits are for every pair of ranks of that class. Ranks and sizes that
    are not given are the pattern's own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pattern: str
    transports: Annotated[Names, SOME]
    ranks: Ranks = (2,)
    bytes: Annotated[tuple[int, ...], BeforeValidator(read_sizes), SOME] = (8,)
    options: Options = Field(default_factory=dict)
    state: Annotated[State | None, BeforeValidator(_state)] = None
    pair_class: Annotated[str | None, AfterValidator(_known_class)] = None
    latency_ns: Annotated[float | None, _limit("<=", parse_time_ns, "1.5 us")] = Field(default=None, alias="latency")
    bandwidth_bytes_per_s: Annotated[float | None, _limit(">=", parse_rate_bytes_per_s, "2 GB/s")] = Field(
        default=None, alias="bandwidth"
    )


class Expectations(BaseModel):
    """The whole file. `time`, `precision` and `launches` are for measuring."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    time_s: Seconds = Field(default=30.0, alias="time")
    precision: Fraction = 0.02
    launches: Launches = 1
    expect: Annotated[tuple[Expectation, ...], SOME]

    def suite(self) -> Suite:
        """What to measure for all limits."""
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
            title="Expectations",
            precision=self.precision,
            time_s=self.time_s,
            launches=self.launches,
            series=series,
        )


def load_expectations(path: Path, catalogue: Catalogue) -> Expectations:
    """Raises UsageError with everything that is wrong in the file, each with its path there."""

    def check(limits: Expectations) -> list[tuple[str, str]]:
        return [*check_words(limits, "expect", catalogue), *_check_limits(limits, catalogue)]

    limits = read_model(path, "file of expectations", Expectations, Expectation, check)
    whole = tuple(filled(table, catalogue.pattern(table.pattern)) for table in limits.expect)
    return limits.model_copy(update={"expect": whole})


def _check_limits(limits: Expectations, catalogue: Catalogue) -> Iterable[tuple[str, str]]:
    """Tables without a limit, and keys that do not apply to their pattern."""
    for number, table in enumerate(limits.expect):
        place, given = f"expect[{number}]", table.model_fields_set
        if not given & {"latency_ns", "bandwidth_bytes_per_s"}:
            yield place, 'no limit: give latency = "<= 1.5 us" or bandwidth = ">= 2 GB/s"'
        pattern = catalogue.patterns.get(table.pattern)
        if pattern is None:
            continue
        if table.pair_class and not {"source", "target"} <= {option.name for option in pattern.options}:
            yield f"{place}.pair_class", f"{pattern.name} has no source and target, so it has no pairs to choose"
        if table.bandwidth_bytes_per_s is None:
            continue
        if not pattern.sized:
            fix = 'give latency = "<= 1.5 us" instead'
            yield f"{place}.bandwidth", f"{pattern.name} counts no bytes, so it has no bandwidth: {fix}"
        elif 0 in table.bytes:
            yield place, "messages of 0 B have no bandwidth: leave 0 out of bytes, or give only latency"


class Outcome(enum.Enum):
    """What became of a limit."""

    MET = "met"
    MISSED = "missed"
    INCONCLUSIVE = "inconclusive"


class LimitReason(enum.Enum):
    """Why a limit is inconclusive."""

    NO_SERIES = "no series"  # the run has no such series; `classes`: the pair classes that it has
    NOT_MEASURED = "not measured"  # `message`: why
    FEW_MEASUREMENTS = "few measurements"  # for an interval in any state that counts
    OTHER_STATE = "other state"  # met in other states; missed in one with too few measurements for an interval
    UNCERTAIN = "uncertain"  # the interval contains the limit


@dataclass(frozen=True)
class Judged:
    """One limit at one point.

    `place`: its table of the file. `subject`: what it is for, whatever becomes of it: "pingpong of 8 B on shm, 2 ranks,
    near". `reason` of what is inconclusive, with `run`, `of` (the limit's table), and `message` or `classes`.
    """

    place: str
    subject: str
    what: str  # "latency" or "bandwidth"
    limit: float  # ns, or bytes/s
    outcome: Outcome
    of: Expectation
    point: Point | None = None
    figure: Figure | None = None
    reason: LimitReason | None = None
    message: str = ""
    classes: tuple[str, ...] = ()


def judge(run: Run, expectations: Expectations, catalogue: Catalogue) -> list[Judged]:
    """Every limit at every point that it is for, in the order of the file."""
    judged: list[Judged] = []
    for number, one in enumerate(expectations.expect, start=1):
        place = f"the {ordinal(number)} [[expect]]"
        pattern = catalogue.pattern(one.pattern)
        options = as_pairs(pattern, one.options)
        by_class = _by_class(run, one, options)
        series = by_class.get(one.pair_class, {})
        all_ranks = one.ranks or sorted({found.point.ranks for found in series}) or (0,)
        limits = [("latency", one.latency_ns), ("bandwidth", one.bandwidth_bytes_per_s)]
        for word, ranks, size in itertools.product(one.transports, all_ranks, one.bytes):
            asked = Point(word, one.pattern, ranks, size, options, traits=pattern)
            found = [
                own
                for own in series
                if (own.point.ranks, own.point.bytes) == (ranks, size) and matches(word, own.point.transport)
            ]
            for what, limit in limits:
                if limit is None:
                    continue
                if not found:
                    classes = tuple(sorted(filter(None, by_class))) if not series else ()
                    none = Judged(place, _subject(one, asked), what, limit, Outcome.INCONCLUSIVE, one)
                    judged.append(replace(none, reason=LimitReason.NO_SERIES, classes=classes))
                for own in found:
                    subject = _subject(one, asked, own.point if len(found) > 1 else None)
                    outcome = _judged(one, what, limit, own, series[own])
                    judged.append(Judged(place, subject, what, limit, of=one, point=own.point, **outcome))
    return judged


def _subject(one: Expectation, asked: Point, point: Point | None = None) -> str:
    """`pingpong of 8 B on mpi, 2 ranks, near`, for one of several points ` (mpi@openmpi-4.1.4 source=0 target=1)`."""
    text = str(asked).removesuffix(", 0 ranks")  # where neither the file nor a series says how many
    text = ", ".join(filter(None, (text, one.state.name if one.state else None, one.pair_class)))
    if point is None:
        return text
    more = (f"{name}={value}" for name, value in point.options if (name, value) not in asked.options)
    return f"{text} ({' '.join([point.transport, *more])})"


def _by_class(
    run: Run, one: Expectation, options: tuple[tuple[str, str], ...]
) -> dict[str | None, dict[Series, set[int]]]:
    """The series of the pattern with its options, by the class of their ranks, each with the launches of that class.

    All are under None where no class is asked for, and under "" where it is unknown, because no such job started.
    """
    class_of = classes_of(run)
    found: dict[str | None, dict[Series, set[int]]] = {}
    for series, measurements in run.summaries():
        point, own = series.point, series.point.options
        if one.pair_class is not None:
            own = tuple(option for option in own if option[0] not in ("source", "target"))
        if (point.pattern, own) != (one.pattern, options):
            continue
        ids = {measurement.launch_id for measurement, _ in measurements}
        if not ids or series.status in NOT_MEASURED:  # then it is of each class that it might have been measured in
            kind = (point.transport, point.ranks)
            ids |= {id_ for id_, launch in run.launches.items() if (launch.transport, launch.ranks) == kind}
        for id_ in ids or {-1}:
            name = None if one.pair_class is None else class_of(pair_of(point), id_)
            found.setdefault(name, {}).setdefault(series, set()).add(id_)
    return found


def _judged(one: Expectation, what: str, limit: float, series: Series, launches: Collection[int]) -> dict[str, Any]:
    """Outcome, figure and reason by the worst of the figures of these launches that count."""
    inconclusive: dict[str, Any] = {"outcome": Outcome.INCONCLUSIVE}
    if series.status in NOT_MEASURED:
        message = f"{series.status.value}: {series.reason or 'no reason is known'}"
        return {**inconclusive, "reason": LimitReason.NOT_MEASURED, "message": message}
    pairs = zip(series.measurements, series.states, strict=True)
    counted = [pair for pair in pairs if pair[0].launch_id in launches]
    seen = [
        figure
        for figure in figures_of([measurement for measurement, _ in counted], [state for _, state in counted])
        if figure.state != MIXED.name and (one.state is None or is_state(figure.state, one.state))
    ]
    outcomes = [(_outcome(what, limit, figure), figure) for figure in seen if figure.low_ns is not None]
    if not outcomes:
        return {**inconclusive, "reason": LimitReason.FEW_MEASUREMENTS}
    order = (Outcome.MISSED, Outcome.INCONCLUSIVE, Outcome.MET)
    outcome, figure = min(outcomes, key=lambda pair: order.index(pair[0]))
    over = [thin for thin in seen if thin.low_ns is None and not _keeps(what, limit, thin)]
    if outcome is Outcome.MET and over:
        return {**inconclusive, "figure": over[0], "reason": LimitReason.OTHER_STATE}
    reason = LimitReason.UNCERTAIN if outcome is Outcome.INCONCLUSIVE else None
    return {"outcome": outcome, "figure": figure, "reason": reason}


def _keeps(what: str, limit: float, figure: Figure) -> bool:
    """Whether the value keeps the limit, however uncertain it is."""
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
