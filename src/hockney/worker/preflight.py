"""The pre-flight of a run on several hosts: all are asked at once what they are, before anything is measured."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hockney.errors import UsageError
from hockney.worker.errors import WorkerError
from hockney.worker.hosts import Host
from hockney.worker.starters import Starter

_LIMIT_S = 10
_AT_ONCE = 64
# What a host is, for sh; its arguments are workers. An interface whose speed is unknown has -1, or none.
_ASK = r"""
PATH=$PATH:/usr/sbin:/sbin
echo "clock $(date +%s.%N)"
echo "hostname $(uname -n)"
echo "kernel $(uname -sr)"
echo "machine $(cat /proc/sys/kernel/random/boot_id 2>/dev/null || uname -n) $(readlink /proc/self/ns/net)"
echo "cpu $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
echo "cpus $(sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status)"
for path in /sys/class/net/*; do
    [ -r "$path/mtu" ] || continue # a file of the bonding driver, or no interface at all
    name=${path##*/}
    address=$(ip -o -4 address show dev "$name" 2>/dev/null | sed -n '1s/.* inet \([0-9.]*\).*/\1/p')
    [ "$name" = lo ] || echo "interface $name $(cat "$path/mtu") $(cat "$path/speed" 2>/dev/null || echo -1) $address"
done
for worker in "$@"; do
    [ -x "$worker" ] || echo "missing $worker"
done
echo end
"""


class HostsUnusable(WorkerError):
    """Some hosts cannot be used, or with `every` none of them; the text names each with its cause."""

    def __init__(self, causes: Mapping[str, str], hosts: Sequence[Host], starter: Starter) -> None:
        self.every = len(causes) == len(hosts)
        reasons = "; ".join(f"{name}: {cause}" for name, cause in causes.items())
        left = ",".join(str(host) for host in hosts if host.name not in causes)
        super().__init__(
            f"{len(causes)} of {len(hosts)} hosts cannot be used: {reasons}",
            f"each must be reachable by `{starter.usage}` without a password"
            + (f"; without them: --hosts {left}" if left else ""),
        )


def preflight(hosts: Sequence[Host], workers: Iterable[Path], starter: Starter) -> list[dict[str, Any]]:
    """What each host is, in the order given; `starter` leads to them. Takes seconds.

    Raises HostsUnusable, naming every host that does not answer or lacks a worker; UsageError for two names of one
    machine.
    """
    command = ["sh", "-s", "--", *map(str, workers)]
    with ThreadPoolExecutor(min(_AT_ONCE, len(hosts))) as pool:
        names = [host.name for host in hosts]
        answers = dict(zip(names, pool.map(lambda name: _ask(starter.argv(command, [name])), names), strict=True))
    causes = {name: answer for name, answer in answers.items() if isinstance(answer, str)}
    answered = {name: answer for name, answer in answers.items() if not isinstance(answer, str)}
    if causes:
        raise HostsUnusable(causes, hosts, starter)
    machines: dict[str, str] = {}
    for host, known in answered.items():
        first = machines.setdefault(known["machine"], host)
        if first != host:
            raise UsageError(f"{first} and {host} are one machine: name it once, as {first}:2 for two ranks")
    return [{"name": host, **known} for host, known in answered.items()]


def _ask(argv: Sequence[str]) -> dict[str, Any] | str:
    """What a host says of itself, or why it says nothing."""
    started_s = time.time()
    # Without a terminal, so that ssh cannot ask for a password.
    options: dict[str, Any] = {
        "input": _ASK, "start_new_session": True, "capture_output": True, "text": True, "errors": "replace",
    }  # fmt: skip
    try:
        done = subprocess.run(argv, timeout=_LIMIT_S, check=False, **options)
    except subprocess.TimeoutExpired:
        return f"no answer within {_LIMIT_S} s"
    except OSError as error:
        return f"{argv[0]}: {error.strerror}"
    lines = [line.partition(" ")[::2] for line in done.stdout.splitlines()]
    if ("end", "") not in lines:
        said = done.stderr.strip().splitlines()
        return said[-1] if said else f"{argv[0]} ended with exit code {done.returncode}"
    missing = [rest for word, rest in lines if word == "missing"]
    if missing:
        return f"the worker {missing[0]} is not there"
    told = dict(lines)
    return {
        **{name: told.get(name) or None for name in ("hostname", "machine", "kernel", "cpu", "cpus")},
        **_clock(told.get("clock", ""), started_s, time.time()),
        "interfaces": [known for word, rest in lines if word == "interface" and (known := _interface(rest))],
    }


def _clock(text: str, started_s: float, ended_s: float) -> dict[str, float | None]:
    """How far the host's clock is ahead of ours, and how wrong that can be: it was read between start and end."""
    if not re.fullmatch(r"\d+\.\d+", text):
        return {"clock_offset_s": None, "clock_error_s": None}
    return {"clock_offset_s": float(text) - (started_s + ended_s) / 2, "clock_error_s": (ended_s - started_s) / 2}


def _interface(text: str) -> dict[str, Any] | None:
    """`eth0 1500 10000 10.0.0.1`: name, MTU, Mbit/s, and the address, where there is one; None: one that is gone."""
    match = re.fullmatch(r"(\S+) (\d+) (-?\d+) (\S*)", text, re.ASCII)
    if match is None:
        return None
    speed = int(match[3])
    return {
        "name": match[1],
        "mtu_bytes": int(match[2]),
        "bits_per_s": speed * 1_000_000 if speed > 0 else None,
        "address": match[4] or None,
    }
