"""Verdicts as a JUnit file for CI systems."""

from __future__ import annotations

import contextlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from hockney.cli.common import refuse_loss, refuse_unwritable
from hockney.cli.streams import remark
from hockney.errors import ExitCode, HockneyError, UsageError
from hockney.units import printable

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # 1.0, section 2.2


@dataclass(frozen=True)
class Case:
    """One test case; `group` is its class. At most one of the sentences `missed` to `error` is there.

    `details` are printed with it.
    """

    group: str
    name: str
    missed: str | None = None
    inconclusive: str | None = None
    remark: str | None = None  # the test passes
    error: str | None = None
    details: str | None = None


@contextlib.contextmanager
def reported(path: Path | None, needed: Collection[Path] = ()) -> Iterator[None]:
    """Until the check inside writes this file, it holds one error: the check has not finished, or why it failed.

    So the report of an earlier check is not taken for this one. Raises UsageError for a file that can't be written, or
    that the check needs.
    """
    if path is None:
        yield
        return
    refuse_unwritable(path)
    refuse_loss("--junit", path, needed)
    try:
        _write_unfinished(path, "the check has not finished: it is running, or was killed")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {_why(error)}; name another file") from error
    try:
        yield
    except BaseException as error:
        why = str(error) if isinstance(error, HockneyError) else "the check failed; see what it printed"
        with contextlib.suppress(OSError):  # then it still says that the check has not finished
            _write_unfinished(path, why)
        raise


def _write_unfinished(path: Path, why: str) -> None:
    _write(path, "hockney check", [Case("check", "finished", error=why)])


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def write_junit(
    path: Path, title: str, cases: Sequence[Case], code: int, properties: Sequence[tuple[str, str]] = ()
) -> int:
    """Write the report, in which an inconclusive case is a skipped test; returns the exit code.

    That is `code`, or 3 instead of 0 where the file can't be written: the verdict is printed already.
    """
    try:
        _write(path, title, cases, properties)
    except OSError as error:
        remark(f"hockney: cannot write {path}: {_why(error)}")
        return code or ExitCode.INCOMPLETE
    return code


def _write(path: Path, title: str, cases: Sequence[Case], properties: Sequence[tuple[str, str]] = ()) -> None:
    suite = ET.Element(
        "testsuite",
        name=_text(title),
        timestamp=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        tests=str(len(cases)),
        failures=str(sum(case.missed is not None for case in cases)),
        skipped=str(sum(case.inconclusive is not None for case in cases)),
        errors=str(sum(case.error is not None for case in cases)),
    )
    if properties:
        listed = ET.SubElement(suite, "properties")
        for name, value in properties:
            ET.SubElement(listed, "property", name=_text(name), value=_text(value))
    for case in cases:
        element = ET.SubElement(suite, "testcase", classname=_text(case.group), name=_text(case.name))
        for kind, sentence in (("failure", case.missed), ("error", case.error), ("skipped", case.inconclusive)):
            if sentence is not None:
                found = ET.SubElement(element, kind, message=_text(sentence))
                found.text = None if case.details is None else _text(case.details)
        if case.remark is not None:
            ET.SubElement(element, "system-out").text = _text(case.remark)
    ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def _text(text: str) -> str:
    """Without characters that XML forbids or that control a terminal: libraries' messages may hold any."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", printable(text))
