"""Rules from cells, and files from rules, read as the libraries' sources read them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from hockney.analysis.compare.values import SeriesChange, Verdict
from hockney.analysis.tune.files import can_be_ruled, rule_files
from hockney.analysis.tune.race import Referee
from hockney.analysis.tune.rules import RaceCell, Rule, other_values, proved, rules_of
from hockney.model import Point
from hockney.stats.shift import Shift
from hockney.worker.errors import ProtocolError
from hockney.worker.settings import Choice

RING, TREE = Choice("ring", "4"), Choice("tree", "5")
SURE = (1.2, 1.3, 1.4)
SIZES = [0, 1, 7, 8, 9, 63, 64, 65, 511, 512, 513, 4095, 4096, 4097, 1 << 20]


def test_neighbours_with_one_winner_are_one_rule_and_doubt_ends_it() -> None:
    cells = [
        RaceCell("bcast", 4, 8, RING, SURE),
        RaceCell("bcast", 4, 512, RING, (1.5, 1.6, 1.7)),
        RaceCell("bcast", 4, 64, RING, SURE),
        RaceCell("bcast", 4, 4096, RING, (0.99, 1.3, 1.7)),  # not certain
        RaceCell("bcast", 4, 8192, RING, (1.01, 1.04, 1.07)),  # too small
        RaceCell("bcast", 4, 16384, RING, SURE),
        RaceCell("bcast", 4, 32768, TREE, SURE),
        RaceCell("bcast", 4, 65536),
        RaceCell("bcast", 8, 65536, TREE, SURE),
        RaceCell("allreduce", 8, 8, TREE, SURE),
    ]
    assert [(each.operation, each.ranks, each.least, each.most, each.winner) for each in rules_of(cells)] == [
        ("allreduce", 8, 8, 8, TREE),
        ("bcast", 4, 8, 512, RING),
        ("bcast", 4, 16384, 16384, RING),
        ("bcast", 4, 32768, 32768, TREE),
        ("bcast", 8, 65536, 65536, TREE),
    ]
    assert str(rules_of(cells)[1]) == "bcast, 4 ranks, 8 B to 512 B: ring, 1.30x to 1.60x as fast (at least 1.20x)"
    numbers = Rule("bcast", 4, 8, 64, RING, ((9, 10.2, 11), (9.5, 9.9, 11)))
    assert numbers.words == ("8 B to 64 B", "9.90x to 10.20x", "9.00x")


def change(size: int, verdict: Verdict, ratio: float) -> SeriesChange:
    shift = Shift(ratio, ratio / 1.01, ratio * 1.01, 0.95, 10, 10)
    return SeriesChange(Point("mpi", "bcast", 4, size), verdict, shift=shift)


def test_a_proof_leaves_the_sizes_at_which_it_shows_a_gain() -> None:
    faster, same, open_ = Verdict.FASTER, Verdict.SAME, Verdict.INCONCLUSIVE
    seen = [(8, faster), (36, faster), (64, faster), (288, same), (512, faster), (2304, open_), (4096, faster)]
    changes = [change(size, verdict, 0.8 if verdict is faster else 1.0) for size, verdict in seen]
    raced = [Rule("bcast", 4, 8, 2304, RING, (SURE,))]
    left = proved(raced, changes)
    assert [(rule.least, rule.most, rule.winner) for rule in left] == [(8, 64, RING), (512, 512, RING)]
    assert left[0].gains[0] == pytest.approx((1 / 0.808, 1 / 0.8, 1.01 / 0.8))
    assert proved(raced, [change(8, faster, 0.97)]) == []  # a gain below 5 %


def test_thresholds_are_proved_together_and_at_all_sizes() -> None:
    one, other = (Choice(f"{name}=1", "1", {name: "1"}, {name: 1}, is_threshold=True) for name in "TU")
    rules = [Rule("bcast", 4, 8, 8, one, (SURE,)), Rule("bcast", 4, 64, 64, other, (SURE,))]
    faster = [change(8, Verdict.FASTER, 0.8), change(64, Verdict.FASTER, 0.8)]
    assert [rule.winner for rule in proved(rules, faster)] == [one, other]
    assert proved(rules, [faster[0], change(64, Verdict.SAME, 1.0)]) == []
    assert proved(rules, [*faster, change(512, Verdict.INCONCLUSIVE, 1.0)]) == []


RULES = [
    Rule("allgather", 3, 64, 512, RING, (SURE,)),
    Rule("bcast", 4, 8, 64, RING, (SURE,)),
    Rule("bcast", 4, 512, 512, TREE, (SURE,)),
    Rule("bcast", 5, 0, 4096, TREE, (SURE,)),
    Rule("bcast", 8, 64, 64, RING, (SURE,)),
]


def wanted(operation: str, ranks: int, size: int) -> str | None:
    of = [
        each.winner.word
        for each in RULES
        if each.operation == operation and each.ranks == ranks and each.least <= size <= each.most
    ]
    return of[0] if of else None


def test_open_mpi_finds_each_rule_and_nothing_else() -> None:
    """As coll_tuned_dynamic_file.c and coll_tuned_dynamic_rules.c do it."""
    rules = [replace(rule, winner=Choice("", f"{rule.winner.word} 2 8192")) for rule in RULES]
    files = rule_files("openmpi", rules, ["a # head"])
    (text,) = files.texts.values()
    assert text.startswith("# a # head\n#")
    assert files.variables("/a/file")["OMPI_MCA_coll_tuned_dynamic_rules_filename"] == "/a/file"
    numbers = iter(int(word) for word in re.sub("#.*", "", text).split())
    tables: dict[int, list[tuple[int, list[tuple[int, int]]]]] = {}
    for _ in range(next(numbers)):
        table = tables.setdefault(next(numbers), [])
        for _ in range(next(numbers)):
            ranks, count = next(numbers), next(numbers)
            entries = [[next(numbers) for _ in range(4)] for _ in range(count)]
            table.append((ranks, [(size, algorithm) for size, algorithm, _, _ in entries]))
            assert {tuple(more) for _, algorithm, *more in entries if algorithm} <= {(2, 8192)}
    assert next(numbers, None) is None
    assert all(sizes[0][0] == 0 for table in tables.values() for _, sizes in table)
    for operation, number in (("allgather", 0), ("bcast", 7)):
        for ranks in range(1, 20):
            sizes = [entry for count, entry in tables[number] if count <= ranks][-1]
            for size in SIZES:
                total = size * ranks if operation == "allgather" else size
                found = [algorithm for least, algorithm in sizes if least <= total][-1]
                assert str(found or None) == str(wanted(operation, ranks, size)), (operation, ranks, size)


UPPER, LOWER = "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE", "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
OF_BCAST = {
    "comm_size<8": {
        "comm_hierarchy=parent": {"avg_msg_size<=0": {"algorithm=A": {}}, "avg_msg_size=any": {"algorithm=B": {}}},
        "comm_hierarchy=any": {"avg_msg_size=any": {"algorithm=C": {}}},
    },
    "comm_size=pow2": {"avg_msg_size<512": {"algorithm=D": {}}, "avg_msg_size=any": {"algorithm=E": {}}},
    "comm_size=any": {"algorithm=F": {}},
}
TREES: dict[str, Any] = {
    LOWER: {
        "collective=bcast": {"comm_type=intra": OF_BCAST, "comm_type=inter": {"algorithm=G": {}}},
        "collective=allgather": {"comm_type=intra": {"total_msg_size<=64": {"algorithm=H": {}}, "algorithm=I": {}}},
    },
    UPPER: {
        "collective=bcast": {
            "comm_type=intra": {
                "comm_hierarchy=parent": {
                    "comm_size<8": {"composition=J": {}},
                    "comm_size=any": {"composition=K": {}},
                },
                "comm_hierarchy=any": {"composition=L": {}},
            }
        },
        "collective=allgather": {"comm_type=intra": {"composition=M": {}}},
    },
}


def followed(tree: dict[str, Any], ranks: int, size: int, hierarchy: str) -> str:
    """The leaf that MPICH gets to: the first condition that holds (csel.c)."""
    key = next(key for key in tree if _holds(key, ranks, size, hierarchy))
    if key.startswith(("algorithm=", "composition=")):
        return key
    if "msg_size" in key:
        assert "comm_" not in str(tree[key]), "MPICH would evaluate it otherwise below a message's condition"
    return followed(tree[key], ranks, size, hierarchy)


def _holds(key: str, ranks: int, size: int, hierarchy: str) -> bool:
    value = {"comm_size": ranks, "avg_msg_size": size, "total_msg_size": size * ranks}
    if match := re.fullmatch(r"(\w+)<(=?)(\d+)", key):
        return value[match[1]] < int(match[3]) + bool(match[2])
    if key == "comm_size=pow2":
        return ranks in (1, 2, 4, 8, 16)
    if key.startswith(("algorithm=", "composition=")):
        return True
    return key.endswith("=any") or key in ("comm_type=intra", f"comm_hierarchy={hierarchy}")


def test_mpich_finds_each_rule_and_its_own_choice_everywhere_else() -> None:
    rules = [
        Rule(r.operation, r.ranks, r.least, r.most, Choice("", f"algorithm={r.winner.word}"), r.gains) for r in RULES
    ]
    files = rule_files("mpich", rules, ["head"], TREES)
    trees = {name: json.loads(files.texts[value.removeprefix("{file}")]) for name, value in files.environment.items()}
    flat = {"bcast": "composition=L", "allgather": "composition=M"}
    for operation in flat:
        old, new = ({name: tree[name][f"collective={operation}"] for name in tree} for tree in (TREES, trees))
        assert new[LOWER].get("comm_type=inter") == old[LOWER].get("comm_type=inter")
        for ranks in range(1, 20):
            for size in SIZES:
                for hierarchy in ("parent", "node"):
                    at = (ranks, size, hierarchy)
                    word = wanted(operation, ranks, size)
                    lower, upper = followed(new[LOWER], *at), followed(new[UPPER], *at)
                    assert lower == (f"algorithm={word}" if word else followed(old[LOWER], *at)), at
                    assert upper == (flat[operation] if word else followed(old[UPPER], *at)), at


def test_what_mpich_cannot_do_with_every_operator_stays_its_own_choice() -> None:
    rule = Rule("allreduce", 2, 8, 64, Choice("", "algorithm=X"), (SURE,))
    own: dict[str, Any] = {"algorithm=OWN": {}}
    trees = {LOWER: {"collective=allreduce": {"comm_type=intra": own}}}
    (_, text) = rule_files("mpich", [rule], [], trees).texts.values()
    chosen = json.loads(text)["collective=allreduce"]["comm_type=intra"]["comm_size<=2"]["avg_msg_size<=64"]
    built_in = chosen["is_op_built_in=yes"]
    assert chosen["is_op_built_in=no"] == built_in["is_commutative=no"] == own
    assert built_in["is_commutative=yes"] == {"count<pow2": own, "count=any": {"algorithm=X": {}}}


def test_intel_mpi_gets_one_variable_for_each_operation() -> None:
    of_bcast = [
        replace(rule, winner=Choice("", rule.winner.word, {"X": rule.winner.word}))
        for rule in RULES
        if rule.operation == "bcast"
    ]
    files = rule_files("intel", of_bcast, ["head"])
    assert files.environment == {"X": "4:8-64@4-4;5:512-512@4-4;5:0-4096@5-5;4:64-64@8-8"}
    assert files.named("")[""].endswith("export X='4:8-64@4-4;5:512-512@4-4;5:0-4096@5-5;4:64-64@8-8'\n")


def test_a_threshold_has_one_value() -> None:
    low, high, third = (Choice(f"T={n}", n, {"T": n}, is_threshold=True) for n in "123")
    one, two = Rule("pingpong", 2, 8, 64, low, (SURE,)), Rule("pingpong", 2, 512, 512, high, ((1.3, 1.35, 1.4),))
    text = rule_files("openmpi", [one], []).named("")[""]
    assert text.endswith("(at least 1.20x); not verified: the library does not show what it takes\nexport T=1\n")
    assert other_values([one, two], [low, high, third, RING]) == {low, third}


def test_a_name_with_a_quote_and_a_head_of_two_lines_do_no_harm() -> None:
    files = rule_files("mpich", [], ["hockney tune 'a\nrm b'"], {LOWER: {}})
    assert files.named("/it's/f")[""] == (f"# hockney tune 'a\\nrm b'\n# \nexport {LOWER}='/it'\"'\"'s/f.1.json'\n")


@pytest.mark.parametrize("tree", [{}, {"collective=bcast": {}}, {"collective=bcast": {"comm_type=intra": {}}}])
def test_an_mpich_with_other_rules_than_the_known_ones(tree: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError, match="this MPICH has other rules for bcast"):
        rule_files("mpich", RULES[1:2], [], {UPPER: tree})


def test_operations_whose_rules_would_be_wrong() -> None:
    assert "only the root has to give" in can_be_ruled("openmpi", "scatter")
    assert "number of elements" in can_be_ruled("mpich", "gather")
    assert can_be_ruled("openmpi", "scan") == "its rules files have no sizes for it"
    assert "before 4.1" in can_be_ruled("openmpi", "gather", (4, 0, 7))
    assert can_be_ruled("openmpi", "gather", (4, 1, 0)) == can_be_ruled("openmpi", "bcast", (4, 0, 7)) == ""
    assert not any(can_be_ruled(kind, "allreduce") for kind in ("openmpi", "mpich", "intel"))


def test_who_leaves_a_race_and_when() -> None:
    """Times over the default's: 4 % faster, twice as slow, 30 and 29 % faster, and one that failed after 2 launches."""
    times = {1: 0.96, 2: 2.0, 3: 0.70, 4: 0.71, 5: 0.5}
    choices = [Choice(str(number)) for number in times]
    point = Point("mpi", "bcast", 4, 64)
    referee, left_at = Referee(choices, [point]), dict[int, int]()
    for launch in range(1, 20):
        ratios = {
            (number, point): [time] * (min(launch, 2) if number == 5 else launch) for number, time in times.items()
        }
        for number, _ in referee.decide(ratios):
            left_at.setdefault(number, launch)
    assert set(left_at) == {1, 2, 3, 4}
    assert left_at[1] == left_at[2] == left_at[4] <= 6  # with each launch the chance of error is about halved
    assert referee.too_few() is None
    assert left_at[4] < left_at[3] <= 12  # the gain of the best one is certain among all entries
    (cell,) = referee.cells(without=[choices[4]])
    assert (cell.winner, cell.is_rule) == (choices[2], True)
    assert cell.gain[1] == pytest.approx(1 / 0.70)


