"""Which command continues a stored run, repeats it with more launches, or measures two in alternation."""

from __future__ import annotations

import itertools
import math
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hockney.errors import Fix, UsageError
from hockney.model import NOT_MEASURED, Launch, Point, PointStatus, RunInfo, RunStatus, split_placed
from hockney.stats.shift import LAUNCHES_MIN
from hockney.worker.hosts import Host, fold_hosts, parse_hosts
from hockney.worker.placement import Placement

if TYPE_CHECKING:
    from hockney.results.runs import Run

LAUNCHES_WANTED = 6
"""How many launches a run should have, so that intervals are over launches and a comparison can decide."""

_ROUNDS_ENOUGH = 10  # of one launch, so that most points have six measurements in one machine state

# Options of the stored command that the new one replaces or leaves out; each takes a value.
_REPLACED = {"--launches", "--time", "--store", "--label", "-l", "--csv"}
_ELSEWHERE = {"--store", "--csv"}
_OF_RUN_ALONE = {"--refine", "--no-refine", "--quiet", "-q"}  # options that compare --interleave does not take

INTERLEAVED = "interleaved"
"""In the stored plan of both runs of an interleaved pair: id, side, and the new run's names of base's transports.

Of several variants each is "new" beside the one base, with the same id.
"""
EARLY = "early"
"""There too: launches ended as soon as their results were certain, so that certainty must hold at every look."""
TUNE = "tune"
"""In the stored plan of a tune's runs: of what, of which tune, and of which step. A tune goes on as a whole."""
BISECT = "bisect"
OF_COMMANDS = (TUNE, BISECT)
"""Labels of the runs that these commands make: lists leave them out, and `delete --older` takes them."""


def same_hosts(plan: Mapping[str, Any], *, slots: bool = False) -> tuple[str, ...]:
    """The options that put another command on the hosts of a run, reached in the same way."""
    where = Placement.of_plan(plan)
    if not where.hosts:
        return ()
    slots &= not where.one_per_host  # those of an allocation: named, they would ask for more ranks
    return (
        *("--hosts", fold_hosts(where.hosts if slots else (Host(host.name) for host in where.hosts))),
        *(("--launcher", where.launcher) if where.launcher != "auto" else ()),
        *(("--interface", where.interface) if where.interface else ()),
    )


def same_placement(plan: Mapping[str, Any], transport: str = "") -> tuple[str, ...]:
    """The options that put a new `run` where a run was; with -t, and --per-node as of `tcp/2`, for one transport."""
    name, per_host = split_placed(transport)
    where = Placement.of_plan(plan)
    return (
        *(("-t", name) if name else ()),
        *same_hosts(plan, slots=True),
        *(("--per-node", per_host) if per_host.isdecimal() else ()),
        *(("--cpus", where.bind) if where.cpus else ()),
        *(("--map", where.map_by) if where.map_by != "core" else ()),
    )


def further(run: Run) -> Fix | None:
    """What gives the figures of a run better intervals, or those over launches; None: nothing."""
    if run.info.suite == "health":
        return longer_health(run.info)
    left = {series.status for series in run.series} - {PointStatus.PRECISE, *NOT_MEASURED}
    made = launches_made(run.launches.values(), run.status)
    gets_others = made < LAUNCHES_MIN and is_of_one(run.info.plan, {series.point for series in run.series}, made)
    ended = (RunStatus.RUNNING, *((RunStatus.DONE, RunStatus.PARTIAL) if TUNE in run.info.plan else ()))
    return resume(run.id, run.info) if (left or gets_others) and run.status not in ended else None


def launches_made(launches: Iterable[Launch], status: RunStatus) -> int:
    """How many launches of a run are whole: the last one of a run that did not end by itself was cut short."""
    begun = 1 + max((launch.index for launch in launches), default=-1)
    return begun if status in (RunStatus.DONE, RunStatus.PARTIAL) else max(0, begun - 1)


def is_of_one(plan: Mapping[str, Any], points: Iterable[Point], made: int) -> bool:
    """Whether a run was to have one launch, has made it, and gets others if it goes on; not a search or exact times."""
    is_exact = all(plan.get("virtual", {}).get(point.transport) for point in points)
    return made > 0 and plan.get("launches", 1) == 1 and plan.get("deadline_ns") is None and not is_exact


def resume(run: int, info: RunInfo) -> Fix:
    """Continue a run, or repeat both sides of an interleaved pair: no side continues alone."""
    if info.is_imported:
        return _more_outputs(run)
    if INTERLEAVED in info.plan:
        words = tuple(_words(info.command, replaced=()))
        if TUNE in info.plan:
            return Fix("resume", resumed(words) if words[:2] == ("hockney", "tune") else ())
        return Fix("measure variants", words if words[:2] == ("hockney", "compare") else ())
    if info.suite == "health":  # whose own sampler chooses the pairs
        return Fix("measure all hosts", tuple(_words(info.command, replaced=())))
    return Fix("resume", ("hockney", "run", "--resume", str(run)), {"run": run}, info.facts)


def resumed(words: Sequence[str]) -> tuple[str, ...]:
    """The command that goes on with what these words began."""
    return (*words, *(("--resume",) if "--resume" not in words else ()))


