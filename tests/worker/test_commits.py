"""Commits of real repositories, and their builds: complete or absent, within their limit, and away from the user."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.shared import finished

from hockney.errors import HockneyError, UsageError, notice
from hockney.worker.commits import Builder, Repository

INSTALL = 'cp content "$PREFIX/"'


class Written:
    """A repository that a test writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str) -> str:
        name = ("-c", "user.name=Jane Doe", "-c", "user.email=jane@example.org", "-c", "core.hooksPath=/dev/null")
        return finished(["git", *name, "-C", str(self.folder), *words], check=True).stdout.strip()

    def commit(self, content: str, subject: str = "") -> str:
        (self.folder / "content").write_text(content)
        self.git("add", ".")
        self.git("commit", "--quiet", "--allow-empty", "-m", subject or f"content {content}")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path / "repository")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    token = notice.set(lambda _: None)
    yield
    notice.reset(token)


def builder(written: Written, command: str = INSTALL, limit_s: float = 60) -> Builder:
    return Builder(Repository(written.folder), command, limit_s, written.folder.parent / "builds")


def wait_for_words(path: Path, count: int) -> None:
    """Until a file has this number of words, for at most a minute."""
    until_s = time.monotonic() + 60
    while not (path.exists() and len(path.read_text().split()) >= count) and time.monotonic() < until_s:
        time.sleep(0.01)


# ---- history --------------------------------------------------------------------------------------------------------


def test_commits_are_ranked_as_git_bisect_does_among_those_that_contain_a_good_one(written: Written) -> None:
    commits = [written.commit(str(number)) for number in range(6)]
    written.git("checkout", "--quiet", "-b", "side", commits[1])
    (written.folder / "other").write_text("x")
    written.git("add", ".")
    written.git("commit", "--quiet", "-m", "on a branch that began before the good commit")
    written.git("checkout", "--quiet", "main")
    written.git("merge", "--quiet", "-m", "merge", "side")
    merge = written.git("rev-parse", "HEAD")
    repository = Repository(written.folder)
    ranked = repository.ranked(merge, [commits[2]])
    assert {*ranked} == {*commits[3:], merge}
    assert ranked[0] in (commits[4], commits[5])
    assert ranked[-1] == merge
    assert repository.ranked(merge, [commits[2], commits[5]]) == [merge]
    assert repository.parent(merge, commits[2]) == commits[5]
    assert repository.has_in(commits[0], merge)
    assert not repository.has_in(merge, commits[0])
    assert repository.has_in(merge, merge)
    with pytest.raises(HockneyError, match=f"git cannot read the history of {written.folder}: "):
        repository.has_in("0" * 40, merge)


def test_a_commit_is_described(written: Written) -> None:
    of = written.commit("1", "Copy large messages\n\nmore")
    commit = Repository(written.folder).commit("HEAD")
    assert (commit.id, commit.author, commit.subject) == (of, "Jane Doe <jane@example.org>", "Copy large messages")
    assert commit.date[:2] == "20"
    assert len(commit.date) == len("2026-01-31")


def test_a_commit_is_described_whatever_the_user_has_configured(written: Written, tmp_path: Path) -> None:
    written.commit("1", "Größer")
    gpg, signed = tmp_path / "gpg", tmp_path / "signed"
    gpg.write_text("#!/bin/sh\necho 'gpg: no public key' >&2\nexit 1\n")
    gpg.chmod(0o755)
    head, message = written.git("cat-file", "commit", "HEAD").split("\n\n")
    mark = "-----{} PGP SIGNATURE-----"
    signed.write_text(f"{head}\ngpgsig {mark.format('BEGIN')}\n \n {mark.format('END')}\n\n{message}\n")
    commit = written.git("hash-object", "-t", "commit", "-w", str(signed))
    before = Repository(written.folder).commit(commit)
    settings = ("log.showSignature=true", f"gpg.program={gpg}", "i18n.logOutputEncoding=latin1", "log.date=raw")
    for setting in (*settings, "color.ui=always", "format.pretty=oneline", "log.abbrevCommit=true"):
        written.git("config", *setting.split("=", 1))
    assert "no public key" in written.git("log", "-1", "--format=%H", commit)
    assert Repository(written.folder).commit(commit) == before
    assert (before.id, before.subject) == (commit, "Größer")


