"""From the words of `hockney run` to a suite and its options."""

from __future__ import annotations

import itertools
import os
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from hockney.cli.common import names, read_count
from hockney.errors import UsageError, unknown
from hockney.files import named_bytes
from hockney.machine.placement import can_pin, refuse_unusable
from hockney.render.streams import remark
from hockney.report.commands import typed
from hockney.suites import Limits, Suite, builtin_names, load_suite, pattern_suite
from hockney.suites.tools import benchmark_of, load_named, tool_suite
from hockney.units import RANKS_MAX, parse_frequency_hz, parse_sizes, parse_time_ns
from hockney.worker.background import BACKGROUNDS
from hockney.worker.catalogue import LIST_MAX, load, matches, native_patterns
from hockney.worker.hosts import Host, current_allocation, parse_hosts, read_hostfile
from hockney.worker.placement import Placement
from hockney.worker.points import RunOptions
from hockney.worker.starters import check_launcher, refuse_outside_slurm
from hockney.worker.words import check_words


def find_suite(what: str, *, on_hosts: bool = False) -> Suite:
    """A suite, patterns and benchmarks with commas between them (see pattern_suite), or a file. Raises UsageError."""
    if what == "health":
        raise UsageError("health is a separate command", argv=("hockney", "health", "--hosts", "n[1-8]"))
    if what in builtin_names():
        return load_named(what)
    if what.endswith(".toml"):
        return load_suite(what, check=_check)
    if of_group := tool_suite(what):
        return of_group
    patterns = native_patterns()
    words = [word.strip() for word in what.split(",")]
    benchmarks = {word: found for word in words if (found := benchmark_of(word))}
    strange = next((word for word in words if word not in patterns and word not in benchmarks), None)
    if strange is None:
        spread = [name for name, pattern in patterns.items() if on_hosts and pattern.uses_all_ranks]
        return pattern_suite(*words, with_all_ranks=spread, benchmarks=benchmarks)
    if Path(strange).is_file():
        raise UsageError(f"{strange} is not a suite: the name of a suite's file ends in .toml")
    if len(words) > 1:
        raise unknown("pattern", strange, patterns, listed_by=("hockney", "list"))
    catalogue = load()
    if (
        "@" in what
        or catalogue.missing_for(what)
        or any(matches(what, transport) for transport in catalogue.transports)
    ):
        catalogue.select([what])  # raises where no library is called so
        raise UsageError(f"{what} is a transport: {typed('run', 'pingpong', '-t', what)}")
    raise unknown("suite or pattern", what, [*builtin_names(), *patterns], listed_by=("hockney", "list"))


def _check(suite: Suite) -> list[tuple[str, str]]:
    words = {*suite.transports, *(word for series in suite.series for word in series.transports)}
    return check_words(suite, "series", load(sorted(words)))


def read_options(words: Mapping[str, Any]) -> RunOptions:
    """The options of `run`, by their parameters' names; `predict` has some of them. Raises UsageError.

    A word that needs no reading goes to the field with its name.
    """
    transports, machine = names("--transport", words.get("transport", ())), words.get("machine")
    placement = read_placement(words)
    if ":" in (machine or ""):
        raise UsageError(f"--machine takes the variants that the model names; for one of them: -t sim@{machine}")
    background, background_ranks = _background(words.get("background"))
    options, deadline_ns, mean_bytes = _pattern_options(words["options"])
    sizes = parse_sizes(",".join(words["sizes"])) if words["sizes"] else mean_bytes
    if background is not None and placement.map_by != "core" and not placement.hosts:
        raise UsageError("--background places all ranks itself: name the CPUs with --cpus, in place of --map")
    read = {
        "transports": transports,
        "ranks": tuple(read_count("ranks", RANKS_MAX, word) for word in names("--ranks", words["ranks"])),
        "sizes": sizes or (() if deadline_ns is None else (1024,)),  # each size is a separate search
        "options": options,
        "placement": placement,
        "deadline_ns": deadline_ns,
        "background": background,
        "background_ranks": background_ranks,
    }
    return RunOptions(**{**_of(RunOptions, words), **read})


