"""Outputs of other benchmarks as runs."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from hockney.results.export import write_csv
from hockney.results.formats import read_outputs
from hockney.results.importing import ImportOptions, store_outputs
from hockney.results.runs import Run
from hockney.results.store import Store

SAMPLES = Path(__file__).parent / "formats/samples"


def test_launches_of_each_curve_count_from_0(tmp_path: Path) -> None:
    names = ("osu_latency.txt", "osu_latency.txt", "osu_bw-cuda.txt")
    files = [(name, read_outputs((SAMPLES / name).read_text(encoding="utf-8"), name).outputs) for name in names]
    with Store.open(tmp_path / "r.db") as store:
        run_id = store_outputs(store, files, ImportOptions(options={"window": "64"}), command="import", label=None)
        launches = store.run(run_id).launches.values()
    assert [launch.index for launch in launches] == [0, 1, 0]


def test_csv_leaves_out_what_an_output_does_not_say(tmp_path: Path) -> None:
    name, stream = "osu_latency.txt", io.StringIO(newline="")
    files = [(name, read_outputs((SAMPLES / name).read_text(encoding="utf-8"), name).outputs)]
    with Store.open(tmp_path / "r.db") as store:
        run_id = store_outputs(store, files, ImportOptions(), command="import", label=None)
        write_csv(Run(store, run_id), stream)
    stream.seek(0)
    row = next(csv.DictReader(stream))
    unknown = ("library", "reason", "samples", "minimum_ns", "batch", "verified", "floor_ns", "oversubscribed")
    assert {name: row[name] for name in unknown if row[name]} == {}
    assert (row["transport"], row["status"], row["measurements"]) == ("mpi", "imported", "1")
