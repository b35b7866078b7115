"""Lists of hosts, as `--hosts`, host files and batch systems write them, and how many ranks each host gets."""

from __future__ import annotations

import functools
import itertools
import os
import re
import socket
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hockney.errors import UsageError
from hockney.files import named_text
from hockney.worker.programs import ProgramFailed, answer_of

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
    words = [word.strip() for word in re.findall(r"(?:\[[^[\]]*\]|[^,])+", text)]  # commas within brackets are theirs
    hosts = [host for word in words if word for host in _expand(word)]
    if not hosts:
        raise UsageError(f"--hosts names no host: {_EXAMPLE}")
    _check_number("--hosts", len(hosts))
    name, count = Counter(host.name for host in hosts).most_common(1)[0]
    if count > 1:
        raise UsageError(f"--hosts names {name} twice: name it once, or write {name}:2 for two ranks")
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
    """A host on each line, `n1`, `n1:2` or `n1 slots=2`; each line of a name is a slot. Raises UsageError."""
    hosts: dict[str, Host] = {}
    for line in named_text(path, "host file").splitlines():
        words = re.sub(r"\s+slots=", ":", line.partition("#")[0]).split()
        if len(words) > 1:
            raise UsageError(f"'{line.strip()}' in {path} is no host: write n1, n1:2 or n1 slots=2")
        for host in _expand(words[0]) if words else ():
            before = hosts.get(host.name)
            slots = host.slots if before is None else (before.slots or 1) + (host.slots or 1)
            hosts[host.name] = Host(host.name, slots)
    if not hosts:
        raise UsageError(f"the host file {path} names no host")
    _check_number(f"the host file {path}", len(hosts))
    return tuple(hosts.values())


def _short(text: str) -> str:
    return text if len(text) < 200 else f"{text[:200]}…"


def _check_number(source: str, number: int) -> None:
    if number > _HOSTS_MAX:
        most = f"hockney takes at most {_HOSTS_MAX:,}"
        raise UsageError(f"{_short(source)} names {number:,} hosts, and {most}: name fewer")


def fill(ranks: int, hosts: Sequence[Host], per_host: int | None = None) -> tuple[Host, ...]:
    """The hosts with their numbers of ranks: `per_host` in turn, else as even as slots allow. Raises UsageError."""
    if per_host is None:
        counts = [0] * len(hosts)
        while (left := ranks - sum(counts)) > 0:
            free = [index for index, host in enumerate(hosts) if host.slots is None or counts[index] < host.slots]
            if not free:
                raise UsageError(f"there are more ranks than slots ({sum(counts)}) in --hosts")
            for index in free[:left]:
                counts[index] += 1
    else:
        counts = [max(0, min(per_host, ranks - per_host * index)) for index in range(len(hosts))]
        if sum(counts) < ranks:
            raise UsageError(f"{ranks} ranks are more than {per_host} on each of {len(hosts)} hosts")
    filled = [(host, count) for host, count in zip(hosts, counts, strict=True) if count]
    for host, count in filled:
        if host.slots is not None and count > host.slots:
            raise UsageError(f"{host} has too few slots for {count} ranks")
    return tuple(Host(host.name, count) for host, count in filled)


def _expand(word: str) -> Iterable[Host]:
    """`n[1-2]:4` -> two hosts. Raises UsageError."""
    match = _WORD.fullmatch(word)
    names = _names(match[1]) if match and word.count("[") < 10 else []
    if match is None or not names or not all(map(_NAME.fullmatch, names)):
        raise UsageError(f"'{_short(word)}' is not a host: {_EXAMPLE}")
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
        if ends is None or last < first:
            return []
        _check_number(text, len(numbers) + last - first + 1)
        numbers += [f"{number:0{len(ends[1])}}" for number in range(first, last + 1)]
    rest = _names(match[3]) if match[3] else [""]
    _check_number(text, len(numbers) * len(rest))
    return [f"{match[1]}{number}{end}" for number in numbers for end in rest]


# ---- the hosts that a batch system has given to this job ------------------------------------------------------------


_ASKING = {
    "Flux": "flux batch -N 8",
    "Slurm": "sbatch -N 8",
    "PBS": "qsub -l select=8",
    "LSF": "bsub -n 8 -R 'span[ptile=1]'",
    "Grid Engine": "qsub -pe NAME 8, for an environment with one slot on each host",
}


@dataclass(frozen=True)
class Allocation:
    """A job of a batch system and its hosts; a host's slots are its CPUs or tasks, where the batch system says them."""

    scheduler: str
    job: str
    hosts: tuple[Host, ...]

    @property
    def asking(self) -> str:
        """A command that asks for a job on several hosts."""
        return _ASKING[self.scheduler]

    def __str__(self) -> str:
        """`Slurm job 7`."""
        return f"{self.scheduler} job {self.job}".rstrip()


