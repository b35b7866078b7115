"""C compilers and the wrappers that MPI libraries put round them: which there are, and which is which.

Asking a compiler costs 5 to 30 ms a question, so the answers are kept; they hold until one of the files involved (the
wrapper, what it links to, the compiler behind it) changes.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hockney.worker.cache import Probes
from hockney.worker.errors import CompileFailed, NoCompiler

_ASK_LIMIT_S = 30
# Wrappers look here for the compiler that they call.
_WRAPPED_COMPILER = ("OMPI_CC", "MPICH_CC", "I_MPI_CC")
_INSTALL = (
    (("debian", "ubuntu"), "apt-get install gcc libc6-dev"),
    (("fedora", "rhel", "centos"), "dnf install gcc"),
    (("suse", "opensuse"), "zypper install gcc"),
    (("alpine",), "apk add build-base"),
    (("arch",), "pacman -S gcc"),
)


@dataclass(frozen=True)
class Compiler:
    """A compiler as it is called, and what tells it from others."""

    argv: tuple[str, ...]
    version: str  # the first line of --version
    show: str  # what a wrapper adds to the command line; empty for a plain compiler

    @property
    def name(self) -> str:
        """For messages: `gcc`, `mpicc.openmpi`."""
        return Path(self.argv[0]).name

    @property
    def behind(self) -> tuple[str, ...]:
        """The compiler that a wrapper calls, with what decides the machine code but not the library's headers."""
        if not self.show:
            return self.argv
        words = shlex.split(self.show)
        options = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
        return (*words[:options], *(word for word in words[options:] if word.startswith(("-m", "-f"))))


def find_c_compiler() -> tuple[str, ...]:
    """The command in CC, else cc, gcc or clang, whichever is on PATH. Raises NoCompiler."""
    asked = shlex.split(os.environ.get("CC", ""))
    if asked:
        if shutil.which(asked[0]) is None:
            raise NoCompiler(f"no C compiler found: CC names '{asked[0]}', which is not here", "install it or unset CC")
        return tuple(asked)
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return (name,)
    raise NoCompiler("no C compiler found: cc, gcc and clang are not on PATH", f"install one with: {_how_to_install()}")


def identify(argv: Sequence[str], probes: Probes, *, wrapper: bool) -> Compiler:
    """Ask a compiler (`wrapper`: an MPI library's) who it is, or remember.

    Raises NoCompiler if it is not there, CompileFailed if it can't even tell its version.
    """
    path = shutil.which(argv[0])
    if path is None:
        raise NoCompiler(f"no C compiler found: '{argv[0]}' is not on PATH", f"install one with: {_how_to_install()}")
    kind = "wrapper" if wrapper else "compiler"
    key = [kind, path, *argv[1:], *(os.environ.get(name, "") for name in _WRAPPED_COMPILER)]
    known = probes.get(key)
    if known is None:
        show = ask([path, *argv[1:], "-show"]).strip() if wrapper else ""
        known = {"version": ask([path, *argv[1:], "--version"]).partition("\n")[0], "show": show}
        called = [word for word in (*argv[1:], *shlex.split(show)[:2]) if not word.startswith("-")]
        probes.put(key, known, [path, *(word for word in called if shutil.which(word))])
    return Compiler(tuple(argv), known["version"], known["show"])


def ask(argv: Sequence[str]) -> str:
    """What a command prints on standard output. Raises CompileFailed with what it said if it fails."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=_ASK_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompileFailed(Path(argv[0]).name, f"answer {argv[-1]}", str(error)) from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="replace")
        raise CompileFailed(Path(argv[0]).name, f"answer {argv[-1]}", said)
    return done.stdout.decode(errors="replace")


def _how_to_install() -> str:
    if sys.platform == "darwin":
        return "xcode-select --install"
    try:
        release = Path("/etc/os-release").read_text()
    except OSError:
        release = ""
    words = {
        word.strip("\"'")
        for line in release.splitlines()
        if line.startswith(("ID=", "ID_LIKE="))
        for word in line.partition("=")[2].split()
    }
    return next((command for ids, command in _INSTALL if words & set(ids)), "your system's package manager (gcc)")
