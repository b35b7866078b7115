"""Traits of the patterns and transports of a stored run: from the run itself, or from traits.toml."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from hockney.machine.files import read_toml
from hockney.model import Limit, PatternTraits, TransportTraits, split_placed


def traits_json(patterns: Iterable[Any], transports: Iterable[Any]) -> dict[str, Any]:
    """The `traits` of a run's facts: those of each pattern and transport, by name."""
    return {
        "patterns": {pattern.name: _plain(pattern, PatternTraits) for pattern in patterns},
        "transports": {transport.name: _plain(transport, TransportTraits) for transport in transports},
    }


def pattern_traits(facts: Mapping[str, Any], name: str) -> PatternTraits:
    """The traits of a pattern in the run with these facts."""
    stored = ((facts.get("traits") or {}).get("patterns") or {}).get(name) or _unstored()["patterns"].get(name, {})
    return PatternTraits(**_fields_of(stored, PatternTraits))


def transport_traits(facts: Mapping[str, Any], name: str) -> TransportTraits:
    """The traits of a transport in the run with these facts."""
    stored = ((facts.get("traits") or {}).get("transports") or {}).get(name)
    if not stored:
        stored = _unstored()["transports"].get(re.sub("@[^:]*", "", split_placed(name)[0]), {})
    known = _fields_of(stored, TransportTraits)
    known |= {"limits": tuple(Limit(**_fields_of(limit, Limit)) for limit in known.get("limits", ()))}
    return TransportTraits(**known | ({"caps": frozenset(known["caps"])} if "caps" in known else {}))


@functools.cache
def _unstored() -> dict[str, Any]:
    """The traits of imports, which store none of transports, and of the archive."""
    return read_toml(Path(__file__).with_name("traits.toml"))


def _plain(value: Any, kind: type) -> dict[str, Any]:
    plain: dict[str, Any] = {field.name: getattr(value, field.name) for field in fields(kind)}
    if "caps" in plain:
        plain |= {"caps": sorted(plain["caps"]), "limits": [_plain(limit, Limit) for limit in plain["limits"]]}
    return plain


def _fields_of(stored: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """The fields that this version knows: a later one may store more."""
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in stored.items() if name in names}
