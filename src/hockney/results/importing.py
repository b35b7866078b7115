"""Stores outputs of other benchmarks as one run, all of them or none.

Each output is a launch. A figure is stored as a measurement of one sample of `SCALE` repetitions, so that its digits
survive. That number, like every value missing in the output, is shown as unknown.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TypeVar

from hockney.errors import UsageError
from hockney.model import DIGITS, IMPORTED, Launch, Measurement, PatternTraits, Point, RunInfo
from hockney.results.formats.output import WINDOWED, Output, definition
from hockney.results.store import Store
from hockney.results.traits import pattern_traits
from hockney.version import __version__

SCALE = 1000
Known = TypeVar("Known")


@dataclass(frozen=True)
class ImportOptions:
    """Properties that the user names because the outputs do not contain them."""

    transport: str | None = None
    pattern: str | None = None
    ranks: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)


def store_outputs(
    store: Store,
    files: Sequence[tuple[str, Sequence[Output]]],
    given: ImportOptions,
    *,
    command: str,
    label: str | None,
) -> int:
    """Store the outputs of these files as one run; returns its number. Raises UsageError before anything is stored."""
    now = time.time()
    launches: list[Launch] = []
    measurements: list[Measurement] = []
    described = []
    seen: Counter[Point] = Counter()  # outputs of each curve
    first: dict[Point, tuple[str, str]] = {}  # of each curve: whose time it is, and the output that says so
    _check_given([(f"{name} ({output.tool})", output) for name, outputs in files for output in outputs], given)
    for name, outputs in files:
        for output in outputs:
            what = f"{name} ({output.tool})"
            curve, window = _curve(output, what, given)
            if output.rate and _same_rate(output, curve, window):
                continue
            timed, other = first.setdefault(curve, (output.timed, what))
            if timed != output.timed:
                raise UsageError(
                    f"{what} and {other} define the time of {curve.pattern} differently: import them as two runs"
                )
            said = {"curve": curve.text(curve.transport), "launch": seen[curve], "points": len(output.rows)}
            described.append({"file": name, "tool": output.tool, **said})
            # Its number counts the outputs of its curve; the rest is unknown.
            launches.append(Launch(curve.transport, "", curve.ranks, now, (), (), (), False, 0.0, seen[curve]))
            seen[curve] += 1
            measurements += _measurements(output, curve, window, len(launches) - 1, now)
    tools = dict.fromkeys(output.tool.partition(" ")[0].lower() for _, outputs in files for output in outputs)
    facts = {"traits": {"patterns": {curve.pattern: asdict(curve.traits) for curve in seen}, "transports": {}}}
    dates = [each.started_unix_s or 0.0 for _, outputs in files for each in outputs]
    began = min((date for date in dates if 0 < date <= now), default=now)
    info = RunInfo(command, "+".join(tools), label, began, 0, __version__, facts, {IMPORTED: described})
    return store.import_run(info, launches, measurements)


def _check_given(outputs: Sequence[tuple[str, Output]], given: ImportOptions) -> None:
    """Raises UsageError for a given property of which every output says another value: no output needs it."""
    window = given.options.get("window")
    for option, name, value in (
        ("--pattern ", "pattern", given.pattern),
        ("--ranks ", "ranks", given.ranks),
        ("-o window=", "window", None if window is None else _window(window)),
    ):
        said = [(what, getattr(output, name)) for what, output in outputs]
        if value is not None and said and all(printed not in (None, value) for _, printed in said):
            raise UsageError(f"{said[0][0]} says {option}{said[0][1]}: leave out {option}{value}")


def _curve(output: Output, what: str, given: ImportOptions) -> tuple[Point, int]:
    """A point of an output that represents all of its sizes, and the number of messages in flight."""
    pattern = _needed(
        what, output.pattern, given.pattern, "what was measured: name it, for example with --pattern allreduce"
    )
    ranks = _needed(what, output.ranks, given.ranks, "how many ranks there were: add --ranks")
    own = {name: value for name, value in given.options.items() if name != "window"}  # not every pattern has a window
    options, window = {**output.options, **own}, 1
    if pattern in WINDOWED:
        unsaid = "how many messages were in flight: add -o window=N (usually 64)"
        window = int(_needed(what, str(output.window) if output.window else None, given.options.get("window"), unsaid))
        options["window"] = str(window)
    known = pattern_traits({}, pattern)
    traits = PatternTraits(sized=output.is_sized) if known == PatternTraits() else known
    transport = given.transport or output.transport
    return Point(transport, pattern, ranks, 0, tuple(sorted(options.items())), "asked", traits), window


def _needed(what: str, printed: Known | None, given: Known | None, unsaid: str) -> Known:
    """The printed value, else the given one. Raises UsageError if there is none."""
    value = given if printed is None else printed
    if value is None:
        raise UsageError(f"{what} does not say {unsaid}")
    return value


def _same_rate(output: Output, curve: Point, window: int) -> bool:
    """Whether a column of rates, of the same times as the main one, has the same rate by the pattern's definition."""
    own, its = (definition(curve.pattern, curve.ranks, 1000, window, "", rate) for rate in (None, output.rate))
    return "column" in output.options and own.bytes_per_rep * its.divisor == its.bytes_per_rep * own.divisor


def _window(word: str) -> int:
    if not word.isdecimal() or not 1 <= int(word) <= 1_000_000:
        raise UsageError(f"'{word}' is not a number of messages: write for example -o window=64")
    return int(word)


def _measurements(output: Output, curve: Point, window: int, launch: int, now: float) -> Iterable[Measurement]:
    import numpy as np

    is_vector = ("bytes_of", "vector") in curve.options
    for row in output.rows:
        defined_by = curve.pattern, curve.ranks, row.bytes, window, output.timed, output.rate
        of = definition(*defined_by, is_vector=is_vector)
        for number, time_ns in enumerate(row.times_ns):
            elapsed_ns = round(time_ns * of.divisor * SCALE)
            if elapsed_ns >= 1 << 62:
                raise UsageError(f"line {row.line} of {output.tool} has a time of {time_ns:g} ns")
            yield Measurement(
                point=replace(curve, bytes=row.bytes if output.is_sized else 0),
                launch_id=launch,
                round=number,
                started_unix_s=now,
                batch=SCALE,
                definition=of,
                elapsed_ns=np.array([[elapsed_ns]], dtype=np.int64),
                cpu_user_ns=(),
                cpu_system_ns=(),
                wall_ns=(),
                floor_ns=None,
                verified=row.verified,
                counters={DIGITS: (row.digits_ns,), **{title: (value,) for title, value in row.others.items()}},
            )
