"""Everything that can be measured here: suites, patterns, transports, launchers and machines of the archive.

Each item is ready, or has the reason why not and how to get it. All come from their definitions: the workers'
descriptions, the installed libraries, the files in suites/, the table of launchers, the archive.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from hockney.archive import Machine, machines, reports
from hockney.errors import UsageError
from hockney.machine.files import read_toml
from hockney.measure.plan import make_plan
from hockney.model import Point
from hockney.report.commands import typed
from hockney.report.document import Block, Column, Item, Sentence, Table, Text, Title, records
from hockney.suites import builtin_names
from hockney.suites.tools import NamedSeries, load_named, tools
from hockney.units import counted
from hockney.worker.catalogue import Catalogue, PatternInfo, TransportInfo, load
from hockney.worker.errors import WorkerError
from hockney.worker.launch import LAUNCHERS
from hockney.worker.libraries import side_by_side
from hockney.worker.machine_model import builtin_models, load_model
from hockney.worker.points import RunOptions
from hockney.worker.wheels import WHEELS
from hockney.worker.words import check_words

KINDS = ("suites", "patterns", "transports", "launchers", "machines")
MATRIX = "matrix"


@dataclass(frozen=True)
class Entry:
    """One item of the list. `why`: why it is not ready, None if it is; `how`: how to get it, if that is known.

    `more` is for JSON. `unready` says in a word how it is not ready: missing, wrong (it exists, but cannot be used) or
    oversubscribed (it needs more ranks than there are CPUs).
    """

    name: str
    summary: str
    why: str | None = None
    how: str | None = None
    more: dict[str, Any] = field(default_factory=dict)
    unready: str = "missing"

    @property
    def ready(self) -> bool:
        return self.why is None

    @property
    def state(self) -> str:
        return "ready" if self.ready else self.unready


@dataclass(frozen=True)
class Pairing:
    """Whether a pattern runs on a transport: "yes", "native" by a collective of the transport's own, or None.

    Then `why` says why not; `missing` are the capabilities that the transport does not offer.
    """

    runs: str | None
    why: str | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Inventory:
    """All items, and the matches by transport and pattern, unknown if no worker could be built (`fault`)."""

    suites: tuple[Entry, ...]
    patterns: tuple[Entry, ...]
    transports: tuple[Entry, ...]
    launchers: tuple[Entry, ...]
    machines: tuple[Entry, ...]
    matrix: dict[str, dict[str, Pairing]]
    fault: str | None = None


def take_inventory(suite_files: Sequence[str] = (), *, cpus: int) -> Inventory:
    """List everything here, building the workers if needed; things that cannot be built or read have the reason.

    `suite_files`: the user's suites, listed in place of hockney's. `cpus`: the number of CPUs for ranks.
    """
    try:
        catalogue, fault = load(), None
    except WorkerError as error:
        catalogue, fault = Catalogue({}, {}, ()), str(error)
    modelled = {name: load_model(name).machine.machine for name in builtin_models()}

    def of_suite(name: str) -> Entry:
        return _suite(name, catalogue, fault, cpus)

    # One after the other: a file may name a model, which is added to the catalogue that all use.
    suites = map(of_suite, suite_files) if suite_files else side_by_side(of_suite, builtin_names())
    return Inventory(
        suites=tuple(suites),
        patterns=tuple(_pattern(pattern, cpus) for pattern in catalogue.patterns.values()),
        transports=(
            *(_transport(transport) for transport in catalogue.transports.values()),
            *(Entry(missing.name, "", missing.why, missing.how) for missing in catalogue.missing),
            *_optional_mpis(catalogue),
        ),
        launchers=tuple(_launcher(name, catalogue.transports.values()) for name in LAUNCHERS),
        machines=tuple(_machine(machine, modelled) for machine in machines().values()),
        matrix=_matrix(catalogue),
        fault=fault,
    )


def benchmarks_of(tool: str) -> list[Entry]:
    """Each benchmark of OSU or IMB: what differs in the series of hockney, whose command is in `more`; or why not."""
    known, missing = tools()[tool].benchmarks, tools()[tool].missing
    entries = [Entry(name, row.differs, more={"command": shlex.join(row.command)}) for name, row in known.items()]
    return [*entries, *(Entry(name, "", f"it {why}") for name, why in missing.items())]


def benchmarks_document(tool: str) -> Iterator[Block]:
    """The names of another tool, each of which can be run, and what they measure; settings of a whole part once."""
    columns = Column("hockney run", tone="strong"), Column("measures", wrap=True), Column("what differs", wrap=True)
    for part, items in groupby(tools()[tool].benchmarks.items(), key=lambda item: item[1].part):
        of_part = [(name, row, _settings(row)) for name, row in items]
        shared = [word for word in of_part[0][2] if len(of_part) > 1 and all(word in words for *_, words in of_part)]
        own = [" ".join([row.pattern, *(word for word in words if word not in shared)]) for _, row, words in of_part]
        yield Title(f"{part}{': ' * bool(shared)}{' '.join(shared)}")
        yield Table(columns, [[name, what, row.differs] for (name, row, _), what in zip(of_part, own, strict=True)])
    yield Title("Not in hockney")
    yield Table(["name", "why not"], [[name, f"it {why}"] for name, why in tools()[tool].missing.items()])


def _settings(row: NamedSeries) -> list[str]:
    """Its settings, in the words of a curve's title."""
    ranks = (counted(number, "rank") for number in row.ranks if number != 2)
    return [*map("=".join, row.options.items()), *(f"on {name}" for name in row.transports), *ranks]


