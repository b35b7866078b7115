"""How a run begins: warnings of what holds for it, with a remedy that is one here, and a stop before it measures."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import make_point, make_visit

from hockney import run as running
from hockney.cli.progress import Display
from hockney.model import RunStatus, Warning_
from hockney.plan import Plan
from hockney.store import Store
from hockney.worker.catalogue import Catalogue, TransportInfo, load
from hockney.worker.mpi import Mpi


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load(libraries=())


@pytest.mark.parametrize(
    ("transport", "hosts", "warned"), [("tcp", (), True), ("shm", (), False), ("tcp", ("no.such.invalid",) * 2, False)]
)
def test_what_disturbs_the_loopback_is_said_of_what_uses_it(
    catalogue: Catalogue,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    transport: str,
    hosts: tuple[str, ...],
    warned: bool,
) -> None:
    of_bbr = Warning_("congestion", "tcp", "It is bbr.", "Take another.")
    monkeypatch.setattr(running, "warnings_before", lambda *_, **__: [of_bbr])
    plan = Plan("test", (make_point(8, transport),), time_s=0.3, hosts=hosts)
    with Store.open(tmp_path / "r.db") as store:
        running.measure(plan, catalogue, store, Display(quiet=True), command="test")
        assert (of_bbr in store.run(1).warnings) is warned


def test_who_has_another_mpi_is_told_to_compare_with_it_not_to_install_one(catalogue: Catalogue) -> None:
    def mpi(name: str, kind: str, *, is_wheel: bool) -> TransportInfo:
        library = Mpi(name, kind, "1", Path("mpicc"), Path("mpiexec"), is_wheel)
        return replace(catalogue.transports["shm"], name=name, library=library)

    wheel, other = mpi("mpi@mpich-5", "mpich", is_wheel=True), mpi("mpi@openmpi-4", "openmpi", is_wheel=False)
    visit = make_visit(make_point(transport=wheel.name))
    share = running._KernelShare()
    share.add(replace(visit, cpu_system_ns=(10**9, 0), wall_ns=(10**9, 10**9)))
    alone, both = (
        next(iter(share.warnings(replace(catalogue, transports={one.name: one for one in here})))).remedy
        for here in ((wheel,), (wheel, other))
    )
    assert alone.endswith("install another MPI to compare (apt install libopenmpi-dev openmpi-bin).")
    assert both == "No setting of the PyPI wheel of MPICH changes this; compare with mpi@openmpi-4."


def test_ctrl_c_before_the_first_measurement_is_an_interruption_that_can_go_on(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.db"
    plan = Plan("test", (make_point(8), make_point(64)), precision=0.9, time_s=0.3)
    with Store.open(path) as store, monkeypatch.context() as patched:  # it comes while other programs are watched
        patched.setattr(running, "warnings_before", lambda *_, **__: os.kill(os.getpid(), signal.SIGINT))
        outcome = running.measure(plan, catalogue, store, Display(quiet=True), command="test")
    assert (outcome.status, outcome.failed) == (RunStatus.INTERRUPTED, 0)
    with Store.open(path) as store:
        assert store.run(outcome.run_id).status is RunStatus.INTERRUPTED
        assert running.resume("last", catalogue, store, Display(quiet=True)).status is RunStatus.DONE
