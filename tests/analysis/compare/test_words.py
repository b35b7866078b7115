"""What `compare` says of all it found: beyond which margin, and what one run has alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.analysis.compare.made import add_run, curve, slower
from tests.builders import make_point
from tests.cli.support import call

from hockney.results.store import Store


@pytest.mark.parametrize(
    ("margin", "none"), [((), "o difference seen"), (("--margin", "12.5 %"), "o difference beyond 12.5 % seen")]
)
def test_what_shows_no_difference_is_said_with_the_margin_in_force(
    tmp_path: Path, margin: tuple[str, ...], none: str
) -> None:
    with Store.open(tmp_path / "results.db") as opened:
        add_run(opened, curve())
        add_run(opened, slower(curve(), 1.3, 8192, 65536), seed=2)
    said = call(tmp_path, "compare", "1", "2", *margin).stdout
    assert f"Verdict: 4 slower, 3 without a {none.removeprefix('o ')}\n" in said
    assert f"\nN{none}: 3 series\n" in said
    assert f"pingpong on shm, 2 ranks: n{none} from 8 B to 1 KiB (near; time " in said
    document = json.loads(call(tmp_path, "compare", "1", "2", "--json", *margin).stdout)
    assert document["margin"] == (1.125 if margin else 1.0)
    assert [f": n{none} from 8 B to 1 KiB" in one["sentence"] for one in document["ranges"]] == [True, False]
    assert [one["verdict"] for one in document["ranges"]] == ["no difference seen", "slower"]


def test_command_names_what_one_run_has_alone_by_pattern_with_its_sizes(tmp_path: Path) -> None:
    few, barrier = curve("pipe", (8, 64)) | curve("null", (64,)), {make_point(0, "tcp", pattern="barrier"): 900.0}
    with Store.open(tmp_path / "results.db") as opened:
        add_run(opened, {**curve("tcp"), **curve("unix"), **few, **barrier, **curve("shm")})
        add_run(opened, curve("shm"), seed=2)
    said = " ".join(call(tmp_path, "compare", "1", "2").stdout.split())
    assert (
        "only in run 1: 18 series (pingpong on tcp, unix at 7 sizes from 8 B to 64 KiB; "
        "pingpong on pipe at 8 B and 64 B; pingpong on null at 64 B; barrier on tcp)"
    ) in said
