"""The command line of scripts/plant-faults: how often `hockney health` names planted faults."""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tests.truth.bed.bed import Bed, why_not_here
from tests.truth.planted import KINDS, code_of, equal_hosts, health_with, measured_share, named_in, plant

from hockney.units import parse_duration_s

PAIRS_LEAST, TIME_MOST = 0.9, 1.5  # of the sound pairs measured; of --time

Row = dict[str, Any]
"""What a run is (`kind`, `number`, and the settings), what was planted and seen, and what it took."""


def run(words: Sequence[str]) -> int:
    """Plant each kind of fault at random places, and print a row for each; 0 where all is as it should be."""
    parser = argparse.ArgumentParser(prog="scripts/plant-faults", description=__doc__)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--placements", type=int, default=20)
    parser.add_argument("--time", default="60s", help="as hockney health takes it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="kinds of faults that have this in their name")
    parser.add_argument(
        "--rows", type=Path, help="append a line of JSON for each run, and go on from those that it has"
    )
    parser.add_argument("--stop-after", default="1d", help="begin no run after that time")
    asked = parser.parse_args(words)
    why = why_not_here()
    if why is not None:
        print(f"plant-faults: {why}", file=sys.stderr)
        return 3
    settings = {"hosts": asked.hosts, "time_s": parse_duration_s(asked.time), "seed": asked.seed}
    rows = [row for row in _read(asked.rows) if settings.items() <= row.items()]
    known = {(row["kind"], row["number"]) for row in rows}
    end_s = time.monotonic() + parse_duration_s(asked.stop_after)
    with tempfile.TemporaryDirectory() as folder, Bed(equal_hosts(asked.hosts)) as bed:
        for kind in KINDS:
            for number in range(asked.placements):
                if (asked.only or "") not in kind or (kind, number) in known or time.monotonic() > end_s:
                    continue
                row = {"kind": kind, "number": number, **settings}
                row |= _measured(bed, row, Path(folder if asked.rows is None else asked.rows.parent))
                rows.append(row)
                if asked.rows is not None:
                    with asked.rows.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
                if not _is_right(row):
                    print(f"  {json.dumps(row)}", flush=True)
    print("\n".join(table(rows)))
    return 0 if all(map(_is_right, rows)) else 1


def _read(path: Path | None) -> list[Row]:
    """The rows of a file; of a run that was cut, the last line may be half."""
    lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def _measured(bed: Bed, row: Row, folder: Path) -> Row:
    """Plant a fault, and measure; the store of a run that is not right stays."""
    planted = KINDS[row["kind"]](bed.names, random.Random(f"{row['seed']} {row['kind']} {row['number']}"))
    plant(bed, planted)
    store = folder / f"{row['kind']} {row['number']}.db".replace(" ", "-")
    store.unlink(missing_ok=True)  # of a run that was cut
    found: Row = {"begun": f"{datetime.now(timezone.utc):%F %T}", "load": os.getloadavg()[0]}
    found |= {"planted": sorted(planted.named), "expected_code": code_of(planted)}
    start_s = time.monotonic()
    try:
        code, document = health_with(bed, planted, store, "--time", f"{row['time_s']:g}s")
    except (AssertionError, RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
        return found | {"wall_s": time.monotonic() - start_s, "failed": str(error)[-2000:]}
    found |= {"wall_s": time.monotonic() - start_s, "named": sorted(named_in(document)), "code": code}
    found |= {"measured_share": measured_share(bed, planted, document), "not_checked": document["not_checked"]}
    found = json.loads(json.dumps(found))  # as it is read again
    if _is_right(row | found):
        for path in folder.glob(f"{store.stem}.*"):
            path.unlink()
    return found


def _is_right(row: Row) -> bool:
    if "failed" in row or (row["planted"], row["expected_code"]) != (row["named"], row["code"]):
        return False
    return bool(row["measured_share"] >= PAIRS_LEAST and row["wall_s"] <= TIME_MOST * row["time_s"])


def table(rows: Sequence[Row]) -> list[str]:
    """A row for each kind, as Markdown: pairs are those without a planted fault, times are shares of --time."""
    heads = ("planted", "named", "false names", "inconclusive", "pairs measured, least", "time, median and most")
    lines = [f"| {' | '.join(heads)} |", f"| {' | '.join('---' for _ in heads)} |"]
    for kind in KINDS:
        of_kind = [row for row in rows if row["kind"] == kind and "failed" not in row]
        failed = sum(row["kind"] == kind for row in rows) - len(of_kind)
        if not of_kind:
            continue
        seen = [({*map(tuple, row["planted"])}, {*map(tuple, row["named"])}) for row in of_kind]
        unclear = sum(row["named"] == row["planted"] and row["code"] != row["expected_code"] for row in of_kind)
        of, ratios = len(of_kind), [row["wall_s"] / row["time_s"] for row in of_kind]
        shares = [row["measured_share"] for row in of_kind]
        few, long = sum(share < PAIRS_LEAST for share in shares), sum(ratio > TIME_MOST for ratio in ratios)
        cells = (
            kind + (f" ({failed} failed)" if failed else ""),
            f"{sum(planted <= named for planted, named in seen)} of {of}" if seen[0][0] else f"{of} nights",
            f"{sum(bool(named - planted) for planted, named in seen)}",
            f"{unclear}",
            f"{100 * min(shares):.0f} %" + (f"; {few} below 90" if few else ""),
            f"{statistics.median(ratios):.2f}, {max(ratios):.2f}" + (f"; {long} above 1.5" if long else ""),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines
