"""The pre-flight of a run on several hosts: all describe themselves concurrently, before measuring.

A host that does not have a worker, because the cache folder is not shared, gets a copy at the same path.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hockney.errors import UsageError
from hockney.units import listed
from hockney.worker import cache
from hockney.worker.errors import WorkerError
from hockney.worker.hosts import Host, fold_hosts
from hockney.worker.libraries import Library, side_by_side
from hockney.worker.programs import ProgramFailed, answer_of
from hockney.worker.starters import NOT_REACHED, PAUSE_S, TRIES, Starter, failed_by_chance

Answer = TypeVar("Answer")

_WORDS = ("hostname", "machine", "network", "kernel", "arch", "libc", "congestion", "cpu", "cpus", "address")
# What sh runs on a host; its comments say how.
_SCRIPTS = Path(__file__).parent / "hosts_sh"
_SHARED, _COUNTERS, _DESCRIBE, _RECEIVE = (
    (_SCRIPTS / f"{name}.sh").read_text(encoding="ascii") for name in ("shared", "counters", "describe", "receive")
)
RECEIVE_SCRIPT = _SHARED + _RECEIVE
_OTHER_FOLDER = "let XDG_CACHE_HOME name a folder that you can write, and run programs in, on every host"
_NO_LIBRARY = "look for missing libraries there (ldd), or build on the host with the oldest C library"


class HostsUnusable(WorkerError):
    """Some hosts cannot be used, or with `every` none of them; the text names each of `causes`.

    `demand`: the condition for reaching those without one of the `remedies`.
    """

    def __init__(self, causes: Mapping[str, ProgramFailed], hosts: Sequence[Host], starter: Starter) -> None:
        self.causes = {name: str(cause) for name, cause in causes.items()}
        self.remedies = {
            name: cause.remedy for name, cause in causes.items() if isinstance(cause, Unusable) and cause.remedy
        }
        self.demand = starter.demand
        self.every = len(causes) == len(hosts)
        by_cause: dict[str, list[str]] = {}
        for name, cause in self.causes.items():
            of_any = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "HOST", cause)
            by_cause.setdefault(of_any, []).append(name)
        texts = {of_any if len(names) > 1 else self.causes[names[0]]: names for of_any, names in by_cause.items()}
        reasons = "; ".join(f"{listed(names)}: {cause}" for cause, names in texts.items())
        if len(by_cause) == 1 and len(hosts) - 1 <= len(causes) > 1:  # it can reach itself
            reasons += " (from here: this host may be the cause)"
        left = [host for host in hosts if host.name not in causes]
        is_enough = len(left) > 1 or any(host.slots != 1 for host in left)  # one rank alone has no partner
        remedies = list(dict.fromkeys(self.remedies.values()))
        remedies += [f"each must be {starter.demand}"] if len(self.remedies) < len(causes) else []
        remedies += [f"without them: --hosts {fold_hosts(left)}"] if is_enough else []
        super().__init__(f"{len(causes)} of {len(hosts)} hosts cannot be used: {reasons}", "; ".join(remedies))


class Unusable(ProgramFailed):
    """Why a host that answers cannot be used, and what helps there."""

    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(why)
        self.remedy = remedy


def preflight(
    hosts: Sequence[Host],
    workers: Sequence[Path],
    starter: Starter,
    libraries: Iterable[Library] = (),
    *,
    native: Path | None = None,
) -> list[dict[str, Any]]:
    """The facts of each host, in the order given; `starter` leads to them. Takes seconds.

    `native`: the worker without which a host is of no use; others may find their libraries only by their launchers.
    Raises HostsUnusable, naming every host that does not answer or cannot run the workers; UsageError for two names of
    one host. Containers on one machine, with their own name or network, are several.
    """
    asked = [library for library in libraries if library.has_launcher]
    launchers = [word for library in asked for word in (library.id, str(library.program))]
    pairs = [word for worker in workers for word in (str(worker), str(cache.digest(worker)))]
    command = ["sh", "-s", "--", *pairs, "--", *launchers]
    names = [host.name for host in hosts]
    answers, causes = _of_each(names, lambda name: _examine(name, command, starter, str(native)))
    if causes:
        raise HostsUnusable(causes, hosts, starter)
    first_names: dict[tuple[str, ...], str] = {}
    for host, known in answers.items():
        first = first_names.setdefault((known["machine"], known["hostname"], known["network"]), host)
        if first != host:
            raise UsageError(f"{first} and {host} are one host: name it once, as {first}:2 for two ranks")
        del known["missing"]
    return [{"name": host, **known} for host, known in answers.items()]


def counters_of(hosts: Sequence[str], starter: Starter) -> dict[str, Any]:
    """The counters of the interfaces of the hosts that answer, as preflight has them."""
    script = f"{_COUNTERS}echo end\n"
    known, _ = _of_each(hosts, lambda host: _ask(starter.argv(["sh", "-s"], [host]), script))
    return {host: answer["counters"] for host, answer in known.items()}


def lost_hosts(hosts: Sequence[str], starter: Starter) -> dict[str, str]:
    """The hosts that do not answer now, each with the cause. Where no host answers, nothing is known: none is lost."""
    # ssh gives up after 4 s
    _, causes = _of_each(hosts, lambda host: _reached(starter.argv(["true"], [host]), 6))
    return {host: str(cause) for host, cause in causes.items()} if len(causes) < len(hosts) else {}


def _reached(argv: Sequence[str], limit_s: float, *, data: bytes = b"") -> str:
    """The output of a command on a host, as of answer_of. A login that fails by chance is tried again."""
    left = TRIES
    while True:
        started_s = time.monotonic()
        try:
            return answer_of(argv, limit_s, data=data)
        except ProgramFailed as failure:
            left -= 1
            if not (left and failed_by_chance(failure.exit_code, failure.said, time.monotonic() - started_s)):
                raise
        time.sleep(PAUSE_S)


def _of_each(hosts: Sequence[str], ask: Callable[[str], Answer]) -> tuple[dict[str, Answer], dict[str, ProgramFailed]]:
    """The answer of each host, and the causes of those that are unusable."""

    def outcome(host: str) -> Answer | ProgramFailed:
        try:
            return ask(host)
        except ProgramFailed as cause:
            return cause

    outcomes = dict(zip(hosts, side_by_side(outcome, hosts), strict=True))
    causes = {host: known for host, known in outcomes.items() if isinstance(known, ProgramFailed)}
    return {host: known for host, known in outcomes.items() if not isinstance(known, ProgramFailed)}, causes


def _examine(host: str, command: Sequence[str], starter: Starter, needed: str) -> dict[str, Any]:
    """The facts of a host that has the workers, or gets them now. Raises ProgramFailed."""
    known, here = _ask(starter.argv(command, [host])), os.uname().machine
    if known["arch"] != here:
        raise Unusable(f"its CPU is {known['arch']}, and this host's is {here}", "measure hosts of one kind at a time")
    if known["missing"] and not known["shared"]:
        for worker in known["missing"]:
            copy_worker(Path(worker), starter.argv(["sh", "-c", RECEIVE_SCRIPT, "sh", worker], [host]))
        known = _ask(starter.argv(command, [host]))
    if shared := known["shared"]:
        remedy = f"own it, and run chmod go-w {shared}"
        raise Unusable(f"others can change {shared}, so its workers are not run", remedy)
    for worker in known["missing"]:
        raise Unusable(f"the worker {worker} may not run there: is its folder mounted with noexec?", _OTHER_FOLDER)
    if needed in known["broken"]:
        raise Unusable(f"the worker {needed} does not run there: {known['broken'][needed]}", _NO_LIBRARY)
    return known


def copy_worker(worker: Path, argv: Sequence[str]) -> None:
    """Send a file to the program that receives it. Raises Unusable where it does not arrive as it is."""
    try:
        content = worker.read_bytes()
        if _reached(argv, 60, data=content).split()[:1] != [hashlib.sha256(content).hexdigest()]:
            raise Unusable("what arrived is another file")
    except (OSError, ProgramFailed) as error:
        is_reached = isinstance(error, OSError) or error.exit_code not in (None, NOT_REACHED)
        remedy = _OTHER_FOLDER if is_reached else ""
        raise Unusable(f"the worker {worker} is not there, and cannot be copied: {error}", remedy) from error


def _ask(argv: Sequence[str], script: str = _SHARED + _COUNTERS + _DESCRIBE) -> dict[str, Any]:
    """A host's facts, as a script prints them. Raises ProgramFailed."""
    started_s = time.time()
    lines = [line.partition(" ")[::2] for line in _reached(argv, 10, data=script.encode()).splitlines()]
    ended_s = time.time()
    if ("end", "") not in lines:
        raise Unusable(f"{argv[0]} printed no description of the host")
    answer = dict(lines)
    versions = [rest.partition(" ") for word, rest in lines if word == "library"]
    broken = [rest.partition(" ") for word, rest in lines if word == "broken"]
    return {
        **{name: answer.get(name) or None for name in _WORDS},
        "cores": answer.get("cores", "").split(),
        **_clock(answer.get("clock", ""), started_s, ended_s),
        "interfaces": [known for word, rest in lines if word == "interface" and (known := _interface(rest))],
        "counters": _counters(rest for word, rest in lines if word == "counter"),
        "libraries": {library: version or None for library, _, version in versions},
        "shared": answer.get("shared"),
        "missing": [rest for word, rest in lines if word == "missing"],
        "broken": {worker: why or "it fails without a word" for worker, _, why in broken},
    }