def _suite(name: str, catalogue: Catalogue, fault: str | None, cpus: int) -> Entry:
    try:
        if fault is not None:
            suite = load_named(name)
            return Entry(suite.name, suite.title, "no worker can be built", fault)
        is_own = name not in builtin_names()  # hockney's are right, and asking workers about each series takes long
        suite = load_named(name, check=(lambda suite: check_words(suite, "series", catalogue)) if is_own else None)
        plan = make_plan(suite, RunOptions(), catalogue, cpus)
    except UsageError as error:
        is_there = Path(name).exists()
        how = "" if name in builtin_names() else "correct the file" if is_there else "name a file that exists"
        return Entry(Path(name).stem, "", str(error), how, unready="wrong" if is_there else "missing")
    more = {"points": len(plan.points), "skipped": len(plan.skipped)}
    if not plan.points:
        why = next((skipped.reason for skipped in plan.skipped), "it names no transport that is here")
        return Entry(suite.name, suite.title, why, more=more)
    skipped = f", {len(plan.skipped)} more cannot run here" if plan.skipped else ""
    return Entry(suite.name, f"{suite.title}: {counted(len(plan.points), 'point')}{skipped}", more=more)


def _pattern(pattern: PatternInfo, cpus: int) -> Entry:
    least, most, step = pattern.ranks
    options = [
        {
            **asdict(option),
            "list_max": option.list_max or None,
            **({"min": None, "max": None} if option.choices else {}),
        }
        for option in pattern.options
    ]
    more = {
        "kind": pattern.kind,
        "ranks": {"least": least, "most": most or None, "multiple_of": step},
        "needs": sorted(pattern.needs),
        "timed": pattern.timed,
        "sized": pattern.sized,
        "options": options,
    }
    if least <= cpus:
        return Entry(pattern.name, pattern.summary, more=more)
    why = f"needs {counted(least, 'rank')}"
    return Entry(pattern.name, pattern.summary, why, "here with --oversubscribe", more, "oversubscribed")


def _transport(transport: TransportInfo) -> Entry:
    more = {
        "executable": str(transport.executable),
        "worker_name": transport.worker_name,
        "caps": sorted(transport.caps),
        "native": sorted(transport.native),
        "max_bytes": transport.max_bytes or None,
    }
    summary = f"{transport.library.name}: {transport.summary}" if transport.library else transport.summary
    return Entry(transport.name, summary, more=more)


def _optional_mpis(catalogue: Catalogue) -> Iterator[Entry]:
    """Each well-known MPI that is not here, with the ways to get it."""
    here = {*catalogue.transports, *(missing.name for missing in catalogue.missing)}
    for name, wheel in WHEELS.items():
        if not any(known.startswith(f"mpi@{name}-") for known in here):
            of_system = f"apt install {wheel.apt}, or " if wheel.apt else ""
            how = f"{of_system}{typed('setup', '--mpi', name)} ({wheel.size})"
            yield Entry(f"mpi@{name}", "", f"no {wheel.title} was found", how)


