"""A new pattern and a new transport are one C file, one line of registry.c and their rows in the docs, nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.builders import copied_tree

REGISTRY = "src/hockney/worker/csrc/registry.c"

PATTERN = """/* Round trips between the first rank and the last one; half the round trip. */
#include "roundtrip.h"

static int firstlast_peer(const hk_ctx_t *ctx)
{
    return ctx->rank == 0 ? ctx->size - 1 : 0;
}

static bool firstlast_acts(const hk_ctx_t *ctx)
{
    return ctx->rank == 0 || ctx->rank == ctx->size - 1;
}

static hk_plan_t firstlast_plan(const hk_run_t *run)
{
    return (hk_plan_t){.out_bytes = run->bytes,
                       .in_bytes = run->bytes,
                       .bytes_per_rep = 2 * run->bytes,
                       .messages_per_rep = 2,
                       .divisor = 2};
}

static hk_status_t firstlast_repeat(hk_run_t *run, uint64_t reps)
{
    hk_ctx_t *ctx = run->ctx;
    return firstlast_acts(ctx) ? hk_round_trips(run, firstlast_peer(ctx), ctx->rank == 0, reps) : HK_OK;
}

static bool firstlast_expected(const hk_run_t *run, size_t i, hk_expected_t *expected_p)
{
    *expected_p = (hk_expected_t){.size_bytes = run->bytes, .from_rank = firstlast_peer(run->ctx)};
    return firstlast_acts(run->ctx) && i == 0;
}

const hk_pattern_t hk_pattern_firstlast = {
    .name = "firstlast",
    .summary = "one message to and fro between the first and the last rank; half the round trip",
    .needs = HK_CAP_SEND,
    .ranks_min = 2,
    .timed = HK_TIMED_ROOT,
    .plan = firstlast_plan,
    .repeat = firstlast_repeat,
    .expected = firstlast_expected,
};
"""

TRANSPORT = """/* Unix-domain stream sockets with send buffers of 1 MiB. */
#include <sys/socket.h>

#include "stream.h"

static int make_wide(int fds[2])
{
    const int bytes = 1 << 20;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
        return -1;
    }
    (void)setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    return setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

static const hk_stream_family_t wide_family = {
    .carrier = "Unix-domain stream sockets, wide",
    .put = hk_stream_socket_put,
    .get = hk_stream_socket_get,
    .put_now = hk_stream_socket_put_now,
    .get_now = hk_stream_socket_get_now,
    .make = make_wide,
    .duplex = true,
};

const hk_transport_t hk_transport_wide = {
    HK_STREAM_HOOKS,
    HK_STREAM_PREPARED,
    .name = "wide",
    .summary = "Unix-domain sockets with large buffers",
    .caps = HK_STREAM_CAPS,
    .own = &wide_family,
    .below = "unix",
};
"""

# After which line, the new one.
LINES = {
    REGISTRY: {
        "    X(pingpong)             \\\n": "    X(firstlast)            \\\n",
        "    X(null)                 \\\n": "    X(wide)                 \\\n",
    },
    "docs/metrics.md": {
        "| funnel |": "| firstlast | a round trip between the first and the last rank | rank 0: half |\n"
    },
    "docs/transports.md": {"| `unix` |": "| `wide` | Unix-domain sockets with large buffers | sleeps |\n"},
    "docs/explain.md": {"`threads`, `mpi`, `shmem` to `shm`;": "`wide` to `unix`;\n"},
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with one more pattern and one more transport."""
    copy = copied_tree(tmp_path_factory.mktemp("tree"))
    (copy / "src/hockney/worker/csrc/patterns/firstlast.c").write_text(PATTERN)
    (copy / "src/hockney/worker/csrc/transports/wide.c").write_text(TRANSPORT)
    for name, added in LINES.items():
        path = copy / name
        text = path.read_text()
        for beginning, line in added.items():
            (old,) = (whole for whole in text.splitlines(keepends=True) if whole.startswith(beginning))
            text = text.replace(old, old + line)
        path.write_text(text)
    page = copy / "docs/metrics.md"  # firstlast is no stream
    page.write_text(page.read_text().replace("**latency** pattern (", "**latency** pattern (firstlast, "))
    return copy


def hockney(tree: Path, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
    argv = [sys.executable, "-m", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "HOCKNEY_STORE": str(tree / "results.db")}
    done = subprocess.run(argv, cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode in codes, done.stdout + done.stderr
    return done.stdout


@pytest.mark.full
def test_they_are_listed_measured_and_explained(tree: Path) -> None:
    listed = json.loads(hockney(tree, "hockney", "list", "--json"))
    assert "firstlast" in json.dumps(listed["patterns"])
    assert "wide" in json.dumps(listed["transports"])
    run = ("hockney", "run", "firstlast", "-t", "wide,unix", "-n", "2", "--bytes", "8,64K", "--time", "1", "--json")
    may_lack_intervals = (0, 3)  # on a busy machine
    measured = json.loads(hockney(tree, *run, codes=may_lack_intervals))
    assert {(series["pattern"], series["transport"]) for series in measured["series"]} == {
        ("firstlast", "wide"),
        ("firstlast", "unix"),
    }
    assert all(series["figures"][0]["verified"] for series in measured["series"])
    assert measured["facts"]["traits"]["transports"]["wide"]["carrier"] == "kernel"
    hockney(tree, "hockney", "explain", "--json", codes=may_lack_intervals)
    assert "wide" in hockney(tree, "hockney", "show")


@pytest.mark.full
def test_the_documents_need_one_row_each(tree: Path) -> None:
    names = "firstlast or wide or matrix or runs_where or below_each or latency_patterns"
    hockney(tree, "pytest", "-q", "-p", "no:cacheprovider", "tests/test_docs.py", "-k", names)


def test_the_tests_of_the_worker_take_them_in(tree: Path) -> None:
    collected = hockney(tree, "pytest", "-q", "--full", "--collect-only", "tests/worker/test_native.py", "-k", "wide")
    assert "test_every_pattern_on_every_transport[wide-2]" in collected
