"""`hockney tune`: a real library with planted faults reads its files; its times are made up."""

from __future__ import annotations

import contextlib
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.analysis.compare.made import add_run
from tests.cli.support import call, call_here, command_line, environment, let_sigint_in
from tests.shared import made_once

from hockney.analysis.compare.comparison import Entry
from hockney.analysis.tune.files import RuleFiles
from hockney.analysis.tune.race import Referee
from hockney.cli import execute
from hockney.cli.tune import refuse_beside, write_all
from hockney.errors import ExitCode, HockneyError, StoreError, UsageError
from hockney.measure import tune as racing
from hockney.measure.interleave import Decide
from hockney.measure.recorder import Lab
from hockney.measure.run import Variant
from hockney.measure.tune import Contest
from hockney.model import Point, RunStatus
from hockney.results.store import Store
from hockney.worker.catalogue import TransportInfo
from hockney.worker.errors import ProtocolError
from hockney.worker.libraries import MPI
from hockney.worker.settings import Choice, algorithms

SOURCE = Path(__file__).with_name("planted_rules.c")
RING, TOO_SLOW, CRASHES, WRONG = (f"{number} 0 0" for number in (4, 1, 5, 6))
Tune = Callable[..., tuple[int, str, Path]]


def chosen(variant: Variant, size: int) -> str:
    """The word that the rules file of a variant has for a size among two ranks, or the algorithm of a reference."""
    if variant.having is not None:
        return variant.having[1]
    name = variant.environment.get("OMPI_MCA_coll_tuned_dynamic_rules_filename")
    if name is None:
        return "0 0 0"
    lists = re.split(r"^(\d+) \d+ # ranks.*\n", Path(name).read_text(), flags=re.MULTILINE)
    of_two = [text for ranks, text in zip(lists[1::2], lists[2::2], strict=True) if int(ranks) <= 2][-1]
    return [line.partition(" ")[2] for line in of_two.splitlines() if int(line.partition(" ")[0]) <= size][-1]


def measured(ratio_of: Callable[[str, int], float], most: int = 60, scatter: float = 0.002) -> Callable[..., list[int]]:
    """In place of measuring: runs with these times over the default's; those of a race scatter by 1 %."""

    def measure(variants: Sequence[Variant], lab: Lab, decide: Decide, stored: Sequence[int]) -> list[int]:
        rng = np.random.default_rng()
        points = variants[0].plan.points
        true = {
            (number, point): ratio_of(chosen(variant, point.bytes), point.bytes)
            for number, variant in enumerate(variants[1:], 1)
            for point in points
        }
        ratios: dict[Entry, list[float]] = {entry: [] for entry in true}
        left: set[Entry] = set()
        for _ in range(most):
            for entry in true.keys() - left:
                ratios[entry].append(true[entry] * float(np.exp(0.01 * rng.standard_normal())))
            left |= set(decide(ratios))
            if left == true.keys():
                break
        of_base = dict.fromkeys(points, 1000.0)
        times = [of_base, *({p: 1000.0 * true[n, p] for p in points} for n in range(1, len(variants)))]
        plan = variants[0].plan.as_json()
        return [add_run(lab.store, each, launches=10, scatter=scatter, plan=plan, suite="x") for each in times]

    return measure


