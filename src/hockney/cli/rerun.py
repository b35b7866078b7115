"""The command that measures a stored run anew, or goes on with it, for more launches."""

from __future__ import annotations

import itertools
import math
import os
import shlex
import socket
from collections.abc import Mapping
from typing import Any

from hockney.model import RunInfo

LAUNCHES = 6
"""How many a run should have: its intervals are then over launches, and a comparison can decide."""

# Options of a stored command that are not given again, each with a value.
_REPLACED = {"--launches", "--time", "--store", "--label", "-l", "--csv"}


def more_launches(run: int, info: RunInfo, launches: int, *, but: str = "") -> str:
    """What to do for so many launches of a run: its command with this number and as much more time, where it has one.

    `but` is what to mind where it is measured anew. A check against a baseline has no number of launches to ask for: it
    goes on while its patience lasts.
    """
    time_s, planned = info.plan.get("time_s"), info.plan.get("launches", 1)
    words = _words(info.command)
    if words[:2] == ["hockney", "check"]:
        if any(word.partition("=")[0] == "--expect" for word in words):
            with_more = f" with `launches = {launches}` in the file of what is expected"
            return "check again" + (with_more if launches > planned else ", to the end")
        return "check again with a longer `--patience`, which makes room for more launches"
    if launches <= planned:  # and it has not made them
        return f"go on with run {run}: {going_on(run, info.facts)}"
    if words[:2] == ["hockney", "quick"]:
        words[1:2] = ["run", "quick"]  # which takes --launches
    if words[:2] != ["hockney", "run"]:
        return f"measure run {run} anew with `--launches {launches}`{but}"
    options = ["--launches", str(launches)]
    options += ["--time", f"{math.ceil(time_s * launches / planned)}s"] if time_s else []
    options += [] if info.label is None else ["--label", info.label]
    end = words.index("--") if "--" in words else len(words)
    command = shlex.join([*words[:end], *options, *words[end:]])
    return f"measure run {run} anew: `{as_then(info.facts)}{command}`{but}"


def going_on(run: int, facts: Mapping[str, Any]) -> str:
    """The command that goes on with a run, in backquotes."""
    return f"`{as_then(facts)}hockney run --resume {run}`"


def as_then(facts: Mapping[str, Any]) -> str:
    """What goes before a command so that it measures with the variables and the CPUs of the run, typed here and now.

    `UCX_RNDV_THRESH=1024 taskset -c 0 `, `env -u UCX_TLS `; empty where all is as it was.
    """
    from hockney.machine import library_settings, usable_cpus  # 20 ms, for what few commands print
    from hockney.machine.files import parse_cpus

    then: Mapping[str, str] = facts.get("environment") or {}
    settings = library_settings(then), library_settings(os.environ)
    words = [f"{name}={shlex.quote(value)}" for name, value in settings[0].items() if os.environ.get(name) != value]
    since = [f"-u {name}" for name in settings[1] if name not in then] if "environment" in facts else []
    if since:
        words[:0] = ["env", *since]
    cpus: str = (facts.get("limits") or {}).get("usable_cpus") or ""
    is_here = facts.get("hostname") == socket.gethostname()  # another machine's CPUs are no guide
    if is_here and cpus and set(parse_cpus(cpus)) < set(usable_cpus()):
        words.append(f"taskset -c {cpus}")
    return "".join(f"{word} " for word in words)


def _words(command: str) -> list[str]:
    """Those of a stored command that are to be given again; none where it is no command line."""
    try:
        given = shlex.split(command)
    except ValueError:  # a quotation without an end: a program that measures by itself may call its run as it likes
        return []
    pairs = itertools.pairwise(["", *given])
    words = [word for before, word in pairs if not {before, word.partition("=")[0]} & _REPLACED]
    needs_end = any(word.startswith("-") for word in words[words.index("--") + 1 :]) if "--" in words else False
    return [word for word in words if word != "--json" and (word != "--" or needs_end)]
