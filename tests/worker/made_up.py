"""Fake libraries for tests: a compiler wrapper and a launcher with given output."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.shared import script


def install(root: Path, wrapper: str, library: str, macros: str, launcher: str | None, says: str) -> Path:
    """A library in a folder; its wrapper counts its calls in `calls`. Returns its bin folder."""
    tools, libraries = root / "bin", root / "lib"
    for folder in (tools, libraries):
        folder.mkdir(parents=True, exist_ok=True)
    (libraries / f"lib{library}.so").write_text(str(root))
    script(
        tools / wrapper,
        f"echo call >> {root}/calls\n"
        f'case "$*" in *-show*) echo "{shutil.which("cc")} -I{root}/include -L{libraries} -l{library}";;\n'
        f"*--version*) echo cc 1.0;;\n*-dM*) cat <<'END'\n{macros}\nEND\n;; *) exit 1;; esac",
    )
    if launcher:
        script(tools / launcher, "cat <<'END'", says, "END")
    return tools


def on_path(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, folders), os.environ["PATH"]]))
