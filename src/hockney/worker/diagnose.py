"""Reduces the messages of a launcher and its ranks to the reason why a job ended."""

from __future__ import annotations

import re

_OURS = "hockney worker: "
# Messages of ranks after the failure of another one, or after a wait for it in vain.
_CONSEQUENCES = re.compile(r"hockney worker: rank \d+: (control: |rendezvous: \d+ of |no end after )")
# Messages of Open MPI, Hydra (MPICH, Intel MPI) and others about a killed rank.
_HOW_IT_ENDED = re.compile(r"exited on\s+signal|EXIT STRING|KILLED BY SIGNAL", re.IGNORECASE)
# Of a backtrace, which is of no use to users: `[host:12] [ 1] ./worker(main+0x2) [0x7f2]`, each library in its own way.
_FRAME = re.compile(r"\([\w.@]*\+?0x[0-9a-f]+\)\s*\[0x[0-9a-f]+\]\s*$")
_OF_SRUN = "srun: cluster configuration lacks support for cpu binding"  # which is no harm: ranks pin themselves
# What ssh says when it gives up. Hydra (MPICH 4) then waits for that host for ever.
_UNREACHABLE = re.compile(
    r"^.*(?:ssh: Could not resolve hostname|ssh: connect to host|Permission denied \(|Host key verification failed"
    r"|kex_exchange_identification:|Connection (?:closed|reset|timed out) by \S+ port \d+).*$",
    re.MULTILINE,
)
_DECORATION = re.compile(r"[-=*+#~_\s|]*$")


def summary(said: str) -> str:
    """The start-up messages in one line: those of hockney's ranks if there are any, else the launcher's first ones."""
    lines = _lines(said)
    ours = [line for line in lines if line.startswith(_OURS) and not _CONSEQUENCES.match(line)]
    text = " ".join(list(dict.fromkeys(ours or lines))[:4])
    return text if len(text) <= 600 else text[:599] + "…"


def unreachable(said: str) -> str:
    """The line in which a launcher's remote shell says that it cannot reach a host; empty if there is none."""
    match = _UNREACHABLE.search(said)
    return match[0].strip() if match else ""


def reason(said: str) -> str:
    """The line with the cause: the first of hockney's ranks that is no consequence, else the last message."""
    lines = _lines(said)
    ours = [line for line in lines if line.startswith(_OURS)]
    causes = [line for line in ours if not _CONSEQUENCES.match(line)]
    ends = [line for line in lines if _HOW_IT_ENDED.search(line)]
    return ((causes or ours or ends)[:1] or lines[-1:] or [""])[0].removeprefix(_OURS)


def _lines(said: str) -> list[str]:
    stripped = (line.strip() for line in said.splitlines() if not _FRAME.search(line))
    return [line for line in stripped if not _DECORATION.match(line) and line != _OF_SRUN]
