"""Cache limits and flat latency on curves of known truth."""

from __future__ import annotations

import pytest
from tests.analysis.explain.readings import curve, found, line, not_checked, reading

from hockney.analysis.finding import Absence


def caches(*sizes: int) -> dict[str, object]:
    listed = [{"level": level, "kind": "unified", "size_bytes": size} for level, size in enumerate(sizes, 1)]
    return {"topology": {"caches": listed}}


def test_a_rate_that_falls_beyond_a_cache() -> None:
    made = curve(lambda size: 10 + 0.05 * size + (0.15 * size if size > 8192 else 0), "oneway")
    (limit,) = found("cache limits", reading(made))
    assert limit.subject.sizes_bytes == (4096, 65536)
    assert (limit.facts["level"], limit.facts["cache_bytes"]) == (2, 8192)


def test_a_rate_that_grows_has_no_limit() -> None:
    assert found("cache limits", reading(curve(pattern="oneway"))) == []


@pytest.mark.parametrize("last_bytes", [8255, 40000])
def test_a_fall_that_a_jump_explains_is_no_caches(last_bytes: int) -> None:
    """After a rendezvous rates rise again; it lies between the best rates within and beyond the cache."""
    sizes = sorted({*(8 << n for n in range(14)), last_bytes, last_bytes + 1, 24576, 131072, 262144})
    made = curve(lambda size: 180 + 0.02 * size if size <= last_bytes else 2400 + 0.055 * size, sizes=sizes)
    assert found("cache limits", reading(made, facts=caches(49152))) == []


@pytest.mark.parametrize("last_bytes", [128, 65536])
def test_a_jump_on_one_side_of_a_cache_explains_no_fall(last_bytes: int) -> None:
    sizes = [8 << n for n in range(18)]

    def time_ns(size: int) -> float:
        return 10 + 0.05 * size + (0.15 * size if size > 8192 else 0) + (200 if size > last_bytes else 0)

    made = curve(time_ns, sizes=sizes, pattern="oneway")
    assert [limit.facts["level"] for limit in found("cache limits", reading(made))] == [2]


@pytest.mark.parametrize(
    ("beyond", "precision", "is_found"),
    [(0.92, 0.005, False), (0.88, 0.005, True), (0.88, 0.02, False), (0.7, 0.2, False)],
)
def test_a_cache_limits_by_a_tenth_at_least_beyond_the_intervals(
    beyond: float, precision: float, is_found: bool
) -> None:
    made = curve(lambda size: 0.1 * size / (beyond if size > 8192 else 1), "oneway", precision=precision)
    assert bool(found("cache limits", reading(made))) is is_found


def test_caches_that_no_size_reaches_are_not_checked() -> None:
    """So of a run of `quick`, whose sizes end at 1 MiB: the fix has sizes on both sides of the cache."""
    none = not_checked("cache limits", reading(curve(), facts=caches(1 << 25)))
    assert none.reason is Absence.INSUFFICIENT_DATA
    assert none.how is not None
    assert none.how.argv[2:] == ("pingpong", "-t", "shm", "--bytes", "8M:64M")
    assert found("cache limits", reading(curve(), facts=caches(8192, 1 << 25))) == []


def test_the_fix_measures_no_cache_that_takes_longer_than_the_run() -> None:
    """At 9.3 GB/s 100 messages of 256 MiB take 2.9 s."""
    both = {"facts": caches(1 << 25, 1 << 27)}
    quick, long = (
        not_checked("cache limits", reading(curve(), plan={"time_s": time_s}, **both)) for time_s in (2.7, 3.0)
    )
    assert quick.how is not None
    assert long.how is not None
    assert (quick.how.argv[-1], long.how.argv[-1]) == ("8M:64M", "8M:256M")
    assert quick.facts["caches"] == ["L1 (32 MiB)"]
    none = not_checked("cache limits", reading(curve(), plan={"time_s": 0.1}, **both))
    assert (none.reason, none.why, none.how) == (Absence.NOT_APPLICABLE, "caches too large", None)


def test_no_long_messages_are_advised_where_no_cache_decides() -> None:
    """On sockets, and on a model, whose rates this machine's caches do not change."""
    model = {"traits": {"transports": {"sim@x": {"carrier": "library", "caps": ["payload", "virtual"]}}}}
    for transport, facts in (("tcp", {}), ("sim@x", model)):
        none = not_checked("cache limits", reading(curve(transport=transport), facts={**caches(1 << 25), **facts}))
        assert (none.reason, none.why, none.how) == (Absence.NOT_APPLICABLE, "no caches", None)


def test_sizes_that_cost_nothing() -> None:
    (flat,) = found("flat latency", reading(curve(lambda size: 500.0 if size <= 64 else 500 + 2.0 * size)))
    assert flat.subject.sizes_bytes == (8, 16, 32, 64)
    assert found("flat latency", reading(curve(line(100, 10)))) == []


@pytest.mark.parametrize(
    ("longer", "precision", "is_flat"),
    [(0.027, 0.03, True), (0.035, 0.03, False), (0.0, 0.045, True), (0.0, 0.055, False)],
)
def test_times_are_equal_within_3_percent_where_their_ratio_is_known_to_10(
    longer: float, precision: float, is_flat: bool
) -> None:
    made = curve(lambda size: 500.0 * (1 + longer * (size > 8)) if size <= 64 else 5000.0, precision=precision)
    assert bool(found("flat latency", reading(made))) is is_flat


@pytest.mark.parametrize(("first_bytes", "flat_bytes"), [(1, 16), (4, 16), (8, 32)])
def test_flat_latency_reaches_four_times_the_shortest_size(first_bytes: int, flat_bytes: int) -> None:
    """A size below 4 B counts as 4 B."""
    sizes = [first_bytes << n for n in range(8)]
    for last_bytes in (flat_bytes // 2, flat_bytes):
        made = curve(
            lambda size, last=last_bytes: 500.0 if size <= last else 500 + 10.0 * size,  # type: ignore[misc]
            sizes=sizes,
        )
        ends = [one.subject.sizes_bytes[-1] for one in found("flat latency", reading(made))]
        assert ends == ([flat_bytes] if last_bytes == flat_bytes else [])
