"""The offers of contrib/ to other tools work: the ReFrame test on a stand-in for ReFrame, the scripts unchanged."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from tests.cli.support import environment
from tests.shared import finished, script

CONTRIB = Path(__file__).parents[1] / "contrib"
CHECK = CONTRIB / "github-actions/check.sh"
BATCH = CONTRIB / "slurm/hockney.sbatch"


@pytest.fixture
def hockney(tmp_path: Path) -> str:
    """The command, as a file."""
    return str(script(tmp_path / "hockney", f'exec {shlex.quote(sys.executable)} -m hockney "$@"'))


def call(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in environment(folder).items() if not name.startswith(("SLURM_", "GITHUB_"))}
    return finished(words, cwd=folder, env={**known, **variables})


# ---- ReFrame --------------------------------------------------------------------------------------------------------


class _Names(type):
    """As in ReFrame, a test's class body knows some words."""

    @classmethod
    def __prepare__(cls, name: str, bases: tuple[type, ...], /, **more: Any) -> dict[str, object]:
        return {
            "variable": lambda kind, value: value,
            "run_before": lambda stage: lambda function: function,
            "sanity_function": lambda function: function,
        }


def check_class(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The test's class, with as much of ReFrame as it uses."""
    reframe, utility, sanity = (
        types.ModuleType(name) for name in ("reframe", "reframe.utility", "reframe.utility.sanity")
    )
    known: dict[str, Any] = {
        "RunOnlyRegressionTest": _Names("RunOnlyRegressionTest", (), {}),
        "simple_test": lambda kind: kind,
        "utility": utility,
    }
    vars(reframe).update(known)
    vars(utility).update(sanity=sanity)
    vars(sanity).update(
        assert_false=lambda value: value, defer=lambda value: value, make_performance_function=lambda *both: both
    )
    for module in (reframe, utility, sanity):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    spec = importlib.util.spec_from_file_location("hockney_check", CONTRIB / "reframe/hockney_check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.HockneyCheck


def test_the_reframe_test(tmp_path: Path, hockney: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOCKNEY", hockney)
    (tmp_path / "expect.toml").write_text((CONTRIB / "reframe/expect.toml").read_text())
    test = check_class(monkeypatch)()
    test.stagedir, test.duration = str(tmp_path), "1s"
    test.set_command()
    done = call(tmp_path, "bash", "-c", " ".join([test.executable, *test.executable_opts]))
    assert done.returncode in (0, 3), done.stderr
    document = json.loads((tmp_path / "check.json").read_text())
    assert [limit["sentence"] for limit in document["limits"] if limit["outcome"] != "met"] == test.all_limits_are_met()
    # In so little time, on a busy machine, there may be no figure.
    document["limits"] = [
        limit | {"figure": {"value_ns": 1500.0, "rate_bytes_per_s": 2e9}, "outcome": "missed", "sentence": "too slow"}
        for limit in document["limits"]
    ]
    (tmp_path / "check.json").write_text(json.dumps(document))
    test.set_figures()
    assert test.perf_variables == {
        "pingpong_shm_8B_latency": (1.5, "us"),
        "oneway_window_16_shm_65536B_bandwidth": (2000.0, "MB/s"),
    }
    assert test.all_limits_are_met() == ["too slow", "too slow"]
    (tmp_path / "check.json").write_text(json.dumps({"error": "no such file"}))
    assert test.all_limits_are_met() == ["no such file"]


# ---- Slurm ----------------------------------------------------------------------------------------------------------


def test_the_batch_script_measures_one_node(tmp_path: Path, hockney: str) -> None:
    variables = {"HOCKNEY": hockney, "PATTERNS": "barrier", "TRANSPORTS": "shm", "SLURM_JOB_ID": "7"}
    done = call(tmp_path, str(BATCH), DURATION="300ms", **variables)
    assert done.returncode in (0, 3), done.stderr
    assert (tmp_path / "job-7.csv").read_text().startswith("run,label,")
    assert "(job-7)" in done.stdout


def test_the_batch_script_measures_between_nodes(tmp_path: Path) -> None:
    hockney = script(tmp_path / "hockney", 'echo "$@" >> called')
    nodes = {"SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_ID": "8"}
    assert call(tmp_path, str(BATCH), HOCKNEY=str(hockney), **nodes).returncode == 0
    first, *_ = (tmp_path / "called").read_text().splitlines()
    assert first.startswith("run pingpong,oneway --time 5m --launches 6 --store ")
    assert first.endswith("--label job-8 -q -t mpi,tcp")
    failing = script(tmp_path / "hockney", 'echo "$1" >> ended', "exit 2")
    assert call(tmp_path, str(BATCH), HOCKNEY=str(failing), **nodes).returncode == 2
    assert (tmp_path / "ended").read_text() == "run\n"


# ---- GitHub Actions -------------------------------------------------------------------------------------------------


def test_the_step_checks_and_posts_markdown(tmp_path: Path, hockney: str) -> None:
    words = ("--launches", "3", "--time", "300ms", "--label", "main", "--store", "r.db", "-q")
    assert call(tmp_path, hockney, "run", "pingpong", "-t", "shm", "--bytes", "8", *words).returncode in (0, 3)
    summary = tmp_path / "summary.md"
    more = ("--time", "300ms", "--patience", "300ms", "--max-slowdown", "900%")
    done = call(tmp_path, str(CHECK), "r.db", "main", *more, HOCKNEY=hockney, GITHUB_STEP_SUMMARY=str(summary))
    verdict = {0: "no slowdown", 1: "slower", 3: "inconclusive"}[done.returncode]
    assert summary.read_text() == (tmp_path / "r.md").read_text() == done.stdout
    head, _, report = done.stdout.partition("\n<details><summary>Report of this run</summary>\n\n# ")
    assert head.startswith(f"### hockney: {verdict}\n\n| series | base | new | change")
    assert "\n| pingpong on shm, 8 B | " in head
    assert head.rstrip().endswith("run 2 against run 1, limit +900 %")
    assert report.endswith("\n\n</details>\n")
    assert "<html" in (tmp_path / "r.html").read_text()
    assert sorted(path.name for path in tmp_path.glob("r.md*")) == ["r.md"]


@pytest.mark.parametrize(("code", "verdict"), [(1, "slower"), (2, "not checked"), (3, "inconclusive")])
def test_the_step_comments_and_ends_as_the_check_does(tmp_path: Path, code: int, verdict: str) -> None:
    reported = '[ "$1" != report ] || { echo "# of $*" >r.md.run; exit 0; }'
    hockney = script(
        tmp_path / "hockney", reported, "echo 'slower: a ```b```'", "echo 'hockney: why' >&2", f"exit {code}"
    )
    script(tmp_path / "gh", 'echo "$@" > called; cat "$5" > body')
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = call(tmp_path, str(CHECK), "r.db", "main", HOCKNEY=str(hockney), PULL_REQUEST="12", PATH=path)
    assert done.returncode == code
    assert (tmp_path / "called").read_text() == "pr comment 12 --body-file r.md\n"
    body = (tmp_path / "body").read_text()
    head = f"### hockney: {verdict}\n\n```\nslower: a '''b'''\nhockney: why\n```\n"
    report = "# of report last --format md --store r.db -o r.md.run"
    details = f"\n<details><summary>Report of this run</summary>\n\n{report}\n\n</details>\n"
    assert body == head + (details if code != 2 else "")


def test_the_same_script_comments_on_a_merge_request(tmp_path: Path) -> None:
    hockney = script(tmp_path / "hockney", 'echo "$1"', "exit 1")
    script(tmp_path / "curl", 'echo "$@" > called; cat > config')
    gitlab = {"CI_API_V4_URL": "https://x/api/v4", "CI_PROJECT_ID": "5", "CI_MERGE_REQUEST_IID": "12"}
    path = f"{tmp_path}:{os.environ['PATH']}"
    for token in ("", "secret"):
        done = call(tmp_path, str(CHECK), "r.db", "x", HOCKNEY=str(hockney), PATH=path, GITLAB_TOKEN=token, **gitlab)
        assert done.returncode == 1
        assert (tmp_path / "called").exists() is bool(token)
    asked = (tmp_path / "called").read_text()
    assert asked.endswith(" body@r.md https://x/api/v4/projects/5/merge_requests/12/notes\n")
    assert "secret" not in asked
    assert (tmp_path / "config").read_text() == 'header = "PRIVATE-TOKEN: secret"\n'


def test_the_job_of_gitlab_calls_the_script() -> None:
    text = (CONTRIB / "gitlab/hockney.yml").read_text()
    command = text.partition("- >-\n")[2].partition("  allow_failure")[0]
    variables = re.findall(r"^    (HOCKNEY_\w+): (\S+)", text, re.MULTILINE)
    for name, value in [*variables, ("HOCKNEY_DIR", str(CONTRIB.parent))][1:]:
        command = command.replace(f"${name}", value.strip('"'))
    assert shlex.split(command)[2:] == [str(CHECK), "hockney.db", "accepted", "--junit", "hockney.xml"]
    assert "paths: [hockney.html, hockney.md]" in text  # beside the store


def test_the_action_hands_each_input_to_the_script() -> None:
    text = (CHECK.parent / "action.yml").read_text()
    inputs = text.partition("inputs:\n")[2].partition("runs:")[0]
    names = [line.strip(" :") for line in inputs.splitlines() if line.startswith("  ") and line[2] != " "]
    assert len(names) == 7
    for name in names:
        assert f"${{{{ inputs.{name} }}}}" in text


# ---- every night ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "drain"), [(0, "no"), (1, "no"), (1, "yes"), (2, "no")])
def test_a_night_of_health(tmp_path: Path, code: int, drain: str) -> None:
    """A command that answers as hockney does: n3 is bad where it ends with 1."""
    answers = (
        'if [ "$1" = show ]; then echo n3 is slow; exit 0; fi',
        'while [ "$1" != --bad-hosts ]; do shift; done',
        f'if [ {code} = 1 ]; then echo n3 >"$2"; echo "echo drained n3"; else : >"$2"; fi',
        f"exit {code}",
    )
    fake = script(tmp_path / "hockney", *answers)
    text = tmp_path / "hockney.prom"
    variables = {"HOCKNEY": str(fake), "HOSTS": "n[1-4]", "DRAIN": drain, "TEXTFILE": str(text)}
    ended = call(tmp_path, str(CONTRIB / "nightly/health.sh"), **variables)
    assert ended.returncode == code, ended.stderr
    drained = {"no": "echo drained n3", "yes": "drained n3"}[drain]
    assert ended.stdout.splitlines() == (["n3 is slow", drained] if code == 1 else [])
    if code != 2:
        assert ('hockney_bad_host{host="n3"} 1' in text.read_text()) == (code == 1)
        assert f"hockney_health_exit_code {code}" in text.read_text()


def test_a_night_in_which_nothing_was_measured(tmp_path: Path) -> None:
    """hockney has said why, and wrote no names; an earlier night is not shown."""
    fake = script(tmp_path / "hockney", 'if [ "$1" = show ]; then echo of an earlier night; exit 0; fi', "exit 3")
    text = tmp_path / "hockney.prom"
    variables = {"HOCKNEY": str(fake), "HOSTS": "n[1-4]", "TEXTFILE": str(text)}
    ended = call(tmp_path, str(CONTRIB / "nightly/health.sh"), **variables)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert "hockney_health_exit_code 3" in text.read_text()
    assert "hockney_bad_host{" not in text.read_text()


def test_the_options_of_a_night_are_those_of_health() -> None:
    said = finished([sys.executable, "-m", "hockney", "health", "--help"]).stdout
    used = re.findall(r"(?<![\w-])--[a-z-]+", (CONTRIB / "nightly/health.sh").read_text())
    assert {*used} <= {*re.findall(r"--[a-z-]+", said)}
