"""Words about a run that several forms of output share: the machine, where ranks ran, and the width of intervals."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hockney.machine.files import format_cpus, named_cpus
from hockney.units import counted

if TYPE_CHECKING:
    from hockney.analysis.predict.prediction import Validation
    from hockney.results.runs import Run

_ERRORS_WITHIN = (0.10, 0.25)
ERROR_COLUMNS = ("points", "median error", *(f"within {limit:.0%}" for limit in _ERRORS_WITHIN))


def machine_text(facts: dict[str, Any]) -> str:
    """`AMD EPYC, 2 cores, 24 GiB · Debian 12, Linux 6.18, KVM`."""
    cpu, system, around = (facts.get(part) or {} for part in ("cpu", "os", "surroundings"))
    memory = (facts.get("memory") or {}).get("total_bytes")
    hardware = [
        re.sub(r"\((R|TM)\)| @.*", "", cpu.get("model") or "unknown CPU"),
        counted(cpu["cores"], "core") if cpu.get("cores") else "",
        f"{memory / 2**30:.0f} GiB" if memory else "",
    ]
    software = [
        re.sub(r" GNU/Linux| \(.*\)", "", system.get("name") or ""),
        (system.get("kernel") or "").partition("-")[0],
        around.get("hypervisor"),
        around.get("container"),
    ]
    return " · ".join(", ".join(filter(None, words)) for words in (hardware, software) if any(words))


def spread_text(fraction: float) -> str:
    """`±2%`, rounded up; `±?` of tenfold and more, and where there is no interval."""
    return "±?" if fraction >= 9.99 else f"±{math.ceil(100 * fraction)}%"


def error_cells(validation: Validation) -> list[str]:
    """The errors of predictions against measurements, by ERROR_COLUMNS."""
    shares = map(validation.share_within, _ERRORS_WITHIN)
    median, count = validation.median_error, str(len(validation.rows))
    return [count] if median is None else [count, f"{median:.1%}", *(f"{share or 0:.0%}" for share in shares)]


def placement_text(run: Run) -> str | None:
    """`2 ranks on CPUs 0 and 2.`: where they ran; None of several hosts, or where it is not known."""
    placed = {launch.cpus: None for launch in run.launches.values() if launch.transport != "null" and launch.cpus}
    hosts = {host for launch in run.launches.values() for host in launch.hosts}
    if not placed or len(hosts) > 1 or any(cpu < 0 for cpus in placed for cpu in cpus):
        return None
    # Fewer ranks are mostly on the first of the CPUs that more have.
    longest = [cpus for cpus in placed if not any(cpus == other[: len(cpus)] for other in placed if other != cpus)]
    words = []
    for cpus in sorted(longest, key=len):
        least = min(len(other) for other in placed if other == cpus[: len(other)])
        ranks = f"{least} to {len(cpus)} ranks" if least < len(cpus) else counted(least, "rank")
        words.append(f"{ranks} on {_cpus_text(cpus)}")
    return f"{'; '.join(words)}."


def launches_text(run: Run) -> str:
    """`6 launches of each job`, and how many there were of points that were not precise by then."""
    made = len({launch.index for launch in run.launches.values()})
    asked = min(made, int(run.info.plan.get("launches") or made))
    more = f", up to {made} where figures were not precise" if made > asked else ""
    return "1 launch" if made == 1 else f"{counted(asked, 'launch', 'launches')} of each job{more}"


def _cpus_text(cpus: Sequence[int]) -> str:
    """`CPUs 0, 2 and 4` in the order of the ranks, many as ranges."""
    each = list(dict.fromkeys(cpus))
    if len(each) == 1 or len(each) > 8:
        return named_cpus(format_cpus(each))
    return f"CPUs {', '.join(map(str, each[:-1]))} and {each[-1]}"