def _launcher(name: str, transports: Iterable[TransportInfo]) -> Entry:
    summary = (LAUNCHERS[name].__doc__ or "").strip().partition("\n")[0]
    if name == "local":
        return Entry(name, summary)
    if name in ("ssh", "srun", "flux"):
        programs = [path for path in [shutil.which(name)] if path]
    else:
        libraries = [transport.library for transport in transports if transport.library]
        programs = sorted({str(library.program) for library in libraries if library.kind == name})
    if not programs:
        return Entry(name, summary, "not found", read_toml(Path(__file__).with_name("launchers.toml"))[name])
    return Entry(name, f"{summary} {', '.join(programs)}", more={"programs": programs})


def _machine(machine: Machine, modelled: Mapping[str, str | None]) -> Entry:
    report = reports()[machine.report]
    more = {
        "title": machine.title,
        "figures": sum(figure.value is not None for figure in machine.figures),
        "suite": report.name,
        "source": {"title": report.title, "author": report.author, "date": report.date},
        "systems": list(machine.systems),
        "models": [name for name, of_machine in modelled.items() if of_machine == machine.name],
    }
    return Entry(machine.name, machine.about, more=more)


def _matrix(catalogue: Catalogue) -> dict[str, dict[str, Pairing]]:
    points = {}
    for transport in catalogue.transports.values():
        for pattern in catalogue.patterns.values():
            options = (("algorithm", "native"),) if pattern.collective in transport.native else ()
            point = Point(transport.name, pattern.name, pattern.ranks_default, pattern.bytes_default, options)
            points[transport.name, pattern.name] = point
    obstacles = catalogue.obstacles(points.values())
    matrix: dict[str, dict[str, Pairing]] = {name: {} for name in catalogue.transports}
    for (transport_name, pattern_name), point in points.items():
        pairing = Pairing("native" if point.options else "yes")
        if point in obstacles:
            lacks = catalogue.patterns[pattern_name].needs - catalogue.transports[transport_name].caps
            pairing = Pairing(None, obstacles[point], tuple(sorted(lacks)))
        matrix[transport_name][pattern_name] = pairing
    return matrix


# ---- the document ---------------------------------------------------------------------------------------------------


def inventory_document(inventory: Inventory, kind: str | None) -> Iterator[Block]:
    """One kind with descriptions, or without a kind the names of all."""
    if inventory.fault:
        yield Text(f"Patterns and transports are not known: {inventory.fault}", "error")
    if kind is None:
        for name in KINDS:
            yield Title("Machines of the archive" if name == "machines" else name.capitalize())
            entries: Sequence[Entry] = getattr(inventory, name)
            yield from (_models if name == "machines" else _names)(entries)
        yield Sentence()
        yield Text(
            f"Descriptions, and how to get missing ones: {typed('list', 'suites')}, {typed('list', 'transports')}, …"
        )
    elif kind == MATRIX:
        yield from _matrix_blocks(inventory.matrix)
    elif kind == "machines":
        yield from _machines(inventory.machines)
    elif kind == "patterns":
        for of_kind, patterns in _by_kind(inventory.patterns).items():
            yield Title(of_kind.capitalize())
            yield from _items(patterns)
        yield from _options(inventory.patterns)
    else:
        yield from _items(getattr(inventory, kind))


def _by_kind(patterns: Sequence[Entry]) -> dict[str, list[Entry]]:
    kinds: dict[str, list[Entry]] = {}
    for pattern in patterns:
        kinds.setdefault(pattern.more["kind"], []).append(pattern)
    return kinds


def _items(items: Sequence[Entry]) -> Iterator[Block]:
    columns: dict[Column, Callable[[Entry], str]] = {
        Column("name", tone="strong"): lambda item: item.name,
        Column("state"): lambda item: item.state,
        Column("what, or why not", wrap=True): _about,
    }
    yield records(columns, items)
    for item in items:
        errors = (item.why or "").splitlines()[1:]
        if errors:
            yield Title(f"Errors in {item.name}")
        for error in errors:
            yield Item(error.strip())


