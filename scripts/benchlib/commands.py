"""Parts about whole commands: `repeat` (one figure several times), `start` (a user's waiting time), and `large`."""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.benchlib.place import Place, usage_of
from scripts.benchlib.table import INCONCLUSIVE, UNKNOWN, Row, Target, not_measured, row_of, row_of_one
from tests.large import TRANSPORTS, store_large_run
from tests.report.html.made import write_large_page

import hockney
from hockney.cli.progress import FIRST_FIGURE
from hockney.errors import ExitCode, HockneyError
from hockney.model import MachineProbe
from hockney.stats import State, classify, median, state_order, time_of
from hockney.units import counted, format_ns
from hockney.worker.build import Recipe, build_worker

ROOT = Path(__file__).resolve().parent.parent.parent
_COMMAND = str(ROOT / "hockney")
_LIMIT_S = 300.0

# ---- repeat ---------------------------------------------------------------------------------------------------------

_CV = Target("CV ≤ 2 % in each state", high=0.02)
_MIN_RUNS = 3  # fewer have no scatter
_MIN_MEASUREMENTS = 6  # fewer give no 95 % interval of a median


def repeat(place: Place) -> list[Row]:
    """The part `repeat`: the 8 B figure of an MPI from several runs of the command, each a separate process.

    Once a run ends by itself, and once it takes some seconds more, because machine states last that long.
    """
    infos = place.mpis("openmpi") or place.mpis()
    runs = 3 if place.short else 10
    if not infos:
        return [not_measured(f"repeatability: {runs} runs", _CV, "no MPI is here")]
    rows = []
    for words in ("", " --precision 0.1% --time 6s"):
        command = f"run pingpong -t {infos[0].name} --bytes 8{words}"
        sampled = [_one_run(place, number, command) for number in range(runs)]
        rows.extend(repeat_rows(f"repeatability: {runs} runs of `{command}`", sampled))
    return rows


class Sampled(NamedTuple):
    """The median of one measurement, its machine probe, and its launch."""

    median_ns: float
    signs: MachineProbe
    launch_id: int


def _one_run(place: Place, number: int, command: str) -> list[Sampled]:
    place.say(f"repeat: {command}, number {number + 1}")
    place.look_round()
    store = place.folder / "repeat.db"
    call_hockney(command.split(), store)
    with hockney.open(store) as results:
        return [
            Sampled(statistics.median(one.times_ns().tolist()), one.probe, one.launch_id)
            for one in results.run().series[0].measurements
        ]


def repeat_rows(what: str, runs: Sequence[Sequence[Sampled]]) -> list[Row]:
    """One row for each state: the scatter of the figures of single runs.

    A run has a figure in a state with enough measurements for an interval. States are classified over the measurements
    of all runs together."""
    states = iter(classify([one.signs for run in runs for one in run]))
    figures: dict[State, list[float]] = {}
    for run in runs:
        measurements: dict[State, list[Sampled]] = {}
        for one in run:
            measurements.setdefault(next(states), []).append(one)
        for state, of_state in measurements.items():
            if len(of_state) >= _MIN_MEASUREMENTS and state.floor_ns is not None:
                time, _ = time_of([one.median_ns for one in of_state], [one.launch_id for one in of_state])
                figures.setdefault(state, []).append(time.value)
    rows = [
        _scatter(what, state, figures[state])
        for state in sorted(figures, key=lambda one: state_order(one.name, one.floor_ns))
    ]
    return rows or [Row(what, _CV.text, "no run has a figure with an interval", UNKNOWN, INCONCLUSIVE)]


def _scatter(what: str, state: State, figures_ns: Sequence[float]) -> Row:
    shown = f"{_show_state(state)}; {counted(len(figures_ns), 'run')}"
    middle_ns = statistics.median(figures_ns)
    if len(figures_ns) < _MIN_RUNS:
        return Row(what, _CV.text, f"{middle_ns:.1f} ns, too few runs for a CV", shown, INCONCLUSIVE)
    cv = statistics.stdev(figures_ns) / statistics.fmean(figures_ns)
    measured = f"CV {cv:.1%}: median {middle_ns:.1f} ns, from {min(figures_ns):.1f} to {max(figures_ns):.1f} ns"
    return Row(what, _CV.text, measured, shown, _CV.judge_alone(cv))


