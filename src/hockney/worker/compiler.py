"""Finds C compilers and the wrappers of MPI libraries, and identifies them.

Asking a compiler costs 5 to 30 ms a question, so the answers are kept. They hold until a file involved changes: the
wrapper, its target, the compiler behind it.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hockney.worker.cache import Probes
from hockney.worker.errors import CompileFailed, NoCompiler
from hockney.worker.programs import ProgramFailed, answer_of

_ASK_LIMIT_S = 5.0


@dataclass(frozen=True)
class Compiler:
    """A compiler: its command, and its distinction from others."""

    argv: tuple[str, ...]
    version: str  # the first line of --version
    show: str  # words that a wrapper adds to the command line; empty for a plain compiler


def find_c_compiler() -> tuple[str, ...]:
    """The command in CC, else the first of cc, gcc and clang on PATH. Raises NoCompiler."""
    asked = os.environ.get("CC", "")
    argv = split_words(asked) or [asked]
    if asked and shutil.which(argv[0]) is None:
        raise NoCompiler(f"no C compiler found: CC is '{asked}', which is not here", "install it or unset CC")
    if asked:
        return tuple(argv)
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return (name,)
    raise NoCompiler(
        "no C compiler found: cc, gcc and clang are not on PATH",
        "install one with: apt-get install gcc libc6-dev (Debian, Ubuntu), or as your system has it",
    )


def split_words(line: str) -> list[str]:
    """The words of a command line; none where a quotation does not end."""
    try:
        return shlex.split(line)
    except ValueError:
        return []


def identify(argv: Sequence[str], probes: Probes, *, wrapper: bool) -> Compiler:
    """Ask a compiler (`wrapper`: an MPI library's) who it is, or remember. Raises NoCompiler, CompileFailed."""
    path = shutil.which(argv[0])
    if path is None:
        raise NoCompiler(f"there is no compiler '{argv[0]}'", "install it, or name another one")
    wrapped = [os.environ.get(name, "") for name in ("OMPI_CC", "MPICH_CC", "I_MPI_CC")]  # which wrappers call
    key = ["wrapper" if wrapper else "compiler", path, *argv[1:], *wrapped]
    known = probes.get(key, "version", "show")
    if known is None:
        show = ask([path, *argv[1:], "-show"]).strip() if wrapper else ""
        known = {"version": ask([path, *argv[1:], "--version"]).partition("\n")[0], "show": show}
        called = [word for word in (*argv[1:], *split_words(show)[:2]) if not word.startswith("-")]
        probes.put(key, known, [path, *(word for word in called if shutil.which(word))])
    return Compiler(tuple(argv), known["version"], known["show"])


def ask(argv: Sequence[str]) -> str:
    """The standard output of a program. Raises CompileFailed with its message; its children end at the limit."""
    try:
        return answer_of(argv, _ASK_LIMIT_S, environment={**os.environ, "LC_ALL": "C"})
    except ProgramFailed as error:
        raise CompileFailed(Path(argv[0]).name, f"answer {argv[-1]}", error.said) from error
