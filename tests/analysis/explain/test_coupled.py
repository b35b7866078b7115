"""A slow rank, link or switch: named where the times of ranks show it, and otherwise not guessed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.analysis.explain.coupled import KINDS, named, score
from tests.analysis.explain.readings import curve, found, not_checked, reading
from tests.builders import make_measurement, make_point
from tests.matrix import matrix
from tests.report.runs import Made, store_run
from tests.worker.test_session import faulty

from hockney.analysis.explain.curve import Reading
from hockney.analysis.explain.read import read_run
from hockney.machine.topology import Cache, Topology
from hockney.model import Point
from hockney.results.runs import open_results
from hockney.stats import State
from hockney.worker.session import WorkerSession


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pattern", ["ring", "barrier", "alltoall"])
def test_no_rank_is_named_if_all_wait_for_the_slowest(pattern: str, kind: str) -> None:
    """A rank that is 3 to 10 times slower takes little longer than those that wait for it."""
    made = score(pattern, kind, 5)
    assert made.unchecked == made.machines
    assert made.contrast < 1.10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pattern", ["putring", "pairs", "bisection"])
def test_slow_links_are_named_where_each_rank_times_its_own(pattern: str, kind: str) -> None:
    made = score(pattern, kind, 10)
    assert (made.right, made.accused) == (made.machines, 0)


def measurements(by_rank: list[int], pattern: str = "putring", batch: int = 8) -> Reading:
    samples = np.repeat(np.array(by_rank)[:, None], 20, axis=1)
    point = make_point(pattern=pattern, ranks=len(by_rank))
    made = [(make_measurement(point, samples, batch=batch), State("near", 30.0))] * 9
    return reading(
        curve(pattern=pattern), samples=lambda most, patterns=(): [one for one in made if pattern in patterns]
    )


def test_several_slow_links_are_one_finding_and_a_rank_in_all_of_them_is_named() -> None:
    (slow,) = found("slow links", measurements([1000, 1500, 1500, 1000, 1000, 1000]))
    assert named([slow]) == {(1, 2), (2, 3)}
    assert slow.facts["common_ranks"] == [2]


def test_one_slow_link_names_both_of_its_ranks() -> None:
    (slow,) = found("slow links", measurements([1000, 1300, 1000, 1000], "pairs"))
    assert named([slow]) == {(1, 3)}
    assert slow.facts["slower_ratio"].value == pytest.approx(1.3)


@pytest.mark.parametrize(("slow_ns", "links"), [(1090, []), (1110, ["1-3"])])
def test_a_link_is_slow_from_a_tenth_above_the_others(slow_ns: int, links: list[str]) -> None:
    findings = found("slow links", measurements([1000, slow_ns, 1000, 1000], "pairs"))
    assert [finding.facts["links"] for finding in findings] == ([links] if links else [])


def test_a_rank_that_waits_for_the_other_to_start_is_not_slow() -> None:
    """With one repetition a sample, sockets take 8 us on one side and 25 us on the other; a time of 1 ms counts."""
    not_checked("slow links", measurements([300_000, 900_000], batch=1))
    assert found("slow links", measurements([300_000, 1_100_000], batch=1))


@pytest.mark.parametrize("pattern", matrix(["putring", "pairs", "ring", "alltoall", "barrier"], short=["putring"]))
def test_a_slow_rank_of_a_real_job(pattern: str) -> None:
    """Every rank sleeps 10 ms before each message and put, longer than a scheduler takes; rank 1 30 ms."""
    made = []
    with WorkerSession(faulty("lag 1 10000000", ranks=4)) as session:
        session.hello()
        for _ in range(6):
            size = 0 if pattern == "barrier" else 8
            answer = session.measure(pattern, bytes=size, batch=8, samples=1, warmup=0, timeout_s=30)
            measurement = make_measurement(make_point(pattern=pattern, ranks=4), answer.elapsed_ns, batch=8)
            made.append((measurement, State("unknown", None)))
        session.close()
    of = reading(curve(pattern=pattern), samples=lambda most, patterns=(): [one for one in made if pattern in patterns])
    if pattern in ("putring", "pairs"):
        (slow,) = found("slow links", of)
        assert named([slow]) == {(1, 2) if pattern == "putring" else (1, 3)}
    else:
        not_checked("slow links", of)
        # All of them wait for rank 1: load makes a sleep longer, never shorter.
        messages = {"ring": 1, "alltoall": 3, "barrier": 2}[pattern]
        slept_ns = 8 * messages * 5e6  # by each rank but rank 1
        assert min(measurement.elapsed_ns.min() for measurement, _ in made) > 1.5 * slept_ns


def test_links_are_compared_with_those_whose_ranks_share_as_much(tmp_path: Path) -> None:
    """Ranks 0 and 1 share a cache, and 2 and 3: from one to the other takes twice as long, and is no slow link."""
    topology = Topology(
        source="sysfs",
        cores=((0,), (1,), (2,), (3,)),
        packages=((0, 1, 2, 3),),
        caches=tuple(Cache(3, "unified", 1 << 20, 64, own) for own in ((0, 1), (2, 3))),
    )
    made = [Made(Point("mpi", "putring", 4, 8), 50.0, timed="mean", by_rank=[50.0, 100.0, 50.0, 100.0])]
    facts = {"hostname": "here", "topology": topology.as_json()}
    for number, pinned in enumerate((True, False)):
        path = tmp_path / f"{number}.db"
        store_run(path, "mine", made, pinned=pinned, facts=facts)
        with open_results(path) as results:
            assert bool(found("slow links", read_run(results.run()))) != pinned
