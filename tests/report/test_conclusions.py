"""What the reports conclude, judged by figures: those that they published themselves, and made-up ones."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.cells import point
from tests.report.runs import Made, store_run, stored
from tests.report.test_classic import ONE_OF_EACH, stream

from hockney.archive import conclusions, reports
from hockney.cli import run as call
from hockney.report.classic import make_report
from hockney.report.classic.conclusions import Conclusion, evaluate
from hockney.store import Store

ALL = [(report, spec) for report in reports() for spec in conclusions(report)]


def concluded(path: Path, suite: str, made: list[Made], hosts: tuple[str, ...] = ()) -> dict[str, Conclusion]:
    store_run(path / "r.db", suite, made, hosts=hosts)
    with Store.open(path / "r.db") as store:
        report = make_report(stored(store))
    assert report is not None
    return {one.id: one for one in report.conclusions}


# ---- the expression --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "bounds", "holds"),
    [
        ("a / b > 1.2", {"a": (1.3, 1.4), "b": (1.0, 1.0)}, True),
        ("a / b > 1.2", {"a": (1.3, 1.4), "b": (1.0, 1.1)}, None),  # 1.3 / 1.1 is below
        ("a / b > 1.2", {"a": (1.0, 1.1), "b": (1.0, 1.0)}, False),
        ("0.9 < a < 1.1", {"a": (0.95, 1.05)}, True),
        ("0.9 < a < 1.1", {"a": (1.05, 1.15)}, None),
        ("0.9 < a < 1.1", {"a": (1.2, 1.3)}, False),
        ("a > 1 and b > 1", {"a": (2.0, 3.0), "b": (0.0, 0.5)}, False),
        ("a > 1 and b > 1", {"a": (0.5, 3.0), "b": (2.0, 3.0)}, None),
        ("a <= 20", {"a": (19.0, 20.0)}, True),
        ("a - b < 0", {"a": (1.0, 2.0), "b": (3.0, 4.0)}, True),
        ("a / b > 1", {"a": (1.0, 1.0), "b": (-1.0, 1.0)}, None),
    ],
)
def test_an_expression_holds_for_whole_intervals(
    expression: str, bounds: dict[str, tuple[float, float]], holds: bool | None
) -> None:
    assert evaluate(expression, bounds) is holds


@pytest.mark.parametrize("expression", ["a", "f(a) > 1", "a ** 2 > 1", "a != 1", "a > 'b'", "a > b.c", "not a > 1"])
def test_nothing_else_is_evaluated(expression: str) -> None:
    with pytest.raises(ValueError, match="no "):
        evaluate(expression, {"a": (1.0, 1.0), "b": (1.0, 1.0)})


# ---- the data --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("report", "spec"), ALL, ids=[spec["id"] for _, spec in ALL])
def test_a_conclusion_holds_of_what_was_published(report: str, spec: dict[str, object], tmp_path: Path) -> None:
    """Where all of its figures were: the expression then says what the report says."""
    found = concluded(tmp_path, report, [ONE_OF_EACH[report]])[str(spec["id"])]
    assert found.holds or found.judgements[0].reason
    named = {node.id for node in ast.walk(ast.parse(found.holds or "0")) if isinstance(node, ast.Name)}
    assert named == set(spec.get("rows", {}))  # type: ignore[call-overload]
    if found.published:
        return
    values = {one.name: (one.value, one.value) for one in found.figures}
    assert found.holds
    assert evaluate(found.holds, values) is True


def test_every_name_finds_its_row_and_column(tmp_path: Path) -> None:
    ways = ("psend", "inplace", "raw")
    paragon = [
        Made(point(name, "pingpong", 2, size), cost * (1000 + size), divisor=2, bytes_per_rep=2 * size)
        for name, cost in (("shm", 1), *((f"pvm@3.4.6:{way}", cost) for cost, way in enumerate(ways, 2)))
        for size in (1024, 4096, 16384, 1 << 20, 4 << 20)
    ]
    paragon += [
        Made(point("shm", "pingpong", 2, 65536, receive=receive), time_ns, divisor=2)
        for receive, time_ns in (("posted", 1000), ("probe", 1500))
    ]
    found = concluded(tmp_path, "paragon", paragon)
    assert {name: one.judgements[0].verdict for name, one in found.items()} == {
        "paragon-native": "holds",
        "paragon-psend": "does not hold",
        "paragon-inplace": "holds",
        "paragon-raw": "holds",
        "paragon-beyond-1MB": "does not hold",
        "paragon-page": "does not hold",
        "paragon-unposted": "holds",
    }


def streams() -> list[Made]:
    return [
        stream(size, write=write, read=read, **({"source": 1} if source else {}))
        for write in ("blocking", "nonblocking")
        for read in ("blocking", "nonblocking")
        for source in (0, 1)
        for size in (1, 1000, 65500)
    ]


def test_each_transport_is_judged_with_its_own_figures(tmp_path: Path) -> None:
    """Modes that take the same time: no blocking write is dearer, and a read takes as long."""
    faster = [replace(one, point=replace(one.point, transport="unix"), cpu_share=(1.0, 1.0)) for one in streams()]
    found = concluded(tmp_path, "ancor", [*streams(), *faster])
    assert {one.on: one.verdict for one in found["ancor-blocking-read"].judgements} == {"tcp": "holds", "unix": "holds"}
    assert {one.on: one.verdict for one in found["ancor-overhead"].judgements} == {
        "tcp": "does not hold",
        "unix": "does not hold",
    }
    cpu = {one.on: one for one in found["ancor-receiver"].judgements}
    assert (cpu["tcp"].verdict, cpu["unix"].verdict) == ("holds", "does not hold")
    assert [(one.name, one.unit, round(one.value)) for one in cpu["tcp"].figures] == [("receiver", "%", 15)]
    assert found["ancor-direction"].judgements[0].reason == "both ends are the same host"
    assert found["ancor-computing"].judgements[0].reason == "not asked for in this run"


@pytest.mark.parametrize(
    ("slower", "verdict"), [({("nonblocking", 1), ("blocking", 0)}, "holds"), (set(), "inconclusive")]
)
def test_between_two_hosts_the_better_direction_is_judged(
    slower: set[tuple[str, int]], verdict: str, tmp_path: Path
) -> None:
    def slowed(one: Made) -> Made:
        options = {"write": "blocking", **dict(one.point.options)}
        if (options["write"], int(options.get("source", 0))) not in slower or one.by_rank is None:
            return one
        return replace(one, by_rank=[2 * time for time in one.by_rank])

    found = concluded(tmp_path, "ancor", [slowed(one) for one in streams()], hosts=("a", "b"))
    assert [one.verdict for one in found["ancor-direction"].judgements] == [verdict]


def test_computing_between_messages_is_set_against_the_plain_stream(tmp_path: Path) -> None:
    computing = stream(65500, compute_us=100, receiver_compute_us=100)
    found = concluded(tmp_path, "ancor", [*streams(), replace(computing, by_rank=(101_000, 102_000))])
    [only] = found["ancor-computing"].judgements
    assert (only.verdict, [round(one.value) for one in only.figures]) == ("holds", [642, 970])


def test_what_was_not_measured_is_not_testable_and_what_has_no_interval_inconclusive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [replace(one, visits=2) for one in streams()]
    found = concluded(tmp_path, "ancor", made)
    assert found["ancor-receiver"].judgements[0].verdict == "inconclusive"
    (tmp_path / "t3d").mkdir()
    puts = [Made(point("shm", "putpong", 2, 8), 200, divisor=2)]
    found = concluded(tmp_path / "t3d", "t3d", puts)
    [only] = found["t3d-puts"].judgements
    assert (only.verdict, only.reason) == ("not testable", "not asked for in this run")
    assert "CPUs lie to each other" in str(found["t3d-fewer-messages"].judgements[0].reason)
    assert call(["--store", str(tmp_path / "t3d" / "r.db"), "show", "last", "--tables"]) == 0
    text = capsys.readouterr().out
    assert "not testable here  because: not asked for in this run" in text
    assert "put 2.08 us, message 77.0 us" in text
    assert call(["--store", str(tmp_path / "t3d" / "r.db"), "show", "last", "--tables", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in document["tables"]["conclusions"]] == ["t3d-puts", "t3d-fewer-messages"]


def test_the_best_transport_of_each_kind_stands_for_it(tmp_path: Path) -> None:
    made = [
        Made(point("shm", "putpong", 2, 8), 200, divisor=2),
        Made(point("mpi@a:rma", "putpong", 2, 8), 900, divisor=2),
        Made(point("shm", "pingpong", 2, 8), 100, divisor=2),
        Made(point("mpi@a", "pingpong", 2, 8), 700, divisor=2),
        Made(point("pvm@3.4.6", "pingpong", 2, 8), 9000, divisor=2),
    ]
    [only] = concluded(tmp_path, "t3d", made)["t3d-puts"].judgements
    assert only.verdict == "holds"
    assert [round(1e3 * one.value) for one in only.figures] == [200, 700]