def _about(item: Entry) -> str:
    """What it is, or why not, in one line: a file's errors stand below the table."""
    if item.ready:
        return item.summary
    why = (item.why or "").partition("\n")[0].rstrip(":")
    if item.unready == "oversubscribed":
        return f"{why}: {item.how}. {item.summary}"
    return f"{why}; {item.how}" if item.how else why


def _names(items: Sequence[Entry]) -> Iterator[Block]:
    """The names of all that are ready, `tcp` for `tcp:spin` too, and of all that are not, by the word for it."""
    for state in sorted({item.state for item in items}, key=lambda state: state != "ready"):
        names = dict.fromkeys(item.name.partition(":")[0] for item in items if item.state == state)
        yield Text(f"{state}: " * (state != "ready") + ", ".join(names))


def _models(machines: Sequence[Entry]) -> Iterator[Block]:
    yield Text("models for --machine: " + ", ".join(model for machine in machines for model in machine.more["models"]))
    yield Text("published figures alone: " + ", ".join(each.name for each in machines if not each.more["models"]))


def _machines(machines: Sequence[Entry]) -> Iterator[Block]:
    columns: dict[Column, Callable[[Entry], str]] = {
        Column("name", tone="strong"): lambda item: item.name,
        Column("figures", right=True): lambda item: str(item.more["figures"]),
        Column("machine", wrap=True): lambda item: f"{item.more['title']}: {item.summary}",
        Column("suite"): lambda item: str(item.more["suite"]),
        Column("models", wrap=True): lambda item: ", ".join(item.more["models"]),
    }
    yield records(columns, machines, fits=True)
    yield Title("Where the figures were published")
    sources = {machine.more["suite"]: machine.more["source"] for machine in machines}
    for suite, source in sources.items():
        yield Text(f"{suite}: {source['author']}: {source['title']}, {source['date']}")


def _options(patterns: Sequence[Entry]) -> Iterator[Block]:
    """Each option once, with the patterns that have it: those of a kind by its word, if nearly all have it."""
    owners: dict[tuple[str, str, str, str], set[str]] = {}
    for pattern in patterns:
        for option in pattern.more["options"]:
            words = "|".join(option["choices"]) or f"{option['min']} to {option['max']}"
            key = (option["name"], words, option["default"], option["help"])
            owners.setdefault(key, set()).add(pattern.name)
    kinds = {kind: {entry.name for entry in entries} for kind, entries in _by_kind(patterns).items()}
    rows = []
    for (name, *row), names in owners.items():
        known, left = [], set(names)
        for kind, members in kinds.items():
            without = [entry.name for entry in patterns if entry.name in members - names]
            if len(members) > 2 * len(without) + 1:
                known.append(f"{kind} but {', '.join(without)}" if without else kind)
                left -= members
        rows.append([name, *row, "; ".join([*known, *(entry.name for entry in patterns if entry.name in left)])])
    values, what, whose = (Column(title, wrap=True) for title in ("values", "what", "patterns"))
    yield Title("Options of patterns")
    yield Table(["option", values, "default", what, whose], rows)


def _matrix_blocks(matrix: Mapping[str, Mapping[str, Pairing]]) -> Iterator[Block]:
    marks: dict[str, str] = {}
    rows = []
    for transport, row in matrix.items():
        cells = [transport]
        for pairing in row.values():
            reason = pairing.why or ""
            if pairing.missing:  # one reason for all that lack the same
                reason = re.sub(r"^\S+(.* which )\S+ does", r"the pattern\1the transport does", reason)
            cells.append(pairing.runs or marks.setdefault(reason, f"no ({len(marks) + 1})"))
        rows.append(cells)
    patterns = next(iter(matrix.values()), {})
    yield Table([Column("transport", key=True), *patterns], rows, fits=True)
    yield Sentence()
    for reason, mark in marks.items():
        yield Text(f"{mark}: {reason}")
    yield Text("native: by a collective operation of the library's own; the portable one runs too where messages do")
