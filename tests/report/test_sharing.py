"""Data sheets: what a run gives away, what is read, and what another machine's sheet says of a run."""

from __future__ import annotations

import copy
import getpass
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.report.runs import FACTS, Made, options, store_run

from hockney.cli import execute
from hockney.errors import HockneyError
from hockney.model import Point
from hockney.report.likeness import Place, places_of
from hockney.report.sharing import shared
from hockney.results import sheets
from hockney.results.runs import open_results
from hockney.results.sheets import MachineSheet, SheetValue, archived, cpu_family, find_sheet, medium, read_sheet
from hockney.worker.catalogue import load

_SECRETS = (
    "planted-host", "alice", "alicesmith@build7", "/opt/alice/mpi", "10.20.30.40", "fe80::1ff:fe23:4567:890a",
    "52:54:00:12:34:56", "9F8E7D6C5B4A3210", "PLANTED-RUN",
)  # fmt: skip


def store(path: Path, *, latencies_ns: tuple[tuple[str, float], ...] = (("shm", 50.0),), **more: Any) -> Path:
    """A run of round trips and streams on these transports."""
    window = options(window=16)
    made = [Made(Point(name, "pingpong", 2, 8), time_ns) for name, time_ns in latencies_ns]
    made += [
        Made(Point(name, "oneway", 2, 1 << 18, window), 20_000.0, bytes_per_rep=1 << 18) for name, _ in latencies_ns
    ]
    store_run(path, "quick", made, **more)
    return path


def content_of(path: Path) -> dict[str, Any]:
    with open_results(path) as results:
        return shared(results.run())


