"""Every option of a command that measures changes just its field of the plan, and the shown plan is the stored one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.cli.support import Cli, document

from hockney.cli import execute
from hockney.cli.compare import compare as compare_command
from hockney.cli.run import run as run_command
from hockney.errors import UsageError
from hockney.machine.placement import choose_cpus
from hockney.measure.plan import Plan
from hockney.measure.recorder import Lab
from hockney.measure.run import Variant
from hockney.results.store import Store

BASE = {
    "--transport": "shm", "--ranks": "2", "--bytes": "8,64", "--option": "window=2", "--precision": "90%",
    "--time": "30s", "--launches": "1", "--limit": "30s",
}  # fmt: skip
# An option -> its change of the plan, or of every point.
CHANGES: dict[str, tuple[str | None, dict[str, Any]]] = {
    "--transport": ("threads", {"transport": {"threads"}}),
    "--ranks": ("3", {"ranks": {3}}),
    "--bytes": ("16", {"bytes": {16}}),
    "--option": ("window=4", {"options": {(("window", "4"),)}}),
    "--precision": ("5%", {"precision": 0.05}),
    "--time": ("40s", {"time_s": 40.0}),
    "--launches": ("2", {"launches": 2, "more_launches": True}),
    "--cpus": ("0", {"cpus": [0], "oversubscribe": True}),
    "--map": ("node", {"map_by": "node"}),
    "--limit": ("25s", {"timeout_s": 25, "start_limit_s": 25}),
    "--launcher": ("ssh", {"launcher": "ssh"}),
    "--refine": (None, {"refine": [["shm", "oneway", 2, [["window", "2"]]]], "exact": True}),
    "--oversubscribe": (None, {"oversubscribe": True}),
    "--background": (
        "bulk:2",
        {
            "background": {"name": "bulk", "ranks": 2, "hosts": [], "cpus": list(choose_cpus(4)[2:])},
            "options": {(("window", "2"),), (("background", "bulk"), ("window", "2"))},
            "cpus": list(choose_cpus(2)),
            "oversubscribe": True,
        },
    ),
}
RUN_ALONE = {"--refine", "--launcher", "--background", "--map"}  # not of compare --interleave
NOT_IN_THE_PLAN = {
    "--label",
    "--resume",
    "--csv",
    "--quiet",
    "--dry-run",
    "--json",
    "--store",
    "--hosts",
    "--hostfile",
    "--per-node",
    "--interface",
    "--machine",
}


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
    monkeypatch.setattr("hockney.measure.plan.usable_cpus", lambda: (0, 1, 2, 3))
    value, changed = CHANGES[option]
    more = {"--oversubscribe": None} if option in ("--cpus", "--background") else {}
    common = ["run", "oneway", "--dry-run", "--json"]
    before = facts(document(capsys, *common, *arguments(dict(BASE))))
    after = facts(document(capsys, *common, *arguments({**BASE, **more, option: value})))
    assert {name: after[name] for name in after if after[name] != before[name]} == changed


def test_distances_are_read_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "distances"
    file.write_text("1, -1\n65\n")
    words = ("run", "neighbor_alltoall", "--dry-run", "--json", "-t", "shm", "-n", "2", "-o", f"distances={file}")
    assert facts(document(capsys, *words))["options"] == {(("distances", "+1-1+65"),)}


@pytest.mark.parametrize(
    ("word", "options", "size"),
    [
        ("fragment=lognormal:0.5", {"sigma_percent": "50"}, None),
        ("fragment=FILE", {"fragment": "+100+200+600"}, 300),
    ],
)
def test_fragments_of_events_have_sizes_of_a_distribution_or_a_file(
    word: str, options: dict[str, str], size: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file also gives the mean, unless --bytes does."""
    file = tmp_path / "sizes"
    file.write_text("600, 100\n200\n")
    shape = ("run", "eventbuilder", "--dry-run", "--json", "-t", "unix", "-n", "3", "--oversubscribe")
    words = (*shape, "-o", word.replace("FILE", str(file)))
    known = facts(document(capsys, *words, "-o", "in_flight=4"))
    assert {name: dict(*known["options"])[name] for name in options} == options
    assert size is None or known["bytes"] == {size}
    assert facts(document(capsys, *words, "--bytes", "4K", "-o", "in_flight=4"))["bytes"] == {4096}


