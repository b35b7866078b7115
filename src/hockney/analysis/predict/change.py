"""Changes of a model: `L=0.5x`, `link.bandwidth=2x`, `o_s=+1us`, `topology.nodes=128`.

A name of `PARAMETERS` means all costs of its kind. Any other key is one of the model's file, where a table of a
list may have its number: `class.all.segment[2].latency`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hockney.errors import UsageError, unknown
from hockney.units import parse_rate_bytes_per_s, parse_time_ns
from hockney.worker.machine_model import Model
from hockney.worker.machine_schema import MachineModel

_COST = ("fixed_ns", "per_byte_ns", "per_packet_ns")
_WAYS = ("link.latency_ns", "topology.turn_ns", "barrier.fixed_ns", "barrier.per_round_ns")
_BUSY = ("transfer", "out", "both", "in", "node", "duplex", "rest")


@dataclass(frozen=True)
class Parameter:
    """All costs of one kind: `parts` of those `of_message` in each segment and `of_stream`, and `others` by their keys.

    `is_rate`: a factor above 1 makes it quicker. `added_to`: which cost of a message a time is added to, and to the
    first of a stream's; None: a factor is all that it takes.
    """

    title: str
    of_message: tuple[str, ...] = ()
    of_stream: tuple[str, ...] = ()
    parts: tuple[str, ...] = _COST
    others: tuple[str, ...] = ()
    is_rate: bool = False
    added_to: str | None = None


PARAMETERS = {
    "L": Parameter("latency", ("latency", "exchange", "handshake", "ack"), ("ack",), _COST, _WAYS, added_to="latency"),
    "o_s": Parameter("overhead of sending", ("send_cpu",), ("write",), added_to="send_cpu"),
    "o_r": Parameter("overhead of receiving", ("recv_cpu", "late"), ("read", "poll"), added_to="recv_cpu"),
    "g": Parameter("gap between messages", _BUSY, ("drain",), _COST[:1], added_to="transfer"),
    "G": Parameter("time per byte", _BUSY, ("drain",), _COST[1:]),
    "bandwidth": Parameter("bandwidth", _BUSY, ("drain",), _COST[1:], ("link.bytes_per_s",), is_rate=True),
    "link.bandwidth": Parameter("bandwidth of links", others=("link.bytes_per_s",), is_rate=True),
    "buffer": Parameter("buffers of switches", others=("switch.buffer_bytes",), is_rate=True),
    "compute": Parameter("computing", others=("cpu.compute_fixed_ns", "cpu.compute_factor")),
}


@dataclass(frozen=True)
class Change:
    """A change of a parameter: one of `factor`, `added_ns` and `value`. `word` is its text on the command line."""

    word: str
    key: str
    factor: float | None = None
    added_ns: float | None = None
    value: Any = None

    @classmethod
    def by(cls, key: str, factor: float) -> Change:
        """`L=0.5x`."""
        return cls(f"{key}={factor:g}x", key, factor=factor)


def parse_change(word: str) -> Change:
    """`L=0.5x`, `o_s=+1us`, `topology.nodes=128`. Raises UsageError."""
    key, _, text = (part.strip() for part in word.partition("="))
    if not key or not text:
        raise UsageError(f"'{word}' is not a change: write NAME=FACTORx or NAME=+TIME, for example L=0.5x or L=+1us")
    if text.endswith("x"):
        factor = float(text[:-1]) if re.fullmatch(r"\d+(\.\d*)?|\.\d+", text[:-1]) else 0.0
        if not 0 < factor <= 1e9 or factor == 1:
            raise UsageError(f"'{word}' needs a factor above 0 other than 1: write for example {key}=0.5x")
        return Change(word, key, factor=factor)
    if text.startswith("-"):
        raise UsageError(f"'{word}' is negative: write a factor below 1, for example {key}=0.5x")
    if text.startswith("+"):
        if key in PARAMETERS and PARAMETERS[key].added_to is None:
            raise UsageError(f"{key} takes a factor, not a time, as '{word}' has it: write for example {key}=2x")
        return Change(word, key, added_ns=parse_time_ns(text[1:]))
    if key in PARAMETERS:
        raise UsageError(f"'{word}' has neither a factor nor a plus: write for example {key}=0.5x or L=+1us")
    return Change(word, key, value=_value(text))


def _value(text: str) -> Any:
    """A time in ns, a rate in bytes/s, or a number, list or text as in a TOML file."""
    for parse in (parse_time_ns, parse_rate_bytes_per_s, json.loads):
        try:
            return parse(text)
        except (UsageError, ValueError):  # noqa: PERF203 - three at most
            continue
    return text


def changed(models: Mapping[str, Model], changes: Sequence[Change]) -> dict[str, Model]:
    """The models with these changes, also named in their sources. Raises UsageError for a change without effect."""
    if not changes:
        return dict(models)
    contents = {name: _copied(model) for name, model in models.items()}
    for change in changes:
        entries = [entry for content in contents.values() for entry in _entries(content, change)]
        if not sum(entry.change(change) for entry in entries):
            known = dict.fromkeys(name for model in models.values() for name in parameters_of(model))
            why = "the model has no such cost" if change.value is None else "that is so already"
            raise UsageError(f"'{change.word}' changes nothing, as {why}: change one of {', '.join(known)}")
    words = " ".join(change.word for change in changes)
    return {
        name: replace(Model.from_content(f"{model.name} with {words}", contents[name], model.variant), name=model.name)
        for name, model in models.items()
    }


def parameters_of(model: Model) -> list[str]:
    """The names of the parameters that a model has numbers above 0 of; that of computing always counts."""
    content = _copied(model)
    entries = {name: _of_parameter(content, parameter) for name, parameter in PARAMETERS.items()}
    return [name for name, of_name in entries.items() if any(entry.table.get(entry.key) for entry in of_name)]


def improvements(models: Iterable[Model]) -> list[Change]:
    """A change for each parameter in a model: costs are halved, rates doubled."""
    # The bandwidth of messages and that of links are tried one by one.
    known = {name for model in models for name in parameters_of(model)} - {"bandwidth"}
    return [Change.by(name, 2.0 if PARAMETERS[name].is_rate else 0.5) for name in PARAMETERS if name in known]


def _copied(model: Model) -> dict[str, Any]:
    """Its content, in which nothing is there twice, so that nothing is changed twice."""
    content: dict[str, Any] = json.loads(json.dumps(model.content))
    return content


# ---- entries in a model's content ------------------------------------------------------------------------------------


@dataclass
class _Entry:
    """A value of a table, and the table whose `source` names its origin."""

    table: dict[str, Any]
    key: str
    sourced: dict[str, Any]
    is_rate: bool = False  # a factor divides it

    def change(self, change: Change) -> bool:
        """Change the value; returns whether it differs now. Raises UsageError for a value that is not a number."""
        before = self.table.get(self.key)
        after = self._after(before, change)
        if after == before:
            return False
        self.table[self.key] = after
        if "source" in self.sourced:
            self.sourced["source"] = f"{self.sourced['source']}; {change.word}".removeprefix("; ")
        return True

    def _after(self, value: Any, change: Change) -> Any:
        if change.value is not None:
            return change.value
        if isinstance(value, Mapping) and value.keys() <= set(_COST):
            if change.added_ns is not None:
                return {**value, "fixed_ns": value.get("fixed_ns", 0.0) + change.added_ns}
            return {part: self._after(each, change) for part, each in value.items()}
        if change.added_ns is not None and value is None:
            return change.added_ns
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"{change.key} is no number that '{change.word}' could change: name a key that is one")
        if change.added_ns is not None:
            return value + change.added_ns
        factor = change.factor or 1.0
        scaled = value / factor if self.is_rate else value * factor
        is_whole = float(scaled).is_integer() or self.key.endswith("_bytes")
        return int(scaled) if isinstance(value, int) and is_whole else scaled


def _entries(content: dict[str, Any], change: Change) -> Iterator[_Entry]:
    """The entries in the content that a change affects. Raises UsageError for an unknown key."""
    parameter = PARAMETERS.get(change.key)
    if parameter is None:
        yield from _of_key(content, change)
    elif change.added_ns is not None and parameter.added_to is not None:
        yield from (_Entry(segment, parameter.added_to, segment) for segment in _segments(content))
        yield from (_Entry(stream, parameter.of_stream[0], stream) for stream in _tables(content, "stream"))
        if parameter.added_to == "latency":
            yield from (_Entry(table, "per_round_ns", table) for table in _tables(content, "barrier"))
    else:
        yield from _of_parameter(content, parameter)


def _of_parameter(content: dict[str, Any], parameter: Parameter) -> Iterator[_Entry]:
    costs = [(segment, name) for segment in _segments(content) for name in parameter.of_message]
    costs += [(stream, name) for stream in _tables(content, "stream") for name in parameter.of_stream]
    for table, name in costs:
        cost = table.get(name)
        if isinstance(cost, dict):
            yield from (_Entry(cost, part, table, parameter.is_rate) for part in parameter.parts if part in cost)
        elif cost is not None and "fixed_ns" in parameter.parts:
            yield _Entry(table, name, table, parameter.is_rate)
    if "cpu.compute_factor" in parameter.others:
        content.setdefault("cpu", {"source": ""}).setdefault("compute_factor", 1.0)
    for key in parameter.others:
        above, _, name = key.partition(".")
        yield from (_Entry(table, name, table) for table in _tables(content, above) if name in table)


def _segments(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The segments of all classes of pairs."""
    for kind in ("class", "put", "get"):
        for pair_class in content.get(kind, {}).values():
            yield from pair_class["segment"]


