"""Outputs of other benchmarks as runs."""

from __future__ import annotations

from pathlib import Path

from hockney.results.formats import read_outputs
from hockney.results.importing import ImportOptions, store_outputs
from hockney.results.store import Store

SAMPLES = Path(__file__).parent / "formats/samples"


def test_launches_of_each_curve_count_from_0(tmp_path: Path) -> None:
    names = ("osu_latency.txt", "osu_latency.txt", "osu_bw-cuda.txt")
    files = [(name, read_outputs((SAMPLES / name).read_text(encoding="utf-8"), name)) for name in names]
    with Store.open(tmp_path / "r.db") as store:
        run_id = store_outputs(store, files, ImportOptions(options={"window": "64"}), command="import", label=None)
        launches = store.run(run_id).launches.values()
    assert [launch.index for launch in launches] == [0, 1, 0]
