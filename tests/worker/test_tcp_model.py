"""Switches with finite buffers under TCP, in small cases that are computed by hand (csrc/sim/tcp.h).

A segment has 1,000 B and a link 1 byte per ns, so that it takes P = 1 us on each; the links have no latency, but for L.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.worker.sim import answer, lines, refused

P, L = 1000, 300
MIN_RTO = 1_000_000
BARRIER = "barrier 0 0"  # without messages, so that all ranks begin at once, on connections without a past


def switch(
    buffer: int,
    *,
    window: int = 0,
    first: int = 10_000,
    whose: str = "port",
    latency: int = 0,
    probe: int = 0,
    jitter: float = 0,
) -> list[str]:
    """`buffer` in segments, `first`: what a connection sends before its first acknowledgement, in segments."""
    tcp = f"tcp {MIN_RTO} {1000 * window} 1000 0 {first} {probe} {jitter}"
    return lines(BARRIER, f"link 0 1e9 {latency}", f"switch {1000 * buffer} {whose}", tcp)


def taken(tmp_path: Path, model: list[str], ranks: int, pattern: str, segments: int, **keys: Any) -> dict[str, Any]:
    """The time of rank 0 of one repetition, and the sums of what ranks sent again, of timeouts and of drops."""
    said = answer(tmp_path, model, ranks, pattern, 1000 * segments, warmup=0, **keys)
    counters = {name: sum(of_ranks) for name, of_ranks in said["counters"].items() if name != "inner_drops"}
    return {"ns": said["elapsed_ns"][0][0], **counters}


def lost(drops: int, *, again: int, timeouts: int = 0) -> dict[str, int]:
    return {"retransmits": again, "timeouts": timeouts, "drops": drops}


NONE = lost(0, again=0)


@pytest.mark.parametrize("segments", [1, 2, 1000])
def test_one_sender_fills_its_link(segments: int, tmp_path: Path) -> None:
    """The last segment crosses two links after it has waited for all others at the first."""
    got = taken(tmp_path, switch(1, latency=L), 2, "funnel", segments)
    assert got == {"ns": (segments + 1) * P + 2 * L, **NONE}


def test_headers_take_their_share_of_a_link(tmp_path: Path) -> None:
    model = lines(BARRIER, "link 0 1e9 0", "switch 1538 port", "tcp 1e6 0 1448 90 1000")
    assert answer(tmp_path, model, 2, "funnel", 1448 * 99, warmup=0)["elapsed_ns"][0] == [100 * 1538]


def test_the_first_window_doubles(tmp_path: Path) -> None:
    """One segment; when it is acknowledged two, and four at last, of which the third is the last of six."""
    round_ns, crossed = 2 * P + 4 * L, 2 * P + 2 * L
    got = taken(tmp_path, switch(10, first=1, latency=L), 2, "funnel", 6)
    # The second round's first acknowledgement allows two segments, the other one the third of that round.
    assert got == {"ns": 2 * round_ns + 2 * P + crossed, **NONE}


def test_a_window_limits_the_rate(tmp_path: Path) -> None:
    """Two segments for each round trip, far below the link's rate."""
    got = taken(tmp_path, switch(10, window=2, latency=10 * P), 2, "funnel", 10)
    assert got == {"ns": 4 * (2 * P + 40 * P) + 3 * P + 20 * P, **NONE}


@pytest.mark.parametrize("senders", [2, 3])
def test_senders_share_a_port(senders: int, tmp_path: Path) -> None:
    got = taken(tmp_path, switch(1000), senders + 1, "funnel", 100)
    assert got == {"ns": (100 * senders + 1) * P, **NONE}


@pytest.mark.parametrize(("senders", "buffer"), [(3, 9), (2, 20), (5, 41)])
@pytest.mark.parametrize("whose", ["port", "shared"])
def test_the_first_loss_comes_with_the_computed_burst(senders: int, buffer: int, whose: str, tmp_path: Path) -> None:
    """Each P brings N segments and takes one away: when the k-th come, (k - 1)(N - 1) are there."""
    most = (buffer - 1) // (senders - 1)
    model = switch(buffer, whose=whose)
    assert taken(tmp_path, model, senders + 1, "funnel", most) == {"ns": (most * senders + 1) * P, **NONE}
    more = taken(tmp_path, model, senders + 1, "funnel", most + 1)
    assert more["drops"] == most * (senders - 1) + senders - buffer
    assert more["ns"] > MIN_RTO


