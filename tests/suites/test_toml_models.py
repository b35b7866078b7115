"""A model as text: reading it gives the written values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hockney.machine.files import read_toml
from hockney.suites.toml_models import toml
from hockney.worker.machine_model import builtin_models, load_model

STRANGE: dict[str, Any] = {
    "title": 'quotes " and \\, a tab\t, two\nlines, \x00\x1f\x7f\x9f, \u202e, Ω',
    "on": True,
    "numbers": [1, -2, 0.1, 1e-9, 1e22, 123456.789, 2.0**53 + 2],
    "long": ["a piece of text that is long enough to be broken into lines"] * 4,
    "nothing": [],
    "empty": {},
    "with a blank": {"and.a": {"dot": 1, "": 2}, "text": "x"},
    "where": {"bytes [B]": [1, 2], "of": "x"},
    "many": [{"a": 1, "of": {"b": "text"}, "each": [{"c": 1}, {"c": 2}]}, {"a": 2}],
}


def test_a_written_model_is_read_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "strange.toml"
    path.write_text(toml(STRANGE, "a head\nof two lines"), encoding="utf-8")
    assert path.read_text(encoding="utf-8").startswith("# a head\n# of two lines\n")
    assert read_toml(path) == STRANGE


@pytest.mark.parametrize("name", builtin_models())
def test_every_model_is_read_again(name: str, tmp_path: Path) -> None:
    content = load_model(name).content
    path = tmp_path / "copy.toml"
    path.write_text(toml(content, ""), encoding="utf-8")
    assert read_toml(path) == content
