"""A new column of the data sheet is one record (and its line in docs/json.md), seen in a copy of the tree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.report.runs import store_quick

ROOT = Path(__file__).parents[2]
RECORD = """    Column(
        "64 KiB",
        "medium_ns",
        "ns",
        "half a round trip of 64 KiB (pingpong)",
        lambda of: of.time_ns("pingpong", 65536),
    ),
"""


def test_a_new_column_is_one_record(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    sheet = tmp_path / "src/hockney/report/sheet.py"
    before, start, after = sheet.read_text().partition("COLUMNS = (\n")
    sheet.write_text(before + start + RECORD + after)
    store_quick(tmp_path / "r.db")
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path / "src"),
        "HOCKNEY_STORE": str(tmp_path / "r.db"),
        "COLUMNS": "140",
    }

    def hockney(*words: str) -> str:
        argv = [sys.executable, "-m", "hockney", "show", "--tables", *words]
        return subprocess.check_output(argv, env=environment, cwd=tmp_path, text=True)

    text = " ".join(hockney("-v").split())
    assert "64 KiB latency (8 B) bandwidth" in text
    assert "64 KiB: half a round trip of 64 KiB (pingpong)" in text
    assert json.loads(hockney("--json"))["rows"][0]["medium_ns"]["value"] > 0