def _tables(content: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The tables of that name: one, or a list of them."""
    value = content.get(name)
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]


def _of_key(content: dict[str, Any], change: Change) -> Iterator[_Entry]:
    """The values that a key of the file means: one of each table of a list."""
    *path, last = change.key.split(".")
    top = {field.alias or name for name, field in MachineModel.model_fields.items()}
    if change.value is not None and len(path) == 1 and path[0] in top:
        content.setdefault(path[0], {"source": ""})
    tables, before = [(content, content)], ""  # each with the one whose source counts
    for word in path:
        name, number = re.fullmatch(r"(.*?)(?:\[(\d{1,6})\])?", word, re.DOTALL).groups()  # type: ignore[union-attr]
        these = slice(max(0, int(number) - 1), int(number)) if number else slice(None)
        within = [
            (inner, inner if "source" in inner else source)
            for table, source in tables
            for inner in _tables(table, name)[these]
        ]
        if not within:
            raise _unknown_key(word, before, tables)
        tables, before = within, f"{before}.{word}".lstrip(".")
    is_new = change.factor is None and bool(before or last in top)  # whether the model takes it is seen by its checks
    if not is_new and not any(last in table for table, _ in tables):
        raise _unknown_key(last, before, tables)
    yield from (_Entry(table, last, source) for table, source in tables if is_new or last in table)


def _unknown_key(name: str, before: str, tables: Sequence[tuple[Mapping[str, Any], object]]) -> UsageError:
    keys = dict.fromkeys(key for table, _ in tables for key in table if key != "source")
    if before:
        return unknown(f"key of {before}", name, keys)
    for key, parameter in PARAMETERS.items():
        if parameter.title.startswith(name.lower()):
            return UsageError(f"unknown parameter '{name}': did you mean '{key}' ({parameter.title})?")
    changeable = [key for key in keys if not any(isinstance(table.get(key), str) for table, _ in tables)]
    return unknown("parameter", name, [*PARAMETERS, *changeable])
