"""Files for CI systems with the verdicts of `hockney check`: JUnit, Markdown."""

from __future__ import annotations

import contextlib
import xml.etree.ElementTree as ET
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from hockney.cli.common import refuse_output
from hockney.cli.export import written
from hockney.errors import ExitCode, HockneyError
from hockney.report.document import Block, Sentence
from hockney.units import printable


@dataclass(frozen=True)
class JUnitCase:
    """One test; `group` is its class. `kind` is JUnit's element for one that does not pass, "" for one that does.

    `figures` become its properties, without those that are None. `time_s`: how long its samples took.
    """

    group: str
    name: str
    kind: str = ""  # failure, skipped (inconclusive) or error
    message: str = ""
    figures: Mapping[str, float | str | None] = field(default_factory=dict)
    time_s: float = 0.0


@dataclass(frozen=True)
class JUnitReport:
    """The result of a check: its lines, its JSON, its cases for JUnit; `blocks`: its lines with a table."""

    title: str
    run_id: int
    code: ExitCode
    lines: Sequence[str]
    document: dict[str, Any]
    cases: Sequence[JUnitCase]
    blocks: Sequence[Block] = ()


@contextlib.contextmanager
def reported(
    option: str, path: Path | None, write_error: Callable[[Path, str], None], needed: Collection[Path] = ()
) -> Iterator[None]:
    """Until the check inside writes this file, it holds one error: the check has not finished, or why it failed.

    So the report of an earlier check is not taken for this one. Raises UsageError for a file that cannot be written, or
    that the check needs.
    """
    if path is None:
        yield
        return
    refuse_output(option, path, needed)
    write_error(path, "the check has not finished: it is running, or was killed")
    try:
        yield
    except BaseException as error:
        why = str(error) if isinstance(error, HockneyError) else "the check failed; see what it printed"
        with contextlib.suppress(OSError, HockneyError):  # then the file still says that the check has not finished
            write_error(path, why)
        raise


def junit_error(path: Path, why: str) -> None:
    """A report with one error: why there are no verdicts."""
    write_junit(path, "hockney check", [JUnitCase("check", "finished", "error", why)])


def markdown_error(path: Path, why: str) -> None:
    """A file that says why there are no verdicts; nothing in a pipe or a terminal, which holds no earlier ones."""
    if path.is_file() or not path.exists():
        write_markdown(path, [Sentence(f"hockney check: {why}")])


def write_markdown(path: Path, blocks: Iterable[Block]) -> None:
    """Write the verdicts as Markdown."""
    from hockney.render.markdown import markdown

    with written(path) as stream:
        stream.write(markdown(blocks))


def write_junit(path: Path, title: str, cases: Sequence[JUnitCase]) -> None:
    """Write the report. Control characters are escaped: libraries' messages may hold any."""
    kinds = [case.kind for case in cases]
    suite = ET.Element(
        "testsuite",
        name=printable(title),
        timestamp=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        time=f"{sum(case.time_s for case in cases):.6f}",
        tests=str(len(cases)),
        failures=str(kinds.count("failure")),
        skipped=str(kinds.count("skipped")),
        errors=str(kinds.count("error")),
    )
    for case in cases:
        names = {"classname": printable(case.group), "name": printable(case.name)}
        element = ET.SubElement(suite, "testcase", names, time=f"{case.time_s:.6f}")
        known = {name: value for name, value in case.figures.items() if value is not None}
        properties = ET.SubElement(element, "properties") if known else element
        for name, value in known.items():
            text = value if isinstance(value, str) else f"{value:.6g}"
            ET.SubElement(properties, "property", name=name, value=text)
        if case.kind:
            ET.SubElement(element, case.kind, message=printable(case.message))
        elif case.message:
            ET.SubElement(element, "system-out").text = printable(case.message)
    ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
