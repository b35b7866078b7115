"""Fits of machines: known parameters come back, and a fitted machine shows the figures that it was fitted to."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.predict.known import LATENCY, MODEL, PER_BYTE, PER_LONG_BYTE, PUT, RECEIVE, SEND, WAY, copied
from tests.builders import make_point

from hockney.analysis.predict.fit import Basics, Figures, Fit, fit_machine
from hockney.cli import execute
from hockney.measure.predict import times_of
from hockney.model import Point
from hockney.results.runs import Run, open_results
from hockney.stats.fit import NoFit
from hockney.stats.interval import Estimate
from hockney.suites import load_suite
from hockney.worker.machine_model import Model, load_model


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """The suites basics and validate on it."""
    store = copied(tmp_path_factory)
    with open_results(store) as results:
        yield results.run("last")


def fitted(run: Run) -> Fit:
    fit = fit_machine(run, run.series[0].point.transport, load_suite("validate"))
    assert isinstance(fit, Fit)
    return fit


def cost(content: dict[str, Any], size: int, name: str, table: str = "class") -> float:
    segment = next(row for row in content[table]["all"]["segment"] if size <= row.get("up_to_bytes", size))
    parts = segment.get(name, {})
    return float(parts.get("fixed_ns", 0) + parts.get("per_byte_ns", 0) * size)


def test_known_parameters_come_back(run: Run) -> None:
    content = fitted(run).content(2)
    for size in (0, 8, 64, 256, 700, 1024, 3000, 4096):
        for name, known in (("send_cpu", SEND), ("recv_cpu", RECEIVE)):
            assert cost(content, size, name) == pytest.approx(known, rel=0.01), (size, name)
        # A transfer shorter than the receiver's work does not show in a stream: it counts as part of the way.
        way_ns = cost(content, size, "latency") + cost(content, size, "transfer")
        assert way_ns == pytest.approx(LATENCY + PER_BYTE * size, rel=0.01), size
        if PER_BYTE * size > RECEIVE:
            assert cost(content, size, "transfer") == pytest.approx(PER_BYTE * size, rel=0.01), size
    for size in (8192, 65536, 1 << 20, 1 << 22):
        assert cost(content, size, "transfer") == pytest.approx(PER_LONG_BYTE * size, rel=0.01)
        assert cost(content, size, "latency") == pytest.approx(WAY, rel=0.1)
    protocols = {row.get("up_to_bytes"): row["protocol"] for row in content["class"]["all"]["segment"]}
    assert (protocols[4096], protocols[8192]) == ("eager", "rendezvous")
    assert cost(content, 700, "send_cpu", "put") == pytest.approx(PUT + 700, rel=0.02)
    assert "get" not in content


def test_its_predictions_for_more_ranks_agree(run: Run, tmp_path: Path) -> None:
    (tmp_path / "known.toml").write_text(MODEL)
    points = [
        make_point(size, pattern=pattern, ranks=ranks, options=options)
        for pattern, options, sizes in (
            ("alltoall", (("algorithm", "flat"),), (8, 700, 65536)),
            ("ring", (), (8, 700, 65536)),
            ("halo2d", (), (8, 700, 65536)),
            ("barrier", (("algorithm", "dissemination"),), (0,)),
            ("robpull", (), (1024,)),
            ("multicast", (), (1024, 65536)),
            ("putring", (), (700,)),
        )
        for size in sizes
        for ranks in (2, 5, 16)
    ]
    known = times_of(points, {"shm": load_model(str(tmp_path / "known.toml"))}).time_ns
    predicted = times_of(points, {"shm": Model.from_content("fitted", fitted(run).content(16))}).time_ns
    for point in points:
        assert predicted[point] == pytest.approx(known[point], rel=0.03), point


# ---- made-up figures -----------------------------------------------------------------------------------------------


def basics(size: int, half: float, gap: float, both: float | None = None, **more: Any) -> Basics:
    """`both`: for a message each way."""
    times = {"half": half, "gap": gap, **({} if both is None else {"both": both / 2}), **more}
    exact = {name: Estimate(value, value * 0.98, value * 1.02) for name, value in times.items()}
    return Basics(size, exact, messages=8, delay_ns=100_000, acknowledged=1 << 20)


def fit_of(*rows: Basics, switches: tuple[int, ...] = ()) -> Fit:
    return Fit(Figures("made-up", None, rows, {}), switches)


def time_ns(fit: Fit, pattern: str, size: int, *options: tuple[str, str], ranks: int = 2) -> float:
    point: Point = make_point(size, pattern=pattern, ranks=ranks, options=options)
    return times_of([point], {point.transport: Model.from_content("fitted", fit.content(ranks))}).time_ns[point]


STREAM = ("window", "16")
MACHINES = {  # half a round trip, a message of a stream, a message each way
    "spinning": [basics(0, 43, 6.5, 11.5), basics(64, 50, 8.2, 16.4), basics(256, 55, 27, 29)],
    "sleeping": [basics(8, 20000, 4400, 5400), basics(4096, 22000, 5300, 6400), basics(65536, 27000, 12800, 13800)],
    "copying": [basics(4096, 91, 63, 63), basics(65536, 622, 600, 605), basics(1 << 20, 19600, 19400, 20000)],
    "falling": [basics(8, 120, 50, 85), basics(1024, 100, 40, 70), basics(4096, 3000, 1200, 2100)],
}


@pytest.mark.parametrize("name", MACHINES)
def test_a_fitted_machine_shows_its_figures(name: str) -> None:
    fit = fit_of(*MACHINES[name])
    for row in MACHINES[name]:
        assert time_ns(fit, "pingpong", row.bytes) == pytest.approx(row.times["half"].value, rel=0.01)
        assert time_ns(fit, "oneway", row.bytes, STREAM) == pytest.approx(row.times["gap"].value, rel=0.05)
        assert time_ns(fit, "twoway", row.bytes, STREAM) == pytest.approx(row.times["both"].value, rel=0.1)


def test_between_two_sizes_times_lie_between() -> None:
    fit = fit_of(*MACHINES["copying"])
    times = [time_ns(fit, "pingpong", size) for size in (4096, 5000, 20000, 65536, 200_000, 500_000, 1 << 20)]
    assert times == sorted(times)


def test_an_exchange_takes_the_overheads_that_a_ping_pong_hides() -> None:
    """o_s and o_r of 35 and 126 ns behind a delay, where half a round trip takes 118 ns."""
    hidden = {"one_delayed": 100_161, "spaced": 100_161 + 7 * 100_035}
    fit = fit_of(basics(8, 118, 50, 85, **hidden))
    assert time_ns(fit, "ring", 8) == pytest.approx(35 + 126, rel=0.02)
    assert time_ns(fit, "pingpong", 8) == pytest.approx(118, rel=0.01)


def test_a_blocking_send_that_waits_for_its_receiver_is_a_rendezvous() -> None:
    waiting = basics(1024, 61, 22, 22, one=122, burst=122 + 7 * 101)
    content = fit_of(basics(256, 55, 27, 29, one=110, burst=110 + 7 * 29), waiting, switches=(257,)).content(2)
    short, long = content["class"]["all"]["segment"]
    assert (short["up_to_bytes"], short["protocol"], long["protocol"]) == (256, "eager", "rendezvous")
    assert long["exchange"]["fixed_ns"] == 101 - 61


@pytest.mark.parametrize(("blocking_ns", "protocol"), [(72, "eager"), (78, "rendezvous")])
def test_a_send_waits_for_its_receiver_from_three_quarters_of_half_a_round_trip_on(
    blocking_ns: float, protocol: str
) -> None:
    content = fit_of(basics(256, 100, 22, 22, one=200, burst=200 + 7 * blocking_ns)).content(2)
    assert [row["protocol"] for row in content["class"]["all"]["segment"]] == [protocol]


@pytest.mark.parametrize(("gap_ns", "out_ns"), [(104, 0), (106, 106)])
def test_a_stream_slower_than_its_cpus_by_a_twentieth_is_as_slow_as_its_way(gap_ns: float, out_ns: float) -> None:
    """o_s and o_r of 100 and 50 ns."""
    overheads = {"one_delayed": 100_150, "spaced": 100_150 + 7 * 100_100}
    assert cost(fit_of(basics(8, 300, gap_ns, 300, **overheads)).content(2), 8, "out") == out_ns


def test_a_receiver_that_has_messages_waiting_is_not_woken_for_each() -> None:
    """A stream whose receiver sleeps is slower than two at once, in which no rank does; nor do many senders let it."""
    fit = fit_of(basics(256, 1000, 500, 400))
    assert time_ns(fit, "funnel", 256, ranks=9) == pytest.approx(8 * 400, rel=0.1)
    assert time_ns(fit, "twoway", 256, STREAM) == pytest.approx(200, rel=0.1)


@pytest.mark.parametrize(
    ("transport", "has_tcp", "sockets"), [("tcp", True, True), ("tcp", False, False), ("mpi", True, False)]
)
def test_over_simulated_tcp_a_send_of_a_socket_does_not_wait(transport: str, has_tcp: bool, sockets: bool) -> None:
    """The links of the model carry the bytes: of what was measured the CPU is left, and the shortest latency."""
    short = basics(256, 55, 27, 29, one=110, burst=110 + 7 * 29, one_delayed=100_020, spaced=100_020 + 7 * 100_010)
    fit = fit_of(short, basics(1024, 61, 22, 22, one=122, burst=122 + 7 * 101))
    network = {"tcp": {"source": "asked for"}} if has_tcp else {}
    fit = replace(fit, network=network, figures=replace(fit.figures, transport=transport))
    segments = fit.content(2)["class"]["all"]["segment"]
    assert ("rendezvous" in {segment["protocol"] for segment in segments}) is not sockets
    assert any("transfer" in segment or "out" in segment for segment in segments) is not sockets


def test_an_undocumented_switch_lies_half_way() -> None:
    content = fit_of(basics(1024, 100, 10), basics(16384, 1000, 900)).content(2)
    assert [row.get("up_to_bytes") for row in content["class"]["all"]["segment"]] == [1024, 4096, None]


def test_the_last_protocol_is_extended_in_proportion() -> None:
    fit = fit_of(basics(64, 100, 10), basics(4096, 2000, 1800))
    assert time_ns(fit, "pingpong", 4096) == pytest.approx(2000, rel=0.01)
    assert time_ns(fit, "oneway", 8192, STREAM) == pytest.approx(2 * 1800, rel=0.02)


def test_drawn_figures_scatter_as_their_intervals_say() -> None:
    fit = fit_of(basics(8, 1000, 500))
    halves = [each.figures.basics[0].times["half"].value for each in fit.resampled(400, seed=1)]
    assert statistics.fmean(halves) == pytest.approx(1000, rel=0.003)
    assert statistics.stdev(halves) == pytest.approx(20 / 1.96, rel=0.1)
    assert halves[:3] == [each.figures.basics[0].times["half"].value for each in fit.resampled(3, seed=1)]


def test_no_drawn_figure_is_less_than_a_twentieth() -> None:
    row = replace(basics(8, 1000, 500), times={name: Estimate(1000, -9000, 11000) for name in ("half", "gap")})
    assert min(each.figures.basics[0].times["half"].value for each in fit_of(row).resampled(100)) == 50


def test_ranks_share_cpus_if_asked() -> None:
    """Two on each, whose messages leave and arrive one after the other; both CPUs work at the same time."""
    fit = fit_of(basics(65536, 1000, 900, one=2000, burst=2000 + 7 * 900))
    ring = make_point(65536, pattern="ring", ranks=4)
    alone, shared = (
        times_of([ring], {ring.transport: Model.from_content("fitted", fit.content(4, cpus))}).time_ns[ring]
        for cpus in (0, 2)
    )
    assert shared == pytest.approx(2 * alone, rel=0.15)


def test_without_streams_there_is_no_fit(tmp_path: Path) -> None:
    (tmp_path / "known.toml").write_text(MODEL)
    (tmp_path / "trips.toml").write_text('name = "trips"\ntitle = "x"\n[[series]]\npattern = "pingpong"\n')
    words = ["--machine", str(tmp_path / "known.toml"), "--store", str(tmp_path / "r.db"), "--quiet"]
    assert execute(["run", str(tmp_path / "trips.toml"), *words]) == 0
    with open_results(tmp_path / "r.db") as results:
        run = results.run("last")
        fit = fit_machine(run, run.series[0].point.transport)
    assert isinstance(fit, NoFit)
    assert "oneway with window=16" in fit.reason
