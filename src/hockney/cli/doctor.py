"""`hockney doctor`: what limits precision on this machine, and how to fix it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hockney.cli import render
from hockney.cli.common import command
from hockney.cli.render import Column
from hockney.machine.files import named_cpus
from hockney.units import format_bytes, format_ns

if TYPE_CHECKING:
    from hockney.measure.doctor import Checkup, PairFigures


@command(
    "doctor",
    example="hockney doctor\nhockney doctor --no-facts\nhockney doctor --json\nhockney doctor --json > machine.json",
)
@click.option("--no-facts", is_flag=True, help="Leave out the description of the machine.")
def doctor(no_facts: bool, *, as_json: bool, store: Path | None) -> None:
    """Show what limits precision here, and how to fix it.

    Describes the machine, measures for two seconds how long two CPUs take to exchange a cache line (the floor) and
    what other programs and virtual machines take, and lists missing libraries with how to install them.
    """
    from hockney.measure.doctor import check_up

    checkup = check_up()
    if as_json:
        render.print_json("doctor", _as_json(checkup))
        return
    if not no_facts:
        render.title("This machine", first=True)
        render.table(["", Column("", wrap=True)], _machine_rows(checkup.facts))
    render.title("PairFigures", first=no_facts)
    render.table(["", Column("", wrap=True)], [*_measured_rows(checkup.measured), *_moment_rows(checkup)])
    render.limits(checkup.warnings, none="Nothing was found.")
    if checkup.missing:
        render.title("What is missing")
        rows = [[missing.name, missing.why, missing.how] for missing in checkup.missing]
        render.table(["", Column("why", wrap=True), Column("how to get it", wrap=True)], rows)


def _as_json(checkup: Checkup) -> dict[str, Any]:
    return {
        "facts": checkup.facts,
        "moment": asdict(checkup.moment),
        "measured": asdict(checkup.measured),
        "warnings": [render.warning_json(warning) for warning in checkup.warnings],
        "missing": [asdict(missing) for missing in checkup.missing],
    }


def _machine_rows(facts: dict[str, Any]) -> list[list[str]]:
    cpu, surroundings, memory = facts["cpu"], facts["surroundings"], facts["memory"]
    threads = " with hardware threads" if cpu["smt"] else ""
    caches = ", ".join(
        f"L{cache['level']} {format_bytes(cache['size_bytes'])} for CPUs {' '.join(cache['shared_by'][:4])}"
        + (f" and {len(cache['shared_by']) - 4} more" if len(cache["shared_by"]) > 4 else "")
        for cache in facts["topology"]["caches"]
        if cache["kind"] != "instruction" and cache["size_bytes"]
    )
    inside = " in ".join(name for name in (surroundings["container"], surroundings["hypervisor"]) if name)
    frequency = f", up to {cpu['frequency_max_hz'] / 1e9:.2f} GHz" if cpu["frequency_max_hz"] else ""
    boost = {None: "unknown", True: "on", False: "off"}[cpu["boost"]]
    return [
        ["CPU", f"{cpu['model'] or 'unknown'}{frequency}"],
        ["cores", f"{cpu['cores'] or '?'}{threads}, packages: {cpu['packages'] or '?'}, usable CPUs: {_usable(facts)}"],
        ["caches", caches or "unknown"],
        ["NUMA nodes", _nodes([node["cpus"] for node in facts["topology"]["nodes"]])],
        ["memory", f"{memory['total_bytes'] / 2**30:.1f} GiB" if memory["total_bytes"] else "unknown"],
        ["governor, boost", f"{', '.join(cpu['governors']) or 'not in our hands'}, boost {boost}"],
        ["clock", facts["clock"]["source"] or "unknown"],
        ["system", f"{facts['os']['name'] or '?'}, {facts['os']['kernel']}{f', {inside}' if inside else ''}"],
        ["compiler", facts["software"]["c_compiler"] or "none"],
    ]


def _nodes(cpus_of: Sequence[str]) -> str:
    """How many there are, and the CPUs of each as Linux writes them; one of memory alone has none."""
    each = [named_cpus(cpus) if cpus else "memory only" for cpus in cpus_of]
    return f"{'one' if len(each) == 1 else len(each)}, {' | '.join(each)}" if each else "unknown"


def _usable(facts: dict[str, Any]) -> str:
    quota = facts["limits"]["quota_cpus"]
    limit = f", limited to {quota:.2g} CPUs' worth of time" if quota else ""
    return f"{facts['limits']['usable_cpus']}{limit}"


def _measured_rows(measured: PairFigures) -> list[list[str]]:
    rows = []
    for seen in measured.floor:
        level = format_ns(seen.median_ns) if seen.median_ns is not None else "between states"
        rows.append([f"floor, {seen.state}", f"{level} in {seen.share:.0%} of the measurements"])
    if measured.why:
        rows.append(["floor", f"not measured: {measured.why}"])
    if measured.clock_ns is not None:
        rows.append(["reading the clock", format_ns(measured.clock_ns)])
    if measured.harness_ns is not None:
        rows.append(["one empty repetition", format_ns(measured.harness_ns)])
    cpus = " and ".join(str(cpu) for cpu in measured.cpus)
    words = {True: f"works (CPUs {cpus})", False: "does not hold", None: "not possible or not tried"}
    rows.append(["pinning", words[measured.pinned]])
    return rows


def _moment_rows(checkup: Checkup) -> list[list[str]]:
    moment = checkup.moment
    steal = "unknown" if moment.steal is None else f"{moment.steal:.1%} of the CPU time"
    busy = "unknown" if moment.busy_cpus is None else f"{moment.busy_cpus:.1f} CPUs"
    return [["stolen by a hypervisor", steal], ["busy with other programs", busy]]