def _show_state(state: State) -> str:
    """`near, 27.1 ns`, `near, 27.1 ns, contended`."""
    level = state.name if state.floor_ns is None else f"{state.level.split()[0]}, {format_ns(state.floor_ns)}"
    return f"{level}, contended" if state.is_contended else level


# ---- start ----------------------------------------------------------------------------------------------------------


def start(place: Place) -> list[Row]:
    """The part `start`: how long a user waits for a command, a build, a first figure and the whole data sheet."""
    rows = [*_bare_commands(place), *_builds(place), _first_figure(place)]
    target = Target("≤ 75 s", high=75.0)
    if place.short:
        return [*rows, not_measured("`hockney quick`, wall time", target, "left out by --short")]
    place.say("start: quick, about a minute")
    wall_s = _timed_s(call_hockney, ["quick"], place.folder / "quick.db")
    return [*rows, row_of_one("`hockney quick`, wall time", target, wall_s, f"{wall_s:.1f} s (one run)")]


def _bare_commands(place: Place) -> list[Row]:
    """In turn, with a store that holds a run: the bare command says which was the last."""
    place.look_round()
    store = place.folder / "start.db"
    call_hockney(["run", "pingpong", "-t", "null", "--bytes", "8", "--time", "1s"], store)
    calls: dict[str, list[str]] = {"hockney": [], "hockney --help": ["--help"]}
    took_ms: dict[str, list[float]] = {name: [] for name in calls}
    for name, arguments in itertools.chain.from_iterable(itertools.repeat(list(calls.items()), 10)):
        took_ms[name].append(1e3 * _timed_s(call_hockney, arguments, store))
    target = Target("≤ 150 ms", high=150.0)
    return [row_of(f"`{name}`", target, median(values), "ms") for name, values in took_ms.items()]


def _builds(place: Place) -> list[Row]:
    """Cold, in a fresh cache folder each time; then found in it, by a call in this process and by a fresh one."""
    recipes = {"native": Recipe()}
    for info in place.mpis("openmpi")[:1]:
        if info.library is not None:
            recipes["Open MPI"] = info.library.recipe
    times = 3 if place.short else 7
    cold, cached = Target("≤ 1 s", high=1000.0), Target("≤ 50 ms", high=50.0)
    rows = []
    for name, recipe in recipes.items():
        place.say(f"start: builds of the {name} worker")
        place.look_round()
        cold_ms, call_ms, command_ms = zip(*_build_times_ms(recipe, place.folder / "cold", times), strict=True)
        what = f"{name} worker"
        rows.append(row_of(f"{what}: built cold", cold, median(cold_ms), "ms"))
        rows.append(row_of(f"{what}: found in the cache, one call", cached, median(call_ms), "ms"))
        rows.append(row_of(f"{what}: found in the cache, by a new process", cached, median(command_ms), "ms"))
    return rows


def _build_times_ms(recipe: Recipe, folder: Path, times: int) -> Iterator[tuple[float, float, float]]:
    build = functools.partial(build_worker, recipe, folder=folder)
    for _ in range(times):
        yield 1e3 * _timed_s(build), 1e3 * _timed_s(build), _build_in_command_ms(recipe, folder)
        shutil.rmtree(folder)


def _build_in_command_ms(recipe: Recipe, folder: Path) -> float:
    """The time to find the worker in a command: the import and the first call, in a fresh process."""
    script = (
        "import sys, time\nfrom pathlib import Path\nbegin_s = time.perf_counter()\n"
        "from hockney.worker.build import Recipe, build_worker\n"
        "recipe = Recipe(family=sys.argv[1], compiler=tuple(sys.argv[3:]))\n"
        "build_worker(recipe, folder=Path(sys.argv[2]))\n"
        "print(1e3 * (time.perf_counter() - begin_s))\n"
    )
    argv = [sys.executable, "-I", "-c", script, recipe.family, str(folder), *recipe.compiler]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    if done.returncode != 0:
        raise HockneyError(f"a build in a new process failed: {done.stderr.strip()[-300:]}")
    return float(done.stdout)


def _first_figure(place: Place) -> Row:
    """From the start of `quick`, set up and built before, to the first figure on the screen; then it is stopped."""
    times = 3 if place.short else 7
    took_s = []
    for number in range(times):
        place.say(f"start: first figure, {number + 1} of {times}")
        place.look_round()
        took_s.append(_first_figure_s(place.folder / f"first-{number}.db"))
    target = Target("≤ 2 s", high=2.0)
    return row_of("`hockney quick`, second start: first figure", target, median(took_s), "s")


