"""docs/json.md describes the output of `--json`: every key is on the page with its type, and the page has no other."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.analysis.compare.delayed import plan
from tests.analysis.compare.made import add_run, curve, slower
from tests.analysis.compare.nights import step_of_tcp
from tests.analysis.health.made import known_host, store_health
from tests.analysis.predict.known import call_it_validate, copied
from tests.analysis.test_clocks import store_clocks
from tests.builders import make_info, make_point
from tests.cli.support import FACTS, fill
from tests.cli.test_background import store_impact
from tests.cli.test_rates import store_search
from tests.report.runs import Made, options, store_run
from tests.report.test_classic import stream
from tests.report.test_sheet import store_two_hosts

from hockney.analysis.compare import Verdict, compare_runs
from hockney.analysis.explain import Explanation, FittedLine, Layer, OffLine, Parameters
from hockney.analysis.finding import Absence, Finding, NotChecked, Note, Subject
from hockney.analysis.tune.rules import Rule
from hockney.cli import execute
from hockney.cli.commands import COMMANDS
from hockney.cli.schemas import FORMATS, Key, sections
from hockney.errors import Fix
from hockney.machine.activity import Moment, Program
from hockney.machine.facts import facts
from hockney.measure.bisect import Bisection, Ending, Trial, TrialVerdict
from hockney.measure.doctor import Checkup, FloorSeen, PairFigures
from hockney.measure.tune import Contest, Tuned
from hockney.model import Point, Warning_
from hockney.render.json import JSON_VERSION, _as_json
from hockney.report.documents.bisection import bisection_json
from hockney.report.documents.findings import explanation_json
from hockney.results.store import Store
from hockney.stats import Interval
from hockney.stats.fit import Estimate, LogGP
from hockney.worker.commits import Commit
from hockney.worker.libraries import Missing
from hockney.worker.settings import Choice

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "json.md").read_text(encoding="utf-8")
EVERY = "json"  # the keys of every document stand below the title
WORDS = " ".join(PAGE.split())  # a word may be broken over two lines

Documents = list[dict[str, Any]]
Read = Callable[..., dict[str, Any]]

# ---- the page -------------------------------------------------------------------------------------------------------


def rows_of(*names: str) -> dict[str, Key]:
    """The keys of these sections and, where a type is a part of several documents, that part's, by whole path."""
    rows: dict[str, Key] = {}
    for row in itertools.chain.from_iterable(sections()[name] for name in names):
        rows[row.key] = row
        part = re.search(r"[A-Z]\w+", row.type)
        if part:
            rows.update({f"{row.key}.{key}": below for key, below in rows_of(part[0].lower()).items()})
    return rows


# Each kind of value with the beginning of its type.
TYPES: dict[type, str] = {
    str: "text", bool: "bool", int: "int|num", float: "num", dict: r"object|\{|[A-Z]", list: r"\[",
}  # fmt: skip


def walked(value: Any, rows: dict[str, Key], path: str = "") -> Iterator[tuple[str, Any]]:
    """Every key of a document with its value, by its path; lists are passed through, maps not."""
    if isinstance(value, dict):
        for key, below in value.items():
            whole = f"{path}.{key}" if path else key
            yield whole, below
            row = rows.get(whole)
            if row is None or not row.type.startswith("{"):
                yield from walked(below, rows, whole)
    elif isinstance(value, list):
        for below in value:
            if below is None:
                yield path, None
            yield from walked(below, rows, path)


