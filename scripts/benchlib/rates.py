"""How often `hockney check` is wrong on this machine: the body of scripts/check-rates.

Half of the checks are of an unchanged transport, half of one that was slowed by a quarter at some sizes; of other
transports, which can't be slowed, all are unchanged. Each check has a baseline of its own, measured just before. Prints
every check, and then what docs/methods.md says of them: on what machine and with what load, each rate with its exact
95 % interval, what was inconclusive and why, and how long it took.
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
from tests.analysis.compare.slowed import SIZES, SLOWED, check_again, load_catalogue, measure, plan, slowed

from hockney.analysis.compare import Verdict
from hockney.cli.baseline import report_of
from hockney.errors import ExitCode, UsageError
from hockney.machine import facts, usable_cpus
from hockney.measure.check import PATIENCE_S, Checked
from hockney.measure.plan import Plan
from hockney.model import Point
from hockney.report.changes import range_sentence
from hockney.results.store import Store
from hockney.worker.catalogue import Catalogue, load

_TIME_S = 2.0  # of a baseline, for each transport


def rates(count: int, transports: Sequence[str] = ()) -> int:
    """Check so many times, and print; what the script ends with: 0, or 2 for a transport that can't do it."""
    catalogue = load() if transports else load_catalogue()
    try:
        names = [info.name for info in catalogue.select(transports)]
    except UsageError as error:
        print(f"check-rates: {error}", file=sys.stderr)
        return 2
    asked = plan(*names, time_s=_TIME_S * max(1, len(names)))
    problem = next(filter(None, (_problem(point, catalogue) for point in asked.points)), None)
    if problem:
        print(f"check-rates: {problem}", file=sys.stderr)
        return 2
    found: dict[str, list[Checked]] = {"unchanged": []} if transports else {"unchanged": [], "slowed": []}
    took_s: dict[str, list[float]] = {kind: [] for kind in found}
    _tell_setting(asked, PATIENCE_S, may_slow="slowed" in found)
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "results.db") as store:
        for number in range(1, count + 1):
            for kind, checks in found.items():
                base = measure(catalogue, store, asked)
                begun_s = time.monotonic()
                with slowed() if kind == "slowed" else nullcontext():
                    checks.append(check_again(catalogue, store, base, patience_s=PATIENCE_S))
                took_s[kind].append(time.monotonic() - begun_s)
                print(f"{number:3d} {kind:9} {took_s[kind][-1]:5.1f} s {_words(checks[-1])}", flush=True)
                for same in checks[-1].comparison.ranges:
                    if same.verdict is not Verdict.SAME:
                        print(f"    {range_sentence(same, checks[-1].comparison)}", flush=True)

    print()
    _tell("unchanged, false alarms (exit 1)", [checked.is_worse for checked in found["unchanged"]])
    _tell(
        "unchanged, inconclusive (exit 3)",
        [report_of(checked).code == ExitCode.INCOMPLETE for checked in found["unchanged"]],
    )
    if "slowed" in found:
        _tell_slowed(found["slowed"])
    _tell_reasons([checked for checks in found.values() for checked in checks])
    for kind, times in took_s.items():
        print(f"{kind}, a check took {sorted(times)[len(times) // 2]:.1f} s in the middle, {max(times):.1f} s at most")
    print(f"load at the end: {_load()}")
    return 0


def _problem(point: Point, catalogue: Catalogue) -> str | None:
    """Why a point can't be measured, as a sentence."""
    return catalogue.obstacles([point]).get(point)


def _tell_slowed(checks: Sequence[Checked]) -> None:
    slowed_sizes = set(filter(_is_slowed, SIZES))
    of_slowed = [_worse_sizes(checked) for checked in checks]
    _tell("slowed, found (exit 1, at a slowed size)", [any(map(_is_slowed, sizes)) for sizes in of_slowed])
    _tell("slowed, found at every slowed size", [slowed_sizes <= set(sizes) for sizes in of_slowed])
    _tell("slowed, inconclusive (exit 3)", [report_of(checked).code == ExitCode.INCOMPLETE for checked in checks])
    _tell("slowed, called well (exit 0)", [report_of(checked).code == ExitCode.DONE for checked in checks])
    _tell("slowed, false alarms (at other sizes)", [not all(map(_is_slowed, sizes)) for sizes in of_slowed])


def _tell_setting(asked: Plan, patience_s: float, *, may_slow: bool) -> None:
    known = facts()
    transports = "shm" if may_slow else ", ".join(dict.fromkeys(point.transport for point in asked.points))
    slowing = f"slowed by about a quarter from {SLOWED[0]} to {SLOWED[1]} B; " if may_slow else ""
    print(f"{known['cpu'].get('model')}, {len(usable_cpus())} CPUs, {known['os'].get('kernel')}; load {_load()}")
    print(
        f"ping-pongs of {len(SIZES)} sizes over {transports}, "
        f"{asked.launches} launches in {asked.time_s:g} s; {slowing}patience {patience_s:g} s\n",
        flush=True,
    )


def _load() -> str:
    return "{:.1f} {:.1f} {:.1f} (1, 5, 15 min)".format(*os.getloadavg())


def _tell_reasons(checks: Sequence[Checked]) -> None:
    """How many series ended inconclusive, by reason."""
    reasons = Counter(
        ", ".join(reason.code.value for reason in change.reasons)
        for checked in checks
        for change in checked.comparison.changes
        if change.verdict is Verdict.INCONCLUSIVE
    )
    for reason, count in reasons.most_common():
        print(f"inconclusive series: {count}, because {reason}")


def _worse_sizes(checked: Checked) -> list[int]:
    return [change.point.bytes for change in checked.comparison.changes if change.verdict is Verdict.SLOWER]


def _is_slowed(size: int) -> bool:
    return SLOWED[0] <= size <= SLOWED[1]


def _words(checked: Checked) -> str:
    counts = ", ".join(f"{count} {verdict.value}" for verdict, count in checked.comparison.counts.items())
    return f"exit {report_of(checked).code}: {counts}; {checked.judged_again} judged again"


def _tell(what: str, outcomes: Sequence[bool]) -> None:
    interval = binomtest(sum(outcomes), len(outcomes)).proportion_ci()
    print(f"{what}: {sum(outcomes)} of {len(outcomes)} ({100 * interval.low:.1f} to {100 * interval.high:.1f} %)")
