"""How many launches a comparison lacks, and the command that takes them."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Sequence

from hockney.model import RunInfo
from hockney.stats.shift import can_decide

_MEASURES = (["quick"], ["run"])  # the commands that take --launches
_REPLACED = {"--launches", "--store", "--label", "-l"}  # options of a stored command, each with a value
_Sizes = tuple[int, int]  # launches of base and new


def launches_wanted(made: _Sizes, strata: Sequence[_Sizes], confidence: float) -> _Sizes:
    """Of how many launches a new run in place of each would probably do; 0 where the run has enough.

    Where a run made as many as it takes in one state of the machine, they fell into several: then twice as many.
    """
    enough = launches_enough(confidence)
    seen = [max(of_side) for of_side in zip(*strata, strict=True)]
    base, new = (
        0 if most >= enough else enough if of_run < enough else 2 * of_run
        for of_run, most in zip(made, seen, strict=True)
    )
    return base, new


def launches_enough(confidence: float) -> int:
    """The least number on each side, in one state of the machine, that can decide."""
    return next(n for n in itertools.count(1) if can_decide(n, n, confidence))


def more_launches(run: int, info: RunInfo, launches: int) -> str:
    """What to do for so many launches of a run: its command with this number, where that is one that takes it."""
    words = shlex.split(info.command)
    if words[:1] != ["hockney"] or words[1:2] not in _MEASURES:
        return f"measure run {run} anew with `--launches {launches}`"
    kept = [word for before, word in itertools.pairwise(words) if not {before, word.partition("=")[0]} & _REPLACED]
    label = () if info.label is None else ("--label", info.label)
    command = shlex.join([words[0], *kept, "--launches", str(launches), *label])
    return f"measure run {run} anew: `{command}`"
