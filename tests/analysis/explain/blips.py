"""Curves with a blip at the page size and without one: `python -m tests.analysis.explain.blips` prints the rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from tests.analysis.explain.readings import curve, found, reading

PAGE = 4096
GRIDS: Mapping[str, Sequence[int]] = {
    "doubling": [8 << n for n in range(14)],
    "of quick": [0, 8, 64, 256, *(1024 << n for n in range(9)), 1 << 20],
    "four to each doubling": sorted({round(8 * 2 ** (n / 4)) for n in range(53)}),
}
NOISES = (0.01, 0.02, 0.05)
BLIPS = (1.1, 1.2, 1.3, 1.45, 1.6)

Times = Callable[[int], float]
Shape = Callable[[np.random.Generator], Times]


def _line(random: np.random.Generator) -> tuple[float, float]:
    """A start-up of 30 ns to 20 us, and what a byte takes, 0.01 to 1 ns."""
    return 10 ** random.uniform(1.5, 4.3), 10 ** random.uniform(-2, 0)


def straight(random: np.random.Generator) -> Times:
    start_ns, slope = _line(random)
    return lambda size: start_ns + slope * size


def bent(random: np.random.Generator) -> Times:
    """Up to ten times as dear a byte, or as cheap, from between 1.6 and 12.6 KB on."""
    (start_ns, slope), place = _line(random), 10 ** random.uniform(3.2, 4.1)
    after = slope * 10 ** random.uniform(-1, 1)
    return lambda size: start_ns + slope * min(size, place) + after * max(0.0, size - place)


def switched(random: np.random.Generator) -> Times:
    """Longer by 5 to 100 % from the page size on or beyond it, where bytes cost something else, too."""
    (start_ns, slope), last = _line(random), PAGE - int(random.integers(2))
    level_ns = start_ns + slope * last
    more_ns, after = random.uniform(0.05, 1) * level_ns, slope * 10 ** random.uniform(-0.5, 0.3)
    return lambda size: start_ns + slope * size if size <= last else level_ns + more_ns + after * (size - last)


def stepped(random: np.random.Generator) -> Times:
    """The smallest jumps, 5 to 25 %, to a parallel line."""
    (start_ns, slope), last = _line(random), PAGE - int(random.integers(2))
    more_ns = random.uniform(0.05, 0.25) * (start_ns + slope * last)
    return lambda size: start_ns + slope * size + (more_ns if size > last else 0.0)


def dropped(random: np.random.Generator) -> Times:
    """Shorter by 5 to 50 % from the page size on or beyond it."""
    (start_ns, slope), last = _line(random), PAGE - int(random.integers(2))
    less_ns = random.uniform(0.05, 0.5) * (start_ns + slope * last)
    return lambda size: start_ns + slope * size - (less_ns if size > last else 0.0)


def knee(random: np.random.Generator) -> Times:
    """Bytes that cost up to five times as much when a cache has filled, little by little."""
    (start_ns, slope), cache = _line(random), 10 ** random.uniform(3.2, 4.1)
    more, sharp = slope * (10 ** random.uniform(0.1, 0.7) - 1), random.uniform(1, 4)
    return lambda size: start_ns + size * (slope + (more / (1 + (cache / size) ** sharp) if size else 0.0))


def concave(random: np.random.Generator) -> Times:
    """Each byte takes less than the one before it."""
    (start_ns, slope), power = _line(random), random.uniform(0.6, 0.95)
    return lambda size: start_ns + 4 * slope * size**power


def blip(factor: float) -> Shape:
    """A line, and so many times as long at the page size."""

    def shape(random: np.random.Generator) -> Times:
        line = straight(random)
        return lambda size: line(size) * (factor if size == PAGE else 1.0)

    return shape


WITHOUT: Sequence[Shape] = (straight, bent, switched, stepped, dropped, knee, concave)


def rate_told(shape: Shape, sizes: Sequence[int], noise: float, curves: int) -> float:
    """The share of random curves of which a blip is told, at the page size or at two pages."""
    random = np.random.default_rng(len(sizes))
    told = 0
    for _ in range(curves):
        times = shape(random)
        scattered = {size: times(size) * (1 + noise * random.standard_normal()) for size in sizes}
        made = curve(scattered.__getitem__, sizes=sizes, precision=1.96 * noise)
        told += bool(found("a blip at the page size", reading(made)))
    return told / curves


def main(curves: int = 1000) -> None:
    shapes = [(f"a blip of {factor - 1:.0%}", blip(factor)) for factor in BLIPS]
    shapes += [(shape.__name__, shape) for shape in WITHOUT]
    for name, shape in shapes:
        for grid, sizes in GRIDS.items():
            rates = " | ".join(f"{rate_told(shape, sizes, noise, curves):.1%}" for noise in NOISES)
            print(f"| {name} | {grid} | {rates} |", flush=True)


if __name__ == "__main__":
    main()
