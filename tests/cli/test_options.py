"""Every option of `hockney run` changes just its field of the plan, and the plan that is shown is the one stored."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.support import Cli, document

from hockney.cli.run import run as run_command
from hockney.results.store import Store

BASE = {
    "--transport": "shm", "--ranks": "2", "--bytes": "8,64", "--option": "window=2", "--precision": "90%",
    "--time": "30s", "--launches": "1", "--limit": "30s",
}  # fmt: skip
# What it takes -> what changes in the plan, or in every point.
CHANGES: dict[str, tuple[str | None, dict[str, Any]]] = {
    "--transport": ("threads", {"transport": {"threads"}}),
    "--ranks": ("3", {"ranks": {3}}),
    "--bytes": ("16", {"bytes": {16}}),
    "--option": ("window=4", {"options": {(("window", "4"),)}}),
    "--precision": ("5%", {"precision": 0.05}),
    "--time": ("40s", {"time_s": 40.0}),
    "--launches": ("2", {"launches": 2, "more_launches": True}),
    "--cpus": ("0", {"cpus": [0], "oversubscribe": True}),
    "--limit": ("25s", {"timeout_s": 25, "start_limit_s": 25}),
    "--refine": (None, {"refine": [["shm", "oneway", 2, [["window", "2"]]]], "exact": True}),
    "--oversubscribe": (None, {"oversubscribe": True}),
}
NOT_IN_THE_PLAN = {"--label", "--resume", "--csv", "--quiet", "--dry-run", "--json", "--store", "--hosts"}


def arguments(options: dict[str, str | None]) -> list[str]:
    return [word for pair in options.items() for word in pair if word is not None]


def facts(shown: dict[str, Any]) -> dict[str, Any]:
    """The fields of a plan, and of all its points together."""
    names = ("transport", "ranks", "bytes")
    points = {name: {point[name] for point in shown["points"]} for name in names}
    options = {tuple(sorted(point["options"].items())) for point in shown["points"]}
    return {**shown["plan"], **points, "options": options}


def test_every_option_is_either_in_the_plan_or_named_here() -> None:
    options = {max(param.opts, key=len) for param in run_command.params if param.opts[0].startswith("-")}
    assert options == CHANGES.keys() | NOT_IN_THE_PLAN


@pytest.mark.parametrize("option", CHANGES)
def test_an_option_changes_just_its_field_of_the_plan(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hockney.cli.measuring.usable_cpus", lambda: (0, 1, 2, 3))
    value, changed = CHANGES[option]
    more = {"--oversubscribe": None} if option == "--cpus" else {}
    common = ["run", "oneway", "--dry-run", "--json"]
    before = facts(document(capsys, *common, *arguments(dict(BASE))))
    after = facts(document(capsys, *common, *arguments({**BASE, **more, option: value})))
    assert {name: after[name] for name in after if after[name] != before[name]} == changed


def test_hosts_are_in_the_plan_and_mpi_alone_runs_there(capsys: pytest.CaptureFixture[str]) -> None:
    shown = document(
        capsys, "run", "oneway", "--dry-run", "--json", *arguments({**BASE, "--transport": "tcp", "--hosts": "a,b"})
    )
    assert shown["plan"]["hosts"] == ["a", "b"]


def test_the_plan_of_a_dry_run_is_the_one_that_is_stored(
    cli: Cli, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "oneway", *arguments({**BASE, "--time": "0.2s"})]
    shown = document(capsys, *words, "--dry-run", "--json")
    assert cli(*words, "--label", "mine").returncode == 0
    with Store.open(tmp_path / "results.db", readonly=True) as store:
        stored = store.run(1)
        points = [row.point for row in store.points(1)]
    assert stored.info.label == "mine"
    assert stored.info.plan == shown["plan"]
    assert [(p.transport, p.pattern, p.ranks, p.bytes, dict(p.options)) for p in points] == [
        (p["transport"], p["pattern"], p["ranks"], p["bytes"], p["options"]) for p in shown["points"]
    ]
