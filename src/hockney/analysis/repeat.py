"""Which command continues a stored run, or repeats it with more launches."""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Collection

from hockney.analysis.finding import Fix
from hockney.model import RunInfo

LAUNCHES = 6
"""How many launches a run should have, so that intervals are over launches and a comparison can decide."""

# Options of the stored command that the new one replaces or leaves out; each takes a value.
_REPLACED = {"--launches", "--time", "--store", "--label", "-l", "--csv"}

INTERLEAVED = "interleaved"
"""In the stored plan of both runs of an interleaved pair: id, side, and what new calls base's transports."""


def resume(run: int, info: RunInfo) -> Fix:
    """Continue a run, or repeat it where it is one side of an interleaved pair: no side continues alone."""
    if INTERLEAVED in info.plan:
        words = tuple(_words(info.command, replaced=()))
        return Fix("Measure both variants again", words if words[:2] == ("hockney", "compare") else ())
    return Fix(f"Resume run {run}", ("hockney", "run", "--resume", str(run)), info.facts)


def more_launches(run: int, info: RunInfo, launches: int) -> Fix:
    """Continue a run, or repeat it with this many launches and proportionally more time.

    Without argv where no command line does that: a check, or a run that another program stored.
    """
    time_s, planned = info.plan.get("time_s"), info.plan.get("launches", 1)
    words = _words(info.command)
    if words[:2] == ["hockney", "check"]:
        if any(word.partition("=")[0] == "--expect" for word in words):
            return Fix(f"Check again with `launches = {launches}` in the expectations file")
        return Fix("Check again with a longer `--patience`")
    if launches <= planned or INTERLEAVED in info.plan:
        return resume(run, info)
    text = f"Measure run {run} again with {launches} launches"
    if words[:2] == ["hockney", "quick"]:
        words[1:2] = ["run", "quick"]  # which takes --launches
    if words[:2] != ["hockney", "run"]:
        return Fix(text)
    options = ["--launches", str(launches)]
    options += ["--time", f"{math.ceil(time_s * launches / planned)}s"] if time_s else []
    options += [] if info.label is None else ["--label", info.label]
    end = words.index("--") if "--" in words else len(words)
    return Fix(text, (*words[:end], *options, *words[end:]), info.facts)


def _words(command: str, replaced: Collection[str] = _REPLACED) -> list[str]:
    """The words of a stored command that its repetition keeps; none where it is no command line."""
    try:
        given = shlex.split(command)
    except ValueError:  # an open quotation: another program may store any text
        return []
    pairs = itertools.pairwise(["", *given])
    words = [word for before, word in pairs if not {before, word.partition("=")[0]} & {*replaced}]
    return [word for word in words if word != "--json"]
