"""Suite files: those that come with hockney, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from hockney.errors import UsageError
from hockney.suites import builtin_names, load_suite

RIGHT = """
name = "mine"
title = "A suite of one's own"
transports = "shm"
precision = "2%"
time = "1m"
[[series]]
pattern = "pingpong"
bytes = "8:64"
[[series]]
pattern = "oneway"
ranks = [2, 4]
bytes = ["1K", "0", 8]
options = { window = 16, until = "sent" }
refine = true
"""


def write(folder: Path, text: str) -> str:
    path = folder / "suite.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", builtin_names())
def test_suites_that_come_with_hockney_are_right(name: str) -> None:
    assert load_suite(name).name == name


def test_a_suite_of_ones_own(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, RIGHT))
    assert (suite.transports, suite.precision, suite.time_s) == (("shm",), 0.02, 60.0)
    first, second = suite.series
    assert (first.bytes, first.ranks, first.refine) == ((8, 16, 32, 64), (2,), False)
    assert (second.bytes, second.ranks, second.refine) == ((0, 8, 1024), (2, 4), True)
    assert second.options == {"window": "16", "until": "sent"}


def test_every_error_is_told_at_once_with_its_place(tmp_path: Path) -> None:
    wrong = """
    nmae = "mine"
    precision = "150%"
    time = "soon"
    colour = "blue"
    [[series]]
    pattern = "pingpong"
    bytes = "8x"
    [[series]]
    ranks = 0
    """
    path = write(tmp_path, wrong)
    with pytest.raises(UsageError) as caught:
        load_suite(path)
    text = str(caught.value)
    assert text.startswith(f"{path} has 9 errors:")
    for place in (
        "nmae: unknown key 'nmae': did you mean 'name'?",
        "title: it must be given",
        "precision",
        "time",
        "colour",
        "series[0].bytes",
        "series[1].pattern",
        "series[1].ranks",
    ):
        assert f"\n  {place}" in text, place
    assert "'8x' is not a size" in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "is not TOML"),
        ("name = 'a'\ntitle = 'b'\nseries = []", "series"),
        ("name = 'a'\ntitle = 'b'\nprecision = nan\n[[series]]\npattern = 'pingpong'", "precision"),
    ],
)
def test_what_is_no_suite(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load_suite(write(tmp_path, text))


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the suite"):
        load_suite(str(tmp_path / "none.toml"))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not UTF-8"):
        load_suite(str(tmp_path / "binary.toml"))


def test_an_unknown_suite_is_asked_back() -> None:
    with pytest.raises(UsageError, match="unknown suite 'quik': did you mean 'quick'"):
        load_suite("quik")
