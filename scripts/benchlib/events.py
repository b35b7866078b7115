"""The part `events`: streams of events over unix against bare programs that have no harness at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scripts.benchlib.contests import Contest, Measured, Question, Series
from scripts.benchlib.place import Place, Shot, measure, middle_ns
from scripts.benchlib.table import Target

from hockney.units import format_bytes

_TARGET = Target("0.95 to 1.05 × bare C", low=0.95, high=1.05)
_QUADRUPLES = 3  # a round


@dataclass(frozen=True)
class _Stream:
    """Events of one pattern; a delay is spent reading the clock, as in the bare program."""

    pattern: str
    bytes: int
    ranks: int
    events: int
    delay_us: int = 0
    buffers: int = 1

    @property
    def options(self) -> list[tuple[str, str]]:
        if self.pattern != "robpull":
            return []
        return [("delay_us", str(self.delay_us)), ("delay_kind", "clock"), ("buffers", str(self.buffers))]


_STREAMS = (
    _Stream("robpull", 1 << 16, 2, 200, delay_us=100, buffers=1),
    _Stream("robpull", 1 << 16, 2, 200, delay_us=100, buffers=2),
    _Stream("pushfarm", 16, 3, 1000),
    _Stream("pairs", 1024, 2, 4000),
    _Stream("pairs", 1024, 4, 4000),
)


def events(place: Place) -> Sequence[Series]:
    """Each stream a contest; ranks of both are pinned alike, to two CPUs in turn."""
    return [_contest(place, stream) for stream in _STREAMS]


def _contest(place: Place, stream: _Stream) -> Contest:
    shot = Shot(stream.bytes, stream.events, 1, stream.events // 4)

    def ours() -> Measured:
        with place.worker("unix", stream.ranks) as session:
            return {stream.bytes: middle_ns(measure(session, stream.pattern, shot, stream.options))}

    def theirs() -> Measured:
        words = (stream.pattern, stream.bytes, stream.events, stream.delay_us, stream.buffers)
        ((each_ns,),) = place.bare("events_bare.c", *words, *place.cpus_of(stream.ranks), columns=1)
        return {stream.bytes: each_ns}

    options = "".join(f" {name}={value}" for name, value in stream.options if name != "delay_kind")
    what = f"{stream.pattern}{options}, {format_bytes(stream.bytes)}, {stream.ranks} ranks on unix: time of an event"
    question = Question(what, _TARGET, "unix", "bare C", fractional=True)
    return Contest(what, {stream.bytes: question}, ours, theirs, _QUADRUPLES)
