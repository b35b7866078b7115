"""Switches and the hosts behind each: a fault that most hosts of one show, and few others, is named by the switch."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from hockney.analysis.finding import Finding
from hockney.analysis.health.faults import FaultyPart, Located
from hockney.analysis.health.matrices import Matrices
from hockney.errors import Fix, UsageError
from hockney.files import named_text
from hockney.worker.hosts import Host, fold_hosts, parse_hosts

SWITCHES = "switches"  # in the stored plan: the hosts behind each, as --hosts takes them
Switches = Mapping[str, Collection[str]]
_FEW = 0.1  # of other hosts or pairs

# ---- the file --------------------------------------------------------------------------------------------------------


def read_topology(path: Path, hosts: Sequence[str]) -> dict[str, str]:
    """By switch those of `hosts` behind it, two at least: of Slurm's topology.conf, or of lines `switch = hosts`.

    Raises UsageError with the line that cannot be read.
    """
    below: dict[str, tuple[int, set[str], set[str]]] = {}  # the line of each switch, its hosts and its switches
    ahead = ""  # Slurm continues a line that ends in a backslash
    for number, line in enumerate([*named_text(path, "topology").splitlines(), ""], 1):
        line = ahead + line.partition("#")[0].strip()
        ahead = line.removesuffix("\\") if line.endswith("\\") else ""
        if ahead:
            continue
        if line:
            try:
                name, members, switches = _switch(line)
            except UsageError:
                name = ""
            if not name or name in below:
                why = f"names the switch {name} again" if name else "names no switch with its hosts"
                example = "SwitchName=s1 Nodes=n[1-8], SwitchName=s0 Switches=s[1-4], or s1 = n[1-8]"
                raise UsageError(f"line {number} of {path}, '{line[:200]}', {why}: write for example {example}")
            below[name] = (number, members, switches)

    def misplaced(switch: str, name: str, why: str) -> UsageError:
        return UsageError(f"line {below[name][0]} of {path} puts the switch {switch} below {name}, {why}: correct it")

    for name, (_, _, switches) in below.items():
        if unknown := sorted(switches - below.keys()):
            raise misplaced(unknown[0], name, "which no line describes")
    every: dict[str, set[str]] = {}
    try:
        for name in TopologicalSorter({name: switches for name, (_, _, switches) in below.items()}).static_order():
            _, members, switches = below[name]
            every[name] = members.union(*(every[switch] for switch in switches))
    except CycleError as error:
        switch, name, *_ = error.args[1]
        raise misplaced(switch, name, "which is above it") from None
    some = {name: [Host(host) for host in hosts if host in every[name]] for name in below}  # in the file's order
    some = {name: known for name, known in some.items() if len(known) > 1}
    if not some:
        raise UsageError(f"{path} has no switch with two of these hosts: write their names as --hosts has them")
    return {name: fold_hosts(known) for name, known in some.items()}


def _switch(line: str) -> tuple[str, set[str], set[str]]:
    """The name of a switch, the hosts and the switches that its line puts below it; "" without any. UsageError."""
    words = {key.lower(): value for key, _, value in (word.partition("=") for word in line.split())}
    name, _, members = line.partition("=")
    lists = [members.replace(" ", ","), ""]
    if slurm := words.get("switchname") or words.get("blockname"):
        name, lists = slurm, [words.get("nodes", ""), words.get("switches", "")]
    hosts, switches = ({host.name for host in parse_hosts(each)} if each else set[str]() for each in lists)
    return name.strip() if hosts or switches else "", hosts, switches


def switches_of(plan: Mapping[str, Any]) -> dict[str, set[str]]:
    """The names of the hosts behind each switch, as a plan stores them; a switch of few hosts comes first."""
    known = {name: {host.name for host in parse_hosts(text)} for name, text in plan.get(SWITCHES, {}).items()}
    return dict(sorted(known.items(), key=lambda each: len(each[1])))


# ---- faults ----------------------------------------------------------------------------------------------------------


def behind_a_switch(known: Matrices, located: Located, switches: Switches) -> Located:
    """An uplink in the place of too many pairs for single links, if nine of ten are those of one switch with others.

    As where one of several cables of a switch is down. Most of its hosts must show it, in a tenth of their pairs with
    others; between other switches there must be pairs, too, as else the fault may be theirs.
    """
    shown, found = located.unclear if located.are_many else (), []
    groups = [
        frozenset(number for number, host in enumerate(known.hosts) if host in names) for names in switches.values()
    ]
    for hosts in groups if shown else ():
        pairs = tuple(pair for pair in shown if len(hosts.intersection(pair)) == 1)
        ends = hosts.intersection(host for pair in pairs for host in pair)
        if len(hosts) > 1 and len(pairs) >= (1 - _FEW) * len(shown) and 2 * len(ends) > len(hosts):
            met = sum(len(hosts.intersection(pair)) == 1 for pair in known.sent)
            elsewhere = [pair for pair in known.sent if hosts.isdisjoint(pair)]
            is_elsewhere = any(len(other.intersection(pair)) == 1 for other in groups for pair in elsewhere)
            if len(pairs) >= _FEW * met and is_elsewhere:
                found.append(FaultyPart(tuple(sorted(hosts)), None, "both", pairs, met))
    if not found or any({*found[0].hosts} - {*part.hosts} for part in found):  # none, or the cable between two
        return located
    return replace(located, parts=(*located.parts, found[0]), unclear=(), are_many=False)


def by_switch(findings: Iterable[Finding], switches: Switches, hosts: Collection[str]) -> Iterator[Finding]:
    """One finding in the place of those of one kind that most hosts of a switch have, and at most a tenth of others.

    `hosts`: all of the run. Of several switches those come first whose hosts are, most exactly, those with the fault.
    """
    kinds: dict[str, list[Finding]] = {}
    for finding in findings:
        kinds.setdefault(finding.code, []).append(finding)
    for of_kind in kinds.values():
        where = {number: shown for number, finding in enumerate(of_kind) if (shown := _hosts(finding))}
        left = set[str]().union(*where.values())
        named: dict[str, set[str]] = {}
        while fits := {
            name: len(left.symmetric_difference(behind))
            for name, behind in switches.items()
            if name not in named and len(behind) < 2 * len(left.intersection(behind)) > 2
        }:
            name = min(fits, key=fits.__getitem__)
            named[name] = {*switches[name]}
            left -= named[name]
        others = {*hosts}.difference(*named.values())
        if not others or len(left) > _FEW * len(others):
            named = {}
        folded = set[int]()
        for name, behind in named.items():
            members = [number for number, shown in where.items() if shown <= behind and number not in folded]
            folded.update(members)
            if members:
                yield _of_switch(name, behind, [of_kind[number] for number in members])
        yield from (finding for number, finding in enumerate(of_kind) if number not in folded)


def _hosts(finding: Finding) -> set[str]:
    """The hosts with a fault; none of a link, of all that have one speed, or of the user's own limits."""
    facts = finding.facts
    if finding.code.endswith("uplink"):
        return {*facts["hosts"]}
    return set() if {"other", "place"} & facts.keys() or "host" not in facts else {facts["host"]}


def _of_switch(switch: str, behind: Collection[str], members: Sequence[Finding]) -> Finding:
    """The finding of a switch: the medians of the figures of its hosts, and the words that all have."""
    first, every = members[0], [finding.facts for finding in members]
    hosts = sorted(set[str]().union(*map(_hosts, members)))
    facts: dict[str, Any] = {"switch": switch, "hosts": hosts, "of": len(behind)}
    for key, value in first.facts.items():
        values = [known.get(key) for known in every]
        numbers = [each for each in values if isinstance(each, int | float)]
        if len(numbers) == len(values):
            facts[key] = statistics.median_low(numbers)
        elif key not in ("host", "hosts") and all(each == value for each in values):
            facts[key] = value
    fix = first.fix if first.code == "wrong clock" else Fix("inspect uplink", facts={"switch": switch})
    return replace(first, facts=facts, fix=fix, effect=max(finding.effect for finding in members))
