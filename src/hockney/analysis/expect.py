"""The limits of an expectations file (TOML), and whether a run's figures keep them.

A limit is met if the whole 95 % interval of a figure keeps it, missed if the whole interval misses it, and else
inconclusive. Contended figures decide nothing unless the limit is for their machine state. With a pair class those
launches count in which the ranks were of that class.
"""

from __future__ import annotations

import enum
import itertools
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

from hockney.analysis.host_series import LATENCY, RATE
from hockney.analysis.pair_classes import PAIR_CLASSES, classes_of, pair_of
from hockney.errors import UsageError, unknown
from hockney.model import NOT_MEASURED, Point
from hockney.results.figures import Figure
from hockney.results.runs import Run, Series
from hockney.results.sheets import find_sheet, medium
from hockney.stats import State
from hockney.stats.states import is_state, parse_state
from hockney.suites import SOME, Fraction, Launches, Names, Options, Ranks, Seconds, Suite, SuiteSeries, read_sizes
from hockney.suites.toml_models import FROM_FILE, Errors, parsed, read_model, validated
from hockney.units import ordinal, parse_rate_bytes_per_s, parse_time_ns
from hockney.worker.catalogue import Catalogue, matches
from hockney.worker.hosts import parse_hosts
from hockney.worker.words import as_pairs, check_words, each_of, filled

_SLACK = 0.1  # beyond a sheet's figure: two machines of one kind are no more alike


def _limit(sign: str, parse: Any, example: str) -> Any:
    def read(value: Any, info: ValidationInfo) -> Any:
        if info.context != FROM_FILE and not isinstance(value, str):
            return value  # of a stored plan
        text = value.strip() if isinstance(value, str) else ""
        if not text.startswith(sign):
            raise ValueError(
                f"'{value}' is not a limit that begins with {sign}: write for example \"{sign} {example}\""
            )
        limit: float = parsed(parse, text.removeprefix(sign).strip())
        return limit

    return BeforeValidator(read)


def _state(value: Any) -> State:
    if not isinstance(value, str):
        raise ValueError(f"'{value}' is not a state of the machine: write for example \"near\"")
    state: State = parsed(parse_state, value)
    return state


def _known_class(value: str) -> str:
    if value not in PAIR_CLASSES:
        raise ValueError(str(unknown("pair class", value, PAIR_CLASSES)))
    return value


def _names(word: str) -> list[str]:
    """The names or patterns of hosts that a word means: `n[1-2]` two, `gpu*` itself, `n1,gpu*` both."""
    if not {*word} & {*"*?"}:
        return [host.name for host in parse_hosts(word)]
    first, *others = re.split(r",(?![^[]*\])", word)  # commas within brackets are theirs
    return [name for each in (first, *others) for name in _names(each)] if others else [first.strip()]


def _host_words(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for word in words for name in parsed(_names, word))


class Expectation(BaseModel):
    """One table of the file: limits for a pattern on some transports, at some sizes.

    `latency` is an upper limit of the time, `bandwidth` a lower one of the rate. Figures of that `state` count; without
    it those of all uncontended ones. With `pair_class`, the limits are for every pair of ranks of that class. Ranks and
    sizes that are not given are the pattern's own. With `hosts`, they are for what each of these sends and receives in
    a health run, or for its latency.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pattern: str
    transports: Annotated[Names, SOME]
    ranks: Ranks = (2,)
    bytes: Annotated[tuple[int, ...], BeforeValidator(read_sizes), SOME] = (8,)
    options: Options = Field(default_factory=dict)
    state: Annotated[State | None, BeforeValidator(_state)] = None
    pair_class: Annotated[str | None, AfterValidator(_known_class)] = None
    hosts: Annotated[Names, AfterValidator(_host_words)] = ()
    latency_ns: Annotated[float | None, _limit("<=", parse_time_ns, "1.5 us")] = Field(default=None, alias="latency")
    bandwidth_bytes_per_s: Annotated[float | None, _limit(">=", parse_rate_bytes_per_s, "2 GB/s")] = Field(
        default=None, alias="bandwidth"
    )

    @property
    def limits(self) -> list[tuple[str, float]]:
        """What is limited, and the limits in ns and bytes/s."""
        both = (("latency", self.latency_ns), ("bandwidth", self.bandwidth_bytes_per_s))
        return [(what, limit) for what, limit in both if limit is not None]

    def place(self, number: int) -> str:
        """Where its limits are."""
        return f"the {ordinal(number)} [[expect]]"


class SheetExpectation(Expectation):
    """A table that is made of a figure of this data sheet."""

    sheet: str

    def place(self, number: int) -> str:
        """Where its limits are."""
        return f"the data sheet {self.sheet}"


class Expectations(BaseModel):
    """The whole file. `time`, `precision` and `launches` are for measuring. `like`: a data sheet with more limits."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    time_s: Seconds = Field(default=30.0, alias="time")
    precision: Fraction = 0.02
    launches: Launches = 1
    like: str | None = None
    expect: tuple[Expectation, ...] = ()

    @model_validator(mode="after")
    def _some(self) -> Expectations:
        if not self.expect and self.like is None:
            raise ValueError('there is no limit: add a table that begins with [[expect]], or like = "server.toml"')
        return self

    def suite(self) -> Suite:
        """The suite that measures all limits."""
        series = tuple(
            SuiteSeries(
                pattern=table.pattern,
                ranks=table.ranks,
                bytes=table.bytes,
                options=table.options,
                transports=table.transports,
                pairs=None if table.pair_class is None else "all",
            )
            for table in self.expect
        )
        return Suite(
            name="expect",
            title="Expectations",
            precision=self.precision,
            time_s=self.time_s,
            launches=self.launches,
            series=series,
        )


