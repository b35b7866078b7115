"""Words about a run that several forms of output share: machine, transports, where ranks ran, width of intervals."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from hockney.machine.files import format_cpus, named_cpus
from hockney.model import Launch, Point, split_placed
from hockney.stats import ROUNDING
from hockney.stats.interval import Estimate
from hockney.stats.npb import ft_class
from hockney.units import counted, format_bytes

if TYPE_CHECKING:
    from hockney.results.figures import Figure
    from hockney.results.runs import Run

NOTHING = "–"
SHORT_MARK = "†"  # a stream with few events in a sample
RANGE_MARK = "‡"  # bounds that are what was seen, and not an interval of one machine state
_HOSTS_MAX = 16
_UNITS = [base**power for base in (1000.0, 1024.0) for power in range(5)]  # `ns`, `us`, `MB/s`, `KiB` …
ROUGH = 0.5  # wider bounds, as a fraction of the value, are printed with both ends, and never called best


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


def figure_text(value: Estimate, text: Callable[[float], str], *, is_range: bool = False) -> tuple[str, str]:
    """A value and its bounds: `8.32 us`, `±2%`, rounded up; of an exact value without bounds.

    Both ends, `8.3 us`, `(2.1–33)`, where they are wider than half of the value; all three with two digits, or three if
    the ends are less than a factor of two apart. A range has both ends, too, with its mark; only the mark where they
    are printed alike. `text` is that of a number in its unit.
    """
    shown = text(value.value)
    if not is_range and (value.low == value.high or value.relative <= ROUGH):
        return shown, percent_text(value.relative) if value.low != value.high else ""
    number, _, name = shown.partition(" ")
    printed = float(number.replace(",", ""))
    ratio = value.value / printed if value.value and printed else 1.0
    unit = min(_UNITS, key=lambda unit: abs(math.log(ratio / unit)))
    digits = 2 if value.high >= 2 * value.low else 3
    number, low, high = (_digits_text(each / unit, digits) for each in (value.value, value.low, value.high))
    if low == high:
        return shown, RANGE_MARK * is_range
    return f"{number} {name}".rstrip(), f"({low}–{high}){RANGE_MARK * is_range}"


def whole_text(value: Estimate, text: Callable[[float], str], *, is_range: bool = False) -> str:
    """The same in one: `8.32 us ±2%`."""
    return " ".join(filter(None, figure_text(value, text, is_range=is_range)))


def _digits_text(number: float, digits: int) -> str:
    """`8.3`, `33` or `13,100`: with so many significant digits."""
    rounded = float(f"{number:.{digits}g}")
    decimals = digits - 1 - math.floor(math.log10(abs(rounded))) if rounded else 0
    return f"{rounded:,.{max(0, decimals)}f}"


def known_text(value: float | None, text: Callable[[float], str], unknown: str = "") -> str:
    """The value as a text; `unknown` of None."""
    return unknown if value is None else text(value)


def bounds_column(
    rows: Collection[Any], bounds_of: Callable[[Any], tuple[float | None, ...]], text: Callable[[float], str]
) -> dict[str, Callable[[Any], str]]:
    """The column of the intervals or ranges of rows, from value, low and high; empty where one is not known."""

    def cell(row: Any) -> str:
        known = Estimate.if_known(*bounds_of(row))
        return "" if known is None else figure_text(known, text, is_range=row.is_range)[1]

    title = "range" if any(row.is_range for row in rows) else "95 % interval"
    return {title: cell} if any(map(cell, rows)) else {}


def cell_text(figure: Figure, value: Estimate, text: Callable[[float], str]) -> tuple[str, str]:
    """A figure, or a rate of it, as every table has it: figure_text, without the rounding of an imported one."""
    if figure.interval_over == ROUNDING:
        return text(value.value), ""
    shown, bounds = figure_text(value, text, is_range=figure.is_range)
    return shown + SHORT_MARK * figure.is_short, bounds


def percent_text(fraction: float) -> str:
    """`±2%`, rounded up; `a factor of 10.9` where that would exceed 50 %, as in no cell."""
    return f"±{math.ceil(100 * fraction)}%" if fraction <= ROUGH else f"a factor of {ratio_text(1 + fraction)}"


def placement_text(run: Run) -> str | None:
    """`2 ranks on CPUs 0 and 2.`: where ranks ran; None if they ran on several hosts, or if it is unknown."""
    placed = {
        launch.cpus: None for launch in run.launches.values() if launch.transport not in run.harness and launch.cpus
    }
    hosts = {host for launch in run.launches.values() for host in launch.hosts}
    if not placed or len(hosts) > 1 or any(cpu < 0 for cpus in placed for cpu in cpus):
        return None
    # Fewer ranks are mostly on the first of the CPUs that more have.
    longest = [cpus for cpus in placed if not any(cpus == other[: len(cpus)] for other in placed if other != cpus)]
    words = []
    for cpus in sorted(longest, key=len):
        least = min(len(other) for other in placed if other == cpus[: len(other)])
        ranks = f"{least} to {len(cpus)} ranks" if least < len(cpus) else counted(least, "rank")
        words.append(f"{ranks} on {cpus_text(cpus)}")
    return f"{'; '.join(words)}."


def hosts_text(names: Sequence[str]) -> str:
    """`n3, n4, n5`; of many the first ones."""
    more = f" and {len(names) - _HOSTS_MAX} more" if len(names) > _HOSTS_MAX else ""
    return f"{', '.join(names[:_HOSTS_MAX])}{more}"


def ratio_text(value: float) -> str:
    """`3.02`, `31.0` or `1,234`."""
    return f"{value:#.3g}" if abs(value) < 99.95 else f"{value:,.0f}"


def size_text(point: Point) -> str:
    """The size of the messages, or its substitute; empty if there is neither."""
    class_ = ft_class(point)
    if class_ is not None:
        return f"class {class_}"
    return format_bytes(point.bytes) if point.is_sized else ""


def launches_text(run: Run) -> str:
    """`1 launch`, or `6 to 38 launches`, of the figures that tables show.

    `1 launch (of 2)` where none has all launches of its point: it is of other machine states, or of earlier ones.
    """
    counts = [figure.n_launches for figure in run.shown] or [run.launch_count]
    made = max((len({each.launch_id for each, _ in figure.series.pairs}) for figure in run.shown), default=0)
    several = f"{min(counts)} to " * (min(counts) < max(counts)) + counted(max(counts), "launch", "launches")
    return several + f" (of {made})" * (max(counts) < made)


def precision_reached(run: Run) -> float:
    """The precision that half of the shown figures have: infinite where most are ranges, or there are none."""
    known = [math.inf if figure.precision is None else figure.precision for figure in run.shown]
    return statistics.median(known or [math.inf])


def cpus_text(cpus: Sequence[int]) -> str:
    """`CPUs 0, 2 and 4` in the order of the ranks, many as ranges."""
    each = list(dict.fromkeys(cpus))
    if len(each) == 1 or len(each) > 8:
        return named_cpus(format_cpus(each))
    return f"CPUs {', '.join(map(str, each[:-1]))} and {each[-1]}"


# ---- transports -----------------------------------------------------------------------------------------------------


def readable_name(transport: str, library: str) -> str:
    """The library by the name of its launch, with the variant, for MPI and its like; else the transport's own name."""
    base, at, rest = split_placed(transport)[0].partition("@")
    name = library.partition(" (")[0]
    if not at or not name:
        return split_placed(transport)[0]
    variant = rest.partition(":")[2]
    kind = f"{name} OpenSHMEM" if base == "shmem" and "SHMEM" not in name else name
    return f"{kind} {variant}".rstrip()


