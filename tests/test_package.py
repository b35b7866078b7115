"""The wheel: it holds all that a checkout's package does, and works where nothing else of the checkout is."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from tests.shared import finished

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.full
PASSED_ON = ("PIP_", "SSL_", "REQUESTS_", "CURL_", "HTTP", "http", "NO_PROXY", "no_proxy", "PATH")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `pip install .` does it, with the build backend from the package index."""
    if importlib.util.find_spec("ensurepip") is None:
        pytest.skip("this Python makes no environment with pip")
    folder, builder = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("builder")
    venv.create(builder, with_pip=True, symlinks=True)
    words = [
        str(builder / "bin/python"),
        "-I",
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(ROOT),
    ]
    done = finished(words, timeout_s=250)
    assert done.returncode == 0, done.stderr
    (built,) = folder.iterdir()
    return built


class Installed:
    """The wheel in a separate environment; its folders for data and caches are empty."""

    def __init__(self, folder: Path, wheel: Path, *, alone: bool) -> None:
        self.folder = folder
        venv.create(folder / "env", with_pip=True, symlinks=True)
        python = folder / "env/bin/python"
        if not alone:  # dependencies come from this environment, without the checkout
            (site,) = (folder / "env/lib").glob("python3*/site-packages")
            (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
        how = [] if alone else ["--no-deps"]
        words = [str(python), "-I", "-m", "pip", "install", "--quiet", *how, str(wheel)]
        subprocess.run(words, check=True, timeout=280, env=self.environment())

    def environment(self, **more: str) -> dict[str, str]:
        known = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
        homes = {f"XDG_{kind}_HOME": str(self.folder / kind) for kind in ("DATA", "CACHE", "STATE")}
        return {**known, "HOME": str(self.folder), **homes, **more}

    def __call__(self, *words: str, **more: str) -> str:
        done = finished([str(self.folder / "env/bin/hockney"), *words], cwd=self.folder, env=self.environment(**more))
        assert done.returncode in (0, 3), done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def hockney(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"), wheel, alone=False)


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    package = ROOT / "src/hockney"
    files = (path.relative_to(ROOT / "src").as_posix() for path in package.rglob("*") if path.is_file())
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("hockney/")}
    pages = {name for name in packed if name.startswith("hockney/docs/")}
    assert {name for name in files if "__pycache__" not in name} == packed - pages
    assert {name.rpartition("/")[2] for name in pages} == {path.name for path in (ROOT / "docs").iterdir()}
    assert "hockney/worker/csrc/main.c" in packed


def test_it_builds_its_worker_and_measures(hockney: Installed) -> None:
    document = json.loads(hockney("run", "pingpong", "-t", "shm", "--bytes", "8", "--time", "1s", "--json"))
    assert document["series"][0]["figures"][0]["value_ns"] > 1
    assert document["facts"]["software"]["commit"] is None
    assert document["store"].startswith(str(hockney.folder))
    assert "shm" in hockney("show")
    assert "pingpong" in hockney("explain", "--machine", "t3d") + hockney("list", "patterns")


def test_the_pages_that_screens_name_are_where_the_help_says(hockney: Installed) -> None:
    assert (Path(hockney("--help").splitlines()[-1].strip()) / "metrics.md").is_file()
    assert "hockney-run" in json.loads(hockney("list", "schemas"))["$defs"]  # made from one of them


def test_a_shell_completes_commands_options_and_words(hockney: Installed) -> None:
    """From the commands' own definitions."""
    assert "_HOCKNEY_COMPLETE=bash_complete" in hockney("completion", "bash")

    def completed(line: str) -> set[str]:
        words = line.split(" ")
        asked = {"_HOCKNEY_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        return {answer.partition(",")[2] for answer in hockney(**asked).splitlines()}

    assert {"import", "export", "run"} <= completed("hockney ")
    assert completed("hockney export --p") == {"--parquet"}
    assert completed("hockney import x --pattern pingpo") == {"pingpong"}
    assert completed("hockney show la") == {"last", "last~1"}


def test_it_works_with_its_dependencies_alone(wheel: Path, tmp_path: Path) -> None:
    """All that it depends on comes from the package index, at its newest."""
    hockney = Installed(tmp_path, wheel, alone=True)
    assert hockney("run", "pingpong", "-t", "shm", "--bytes", "8", "--time", "1s").count("pingpong")
