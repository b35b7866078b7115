"""States are recovered from simulated floors and paces of known states."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.builders import make_launch
from tests.matrix import matrix
from tests.stats.levels import ONE, of_one, of_two

from hockney.model import MachineProbe
from hockney.stats import MIXED, UNKNOWN, State, classify, classify_both, state_order
from hockney.stats.states import GAP, Floor, pace_limit


def names(floors: Sequence[Floor]) -> list[str]:
    return [state.name for state in of_floors(floors)]


def of_floors(floors: Sequence[Floor]) -> list[State]:
    return classify([MachineProbe(floor) for floor in floors])


def test_one_measurement_is_enough_for_a_state() -> None:
    assert of_floors([]) == []
    assert of_floors([(27.0, 33.0)]) == [State("near", 30.0)]
    assert of_floors([(27.0, 184.0)]) == [MIXED]


@pytest.mark.parametrize(
    ("floor_ns", "name"),
    [(5.0, "near"), (79.9, "near"), (80.0, "far"), (999.0, "far"), (1000.0, "time-sliced"), (4e6, "time-sliced")],
)
def test_levels_are_named_by_their_floor(floor_ns: float, name: str) -> None:
    assert of_floors([(floor_ns, floor_ns)] * 3) == [State(name, floor_ns)] * 3


def test_measurement_between_two_levels_is_mixed() -> None:
    states = of_floors([(27.0, 28.0), (28.0, 184.0), (184.0, 180.0), (186.0, 27.0)])
    assert states == [State("near", 27.5), MIXED, State("far", 182.0), MIXED]


def test_two_levels_of_a_name_carry_their_floor() -> None:
    floors: Sequence[Floor] = [(184.0, 184.0), (420.0, 420.0), (30.0, 30.0)]
    assert of_floors(floors) == [State("far 184 ns", 184.0), State("far 420 ns", 420.0), State("near", 30.0)]


def test_a_wide_gap_separates_two_levels() -> None:
    assert names([(100.0, 100.0), (129.0, 129.0)]) == ["far", "far"]
    assert names([(100.0, 100.0), (130.0, 130.0)]) == ["far 100 ns", "far 130 ns"]


@pytest.mark.parametrize(
    ("floors_ns", "levels"),
    [
        ({30.0: 50, 42.0: 9, 60.0: 50}, 2),  # a gap of half holds up to a fifth of the floors on either side
        ({30.0: 50, 42.0: 11, 60.0: 50}, 3),
        ({30.0: 96, 42.0: 4}, 1),  # each side of an empty gap has a twentieth of all
        ({30.0: 94, 42.0: 6}, 2),
    ],
)
def test_how_many_floors_make_a_level(floors_ns: dict[float, int], levels: int) -> None:
    assert len(set(names([(ns, ns) for ns, count in floors_ns.items() for _ in range(count)]))) == levels


@pytest.mark.parametrize("measurements", [40, 300])
@pytest.mark.parametrize("shape", ONE)
def test_floors_that_scatter_are_one_level(shape: str, measurements: int) -> None:
    assert all(of_one(np.random.default_rng(seed), shape, measurements)[0] for seed in range(20))


@pytest.mark.parametrize(("ratio", "scatter"), [(1.5, 0.02), (1.8, 0.05)])
@pytest.mark.parametrize("measurements", [40, 300])
def test_two_levels_are_separated(ratio: float, scatter: float, measurements: int) -> None:
    for seed in range(20):
        separated = [of_two(np.random.default_rng(seed), ratio, scatter, share, measurements) for share in (0.2, 0.5)]
        assert separated == [(True, 0.0)] * 2


@pytest.mark.parametrize(
    "floor", [None, (0.0, 30.0), (30.0, 0.0), (30.0, -1.0), (math.nan, 30.0), (math.inf, 30.0), (30.0, math.inf)]
)
def test_measurement_without_a_floor_is_unknown(floor: Floor) -> None:
    assert of_floors([(30.0, 30.0), floor]) == [State("near", 30.0), UNKNOWN]
    assert of_floors([floor]) == [UNKNOWN]


def test_an_outlier_is_no_level() -> None:
    floors: Sequence[Floor] = [(28.0, 29.0)] * 20 + [(28.0, 5000.0), (300.0, 29.0)]
    assert of_floors(floors) == [State("near", 28.5)] * 20 + [MIXED] * 2


def test_outliers_do_not_join_two_levels() -> None:
    floors: Sequence[Floor] = [(28.0, 29.0)] * 10 + [(184.0, 185.0)] * 10
    bridge: Sequence[Floor] = [(28.0, 42.5), (29.0, 60.0), (184.0, 80.0), (28.0, 100.0), (130.0, 60.0)]
    assert names([*floors, *bridge]) == ["near"] * 10 + ["far"] * 10 + ["near"] + ["mixed"] * 4


def test_time_slices_are_one_level() -> None:
    floors: Sequence[Floor] = [(1500.0, 80e3), (4e6, 2e6), (20e3, 1200.0), (28.0, 28.0), (28.0, 3e6)]
    states = of_floors(floors)
    assert [state.name for state in states] == ["time-sliced"] * 3 + ["near", "mixed"]
    assert states[0].floor_ns == 50e3


@pytest.mark.parametrize("spread", [0.02, 0.06])
@pytest.mark.parametrize("outliers", [0.0, 0.02])
def test_states_of_a_long_run_are_recovered(spread: float, outliers: float) -> None:
    """The machine stays near or far for a while; floors are noisy, and some are outliers."""
    rng = np.random.default_rng(3)
    far = np.repeat(rng.random(60) < 0.4, rng.integers(20, 80, 60))  # stays of 20 to 80 measurements
    after = np.append(far[1:], far[-1])  # the state may change within a measurement
    level = np.stack([np.where(far, 184.0, 29.0), np.where(after, 184.0, 29.0)])
    floors = level * rng.lognormal(0, spread, level.shape)
    hit = rng.random(level.shape) < outliers
    floors[hit] *= rng.uniform(1.2, 300, hit.sum())
    recovered = names([(before, end) for before, end in floors.T.tolist()])
    for name, is_far, is_after, is_hit in zip(
        recovered, far.tolist(), after.tolist(), (hit[0] | hit[1]).tolist(), strict=True
    ):
        if is_far != is_after and not is_hit:
            assert name == "mixed"
        elif not is_hit:
            assert name == ("far" if is_far else "near")
        else:
            assert name in ("near", "far", "mixed", "time-sliced")


# ---- paces ----------------------------------------------------------------------------------------------------------

ALONE, SHARED = 0.63, 1.1


def of_paces(paces: np.ndarray[Any, Any], floor: Floor = (30.0, 30.0)) -> list[str]:
    """Names for paces of the shape (measurements, before and after, ranks)."""
    return [
        state.name
        for state in classify([MachineProbe(floor, (tuple(before), tuple(after))) for before, after in paces.tolist()])
    ]


def paces_of(levels: Sequence[Sequence[float]], noise: float, seed: int = 5) -> np.ndarray[Any, Any]:
    """Noisy paces of one measurement for each row, which holds the level of each rank."""
    rng = np.random.default_rng(seed)
    both = np.repeat(np.asarray(levels)[:, None, :], 2, axis=1)
    paces: np.ndarray[Any, Any] = both * rng.lognormal(0, noise, both.shape)
    return paces


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.03, 0.06])
@pytest.mark.parametrize("measurements", [1, 2, 10, 300, 3000])
def test_one_pace_with_noise_is_one_state(noise: float, measurements: int) -> None:
    for seed in range(20 if measurements < 1000 else 3):
        assert set(of_paces(paces_of([(ALONE, 0.7)] * measurements, noise, seed))) == {"near"}


@pytest.mark.parametrize("slow", [20, 500, 970])
def test_paces_with_a_17_percent_gap_are_two_levels(slow: int) -> None:
    levels = [(2.43, 2.70)] * (1000 - slow) + [(2.43 * 1.17, 2.70)] * slow
    recovered = of_paces(paces_of(levels, 0.02))
    assert recovered[: 1000 - slow].count("near, contended") < 10
    assert recovered[1000 - slow :].count("near") < 10


@pytest.mark.parametrize(("alone", "noise"), [(200, 0.005), (130, 0.005), (130, 0.02)])
def test_contended_paces_may_scatter(alone: int, noise: float) -> None:
    rng = np.random.default_rng(8)
    shared = rng.uniform(0.75, 1.25, (200, 2, 1))
    quick = np.full((alone, 2, 1), ALONE) * rng.lognormal(0, noise, (alone, 2, 1))
    assert of_paces(np.concatenate([quick, shared])) == ["near"] * alone + ["near, contended"] * 200


@pytest.mark.parametrize("slow", [20, 60, 100])
def test_two_kinds_of_contention_are_one(slow: int) -> None:
    """Two guests share the core in turn, and the clock has coarse steps."""
    rng = np.random.default_rng(8)
    quick = rng.choice([0.46, 0.47, 0.47, 0.48, 0.48, 0.49], 400 - slow)
    kinds = [rng.normal(level, 0.015, slow // 2).clip(level - 0.04, level + 0.04) for level in (0.57, 0.68)]
    recovered = of_paces(np.repeat(np.concatenate([quick, *kinds]), 2).reshape(-1, 2, 1))
    assert recovered == ["near"] * (400 - slow) + ["near, contended"] * slow


@pytest.mark.parametrize("factor", [0.7, 1.5, 2.0, 5.0])
def test_one_outlier_makes_no_other_pace_contended(factor: float) -> None:
    """Paces that are 8 % longer are not contended, with or without it."""
    odd = np.array([[[factor * ALONE], [ALONE]]])
    levels = [(ALONE,)] * 1000 + [(1.08 * ALONE,)] * 50
    assert set(of_paces(np.concatenate([odd, paces_of(levels, 0.005)]))) == {"near"}


def test_steps_of_a_coarse_clock_are_one_level() -> None:
    """Most readings equal the median; those two or three steps above it are no other level."""
    quick, slow = ([0.46, 0.47, 0.47, 0.47, 0.47, 0.47, 0.48, 0.49] * 25, [0.58, 0.62, 0.65, 0.68, 0.70] * 10)
    paces = np.repeat([*quick, *slow], 2).reshape(-1, 2, 1)
    assert of_paces(paces) == ["near"] * len(quick) + ["near, contended"] * len(slow)


_DRIFTS = ("straight", "swinging", "touching the ends", "slower from half on", "slower in the end")


@pytest.mark.parametrize("odd", [1.0, 5.0])
@pytest.mark.parametrize("factor", matrix([1.1, 1.3, 1.5, 2.0], short=[2.0]))
@pytest.mark.parametrize("shape", _DRIFTS)
@pytest.mark.parametrize("measurements", [12, 24, 100, 5000])
def test_a_clock_that_drifts_is_one_state(measurements: int, factor: float, shape: str, odd: float) -> None:
    time = np.linspace(0, 1, measurements)
    part = {
        "straight": time,
        "swinging": (1 + np.sin(np.arange(measurements) / 20)) / 2,
        "slower from half on": (2 * time - 1).clip(0),
        "slower in the end": (3 * time - 2).clip(0),
        "touching the ends": np.sin(20 * time) ** 2,
    }[shape]
    rng = np.random.default_rng(9)
    paces = (ALONE * factor**part)[:, None, None] * rng.lognormal(0, 0.01, (measurements, 2, 2))
    paces[0, 0, 0] *= odd
    assert set(of_paces(paces)) == {"near"}


@pytest.mark.parametrize("quick", [16, 17, 18, 97, 195])
@pytest.mark.parametrize("slow", [(2.0,) * 3, (1.35,) * 5, (1.8, 1.9, 2.0, 2.1, 2.2), (1.35, 1.4, 1.5, 1.9)])
def test_few_contended_measurements_are_found(quick: int, slow: Sequence[float]) -> None:
    paces = ALONE * paces_of([(1.0,)] * quick + [(level,) for level in slow], 0.005)
    assert of_paces(paces) == ["near"] * quick + ["near, contended"] * len(slow)


def test_the_order_of_measurements_does_not_matter() -> None:
    """The threshold comes from some of thousands of paces, which must be the same in every order."""
    rng = np.random.default_rng(4)
    contended = rng.random((3001, 2, 1)) < 0.3
    quick = rng.lognormal(0, 0.03, contended.shape)
    paces = np.where(contended, rng.uniform(1.1, 1.6, contended.shape), quick)
    names = of_paces(paces)
    for order in (rng.permutation(len(paces)) for _ in range(5)):
        assert of_paces(paces[order]) == [names[measurement] for measurement in order]


def test_a_clock_that_stays_slower_has_two_levels() -> None:
    """Full speed for a third of the time, slowing down during the next third, slow in the last."""
    part = (3 * np.linspace(0, 1, 300) - 1).clip(0, 1)
    paces = (ALONE * 1.5**part)[:, None, None] * np.random.default_rng(9).lognormal(0, 0.005, (300, 2, 1))
    names = of_paces(paces)
    assert set(names[:100]) == {"near"}
    assert set(names[200:]) == {"near, contended"}


def test_a_measurement_is_contended_if_any_rank_is() -> None:
    levels = [(ALONE, ALONE, ALONE), (ALONE, SHARED, ALONE), (SHARED, SHARED, ALONE), (SHARED, SHARED, SHARED)]
    plain = of_paces(paces_of(levels * 20, 0.01))
    assert plain == ["near", *["near, contended"] * 3] * 20
    far = of_paces(paces_of(levels * 20, 0.01), (184.0, 190.0))
    assert far == ["far", *["far, contended"] * 3] * 20


def test_a_measurement_during_which_a_pace_changed_is_contended() -> None:
    steady = paces_of([(ALONE, ALONE), (ALONE, SHARED)] * 20, 0.01)
    changed = np.array([[[ALONE, ALONE], [ALONE, SHARED]], [[SHARED, ALONE], [ALONE, SHARED]]])
    assert of_paces(np.concatenate([steady, changed]))[-2:] == ["near, contended"] * 2


def test_jobs_of_all_sizes_share_the_levels() -> None:
    two = [MachineProbe((30.0, 30.0), ((ALONE, ALONE), (ALONE, ALONE)))] * 5
    four = MachineProbe((30.0, 30.0), ((ALONE, SHARED, ALONE, 0.9), (ALONE, SHARED, ALONE, 0.9)))
    states = classify([*two, four, MachineProbe((30.0, 30.0)), MachineProbe(None, two[0].pace_ns)])
    assert [state.name for state in states] == ["near"] * 5 + ["near, contended", "near", "unknown"]


@pytest.mark.parametrize("hosts", [("one", "one"), ("one", "two")])
def test_a_slower_kind_of_cpu_is_not_contended(hosts: tuple[str, str]) -> None:
    """Two launches, the second on slower CPUs; in both, 10 % of the measurements are contended."""
    quick = paces_of([(ALONE, ALONE)] * 90 + [(ALONE, SHARED)] * 10, 0.01)
    slow = paces_of([(1.4 * ALONE, ALONE)] * 90 + [(1.4 * SHARED, ALONE)] * 10, 0.01)
    first, second = ((hosts[0], 0), (hosts[0], 1)), ((hosts[1], 4), (hosts[0], 1))
    seen = [
        MachineProbe((30.0, 30.0), (tuple(before), tuple(after)), places=places)
        for paces, places in ((quick, first), (slow, second))
        for before, after in paces.tolist()
    ]
    assert [state.name for state in classify(seen)] == (["near"] * 90 + ["near, contended"] * 10) * 2
    by_rank = [probe._replace(places=()) for probe in seen]
    assert classify(by_rank) != classify(seen), "without places the slower CPU counts as contended"


def test_states_sort_by_level_then_by_pace() -> None:
    names = ["near", "near, contended"]
    names += ["far 90.0 ns", "far 90.0 ns, contended", "far 184 ns", "reference 9.00 us", "reference 12.0 us"]
    names += ["mixed", "unknown"]
    places = [state_order(name) for name in names]
    assert places == sorted(set(places))
    assert state_order("reference", 9e3) < state_order("reference", 12e3), "of two transports"


def test_the_floor_of_a_state_is_that_of_its_measurements() -> None:
    """The two threads of a core share more than a cache: their floor is 31.6 ns, the level's 40.3 ns."""
    cores = [MachineProbe((40.0, 40.6), ((ALONE,) * 2,) * 2, (ALONE,) * 2)] * 9
    threads = [MachineProbe((31.4, 31.8), ((1.5 * ALONE,) * 2,) * 2, (ALONE,) * 2)] * 3
    states = classify([*cores, *threads])
    assert [state.name for state in states] == ["near"] * 9 + ["near, contended"] * 3
    assert [state.floor_ns for state in states] == pytest.approx([40.3] * 9 + [31.6] * 3)


@pytest.mark.parametrize(("ratio", "name"), [(1.37, "near, contended"), (1.28, "near, contended"), (1.2, "near")])
def test_same_core_is_found_on_a_contended_core(ratio: float, name: str) -> None:
    """Contention makes rank 0's loop slower alone, so that rank 1's loop adds less to it."""
    alone = 1.5 * ALONE
    seen = [MachineProbe((31.4, 31.8), ((ratio * alone,) * 2,) * 2, (alone,) * 2)] * 9
    assert {state.name for state in classify(seen)} == {name}


def test_states_of_a_level_share_its_name() -> None:
    contended = ((ALONE, SHARED),) * 2
    quick = ((ALONE, ALONE),) * 2
    states = classify(
        [
            *[MachineProbe((90.0, 91.0), quick)] * 9,
            *[MachineProbe((100.0, 101.0), contended)] * 9,
            MachineProbe((184.0, 184.0)),
        ]
    )
    assert {(state.level, state.is_contended, state.floor_ns) for state in states} == {
        ("far 95.5 ns", False, 90.5),
        ("far 95.5 ns", True, 100.5),
        ("far 184 ns", False, 184.0),
    }


# ---- odd floors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [1, 2, 4])
def test_few_outliers_do_not_join_two_levels(odd: int) -> None:
    """Outliers between the levels, with the same floor before and after."""
    near = [(floor, floor) for floor in np.linspace(38, 61, 200).tolist()]
    far = [(floor, floor) for floor in np.linspace(131, 190, 30).tolist()]
    bridge: Sequence[Floor] = [(89.0, 90.0)] * odd
    assert names([*near, *far, *bridge])[: len(near) + len(far)] == ["near"] * len(near) + ["far"] * len(far)


