"""The models of the archive's machines: each is the script's result from the published figures, and names them."""

from __future__ import annotations

import pytest
from scripts.machinelib.command import texts

from hockney.archive import machines
from hockney.worker.machine_model import MODELS, builtin_models, compiled, load_model


def test_each_model_is_the_scripts_result() -> None:
    written = texts()
    assert sorted(written) == builtin_models()
    for name, text in written.items():
        assert (MODELS / f"{name}.toml").read_text(encoding="utf-8") == text, "run scripts/fit-machines"


@pytest.mark.parametrize("name", builtin_models())
def test_a_model_names_figures_that_exist(name: str) -> None:
    machine = load_model(name).machine
    assert machine.machine is not None
    figures = machines()[machine.machine].figures
    assert machine.used
    for where in [row.where for row in machine.used] + [row.where for row in machine.not_modelled]:
        assert [figure for figure in figures if figure.matches(where)], where


@pytest.mark.parametrize("name", builtin_models())
def test_each_variant_becomes_lines(name: str) -> None:
    for variant in ("", *load_model(name).machine.variant):
        assert compiled(load_model(name, variant), 2).startswith("hockney-model 1\n")
