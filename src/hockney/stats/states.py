"""Machine states: the speed of a job's CPUs during each measurement (docs/methods.md has the reasons).

A state is a level, quiet or contended: "near" or "far, contended". The floor gives the level: half a round trip of one
cache line between ranks 0 and 1, before and after each measurement (floors.py). The pace of each rank's CPU, the time
of a fixed loop, gives the contention of any rank (contention.py). A measurement during which the level changed is
"mixed"; without a floor it is "unknown". Two levels of one name carry their floors, "far 184 ns".

Levels are relative to the run. To compare runs, classify their measurements together.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from hockney.errors import UsageError, unknown
from hockney.model import MachineProbe
from hockney.stats.contention import CONTENDED, is_contended, pace_limits
from hockney.stats.floors import GAP, LEVELS, REFERENCE, level_word, levels_of
from hockney.units import format_ns, parse_time_ns


@dataclass(frozen=True)
class State:
    """A machine state; `floor_ns` is the median floor of its measurements, None for "mixed" and "unknown"."""

    name: str
    floor_ns: float | None

    @property
    def level(self) -> str:
        """The name without contention."""
        return self.name.partition(", ")[0]

    @property
    def is_reference(self) -> bool:
        """Whether its floor is half a round trip between hosts, not one of a cache line."""
        return self.level.partition(" ")[0] == REFERENCE

    @property
    def is_contended(self) -> bool:
        """Whether another program or VM shared a core that a rank used."""
        return self.name.endswith(f", {CONTENDED}")


MIXED = State("mixed", None)
UNKNOWN = State("unknown", None)
_Level = tuple[str | None, str]  # the reference of its floor, and its name
_ORDER = (*LEVELS, MIXED.name, UNKNOWN.name)


def place(name: str, floor_ns: float | None = None) -> tuple[int, float, bool, float]:
    """A sort key for states: from the nearest level to the farthest, then by contention; mixed and unknown last.

    `floor_ns` decides among levels of one name that do not carry a floor, as transports between hosts have.
    """
    state = State(name, None)
    level, _, floor = state.level.partition(" ")
    number = _ORDER.index(level) if level in _ORDER else len(_ORDER)
    return number, parse_time_ns(floor) if floor else 0.0, state.is_contended, floor_ns or 0.0


def state_name(text: str) -> str:
    """A name as hockney writes it: `near,contended` -> `near, contended`."""
    return ", ".join(part.strip() for part in text.split(","))


def parse_state(text: str) -> State:
    """The state of a name such as "far, contended", whose level carries no floor. Raises UsageError."""
    state = State(state_name(text), None)
    if state == MIXED:
        raise UsageError("the state mixed has no figures: the machine changed during its measurements")
    if state.level not in (*LEVELS, UNKNOWN.name):
        raise unknown("state", state.level, (*LEVELS, UNKNOWN.name))
    if state.name != state.level and not state.is_contended:
        raise unknown("addition to a state", state.name.partition(", ")[2], [CONTENDED])
    return state


def is_state(name: str, wanted: State) -> bool:
    """Whether a state has this name, with or without the floor of its level."""
    state = State(name, None)
    return state.is_contended == wanted.is_contended and state.level.partition(" ")[0] == wanted.level


def classify(probes: Sequence[MachineProbe]) -> list[State]:
    """The state of each measurement, in order. Levels depend on each other, so one call gets all measurements."""
    levels: list[str | None] = [None] * len(probes)
    for reference in {probe.reference for probe in probes}:
        numbers = [number for number, probe in enumerate(probes) if probe.reference == reference]
        floors = [probes[number].floor_ns for number in numbers]
        for number, level in zip(numbers, levels_of(floors, reference), strict=True):
            levels[number] = level
    limits = pace_limits(probes)
    states = [UNKNOWN] * len(probes)
    members: dict[tuple[str | None, str], list[int]] = {}
    for number, (probe, level) in enumerate(zip(probes, levels, strict=True)):
        if level is not None:
            is_quiet = level == MIXED.name or not is_contended(probe, limits)
            members.setdefault((probe.reference, level if is_quiet else f"{level}, {CONTENDED}"), []).append(number)
    for (_, name), numbers in members.items():
        floors_ns = (floor_ns for number in numbers for floor_ns in probes[number].floor_ns or ())
        state = MIXED if name == MIXED.name else State(name, statistics.median(floors_ns))
        for number in numbers:
            states[number] = state
    return states


def classify_both(base: Sequence[MachineProbe], new: Sequence[MachineProbe]) -> tuple[list[State], list[State]]:
    """The states of the measurements of two runs, with the same names in both.

    A measurement between two levels may join them if runs have few. So if the floors of the two runs within a level
    differ by GAP, each run gets a separate level, named by its floor.
    """
    probes, sides = [*base, *new], [0] * len(base) + [1] * len(new)
    states = classify(probes)
    floors: tuple[dict[_Level, list[float]], dict[_Level, list[float]]] = {}, {}
    for side, state, probe in zip(sides, states, probes, strict=True):
        if state.floor_ns is not None:
            floors[side].setdefault((probe.reference, state.level), []).extend(probe.floor_ns or ())
    medians_ns = [{key: statistics.median(floors_ns) for key, floors_ns in of_run.items()} for of_run in floors]
    separate = {
        key
        for key in floors[0].keys() & floors[1].keys()
        if key[1] != "time-sliced" and not 1 / GAP < medians_ns[0][key] / medians_ns[1][key] < GAP
    }
    for number, (side, state, probe) in enumerate(zip(sides, states, probes, strict=True)):
        key = probe.reference, state.level
        if key in separate:
            floor_ns = medians_ns[side][key]
            level = f"{level_word(floor_ns, probe.reference)} {format_ns(floor_ns)}"
            states[number] = State(f"{level}, {CONTENDED}" if state.is_contended else level, floor_ns)
    return states[: len(base)], states[len(base) :]
