"""Suite files: those that come with hockney, and errors in others."""

from __future__ import annotations

from pathlib import Path

import pytest

from hockney.analysis.expect import Expectations
from hockney.errors import UsageError
from hockney.measure.plan import make_plan
from hockney.suites import CacheShare, Suite, builtin_names, load_suite
from hockney.suites.tools import load_named
from hockney.worker.catalogue import load
from hockney.worker.points import RunOptions
from hockney.worker.words import check_words

RIGHT = """
name = "mine"
title = "My suite"
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
    """Also in their words, which no command checks again."""
    assert load_named(name, check=lambda suite: check_words(suite, "series", load())).name == name


def test_a_suite_of_the_user(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, RIGHT))
    assert (suite.transports, suite.precision, suite.time_s) == (("shm",), 0.02, 60.0)
    first, second = suite.series
    assert (first.bytes, first.ranks, first.refine) == ((8, 16, 32, 64), (2,), False)
    assert (second.bytes, second.ranks, second.refine) == ((0, 8, 1024), (2, 4), True)
    assert second.options == {"window": "16", "until": "sent"}


def test_each_value_of_an_option_is_a_series(tmp_path: Path) -> None:
    """In a file, and on the command line, which replaces a file's values."""
    table = "delay_us = [0, 100]"
    suite = load_suite(write(tmp_path, RIGHT.replace("window = 16", table)))

    def options(**asked: str) -> list[dict[str, str]]:
        plan = make_plan(suite, RunOptions(ranks=(2,), oversubscribe=True, options=tuple(asked.items())), load())
        return [dict(point.options) for point in plan.points if (point.pattern, point.bytes) == ("oneway", 8)]

    sent = {"until": "sent"}
    assert options() == [sent, {"delay_us": "100"} | sent]
    both = options(delay_us="5, 7,5", until="acked")
    assert both == [{"delay_us": "5"}, {"delay_us": "7"}]
    assert options(until="acked,sent") == [{}, sent, {"delay_us": "100"}, {"delay_us": "100"} | sent]


@pytest.mark.parametrize("value", ["[0, -1]", "[]", '"0,"', "[[0]]"])
def test_each_value_of_a_list_is_checked(tmp_path: Path, value: str) -> None:
    text = RIGHT.replace("window = 16", f"delay_us = {value}")
    with pytest.raises(
        UsageError, match=r"options\.delay_us of the 2nd .*must be a whole number from 0 to 1000000, not"
    ):
        load_suite(write(tmp_path, text), check=lambda suite: check_words(suite, "series", load()))


def test_all_errors_are_reported_with_their_place(tmp_path: Path) -> None:
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
        "title: it is missing: add for example title = ",
        "precision",
        "time",
        "colour",
        "bytes of the 1st [[series]]",
        "pattern of the 2nd [[series]]",
        "ranks[1] of the 2nd [[series]]",
    ):
        assert f"\n  {place}" in text, place
    assert "'8x' is not a size" in text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("name = 'quick'", "name: 'quick' is a suite that comes with hockney: give this one another name"),
        ("name = 5", "name: 5: input should be a valid string"),
        ("transports = [7]", "transports[1]: 7: input should be a valid string"),
        ("transports = { a = 1 }", "transports: {'a': 1}: input should be a valid tuple"),
        ("precision = 5", "precision: '5' has no unit: write 5%"),
        ("precision = '0.5'", "precision: '0.5' has no unit: write 0.5% (or 50% for the fraction)"),
        ("precision = 0", "precision: '0' is not a precision, above 0 %"),
        ("precision = nan", "precision: 'nan' is not a precision, above 0 %"),
        ("time = true", "time: True: input should be a valid number"),
        ("time = -1", "time: -1: input should be greater than 0"),
        ("launches = 0", "launches: 0: input should be greater than or equal to 1"),
        ("launches = 1001", "launches: 1001: input should be less than or equal to 1000"),
        ("series = 'x'", "series: x: input should be a valid tuple"),
        ("series = [3]", "the 1st [[series]]: 3: it should be a table"),
        ("series = []", "series: it is empty: name one at least"),
        ("series = [{}]", "pattern of the 1st [[series]]: it is missing: add for example pattern = "),
        (
            "series = [{ pattern = 'put', ranks = 2000000 }]",
            "ranks[1] of the 1st [[series]]: 2000000: input should be less",
        ),
        (
            "series = [{ pattern = 'put', refine = 'yes' }]",
            "refine of the 1st [[series]]: yes: input should be a valid b",
        ),
        ("series = [{ pattern = 'put', pairs = 'some' }]", "pairs of the 1st [[series]]: some: input should be 'all'"),
        (
            "series = [{ pattern = 'put', options = 5 }]",
            "options of the 1st [[series]]: 5: input should be a valid dict",
        ),
    ],
)
def test_errors_name_their_place_and_value(line: str, said: str, tmp_path: Path) -> None:
    lines = {"name": "name = 'a'", "title": "title = 'b'", "series": "series = [{ pattern = 'pingpong' }]"}
    lines[line.partition(" ")[0]] = line
    path = write(tmp_path, "\n".join(lines.values()))
    with pytest.raises(UsageError) as caught:
        load_suite(path)
    head, only = str(caught.value).splitlines()
    assert head == f"{path} has 1 error:"
    assert only.startswith(f"  {said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "is not TOML"),
        ("name = 'a'\ntitle = 'b'", "series: there is none: add a table that begins with "),
    ],
)
def test_invalid_suites(tmp_path: Path, text: str, said: str) -> None:
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


