"""Everything that can be measured here, and how to get missing things, as a document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from hockney.report.commands import typed
from hockney.report.document import Block, Column, Item, Sentence, Table, Text, Title, records
from hockney.report.inventory import Entry, Inventory, Pairing

KINDS = ("suites", "patterns", "transports", "launchers", "machines")
MATRIX = "matrix"


def inventory_document(inventory: Inventory, kind: str | None) -> Iterator[Block]:
    """One kind with descriptions, or without a kind the names of all."""
    if inventory.fault:
        yield Text(f"Patterns and transports are not known: {inventory.fault}", "error")
    if kind is None:
        for name in KINDS:
            yield Title("Machines of the archive" if name == "machines" else name.capitalize())
            entries: Sequence[Entry] = getattr(inventory, name)
            yield from {"suites": _items, "machines": _models}.get(name, _names)(entries)
        yield Sentence()
        yield Text(
            f"Descriptions, and how to get missing ones: {typed('list', 'transports')}, {typed('list', 'patterns')}, …"
        )
    elif kind == MATRIX:
        yield from _matrix(inventory.matrix)
    elif kind == "machines":
        yield from _machines(inventory.machines)
    else:
        yield from _items(getattr(inventory, kind))
    if kind == "patterns":
        yield from _options(inventory.patterns)


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
    rows = []
    for pattern in patterns:
        for option in pattern.more["options"]:
            values = "|".join(option["choices"]) or f"{option['min']} to {option['max']}"
            rows.append([pattern.name, option["name"], values, option["default"], option["help"]])
    yield Title("Options of patterns")
    yield Table(["pattern", "option", "values", "default", Column("what", wrap=True)], rows)


def _matrix(matrix: Mapping[str, Mapping[str, Pairing]]) -> Iterator[Block]:
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
