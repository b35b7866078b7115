"""A machine of known parameters, and a run of the suites basics and validate on it."""

from __future__ import annotations

from pathlib import Path

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


def measure(folder: Path) -> Path:
    """The results file of the run; `known.toml` in the folder is the model."""
    texts = [(Path(suites.__file__).parent / f"{name}.toml").read_text() for name in ("basics", "validate")]
    series = "".join(text[text.index("[[series]]") :] + "\n" for text in texts)
    (folder / "known.toml").write_text(MODEL)
    (folder / "both.toml").write_text(f'name = "both"\ntitle = "both"\ntime = "1m"\n{series}')
    words = ["--machine", str(folder / "known.toml"), "--store", str(folder / "r.db"), "--quiet"]
    execute(["run", str(folder / "both.toml"), *words])
    return folder / "r.db"
