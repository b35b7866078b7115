"""The screens, documents, reports and errors of `hockney check --baseline`."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.analysis.compare import delayed
from tests.analysis.compare.made import add_run, curve
from tests.builders import make_info, make_point, set_columns
from tests.cli.support import call_here

from hockney.analysis.compare import Comparison, Difference, Reason, ReasonCode, SeriesChange, Verdict
from hockney.cli import check, execute
from hockney.cli.junit import junit_error, reported, write_junit
from hockney.cli.verdicts import report_of
from hockney.errors import Fix
from hockney.render.markdown import markdown
from hockney.results.store import Store
from hockney.stats.shift import Shift

FEW = {"base": 6, "new": 2, "needed": 3, "runs": (3, 7)}

OTHER_STATES = Reason(ReasonCode.NO_COMMON_STATE, {"base": ["near"], "new": ["far", "far, contended"], "runs": (3, 7)})


def series(number: int, high: float, verdict: Verdict = Verdict.SAME, *reasons: Reason, **point: Any) -> SeriesChange:
    """One size of a curve, from 1 KiB on, with an interval up to a ratio."""
    ratio = 1.2 if verdict is Verdict.SLOWER else 1.0
    shift = Shift(ratio, ratio - 0.1, high, 0.95, 6, 6)
    where = make_point(point.pop("size_bytes", 1024 << number), "tcp", **point)
    return SeriesChange(where, verdict, reasons, ("near", "near"), shift, 0.5, 1000.0, 1200.0, launches=(6, 2))


def checked(*changes: SeriesChange, **more: Any) -> Comparison:
    infos = (make_info(), make_info(command="hockney check --baseline 3"))
    differences = more.pop("differences", ())
    again = Fix("Check again for longer", ("hockney", "check", "--baseline", "3", "--patience", "240s"))
    return Comparison(3, 7, (6, 6), 1.05, differences, changes, infos=infos, again=again, **more)


def fine(*highs: float) -> Comparison:
    return checked(*(series(number, high) for number, high in enumerate(highs)))


SCREENS = {
    "fine": fine(1.2, 1.202, 1.04),
    "within the limit": fine(1.02, 1.05),
    "nothing decided": checked(series(0, 1.2, Verdict.INCONCLUSIVE, Reason(ReasonCode.FEW_LAUNCHES, FEW))),
    "no common state": checked(
        *(series(number, 1.0, Verdict.INCONCLUSIVE, OTHER_STATES) for number in (0, 2, 4)),
        series(
            0,
            1.0,
            Verdict.INCONCLUSIVE,
            replace(OTHER_STATES, facts={**OTHER_STATES.facts, "base": ["far"], "new": ["near"]}),
            pattern="ring",
        ),
        series(1, 1.02),
    ),
    "one reason for several": checked(
        *(
            series(n, 1.3 + n, Verdict.INCONCLUSIVE, Reason(ReasonCode.NOT_SIGNIFICANT), pattern=p)
            for n, p in enumerate(("ring", "oneway"))
        ),
    ),
    "everything": checked(
        *(series(number, 1.3, Verdict.SLOWER) for number in range(2)),
        series(2, 1.3, Verdict.INCONCLUSIVE, Reason(ReasonCode.DRIFT, {"by": 0.041, "shown_by": "floor"})),
        series(3, 1.3, Verdict.INCONCLUSIVE, Reason(ReasonCode.FAILED, {"run": 7, "message": "rank 1 hung"})),
        series(4, 1.3, Verdict.INCONCLUSIVE, Reason(ReasonCode.NOT_SIGNIFICANT)),
        series(5, 1.3, Verdict.INCONCLUSIVE, Reason(ReasonCode.MAY_BE_CHANCE, {"among": 8})),
        series(6, 1.02),
        series(0, 1.202, pattern="barrier", size_bytes=0),
        only_base=(make_point(8, "shm", options=(("window", "4"),)),),
        differences=(Difference("host", "there", "here"), Difference("CPU", "Xeon", "EPYC")),
    ),
}


@pytest.mark.parametrize("name", SCREENS)
def test_screen(name: str, snapshot: SnapshotAssertion) -> None:
    lines = report_of(SCREENS[name]).lines
    assert "\n".join(lines) == snapshot
    others = [same for same in SCREENS[name].ranges if same.verdict is not Verdict.SAME]
    assert len(lines) <= len(others) + 5


def test_the_markdown_is_a_table_of_the_worst_series_and_the_summary() -> None:
    one, two = (series(0, 1.3, Verdict.SLOWER, pattern=name) for name in ("one", "two"))
    slower = one, replace(two, shift=Shift(2.0, 1.9, 2.1, 0.95, 6, 6))
    few = series(0, 1.3, Verdict.INCONCLUSIVE, Reason(ReasonCode.FEW_LAUNCHES, FEW), pattern="three")
    text = markdown(report_of(checked(*(series(0, 1.02, pattern=f"fine{n}") for n in range(30)), few, *slower)).blocks)
    _, _, *rows = (line for line in text.splitlines() if line.startswith("|"))
    assert [row.split()[1] for row in rows[:4]] == ["two", "one", "three", "fine0"]
    assert len(rows) == 20
    assert "\n13 more.\n" in text
    assert text.splitlines()[-1].startswith("2 slower, 30 ok, 1 inconclusive: run 7 against run 3")


@pytest.mark.parametrize(
    ("check", "code"),
    [
        (fine(1.3), 0),
        (SCREENS["everything"], 1),
        (SCREENS["nothing decided"], 3),
        (checked(series(0, 1.02), only_base=(make_point(8),)), 3),
        (checked(series(0, 1.02), differences=(Difference("CPU", "Xeon", "EPYC"),)), 3),
        (checked(series(0, 1.02), differences=(Difference("host", "there", "here"),)), 0),  # as in CI
        (checked(series(0, 0.8, Verdict.FASTER)), 0),
        (checked(series(0, 1.3, Verdict.SLOWER), differences=(Difference("CPU", "Xeon", "EPYC"),)), 1),
        (checked(series(0, 1.3, Verdict.SLOWER), only_base=(make_point(8),)), 1),
    ],
)
def test_exit_code(check: Comparison, code: int) -> None:
    assert report_of(check).code == code


VARIABLE = Difference("variable OMPI_MCA_btl", "not set", "tcp,self")
HOST = Difference("host", "there", "here")


@pytest.mark.parametrize(
    ("verdict", "differences", "line"),
    [
        (Verdict.SAME, (HOST,), None),
        (Verdict.SAME, (VARIABLE, HOST), "changed: variable OMPI_MCA_btl: not set -> tcp,self; host: there -> here"),
        (Verdict.SLOWER, (VARIABLE,), "changed: variable OMPI_MCA_btl: not set -> tcp,self"),
        (Verdict.SLOWER, (HOST,), "changed: host: there -> here"),
    ],
)
def test_a_changed_variable_is_printed_even_if_nothing_is_slower(
    verdict: Verdict, differences: tuple[Difference, ...], line: str | None
) -> None:
    report = report_of(checked(series(0, 1.02, verdict), differences=differences))
    assert [each for each in report.lines if each.startswith("changed: ")] == ([line] if line else [])
    assert report.document["differences"] == differences


def test_a_state_that_the_runs_name_differently_has_both_names_in_the_report() -> None:
    change = replace(series(0, 1.3, Verdict.SLOWER), states=("near", "far"))
    report = report_of(checked(change))
    assert report.lines[0].endswith(", near in run 3 and far in run 7")
    assert report.cases[0].figures["state"] == "near in run 3 and far in run 7"
    assert report.document["series"][0]["states"] == report.document["ranges"][0]["states"] == ["near", "far"]


def test_the_last_line_counts_what_is_slower_fine_and_inconclusive() -> None:
    verdicts = [Verdict.SLOWER] + 2 * [Verdict.FASTER] + 3 * [Verdict.SAME] + 4 * [Verdict.INCONCLUSIVE]
    made = checked(*(series(number, 1.0, verdict) for number, verdict in enumerate(verdicts)))
    assert report_of(made).lines[-1] == "1 slower, 5 ok, 4 inconclusive: run 7 against run 3, limit +5 %"
    again = replace(made, judged_again=2, only_base=(make_point(8, "shm"),), margin=1.125)
    summary = "1 slower, 5 ok, 5 inconclusive, 2 judged again: run 7 against run 3, limit +12.5 %"
    assert report_of(again).lines[-1] == summary
    assert report_of(again).document["judged_again"] == 2


def test_the_report_counts_its_cases_by_kind(tmp_path: Path) -> None:
    """Series of the baseline alone, and a baseline from a different CPU, are skipped tests."""
    verdicts = [Verdict.SLOWER, Verdict.FASTER, Verdict.SAME, Verdict.INCONCLUSIVE]
    report = report_of(
        checked(
            *(series(number, 1.0, verdict) for number, verdict in enumerate(verdicts)),
            only_base=(make_point(8, "shm"),),
            differences=(Difference("CPU", "Xeon", "EPYC"),),
        )
    )
    write_junit(tmp_path / "j.xml", report.title, report.cases)
    suite = ET.parse(tmp_path / "j.xml").getroot()
    counts = [suite.get(name) for name in ("tests", "failures", "skipped", "errors")]
    assert counts == ["6", "1", "3", "0"]
    kinds = [[each.tag for each in case] for case in suite]
    passed = ["properties", "system-out"]
    assert kinds == [["properties", "failure"], passed, passed, ["properties", "skipped"], ["skipped"], ["skipped"]]
    assert [(case.get("classname"), case.get("name")) for case in suite][-1] == ("baseline", "CPU")


def test_the_report_has_figures_and_times(tmp_path: Path) -> None:
    report = report_of(fine(1.02), {make_point(1024, "tcp"): 0.25})
    write_junit(tmp_path / "j.xml", report.title, report.cases)
    suite = ET.parse(tmp_path / "j.xml").getroot()
    (case,) = suite
    assert (suite.get("time"), case.get("time")) == ("0.250000", "0.250000")
    figures = {each.get("name"): each.get("value") for each in case.iter("property")}
    names = {"base_ns": "1000", "new_ns": "1200", "ratio": "1", "low": "0.9", "high": "1.02", "state": "near"}
    assert figures == names
    (text,) = case.iter("system-out")
    assert (text.text or "").startswith("no difference seen: pingpong on tcp, 1 KiB: ")


def test_the_largest_slowdown_that_may_hide_is_in_the_document() -> None:
    assert report_of(fine(1.02, 1.05)).document["may_hide"] is None
    hidden = report_of(fine(1.2, 1.202)).document["may_hide"]
    assert (hidden["ratio"], hidden["point"].bytes) == (1.202, 2048)


def test_the_names_of_tests_do_not_depend_on_verdicts(tmp_path: Path) -> None:
    well = fine(1.02, 1.03, 1.04)
    slow = tuple(replace(change, verdict=Verdict.SLOWER) for change in well.changes[1:])
    worse = replace(
        well,
        changes=(well.changes[0], *slow),
        only_base=(make_point(8, "shm", options=(("window", "4"),)),),
    )
    names = []
    for made in (well, worse):
        report = report_of(made)
        write_junit(tmp_path / "j.xml", report.title, report.cases)
        suite = ET.parse(tmp_path / "j.xml").getroot()
        names.append([(case.get("classname"), case.get("name")) for case in suite.iter("testcase")])
        assert datetime.fromisoformat(suite.get("timestamp") or "").tzinfo is not None
    assert names[0] == [("pingpong on tcp", f"2 ranks, {size} KiB") for size in (1, 2, 4)]
    assert names[1] == [*names[0], ("pingpong on shm", "2 ranks, window=4, 8 B")]
    failures = list(suite.iter("failure"))
    for failure, size in zip(failures, (2, 4), strict=True):
        assert (failure.get("message") or "").startswith(f"slower: pingpong on tcp, {size} KiB: ")


# ---- the command ----------------------------------------------------------------------------------------------------


def test_command_on_an_unchanged_machine(tmp_path: Path) -> None:
    """No load makes anything here a thousand times slower."""
    options = ("--bytes", "8,64", "--time", "300ms", "--launches", "5", "--label", "base")
    measured = call_here(tmp_path, "run", "pingpong", "-t", "shm", *options)
    assert measured.returncode in (0, 3), measured.stderr  # 3: no interval in so little time
    again = ("--max-slowdown", "100000%", "--patience", "1s", "--junit", "j.xml", "--json")
    done = call_here(tmp_path, "check", "--baseline", "base", *again)
    assert done.stderr.count("ranks on CPUs") == 1  # once for all launches
    assert done.stderr.count("until each series has a verdict or for ") == 1
    document = json.loads(done.stdout)
    assert document["format"] == "hockney-check"
    assert document["exit_code"] == done.returncode
    assert done.returncode == (3 if "inconclusive" in document["counts"] else 0)
    suite = ET.parse(tmp_path / "j.xml").getroot()
    assert suite.get("failures") == "0"
    assert int(suite.get("tests") or 0) == len(list(suite.iter("testcase"))) == len(document["series"])


def test_command_prints_failures_of_the_baseline(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        add_run(opened, curve("shm", (8,)), failed={make_point(64): "rank 1\x07 hung"})
        set_columns(opened.db, "run", "plan = ?", json.dumps(delayed.plan("shm", time_s=0.3).as_json()))
    arguments = ("--baseline", "last", "--max-slowdown", "1000000%", "--patience", "1s", "--junit", "j.xml")
    done = call_here(tmp_path, "check", *arguments)
    assert done.returncode == 3, done.stderr
    assert "inconclusive: pingpong on shm, 64 B: failed in run 1: rank 1" in done.stdout
    messages = [one.get("message") or "" for one in ET.parse(tmp_path / "j.xml").getroot().iter("skipped")]
    assert any("rank 1\\x07 hung" in message for message in messages)


def test_command_refuses_an_unusable_baseline_in_a_sentence(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        add_run(opened, curve(sizes=(8,)), launches=1, label="single")
        add_run(opened, {}, failed={make_point(8): "rank 1 hung"}, label="failed")
        add_run(opened, curve(sizes=(8,)), label="old")  # its plan has only a precision
    for label, said in (
        ("single", "with 6 launches: `hockney run quick --launches 6 --label single`"),
        ("failed", "run 2 can't be a baseline: none of its points has samples"),
        ("old", "run 3 was stored by another version of hockney: begin a new one"),
        ("odl", "unknown run 'odl': did you mean 'old'?"),
    ):
        done = call_here(tmp_path, "check", "--baseline", label)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("content", [None, b"", b"no database", b"SQLite format 3\0" + bytes(5000)])
def test_command_without_a_usable_results_file_has_measured_nothing(tmp_path: Path, content: bytes | None) -> None:
    """To a script, exit code 3 would mean noise."""
    if content is not None:
        (tmp_path / "results.db").write_bytes(content)
    done = call_here(tmp_path, "check", "--baseline", "base")
    assert done.returncode == 2, done.stderr
    assert "results.db" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--baseline", "nope"], "unknown run 'nope'"), (["--baseline", "a", "--expect", "b"], "give one of them")],
)
def test_command_leaves_no_report_of_an_earlier_check(tmp_path: Path, arguments: list[str], said: str) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        add_run(opened, curve(sizes=(8,)), label="base")
    (tmp_path / "j.xml").write_text('<testsuite tests="1" errors="0"><testcase name="green"/></testsuite>')
    (tmp_path / "m.md").write_text("2 ok: run 7 against run 3")
    assert call_here(tmp_path, "check", *arguments, "--junit", "j.xml", "--markdown", "m.md").returncode == 2
    assert (tmp_path / "m.md").read_text().startswith("hockney check: ")
    assert said in (tmp_path / "m.md").read_text()
    suite = ET.parse(tmp_path / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
    (error,) = suite.iter("error")
    assert said in (error.get("message") or "")


@pytest.mark.parametrize(
    "name", ["expect.toml", "sub/../expect.toml", "results.db", "other.db", "linked.db", "none.db"]
)
def test_command_does_not_overwrite_its_inputs_with_the_report(tmp_path: Path, name: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "linked.db").symlink_to("results.db")
    files = [tmp_path / file for file in ("expect.toml", "results.db", "other.db")]
    for file in files:
        file.write_text("is kept")
    named = ["--store", name] if name in ("other.db", "none.db") else []
    done = call_here(tmp_path, "check", "--expect", "expect.toml", "--junit", name, *named)
    assert done.returncode == 2
    assert f"--junit would write over {name}, " in done.stderr
    assert [file.read_text() for file in files] == ["is kept"] * 3
    assert not (tmp_path / "none.db").exists()


def test_the_report_of_a_killed_check_says_so(tmp_path: Path) -> None:
    def message() -> str:
        (error,) = ET.parse(tmp_path / "j.xml").getroot().iter("error")
        return error.get("message") or ""

    with reported("--junit", tmp_path / "j.xml", junit_error):
        assert "has not finished" in message()
    with contextlib.suppress(KeyboardInterrupt), reported("--junit", tmp_path / "j.xml", junit_error):
        raise KeyboardInterrupt
    assert "the check failed" in message()


def test_both_reports_are_written_and_not_to_one_file(folder: Path) -> None:
    arguments = ("check", "--expect", "kept.toml", "last", "--junit", "j.xml", "--markdown")
    done = call_here(folder, *arguments, "./j.xml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--markdown would write over j.xml, " in done.stderr
    assert ET.parse(folder / "j.xml").getroot().get("errors") == "1"
    assert call_here(folder, *arguments, "m.md").returncode == 0
    assert ET.parse(folder / "j.xml").getroot().get("errors") == "0"
    assert (folder / "m.md").read_text().startswith("0 missed, 1 met")
    assert "not finished" not in call_here(folder, *arguments, "/dev/stdout").stdout


# ---- a JUnit file that cannot be written: refused before measuring, or after the verdict is printed ------------------

LIMIT = '[[expect]]\ntransports = "shm"\npattern = "pingpong"\nbytes = 8\nlatency = "<= {}"\n'

needs_full = pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this system has no /dev/full")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a run that takes 1 us, and limits that it meets and misses."""
    with Store.open(tmp_path / "results.db") as opened:
        add_run(opened, curve())
    for name, limit in (("kept", "1 s"), ("missed", "1 ns")):
        (tmp_path / f"{name}.toml").write_text(LIMIT.format(limit))
    return tmp_path


