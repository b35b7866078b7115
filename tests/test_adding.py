"""A pattern and a transport are one C file, one line of registry.c and one row in the docs, a format one Python file,
one name and one row, a finding and a column one record and one row: in a copy of the tree with one more of each they
are measured, imported and shown, and all tests pass."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from tests.builders import copied_tree
from tests.report.runs import store_quick
from tests.shared import finished

CSRC = "src/hockney/worker/csrc"
FILES = {
    f"{CSRC}/patterns/firstlast.c": """/* Round trips between the first rank and the last one; half the round trip. */
#include "roundtrip.h"

static int firstlast_peer(const hk_ctx_t *ctx)
{
    return ctx->rank == 0 ? ctx->size - 1 : 0;
}

static bool firstlast_acts(const hk_ctx_t *ctx)
{
    return ctx->rank == 0 || ctx->rank == ctx->size - 1;
}

static hk_plan_t firstlast_plan(const hk_run_t *run)
{
    return (hk_plan_t){.out_bytes = run->bytes,
                       .in_bytes = run->bytes,
                       .bytes_per_rep = 2 * run->bytes,
                       .messages_per_rep = 2,
                       .divisor = 2};
}

static hk_status_t firstlast_repeat(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    return firstlast_acts(ctx) ? hk_round_trips(run, firstlast_peer(ctx), ctx->rank == 0, reps) : HK_OK;
}

static bool firstlast_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.size_bytes = run->bytes, .from_rank = firstlast_peer(run->ctx)};
    return firstlast_acts(run->ctx) && i == 0;
}

const hk_pattern_t hk_pattern_firstlast = {
    .name = "firstlast",
    .summary = "one message to and fro between the first and the last rank; half the round trip",
    .needs = HK_CAP_SEND,
    .ranks_min = 2,
    .timed = HK_TIMED_ROOT,
    .plan = firstlast_plan,
    .repeat = firstlast_repeat,
    .expected = firstlast_expected,
};
""",
    f"{CSRC}/transports/wide.c": """/* Unix-domain stream sockets with send buffers of 1 MiB. */
#include <sys/socket.h>

#include "stream.h"

static int make_wide(int fds[2])
{
    const int bytes = 1 << 20;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
        return -1;
    }
    (void)setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    return setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

static const hk_stream_family_t wide_family = {
    .carrier = "Unix-domain stream sockets, wide",
    .put = hk_stream_socket_put,
    .get = hk_stream_socket_get,
    .put_now = hk_stream_socket_put_now,
    .get_now = hk_stream_socket_get_now,
    .make = make_wide,
    .duplex = true,
};

const hk_transport_t hk_transport_wide = {
    HK_STREAM_HOOKS,
    HK_STREAM_PREPARED,
    .name = "wide",
    .summary = "Unix-domain sockets with large buffers",
    .caps = HK_STREAM_CAPS,
    .own = &wide_family,
    .below = "unix",
};
""",
    "src/hockney/results/formats/wiretest.py": '''"""wiretest: text and JSON."""

import re

from hockney.results.formats.output import Format, Output, OutputTable, curves


def _read(table):
    return curves(table, Output("wiretest", "pingpong", "tcp", 2, options=table.heading_says), "half trip (us)")


def _tables(document):
    rows = [(number, list(map(str, row))) for number, row in enumerate(document["wiretest"], 1)]
    return [OutputTable(FORMAT, 1, ("bytes", "half trip (us)"), f"cable: {document['cable']}", rows)]


FORMAT = Format(
    "wiretest",
    _read,
    head=re.compile("bytes +half trip"),
    titles=lambda *_: ("bytes", "half trip (us)"),
    start=re.compile("cable: "),
    said=((r"cable: (\\w+)", "cable", "copper"),),
    is_document=lambda document: "wiretest" in document,
    tables=_tables,
)
''',
}
FORMATS = "src/hockney/results/formats/__init__.py"
DETECTORS = "src/hockney/analysis/explain/__init__.py"
# What is added to each file, after these words.
RECORDS = {
    f"{CSRC}/registry.c": {
        "    X(pingpong)                  \\\n": "    X(firstlast)                 \\\n",
        "    X(null)                 \\\n": "    X(wide)                 \\\n",
    },
    FORMATS: {
        "from hockney.errors import UsageError\n": "from hockney.results.formats import wiretest\n",
        "_MODULES = (": "wiretest, ",
    },
    DETECTORS: {
        "from hockney.results.runs import Run\n": """

