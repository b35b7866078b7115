"""Each block as Markdown; texts from outside are nothing else."""

from __future__ import annotations

import pytest

from hockney.render.markdown import markdown
from hockney.report.document import (
    Block,
    Bullet,
    Cell,
    Column,
    Item,
    Matrix,
    More,
    Plot,
    Section,
    Sentence,
    Table,
    Text,
    Title,
)
from hockney.units import local_time


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (Title("Rates", end="run 1"), "# Rates · run 1\n"),
        (Title("Rates"), "## Rates\n"),
        (Text("Run `hockney list`, *now*"), "Run `hockney list`, \\*now\\*\n"),
        (Sentence(), "\n"),
        (Item("what is", head="floor"), "- **floor**: what is\n"),
        (Bullet("slow.", ("Cause.", "", "Fix: `a|b`"), ("also tcp",)), "- slow. Cause. Fix: `a|b`\n  - also tcp\n"),
        (
            Table([Column("", key=True), Column("time", right=True)], ["here", ["a|b", "1 us "]]),
            "|  | time |\n| --- | ---: |\n| **here** |  |\n| a\\|b | 1 us |\n",
        ),
        (
            Section(
                "Load",
                (
                    Text("Idle."),
                    Table(["what", Column("p50", right=True)], [["tcp", Cell("1 us", "±2%")]]),
                    Text("Note."),
                ),
            ),
            "## Load\n\nIdle.\n\n| what | p50 |\n| --- | ---: |\n| tcp | 1 us ±2% |\n\nNote.\n",
        ),
        (
            Matrix("All pairs", ["n1", "n2"], [[None, 183.0], [1200.0, None]], "ns"),
            (
                "## All pairs\n\n| from | to n1 | to n2 |\n| --- | ---: | ---: |\n"
                "| n1 |  | 183 ns |\n| n2 | 1.20 us |  |\n"
            ),
        ),
        (
            Plot("Time", {"shm": [(8, 50.0)], "tcp": [(8, 1e4), (64, 2e4)]}, "ns"),
            (
                "## Time\n\n| size | shm | tcp |\n| --- | ---: | ---: |\n"
                "| 8 B | 50.0 ns | 10.0 us |\n| 64 B |  | 20.0 us |\n"
            ),
        ),
        (
            Plot("Time", {"shm": [(86_400, 50.0)]}, "%", "date"),
            f"## Time\n\n| date | shm |\n| --- | ---: |\n| {local_time(86_400)} | 50 % |\n",
        ),
        (Section("", (Title("A"), Text("b"))), "## A\n\nb\n"),
        (More("--all", {"line": 2, "layer": 0}), "More with --all: 2 lines.\n"),
        (More("--all"), "\n"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Block) else "",
)
def test_a_block(block: Block, text: str) -> None:
    assert markdown([block]) == text


def test_texts_from_outside_have_no_markup() -> None:
    text = markdown([Text("<img src=x> @user [a](b) # ~x~ _y_ a_b `\x1b[2J`\n- no")])
    assert text == "&lt;img src=x&gt; &#64;user \\[a\\](b) \\# \\~x\\~ \\_y\\_ a_b `\\x1b[2J` - no\n"


def test_a_large_matrix_has_no_figures() -> None:
    text = markdown([Matrix("m", [str(n) for n in range(17)], [[1.0] * 17] * 17, "ns")])
    assert text == "## m\n\nThe matrix of 17 ends is in --json only.\n"
