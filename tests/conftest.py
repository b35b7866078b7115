"""Rules for every test: seeds are fixed, long matrices run with --full. With all runtimes required, a skip fails.

Files that MPICH leaves behind after a test kills its launcher are removed at the end.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hockney.results.store import Store

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


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty results file."""
    from hockney.results.store import Store

    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--full`: the long matrices too."""
    parser.addoption("--full", action="store_true", help="run the long matrices too, about 20 minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests marked `full`, unless they are selected by --full or by name."""
    if config.getoption("--full") or any("::" in argument for argument in config.args):
        return
    left_out = [item for item in items if item.get_closest_marker("full")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("full")]


def _skipped(config: pytest.Config) -> list[str]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if not ALL_RUNTIMES or reporter is None:
        return []
    # A skip's longrepr is (file, line, reason).
    return [f"{report.nodeid}: {report.longrepr[2]}" for report in reporter.stats.get("skipped", [])]


def _of_hydra() -> set[Path]:
    """Files that MPICH's launcher writes for the ranks to read as they start: in /tmp, whatever TMPDIR says."""
    return set(Path("/tmp").glob("hydra_hwloc_xmlfile_*"))


_OF_OTHERS = _of_hydra()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remove files left by killed launchers; make the run fail if it passed with a skip."""
    for path in _of_hydra() - _OF_OTHERS:
        with contextlib.suppress(OSError):  # gone, or somebody else's
            if time.time() - path.stat().st_mtime > _START_S:
                path.unlink()
    if exitstatus == pytest.ExitCode.OK and _skipped(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name the skips that made it fail."""
    skipped = _skipped(config)
    if skipped:
        terminalreporter.section("skipped, which HOCKNEY_ALL_RUNTIMES=1 makes a failure", red=True)
        for line in skipped:
            terminalreporter.line(line, red=True)
