"""`hockney explain` on a short real run, on recorded runs, and without anything to explain."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.cli.support import Cli, write_model
from tests.report.runs import Made, store_quick, store_run

from hockney.analysis.explain import DETECTORS, SUITES, Explanation
from hockney.analysis.finding import Absence, Finding, NotChecked, Subject
from hockney.archive import machines
from hockney.cli import execute
from hockney.errors import Fix
from hockney.measure.warnings import warn_of
from hockney.model import Point
from hockney.render.text import show
from hockney.report.documents.findings import strongest_document, whole_document
from hockney.report.findings import grouped
from hockney.results.store import Store
from hockney.suites import builtin_names


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert execute(["explain", *arguments, "--json"]) == 0
    read: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert read["format"] == "hockney-explain"
    return read


def test_a_run_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From its workers to its screen; two models stand for the machine, which no load disturbs."""
    names = [f"sim@{tmp_path}/{name}.toml" for name in ("quick", "slow")]
    for name, latency_ns in zip(names, (500, 1000), strict=True):
        write_model(Path(name.removeprefix("sim@")), latency_ns)
    store = ("--store", str(tmp_path / "r.db"))
    assert execute(["run", "pingpong", "-t", ",".join(names), "--bytes", "0,8,64,1K,4K,8K,64K", *store]) == 0
    capsys.readouterr()
    explained = document(capsys, "last", *store)
    assert explained["subject"] == "run 1"
    assert [line["transport"] for line in explained["lines"]] == names
    gaps = {gap["what"]: gap["reason"] for gap in explained["not_checked"]}
    assert gaps["duplex limits"] == "not measured"
    assert execute(["explain", "last", "--all", *store]) == 0
    printed = capsys.readouterr().out
    listed = re.findall(r"^(  )?- ", printed, re.MULTILINE)
    assert len(listed) == len(explained["findings"])
    assert printed.startswith(f"run 1: {listed.count('') or 'no'} finding")
    assert all(gap in " ".join(printed.split()) for gap in gaps)