def test_two_runs_joined_by_one_measurement_are_separated() -> None:
    """Each run has too few measurements to show that it is an outlier."""
    paces = ((ALONE, ALONE),) * 2
    far = [MachineProbe((115.0, 116.0), paces), MachineProbe((126.0, 127.0), paces)]
    near = [
        MachineProbe((70.0, 71.0), paces),
        MachineProbe((89.0, 90.0), paces),
        *[MachineProbe((60.0, 61.0), paces)] * 2,
    ]
    assert len(set(classify([*far, *near]))) == 1
    for base, new in ((far, near), (near, far)):
        states = classify_both(base, new)
        assert [{state.level for state in of_run} for of_run in states] == [
            {"far 121 ns" if run is far else "near 65.5 ns"} for run in (base, new)
        ]


def test_runs_of_one_level_have_the_same_names() -> None:
    base, new = [MachineProbe((40.0, 41.0))] * 5, [MachineProbe((44.0, 45.0))] * 5 + [MachineProbe((184.0, 184.0))]
    assert [[state.name for state in of_run] for of_run in classify_both(base, new)] == [
        ["near"] * 5,
        ["near"] * 5 + ["far"],
    ]
    sliced = [MachineProbe((1500.0, 1500.0))] * 5, [MachineProbe((4e6, 4e6))] * 5
    assert [{state.name for state in of_run} for of_run in classify_both(*sliced)] == [{"time-sliced"}] * 2


