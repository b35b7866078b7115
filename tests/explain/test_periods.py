"""Time slices, outliers and slow ranks, on samples of known truth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tests.builders import make_point, make_visit
from tests.explain.readings import curve, found, lacking, reading

from hockney.cli.explain import _print
from hockney.explain import explain
from hockney.explain.curve import Reading
from hockney.explain.periods import locked_values
from hockney.model import Visit, Warning_
from hockney.stats import State

LOCKED, OUTLIERS, SLOW = "values locked to a period", "outliers and their period", "a slow rank"


def figures(times_us: Sequence[float]) -> Reading:
    places = dict(enumerate(times_us))
    return reading(curve(lambda size: 1e3 * places[size], sizes=range(len(times_us)), precision=0.0002))


def test_figures_on_multiples_of_a_slice() -> None:
    random = np.random.default_rng(1)
    free = random.uniform(200, 9000, 24).tolist()
    (locked,) = found(LOCKED, figures([256.1, 512.2, 1024, 1535.8, 3072, 4608, 5888, *free]))
    assert "multiples of 256 us" in locked.sentence


@pytest.mark.parametrize("seed", range(20))
def test_figures_at_random_are_not_locked(seed: int) -> None:
    assert locked_values(figures(np.random.default_rng(seed).uniform(200, 9000, 40).tolist())) == []


def test_the_same_figure_many_times_is_no_period() -> None:
    assert found(LOCKED, figures([1000.0, 1000.1, 999.9, 1000.2, 1000.0, 999.8, 1234, 1777, 2345, 3111, 4567])) == []


def test_figures_that_are_not_known_well_enough_tell_nothing() -> None:
    assert "each known better" in lacking(LOCKED, reading(curve(lambda size: 1e6 + size, precision=0.05)))


def visits(
    samples: Sequence[np.ndarray[tuple[int, ...], np.dtype[np.int64]]], pattern: str = "pingpong", batch: int = 8
) -> Reading:
    made: list[tuple[Visit, State]] = []
    for one in samples:
        visit = make_visit(make_point(pattern=pattern, ranks=len(one)), one, batch=batch)
        wall_ns = tuple(int(row.sum()) for row in one)
        made.append((Visit(**{**visit.__dict__, "wall_ns": wall_ns}), State("near", 30.0)))
    return reading(curve(), samples=lambda most, patterns=(): made[:most])


def ticking(period: int, seed: int = 1) -> list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """Samples of 100 us; each one in `period` of them is 400 us longer, 0: at random."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(10):
        one = random.integers(99_000, 101_000, 120)
        where = np.arange(7, 120, period) if period else random.choice(120, 6, replace=False)
        one[where] += 400_000
        made.append(np.stack([one, one]))
    return made


def test_outliers_with_the_period_of_a_tick() -> None:
    # 36 samples of 100 us and one that is longer by 400 make 4 ms.
    (slow,) = found(OUTLIERS, visits(ticking(36)))
    assert "about every 4.00 ms" in slow.sentence
    (excess,) = [one.value for one in slow.evidence if one.what == "excess"]
    assert excess.low <= 400_000 <= excess.high + 2000


def test_outliers_at_random_have_no_period() -> None:
    (slow,) = found(OUTLIERS, visits(ticking(0)))
    assert "without a period" in slow.sentence


def on_transports(excess_us: dict[str, int]) -> Reading:
    """On each of these transports every twentieth sample of 100 us is longer by so much."""
    random = np.random.default_rng(4)
    made: list[tuple[Visit, State]] = []
    for transport, more_us in excess_us.items():
        for _ in range(10):
            one = random.integers(99_000, 101_000, 120)
            one[random.choice(120, 6, replace=False)] += 1000 * more_us
            visit = make_visit(make_point(transport=transport), np.stack([one, one]))
            made.append((Visit(**{**visit.__dict__, "wall_ns": (int(one.sum()),) * 2}), State("near", 30.0)))
    return reading(curve(), samples=lambda most, patterns=(): made[:most])


def test_outliers_that_are_alike_on_most_transports_are_one_finding_and_the_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    of = on_transports({"shm": 300, "threads": 310, "tcp": 900, "unix": 290, "pipe": 320})
    tcp, together = [one for one in explain(of).findings if one.kind == "outliers"]
    assert tcp.transport == "tcp"
    assert explain(of).findings[-1] == together
    assert together.transport == ""
    assert "longer on shm, threads, unix, pipe (" in together.sentence
    assert "to the machine, not to a transport" in together.sentence
    assert {one.what for one in together.evidence} == {
        f"excess on {name}" for name in ("shm", "threads", "unix", "pipe")
    }
    _print(explain(of), everything=True, lacking=False)
    assert "\nSeveral transports\n  outliers: " in capsys.readouterr().out


def test_outliers_that_differ_are_each_transport_s_own() -> None:
    found_ = found(OUTLIERS, on_transports({"shm": 300, "tcp": 900, "unix": 2700}))
    assert [one.transport for one in found_] == ["shm", "tcp", "unix"]
    (alone,) = found(OUTLIERS, on_transports({"shm": 300}))
    assert alone.transport == "shm"


def test_very_many_outliers_can_be_counted() -> None:
    (slow,) = found(OUTLIERS, visits(ticking(36) * 300))
    assert "about every 4.00 ms" in slow.sentence


def test_samples_without_outliers() -> None:
    random = np.random.default_rng(2)
    assert found(OUTLIERS, visits([random.integers(99, 101, (2, 100)) for _ in range(10)])) == []
    assert lacking(OUTLIERS, reading(curve())) == "needs samples"


def test_a_rank_that_is_slower_than_the_others() -> None:
    random = np.random.default_rng(3)

    def samples(factor: float) -> list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
        made = [random.integers(990, 1010, (4, 50)) for _ in range(10)]
        for one in made:
            one[2] = one[2] * factor
        return made

    (slow,) = found(SLOW, visits(samples(1.3), "alltoall"))
    assert "rank 2" in slow.sentence
    assert found(SLOW, visits(samples(1.0), "alltoall")) == []
    assert "several ranks" in lacking(SLOW, visits(samples(1.3), "outfarm"))  # whose ranks do different things


def test_who_starts_first_waits_longer_and_is_not_slow_for_that() -> None:
    """One repetition a sample: 8 us on one side, 25 us on the other, as sockets have it; in 25 ms it counts."""
    short = [np.array([[8_000] * 20, [25_000] * 20]) for _ in range(10)]
    assert "eight repetitions" in lacking(SLOW, visits(short, "barrier", batch=1))
    (slow,) = found(SLOW, visits([1000 * one for one in short], "alltoall", batch=1))
    assert "rank 1" in slow.sentence


def test_a_library_that_yields_is_what_the_run_was_warned_of() -> None:
    warnings = (Warning_("yield", "mpi@x-1", "mpi@x-1 yields.", "Don't."), Warning_("steal", "machine", "a", "b"))
    (yields,) = found("a library that yields", reading(curve(), warnings=warnings, libraries={"mpi@x-1": "X 1"}))
    assert (yields.transport, yields.remedy) == ("mpi@x-1", "Don't.")
