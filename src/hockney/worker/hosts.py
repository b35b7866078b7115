"""Lists of hosts, as `--hosts` and host files write them, and how many ranks each host gets."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from hockney.errors import UsageError

_HOSTS_MAX = 4096
_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,252}", re.IGNORECASE | re.ASCII)  # no name is an option of ssh
_WORD = re.compile(r"([^:]+)(?::([1-9]\d{0,4}))?", re.ASCII)
_SPANS = re.compile(r"([^[\]]*)\[([0-9,-]+)\](.*)", re.ASCII)
_EXAMPLE = "write for example n1,n2 or n[1-4], and n1:2 for at most two ranks"


class Host(NamedTuple):
    """A host by its name or IPv4 address; `slots` is the most ranks that it gets, None: any number."""

    name: str
    slots: int | None = None

    def __str__(self) -> str:
        """As `--hosts` writes it."""
        return self.name if self.slots is None else f"{self.name}:{self.slots}"


@functools.lru_cache(maxsize=8)  # each point of a plan asks
def parse_hosts(text: str) -> tuple[Host, ...]:
    """`n1,n2`, `n[01-16,20]`, `n[1-4]:2` -> hosts. Raises UsageError, also for a host that is named twice."""
    words = [word.strip() for word in re.split(r",(?![^[]*\])", text)]  # not at commas within brackets
    hosts = [host for word in words if word for host in _expand(word)]
    if not hosts:
        raise UsageError(f"--hosts names no host: {_EXAMPLE}")
    seen: set[str] = set()
    for host in hosts:
        if host.name in seen:
            raise UsageError(f"--hosts names {host.name} twice: name it once, or write {host.name}:2 for two ranks")
        seen.add(host.name)
    return tuple(hosts)


def fold_hosts(hosts: Iterable[Host]) -> str:
    """The shortest `--hosts` that names these in this order: `n[1-8]`, `n[01-16,20]:2`; up to two stay as they are."""
    folded = []
    for (before, slots, after), group in itertools.groupby(hosts, _stem):
        members = list(group)
        if len(members) > 2 and before is not None:
            numbers = [host.name[len(before) : len(host.name) - len(after)] for host in members]
            name = f"{before}[{','.join(_spans(numbers))}]{after}"
            folded.append(str(Host(name, slots)))
        else:
            folded += map(str, members)
    return ",".join(folded)


def _stem(host: Host) -> tuple[str | None, int | None, str]:
    """What stands before and after the last number of a name; None without one."""
    match = re.fullmatch(r"(.*?)\d{1,9}(\D*)", host.name, re.ASCII)
    return (match[1], host.slots, match[2]) if match else (None, host.slots, "")


def _spans(numbers: Sequence[str]) -> list[str]:
    """`08, 09, 10, 12` -> `08-10`, `12`: each is as wide as the first of its span, or wider."""
    spans: list[list[str]] = []
    for number in numbers:
        if spans and f"{int(spans[-1][-1]) + 1:0{len(spans[-1][0])}}" == number:
            spans[-1].append(number)
        else:
            spans.append([number])
    return [span[0] if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans]


def read_hostfile(path: Path) -> tuple[Host, ...]:
    """A host on each line: `n1`, `n1:2` or `n1 slots=2`; a name that is on several lines has a slot for each.

    Raises UsageError.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise UsageError(f"the host file {path} cannot be read: {reason}") from error
    hosts: dict[str, Host] = {}
    for line in lines:
        words = re.sub(r"\s+slots=", ":", line.partition("#")[0]).split()
        if len(words) > 1:
            raise UsageError(f"'{line.strip()}' in {path} is no host: write n1, n1:2 or n1 slots=2")
        for host in _expand(words[0]) if words else ():
            before = hosts.get(host.name)
            slots = host.slots if before is None else (before.slots or 1) + (host.slots or 1)
            hosts[host.name] = Host(host.name, slots)
    if not hosts:
        raise UsageError(f"the host file {path} names no host")
    return tuple(hosts.values())


def spread(ranks: int, hosts: Sequence[Host]) -> tuple[int, ...]:
    """How many ranks each host gets, as evenly as slots allow: 5 ranks on two hosts are (3, 2).

    Raises UsageError for more ranks than slots.
    """
    counts = [0] * len(hosts)
    while (left := ranks - sum(counts)) > 0:
        free = [place for place, host in enumerate(hosts) if host.slots is None or counts[place] < host.slots]
        if not free:
            raise UsageError(f"there are more ranks than slots ({sum(counts)}) in --hosts")
        for place in free[:left]:
            counts[place] += 1
    return tuple(counts)


def fill(ranks: int, hosts: Sequence[Host], per_host: int | None = None) -> tuple[Host, ...]:
    """The hosts that ranks get, each with their number: `per_host` on each in turn, None: spread evenly.

    Raises UsageError for more ranks than slots.
    """
    if per_host is None:
        counts = spread(ranks, hosts)
        return tuple(Host(host.name, count) for host, count in zip(hosts, counts, strict=True) if count)
    used = hosts[: -(-ranks // per_host)]
    if ranks > per_host * len(used):
        raise UsageError(f"{ranks} ranks are more than {per_host} on each of {len(hosts)} hosts")
    counts = (*[per_host] * (len(used) - 1), ranks - per_host * (len(used) - 1))
    for host, count in zip(used, counts, strict=True):
        if host.slots is not None and count > host.slots:
            raise UsageError(f"{host} has too few slots for {count} ranks")
    return tuple(Host(host.name, count) for host, count in zip(used, counts, strict=True))


def _expand(word: str) -> Iterable[Host]:
    """`n[1-2]:4` -> two hosts. Raises UsageError."""
    match = _WORD.fullmatch(word)
    names = _names(match[1]) if match else []
    if match is None or not names or not all(map(_NAME.fullmatch, names)):
        raise UsageError(f"'{word}' is not a host: {_EXAMPLE}")
    return [Host(name, int(match[2]) if match[2] else None) for name in names]


def _names(text: str) -> list[str]:
    """`n[08-10]` -> n08, n09, n10; several brackets make every combination; empty for a syntax error."""
    match = _SPANS.fullmatch(text)
    if match is None:
        return [text]
    numbers: list[str] = []
    for span in match[2].split(","):
        ends = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", span, re.ASCII)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
        if ends is None or not first <= last < first + _HOSTS_MAX:
            return []
        numbers += [f"{number:0{len(ends[1])}}" for number in range(first, last + 1)]
    rest = _names(match[3]) if match[3] else [""]
    if len(numbers) * len(rest) > _HOSTS_MAX:
        raise UsageError(f"{text} names more than {_HOSTS_MAX} hosts")
    return [f"{match[1]}{number}{end}" for number in numbers for end in rest]
