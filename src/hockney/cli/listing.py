"""`hockney list`: everything that can be measured here, and how to get missing things."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hockney.cli.common import OneOf, command
from hockney.errors import ExitCode, UsageError
from hockney.render.json import print_document, print_json
from hockney.render.text import show

if TYPE_CHECKING:
    from hockney.report.documents.inventory import Entry, Inventory

_KINDS = ("suites", "patterns", "transports", "launchers", "machines")
_MATRIX, _SCHEMAS, _TOOLS = "matrix", "schemas", ("osu", "imb")


@command(
    "list",
    example="""hockney list
    hockney list matrix
    hockney list osu
    hockney list transports --json
    hockney list suites mine.toml""",
)
@click.argument("kind", required=False, type=OneOf("kind", [*_KINDS, *_TOOLS, _MATRIX, _SCHEMAS]), metavar="[KIND]")
@click.argument("files", nargs=-1, metavar="[FILE]...")
def list_command(kind: str | None, files: Sequence[str], *, as_json: bool, store: Path | None) -> int:
    """List suites, patterns, transports and launchers, and how to get missing ones.

    KIND is suites, patterns, transports, launchers, machines, osu, imb, matrix or schemas; with it, each is described.
    `osu` and `imb` are the benchmarks of these tools: `hockney run` takes their names. The matrix shows each pattern's
    transports. Machines are those of the archive: the suites of the classic reports show their published figures next
    to yours, and `hockney run --machine` runs on their models. `schemas` prints one JSON Schema of all documents that
    --json prints. FILEs are your own suites, listed in place of hockney's; the exit code is 2 if one of them cannot be
    measured.
    """
    if files and kind != "suites":
        raise UsageError("files can be given to 'list suites' only")
    if kind == _SCHEMAS:
        from hockney.cli.schemas import schema

        print_document(schema())
        return ExitCode.DONE
    from hockney.machine.placement import usable_cpus
    from hockney.report.documents import inventory as documents

    if kind in _TOOLS:
        if as_json:
            print_json("list", {kind: _listed(documents.benchmarks_of(kind)), "fault": None})
        else:
            show(documents.benchmarks_document(kind))
        return ExitCode.DONE
    inventory = documents.take_inventory(files, cpus=len(usable_cpus()))
    code = ExitCode.INCOMPLETE if inventory.fault and kind in ("patterns", "transports", _MATRIX) else ExitCode.DONE
    code = code if not files or all(item.ready for item in inventory.suites) else ExitCode.USAGE
    kinds = [kind] if kind else list(_KINDS)
    if as_json:
        print_json("list", {**{name: _as_json(name, inventory) for name in kinds}, "fault": inventory.fault})
        return code
    show(documents.inventory_document(inventory, kind))
    return code


def _as_json(name: str, inventory: Inventory) -> Any:
    if name == _MATRIX:
        return [
            {"transport": transport, "pattern": pattern, "runs": pairing.runs, "why": pairing.why}
            for transport, row in inventory.matrix.items()
            for pattern, pairing in row.items()
        ]
    return _listed(getattr(inventory, name))


def _listed(items: Sequence[Entry]) -> list[dict[str, Any]]:
    return [
        {"name": item.name, "ready": item.ready, "summary": item.summary, "why": item.why, "how": item.how, **item.more}
        for item in items
    ]
