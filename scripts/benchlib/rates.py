"""Error rates of `hockney check`: scripts/check-rates [CHECKS [TRANSPORT ...]], --live …, or --simulated CASES.

Half of the checks, 50 by default, are of an unchanged transport, half of one that is delayed by a quarter at some
sizes. Other transports, for example pipe or tcp, cannot be delayed: all their checks are of unchanged ones, all in one
plan. Each check has a separate baseline, measured just before. Prints every check, then the machine and its load, each
rate with its exact 95 % interval, the inconclusive checks with their reasons, and the time taken. --simulated prints
the rates of docs/validation.md on simulated machines of known truth: bad launches, heavy tails, drift.

--live [UNCHANGED [DELAYED [SECONDS]]] measures one baseline of all transports, 60 s unless given; then, one after the
other, 20 unchanged checks of it, and 10 in which `fault` and `sleepy`, copies of shm and tcp, are delayed by a quarter.
Leave the machine alone meanwhile: a check takes one to four minutes.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from scipy.stats import binomtest
from tests.analysis.compare.delayed import DELAYED, SIZES, check_again, delayed, load_catalogue, measure, plan
from tests.analysis.compare.simulated import print_rates
from tests.worker.extra import EXTRA

from hockney.analysis.compare import Comparison, Verdict
from hockney.cli.verdicts import report_of
from hockney.errors import ExitCode, UsageError
from hockney.machine.facts import facts
from hockney.machine.placement import usable_cpus
from hockney.measure.check import PATIENCE_S
from hockney.measure.plan import Plan
from hockney.report.documents.comparison import range_sentence
from hockney.results.store import Store
from hockney.worker.catalogue import Catalogue, load

_TIME_S = 2.0  # of a baseline, for each transport
_LIVE = (20, 10, 60)  # unchanged and delayed checks, and seconds of a run
_LIVE_SIZES = (8, 1024, 32768)
_SLOWED = ("fault", "sleepy")  # the transports that can be delayed: shm and tcp


def run(arguments: Sequence[str]) -> int:
    """Run the checks and print them; returns the exit code: 0, or 2 for wrong words."""
    if arguments[:1] == ["--live"]:
        return _live(arguments[1:])
    is_simulated = arguments[:1] == ["--simulated"]
    count, *transports = arguments[is_simulated:] or ["1000" if is_simulated else "50"]
    if not count.isdecimal() or int(count) < 1:
        return _refuse(
            "say how many checks of each kind, one or more, and of which transports: scripts/check-rates 50 tcp"
        )
    if is_simulated:
        print_rates(int(count))
        return 0
    catalogue = load() if transports else load_catalogue()
    try:
        names = [info.name for info in catalogue.select(transports)]
    except UsageError as error:
        return _refuse(str(error))
    asked = plan(*names, time_s=_TIME_S * max(1, len(names)))
    obstacles = catalogue.obstacles(asked.points)
    if obstacles:
        return _refuse(next(iter(obstacles.values())))
    _check(catalogue, asked, int(count), may_delay=not transports)
    return 0


def _live(words: Sequence[str]) -> int:
    """Checks of one stored baseline, as a user makes them; returns the exit code."""
    if len(words) > len(_LIVE) or not all(word.isdecimal() for word in words):
        return _refuse("--live takes the numbers of unchanged and of delayed checks, and seconds: --live 20 10 60")
    unchanged, delays, time_s = (*map(int, words), *_LIVE[len(words) :])
    catalogue = load(recipe=EXTRA)
    kinds = [
        name for name in ("shm", "threads", "pipe", "unix", "tcp", "udp", "mpi") if not catalogue.missing_for(name)
    ]
    asked = plan(*(info.name for info in catalogue.select([*kinds, *_SLOWED])), sizes=_LIVE_SIZES, launches=6)
    asked = asked.within(time_s=float(time_s))
    found: dict[str, list[Comparison]] = {"unchanged": [], "delayed": []}
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "results.db") as store:
        _print_setting(asked, PATIENCE_S, about=f"{unchanged} unchanged checks, {delays} delayed by a quarter")
        base = measure(catalogue, store, asked)
        for kind in ("unchanged",) * unchanged + ("delayed",) * delays:
            with delayed(sizes=_LIVE_SIZES) if kind == "delayed" else nullcontext():
                found[kind].append(_timed_check(catalogue, store, base, f"{len(found[kind]) + 1:3d} {kind:9}"))
    print()
    alarms = [_slower_on(checked, lambda name: name not in _SLOWED) for checked in found["delayed"]]
    alarms += [_slower_on(checked, lambda _: True) for checked in found["unchanged"]]
    for what, outcomes in (
        ("false alarms, all checks", alarms),
        ("false alarms, unchanged (exit 1)", alarms[delays:]),
        ("unchanged, fine (exit 0)", [report_of(checked).code == ExitCode.DONE for checked in found["unchanged"]]),
        *(
            (f"delayed, found on {name}", [_slower_on(checked, name.__eq__) for checked in found["delayed"]])
            for name in _SLOWED
        ),
    ):
        if outcomes:
            _print_rate(what, outcomes)
    _print_reasons([checked for checks in found.values() for checked in checks])
    print(f"load at the end: {_load()}")
    return 0


def _slower_on(checked: Comparison, is_counted: Callable[[str], bool]) -> bool:
    """Whether a series of these transports was called slower."""
    slower = (change for change in checked.changes if change.verdict is Verdict.SLOWER)
    return any(is_counted(change.point.transport) for change in slower)


def _timed_check(catalogue: Catalogue, store: Store, base: int, name: str) -> Comparison:
    """A check; prints its result and the series that moved."""
    begun_s = time.monotonic()
    checked = check_again(catalogue, store, base, patience_s=PATIENCE_S)
    print(f"{name} {time.monotonic() - begun_s:5.1f} s {_words(checked)}", flush=True)
    for same in checked.ranges:
        if same.verdict is not Verdict.SAME:
            print(f"    {range_sentence(same, checked)}", flush=True)
    return checked


def _refuse(why: str) -> int:
    print(f"check-rates: {why}", file=sys.stderr)
    return 2


def _check(catalogue: Catalogue, asked: Plan, count: int, *, may_delay: bool) -> None:
    found: dict[str, list[Comparison]] = {"unchanged": [], "delayed": []} if may_delay else {"unchanged": []}
    took_s: dict[str, list[float]] = {kind: [] for kind in found}
    about = f"delayed by about a quarter from {DELAYED[0]} to {DELAYED[1]} B" if may_delay else "unchanged"
    _print_setting(asked, PATIENCE_S, about=about)
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "results.db") as store:
        for number in range(1, count + 1):
            for kind, checks in found.items():
                base = measure(catalogue, store, asked)
                begun_s = time.monotonic()
                with delayed() if kind == "delayed" else nullcontext():
                    checks.append(_timed_check(catalogue, store, base, f"{number:3d} {kind:9}"))
                took_s[kind].append(time.monotonic() - begun_s)

    print()
    _print_rate(
        "unchanged, false alarms (exit 1)", [checked.counts[Verdict.SLOWER] > 0 for checked in found["unchanged"]]
    )
    _print_rate(
        "unchanged, inconclusive (exit 3)",
        [report_of(checked).code == ExitCode.INCOMPLETE for checked in found["unchanged"]],
    )
    if may_delay:
        _print_delayed(found["delayed"])
    _print_reasons([checked for checks in found.values() for checked in checks])
    for kind, times in took_s.items():
        print(f"{kind}, a check took {sorted(times)[len(times) // 2]:.1f} s in the middle, {max(times):.1f} s at most")
    print(f"load at the end: {_load()}")


def _print_delayed(checks: Sequence[Comparison]) -> None:
    delayed_sizes = set(filter(_is_delayed, SIZES))
    of_delayed = [_worse_sizes(checked) for checked in checks]
    _print_rate("delayed, found (exit 1, at a delayed size)", [any(map(_is_delayed, sizes)) for sizes in of_delayed])
    _print_rate("delayed, found at every delayed size", [delayed_sizes <= set(sizes) for sizes in of_delayed])
    _print_rate(
        "delayed, inconclusive (exit 3)", [report_of(checked).code == ExitCode.INCOMPLETE for checked in checks]
    )
    _print_rate("delayed, called fine (exit 0)", [report_of(checked).code == ExitCode.DONE for checked in checks])
    _print_rate("delayed, false alarms (at other sizes)", [not all(map(_is_delayed, sizes)) for sizes in of_delayed])


def _print_setting(asked: Plan, patience_s: float, *, about: str) -> None:
    known = facts()
    transports = ", ".join(dict.fromkeys(point.transport for point in asked.points))
    sizes = len({point.bytes for point in asked.points})
    print(f"{known['cpu'].get('model')}, {len(usable_cpus())} CPUs, {known['os'].get('kernel')}; load {_load()}")
    print(
        f"ping-pongs of {sizes} sizes over {transports}, "
        f"{asked.limits.launches} launches in {asked.limits.time_s:g} s; {about}; patience {patience_s:g} s\n",
        flush=True,
    )


def _load() -> str:
    return "{:.1f} {:.1f} {:.1f} (1, 5, 15 min)".format(*os.getloadavg())


def _print_reasons(checks: Sequence[Comparison]) -> None:
    """How many series ended inconclusive, by reason."""
    reasons = Counter(
        ", ".join(reason.code.value for reason in change.reasons)
        for checked in checks
        for change in checked.changes
        if change.verdict is Verdict.INCONCLUSIVE
    )
    for reason, count in reasons.most_common():
        print(f"inconclusive series: {count}, because {reason}")


def _worse_sizes(checked: Comparison) -> list[int]:
    return [change.point.bytes for change in checked.changes if change.verdict is Verdict.SLOWER]


def _is_delayed(size: int) -> bool:
    return DELAYED[0] <= size <= DELAYED[1]


def _words(checked: Comparison) -> str:
    counts = ", ".join(f"{count} {verdict.value}" for verdict, count in checked.counts.items())
    return f"exit {report_of(checked).code}: {counts}; {checked.judged_again} judged again"


def _print_rate(what: str, outcomes: Sequence[bool]) -> None:
    interval = binomtest(sum(outcomes), len(outcomes)).proportion_ci()
    print(f"{what}: {sum(outcomes)} of {len(outcomes)} ({100 * interval.low:.1f} to {100 * interval.high:.1f} %)")