def readable_names(launches: Collection[Launch]) -> dict[str, str]:
    """The name of each transport, of several placements `tcp, within n1`; the exact one where two read the same."""
    where = placements(launches)
    return {name: ", ".join(filter(None, (plain, where[name]))) for name, plain in plain_names(launches).items()}


def plain_names(launches: Collection[Launch]) -> dict[str, str]:
    """The names without the placement."""
    where = placements(launches)
    names = {launch.transport: readable_name(launch.transport, launch.library) for launch in launches}
    count = Counter((name, where[transport]) for transport, name in names.items())
    return {
        transport: name if count[name, where[transport]] == 1 else split_placed(transport)[0]
        for transport, name in names.items()
    }


def placements(launches: Iterable[Launch]) -> dict[str, str]:
    """Where ranks are: `between n1 and n2`, `within n1`, `2 on each host`; empty in a run of one placement."""
    together: dict[str, set[frozenset[str]]] = {}
    for launch in launches:
        together.setdefault(launch.transport, set())
        if launch.ranks > 1:
            together[launch.transport].add(frozenset(launch.hosts))
    per_host = {transport: split_placed(transport)[1] for transport in together}
    if not any(per_host.values()):
        return dict.fromkeys(together, "")
    return {transport: _placement(per_host[transport], hosts) for transport, hosts in together.items()}


def _placement(per_host: str, together: Collection[frozenset[str]]) -> str:
    if not together:
        return ""
    if all(len(hosts) == 1 for hosts in together):
        return f"within {', '.join(sorted(host for hosts in together for host in hosts))}"
    pair = sorted(next(iter(together)))
    is_pair = len(together) == 1 and len(pair) == 2
    ends = " and ".join(pair) if is_pair else "hosts"
    return f"{per_host} on each host" if per_host else f"between {ends}"