def _long_curves(reading: Reading) -> list[Finding] | NotChecked:
    curves = [curve for curve in reading.curves if len(curve.points) >= 5]
    if not curves:
        return NotChecked(Absence.NOT_MEASURED, why="needs a curve of five sizes")
    longest = max(curves, key=lambda curve: curve.points[-1].bytes)
    facts = {"longest_bytes": longest.points[-1].bytes, "sizes": len(longest.points)}
    return [Finding("long curve", Subject(longest.transport, longest.pattern), facts, effect=99.0)]
""",
        "DETECTORS: tuple[Detector, ...] = (\n": '    Detector("long curve", "long curves", _long_curves),\n',
    },
    "src/hockney/report/columns.py": {
        "lambda of: of.fitted(lambda line: line.n_half_bytes),\n    ),\n": """    SheetColumn(
        "64 KiB", "medium_ns", "ns", "half a round trip of 64 KiB (pingpong)",
        lambda of: of.time_ns("pingpong", 65536),
    ),
"""
    },
}
ROWS = {
    "docs/metrics.md": {
        "| pattern | one repetition | time |\n| --- | --- | --- |\n": (
            "| firstlast * | the first rank sends, the last one answers | rank 0 / 2: half a round trip |\n"
        )
    },
    "docs/transports.md": {
        "| `unix` | Unix-domain stream sockets | sleeps |\n": (
            "| `wide` | Unix-domain sockets with large buffers; layer on `unix` | sleeps |\n"
        )
    },
    "docs/import.md": {
        "| output | figure | pattern |\n| --- | --- | --- |\n": "| wiretest, text and JSON | mean | pingpong |\n"
    },
    "docs/explain.md": {
        "| code | meaning | how it is found |\n| --- | --- | --- |\n": (
            "| `long curve` | a curve of many sizes | the longest |\n"
        )
    },
    "docs/json.md": {
        "the size at which that segment reaches half of r_inf\n": (
            "  medium_ns                     Value?    64 KiB: half a round trip of 64 KiB (pingpong)\n"
        )
    },
}
TESTS = (
    "tests/test_docs.py",
    "tests/test_docs_json.py",
    "tests/worker/test_formulas.py",
    "tests/worker/test_payloads.py",
    "tests/report/html/test_page.py",
    "tests/report/test_findings.py",
    "tests/report/test_sheet.py",
)


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
    """A copy of the sources with one more of each, and a stored run of the suite quick."""
    copy = copied_tree(tmp_path_factory.mktemp("tree"))
    for name, text in FILES.items():
        (copy / name).write_text(text)
    for added in (RECORDS, ROWS):
        add(copy, added)
    (copy / "reports").mkdir()  # not in the root, whose pages are documents
    store_quick(copy / "results.db")  # as run 1
    return copy


def call(tree: Path, *arguments: str) -> str:
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree / "src"),
        "HOCKNEY_STORE": str(tree / "results.db"),
        "COLUMNS": "140",
    }
    argv = [sys.executable, *arguments]
    done = finished(argv, cwd=tree, env=environment, timeout_s=580)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# One process for each test: what it imports takes longer than what it does.
MEASURED = """
from hockney.cli import execute
words = "run firstlast -t wide,unix -n 2 --bytes 8,64K --time 1 --json".split()
assert execute(words) in (0, 3)  # 3: no interval in so little time
print("\\f", end="")
assert execute(["report", "last", "-o", "reports/r.html"]) == 0
"""
IMPORTED = """
from hockney.cli import execute
for name in ("wire.txt", "wire.json"):
    assert execute(["import", name, "--store", "imported.db"]) == 0
    print("\\f", end="")
    assert execute(["export", "last", "--store", "imported.db", "--json"]) == 0
    print("\\f", end="")
