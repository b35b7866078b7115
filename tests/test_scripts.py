"""The start script and the set-up behind it, run for real in copies of this checkout."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.shared import finished, script

ROOT = Path(__file__).resolve().parent.parent
PYTHON = Path(sys.executable).resolve()
TOOLS = ("awk", "cat", "cmp", "cp", "dirname", "grep", "head", "readlink", "rm", "sh", "tail")
OFFLINE = "cannot reach the package index"

# How this machine reaches the package index; nothing else of the caller's environment is passed on.
PASSED_ON = ("PIP_", "SSL_", "REQUESTS_", "CURL_", "HTTP", "http", "NO_PROXY", "no_proxy")


class Checkout:
    """A copy of this checkout, with an empty home and a PATH that leads to one Python and nothing that isn't needed.

    In a small one the package only says its arguments, and its one dependency is quick to install.
    """

    def __init__(self, folder: Path, *, small: bool) -> None:
        self.root = folder / "check out"
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        (folder / "home").mkdir()
        for tool in TOOLS:
            where = shutil.which(tool)
            assert where is not None, tool
            (self.bin / tool).symlink_to(where)
        (self.bin / "python3").symlink_to(PYTHON)
        if small:
            self._make_small()
        else:
            ignored = shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__")
            shutil.copytree(ROOT, self.root, ignore=ignored)

    def _make_small(self) -> None:
        package = self.root / "src/hockney"
        package.mkdir(parents=True)
        (package / "__main__.py").write_text("import annotated_types, sys\nprint('started', *sys.argv[1:])\n")
        (self.root / "scripts").mkdir()
        for name in ("hockney", "scripts/venv.sh"):
            shutil.copy(ROOT / name, self.root / name)
        (self.root / "requirements.lock").write_text(lock_entry("annotated-types"))

    def replace_python(self, *lines: str) -> None:
        """Put a shell script in the place of python3."""
        (self.bin / "python3").unlink()
        script(self.bin / "python3", *lines)

    def popen(self, *command: str | Path, cwd: Path | None = None, **variables: str) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
        environment |= {
            "HOME": str(self.root.parent / "home"),
            "PATH": str(self.bin),
            "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache/pip")),
        }
        return subprocess.Popen(
            [str(word) for word in command] or [str(self.root / "hockney")],
            cwd=cwd or self.root,
            env=environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def start(self, *command: str | Path, cwd: Path | None = None, **variables: str) -> tuple[int, str, str]:
        """Exit status, standard output and standard error. Skips the test if only a network is missing, twice."""
        ended = finish(self.popen(*command, cwd=cwd, **variables), skip_offline=False)
        if OFFLINE in ended[2] and "PIP_INDEX_URL" not in variables:
            return finish(self.popen(*command, cwd=cwd, **variables))
        return ended


def finish(process: subprocess.Popen[str], *, skip_offline: bool = True) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=240)
    if skip_offline and OFFLINE in err:
        pytest.skip("no package index can be reached from here")
    return process.returncode, out, err


def lock_entry(name: str) -> str:
    """The lines about one package in requirements.lock."""
    lines = (ROOT / "requirements.lock").read_text().splitlines(keepends=True)
    start = next(i for i, line in enumerate(lines) if line.startswith(f"{name}=="))
    end = next(i for i in range(start + 1, len(lines)) if not lines[i].startswith(" "))
    return "".join(lines[start:end])


@pytest.fixture
def small(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path, small=True)


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A small checkout that is set up. Tests do not change it."""
    checkout = Checkout(tmp_path_factory.mktemp("ready"), small=True)
    status, out, err = checkout.start(checkout.root / "hockney", "a", "b  c")
    assert (status, out) == (0, "started a b  c\n")
    assert err.startswith("hockney: setting up .venv (first start, about ")
    assert err.endswith(" ... done\n")
    assert err.count("\n") == 1
    return checkout


