"""Every command that a screen prints works as it stands: screens are made, and their commands carried out."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.support import Ended, call_here, fill, write_model

from hockney.cli.commands import COMMANDS
from hockney.results.store import Store

SAMPLES = Path(__file__).parents[1] / "results/formats/samples"
FILES = {  # that examples name
    "np.out": "np-tcp.out", "osu_allreduce.txt": "osu_barrier-allreduce.txt", "osu_latency.txt": "osu_latency.txt",
    **{f"osu_bw-{number}.txt": "osu_bw-cuda.txt" for number in (1, 2, 3)},
}  # fmt: skip
SMALL = ("run", "pingpong", "-t", "shm", "--bytes", "8", "--launches", "3", "--time", "150ms", "--label")
LARGER = ("run", "pingpong,barrier,stream", *SMALL[2:5], "8,1K", "--launches", "3", "--time", "400ms", "--label")
RUNS = [
    *((*SMALL, label) for label in ("monday", "tuesday")),
    ("run", "basics", "-t", "tcp", "--time", "400ms", "--launches", "1", "--label", "trial"),
    (*SMALL, "nightly"),
    ("run", "allpairs", "-t", "shm", "--bytes", "8", "--time", "100ms"),
    ("run", "quick", "-t", "shm,tcp", "--time", "500ms"),
    ("run", "basics", "-t", "sim@m.toml", "--label", "base"),
    *((*LARGER, label) for label in ("before", "after")),
]
KINDS = (0, 2, 4, 5, 6, 7)  # of the runs above, one of each kind: others differ from it by their label only
OF_RUN = (("show",), ("show", "--all"), ("show", "--states"), ("explain",), ("explain", "--all"), ("explain", "--json"))
SCREENS: list[tuple[str, ...]] = [
    (), ("--help",), ("doctor",), ("list",), ("runs",),
    *((name, "--help") for name in COMMANDS),
    *(("list", kind) for kind in ("suites", "patterns", "transports", "launchers", "machines", "matrix")),
    *((words[0], str(run + 1), *words[1:]) for run in KINDS for words in OF_RUN),
    ("compare", "before", "after"), ("compare", "before", "after", "--all"), ("compare", "5", "6"),
    ("check", "--baseline", "monday", "--time", "150ms", "--patience", "100ms"), ("check", "--baseline", "6"),
    ("compare", "--interleave", "pingpong", "-t", "mpi", "--bytes", "8", "--time", "300ms", "--launches", "6",
     "--new-env", "HOME=/nowhere"),
    # Errors with a remedy.
    ("show", "77"), ("show", "last~99"), ("run", "nosuch"), ("run", "pingpong", "-t", "nosuch"), ("run", "health"),
    ("run", "pingpong", "-t", "sim"), ("run", "pingpong", "--machine", "nosuch"), ("pingpong",),
    ("help",), ("health",), ("check",), ("run", "--resume", "7"), ("report", "last", "-o", "r.svg"),
    ("explain", "--machine", "gpmimd"), ("predict", "alltoall", "--from", "6", "-n", "8", "--bytes", "8"),
    ("predict", "alltoall", "--from", "base", "-n", "8", "--bytes", "8"), ("export", "6", "--simgrid"),
]  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that examples name, and a run of each kind."""
    folder = tmp_path_factory.mktemp("commands")
    for name, sample in FILES.items():
        text = (SAMPLES / sample).read_text(encoding="utf-8")
        (folder / name).write_text(f"{text}# {name}\n" if "bw" in name else text)  # the same twice is refused
    fill(folder / "nightly.db")
    write_model(folder / "m.toml", 1010)
    write_model(folder / "machine.toml", 1010)
    (folder / "mine.toml").write_text(
        'name = "mine"\ntitle = "Mine"\n[[series]]\npattern = "pingpong"\nbytes = 8\ntransports = "shm"\n'
    )
    (folder / "expect.toml").write_text('[[expect]]\ntransports = "shm"\npattern = "pingpong"\nlatency = "<= 1 s"\n')
    limits = {"pattern": "flows", "transports": ["tcp"], "hosts": ["*"], "bandwidth": ">= 1 GB/s"}
    (folder / "limits.toml").write_text(
        "\n".join(["[[expect]]", *(f"{key} = {value!r}" for key, value in limits.items())])
    )
    (folder / "hosts").write_text("localhost\nn1.invalid\n")  # health says that it does not answer
    for words in RUNS:
        assert call_here(folder, *words).returncode in (0, 3), words  # 3: no interval in so little time
    return folder


