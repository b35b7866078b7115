"""The command that measures a stored run anew, with more launches."""

from __future__ import annotations

import itertools
import math
import shlex

from hockney.model import RunInfo

_REPLACED = {"--launches", "--time", "--store", "--label", "-l"}  # options of a stored command, each with a value


def more_launches(run: int, info: RunInfo, launches: int) -> str:
    """What to do for so many launches of a run: its command with this number and as much more time, where it has one.

    A check has no number of launches to ask for: it goes on while its patience lasts.
    """
    given = ["", *shlex.split(info.command)]
    words = [word for before, word in itertools.pairwise(given) if not {before, word.partition("=")[0]} & _REPLACED]
    if words[:2] == ["hockney", "check"]:
        return f"check again with a longer `--patience`, so that more launches than run {run} has fall into one state"
    if words[:2] == ["hockney", "quick"]:
        words[1:2] = ["run", "quick"]  # which takes --launches
    if words[:2] != ["hockney", "run"] or "--resume" in words:
        return f"measure run {run} anew with `--launches {launches}`"
    time_s, made = info.plan.get("time_s"), info.plan.get("launches")
    longer = ("--time", f"{math.ceil(time_s * launches / made)}s") if time_s and made else ()
    label = () if info.label is None else ("--label", info.label)
    return f"measure run {run} anew: `{shlex.join([*words, '--launches', str(launches), *longer, *label])}`"
