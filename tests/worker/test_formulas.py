"""The worker follows the formulas of docs/metrics.md: the timed ranks, the divisor, and the bytes of each rate."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.worker.test_native import DESCRIPTION, converse, measure, measured, shared

from hockney.worker.build import build_worker

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
DEFAULTS = {row["name"]: {each["name"]: each["default"] for each in row["options"]} for row in DESCRIPTION["patterns"]}


def table(heading: str) -> list[list[str]]:
    """The cells of the rows of all tables with this heading, without marks."""
    tables = PAGE.split(f"| {heading} |")[1:]
    rows = [row for table in tables for row in table.partition("\n\n")[0].splitlines()[2:]]
    cells = [[cell.strip().removesuffix(" *") for cell in row.strip("| ").split("|")] for row in rows]
    return [[name, *others] for first, *others in cells for name in first.split(", ")]


TIMES = table("pattern | one repetition | time")
# The bytes of a rate: the formula on the page, and their number for p ranks, n bytes and the options.
RATES: dict[str, Callable[[int, int, dict[str, Any]], float]] = {
    "bytes / time per message": lambda p, n, options: n,
    "2 × bytes × window / wall time": lambda p, n, options: 2 * n * options["window"],
    "S × bytes / time per event": lambda p, n, options: options["senders"] * n,
    "(P - 1) × bytes / time per event": lambda p, n, options: (p - 1) * n,
    "bytes / half a round trip": lambda p, n, options: n,
    "P × bytes / mean time": lambda p, n, options: p * n,
    "8 B / time per load or word": lambda p, n, options: 8,
    "P (P - 1) bytes / time": lambda p, n, options: p * (p - 1) * n,
    "2 (P - 1) bytes / time": lambda p, n, options: 2 * (p - 1) * n,
    ": (P - 1) bytes / time": lambda p, n, options: (p - 1) * n,
    "P × neighbours × bytes / time": lambda p, n, options: p * 2 * n,  # of four ranks, each with one in two directions
    "P/2 × bytes / half a round trip": lambda p, n, options: p / 2 * n,
    "P × D × bytes / time": lambda p, n, options: (
        p * 2 * sum(options.get(d, 1) > 1 for d in ("nx", "ny", "nz", "nt")) * n
    ),
    "4 `blocks` (2 nx ny - nx - ny) bytes / time": lambda p, n, options: (
        4 * options["blocks"] * (2 * p - options["nx"] - options["ny"]) * n
    ),
    "2 `servers` × workers × bytes / time": lambda p, n, options: 2 * options["servers"] * (p - options["servers"]) * n,
}


class Case(NamedTuple):
    """A point, its messages in a repetition (None: not known here), and the formula of its rate."""

    pattern: str
    transport: str
    ranks: int
    bytes: int
    messages: int | None
    options: dict[str, Any]
    rate: str = ""


CASES = [
    Case("pingpong", "shm", 2, 24, 2, {}, "bytes / half a round trip"),
    Case("pingpong", "shm", 5, 24, 2, {"source": 3, "target": 4}, "bytes / half a round trip"),
    Case("prtt", "shm", 2, 24, 4, {"messages": 3}),
    Case("oneway", "shm", 2, 24, 16, {"window": 16}, "bytes / time per message"),
    Case("oneway", "shm", 5, 24, 3, {"window": 3, "until": "sent", "source": 4, "target": 0}),
    Case("twoway", "shm", 2, 24, 32, {"window": 16}, "2 × bytes × window / wall time"),
    Case("pairs", "shm", 4, 24, 4, {"window": 2}),
    Case("pairs", "shm", 4, 24, 4, {"window": 2, "answer": "window", "start": "barrier"}),
    Case("pingping", "shm", 4, 24, 4, {}),
    Case("random", "shm", 5, 24, 5, {}),
    Case("fanin", "shm", 4, 24, 9, {"window": 3}),
    Case("fanout", "shm", 6, 24, 8, {"window": 2, "parents": 2}),
    Case("datatype", "shm", 5, 64, 2, {"source": 3, "target": 4, "block": 16, "stride": 48}),
    Case("alltoall", "shm", 5, 24, 20, {"algorithm": "flat"}, "P (P - 1) bytes / time"),
    Case("allreduce", "shm", 5, 24, 8, {}, "2 (P - 1) bytes / time"),
    Case("bcast", "shm", 5, 24, 4, {"root": 3}, ": (P - 1) bytes / time"),
    Case("allgatherv", "shm", 5, 24, 20, {"counts": "linear"}, "P (P - 1) bytes / time"),
    Case("allreduce", "shm", 4, 24, 4, {"groups": 2}),
    Case("reduce_scatter", "shm", 5, 24, 20, {"dtype": "int8", "bytes_of": "vector"}, ": (P - 1) bytes / time"),
    Case("outfarm", "shm", 5, 24, 4, {}),
    Case("multicast", "shm", 5, 24, 4, {}),
    Case("funnel", "shm", 5, 24, 4, {}),
    Case("pushfarm", "shm", 5, 24, 3, {"senders": 3}, "S × bytes / time per event"),
    Case("pullfarm", "shm", 5, 24, 2, {"senders": 2}, "S × bytes / time per event"),
    Case("eventbuilder", "shm", 5, 24, 2, {"senders": 2}, "S × bytes / time per event"),
    Case("robpush", "shm", 5, 24, 4, {}, "(P - 1) × bytes / time per event"),
    Case("robpull", "shm", 5, 24, 4, {}, "(P - 1) × bytes / time per event"),
    Case("barrier", "shm", 5, 0, 0, {}),
    Case("ring", "shm", 5, 24, 5, {"distance": 2}, "P × bytes / mean time"),
    Case("putpong", "shm", 5, 24, 2, {"source": 2, "target": 0}),
    Case("put", "shm", 5, 24, 1, {"source": 2, "target": 0}),
    Case("put", "shm", 5, 24, 1, {"source": 2, "target": 0, "quiet": "seen"}),
    Case("get", "shm", 2, 24, 1, {}),
    Case("putring", "shm", 5, 24, 5, {"distance": 3}, "P × bytes / mean time"),
    Case("halo2d", "shm", 5, 24, 10, {"nx": 5, "ny": 1}, "P × D × bytes / time"),
    Case("halo2d", "shm", 4, 24, 16, {"nx": 2, "ny": 2}, "P × D × bytes / time"),
    Case("halo3d", "shm", 8, 24, 48, {"nx": 2, "ny": 2, "nz": 2}, "P × D × bytes / time"),
    Case("halo4d", "shm", 4, 24, 16, {"nz": 2, "nt": 2}, "P × D × bytes / time"),
    Case("sweep", "shm", 4, 24, 48, {"nx": 2, "ny": 2, "blocks": 3}, "4 `blocks` (2 nx ny - nx - ny) bytes / time"),
    Case("ringreduce", "shm", 5, 24, 40, {}, "2 (P - 1) bytes / time"),
    Case("paramserver", "shm", 5, 24, 12, {"servers": 2}, "2 `servers` × workers × bytes / time"),
    Case("clocks", "shm", 4, 0, 0, {}),
    Case("owd", "shm", 2, 1 << 24, 1, {}),  # a millisecond: much longer than an exchange
    Case("memload", "null", 1, 4096, 1, {}, "8 B / time per load or word"),
    Case("memload", "null", 1, 4096, 8, {"access": "stream"}, "8 B / time per load or word"),
    Case("memcpy", "null", 1, 4096, 1, {}),
    Case("bisection", "shm", 4, 24, 4, {}, "P/2 × bytes / half a round trip"),
    Case("rounds", "shm", 4, 24, 4, {"round": 2}),
    Case("flows", "shm", 4, 24, 6, {"round": 2, "direction": "down", "window": 3}),
    Case("ft", "shm", 2, 0, 0, {"class": "S"}),
    Case("stream", "unix", 2, 24, 40, {"writes": 40}),
]


def needed_by(row: dict[str, Any]) -> set[str]:
    return {*row["needs"], *(["payload"] if row["payload"] else [])}


def plain_case(row: dict[str, Any]) -> Case:
    """Of a pattern that has no case above: as it describes itself, with the rate on the page if that names it."""
    least, most, step = row["ranks"]
    needed = needed_by(row)
    transport = next(transport["name"] for transport in DESCRIPTION["transports"] if needed <= {*transport["caps"]})
    parts = [part for _, formula in table("figure | formula") for part in formula.split("; ")]
    named = [part for part in parts if f"`{row['name']}`" in part]
    rate = next((rate for part in named for rate in sorted(RATES, key=len, reverse=True) if part.endswith(rate)), "")
    size = 3 * max(8, row["grain_bytes"]) if row["sized"] else 0
    return Case(
        row["name"], transport, 4 if least <= 4 <= (most or 4) and 4 % step == 0 else least, size, None, {}, rate
    )


# Only libraries offer what these need: test_threads.py, test_point_to_point.py and others measure them.
OF_LIBRARIES = {
    row["name"]: row["timed"]
    for row in DESCRIPTION["patterns"]
    if not any(needed_by(row) <= {*transport["caps"]} for transport in DESCRIPTION["transports"])
}
KNOWN = {*OF_LIBRARIES, *(case.pattern for case in CASES)}
CASES += [plain_case(row) for row in DESCRIPTION["patterns"] if row["name"] not in KNOWN]
TIMED = {
    "source": "root", "rank 0": "root", "as ": "root", "slower side": "slowest", "slowest rank": "slowest",
    "mean of ranks": "mean", "mean of all threads": "mean", "mean of the sources": "sources",
}  # fmt: skip


def timed_ranks(text: str) -> str:
    """The words for the ranks whose time counts, with which a cell begins."""
    who = re.match("|".join(sorted(TIMED, key=len, reverse=True)), text)
    assert who, text
    return who[0]


@pytest.fixture(scope="module")
def answers(standin: Callable[..., dict[str, str]]) -> dict[int, dict[str, Any]]:
    """Of each case, by its place; one worker for each transport and number of ranks."""
    by_place: dict[int, dict[str, Any]] = {}

    def job(place: int) -> tuple[str, int]:
        return CASES[place].transport, CASES[place].ranks

    for (transport, ranks), group in itertools.groupby(sorted(range(len(CASES)), key=job), key=job):
        places = [at for at in group if CASES[at].pattern != "owd"]
        commands = [
            measure(CASES[at].pattern, CASES[at].bytes, batch=1, samples=2, **CASES[at].options) for at in places
        ]
        by_place.update(zip(places, measured(commands, "-t", transport, *shared(ranks), env=standin()), strict=True))
    for at in (at for at, case in enumerate(CASES) if case.pattern == "owd"):
        by_place[at] = one_way(CASES[at])
    return by_place


def one_way(case: Case) -> dict[str, Any]:
    """On a busy machine a measurement of one-way delays may be refused, with the reason: then it is tried again."""
    command = measure(case.pattern, case.bytes, batch=1, samples=2, **case.options)
    for _ in range(20):
        answers, done = converse(build_worker(), [command], "-t", case.transport, *shared(case.ranks))
        if answers[0]["kind"] == "measure":
            return answers[0]
        assert "owd: " in done.stderr
    raise AssertionError("the clocks could not be compared in 20 tries")


def test_every_pattern_and_every_rate_on_the_page_has_a_case() -> None:
    assert {case.pattern for case in CASES} | {*OF_LIBRARIES} == set(DEFAULTS) == {row[0] for row in TIMES}
    for name, timed in OF_LIBRARIES.items():
        who = timed_ranks(next(row[2] for row in TIMES if row[0] == name))
        assert TIMED[who] == timed, name
    assert {case.rate for case in CASES if case.rate} == set(RATES)
    for figure, formula in table("figure | formula"):
        assert any(rate in formula for rate in RATES), figure


@pytest.mark.parametrize("place", range(len(CASES)), ids=lambda at: f"{CASES[at].pattern} {at}")
def test_the_page_names_the_timed_ranks_the_divisor_and_the_bytes_of_a_rate(
    place: int, answers: dict[int, Any]
) -> None:
    case, answer = CASES[place], answers[place]
    text = next(row[2] for row in TIMES if row[0] == case.pattern)
    who = timed_ranks(text)
    source = case.options.get("source", 0)
    assert answer["timed"] == (f"rank {source}" if source and who == "source" else TIMED[who])
    options = {**DEFAULTS[case.pattern], **case.options}
    divisor = re.search(r" / (\(2 × `\w+`\)|`\w+`|\d+)", text)
    factors = re.findall(r"\d+|`\w+`", divisor[1]) if divisor else []
    if options.get("access") == "stream":
        factors = ["8"]  # words of a line
    if options.get("quiet") == "seen":
        factors = ["2"]  # half, as the page says
    numbers = [int(options[factor.strip("`")] if "`" in factor else factor) for factor in factors]
    assert answer["divisor"] == math.prod(numbers), text
    assert case.messages in (None, answer["messages_per_rep"])
    if case.rate:
        in_repetition = answer["bytes_per_rep"] / (1 if case.rate.endswith("wall time") else answer["divisor"])
        assert in_repetition == RATES[case.rate](case.ranks, case.bytes, options)