def read_expectations(path: Path, check: Callable[[Expectations], Errors] | None = None) -> Expectations:
    """The file as it is. Raises UsageError with all errors of its form, else with all that `check` finds."""
    return read_model(path, "file of expectations", Expectations, check)


def load_expectations(path: Path, catalogue: Catalogue) -> Expectations:
    """The file with defaults. Raises UsageError with everything that is wrong in it, each with its path there."""

    def check(limits: Expectations) -> list[tuple[str, str]]:
        return [*check_words(limits, "expect", catalogue), *_check_limits(limits, catalogue)]

    limits = read_expectations(path, check)
    if limits.like is not None:
        limits = limits.model_copy(update={"expect": (*limits.expect, *_like(limits.like, path.parent, catalogue))})
    named = [word for table in limits.expect for word in table.transports if word.startswith("mpi@")]

    def whole(table: Expectation) -> Expectation:
        """With defaults, and with the libraries that the file names for "mpi", if it names any."""
        words = (each for word in table.transports for each in (named if word == "mpi" and named else [word]))
        table = table.model_copy(update={"transports": tuple(dict.fromkeys(words))})
        return filled(table, catalogue.pattern(table.pattern))

    return limits.model_copy(update={"expect": tuple(map(whole, limits.expect))})


def _like(word: str, folder: Path, catalogue: Catalogue) -> list[Expectation]:
    """A limit for each figure of a data sheet within one host, `_SLACK` beyond the worse end of its interval.

    A library that is not here stands for all of its kind, and of several such the slowest counts. What cannot be
    measured here is left out, as is a rate without a size. Raises UsageError where nothing is left.
    """
    tables: dict[tuple[object, ...], tuple[float, dict[str, Any]]] = {}
    for figure in find_sheet(word, folder).figure:
        pattern, is_rate = catalogue.patterns.get(figure.pattern), figure.value.is_rate
        on = figure.transport if figure.transport in catalogue.transports else medium(figure.transport)
        is_known = pattern is not None and any(matches(on, name) for name in catalogue.transports)
        if pattern is None or not is_known or figure.hosts > 1 or (is_rate and not figure.bytes):
            continue
        time_ns = figure.worst * (1 + _SLACK) if not is_rate else 1 / figure.worst * (1 + _SLACK)
        limit = {"bandwidth": f">= {1e-9 / time_ns:.6f} GB/s"} if is_rate else {"latency": f"<= {time_ns:.3f} ns"}
        sizes = {"bytes": [figure.bytes]} if pattern.sized else {}
        table = {"pattern": pattern.name, "transports": [on], "ranks": [figure.ranks], "options": figure.options}
        key = (*figure.key, on)
        tables[key] = max(tables.get(key, (0.0, {})), (time_ns, table | sizes | limit), key=lambda each: each[0])
    if not tables:
        raise UsageError(f"the data sheet {word} has no figure that can be measured here within one host")
    name = f"the data sheet {word}"
    return [validated({**table, "sheet": word}, name, SheetExpectation) for _, table in tables.values()]


