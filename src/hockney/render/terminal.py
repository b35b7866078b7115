"""What standard output is: a terminal with colours and a width, or a pipe; and paragraphs of a width."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
import unicodedata

from hockney.units import printable

_CODE_SPAN = re.compile("`[^`]*`")  # the one markup that sentences have: a command, which stays on one line
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:[num]?s|min|h|[KMG]iB|[kMG]?B|%)(?!\w))| (?=±\d)")
_HARD_BLANK = "\N{NO-BREAK SPACE}"


def is_terminal() -> bool:
    """Whether standard output is a terminal that understands escape codes."""
    try:
        return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
    except ValueError:
        return False


def is_colored() -> bool:
    """Whether output may have colours: on a terminal, unless NO_COLOR is set."""
    return is_terminal() and not os.environ.get("NO_COLOR")


def line_width() -> int:
    """The width of a line, from 20 to 1000: of the terminal or COLUMNS, else 100."""
    return min(max(shutil.get_terminal_size((100, 24)).columns, 20), 1000)


def is_fitted() -> bool:
    """Whether tables are as wide as a line: on a terminal, or where COLUMNS is set."""
    return is_terminal() or os.environ.get("COLUMNS", "").lstrip("0").isdecimal()


def wrapped(text: str, width: int | None = None, *, first: str = "", rest: str = "") -> list[str]:
    """The lines of a paragraph; commands in `…`, and numbers with their units stay whole. `first`, `rest`: indents."""
    lines = textwrap.wrap(
        whole(_CODE_SPAN.sub(lambda match: match[0].replace(" ", _HARD_BLANK), printable(text))),
        width or line_width(),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_HARD_BLANK, " ") for line in lines] or [""]


def whole(text: str) -> str:
    """The text with hard blanks before units."""
    return _BEFORE_UNIT.sub(_HARD_BLANK, text)


def text_width(text: str) -> int:
    """The columns of a terminal that a text takes: two for a wide character (CJK, emoji), none for a combining one."""
    shown = [each for each in text if unicodedata.category(each) not in ("Mn", "Me", "Cf")]
    return len(shown) + sum(unicodedata.east_asian_width(each) in "WF" for each in shown)
