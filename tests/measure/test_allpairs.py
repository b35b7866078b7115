"""All pairs over a network of known delays: two groups of hosts, and one pair between them that is slower still."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pytest
from tests.builders import set_columns
from tests.shared import finished, script

from hockney.analysis.explain import explain_run
from hockney.analysis.finding import Finding
from hockney.analysis.pairs import Load, PairMatrix, pair_matrices
from hockney.cli import execute
from hockney.errors import HockneyError
from hockney.results.runs import Run
from hockney.results.store import Store

HERE = Path(__file__).parent
PREFIX = f"hk-pairs-{os.getpid()}-"
RANKS = 5
NEAR_MS, FAR_MS, SLOW_MS = 1.0, 4.0, 15.0  # very different: a loaded machine delays packets by ms, too
SLOW_PAIR = (1, 4)
PAIRS = [(a, b) for b in range(RANKS) for a in range(b)]
NEAR = {(a, b) for a, b in PAIRS if (a < 3) == (b < 3)}


def delay_ms(a: int, b: int) -> float:
    pair = min(a, b), max(a, b)
    return 0.0 if a == b else SLOW_MS if pair == SLOW_PAIR else NEAR_MS if pair in NEAR else FAR_MS


def address(rank: int) -> str:
    return f"10.231.9.{rank + 1}"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def remote_shell(path: Path, hosts: Mapping[str, str]) -> Path:
    """Write a script that starts commands in the namespace of an address, as on a separate machine.

    It has a different host name and boot id: by the latter hockney recognises several names of one machine.
    """
    cases = "".join(f"{address}) name={name} ;;\n" for address, name in hosts.items())
    return script(
        path,
        f'host=$1; shift\ncase $host in\n{cases}*) echo "no route to $host" >&2; exit 255 ;;\nesac',
        f'echo "$name" >"{path}.$name"',
        f'mount="mount --bind {path}.$name /proc/sys/kernel/random/boot_id"',
        'exec ip netns exec "$name" unshare --uts sh -c "hostname $name; $mount; exec $*"',
    )


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A remote shell into hosts between which every packet takes as long as delay_ms says."""
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("network namespaces need root, ip and unshare")
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        pytest.skip("a network with delays needs /dev/net/tun")
    names = [f"{PREFIX}{rank}" for rank in range(RANKS)]
    delays = [[delay_ms(a, b) for b in range(RANKS)] for a in range(RANKS)]
    with ExitStack() as undo:
        for name in names:
            ip("netns", "add", name)
            undo.callback(ip, "netns", "delete", name)
        argv = [sys.executable, str(HERE / "slow_network.py"), PREFIX, json.dumps(delays)]
        network = undo.enter_context(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
        undo.callback(network.kill)
        assert network.stdout is not None
        assert network.stdout.readline() == "ready\n"
        for rank, name in enumerate(names):
            ip("-n", name, "address", "add", f"{address(rank)}/24", "dev", "v0")
            ip("-n", name, "link", "set", "v0", "up")
            ip("-n", name, "link", "set", "lo", "up")
            # One that paces holds short messages back too, as long as it thinks right.
            ip("netns", "exec", name, "sh", "-c", "echo reno > /proc/sys/net/ipv4/tcp_congestion_control")
        shell = tmp_path_factory.mktemp("agent") / "agent"
        yield remote_shell(shell, {address(rank): name for rank, name in enumerate(names)})


def measure(agent: Path, store: Path, *words: str) -> str:
    """The output of `hockney run` with these words on all ranks, with 8 B over TCP."""
    argv = [sys.executable, "-m", "hockney", "run", *words, "-t", "tcp", "-n", str(RANKS), "--bytes", "8"]
    hosts = ",".join(address(rank) for rank in range(RANKS))
    done = finished(
        [*argv, "--hosts", hosts, "--store", str(store)], env={**os.environ, "HOCKNEY_RSH": str(agent)}, timeout_s=400
    )
    assert done.returncode in (0, 3), done.stderr  # 3: no interval in so little time
    return done.stdout


def measured_pairs(agent: Path, store: Path, time: str) -> tuple[str, dict[Load, PairMatrix], list[Finding]]:
    """The output of the suite in that time, its matrices, and the slow pairs."""
    # So precise that no pair ends before the others: each is seen as often, in every state of the machine.
    said = measure(agent, store, "allpairs", "--precision", "0.1%", "--time", time)
    # Real hosts would not contend: these share the CPUs, so sentences on floors and paces are left out.
    with sqlite3.connect(store) as database:
        set_columns(database, "measurement", "pace_ns = NULL, floor_before_ns = 1e6, floor_after_ns = 1e6")
    with Store.open(store, readonly=True) as results:
        run = Run(results, 1)
        matrices = {matrix.load: matrix for matrix in pair_matrices(run)}
        slow: list[Finding] = []
        with suppress(HockneyError):  # without any interval
            slow = [finding for finding in explain_run(run).findings if "slow_pair" in finding.facts]
        return said, matrices, slow


@pytest.mark.full
@pytest.mark.timeout(700)
def test_groups_of_hosts_are_distinguished_and_the_slow_pair_is_named(
    agent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for time in ("60s", "240s"):  # a busy machine needs time for intervals
        store = tmp_path / f"{time}.db"
        said, matrices, findings = measured_pairs(agent, store, time)
        if {finding.facts["load"] for finding in findings} == {"idle", "loaded"}:
            break
    assert "Half a round trip: tcp, 8 B, 5 ranks, disjoint pairs at once" in said
    assert set(matrices) == {"idle", "loaded"}
    assert execute(["show", "1", "--tables", "--store", str(store)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    print(said, shown)  # for failures below
    for matrix in matrices.values():
        assert_as_made(matrix)
    names = f"hosts {PREFIX}1 and {PREFIX}4"
    assert {finding.facts["load"] for finding in findings} == {"idle", "loaded"}
    assert all(finding.facts["slow_pair"] == [1, 4] for finding in findings)
    assert shown.count(f"{names}: ") == 2


def test_both_ends_begin_together_at_any_distance_of_the_others(agent: Path, tmp_path: Path) -> None:
    """A rank waits for a message while it travels: the message is not there before the clock starts."""
    measure(agent, tmp_path / "r.db", "twoway", "--precision", "99%", "--time", "3s", "--launches", "1")
    with Store.open(tmp_path / "r.db", readonly=True) as results:
        (series,) = Run(results, 1).series
        for rank in (0, 1):
            elapsed_ns = np.concatenate([samples[rank] for samples in series.elapsed_ns])
            assert np.quantile(elapsed_ns, 0.75) > NEAR_MS * 1e6 / 2, f"rank {rank}"


def assert_as_made(matrix: PairMatrix) -> None:
    assert matrix.missing == 0
    near, far = matrix.classes
    assert (set(near.pairs), set(far.pairs)) == (NEAR, set(PAIRS) - NEAR)
    for one, least_ms in ((near, NEAR_MS), (far, FAR_MS)):
        # Half a round trip is one delay, and two passes through a kernel and a program.
        assert least_ms * 1e6 < one.median_ns
        assert one.fastest_ns > least_ms * 1e6
    slow = max(matrix.outliers, key=lambda outlier: outlier.factor)  # machine states alone make no pair as slow
    assert (slow.ranks, slow.class_name) == (SLOW_PAIR, far.name)
    assert near.name == f"between hosts {PREFIX}0, {PREFIX}1, {PREFIX}2 / {PREFIX}3, {PREFIX}4"
    assert slow.time.value > SLOW_MS * 1e6
