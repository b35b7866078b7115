"""128 hosts, which are processes of this machine: each has a name, an address, a description and a worker of its own.

They share its CPUs, so their rates say nothing. What is known: the hosts of a rack have a wrong clock, and one differs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.shared import Fakes, finished

HOSTS = 128
OTHER, EARLY = 50, range(33, 41)
AHEAD_S = 100
# What every program of a host sees: the name of its host, of one another kernel, of some a clock that is ahead.
AS_HOST = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
int gethostname(char *name, size_t len)
{
    strncpy(name, getenv("HOST"), len);
    return 0;
}
int uname(struct utsname *system)
{
    const long failed = syscall(SYS_uname, system);
    gethostname(system->nodename, sizeof system->nodename);
    if (getenv("OTHER") != NULL) strcpy(system->release, "5.4");
    return (int)failed;
}
int clock_gettime(clockid_t clock, struct timespec *now)
{
    const long failed = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME && getenv("AHEAD_S") != NULL) now->tv_sec += atoi(getenv("AHEAD_S"));
    return (int)failed;
}
"""


def address(number: int) -> str:
    return f"127.0.1.{number}"


def test_health_of_128_hosts(tmp_path: Path, fake: Fakes) -> None:
    (tmp_path / "as_host.c").write_text(AS_HOST)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", f"{tmp_path}/as_host.so", f"{tmp_path}/as_host.c"], check=True)
    fake(
        tmp_path / "agent",
        "export HOST=$1",
        "shift",
        f"case $HOST in {address(OTHER)}) export OTHER=1;; esac",
        f"case $HOST in {'|'.join(map(address, EARLY))}) export AHEAD_S={AHEAD_S};; esac",
        f'LD_PRELOAD={tmp_path}/as_host.so exec sh -c "$*"',
    )
    racks = [range(first, first + len(EARLY)) for first in range(1, HOSTS, len(EARLY))]
    lines = [f"rack{number} = {','.join(map(address, rack))}" for number, rack in enumerate(racks, 1)]
    (tmp_path / "topology").write_text("\n".join(lines))
    words = ["health", "--hosts", f"127.0.1.[1-{HOSTS}]", "--topology", "topology", "--time", "3s", "--json"]
    done = finished(
        [sys.executable, "-m", "hockney", *words, "--store", "r.db"],
        cwd=tmp_path,
        env={**os.environ, "HOCKNEY_RSH": str(tmp_path / "agent")},
        timeout_s=240,
    )
    assert done.returncode == 1, done.stderr
    assert "8,128 pairs of 128 hosts in 127 rounds" in done.stderr
    health = json.loads(done.stdout)["health"]
    assert health["hosts"] == [address(number) for number in range(1, HOSTS + 1)]
    facts = {finding["code"]: finding["facts"] for finding in health["findings"]}
    assert facts["differing hosts"]["differing"] == [f"{address(OTHER)} Linux 5.4"]
    assert facts["wrong clock"]["switch"] == "rack5"
    assert facts["wrong clock"]["hosts"] == sorted(map(address, EARLY))
    assert round(facts["wrong clock"]["off_ns"] / 1e9) == AHEAD_S
    # Whole rounds: every host has met as many others.
    met = Counter(sum(rate is not None for rate in row) for row in health["bytes_per_s"])
    assert list(met.values()) == [HOSTS]
    assert 2 * health["measured_pairs"] == HOSTS * next(iter(met))
