"""Fixes as text and command lines that can be typed as they stand: quoted, with the environment of the run."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from hockney.errors import Fix, HockneyError

named_store: ContextVar[str | None] = ContextVar("named_store", default=None)  # as --store of this command line has it

_WITHOUT_STORE = {"completion", "doctor", "list", "--help", "--store"}


def typed(*words: object) -> str:
    """A command of hockney in backquotes, as the user types it: ``typed("show", 3)`` gives `hockney show 3`."""
    return f"`{_joined(('hockney', *map(str, words)))}`"


def _joined(argv: Sequence[str]) -> str:
    """The command in shell syntax, with --store if that was given; HOCKNEY_STORE still holds for a copied command."""
    store, words = named_store.get(), list(argv)
    if store is not None and words[0] == "hockney" and not _WITHOUT_STORE & {*words}:
        end = words.index("--") if "--" in words else len(words)
        words[end:end] = ["--store", store]
    if words[:1] == ["hockney"]:
        words[0] = program()
    return shlex.join(words)


def program() -> str:
    """`./hockney` where the checkout's launcher was started so; `hockney` where that finds the program, too."""
    started = os.environ.get("HOCKNEY_COMMAND", "")
    in_path = shutil.which("hockney")
    if not started or (in_path and os.path.realpath(in_path) == os.path.realpath(started)):
        return "hockney"
    return started


def error_text(error: HockneyError) -> str:
    """The sentence of an error, with the command that helps."""
    fix = error.fix
    if fix is None:
        return str(error)
    return f"{error}. {fix_text(fix)}" if fix.code else f"{error}: `{command_line(fix)}`"


def fix_text(fix: Fix) -> str:
    """``Continue: `hockney run --resume 3` ``; the sentence alone where there is no command."""
    from hockney.report.findings import fix_sentence  # as numerical libraries load in 0.1 s

    sentence, command = fix_sentence(fix), command_line(fix)
    return f"{sentence}: `{command}`" if command else sentence


def command_line(fix: Fix) -> str:
    """The command in shell syntax; "" if there is none."""
    return f"{as_then(fix.run_facts)}{_joined(fix.argv)}" if fix.argv else ""


def as_then(facts: Mapping[str, Any]) -> str:
    """The variables to put before a command so that it measures as the run did: `UCX_RNDV_THRESH=1024 `."""
    if not facts:
        return ""
    from hockney.machine.facts import library_settings  # 20 ms, and few commands need it

    then = library_settings(facts.get("environment") or {})
    return "".join(f"{name}={shlex.quote(value)} " for name, value in then.items() if os.environ.get(name) != value)
