"""Reduces the messages of a launcher and its ranks to the reason why a job ended."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from hockney.machine.limits import SHARED_BYTES_OF_RANK, free_shared_memory
from hockney.machine.warned import fix_of, kinds_in
from hockney.units import listed
from hockney.worker.answers import PREFIX, Rank

OURS = "hockney worker: "  # begins the lines of ranks
# Messages of ranks after another rank has failed, or has not come.
_CONSEQUENCES = re.compile(r"hockney worker: rank \d+: (control: |rendezvous: \d+ of |no end after )")
_REPORT = re.compile(r"hockney worker: rank (\d+): no end after ")
_WAITING = re.compile(r"hockney worker: rank (\d+): no end after .*, waiting for others$", re.MULTILINE)
_WAITED = re.compile(r"hockney worker: rank (\d+): no end after .*, waiting for (the .* of event (\d+) from rank \d+)")
_MISSING = re.compile(r"did not join in time, including rank (\d+)")
_SPEAKER = re.compile(r"hockney worker: rank (\d+): ")
_LOST = re.compile(r"control: (?:lost )?rank (\d+)(?: is gone|: )")
_ANSWER = PREFIX.decode()  # of a host other than rank 0's
# Messages of Open MPI, Hydra (MPICH, Intel MPI) and others about a killed rank.
_HOW_IT_ENDED = re.compile(r"exited on\s+signal|EXIT STRING|KILLED BY SIGNAL", re.IGNORECASE)
# Of a backtrace, which is of no use to users: `[host:12] [ 1] ./worker(main+0x2) [0x7f2]`, each library in its own way.
_FRAME = re.compile(r"\([\w.@]*\+?0x[0-9a-f]+\)\s*\[0x[0-9a-f]+\]\s*$")
_OF_SRUN = "srun: cluster configuration lacks support for cpu binding"  # harmless: ranks pin themselves
# What ssh says when it gives up. Hydra (MPICH 4) then waits for that host for ever.
_UNREACHABLE = re.compile(
    r"^.*(?:ssh: Could not resolve hostname|ssh: connect to host|Permission denied \(|Host key verification failed"
    r"|HYDU_sock_connect .*unable to get host address|kex_exchange_identification:"
    r"|Connection (?:closed|reset|timed out) by \S+ port \d+).*$",
    re.MULTILINE,
)
# Hydra names a signal like an exit code; a worker itself ends with none of these.
_KILLED_BY_PID = re.compile(r"PID (\d+) RUNNING AT (\S+)\s+=\s+EXIT CODE: ([4-9]|11)\s")
_KILLED_RANK = re.compile(r"process rank (\d+) with PID \d+ on node \S+ exited\s+on\s+signal (\d+)")
_EMPTY_FRAME = re.compile(r"\w+\(\d+\)\.*: +(?=\w+\(\d+\)|$)")  # of an error stack of MPICH: it names a function only
_ABORT = re.compile(r"^Abort\(\d+\): ")  # of MPICH, another number in each rank
_WRONG = re.compile(r"\bInvalid .*\bMPIR_CVAR_\w+")  # MPICH's line that names the variable with a wrong value
_OF_OPEN_MPI = re.compile(r"It looks like MPI_INIT failed.*?Open MPI\s+developer\):", re.DOTALL)  # of any error
_DECORATION = re.compile(r"[-=*+#~_\s|]*$")
# Of launchers about any program that ends early.
_BOILERPLATE = re.compile(
    r"= +(?:BAD TERMINATION|CLEANING UP|YOU CAN IGNORE)|This typically refers|Please see the FAQ"
    r"|Primary job +terminated|a non-zero exit code\. Per user-direction"
    r"|\[\S+\] (?:\*\*\* .* \*\*\*$|Signal(?: code)?: |Failing at address: |\d+ more process|Set MCA parameter)"
    r"|\[\S+\] \*\*\* +(?:An error occurred in MPI_Init|reported by process|on a NULL comm|Unknown error"
    r"|MPI_ERRORS_ARE_FATAL|and potentially)"
    r"|Fatal error in internal_Init: Other MPI error(?:, error stack:)?$|internal_Init\(\d+\)\.*: MPI_Init\("
    r"|\(unknown\)\(\)|.* ORTE_ERROR_LOG: .*/show_help\.c at line"
)
_WORDS_MAX = 4096  # of a launcher and its ranks

# Where a page of a full /dev/shm is touched, too. MPICH's proxy may write to such a rank before it learns of its end.
_BUS_ERROR = re.compile(r"\(signal 7\)|Bus error|SIGBUS|HYDU_sock_(?:write|read|forward_stdio)")


def limits_met(said: str) -> list[str]:
    """The limits of the system that a library complains of, by their kind in machine/warnings.toml."""
    kinds = kinds_in(said)
    is_full = _BUS_ERROR.search(said) and (free_shared_memory() or 0) < 8 * SHARED_BYTES_OF_RANK
    return [*kinds, "shm"] if is_full and "shm" not in kinds else kinds


def remedy(said: str) -> str:
    """How to lift the limits that a library complains of."""
    return "; ".join(map(fix_of, limits_met(said)))


def summary(said: str) -> str:
    """The start-up messages in one line: those of hockney's ranks if there are any, else the launcher's, each once.

    They are whole; of more than 4 KiB the first lines, with the number of the others. Of a launcher only the line that
    names a variable with a wrong value, if there is one.
    """
    lines = _lines(said)
    ours = [line for line in lines if line.startswith(OURS) and not _CONSEQUENCES.match(line)]
    first: dict[str, str] = {}
    for line in ours or [line for line in lines if _WRONG.search(line)] or lines:
        first.setdefault(_SPEAKER.sub("", line), line)
    words = list(first.values())
    sizes = itertools.accumulate(len(line) + 1 for line in words)
    count = max(1, sum(size <= _WORDS_MAX for size in sizes))
    return " ".join([*words[:count], *([f"({len(words) - count} more lines)"] if words[count:] else [])])


def doubts(said: str, settings: Sequence[str]) -> str:
    """`check UCX_TLS=x: …`: the user's settings of a library that did not start; empty if it names one of them."""
    names = (setting.partition("=")[0].removeprefix("OMPI_MCA_") for setting in settings)
    if not settings or any(name in said for name in names):
        return ""
    return f"check {listed(settings)}: a wrong value may be the cause"


