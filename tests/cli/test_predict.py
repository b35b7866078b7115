"""`hockney predict`: times on a model, as a table, as JSON and as a file of the model."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from syrupy.assertion import SnapshotAssertion
from tests.analysis.predict.machines import content, half_round_trip_ns
from tests.cli.support import Cli, command_line, document, environment
from tests.shared import killed_at_the_end

from hockney.cli import execute
from hockney.cli import predicted as cli_predicted
from hockney.measure.what_if import Predicted
from hockney.suites.toml_models import toml
from hockney.worker.machine_model import load_model

FARM = ("pushfarm", "--machine", "m.toml", "-n", "3", "-o", "rate=max", "-o", "deadline=1ms")


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    """The file of a model in the folder of the command."""
    path = tmp_path / "m.toml"
    path.write_text(toml(content(), "made up"), encoding="utf-8")
    return path


@pytest.mark.parametrize("rate", [(), ("-o", "rate=1k/s")])
def test_events_that_start_on_schedule_have_no_rate_of_their_own(
    rate: tuple[str, ...], cli: Cli, made_up: Path
) -> None:
    ended = cli("predict", "pushfarm", "--machine", made_up.name, "-n", "4", "--bytes", "8", *rate)
    assert ended.returncode == 0, ended.stderr
    assert ("events" in ended.stdout) == (not rate)


def test_the_times_on_a_model_are_printed(cli: Cli, made_up: Path) -> None:
    ended = cli("predict", "pingpong,put", "--machine", "m.toml", "--bytes", "8,1K")
    assert (ended.returncode, ended.stderr) == (3, "")  # there are no puts
    rows = [line.split() for line in ended.stdout.splitlines() if line.startswith("pingpong, 2")]
    said = ["8 B 1.18 us 6.76 MB/s", "1 KiB 1.69 us 605 MB/s"]
    assert [" ".join(row) for row in rows] == [f"pingpong, 2 ranks {text}" for text in said]
    assert "put and get" in ended.stdout
    assert not (made_up.parent / "results.db").exists()


def test_a_run_on_the_model_has_the_same_times(made_up: Path, capsys: pytest.CaptureFixture[str]) -> None:
    what = ("pingpong,alltoall,barrier", "--machine", str(made_up), "-n", "6", "--bytes", "8,4K", "--json")
    predicted = document(capsys, "predict", *what)["predictions"]
    run = document(capsys, "run", *what, "--no-refine", "--quiet", "--store", str(made_up.with_name("r.db")))
    measured = [series["figures"][0]["value_ns"] for series in run["series"]]
    assert [row["time_ns"] for row in predicted] == pytest.approx(measured, rel=0.005)


def test_the_document_and_the_written_model_say_the_same(made_up: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = made_up.with_name("copy.toml")
    words = ("predict", "pingpong", "-n", "2,3", "-o", "receive=posted", "--bytes", "8", "--json")
    first = document(capsys, *words, "--machine", str(made_up), "--write", str(copy))
    again = document(capsys, *words, "--machine", str(copy))
    assert [row["time_ns"] for row in first["predictions"]] == [pytest.approx(half_round_trip_ns(8), rel=1e-4)] * 2
    assert [row["point"]["ranks"] for row in first["predictions"]] == [2, 3]
    assert [row["time_ns"] for row in again["predictions"]] == [row["time_ns"] for row in first["predictions"]]
    assert first["model"]["key"] == again["model"]["key"]


def test_sigterm_ends_its_job_and_leaves_no_file(tmp_path: Path) -> None:
    words = command_line("predict", "alltoall", "--machine", "gpmimd", "-n", "62", "--bytes", "1K", "--tolerance")
    process = subprocess.Popen(words, env=environment(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with killed_at_the_end(process):
        job, model = wait_for_job(psutil.Process(process.pid))
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (3, b"hockney: stopped by SIGTERM\n")
    assert psutil.wait_procs([job], timeout=60)[0] == [job]
    assert not model.exists()


def wait_for_job(process: psutil.Process, limit_s: float = 60) -> tuple[psutil.Process, Path]:
    """Its job on a model, and the file of the model."""
    deadline_s = time.monotonic() + limit_s
    while time.monotonic() < deadline_s:
        with contextlib.suppress(psutil.Error):  # a child that has just ended
            for job in process.children():
                words = job.cmdline()
                if "--model" in words:
                    return job, Path(words[words.index("--model") + 1])
        time.sleep(0.001)
    raise AssertionError("no job was started")


def test_screen(
    made_up: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    """With changes, gains of several points, parameters without effect, and points that cannot be predicted."""
    predicted = cli_predicted.predicted
    made: list[Predicted] = []

    def predicted_once(*what: Any, **how: Any) -> Predicted:
        """The model is simulated for the first width only."""
        made[:] = made or [predicted(*what, **how)]
        return made[0]

    monkeypatch.setattr(cli_predicted, "predicted", predicted_once)
    monkeypatch.chdir(made_up.parent)
    changes = ("--set", "L=0.5x", "--set", "class.all.segment.send_cpu=+1us")
    what = ("pingpong,put,barrier", "--machine", "m.toml", "-n", "2,8", "--bytes", "8,64K")
    for width in (60, 80, 100):
        monkeypatch.setenv("COLUMNS", str(width))
        assert execute(["predict", *what, *changes, "--sensitivity", "--tolerance"]) == 3  # there are no puts
        screen = capsys.readouterr().out
        assert max(map(len, screen.splitlines())) <= width
        assert screen == snapshot(name=str(width))


def test_a_change_is_written_with_its_source(made_up: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = made_up.with_name("copy.toml")
    words = ("predict", "pingpong", "--bytes", "8", "--json", "--machine")
    first = document(capsys, *words, str(made_up), "--set", "L=0.5x", "--set", "g=+1us", "--write", str(copy))
    again = document(capsys, *words, str(copy))
    assert first["changes"] == ["L=0.5x", "g=+1us"]
    assert again["predictions"][0]["time_ns"] == first["predictions"][0]["changed_ns"]
    assert first["predictions"][0]["changed_ns"] == pytest.approx(half_round_trip_ns(8) + 500, rel=1e-4)
    assert load_model(str(copy)).machine.classes["all"].segment[0].source == "made up; L=0.5x; g=+1us"


def test_variants_of_a_model_change_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Its pairs run on another placement."""
    words = ("predict", "pairs", "--machine", "gpmimd", "-n", "8", "--bytes", "8", "--set", "L=2x", "--json")
    (row,) = document(capsys, *words)["predictions"]
    assert row["point"]["transport"] == "sim@gpmimd:pairs"
    assert row["changed_ns"] > 1.2 * row["time_ns"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name what to predict"),
        (("pingpog", "--machine", "m.toml"), "did you mean 'pingpong'"),
        (("pingpong", "--machine", "gpmim"), "did you mean 'gpmimd'"),
        (("pingpong", "--machine", "m.toml", "--set", "L=0x"), "'L=0x' needs a factor above 0"),
        (("pingpong", "--machine", "m.toml", "--set", "LL=2x"), "unknown parameter 'LL': did you mean 'L'?"),
        (("pingpong", "--machine", "m.toml", "--set", "machine=nosuch"), "unknown machine 'nosuch'"),
        (("pingpong", "--machine", "m.toml", "--set", "link.bandwidth=2x"), "changes nothing"),
        (("pingpong", "--machine", "m.toml", "-n", "65"), "nothing to predict: the model m.toml has 64 nodes, so 65"),
        (("pingpong", "--machine", "m.toml", "--write", "m.toml"), "would write over m.toml"),
        (("pingpong", "--machine", "m.toml", "--write", "m.txt"), "write m.toml"),
        (("memload", "--machine", "m.toml", "-n", "1"), "memload uses real memory, which a model does not have"),
        (
            ("pingpong", "--machine", "m.toml", "--link", "1GB/s"),
            "leave out --from, --transport, --topology and --link",
        ),
    ],
)
def test_bad_input_is_a_sentence(cli: Cli, made_up: Path, words: tuple[str, ...], said: str) -> None:
    ended = cli("predict", *words)
    assert (ended.returncode, ended.stdout) == (2, "")
    *before, sentence = ended.stderr.splitlines()
    assert said in sentence
    assert not [line for line in before if "compiling" not in line]  # where no test did so before
