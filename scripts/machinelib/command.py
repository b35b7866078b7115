"""The command line of scripts/fit-machines."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from scripts.machinelib import gpmimd
from scripts.machinelib.ancor import ancor
from scripts.machinelib.paragon import paragon
from scripts.machinelib.scali import scali
from scripts.machinelib.t3d import t3d

from hockney.suites.toml_models import toml
from hockney.worker.machine_model import MODELS

FITS = {
    "gpmimd": gpmimd.gpmimd,
    "gpmimd-calibrated": gpmimd.calibrated,
    "scali": scali,
    "t3d": t3d,
    "ancor": ancor,
    "paragon": paragon,
}
HEAD = "Written by scripts/fit-machines from the published figures. docs/machines.md explains the keys; times are ns."


def texts() -> dict[str, str]:
    """Each model's file."""
    return {name: toml(_rounded(fit()), HEAD) for name, fit in FITS.items()}


def _rounded(value: Any) -> Any:
    """All numbers with six digits, or whole where they are larger."""
    match value:
        case float():
            return float(f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}")
        case dict():
            return {name: _rounded(part) for name, part in value.items()}
        case list() | tuple():
            return [*map(_rounded, value)]
        case _:
            return value


def run(arguments: Sequence[str]) -> int:
    """Write them all."""
    argparse.ArgumentParser("fit-machines", description=__doc__).parse_args(arguments)
    for name, text in texts().items():
        (MODELS / f"{name}.toml").write_text(text, encoding="utf-8")
    return 0