def test_what_a_shallow_clone_lacks_is_not_called_unknown(written: Written, tmp_path: Path) -> None:
    commits = [written.commit(str(number)) for number in range(2)]
    written.git("clone", "--quiet", "--depth", "1", f"file://{written.folder}", str(tmp_path / "clone"))
    with pytest.raises(UsageError, match="it is a shallow clone; git fetch --unshallow gets all commits"):
        Repository(tmp_path / "clone").commit(commits[0])


@pytest.mark.parametrize("word", ["nosuch", "-x", "--all", "", "HEAD~9", "content"])
def test_an_unknown_commit_is_one_sentence(written: Written, word: str) -> None:
    written.commit("1")
    with pytest.raises(UsageError, match=f"has no commit '{word}': name one that `git log` lists"):
        Repository(written.folder).commit(word)


def test_no_repository_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (tmp_path, tmp_path / "nosuch"):
        with pytest.raises(UsageError, match=f"cannot use --repo {folder}: .*; name the folder of a git repository$"):
            Repository(folder)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="there is no git here: install it"):
        Repository(tmp_path)


def test_only_changes_of_known_files_make_a_repository_dirty(written: Written) -> None:
    written.commit("1")
    (written.folder / "new").write_text("untracked")
    assert not Repository(written.folder).is_dirty
    (written.folder / "content").write_text("2")
    assert Repository(written.folder).is_dirty


# ---- builds ---------------------------------------------------------------------------------------------------------


def test_builds_are_of_their_commits_and_kept_and_the_working_tree_is_untouched(written: Written) -> None:
    commits = [written.commit(f"content {number}") for number in range(2)]
    (written.folder / "content").write_text("not committed")
    before = {path: path.read_bytes() for path in written.folder.rglob("*") if path.is_file()}
    made = builder(written, f"{INSTALL}; echo said; date >>{written.folder.parent}/times")
    made.build(commits)
    made.build(commits)
    for number, commit in enumerate(commits):
        assert made.is_tried(commit)
        os.utime(made.place(commit), (0, 0))
        assert made.error(commit) is None
        assert made.place(commit).stat().st_mtime > 0  # used now, so it is kept for another month
        assert (made.prefix(commit) / "content").read_text() == f"content {number}"
        assert (made.place(commit) / "log").read_text() == "said\n"
        assert not (made.place(commit) / "source").exists()
    assert len((written.folder.parent / "times").read_text().splitlines()) == 2
    assert {path: path.read_bytes() for path in written.folder.rglob("*") if path.is_file()} == before
    assert len(str(made.prefix(commits[0]))) == len(str(made.prefix(commits[1])))
    other = builder(written, f"{INSTALL} ")
    assert not other.is_tried(commits[0])


def test_builds_run_side_by_side(written: Written) -> None:
    """Each waits for a file of the other."""
    commits = [written.commit(str(number)) for number in range(2)]
    met = written.folder.parent / "met"
    met.mkdir()
    made = builder(written, f"touch {met}/$COMMIT; until [ $(ls {met} | wc -l) = 2 ]; do sleep 0.05; done; {INSTALL}")
    made.build(commits)
    assert [made.error(commit) for commit in commits] == [None, None]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            "echo one; echo cannot compile; exit 2 # $PREFIX",
            "the build ended with exit code 2: cannot compile (the log: ",
        ),
        ("exit 1 # $PREFIX", "the build ended with exit code 1: it said nothing (the log: "),
        ("kill -SEGV $$ # $PREFIX", "the build was killed by SIGSEGV: it said nothing (the log: "),
        ("true # $PREFIX", "the build put nothing into $PREFIX (the log: "),
        ('rm -rf "$PREFIX"', "the build put nothing into $PREFIX (the log: "),
        ('rm -rf "$PREFIX"; false', "the build ended with exit code 1: it said nothing (the log: "),
    ],
)
def test_a_build_that_fails_says_why(written: Written, command: str, said: str) -> None:
    commit, made = written.commit("1"), builder(written, command)
    made.build([commit])
    assert (made.error(commit) or "").startswith(said)
    made.retry([commit])
    assert not made.is_tried(commit)


