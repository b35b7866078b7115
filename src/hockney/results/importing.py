"""Outputs of other benchmarks into the store, as one run: all of it or nothing.

Each output is a launch. A figure is stored as a measurement of one sample of `SCALE` repetitions, so that its digits
survive; that number, like all else that an output does not say, is shown as unknown.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from hockney import __version__
from hockney.errors import UsageError
from hockney.model import DIGITS, IMPORTED, Launch, Measurement, PatternTraits, Point, RunInfo
from hockney.results.formats.output import WINDOWED, Output, definition
from hockney.results.store import Store
from hockney.results.traits import pattern_traits
from hockney.units import counted

SCALE = 1000


@dataclass(frozen=True)
class Told:
    """What the user says of outputs that they do not say themselves."""

    transport: str | None = None
    pattern: str | None = None
    ranks: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)


def completed(output: Output, name: str, told: Told) -> Output:
    """An output of the file `name` with what the user says of it: pattern, ranks and, if it has one, window are known.

    Raises UsageError where something is neither printed nor told, or is both and differs.
    """
    what = f"{name} ({output.tool})"
    pattern, ranks = output.pattern or told.pattern, output.ranks or told.ranks
    options = {**told.options}
    said_window = options.pop("window", None)  # of patterns without one it is not: a file may hold several
    if pattern is None:
        raise UsageError(f"{what} does not say what was measured: name it, for example with --pattern allreduce")
    if ranks is None:
        raise UsageError(f"{what} does not say how many ranks there were: add --ranks")
    if told.pattern not in (None, pattern):
        raise UsageError(f"{what} is of {pattern}: leave out --pattern {told.pattern}")
    if told.ranks not in (None, ranks):
        raise UsageError(f"{what} is of {counted(ranks, 'rank')}: leave out --ranks {told.ranks}")
    window = None
    if pattern in WINDOWED:
        window = output.window if said_window is None else _window(said_window)
        if window is None:
            raise UsageError(f"{what} does not say how many messages were in flight: add -o window=N (usually 64)")
        if output.window not in (None, window):
            raise UsageError(f"{what} has {output.window} messages in flight: leave out -o window={window}")
        options["window"] = str(window)
    transport, options = told.transport or output.transport, {**output.options, **options}
    return replace(output, pattern=pattern, transport=transport, ranks=ranks, options=options, window=window)


def _window(word: str) -> int:
    if not word.isdecimal() or not 1 <= int(word) <= 1_000_000:
        raise UsageError(f"'{word}' is not a number of messages: write for example -o window=64")
    return int(word)


def store_outputs(
    store: Store, files: Sequence[tuple[str, Sequence[Output]]], told: Told, *, command: str, label: str | None
) -> int:
    """Store the outputs of these files as one run; returns its number. Raises UsageError before anything is stored."""
    now = time.time()
    launches: list[Launch] = []
    measurements: list[Measurement] = []
    traits: dict[str, PatternTraits] = {}
    described = []
    seen: Counter[tuple[object, ...]] = Counter()  # outputs of each curve
    for name, outputs in files:
        for output in outputs:
            complete = completed(output, name, told)
            assert complete.pattern is not None
            assert complete.ranks is not None
            if complete.pattern not in traits:
                known = pattern_traits({}, complete.pattern)
                is_own = known == PatternTraits()
                traits[complete.pattern] = PatternTraits(sized=complete.is_sized) if is_own else known
            described.append({"file": name, "tool": complete.tool, "points": len(complete.rows)})
            curve = complete.transport, complete.pattern, complete.ranks, *sorted(complete.options.items())
            launches.append(_launch(complete, now, seen[curve]))
            seen[curve] += 1
            measurements += _measurements(complete, traits[complete.pattern], len(launches) - 1, now)
    tools = dict.fromkeys(output.tool.partition(" ")[0].lower() for _, outputs in files for output in outputs)
    facts = {"traits": {"patterns": {name: asdict(known) for name, known in traits.items()}, "transports": {}}}
    info = RunInfo(command, "+".join(tools), label, now, 0, __version__, facts, {IMPORTED: described})
    return store.import_run(info, launches, measurements)


def _launch(output: Output, now: float, index: int) -> Launch:
    """Its number counts the outputs of its curve; the rest is unknown."""
    return Launch(
        transport=output.transport,
        library="",
        ranks=output.ranks or 0,
        started_unix_s=now,
        argv=(),
        cpus=(),
        hosts=(),
        oversubscribed=False,
        clock_ns=0.0,
        index=index,
    )


def _measurements(output: Output, traits: PatternTraits, launch: int, now: float) -> Iterable[Measurement]:
    import numpy as np

    assert output.pattern is not None
    assert output.ranks is not None
    options = tuple(sorted(output.options.items()))
    for row in output.rows:
        point = Point(output.transport, output.pattern, output.ranks, row.bytes, options, "asked", traits)
        of = definition(output.pattern, output.ranks, row.bytes, output.window or 1, output.timed)
        for number, time_ns in enumerate(row.times_ns):
            elapsed = np.array([[round(time_ns * of.divisor * SCALE)]], dtype=np.int64)
            yield Measurement(
                point=point,
                launch_id=launch,
                round=number,
                started_unix_s=now,
                batch=SCALE,
                definition=of,
                elapsed_ns=elapsed,
                cpu_user_ns=(),
                cpu_system_ns=(),
                wall_ns=(),
                floor_ns=None,
                verified=row.verified,
                counters={DIGITS: (row.digits_ns,)},
            )
