"""A run as a data sheet for others: hardware, versions and figures, and nothing that names a person or host."""

from __future__ import annotations

import getpass
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from hockney.errors import HockneyError, UsageError
from hockney.machine.facts import fact
from hockney.machine.files import read_toml
from hockney.report.words import machine_text, readable_name
from hockney.results.figures import Figure
from hockney.results.runs import Run
from hockney.results.sheets import FORMAT, VERSION, SheetFigure, medium
from hockney.stats.interval import Estimate
from hockney.suites.toml_models import toml
from hockney.units import format_ns, format_rate

# Words with a path or a login, an address of IPv4, IPv6 or Ethernet, or a number that may be a serial one.
_PRIVATE = re.compile(r"[/\\@]|\d+\.\d+\.\d+\.\d+|[0-9a-f]*:[0-9a-f]*:|[0-9a-f]{12}", re.IGNORECASE)
_VERSIONED = re.compile(r"[a-z]+-\d[\w.]*(~\d+)?")  # the id of a library; one of a folder is its path
_LONG_BYTES = 1 << 15
_HEAD = "A data sheet of hockney: hardware, versions and figures of one machine, with 95 % intervals."


def shared(run: Run) -> dict[str, Any]:
    """The content of a run's sheet. Raises HockneyError for a run without figures of a real machine."""
    if run.info.is_imported or run.info.plan.get("virtual"):
        raise UsageError(f"{run.name} is not of this machine (an import, or a model), so it has no data sheet")
    figures = _content(run)
    if not figures:
        raise HockneyError(
            f"{run.name} has no figure with an interval to share. Measure longer", argv=("hockney", "quick")
        )
    known = read_toml(Path(__file__).with_name("sharing.toml"))
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "title": machine_text(run.facts),
        "date": time.strftime("%Y-%m-%d", time.gmtime(run.info.started_unix_s)),
        "program": f"hockney {run.info.version}",
        **{
            part: {key: value for key, path in rows.items() if (value := fact(run.facts, path)) not in (None, "", [])}
            for part, rows in known.items()
        },
        "figure": figures,
    }
    content["hardware"]["network"] = sorted(set(map(_nic, fact(run.facts, "network.interfaces") or ())))
    devices = fact(run.facts, "hardware.devices") or ()
    content["hardware"]["gpus"] = [each["name"] for each in devices if "nvlinks" in each]  # others have an address only
    content["software"]["kernel"] = str(fact(run.facts, "os.kernel") or "").partition("-")[0]  # the rest may be a name
    names = _private_names(run)
    content["title"] = _without(content["title"], names)
    for part in known:
        content[part] = {key: each for key, each in _without(content[part], names).items() if each not in ("", [])}
    for figure in figures:  # whose other texts are words of hockney's
        figure |= _without({key: figure[key] for key in figure.keys() & {"library"}}, names)
    return content


def figures_of(run: Run) -> list[SheetFigure]:
    """The figures that its sheet would have."""
    return [SheetFigure.model_validate(each) for each in _content(run)]


def _content(run: Run) -> list[dict[str, Any]]:
    return [figure for group in _curves(run) for figure in _ends(group)]


def sheet_text(content: dict[str, Any]) -> str:
    """The file of a sheet with this content."""
    return toml(content, _HEAD)


def _curves(run: Run) -> Iterable[list[Figure]]:
    """The figures that tables show, by curve."""
    curves: dict[tuple[object, ...], list[Figure]] = {}
    for figure in run.shown:
        point = figure.point
        if figure.has_interval and not figure.is_oversubscribed and not figure.is_harness:
            curves.setdefault((point.transport, point.pattern, point.options, point.ranks), []).append(figure)
    return curves.values()


def _ends(curve: list[Figure]) -> Iterator[dict[str, Any]]:
    """The time of the shortest message, unless that is long, and the best rate of long ones."""
    shortest = min(curve, key=lambda figure: (figure.point.bytes == 0, figure.point.bytes))
    rates = [
        (rate, figure)
        for figure in curve
        if (rate := figure.bytes_per_s) is not None and figure.point.bytes >= _LONG_BYTES
    ]
    if not rates or shortest.point.bytes < _LONG_BYTES:
        yield _figure(shortest, shortest.time, format_ns)
    if rates:
        best, figure = max(rates, key=lambda pair: pair[0].value)
        yield _figure(figure, best, format_rate)


def _figure(figure: Figure, value: Estimate, text: Any) -> dict[str, Any]:
    """One [[figure]]; a library that was named by its folder has only its name."""
    point, launch = figure.point, figure.series.launches[0]
    library = re.match("[^@]*@([^:]*)", point.transport)
    bounds = {name: text(getattr(value, name)).replace(",", "") for name in ("value", "low", "high")}
    content = {
        "pattern": point.pattern,
        "transport": point.transport if library and _VERSIONED.fullmatch(library[1]) else medium(point.transport),
        "library": readable_name(point.transport, launch.library) if library else "",
        "ranks": point.ranks,
        "hosts": len(set(launch.hosts)) or 1,
        "bytes": point.bytes,
        "options": dict(point.options),
        "state": figure.state,
        **bounds,
    }
    return {key: each for key, each in content.items() if each not in ("", {}, 0)}


def _nic(interface: dict[str, Any]) -> str:
    speed = interface.get("bits_per_s")
    return f"{interface.get('driver') or 'unknown'}{f' {speed / 1e9:g} Gbps' if speed else ''}"


def _private_names(run: Run) -> set[str]:
    """Of hosts and users, as a text may hold them as a word."""
    names = {str(run.facts.get("hostname") or ""), run.label or ""}
    names |= {host for launch in run.launches.values() for host in launch.hosts}
    names |= {str(host.get("name")) for host in run.facts.get("hosts") or () if isinstance(host, dict)}
    with suppress(OSError, KeyError):  # a user without a name
        names.add(getpass.getuser())
    return {name.lower() for name in names} | {name.partition(".")[0].lower() for name in names}


def _without(value: Any, names: set[str]) -> Any:
    """The same without words that are private, in every text of it."""
    if isinstance(value, dict):
        return {key: _without(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [_without(each, names) for each in value]
    if not isinstance(value, str):
        return value
    words = value.replace("GNU/Linux", "GNU Linux").split()
    return " ".join(word for word in words if word.strip("(),:;").lower() not in names and not _PRIVATE.search(word))
