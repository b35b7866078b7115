"""Files that a user names: each kind of input without an end is one sentence, and a byte order mark is skipped."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hockney.analysis.expect import load_expectations
from hockney.analysis.predict.topology import parse_topology
from hockney.errors import UsageError
from hockney.files import named_bytes, named_text
from hockney.suites import load_suite
from hockney.worker.catalogue import load
from hockney.worker.hosts import read_hostfile
from hockney.worker.machine_model import load_model

SUITE = 'name = "mine"\ntitle = "Mine"\n[[series]]\npattern = "pingpong"\n'
READERS: dict[str, Callable[[Path], object]] = {
    "suite": lambda path: load_suite(str(path)),
    "model": lambda path: load_model(str(path)),
    "file of expectations": lambda path: load_expectations(path, load(libraries=())),
    "topology": lambda path: parse_topology(str(path), 1e9),
    "host file": read_hostfile,
}


def pipe(path: Path) -> None:
    os.mkfifo(path)


def zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


def large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate((64 << 20) + 1)  # without taking room on the disk


@pytest.mark.parametrize("what", READERS)
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (pipe, "it is no regular file; write its content to one"),
        (zeros, "it is no regular file; write its content to one"),
        (folder, "is a directory"),
        (large, "it is larger than 64 MiB"),
        (lambda _: None, "no such file or directory"),
    ],
)
def test_input_without_an_end_is_refused(what: str, make: Callable[[Path], None], reason: str, tmp_path: Path) -> None:
    path = tmp_path / "input.toml"
    make(path)
    with pytest.raises(UsageError, match=f"^{re.escape(f'cannot read the {what} {path}: {reason}')}$"):
        READERS[what](path)


@pytest.mark.parametrize("what", READERS)
def test_what_is_no_utf_8_is_refused(what: str, tmp_path: Path) -> None:
    path = tmp_path / "input.toml"
    path.write_bytes(b"name = '\xff'\n")
    with pytest.raises(UsageError, match=f"^{re.escape(f'{path} is not a {what}: it is not UTF-8 text')}$"):
        READERS[what](path)


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "input.toml"
    path.write_text(SUITE, encoding="utf-8-sig")
    assert load_suite(str(path)).name == "mine"
    path.write_text("n1\nn2\n", encoding="utf-8-sig")
    assert [host.name for host in read_hostfile(path)] == ["n1", "n2"]


def test_64_mib_are_read(tmp_path: Path) -> None:
    path = tmp_path / "input"
    with path.open("wb") as file:
        file.truncate(64 << 20)
    assert len(named_bytes(path, "file")) == 64 << 20
    path.write_text("é", encoding="utf-8-sig")
    assert named_text(path, "file") == "é"
