"""Traits of the patterns and transports of a stored run: from the run itself, or from a table for earlier runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from hockney.model import Limit, PatternTraits, TransportTraits, split_placed


def traits_json(patterns: Iterable[Any], transports: Iterable[Any]) -> dict[str, Any]:
    """The `traits` of a run's facts: those of each pattern and transport, by name."""
    return {
        "patterns": {pattern.name: _plain(pattern, PatternTraits) for pattern in patterns},
        "transports": {transport.name: _plain(transport, TransportTraits) for transport in transports},
    }


def pattern_traits(facts: Mapping[str, Any], name: str) -> PatternTraits:
    """The traits of a pattern in the run with these facts."""
    stored = ((facts.get("traits") or {}).get("patterns") or {}).get(name)
    return PatternTraits(**_known(stored, PatternTraits)) if stored else _EARLIER_PATTERNS.get(name, PatternTraits())


def transport_traits(facts: Mapping[str, Any], name: str) -> TransportTraits:
    """The traits of a transport in the run with these facts."""
    stored = ((facts.get("traits") or {}).get("transports") or {}).get(name)
    if not stored:
        base, _, variant = split_placed(name)[0].partition(":")
        base = base.partition("@")[0]
        return _EARLIER_TRANSPORTS.get(f"{base}:{variant}", _EARLIER_TRANSPORTS.get(base, TransportTraits()))
    known = _known(stored, TransportTraits)
    limits = tuple(Limit(**_known(limit, Limit)) for limit in known.get("limits", ()))
    return TransportTraits(**{**known, "caps": frozenset(known.get("caps", ())), "limits": limits})


def _plain(value: Any, kind: type) -> dict[str, Any]:
    plain: dict[str, Any] = {field.name: getattr(value, field.name) for field in fields(kind)}
    if "caps" in plain:
        plain |= {"caps": sorted(plain["caps"]), "limits": [_plain(limit, Limit) for limit in plain["limits"]]}
    return plain


def _known(stored: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """The fields that this version knows: a later one may store more."""
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in stored.items() if name in names}


# Runs of earlier versions hold no traits: these are their patterns and transports, and no later ones join them.
_MESSAGES = PatternTraits(stream=True, law="messages")
_EARLIER_PATTERNS = {
    **dict.fromkeys(("pingpong", "prtt", "putpong", "get"), PatternTraits(links="ends")),
    **dict.fromkeys(("oneway", "twoway", "stream", "put"), PatternTraits(stream=True, links="ends")),
    **dict.fromkeys(("alltoall", "outfarm", "multicast", "funnel", "robpush", "robpull"), _MESSAGES),
    **dict.fromkeys(("pushfarm", "pullfarm"), PatternTraits(stream=True, law="senders", events=True)),
    **dict.fromkeys(("allreduce", "ring"), PatternTraits(stream=True)),
    "pairs": PatternTraits(stream=True, law="constant", links="halves", alone="oneway"),
    "bisection": PatternTraits(stream=True, links="halves", alone="pingpong"),
    "putring": PatternTraits(stream=True, links="ring", alone="put"),
    "rounds": PatternTraits(links="round"),
    "barrier": PatternTraits(sized=False, stream=True, payload=False, law="rounds"),
    "ft": PatternTraits(sized=False),
    "memload": PatternTraits(payload=False),
}
_KERNEL = TransportTraits(carrier="kernel", caps=frozenset(("payload", "syscalls")))
_LIBRARY = TransportTraits(below="shm", below_remote="tcp")
_EARLIER_TRANSPORTS = {
    "shm": TransportTraits(carrier="memory"),
    "threads": TransportTraits(carrier="memory", below="shm"),
    "null": TransportTraits(carrier="nothing", caps=frozenset()),
    **{f"{name}:nonblock": _KERNEL for name in ("pipe", "unix", "tcp")},
    **{f"{name}:spin": replace(_KERNEL, caps=_KERNEL.caps | {"spins"}) for name in ("pipe", "unix", "tcp", "udp")},
    **dict.fromkeys(("pipe", "unix", "udp"), _KERNEL),
    "tcp": replace(_KERNEL, below="unix"),
    "pvm": replace(_KERNEL, below="unix"),
    **{f"pvm:{way}-daemon": _KERNEL for way in ("psend", "inplace", "raw", "default")},
    "mpi": _LIBRARY,
    **dict.fromkeys((f"mpi:{way}" for way in ("sync", "ready", "buffered", "persistent", "rma")), TransportTraits()),
    "shmem": _LIBRARY,
    "shmem:static": TransportTraits(),
}