def test_a_build_that_hangs_is_ended_with_its_children_at_its_limit(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit passes only when all its processes are there."""
    commit, pids = written.commit("1"), written.folder.parent / "pids"
    hang = f"trap '' TERM; {INSTALL}; (setsid sleep 600 & echo $! >>{pids}); sleep 600 & echo $! >>{pids}; wait"
    made, finish = builder(written, hang, limit_s=1), Builder._finish

    def once_begun(self: Builder, process: subprocess.Popen[bytes], place: Path, _: float) -> None:
        wait_for_words(pids, 2)
        finish(self, process, place, time.monotonic())

    monkeypatch.setattr(Builder, "_finish", once_begun)
    begin_s = time.monotonic()
    made.build([commit])
    assert time.monotonic() - begin_s < 120
    assert (made.error(commit) or "").startswith("the build did not end within 1 s")
    for pid in map(int, pids.read_text().split()):
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_half_built_commit_is_built_anew(written: Written) -> None:
    commit, made = written.commit("1"), builder(written)
    (made.prefix(commit) / "half").mkdir(parents=True)
    (made.place(commit) / "source").mkdir()
    assert not made.is_tried(commit)
    made.build([commit])
    assert [path.name for path in made.prefix(commit).iterdir()] == ["content"]


def test_an_interrupted_build_leaves_nothing_that_runs_or_counts(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, pid = written.commit("1"), written.folder.parent / "pid"
    made = builder(written, f"{INSTALL}; sleep 600 & echo $! >{pid}; wait")

    def interrupted(*_: object) -> None:
        wait_for_words(pid, 1)
        raise KeyboardInterrupt

    monkeypatch.setattr(Builder, "_finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made.build([commit])
    assert not made.is_tried(commit)
    number = int(pid.read_text())
    assert not psutil.pid_exists(number) or psutil.Process(number).status() == psutil.STATUS_ZOMBIE


def test_a_script_of_the_current_folder_builds_where_the_commit_has_none(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, here = written.commit("1"), written.folder.parent / "here"
    here.mkdir()
    script = here / "build.sh"
    script.write_text('#!/bin/sh\necho "$1" >"$2/of"\n')
    script.chmod(0o755)
    monkeypatch.chdir(here)
    made = builder(written, "./build.sh $COMMIT $PREFIX")
    made.build([commit])
    assert (made.prefix(commit) / "of").read_text() == f"{commit}\n"
    commands = ("./build.sh $COMMIT $PREFIX", "sh build.sh $PREFIX", f"{script} $PREFIX", f"cd x&&'{script}' $PREFIX")
    before = [builder(written, command).key for command in commands]
    script.write_text("#!/bin/sh\nfalse\n")
    edited = [builder(written, command).key for command in commands]
    monkeypatch.setenv("CFLAGS", "-O0")
    assert len({*before, *edited, *(builder(written, command).key for command in commands)}) == 3 * len(commands)


def test_a_build_of_another_process_is_waited_for_with_a_word_and_an_end(written: Written) -> None:
    commit, made, said = written.commit("1"), builder(written, limit_s=0.1), list[str]()
    notice.set(said.append)  # until the end of the test, as `quiet` has it
    made.place(commit).mkdir(parents=True)
    with (made.place(commit) / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(HockneyError, match=f"another process still builds {commit[:10]} after 100 ms: end it"):
            made.build([commit])
    assert {*said} == {f"waiting for another process that builds {commit[:10]}"}