@pytest.fixture
def tune(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Tune:
    """Calls it for four algorithms of Open MPI; gives the exit code, all output, and the file to write."""
    (mpi,) = [found for found in MPI()[0] if found.id.startswith("mpi@openmpi-4")]

    def make(folder: Path) -> None:
        library = folder / "planted.so"
        subprocess.run([*mpi.recipe.compiler, "-O1", "-fPIC", "-shared", SOURCE, "-o", library], check=True)

    def four(transport: TransportInfo, operation: str, bytes_max: int) -> list[Choice]:
        return [
            each
            for each in algorithms(transport, operation, bytes_max)
            if each.word in (RING, TOO_SLOW, CRASHES, WRONG)
        ]

    monkeypatch.setattr(racing, "algorithms", four)
    monkeypatch.setenv("LD_PRELOAD", str(made_once(tmp_path_factory, "planted-rules", make) / "planted.so"))

    def call(sizes: str, *words: str) -> tuple[int, str, Path]:
        output = tmp_path / "rules.conf"
        more = ("--bytes", sizes, "--quiet", "--write", str(output), "--store", str(tmp_path / "r.db"), *words)
        code = execute(["tune", "allreduce", "-t", "mpi@openmpi-4", "-n", "2", *more])
        shown = capsys.readouterr()
        return code, shown.out + shown.err, output

    return call


def test_the_fast_algorithm_becomes_a_rule_where_it_is_fast_and_faults_are_named(
    tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ratio_of(word: str, size: int) -> float:
        fast = 64 <= size <= 1024
        return {RING: 0.7 if fast else 0.97, TOO_SLOW: 1.4, "doubling": 0.5 if fast else 1.1}.get(word, 1.0)

    monkeypatch.setattr(racing, "_measured", measured(ratio_of))
    monkeypatch.setenv("HK_CRASHES", CRASHES)
    monkeypatch.setenv("HK_WRONG", WRONG)
    code, said, output = tune("16,64,1024,4096")
    assert code == ExitCode.INCOMPLETE, said
    assert re.search(r"^allreduce +2 +64 B to 1 KiB +ring +1\.4\dx", said, re.MULTILINE), said
    assert re.search(r"left out: allreduce with segmented_ring: .*(SIGABRT|signal 6)", said, re.IGNORECASE), said
    assert "left out: allreduce with rabenseifner: " in said
    line = r"reference: allreduce 64 B to 1 KiB, 2 ranks: doubling over the library's own messages is 1\.\d+x"
    assert re.search(rf"{line}( to 1\.\d+x)? as fast as the best choice of the library", " ".join(said.split())), said
    assert "Nothing slower (a slowdown up to 3 % could hide)." in said
    assert f"_filename={output}" in said
    text = output.read_text()
    assert "# proof: nothing slower (a slowdown up to 3 % could hide)\n" in text
    assert text.startswith("# Open MPI 4.1.4, 20")
    assert "# allreduce, 2 ranks, 64 B to 1 KiB: ring, 1.4" in text
    assert "\n2 3 # ranks, sizes: bytes, algorithm, fan-out, segment\n0 0 0 0\n64 4 0 0\n1025 0 0 0\n3 1 #" in text


def test_an_algorithm_that_hangs_is_named_and_left_out(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(racing, "_measured", measured(lambda word, _: {RING: 0.7}.get(word, 1.0)))
    monkeypatch.setenv("HK_HANGS", TOO_SLOW)
    code, said, output = tune("64", "--limit", "10s")
    assert code == ExitCode.INCOMPLETE, said
    assert re.search(r"left out: allreduce with basic_linear: .*(10 s|did not)", " ".join(said.split())), said
    assert "# allreduce, 2 ranks, 64 B: ring" in output.read_text()


def test_rules_that_are_slower_between_the_sizes_of_the_race_are_not_written(
    tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ratio_of(word: str, size: int) -> float:
        return {RING: 0.7 if size in (64, 1024) else 1.5}.get(word, 1.0)

    monkeypatch.setattr(racing, "_measured", measured(ratio_of))
    code, said, output = tune("64,1024")
    assert code == ExitCode.WORSE, said
    assert "1 slower (a slowdown up to 3 % could hide): nothing is written." in said
    assert "keep the default" not in said
    assert not output.exists()


def test_a_file_that_costs_time_where_it_keeps_the_default_says_so(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    def ratio_of(word: str, size: int) -> float:
        return {RING: 0.7 if size == 64 else 1.0, "0 0 0": 1.3}.get(word, 1.0)

    monkeypatch.setattr(racing, "_measured", measured(ratio_of))
    code, said, output = tune("64,1024")
    assert (code, output.exists()) == (ExitCode.WORSE, False), said
    assert "2 of the slower keep the default: reading the file costs their time." in said


def test_nothing_is_written_without_a_gain(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(racing, "_measured", measured(lambda word, _: {RING: 0.97}.get(word, 1.0)))
    code, said, output = tune("64,1024")
    assert (code, output.exists()) == (ExitCode.DONE, False)
    assert "Nothing is certainly 5 % faster than the defaults of Open MPI 4.1.4: keep them." in said


def test_too_few_launches_say_so(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(racing, "_measured", measured(lambda word, _: {RING: 0.5}.get(word, 1.0), most=4))
    code, said, output = tune("64,1024")
    assert (code, output.exists()) == (ExitCode.INCOMPLETE, False)
    assert re.search(r"allreduce: 4 launches, but certainty takes \d+; give more --time", said), said
    assert "keep them" not in said


def test_a_library_that_ignores_rules_ends_it_with_one_sentence(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(racing, "_measured", measured(lambda *_: 1.0))
    monkeypatch.setenv("OMPI_MCA_coll", "^tuned")
    code, said, output = tune("64")
    assert (code, output.exists()) == (ExitCode.INCOMPLETE, False)
    assert "hockney: Open MPI 4.1.4 ignores rules for allreduce: " in said


@pytest.mark.parametrize(
    ("what", "words", "sentence"),
    [
        ("scatter", ("-t", "mpi@openmpi-4"), "only the root has to give, so ranks could choose differently; leave it"),
        ("allreduce", ("-t", "shm"), "shm cannot be tuned: choose an MPI"),
        ("allreduce", ("-t", "mpi"), "libraries: write -t mpi@"),
        ("allreduce", ("-t", "mpi@openmpi-4", "-n", "2,4096"), "allreduce on 4096 ranks cannot be raced: more ranks "),
        ("allreduce", ("-t", "mpi@openmpi-4", "-n", "1,64,4096"), "on 1 rank cannot be raced: allreduce runs on 2 or "),
        ("allreduce,pingpong", ("-t", "mpi@openmpi-4"), "collectives and others have different settings"),
        ("allreduce", ("-t", "mpi@openmpi-4", "-o", "op=sum,max"), "give each option (-o) one value"),
        ("allreduce", ("-t", "mpi@openmpi-4", "-o", "algorithm=ring"), "tune chooses the algorithm: leave out -o"),
        ("allreduce", ("-t", "mpi@openmpi-4", "--resume", "--dry-run"), "--resume measures: leave out --dry-run"),
        ("allreduce", ("-t", "mpi@openmpi-4", "--hosts", "n1,n2"), "settings on this host alone"),
        ("nonsense", ("-t", "mpi@openmpi-4"), "unknown suite or pattern 'nonsense'"),
    ],
)
def test_what_cannot_be_tuned(
    capsys: pytest.CaptureFixture[str], what: str, words: tuple[str, ...], sentence: str
) -> None:
    assert execute(["tune", what, *words]) == ExitCode.USAGE
    assert sentence in capsys.readouterr().err


def test_files_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    files = RuleFiles({"": "# a\n", ".1.json": "{}\n"}, {"A": "{file}.1.json"})
    (tmp_path / "a").mkdir()
    write_all(tmp_path / "a" / "rules", files)
    assert (tmp_path / "a" / "rules").read_text() == f"# a\nexport A={tmp_path}/a/rules.1.json\n"
    for part, there in ((".rules.part", "rules.1.json"), (".rules.1.json.part", "rules")):
        folder = tmp_path / part
        (folder / part).mkdir(parents=True)  # so one of the files cannot be written
        (folder / there).write_text("before")
        with pytest.raises(HockneyError, match="cannot write"):
            write_all(folder / "rules", files)
        assert {path.name for path in folder.iterdir()} == {part, there}
        assert (folder / there).read_text() == "before"


def test_a_file_that_is_not_of_the_rules_is_not_written_over(tmp_path: Path) -> None:
    files = RuleFiles({"": "", ".1.json": ""}, {})
    refuse_beside(tmp_path / "rules", files)
    (tmp_path / "rules.1.json").touch()
    with pytest.raises(UsageError, match=r"rules\.1\.json, which exists"):
        refuse_beside(tmp_path / "rules", files)
    (tmp_path / "rules").touch()
    refuse_beside(tmp_path / "rules", files)


def test_a_default_that_fails_is_not_kept(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_times(variants: Sequence[Variant], lab: Lab, *_: object) -> list[int]:
        failed = dict.fromkeys(variants[0].plan.points, "rank 1 died")
        return [add_run(lab.store, {}, failed=failed, suite="x") for _ in variants]

    monkeypatch.setattr(racing, "_measured", no_times)
    code, said, output = tune("64,1024")
    assert (code, output.exists()) == (ExitCode.INCOMPLETE, False)
    assert "left out: allreduce with default: rank 1 died" in said
    assert "keep them" not in said


def test_a_dry_run_counts_the_launches_that_are_made_in_any_case(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    faster, made = measured(lambda word, _: {RING: 0.7}.get(word, 1.0)), list[tuple[str, str]]()

    def noted(variants: Sequence[Variant], *more: Any) -> list[int]:
        made.append((str(variants[0].plan.limits.launches), str(len(variants))))
        return faster(variants, *more)

    monkeypatch.setattr(racing, "_measured", noted)
    code, said, _ = tune("64,1024", "--dry-run")
    planned = re.findall(r"^ +(?:allreduce|the proof): (\d+) launches of (\d+) variants, about \d", said, re.MULTILINE)
    assert (code, made, len(planned)) == (ExitCode.DONE, [], 2), said
    tune("64,1024")
    assert made == planned


def test_the_estimate_takes_a_start_as_long_as_one_took(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each launch of each variant, twice: 7 launches of 2 variants in the proof."""
    found = list[Contest]()

    def race(contest: Contest, *_: object) -> Referee:
        found.append(contest)
        return Referee([], [])

    monkeypatch.setattr(racing, "_race", race)
    tune("64")
    (contest,) = found
    assert contest.start_s
    before_s = contest.least()[-1].time_s
    contest.start_s += 100
    assert contest.least()[-1].time_s == pytest.approx(before_s + 2 * 7 * 2 * 100)


def test_a_proof_that_decides_nothing_writes_nothing(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    faster = measured(lambda word, _: {RING: 0.7}.get(word, 1.0))
    doubtful = measured(lambda *_: 1.0, scatter=1.0)
    monkeypatch.setattr(
        racing, "_measured", lambda variants, *more: (faster if len(variants) > 2 else doubtful)(variants, *more)
    )
    code, said, output = tune("64,1024")
    assert (code, output.exists()) == (ExitCode.INCOMPLETE, False), said
    assert "All 3 undecided; no rule is confirmed." in said
    assert "othing slower" not in said


def test_a_choice_whose_variables_cannot_be_read_is_left_out(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_taken(_: TransportInfo, choice: Choice) -> bool:
        if choice.word == RING:
            raise ProtocolError("it says nonsense")
        return True

    monkeypatch.setattr(racing, "is_taken", is_taken)
    monkeypatch.setattr(racing, "_measured", measured(lambda *_: 1.0))
    code, said, _ = tune("64")
    assert code == ExitCode.INCOMPLETE
    assert "left out: allreduce with ring: it says nonsense" in said


@pytest.mark.timeout(1200)
def test_a_tune_that_was_stopped_or_killed_goes_on(tmp_path: Path) -> None:
    """First by Ctrl-C, which names the command that goes on; then by a kill."""
    words = ("tune", "gather", "-t", "mpi@openmpi-4", "-n", "2", "--bytes", "64", "--time", "40s", "--limit", "60s")

    def stopped(number: int, *words: str) -> str:
        """What it says when it gets this signal, after two more launches."""
        with subprocess.Popen(
            command_line(*words),
            cwd=tmp_path,
            env=environment(tmp_path),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=let_sigint_in,
        ) as running:
            for _ in range(6000):
                if running.poll() is None and len(stored()) < most + 2:
                    time.sleep(0.1)
            running.send_signal(number)
            said = running.communicate(timeout=60)[1]
        return " ".join(said.split())

    def stored() -> dict[int, set[int]]:
        """The measurements of base, by launch."""
        found: dict[int, set[int]] = {}
        if (tmp_path / "results.db").exists():
            with contextlib.suppress(StoreError, UsageError), Store.open(tmp_path / "results.db", readonly=True) as it:
                for each in it.summaries(1):
                    found.setdefault(each.launch_id, set()).add(each.id)
        return found

    most = 0
    said = stopped(signal.SIGINT, *words)
    (command,) = re.findall(r"nothing is written; continue: `hockney (tune [^`]*)`", said)
    assert shlex.split(command) == [*words, "--resume"], said
    alone = call(tmp_path, "run", "--resume", "1")
    assert f"cannot be continued alone. Continue: `hockney {command}`" in alone.stderr
    most, after_stop = len(stored()), stored()
    stopped(signal.SIGKILL, *shlex.split(command))
    after_kill = stored()
    assert after_kill.items() >= after_stop.items()
    assert len(after_kill) > len(after_stop)
    ended = call(tmp_path, *shlex.split(command), "--json")
    assert ended.returncode in (ExitCode.DONE, ExitCode.WORSE, ExitCode.INCOMPLETE), ended.stderr
    assert stored().items() >= after_kill.items()
    whole = stored()
    with Store.open(tmp_path / "results.db", readonly=True) as store:
        runs = [run.id for run in store.runs()]
        assert {store.run(run).status for run in runs} <= {RunStatus.DONE, RunStatus.PARTIAL}
    again = call(tmp_path, *shlex.split(command), "--json")
    # How long more launches would take is estimated from trials of its own.
    first, second = (re.sub(r'"time_s": [\d.]+', "", each.stdout) for each in (ended, again))
    assert first == second
    with Store.open(tmp_path / "results.db", readonly=True) as store:
        assert [run.id for run in store.runs()] == runs
    assert stored() == whole


def test_nothing_is_resumed_that_was_not_begun(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.db") as store:
        add_run(store, {Point("shm", "pingpong", 2, 8): 1.0}, suite="x")
    done = call_here(tmp_path, "tune", "gather", "-t", "mpi@openmpi-4", "-n", "2", "--resume")
    assert done.returncode == ExitCode.USAGE
    assert "no tune with these settings is stored, so there is nothing to resume: leave out --resume\n" in done.stderr
    began = "hockney tune gather -t mpi@openmpi-4 -n 2 --time 10m"
    with Store.open(tmp_path / "results.db") as store:
        info = replace(store.run(1).info, command=began, plan={"tune": ["other", "1", "step"]})
        store.create_run(info, [])
    done = call_here(tmp_path, "tune", "gather", "-t", "mpi@openmpi-4", "-n", "2", "--time", "5m", "--resume")
    said = " ".join(done.stderr.split())
    assert f"or go on with the last one, which had --time 10m: `{began} --resume`" in said
