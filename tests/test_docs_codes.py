"""docs/json.md, explain.md and hosts.md have every code and word of the documents, and no other."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from tests.test_docs_json import DOCS, PAGE, WORDS

import hockney
from hockney.analysis.compare import ReasonCode, Verdict
from hockney.analysis.expect import Outcome
from hockney.analysis.explain import DETECTORS
from hockney.cli.schemas import schema, sections
from hockney.machine.files import read_toml
from hockney.model import PointStatus, RunStatus
from hockney.render.json import JSON_VERSION
from hockney.report.findings import WORDING

# ---- codes ----------------------------------------------------------------------------------------------------------

TEMPLATES = read_toml(Path(hockney.__file__).parent / "report/findings.toml")


def below(title: str, page: str = PAGE) -> str:
    """The text between a heading and the next one."""
    return re.split(r"^#+ .*$", page.partition(f"# {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def codes_in(text: str) -> set[str]:
    """What is in backquotes; a code may be broken over two lines."""
    return set(re.findall(r"`([^`]+)`", " ".join(text.split())))


def rows_below(title: str, page: str = PAGE) -> list[list[str]]:
    """The cells of a table's rows that begin with a code."""
    return [line.strip("|").split("|") for line in below(title, page).splitlines() if line.startswith("| `")]


@pytest.mark.parametrize(("title", "table"), [("Notes", "notes"), ("Fixes", "fixes"), ("Not checked", "gaps")])
def test_the_page_has_every_code_and_no_other(title: str, table: str) -> None:
    """tests/report/test_findings.py holds that the program has exactly those of findings.toml."""
    assert codes_in(below(title)) == {*TEMPLATES[table]}


def test_the_page_has_every_cause_of_a_finding_and_no_other() -> None:
    """Those of the hardware have a table of their own."""
    listed = {pair for row in rows_below("Causes") for pair in itertools.product(*map(codes_in, row))}
    for causes, meaning in rows_below("Limits of the hardware", (DOCS / "limits.md").read_text(encoding="utf-8")):
        code = "below its limit" if "a rate below its limit" in meaning else "hardware limit"
        listed |= {(code, cause) for cause in codes_in(causes)}
    assert listed == {(code, cause) for code, words in WORDING.items() for cause in words.get("causes", ())}


def test_the_page_has_every_reason_and_no_other() -> None:
    assert codes_in(below("Reasons")) == {code.value for code in ReasonCode}


def test_the_pages_have_every_code_of_a_finding_and_no_other() -> None:
    explain, hosts = ((DOCS / name).read_text(encoding="utf-8") for name in ("explain.md", "hosts.md"))
    rows = rows_below("Findings", explain) + rows_below("Findings", hosts)
    listed = set.union(*(codes_in(row[0]) for row in rows))
    assert listed == {*WORDING, *(detector.code for detector in DETECTORS)}


# ---- words ----------------------------------------------------------------------------------------------------------


def test_the_page_names_the_version_of_the_documents() -> None:
    assert f"of these documents: {JSON_VERSION}\n" in PAGE
    assert f"\nVersion {JSON_VERSION} " in PAGE


def test_a_key_that_goes_or_changes_its_type_raises_the_version() -> None:
    """`keys.txt` holds the keys that were released with this version; new ones may come at any time."""
    first, *lines = (Path(__file__).parent / "keys.txt").read_text(encoding="utf-8").replace("\n  ", " ").splitlines()
    assert first == f"version {JSON_VERSION}", "write the keys of the new version to tests/keys.txt"
    before = {
        (path, *key.split(" ")) for path, keys in (line.split(": ") for line in lines) for key in keys.split(", ")
    }
    now = {
        (".".join([section, *row.key.split(".")[:-1]]), row.key.rpartition(".")[2], row.type)
        for section, rows in sections().items()
        for row in rows
    }
    assert sorted(before - now) == [], "raise JSON_VERSION, and say in docs/json.md what changed"


@pytest.mark.parametrize("words", [Verdict, Outcome, PointStatus, RunStatus])
def test_every_word_of_an_answer_is_on_the_page(words: Any) -> None:
    assert [word.value for word in words if not re.search(rf"\b{word.value}\b", WORDS)] == []


def test_every_kind_of_warning_is_on_the_page() -> None:
    """As the code has them, where a warning is made; each text has a place that uses it."""
    root = Path(hockney.__file__).parent
    code = "".join(path.read_text(encoding="utf-8") for path in root.rglob("*.py"))
    keys = read_toml(root / "machine/warnings.toml").keys()
    used = set(re.findall(r'\bwarn_of\(\s*"([\w-]+)"', code))
    assert used <= keys
    assert {key for key in keys - used if not key.endswith("-met")} == {"ipv4"}  # its key is that of what a library met
    kinds = {key.partition("-")[0] for key in keys} | {"others"}
    assert [kind for kind in kinds if not re.search(rf"\b{kind}\b", WORDS)] == []


def test_keys_below_a_part_are_in_the_schema() -> None:
    """A transport has those of everything listed, and its own."""
    listed = schema()["$defs"]["list"]["properties"]["transports"]["items"]["allOf"]
    assert listed[0] == {"$ref": "#/$defs/Listed"}
    assert {"caps", "native", "max_bytes"} <= {*listed[1]["properties"]}
    assert listed[1]["properties"]["max_bytes"]["description"] == "null: no limit"