"""
EVERY_SCREEN = """
from hockney.cli import execute
for words in (["-v"], ["--json"], []):
    assert execute(["show", "1", "--tables", *words]) == 0
    print("\\f", end="")
for words in ([], ["--json"]):
    assert execute(["explain", "1", *words]) == 0
    print("\\f", end="")
assert execute(["report", "1", "-o", "reports/r.md"]) == 0
"""


def test_a_pattern_and_a_transport_are_measured_and_reported(tree: Path) -> None:
    measured = json.loads(call(tree, "-c", MEASURED).partition("\f")[0])
    seen = {(series["pattern"], series["transport"]) for series in measured["series"]}
    assert seen == {("firstlast", "wide"), ("firstlast", "unix")}
    assert all(series["figures"][0]["verified"] for series in measured["series"])
    assert measured["facts"]["traits"]["transports"]["wide"]["carrier"] == "kernel"
    page = (tree / "reports/r.html").read_text(encoding="utf-8")
    assert "One message to and fro between the first and the last rank; half the round trip." in page


def test_a_format_is_imported_as_text_and_as_json(tree: Path) -> None:
    rows = {8: 1.5, 1024: 2.75}
    text = "cable: fibre\nbytes  half trip\n" + "".join(f"{size}  {us}\n" for size, us in rows.items())
    (tree / "wire.txt").write_text(text)
    (tree / "wire.json").write_text(json.dumps({"cable": "fibre", "wiretest": list(rows.items())}))
    for shown in map(json.loads, call(tree, "-c", IMPORTED).split("\f")[1::2]):
        found = {(series["bytes"], series["figures"][0]["value_ns"]) for series in shown["series"]}
        assert found == {(size, us * 1e3) for size, us in rows.items()}
        assert {series["options"]["cable"] for series in shown["series"]} == {"fibre"}


def test_a_column_and_a_finding_are_on_every_screen(tree: Path) -> None:
    sheet, sheet_json, short, findings, findings_json, _ = call(tree, "-c", EVERY_SCREEN).split("\f")
    assert "r_inf n_1/2 64 KiB" in " ".join(sheet.split())
    assert "64 KiB: half a round trip of 64 KiB (pingpong)" in " ".join(sheet.split())
    assert "n_1/2 64 KiB" in " ".join(short.split())
    assert json.loads(sheet_json)["rows"][0]["medium_ns"]["value"] > 0
    assert "long curve" in findings
    (finding,) = (each for each in json.loads(findings_json)["findings"] if each["code"] == "long curve")
    assert finding["facts"]["sizes"] >= 5
    report = (tree / "reports/r.md").read_text(encoding="utf-8")
    assert "long curve" in report.lower()
    assert "1/2 | 64 KiB |" in report


@pytest.mark.timeout(600)
@pytest.mark.full
def test_all_tests_of_each_kind_pass(tree: Path) -> None:
    """Those that CONTRIBUTING.md names, but for the screens that a seventh column makes wider."""
    wider = [f"--deselect=tests/report/test_sheet.py::{name}" for name in ("test_screen", "test_a_full_sheet_fits")]
    words = ("-m", "pytest", "-p", "no:cacheprovider")
    call(tree, *words, "-q", *wider, *TESTS)  # with -n the workers of all libraries would be compiled first
    native = call(tree, *words, "-v", "tests/worker/test_native.py", "-k", "wide")
    assert "test_every_pattern_on_every_transport[wide-2] PASSED" in native  # firstlast among them