@functools.cache
def printed_schema() -> dict[str, Any]:
    """The output of `list schemas`, which is checked here, once: that takes longer than a document."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        assert execute(["list", "schemas"]) == 0
    schema: dict[str, Any] = json.loads(output.getvalue())
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


@functools.cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """Of the documents of this format."""
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": printed_schema()["$defs"]})


def check_page(documents: Documents, *names: str, optional: tuple[str, ...] = ()) -> None:
    """All keys of the documents are in these sections with their types, and no other is.

    Keys that the page calls absent may be missing, and so may those that begin with a text in `optional`. Each document
    follows its schema.
    """
    for document in documents:
        if "format" in document:
            validator(document["format"]).validate(document)
    rows = rows_of(EVERY, *names)
    seen: dict[str, list[Any]] = {}
    for path, value in itertools.chain.from_iterable(walked(document, rows) for document in documents):
        seen.setdefault(path, []).append(value)
    assert [path for path in seen if path not in rows] == [], f"keys that {names} of docs/json.md does not have"
    for path, values in seen.items():
        row = rows[path]
        assert "?" in row.type or None not in values, f"docs/json.md: {path} may be null"
        for value in values:
            assert value is None or re.match(TYPES[type(value)], row.type), f"{path}: {row.type} is {value!r}"
    absent = tuple(path for path, row in rows.items() if row.may_be_absent)
    unseen = [
        path for path in rows if path not in seen and not f"{path}.".startswith(tuple(f"{key}." for key in absent))
    ]
    assert [path for path in unseen if not path.startswith(optional or ("\0",))] == [], "no document has these"


# ---- the documents --------------------------------------------------------------------------------------------------


@pytest.fixture
def read(capsys: pytest.CaptureFixture[str]) -> Read:
    """Calls `hockney … --json`; gives the document."""

    def call(*arguments: object, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
        capsys.readouterr()
        assert execute([*map(str, arguments), "--json"]) in codes
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return document

    return call


def compared(path: Path) -> list[tuple[int, int]]:
    """Runs with differences of every kind: slower, inconclusive, in one alone, disturbed, drifting and others."""
    sizes = [2**n for n in range(3, 17)]
    times = {point: ns + (2000 if point.bytes > 2048 else 0) for point, ns in curve("tcp", sizes).items()}
    common: dict[str, Any] = {"facts": {"sleeping": ["tcp"], "hostname": "a"}, "suite": "pingpong"}
    common |= {"command": "hockney run pingpong", "plan": plan("tcp").as_json()}
    other = make_point(8, "unix")
    with Store.open(path) as store:
        base = add_run(store, times | {other: 1000.0}, scatter=0.003, launches=6, label="base", **common)
        changed = {**common, "facts": {"sleeping": ["tcp"]}, "version": "0.0.9"}
        moved = slower(times, 1.25, 64, 512) | {make_point(8): 15.0}
        new = add_run(store, moved, scatter=0.003, launches=6, seed=2, **changed)
        store.add_warning(
            new, Warning_("load", "machine", "Other programs used 1.0 CPUs when the run began.", "Stop them.")
        )
        few = [add_run(store, slower(curve(), by, 8, 64), launches=2, **common) for by in (1.0, 16.0)]
        far = add_run(store, curve(), launches=6, floor_ns=180.0, **common)
    return [(base, new), (few[0], few[1]), (few[0], far)]


def test_compare(tmp_path: Path, read: Read) -> None:
    path = tmp_path / "r.db"
    pairs = compared(path)
    documents = [read("compare", *pairs[0], "--store", path)]
    documents += [read("compare", *pair, "--store", path, codes=(3,)) for pair in pairs[1:]]
    check_page(documents, "compare")
    shifts = [member["shift"] for document in documents for member in document["series"]]
    assert None in shifts
    assert any(shift and shift["low"] is None for shift in shifts)
    assert any(commands := [document["commands"] for document in documents])
    assert all(f"--store {path}" in command for command in itertools.chain(*commands))
    assert read("compare", *pairs[0], "--store", path, "--margin", "5%")["margin"] == 1.05


def test_check_against_a_baseline(tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.db"
    documents = []
    for base, new in compared(path)[:2]:
        with Store.open(path) as store:
            comparison = compare_runs(store, base, new, margin=1.0 + 1e-9)
        checked = replace(comparison, judged_again=3)
        monkeypatch.setattr("hockney.cli.verdicts.check", lambda *_, checked=checked, **__: checked)
        documents.append(
            read("check", "--baseline", base, "--store", path, codes=(1 if comparison.counts[Verdict.SLOWER] else 3,))
        )
    check_page(documents, "check---baseline", "compare")


def test_check_of_expectations(tmp_path: Path, read: Read) -> None:
    path, expectations = tmp_path / "r.db", tmp_path / "expect.toml"
    with Store.open(path) as store:
        add_run(store, curve())
    table = '[[expect]]\npattern = "pingpong"\ntransports = "shm"\n'
    limits = ('latency = "<= 1 s"', 'latency = "<= 1 ns"', 'bandwidth = ">= 1 B/s"', 'latency = "<= 1 s"\nbytes = 9')
    expectations.write_text("\n".join(table + limit for limit in limits))
    document = read("check", "--expect", expectations, "last", "--store", path, codes=(1,))
    check_page([document], "check---expect")
    assert [limit["outcome"] for limit in document["limits"]] == ["met", "missed", "met", "inconclusive"]


def test_bisect() -> None:
    """Every kind of comparison, and of end; the commits are described once."""
    known, unknown = Interval(1.3, 1.25, 1.35, 12, 0.95), Interval(1.1, None, None, 3, None)
    trials = (
        Trial("a", "d", TrialVerdict.BAD, known, (1, 2)),
        Trial("a", "b", TrialVerdict.SKIPPED, reason="it cannot be built"),
        Trial("a", "c", TrialVerdict.UNDECIDED, unknown, (3, 4)),
    )
    found = (Bisection(ending, trials, ("d", "b", "c")) for ending in Ending)
    ends = [bisection_json(each, lambda name: Commit(name, "Jane", "2026-01-02", "x")) for each in found]
    documents: Documents = json.loads(json.dumps(ends, default=_as_json))
    assert [commit["id"] for commit in documents[0]["commits"]] == ["a", "b", "c", "d"]
    check_page([{"format": "hockney-bisect", "version": JSON_VERSION, **document} for document in documents], "bisect")
    row = sections()["bisect"]
    codes = " ".join(each.meaning for each in row)
    assert [word for kind in (Ending, TrialVerdict) for word in kind if word.value not in codes] == []


def test_explain(tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """No run has all of it, so the explanation is built here."""
    estimate = Estimate(2.0, 1.0, 3.0)
    where = ("shm", "pingpong", 2, "one core", "near")
    loggp = LogGP(8, 64, estimate, estimate, estimate, estimate, estimate, estimate, (8, 64), {"send": (0.1, 0.2)}, 0.1)
    subject, fix = Subject("shm", "pingpong", 2, "near", (8, 64)), Fix("show matrix", ("hockney", "list"))
    everything = Explanation(
        "run 1",
        (
            Finding("bend", subject, {"slope_ratio": estimate}, "curved", fix, 0.1, ("a page",)),
            Finding("flat latency", subject),
        ),
        (
            FittedLine(*where, 8, 64, 2, estimate, estimate, estimate, 0.1, (8, 64), (0.1, 0.2)),
            FittedLine(*where, 8, 64, 2, None, None, None, 0.1),
        ),
        (Parameters(*where, loggp),),
        (Layer("tcp", "unix", "near", 8, 1.0, 0.5, 2.0, True),),
        (NotChecked(Absence.NOT_MEASURED, "LogGP", "delays", how=fix), NotChecked(Absence.INSUFFICIENT_DATA, "lines")),
        (Note("one launch", fix=fix), Note("still running")),
        (OffLine(*where, 16, estimate),),
    )
    document: dict[str, Any] = json.loads(json.dumps(explanation_json(everything)))
    assert document["findings"][0]["fix"] == {
        "code": "show matrix",
        "text": "Show the whole matrix",
        "argv": ["hockney", "list"],
        "command": "hockney list",
    }
    path = tmp_path / "r.db"
    fill(path)
    real = [read("explain", "--machine", name) for name in ("gpmimd", "scali", "t3d", "ancor")]
    real.append(read("explain", "last", "--store", path))
    check_page([document, *real], "explain")


def test_show(tmp_path: Path, read: Read) -> None:
    fill(tmp_path / "r.db")
    check_page([read("show", number, "--store", tmp_path / "r.db") for number in (1, 2)], "show-run-and-quick")


def test_run_says_more_than_show(tmp_path: Path, read: Read) -> None:
    """The page marks the keys that only `run` has; the test of `show` would miss them."""
    words = ("pingpong", "-t", "shm", "--bytes", "8", "--time", "0.2s", "--store", tmp_path / "r.db")
    document = read("run", *words, codes=(0, 3))  # 3: so short a run may be without an interval
    shown = read("show", "--store", tmp_path / "r.db")
    assert set(document) - set(shown) == {"run", "store", "failed_points", "missing"}
    check_page([document], "show-run-and-quick", optional=("missing.", "warnings."))
    assert all(
        "absent in show" in row.meaning
        for row in sections()["show-run-and-quick"]
        if row.key.partition(".")[0] in set(document) - set(shown)
    )


def pingpong(transport: str, size: int, time_ns: float, ranks: int = 2, **given: object) -> Made:
    return Made(Point(transport, "pingpong", ranks, size, options(**given)), time_ns, divisor=2, bytes_per_rep=2 * size)


def test_tables(tmp_path: Path, read: Read) -> None:
    sheet, classic, pairs = (tmp_path / name for name in ("sheet.db", "classic.db", "pairs.db"))
    times = [pingpong("shm", size, 100 + size / 10) for size in (8, 64, 1024, 8192, 65536, 1 << 20)]
    best = [
        Made(Point("shm", pattern, 2, 65536, options(window=16)), 6000, divisor=16, bytes_per_rep=16 * 65536)
        for pattern in ("oneway", "twoway")
    ]
    failed = replace(pingpong("tcp", 8, 0), failed="rank 1 hung")
    harness = pingpong("null", 8, 2.0)
    store_run(
        sheet,
        "quick",
        [*times, pingpong("threads", 8, 130), *best, Made(Point("shm", "barrier", 2, 0), 90), harness, failed],
    )
    store_two_hosts(sheet)
    store_run(classic, "atlas", [Made(Point("shm", "oneway", 2, 4), 660)])
    both = [Made(Point("shm", "pingpong", 2, 0), 320, divisor=2), stream(65500, write="nonblocking")]
    store_run(classic, "scabench", both)
    store_run(classic, "ancor", [stream(size, write="nonblocking") for size in (1, 65500)])
    every = [
        pingpong("mpi", 8, 1300.0 if {a, b} == {1, 3} else 1000.0, 4, source=a, target=b)
        for a, b in itertools.permutations(range(4), 2)
    ]
    few = [replace(one, measurements=2) if one.time_ns > 1000 else one for one in every]
    store_run(pairs, "allpairs", every)
    store_run(pairs, "allpairs", few)
    for part, path, numbers in (
        ("data-sheet", sheet, "12"),
        ("classic-reports", classic, "123"),
        ("matrix-of-pairs", pairs, "12"),
    ):
        documents = [read("show", number, "--tables", "--store", path) for number in numbers]
        check_page(documents, "show-run-and-quick", part, optional=("warnings.",))


def test_highest_rates(tmp_path: Path, read: Read) -> None:
    in_time, late = [500] * 1000, [2000] * 1000
    for name, times_us in (("found", {1000: in_time, 2000: late}), ("none", {1000: late}), ("all", {1000: [500]})):
        store_search(tmp_path / name, times_us)
    documents = [read("show", "--tables", "--store", tmp_path / name) for name in ("found", "none", "all")]
    check_page(documents, "show-run-and-quick", "highest-rates", optional=("warnings.",))


def test_clocks(tmp_path: Path, read: Read) -> None:
    for name, rounds in (("many", 8), ("few", 2)):
        store_clocks(tmp_path / name, rounds=rounds)
    documents = [read("show", "--tables", "--store", tmp_path / name) for name in ("many", "few")]
    check_page(documents, "show-run-and-quick", "clocks", optional=("warnings.",))


def test_under_load(tmp_path: Path, read: Read) -> None:
    store_impact(tmp_path / "many")
    store_impact(tmp_path / "few", samples=3, rounds=2)
    documents = [read("show", "--tables", "--store", tmp_path / name) for name in ("many", "few")]
    check_page(documents, "show-run-and-quick", "under-load", optional=("warnings.",))


def test_health(tmp_path: Path, read: Read) -> None:
    hosts = [known_host("n1"), known_host("n2"), known_host("n3", kernel="older")]
    few: dict[str, Any] = {
        "rates": {(0, 2): 0.5},
        "unmeasured": (2,),
        "measurements": 2,
        "unusable": {"n9": "no answer"},
    }
    store_health(tmp_path / "few", 4, known=hosts, **few)
    store_health(tmp_path / "sound", 4)
    documents = [read("show", "--tables", "--store", tmp_path / name) for name in ("few", "sound")]
    check_page(documents, "show-run-and-quick", "health-of-hosts", optional=("warnings.",))


def test_runs(tmp_path: Path, read: Read) -> None:
    fill(tmp_path / "r.db")
    with Store.open(tmp_path / "r.db") as store:
        store.create_run(make_info(facts=FACTS), [make_point()])
        good = [add_run(store, curve("shm", (8,)), facts=FACTS, plan=plan("shm").as_json()) for _ in range(2)]
    verbs = ([], *(["accept", run] for run in good))
    check_page([read("baseline", *words, "--store", tmp_path / "r.db") for words in verbs], "baseline")
    documents = [
        read("runs", "--store", tmp_path / "r.db"),
        read("runs", "--label", 1, "x", "--store", tmp_path / "r.db"),
    ]
    check_page(documents, "runs")


def test_delete_and_a_dry_run(tmp_path: Path, read: Read) -> None:
    fill(tmp_path / "r.db")
    check_page([read("delete", 1, "--store", tmp_path / "r.db")], "delete")
    document = read("run", "ft,barrier", "-t", "shm,null", "--dry-run", "--store", tmp_path / "none.db")
    rows = rows_of(EVERY, "run---dry-run")
    check_page([document], "run---dry-run")
    assert rows
    assert not (tmp_path / "none.db").exists()


def test_tune(tmp_path: Path, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("tune", "allreduce", "-t", "mpi@openmpi-4", "-n", "2", "--bytes", "64")
    choice = Choice("ring", "4 0 0")
    rule = Rule("allreduce", 2, 64, 64, choice, ((2.0, 2.1, 2.2),))
    compared(tmp_path / "c.db")
    with Store.open(tmp_path / "c.db") as store:
        proof = compare_runs(store, 1, 2)

    def tune(contest: Contest, *_: object, resume: bool) -> Tuned:
        contest.left_out["allreduce", choice] = "it hangs"
        contest.too_short["allreduce"] = (4, 6)
        return Tuned([rule], proof, [rule])

    monkeypatch.setattr("hockney.measure.tune.tune", tune)
    proved = read(*words, "--store", tmp_path / "r.db", codes=(1, 3))
    assert proved["proof"]["base"] == 1
    monkeypatch.setattr("hockney.measure.tune.tune", lambda *_, **__: Tuned([]))
    nothing = read(*words, "--store", tmp_path / "r.db")
    check_page([read(*words, "--dry-run"), {**proved, "proof": {}}, nothing], "tune")


def test_report(tmp_path: Path, read: Read) -> None:
    fill(tmp_path / "r.db")
    check_page([read("report", 2, "--store", tmp_path / "r.db", "-o", tmp_path / "r.html")], "report")


def test_predict(tmp_path_factory: pytest.TempPathFactory, read: Read) -> None:
    what = ("predict", "pingpong,put,memload", "--machine", "t3d", "--bytes", "64")
    every = read(*what, "-o", "access=stream", "--set", "L=2x", "--sensitivity", "--tolerance")
    store = copied(tmp_path_factory)
    call_it_validate(store)
    fitted = read("predict", "pingpong", "--bytes", "8", "--store", str(store))
    check_page([read(*what), every, fitted], "predict")


def test_predict_validate(tmp_path_factory: pytest.TempPathFactory, read: Read) -> None:
    store = copied(tmp_path_factory)
    check_page([read("predict", "--validate", "--from", "1", "--store", str(store))], "predict---validate")


def test_list(read: Read) -> None:
    """Ready items differ from machine to machine."""
    kinds = ("launchers.", "transports.", "suites.")
    check_page([read("list"), read("list", "matrix")], "list", optional=kinds)


def test_doctor(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts are this machine's, which may not know caches or interfaces."""
    warning = Warning_("floor", "machine", "It moves.", "Wait.")
    missing = (Missing("pvm", "PVM is not here", "install it"),)
    moment = Moment(0.5, 0.1, 1.5, (Program("cc", 12, 1.5),))
    measured = PairFigures(
        (FloorSeen("near", 30.0, 0.9), FloorSeen("mixed", None, 0.1)), 29.0, 31.0, 20.0, True, (0, 1), 2.0
    )
    nothing = Checkup(facts(), Moment(0.5), PairFigures(why="no worker"), (), ())
    documents = []
    for made in (Checkup(facts(), moment, measured, (warning,), missing), nothing):
        monkeypatch.setattr("hockney.measure.doctor.check_up", lambda found=made: found)
        documents.append(read("doctor"))
    optional = ("facts.topology.caches.", "facts.topology.nodes.", "facts.network.interfaces.", "findings.")
    check_page(documents, "doctor", optional=optional)