@pytest.mark.parametrize(("reference", "gain"), [(0.5, 1.4), (0.68, None), (0.69, None), (0.9, None), (2.0, None)])
def test_a_reference_is_measured_as_long_as_it_may_be_faster_than_the_best_choice(
    reference: float, gain: float | None
) -> None:
    """No choice leaves for it, and none of its rules is written; a second reference is slower."""
    times = {1: 2.0, 2: 0.7, 3: reference, 4: 1.3 * reference}
    choices, references = [Choice("a"), Choice("b")], [Choice("x"), Choice("y")]
    point = Point("mpi", "bcast", 4, 64)
    referee, left_at = Referee(choices, [point], references), dict[int, int]()
    for launch in range(1, 30):
        ratios = {(n, point): [time] * min(launch, left_at.get(n, launch)) for n, time in times.items()}
        for number, _ in referee.decide(ratios):
            left_at.setdefault(number, launch)
    assert left_at[4] <= 6
    assert left_at[4] <= left_at[3] <= left_at[2] <= 13
    (cell,) = referee.cells()
    assert cell.winner == choices[1]
    assert cell.gain[1] == pytest.approx(1 / 0.7)
    rules = rules_of(referee.references())
    assert [rule.winner for rule in rules] == ([references[0]] if gain else [])
    assert [rule.gains[0][1] for rule in rules] == ([pytest.approx(gain)] if gain else [])


