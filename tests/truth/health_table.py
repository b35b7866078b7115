"""The command line of scripts/plant-faults: how often `hockney health` names planted faults."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.truth.bed.bed import Bed, why_not_here
from tests.truth.planted import KINDS, equal_hosts, health, named_in, plant


def run(words: Sequence[str]) -> int:
    """Plant each kind of fault at random places, and print a row for each; 0 where all were named and nothing else."""
    parser = argparse.ArgumentParser(prog="scripts/plant-faults", description=__doc__)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--placements", type=int, default=20)
    parser.add_argument("--time", default="60s", help="as hockney health takes it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="kinds of faults that have this in their name")
    asked = parser.parse_args(words)
    why = why_not_here()
    if why is not None:
        print(f"plant-faults: {why}", file=sys.stderr)
        return 3
    failed = 0
    print(f"{'planted':20} {'named':>8} {'also named':>11} {'unclear':>8} {'seconds':>8}")
    with tempfile.TemporaryDirectory() as folder, Bed(equal_hosts(asked.hosts)) as bed:
        for kind, draw_one in KINDS.items():
            if asked.only and asked.only not in kind:
                continue
            draw = random.Random(f"{asked.seed} {kind}")
            named = more = unclear = 0
            took_s = []
            for number in range(asked.placements):
                planted = draw_one(bed.names, draw)
                plant(bed, planted)
                start_s = time.monotonic()
                code, document = health(bed, Path(folder) / f"{kind} {number}.db", "--time", asked.time)
                took_s.append(time.monotonic() - start_s)
                seen = named_in(document)
                named += planted.named <= seen
                more += bool(seen - planted.named)
                unclear += bool(document["not_checked"])
                if seen != planted.named or code != (1 if planted.named else 0):
                    failed += 1
                    print(f"  {kind} {number}: {sorted(planted.named)}, but {sorted(seen)}, exit code {code}: ")
                    print(f"    {document['not_checked']}", flush=True)
            middle_s = sorted(took_s)[len(took_s) // 2]
            of = asked.placements
            print(f"{kind:20} {named:>4}/{of:<3} {more:>8}/{of:<3}{unclear:>5}/{of:<3}{middle_s:>8.0f}", flush=True)
    return 1 if failed else 0
