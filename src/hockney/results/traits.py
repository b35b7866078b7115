"""What the patterns and transports of a stored run are: as the run says itself, or, of earlier runs, as they were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from hockney.model import Limit, PatternTraits, TransportTraits


def traits_json(patterns: Iterable[Any], transports: Iterable[Any]) -> dict[str, Any]:
    """What a run stores under `traits` in its facts: of each pattern and transport its traits, by name."""
    return {
        "patterns": {pattern.name: _plain(pattern, PatternTraits) for pattern in patterns},
        "transports": {transport.name: _plain(transport, TransportTraits) for transport in transports},
    }


def pattern_traits(facts: Mapping[str, Any], name: str) -> PatternTraits:
    """Those of a pattern in the run with these facts."""
    stored = ((facts.get("traits") or {}).get("patterns") or {}).get(name)
    return PatternTraits(**_known(stored, PatternTraits)) if stored else _EARLIER_PATTERNS.get(name, PatternTraits())


def transport_traits(facts: Mapping[str, Any], name: str) -> TransportTraits:
    """Those of a transport in the run with these facts."""
    stored = ((facts.get("traits") or {}).get("transports") or {}).get(name)
    if not stored:
        base, _, variant = name.partition(":")
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


# Runs before store format 13 hold no traits: these are their patterns and transports, and no later ones join them.
_STREAM = PatternTraits(stream=True)
_MESSAGES = PatternTraits(stream=True, law="messages")
_SENDERS = PatternTraits(stream=True, law="senders")
_ENDS = PatternTraits(links="ends")
_STREAM_ENDS = PatternTraits(stream=True, links="ends")
_EARLIER_PATTERNS = {
    **dict.fromkeys(("pingpong", "prtt", "putpong", "get"), _ENDS),
    **dict.fromkeys(("oneway", "twoway", "stream", "put"), _STREAM_ENDS),
    **dict.fromkeys(("alltoall", "outfarm", "multicast", "funnel", "robpush", "robpull"), _MESSAGES),
    **dict.fromkeys(("pushfarm", "pullfarm"), _SENDERS),
    **dict.fromkeys(("allreduce", "ring"), _STREAM),
    "pairs": PatternTraits(stream=True, law="constant", links="halves", alone="oneway"),
    "bisection": PatternTraits(stream=True, links="halves", alone="pingpong"),
    "putring": PatternTraits(stream=True, links="ring", alone="put"),
    "rounds": PatternTraits(links="round"),
    "barrier": PatternTraits(sized=False, stream=True, payload=False, law="rounds"),
    "ft": PatternTraits(sized=False),
    "memload": PatternTraits(payload=False),
}
_SLEEPS = frozenset(("payload", "syscalls"))
_SPINS = _SLEEPS | {"spins"}
_RING = "docs/transports.md, section Shared memory"
_RING_LIMITS = tuple(
    Limit(name=name, bytes=size, fact=None, meaning=meaning, see=_RING, source="docs/transports.md#shared-memory")
    for name, size, meaning in (
        ("hockney's inline word", 8, "longer messages are copied to the ring before their number"),
        ("hockney's first cache line", 48, "longer messages lie in the cache lines after that of their number"),
        ("hockney's single-copy threshold", 256, "longer messages are copied once, from the sender's buffer"),
    )
)
_PIPE = Limit(
    name="capacity of a pipe",
    bytes=65536,
    fact=None,
    meaning="what a pipe holds: a longer message waits for its reader",
    see="man 7 pipe",
    source="https://man7.org/linux/man-pages/man7/pipe.7.html",
)
_UNIX = Limit(
    name="net.core.wmem_default",
    bytes=0,
    fact="send_buffer_bytes",
    meaning="what a socket holds unread, with the kernel's bookkeeping: a longer message waits for its reader",
    see="sysctl net.core.wmem_default",
    source="https://www.kernel.org/doc/html/latest/admin-guide/sysctl/net.html",
)
_TCP = Limit(
    name="net.ipv4.tcp_rmem (default)",
    bytes=0,
    fact="tcp_receive_buffer_bytes",
    meaning="the receive buffer that a connection starts with",
    see="sysctl net.ipv4.tcp_rmem",
    source="https://www.kernel.org/doc/html/latest/networking/ip-sysctl.html",
)


def _kernel(caps: frozenset[str], *limits: Limit, below: str | None = None) -> TransportTraits:
    return TransportTraits(caps=caps, carrier="kernel", limits=limits, below=below)


_LIBRARY = TransportTraits(below="shm", below_remote="tcp")
_EARLIER_TRANSPORTS = {
    "shm": TransportTraits(carrier="memory", limits=_RING_LIMITS),
    "threads": TransportTraits(carrier="memory", limits=_RING_LIMITS, below="shm"),
    "null": TransportTraits(carrier="nothing", caps=frozenset()),
    **{
        f"{name}{variant}": _kernel(_SPINS if variant == ":spin" else _SLEEPS, limit, below=None if variant else below)
        for name, limit, below in (("pipe", _PIPE, None), ("unix", _UNIX, None), ("tcp", _TCP, "unix"))
        for variant in ("", ":nonblock", ":spin")
    },
    "udp": _kernel(_SLEEPS),
    "udp:spin": _kernel(_SPINS),
    "pvm": _kernel(_SLEEPS, below="unix"),
    **{f"pvm:{way}-daemon": _kernel(_SLEEPS) for way in ("psend", "inplace", "raw", "default")},
    "mpi": _LIBRARY,
    **dict.fromkeys((f"mpi:{way}" for way in ("sync", "ready", "buffered", "persistent", "rma")), TransportTraits()),
    "shmem": _LIBRARY,
    "shmem:static": TransportTraits(),
}
