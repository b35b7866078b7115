"""Rules for every test: seeds are fixed, long matrices run with --full. With all runtimes required, a skip fails.

Files that MPICH leaves behind after a test kills its launcher are removed at the end.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from tests.shared import Fakes, made_once

from hockney.machine.activity import Moment
from hockney.worker.catalogue import describe

if TYPE_CHECKING:
    from hockney.results.store import Store
    from hockney.worker.catalogue import Catalogue

# Thousands of tests are objects that stay. Looking for garbage among them would take a third of their collection.
gc.disable()

_LONG_LIMIT_S = 300
_START_S = 5  # a job that began less long ago may still read its file
ALL_RUNTIMES = os.environ.get("HOCKNEY_ALL_RUNTIMES") == "1"


# A shell starts background programs with Ctrl-C ignored, and many tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Where it is exported, tables are folded to it in a pipe too.
os.environ.pop("COLUMNS", None)
# In a batch job the hosts of that job would be measured.
for name in [name for name in os.environ if name.startswith(("SLURM", "PBS_", "LSB_", "FLUX_", "HOCKNEY_LAUNCHER"))]:
    del os.environ[name]


@pytest.fixture(scope="session", autouse=True)
def fixed_seeds() -> Iterator[None]:
    """A run in this process has the same seed each time: the order of its points and the noise of models are fixed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random, "SystemRandom", lambda: random.Random(7))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_results_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The results of who runs the tests are neither read nor changed. The cache of workers stays: they take seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_other_programs() -> Iterator[None]:
    """A run in this process sees an idle machine: others differ from test to test, and watching them takes 0.3 s."""
    idle = Moment(0.3, steal=0.0, busy_cpus=0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hockney.measure.warnings.observe", lambda **_: idle)
        patch.setattr("hockney.measure.run.Watch", lambda *_: SimpleNamespace(read=lambda: idle))
        yield


_described = functools.cache(describe)


@pytest.fixture(scope="module")
def workers_described_once() -> Iterator[None]:
    """Nothing takes libraries away in this process, so each worker describes itself to it once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hockney.worker.catalogue.describe", _described)
        yield


@pytest.fixture
def fake() -> Iterator[Fakes]:
    """Makes programs that the test must start: at its end each must have been."""
    fakes = Fakes()
    yield fakes
    assert fakes.never_started() == [], "nobody started these"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty results file."""
    from hockney.results.store import Store

    with Store.open(tmp_path / "results.db") as opened:
        yield opened


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    """What can be measured without libraries."""
    from hockney.worker.catalogue import load

    return load(libraries=())


@pytest.fixture(scope="session")
def standin(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, str]]:
    """Variables of a worker that finds a made-up NVIDIA driver: standin_cuda.c, with faults such as `oom=1000000`."""

    def make(folder: Path) -> None:
        for name, flags in (("new", ()), ("old", ("-DSTANDIN_OLD",))):
            (folder / name).mkdir()
            source = Path(__file__).with_name("worker") / "standin_cuda.c"
            words = ("-std=c17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread")
            made = folder / name / "libcuda.so.1"
            subprocess.run(["cc", *words, *flags, "-Wl,-soname,libcuda.so.1", source, "-o", made], check=True)

    folder = made_once(tmp_path_factory, "standin", make)

    def variables(*faults: str, old: bool = False) -> dict[str, str]:
        return {"LD_LIBRARY_PATH": str(folder / ("old" if old else "new")), "STANDIN_CUDA": " ".join(faults)}

    return variables


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--full`: the long matrices too, and C under sanitizers."""
    parser.addoption("--full", action="store_true", help="run the long matrices and sanitizers too: 20 minutes")


def pytest_configure(config: pytest.Config) -> None:
    """Compile the workers before the processes of pytest-xdist begin: each would, as it collects or runs tests."""
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        from hockney.worker.build import Recipe, build_worker
        from hockney.worker.errors import BuildError
        from hockney.worker.libraries import MPI, SHMEM, find_ofis, find_pvms, find_ucxs, find_zmqs

        of_tests: list[Recipe] = []
        if Path(__file__).with_name("worker").is_dir():  # made-up tests of test_scripts.py have none
            from tests.worker.extra import ADDRESS, EXTRA, THREAD

            of_tests += (EXTRA, ADDRESS, THREAD) if config.getoption("--full") else (EXTRA,)
        kinds = (MPI, SHMEM, find_pvms, find_ucxs, find_ofis, find_zmqs)
        libraries = dict.fromkeys(library.recipe for find in kinds for library in find()[0])
        for recipe in (Recipe(), Recipe("sim"), *of_tests, *libraries):
            with contextlib.suppress(BuildError):  # who needs it reports that
                build_worker(recipe)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests marked `full`, unless they are selected by --full or by name. Beds and they have more time.

    Beds come first, as their tests wait longest, and then tests with a limit of their own, which are long. Others run
    meanwhile; at the end nothing would.
    """
    items.sort(key=lambda item: ("truth" not in item.path.parts, item.get_closest_marker("timeout") is None))
    for item in items:
        is_long = item.get_closest_marker("full") or "truth" in item.path.parts
        if is_long and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_LONG_LIMIT_S))
    if config.getoption("--full") or any("::" in argument for argument in config.args):
        return
    left_out = [item for item in items if item.get_closest_marker("full")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("full")]


def pytest_collection_finish() -> None:
    """Garbage is looked for again, but not among the collected tests."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where every runtime must be there, a skipped test has failed."""
    report = yield
    if ALL_RUNTIMES and report.skipped and not hasattr(report, "wasxfail"):
        assert isinstance(report.longrepr, tuple)  # file, line, reason
        report.outcome = "failed"
        report.longrepr = f"{report.longrepr[2]}; HOCKNEY_ALL_RUNTIMES=1 makes a skip a failure"
    return report


def _of_hydra() -> set[Path]:
    """Files that MPICH's launcher writes for the ranks to read as they start: in /tmp, whatever TMPDIR says."""
    return set(Path("/tmp").glob("hydra_hwloc_xmlfile_*"))


_OF_OTHERS = _of_hydra()


def pytest_sessionfinish() -> None:
    """Remove files left by killed launchers."""
    for path in _of_hydra() - _OF_OTHERS:
        with contextlib.suppress(OSError):  # gone, or somebody else's
            if time.time() - path.stat().st_mtime > _START_S:
                path.unlink()
