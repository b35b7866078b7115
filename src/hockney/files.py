"""Reads files that a user names, and TOML."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from hockney.errors import UsageError

_NAMED_BYTES_MAX = 64 << 20


def named_bytes(path: Path, what: str) -> bytes:
    """The content of a file that a user names; `what` names its kind.

    Raises UsageError for one that cannot be read, is no regular file (a pipe may never end, nor /dev/zero) or is larger
    than 64 MiB.
    """
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"cannot read the {what} {path}: it is no regular file; write its content to one")
            content = file.read(_NAMED_BYTES_MAX + 1)
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise UsageError(f"cannot read the {what} {path}: {reason}") from error
    if len(content) > _NAMED_BYTES_MAX:
        raise UsageError(f"cannot read the {what} {path}: it is larger than {_NAMED_BYTES_MAX >> 20} MiB")
    return content


def named_text(path: Path, what: str) -> str:
    """The same as text, without a byte order mark. Raises UsageError also where it is not UTF-8."""
    try:
        return named_bytes(path, what).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not a {what}: it is not UTF-8 text") from error


def parse_toml(text: str) -> dict[str, Any]:
    """The content of a TOML file. Raises ValueError for another form."""
    return dict(tomllib.loads(text))
