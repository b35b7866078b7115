"""A blip at the page size is told, and nothing else is called one: curves of known truth."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.explain.blips import GRIDS, PAGE, WITHOUT, Shape, blip, rate_told
from tests.analysis.explain.drift import straight, told
from tests.analysis.explain.readings import SIZES, curve, found, lacking, reading
from tests.measure.made_up_machine import Machine

from hockney.analysis.explain import explain
from hockney.model import Measurement, Point

NAME = "a blip at the page size"


@pytest.mark.parametrize("factor", [1.1, 1.2, 1.45, 1.6, 3.0])
@pytest.mark.parametrize("sizes", GRIDS.values(), ids=list(GRIDS))
def test_a_blip_at_the_page_size(factor: float, sizes: list[int]) -> None:
    """Though it takes less than the next longer size, but for the last."""
    made = curve(lambda size: (500 + 0.1 * size) * (factor if size == PAGE else 1), sizes=sizes)
    (told_,) = found(NAME, reading(made))
    assert told_.sizes_bytes == (PAGE,)
    assert told_.sentence.startswith("At the page size, 4 KiB, pingpong takes ")
    (excess,) = [one.value for one in told_.evidence if one.what == "excess"]
    assert 0 < excess.low <= (500 + 0.1 * PAGE) * (factor - 1) <= excess.high
    assert told_.effect == pytest.approx(factor - 1, rel=0.1)
    kinds = {one.kind for one in explain(reading(made)).findings}
    assert not kinds & {"protocol switch", "jump", "bend", "gradual rise"}


def test_a_blip_at_two_pages_and_none_at_other_sizes() -> None:
    def at(place: int) -> list[tuple[int, ...]]:
        made = curve(lambda size: (500 + 0.1 * size) * (1.3 if size == place else 1))
        return [one.sizes_bytes for one in found(NAME, reading(made))]

    assert at(8192) == [(8192,)]
    assert at(2048) == at(16384) == []


def test_a_switch_at_the_page_size_is_told_as_a_switch() -> None:
    for last_bytes in (2048, 4096):
        times = {size: 500 + 0.1 * size + (900.0 if size > last_bytes else 0.0) for size in SIZES}
        made = curve(times.__getitem__)
        assert found(NAME, reading(made)) == []
        assert [one.sizes_bytes for one in found("protocol switches", reading(made))] == [(last_bytes, 2 * last_bytes)]
    assert found(NAME, reading(curve())) == []


def test_a_size_below_its_line_is_no_blip() -> None:
    made = curve(lambda size: (500 + 0.1 * size) * (0.7 if size == PAGE else 1))
    assert found(NAME, reading(made)) == []


def test_a_blip_needs_the_page_size_among_the_sizes_and_close_neighbours() -> None:
    without = [size for size in SIZES if size not in (PAGE, 2 * PAGE)]
    for sizes in (without, [8, 64, 256, PAGE, 65536], [512, 1024, 2048, PAGE]):
        assert "4 KiB" in lacking(NAME, reading(curve(sizes=sizes)))
    assert "not known" in lacking(NAME, reading(curve(), facts={}))


def test_a_blip_is_told_if_the_rounds_that_measured_the_neighbours_show_it(tmp_path: Path) -> None:
    """A machine that was slower during the measurements of one size gives it the same median, and no blip."""

    def measured(machine: Machine, slow_rounds: range) -> list[Measurement]:
        measurements = []
        for round_ in range(20):
            for size in (256 << n for n in range(9)):
                alone = round_ in slow_rounds
                machine.now_s = 1.0 if alone else 0.0
                if alone == (size == PAGE) or not slow_rounds:
                    point = Point("mpi", "pingpong", 2, size)
                    one = machine.measure(point, round_=round_, batch=10, samples=3, warmup=0, verify=True)
                    measurements.append(one)
        return measurements

    slow = Machine(lambda point: straight(point) * (1.3 if point.bytes == PAGE else 1.0))
    (told_,) = told(tmp_path / "slow.db", measured(slow, range(0)), detector=NAME)
    assert told_.effect == pytest.approx(0.3, abs=0.02)
    assert told(tmp_path / "up.db", measured(slow, range(0))) == [], "up to one size and down again is no jump"
    drifted = Machine(straight, drift=lambda now_s: 1.3 if now_s >= 1 else 1.0)
    assert told(tmp_path / "drift.db", measured(drifted, range(10, 20)), detector=NAME) == []


# ---- rates over random curves; tests/analysis/explain/blips.py prints them ----


@pytest.mark.parametrize(("factor", "noise", "least"), [(1.1, 0.01, 0.95), (1.2, 0.02, 0.95), (1.45, 0.05, 0.90)])
@pytest.mark.parametrize("sizes", GRIDS.values(), ids=list(GRIDS))
def test_blips_are_found(factor: float, noise: float, least: float, sizes: list[int]) -> None:
    assert rate_told(blip(factor), sizes, noise, curves=60) >= least


@pytest.mark.parametrize("shape", WITHOUT, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("sizes", GRIDS.values(), ids=list(GRIDS))
@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_blips_are_not_invented(shape: Shape, sizes: list[int], noise: float) -> None:
    assert rate_told(shape, sizes, noise, curves=60) <= 0.05
