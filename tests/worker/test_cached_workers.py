"""Cached workers that no longer load, hang, lie or belong to others: the rest is listed, and nothing planted is run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import make_library
from tests.shared import Fakes, finished, script
from tests.worker.extra import QUICK

from hockney.model import Point
from hockney.worker import cache, catalogue
from hockney.worker.build import Recipe, build_worker
from hockney.worker.catalogue import Catalogue, load
from hockney.worker.errors import BuildError, CacheUnusable, ProtocolError
from hockney.worker.libraries import REPAIR, Library, Missing

# A library whose faults come when it is loaded, as those of an MPI that an update has broken.
LIBRARY = r"""
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int extra(void) { return 0; }
__attribute__((constructor)) static void load(void)
{
    const char *fault = getenv("FAULT");
    if (fault == NULL) return;
    if (strcmp(fault, "hangs") == 0) for (;;) pause();
    if (strcmp(fault, "ends") == 0) _exit(0);
    if (strcmp(fault, "fails") == 0) _exit(3);
    if (strcmp(fault, "crashes") == 0) raise(SIGSEGV);
    if (strcmp(fault, "doubles") == 0) (void)fork();
    if (strcmp(fault, "chatters") == 0 && write(1, "@hk {\n", 6) != 6) _exit(4);
}
"""


@pytest.fixture
def workers(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user's workers; all but what a test makes is in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "hockney").mkdir(parents=True, mode=0o700)
    return shutil.copytree(kept, tmp_path / "home" / "hockney" / "workers")


@pytest.fixture
def shared_library(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    return compile_library(tmp_path / "lib" / "libextra.so")


MINE = "mpi@mine:spin"  # the worker is that of native transports, whose variants it names


def compile_library(path: Path) -> Path:
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", path], input=LIBRARY.encode(), check=True, timeout=120
    )
    return path


def linked(path: Path, *, by_path: bool = True) -> Library:
    """A library whose worker is linked with that file, and finds it by its path, or by LD_LIBRARY_PATH."""
    found = (f"-Wl,-rpath,{path.parent}",) if by_path else ()
    options = (f"-L{path.parent}", "-Wl,--no-as-needed", *found, "-lextra")
    return replace(make_library("mpi@mine"), recipe=Recipe(flags=QUICK.flags, libraries=options))


def listed(library: Library) -> tuple[set[str], str]:
    """The names of the transports that are ready, and why the library is not; empty if it is."""
    known = load(recipe=QUICK, libraries=[library])
    assert {"shm", "tcp"} <= known.transports.keys()
    missing = [each for each in known.missing if "NVIDIA" not in each.why]  # of the machine, not of the library
    return set(known.transports), "; ".join(f"{each.why}; {each.how}" for each in missing)


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("hangs", "does not run: no answer within 5 s"),
        ("ends", "does not answer --describe as this version of hockney asks for it"),
        ("fails", "does not run: it ended with exit code 3"),
        ("crashes", "does not run: it was killed by SIGSEGV"),
        ("doubles", "does not answer --describe as this version of hockney asks for it"),
        ("chatters", "does not answer --describe as this version of hockney asks for it"),
    ],
)
def test_a_library_that_no_longer_loads_leaves_the_others(
    fault: str, why: str, shared_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = linked(shared_library)
    names, missing = listed(library)
    assert (MINE in names, missing) == (True, "")
    # Only the library's worker is linked with it, so only that has the fault.
    monkeypatch.setenv("FAULT", fault)
    monkeypatch.setattr(catalogue, "_LIMIT_S", 5.0)
    names, missing = listed(library)
    assert MINE not in names
    assert missing == f"the worker {build_worker(library.recipe).name} {why}; {REPAIR}"


def test_a_library_that_is_gone_is_missing_until_it_is_back(workers: Path, shared_library: Path) -> None:
    library = linked(shared_library)
    assert MINE in listed(library)[0]
    aside = shared_library.rename(workers / "aside")
    names, missing = listed(library)
    assert MINE not in names
    assert re.search(r"cannot link the worker: .*cannot find -lextra", missing)
    aside.rename(shared_library)
    assert MINE in listed(library)[0]


@pytest.mark.usefixtures("workers")
def test_a_library_that_the_loader_no_longer_finds_is_missing(
    shared_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `module unload`: building its worker anew would not help."""
    library = linked(shared_library, by_path=False)
    with monkeypatch.context() as loaded:
        loaded.setenv("LD_LIBRARY_PATH", str(shared_library.parent))
        assert MINE in listed(library)[0]
        worker = build_worker(library.recipe)
        built = worker.stat().st_ino
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    names, missing = listed(library)
    assert MINE not in names
    assert "does not run: error while loading shared libraries: libextra.so: cannot open" in missing
    assert worker.stat().st_ino == built


