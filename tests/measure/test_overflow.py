"""Which port of a model drops first, in cases that are known by construction."""

from __future__ import annotations

import pytest
from tests.analysis.predict.machines import model
from tests.builders import make_point

from hockney.measure.overflow import Overflow, overflows_of
from hockney.measure.predict import times_of
from hockney.model import Point
from hockney.report.documents.prediction import overflow_text
from hockney.results.rates import at_rate
from hockney.worker.machine_model import Model

BYTES = 14_480  # ten segments, with 90 B of headers each


def machine(buffer_bytes: int, **switch: bool) -> dict[str, Model]:
    """Links of 1 Gbit/s."""
    link = {"bytes_per_s": 125e6, "latency_ns": 1000, "source": "made up"}
    buffers = {"buffer_bytes": buffer_bytes, "source": "made up", **switch}
    return {"sim@made-up": model(link=[link], switch=buffers, tcp={"source": "made up"})}


def events(schedule: str, in_flight: int = 4) -> Point:
    """Three readouts, and two builders: ranks 4 and 5."""
    options = (("in_flight", str(in_flight)), ("schedule", schedule), ("senders", "3"))
    return make_point(BYTES, "sim@made-up", "eventbuilder", ranks=6, options=options)


def overflow(point: Point, models: dict[str, Model], *, is_searched: bool = True) -> Overflow:
    (found,) = overflows_of(times_of([point], models).measured, models, is_searched=is_searched)
    return found


def test_a_burst_that_is_larger_than_the_buffer_overflows_at_any_rate() -> None:
    """Three fragments come within the time of one, so the port would have to hold two."""
    found = overflow(events("all"), machine(15_380))
    assert (found.clean_hz, found.rank in (4, 5), found.role) == (None, True, f"builder {(found.rank or 0) - 3}")
    assert f"The port of {found.role} (rank {found.rank}) drops segments even at " in overflow_text(found)


def test_the_rate_from_which_a_port_drops_is_found_to_two_per_cent() -> None:
    """One event of three fragments fits, and two that overlap do not."""
    point, models = events("all"), machine(36_000)
    found = overflow(point, models)
    assert found.clean_hz is not None
    assert found.drops_hz is not None
    assert found.clean_hz < found.drops_hz <= 1.02 * found.clean_hz
    drops = {
        rate_hz: sum(times_of([at_rate(point, rate_hz)], models).measured[at_rate(point, rate_hz)].counters["drops"])
        for rate_hz in (found.clean_hz, found.drops_hz)
    }
    assert drops == {found.clean_hz: 0, found.drops_hz: found.drops}
    assert found.drops > 0


@pytest.mark.parametrize("is_searched", [False, True])
def test_a_buffer_with_room_for_all_that_is_under_way_never_overflows(is_searched: bool) -> None:
    found = overflow(events("all"), machine(1 << 20), is_searched=is_searched)
    assert (found.rank, found.drops, found.drops_hz) == (None, 0, None)
    assert overflow_text(found).startswith("No port drops a segment")
    assert (found.clean_hz is not None) is is_searched


def test_ports_that_share_a_buffer_are_named_so() -> None:
    found = overflow(events("all"), machine(15_380, shared=True), is_searched=False)
    assert found.drops > 0
    assert overflow_text(found).endswith("; all ports of a switch hold 15,380 B.")


def test_without_buffers_there_is_nothing_to_overflow() -> None:
    models = {"sim@made-up": model()}
    assert overflows_of(times_of([events("all")], models).measured, models, is_searched=False) == []
