"""What a launcher and its ranks said, reduced to the reason why a job ended."""

from __future__ import annotations

import re

_OURS = "hockney worker: "
# What ranks say when another one has failed, or when they have waited for it in vain.
_CONSEQUENCES = re.compile(r"hockney worker: rank \d+: (control: |rendezvous: \d+ of |no end after )")
# What Open MPI, Hydra (MPICH, Intel MPI) and others say of a rank that was killed.
_HOW_IT_ENDED = re.compile(r"exited on\s+signal|EXIT STRING|KILLED BY SIGNAL", re.IGNORECASE)
# Of a backtrace, which is of no use to users: `[host:12] [ 1] ./worker(main+0x2) [0x7f2]`, each library in its own way.
_FRAME = re.compile(r"\([\w.@]*\+?0x[0-9a-f]+\)\s*\[0x[0-9a-f]+\]\s*$")
_DECORATION = re.compile(r"[-=*+#~_\s|]*$")


def summary(said: str) -> str:
    """What was said at start-up, in one line: our own ranks' lines if there are any, else the launcher's first ones."""
    lines = _lines(said)
    ours = [line for line in lines if line.startswith(_OURS) and not _CONSEQUENCES.match(line)]
    text = " ".join(list(dict.fromkeys(ours or lines))[:4])
    return text if len(text) <= 600 else text[:599] + "…"


def reason(said: str) -> str:
    """The line with the cause: the first of our ranks' that is no consequence, else what was said last."""
    lines = _lines(said)
    ours = [line for line in lines if line.startswith(_OURS)]
    causes = [line for line in ours if not _CONSEQUENCES.match(line)]
    ends = [line for line in lines if _HOW_IT_ENDED.search(line)]
    return ((causes or ours or ends)[:1] or lines[-1:] or [""])[0].removeprefix(_OURS)


def _lines(said: str) -> list[str]:
    stripped = (line.strip() for line in said.splitlines() if not _FRAME.search(line))
    return [line for line in stripped if not _DECORATION.match(line)]
