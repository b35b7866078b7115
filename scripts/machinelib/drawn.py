"""What the models of the reports' machines give: for the figures of the page src/hockney/archive/modelled.csv, for each
published figure the column `model` of its report's file.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from hockney.archive import published
from hockney.archive.modelled import PATH, Modelled
from hockney.report.classic import make_report
from hockney.results.runs import Run, open_results

# The suites, and the models that they are run on.
RUNS = {"scabench": "scali", "paragon": "paragon", "ancor": "ancor", "atlas": "gpmimd-calibrated", "t3d": "t3d"}
PATTERNS = {
    "scabench": ("pingpong",),
    "paragon": ("pingpong",),
    "ancor": ("stream",),
    "atlas": ("pushfarm", "pullfarm", "robpush", "robpull"),
    "t3d": ("put", "putpong"),
}


def run(arguments: Sequence[str]) -> int:
    """Write the file."""
    parser = argparse.ArgumentParser("draw-machines", description=__doc__)
    parser.add_argument("store", nargs="?", help="with a run of each suite; without, all are measured on their models")
    store = parser.parse_args(arguments).store
    with tempfile.TemporaryDirectory() as folder:
        if store is None:
            store = f"{folder}/models.db"
            for suite, machine in RUNS.items():
                _measure(suite, machine, store)
        with open_results(store) as results, PATH.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(field.name for field in fields(Modelled))
            for suite, machine in RUNS.items():
                last = results.run(max(each.id for each in results.runs() if each.suite == suite))
                writer.writerows(_drawn(last, machine))
                _write_column(last)
    return 0


def _write_column(run: Run) -> None:
    """Write what the model gives for each figure of its report, in the order of the figure's quantities."""
    report = make_report(run)
    assert report is not None
    given: dict[int, list[str]] = {}
    for of_row in (row for group in report.groups for row in group.rows):
        cell = next(iter(of_row.cells.values()), None)
        number = cell.value.number if cell is not None and cell.of_model else None
        given.setdefault(id(of_row.figure), []).append("" if number is None else f"{number:.4g}")
    path = PATH.with_name(report.report.file)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for figure, row in zip(published(report.report.name), rows, strict=True):
        texts = given[id(figure)]
        row["model"] = "; ".join(texts) if any(texts) else ""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _measure(suite: str, machine: str, store: str) -> None:
    words = ["run", suite, "--machine", machine, "--store", store, "--quiet"]
    done = subprocess.run([sys.executable, "-m", "hockney", *words], stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 3):  # 3: some points do not fit the model
        sys.exit(f"draw-machines: {' '.join(words)} ended with {done.returncode}")


def _drawn(run: Run, machine: str) -> Iterator[Iterable[object]]:
    """The rows of the file that a run of a suite on its model gives."""
    suite = run.info.suite
    for series in run.series:
        point = series.point
        figures = series.figures()
        if point.pattern not in PATTERNS[suite] or not figures:
            continue
        options = dict(point.options)
        if suite in ("scabench", "paragon") and options:
            continue
        if suite == "t3d" and (point.bytes != 8 or "quiet" in options or point.ranks != 16):
            continue
        cpu = ""
        if point.pattern == "stream":
            (measurement, *_) = series.measurements
            used = zip(measurement.cpu_user_ns, measurement.cpu_system_ns, measurement.wall_ns, strict=True)
            cpu = " ".join(f"{(user + system) / wall:.4g}" for user, system, wall in used)
        variant = point.transport.removeprefix(f"sim@{machine}").removeprefix(":")
        yield suite, variant, point.pattern_text, point.ranks, point.bytes, f"{figures[0].time.value:.6g}", cpu
