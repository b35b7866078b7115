"""Which command continues a stored run, repeats it with more launches, or measures two in alternation."""

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
_ELSEWHERE = {"--store", "--csv"}  # options of `import` that a repeated command drops
_OF_RUN_ALONE = {"--refine", "--no-refine", "--quiet", "-q"}  # options that compare --interleave does not take

INTERLEAVED = "interleaved"
"""In the stored plan of both runs of an interleaved pair: id, side, and the new run's names of base's transports."""


def resume(run: int, info: RunInfo) -> Fix:
    """Continue a run, or repeat both sides of an interleaved pair: no side continues alone."""
    if info.is_imported:
        return _more_outputs(run)
    if INTERLEAVED in info.plan:
        words = tuple(_words(info.command, replaced=()))
        return Fix("Measure both variants again", words if words[:2] == ("hockney", "compare") else ())
    return Fix(f"Resume run {run}", ("hockney", "run", "--resume", str(run)), info.facts)


def more_launches(run: int, info: RunInfo, launches: int, twin: RunInfo | None = None) -> Fix:
    """Continue a run, or repeat it with this many launches and proportionally more time.

    A check measures the plan of its baseline: the command of a `twin`, a run of the same suite, repeats it. Without
    argv where no command line does that, as for a run that another program stored.
    """
    if info.is_imported:
        return _more_outputs(run)
    time_s, planned = info.plan.get("time_s"), info.plan.get("launches", 1)
    words, text = _words(info.command), f"Measure run {run} again with {launches} launches"
    if words[:2] == ["hockney", "check"]:
        if any(word.partition("=")[0] == "--expect" for word in words):
            return Fix(
                f"Set `launches = {launches}` in the expectations file and check again", tuple(words), info.facts
            )
        words = [] if twin is None or twin.suite != info.suite else _words(twin.command)
    elif launches <= planned or INTERLEAVED in info.plan:
        return resume(run, info)
    if words[:2] == ["hockney", "quick"]:
        words[1:2] = ["run", "quick"]  # which takes --launches
    if words[:2] != ["hockney", "run"]:
        return Fix(text)
    options = ["--launches", str(launches)]
    options += ["--time", f"{math.ceil(time_s * launches / planned)}s"] if time_s else []
    options += [] if info.label is None else ["--label", info.label]
    end = words.index("--") if "--" in words else len(words)
    return Fix(text, (*words[:end], *options, *words[end:]), info.facts)


def _more_outputs(run: int) -> Fix:
    """The fix for an imported run: measure again with the other benchmark."""
    return Fix(f"Instead of run {run}, import {LAUNCHES} such outputs together: each counts as a launch")


def more_pairs(info: RunInfo, pairs: int) -> Fix:
    """Measure two variants in alternation again, with this many launch pairs and proportionally more time."""
    time_s, planned = info.plan.get("time_s"), info.plan.get("launches", pairs)
    words = _words(info.command)
    options = ["--launches", str(pairs), *(["--time", f"{math.ceil(time_s * pairs / planned)}s"] if time_s else [])]
    argv = (*words, *options) if words[:2] == ["hockney", "compare"] else ()
    return Fix(f"Measure both variants again with {pairs} launches", argv)


def new_baseline(run: int, info: RunInfo) -> Fix:
    """Repeat a run with its original settings; without argv as for more_launches."""
    words = _words(info.command, _ELSEWHERE)
    can_repeat = words[:2] in (["hockney", "run"], ["hockney", "quick"])
    return Fix(f"Measure run {run} again now, as a new baseline", tuple(words) if can_repeat else (), info.facts)


def alternate(base: RunInfo, new: RunInfo) -> Fix | None:
    """Measure two runs in alternation; None if they differ by more than environment variables."""
    words = _words(new.command, _ELSEWHERE)
    before, after = ({**(info.facts.get("environment") or {})} for info in (base, new))
    only_base = [f"{name}={value}" for name, value in before.items() if after.get(name) != value]
    only_new = [f"{name}={value}" for name, value in after.items() if before.get(name) != value]
    can_repeat = words[:2] in (["hockney", "run"], ["hockney", "quick"]) and base.suite == new.suite
    has_load = bool(base.plan.get("background") or new.plan.get("background"))  # pairs are measured without one
    if not can_repeat or has_load or not (only_base or only_new):
        return None
    what = words[1:] if words[1] == "quick" else words[2:]
    kept = [word for word in what if word not in _OF_RUN_ALONE]
    for side, settings in (("--base-env", only_base), ("--new-env", only_new)):
        kept += [word for setting in settings for word in (side, setting)]
    common = {name: value for name, value in before.items() if after.get(name) == value}
    return Fix(
        "Measure both variants in alternation", ("hockney", "compare", "--interleave", *kept), {"environment": common}
    )


def _words(command: str, replaced: Collection[str] = _REPLACED) -> list[str]:
    """The words of a stored command that its repetition keeps; none if it is no command line."""
    try:
        given = shlex.split(command)
    except ValueError:  # an open quotation: another program may store any text
        return []
    pairs = itertools.pairwise(["", *given])
    words = [word for before, word in pairs if not {before, word.partition("=")[0]} & {*replaced}]
    return [word for word in words if word != "--json"]