@pytest.mark.full
def test_fresh_checkout_starts_with_everything_it_needs(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, small=False)
    status, out, err = checkout.start(checkout.root / "hockney", "--version")
    assert status == 0, err
    assert "setting up .venv" in err
    assert out.strip()
    if sys.platform == "linux":
        assert (checkout.root / ".venv/bin/mpiexec").exists() != ("MPICH wheel cannot" in err)
    assert checkout.start(checkout.root / "hockney", "--version") == (0, out, "")


def test_second_start_does_not_set_up_again(ready: Checkout) -> None:
    before = (ready.root / ".venv/pyvenv.cfg").stat().st_mtime_ns
    assert ready.start() == (0, "started\n", "")
    assert (ready.root / ".venv/pyvenv.cfg").stat().st_mtime_ns == before
    assert not list(ready.root.glob(".venv.log"))


@pytest.mark.parametrize("link", ["absolute", "relative", "twice"])
def test_starts_by_symbolic_link(ready: Checkout, tmp_path: Path, link: str) -> None:
    target = ready.root / "hockney"
    if link != "absolute":
        target = Path(os.path.relpath(target, tmp_path))
    (tmp_path / "hk").symlink_to(target)
    if link == "twice":
        (tmp_path / "again").symlink_to("hk")
    assert ready.start(tmp_path / ("again" if link == "twice" else "hk"), "x", cwd=tmp_path) == (0, "started x\n", "")


@pytest.mark.parametrize("command", [("../hockney",), ("sh", "../hockney"), ("../scripts/../hockney",)])
def test_starts_from_another_folder(ready: Checkout, command: tuple[str, ...]) -> None:
    assert ready.start(*command, "x", cwd=ready.root / "src") == (0, "started x\n", "")


def test_nothing_of_the_callers_hides_a_dependency(ready: Checkout, tmp_path: Path) -> None:
    (tmp_path / "annotated_types.py").write_text("raise SystemExit('the wrong one')\n")
    assert ready.start(cwd=tmp_path, PYTHONPATH=str(tmp_path)) == (0, "started\n", "")


@pytest.mark.full
def test_moved_checkout_starts_and_a_changed_lock_is_noticed(ready: Checkout, tmp_path: Path) -> None:
    moved = Checkout(tmp_path, small=True)
    shutil.copytree(ready.root / ".venv", moved.root / ".venv", symlinks=True)
    assert moved.start() == (0, "started\n", "")
    with (moved.root / "requirements.lock").open("a") as lock:
        lock.write("# changed\n")
    status, out, err = moved.start()
    assert (status, out) == (0, "started\n")
    assert "unfinished or out of date" in err
    assert moved.start() == (0, "started\n", "")


def kill_all(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)


def kill_start_script_only(process: subprocess.Popen[str]) -> None:
    process.kill()


@pytest.mark.full
@pytest.mark.parametrize("kill", [kill_all, kill_start_script_only])
def test_killed_set_up_recovers(small: Checkout, kill: Callable[[subprocess.Popen[str]], None]) -> None:
    first = small.popen()
    deadline = time.monotonic() + 60
    while not (small.root / ".venv/bin/pip").exists():  # from here on it installs
        assert time.monotonic() < deadline
        time.sleep(0.01)
    kill(first)
    # Where the set-up continues without its start script, this waits for it.
    status, out, err = small.start()
    assert (status, out) == (0, "started\n"), err
    assert ("unfinished" in err) == (kill is kill_all)
    first.communicate()
    assert small.start() == (0, "started\n", "")


@pytest.mark.full
def test_two_concurrent_first_starts(small: Checkout) -> None:
    starts = [small.popen() for _ in range(2)]
    results = [finish(start) for start in starts]
    assert [(status, out) for status, out, _ in results] == [(0, "started\n")] * 2
    assert sum("setting up .venv (" in err for _, _, err in results) == 1
    assert sum("another start is setting up .venv" in err for _, _, err in results) <= 1


