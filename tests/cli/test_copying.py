"""Commands in what is printed name the results file that --store named, and no other."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.support import Cli

from hockney.cli import execute
from hockney.cli.copying import commands_in, copyable, named_store

COMMAND = re.compile("`hockney ([^`]*)`")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("`hockney run --resume` goes on", "`hockney run --resume --store 'my runs.db'` goes on"),
        (
            "`hockney show 3`, `hockney explain`",
            "`hockney show 3 --store 'my runs.db'`, `hockney explain --store 'my runs.db'`",
        ),
        (
            "`UCX_TLS='a b' OMPI_MCA_btl=self,tcp taskset -c 0-3 hockney run ring`",
            "`UCX_TLS='a b' OMPI_MCA_btl=self,tcp taskset -c 0-3 hockney run ring --store 'my runs.db'`",
        ),
        ("`env -u A -u B C=1 hockney show`", "`env -u A -u B C=1 hockney show --store 'my runs.db'`"),
        ("`A='it'\"'\"'s' hockney show`", "`A='it'\"'\"'s' hockney show --store 'my runs.db'`"),
        ("`hockney compare 1 2 --store other.db` does", "`hockney compare 1 2 --store other.db` does"),
        ("`hockney doctor`, `--all`, hockney show", "`hockney doctor`, `--all`, hockney show"),
        ("`hockney runsome`", "`hockney runsome`"),
    ],
)
def test_only_commands_that_read_a_results_file_are_given_one_and_only_once(text: str, said: str) -> None:
    assert copyable(text) == text
    reset = named_store.set("my runs.db")
    try:
        assert copyable(text) == said
        assert copyable(said) == said
        assert json.loads(copyable(json.dumps([text], indent=2), in_json=True)) == [said]
    finally:
        named_store.reset(reset)


def test_commands_are_taken_out_of_words_as_they_are_typed() -> None:
    words = "measure run 1 anew: `A='b c' taskset -c 0 hockney run ring`, with `nohz_full`; `hockney doctor` says more"
    assert commands_in(words, None, words) == ["A='b c' taskset -c 0 hockney run ring", "hockney doctor"]
    reset = named_store.set("my runs.db")
    try:
        assert commands_in("`hockney show 3`") == ["hockney show 3 --store 'my runs.db'"]
    finally:
        named_store.reset(reset)


def test_text_that_is_nearly_a_command_is_read_at_once() -> None:
    """Each pair of quotes doubled the time, when a pattern could read them in two ways; 40 of them took for ever."""
    text = "`A=" + r"\"x\"" * 40 + " other`"
    program = "import sys; from hockney.cli.copying import commands_in; print(commands_in(sys.argv[1]))"
    said = subprocess.check_output([sys.executable, "-c", program, text], text=True, timeout=60)
    assert said == "[]\n"


def test_the_ending_of_a_run_names_its_results_file_and_can_be_copied(cli: Cli) -> None:
    point = ("run", "pingpong", "-t", "shm", "--bytes", "8", "--time", "1s")
    elsewhere = cli(*point, "--store", "my $runs.db")
    assert elsewhere.returncode == 0
    command, *more = COMMAND.findall(elsewhere.stderr)
    assert all(one.endswith("--store 'my $runs.db'") for one in more)
    assert command == "explain 1 --store 'my $runs.db'"
    assert cli(*shlex.split(command)).returncode == 0
    by_default = cli(*point)
    assert COMMAND.findall(by_default.stderr)[0] == "explain 1"  # the environment's still holds when it is copied


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
    assert execute(["--store", str(path), "paragon"]) == 2
    assert f"`hockney run paragon --store {shlex.quote(str(path))}`" in capsys.readouterr().err
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
    assert notes[0]["fix"]["command"] == f"hockney run mine --launches 6 {option}"
