"""`hockney list`: everything that can be measured here, and how to get missing things."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hockney.cli import render
from hockney.cli.common import OneOf, command
from hockney.cli.render import TableColumn
from hockney.cli.rerun import typed
from hockney.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hockney.report.inventory import Inventory, Item, Pairing

_KINDS = ("suites", "patterns", "transports", "launchers", "machines")
_MATRIX = "matrix"


@command(
    "list",
    example="""hockney list
    hockney list matrix
    hockney list transports --json
    hockney list suites mine.toml""",
)
@click.argument("kind", required=False, type=OneOf("kind", [*_KINDS, _MATRIX]), metavar="[KIND]")
@click.argument("files", nargs=-1, metavar="[FILE]...")
def list_command(kind: str | None, files: Sequence[str], *, as_json: bool, store: Path | None) -> int:
    """List suites, patterns, transports and launchers, and how to get missing ones.

    KIND is suites, patterns, transports, launchers, machines or matrix; with it, each is described. The matrix shows
    each pattern's transports. Machines are those of the archive: the suites of the classic reports show their published
    figures next to yours, and `hockney run --machine` runs on their models. FILEs are your own suites, listed in place
    of hockney's; the exit code is 2 if one of them cannot be measured.
    """
    if files and kind != "suites":
        raise UsageError("files can be given to 'list suites' only")
    from hockney.machine.placement import usable_cpus
    from hockney.report.inventory import take_inventory

    inventory = take_inventory(files, cpus=len(usable_cpus()))
    code = ExitCode.INCOMPLETE if inventory.fault and kind in ("patterns", "transports", _MATRIX) else ExitCode.DONE
    code = code if not files or all(item.ready for item in inventory.suites) else ExitCode.USAGE
    kinds = [kind] if kind else list(_KINDS)
    if as_json:
        render.print_json("list", {**{name: _as_json(name, inventory) for name in kinds}, "fault": inventory.fault})
        return code
    if inventory.fault:
        render.note(f"Patterns and transports are not known: {inventory.fault}", style="red")
    if kind is None:
        for name in _KINDS:
            render.title("Machines of the archive" if name == "machines" else name.capitalize(), first=name == "suites")
            items: Sequence[Item] = getattr(inventory, name)
            {"suites": _print_items, "machines": _print_models}.get(name, _print_names)(items)
        render.say()
        render.note(
            f"Descriptions, and how to get missing ones: {typed('list', 'transports')}, {typed('list', 'patterns')}, …"
        )
    elif kind == _MATRIX:
        _print_matrix(inventory.matrix)
    elif kind == "machines":
        _print_machines(inventory.machines)
    else:
        _print_items(getattr(inventory, kind))
    if kind == "patterns":
        _print_options(inventory.patterns)
    return code


def _as_json(name: str, inventory: Inventory) -> Any:
    if name == _MATRIX:
        return [
            {"transport": transport, "pattern": pattern, "runs": pairing.runs, "why": pairing.why}
            for transport, row in inventory.matrix.items()
            for pattern, pairing in row.items()
        ]
    items: Sequence[Item] = getattr(inventory, name)
    return [
        {"name": item.name, "ready": item.ready, "summary": item.summary, "why": item.why, "how": item.how, **item.more}
        for item in items
    ]


def _print_items(items: Sequence[Item]) -> None:
    columns: dict[TableColumn, Callable[[Item], str]] = {
        TableColumn("name", style="bold"): lambda item: item.name,
        TableColumn("state"): lambda item: item.state,
        TableColumn("what, or why not", wrap=True): _about,
    }
    render.records(columns, items)
    for item in items:
        errors = (item.why or "").splitlines()[1:]
        if errors:
            render.title(f"Errors in {item.name}")
        for error in errors:
            render.item(error.strip())


def _about(item: Item) -> str:
    """What it is, or why not, in one line: a file's errors stand below the table."""
    if item.ready:
        return item.summary
    why = (item.why or "").partition("\n")[0].rstrip(":")
    if item.unready == "oversubscribed":
        return f"{why}: {item.how}. {item.summary}"
    return f"{why}; {item.how}" if item.how else why


def _print_names(items: Sequence[Item]) -> None:
    """The names of all that are ready, `tcp` for `tcp:spin` too, and of all that are not, by the word for it."""
    for state in sorted({item.state for item in items}, key=lambda state: state != "ready"):
        names = dict.fromkeys(item.name.partition(":")[0] for item in items if item.state == state)
        render.note(f"{state}: " * (state != "ready") + ", ".join(names))


def _print_models(machines: Sequence[Item]) -> None:
    render.note("models for --machine: " + ", ".join(model for machine in machines for model in machine.more["models"]))
    render.note("published figures alone: " + ", ".join(each.name for each in machines if not each.more["models"]))


def _print_machines(machines: Sequence[Item]) -> None:
    columns: dict[TableColumn, Callable[[Item], str]] = {
        TableColumn("name", style="bold"): lambda item: item.name,
        TableColumn("figures", right=True): lambda item: str(item.more["figures"]),
        TableColumn("machine", wrap=True): lambda item: f"{item.more['title']}: {item.summary}",
        TableColumn("suite"): lambda item: str(item.more["suite"]),
        TableColumn("models", wrap=True): lambda item: ", ".join(item.more["models"]),
    }
    render.records(columns, machines, fits=True)
    render.title("Where the figures were published")
    sources = {machine.more["suite"]: machine.more["source"] for machine in machines}
    for suite, source in sources.items():
        render.note(f"{suite}: {source['author']}: {source['title']}, {source['date']}")


def _print_options(patterns: Sequence[Item]) -> None:
    rows = []
    for pattern in patterns:
        for option in pattern.more["options"]:
            values = "|".join(option["choices"]) or f"{option['min']} to {option['max']}"
            rows.append([pattern.name, option["name"], values, option["default"], option["help"]])
    render.title("Options of patterns")
    render.table(["pattern", "option", "values", "default", TableColumn("what", wrap=True)], rows)


def _print_matrix(matrix: Mapping[str, Mapping[str, Pairing]]) -> None:
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
    render.table([TableColumn("transport", key=True), *patterns], rows, fits=True)
    render.say()
    for reason, mark in marks.items():
        render.note(f"{mark}: {reason}")
    render.note("native: by a collective operation of the library's own; the portable one runs too where messages do")
