"""The clocks of a run's hosts before and after it, from a short job of the pattern `clocks` with a rank on each."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from hockney.analysis.clocks import AHEAD, ERROR, READINGS, Seen, added_up
from hockney.measure.plan import Plan
from hockney.measure.recorder import Recorder
from hockney.model import Warning_
from hockney.worker.build import build_worker
from hockney.worker.errors import WorkerError
from hockney.worker.hosts import Host
from hockney.worker.launch import Job, launch
from hockney.worker.session import WorkerSession

_LIMIT_S = 10


@contextlib.contextmanager
def clocks_compared(plan: Plan, recorders: Sequence[Recorder], hosts: Sequence[str]) -> Iterator[None]:
    """Compare the clocks of hosts before the body and after it, and store both for each of `recorders`.

    A comparison that fails before it is a warning, and no other is made. One that fails after it is no warning: a host
    that is gone by then is named by its points. Lost hosts are left out; without the first, the reference, no clock is
    compared again.
    """
    try:
        _compare(plan, recorders, hosts)
    except WorkerError as error:
        hosts = ()
        cause = f"The clocks of the hosts could not be compared: {error}."
        for recorder in recorders:
            recorder.warn([Warning_("hosts", "clocks", cause, "")])
    yield
    lost = {host for recorder in recorders for host in recorder.lost_hosts}
    if lost.isdisjoint(hosts[:1]):
        with contextlib.suppress(WorkerError, KeyboardInterrupt):  # Ctrl-C ends only this
            _compare(plan, recorders, [host for host in hosts if host not in lost])


def _compare(plan: Plan, recorders: Sequence[Recorder], hosts: Sequence[str]) -> None:
    if len(hosts) < 2:
        return
    seen, strangers = _read(plan, hosts)
    reading = {name: clock._asdict() for name, clock in seen.items()}
    for recorder in recorders:
        recorder.tally.strangers["tcp"] += strangers
        recorder.store.add_to_facts(recorder.run_id, READINGS, reading)


def _read(plan: Plan, hosts: Sequence[str]) -> tuple[dict[str, Seen], int]:
    """How far each host's clock is ahead of the first one's now, and the strangers refused. Raises WorkerError."""
    job = Job(
        executable=build_worker(),
        transport="tcp",
        ranks=len(hosts),
        placement=replace(plan.placement, hosts=tuple(Host(name, 1) for name in hosts), map_by=""),
        start_limit_s=min(plan.limits.start_limit_s, _LIMIT_S + len(hosts) // 10),  # ten logins a second
    )
    best = [(math.inf, 0.0)] * len(hosts)  # the error and the difference from its parent, of each rank
    command = launch(job)
    with WorkerSession(command, start_limit_s=job.start_limit_s, has_option=False) as session:
        strangers = sum(rank.strangers for rank in session.hello().ranks)
        began_s = time.monotonic()
        for _ in range(10):
            # 64 hosts with round trips of 10 ms take 2 s.
            answer = session.measure("clocks", samples=20, timeout_s=_LIMIT_S, verify=False)
            best = list(map(min, best, zip(answer.counters[ERROR], answer.counters[AHEAD], strict=True)))
            if time.monotonic() - began_s > 0.5:
                break
    errors, ahead = (added_up([float(step) for step in steps]) for steps in zip(*best, strict=True))
    now_s = time.time()
    return {host: Seen(now_s, *seen) for host, *seen in zip(hosts, ahead, errors, strict=True)}, strangers