@pytest.mark.parametrize("path", ["", "/nowhere"])
def test_a_path_that_leads_nowhere_is_named(small: Checkout, ready: Checkout, tmp_path: Path, path: str) -> None:
    (tmp_path / "hk").symlink_to(ready.root / "hockney")
    for command, missing in (
        (small.root / "hockney", "awk"),
        (ready.root / "hockney", "awk"),
        (tmp_path / "hk", "readlink"),
    ):
        said = f"hockney: the command {missing} is not on PATH, which is '{path}': set PATH, or install {missing}\n"
        assert small.start(command, PATH=path) == (3, "", said)


def test_python_too_old(small: Checkout) -> None:
    small.replace_python('[ "$1" = -V ] && echo Python 3.9.2; exit 1')
    assert small.start() == (
        3,
        "",
        "hockney: needs Python 3.10 or newer as python3 on PATH, and python3 is Python 3.9.2\n",
    )


def test_no_python(small: Checkout) -> None:
    (small.bin / "python3").unlink()
    assert small.start() == (3, "", "hockney: needs Python 3.10 or newer as python3 on PATH, and there is none\n")


@pytest.mark.full
def test_newer_python_under_another_name(small: Checkout) -> None:
    small.replace_python("exit 1")
    (small.bin / "python3.12").symlink_to(PYTHON)
    status, _, err = small.start(PIP_INDEX_URL="http://127.0.0.1:9/simple")
    assert status == 3
    assert OFFLINE in err


# As Debian's own.
WITHOUT_ENSUREPIP = (
    f'case "$*" in *_base_executable*) echo "$0" ;; *ensurepip*) exit 1 ;; *) exec {PYTHON} "$@" ;; esac'
)


def test_python_without_ensurepip(small: Checkout) -> None:
    small.replace_python(WITHOUT_ENSUREPIP)
    status, out, err = small.start()
    assert (status, out) == (3, "")
    assert err.endswith("On Debian or Ubuntu, this cures it: sudo apt-get install python3-venv\n")
    assert err.count("\n") == 1


@pytest.mark.full
def test_the_tests_install_the_tools_for_the_environment(small: Checkout) -> None:
    """As root on a made-up Debian, where all is installed but python3-venv."""
    small.replace_python(WITHOUT_ENSUREPIP)
    for name in ("runtimes", "setup-dev", "test"):
        shutil.copy(ROOT / "scripts" / name, small.root / "scripts" / name)
    shutil.copy(small.root / "requirements.lock", small.root / "requirements-dev.lock")
    for tool in ("bash", "env", "find", "ln", "mktemp", "uname"):
        (small.bin / tool).symlink_to(shutil.which(tool) or tool)
    sanitizer = small.root / "clang/lib/libclang_rt.asan.a"
    sanitizer.parent.mkdir(parents=True)
    sanitizer.touch()
    log = small.root / "log"
    made_up = {
        "id": "echo 0",
        "clang": f"echo {shlex.quote(str(small.root / 'clang'))}",
        "dpkg-query": 'for word; do [ "$word" = python3-venv ] || echo "installed $word"; done',
        "apt-get": f'echo "$@" >>{shlex.quote(str(log))}; [ $1 = update ] || ln -sf {PYTHON} "$(dirname "$0")/python3"',
    }
    for name, line in made_up.items():
        script(small.bin / name, line)
    _, _, err = small.start(small.root / "scripts/test")
    assert log.read_text() == "update\ninstall --yes --no-install-recommends python3-venv\n"
    assert "setting up .venv" in err
    assert err.endswith("No module named pytest\n")  # a small one has no tests


@pytest.mark.full
def test_no_network_is_a_sentence(small: Checkout) -> None:
    status, out, err = small.start(PIP_INDEX_URL="http://127.0.0.1:9/simple")
    assert (status, out) == (3, "")
    assert OFFLINE in err.splitlines()[1]
    assert err.count("\n") == 2
    assert small.start()[:2] == (0, "started\n")


