"""Facts of findings as text: every value in the unit of its key, with its interval."""

from __future__ import annotations

import re

import pytest

from hockney.report.findings import fact_text


@pytest.mark.parametrize("count", [1, 5, 6, 12])
def test_of_a_long_list_the_first_five_are_printed_and_the_others_counted(count: int) -> None:
    numbers = [int(word) for word in re.findall(r"\d+", fact_text("ranks", range(100, 100 + count)))]
    assert numbers == [*range(100, 100 + min(count, 5)), *([count - 5] if count > 5 else [])]
