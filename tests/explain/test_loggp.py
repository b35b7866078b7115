"""LogGP of a stored run: a machine with known parameters, measured in two states, of which one is incomplete."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.builders import make_info, make_launch, make_point, make_visit
from tests.fit.test_loggp import MESSAGES, SMALL, check

import hockney
from hockney.explain.loggp import loggp_of
from hockney.fit import NoFit
from hockney.model import Definition, Point, RunStatus, Visit
from hockney.store import Store

SIZES = [0, 64, 512, 1024, 4096, 16384]
DELAY_NS = 100_000
REALLY_NS = 100_020


def points(size: int) -> list[tuple[Point, float]]:
    """The four points of a size, and their times."""
    return [
        (
            make_point(size, "shm", "prtt", options=tuple(sorted(options.items()))),
            SMALL.round_trip_ns(size, int(options.get("messages", 1)), REALLY_NS if "delay_ns" in options else 0),
        )
        for options in (
            {},
            {"messages": str(MESSAGES)},
            {"delay_ns": str(DELAY_NS)},
            {"delay_ns": str(DELAY_NS), "messages": str(MESSAGES)},
        )
    ]


@pytest.fixture
def run(tmp_path: Path) -> hockney.Run:
    with Store.open(tmp_path / "results.db") as store:
        run_id = store.create_run(make_info())
        launch_id = store.add_launch(run_id, make_launch())
        every = [each for size in SIZES for each in points(size)]
        store.add_points(run_id, [point for point, _ in every])
        visits: list[Visit] = []
        for point, time_ns in every:
            delays = 30.0 if dict(point.options).get("delay_ns") else 0.0
            for floor_ns in [27.0, 27.0] + [184.0] * (not point.options):  # far: the round trip alone
                visits.append(
                    make_visit(
                        point,
                        [[round(100 * time_ns)] * 3] * 2,
                        batch=100,
                        definition=Definition("root", 1, 0, 2),
                        floor_ns=(floor_ns, floor_ns),
                        launch_id=launch_id,
                        round_=len(visits),
                        counters={"delays": (delays, 0.0), "delay_ns": (delays * REALLY_NS, 0.0)},
                    )
                )
        store.write_round(run_id, visits)
        store.finish_run(run_id, RunStatus.DONE)
    return hockney.open(tmp_path / "results.db").run()


def test_each_state_has_its_parameters_or_says_what_it_lacks(run: hockney.Run) -> None:
    found = loggp_of(run, "shm")
    assert found.keys() == {"near", "far"}
    assert not isinstance(found["near"], NoFit)
    (near,) = found["near"]
    check(near, SMALL, 0.01)
    assert isinstance(found["far"], NoFit)
    assert found["far"].reason == "LogGP needs prtt with one message and with several, each with a delay and without"


def test_a_run_without_the_pattern_has_none(run: hockney.Run) -> None:
    assert loggp_of(run, "tcp") == {}