def test_errors(tmp_path: Path, read: Read) -> None:
    check_page([read("explain", "--machine", "nowhere", codes=(2,))], "errors")


def test_import_and_export(tmp_path: Path, read: Read) -> None:
    """With and without samples, and for an imported run."""
    fill(tmp_path / "r.db")
    sample = Path(__file__).parent / "results/formats/samples/osu_latency.txt"
    check_page([read("import", sample, "--store", tmp_path / "r.db")], "import")
    documents = [
        read("export", number, *how, "--store", tmp_path / "r.db") for number in "123" for how in ([], ["--samples"])
    ]
    check_page(documents, "export")


def test_import_of_runs(tmp_path: Path, read: Read) -> None:
    fill(tmp_path / "other.db")
    words = ("import", tmp_path / "other.db", "--store", tmp_path / "r.db")
    check_page([read(*words), read(*words)], "import-of-runs")


def test_history(tmp_path: Path, read: Read) -> None:
    for name, nights in (("many", 20), ("few", 3)):
        with Store.open(tmp_path / name) as store:
            step_of_tcp(store, nights)
    many, few = read("history", "--store", tmp_path / "many"), read("history", "--store", tmp_path / "few", codes=(3,))
    check_page([many, few], "history")


def test_completion(read: Read) -> None:
    check_page([read("completion", "bash")], "completion")


# ---- schemas --------------------------------------------------------------------------------------------------------


def test_one_schema_takes_documents_of_every_command(read: Read, tmp_path: Path) -> None:
    assert {*FORMATS} == {*COMMANDS, "error"}
    schema = read("list", "schemas")
    assert schema == printed_schema()
    assert set(re.findall(r"#/\$defs/([\w-]+)", json.dumps(schema))) == set(schema["$defs"])
    whole = jsonschema.Draft202012Validator(schema)
    document = read("completion", "bash")
    whole.validate(document)
    assert not whole.is_valid({**document, "script": 1})


@pytest.mark.parametrize("name", FORMATS)
def test_a_schema_refuses_other_documents(name: str) -> None:
    head = {"format": f"hockney-{name}", "version": JSON_VERSION}
    for wrong in ({}, head, {**head, "version": JSON_VERSION - 1}, {**head, "format": "other"}):
        with pytest.raises(jsonschema.ValidationError):
            validator(f"hockney-{name}").validate(wrong)
