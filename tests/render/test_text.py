"""Documents as text, and values as JSON."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from hockney.model import Warning_
from hockney.render.json import JSON_VERSION, print_json
from hockney.render.streams import print_line
from hockney.render.tables import split_columns
from hockney.render.terminal import is_terminal, wrapped
from hockney.render.text import fit, show
from hockney.report.document import (
    Block,
    Bullet,
    Column,
    Document,
    Item,
    More,
    Plot,
    Section,
    Sentence,
    Table,
    Text,
    Title,
)
from hockney.report.notes import caveat_notes, of_warnings

COLUMNS = [
    Column("name", key=True),
    Column("a", right=True),
    Column("b", optional=True),
    Column("why", wrap=True),
]


def test_plain_text_is_aligned_without_blanks_at_its_ends(capsys: pytest.CaptureFixture[str]) -> None:
    show([Table(["name", Column("time", right=True), "note"], [["shm", "8 ns", "x"], ["mpi", "1500 ns"]])])
    assert capsys.readouterr().out.splitlines() == [
        "name     time  note",
        "shm      8 ns  x",
        "mpi   1500 ns",
    ]


def test_wide_and_combining_characters_keep_the_columns_in_line(capsys: pytest.CaptureFixture[str]) -> None:
    accent, voiced = "e\u0301te\u0301", "か\u3099"  # each mark joins the character before
    names = ["日本語", accent, "🚀", voiced]
    show([Table(["name", Column("time", right=True), "note"], [[name, "8 ns", name] for name in names])])
    assert capsys.readouterr().out.splitlines() == [
        "name    time  note",
        "日本語  8 ns  日本語",
        f"{accent}     8 ns  {accent}",
        "🚀      8 ns  🚀",
        f"{voiced}      8 ns  {voiced}",
    ]
    show([Table(["note", Column("name", right=True)], [["x", "日本語"], ["y", "shm"]])])
    assert capsys.readouterr().out.splitlines() == ["note    name", "x     日本語", "y        shm"]


def test_a_table_without_titles_has_no_line_for_them(capsys: pytest.CaptureFixture[str]) -> None:
    show([Table(["", ""], [["CPU", "fast"]])])
    assert capsys.readouterr().out == "CPU  fast\n"
    show([Table(["", ""], [])])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("width", "tables"),
    [
        (44, [[0, 1, 2, 3]]),
        (43, [[0, 1, 3]]),  # without the optional one, where that is enough
        (35, [[0, 1, 2], [0, 3]]),  # in two tables, each with the key
        (10, [[0, 1], [0, 2], [0, 3]]),  # narrower than any: no figure is cut
    ],
)
def test_columns_of_a_narrow_screen(width: int, tables: list[list[int]]) -> None:
    assert split_columns(COLUMNS, [9, 7, 6, 16], width) == tables


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (40, ["what ranks   ratio  time there", "2, 4", "  long name    0.5        12.5"]),
        (28, ["                        time", "what ranks   ratio     there", "2, 4", "  long name    0.5      12.5"]),
        (
            20,
            [
                *("what ranks   ratio", "2, 4", "  long name    0.5", ""),
                *("                time", "what ranks     there", "2, 4", "  long name     12.5"),
            ],
        ),
    ],
)
def test_titles_wrap_and_tables_split_to_fit(
    width: int, lines: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    columns = [
        Column("what ranks", key=True),
        Column("ratio", right=True),
        Column("time there", right=True),
    ]
    show([Table(columns, ["2, 4", ["  long name", "0.5", "12.5"]], fits=True)])
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("words", [(20, 20, 20), (3, 20, 20), (20, 20, 3), (9, 3, 20)])
def test_columns_share_the_room_of_a_line_and_take_no_more(
    width: int, words: tuple[int, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    show([Table([Column(name, wrap=True) for name in "abc"], [["word " * count + "end" for count in words]])])
    lines = capsys.readouterr().out.splitlines()
    assert width - 12 < max(map(len, lines)) <= width
    assert " ".join(lines).count("word") == sum(words)


def test_a_name_in_a_column_of_sentences_stays_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to a third of the line."""
    monkeypatch.setenv("COLUMNS", "60")
    name = "sim@a-model-of-19.x"
    columns = [Column("what"), Column("names", wrap=True), Column("more", wrap=True)]
    show([Table(columns, [["x" * 20, f"one {name} and two", "word " * 20]], fits=True)])
    lines = capsys.readouterr().out.splitlines()
    assert sum(name in line for line in lines) == 1
    assert max(map(len, lines)) <= 60


