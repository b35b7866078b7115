"""The worker's answers as values: one JSON object a line, behind a prefix, checked field by field.

docs/protocol.md describes each. Numbers stay as the worker gave them: integers of ns, one list a rank.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from hockney.worker.errors import ProtocolError

PROTOCOL_VERSION = 1
PREFIX = b"@hk "
_INTEGER_MAX = (1 << 63) - 1
_NUMBER_MAX = 10**18  # ns in 31 years


@dataclass(frozen=True)
class Rank:
    """Where one rank lives. `cpu` is -1 where the system doesn't tell; `cpus_usable` then is 0.

    `machine` is the same for all names of one host, and for all containers that share its CPUs.
    """

    rank: int
    host: str
    machine: str
    pid: int
    cpu: int
    cpus_usable: int


@dataclass(frozen=True)
class HelloAnswer:
    """Who answers. `clock_ns` is what one look at the clock costs; `floor_why` says why there is no floor, if so."""

    worker: str
    family: str
    transport: str
    library: str
    ranks: tuple[Rank, ...]
    clock_ns: float
    floor_why: str | None

    @property
    def has_floor(self) -> bool:
        """Whether `floor` can be asked for."""
        return self.floor_why is None


@dataclass(frozen=True)
class MeasureAnswer:
    """One measurement to one point. `elapsed_ns[rank][sample]` is the time of one batch of `batch` repetitions, in ns.

    CPU and wall times are per rank over all samples, in ns; so are the `counters` of the pattern and the transport, by
    name. `floor_ns` is the floor just before and after, of `floor_kind` "line" or "transport"; `pace_ns` is the pace of
    each rank's CPU just before and after, `solo_ns` that of rank 0 while rank 1 rests. `started_ns` is when rank 0's
    wall time began by CLOCK_MONOTONIC, None where time is virtual. How samples become a figure is
    said by `timed`, `divisor`, `bytes_per_rep` and `messages_per_rep` (docs/metrics.md).
    """

    pattern: str
    transport: str
    size: int
    bytes: int
    batch: int
    samples: int
    warmup: int
    timed: str
    divisor: int
    algorithm: str | None
    bytes_per_rep: int
    messages_per_rep: int
    elapsed_ns: list[list[int]]
    cpu_user_ns: list[int]
    cpu_system_ns: list[int]
    wall_ns: list[int]
    floor_ns: tuple[float, float] | None
    floor_kind: str | None
    pace_ns: tuple[tuple[float, ...], tuple[float, ...]] | None
    solo_ns: tuple[float, float] | None
    started_ns: int | None
    counters: dict[str, tuple[float, ...]]
    verified: bool


@dataclass(frozen=True)
class FloorAnswer:
    """The floor between the CPUs of ranks 0 and 1: half round trips in ns, each a mean over `batch` round trips."""

    batch: int
    half_round_trip_ns: list[float]


class Fields:
    """Reads the fields of one JSON object; each that is missing or of another type is a ProtocolError."""

    def __init__(self, values: object, where: str) -> None:
        if not isinstance(values, dict):
            raise ProtocolError(f"{where} holds something else than an object")
        self._values: Mapping[str, object] = values
        self._where = where

    def _wrong(self, key: str) -> ProtocolError:
        what = "a wrong" if key in self._values else "no"
        return ProtocolError(f"{self._where} holds {what} '{key}'")

    def integer(self, key: str, least: int = -_INTEGER_MAX) -> int:
        """A whole number, `least` or more, that 64 bits hold."""
        value = self._values.get(key)
        if type(value) is not int or not least <= value <= _INTEGER_MAX:
            raise self._wrong(key)
        return value

    def integer_or_none(self, key: str) -> int | None:
        """A whole number or null; null must be said."""
        if key in self._values and self._values[key] is None:
            return None
        return self.integer(key)

    def number(self, key: str) -> float:
        """Any number but infinity and those beyond all reason."""
        return Fields({key: [self._values.get(key)]}, self._where).numbers(key, 1)[0]

    def boolean(self, key: str) -> bool:
        """True or false."""
        value = self._values.get(key)
        if type(value) is not bool:
            raise self._wrong(key)
        return value

    def text(self, key: str) -> str:
        """A string."""
        value = self._values.get(key)
        if type(value) is not str:
            raise self._wrong(key)
        return value

    def text_or_none(self, key: str) -> str | None:
        """A string or null; null must be said."""
        if key in self._values and self._values[key] is None:
            return None
        return self.text(key)

    def items(self, key: str) -> list[object]:
        """A list of anything."""
        value = self._values.get(key)
        if type(value) is not list:
            raise self._wrong(key)
        return value

    def numbers(self, key: str, count: int | None = None) -> list[float]:
        """A list of numbers; `count` of them, if given."""
        values = self.items(key)
        if not set(map(type, values)) <= {int, float} or (count is not None and len(values) != count):
            raise self._wrong(key)
        if not all(abs(value) <= _NUMBER_MAX for value in values):  # type: ignore[arg-type]  # nan is not
            raise self._wrong(key)
        return [float(value) for value in values]  # type: ignore[arg-type]

    def pair_or_none(self, key: str) -> tuple[float, float] | None:
        """Two numbers above 0 or null; null must be said."""
        if key in self._values and self._values[key] is None:
            return None
        first, second = self.numbers(key, 2)
        if min(first, second) <= 0:
            raise self._wrong(key)
        return first, second

    def before_and_after_or_none(self, key: str, ranks: int) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """Two lists, each of so many numbers above 0, or null; null must be said."""
        if key in self._values and self._values[key] is None:
            return None
        lists = self.items(key)
        if len(lists) != 2:
            raise self._wrong(key)
        before, after = (Fields({key: one}, self._where).numbers(key, ranks) for one in lists)
        if min((*before, *after), default=1) <= 0:
            raise self._wrong(key)
        return tuple(before), tuple(after)

    def counters(self, key: str, ranks: int) -> dict[str, tuple[float, ...]]:
        """An object of lists, each of so many numbers."""
        values = self._values.get(key)
        if type(values) is not dict:
            raise self._wrong(key)
        lists = Fields(values, f"{self._where} under '{key}'")
        return {name: tuple(lists.numbers(name, ranks)) for name in values}

    def durations_ns(self, key: str, count: int) -> list[int]:
        """So many whole numbers, none negative."""
        return self._checked_ns(self.items(key), key, count)

    def series_ns(self, key: str, ranks: int, samples: int) -> list[list[int]]:
        """For each rank so many whole numbers, none negative."""
        series = self.items(key)
        if len(series) != ranks:
            raise self._wrong(key)
        return [self._checked_ns(one, key, samples) for one in series]

    def _checked_ns(self, values: object, key: str, count: int) -> list[int]:
        # A set of types and one minimum: a million samples are checked in 20 ms.
        if type(values) is not list or len(values) != count or set(map(type, values)) != {int}:
            raise self._wrong(key)
        if min(values) < 0 or max(values) > _NUMBER_MAX:
            raise self._wrong(key)
        return values


def parse(line: bytes) -> tuple[str, int, Fields]:
    """A line without its prefix -> its kind, the number of the command it answers, its fields.

    Raises ProtocolError if it is no JSON object, or of another version of the protocol.
    """
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        start = line[:80].decode(errors="replace")
        raise ProtocolError(f"an answer of the worker is not JSON: {start!r}") from error
    fields = Fields(values, "an answer of the worker")
    version = fields.integer("v")
    if version != PROTOCOL_VERSION:
        raise ProtocolError(f"the worker speaks version {version} of the protocol, and this is {PROTOCOL_VERSION}")
    kind = fields.text("kind")
    return kind, fields.integer("id"), Fields(values, f"the worker's answer '{kind}'")


def hello(fields: Fields) -> HelloAnswer:
    """Raises ProtocolError, as all of these do."""
    entries = [Fields(item, "a rank in the worker's answer 'hello'") for item in fields.items("ranks")]
    ranks = tuple(
        Rank(
            entry.integer("rank"),
            entry.text("host"),
            entry.text("machine"),
            entry.integer("pid"),
            entry.integer("cpu"),
            entry.integer("cpus_usable"),
        )
        for entry in entries
    )
    if len(ranks) != fields.integer("size"):
        raise ProtocolError("the worker's answer 'hello' holds a wrong 'size'")
    return HelloAnswer(
        worker=fields.text("worker"),
        family=fields.text("family"),
        transport=fields.text("transport"),
        library=fields.text("library"),
        ranks=ranks,
        clock_ns=fields.number("clock_ns"),
        floor_why=fields.text_or_none("floor_why"),
    )


def measure(fields: Fields) -> MeasureAnswer:
    """The answer to `measure`."""
    size = fields.integer("size", 1)
    samples = fields.integer("samples", 1)
    floor_ns = fields.pair_or_none("floor_ns")
    kind = fields.text_or_none("floor_kind")
    if (floor_ns is None) != (kind is None) or kind not in (None, "line", "transport"):
        raise ProtocolError("the worker's answer 'measure' holds a wrong 'floor_kind'")
    timed = fields.text("timed")
    if not (timed in ("root", "mean", "sources", "slowest") or timed in (f"rank {rank}" for rank in range(size))):
        raise ProtocolError("the worker's answer 'measure' holds a wrong 'timed'")
    return MeasureAnswer(
        pattern=fields.text("pattern"),
        transport=fields.text("transport"),
        size=size,
        bytes=fields.integer("bytes"),
        batch=fields.integer("batch", 1),
        samples=samples,
        warmup=fields.integer("warmup"),
        timed=timed,
        divisor=fields.integer("divisor", 1),
        algorithm=fields.text_or_none("algorithm"),
        bytes_per_rep=fields.integer("bytes_per_rep", 0),
        messages_per_rep=fields.integer("messages_per_rep", 0),
        elapsed_ns=fields.series_ns("elapsed_ns", size, samples),
        cpu_user_ns=fields.durations_ns("cpu_user_ns", size),
        cpu_system_ns=fields.durations_ns("cpu_system_ns", size),
        wall_ns=fields.durations_ns("wall_ns", size),
        floor_ns=floor_ns,
        floor_kind=kind,
        pace_ns=fields.before_and_after_or_none("pace_ns", size),
        solo_ns=fields.pair_or_none("solo_ns"),
        started_ns=fields.integer_or_none("started_ns"),
        counters=fields.counters("counters", size),
        verified=fields.boolean("verified"),
    )


def floor(fields: Fields) -> FloorAnswer:
    """The answer to `floor`."""
    return FloorAnswer(fields.integer("batch"), fields.numbers("half_round_trip_ns"))