def _clock(text: str, started_s: float, ended_s: float) -> dict[str, float | None]:
    """How far the host's clock is ahead of ours, and how wrong that can be: it was read between start and end."""
    if not re.fullmatch(r"\d+\.\d+", text):
        return {"clock_offset_s": None, "clock_error_s": None}
    return {"clock_offset_s": float(text) - (started_s + ended_s) / 2, "clock_error_s": (ended_s - started_s) / 2}


def _counters(lines: Iterable[str]) -> dict[str, dict[str, int]]:
    """`eth0 rx_errors 12`: counters by name, by interface. Those of one that is gone have no value."""
    found: dict[str, dict[str, int]] = {}
    for line in lines:
        if match := re.fullmatch(r"(\S+) (\S+) (\d+)", line, re.ASCII):
            found.setdefault(match[1], {})[match[2]] = int(match[3])
    return found


def _interface(text: str) -> dict[str, Any] | None:
    """`bond0 1500 20000 10000 10.0.0.1`: name, MTU, Mbit/s, a link's, address; None: one that is gone."""
    match = re.fullmatch(r"(\S+) (\d+) (-?\d+) (-?\d+) (\S*)", text, re.ASCII)
    if match is None:
        return None
    # -1 is unknown, which some kernels print without its sign.
    megabits = (number if 0 < number < 1 << 31 else 0 for number in map(int, match.group(3, 4)))
    speed, of_link = (1_000_000 * number or None for number in megabits)
    return {
        "name": match[1],
        "mtu_bytes": int(match[2]),
        "bits_per_s": speed,
        "link_bits_per_s": of_link,
        "address": match[5] or None,
    }
