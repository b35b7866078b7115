"""The command line of scripts/try-hosts, which needs no package, so that its help comes at once."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.truth.bed.bed import BURST_MIN_BYTES, BURST_MS, Bed, Host, why_not_here

from hockney.errors import UsageError
from hockney.machine.files import parse_cpus
from hockney.units import counted, parse_count, parse_fraction, parse_rate_bytes_per_s, parse_time_ns

_HOCKNEY = Path(__file__).parents[3] / "hockney"
_HOSTS_MAX = 250
_RATE_MBIT = 100.0  # of a cable without another rate: the network is the limit, and not the CPUs that all hosts share
_BURST = (
    f"A cable that was idle lets the bytes of {BURST_MS} ms pass at once, and {BURST_MIN_BYTES / 1000:g} kB at least:\n"
    "a message that is not longer is faster than the cable's rate."
)
_EXAMPLES = """examples:
  scripts/try-hosts 4                                          a shell on n1; ssh leads to the others
  scripts/try-hosts 8 n3:rate=25Mbit/s -- ./hockney health --hosts 'n[1-8]'
  scripts/try-hosts 4 n3:rate=1Gbit/s n4:delay=1ms,loss=1% -- ./hockney run pingpong -t tcp --hosts n1,n3
"""


def run(words: Sequence[str]) -> int:
    """Put hosts up, run the command on the first of them, and take them away again; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="scripts/try-hosts",
        description="Hosts n1, n2, … to try hockney on, made on this machine; needs root, and leaves nothing behind.",
        epilog=f"{_BURST}\n\n{_EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("hosts", help=f"how many, up to {_HOSTS_MAX}, each with a cable of {_RATE_MBIT:g} Mbit/s")
    parser.add_argument(
        "cables", nargs="*", help="what is special about a host: n2:rate=R,send=R,receive=R,delay=D,loss=L,cpus=LIST"
    )
    split = list(words).index("--") if "--" in words else len(words)
    asked = parser.parse_args(words[:split])
    why = why_not_here()
    if why is not None:
        print(f"try-hosts: {why}", file=sys.stderr)
        return 3
    try:
        hosts = read_hosts(asked.hosts, asked.cables)
    except UsageError as error:
        print(f"try-hosts: {error}", file=sys.stderr)
        return 2
    command = words[split + 1 :]
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{_HOCKNEY.parent}"  # if none is installed
    if command and shutil.which(command[0]) is None:
        print(f"try-hosts: there is no program {command[0]} here: check its name after --", file=sys.stderr)
        return 2
    # While there is a network: on the hosts ./hockney could not set itself up.
    if subprocess.run([_HOCKNEY, "--version"], stdout=subprocess.DEVNULL, check=False).returncode != 0:
        return 3
    if not command:
        command = [os.environ.get("SHELL", "/bin/sh")]
        print(welcome(asked.hosts, asked.cables), flush=True)
    print(f"try-hosts: making {counted(len(hosts), 'host')} ...", file=sys.stderr, flush=True)
    try:
        with Bed(hosts) as bed:
            return run_through_interrupts(bed.argv("n1", command))
    except RuntimeError as error:
        print(f"try-hosts: {error}", file=sys.stderr)
        return 3


def run_through_interrupts(argv: Sequence[str]) -> int:
    """The exit code of a command on a host, which alone decides what Ctrl-C means: what leads there ignores it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.run(argv, check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)


def welcome(count: str, cables: Sequence[str]) -> str:
    """Three lines for the user of a shell: the hosts with what is special about them, and commands to try."""
    every = f"n[1-{count}]" if int(count) > 1 else "n1"
    hosts = f"Hosts {every} at {_RATE_MBIT:g} Mbit/s" + (f", but {' '.join(cables)}" if cables else "")
    tries = " or ".join(f"./hockney {word} --hosts '{every}'" for word in ("quick", "health"))
    return f"{hosts}. This shell is on n1; exit takes them away.\n{_BURST}\nTry: {tries}"


def read_hosts(count: str, cables: Sequence[str]) -> list[Host]:
    """`3` and `n2:rate=100Mbit/s,delay=1ms` -> three hosts. Raises UsageError."""
    number = parse_count(count, _HOSTS_MAX)
    if number is None:
        raise UsageError(f"'{count}' is not a number of hosts: write 1 to {_HOSTS_MAX}")
    hosts = [Host(rate_mbit=_RATE_MBIT)] * number
    for word in cables:
        match = re.fullmatch(r"n(\d+):(.+)", word, re.ASCII)
        place = int(match[1]) - 1 if match else -1
        if match is None or not 0 <= place < number:
            raise UsageError(f"'{word}' names no host: write for example n2:rate=100Mbit/s,delay=1ms")
        settings = [setting.partition("=")[::2] for setting in match[2].split(",")]
        hosts[place] = replace(hosts[place], **_fields(dict(settings)))
    return hosts


_READ: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "rate": lambda text: {"rate_mbit": parse_rate_bytes_per_s(text) * 8 / 1e6},
    "send": lambda text: {"send_mbit": parse_rate_bytes_per_s(text) * 8 / 1e6},
    "receive": lambda text: {"receive_mbit": parse_rate_bytes_per_s(text) * 8 / 1e6},
    "delay": lambda text: {"delay_ms": parse_time_ns(text) / 1e6},
    "loss": lambda text: {"loss": parse_fraction(text)},
    "cpus": lambda text: {"cpus": parse_cpus(text)},
}


def _fields(settings: Mapping[str, str]) -> dict[str, Any]:
    strange = sorted(settings.keys() - _READ.keys())
    if strange:
        raise UsageError(f"'{strange[0]}' is no property of a host: name {', '.join(_READ)}")
    return {name: value for key, text in settings.items() for name, value in _READ[key](text).items()}
