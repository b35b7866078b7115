"""Cache limits and flat latency on curves of known truth."""

from __future__ import annotations

import pytest
from tests.analysis.explain.readings import curve, found, gaps_of, line, not_checked, reading

from hockney.analysis.explain import explain
from hockney.analysis.finding import Absence


def caches(*sizes: int) -> dict[str, object]:
    own = [{"level": level, "kind": "unified", "size_bytes": size} for level, size in enumerate(sizes, 1)]
    return {"topology": {"caches": own}}


def test_a_rate_that_falls_beyond_a_cache() -> None:
    made = curve(lambda size: 10 + 0.05 * size + (0.15 * size if size > 8192 else 0), "oneway")
    (limit,) = found("cache limits", reading(made))
    assert limit.subject.sizes_bytes == (4096, 65536)
    assert (limit.facts["level"], limit.facts["cache_bytes"]) == (2, 8192)


def test_a_rate_that_grows_has_no_limit() -> None:
    assert found("cache limits", reading(curve(pattern="oneway"))) == []


@pytest.mark.parametrize("last_bytes", [8255, 40000])
@pytest.mark.parametrize(("beyond_ns_per_byte", "sizes_bytes"), [(0.0, []), (1.0, [(24576, 262144)])])
def test_a_fall_that_a_jump_explains_is_no_caches(
    last_bytes: int, beyond_ns_per_byte: float, sizes_bytes: list[tuple[int, int]]
) -> None:
    """After a rendezvous rates rise again, but for what a cache of 48 KiB does; the jump lies below it, or at it."""
    sizes = sorted({*(8 << n for n in range(14)), last_bytes, last_bytes + 1, 24576, 131072, 262144})
    made = curve(
        lambda size: (
            (180 + 0.02 * size if size <= last_bytes else 2400 + 0.055 * size)
            + (beyond_ns_per_byte * size if size > 49152 else 0.0)
        ),
        sizes=sizes,
    )
    limits = found("cache limits", reading(made, facts=caches(49152)))
    assert [one.subject.sizes_bytes for one in limits] == sizes_bytes


def test_only_a_switch_that_is_reported_explains_a_fall() -> None:
    """Switches are reported for one pattern of a place."""
    sizes = (8, 512, 4096, 32768, *(131072 << n for n in range(7)))
    smooth = curve(line(500, 0.05), sizes=sizes)
    jumps = curve(
        lambda size: 300 + 0.05 * size if size <= 1 << 19 else 60_000 + 0.07 * size, sizes=sizes, pattern="oneway"
    )
    (limit,) = found("cache limits", reading(smooth, jumps, facts=caches(1 << 20)))
    assert limit.subject.pattern == "oneway"
    assert found("cache limits", reading(jumps, facts=caches(1 << 20))) == []


def test_caches_that_no_size_reaches_are_not_checked() -> None:
    """So of a run of `quick`, whose sizes end at 1 MiB: the fix has sizes on both sides of each of them."""
    none = not_checked("cache limits", reading(curve(), facts=caches(1 << 25)))
    assert none.reason is Absence.INSUFFICIENT_DATA
    some = gaps_of(explain(reading(curve(), facts=caches(8192, 3 << 19, 1 << 25))))["cache limits"]
    assert some.how is not None
    assert some.how.argv[2:] == ("pingpong", "-t", "shm", "--bytes", "256K:128M")
    longer = curve(sizes=[1 << n for n in range(18, 28)], pattern="oneway")
    assert "cache limits" not in gaps_of(explain(reading(curve(), longer, facts=caches(8192, 3 << 19, 1 << 25))))


def test_sizes_that_cost_nothing() -> None:
    (flat,) = found("flat latency", reading(curve(lambda size: 500.0 if size <= 64 else 500 + 2.0 * size)))
    assert flat.subject.sizes_bytes == (8, 16, 32, 64)
    assert found("flat latency", reading(curve(line(100, 10)))) == []


@pytest.mark.parametrize(("sizes", "is_found"), [((4, 64, 256, 1024), True), ((4, 512, 2048, 8192), False)])
def test_a_shortest_message_as_slow_as_the_line_makes_a_longer_one(sizes: tuple[int, ...], is_found: bool) -> None:
    """A line that begins far off says nothing of short messages."""
    plateaus = found("plateaus below a line", reading(curve(lambda size: 100 + 10.0 * max(size, 32), sizes=sizes)))
    assert bool(plateaus) is is_found
    for plateau in plateaus:
        assert plateau.facts["flat_bytes"].low <= 32 <= plateau.facts["flat_bytes"].high
