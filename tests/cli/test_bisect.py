"""`hockney bisect` as a whole: the library is a model of a machine, whose times load cannot change, or wraps an MPI."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.cli.support import call_here, write_model
from tests.truth.bisections import BUILD as LIBRARY_BUILD
from tests.truth.bisections import mpi_is_here, write_library
from tests.worker.test_commits import Written

PATTERN = ("--", "pingpong", "--bytes", "8", "--time", "20s", "-t", "sim@$PREFIX/model.toml")
BUILD = 'test ! -e broken && cp model.toml "$PREFIX/"'


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    monkeypatch.setattr("hockney.worker.commits.builds_folder", lambda: tmp_path / "builds")
    return Written(tmp_path / "library")


def history(written: Written, latencies_ns: list[int], broken: int = -1) -> list[str]:
    """Commits with these latencies, one of which cannot be built."""
    commits = []
    for number, latency_ns in enumerate(latencies_ns):
        (written.folder / "broken").unlink(missing_ok=True)
        if number == broken:
            (written.folder / "broken").touch()
        write_model(written.folder / "model.toml", latency_ns)
        commits.append(written.commit(str(number)))
    return commits


def bisect(
    folder: Path, *more: str, build: str = BUILD, pattern: tuple[str, ...] = PATTERN
) -> subprocess.CompletedProcess[str]:
    return call_here(folder, "bisect", "--repo", "library", "--build", build, *more, *pattern)


def test_the_commit_is_found_and_given_again_the_command_measures_nothing(written: Written, tmp_path: Path) -> None:
    commits = [commit[:10] for commit in history(written, [1000] * 7 + [1300] * 6, broken=5)]
    done = bisect(tmp_path, "--good", commits[0], "--jobs", "3")
    assert done.returncode == 0, done.stderr
    *trials, empty, answer, commit = done.stdout.splitlines()
    assert trials[0].startswith(f"bad: {commits[12]} +30.0 % (+30 to +30) against {commits[0]}; ")
    assert trials[0].endswith(" launches, runs 1 and 2: content 12")
    assert empty == ""
    assert answer.startswith(f"{commits[7]} is the first slower commit: +30.0 % (+30 to +30) against the commit before")
    assert commit.split()[0] == f"{commits[7]}:"
    assert commit.endswith("Jane Doe <jane@example.org>: content 7")
    longer = (*PATTERN[:5], "30s", *PATTERN[6:])  # certain comparisons hold whatever the time
    again = bisect(tmp_path, "--good", commits[0], "--jobs", "3", "--json", pattern=longer)
    assert again.returncode == 0, again.stderr
    document = json.loads(again.stdout)
    assert (document["ending"], [each[:10] for each in document["candidates"]]) == ("found", [commits[7]])
    runs = json.loads(call_here(tmp_path, "runs", "--json").stdout)["runs"]
    assert len(runs) == 2 * len(document["trials"]) == 2 * len(trials)
    assert {run["label"] for run in runs} == {"bisect"}
    listed = call_here(tmp_path, "runs").stdout
    assert listed.startswith(f"Not listed: {len(runs)} runs of tune and bisect; all: `")
    assert call_here(tmp_path, "runs", "--all").stdout.count(" bisect ") == len(runs)
    (kept,) = (tmp_path / "builds").glob("*-verdicts.json")
    verdicts = json.loads(kept.read_text())
    kept.write_text(json.dumps(dict([*verdicts.items()][:-1])))  # as it was before the last comparison
    assert bisect(tmp_path, "--good", commits[0], "--jobs", "3").returncode == 0
    assert len(json.loads(call_here(tmp_path, "runs", "--json").stdout)["runs"]) == len(runs) + 2
    kept.write_text("[1]")
    assert bisect(tmp_path, "--good", commits[0], "--jobs", "3").returncode == 0
    assert len(json.loads(kept.read_text())) == len(verdicts)


def test_a_faster_commit_next_to_one_that_cannot_be_built_is_a_range(written: Written, tmp_path: Path) -> None:
    commits = [commit[:10] for commit in history(written, [1000, 1000, 700, 700], broken=1)]
    (written.folder / "model.toml").write_text("edited")
    done = bisect(tmp_path, "--good", commits[0])
    assert done.returncode == 3
    assert "library has uncommitted changes: they are part of no commit" in done.stderr
    skipped = next(line for line in done.stdout.splitlines() if line.startswith("skipped: "))
    assert skipped.startswith(f"skipped: {commits[1]}: the build ended with exit code 1: it said nothing (the log: ")
    assert (
        f"One of 2 commits up to {commits[2]} made it faster (-30.0 % (-30 to -30) from {commits[0]} to " in done.stdout
    )
    assert [line.split()[0] for line in done.stdout.splitlines()[-2:]] == [f"{commits[2]}:", f"{commits[1]}:"]


def test_a_commit_on_which_the_pattern_cannot_run_is_left_out(written: Written, tmp_path: Path) -> None:
    history(written, [1000, 1000])
    model = written.folder / "model.toml"
    model.write_text(model.read_text().replace("nodes = 2", "nodes = 1"))
    broken = written.commit("broken")[:10]
    write_model(model, 1300)
    last = written.commit("mended")[:10]
    done = bisect(tmp_path, "--good", "HEAD~3")
    assert done.returncode == 3, done.stderr
    assert f"skipped: {broken}: there is nothing to measure: " in done.stdout
    assert f"One of 2 commits up to {last} made it slower" in done.stdout


def test_in_a_shallow_clone_commits_that_do_not_connect_have_their_sentence(written: Written, tmp_path: Path) -> None:
    commits = history(written, [1000, 1000, 1300])
    clone = tmp_path / "clone"
    written.git("tag", "old", commits[0])
    written.git("clone", "--quiet", "--depth", "1", f"file://{written.folder}", str(clone))
    written.git("-C", str(clone), "fetch", "--quiet", "--depth", "1", "origin", "tag", "old")
    done = call_here(tmp_path, "bisect", "--repo", "clone", "--build", BUILD, "--good", "old", *PATTERN)
    assert done.returncode == 2, done.stderr
    assert "clone is a shallow clone, in which " in done.stderr
    assert done.stderr.endswith("run git fetch --unshallow there\n")


def test_without_a_change_there_is_nothing_to_look_for(written: Written, tmp_path: Path) -> None:
    commits = [commit[:10] for commit in history(written, [1000] * 4)]
    done = bisect(tmp_path, "--good", commits[0])
    assert done.returncode == 3
    assert done.stdout.splitlines()[-1] == (
        f"There is no change to look for: {commits[3]} takes as long as {commits[0]}, within 1 %."
    )


@pytest.mark.full  # ten launches or more, each with two starts of an MPI
@pytest.mark.skipif(not mpi_is_here(), reason="there is no Open MPI of the system here")
def test_an_mpi_that_was_built_is_measured(written: Written, tmp_path: Path) -> None:
    """A delay before each send makes it several times as slow."""
    commits = [commit[:10] for commit in write_library(written, [10, 3000])]
    pattern = ("--", "pingpong", "--bytes", "8", "--time", "60s", "-t", "mpi@")
    done = bisect(tmp_path, "--good", commits[0], build=LIBRARY_BUILD, pattern=pattern)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{commits[1]} is the first slower commit: x" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--good", "nosuch"), "library has no commit 'nosuch': name one that `git log` lists"),
        (("--good", "HEAD"), "--good and --bad are the same commit "),
        (("--good", "HEAD", "--bad", "HEAD~1"), " exchange them if it is older (faster ones are found, too)"),
        (("--good", "side"), "or give --good what `git merge-base "),
        (("--good", "HEAD~1", "--repo", "."), "cannot use --repo .: not a git repository"),
        (("--good", "HEAD~1", "--build", "make"), "--build has no $PREFIX, the folder to install in"),
        (("--good", "HEAD~1", "--build-limit", "soon"), "'soon' is not a duration"),
        (("--good", "HEAD~1", "--jobs", "0"), "'0' is not a number of jobs"),
        (("--good", "HEAD~1", "--", "pingpong", "-t", "shm"), "the pattern has no $PREFIX"),
        (("--good", "HEAD~1", "--", "pingpon", "-t", "mpi@$PREFIX"), "did you mean 'pingpong'"),
        (
            ("--good", "HEAD~1", "--", "pingpong", "-t", "mpi@$PREFIX", "--resume"),
            "no such option '--resume'",
        ),
        (("--good", "HEAD~1", "--", "pingpong", "--bytes", "8,64", "-t", "sim@$PREFIX/model.toml"), "has 2: name one"),
        (("--good", "HEAD~1", "pingpong", "--resume", "-t", "mpi@$PREFIX", "--"), "no such option '--resume'"),
        (("--good", "HEAD~1", *PATTERN[:5], "1s", *PATTERN[6:]), "--time 1 s is too short for the launches of"),
    ],
)
def test_bad_input_is_one_sentence(written: Written, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    history(written, [1000, 1300])
    written.git("branch", "side", "HEAD")
    written.git("commit", "--quiet", "--amend", "-m", "another")
    done = bisect(tmp_path, *words, pattern=() if "--" in words else PATTERN)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert said in done.stderr.splitlines()[-1]


def test_ends_that_cannot_be_built_are_one_sentence_and_tried_again(written: Written, tmp_path: Path) -> None:
    history(written, [1000, 1300], broken=1)
    for _ in range(2):
        done = bisect(tmp_path, "--good", "HEAD~1")
        assert done.returncode == 3
        assert "building " in done.stderr
        assert "the good and the bad commit cannot be compared: " in done.stderr.splitlines()[-1]