def longer(run: Run) -> Fix | None:
    """Measure a run of one launch again, with the time of enough rounds for intervals.

    None where it had as many, or where no command line repeats it.
    """
    words, time_s = _words(run.info.command), run.info.plan.get("time_s")
    of_one = run.info.plan.get("launches", 1) == 1 and run.info.plan.get("deadline_ns") is None
    if not (time_s and of_one and 0 < run.rounds < _ROUNDS_ENOUGH and words[:2] == ["hockney", "run"]):
        return None
    enough_s = math.ceil(time_s * _ROUNDS_ENOUGH / run.rounds)
    time = f"{enough_s}s" if enough_s <= 120 else f"{math.ceil(enough_s / 60)}m"
    return Fix("measure longer", (*words, "--time", time), {"run": run.id}, run.info.facts)


def more_launches(run: int, info: RunInfo, launches: int, twin: RunInfo | None = None) -> Fix:
    """Continue a run, or repeat it with this many launches and proportionally more time.

    A check measures the plan of its baseline: the command of a `twin`, a run of the same suite, repeats it. Without
    argv where no command line does that, as for a run that another program stored.
    """
    if info.is_imported:
        return _more_outputs(run)
    time_s, planned = info.plan.get("time_s"), info.plan.get("launches", 1)
    words, facts = _words(info.command), {"run": run, "launches": launches}
    if words[:2] == ["hockney", "check"]:
        if any(word.partition("=")[0] == "--expect" for word in words):
            return Fix("set launches", tuple(words), facts, info.facts)
        words = [] if twin is None or twin.suite != info.suite else _words(twin.command)
    elif launches <= planned or INTERLEAVED in info.plan:
        return resume(run, info)
    if words[:2] == ["hockney", "quick"]:
        words[1:2] = ["run", "quick"]  # which takes --launches
    if words[:2] != ["hockney", "run"]:
        return Fix("more launches", (), facts)
    options = ["--launches", str(launches)]
    options += ["--time", f"{math.ceil(time_s * launches / planned)}s"] if time_s else []
    options += [] if info.label is None else ["--label", info.label]
    end = words.index("--") if "--" in words else len(words)
    return Fix("more launches", (*words[:end], *options, *words[end:]), facts, info.facts)


def longer_health(info: RunInfo) -> Fix:
    """Measure the hosts of a run of `health` longer, with its files of limits and switches."""
    carriers = [name for name in info.facts["traits"]["transports"] if name != "tcp"]
    carrier = ("-t", ",".join(carriers)) if carriers else ()
    pairs = itertools.pairwise(["", *_words(info.command)])
    files = (word for before, word in pairs if {before, word.partition("=")[0]} & {"--topology", "--expect"})
    return Fix("measure longer", ("hockney", "health", *same_hosts(info.plan), *carrier, *files, "--time", "10m"))


def _more_outputs(run: int) -> Fix:
    """The fix for an imported run: measure again with the other benchmark."""
    return Fix("import more", (), {"run": run, "outputs": LAUNCHES_WANTED})


def more_pairs(info: RunInfo, pairs: int) -> Fix:
    """Measure two variants in alternation again, with this many launch pairs and proportionally more time.

    Where pairs end early, with twice the time.
    """
    time_s, planned, is_early = info.plan.get("time_s"), info.plan.get("launches", pairs), ends_early(info)
    longer = 2 if is_early else pairs / planned
    words = _words(info.command)
    options = [] if is_early else ["--launches", str(pairs)]
    options += ["--time", f"{math.ceil(time_s * longer)}s"] if time_s else []
    argv = (*words, *options) if words[:2] == ["hockney", "compare"] else ()
    return Fix("measure variants", argv, {} if is_early else {"launches": pairs})


def ends_early(info: RunInfo) -> bool:
    """Whether a run's launches ended as soon as their results were certain."""
    return bool((info.plan.get(INTERLEAVED) or {}).get(EARLY))


def new_baseline(run: int, info: RunInfo) -> Fix:
    """Repeat a run with its original settings. Its label then names the new one. Without argv as more_launches."""
    words = _words(info.command, _ELSEWHERE)
    can_repeat = words[:2] in (["hockney", "run"], ["hockney", "quick"])
    return Fix("new baseline", tuple(words) if can_repeat else (), {"run": run}, info.facts)


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
    return Fix("alternate", ("hockney", "compare", "--interleave", *kept), run_facts={"environment": common})


def _words(command: str, replaced: Collection[str] = _REPLACED) -> list[str]:
    """The words of a stored command that its repetition keeps; none if it is no command line."""
    try:
        given = shlex.split(command)
    except ValueError:  # an open quotation: another program may store any text
        return []
    pairs = itertools.pairwise(["", *given])
    kept = ((before, word) for before, word in pairs if not {before, word.partition("=")[0]} & {*replaced})
    return [_folded(word) if before == "--hosts" else word for before, word in kept if word != "--json"]


def _folded(hosts: str) -> str:
    try:
        return fold_hosts(parse_hosts(hosts))
    except UsageError:  # see _words
        return hosts
