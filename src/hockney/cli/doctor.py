"""`hockney doctor`: the limits to precision on this machine, and their remedies."""

from __future__ import annotations

from pathlib import Path

import click

from hockney.cli.common import command
from hockney.errors import ExitCode
from hockney.render.json import print_json
from hockney.render.text import show


@command(
    "doctor",
    example="hockney doctor\nhockney doctor --no-facts\nhockney doctor --json > pc.json",
    codes=tuple(ExitCode),
)
@click.option("--no-facts", is_flag=True, help="Leave out the description of the machine.")
def doctor(no_facts: bool, *, as_json: bool, store: Path | None) -> int:
    """Show what limits precision here, and how to fix it.

    Describes the machine. Measures for two seconds how long two CPUs take to exchange a cache line (the floor), and how
    much CPU time other programs and virtual machines use. Lists missing libraries with how to install them.
    """
    from hockney.measure.doctor import check_up
    from hockney.report.documents.doctor import doctor_document
    from hockney.report.documents.findings import findings_json

    checkup = check_up()
    if as_json:
        print_json("doctor", {**vars(checkup), "findings": findings_json(checkup.findings)})
        return ExitCode.DONE
    show(doctor_document(checkup, with_facts=not no_facts))
    return ExitCode.DONE