@pytest.mark.parametrize("spread", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("kind", ["normal", "even", "heavy"])
def test_a_wide_level_stays_one(kind: str, spread: float) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        drawn = {
            "normal": rng.standard_normal(400),
            "even": rng.uniform(-2, 2, 400),
            "heavy": rng.standard_t(5, 400).clip(-4, 4),
        }[kind]
        floors = 20e3 * np.exp(spread * drawn)
        states = classify([MachineProbe((floor, floor), reference="tcp") for floor in floors.tolist()])
        (_, most), *_ = Counter(states).most_common(1)
        assert most / len(states) > 0.98, "a few at the ends may stand alone"


# ---- between hosts --------------------------------------------------------------------------------------------------


def test_each_reference_transport_has_its_levels() -> None:
    tcp = [MachineProbe((20e3, 21e3), reference="tcp")] * 3
    spin = [MachineProbe((9e3, 9e3), reference="tcp:spin"), MachineProbe((30e3, 31e3), reference="tcp:spin")]
    line = [MachineProbe((30.0, 30.0))]
    states = classify(
        [*tcp, *spin, *line, MachineProbe((20e3, 60e3), reference="tcp"), MachineProbe(None, reference="tcp")]
    )
    assert states == [
        *[State("reference", 20.5e3)] * 3,
        State("reference 9.00 us", 9e3),
        State("reference 30.5 us", 30.5e3),
        State("near", 30.0),
        MIXED,
        UNKNOWN,
    ]


def test_impossible_floors_are_unknown_in_two_runs() -> None:
    for floor in (0.0, math.inf, math.nan):
        odd = MachineProbe((floor, floor))
        assert classify_both([odd], [odd]) == ([UNKNOWN], [UNKNOWN])


def test_each_rank_on_an_unknown_cpu_has_a_separate_place() -> None:
    launch = make_launch(hosts=("a", "a", "a", "b"), cpus=(0, -1, -1, 0), ranks=4)
    assert launch.places == (("a", 0), ("a", -2), ("a", -3), ("b", 0))


@pytest.mark.parametrize(
    ("quick", "slow", "ratio", "limit"),
    [
        (20, 20, 1.11, math.inf),
        (20, 20, 1.13, 1.06),
        (19, 20, 1.29, math.inf),  # of fewer than 40
        (19, 20, 1.31, 1.06),
        (19, 1, 2.0, math.inf),
        (18, 2, 2.0, 1.06),
        (595, 5, 2.0, math.inf),
        (593, 7, 2.0, 1.06),
        (993, 7, 2.0, math.inf),
        (992, 8, 2.0, 1.06),
    ],
)
def test_a_cpu_is_contended_from_6_percent_above_the_faster_of_two_levels(
    quick: int, slow: int, ratio: float, limit: float
) -> None:
    assert pace_limit(np.array([1.0] * quick + [ratio] * slow)) == pytest.approx(limit)


@pytest.mark.parametrize(("ratio", "are_separate"), [(GAP * 0.99, False), (GAP * 1.01, True)])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_runs_whose_floors_differ_by_the_gap_have_separate_levels(
    ratio: float, are_separate: bool, is_reversed: bool
) -> None:
    """Measurements in between join the two levels into one."""
    middle_ns = 30.0 * math.sqrt(ratio)
    sides = [[MachineProbe((ns, ns))] * 9 + [MachineProbe((middle_ns, middle_ns))] * 4 for ns in (30.0, 30.0 * ratio)]
    base, new = classify_both(*(sides[::-1] if is_reversed else sides))
    assert (base[0].name != new[0].name) is are_separate
