"""How many launches a comparison lacks, and the command that takes them."""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Sequence

from hockney.model import RunInfo
from hockney.stats.shift import can_decide

_REPLACED = {"--launches", "--time", "--store", "--label", "-l"}  # options of a stored command, each with a value
_Sizes = tuple[int, int]  # launches of base and new


def launches_wanted(made: _Sizes, strata: Sequence[_Sizes], confidence: float) -> _Sizes:
    """Of how many launches a new run in place of each would probably do; 0 where the run has enough.

    Where a run's launches fell into several states of the machine, at least twice as many.
    """
    enough = launches_enough(confidence)
    seen = [max(of_side) for of_side in zip(*strata, strict=True)]
    base, new = (
        0 if most >= enough else enough if of_run == most else max(enough, 2 * of_run)
        for of_run, most in zip(made, seen, strict=True)
    )
    return base, new


def launches_enough(confidence: float) -> int:
    """The least number on each side, in one state of the machine, that can decide."""
    return next(n for n in itertools.count(1) if can_decide(n, n, confidence))


def more_launches(run: int, info: RunInfo, launches: int) -> str:
    """What to do for so many launches of a run: its command with this number and as much more time, where it has one.

    A check has no number of launches to ask for: it goes on while its patience lasts.
    """
    words = shlex.split(info.command)
    if words[:2] == ["hockney", "check"]:
        return f"check again with a longer `--patience`, so that more launches than run {run} has fall into one state"
    if words[:2] == ["hockney", "quick"]:
        words[1:2] = ["run", "quick"]  # which takes --launches
    if words[:2] != ["hockney", "run"] or "--resume" in words:
        return f"measure run {run} anew with `--launches {launches}`"
    kept = [word for before, word in itertools.pairwise(words) if not {before, word.partition("=")[0]} & _REPLACED]
    time_s, made = info.plan.get("time_s"), info.plan.get("launches")
    longer = ("--time", f"{math.ceil(time_s * launches / made)}s") if time_s and made else ()
    label = () if info.label is None else ("--label", info.label)
    command = shlex.join([words[0], *kept, "--launches", str(launches), *longer, *label])
    return f"measure run {run} anew: `{command}`"
