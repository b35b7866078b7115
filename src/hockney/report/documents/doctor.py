"""What `hockney doctor` says: this machine, what was measured, and the limits to precision with their remedies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hockney.analysis.hardware import subjects
from hockney.machine.files import named_cpus
from hockney.report.document import Block, Bullet, Column, Table, Text, Title
from hockney.report.findings import sentence_of
from hockney.report.notes import caveat_notes, fixed, of_warnings
from hockney.units import format_bytes, format_mebibytes, format_ns, format_rate, format_share

if TYPE_CHECKING:
    from hockney.measure.doctor import Checkup


def doctor_document(checkup: Checkup, *, with_facts: bool) -> Iterator[Block]:
    """The machine if `with_facts`, and what limits precision on it."""
    if with_facts:
        yield Title("This machine")
        yield Table(["", Column("", wrap=True)], _machine_rows(checkup.facts))
    yield Title("Measured")
    yield Table(["", Column("", wrap=True)], list(_measured_rows(checkup)))
    yield Title("Limits to precision")
    yield from caveat_notes(of_warnings(checkup.warnings), verbose=True)[0] or [Text("Nothing was found.")]
    hardware = list(_hardware_rows(checkup.facts))
    if hardware or checkup.findings:
        yield Title("Limits of the hardware")
        yield Table(["", Column("", wrap=True)], hardware)
        yield from (Bullet(sentence_of(each) + fixed(each.fix)) for each in checkup.findings)
    if checkup.missing:
        yield Title("Missing")
        rows = [[missing.name, missing.why, missing.how] for missing in checkup.missing]
        yield Table(["", Column("why", wrap=True), Column("how to get it", wrap=True)], rows)


def _machine_rows(facts: dict[str, Any]) -> list[list[str]]:
    cpu, surroundings, memory = facts["cpu"], facts["surroundings"], facts["memory"]
    threads = " with hardware threads" if cpu["smt"] else ""
    caches = ", ".join(
        f"L{cache['level']} {format_bytes(cache['size_bytes'])} for CPUs {' '.join(cache['shared_by'][:4])}"
        f"{' …' if len(cache['shared_by']) > 4 else ''}"
        for cache in facts["topology"]["caches"]
        if cache["kind"] != "instruction" and cache["size_bytes"]
    )
    inside = " in ".join(name for name in (surroundings["container"], surroundings["hypervisor"]) if name)
    frequency = f", up to {cpu['frequency_max_hz'] / 1e9:.2f} GHz" if cpu["frequency_max_hz"] else ""
    nodes = [named_cpus(node["cpus"]) if node["cpus"] else "memory only" for node in facts["topology"]["nodes"]]
    limits = facts["limits"]
    quota = f", limited to {limits['quota_cpus']:.2g} CPUs' worth of time" if limits["quota_cpus"] else ""
    sizes = {"/dev/shm": "shared_memory_bytes", "locked memory": "locked_memory_bytes", "cgroup memory": "memory_bytes"}
    allowed = [f"{what} {format_mebibytes(limits[name])}" for what, name in sizes.items()]
    allowed.append(f"CMA { {None: 'unknown', True: 'works', False: 'refused'}[limits['cma']] }")
    scope = f", ptrace scope {limits['ptrace_scope']}" if limits["ptrace_scope"] is not None else ""
    boost = {None: "unknown", True: "on", False: "off"}[cpu["boost"]]
    return [
        ["CPU", f"{cpu['model'] or 'unknown'}{frequency}"],
        ["cores", f"{cpu['cores'] or '?'}{threads}, packages: {cpu['packages'] or '?'}"],
        ["usable CPUs", f"{limits['usable_cpus']}{quota}"],
        ["caches", caches or "unknown"],
        ["NUMA nodes", f"{len(nodes)}, {' | '.join(nodes)}" if nodes else "unknown"],
        ["memory", f"{memory['total_bytes'] / 2**30:.1f} GiB" if memory["total_bytes"] else "unknown"],
        ["limits", f"{', '.join(allowed)}{scope}"],
        ["governor, boost", f"{', '.join(cpu['governors']) or 'not readable here'}, boost {boost}"],
        ["clock", facts["clock"]["source"] or "unknown"],
        ["system", f"{facts['os']['name'] or '?'}, {facts['os']['kernel']}{f', {inside}' if inside else ''}"],
        ["compiler", facts["software"]["c_compiler"] or "none"],
    ]


def _hardware_rows(facts: dict[str, Any]) -> Iterator[list[str]]:
    """What each link and network, and the memory, carry at most, as far as it is known."""
    for part in subjects(facts):
        texts = []
        if part.get("link"):
            texts.append(f"{part['link']} carries {format_rate(part['link_bytes_per_s'])}")
        if part.get("bits_per_s"):
            texts.append(f"{part['bits_per_s'] / 1e9:g} Gbit/s, which are {format_rate(part['speed_bytes_per_s'])}")
        texts += [
            f"{key} {part[name]}" for key, name in (("MTU", "mtu_bytes"), ("NVLinks", "nvlinks")) if part.get(name)
        ]
        if part.get("modules"):
            rate = format_rate(8e6 * part["modules"] * part["mt_per_s"])
            texts.append(
                f"{part['modules']} modules of {part['mt_per_s']} MT/s carry {rate} at most, with a channel each"
            )
        if texts:
            yield [part["name"], "; ".join(texts)]


def _measured_rows(checkup: Checkup) -> Iterator[list[str]]:
    measured, moment = checkup.measured, checkup.moment
    for seen in measured.floor:
        level = format_ns(seen.median_ns) if seen.median_ns is not None else "between states"
        yield [f"floor, {seen.state}", f"{level} in {format_share(seen.share)} of the measurements"]
    if measured.why:
        yield ["floor", f"not measured: {measured.why}"]
    for what, cost_ns in (("reading the clock", measured.clock_ns), ("one empty repetition", measured.harness_ns)):
        if cost_ns is not None:
            yield [what, format_ns(cost_ns)]
    cpus = " and ".join(map(str, measured.cpus))
    words = {True: f"works (CPUs {cpus})", False: "does not hold", None: "not possible or not tried"}
    yield ["pinning", words[measured.pinned]]
    steal = "unknown" if moment.steal is None else f"{moment.steal:.1%} of the CPU time"
    busy = "unknown" if moment.busy_cpus is None else f"{moment.busy_cpus:.1f} CPUs"
    yield from (["stolen by a hypervisor", steal], ["busy with other programs", busy])