def test_many_sizes_become_classes_with_the_same_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sizes"
    file.write_text(" ".join(str(10 * number) for number in range(1, 641)))
    words = (
        "run",
        "eventbuilder",
        "--dry-run",
        "--json",
        "-t",
        "unix",
        "-n",
        "3",
        "--oversubscribe",
        "-o",
        f"fragment={file}",
    )
    (options,) = facts(document(capsys, *words))["options"]
    sizes = [int(size) for size in dict(options)["fragment"].split("+")[1:]]
    assert (len(sizes), sizes[0], sum(sizes)) == (64, 55, 64 * 3205)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("fragment=lognormal:9", "fragment=lognormal:9 is no distribution: write for example lognormal:0.5"),
        ("fragment=lognormal:0", "fragment=lognormal:0 is no distribution"),
        ("fragment=FILE", "'12K' in FILE is no size of a fragment: write whole numbers of bytes such as 512 2048"),
        ("fragment=nofile", "cannot read the sizes of fragments nofile: no such file or directory"),
    ],
)
def test_wrong_fragments_are_refused(word: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sizes"
    file.write_text("8 12K")
    assert (
        execute(["run", "eventbuilder", "-t", "unix", "-n", "3", "-o", *word.replace("FILE", str(file)).split()]) == 2
    )
    assert said.replace("FILE", str(file)) in capsys.readouterr().err


def test_hosts_are_in_the_plan_and_mpi_alone_runs_there(capsys: pytest.CaptureFixture[str]) -> None:
    shown = document(
        capsys, "run", "oneway", "--dry-run", "--json", *arguments({**BASE, "--transport": "tcp", "--hosts": "a,b"})
    )
    assert shown["plan"]["hosts"] == ["a", "b"]
    assert facts(shown)["transport"] == {"tcp", "tcp/2"}
    assert (shown["plan"]["map_by"], shown["plan"]["interface"]) == ("core", None)


@pytest.mark.parametrize(("limit", "timeout_s"), [("1s", 1), ("24h", 86400), ("0.9s", None), ("86401s", None)])
def test_the_time_limit_of_a_point_is_a_second_to_a_day(
    limit: str, timeout_s: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "oneway", "-t", "shm", "--bytes", "8", "--limit", limit, "--dry-run", "--json"]
    assert execute(words) == (2 if timeout_s is None else 0)
    printed = capsys.readouterr()
    assert ("--limit is not a time limit" in printed.err) == (timeout_s is None)
    assert timeout_s is None or json.loads(printed.out)["plan"]["timeout_s"] == timeout_s


def test_slots_that_are_asked_for_are_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hosts"
    path.write_text("n1 slots=2\nn2 slots=3\n")
    for hosts in (["--hosts", "n1:2,n2:3"], ["--hostfile", str(path)]):
        shown = document(capsys, "run", "barrier", "-t", "tcp", *hosts, "--dry-run", "--json")
        assert max(facts(shown)["ranks"]) == 5


def test_the_map_and_the_interface_of_hosts_are_in_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    words: dict[str, str | None] = {**BASE, "--transport": "tcp", "--hosts": "a,b"}
    words |= {"--map": "socket", "--interface": "ib0"}
    shown = document(capsys, "run", "oneway", "--dry-run", "--json", *arguments(words))
    assert (shown["plan"]["map_by"], shown["plan"]["interface"]) == ("socket", "ib0")


@pytest.mark.parametrize(
    ("words", "points"),
    [
        ("-t tcp --per-node 1,2", {("tcp/1", 2), ("tcp/2", 2), ("tcp/2", 3)}),  # three ranks: more than one on each
        ("-t tcp/2,tcp:spin/1", {("tcp/2", 2), ("tcp/2", 3), ("tcp:spin/1", 2)}),
    ],
)
def test_ranks_fill_hosts_as_an_option_or_the_name_of_a_transport_says(
    words: str, points: set[tuple[str, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = document(capsys, *f"run oneway --bytes 8 -n 2,3 --time 30s --dry-run --json --hosts a,b {words}".split())
    assert {(point["transport"], point["ranks"]) for point in shown["points"]} == points


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("-t tcp --per-node 2", "--per-node places ranks on several hosts"),
        ("-t tcp --per-node 2 --hosts a", "--per-node places ranks on several hosts"),
        ("-t tcp --per-node 0 --hosts a,b", "'0' is not a number of per-node"),
        ("-t shm --map slot", "slot"),
        ("-t shm --map node --background bulk", "--background places all ranks itself: name the CPUs with --cpus"),
        ("-t tcp --interface eth0", "--interface is for messages between hosts: name them with --hosts"),
        ("-t tcp/2", "tcp/2 places ranks on hosts: name them with --hosts"),
        ("-t shm/2 --hosts a,b", "the transport works within one host; across hosts use -t mpi or mptcp or tcp or udp"),
        ("-t tcp/2 --hosts a:1,b", "a:1 has too few slots for 2 ranks"),
        ("-t tcp/1 --hosts a,b -n 3", "3 ranks are more than 1 on each of 2 hosts"),
    ],
)
def test_placements_that_cannot_be(words: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(f"run pingpong --bytes 8 {words}".split()) == 2
    assert why in " ".join(capsys.readouterr().err.split())


def test_the_plan_of_a_dry_run_is_the_one_that_is_stored(
    cli: Cli, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "oneway", *arguments({**BASE, "--time": "0.2s"})]
    shown = document(capsys, *words, "--dry-run", "--json")
    assert cli(*words, "--label", "mine").returncode in (0, 3)  # 3: no interval in so little time
    with Store.open(tmp_path / "results.db", readonly=True) as store:
        stored = store.run(1)
        points = [row.point for row in store.points(1)]
    assert stored.info.label == "mine"
    assert stored.info.plan == shown["plan"]
    assert [(p.transport, p.pattern, p.ranks, p.bytes, dict(p.options)) for p in points] == [
        (p["transport"], p["pattern"], p["ranks"], p["bytes"], p["options"]) for p in shown["points"]
    ]


# ---- commands with separate options of measuring ---------------------------------------------------------------------


class Stopped(UsageError):
    """Ends a command where it would measure."""


def plan_of_quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *words: str) -> tuple[Plan, Mapping[str, Any]]:
    seen: list[tuple[Plan, Mapping[str, Any]]] = []

    def measure(plan: Plan, *_: object, **more: Any) -> None:
        seen.append((plan, more))
        raise Stopped("here")

    monkeypatch.setattr("hockney.measure.run.measure", measure)
    assert execute(["quick", *words, "--store", str(tmp_path / "r.db")]) == 2
    (only,) = seen
    return only


def changed_fields(plan: Plan, than: Plan) -> set[str]:
    before = than.as_json() | {"points": than.points}
    after = plan.as_json() | {"points": plan.points}
    return {name for name, value in after.items() if value != before[name]}


@pytest.mark.parametrize(
    ("words", "changed"),
    [(("--time", "5s"), {"time_s", "timeout_s"}), (("--cpus", "0,1"), {"cpus"})],
)
def test_an_option_of_quick_changes_just_its_field(
    words: tuple[str, ...], changed: set[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("hockney.measure.plan.usable_cpus", lambda: (0, 1, 2, 3))
    before, _ = plan_of_quick(monkeypatch, tmp_path)
    after, more = plan_of_quick(monkeypatch, tmp_path, *words, "--label", "mine")
    assert changed_fields(after, before) == changed
    assert more["label"] == "mine"


INTERLEAVED = ["compare", "oneway", "--interleave", "--base-env", "A=1", "--new-env", "A=2"]


def variants_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *words: str) -> tuple[Variant, Variant]:
    seen: list[tuple[Variant, Variant]] = []

    def measure(variants: tuple[Variant, Variant], *_: object, **__: object) -> None:
        seen.append(variants)
        raise Stopped("here")

    monkeypatch.setattr("hockney.measure.interleave.measure", measure)
    assert execute([*words, "--store", str(tmp_path / "r.db")]) == 2
    (only,) = seen
    return only


def facts_of(plan: Plan) -> dict[str, Any]:
    points = [
        {"transport": point.transport, "ranks": point.ranks, "bytes": point.bytes, "options": dict(point.options)}
        for point in plan.points
    ]
    return facts({"plan": json.loads(json.dumps(plan.as_json())), "points": points})


@pytest.mark.parametrize("option", sorted(CHANGES.keys() - RUN_ALONE))
def test_an_option_of_run_changes_both_variants_alike(
    option: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("hockney.measure.plan.usable_cpus", lambda: (0, 1, 2, 3))
    base = {**BASE, "--launches": "6"}
    value, changed = CHANGES[option]
    if option == "--launches":
        value, changed = "7", {"launches": 7}
    more = {"--oversubscribe": None} if option == "--cpus" else {}
    before = [facts_of(side.plan) for side in variants_of(monkeypatch, tmp_path, *INTERLEAVED, *arguments(dict(base)))]
    words = arguments({**base, **more, option: value})
    after = [facts_of(side.plan) for side in variants_of(monkeypatch, tmp_path, *INTERLEAVED, *words)]
    for old, new in zip(before, after, strict=True):
        assert {name: new[name] for name in new if new[name] != old[name]} == changed


def test_each_side_has_its_own_environment_transport_and_label(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["compare", "oneway", "--interleave", "--base-transport", "shm", "--new-transport", "threads"]
    more = ["--base-env", "A=1", "--new-env", "B=2", "--label", "mine"]
    base, new = variants_of(monkeypatch, tmp_path, *words, *more)
    assert ({point.transport for point in base.plan.points}, base.label) == ({"shm"}, "mine-base")
    assert ({point.transport for point in new.plan.points}, new.label) == ({"threads"}, "mine-new")
    assert (base.environment, new.environment) == ({"A": "1"}, {"B": "2"})


def test_variants_may_differ_in_their_transport_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    words = ["compare", "oneway", "--interleave", "--launches", "6", "--base-transport"]
    base, new = variants_of(monkeypatch, tmp_path, *words, "shm", "--new-transport", "threads")
    assert [{point.transport for point in side.plan.points} for side in (base, new)] == [{"shm"}, {"threads"}]
    assert (base.plan.limits.launches, base.environment, new.environment) == (6, {}, {})


def test_every_option_of_compare_is_in_the_plan_or_named_here() -> None:
    options = {max(param.opts, key=len) for param in compare_command.params if param.opts[0].startswith("-")}
    sides = {f"--{side}-{what}" for side in ("base", "new") for what in ("env", "transport")}
    others = {"--interleave", "--label", "--margin", "--all", "--json", "--store", "--hosts", "--quiet"}
    assert options == (CHANGES.keys() - RUN_ALONE) | sides | others


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (("--max-slowdown", "7%"), {"max_slowdown": 0.07}),
        (("--time", "3s"), {"time_s": 3.0}),
        (("--patience", "9s"), {"patience_s": 9.0}),
    ],
)
def test_an_option_of_check_changes_just_its_field(
    words: tuple[str, ...], changed: dict[str, Any], filled_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []

    def check(baseline: str, lab: Lab, **given: Any) -> None:
        seen.append({"baseline": baseline, **given})
        raise Stopped("here")

    monkeypatch.setattr("hockney.cli.verdicts.check", check)
    for more in ((), words):
        assert execute(["check", "--baseline", "last", *more, "--store", str(filled_store)]) == 2
    before, after = seen
    assert before["baseline"] == "last"
    assert (before["max_slowdown"], before["time_s"], before["patience_s"]) == (0.05, None, 120.0)
    assert {name: after[name] for name in after if after[name] != before[name]} == changed


def test_a_dry_run_refuses_a_label_as_the_run_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["run", "pingpong", "-t", "shm", "--label", "5", "--dry-run"]) == 2
    assert "'5' cannot be a label" in capsys.readouterr().err


def test_a_file_with_too_many_distances_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "distances"
    file.write_text("1 " * 65)
    assert execute(["run", "neighbor_alltoall", "-t", "shm", "-o", f"distances={file}"]) == 2
    assert capsys.readouterr().err == f"hockney: {file} has 65 distances: 64 are the most\n"


def test_distances_take_the_place_of_the_grid_of_a_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("run", "osu_neighbor_alltoall", "--dry-run", "--json", "-t", "shm", "-n", "2", "--bytes", "8")
    assert dict(*facts(document(capsys, *words))["options"])["ny"] == "1"
    (options,) = facts(document(capsys, *words, "-o", "distances=+1"))["options"]
    assert dict(options)["distances"] == "+1"
    assert "ny" not in dict(options)