@pytest.mark.full
def test_package_with_another_hash_is_refused(small: Checkout) -> None:
    lock = small.root / "requirements.lock"
    lock.write_text(re.sub("sha256:[0-9a-f]*", "sha256:" + "0" * 64, lock.read_text()))
    status, _, err = small.start()
    assert status == 3
    assert "refuses a package whose hash is not the one in requirements.lock" in err


@pytest.mark.full
def test_works_without_the_mpich_wheel(small: Checkout) -> None:
    with (small.root / "requirements.lock").open("a") as lock:
        lock.write("mpich==0.0.99 \\\n    --hash=sha256:" + "0" * 64 + "\n")
    status, out, err = small.start()
    assert (status, out) == (0, "started\n")
    assert err.splitlines()[1].startswith("hockney: the MPICH wheel cannot be installed here; going on without it")
    assert small.start() == (0, "started\n", "")


class MadeUpTests:
    """scripts/test with made-up tests, in a checkout where everything is installed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("runtimes", "setup-dev"):
            script(root / "scripts" / name)
        shutil.copy(ROOT / "scripts/test", root / "scripts/test")
        script(root / ".venv/bin/python", f'exec {shlex.quote(sys.executable)} "$@"')
        (root / "tests/__pycache__").mkdir(parents=True)  # as after an earlier run
        for name in ("conftest", "shared"):
            shutil.copy(ROOT / f"tests/{name}.py", root / "tests")
        settings = ("[pytest]", "markers = full", "pythonpath = .", "addopts = --import-mode=importlib", "")
        (root / "pytest.ini").write_text("\n".join(settings))

    def write(self, name: str, *lines: str) -> None:
        (self.root / f"tests/test_{name}.py").write_text("\n".join(["import os, pathlib, pytest", *lines, ""]))

    def run(self, *arguments: str, all_runtimes: bool = False) -> tuple[int, str]:
        """The exit status and the output."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        environment |= {"HOCKNEY_ALL_RUNTIMES": str(int(all_runtimes))}
        done = finished([self.root / "scripts/test", "-n", "0", *arguments], env=environment)
        return done.returncode, done.stdout


@pytest.fixture
def made_up(tmp_path: Path) -> MadeUpTests:
    made = MadeUpTests(tmp_path / "check out")
    made.write("good", "def test_good(): pass", "@pytest.mark.full", "def test_long(): assert 0")
    return made


def fails_at_first(name: str, how: str = "assert False") -> str:
    """A test that passes if it has failed before, and if no other process of pytest-xdist runs."""
    return (
        f"def test_{name}(tmp_path_factory):\n"
        f"    before = pathlib.Path(__file__).with_name('{name}')\n"
        f"    if not before.exists():\n        before.touch()\n        {how}\n"
        "    assert 'PYTEST_XDIST_WORKER' not in os.environ\n"
    )


LATER = "these passed only the second time, which is a defect to mend:\n"


def test_the_tests_run_once_where_all_pass(made_up: MadeUpTests) -> None:
    status, out = made_up.run()
    assert status == 0
    assert "1 passed" in out
    assert "once more" not in out


def test_what_failed_runs_once_more_and_is_listed(made_up: MadeUpTests) -> None:
    """Up to five, without pytest-xdist. What failed in an earlier run, and is not asked for now, is not run again."""
    made_up.write("old", "def test_old(): assert 0")
    assert made_up.run("tests/test_old.py")[0] == 1
    names = [f"n{place}" for place in range(5)]
    made_up.write("late", *map(fails_at_first, names))
    status, out = made_up.run("tests/test_good.py", "tests/test_late.py", "-n", "1")
    assert status == 0, out
    assert "5 failed, 1 passed" in out
    assert "5 failed; once more, alone and one at a time" in out
    assert out.endswith(LATER + "".join(f"  tests/test_late.py::test_{name}\n" for name in names))


def test_what_fails_again_fails(made_up: MadeUpTests) -> None:
    made_up.write("late", fails_at_first("one"), "def test_two(): assert 0")
    status, out = made_up.run()
    assert status == 1
    assert "1 failed, 1 passed" in out
    assert LATER not in out


