"""The part `loads`: the latencies of the load table against a bare pointer chase, at each level of this machine."""

from __future__ import annotations

from scripts.benchlib.contests import Absent, Contest, Measured, Question, Series
from scripts.benchlib.place import Place, Shot, measure, middle_ns
from scripts.benchlib.table import Target

from hockney.machine.topology import read_topology
from hockney.suites import CacheShare, load_suite
from hockney.units import format_bytes

_WITHIN = Target("within 10 % of bare C", low=0.9, high=1.1)
_LINE_BYTES = 64
_LOADS, _SAMPLES = 20_000, 21


def loads(place: Place) -> list[Series]:
    """One contest for each working set of the load table, as the suite has them."""
    chases = [one for one in load_suite("t3d").series if one.pattern == "memload" and not one.options]
    shares = [size for one in chases for size in one.bytes if isinstance(size, CacheShare)]
    caches = read_topology().cache_sizes()
    return [_contest(place, share, share.resolve(caches, _LINE_BYTES)) for share in shares]


def _contest(place: Place, share: CacheShare, size: int | None) -> Series:
    name = f"memload: chase in {share}"
    if size is None:
        return Absent(name, name, _WITHIN, f"the size of the level {share.level} cache is not known")
    # Warmed up by one way through the whole set, as the bare program is.
    shot = Shot(size, _LOADS, _SAMPLES, size // _LINE_BYTES)

    def ours() -> Measured:
        with place.worker("null", ranks=1) as session:
            return {size: middle_ns(measure(session, "memload", shot))}

    def theirs() -> Measured:
        """On the CPU of rank 0."""
        ((load_ns,),) = place.bare("chase_bare.c", place.cpus[0], size, _LOADS, _SAMPLES, columns=1)
        return {size: load_ns}

    question = Question(f"{name}, {format_bytes(size)}", _WITHIN, "memload", "bare C", fractional=True)
    return Contest(name, {size: question}, ours, theirs)
