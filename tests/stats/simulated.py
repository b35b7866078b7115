"""What the comparison of launches promises: `python -m tests.stats.simulated` prints the simulations of methods.md.

Launches scatter in three ways; the truth is known. tests/stats/test_shift.py holds the same cases, in small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hockney.stats.shift import Shift, Stratum, family_p, shift_over

if TYPE_CHECKING:
    from hockney.model import FloatArray

KINDS = ("normal", "heavy", "two levels")
LAUNCHES = ((4, 4), (5, 5), (5, 10), (10, 10))
STRATA = (((3, 4), (2, 5)), ((3, 2), (2, 3)), ((2, 9), (2, 1), (1, 5)))  # launches of base and new in each state
_STATES = (0.0, 0.4, 1.4)  # logs of what the time of a series is multiplied with in each state
SLOWDOWN = 1.25
SIGNIFICANT = 0.05
_SERIES = 100
_INTERVALS, _FAMILIES, _SLOWDOWNS = 2000, 500, 200  # trials
_SERIES_IN_STATES = 30
_FAMILIES_IN_STATES, _SLOWDOWNS_IN_STATES = 200, 100

Trial = Callable[[np.random.Generator, str, int, int], bool]
TrialInStates = Callable[[np.random.Generator, str], bool]


def noise(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> FloatArray:
    """Logs of times: 2 % of scatter; with wild launches; or memory that lies well or badly, 15 % apart."""
    if kind == "heavy":
        return 0.02 * rng.standard_t(2, shape)
    if kind == "two levels":
        return 0.15 * rng.integers(0, 2, shape) + 0.005 * rng.standard_normal(shape)
    return 0.02 * rng.standard_normal(shape)


def shift(base: Sequence[float], new: Sequence[float]) -> Shift:
    """Of one stratum."""
    return shift_over([(base, new)])


def slowed_shift(rng: np.random.Generator, kind: str, m: int, n: int) -> Shift:
    """The shift that is found between launches of which the new ones are slower by SLOWDOWN."""
    base, new = np.exp(noise(rng, kind, (m,))), SLOWDOWN * np.exp(noise(rng, kind, (n,)))
    return shift(base.tolist(), new.tolist())


def holds(rng: np.random.Generator, kind: str, m: int, n: int) -> bool:
    """Whether the interval of one series encloses the true ratio."""
    found = slowed_shift(rng, kind, m, n)
    assert found.low is not None
    assert found.high is not None
    return found.low <= SLOWDOWN * (1 + 1e-12) and found.high >= SLOWDOWN * (1 - 1e-12)


def family(
    rng: np.random.Generator, kind: str, m: int, n: int, series: int, ratio: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """Base and new of many series that were measured side by side; the first one's ratio is given, the rest has none.

    Beside their own scatter all series of a launch have one of 2 % in common.
    """
    logs = noise(rng, kind, (series, m + n)) + 0.02 * rng.standard_normal((1, m + n))
    logs[0, m:] += np.log(ratio)
    return np.exp(logs[:, :m]), np.exp(logs[:, m:])


def alarms(rng: np.random.Generator, kind: str, m: int, n: int, series: int) -> bool:
    """Whether any of so many unchanged series stands out."""
    return bool((family_p(*family(rng, kind, m, n, series)) <= SIGNIFICANT).any())


def is_named(rng: np.random.Generator, kind: str, m: int, n: int, series: int) -> bool:
    """Whether a slowdown of one of so many series stands out, and its own interval leaves out "no difference"."""
    base, new = family(rng, kind, m, n, series, SLOWDOWN)
    low = shift(base[0].tolist(), new[0].tolist()).low
    return bool(family_p(base, new)[0] <= SIGNIFICANT) and low is not None and low > 1


def in_states(rng: np.random.Generator, kind: str, sizes: Sequence[tuple[int, int]], ratio: float) -> list[Stratum]:
    """One series of which each run's launches saw several states of the machine."""
    strata: list[Stratum] = []
    for (m, n), state in zip(sizes, _STATES, strict=False):
        logs = state + noise(rng, kind, (m + n,)) + np.log(ratio) * (np.arange(m + n) >= m)
        strata.append((np.exp(logs[:m]).tolist(), np.exp(logs[m:]).tolist()))
    return strata


def holds_over_states(rng: np.random.Generator, kind: str, sizes: Sequence[tuple[int, int]]) -> bool:
    """Whether the interval over strata encloses the true ratio."""
    found = shift_over(in_states(rng, kind, sizes, SLOWDOWN))
    assert found.low is not None
    assert found.high is not None
    return found.low <= SLOWDOWN * (1 + 1e-12) and found.high >= SLOWDOWN * (1 - 1e-12)


