"""`hockney predict`: times on a model, as a table, as JSON and as a file of the model."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.predict.machines import content, half_round_trip_ns
from tests.cli.support import Cli, document

from hockney.worker.toml_text import toml


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    """The file of a model in the folder of the command."""
    path = tmp_path / "m.toml"
    path.write_text(toml(content(), "made up"), encoding="utf-8")
    return path


def test_the_times_on_a_model_are_printed(cli: Cli, made_up: Path) -> None:
    ended = cli("predict", "pingpong,put", "--machine", "m.toml", "--bytes", "8,1K")
    assert (ended.returncode, ended.stderr) == (0, "")
    rows = [line.split() for line in ended.stdout.splitlines() if line.startswith("pingpong, 2")]
    assert rows == [["pingpong,", "2", "ranks", *row] for row in (["8", "B", "1.18", "us"], ["1", "KiB", "1.69", "us"])]
    assert "put and get" in ended.stdout
    assert not (made_up.parent / "results.db").exists()


def test_the_document_and_the_written_model_say_the_same(made_up: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = made_up.with_name("copy.toml")
    words = ("predict", "pingpong", "-n", "2,3", "-o", "receive=posted", "--bytes", "8", "--json")
    first = document(capsys, *words, "--machine", str(made_up), "--write", str(copy))
    again = document(capsys, *words, "--machine", str(copy))
    assert [row["time_ns"] for row in first["predictions"]] == [pytest.approx(half_round_trip_ns(8), rel=1e-4)] * 2
    assert [row["point"]["ranks"] for row in first["predictions"]] == [2, 3]
    assert [row["time_ns"] for row in again["predictions"]] == [row["time_ns"] for row in first["predictions"]]
    assert first["model"]["key"] == again["model"]["key"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name what to predict"),
        (("pingpong",), "name what to predict, and on which model"),
        (("pingpog", "--machine", "m.toml"), "did you mean 'pingpong'"),
        (("pingpong", "--machine", "gpmim"), "did you mean 'gpmimd'"),
        (("pingpong", "--machine", "m.toml", "-n", "65"), "has room for 64 ranks"),
        (("pingpong", "--machine", "m.toml", "--write", "m.toml"), "would write over m.toml"),
        (("pushfarm", "--machine", "m.toml", "-o", "rate=max", "-o", "deadline=1ms"), "predict searches no rate"),
    ],
)
def test_bad_input_is_a_sentence(cli: Cli, made_up: Path, words: tuple[str, ...], said: str) -> None:
    ended = cli("predict", *words)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1