def test_a_reference_is_compared_with_the_default_where_no_choice_is_faster() -> None:
    point = Point("mpi", "bcast", 4, 64)
    referee = Referee([Choice("a")], [point], [Choice("x")])
    referee.decide({(1, point): [1.2] * 20, (2, point): [0.8] * 20})
    (cell,) = referee.references()
    assert cell.gain[1] == pytest.approx(1.25)


def test_a_winner_is_kept_at_the_next_size_where_it_is_as_good() -> None:
    choices = [Choice("a"), Choice("b")]
    times = {8: (0.70, 0.80), 64: (0.705, 0.70), 512: (0.75, 0.70), 4096: (0.99, 0.99)}
    points = [Point("mpi", "bcast", 4, size) for size in times]
    referee = Referee(choices, points)
    ratios = {(number, point): [time] * 20 for point in points for number, time in enumerate(times[point.bytes], 1)}
    referee.decide(ratios)
    assert [cell.winner.name for cell in referee.cells()] == ["a", "a", "b", "default"]


def test_a_size_that_was_not_measured_has_no_winner() -> None:
    points = [Point("mpi", "bcast", 4, size) for size in (64, 128, 256)]
    referee = Referee([Choice("a")], points)
    referee.decide({(1, points[0]): [0.5] * 20, (1, points[2]): [0.5] * 20})
    assert [(rule.least, rule.most) for rule in rules_of(referee.cells())] == [(64, 64), (256, 256)]
    assert referee.unmeasured() == [points[1]]