def test_a_shared_buffer_is_that_of_all_ports(tmp_path: Path) -> None:
    """Two pairs of ranks exchange: four messages, each to another port, of which all together hold one."""
    for whose, drops in (("port", 0), ("shared", 3 + 2 + 1)):
        assert taken(tmp_path, switch(1, whose=whose), 4, "pingping", 1)["drops"] == drops


def test_a_window_that_is_lost_as_a_whole_waits_for_the_least_time(tmp_path: Path) -> None:
    """Of two segments that come at once the port holds one; the other is sent again when the timer ends."""
    got = taken(tmp_path, switch(1), 3, "funnel", 1)
    assert got == {"ns": MIN_RTO + 2 * P, **lost(1, again=1, timeouts=1)}


def test_the_timer_doubles_each_time_in_a_row(tmp_path: Path) -> None:
    """Four at once, of which one comes through: three timers end at once, then two twice as late, then one."""
    got = taken(tmp_path, switch(1), 5, "funnel", 1)
    assert got == {"ns": (1 + 2 + 4) * MIN_RTO + 2 * P, **lost(3 + 2 + 1, again=6, timeouts=6)}


def test_gaps_are_filled_as_they_are_known(tmp_path: Path) -> None:
    """A port of half the rate that holds three: of twelve segments it drops the 6th, 8th, 10th and 12th.

    The 6th, 8th and 10th are sent again once the 7th, 9th and 11th have come, at 13, 15 and 17 P. They leave the port
    behind the 11th, at 19, 21 and 23 P. The first of them shows at 19 P that the 12th is lost, which leaves at 25 P.
    """
    edges = ["edge 1 2 1e9 0", "edge 2 0 5e8 0"]
    model = lines(BARRIER, *edges, "switch 3000 port", f"tcp {MIN_RTO} 0 1000 0 12", topology="graph 1 2")
    assert taken(tmp_path, model, 2, "funnel", 12) == {"ns": 25 * P, **lost(4, again=4)}


def test_what_is_sent_later_shows_that_a_segment_was_lost_again(tmp_path: Path) -> None:
    """Two senders whose port holds three drop segments that they sent again, too, and no timer has to end.

    Only a lost last one has none behind it that shows it: a second message of each, which begins at once, does.
    """
    for segments in (40, 80, 160):
        got = taken(tmp_path, switch(3, probe=50_000), 3, "funnel", segments)
        assert got["drops"] > 0
        assert got["retransmits"] >= got["drops"]
        assert got["ns"] >= (2 * segments + 1) * P


def test_jitter_is_at_most_a_segment_and_the_same_each_time(tmp_path: Path) -> None:
    """A sender alone loses nothing; of several other segments are lost than with equal clocks."""
    alone = taken(tmp_path, switch(1000, jitter=1), 2, "funnel", 100)
    assert 101 * P < alone.pop("ns") < 102 * P
    assert alone == NONE
    equal, late, again = (taken(tmp_path, switch(20, jitter=jitter), 4, "funnel", 100) for jitter in (0, 1, 1))
    assert late == again != equal


def test_a_lost_tail_is_probed(tmp_path: Path) -> None:
    """Of three segments of two senders the port drops the last two of the second, whose first was 3 P on its way.

    After another 6 P and the probe's margin the third is sent again, for 2 P, and then the second.
    """
    got = taken(tmp_path, switch(2, probe=50_000), 3, "funnel", 3)
    assert got == {"ns": (3 + 6 + 2 + 2) * P + 50_000, **lost(2, again=2)}
    assert taken(tmp_path, switch(2), 3, "funnel", 3)["timeouts"] == 1


def test_one_segment_alone_is_probed_when_its_timer_ends(tmp_path: Path) -> None:
    """Its acknowledgement could be late; the first segment was 3 P on its way, and the window is only halved."""
    got = taken(tmp_path, switch(2, probe=50_000), 3, "funnel", 2)
    assert got == {"ns": (3 + 3 + 2) * P + MIN_RTO, **lost(1, again=1)}


