"""Differences between two runs other than their times: machine, system, libraries, placement."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hockney.analysis.compare.values import COMMIT, HOST, VARIABLE, Contention, Difference
from hockney.analysis.repeat import INTERLEAVED
from hockney.machine.facts import fact
from hockney.machine.files import read_toml
from hockney.model import Launch, RunStatus
from hockney.results.runs import Run
from hockney.worker.catalogue import split_name

# Name -> its path in the facts (machine/facts.py), the most informative first.
_FACTS: dict[str, str] = read_toml(Path(__file__).with_suffix(".toml"))["path"]
_VERSION = re.compile(r"-\d.*")  # of a library


def renamed(before: Iterable[str], after: Iterable[str]) -> dict[str, str]:
    """The transports that differ in the version of their library only: `mpi@openmpi-4.1.4` -> `mpi@openmpi-5.0.1`.

    Only where one library of a kind is gone and one has come.
    """
    gone, come = set(before) - set(after), set(after) - set(before)
    kinds: dict[str, tuple[list[str], list[str]]] = {}
    for side, names in enumerate((gone, come)):
        for name in names:
            if split_name(name)[1]:
                kinds.setdefault(unversioned(name), ([], []))[side].append(name)
    return {old[0]: new[0] for old, new in kinds.values() if len(old) == len(new) == 1}


def unversioned(transport: str) -> str:
    """`mpi@openmpi-4.1.4:sync` -> `mpi@openmpi:sync`: without the version of its library."""
    library = split_name(transport)[1]
    return transport.replace(library, _VERSION.sub("", library), 1) if library else transport


def differences(base: Run, new: Run, names: Mapping[str, str]) -> tuple[Difference, ...]:
    """All differences, the most informative first: those that users make. `names`: as of `renamed`."""
    facts = base.info.facts, new.info.facts
    values: list[tuple[str, str | None, str | None]] = [("hockney", base.info.version, new.info.version)]
    values += [(what, _text(fact(facts[0], path)), _text(fact(facts[1], path))) for what, path in _FACTS.items()]
    for name in sorted({name for known in facts for name in known.get("environment") or ()}):
        values.append((f"{VARIABLE}{name}", _variable(base, name), _variable(new, name)))
    for what, key, default in (("launcher", "launcher", "auto"), ("network interface", "interface", "not set")):
        before, after = (None if run.info.is_imported else run.info.plan.get(key) or default for run in (base, new))
        values.append((what, before, after))
    values += _of_models(*facts)
    changed = (Difference(what, before, after) for what, before, after in values if before != after)
    listed = sorted([*_of_launches(base, new, names), *changed], key=lambda each: not each.what.startswith(VARIABLE))
    is_partial = base.info.is_imported or new.info.is_imported  # little is known of one side, which is no change
    return tuple(each for each in listed if not is_partial or (each.base and each.new))


def _of_models(base: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, str | None, str | None]]:
    """The parameters of the models in both runs."""
    for name, model in (new.get("models") or {}).items():
        records = ((base.get("models") or {}).get(name, model), model)
        before, after = ({key: value for key, value, _ in record["parameters"]} for record in records)
        for key in {**before, **after}:
            yield f"{key} of {name}", before.get(key, "none"), after.get(key, "none")


def is_unchanged(listed: Iterable[Difference]) -> bool:
    """Whether nothing is known to differ that could change a time: then drift may."""
    return all(difference.what in (HOST, COMMIT) for difference in listed)


def contention_of(*runs: Run) -> tuple[Contention, ...]:
    """The contention in each run, and whether the run was stopped.

    A resumed run repeats the check, so of each kind only the last counts; but every load of other programs during
    launches.
    """
    last = {
        (run.id, warning.cause if warning.kind == "others" else warning.kind): warning.cause
        for run in runs
        for warning in run.warnings
        if warning.kind in ("load", "steal", "others")
    }
    stopped_by = (RunStatus.STOPPED, RunStatus.KILLED)
    stopped = [Contention(run.id, "It was stopped before its end.") for run in runs if run.status in stopped_by]
    return (*stopped, *(Contention(run_id, cause) for (run_id, _), cause in last.items()))


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or None
    return None if value is None else str(value)


def _variable(run: Run, name: str) -> str | None:
    """A variable's value, "inherited" of a side that did not set it, "not set", or None if that is not known."""
    environment = run.info.facts.get("environment")
    if environment is None:
        return None
    value = environment.get(name)
    absent = "inherited" if name in run.info.plan.get(INTERLEAVED, {}).get("inherited", ()) else "not set"
    return absent if value is None else _text(value) or "empty"


def _of_launches(base: Run, new: Run, names: Mapping[str, str]) -> Iterator[Difference]:
    """Differences of libraries, CPUs and hosts of the transports in both runs; one line if several share it."""
    kinds: dict[str, Callable[[Launch], str]] = {
        "library": lambda launch: launch.library,
        "CPUs of ranks": lambda launch: " ".join(map(str, launch.cpus)),
        "hosts of ranks": lambda launch: " ".join(dict.fromkeys(launch.hosts)),
    }
    # Where one of two variants has no library, their names already say what differs.
    others = {new for old, new in names.items() if old != new and not (split_name(old)[1] and split_name(new)[1])}
    for what, value in kinds.items():
        before: dict[tuple[str, int], set[str]] = {}  # by transport and number of ranks
        after: dict[tuple[str, int], set[str]] = {}
        for of_run, run, renamed_to in ((before, base, names), (after, new, {})):
            for launch in run.launches.values():
                key = renamed_to.get(launch.transport, launch.transport), 0 if what == "library" else launch.ranks
                of_run.setdefault(key, set()).add(value(launch))
        groups: dict[tuple[str, str], list[str]] = {}
        for key, values in after.items():
            if what == "library" and key[0] in others:
                continue
            earlier = before.get(key, values)
            if earlier != values:
                groups.setdefault(("; ".join(sorted(earlier)), "; ".join(sorted(values))), []).append(key[0])
        for (earlier_text, text), transports in groups.items():
            yield Difference(f"{what}, {', '.join(dict.fromkeys(transports))}", earlier_text, text)
