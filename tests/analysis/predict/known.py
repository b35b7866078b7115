"""A machine of known parameters, and a run of the suites basics and validate on it."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.builders import set_columns
from tests.shared import made_once

from hockney import suites
from hockney.cli import execute

SEND, RECEIVE, LATENCY, PER_BYTE, WAY, PER_LONG_BYTE, PUT = 500.0, 700.0, 12000.0, 8.5, 9000.0, 7.5, 100.0
MODEL = f"""
title = "known"
[topology]
kind = "switch"
nodes = 64
source = "made up"
[class.all]
[[class.all.segment]]
up_to_bytes = 8000
send_cpu = {SEND}
recv_cpu = {RECEIVE}
latency = {LATENCY}
transfer = {{ per_byte_ns = {PER_BYTE} }}
out = {{ per_byte_ns = {PER_BYTE} }}
in = {{ per_byte_ns = {PER_BYTE} }}
source = "made up"
[[class.all.segment]]
protocol = "rendezvous"
latency = {WAY}
transfer = {{ per_byte_ns = {PER_LONG_BYTE} }}
out = {{ per_byte_ns = {PER_LONG_BYTE} }}
in = {{ per_byte_ns = {PER_LONG_BYTE} }}
source = "made up"
[put.all]
segment = [{{ send_cpu = {{ fixed_ns = {PUT}, per_byte_ns = 1 }}, latency = 3000, source = "made up" }}]
"""


def copied(factory: pytest.TempPathFactory) -> Path:
    """The results file of the run, measured once and copied; `known.toml` next to it is the model."""
    folder = factory.mktemp("known")
    shutil.copytree(made_once(factory, "known", _measure), folder, dirs_exist_ok=True)
    return folder / "r.db"


def call_it_validate(store: Path) -> None:
    """As if `predict --validate` had measured the runs."""
    with contextlib.closing(sqlite3.connect(store)) as db, db:
        set_columns(db, "run", "suite = 'validate'")


def _measure(folder: Path) -> None:
    texts = [(Path(suites.__file__).parent / f"{name}.toml").read_text() for name in ("basics", "validate")]
    series = "".join(text[text.index("[[series]]") :] + "\n" for text in texts)
    (folder / "known.toml").write_text(MODEL)
    (folder / "both.toml").write_text(f'name = "both"\ntitle = "both"\ntime = "1m"\n{series}')
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)  # the name of a model is that of its file
        execute(["run", "both.toml", "--machine", "known.toml", "--store", "r.db", "--quiet"])
