"""`hockney explain` as it is called: on a real short run, on the archive, and where there is nothing to explain."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hockney.analysis.explain.summary import gather
from tests.cli.support import Cli

from hockney.analysis.estimates import Evidence
from hockney.analysis.explain import DETECTORS, GOT_BY, Explanation, Finding, Lacking, Line, _with_command
from hockney.analysis.explain.fits import LOGGP
from hockney.archive import machines
from hockney.cli import explain as cli_explain
from hockney.cli import run
from hockney.stats.fit import Estimate
from hockney.suites import builtin_names
from hockney.worker.mpi import find_mpis


@pytest.fixture(scope="module")
def real_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short real run over shared memory, TCP and every MPI that is here; of few sizes, so each has its interval."""
    path = tmp_path_factory.mktemp("explain") / "results.db"
    arguments = ["run", "pingpong", "-t", "shm,tcp,mpi", "--bytes", "0,8,64,1K,4K,8K,64K", "--time", "15s"]
    assert run([*arguments, "--oversubscribe", "--store", str(path)]) == 0
    return path


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["explain", *arguments, "--json"]) == 0
    read: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert read["format"] == "hockney-explain"
    return read


def test_a_real_run_is_explained(real_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    told = document(capsys, "last", "--store", str(real_store))
    assert told["subject"] == "run 1"
    assert "the duplex ratio" in {one["what"] for one in told["lacking"]}
    # A half round trip over so many sizes has a line, or a moody machine leaves it without one and that is said.
    if not any("More ranks than CPUs" in note for note in told["notes"]):
        without = " ".join(one["what"] for one in told["lacking"] if one["what"].startswith("lines through"))
        for transport in ("shm", "tcp"):
            assert any(line["transport"] == transport for line in told["lines"]) or f"on {transport}" in without
    for line in told["lines"]:
        assert line["pattern"] == "pingpong"
        assert line["t0_ns"]["low"] <= line["t0_ns"]["value"] <= line["t0_ns"]["high"]
    measured = ("shm", "tcp", "mpi@")
    for finding in told["findings"]:
        # What is alike on most transports is of none.
        of_several = (finding["kind"], finding["transport"]) == ("outliers", "")
        assert of_several or finding["transport"].startswith(measured)
        assert finding["sentence"].endswith((".", "?"))
        for one in finding["evidence"]:
            assert one["value"]["low"] <= one["value"]["value"] <= one["value"]["high"]


def test_what_is_printed_says_the_same(real_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, "last", "--store", str(real_store))
    assert run(["explain", "last", "--all", "--store", str(real_store)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"run 1: {len(told['findings']) or 'no'} finding")
    for line in told["lines"]:
        assert f"\n{line['pattern']} on {line['transport']}" in printed
    unfolded = " ".join(printed.split())
    for finding in told["findings"]:
        assert finding["sentence"] in unfolded


def test_the_documented_threshold_of_a_real_library_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Open MPI announces messages of more than 4,040 B: they take several times as long. A busy machine needs time."""
    if not any(mpi.kind == "openmpi" for mpi in find_mpis()):
        pytest.skip("Open MPI is not installed")
    path = str(tmp_path / "r.db")
    what = ["pingpong", "-t", "mpi@openmpi", "--bytes", "1K,1536,2K,3K,4K,6K,8K,12K,16K", "--launches", "1"]
    for time in ("3s", "9s", "27s", "60s"):
        assert run(["run", *what, "--time", time, "--store", path]) == 0
        capsys.readouterr()
        told = document(capsys, "last", "--store", path)["findings"]
        there = [one for one in told if one["kind"] == "protocol switch" and one["sizes_bytes"] == [3072, 4096]]
        if there:
            break
    (switch,) = there
    assert switch["transport"].startswith("mpi@openmpi")
    assert re.search(r"Documented there: btl_(vader|sm)_eager_limit, 4 KiB by default", switch["sentence"])


def test_a_fall_is_not_gathered_with_a_jump_and_states_are_gathered() -> None:
    def switch(transport: str, state: str, jump_ns: float, effect: float) -> Finding:
        jump = Evidence("jump", Estimate(jump_ns, jump_ns - 1, jump_ns + 1), "ns")
        return Finding("protocol switch", transport, "", effect, state=state, evidence=(jump,))

    gathered = gather(
        [
            switch("tcp", "near", 400.0, 0.5),
            switch("unix", "near", -300.0, 0.4),
            switch("tcp", "far", 500.0, 0.3),
            switch("shm", "near", 50.0, 0.2),
        ]
    )
    assert [(one.strongest.transport, one.also) for one in gathered] == [
        ("tcp", "Also on tcp (far), shm."),
        ("unix", ""),
    ]


def test_what_is_of_several_transports_together_is_gathered_with_nothing() -> None:
    of = (("", "near"), ("tcp", "near"), ("", "far"), ("", "far"), ("unix", "near"))
    gathered = gather(Finding("outliers", transport, "", 0.1, state=state) for transport, state in of)
    assert sorted((one.strongest.transport, one.also) for one in gathered) == [
        ("", ""),
        ("", ""),
        ("", ""),
        ("tcp", "Also on unix."),
    ]


def test_the_strongest_are_told_once_for_all_their_transports(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What shows a few times on one transport is not gathered; what is left over is counted."""

    def made(kind: str, transport: str, effect: float, *sizes_bytes: int) -> Finding:
        return Finding(kind, transport, f"{kind} of {effect} there.", effect, state="near", sizes_bytes=sizes_bytes)

    findings = (
        made("outliers", "tcp", 0.1),
        made("switch", "tcp", 0.5, 8, 64),
        made("switch", "tcp", 0.3, 1024, 4096),
        replace(made("switch", "unix", 2.0, 64), remedy="Mend it."),
        *(made(kind, "shm", 1.0) for kind in ("one", "two", "three")),
        made("last", "", 0.05),
    )
    explained = Explanation("run 3", findings, (), (), (), (), ())
    monkeypatch.setattr(cli_explain, "_of_run", lambda *_: explained)
    assert run(["explain"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert lines == [
        "run 3: 8 findings",
        "The strongest findings",
        "  switch on unix (near): switch of 2.0 there.",
        "  Also on tcp (at 8 B and 64 B).",
        "  Mend it.",
        "  one on shm (near): one of 1.0 there.",
        "  two on shm (near): two of 1.0 there.",
        "  three on shm (near): three of 1.0 there.",
        "  switch on tcp (near): switch of 0.3 there.",
        "  2 more: `--all` tells every one, by transport and with its sources.",
    ]
    assert run(["explain", "--all"]) == 0
    everything = capsys.readouterr().out
    assert all(finding.sentence in everything for finding in findings)
    assert "--all" not in everything
    assert len(document(capsys)["findings"]) == len(findings)


def test_each_part_of_a_table_of_lines_says_of_which_sizes_and_state_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = Estimate(1000.0, 990.0, 1010.0)
    lines = tuple(
        Line("mpi@openmpi-4.1.4", "pingpong", 2, "one package", state, 0, size, 4, known, known, known, 0.01)
        for state in ("near", "far")
        for size in (1024, 4096)
    )
    explained = Explanation("run 3", (), lines, (), (), (), ())
    monkeypatch.setattr(cli_explain, "_of_run", lambda *_: explained)
    monkeypatch.setenv("COLUMNS", "60")
    assert run(["explain"]) == 0
    rows = re.findall(r"0 B - (\d) KiB +(\w+)", capsys.readouterr().out)
    parts, left_over = divmod(len(rows), len(lines))
    assert (parts > 1, left_over) == (True, 0)
    assert rows == [("1", "near"), ("4", "near"), ("1", "far"), ("4", "far")] * parts


@pytest.mark.parametrize(
    ("machine", "kind", "detector"),
    [
        ("t3d", "protocol switch", "protocol switches"),
    ],
)
def test_what_was_found_is_not_said_to_lack(
    machine: str, kind: str, detector: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = document(capsys, "--machine", machine)
    assert kind in {finding["kind"] for finding in told["findings"]}
    assert detector not in {one["what"] for one in told["lacking"]}


def test_what_lacks_is_named_and_explained_where_that_is_asked_for(
    real_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else it is counted, with the runs that have some of it."""
    lacking = document(capsys, "last", "--store", str(real_store))["lacking"]
    for option in ((), ("--lacking",), ("--all",)):
        assert run(["explain", "last", "--store", str(real_store), *option]) == 0
        unfolded = " ".join(capsys.readouterr().out.split())
        for one in lacking:
            got_by = one["got_by"] and f" ({one['got_by']})"
            assert (f"{one['what']}: {one['reason']}{got_by}" in unfolded) is bool(option)
        counted = f"{len(lacking)} things in all: `--lacking` says which"
        assert (counted in unfolded) is (not option)


@pytest.mark.parametrize(
    ("suite", "told"),
    [
        ("pingpong", ["For the duplex ratio: `hockney run quick`.", "`hockney run allpairs` on three CPUs or more."]),
        ("quick", ["`hockney run allpairs` on three CPUs or more."]),
        ("allpairs", ["For the duplex ratio: `hockney run quick`."]),
    ],
)
def test_what_another_run_has_is_said(
    suite: str, told: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not where it lacks for another reason, nor that the same run once more had it."""
    lacking = (
        Lacking("a reason of another kind", what="protocol switches"),
        Lacking("needs twoway", what="the duplex ratio"),
        Lacking("needs all pairs", what="pairs that stand out"),
        Lacking("needs an all-to-all", what="the share of the own block"),
    )
    told_of = tuple(_with_command(one, suite) for one in lacking)
    monkeypatch.setattr(cli_explain, "_of_run", lambda *_: Explanation("run 3", (), (), (), (), told_of, ()))
    assert run(["explain"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("`hockney run ") == len(told)
    assert all(line in printed for line in told)
    assert "own block" not in printed
    assert "4 things in all" in printed


def test_a_run_without_prtt_lacks_loggp_and_says_how_to_get_it(
    real_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", "last", "--store", str(real_store)]) == 0
    unfolded = " ".join(capsys.readouterr().out.split())
    assert "For LogGP: `hockney run loggp" in unfolded
    assert "LogGP by segment" not in unfolded
    assert run(["explain", "last", "--lacking", "--store", str(real_store)]) == 0
    unfolded = " ".join(capsys.readouterr().out.split())
    assert "LogGP: needs the pattern prtt, with delays and without (`hockney run loggp" in unfolded


def test_runs_that_have_what_lacks_are_named_as_they_are_called() -> None:
    assert set(GOT_BY) <= {*DETECTORS, LOGGP}
    assert {suite for suite, _ in GOT_BY.values()} <= set(builtin_names())


@pytest.mark.parametrize("machine", machines())
def test_every_machine_of_the_archive_can_be_explained(machine: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "--machine", machine]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{machine}: ")
    assert "()" not in printed, "what a report does not tell, as a state, takes no room"


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["last", "--machine", "t3d"], "a machine of the archive (--machine NAME): give one of them, not both", 2),
        (["--machine", "gpmim"], "did you mean 'gpmimd'?", 2),
        (["1"], "run 1 (base) has no figures", 3),
        (["7"], "there is no run 7", 2),
        (["t3d"], "no run is called 't3d', but a machine of the archive is: `hockney explain --machine t3d", 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_nothing_to_explain_is_one_sentence(
    arguments: list[str], words: str, code: int, filled_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", *arguments, "--store", str(filled_store)]) == code
    output = capsys.readouterr()
    assert output.out == ""
    assert words in output.err
    assert output.err.count("\n") == 1


def test_a_run_with_failed_and_skipped_points_is_explained(
    filled_store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = document(capsys, "2", "--store", str(filled_store))
    assert any("rank 1 was killed by SIGKILL" in note for note in told["notes"])


def test_machines_are_completed(cli: Cli) -> None:
    done = cli(_HOCKNEY_COMPLETE="bash_complete", COMP_WORDS="hockney explain --machine g", COMP_CWORD="3")
    assert "gpmimd" in done.stdout
