"""The tables of the page: the data sheet, rates, times under load, and the facts about the run and its machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from hockney.analysis.impact import impacts_of
from hockney.report.commands import typed
from hockney.report.document import Block, Item, Section, Table, Text, Title
from hockney.report.documents.impacts import background_text, impact_blocks
from hockney.report.documents.sheet import sheet_legend, sheet_table
from hockney.report.likeness import like_section
from hockney.report.notes import endings_of
from hockney.report.page.material import Material
from hockney.report.page.summary import utc
from hockney.report.words import hosts_text, placement_text
from hockney.results.runs import Run
from hockney.units import format_bytes

_FACTS_MAX = 400  # characters of a value


def sections_of(material: Material) -> dict[str, Section]:
    """The sections of the page that are a table each, by their anchors."""
    sheet, found = material.sheet, dict[str, Section]()
    if sheet is not None and sheet.rows:
        table = sheet_table(sheet)
        meaning = [f"{column.title}: {column.definition}." for column in sheet.columns]
        notes = Section("Meaning of the columns", tuple(map(Text, meaning)))
        best = "Blue: best, or not distinguishable from it. Figures worse than ±50 % are never coloured."
        how = typed("show", material.run.id, "--states")
        texts = map(Text, (best, *sheet_legend(sheet, material.run, table, how)))
        found["sheet"] = Section("Data sheet", (table, *texts, notes))
    found |= {"rates": material.rates} if material.rates else {}
    others = {"load": load_section(material), "like": like_section(material.run)}
    return found | {name: section for name, section in others.items() if section}


def load_section(material: Material) -> Section | None:
    """Times idle and under the background; None for a run without a point that was measured both ways."""
    run, reading = material.run, material.reading
    impacts = impacts_of(run) if reading is None else reading.impacts
    if impacts is None or not impacts.impacts:
        return None
    return Section("Under load", (Text(" ".join(_where(run))), *impact_blocks(impacts, material.name_of)))


def _where(run: Run) -> Iterable[str]:
    """Who makes the traffic, and who is measured."""
    yield f"Background: {background_text(run)}."
    if run.info.plan["background"]["hosts"]:
        launches = (launch for launch in run.launches.values() if launch.transport not in run.harness)
        hosts = dict.fromkeys(host for launch in launches for host in launch.hosts)
        yield f"Measured: ranks on {hosts_text(list(hosts))}."
    elif placement := placement_text(run):
        yield f"Measured: {placement}"


# ---- the environment ------------------------------------------------------------------------------------------------


def environment_of(material: Material) -> Iterable[Block]:
    """What limits the figures of the first run, its series without figures, its launches, and facts about it."""
    run = material.run
    plan = {name: value for name, value in run.info.plan.items() if not isinstance(value, dict | list)}
    left_out = {"traits", "topology", "taken_unix_s", "machine_id"}
    facts = {name: value for name, value in run.facts.items() if name not in left_out}
    caveats = map(Item, map(str, run.warnings))
    yield from [Title("Limits of these figures"), *caveats] if run.warnings else []
    endings = endings_of(run.series)
    yield from [Title("Failed, skipped, not reached"), Table([""], endings)] if endings else []
    launches = Counter(
        (
            launch.transport,
            launch.library,
            str(launch.ranks),
            ", ".join(dict.fromkeys(launch.hosts)),
            ", ".join(map(str, launch.cpus[:64])) if launch.cpus and min(launch.cpus) >= 0 else "unknown",
            " ".join(launch.argv)[:_FACTS_MAX],
        )
        for launch in run.launches.values()
    )
    columns = ("transport", "library", "ranks", "hosts", "CPUs", "command", "launches")
    yield Section("Launches", (Table(columns, [[*launch, str(count)] for launch, count in launches.items()]),))
    started = {"run.started": utc(run.info.started_unix_s), "run.seed": str(run.info.seed)}
    rows = (*started.items(), *_flat({"plan": plan}), *_flat(facts))
    yield Section("Machine and plan", (Table(("fact", "value"), rows),))


def _flat(values: Mapping[str, Any], above: str = "") -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        key = f"{above}.{name}".lstrip(".")
        if isinstance(value, Mapping):
            yield from _flat(value, key)
        elif value not in (None, "", [], ()):
            yield key, _value(name, value)[:_FACTS_MAX]


def _value(name: str, value: Any) -> str:
    if name.endswith("_bytes") and isinstance(value, int):
        return format_bytes(value)
    if isinstance(value, list | tuple):
        return ", ".join(_value("", each) for each in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_value(key, each)}" for key, each in value.items() if each is not None)
    return str(value)
