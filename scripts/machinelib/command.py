"""The command line of scripts/fit-machines."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from scripts.machinelib import gpmimd
from scripts.machinelib.ancor import ancor
from scripts.machinelib.paragon import paragon
from scripts.machinelib.scali import scali
from scripts.machinelib.t3d import t3d
from scripts.machinelib.text import toml

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
    return {name: toml(fit(), HEAD) for name, fit in FITS.items()}


def run(arguments: Sequence[str]) -> int:
    """Write them all."""
    argparse.ArgumentParser("fit-machines", description=__doc__).parse_args(arguments)
    for name, text in texts().items():
        (MODELS / f"{name}.toml").write_text(text, encoding="utf-8")
    return 0