def _first_figure_s(store: Path) -> float:
    begin_s = time.perf_counter()
    argv = [_COMMAND, "quick", "--store", str(store)]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        took_s = None
        for line in process.stderr:
            if line.startswith(FIRST_FIGURE):
                took_s = time.perf_counter() - begin_s
                process.send_signal(signal.SIGTERM)
                break
        process.stderr.read()
        process.wait(_LIMIT_S)
    if took_s is None:
        raise HockneyError("`hockney quick` has shown no figure")
    return took_s


# ---- large ----------------------------------------------------------------------------------------------------------


def large(place: Place) -> list[Row]:
    """The part `large`: explaining, drawing and comparing large made-up runs, in turn; smaller ones with --short."""
    transports = TRANSPORTS[:1] if place.short else TRANSPORTS
    store = place.folder / "large.db"
    for number in (1, 2):
        place.say(f"large: making run {number}")
        store_large_run(store, "varied", launches=10, transports=transports)
    size = f"{500 * len(transports):,} series, {len(transports)} million samples"
    calls = {
        f"`hockney explain`, {size}": (["explain", "1"], Target("≤ 5 s", high=5.0)),
        f"`hockney report`, {size}": (["report", "1", "-o", f"{place.folder}/report.html"], Target("≤ 5 s", high=5.0)),
        f"`hockney compare`, twice {size}": (["compare", "1", "2"], Target("≤ 3 s", high=3.0)),
    }
    took_s: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(3 if place.short else 7):
        place.say(f"large: reading, number {number + 1}")
        place.look_round()
        for name, (arguments, _) in calls.items():
            took_s[name].append(_timed_s(call_hockney, arguments, store))
    rows = [row_of(name, target, median(took_s[name]), "s") for name, (_, target) in calls.items()]
    memory = Target("≤ 1 GiB", high=1024.0)
    for name, (arguments, _) in calls.items():
        peak_mib = usage_of([_COMMAND, *arguments], Path(os.devnull), HOCKNEY_STORE=str(store)).ru_maxrss / 1024
        rows.append(row_of_one(f"{name}: memory", memory, peak_mib, f"{peak_mib:.0f} MiB (one run)"))
    return [*rows, _pictures(place, store, size), _first_paint(place)]


def _pictures(place: Place, store: Path, size: str) -> Row:
    what, target = f"`hockney report --format svg`, {size}", Target("≤ 60 s", high=60.0)
    if place.short:
        return not_measured(what, target, "left out by --short")
    place.say("large: pictures")
    arguments = ["report", "1", "--format", "svg", "-o", f"{place.folder}/pictures"]
    took_s = _timed_s(call_hockney, arguments, store)
    return row_of_one(what, target, took_s, f"{took_s:.1f} s (one run)")


def _first_paint(place: Place) -> Row:
    what, target = "page of 100 curves and a 512 × 512 matrix: first paint", Target("≤ 1 s", high=1000.0)
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        return not_measured(what, target, "no Chromium is here")
    from playwright.sync_api import sync_playwright

    address = write_large_page(place.folder).as_uri()
    took_ms = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for _ in range(3 if place.short else 7):
            page = browser.new_page()
            page.goto(address)
            page.wait_for_function("performance.getEntriesByType('paint').length > 0")
            paints = page.evaluate("performance.getEntriesByType('paint').map(each => each.startTime)")
            took_ms.append(max(paints))
            page.close()
        browser.close()
    return row_of(what, target, median(took_ms), "ms")


# ---- calling hockney ------------------------------------------------------------------------------------------------


def _timed_s(action: Callable[..., object], *given: object) -> float:
    begin_s = time.perf_counter()
    action(*given)
    return time.perf_counter() - begin_s


def call_hockney(arguments: Sequence[str], store: Path) -> str:
    """The output of a command of hockney that ran to its end. Raises HockneyError with its message if it fails.

    On a busy machine a short run has no interval, and ends with 3.
    """
    try:
        done = subprocess.run(
            [_COMMAND, *arguments],
            env={**os.environ, "HOCKNEY_STORE": str(store)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise HockneyError(f"hockney {' '.join(arguments[:2])} did not end within {_LIMIT_S:g} s") from error
    if done.returncode not in (ExitCode.DONE, ExitCode.INCOMPLETE):
        raise HockneyError(f"hockney {' '.join(arguments[:2])} ended with {done.returncode}: {done.stderr[-300:]}")
    return done.stdout