def _check_limits(limits: Expectations, catalogue: Catalogue) -> Iterable[tuple[str, str]]:
    """Tables without a limit, and keys that do not apply to their pattern."""
    for number, table in enumerate(limits.expect):
        key, given = f"expect[{number}]", table.model_fields_set
        if not given & {"latency_ns", "bandwidth_bytes_per_s"}:
            yield key, 'no limit: give latency = "<= 1.5 us" or bandwidth = ">= 2 GB/s"'
        pattern = catalogue.patterns.get(table.pattern)
        if pattern is None:
            continue
        if table.hosts:
            for name in sorted(given & {"ranks", "bytes", "options", "state", "pair_class"}):
                yield f"{key}.{name}", "hockney health chooses it: leave it out"
            if table.pattern not in (RATE, LATENCY):
                yield f"{key}.pattern", f"of hosts write {RATE} (bandwidth) or {LATENCY} (latency)"
        if table.pair_class and not {"source", "target"} <= {option.name for option in pattern.options}:
            yield f"{key}.pair_class", f"{pattern.name} has no source and target, so it has no pairs to choose"
        if table.bandwidth_bytes_per_s is None:
            continue
        if not pattern.sized:
            fix = 'give latency = "<= 1.5 us" instead'
            yield f"{key}.bandwidth", f"{pattern.name} counts no bytes, so it has no bandwidth: {fix}"
        elif 0 in table.bytes:
            yield key, "messages of 0 B have no bandwidth: leave 0 out of bytes, or give only latency"


class Outcome(enum.Enum):
    """The result of checking a limit."""

    MET = "met"
    MISSED = "missed"
    INCONCLUSIVE = "inconclusive"


class LimitReason(enum.Enum):
    """Why a limit is inconclusive."""

    NO_SERIES = "no series"  # the run has no such series; `classes`: the pair classes that it has
    NOT_MEASURED = "not measured"  # `message`: why
    FEW_MEASUREMENTS = "few measurements"  # for an interval in any state that counts
    CONTENDED = "contended"  # `figure` is of a contended state, and no state is asked for
    OTHER_STATE = "other state"  # met in other states; missed in one with too few measurements for an interval
    UNCERTAIN = "uncertain"  # the interval contains the limit


