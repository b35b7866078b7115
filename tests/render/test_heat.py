"""The heat map of a matrix: shades by logarithm, within the width of a line."""

from __future__ import annotations

from unittest import mock

import pytest

from hockney.render.heat import heat_lines
from hockney.report.document import Matrix


def lines(values: list[list[float | None]], unit: str = "ns", names: list[str] | None = None) -> list[str]:
    return heat_lines(Matrix("m", names or [str(place) for place in range(len(values))], values, unit))


def test_dark_is_slow_and_the_scale_says_where_a_shade_begins() -> None:
    values = [[None, 100.0, 1000.0], [100.0, None, 10000.0], [1000.0, 10000.0, None]]
    assert lines(values) == [
        "   0",
        "0    ..++",
        "1  ..  @@",
        "2  ++@@",
        "From rows to columns; . from 100 ns, + from 774 ns, @ from 5.99 us. Dark is slow.",
    ]
    with mock.patch("hockney.render.heat.is_terminal", return_value=True):
        assert lines(values)[1:4] == ["0    ··▒▒", "1  ··  ██", "2  ▒▒██"]


def test_of_rates_the_lowest_is_dark() -> None:
    *rows, scale = lines([[None, 1e9], [1e6, None]], "bytes/s", ["n1", "n2"])
    assert rows[1:] == ["n1    ..", "n2  @@"]
    assert scale.startswith("From rows to columns; . from 1.00 GB/s, @ from ")


def test_chance_has_no_shades() -> None:
    assert {*"".join(lines([[None, 183.0], [185.0, None]])[1:3])} == {"0", "1", " ", "."}


@pytest.mark.parametrize(("ranks", "wide"), [(40, 2), (64, 1)])
def test_a_cell_is_as_wide_as_the_line_allows(ranks: int, wide: int) -> None:
    head, first, *_ = lines([[1.0] * ranks] * ranks)
    assert first == f"0   {'.' * ranks * wide}"
    assert head.index("8") == 4 + 8 * wide
    assert len(first) <= 100


def test_nothing_measured_is_nothing_drawn() -> None:
    assert lines([[None, None], [None, None]]) == []