def unreachable(said: str) -> str:
    """The line in which a launcher's remote shell says that it cannot reach a host; empty if there is none."""
    match = _UNREACHABLE.search(said)
    return match[0].strip() if match else ""


def reason(said: str) -> str:
    """The line with the cause: the first of hockney's ranks that is no consequence, else all that was said."""
    lines = _lines(said)
    ours = [line for line in lines if line.startswith(OURS)]
    causes = [line for line in ours if not _CONSEQUENCES.match(line)]
    ends = [line for line in lines if _HOW_IT_ENDED.search(line)]
    return ((causes or ours or ends)[:1] or [summary(said)])[0].removeprefix(OURS)


def last_words(said: str) -> str:
    """All that a library said before one of its ranks was killed, whatever launchers say of that."""
    lines = [line for line in _lines(said) if not _HOW_IT_ENDED.search(line) and not line.startswith(OURS)]
    return summary("\n".join(line for line in lines if not _BOILERPLATE.match(line)))


def is_consequence(reason: str) -> bool:
    """Whether a reason is only that another rank failed."""
    return _CONSEQUENCES.match(OURS + reason) is not None


def with_hosts(said: str, rank_hosts: Sequence[str]) -> str:
    """A message about missing ranks with the host of the one that it names; `rank_hosts` has that of each rank."""

    def located(match: re.Match[str]) -> str:
        rank = int(match[1])
        return f"{match[0]} on {rank_hosts[rank]}" if rank < len(rank_hosts) else match[0]

    return _MISSING.sub(located, said)


def is_late(said: str) -> bool:
    """Whether a rank has reported a time limit."""
    return "no end after" in said


def silent_ranks(said: str, ranks: Sequence[Rank]) -> list[Rank]:
    """Those that did not report a time limit as others did. Ranks that are threads of one process report once."""
    reported = _numbers(_REPORT, said)
    answering = {(rank.host_key, rank.pid) for rank in ranks if rank.rank in reported}
    return [rank for rank in ranks if answering and (rank.host_key, rank.pid) not in answering]


def late_ranks(said: str, ranks: Sequence[Rank]) -> list[Rank]:
    """Those that others waited for at a time limit; none if nobody waited."""
    waiting = _numbers(_WAITING, said)
    late = _numbers(_REPORT, said) - waiting if waiting else set()
    return [rank for rank in ranks if rank.rank in late]


def waited_for(said: str) -> str:
    """`rank 1 waits for the credit of event 3 from rank 4`: of all such reports that of the first event, or ""."""
    reports = ((int(event), int(rank), what) for rank, what, event in _WAITED.findall(said))
    first = min(reports, default=None)
    return f"rank {first[1]} waits for {first[2]}" if first else ""


def gone_ranks(said: str, ranks: Sequence[Rank]) -> str:
    """`rank 1 on n2 is gone`: the ranks that others lost and that said nothing themselves; empty if there is none."""
    lost = _numbers(_LOST, said) - _numbers(_SPEAKER, said)
    return said_of([rank for rank in ranks if rank.rank in lost], ranks, "is gone", "are gone")


def _numbers(pattern: re.Pattern[str], said: str) -> set[int]:
    return {int(number) for number in pattern.findall(said)}


def said_of(some: Sequence[Rank], ranks: Sequence[Rank], of_one: str, of_many: str) -> str:
    """`ranks 0 and 1 on n1 and n2 are not done`; empty for none."""
    return f"{who(some, ranks)} {of_one if len(some) == 1 else of_many}" if some else ""


def killed_rank(said: str, ranks: Sequence[Rank]) -> tuple[Rank, int] | None:
    """The rank that a launcher reports as killed, and the signal; None if it names none."""
    if match := _KILLED_RANK.search(said):
        known = [rank for rank in ranks if rank.rank == int(match[1])]
    elif match := _KILLED_BY_PID.search(said):
        here = [rank for rank in ranks if rank.pid == int(match[1])]
        known = [rank for rank in here if rank.host.partition(".")[0] == match[2].partition(".")[0]] or here
    return (known[0], int(match[match.lastindex or 0])) if match and len(known) == 1 else None


def who(some: Sequence[Rank], ranks: Sequence[Rank]) -> str:
    """`rank 1`, `rank 1 on n2` in a job of several hosts, `ranks 2, 3, 4 and 60 more on n2 and n3`."""
    text = f"rank{'s' if len(some) > 1 else ''} {listed([str(rank.rank) for rank in some])}"
    hosts = list(dict.fromkeys(rank.host for rank in some))
    return f"{text} on {listed(hosts, more='more hosts')}" if len({rank.host for rank in ranks}) > 1 else text


def _lines(said: str) -> list[str]:
    plain = _OF_OPEN_MPI.sub("", said).splitlines()
    stripped = (
        _ABORT.sub("", _EMPTY_FRAME.sub("", line)).strip().rstrip(",") for line in plain if not _FRAME.search(line)
    )
    useful = [line for line in stripped if not _DECORATION.match(line) and not line.startswith((_ANSWER, _OF_SRUN))]
    return [line for line in useful if not _BOILERPLATE.match(line)] or useful