def commands_in(ended: Ended) -> Iterator[str]:
    """The commands in backquotes and in JSON; of a help, whose text may name a command alone, its examples."""
    text = f"{ended.stdout}\n{ended.stderr}"
    _, is_help, examples = text.partition("\nExamples:\n")
    if is_help:
        yield from examples.partition("Exit codes:")[0].replace("\\\n", " ").splitlines()
        return
    yield from re.findall(r"`((?:[A-Z_0-9]+=\S+ )*hockney [^`]*)`", " ".join(text.split()))
    yield from (command.replace('\\"', '"') for command in re.findall(r'"command": "((?:[^"\\]|\\.)+)"', text))


def shorter(words: list[str]) -> list[str]:
    """The same command, but a run is only planned, and nothing is measured for long."""
    brief = ["--time", "200ms"]
    match words:
        case ["run", *_] if "--resume" not in words:
            return [*words, "--dry-run"]
        case ["quick", *rest]:  # which has no --dry-run
            cpus = ["0,1" if word == "0,2" else word for word in rest]
            return ["run", "quick", *cpus, "--dry-run"]
        case ["compare", "--interleave", *_]:
            return [*words, *brief, "--launches", "6", "--bytes", "8"]
        case ["check", "--baseline", *_]:
            return [*words, *brief, "--patience", "100ms"]
        case ["check", "--expect", *_] if words[-1] != "last":
            return [*words, *brief]
        case ["predict", "--validate", *_]:
            return ["predict", "--validate", "-t", "shm", *brief]
        case ["predict", *_] if "--machine" not in words:
            return [*words, *brief, *(() if "--bytes" in words else ("--bytes", "8"))]
        case ["health", *_]:
            return [*words, *brief]
        case ["tune", *_]:  # on two ranks, for which there are CPUs everywhere
            if "-n" in words:
                at = words.index("-n")
                words = [*words[:at], *words[at + 2 :]]
            return [*words, "-n", "2", "--dry-run"]
    return words


def parts_of(command: str) -> tuple[dict[str, str], list[str]]:
    """The variables that a command sets, and its words."""
    settings, words = {}, shlex.split(re.split(r" [|>] ", command)[0])
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        settings[name] = value
    return settings, words


def carried_out(command: str, place: Path, folder: Path) -> str | None:
    """What is wrong with a command, in a copy of the place; None if it works.

    An example is about the user's runs: it must work after one of those here.
    """
    settings, words = parts_of(command)
    if words[1:] in ([], ["--help"]) or words[1] == "completion":  # test_commands.py has them in a shell
        return None
    if words[1] in ("bisect", "setup"):  # test_bisect.py has the repository, test_setup.py no 132 MB to fetch
        return None
    said = ""
    for last in (None, 9, 6, 5):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(place, folder)
        if last is not None:  # this run is the last
            with Store.open(folder / "results.db") as store:
                store.delete_runs([run.id for run in store.runs() if run.id > last])
        if words[1] == "check":
            assert call_here(folder, "baseline", "accept", "monday").returncode == 0
        ended = call_here(folder, *shorter(words[1:]), **settings)
        is_shown = words[1] in ("delete", "export", "import", "list", "report", "runs", "show")
        if ended.returncode in ((0,) if is_shown else (0, 1, 3)) and "fault in hockney" not in ended.stderr:
            return None
        said = said or f"{command}: exit code {ended.returncode}: {ended.stderr.strip()}"
    return said


@pytest.fixture(scope="module")
def printed(place: Path) -> dict[str, str]:
    """The commands, and the screen that printed each."""
    printed: dict[str, str] = {}
    for screen in SCREENS:
        for command in commands_in(call_here(place, *screen)):
            printed.setdefault(" ".join(command.split()), " ".join(screen))
    printed.pop("", None)
    assert len(printed) > 70
    return printed


def measures(command: str) -> bool:
    return bool(re.search(r"hockney (compare --interleave|check|predict --validate|health|doctor)\b", command))


@pytest.mark.parametrize("measuring", [False, pytest.param(True, marks=pytest.mark.full)])
@pytest.mark.timeout(1200)
def test_every_command_that_a_screen_prints_works(
    printed: dict[str, str], place: Path, tmp_path: Path, *, measuring: bool
) -> None:
    wrong, known = [], set()
    for command, screen in printed.items():
        settings, words = parts_of(command)
        done = f"{settings} {shorter(words[1:])}"  # several are the same once they are shorter
        if measures(command) is measuring and done not in known:
            said = carried_out(command, place, tmp_path / "copy")
            wrong += [] if said is None else [f"{said} (printed by {screen})"]
        known.add(done)
    assert not wrong, "\n".join(wrong)
