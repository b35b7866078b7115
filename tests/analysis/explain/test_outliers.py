"""Outliers of known rate and size, in measurements as the sampler makes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.analysis.explain.readings import curve, found, not_checked, reading
from tests.builders import make_measurement, make_point

from hockney.analysis.explain.curve import Reading
from hockney.model import Measurement
from hockney.results.store import summary_of

SAMPLES, SAMPLE_NS = 40, 20_000


def measurements(
    rate_per_s: float = 0.0, length_ns: Callable[[np.random.Generator], float] | None = None, transport: str = "shm"
) -> list[Measurement]:
    """300 measurements of 40 samples of 20 us; outliers come at random and delay the current sample."""
    random = np.random.default_rng(1)
    made = []
    for _ in range(300):
        elapsed_ns = SAMPLE_NS * random.uniform(0.97, 1.03, SAMPLES)
        for number in range(SAMPLES):
            for _ in range(random.poisson(1e-9 * rate_per_s * SAMPLE_NS)):
                elapsed_ns[number] += length_ns(random) if length_ns is not None else 0.0
        made.append(make_measurement(make_point(transport=transport), [elapsed_ns.tolist()] * 2, batch=8))
    return made


def read(*made: list[Measurement]) -> Reading:
    return reading(curve(), measured=[(each.point, summary_of(each)) for one in made for each in one])


def test_the_rate_and_the_size_of_outliers() -> None:
    (slow,) = found("outliers", read(measurements(2000, lambda random: 60_000 + random.exponential(20_000))))
    assert (slow.code, slow.subject.transport) == ("outliers", "shm")
    share = 1 - np.exp(-2000 * 20e-6)
    assert slow.facts["slow_share"] == pytest.approx(share, rel=0.15)
    assert slow.facts["outliers"] == round(slow.facts["slow_share"] * slow.facts["samples"])
    rate, excess_ns = slow.facts["rate_per_s"], slow.facts["excess_ns"]
    assert rate.low <= 1e9 * share / (20e3 + 2000e-9 * 80e3 * 20e3) <= rate.high
    assert excess_ns.low <= 60_000 + 20_000 * np.log(2) * 1.05
    assert excess_ns.high >= 60_000 + 20_000 * np.log(2) * 0.95
    assert slow.effect == pytest.approx(0.137, rel=0.15)  # 80 us more in 4 % of samples of 20 us


@pytest.mark.parametrize("outliers_of_all", [20, 200, 3000])
def test_the_interval_of_the_rate_is_that_of_a_poisson_count(outliers_of_all: int) -> None:
    """The exact one is by the chi-squared distribution (Garwood 1936)."""
    from scipy.stats import chi2

    elapsed_ns = np.full((300, SAMPLES), SAMPLE_NS)
    elapsed_ns.ravel()[:: elapsed_ns.size // outliers_of_all] *= 3
    made = [make_measurement(make_point(), [row.tolist()] * 2, batch=8) for row in elapsed_ns]
    (slow,) = found("outliers", read(made))
    assert slow.facts["outliers"] == outliers_of_all
    rate, total_s = slow.facts["rate_per_s"], 1e-9 * elapsed_ns.sum()
    assert rate.value == pytest.approx(outliers_of_all / total_s)
    assert rate.low == pytest.approx(chi2.ppf(0.025, 2 * outliers_of_all) / 2 / total_s, rel=2e-3)
    assert rate.high == pytest.approx(chi2.ppf(0.975, 2 * outliers_of_all + 2) / 2 / total_s, rel=2e-3)


def test_each_transport_has_its_own() -> None:
    quiet, loud = measurements(), measurements(2000, lambda random: 60_000.0, transport="tcp")
    assert [slow.subject.transport for slow in found("outliers", read(quiet, loud))] == ["tcp"]


@pytest.mark.parametrize(("count", "is_found"), [(11, False), (12, True)])
def test_fewer_than_one_in_a_thousand_are_no_finding(count: int, is_found: bool) -> None:
    made = measurements()
    for measurement in made[:count]:
        measurement.elapsed_ns[:, 7] += 90_000
    assert bool(found("outliers", read(made))) is is_found


def test_a_clock_too_coarse_for_the_samples_shows_no_outliers() -> None:
    coarse = [make_measurement(make_point(), [[0] * 14 + [1000] * 6] * 2)] * 50
    not_checked("outliers", read(coarse))
    not_checked("outliers", reading(curve()))
