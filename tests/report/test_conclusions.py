"""Conclusions of the reports, judged by figures: published ones, and simulated ones."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.report.cells import point, report_of, shown
from tests.report.runs import FACTS, Made
from tests.report.test_classic import RECORD, curve, stream

from hockney.archive import benchmarks, conclusions, published, reports
from hockney.report.classic.conclusions import Conclusion, evaluate
from hockney.report.classic.quantities import QUANTITIES

ALL = [(report, spec) for report in reports() for spec in conclusions(report)]


def concluded(path: Path, suite: str, made: list[Made], **info: Any) -> dict[str, Conclusion]:
    return {conclusion.id: conclusion for conclusion in report_of(path, suite, made, **info).conclusions}


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
        ("a / b > 1", {"a": (1.0, 1.0), "b": (0.0, 1.0)}, None),
        ("a / b > 1", {"a": (1.0, 1.0), "b": (-1.0, 0.0)}, None),
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
def test_a_conclusion_names_what_it_uses_and_says_in_words_when_it_holds(report: str, spec: dict[str, Any]) -> None:
    rows = spec.get("rows", {})
    assert {node.id for node in ast.walk(ast.parse(spec.get("holds", "0"))) if isinstance(node, ast.Name)} == set(rows)
    assert ("holds" in spec) == ("when" in spec) == bool(rows)
    assert "holds" in spec or spec["untestable"]
    titles = {each.title for each in benchmarks(report)}
    assert titles.issuperset(spec.get("of", ()))
    for where in rows.values():
        if "where" in where:
            each = next(iter(spec.get("each", {"": [None]}).items()))
            wanted = [{**where["where"], **({each[0]: value} if each[0] else {})} for value in each[1]]
            assert all(sum(figure.matches(one) for figure in published(report)) == 1 for one in wanted)
        else:
            assert where["quantity"] in QUANTITIES


@pytest.mark.parametrize(("report", "spec"), ALL, ids=[spec["id"] for _, spec in ALL])
def test_a_conclusion_holds_for_the_published_figures(report: str, spec: dict[str, Any]) -> None:
    """If all of its figures were published, the expression agrees with the report."""
    rows = spec.get("rows", {})
    if not rows or not all("where" in where for where in rows.values()):
        assert spec["published"]  # in words: figures do not say it
        return
    for more in ({key: value} for key, values in spec.get("each", {"unit": [None]}).items() for value in values):
        more = {} if None in more.values() else more
        found = {
            name: next(figure.value for figure in published(report) if figure.matches({**where["where"], **more}))
            for name, where in rows.items()
        }
        assert evaluate(spec["holds"], {name: (value or 0, value or 0) for name, value in found.items()}) is True


def ways(time_ns: dict[str, float], **given: Any) -> list[Made]:
    sizes = (1024, 4096, 16384, 1 << 20, 4 << 20)
    return [made for name, cost in time_ns.items() for made in curve(name, cost, sizes, **given)]


def test_every_name_finds_its_row_and_column(tmp_path: Path) -> None:
    paragon = ways({"tcp": 1, "pvm@3.4.6:psend": 2, "pvm@3.4.6:inplace": 3, "pvm@3.4.6:raw": 4})
    paragon += [
        Made(point("pvm@3.4.6:raw", "pingpong", 2, 65536, receive=receive), time_ns, divisor=2)
        for receive, time_ns in (("posted", 1000), ("probe", 1500))
    ]
    verdicts = concluded(tmp_path, "paragon", paragon)
    assert {name: conclusion.judgements[0].verdict for name, conclusion in verdicts.items()} == {
        "paragon-native": "holds",
        "paragon-psend": "does not hold",
        "paragon-inplace": "holds",
        "paragon-raw": "holds",
        "paragon-beyond-1MB": "does not hold",
        "paragon-page": "does not hold",
        "paragon-unposted": "holds",
    }


@pytest.mark.parametrize(
    ("slow", "verdict", "reason"),
    [
        ({}, "holds", "with 6 of 6 numbers of senders"),
        ({6: 2.0}, "does not hold", "with 5 of 6 numbers of senders; not with 6"),
    ],
)
def test_a_claim_about_all_senders_holds_for_each(
    slow: dict[int, float], verdict: str, reason: str, tmp_path: Path
) -> None:
    made = [
        Made(
            point("shm", "pushfarm", senders + receivers + 1, 16, senders=senders),
            1000 * (0.9 if receivers == 26 else 1) * (slow.get(senders, 1) if receivers == 26 else 1),
        )
        for senders in (2, 4, 6, 8, 16, 26)
        for receivers in (16, 26)
    ]
    [only] = concluded(tmp_path, "atlas", made)["atlas-push-26"].judgements
    assert (only.verdict, only.reason) == (verdict, reason)
    assert set(only.figures) == {"of_26", "of_16"}


def test_native_is_the_fastest_only_if_no_way_to_send_is_faster(tmp_path: Path) -> None:
    """Slower than one way, faster than another: psend alone does not say it."""
    made = ways({"tcp": 2, "pvm@3.4.6:psend": 3, "pvm@3.4.6:inplace": 1})
    [only] = concluded(tmp_path, "paragon", made)["paragon-native"].judgements
    assert only.verdict == "does not hold"


def test_figures_of_different_machine_states_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [*ways({"tcp": 1}), *ways({"pvm@3.4.6:psend": 3}, floor_ns=300.0)]
    [only] = concluded(tmp_path, "paragon", made)["paragon-native"].judgements
    assert only.verdict == "inconclusive"
    assert str(only.reason).startswith("the figures belong to several machine states: native ")
    assert "belong to several machine states" in " ".join(shown(tmp_path, capsys, "--page").split())


def test_a_line_through_sizes_of_several_states_says_so(tmp_path: Path) -> None:
    made = [replace(one, floor_ns=300.0 if one.point.bytes == 1000 else 30.0) for one in streams()]
    [only] = concluded(tmp_path, "ancor", made)["ancor-overhead"].judgements
    assert (only.verdict, {figure.state for figure in only.figures.values()}) == ("inconclusive", {"several states"})


def test_the_page_size_is_that_of_this_machine(tmp_path: Path) -> None:
    """A 16 KiB page has no blip at 4 KiB; a faster size is as much a blip as a slower one."""
    made = [
        replace(one, time_ns=one.time_ns * (0.8 if one.point.bytes == 4096 else 1))
        for one in ways({"pvm@3.4.6:raw": 1})
    ]
    for page_bytes, verdict in ((4096, "holds"), (16384, "not testable")):
        facts = {**FACTS, "memory": {"page_bytes": page_bytes}}
        [only] = concluded(tmp_path, "paragon", made, facts=facts)["paragon-page"].judgements
        assert only.verdict == verdict


def streams() -> list[Made]:
    return [
        stream(
            size,
            **({} if write == "blocking" else {"write": write}),
            **({} if read == "blocking" else {"read": read}),
            **({"source": 1} if source else {}),
        )
        for write in ("blocking", "nonblocking")
        for read in ("blocking", "nonblocking")
        for source in (0, 1)
        for size in (1, 1000, 65500)
    ]


def test_each_transport_is_judged_with_its_own_figures(tmp_path: Path) -> None:
    """Modes that take the same time: no blocking write is dearer, and a read takes as long."""
    faster = [replace(one, point=replace(one.point, transport="unix"), cpu_share=(1.0, 1.0)) for one in streams()]
    verdicts = concluded(tmp_path, "ancor", [*streams(), *faster])
    reads = verdicts["ancor-blocking-read"].judgements
    assert {judgement.on: judgement.verdict for judgement in reads} == {"tcp": "holds", "unix": "holds"}
    assert {judgement.verdict for judgement in verdicts["ancor-overhead"].judgements} == {"does not hold"}
    cpu = {judgement.on: judgement for judgement in verdicts["ancor-receiver"].judgements}
    assert (cpu["tcp"].verdict, cpu["unix"].verdict) == ("holds", "does not hold")
    assert [(name, value.unit, round(value.number or 0)) for name, value in cpu["tcp"].figures.items()] == [
        ("receiver", "%", 15)
    ]
    assert verdicts["ancor-direction"].judgements[0].reason == "both ends are the same host"
    assert verdicts["ancor-computing"].judgements[0].reason == "not asked for in this run"
    # Buffers are full twice for each write, and empty for half of the reads; all modes take the same time.
    names = ("read-slower", "write-longer", "read-shorter")
    found = [verdicts[f"ancor-{name}"].judgements[0].verdict for name in names]
    assert found[0] == "holds"
    assert set(found[1:]) <= {"does not hold", "inconclusive"}


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

    verdicts = concluded(tmp_path, "ancor", [slowed(made) for made in streams()], hosts=("a", "b"))
    assert [judgement.verdict for judgement in verdicts["ancor-direction"].judgements] == [verdict]


def test_computing_between_messages_is_set_against_the_plain_stream(tmp_path: Path) -> None:
    computing = stream(65500, delay_us=100, receiver_delay_us=100)
    verdicts = concluded(tmp_path, "ancor", [*streams(), replace(computing, by_rank=(101_000, 102_000))])
    [only] = verdicts["ancor-computing"].judgements
    assert only.verdict == "holds"
    assert [round(value.number or 0) for value in only.figures.values()] == [642, 970]


@pytest.mark.parametrize(("machine", "is_input"), [("ancor", True), ("paragon", False), (None, False)])
def test_on_its_own_model_a_conclusion_names_the_input_that_it_follows_from(
    tmp_path: Path, machine: str | None, is_input: bool
) -> None:
    made = [replace(one, point=replace(one.point, transport="sim@made-up")) for one in streams()]
    facts = {**FACTS, "models": {"sim@made-up": {**RECORD, "machine": machine}}}
    [only] = concluded(tmp_path, "ancor", made, facts=facts)["ancor-receiver"].judgements
    said = "by construction: read, taken 5 % below this bound" if is_input else None
    assert (only.verdict, only.reason) == ("holds", said)


def test_conclusions_without_figures_are_not_testable_and_without_intervals_inconclusive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts = concluded(tmp_path, "ancor", [replace(one, measurements=2) for one in streams()])
    assert verdicts["ancor-receiver"].judgements[0].verdict == "inconclusive"
    verdicts = concluded(tmp_path, "t3d", [Made(point("shm", "putpong", 2, 8), 200, divisor=2)])
    [only] = verdicts["t3d-puts"].judgements
    assert (only.verdict, only.reason) == ("not testable", "not asked for in this run")
    assert "CPUs is unknown" in str(verdicts["t3d-fewer-messages"].judgements[0].reason)
    text = " ".join(shown(tmp_path, capsys).split())
    assert "put 2.076 us, message 77 us" in text
    document = json.loads(shown(tmp_path, capsys, "--json"))
    assert [each["id"] for each in document["classic"]["conclusions"]] == ["t3d-puts", "t3d-fewer-messages"]


def test_the_best_transport_represents_its_kind(tmp_path: Path) -> None:
    made = [
        Made(point("shm", "putpong", 2, 8), 200, divisor=2),
        Made(point("mpi@a:rma", "putpong", 2, 8), 900, divisor=2),
        Made(point("shm", "pingpong", 2, 8), 100, divisor=2),
        Made(point("mpi@a", "pingpong", 2, 8), 700, divisor=2),
        Made(point("pvm@3.4.6", "pingpong", 2, 8), 9000, divisor=2),
    ]
    [only] = concluded(tmp_path, "t3d", made[:3])["t3d-puts"].judgements
    assert (only.verdict, only.reason) == ("not testable", "no message of MPI or PVM was measured")
    [only] = concluded(tmp_path, "t3d", made)["t3d-puts"].judgements
    assert only.verdict == "holds"
    assert [round(1e3 * (value.number or 0)) for value in only.figures.values()] == [200, 700]