@pytest.mark.parametrize(
    "arguments", [("--expect", "kept.toml"), ("--expect", "kept.toml", "last"), ("--baseline", "last")]
)
@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("/dev/full", "write the output: no space left on device", marks=needs_full),
        ("/proc/none.xml", "use /proc/none.xml: (no such file or directory|permission denied)"),
    ],
)
def test_command_refuses_a_report_that_cannot_be_written_before_it_measures(
    folder: Path, arguments: tuple[str, ...], name: str, said: str
) -> None:
    done = call_here(folder, "check", *arguments, "--junit", name)
    assert (done.returncode, done.stdout) == (3, "")
    assert re.fullmatch(f"hockney: cannot {said}\n", done.stderr)
    with Store.open(folder / "results.db", readonly=True) as opened:
        assert len(opened.runs()) == 1


@pytest.mark.parametrize("is_json", [False, True])
def test_command_prints_its_verdict_before_the_report_fails(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, is_json: bool
) -> None:
    """The disk is full once the check has begun."""

    def no_space(path: Path, *_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(check, "write_junit", no_space)
    monkeypatch.chdir(folder)
    arguments = ["check", "--expect", "missed.toml", "last", "--junit", "j.xml", "--store", "results.db"]
    assert execute([*arguments, *(["--json"] if is_json else [])]) == 3
    printed = capsys.readouterr()
    if is_json:
        assert json.loads(printed.out)["exit_code"] == 1  # one document
    else:
        assert printed.out.splitlines()[-1].startswith("1 missed, 0 met")
    assert printed.err == "hockney: cannot use j.xml: no space left on device\n"


def test_a_wrong_file_of_limits_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text('[[expect]]\npattern = "pingpong"\ntransports = "shm"\nlatency = "2 us"\n')
    nothing = {"PATH": str(tmp_path), "CC": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    for words in ((), ("last",), ("--dry-run",)):
        ended = call_here(tmp_path, "check", "--expect", "e.toml", *words, **nothing)
        assert ended.returncode == 2
        assert "'2 us' is not a limit that begins with <=" in ended.stderr
    assert not (tmp_path / "cache").exists()


def test_a_dry_run_shows_what_would_be_measured(tmp_path: Path) -> None:
    what = ("run", "pingpong", "-t", "shm", "--bytes", "8,64", "--launches", "3", "--time", "1s", "--label", "base")
    assert call_here(tmp_path, *what).returncode in (0, 3)  # as precise as the machine lets it be
    words = ("check", "--baseline", "base", "--dry-run")
    ended = call_here(tmp_path, *words, "--time", "7s")
    assert ended.returncode == 0, ended.stderr
    assert "pingpong, 2 ranks" in ended.stdout
    said = "Ends when each series has a verdict, after about 7 s at the latest: 6 launches or more"
    assert said in " ".join(ended.stdout.split())
    shown = json.loads(call_here(tmp_path, *words, "--json").stdout)
    assert [(point["transport"], point["bytes"]) for point in shown["points"]] == [("shm", 8), ("shm", 64)]
    (tmp_path / "e.toml").write_text('[[expect]]\npattern = "pingpong"\ntransports = "shm"\nlatency = "<= 2 us"\n')
    ended = call_here(tmp_path, "check", "--expect", "e.toml", "--dry-run")
    assert "expect: 1 point on 1 transport" in ended.stdout
    assert call_here(tmp_path, *words, "--junit", "j.xml").returncode == 2
    with Store.open(tmp_path / "results.db", readonly=True) as store:
        assert len(store.runs()) == 1
