"""`hockney quick` and its data sheet: measured, shown again, gone on with."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tests.test_run import command


def test_quick_prints_a_sheet_and_json(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    arguments = command("quick", "--time", "3s", "--json", store=path)
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=120)
    sheet = json.loads(done.stdout)
    assert done.returncode == (0 if sheet["rows"] else 3), done.stderr  # as without --json
    assert (sheet["format"], sheet["version"], sheet["run"]) == ("hockney-quick", 1, 1)
    assert sheet["starts"] == 1
    assert {launch["transport"] for launch in sheet["launches"]} >= {"null", "shm", "tcp"}
    assert "first look: pingpong 8 B on null" in done.stderr
    shown = subprocess.run(command("show", "last", store=path), capture_output=True, text=True, check=True)
    assert "pingpong on shm, 2 ranks" in shown.stdout
    again = subprocess.run(
        command("show", "last", "--tables", "--json", store=path), capture_output=True, text=True, check=True
    )
    document = json.loads(again.stdout)
    assert {name: document[name] for name in ("rows", "layers", "states")} == {
        name: sheet[name] for name in ("rows", "layers", "states")
    }
    assert len(document["series"]) == len(sheet["series"]) > 0


def test_a_sheet_is_shown_again_and_by_a_resumed_run(tmp_path: Path) -> None:
    def say(*arguments: str) -> str:
        argv = command(*arguments, store=tmp_path / "r.db")
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode in (0, 3), done.stderr  # 3: with so little time, maybe nothing is on the sheet
        return done.stdout

    first = say("run", "quick", "-t", "shm", "--precision", "0.01%", "--time", "3s")
    again = say("show", "--tables")
    on = say("run", "--resume")
    assert first.startswith(again.rstrip())  # what this machine lacks is known to the run alone
    for said in (first, again, on):
        assert "Two ranks; median, and the longer arm" in said or "No point was visited often enough" in said
        assert "pingpong on shm, 2 ranks" not in said


def test_a_sheet_names_what_it_has_too_few_visits_of(tmp_path: Path) -> None:
    arguments = command("quick", "--time", "100ms", store=tmp_path / "r.db")
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 3, done.stderr  # nothing on the sheet: measured in part
    shown = " ".join(done.stdout.split())
    assert re.search(r" shm, .*: \d+ points each not shown, because there were too few visits in any one state", shown)
