"""The part `loads`: the latencies of the load table against a bare pointer chase, at each level of this machine."""

from __future__ import annotations

from collections.abc import Callable

from scripts.benchlib import bare
from scripts.benchlib.pairs import Question
from scripts.benchlib.place import Place, Shot, measure, middle_ns
from scripts.benchlib.series import Absent, Contest, Measured, Series
from scripts.benchlib.table import Target

from hockney.machine.topology import read_topology
from hockney.suites import CacheShare, load_suite
from hockney.units import format_bytes
from hockney.worker.compiler import find_c_compiler

_WITHIN = Target("within 10 % of bare C", low=0.9, high=1.1)
_LINE_BYTES = 64
_LOADS, _SAMPLES = 20_000, 21


def loads(place: Place) -> list[Series]:
    """One contest for each working set of the load table, as the suite has them."""
    caches = read_topology().cache_sizes()
    found: list[Series] = []
    for share in _working_sets():
        name = f"memload: chase in {share}"
        size = share.resolve(caches, _LINE_BYTES)
        if size is None:
            found.append(Absent(name, name, _WITHIN, f"the size of the level {share.level} cache is not known"))
            continue
        question = Question(f"{name}, {format_bytes(size)}", _WITHIN, "memload", "bare C", fractional=True)
        # Warmed up by one way through the whole set, as the bare program is.
        shot = Shot(size, _LOADS, _SAMPLES, size // _LINE_BYTES)
        found.append(Contest(name, {size: question}, _ours(place, shot), _theirs(place, shot)))
    return found


def _working_sets() -> tuple[CacheShare, ...]:
    chases = [one for one in load_suite("t3d").series if one.pattern == "memload" and not one.options]
    return tuple(size for one in chases for size in one.bytes if isinstance(size, CacheShare))


def _ours(place: Place, shot: Shot) -> Callable[[], Measured]:
    def run() -> Measured:
        with place.worker("null", ranks=1) as session:
            return {shot.bytes: middle_ns(measure(session, "memload", shot))}

    return run


def _theirs(place: Place, shot: Shot) -> Callable[[], Measured]:
    """On the CPU of rank 0."""
    given = [str(number) for number in (place.cpus[0], shot.bytes, shot.batch, shot.samples)]

    def run() -> Measured:
        program = place.bare(find_c_compiler(), "chase_bare.c")
        ((_, load_ns),) = bare.numbers(bare.run([str(program), *given]), 2)
        return {shot.bytes: load_ns}

    return run