def test_a_suite_that_says_nothing_else_asks_for_one_percent_in_two_minutes(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, 'name = "s"\ntitle = "S"\n[[series]]\npattern = "pingpong"\n'))
    assert (suite.precision, suite.time_s, suite.launches, suite.oversubscribe) == (0.01, 120.0, 1, False)


@pytest.mark.parametrize(
    ("words", "sizes"),
    [
        ('["L1/2", "4*L3", 64, "1K"]', (64, 1024, CacheShare(1, 1, 2), CacheShare(3, 4))),
        ('"L2"', (CacheShare(2),)),
        ('["3*L2/4"]', (CacheShare(2, 3, 4),)),
    ],
)
def test_sizes_after_the_machines_caches(words: str, sizes: tuple[object, ...], tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, f'name = "s"\ntitle = "S"\n[[series]]\npattern = "memload"\nbytes = {words}\n'))
    assert suite.series[0].bytes == sizes


@pytest.mark.parametrize("word", ["L0", "L12", "L1/0", "0*L2", "L1*2", "-1*L2", "M1"])
def test_no_cache_and_no_size(word: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"bytes of the 1st \[\[series\]\]: .*is not a size"):
        load_suite(write(tmp_path, f'name = "s"\ntitle = "S"\n[[series]]\npattern = "memload"\nbytes = ["{word}"]\n'))


def test_a_share_of_a_cache_is_a_multiple_of_the_grain() -> None:
    caches = {1: 48 << 10, 3: 1000}
    assert CacheShare(1, 1, 2).resolve(caches, 64) == 24 << 10
    assert CacheShare(3, 1, 3).resolve(caches, 64) == 320
    assert CacheShare(3, 1, 999).resolve(caches, 64) == 64
    assert CacheShare(3, 4).resolve(caches, 0) == 4000
    assert CacheShare(2).resolve(caches, 64) is None
    assert [str(CacheShare(1, 1, 2)), str(CacheShare(3, 4)), str(CacheShare(2))] == ["L1/2", "4*L3", "L2"]


def test_a_synchronous_send_is_next_to_the_asynchronous_one() -> None:
    """Com-1.1: the T9000's send returned when its message was taken."""
    plan = make_plan(load_suite("atlas"), RunOptions(transports=("shm", "shm:sync")), load(), cpus=2)
    sizes: dict[str, list[int]] = {}
    for point in plan.points:
        if point.pattern == "oneway" and not point.options:
            sizes.setdefault(point.transport, []).append(point.bytes)
    assert sizes == {"shm": [4, 64, 256, 1024], "shm:sync": [4, 64, 256, 1024]}


def test_basic_series_ignore_options() -> None:
    """Predictions need them on two ranks with their own options; a model is fitted already."""
    asked = RunOptions(transports=("shm",), ranks=(4,), options=(("window", "4"),))
    plan = make_plan(load_suite("atlas"), asked, load(), cpus=8)
    basics = {point.pattern_text for point in plan.points if point.role == "basic"}
    assert {"pingpong", "oneway window=16", "twoway window=16", "prtt", "prtt messages=8"} < basics
    assert {point.ranks for point in plan.points if point.role == "basic"} == {2}
    on_model = make_plan(load_suite("atlas"), RunOptions(machine="gpmimd"), load(), cpus=8)
    assert {point.role for point in on_model.points} == {"asked"}


@pytest.mark.parametrize(
    ("ranks", "in_suite", "in_limits"),
    [({}, 0, 1), ({"ranks": 4}, 0, 0), ({"ranks": 3}, 1, 1), ({"ranks": [3, 4]}, 0, 0)],
)
def test_a_rank_must_be_among_those_of_its_table(ranks: dict[str, object], in_suite: int, in_limits: int) -> None:
    """A suite without ranks may get them on the command line; limits without ranks are of the pattern's own, two."""
    table = {"pattern": "pingpong", "options": {"target": "3"}, **ranks}
    suite = Suite.model_validate({"name": "a", "title": "A", "series": [table]})
    limits = Expectations.model_validate({"expect": [{**table, "transports": "shm", "latency": "<= 1 us"}]})
    assert len(check_words(suite, "series", load())) == in_suite
    assert len(check_words(limits, "expect", load())) == in_limits
