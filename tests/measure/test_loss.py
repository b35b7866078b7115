"""udp where the network really loses: a namespace whose kernel drops one datagram in a hundred, and counts them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.shared import finished
from tests.worker.test_native import converse, measure

from hockney.worker.build import build_worker

# On arrival: a drop on departure is an error of the send.
RULES = """
table inet loss {
    chain input {
        type filter hook input priority 0;
        meta l4proto udp numgen random mod 100 < 1 counter drop
    }
}
"""


@pytest.fixture
def lossy() -> Iterator[str]:
    """The name of such a namespace."""
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("nft") is None:
        pytest.skip("a network that loses needs root, ip and nft")
    name = f"hk-test-loss-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        made = inside(name, "nft", "-f", "-", text=RULES)
        if made.returncode != 0:
            pytest.skip(f"this kernel drops nothing at random: {made.stderr.splitlines()[0]}")
        yield name
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def inside(name: str, *argv: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return finished(["ip", "netns", "exec", name, *argv], input=text)


def dropped(name: str) -> int:
    """The number of packets that the kernel has dropped."""
    counted = re.search(r"counter packets (\d+)", inside(name, "nft", "list", "ruleset").stdout)
    assert counted
    return int(counted[1])


@pytest.mark.full
@pytest.mark.parametrize("transport", ["udp", "udp:spin"])
def test_every_datagram_that_the_network_drops_is_counted(lossy: str, transport: str) -> None:
    trips, samples = 200, 10
    command = measure("pingpong", 64, batch=trips, samples=samples, warmup=0, timeout_s=250)
    arguments = ["netns", "exec", lossy, str(build_worker()), "-t", transport, "-n", "2"]
    answers, done = converse(Path("ip"), [command], *arguments)
    assert [a["kind"] for a in answers] == ["measure", "bye"], done.stderr
    lost, kernels = answers[0]["counters"]["lost"], dropped(lossy)
    # About one in a hundred of 2 x 2000 messages; other drops are questions, answers, the verification.
    assert 10 < sum(lost) < 100
    assert 0.8 * kernels <= sum(lost) <= kernels
    assert all(count > 0 for count in lost)
    assert len(answers[0]["elapsed_ns"][0]) == samples


@pytest.mark.parametrize("pattern", ["alltoall", "funnel", "barrier", "pushfarm"])
def test_other_patterns_come_to_their_end_too(lossy: str, pattern: str) -> None:
    arguments = ["netns", "exec", lossy, str(build_worker()), "-t", "udp", "-n", "3", "--oversubscribed"]
    commands = [measure(pattern, 64, batch=100, samples=10)] * 2
    answers, done = converse(Path("ip"), commands, *arguments)
    assert [a["kind"] for a in answers] == ["measure", "measure", "bye"], done.stderr
    assert sum(sum(answer["counters"]["lost"]) for answer in answers[:-1]) > 0


@pytest.mark.parametrize("pattern", ["funnel", "robpush"])
def test_a_stream_without_acknowledgements_does_not_flood_its_receiver(pattern: str) -> None:
    """At any duration: 200 batches of it exceed the room of any socket."""
    command = measure(pattern, 1024, batch=64, samples=200)
    answers, done = converse(build_worker(), [command], "-t", "udp", "-n", "2")
    assert [a["kind"] for a in answers] == ["measure", "bye"], done.stderr
    assert sum(answers[0]["counters"]["lost"]) < 64 * 200 / 100