def test_a_threshold_that_is_slower_at_a_size_is_known() -> None:
    points = [Point("mpi", "pingpong", 2, size) for size in (64, 128)]
    choices = [Choice(name, is_threshold=name < "c") for name in "abc"]
    referee = Referee(choices, points)
    times = {(1, 64): 0.5, (1, 128): 1.2, (2, 64): 0.8, (2, 128): 1.01, (3, 64): 2.0}
    referee.decide({(number, Point("mpi", "pingpong", 2, size)): [time] * 9 for (number, size), time in times.items()})
    assert referee.slower() == {choices[0]}


def test_a_race_without_enough_launches_writes_nothing() -> None:
    point = Point("mpi", "bcast", 4, 64)
    referee = Referee([Choice("a")], [point])
    referee.decide({(1, point): [0.5] * 4})
    assert referee.too_few() == (4, 6)
    assert not any(cell.is_rule for cell in referee.cells())


def test_a_race_that_everybody_has_left_early_was_long_enough() -> None:
    points = [Point("mpi", "bcast", 4, size) for size in range(9)]
    referee = Referee([Choice(str(number)) for number in range(9)], points)
    ratios = {(number, point): [1.0] * 6 for number in range(1, 10) for point in points}
    assert referee.decide(ratios) == ratios.keys()
    assert referee.too_few() is None
