"""A bed of hosts on this machine: network namespaces on one switch, whose cables have a known rate, delay and loss.

    with Bed([Host(), Host(rate_mbit=100), Host(delay_ms=1)]) as bed:
        bed.run("n1", ["ping", "-c1", "n3"])

Hosts n1, n2, … have separate host names, boot ids, /dev/shm, network interfaces and ssh servers; they share this
machine's CPUs, files and clock. Everything of a bed ends with the process that made it, in every case: see up.sh.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hockney.machine.files import format_cpus
from hockney.machine.placement import usable_cpus

_UP = Path(__file__).with_name("up.sh")
_PROGRAMS = {  # by the package of Debian and Ubuntu that has them
    "iproute2": ("ip", "tc"),
    "nftables": ("nft",),
    "util-linux": ("unshare", "nsenter", "taskset", "setpriv"),
    "openssh-client": ("ssh", "ssh-keygen"),
    "dropbear-bin": ("dropbear", "dropbearkey"),
    "gcc": ("cc",),
    "procps": ("pkill",),
}
_NAMESPACES = ("--net", "--uts", "--ipc", "--mount")
BURST_MS = 1  # with a shorter burst, rate is lost whenever the kernel's timer is late
BURST_MIN_BYTES = 16_000
_PEAK = 1.2  # of the rate, of a port whose queue is known, after it was idle or its timer was late
_FRAMES_BYTES = 2 * 1514  # that it passes at once, and all that the cable of such a host does
_NEIGHBOURS = Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3")
_NEIGHBOURS_USUAL = 1024
_FAST_MBIT = 10_000  # of a cable without a rate


@dataclass(frozen=True)
class Host:
    """One host and its cable to the switch, alike in both directions; the delay is that of one of them.

    `loss` is a fraction of packets, `cpus` the CPUs that its processes may use; None: all of ours. `is_far`: it is on
    the far switch. `send_mbit` and `receive_mbit` are the rate of one direction, if it differs. With `queue_bytes` the
    switch drops what exceeds that, with headers, in the queue to the host; cables pass frames of full size one by one,
    as wires do, and little at once. None: a queue of 50 ms.
    """

    rate_mbit: float | None = None
    delay_ms: float = 0
    loss: float = 0
    cpus: Sequence[int] | None = None
    is_far: bool = False
    send_mbit: float | None = None
    receive_mbit: float | None = None
    queue_bytes: int | None = None


def burst_bytes(rate_mbit: float) -> int:
    """The bytes that an idle cable passes at once."""
    return max(BURST_MIN_BYTES, round(rate_mbit * BURST_MS * 125))


def port_bytes(rate_mbit: float, queue_bytes: int) -> int:
    """What of a burst an idle smooth cable takes: its queue, and what it passes at once or faster than its rate."""
    return queue_bytes + _FRAMES_BYTES + round(burst_bytes(rate_mbit) * (1 - 1 / _PEAK))


def why_not_here() -> str | None:
    """Why there can be no bed here, or None."""
    missing = {package: [name for name in names if shutil.which(name) is None] for package, names in _PROGRAMS.items()}
    packages = [package for package, names in missing.items() if names]
    if packages:
        names = ", ".join(name for package in packages for name in missing[package])
        return f"not here: {names}. On Debian and Ubuntu: apt-get install {' '.join(packages)}"
    if os.geteuid() != 0:
        return "network namespaces need root"
    may = subprocess.run(["unshare", *_NAMESPACES, "true"], check=False, capture_output=True).returncode == 0
    return None if may and os.access("/dev/net/tun", os.W_OK) else "this root may not make network namespaces"


@dataclass(frozen=True)
class Link:
    """What one host sends to another, where it fares worse than the rest: a lower rate, a fraction of packets lost."""

    source: str
    target: str
    rate_mbit: float | None = None
    loss: float = 0


PutUpT = TypeVar("PutUpT", bound="PutUp")


class PutUp(ABC):
    """What `with` puts up is there until its end, and is taken away also where putting it up fails half way."""

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _end(self) -> None: ...

    def __enter__(self: PutUpT) -> PutUpT:
        with ExitStack() as undo:
            undo.callback(self._end)
            self._begin()
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()


class Bed(PutUp):
    """Hosts that are up between `with` and its end; `uplink_mbit` is the rate of the cable to the far switch.

    Hosts that send over that cable get equal parts of it.
    """

    def __init__(self, hosts: Sequence[Host], uplink_mbit: float | None = None) -> None:
        self._uplink_mbit = uplink_mbit
        self._hosts = {f"n{number}": host for number, host in enumerate(hosts, 1)}
        self._pids: dict[str, str] = {}
        self._bed: subprocess.Popen[str] | None = None
        self._init = ""
        self._flap: subprocess.Popen[bytes] | None = None
        self._neighbours = 0  # how many the kernel took before

    @property
    def names(self) -> list[str]:
        return list(self._hosts)

    def _begin(self) -> None:
        self._raise_neighbours()
        every = usable_cpus()
        words = [
            f"{round(host.delay_ms * 1000)}/{format_cpus(every if host.cpus is None else host.cpus)}"
            for host in self._hosts.values()
        ]
        options = (*_NAMESPACES, "--pid", "--fork", "--kill-child", "--propagation", "private", "--mount-proc")
        self._bed = subprocess.Popen(
            ["unshare", *options, "--", "bash", str(_UP), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for what runs on the hosts, not for them
        )
        assert self._bed.stdout is not None
        pids = self._bed.stdout.readline().split()
        if len(pids) != len(self._hosts):
            raise RuntimeError("the bed did not come up: standard error says why")
        self._pids = dict(zip(self._hosts, pids, strict=True))
        children = Path(f"/proc/{self._bed.pid}/task/{self._bed.pid}/children")
        (self._init,) = children.read_text(encoding="ascii").split()
        if self._uplink_mbit is not None:
            self._add_far_switch(self._uplink_mbit)
        for name, host in self._hosts.items():
            self.lay(name, host)

    def _end(self) -> None:
        if self._flap is not None:
            self._flap.kill()
            self._flap.wait()
        if self._bed is not None:
            self._bed.kill()  # and the kernel the rest
            self._bed.communicate()
        if self._neighbours:
            _NEIGHBOURS.write_text(str(self._neighbours), encoding="ascii")

    def _raise_neighbours(self) -> None:
        """All hosts share the kernel's table of neighbours, in which each has all others; raises RuntimeError."""
        count = len(self._hosts)
        least = 2 * count**2
        try:
            most = int(_NEIGHBOURS.read_text(encoding="ascii"))
        except FileNotFoundError:  # we are in a network namespace ourselves
            most = _NEIGHBOURS_USUAL
        if most >= least:
            return
        try:
            _NEIGHBOURS.write_text(str(least), encoding="ascii")
        except OSError as error:
            raise RuntimeError(
                f"{count} hosts need net.ipv4.neigh.default.gc_thresh3={least}, which cannot be set here: "
                f"use up to {math.isqrt(most // 2)} hosts"
            ) from error
        self._neighbours = most

    # ---- commands ---------------------------------------------------------------------------------------------------

    def argv(self, host: str, command: Sequence[str]) -> list[str]:
        """The command line that runs a command on a host, in the current folder and environment."""
        cpus = self._hosts[host].cpus
        # The command must end with the process killed in its place: nsenter, which stays outside.
        there = (
            "setpriv",
            "--pdeathsig",
            "KILL",
            "nsenter",
            "--target",
            self._pids[host],
            *_NAMESPACES,
            "env",
            "--default-signal=INT",  # try-hosts ignores it
            f"--chdir={Path.cwd()}",
            *(() if cpus is None else ("taskset", "--cpu-list", format_cpus(cpus))),
        )
        return [*self._on_switch(), *there, *command]

    def pid_of(self, host: str) -> str:
        """The process of a host's ssh server, as its hosts see it."""
        return self._pids[host]

    def run(self, host: str, command: Sequence[str], *, limit_s: float = 60, **options: Any) -> Any:
        """The ended process of a command on a host; `options` are subprocess.run's."""
        how = {"capture_output": True, "text": True, "check": False, **options}
        return subprocess.run(self.argv(host, command), timeout=limit_s, **how)

    @contextmanager
    def serve(self, host: str, command: Sequence[str], ready: str) -> Iterator[None]:
        """A command that runs on a host meanwhile, from when it prints `ready` on."""
        server = subprocess.Popen(self.argv(host, command), stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        try:
            while ready not in (line := server.stdout.readline()):
                if not line:
                    raise RuntimeError(f"{command[0]} ended")
            yield
        finally:
            server.kill()
            server.communicate()

    def _on_switch(self) -> list[str]:
        return ["nsenter", "--target", self._init, "--pid", *_NAMESPACES]

    def _configure(self, *command: str, rules: str | None = None) -> None:
        subprocess.run([*self._on_switch(), *command], input=rules, check=True, capture_output=True, text=True)

    def set_kernel(self, name: str, value: str) -> None:
        """A setting of the kernel's network (net.…) on each host."""
        for pid in self._pids.values():
            self._configure("nsenter", "--target", pid, "--net", "sysctl", "-qw", f"{name}={value}")

    # ---- cables -----------------------------------------------------------------------------------------------------

    def lay(self, name: str, host: Host, links: Sequence[Link] = ()) -> None:
        """Set the cable of a host again, and the links on which it sends; its delay and CPUs stay."""
        inside = ("nsenter", "--target", self._pids[name], "--net")
        slow = {link.target: link.rate_mbit for link in links if link.source == name and link.rate_mbit is not None}
        lossy = {link.source: link.loss for link in links if link.target == name and link.loss}
        self._limit((), f"v{name[1:]}", host.receive_mbit or host.rate_mbit, {}, host.queue_bytes)
        # Two hosts that catch up at once would overflow a port that two fragments fit into.
        burst = None if host.queue_bytes is None else _FRAMES_BYTES
        self._limit(inside, "eth0", host.send_mbit or host.rate_mbit, slow, at_once_bytes=burst)
        frames = "65535" if host.queue_bytes is None else "1"
        self._configure(*inside, "ip", "link", "set", "eth0", "gso_max_segs", frames)
        self._lose((), f"v{name[1:]}", host.loss, {})
        self._lose(inside, "eth0", host.loss, lossy)

    def drop_long_frames(self, hosts: Collection[str]) -> None:
        """Drop what these hosts send in frames of full size, as a switch port does that has a smaller MTU."""
        drops = "".join(f"meta length > 1400 iifname v{host[1:]} drop;" for host in hosts)
        table = f"table bridge long {{ chain c {{ type filter hook forward priority 0; {drops} }}; }}"
        self._configure("nft", "-f", "-", rules=f"table bridge long\ndelete table bridge long\n{table}\n")

    def flap(self, host: str | None) -> None:
        """Take the cable of a host out for 0.5 s of 4.5 s, again and again; None: of no host any more."""
        if self._flap is not None:
            self._flap.kill()
            self._flap.wait()
        for number in range(1, len(self._hosts) + 1):
            self._configure("ip", "link", "set", f"v{number}", "up")
        self._flap = None
        if host is not None:
            device = f"v{host[1:]}"
            loop = f"while :; do sleep 4; ip link set {device} down; sleep 0.5; ip link set {device} up; done"
            ends_with_nsenter = ("setpriv", "--pdeathsig", "KILL")
            command = [*self._on_switch(), *ends_with_nsenter, "bash", "-c", loop]
            self._flap = subprocess.Popen(command, start_new_session=True)

    def _limit(
        self,
        where: Sequence[str],
        device: str,
        rate_mbit: float | None,
        slow_mbit: Mapping[str, float],
        queue_bytes: int | None = None,
        at_once_bytes: int | None = None,
    ) -> None:
        """Limit the rate of a device, in all and to some hosts; with a queue also that of what it passes at once."""
        self._configure(*where, "tc", "qdisc", "replace", "dev", device, "root", "noqueue")  # removes the earlier one
        if slow_mbit:
            root = ("tc", "qdisc", "replace", "dev", device, "root", "handle", "1:", "htb", "default", "ff")
            self._configure(*where, *root)
            rates = {"255": (rate_mbit or _FAST_MBIT, ())} | {
                name[1:]: (rate, ("match", "ip", "dst", f"10.77.0.{name[1:]}/32")) for name, rate in slow_mbit.items()
            }
            for number, (rate, match) in rates.items():
                leaf = f"1:{int(number):x}"
                of_class = ("classid", leaf, "htb", "rate", f"{rate:g}mbit", "burst", f"{burst_bytes(rate)}")
                self._configure(*where, "tc", "class", "add", "dev", device, "parent", "1:", *of_class)
                if match:
                    chosen = ("protocol", "ip", "parent", "1:", "u32", *match, "flowid", leaf)
                    self._configure(*where, "tc", "filter", "add", "dev", device, *chosen)
        elif rate_mbit is not None:
            queue = ("latency", "50ms") if queue_bytes is None else ("limit", f"{queue_bytes}")
            peak = () if queue_bytes is None else ("peakrate", f"{rate_mbit * _PEAK:g}mbit", "minburst", _FRAMES_BYTES)
            burst = at_once_bytes or burst_bytes(rate_mbit)
            limit = ("rate", f"{rate_mbit:g}mbit", "burst", f"{burst}", *queue, *map(str, peak))
            self._configure(*where, "tc", "qdisc", "replace", "dev", device, "root", "tbf", *limit)

    def _lose(self, where: Sequence[str], device: str, loss: float, of_source: Mapping[str, float]) -> None:
        """What comes in through a device, in all and from some hosts."""
        parts = {"": loss} | {f"ip saddr 10.77.0.{name[1:]} ": share for name, share in of_source.items()}
        drops = [
            f"meta protocol ip {match}numgen random mod 10000 < {round(share * 10000)} drop;"
            for match, share in parts.items()
            if share
        ]
        hook = f'type filter hook ingress device "{device}" priority 0;'
        rules = f"table netdev {device} {{}}\ndelete table netdev {device}\n"
        if drops:
            rules += f"table netdev {device} {{ chain lost {{ {hook} {' '.join(drops)} }}; }}\n"
        self._configure(*where, "nft", "-f", "-", rules=rules)

    def add_interface(self, name: str) -> None:
        """A second interface of each host, on a separate switch and network, 10.78.0."""
        self._configure("ip", "link", "add", "second", "type", "bridge")
        self._configure("ip", "link", "set", "second", "up")
        for host, pid in self._pids.items():
            number, inside = host[1:], ("nsenter", "--target", pid, "--net")
            self._configure("ip", "link", "add", f"w{number}", "type", "veth", "peer", "name", name, "netns", pid)
            self._configure("ip", "link", "set", f"w{number}", "master", "second", "up")
            self._configure(*inside, "ip", "addr", "add", f"10.78.0.{number}/24", "dev", name)
            self._configure(*inside, "ip", "link", "set", name, "up")

    def _add_far_switch(self, uplink_mbit: float) -> None:
        self._configure("ip", "link", "add", "far", "type", "bridge")
        self._configure("ip", "link", "add", "up0", "type", "veth", "peer", "name", "up1")
        for device, switch, is_far in (("up0", "switch", False), ("up1", "far", True)):
            senders = [number for number, host in enumerate(self._hosts.values(), 1) if host.is_far == is_far]
            self._configure("ip", "link", "set", device, "master", switch, "up")
            self._configure("tc", "qdisc", "replace", "dev", device, "root", "handle", "1:", "htb", "default", "1")
            self._add_class(device, "1:", "1:ffff", uplink_mbit, uplink_mbit)
            for number in senders:
                self._add_class(device, "1:ffff", f"1:{number:x}", uplink_mbit / len(senders), uplink_mbit)
                match = ("match", "ip", "src", f"10.77.0.{number}", "flowid", f"1:{number:x}")
                self._configure("tc", "filter", "add", "dev", device, "parent", "1:", "protocol", "ip", "u32", *match)
        for number, host in enumerate(self._hosts.values(), 1):
            if host.is_far:
                self._configure("ip", "link", "set", f"v{number}", "master", "far")
        self._configure("ip", "link", "set", "far", "up")

    def _add_class(self, device: str, parent: str, name: str, rate_mbit: float, most_mbit: float) -> None:
        rate = ("rate", f"{rate_mbit:g}mbit", "ceil", f"{most_mbit:g}mbit", "burst", f"{burst_bytes(rate_mbit)}")
        where = ("dev", device, "parent", parent, "classid", name)
        more = ("cburst", f"{burst_bytes(most_mbit)}", "quantum", "3000")
        self._configure("tc", "class", "add", *where, "htb", *rate, *more)

    # ---- programs ---------------------------------------------------------------------------------------------------

    def cut(self, host: str) -> None:
        """A host that loses its power: nothing runs on it any more, and nobody gets an answer from it."""
        self._configure("ip", "link", "set", f"v{host[1:]}", "down")
        self.signal("KILL", host)

    def signal(self, name: str, host: str, pattern: str = ".") -> bool:
        """Send a signal to the programs of a host with such a name; False where there is none."""
        command = ("pkill", f"-{name}", "--ns", self._pids[host], "--nslist", "net", pattern)
        return subprocess.run([*self._on_switch(), *command], check=False).returncode == 0

    def fail_logins(self, share: float, seed: int = 1) -> None:
        """Let a share of the logins to each host fail, chosen by their ports and the seed.

        Half of them are refused, as where a server is started again. On the others the server hangs up before a word is
        said, as a busy one does.
        """
        part = round(1000 * share)
        half = f"mod 2000 seed {seed}"
        to_server, to_client = f"jhash ip saddr . tcp sport {half}", f"jhash ip daddr . tcp dport {half}"
        begins, speaks = "tcp flags & (syn | ack) == syn", "tcp flags & (syn | psh) == psh"
        reset = "reject with tcp reset;"
        rules = "table inet logins {}\ndelete table inet logins\n"
        if part:
            rules += (
                "table inet logins { chain come { type filter hook input priority 0; "
                f"tcp dport 22 {begins} {to_server} {part}-{2 * part - 1} {reset} "
                f"tcp dport 22 {speaks} {to_server} < {part} {reset} }}; "
                "chain go { type filter hook output priority 0; "
                f"tcp sport 22 {speaks} {to_client} < {part} {reset} }}; }}\n"
            )
        for pid in self._pids.values():
            self._configure("nsenter", "--target", pid, "--net", "nft", "-f", "-", rules=rules)