def family_in_states(
    rng: np.random.Generator, kind: str, sizes: Sequence[tuple[int, int]], series: int, ratio: float
) -> tuple[FloatArray, FloatArray, list[int]]:
    """As `family`, a row for each stratum of each series, and each series' first row; each has states of its own."""
    m, n = (sum(of_side) for of_side in zip(*sizes, strict=True))
    base, new = (np.full((series * len(sizes), count), np.nan) for count in (m, n))
    common = 0.02 * rng.standard_normal(m + n)
    for number in range(series):
        places = [rng.permutation(m), rng.permutation(n)]
        for state, strata in enumerate(in_states(rng, kind, sizes, ratio if number == 0 else 1.0)):
            for table, values, luck, side in ((base, strata[0], common[:m], 0), (new, strata[1], common[m:], 1)):
                chosen, places[side] = np.split(places[side], [len(values)])
                table[number * len(sizes) + state, chosen] = values * np.exp(luck[chosen])
    return base, new, list(range(0, series * len(sizes), len(sizes)))


def alarms_over_states(rng: np.random.Generator, kind: str, sizes: Sequence[tuple[int, int]], series: int) -> bool:
    """Whether any of so many unchanged series is called different."""
    return bool(_named(*family_in_states(rng, kind, sizes, series, 1.0)))


def is_named_over_states(rng: np.random.Generator, kind: str, sizes: Sequence[tuple[int, int]], series: int) -> bool:
    """Whether a slowdown of the first of so many series is called one."""
    return 0 in _named(*family_in_states(rng, kind, sizes, series, SLOWDOWN))


def _named(base: FloatArray, new: FloatArray, starts: list[int]) -> list[int]:
    """Which series are called different: they stand out, and their own interval leaves out "no difference"."""
    chances = family_p(base, new, starts=starts)
    named = []
    for number, rows in enumerate(np.split(np.arange(len(base)), starts[1:])):
        found = shift_over([(_known(base[row]), _known(new[row])) for row in rows])
        assert found.low is not None
        assert found.high is not None
        if chances[number] <= SIGNIFICANT and not found.low <= 1 <= found.high:
            named.append(number)
    return named


def _known(values: FloatArray) -> list[float]:
    known: list[float] = values[np.isfinite(values)].tolist()
    return known


def rate(trial: Trial, kind: str, m: int, n: int, trials: int) -> float:
    """How often a trial is true, with a fixed seed."""
    rng = np.random.default_rng(1)
    return sum(trial(rng, kind, m, n) for _ in range(trials)) / trials


def rate_in_states(trial: TrialInStates, kind: str, trials: int) -> float:
    """The same of a trial whose launches saw several states."""
    rng = np.random.default_rng(1)
    return sum(trial(rng, kind) for _ in range(trials)) / trials


def main() -> None:
    """Each row is printed as soon as it is known: all take minutes."""
    print_launches()
    print_states()


def print_states() -> None:
    """How launches in several states do together, at 95 % and among _SERIES_IN_STATES series."""
    for sizes in STRATA:
        nominal = shift_over(in_states(np.random.default_rng(1), KINDS[0], sizes, 1.0)).coverage
        assert nominal is not None
        rows = []
        columns: tuple[tuple[TrialInStates, int], ...] = (
            (partial(holds_over_states, sizes=sizes), _INTERVALS),
            (partial(alarms_over_states, sizes=sizes, series=_SERIES_IN_STATES), _FAMILIES_IN_STATES),
            (partial(is_named_over_states, sizes=sizes, series=_SERIES_IN_STATES), _SLOWDOWNS_IN_STATES),
        )
        for one, trials in columns:
            found = [rate_in_states(one, kind, trials) for kind in KINDS]
            rows.append(", ".join(f"{100 * share:.1f}" for share in found))
        seen = " + ".join(f"{m} and {n}" for m, n in sizes)
        print(f"| {seen} | {100 * nominal:.1f} % |", " | ".join(f"{cell} %" for cell in rows), "|", flush=True)


def print_launches() -> None:
    """How launches in one state do."""
    columns: tuple[tuple[Trial, int], ...] = (
        (holds, _INTERVALS),
        (partial(alarms, series=_SERIES), _FAMILIES),
        (partial(is_named, series=_SERIES), _SLOWDOWNS),
    )
    for m, n in LAUNCHES:
        nominal = slowed_shift(np.random.default_rng(1), KINDS[0], m, n).coverage
        assert nominal is not None
        cells = [
            ", ".join(f"{100 * rate(trial, kind, m, n, trials):.1f}" for kind in KINDS) for trial, trials in columns
        ]
        print(f"| {m} and {n} | {100 * nominal:.1f} % |", " | ".join(f"{cell} %" for cell in cells), "|", flush=True)


if __name__ == "__main__":
    main()
