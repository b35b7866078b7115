"""JUnit files: the verdicts of `hockney check` for CI systems."""

from __future__ import annotations

import contextlib
import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from hockney.cli.common import refuse_output
from hockney.errors import ExitCode, HockneyError
from hockney.units import printable


@dataclass(frozen=True)
class JUnitCase:
    """One test; `group` is its class. `kind` is JUnit's element for one that does not pass, "" for one that does."""

    group: str
    name: str
    kind: str = ""  # failure, skipped (inconclusive) or error
    message: str = ""


@dataclass(frozen=True)
class JUnitReport:
    """The result of a check: its lines, its JSON, and its cases for JUnit."""

    title: str
    run_id: int
    code: ExitCode
    lines: Sequence[str]
    document: dict[str, Any]
    cases: Sequence[JUnitCase]


@contextlib.contextmanager
def reported(path: Path | None, needed: Collection[Path] = ()) -> Iterator[None]:
    """Until the check inside writes this file, it holds one error: the check has not finished, or why it failed.

    So the report of an earlier check is not taken for this one. Raises UsageError for a file that cannot be written, or
    that the check needs.
    """
    if path is None:
        yield
        return
    refuse_output("--junit", path, needed)
    _write_unfinished(path, "the check has not finished: it is running, or was killed")
    try:
        yield
    except BaseException as error:
        why = str(error) if isinstance(error, HockneyError) else "the check failed; see what it printed"
        with contextlib.suppress(OSError):  # then the file still says that the check has not finished
            _write_unfinished(path, why)
        raise


def _write_unfinished(path: Path, why: str) -> None:
    write_junit(path, "hockney check", [JUnitCase("check", "finished", "error", why)])


def write_junit(path: Path, title: str, cases: Sequence[JUnitCase]) -> None:
    """Write the report. Control characters are escaped: libraries' messages may hold any."""
    kinds = [case.kind for case in cases]
    suite = ET.Element(
        "testsuite",
        name=printable(title),
        timestamp=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        tests=str(len(cases)),
        failures=str(kinds.count("failure")),
        skipped=str(kinds.count("skipped")),
        errors=str(kinds.count("error")),
    )
    for case in cases:
        element = ET.SubElement(suite, "testcase", classname=printable(case.group), name=printable(case.name))
        if case.kind:
            ET.SubElement(element, case.kind, message=printable(case.message))
    ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
