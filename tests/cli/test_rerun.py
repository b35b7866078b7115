"""A command that continues or repeats a run can be typed as it stands."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from tests.builders import make_info
from tests.cli.support import Cli

from hockney.analysis.repeat import EARLY, INTERLEAVED, alternate, more_launches, more_pairs, new_baseline, resume
from hockney.cli import execute
from hockney.cli.commands import hockney
from hockney.errors import Fix
from hockney.report.commands import command_line, fix_text, named_store, typed

COMMAND = re.compile("`hockney ([^`]*)`")


def repeated(command: str, launches: int = 10, plan: Mapping[str, Any] | None = None, **more: Any) -> Fix:
    info = replace(make_info(more.pop("label", None)), command=command, plan=dict(plan or {}), **more)
    return more_launches(1, info, launches)


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("hockney run pingpong -t 'mpi@a b' --launches 5 --time 2m --label x --store r.db", "pingpong -t 'mpi@a b'"),
        ("hockney quick --time=2m -l x", "quick"),
        ("hockney --store r.db run pingpong -t shm", "pingpong -t shm"),
        ("hockney --json quick", "quick"),
    ],
)
def test_the_command_of_a_run_takes_more_launches(command: str, kept: str) -> None:
    fix = repeated(command, plan={"time_s": 120.0, "launches": 5}, label="now")
    assert command_line(fix) == f"hockney run {kept} --launches 10 --time 240s --label now"
    _, name, *arguments = fix.argv
    of_group = hockney.get_command(click.Context(hockney), name)
    assert of_group is not None
    assert of_group.make_context(name, arguments).params["launches"] == 10


def test_commands_are_printed_as_the_launcher_of_a_checkout_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = tmp_path / "hockney"
    launcher.touch(mode=0o755)
    monkeypatch.setenv("HOCKNEY_COMMAND", str(launcher))
    monkeypatch.setenv("PATH", "/nowhere")
    assert typed("show", 1) == f"`{launcher} show 1`"
    assert fix_text(Fix("Show run 1", ("hockney", "show", "1"))) == f"Show run 1: `{launcher} show 1`"
    monkeypatch.setenv("PATH", str(tmp_path))  # where it is found by its name
    assert typed("show", 1) == "`hockney show 1`"


@pytest.mark.parametrize("command", ["hockney check --baseline x", "", "Bob's run"])
def test_runs_that_no_command_line_repeats_are_named(command: str) -> None:
    assert repeated(command) == Fix("more launches", facts={"run": 1, "launches": 10})
    assert fix_text(repeated(command)) == "Measure run 1 again with 10 launches"


def test_a_check_is_repeated_by_its_own_command_or_by_that_of_its_baseline() -> None:
    expecting = repeated("hockney check --expect e.toml --store r.db")
    assert fix_text(expecting) == (
        "Set `launches = 10` in the expectations file and check again: `hockney check --expect e.toml`"
    )
    check = make_info(command="hockney check --baseline last", plan={"launches": 6})
    baseline = make_info(command="hockney run pingpong -t shm --launches 5 --label before")
    assert command_line(more_launches(7, check, 10, baseline)) == "hockney run pingpong -t shm --launches 10"
    assert more_launches(7, check, 10, replace(baseline, suite="other")).argv == ()


@pytest.mark.parametrize(
    ("command", "settings", "argv"),
    [
        (
            "hockney run ring -t mpi --refine -q --launches 6 --csv x.csv",
            ({"A": "1", "B": "2", "D": "4"}, {"B": "3", "C": "a b", "D": "4"}),
            "ring -t mpi --launches 6 --base-env A=1 --base-env B=2 --new-env B=3 --new-env 'C=a b'",
        ),
        ("hockney quick --label x", ({}, {"A": "1"}), "quick --label x --new-env A=1"),
        ("hockney quick", ({"A": "1"}, {"A": "1"}), None),
        ("hockney check --baseline x", ({}, {"A": "1"}), None),
    ],
)
def test_runs_that_variables_distinguish_can_be_measured_in_alternation(
    command: str, settings: tuple[dict[str, str], dict[str, str]], argv: str | None
) -> None:
    fix = alternate(*(make_info(command=command, facts={"environment": each}) for each in settings))
    assert (None if fix is None else shlex.join(fix.argv)) == (argv and f"hockney compare --interleave {argv}")
    if fix is not None:
        compare = hockney.get_command(click.Context(hockney), "compare")
        assert compare is not None
        assert compare.make_context("compare", list(fix.argv[2:])).params["interleave"]


@pytest.mark.parametrize(
    ("command", "plan", "words"),
    [
        ("hockney compare a b --time 1m --launches 4", {"time_s": 60.0, "launches": 4}, "--launches 10 --time 150s"),
        ("hockney compare a b", {"launches": 4}, "--launches 10"),
        ("hockney compare a b", {"time_s": 60.0, "launches": 7, INTERLEAVED: {EARLY: True}}, "--time 120s"),
        ("hockney run a b", {"time_s": 60.0, "launches": 4}, None),
        ("hockney 'compare a b", {}, None),
    ],
)
def test_more_launch_pairs_take_proportionally_more_time(command: str, plan: dict[str, Any], words: str | None) -> None:
    fix = more_pairs(make_info(command=command, plan=plan), 10)
    assert " ".join(fix.argv) == ("" if words is None else f"hockney compare a b {words}")


def test_a_new_baseline_takes_the_name_of_the_old_one() -> None:
    """A label names the newest run that has it."""
    fix = new_baseline(1, make_info(command="hockney run ring --label x --csv f --launches 6"))
    assert fix.argv == ("hockney", "run", "ring", "--label", "x", "--launches", "6")


@pytest.mark.parametrize(("hosts", "folded"), [("n1,n2,n3,n4", "n[1-4]"), ("n1,n2:2", "n1,n2:2"), ("[", "[")])
def test_hosts_of_a_repeated_command_are_folded(hosts: str, folded: str) -> None:
    assert repeated(f"hockney run ring --hosts {hosts} -n 4", 2).argv[3:7] == ("--hosts", folded, "-n", "4")


@pytest.mark.parametrize("name", ["--json", "--"])
def test_a_label_that_begins_like_an_option_is_one_word(name: str) -> None:
    fix = repeated(f"hockney run pingpong --label {name} -t shm", 2)
    assert command_line(fix) == "hockney run pingpong -t shm --launches 2"


def test_an_argument_that_begins_like_an_option_stays_one() -> None:
    assert command_line(repeated("hockney run -t shm -- -odd.toml", 2)) == (
        "hockney run -t shm --launches 2 -- -odd.toml"
    )


def test_a_run_that_has_not_made_its_launches_is_resumed() -> None:
    assert fix_text(repeated("hockney run pingpong", plan={"launches": 10})) == "Continue: `hockney run --resume 1`"


def test_the_variables_of_the_run_come_before_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"environment": {"UCX_RNDV_THRESH": "1024", "UCX_TLS": "self,posix"}}
    monkeypatch.delenv("UCX_RNDV_THRESH", raising=False)
    monkeypatch.setenv("UCX_TLS", "self,posix")
    fix = repeated("hockney run pingpong", 6, facts=facts)
    assert command_line(fix) == "UCX_RNDV_THRESH=1024 hockney run pingpong --launches 6"


def test_one_side_of_an_interleaved_pair_is_not_resumed() -> None:
    command = "hockney compare --interleave pingpong --base-env A=1 --launches 8"
    info = make_info(command=command, plan={"interleaved": {"side": "new"}, "launches": 8})
    assert command_line(resume(3, info)) == command
    assert command_line(more_launches(3, info, 12)) == command


# ---- the results file that --store named ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run --resume", "run --resume --store 'my runs.db'"),
        ("run -t shm -- -odd.toml", "run -t shm --store 'my runs.db' -- -odd.toml"),
        ("compare 1 2 --store other.db", "compare 1 2 --store other.db"),
        ("doctor", "doctor"),
    ],
)
def test_a_command_that_reads_results_names_the_file(words: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert typed(*words.split()) == f"`hockney {words}`"
    reset = named_store.set("my runs.db")
    try:
        assert typed(*words.split()) == f"`hockney {said}`"
        monkeypatch.delenv("UCX_TLS", raising=False)
        fix = Fix("Do", ("hockney", *words.split()), run_facts={"environment": {"UCX_TLS": "a b"}})
        assert command_line(fix) == f"UCX_TLS='a b' hockney {said}"
    finally:
        named_store.reset(reset)


def test_the_ending_of_a_run_names_its_results_file_and_can_be_copied(cli: Cli) -> None:
    point = ("run", "pingpong", "-t", "shm", "--bytes", "8", "--time", "0.2s")
    elsewhere = cli(*point, "--store", "my $runs.db")
    assert elsewhere.returncode in (0, 3)  # 3: no interval in so little time
    commands = COMMAND.findall(elsewhere.stderr)
    assert commands
    assert all(one.endswith(" --store 'my $runs.db'") for one in commands)
    assert cli(*shlex.split(commands[0])).returncode in (0, 3)
    by_default = COMMAND.findall(cli(*point).stderr)
    assert by_default
    assert not any("--store" in one for one in by_default)  # the environment's still holds when it is copied


def test_notes_errors_and_documents_carry_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOCKNEY_STORE", str(tmp_path / "none.db"))
    path = tmp_path / 'the "new".db'
    words = f"`hockney quick --store {shlex.quote(str(path))}`"
    assert execute(["--store", str(path), "show"]) == 2
    assert words in capsys.readouterr().err
    assert execute(["show", "--json", "--store", str(path)]) == 2
    assert words in json.loads(capsys.readouterr().out)["error"]
    assert execute(["--store", str(path)]) == 0
    assert words in capsys.readouterr().out
    assert execute(["--store", str(path), "run"]) == 2
    assert f"`hockney run pingpong --store {shlex.quote(str(path))}`" in capsys.readouterr().err
    assert execute(["show"]) == 2  # the next command line of this process names none
    assert "`hockney quick`" in capsys.readouterr().err


def test_findings_carry_it(filled_store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["explain", "--store", str(filled_store)]) == 0
    option = f"--store {shlex.quote(str(filled_store))}"
    commands = COMMAND.findall(capsys.readouterr().out)
    assert commands
    assert all(option in command for command in commands if not command.startswith(("doctor", "list")))
    assert execute(["explain", "--json", "--store", str(filled_store)]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert notes[0]["fix"]["command"] == f"hockney run --resume 2 {option}"