def read_limits(suite: Suite, words: Mapping[str, Any]) -> Limits:
    """The limits of a suite, with those of the options in their place."""
    return suite.limits(**_of(Limits, words))


def _of(settings: type[RunOptions | Limits], words: Mapping[str, Any]) -> dict[str, Any]:
    """The words that are fields of these settings."""
    return {each.name: words[each.name] for each in fields(settings) if each.name in words}


def _background(word: str | None) -> tuple[str | None, int | None]:
    """`incast:3` -> ("incast", 3); the number may be missing. Raises UsageError."""
    name, colon, ranks = (word or "").partition(":")
    if word is not None and name not in BACKGROUNDS:
        raise unknown("background", name, BACKGROUNDS)
    return name or None, read_count("ranks", RANKS_MAX, ranks) if colon else None


def read_placement(words: Mapping[str, Any]) -> Placement:
    """The options that say where ranks run, and what starts them. Raises UsageError."""
    hosts, cpus = _read_places(words)
    map_by, interface = words.get("map_by"), words.get("interface")
    if map_by is not None and not hosts and not can_pin():
        raise UsageError("ranks can't be placed here, because the system refuses to pin them: leave out --map")
    if interface is not None and len(hosts) < 2 and not words.get("machine"):
        raise UsageError("--interface is for messages between hosts: name them with --hosts")
    per_host = tuple(read_count("per-node", RANKS_MAX, word) for word in names("--per-node", words.get("per_node", ())))
    if per_host and len(hosts) < 2:
        raise UsageError("--per-node places ranks on several hosts: name them with --hosts")
    asked, source = words.get("launcher"), "--launcher"
    if asked is None:
        asked, source = os.environ.get("HOCKNEY_LAUNCHER") or "auto", "HOCKNEY_LAUNCHER"
    check_launcher(asked, source)
    refuse_outside_slurm(asked, os.environ)
    return Placement(
        hosts=hosts,
        per_host=tuple(dict.fromkeys(per_host)),
        one_per_host=bool(hosts) and not words.get("hosts") and words.get("hostfile") is None,
        cpus=cpus,
        launcher=asked,
        map_by=map_by or "core",
        interface=interface,
    )


def _read_places(words: Mapping[str, Any]) -> tuple[tuple[Host, ...], tuple[int, ...]]:
    """The hosts, and the CPUs of `--cpus`. Raises UsageError.

    Without --hosts and --hostfile the hosts are those of the allocation that we are in. `--hosts local` is this host.
    """
    named, hostfile, cpus = words.get("hosts"), words.get("hostfile"), read_cpus(words.get("cpus", ()))
    hosts: tuple[Host, ...] = ()
    if hostfile is not None:
        hosts = read_hostfile(hostfile)
    elif named and named != ("local",):
        hosts = parse_hosts(",".join(named))
    elif named == () and not cpus and not words.get("machine"):
        hosts = _hosts_of_allocation()
    return hosts, cpus


def _hosts_of_allocation() -> tuple[Host, ...]:
    """Those of the allocation that we are in, if it has several; a line says so."""
    allocation = current_allocation()
    if allocation is None or len(allocation.hosts) == 1:
        return ()
    first = ", ".join(host.name for host in allocation.hosts[:4]) + (", …" if len(allocation.hosts) > 4 else "")
    remark(f"On the {len(allocation.hosts)} hosts of {allocation}: {first} (this host alone: --hosts local).")
    return allocation.hosts


def read_cpus(words: Sequence[str]) -> tuple[int, ...]:
    """`0,4-6` -> (0, 4, 5, 6), the first rank's first. Raises UsageError."""
    cpus: list[int] = []
    for word in names("--cpus", words):
        match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", word, re.ASCII)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise UsageError(f"'{word}' is not a CPU: write its number, or several as 0,2 or 0-3")
        cpus += range(first, last + 1)
    refuse_unusable(cpus)
    return tuple(cpus)


