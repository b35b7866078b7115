"""The errors that a user may see; each text is one sentence with its remedy.

HockneyError                exit code 3: measured in part, or not at all
├── UsageError              exit code 2: the command line or a file says something impossible
├── StoreError              store/: a full disk, a store that stays locked, or is found damaged while a run is written
│   └── WrongStoreError     exit code 2: the file named with --store has no results yet, is damaged or is newer
└── WorkerError             worker/errors.py: no compiler, a rank died, a time limit passed, …

Only `cli/` prints or exits.
"""

from __future__ import annotations

import contextlib
import difflib
import enum
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


class ExitCode(enum.IntEnum):
    """The exit codes of all commands."""

    DONE = 0
    WORSE = 1  # a check found something slower, or a limit that was missed
    USAGE = 2  # the command line or a file cannot be used; nothing was measured
    INCOMPLETE = 3  # measured in part or not at all, or inconclusive


@dataclass(frozen=True)
class Fix:
    """A remedy of an error or a finding: its code, its facts, and the command that does it, if there is one.

    report/findings.toml has the sentence of each code; cli/rerun.py writes the command. `argv` begins with the program.
    `run_facts` are those of the run that the command repeats, whose environment comes before the command.
    """

    code: str
    argv: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)
    run_facts: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


class HockneyError(Exception):
    """Base of all errors raised on purpose. `exit_code` is the exit code of the command.

    cli/ adds the `fix` to the text; `argv` is short for a fix whose sentence is the end of the text.
    """

    exit_code = ExitCode.INCOMPLETE

    def __init__(self, *args: object, argv: tuple[str, ...] = (), fix: Fix | None = None) -> None:
        super().__init__(*args)
        self.fix = Fix("", argv) if argv else fix


class UsageError(HockneyError):
    """The user asked for something impossible; the text names a possible alternative."""

    exit_code = ExitCode.USAGE


class StoreError(HockneyError):
    """The results file can't be used; the text names it and the remedy."""


class WrongStoreError(StoreError):
    """The results file that the user named cannot be used. It is raised before anything is measured."""

    exit_code = ExitCode.USAGE


notice: ContextVar[Callable[[str], None]] = ContextVar("notice", default=lambda _: None)
"""Reports what takes long to a user who waits; cli/ prints each text once, on standard error."""

working: ContextVar[Callable[[str], contextlib.AbstractContextManager[None]]] = ContextVar(
    "working", default=lambda _: contextlib.nullcontext()
)
"""Shows on a terminal what is being done, while it is done; cli/ removes the line at the end."""


class DamagedRowWarning(UserWarning):
    """A row of the results file is damaged and was left out; the text names it."""


def unknown(kind: str, word: str, known: Iterable[str], *, listed_by: tuple[str, ...] = ()) -> UsageError:
    """An unknown name, with the most similar known one: `unknown pattern 'pingpog': did you mean 'pingpong'?`.

    Names that begin with the word, or contain it, come first. If no name is similar, the error lists the known names;
    only the first of them, and the command `listed_by` that lists all, if that is given.
    """
    names = list(known)
    holding = [name for name in names if word and name.startswith(word)]
    holding = holding or [name for name in names if len(word) > 2 and word in name]
    # difflib's ratio of 'nope' and 'ompi' is 0.5.
    close = difflib.get_close_matches(word, holding or names, n=1, cutoff=0.0 if holding else 0.6)
    if close:
        hint = f"did you mean '{close[0]}'?"
    elif any("," in name for name in names):
        hint = f"known are {', '.join(map(repr, names))}"
    elif listed_by and len(names) > 6:
        hint = f"known are {', '.join(names[:6])} …; list all"
        return UsageError(f"unknown {kind} '{word}': {hint}", argv=listed_by)
    else:
        hint = f"known are {', '.join(names)}" if names else "there is none"
    return UsageError(f"unknown {kind} '{word}': {hint}")