@dataclass(frozen=True)
class Judged:
    """One limit at one point.

    `place`: its table of the file. `subject`: its point in words, with any outcome: "pingpong of 8 B on shm, 2 ranks,
    near". `reason` of an inconclusive one, with `run`, `of` (the limit's table), and `message` or `classes`.
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


def judge_expectations(
    run: Run, expectations: Expectations, catalogue: Catalogue, listed: Sequence[Series] = ()
) -> list[Judged]:
    """Every limit at every point that it is for, in the order of the file; of hosts in these series of a health run."""
    judged: list[Judged] = []
    tables = enumerate(expectations.expect, start=1)
    for number, table, options_of in ((*each, options) for each in tables for options in each_of(each[1].options)):
        if table.hosts:
            judged += judge_hosts(listed, number, table)
            continue
        pattern = catalogue.pattern(table.pattern)
        options = as_pairs(pattern, options_of)
        by_class = _by_class(run, table, options)
        series = by_class.get(table.pair_class, {})
        classes = tuple(sorted(filter(None, by_class))) if not series else ()
        all_ranks = table.ranks or sorted({member.point.ranks for member in series}) or (0,)
        for word, ranks, size in itertools.product(table.transports, all_ranks, table.bytes):
            asked = Point(word, table.pattern, ranks, size, options, traits=pattern)
            members = [
                member
                for member in series
                if (member.point.ranks, member.point.bytes) == (ranks, size) and matches(word, member.point.transport)
            ]
            for what, limit in table.limits:
                none = Judged(
                    *(table.place(number), _subject(table, asked), what, limit),
                    *(Outcome.INCONCLUSIVE, table),
                    reason=LimitReason.NO_SERIES,
                    classes=classes,
                )
                judged += [_judged(none, asked, member, series[member], len(members)) for member in members] or [none]
    return judged


def judge_hosts(listed: Iterable[Series], number: int, table: Expectation) -> list[Judged]:
    """The limits of a table of hosts, the first, second …, at each of them; `listed` are the series of a health run."""
    members = [
        series
        for series in listed
        if series.point.pattern == table.pattern
        and any(matches(word, series.point.transport) for word in table.transports)
        and len(series.point.hosts) == 1
        and any(fnmatchcase(series.point.hosts[0], name) for name in table.hosts)
    ]
    judged: list[Judged] = []
    for what, limit in table.limits:
        place = f"the {ordinal(number)} [[expect]]", f"{table.pattern} of {', '.join(table.hosts)}"
        none = Judged(*place, what, limit, Outcome.INCONCLUSIVE, table, reason=LimitReason.NO_SERIES)
        of_each = [(replace(none, subject=str(each.point)), each) for each in members]
        judged += [_judged(own, each.point, each, each.run.launches, 1) for own, each in of_each] or [none]
    return judged


def _subject(table: Expectation, asked: Point, point: Point | None = None) -> str:
    """`pingpong of 8 B on mpi, 2 ranks, near`, for one of several points ` (mpi@openmpi-4.1.4 source=0 target=1)`."""
    text = ", ".join(filter(None, (str(asked), table.state.name if table.state else None, table.pair_class)))
    if point is None:
        return text
    more = (f"{name}={value}" for name, value in point.options if (name, value) not in asked.options)
    return f"{text} ({' '.join([point.transport, *more])})"


def _by_class(
    run: Run, table: Expectation, options: tuple[tuple[str, str], ...]
) -> dict[str | None, dict[Series, set[int]]]:
    """The series of the pattern with its options, by the class of their ranks, each with the launches of that class.

    All are under None where no class is asked for, and under "" where it is unknown, because no such job started.
    """
    class_of = classes_of(run)
    by_class: dict[str | None, dict[Series, set[int]]] = {}
    for series in run.series:
        point, options_of = series.point, series.point.options
        if table.pair_class is not None:
            options_of = tuple(option for option in options_of if option[0] not in ("source", "target"))
        if (point.pattern, options_of) != (table.pattern, options):
            continue
        ids = {measurement.launch_id for measurement, _ in series.pairs}
        if not ids or series.status in NOT_MEASURED:  # then it is in each class that it might have been measured in
            kind = (point.transport, point.ranks)
            ids |= {id_ for id_, launch in run.launches.items() if (launch.transport, launch.ranks) == kind}
        for id_ in ids or {-1}:
            name = None if table.pair_class is None else class_of(pair_of(point), id_)
            by_class.setdefault(name, {}).setdefault(series, set()).add(id_)
    return by_class


def _judged(limit: Judged, asked: Point, series: Series, launches: Collection[int], among: int) -> Judged:
    """The limit by the worst of the figures of these launches that count."""
    subject = limit.subject if among == 1 else _subject(limit.of, asked, series.point)
    limit = replace(limit, subject=subject, point=series.point)
    if series.status in NOT_MEASURED:
        message = f"{series.status.value}: {series.reason or 'no reason is known'}"
        return replace(limit, reason=LimitReason.NOT_MEASURED, message=message)
    counted = [pair for pair in series.pairs if pair[0].launch_id in launches]
    figures = [
        figure
        for figure in series.run.frame.rows_of(series, counted)
        if not figure.is_mixed and (limit.of.state is None or is_state(figure.state, limit.of.state))
    ]
    known = [figure for figure in figures if figure.has_interval]
    if limit.of.state is None:
        figures = [figure for figure in figures if not State(figure.state, None).is_contended]
    if not any(figure.has_interval for figure in figures):
        reason = LimitReason.CONTENDED if known else LimitReason.FEW_MEASUREMENTS
        return replace(limit, reason=reason, figure=known[0].read() if known else None)
    excesses = [(_excess(limit, figure), figure) for figure in figures]
    missed = [figure for (low, _), figure in excesses if low > 1]
    unsure = [figure for (low, high), figure in excesses if low <= 1 < high]
    if missed:
        return replace(limit, outcome=Outcome.MISSED, figure=missed[0].read(), reason=None)
    if unsure:
        reason = LimitReason.UNCERTAIN if unsure[0].has_interval else LimitReason.OTHER_STATE
        return replace(limit, figure=unsure[0].read(), reason=reason)
    met = next(figure for figure in figures if figure.has_interval)
    return replace(limit, outcome=Outcome.MET, figure=met.read(), reason=None)


def _excess(limit: Judged, figure: Figure) -> tuple[float, float]:
    """How far a figure exceeds its limit at least and at most: up to 1 keeps it. From 0 without an interval."""
    limit_ns = limit.limit if limit.what == "latency" else 1e9 * figure.payload_bytes / limit.limit
    low_ns = figure.time.low if figure.has_interval else 0.0
    return low_ns / limit_ns if limit_ns else math.inf, figure.time.high / limit_ns if limit_ns else math.inf