def _pattern_options(words: Sequence[str]) -> tuple[tuple[tuple[str, str], ...], float | None, tuple[int, ...]]:
    """The options of patterns, the deadline of a search in ns, and the mean of a file of sizes. Raises UsageError.

    `window=16` is ("window", "16") and `rate=100k/s` is ("rate_hz", "100000"). `rate=max` with `deadline=1ms` searches
    a rate, so it begins without one: ("rate_hz", "0"). `distances=FILE` is ("distances", "+1-1"), and so are the sizes
    of `fragment=FILE`; `fragment=lognormal:0.5` is ("sigma_percent", "50").
    """
    pairs = dict(parse_pair("an option", word) for word in words)
    fragment = pairs.get("fragment", "fixed")
    mean_bytes: tuple[int, ...] = ()
    if "lognormal" in fragment:
        del pairs["fragment"]
        pairs["sigma_percent"] = ",".join(map(_sigma_percent, fragment.split(",")))
    elif not re.fullmatch(r"fixed|[+\-\d]+", fragment):
        pairs["fragment"], mean_bytes = _fragments(Path(fragment))
    distances = pairs.get("distances", "+1")
    if not re.fullmatch(r"[+\-\d]+", distances) and Path(distances).is_file():  # a long list is no name of a file
        pairs["distances"] = _distances(Path(distances))
    rate, deadline = pairs.pop("rate", None), pairs.pop("deadline", None)
    if (rate == "max") != (deadline is not None):
        raise UsageError("rate=max and deadline belong together: write for example -o rate=max -o deadline=1ms")
    if rate is not None:
        pairs["rate_hz"] = "0" if rate == "max" else ",".join(str(parse_frequency_hz(each)) for each in rate.split(","))
    return tuple(pairs.items()), None if deadline is None else parse_time_ns(deadline), mean_bytes


def _sigma_percent(word: str) -> str:
    """`lognormal:0.5` -> `50`, `fixed` -> `0`. Raises UsageError."""
    match = re.fullmatch(r"lognormal:([0-3](?:\.\d\d?)?)", word.strip(), re.ASCII)
    if word != "fixed" and (match is None or not 0 < float(match[1]) <= 3):
        raise UsageError(f"fragment={word} is no distribution: write for example lognormal:0.5, from 0.01 to 3")
    return f"{100 * float(match[1]):.0f}" if match else "0"


def _fragments(path: Path) -> tuple[str, tuple[int, ...]]:
    """The sizes in a file, as +512+2048, and their mean. Raises UsageError.

    Of more than LIST_MAX sizes the means of as many classes, each with the same number of them.
    """
    words = re.findall(r"[^\s,]+", named_bytes(path, "sizes of fragments").decode(errors="replace")) or [""]
    strange = next((word for word in words if not re.fullmatch(r"0*[1-9]\d{0,8}", word, re.ASCII)), None)
    if strange is not None:
        raise UsageError(
            f"'{strange}' in {path} is no size of a fragment: write whole numbers of bytes such as 512 2048"
        )
    sizes = sorted(map(int, words))
    classes = min(len(sizes), LIST_MAX)
    ends = [len(sizes) * place // classes for place in range(classes + 1)]
    means = [statistics.fmean(sizes[first:end]) for first, end in itertools.pairwise(ends)]
    return "".join(f"+{mean:.0f}" for mean in means), (round(statistics.fmean(sizes)),)


def _distances(path: Path) -> str:
    """The numbers in a file, with signs: +1-1. Raises UsageError."""
    numbers = re.split(r"[\s,]+", named_bytes(path, "distances").decode(errors="replace").strip())
    strange = next((number for number in numbers if not re.fullmatch(r"[+-]?0*[1-9]\d{0,8}", number, re.ASCII)), None)
    if strange is not None:
        raise UsageError(f"'{strange}' in {path} is no distance: write whole numbers such as 1 -1 64")
    if len(numbers) > LIST_MAX:
        raise UsageError(f"{path} has {len(numbers)} distances: {LIST_MAX} are the most")
    return "".join(f"{int(number):+d}" for number in numbers)


def parse_pair(what: str, word: str) -> tuple[str, str]:
    """`window=16` -> ("window", "16"). Raises UsageError."""
    name, equals, value = word.partition("=")
    if not name or not equals:
        raise UsageError(f"'{word}' is not {what}: write NAME=VALUE")
    return name, value