def test_ports_between_switches_are_counted_too(tmp_path: Path) -> None:
    """Two senders on one switch share the only link to the receiver's switch."""
    edges = ["edge 0 3 1e9 0", "edge 1 4 1e9 0", "edge 2 4 1e9 0", "edge 3 4 1e9 0"]
    model = lines(BARRIER, *edges, "switch 20000 port", f"tcp {MIN_RTO} 0 1000 0 10000", topology="graph 2 3")
    counters = answer(tmp_path, model, 3, "funnel", 100_000, warmup=0)["counters"]
    assert counters["inner_drops"] == counters["drops"] == [counters["drops"][0], 0, 0]
    assert counters["drops"][0] > 0


# ---- what comes out of it ------------------------------------------------------------------------------------------


def goodput(tmp_path: Path, readouts: int, *, buffer: int = 65_536, min_rto_ms: float = 200.0) -> float:
    """The share of a builder's link of 1 Gbit/s that events use: 64 KiB from each readout, one event at a time."""
    tcp = f"tcp {min_rto_ms * 1e6} 0 1448 90 10"
    model = lines(BARRIER, "link 0 125e6 25000", f"switch {buffer} port", tcp, send_cpu=1000, recv_cpu=1000)
    options: dict[str, Any] = {"senders": readouts, "schedule": "credits", "credits": readouts, "batch": 20}
    ns: int = answer(tmp_path, model, readouts + 2, "eventbuilder", 65_536, warmup=5, **options)["elapsed_ns"][0][0]
    return 20 * readouts * 65_536 * 8.0 / ns


def test_incast_collapses_when_the_windows_exceed_the_buffer(tmp_path: Path) -> None:
    """An order of magnitude; not with a large buffer, and a short minimum of the timer gives most of it back."""
    few, many = goodput(tmp_path, 2), goodput(tmp_path, 16)
    assert few > 0.5
    assert many < few / 5
    assert goodput(tmp_path, 16, buffer=1 << 24) > 0.8
    assert goodput(tmp_path, 16, min_rto_ms=1) > 5 * many


def test_schedules_that_spread_readouts_lose_nothing(tmp_path: Path) -> None:
    """Four readouts and four builders: all at once overflow the ports, one after another they do not."""
    model = lines(BARRIER, "link 0 125e6 1000", "switch 30000 port", "tcp 1e6 0 1448 90 10", send_cpu=500, recv_cpu=500)
    drops = {}
    for schedule in ("all", "barrel", "random", "credits"):
        options: dict[str, Any] = {"senders": 4, "in_flight": 8, "schedule": schedule, "credits": 1, "batch": 2}
        said = answer(tmp_path, model, 9, "eventbuilder", 14_480, warmup=0, **options)
        drops[schedule] = sum(said["counters"]["drops"])
    assert drops["all"] > drops["random"] > 0
    assert drops["credits"] == 0


@pytest.mark.parametrize("pattern", ["alltoall", "halo2d", "pushfarm"])
def test_without_losses_times_are_those_of_links(pattern: str, tmp_path: Path) -> None:
    """But for segments, which a switch forwards as a whole: one more of their times on each way."""
    links = ["link 0 1e9 500"]
    times_of = {
        name: answer(tmp_path, lines(*more, send_cpu=300, recv_cpu=200, latency=2000), 4, pattern, 100_000, batch=3)
        for name, more in {"links": links, "tcp": [*links, "switch 100000000 port", "tcp 1e9 0 1000 0 10000"]}.items()
    }
    plain, full = times_of["links"], times_of["tcp"]
    assert full["elapsed_ns"][0][0] == pytest.approx(plain["elapsed_ns"][0][0], rel=0.05)
    assert full["verified"] is plain["verified"] is True


def test_tcp_without_room_for_a_segment_is_refused(tmp_path: Path) -> None:
    for wrong in (["tcp 1e6 0 1000 0 10"], ["switch 999 port", "tcp 1e6 0 1000 0 10"]):
        assert "tcp must follow a switch whose buffer holds a segment" in refused(tmp_path, lines(*wrong))
    assert "switch" in refused(tmp_path, lines("switch 1000 all"))
