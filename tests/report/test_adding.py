"""A new finding and a new column are one record and their line in the docs, seen in a copy of the tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.builders import copied_tree
from tests.report.runs import store_quick

DETECTORS, COLUMNS = "src/hockney/analysis/explain/__init__.py", "src/hockney/report/sheet.py"
# After which line, the new ones.
RECORDS = {
    DETECTORS: {
        "from hockney.results.runs import Run\n": """

def _long_curves(reading: Reading) -> list[Finding] | NotChecked:
    curves = [curve for curve in reading.curves if curve.points]
    if not curves:
        return NotChecked(Absence.NOT_MEASURED, why="needs a curve")
    longest = max(curves, key=lambda curve: curve.points[-1].bytes)
    facts = {"longest_bytes": longest.points[-1].bytes, "sizes": len(longest.points)}
    return [Finding("long curve", Subject(longest.transport, longest.pattern), facts, effect=99.0)]
""",
        "import Absence, Detector, Finding, NotChecked, Note": ", Subject",
        "DETECTORS: tuple[Detector, ...] = (\n": '    Detector("long curve", "long curves", _long_curves),\n',
    },
    COLUMNS: {
        "COLUMNS = (\n": """    Column(
        "64 KiB",
        "medium_ns",
        "ns",
        "half a round trip of 64 KiB (pingpong)",
        lambda of: of.time_ns("pingpong", 65536),
    ),
"""
    },
}
LINES = {
    "docs/explain.md": {"| --- | --- | --- |\n": "| `long curve` | a curve of many sizes | the longest |\n"},
    "docs/json.md": {
        "the better rate of 64 KiB and 1 MiB with 16 messages in flight (oneway)\n": (
            "  medium_ns                     Value?    64 KiB: half a round trip of 64 KiB (pingpong)\n"
        )
    },
}


def add(tree: Path, added: dict[str, dict[str, str]]) -> None:
    for name, texts in added.items():
        text = (tree / name).read_text()
        for after, new in texts.items():
            before, found, rest = text.partition(after)
            assert found, f"{name} has no {after!r}"
            text = before + found + new + rest
        (tree / name).write_text(text)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with one more finding and one more column, and a stored run of the suite quick."""
    copy = copied_tree(tmp_path_factory.mktemp("tree"))
    add(copy, RECORDS)
    store_quick(copy / "results.db")
    return copy


def call(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree / "src"),
        "HOCKNEY_STORE": str(tree / "results.db"),
        "COLUMNS": "140",
    }
    argv = [sys.executable, *arguments]
    return subprocess.run(argv, cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=300)


# One process for all: what it imports takes longer than what it does.
EVERY_SCREEN = """
from hockney.cli import execute
for words in (["show", "--tables", "-v"], ["show", "--tables", "--json"], ["explain"], ["explain", "--json"]):
    assert execute(words) == 0
    print("\\f", end="")
"""


def test_a_column_and_a_finding_are_on_every_screen(tree: Path) -> None:
    done = call(tree, "-c", EVERY_SCREEN)
    assert done.returncode == 0, done.stderr
    sheet, sheet_json, findings, findings_json, _ = done.stdout.split("\f")
    assert "64 KiB latency (8 B) bandwidth" in " ".join(sheet.split())
    assert "64 KiB: half a round trip of 64 KiB (pingpong)" in " ".join(sheet.split())
    assert json.loads(sheet_json)["rows"][0]["medium_ns"]["value"] > 0
    assert "long curve" in findings
    finding = json.loads(findings_json)["findings"][0]
    assert finding["code"] == "long curve"
    assert finding["facts"]["sizes"] >= 5


@pytest.mark.full
def test_the_documents_need_one_line_each(tree: Path) -> None:
    names = "code_of_a_finding or test_tables or test_explain or a_key_that_goes"
    pages = ("tests/test_docs.py", "tests/test_docs_json.py")
    test = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *pages, "-k", names)
    without = call(tree, *test)
    assert without.returncode == 1
    assert "long curve" in without.stdout
    assert "medium_ns" in without.stdout
    add(tree, LINES)
    done = call(tree, *test)
    assert done.returncode == 0, done.stdout + done.stderr
