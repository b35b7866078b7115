"""LogGP of a stored run: a machine with known parameters, and round trips that do not belong together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_info, make_launch, make_measurement, make_point
from tests.stats.fit.test_loggp import LARGE, SMALL, check
from tests.stats.fit.truth import MESSAGES, Machine

from hockney.analysis.explain.curve import Parameters
from hockney.analysis.explain.fits import loggp_of
from hockney.analysis.explain.read import read_run
from hockney.analysis.finding import Absence, NotChecked
from hockney.analysis.pair_classes import classes_of
from hockney.analysis.pairs import usable
from hockney.model import Definition, Measurement, Point, RunStatus
from hockney.report.findings import check_name, gap_text
from hockney.results.runs import open_results
from hockney.results.store import Store

SIZES = [0, 64, 512, 1024, 4096, 16384]
DELAY_NS = 100_000
OVER_NS = 20  # the excess of a delay over its setting
NEEDS = "needs prtt with one message and several, with a delay and without, each with an interval"
NEAR, FAR, MIXED = (27.0, 27.0), (184.0, 184.0), (27.0, 184.0)

Times = Iterable[tuple[Point, float]]


def points(machine: Machine = SMALL, sizes: Sequence[int] = SIZES, delay_ns: int = DELAY_NS, **more: Any) -> Times:
    """The four points of each size, and their times."""
    others: Mapping[str, str] = more.pop("options", {})
    for size in sizes:
        for own in ({}, {"messages": MESSAGES}, {"delay_ns": delay_ns}, {"delay_ns": delay_ns, "messages": MESSAGES}):
            options = {**others, **{name: str(value) for name, value in own.items()}}
            really_ns = delay_ns + OVER_NS if "delay_ns" in own else 0
            point = make_point(size, "shm", "prtt", options=tuple(sorted(options.items())), **more)
            yield point, machine.round_trip_ns(size, own.get("messages", 1), really_ns)


def store(
    path: Path,
    *parts: tuple[tuple[float, float], int, Times],
    oversubscribed: bool = False,
    hosts: Sequence[tuple[str, ...]] = (),
) -> list[Any]:
    """The fit to a run; each (floors, measurements, points and their times) gives a part of it.

    With `hosts` each part is a separate launch on these.
    """
    every = [(floors, measurements, list(times)) for floors, measurements, times in parts]
    with Store.open(path) as results:
        run_id = results.create_run(
            make_info(), list(dict.fromkeys(point for *_, times in every for point, _ in times))
        )
        launches: dict[tuple[int, int], int] = {}
        made: list[Measurement] = []
        for part, (floors, measurements, times) in enumerate(every):
            for point, time_ns in times:
                ranks = point.ranks
                key = (ranks, part if hosts else 0)
                if key not in launches:
                    launch = make_launch(
                        ranks=ranks,
                        cpus=(0,) * ranks,
                        hosts=hosts[part] if hosts else ("here",) * ranks,
                        oversubscribed=oversubscribed,
                    )
                    launches[key] = results.add_launch(run_id, launch)
                given = dict(point.options)
                delays = 30.0 if "delay_ns" in given else 0.0
                delay_ns = delays * (int(given.get("delay_ns", 0)) + OVER_NS)
                idle = (0.0,) * (point.ranks - 1)
                made.extend(
                    make_measurement(
                        point,
                        [[round(100 * time_ns)] * 3] * point.ranks,
                        batch=100,
                        definition=Definition("root", 1, 0, 2),
                        floor_ns=floors,
                        launch_id=launches[key],
                        round_=len(made) + number,
                        counters={"delays": (delays, *idle), "delay_ns": (delay_ns, *idle)},
                    )
                    for number in range(measurements)
                )
        results.write_round(run_id, made)
        results.finish_run(run_id, RunStatus.DONE)
    with open_results(path) as opened:
        run = opened.run()
        return list(read_run(run).loggp if oversubscribed else loggp_of(usable(run), classes_of(run)))


def checked(one: Parameters | NotChecked, machine: Machine) -> None:
    assert isinstance(one, Parameters), one
    check(one.loggp, machine, 0.01)


def test_each_state_has_its_parameters_or_a_reason(tmp_path: Path) -> None:
    alone = [(point, time) for point, time in points() if not point.options]
    near, far = store(tmp_path / "r.db", (NEAR, 7, points()), (FAR, 6, alone))
    assert (near.state, check_name(far)) == ("near", "LogGP of prtt on shm, 2 ranks (far)")
    checked(near, SMALL)
    assert (far.reason, gap_text(far)) == (Absence.INSUFFICIENT_DATA, NEEDS)


def test_ranks_and_options_are_not_thrown_together(tmp_path: Path) -> None:
    fits = store(
        tmp_path / "r.db",
        (NEAR, 7, points()),
        (NEAR, 7, points(LARGE, ranks=4)),
        (NEAR, 7, points(LARGE, ranks=4, options={"source": "2", "target": "3"})),
    )
    assert [(fit.ranks, fit.pattern) for fit in fits] == [(2, "prtt"), (4, "prtt"), (4, "prtt source=2 target=3")]
    for fit, machine in zip(fits, (SMALL, LARGE, LARGE), strict=True):
        checked(fit, machine)


def test_each_launch_has_the_class_of_its_ranks(tmp_path: Path) -> None:
    parts = (NEAR, 8, points()), (NEAR, 7, points(LARGE))
    near, far = store(tmp_path / "r.db", *parts, hosts=[("a", "a"), ("a", "b")])
    assert (near.pair_class, far.pair_class) == ("one host", "between hosts")
    checked(near, SMALL)
    checked(far, LARGE)


def test_another_delay_in_the_same_run_changes_nothing(tmp_path: Path) -> None:
    """A shorter delay that was measured too, and later."""
    (fit,) = store(tmp_path / "r.db", (NEAR, 7, points()), (NEAR, 7, points(delay_ns=DELAY_NS // 2)))
    checked(fit, SMALL)


def test_too_few_measurements_mixed_ones_and_oversubscribed_ranks_give_no_parameters(tmp_path: Path) -> None:
    (few,) = store(tmp_path / "few.db", (NEAR, 3, points()))
    assert gap_text(few) == NEEDS
    mixed = store(
        tmp_path / "mixed.db", (NEAR, 6, list(points())[:1]), (FAR, 6, list(points())[:1]), (MIXED, 7, points())
    )
    assert {gap.subject.state for gap in mixed} == {"near", "far"}
    assert store(tmp_path / "oversubscribed.db", (NEAR, 7, points()), oversubscribed=True) == []


def test_a_size_whose_delay_is_too_short_is_left_out_alone(tmp_path: Path) -> None:
    (partial,) = store(tmp_path / "r.db", (NEAR, 7, points(sizes=[*SIZES, 1 << 21])))
    checked(partial, SMALL)
    assert partial.loggp.last_bytes == SIZES[-1]
    (all_short,) = store(tmp_path / "short.db", (NEAR, 7, points(delay_ns=1000)))
    assert "a delay longer than a round trip" in gap_text(all_short)


def test_samples_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "hockney.results.runs.Series.measurements", property(lambda series: pytest.fail("samples were read"))
    )
    (fit,) = store(tmp_path / "r.db", (NEAR, 7, points()))
    checked(fit, SMALL)
