"""Error rates of `hockney check`: scripts/check-rates [CHECKS [TRANSPORT ...]], or --simulated CASES.

Half of the checks, 50 by default, are of an unchanged transport, half of one that is delayed by a quarter at some
sizes. Other transports, for example pipe or tcp, cannot be delayed: all their checks are of unchanged ones, all in one
plan. Each check has a separate baseline, measured just before. Prints every check, then the machine and its load, each
rate with its exact 95 % interval, the inconclusive checks with their reasons, and the time taken. --simulated prints
the rates of docs/validation.md on simulated machines of known truth: bad launches, heavy tails, drift.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from scipy.stats import binomtest
from tests.analysis.compare.delayed import DELAYED, SIZES, check_again, delayed, load_catalogue, measure, plan
from tests.analysis.compare.simulated import print_rates

from hockney.analysis.compare import Comparison, Verdict
from hockney.cli.verdicts import report_of
from hockney.errors import ExitCode, UsageError
from hockney.machine.facts import facts
from hockney.machine.placement import usable_cpus
from hockney.measure.check import PATIENCE_S
from hockney.measure.plan import Plan
from hockney.report.changes import range_sentence
from hockney.results.store import Store
from hockney.worker.catalogue import Catalogue, load

_TIME_S = 2.0  # of a baseline, for each transport


def run(arguments: Sequence[str]) -> int:
    """Run the checks and print them; returns the exit code: 0, or 2 for wrong words."""
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


def _refuse(why: str) -> int:
    print(f"check-rates: {why}", file=sys.stderr)
    return 2


def _check(catalogue: Catalogue, asked: Plan, count: int, *, may_delay: bool) -> None:
    found: dict[str, list[Comparison]] = {"unchanged": [], "delayed": []} if may_delay else {"unchanged": []}
    took_s: dict[str, list[float]] = {kind: [] for kind in found}
    _print_setting(asked, PATIENCE_S, may_delay=may_delay)
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "results.db") as store:
        for number in range(1, count + 1):
            for kind, checks in found.items():
                base = measure(catalogue, store, asked)
                begun_s = time.monotonic()
                with delayed() if kind == "delayed" else nullcontext():
                    checks.append(check_again(catalogue, store, base, patience_s=PATIENCE_S))
                took_s[kind].append(time.monotonic() - begun_s)
                print(f"{number:3d} {kind:9} {took_s[kind][-1]:5.1f} s {_words(checks[-1])}", flush=True)
                for same in checks[-1].ranges:
                    if same.verdict is not Verdict.SAME:
                        print(f"    {range_sentence(same, checks[-1])}", flush=True)

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


def _print_setting(asked: Plan, patience_s: float, *, may_delay: bool) -> None:
    known = facts()
    transports = "shm" if may_delay else ", ".join(dict.fromkeys(point.transport for point in asked.points))
    delay = f"delayed by about a quarter from {DELAYED[0]} to {DELAYED[1]} B; " if may_delay else ""
    print(f"{known['cpu'].get('model')}, {len(usable_cpus())} CPUs, {known['os'].get('kernel')}; load {_load()}")
    print(
        f"ping-pongs of {len(SIZES)} sizes over {transports}, "
        f"{asked.launches} launches in {asked.time_s:g} s; {delay}patience {patience_s:g} s\n",
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