@pytest.mark.parametrize("columns", [None, "", "0", "wide"])
def test_in_a_pipe_a_row_is_a_line_however_long(
    columns: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    show([Table(COLUMNS, [["shm", "1", "2", "word " * 40 + "end"]])])
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "a", "b", "why"]
    assert row.split() == ["shm", "1", "2", *["word"] * 40, "end"]


def test_in_a_pipe_a_table_is_as_wide_as_columns_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the optional column that makes it fit, and with a line that says so."""
    monkeypatch.setenv("COLUMNS", "41")
    show([Table(COLUMNS, [["transport", "12.5 us", "a note", "a reason that is long"]])])
    assert capsys.readouterr().out.splitlines() == [
        "name             a  why",
        "transport  12.5 us  a reason that is long",
        "(columns hidden, screen too narrow: b)",
    ]


def test_a_terminal_that_is_too_narrow_gets_whole_figures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "12")
    columns: list[Column | str] = [Column("size", key=True), Column("state", key=True), "a", "b"]
    show([Table(columns, [["64 KiB", "near", "12.5 us", "1 ms"]])])
    lines = [line.split() for line in re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out).splitlines()]
    assert ["64", "KiB", "near", "12.5", "us"] in lines
    assert ["64", "KiB", "near", "1", "ms"] in lines


def test_titles_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    show([Title("First"), Title("Second")])
    assert capsys.readouterr().out == "First\n\nSecond\n"


@pytest.mark.parametrize("width", [60, 100])
def test_caveats_take_one_line_each_and_six_lines(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    long = "Some sentence\x1b without an end, " * 9
    load = Warning_("load", "machine", "It is busy.", "Stop it.")
    seen = [load, *(Warning_("hosts", f"n{number}", long, "Fix it.") for number in range(6))]
    notes, left = caveat_notes(of_warnings(seen))
    lines = [line for shown in fit(Document(tuple(notes))) for line in shown]
    assert (lines[0], len(lines), left) == ("! It is busy.", 5, 2)
    assert all(line.endswith(" …") and width - 12 < len(line) <= width for line in lines[1:])
    everything, left = caveat_notes(of_warnings(seen), verbose=True)
    assert (everything[0].text, left) == ("! It is busy. Stop it.", 0)
    assert "Fix it." in everything[-1].text


@pytest.mark.parametrize("width", [60, 100])
def test_notes_are_wrapped_in_a_pipe_but_searchable_lines_are_not(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    words = "word " * 30
    show([Text(words)])
    show([Item(words, head="switch")])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) in range(width - 5, width + 1)
    assert all(line.startswith(("  ", "word", "  switch: word", "    word")) for line in lines)
    assert " ".join(" ".join(lines).split()) == f"{words}switch: {words}".strip()
    show([Sentence(words)])
    assert capsys.readouterr().out == f"{words}\n"


def test_a_command_that_may_be_copied_stays_on_one_line() -> None:
    assert wrapped("so go on with `hockney run --resume 2`, or not", 30, rest="  ") == [
        "so go on with",
        "  `hockney run --resume 2`, or",
        "  not",
    ]


@pytest.mark.parametrize(("number", "rest"), [("1", "MiB, too"), ("47.9", "ns."), ("95", "% of it"), ("2", "min 20 s")])
def test_a_number_is_not_parted_from_its_unit(number: str, rest: str) -> None:
    unit = rest.split()[0]
    for width in range(12, 40):
        lines = wrapped(f"so it is up to {number} {rest} and more of it", width)
        assert any(f"{number} {unit}" in line for line in lines), width
    assert wrapped("there are 2 birds", 11) == ["there are 2", "birds"]


def test_json_names_its_document(capsys: pytest.CaptureFixture[str]) -> None:
    print_json("show", {"values": np.array([1, 2]), "value": np.float64(0.5), "names": {"b", "a"}})
    document = json.loads(capsys.readouterr().out)
    assert document == {
        "format": "hockney-show",
        "version": JSON_VERSION,
        "values": [1, 2],
        "value": 0.5,
        "names": ["a", "b"],
    }


def test_json_refuses_unknown_types() -> None:
    with pytest.raises(ValueError, match="JSON"):
        print_json("show", {"value": float("nan")})
    with pytest.raises(TypeError, match="has no JSON form"):
        print_json("show", {"value": Path("x")})


@pytest.mark.parametrize("term", ["", "dumb"])
def test_a_typewriter_is_no_terminal(term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", term)
    assert not is_terminal()
    monkeypatch.setenv("TERM", "xterm")
    assert is_terminal()


def test_a_command_continues_when_its_reader_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its exit code may be a verdict."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as stream:
        monkeypatch.setattr("sys.stdout", stream)
        print_line("nobody reads this")
        print_line("nor this")


@pytest.mark.parametrize(
    ("point", "is_drawn"),
    [((1, 5.0), True), ((8, 0.5), True), ((0, 5.0), False), ((8, 0.0), False), ((8, -1.0), False)],
)
def test_a_plot_has_only_values_with_a_logarithm(
    point: tuple[int, float], is_drawn: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    show([Plot("Times", {"this curve": [point], "other": [(4, 2.0)]}, "ns")])
    assert ("this curve" in capsys.readouterr().out) == is_drawn


@pytest.mark.parametrize(
    ("points", "is_hidden"),
    [
        ([(8, 1.0), (64, 2.0)], True),
        ([(8, 1.0), (64, 2.0), (512, 900.0)], True),  # most of its points
        ([(8, 1.0), (64, 900.0)], False),
        ([(16, 1.0), (128, 2.0), (8, 1.0)], False),  # at other sizes
        ([(8, 30.0), (64, 60.0)], False),
    ],
)
def test_a_curve_is_hidden_where_most_of_its_points_are_below_a_later_one(
    points: list[tuple[int, float]], is_hidden: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    show([Plot("Times", {"first": points, "second": [(8, 1.0), (64, 2.0), (512, 1000.0)]}, "ns")])
    assert ("first under second" in capsys.readouterr().out) == is_hidden


def test_marks_of_a_plot_stay_with_their_names(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"library {number}" for number in range(9)]
    show([Plot("Times", {name: [(8, number + 1.0), (64, 2.0)] for number, name in enumerate(names)}, "ns")])
    screen = capsys.readouterr().out
    assert [f"{mark} {name}" in screen for mark, name in zip("ox+*#@%&=", names, strict=True)] == [True] * 9


def test_a_plot_over_dates_shows_steps_beside_values_far_away(capsys: pytest.CaptureFixture[str]) -> None:
    """A value a hundred times as large is at the edge, a change has a line, and the first curve hides the others."""
    day_s = 86_400
    values = [100.0 if night < 20 else 110.0 for night in range(40)]
    values[7] = 1e4
    curves = {"time": [(night * day_s, value) for night, value in enumerate(values)], "floor": [(0, 100.0)]}
    show([Plot("Times", curves, "%", "date", [20 * day_s])])
    screen = capsys.readouterr().out.splitlines()
    drawn = [line for line in screen if line.count("o") > 5]
    assert len(drawn) == 2
    assert screen.index(drawn[1]) - screen.index(drawn[0]) > 5
    assert sum("|" in line for line in screen) > 15
    assert screen[-1].split() == ["|", "change", "x", "floor", "o", "time"]


@pytest.mark.parametrize("points", [[(0, 100.0)], [(0, 5.0), (86_400, 5.0)], [(0, 0.0), (86_400, 0.0)]])
def test_a_plot_over_dates_of_one_value_is_drawn(
    points: list[tuple[int, float]], capsys: pytest.CaptureFixture[str]
) -> None:
    show([Plot("Times", {"time": points}, "%", "date")])
    assert "o time" in capsys.readouterr().out


def texts_of(*blocks: Block, lines_max: int | None = None) -> list[str]:
    return [line for lines in fit(Document(tuple(blocks), lines_max)) for line in lines]


def test_what_has_no_room_goes_by_priority_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    findings = [Bullet(f"finding {number}", priority=number, noun="finding") for number in range(4)]
    fits = Section("Fits", (Text("a line"),), priority=9, noun="fit", count=2)
    blocks = (Title("Head"), *findings, fits, More("--all", {"layer": 3, "line": 0}), Text("end"))
    assert texts_of(*blocks) == [
        *("Head", "- finding 0", "- finding 1", "- finding 2", "- finding 3", "", "Fits", "a line"),
        *("More with --all: 3 layers.", "end"),
    ]
    assert texts_of(*blocks, lines_max=7) == [
        *("Head", "- finding 0", "- finding 1", "- finding 2", "- finding 3"),
        *("More with --all: 3 layers, 2 fits.", "end"),
    ]
    assert texts_of(*blocks, lines_max=5) == [
        *("Head", "- finding 0", "- finding 1", "More with --all: 3 layers, 2 fits, 2 findings.", "end")
    ]
    # What has no priority stays, however little room there is.
    assert texts_of(*blocks, lines_max=1)[:2] == ["Head", "- finding 0"]


def test_nothing_left_out_is_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert texts_of(Title("Head"), More("--all"), lines_max=2) == ["Head"]


@pytest.mark.parametrize(("width", "count"), [(200, 4), (100, 4), (50, 8)])
def test_a_document_has_as_many_lines_of_100_columns(width: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    blocks = [Text(f"text {number}", priority=number) for number in range(1, 20)]
    assert len(texts_of(*blocks, lines_max=4)) == count


def test_a_bullet_of_three_lines_moves_its_cause_up_and_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    evidence, cause, fix = "word " * 15, "cause " * 15, "fix it"
    assert texts_of(Bullet(evidence.strip(), ("a cause", fix), lines_max=3))[1:] == ["  a cause", "  fix it"]
    lines = texts_of(Bullet(evidence * 2, (cause, fix), lines_max=3))
    assert (len(lines), lines[-1]) == (3, "  fix it")
    assert "cause" in lines[1]
    assert lines[1].endswith(" …")
    # Of what is cut, the line of the rest says so.
    assert "the rest of each cut line" in texts_of(Bullet(evidence * 2, (cause, fix), lines_max=3), More("--all"))[-1]
    whole = texts_of(Bullet(evidence * 2, (cause, fix), ("another",)))
    assert " ".join(whole).count("cause") == 15
    assert whole[-1] == "  - another"


def test_a_figure_is_wider_than_the_screen_and_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence in the same place is broken, and so is a word that has no room."""
    monkeypatch.setenv("COLUMNS", "24")
    figure = "(108,000–113,000)‡"
    for column, is_whole in ((Column("here", right=True), True), (Column("here", wrap=True), False)):
        lines = texts_of(Table([Column("a row", key=True), column], [["all pairs", figure]], fits=True))
        assert any(figure in line for line in lines) == is_whole