@pytest.mark.parametrize("launches", [1, 3])
def test_a_finding_of_a_recorded_quick_takes_three_lines(
    launches: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store_quick(tmp_path / "r.db", launches=[{"index": number} for number in range(launches)])
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("HOCKNEY_STORE", str(tmp_path / "r.db"))
    assert execute(["explain"]) == 0
    screen = capsys.readouterr().out
    assert 0 < max(lines_of_findings(screen)) <= 3
    assert "…" not in screen
    assert execute(["explain", "--all"]) == 0
    everything = capsys.readouterr().out.partition("\n\n")[0]
    assert max(lines_of_findings(re.sub(r"\n  Source:.*|\n    http.*", "", everything))) <= 4


def lines_of_findings(screen: str) -> list[int]:
    """Each with its other transports as findings of their own."""
    paragraphs = re.findall(r"^(?:  )?- .*\n((?:  (?!- ).*\n)*)", f"{screen}\n", re.MULTILINE)
    return [1 + len(rest.splitlines()) for rest in paragraphs]


def test_a_long_finding_is_cut_to_three_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    of = Explanation("run 3", (finding(f"a kind with a long name {'and more words ' * 30}", "shm"),))
    monkeypatch.setenv("COLUMNS", "100")
    first, second, fix, *below = screen_of(of, capsys)[1:]
    assert (first[:7], second[-2:], fix[:7]) == ("- shm: ", " …", "  Fix: ")
    assert max(map(len, (first, second, fix))) <= 100
    assert "More with --all: the rest of each cut line." in below
    assert sum(len(line) > 0 for line in screen_of(of, capsys, everything=True)) > 4


def test_a_refused_copy_is_told_with_its_cause_and_fix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store_quick(tmp_path / "r.db")
    with Store.open(tmp_path / "r.db") as store:
        store.add_warning(1, warn_of("cma"))
    assert execute(["explain", "--store", str(tmp_path / "r.db")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "copies from process to process (CMA): MPIs copy long messages twice, or fail. Allow" in told
    assert "(docker --cap-add SYS_PTRACE" in told


@pytest.mark.parametrize("width", [60, 100])
def test_the_screen_of_a_recorded_quick(
    width: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
) -> None:
    store_quick(tmp_path / "r.db")
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("HOCKNEY_STORE", str(tmp_path / "r.db"))
    monkeypatch.setenv("PATH", "")  # without the programs of libraries
    assert execute(["explain"]) == 0
    screen = capsys.readouterr().out
    assert len(screen.splitlines()) <= 40 * 100 // width
    assert screen == snapshot


def finding(code: str, transport: str = "", effect: float = 0.1, state: str = "near", **facts: Any) -> Finding:
    fix = Fix("Read everything again and again", ("hockney", "list"))
    return Finding(code, Subject(transport, "pingpong", 2, state), facts or {"some_ns": 5.0}, fix=fix, effect=effect)


def screen_of(of: Explanation, capsys: pytest.CaptureFixture[str], *, everything: bool = False) -> list[str]:
    show(whole_document(of, {}) if everything else strongest_document(of, {}))
    return capsys.readouterr().out.splitlines()


def test_many_findings_take_40_lines_and_count_the_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    findings = tuple(finding(f"kind {number}", "shm") for number in range(30))
    gaps = tuple(NotChecked(reason, f"check {number}") for number in range(30) for reason in Absence)
    of = Explanation("run 3", findings, not_checked=gaps)
    lines = screen_of(of, capsys)
    shown = sum(line.startswith("- ") for line in lines)
    assert 5 <= shown <= 10
    assert len(lines) <= 40
    assert f"More with --all: {30 - shown} findings." in lines
    everything = screen_of(of, capsys, everything=True)
    assert sum(line.startswith("- ") for line in everything) == 30
    assert sum("  check" in line for line in everything) == len(gaps)


def test_findings_of_one_kind_on_several_transports_are_one_group() -> None:
    groups = grouped(
        [
            finding("protocol switch", "tcp", 0.5, jump_ns=400.0),
            finding("protocol switch", "unix", 0.4, fall_ns=300.0),
            finding("protocol switch", "tcp", 0.3, "far", jump_ns=500.0),
            finding("protocol switch", "shm", 0.2, jump_ns=50.0),
            finding("protocol switch", "shm", 0.1, jump_ns=50.0, threshold="a limit"),
            finding("protocol switch", "tcp", 0.1, jump_ns=50.0),
            finding("slow", "", 0.1),
            replace(finding("far above the floor", "udp"), cause="yields"),
            finding("yielding library", "udp"),
        ]
    )
    names = [[(each.subject.transport, each.subject.state) for each in group] for group in groups]
    assert names == [
        [("tcp", "near"), ("tcp", "far"), ("shm", "near")],
        [("unix", "near")],
        [("shm", "near")],
        [("tcp", "near")],
        [("", "near")],
        [("udp", "near")],
    ]


def test_gaps_are_listed_by_reason_with_the_commands_that_measure_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loggp = Fix("measure suite", ("hockney", "run", "loggp"), {"suite": "loggp"})
    gaps = (
        NotChecked(Absence.NOT_MEASURED, "LogGP", "delays", how=loggp),
        NotChecked(Absence.INSUFFICIENT_DATA, "outliers"),
        NotChecked(Absence.NOT_MEASURED, "slow links"),
    )
    lines = screen_of(Explanation("run 3", not_checked=gaps), capsys)
    assert lines == [
        "run 3: no findings",
        "",
        "Not checked",
        "  not measured: LogGP, slow links",
        "  insufficient data: outliers",
        "  To measure: `hockney run loggp`",
    ]


def test_a_busy_machine_is_no_finding_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    busy = replace(finding("busy machine"), subject=Subject(), facts={"seen": "x", "explained": [], "findings": 1})
    assert screen_of(Explanation("run 3", (busy,)), capsys)[0] == "run 3: no findings but a busy machine"


def test_suites_of_gaps_exist() -> None:
    assert set(SUITES) <= {*(detector.what for detector in DETECTORS), "LogGP"}
    assert set(SUITES.values()) <= set(builtin_names())


@pytest.mark.parametrize("machine", machines())
def test_every_machine_of_the_archive_can_be_explained(machine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["explain", "--machine", machine]) == 0
    printed = capsys.readouterr().out
    assert max(lines_of_findings(printed), default=0) <= 3
    assert printed.startswith(f"{machine}: ")
    assert "()" not in printed, "an unknown state takes no room"


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["last", "--machine", "t3d"], "a machine of the archive (--machine NAME): give one of them, not both", 2),
        (["--machine", "gpmim"], "did you mean 'gpmimd'?", 2),
        (
            ["--machine", "mine.toml"],
            "mine.toml is a model, and --machine explains published figures: run the model",
            2,
        ),
        (["1"], "run 1 (base) has no figures", 3),
        (["7"], "there is no run 7", 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_run_that_cannot_be_explained_is_one_sentence(
    arguments: list[str], words: str, code: int, filled_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["explain", *arguments, "--store", str(filled_store)]) == code
    output = capsys.readouterr()
    assert output.out == ""
    assert words in output.err
    assert output.err.count("\n") == 1


def test_a_run_with_failed_and_skipped_points_is_explained(
    filled_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = document(capsys, "2", "--store", str(filled_store))["notes"]
    assert any("rank 1 was killed by SIGKILL" in note["text"] for note in notes)


def test_machines_are_completed(cli: Cli) -> None:
    done = cli(_HOCKNEY_COMPLETE="bash_complete", COMP_WORDS="hockney explain --machine g", COMP_CWORD="3")
    assert "gpmimd" in done.stdout


def test_equal_transports_are_settled_in_alternation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only where a layer is not seen; `--all` lists layers."""
    for name, threads_ns, is_named in (("equal", 100.5, True), ("other", 200.0, False)):
        path = tmp_path / f"{name}.db"
        times_ns = {"shm": 100.0, "threads": threads_ns}
        made = [Made(Point(each, "pingpong", 2, 8), ns, 2, 16, scatter=0.02) for each, ns in times_ns.items()]
        store_run(path, "mine", made)
        assert execute(["explain", "--all", "--store", str(path)]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert ("No difference: measure both in alternation, with --interleave" in said) is is_named