@pytest.mark.usefixtures("workers")
def test_a_library_that_changes_is_linked_anew(shared_library: Path) -> None:
    worker = build_worker(linked(shared_library).recipe)
    built = worker.stat().st_ino
    assert build_worker(linked(shared_library).recipe).stat().st_ino == built
    shared_library.unlink()
    compile_library(shared_library)
    assert build_worker(linked(shared_library).recipe) == worker
    assert worker.stat().st_ino != built


@pytest.mark.parametrize(("known", "how"), [("", REPAIR), ("free some space", "free some space")])
def test_a_library_whose_worker_cannot_be_built_is_missing(
    known: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(recipe: Recipe) -> Path:
        if recipe.family == "mpi":
            raise BuildError("mpicc is broken", known)
        return build_worker(recipe)

    monkeypatch.setattr(catalogue, "build_worker", build)
    library = make_library()
    assert Missing(library.id, "mpicc is broken", how) in load(libraries=[library]).missing


# ---- what others left in the cache -----------------------------------------------------------------------------------


def replace_with(worker: Path, *lines: str) -> None:
    worker.unlink()
    script(worker, f"echo >>'{worker}.ran'", *lines)


def link_elsewhere(worker: Path) -> None:
    elsewhere = worker.rename(worker.with_name("elsewhere"))
    worker.symlink_to(elsewhere)


def make_pipe(worker: Path) -> None:
    worker.unlink()
    os.mkfifo(worker)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "hangs": lambda worker: replace_with(worker, "exec sleep 600"),
    "ends": lambda worker: replace_with(worker, "exit 0"),
    "fails": lambda worker: replace_with(worker, "echo 'w: libmpi.so.40: cannot open' >&2", "exit 127"),
    "doubles its lines": lambda worker: (
        worker.rename(worker.with_name("real")),
        script(worker, f"echo >>'{worker}.ran'", f"'{worker.with_name('real')}' \"$@\" | sed p"),
    ),
    "empty": lambda worker: os.truncate(worker, 0),
    "truncated": lambda worker: os.truncate(worker, 1000),
    "half": lambda worker: os.truncate(worker, worker.stat().st_size // 2),
    "a flipped bit": lambda worker: flip(worker, worker.stat().st_size // 2),
    "not executable": lambda worker: worker.chmod(0o600),
    "of others to write": lambda worker: worker.chmod(0o777),
    "a link": link_elsewhere,
    "a pipe": make_pipe,
}


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_worker_that_is_not_as_it_was_built_is_built_anew_and_never_run(
    damage: Callable[[Path], object], workers: Path
) -> None:
    worker = build_worker(QUICK)
    content = worker.read_bytes()
    damage(worker)
    assert {"shm", "tcp"} <= load(recipe=QUICK, libraries=[]).transports.keys()
    assert worker.read_bytes() == content
    assert (worker.is_file(), worker.is_symlink()) == (True, False)
    assert worker.stat().st_mode & 0o777 == 0o700
    assert not worker.with_name(f"{worker.name}.ran").exists()
    assert worker.parent == workers


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_worker_of_another_user_is_not_run(workers: Path) -> None:
    worker = build_worker(QUICK)
    os.chown(worker, 12345, -1)
    assert build_worker(QUICK) == worker
    assert worker.stat().st_uid == 0


@pytest.mark.usefixtures("sources")
def test_objects_are_linked_only_as_they_were_built(tmp_path: Path) -> None:
    worker = build_worker(folder=tmp_path / "workers")
    content = worker.read_bytes()
    for path in (tmp_path / "workers" / "objects").iterdir():
        flip(path, path.stat().st_size // 2)
    worker.unlink()
    assert build_worker(folder=tmp_path / "workers").read_bytes() == content


@pytest.mark.usefixtures("sources")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_folders_are_made_for_their_user_alone(umask: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        folder = tmp_path / "home" / "hockney" / "workers"
        worker = build_worker(folder=folder)
    finally:
        os.umask(before)
    assert all(path.stat().st_mode & 0o077 == 0 for path in (worker, folder, *folder.parents[:2], folder / "probes"))


@pytest.mark.parametrize("mode", [0o720, 0o702])
@pytest.mark.parametrize("place", [".", "hockney", "hockney/workers"])
def test_a_folder_that_others_may_write_is_refused(
    place: str, mode: int, workers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "home" / place
    shared.chmod(mode)
    said = (
        f"cannot keep builds in {workers}: others may write {shared}; run chmod go-w {shared}, or let "
        "XDG_CACHE_HOME name a folder that only you can write"
    )
    with pytest.raises(CacheUnusable) as refused:
        load(recipe=QUICK, libraries=[])
    assert str(refused.value) == said
    with pytest.raises(CacheUnusable), cache.scratch(workers):
        raise AssertionError("it was used")
    shared.chmod(0o700)
    assert load(recipe=QUICK, libraries=[]).transports


def test_a_folder_on_the_way_where_all_may_write_only_their_own_is_no_danger(workers: Path, tmp_path: Path) -> None:
    (tmp_path / "home").chmod(0o1777)  # as /tmp
    assert cache.default_folder() == workers
    workers.chmod(0o1777)
    with pytest.raises(CacheUnusable, match=f"others may write {workers}"):
        cache.default_folder()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("place", [".", "hockney", "hockney/workers"])
def test_a_folder_of_another_user_is_refused(place: str, workers: Path, tmp_path: Path) -> None:
    os.chown(tmp_path / "home" / place, 12345, -1)
    with pytest.raises(CacheUnusable, match=f"in {workers}: {(tmp_path / 'home' / place)} belongs to user 12345; let"):
        load(recipe=QUICK, libraries=[])


def test_a_link_is_as_safe_as_where_it_leads(workers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scratch").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("scratch")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "link"))
    assert cache.default_folder() == tmp_path / "link" / "hockney" / "workers"
    (tmp_path / "scratch").chmod(0o777)
    with pytest.raises(CacheUnusable, match="others may write"):
        cache.default_folder()
    (tmp_path / "scratch").chmod(0o700)
    if os.geteuid() == 0:
        os.chown(tmp_path / "link", 12345, -1, follow_symlinks=False)
        with pytest.raises(CacheUnusable, match=f"{tmp_path / 'link'} belongs to user 12345"):
            cache.default_folder()
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(CacheUnusable, match="symbolic links"):
        cache.default_folder()


# ---- answers of a worker that goes wrong while it is asked -----------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["exit 0"], "does not answer --fits as"),
        (["exit 3"], "does not run: it ended with exit code 3"),
        (["kill -9 $$"], "does not run: it was killed by SIGKILL"),
        (["echo 'sh: no libmpi.so' >&2; exit 127"], "does not run: sh: no libmpi.so"),
        (["echo '@hk {'"], "does not answer --fits as"),
        (["echo '@hk 7'"], "does not answer --fits as"),
        (["printf '@hk \\377\\n'"], "does not answer --fits as"),
        (["sed 's/.*/@hk {\"why\": 7}/'"], "does not answer --fits as"),
        (["sed 's/.*/@hk {\"why\": null}/;p'"], "does not answer --fits as"),
        (["exec sleep 600"], "does not run: no answer within 5 s"),
    ],
)
def test_a_worker_that_cannot_say_what_fits_keeps_nobody_else(
    lines: list[str], why: str, catalogue: Catalogue, fake: Fakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hockney.worker.catalogue._LIMIT_S", 5.0)
    wrong = fake(tmp_path / "worker", *lines)
    mine = replace(catalogue.transports["tcp"], name="mine", executable=wrong)
    both = Catalogue(catalogue.patterns, {**catalogue.transports, "mine": mine}, ())
    points = [Point(name, "pingpong", 2, 8) for name in ("tcp", "mine")]
    obstacles = both.obstacles(points)
    assert obstacles.keys() == {points[1]}
    assert f"the worker worker {why}" in obstacles[points[1]]


def test_a_worker_that_is_no_program_keeps_nobody_else(catalogue: Catalogue, tmp_path: Path) -> None:
    (tmp_path / "worker").write_bytes(b"\x7fELF")
    for mode, why in ((0o600, "permission denied"), (0o700, "exec format error")):
        (tmp_path / "worker").chmod(mode)
        mine = replace(catalogue.transports["tcp"], executable=tmp_path / "worker")
        obstacles = Catalogue(catalogue.patterns, {"tcp": mine}, ()).obstacles([Point("tcp", "pingpong", 2, 8)])
        assert list(obstacles.values()) == [f"the worker worker does not run: {why}"]


@pytest.mark.parametrize(
    "described",
    ["{}", '{"patterns": 3}', '{"patterns": [], "transports": [3]}', '{"patterns": [{"name": 1}], "transports": []}'],
)
def test_a_description_of_wrong_types_is_a_sentence(described: str, fake: Fakes, tmp_path: Path) -> None:
    worker = fake(tmp_path / "worker", f"echo '@hk {described}'")
    with pytest.raises(ProtocolError, match="the worker worker describes itself wrongly: "):
        catalogue._describe(worker)


def test_a_fake_that_nobody_starts_is_noticed(tmp_path: Path) -> None:
    fakes = Fakes()
    one, other = fakes(tmp_path / "one", "exit 3"), fakes(tmp_path / "other")
    assert finished([one]).returncode == 3
    assert (fakes.starts(one), fakes.never_started()) == (1, [other])