def test_six_failures_are_not_run_again(made_up: MadeUpTests) -> None:
    made_up.write("late", *(fails_at_first(f"n{place}") for place in range(6)))
    status, out = made_up.run()
    assert status == 1
    assert "6 failed, too many to run them again" in out


def test_long_ones_run_again_too(made_up: MadeUpTests) -> None:
    made_up.write("good", "@pytest.mark.full", fails_at_first("long"))
    status, out = made_up.run("--full")
    assert status == 0
    assert out.endswith(f"{LATER}  tests/test_good.py::test_long\n")


@pytest.mark.parametrize("argument", ["-x", "--maxfail=1", "--no-such-option"])
def test_a_run_that_was_cut_short_is_not_made_good(made_up: MadeUpTests, argument: str) -> None:
    made_up.write("late", fails_at_first("one"))
    status, out = made_up.run(argument)
    assert status != 0
    assert "once more" not in out


def test_a_skip_fails_where_every_runtime_must_be_there(made_up: MadeUpTests) -> None:
    """Also one in a fixture, and one next to a failure that passes the second time."""
    made_up.write("skip", "@pytest.fixture", "def no_mpi(): pytest.skip('no MPI here')", "def test_skip(no_mpi): pass")
    assert made_up.run()[0] == 0
    made_up.write("late", fails_at_first("one"))
    status, out = made_up.run(all_runtimes=True)
    assert status == 1
    assert out.count("Skipped: no MPI here; HOCKNEY_ALL_RUNTIMES=1 makes a skip a failure") == 2


def test_a_runtime_that_is_there_the_second_time_is_listed(made_up: MadeUpTests) -> None:
    made_up.write("skip", fails_at_first("skip", "pytest.skip('no MPI yet')"))
    made_up.write("known", "@pytest.mark.xfail", "def test_known(): assert 0")  # it is no skip
    status, out = made_up.run(all_runtimes=True)
    assert status == 0, out
    assert out.endswith(f"{LATER}  tests/test_skip.py::test_skip\n")


def test_the_help_of_try_hosts_comes_before_anything_is_installed(tmp_path: Path) -> None:
    for name in ("scripts", "src", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    done = finished([tmp_path / "scripts/try-hosts", "--help"])
    assert (done.returncode, done.stderr) == (0, "")
    assert "examples:" in done.stdout
    assert not (tmp_path / ".venv").exists()


def test_try_hosts_names_the_packages_that_it_needs(tmp_path: Path) -> None:
    """On a machine with all programs but two packages'."""
    for folder in map(Path, ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")):
        for program in folder.glob("*"):
            link = tmp_path / program.name
            if not link.is_symlink() and program.name not in ("dropbear", "dropbearkey", "nft"):
                link.symlink_to(program)
    for name in ("ip", "tc", "ssh", "ssh-keygen", "cc", "pkill"):  # a container may have none
        if not (tmp_path / name).is_symlink():
            (tmp_path / name).symlink_to("/bin/true")
    done = finished([ROOT / "scripts/try-hosts", "2"], env={**os.environ, "PATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == (
        "try-hosts: not here: nft, dropbear, dropbearkey. On Debian and Ubuntu: apt-get install nftables dropbear-bin\n"
    )


@pytest.mark.parametrize(("word", "status"), [("--help", 0), ("-h", 0), ("help", 2)])
def test_runtimes_with_a_word_installs_nothing(word: str, status: int, tmp_path: Path) -> None:
    """Here apt-get is a program that would leave a file."""
    script(tmp_path / "apt-get", f"touch {tmp_path}/called")
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = finished([ROOT / "scripts/runtimes", word], env={**os.environ, "PATH": path})
    assert (done.returncode, done.stdout.splitlines()[0]) == (status, "usage: scripts/runtimes")
    assert "Installs what the tests talk to" in done.stdout
    assert not (tmp_path / "called").exists()