def find_allocation(environment: Mapping[str, str], *, nodefile: str = "", hostlist: str = "") -> Allocation | None:
    """The innermost allocation in an environment, or None.

    `nodefile` is the content of PBS_NODEFILE or PE_HOSTFILE, `hostlist` the output of `flux hostlist local`. Raises
    UsageError for a list of hosts that cannot be read.
    """
    if "FLUX_URI" in environment:
        hosts = _parse("flux hostlist", hostlist.replace(" ", ","))
        return Allocation("Flux", environment.get("FLUX_JOB_ID", ""), hosts)
    if "SLURM_JOB_ID" in environment and environment.get("SLURM_JOB_NODELIST"):
        return Allocation("Slurm", environment["SLURM_JOB_ID"], _slurm_hosts(environment))
    if "PBS_NODEFILE" in environment:
        lines = Counter(nodefile.split())
        has_slots = any(count > 1 for count in lines.values())  # a line for each; else it is no number of ranks
        hosts = _parse("PBS_NODEFILE", ",".join(lines))
        slotted = tuple(Host(host.name, lines[host.name] if has_slots else None) for host in hosts)
        return Allocation("PBS", environment.get("PBS_JOBID", ""), slotted)
    source = next((name for name in ("LSB_MCPU_HOSTS", "LSB_HOSTS") if name in environment), None)
    if source is not None:
        words = environment[source].split()
        of_words = zip(words[::2], words[1::2], strict=False)
        # Where there are few slots, the second has a word for each.
        slots = of_words if source == "LSB_MCPU_HOSTS" else Counter(words).items()
        hosts = _parse(source, ",".join(f"{host}:{count}" for host, count in slots))
        return Allocation("LSF", environment.get("LSB_JOBID", ""), hosts)
    if "PE_HOSTFILE" in environment:  # lines of a host, its slots, its queue and more
        rows = [line.split() for line in nodefile.splitlines() if line.strip()]
        hosts = _parse("PE_HOSTFILE", ",".join(":".join(row[:2]) for row in rows))
        return Allocation("Grid Engine", environment.get("JOB_ID", ""), hosts)
    return None


def current_allocation() -> Allocation | None:
    """The allocation that this process runs in, or None. Raises UsageError for one whose hosts cannot be read.

    Also where srun has started several of us, and in a job of one host that is another one than this: a measurement
    here would be of the wrong machine.
    """
    if sum(slurm_counts(os.environ.get("SLURM_STEP_NUM_TASKS", ""))) > 1:
        raise UsageError("srun has started hockney several times: start it once, without srun or with srun -n 1")
    nodefile = hostlist = ""
    try:
        for name in ("PE_HOSTFILE", "PBS_NODEFILE"):
            if name in os.environ:
                nodefile = named_text(Path(os.environ[name]), name)
        if "FLUX_URI" in os.environ:
            hostlist = answer_of(["flux", "hostlist", "local"], limit_s=10).strip()
    except (UsageError, ProgramFailed) as error:
        why = f"flux hostlist local: {error}" if isinstance(error, ProgramFailed) else error
        raise UsageError(f"the hosts of this job cannot be read ({why}): name them with --hosts") from error
    known = find_allocation(os.environ, nodefile=nodefile, hostlist=hostlist)
    if known is not None and len(known.hosts) == 1 and not _is_this(known.hosts[0]):
        (host,) = known.hosts
        raise UsageError(
            f"{known} is on {host.name}, and this is {socket.gethostname()}: start hockney there (in Slurm: srun "
            "hockney), or measure this host with --hosts local"
        )
    return known


def _is_this(host: Host) -> bool:
    short = socket.gethostname().partition(".")[0]
    return "SLURMD_NODENAME" in os.environ or host.name.partition(".")[0] in (short, "localhost")


def _slurm_hosts(environment: Mapping[str, str]) -> tuple[Host, ...]:
    """Each with as many slots as it has CPUs for this job, or tasks where those are more."""
    hosts = _parse("SLURM_JOB_NODELIST", environment["SLURM_JOB_NODELIST"])
    counts = [
        numbers
        for name in ("SLURM_JOB_CPUS_PER_NODE", "SLURM_TASKS_PER_NODE")
        if len(numbers := slurm_counts(environment.get(name, ""))) == len(hosts)
    ]
    slots: Iterable[int | None] = map(max, *counts, [1] * len(hosts)) if counts else [None] * len(hosts)
    return tuple(Host(host.name, slot) for host, slot in zip(hosts, slots, strict=True))


def slurm_counts(text: str) -> list[int]:
    """`2(x3),1` -> [2, 2, 2, 1]; none where it is written otherwise."""
    numbers: list[int] = []
    for word in text.split(","):
        match = re.fullmatch(r"(\d{1,6})(?:\(x(\d{1,6})\))?", word, re.ASCII)
        if match is None:
            return []
        numbers += [int(match[1])] * int(match[2] or 1)
    return numbers


def _parse(source: str, text: str) -> tuple[Host, ...]:
    try:
        return parse_hosts(text)
    except UsageError as error:
        shown = f"{source}={_short(text)}"
        raise UsageError(f"{shown} cannot be read as a list of hosts: name them with --hosts") from error
