"""The lines of a saved output, without what terminals, launchers and log collectors add; and JSON documents in them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from hockney.results.formats.output import FormatError

_STEERING = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]|\ufeff")
_DAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d "
_TIME = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_PREFIX = re.compile(
    r"[^<>\n]{0,120}<std(?P<stream>out|err|diag)>:? ?"  # mpirun --tag-output, --timestamp-output; prrte
    r"|\[(?:rank )?\d{1,7}\] "  # hydra -prepend-rank
    r"|\s*\d{1,7}: "  # srun --label
    r"|\[(?:pod|container)/\S+\] "  # kubectl --prefix
    r"|[\w.-]*[A-Za-z][\w.-]*-\d+ +\| "  # docker compose
    rf"|\[?\d{{4}}-\d\d-\d\d[T ]{_TIME}(?:Z| ?[+-]\d\d:?\d\d)?\]? "
    rf"|\[?{_TIME}\]? |{_DAY}{_TIME}(?: \d{{4}})? "
)
# The words of a failure, which a warning may hold, too; of a death; and of a failure in a comment.
_FAILED = re.compile(r"abort|signal|kill|error|fail|terminat|cancel|out of memory", re.IGNORECASE)
_HARMLESS = re.compile(
    r"\b(?:warn(?:ing)?|info|debug|trace|note)\b|\b(?:0|no) (?:error|fail)|error\w*\s*[:=]\s*0\b", re.IGNORECASE
)
_DIED = re.compile(
    r"\b(?:on signal|signal \d+|(?-i:SIG[A-Z]{3,})|killed|abort|cancelled|segmentation fault|non-zero exit|oom.kill)",
    re.IGNORECASE,
)
_COMMENT_FAILED = re.compile(r"^(?!# Avg bus bandwidth).*\b(?:FAILED|NO SUCCESSFUL)\b")


class CleanLine(NamedTuple):
    """A line without its prefixes; `is_error`: of standard error."""

    text: str
    is_error: bool = False

    @property
    def says_died(self) -> bool:
        """Whether it says that a process died, or that results were wrong."""
        return (_COMMENT_FAILED if self.text.startswith("#") else _DIED).search(self.text) is not None

    @property
    def says_failed(self) -> bool:
        """Whether it says that the run failed; a warning that does is no failure."""
        is_plain = not self.text.startswith("#") and _HARMLESS.search(self.text) is None
        return self.says_died or (is_plain and _FAILED.search(self.text) is not None)


def decode(content: bytes) -> str:
    """The text of a file: UTF-8, or UTF-16 as Windows writes it. Raises UnicodeDecodeError."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16")
    return content.decode("utf-8-sig")


def lines_of(text: str) -> list[CleanLine]:
    """Its lines, numbered as in the file; the last one ends with a newline, or it is not whole."""
    return [_clean(line) for line in text.split("\n")]


def _clean(line: str) -> CleanLine:
    text, is_error = _STEERING.sub("", line).rstrip("\r").rpartition("\r")[2], False
    while match := _PREFIX.match(text + " "):
        is_error |= match["stream"] in ("err", "diag")
        text = text[match.end() :]
    return CleanLine(text, is_error)


def documents_of(lines: Sequence[CleanLine]) -> tuple[list[Any], int]:
    """The JSON documents that begin with an object at the start of a line, and the number of other lines.

    A key that an object has again gets ` again`: iperf3 3.7 gives both directions one name. Raises FormatError for a
    document that does not end.
    """
    text = "\n".join(line.text for line in lines)
    documents: list[Any] = []
    others, at = 0, 0
    while at < len(text):
        if text[at] == "{":
            try:
                document, at = _DECODER.raw_decode(text, at)
            except (ValueError, RecursionError) as error:
                line = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
                raise FormatError(f"it is no whole JSON{line}: save the whole output") from error
            documents.append(document)
        else:
            end = text.find("\n", at) % (len(text) + 1)  # without another newline, its end
            others, at = others + bool(text[at:end].strip()), end + 1
    return documents, others


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for key, value in pairs:
        known[f"{key} again" if key in known else key] = value
    return known


_DECODER = json.JSONDecoder(object_pairs_hook=_object)
