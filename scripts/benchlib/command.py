"""The command line of scripts/bench."""

from __future__ import annotations

import argparse
import platform
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scripts.benchlib.commands import ROOT, large, repeat, start
from scripts.benchlib.contests import Series, go_round
from scripts.benchlib.device import device, write_sheet
from scripts.benchlib.hosts import hosts
from scripts.benchlib.layers import layers
from scripts.benchlib.models import models
from scripts.benchlib.mpi import mpi
from scripts.benchlib.native import events, loads, null, shm, sockets
from scripts.benchlib.osu import osu
from scripts.benchlib.place import Choice, Place
from scripts.benchlib.quick import quick
from scripts.benchlib.reports import reports
from scripts.benchlib.table import UNKNOWN, WHOLE, Row, markdown, put_between, summary

from hockney.errors import HockneyError
from hockney.machine.facts import facts
from hockney.units import listed, printable
from hockney.worker.build import compiler_facts
from hockney.worker.catalogue import load

PAGE = ROOT / "docs/performance.md"
# Those that are measured in turn, round after round; the others run commands from start to end.
_IN_ROUNDS: dict[str, Callable[[Place], Sequence[Series]]] = {
    "null": null,
    "shm": shm,
    "pipe": sockets("pipe"),
    "unix": sockets("unix"),
    "tcp": sockets("tcp"),
    "events": events,
    "mpi": mpi,
    "layers": layers,
    "loads": loads,
    "reports": reports,
    "osu": osu,
    "device": device,
}
_ONE_BY_ONE: dict[str, Callable[[Place], list[Row]]] = {
    "repeat": repeat,
    "start": start,
    "quick": quick,
    "large": large,
    "models": models,
    "hosts": hosts,
}
PARTS = (*_IN_ROUNDS, *_ONE_BY_ONE)
# Their tables on the page are separate, and may be written alone.
_ALONE = ("models", "layers", "device")
_NAMED = ("reports", "osu", "hosts", "device")  # measured if they are named
_WHOLE = tuple(part for part in PARTS if part not in _NAMED)
_TABLES = {
    WHOLE: tuple(part for part in _WHOLE if part not in _ALONE),
    **{f"{WHOLE} {name}": (name,) for name in dict.fromkeys((*_ALONE, *_NAMED))},
}
_ROUNDS, _ROUNDS_SHORT = 30, 3
_INTERRUPTED = 3  # the exit status, as hockney's


def run(arguments: Sequence[str]) -> int:
    """Measure the parts asked for, print the table, and put it into the page if asked to. Gives the exit code."""
    asked = _read(arguments)
    try:
        rows, about, is_whole = _measure(asked)
    except HockneyError as error:
        print(f"bench: {error}", file=sys.stderr)
        return error.exit_code
    for command, parts in _TABLES.items():
        of_table = [row for part in parts for row in rows.get(part, ())]
        if of_table:
            text = printable(f"{markdown(of_table)}\n{summary(of_table)}.\n\n{about}")
            print(text)
            if asked.write and is_whole:
                PAGE.write_text(put_between(PAGE.read_text(), text, command))
                print(f"written to {PAGE.relative_to(ROOT)}", file=sys.stderr)
    return 0 if is_whole else _INTERRUPTED