def test_a_sheet_comes_back_as_it_was_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, sheet = store(tmp_path / "r.db"), tmp_path / "mine.toml"
    assert execute(["share", "--store", str(results), "-o", str(sheet)]) == 0
    read = read_sheet(sheet)
    assert (read.family, read.hardware["cores"], read.software["kernel"]) == ("Test", 2, "Linux 6.1")
    time, rate = read.figure  # not the time of a stream's only size
    assert (time.pattern, time.transport, time.bytes, str(time.value)) == ("pingpong", "shm", 8, "50.0 ns")
    assert (rate.pattern, str(rate.value), rate.options) == ("oneway", "13.1 GB/s", {"window": "16"})
    assert time.low is not None
    assert time.high is not None
    assert time.low <= time.value <= time.high
    assert capsys.readouterr().out == ""
    assert execute(["share", "--store", str(results), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sheet"] == content_of(results)


def test_a_sheet_gives_away_no_name_address_or_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted in every text of the facts, in the launch, the library, the label and the command."""
    monkeypatch.setattr(getpass, "getuser", lambda: "alice")
    planted = " ".join(_SECRETS)

    def plant(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plant(each) for key, each in value.items()}
        if isinstance(value, list):
            return [plant(each) for each in value]
        return f"{value} {planted}" if isinstance(value, str) else value

    facts = plant(copy.deepcopy(FACTS)) | {"environment": {"OMPI_X": planted}, "hosts": [{"name": "planted-host"}]}
    facts["hostname"], facts["os"]["kernel"] = "planted-host", "Linux 6.1-planted-host"
    path = "mpi@/opt/alice/mpi"
    results = store(
        tmp_path / "r.db", latencies_ns=(("shm", 50.0), (path, 500.0)), facts=facts, label="PLANTED-RUN",
        libraries={path: f"Open MPI v4.1 {planted}"}, hosts=("planted-host", "planted-host"), command=f"run {planted}",
    )  # fmt: skip
    assert execute(["share", "--store", str(results), "-o", str(tmp_path / "mine.toml")]) == 0
    text = (tmp_path / "mine.toml").read_text().lower()
    assert [secret for secret in (*_SECRETS, "alice", "planted") if secret.lower() in text] == []
    assert 'cpu = "test cpu"' in text
    assert 'library = "open mpi v4.1"' in text
    assert 'transport = "mpi"' in text


def test_a_run_without_a_machine_has_no_sheet(tmp_path: Path) -> None:
    results = store(tmp_path / "r.db", latencies_ns=(("shm", 50.0),), plan={"virtual": {"shm": "x"}})
    with pytest.raises(HockneyError, match="is not of this machine"):
        content_of(results)


_SHEET = """format = "hockney-sheet"
version = 1
title = "Theirs"
date = "2026"
program = "hockney"
[hardware]
cpu = "Test CPU 9"
"""
_FIGURE = '\n[[figure]]\npattern = "pingpong"\ntransport = "{}"\nbytes = 8\nvalue = "{}"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = 1", "is not a data sheet"),
        ("not toml", "is not TOML"),
        (_SHEET.replace("version = 1", "version = 2"), "is a data sheet of version 2; this hockney reads version 1"),
        (_SHEET.replace("version = 1", 'version = "x"'), "version x"),
        (_SHEET, "there is none: add a table that begins with [[figure]]"),
        (_SHEET + _FIGURE.format("shm", "437"), "437 has no unit"),
        (_SHEET + _FIGURE.format("shm", "437 furlongs"), "'437 furlongs' is not a time"),
        (_SHEET + _FIGURE.format("shm", "4 GHz/s"), "'4 GHz/s' is not a rate"),
        (_SHEET + _FIGURE.format("shm", "4 us") + 'low = "5 us"\nhigh = "6 us"', "is not between"),
        (_SHEET + _FIGURE.format("shm", "4 us") + 'colour = "red"', "unknown key 'colour'"),
    ],
)
def test_a_bad_sheet_is_refused_in_a_sentence(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "theirs.toml"
    path.write_text(text)
    assert execute(["show", "--sheet", str(path), "--store", str(store(tmp_path / "r.db"))]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert said in error
    assert "Traceback" not in error


def test_an_unknown_name_of_the_archive_is_refused() -> None:
    with pytest.raises(HockneyError, match="unknown data sheet 'h20': did you mean 'h200'"):
        find_sheet("h20")


@pytest.mark.parametrize("name", archived())
def test_a_sheet_of_the_archive_is_valid_and_published_ones_name_their_source(name: str) -> None:
    sheet = find_sheet(name)
    has_interval = {figure.low is not None for figure in sheet.figure}
    assert has_interval == {not sheet.source}


@pytest.mark.parametrize("name", archived())
def test_figures_of_the_archive_are_ones_that_this_version_can_measure(name: str) -> None:
    catalogue = load(libraries=())
    for figure in find_sheet(name).figure:
        pattern = catalogue.pattern(figure.pattern)
        known = {option.name: option.choices for option in pattern.options}
        # That of nccl-tests has the name of its rate, as imported ones do.
        given = {option: str(value) for option, value in figure.options.items() if option != "rate"}
        assert all(not known[option] or value in known[option] for option, value in given.items()), figure


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("AMD EPYC 9654 96-Core Processor", "AMD EPYC"), ("Intel(R) Xeon(R) Platinum 8592+", "Intel Xeon"),
        ("Intel(R) Xeon(R) CPU E5-2695 v4 @ 2.10GHz", "Intel Xeon"), ("Intel(R) Xeon(R) Processor", "Intel Xeon"),
        ("Neoverse-N1", "Neoverse-N1"), (None, ""),
    ],
)  # fmt: skip
def test_a_family_is_the_first_words_of_a_name(model: str | None, family: str) -> None:
    assert cpu_family(model) == family


def test_libraries_of_one_kind_are_compared() -> None:
    names = ("mpi@openmpi-4.1.4", "mpi@mpich-5.0.2:sync", "tcp:spin", "mpi@/opt/x")
    assert [*map(medium, names)] == ["mpi", "mpi:sync", "tcp:spin", "mpi"]


def place(own: float, others: tuple[float, ...], *, is_rate: bool = False) -> Place:
    text = "{} GB/s" if is_rate else "{} us"
    sheet = MachineSheet(
        format="hockney-sheet", version=1, title="", date="", program="",
        figure=({"pattern": "pingpong", "transport": "mpi", "value": text.format(own)},),
    )  # fmt: skip
    scale = 1e9 if is_rate else 1e3
    return Place(sheet.figure[0], tuple(SheetValue(is_rate, scale * other) for other in others), "yours yields the CPU")


@pytest.mark.parametrize(
    ("own", "others", "is_rate", "text"),
    [
        (0.9, (0.1, 0.15, 0.2, 0.8), False, "slower: 3 of 4 have 100 ns–200 ns; yours yields the CPU"),
        (0.9, (0.1, 0.15, 0.7, 0.8), False, "usual: 4 of 4 have 100 ns–800 ns"),
        (0.15, (0.1, 0.1), False, "usual: 2 of 2 have 100 ns"),  # 1.5 times as long
        (0.16, (0.1, 0.1), False, "slower: 2 of 2 have 100 ns; yours yields the CPU"),
        (0.1, (0.4, 0.5), False, "faster: 2 of 2 have 400 ns–500 ns"),
        (0.9, (0.1,), False, "too few sheets: one sheet has 100 ns"),
        (10, (50, 40, 30), True, "slower: 3 of 3 have 30.0 GB/s–50.0 GB/s; yours yields the CPU"),
        (90, (50, 40, 30), True, "faster: 3 of 3 have 30.0 GB/s–50.0 GB/s"),
    ],
)
def test_a_figure_is_judged_by_most_sheets(own: float, others: tuple[float, ...], is_rate: bool, text: str) -> None:
    assert place(own, others, is_rate=is_rate).text == text


@pytest.fixture
def three_sheets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An archive of two machines of the family of made-up runs, and one of another."""
    folder = tmp_path / "sheets"
    folder.mkdir()
    (folder / "a.toml").write_text(
        _SHEET + _FIGURE.format("mpi@openmpi-4.1.4", "100 ns") + _FIGURE.format("shm", "50 ns")
    )
    (folder / "b.toml").write_text(_SHEET + _FIGURE.format("mpi", "150 ns") + _FIGURE.format("mpi", "9 us"))
    (folder / "c.toml").write_text(_SHEET.replace("Test CPU", "Other Chip") + _FIGURE.format("mpi", "1 us"))
    monkeypatch.setattr(sheets, "_FOLDER", folder)
    archived.cache_clear()
    yield folder
    archived.cache_clear()


def test_a_run_is_compared_with_its_family(
    three_sheets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The best library of each sheet counts; a figure in one sheet is no claim."""
    results = store(tmp_path / "r.db", latencies_ns=(("shm", 50.0), ("mpi@mpich-5.0", 900.0)))
    with open_results(results) as opened:
        which, places = places_of(opened.run())
    assert which == "2 data sheets of this CPU family (Test)"
    verdicts = {each.figure.transport: (each.verdict, [*map(str, each.others)]) for each in places}
    assert verdicts == {"shm": ("too few sheets", ["50.0 ns"]), "mpi@mpich-5.0": ("slower", ["100 ns", "150 ns"])}
    assert execute(["show", "--like", "--store", str(results)]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert "slower: 2 of 2 have 100 ns–150 ns" in screen
    assert "In one sheet only, so without a claim: 1 figure." in screen
    assert execute(["show", "--like", "--json", "--store", str(results)]) == 0
    like = json.loads(capsys.readouterr().out)["like"]
    assert [each["verdict"] for each in like["places"]] == ["too few sheets", "slower"]


def test_without_a_family_all_sheets_count(three_sheets: Path, tmp_path: Path) -> None:
    results = store(
        tmp_path / "r.db", latencies_ns=(("mpi@mpich-5", 900.0),), facts={**FACTS, "cpu": {"model": "Third 1"}}
    )
    with open_results(results) as opened:
        which, (only,) = places_of(opened.run())
    assert which == "all 3 data sheets, 0 of this CPU family (Third)"
    assert [*map(str, only.others)] == ["100 ns", "150 ns", "1.00 us"]


def test_a_sheet_of_a_user_counts(three_sheets: Path, tmp_path: Path) -> None:
    results = store(tmp_path / "r.db")
    with open_results(results) as opened:
        _, places = places_of(opened.run(), [read_sheet(three_sheets / "a.toml")])
    assert [(each.verdict, len(each.others)) for each in places] == [("usual", 2)]


def test_figures_of_a_sheet_are_limits_of_a_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """10 % beyond its interval; a library that is not here stands for its kind."""
    results = store(tmp_path / "r.db", latencies_ns=(("shm", 50.0),))
    limits, sheet = tmp_path / "expect.toml", tmp_path / "theirs.toml"
    limits.write_text('like = "theirs.toml"\n')
    for other, code in (("50 ns", 0), ("40 ns", 1)):
        sheet.write_text(_SHEET + _FIGURE.format("shm", other) + _FIGURE.format("cuda", "1 us"))
        assert execute(["check", "--expect", str(limits), "--store", str(results), "last"]) == code
        assert ("expected <= 44.0 ns (the data sheet theirs.toml)" in " ".join(capsys.readouterr().out.split())) == code
    sheet.write_text(_SHEET + _FIGURE.format("cuda", "1 us"))
    assert execute(["check", "--expect", str(limits), "--store", str(results), "last"]) == 2
    assert "has no figure that can be measured here" in capsys.readouterr().err
    limits.write_text('time = "1s"\n')
    assert execute(["check", "--expect", str(limits), "--store", str(results), "last"]) == 2
    assert "there is no limit" in capsys.readouterr().err
