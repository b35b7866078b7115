"""C compilers and the wrappers that MPI libraries put round them: which there are, and which is which.

Asking a compiler costs 5 to 30 ms a question, so the answers are kept; they hold until one of the files involved (the
wrapper, what it links to, the compiler behind it) changes.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hockney.worker.cache import Probes
from hockney.worker.errors import CompileFailed, NoCompiler

_ASK_LIMIT_S = 5.0
_ASK_AGAIN_S = 600.0  # what did not answer is not asked again for so long
_starting = threading.Lock()
_running: set[subprocess.Popen[bytes]] = set()
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
    try:
        asked = shlex.split(os.environ.get("CC", ""))
    except ValueError as error:
        raise NoCompiler(
            f"CC={os.environ['CC']} is no command: {str(error).lower()}", "correct it or unset CC"
        ) from error
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
        show = ask([path, *argv[1:], "-show"], probes).strip() if wrapper else ""
        try:
            shown = shlex.split(show)
        except ValueError as error:
            raise CompileFailed(Path(path).name, "answer -show", f"{str(error).lower()} in: {show}") from error
        known = {"version": ask([path, *argv[1:], "--version"], probes).partition("\n")[0], "show": show}
        called = [word for word in (*argv[1:], *shown[:2]) if not word.startswith("-")]
        probes.put(key, known, [path, *(word for word in called if shutil.which(word))])
    return Compiler(tuple(argv), known["version"], known["show"])


def ask(argv: Sequence[str], probes: Probes) -> str:
    """What a program prints on standard output. Raises CompileFailed with what it said if it fails.

    One that does not answer is remembered for a while, so that not every command waits for it.
    """
    name, what = Path(argv[0]).name, f"answer {argv[-1]}"
    key = ["silent", *argv]
    silent = probes.get(key)
    if silent is not None and 0 <= time.time() - silent["at_unix_s"] < _ASK_AGAIN_S:
        raise CompileFailed(name, what, silent["why"])
    try:
        code, out, error = run(argv)
    except subprocess.TimeoutExpired:
        why = f"no end after {_ASK_LIMIT_S:g} s"
        probes.put(key, {"why": why, "at_unix_s": time.time()}, [argv[0]])
        raise CompileFailed(name, what, why) from None
    except OSError as reason:
        raise CompileFailed(name, what, str(reason)) from reason
    if code != 0:
        raise CompileFailed(name, what, error or out)
    return out


def run(argv: Sequence[str], environment: Mapping[str, str] = os.environ) -> tuple[int, str, str]:
    """A program's exit code, standard output and standard error. What it has started ends with it at the time limit.

    It ends with us too, whichever thread waits for it. Raises OSError, TimeoutExpired.
    """
    with _starting:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment, "LC_ALL": "C"},
            start_new_session=True,
        )
        _running.add(process)
    with process:
        try:
            out, error = process.communicate(timeout=_ASK_LIMIT_S)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            _running.discard(process)
    return process.returncode, out.decode(errors="replace"), error.decode(errors="replace")


@atexit.register
def _end_running() -> None:
    """Those for which threads wait that Ctrl-C does not reach. The lock is kept: no thread starts another one."""
    _starting.acquire()
    for process in tuple(_running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


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
