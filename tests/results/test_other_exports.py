"""Parquet and OSU text, read back by the parsers that users have."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.builders import make_info
from tests.cli.support import fill
from tests.report.runs import Made, options, store_run
from tests.results.test_export import csv_of
from tests.results.test_importing import SAMPLES

from hockney.cli import execute
from hockney.model import Point
from hockney.results.export import CSV_COLUMNS
from hockney.results.formats import read_outputs
from hockney.results.importing import ImportOptions, store_outputs
from hockney.results.store import Store


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    path = tmp_path / "r.db"
    fill(path)
    return path


def parquet(store: Path, *words: str) -> Any:
    path = store.with_name("run.parquet")
    assert execute(["export", "last", "--parquet", str(path), *words, "--store", str(store)]) == 0
    return pq.read_table(path)


# ---- Parquet --------------------------------------------------------------------------------------------------------


def test_parquet_has_the_rows_of_the_csv_with_types(filled: Path) -> None:
    table = parquet(filled)
    assert table.schema.names == list(CSV_COLUMNS)
    types = {name: str(table.schema.field(name).type) for name in CSV_COLUMNS}
    assert (types["bytes"], types["time_ns"], types["verified"], types["options"]) == (
        "int64",
        "double",
        "bool",
        "string",
    )
    assert {types[name] for name in ("batch", "launches_needed", "slowest_rank", "divisor", "left_out")} == {"int64"}
    with Store.open(filled, readonly=True) as store:
        expected = csv_of(store, 2)
    rows = table.to_pylist()
    for row, of_csv in zip(rows, expected, strict=True):
        assert {name: "" if value is None else str(value) for name, value in row.items()} == of_csv


@pytest.mark.parametrize("words", [("--parquet", "{}"), ("--csv", "-o", "{}")])
def test_a_file_that_was_written_is_named_on_standard_error(
    words: tuple[str, ...], filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "figures"
    assert execute(["export", "last", *(word.format(path) for word in words), "--store", str(filled)]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"Wrote {path} ({path.stat().st_size / 1e3:,.0f} kB).\n")


def test_parquet_of_samples_has_every_sample(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = parquet(filled, "--samples")
    words = dict.fromkeys(("transport", "pattern", "options", "state"), "string")
    assert {field.name: str(field.type) for field in table.schema} == {
        **dict.fromkeys(table.schema.names, "int64"),
        **words,
        "elapsed_ns": "double",
    }
    rows = table.to_pylist()
    assert execute(["export", "last", "--json", "--samples", "--store", str(filled)]) == 0
    document = json.loads(capsys.readouterr().out)
    expected = [
        (series["pattern"], series["bytes"], measurement["launch_id"], measurement["round"], rank, sample, float(ns))
        for series in document["series"]
        for measurement in series["measurements"]
        for rank, samples in enumerate(measurement["elapsed_ns"])
        for sample, ns in enumerate(samples)
    ]
    names = ("pattern", "bytes", "launch_id", "round", "rank", "sample", "elapsed_ns")
    assert [tuple(row[name] for name in names) for row in rows] == expected
    assert len(expected) > 100


def test_samples_of_an_imported_run_are_the_times_that_its_output_prints(tmp_path: Path) -> None:
    name, store = "osu_latency.txt", tmp_path / "r.db"
    (output,) = read_outputs((SAMPLES / name).read_text(encoding="utf-8"), name).outputs
    with Store.open(store) as opened:
        store_outputs(opened, [(name, [output])], ImportOptions(), command="import", label=None)
    rows = parquet(store, "--samples").to_pylist()
    times_ns = {row["bytes"]: row["elapsed_ns"] / row["divisor"] for row in rows}
    assert times_ns == pytest.approx({row.bytes: row.times_ns[0] for row in output.rows}, rel=1e-3)
    assert {row["batch"] for row in rows} == {None}


def test_without_pyarrow_one_sentence_says_how_to_get_it(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert execute(["export", "last", "--parquet", str(tmp_path / "x"), "--store", str(filled)]) == 2
    expected = f"hockney: --parquet needs pyarrow: install it with {sys.executable} -m pip install pyarrow\n"
    assert capsys.readouterr().err == expected
    assert not (tmp_path / "x").exists()


def test_a_run_without_points_is_an_empty_table(tmp_path: Path) -> None:
    with Store.open(tmp_path / "r.db") as store:
        store.create_run(make_info(), [])
    assert (parquet(tmp_path / "r.db").num_rows, parquet(tmp_path / "r.db", "--samples").num_rows) == (0, 0)


# ---- OSU ------------------------------------------------------------------------------------------------------------


def osu(store: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert execute(["export", "last", "--osu", *words, "--store", str(store)]) == 0
    return capsys.readouterr().out


MADE = [
    *(Made(Point("mpi", "pingpong", 2, 2**n), 1000 + 2**n / 4, 2, 2 * 2**n) for n in (0, 3, 10, 22)),
    *(Made(Point("mpi", "oneway", 2, 2**n, options(window=16)), 200 + 2**n / 8, 16, 16 * 2**n) for n in (0, 3, 22)),
    *(Made(Point("mpi", "twoway", 2, 2**n, options(window=64)), 100 + 2**n / 8, 128, 128 * 2**n) for n in (3, 22)),
    Made(Point("mpi", "pairs", 8, 1024, options(window=4)), 500, 4, 16 * 1024, "sources"),
    Made(Point("mpi", "allreduce", 4, 8), 2500, 1, 48, "slowest"),
    Made(Point("mpi", "barrier", 4, 0), 800, 1, 0, "slowest"),
    Made(Point("mpi", "gather", 4, 8, options(start="barrier", time="mean")), 900, 1, 24, "mean"),
    Made(Point("mpi", "reduce", 4, 8, options(dtype="int8", form="persistent")), 1100, 1, 24, "slowest"),
    Made(Point("mpi@x:rma", "put", 2, 8, options(sync="flush", window=1)), 700, 1, 8),
    Made(Point("mpi@x:rma", "put", 2, 64, options(sync="flush", window=64)), 400, 1, 64),
    Made(Point("mpi", "funnel", 4, 8), 800, 1, 24),
]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    store_run(tmp_path / "made.db", "mine", MADE)
    return tmp_path / "made.db"


def test_osu_text_is_read_by_the_importer(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = read_outputs(osu(made, capsys), "osu.txt").outputs
    read = {(output.pattern, output.window, row.bytes): row.times_ns[0] for output in outputs for row in output.rows}
    for one in MADE[:-1]:
        window = dict(one.point.options).get("window")
        key = (one.point.pattern, int(window) if window else None, one.point.bytes)
        assert read.pop(key) == pytest.approx(one.time_ns, rel=1e-3), key
    assert read == {}


def test_osu_text_has_the_title_of_the_options_and_the_options(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = osu(made, capsys)
    titles = "MPI Gather Latency", "MPI Reduce Persistent Latency", "MPI_Put Latency", "MPI_Put Bandwidth"
    assert [text.count(f"# OSU {title} Test\n") for title in titles] == [1, 1, 1, 1]
    read = {(each.pattern, each.transport, tuple(each.options.items())) for each in read_outputs(text, "x").outputs}
    for one in MADE[-5:-1]:
        assert (one.point.pattern, one.point.transport, one.point.options) in read


@pytest.mark.parametrize(
    ("header", "size", "value"),
    [
        ("OSU MPI Latency Test", 8, 1.002),
        ("OSU MPI Bandwidth Test", 4194304, 4194304 / (200 + 4194304 / 8) * 1e3),
        ("OSU MPI Allreduce Latency Test", 8, 2.5),
    ],
)
def test_osu_text_is_read_as_reframe_reads_it(
    header: str, size: int, value: float, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    r"""The library of ReFrame (hpctestlib/microbenchmarks/mpi/osu.py) searches `^SIZE` and takes `^SIZE\s+(\S+)`."""
    table = osu(made, capsys).partition(header)[2].partition("\n# OSU")[0]
    match = re.search(rf"^{size}\s+(\S+)", table, re.MULTILINE)
    assert match
    assert float(match[1]) == pytest.approx(value, rel=1e-3)


def test_osu_text_is_of_the_transports_asked_for(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert osu(filled, capsys).count("# OSU MPI Latency Test") == 2
    text = osu(filled, capsys, "-t", "mpi")
    assert re.findall(r"# Made by hockney \S+: (.*)", text) == ["pingpong on mpi@openmpi-4.1.4, 2 ranks, state near"]


def test_patterns_without_an_osu_text_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store_run(tmp_path / "r.db", "mine", MADE[-1:])
    assert execute(["export", "--osu", "--store", str(tmp_path / "r.db")]) == 2
    assert "OSU has no table for any figure of run 1: list its own: `hockney list osu`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--csv", "--osu"], "a run is exported as --csv or as --osu, not both: leave one out"),
        (["--parquet", "/no/such/folder/x"], "cannot write /no/such/folder/x: there is no folder /no/such/folder"),
    ],
)
def test_contradictions(words: list[str], sentence: str, filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["export", *words, "--store", str(filled)]) == 2
    assert sentence in capsys.readouterr().err