def _read(arguments: Sequence[str]) -> argparse.Namespace:
    but = listed(_NAMED)
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Shows how fast hockney itself is, as ratios of programs measured in alternation.",
        epilog=f"Parts: {', '.join(PARTS)}; all but {but} take 35 minutes. Leave the machine alone meanwhile.",
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to measure; all but {but} if none is named")
    parser.add_argument("--short", action="store_true", help="few repetitions: does it work, not how fast is it")
    parser.add_argument("--rounds", type=int, help=f"how often what is measured in turn is measured ({_ROUNDS})")
    parser.add_argument("--only", metavar="NAME,…", help="for osu: benchmarks, as `hockney list osu` and imb name them")
    for tool in ("osu", "imb"):
        about = f"for osu: a folder with programs of {tool.upper()}, and the library they belong to; may be repeated"
        parser.add_argument(f"--{tool}", metavar="LIBRARY=FOLDER", action="append", default=[], help=about)
    parser.add_argument(
        "--nvbandwidth", metavar="FILE", type=Path, help="for device: NVIDIA's program, to compare with"
    )
    parser.add_argument("--sheet", metavar="FILE", type=Path, help="for device: write the machine's data sheet there")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.relative_to(ROOT)}")
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.parts if name not in PARTS]
    if unknown:
        parser.error(f"no part is called {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if asked.write and (asked.parts not in ([], *([part] for part in _ALONE)) or asked.short):
        but = listed(_ALONE, "or")
        parser.error(f"--write takes no --short and no part but {but}: a table on the page comes from one whole run")
    if "osu" not in asked.parts and (asked.only or asked.osu or asked.imb):
        parser.error("--only, --osu and --imb are options of the part osu")
    if "device" not in asked.parts and (asked.nvbandwidth or asked.sheet):
        parser.error("--nvbandwidth and --sheet are options of the part device")
    if asked.rounds is not None and asked.rounds < 1:
        parser.error("--rounds must be at least 1")
    asked.parts = [name for name in PARTS if name in (asked.parts or _WHOLE)]
    return asked


def _measure(asked: argparse.Namespace) -> tuple[dict[str, list[Row]], str, bool]:
    """The rows of each part, the machine, and whether no signal has ended the measurement before its end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    is_whole = True
    known = facts(compiler=compiler_facts())
    begin_s = time.monotonic()
    catalogue = load()
    with tempfile.TemporaryDirectory(prefix="hockney-bench-") as folder:
        place = Place(catalogue, Path(folder), short=asked.short, say=_say)
        place.nvbandwidth = asked.nvbandwidth
        place.choice = Choice(tuple(filter(None, (asked.only or "").split(","))), {"osu": asked.osu, "imb": asked.imb})
        in_rounds = {name: _IN_ROUNDS[name](place) for name in asked.parts if name in _IN_ROUNDS}
        everything = [one for series in in_rounds.values() for one in series]
        rounds = asked.rounds or (_ROUNDS_SHORT if asked.short else _ROUNDS)
        of_commands: dict[str, list[Row]] = {}
        try:
            if everything:
                seed = random.SystemRandom().randrange(1 << 32)
                go_round(everything, rounds, seed=seed, say=_say, between=place.look_round)
            if asked.sheet:
                _sheet(place, asked.sheet)
            for name in filter(_ONE_BY_ONE.get, asked.parts):
                of_commands[name] = _part(name, place)
        except KeyboardInterrupt:
            is_whole = False
            _say("interrupted: the table has the rounds until then")
        rows = {name: [row for one in series for row in one.rows()] for name, series in in_rounds.items()} | of_commands
    return rows, _about(known, place, time.monotonic() - begin_s), is_whole


def _part(name: str, place: Place) -> list[Row]:
    """The rows of a part. A part that fails is a row with the reason, so the measurements of others are not lost."""
    try:
        return _ONE_BY_ONE[name](place)
    except HockneyError as error:
        return [Row(name, "-", f"not measured: {error}", UNKNOWN, UNKNOWN)]


def _sheet(place: Place, file: Path) -> None:
    """Write the machine's data sheet. If that fails, the table is printed all the same."""
    try:
        write_sheet(place, file)
    except HockneyError as error:
        _say(f"bench: no sheet is written: {error}")


def _say(text: str) -> None:
    """Progress goes to standard error, not into the table."""
    print(text, file=sys.stderr, flush=True)


def _about(known: dict[str, Any], place: Place, took_s: float) -> str:
    """The machine of the measurement: enough to compare with, without names of the machine or its folders."""
    cpu, software, surroundings = known["cpu"], known["software"], known["surroundings"]
    libraries = [info.library.name for info in place.mpis() if info.library is not None]
    others = place.others_cpus
    lines = [
        ("Date", time.strftime("%Y-%m-%d", time.gmtime())),
        ("CPU", f"{cpu['model']}, {cpu['cores']} cores, {cpu['logical']} hardware threads"),
        *place.about.items(),
        ("Virtual machine", surroundings["hypervisor"] or "no"),
        ("System", f"{known['os']['name']}, {known['os']['kernel']}, {known['os']['architecture']}"),
        ("Compiler, C library", f"{software['c_compiler']}; {software['libc']}"),
        ("MPI libraries", ", ".join(dict.fromkeys(libraries)) or "none"),
        ("hockney, Python", f"{software['hockney']}; {platform.python_version()}"),
        (
            "Other programs meanwhile",
            f"used {statistics.median(others):.1f} CPUs in the median of {len(others)} samples, "
            f"{max(others):.1f} at most"
            if others
            else "unknown",
        ),
        ("Took", f"{took_s / 60:.1f} min"),
    ]
    return "\n".join(["| machine | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in lines)]) + "\n"
