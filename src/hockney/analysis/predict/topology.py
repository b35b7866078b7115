"""Topologies that a fitted machine is extended to: `torus:4x4x4`, `mesh:8x8`, or tables of a model's file."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

from hockney.errors import UsageError
from hockney.suites.toml_models import read_toml, validated
from hockney.units import parse_rate_bytes_per_s, parse_time_ns
from hockney.worker.machine_schema import Link

_WORD = re.compile(r"(torus|mesh):(\d{1,6}(?:x\d{1,6})*)")
_TABLES = ("topology", "link", "switch", "tcp", "ranks_per_node", "placement")


def parse_network(topology: str | None, link: str | None, rate_bytes_per_s: float) -> dict[str, Any]:
    """The tables of a model that --topology and --link give; those of a link alone are for a switch.

    Raises UsageError.
    """
    tables = {} if topology is None else parse_topology(topology, rate_bytes_per_s)
    if link is not None:
        if (topology or "").endswith(".toml") and "link" in tables:
            raise UsageError(f"{topology} has links: leave out --link, or its [[link]]")
        given = {**tables.get("link", [{}])[0], **parse_link(link), "source": "asked for"}
        validated(given, f"--link {link}", Link)
        tables["link"] = [given]
    return tables


def parse_link(text: str) -> dict[str, float]:
    """`10Gbit/s,2us` -> the keys of a link in a model; one of the two may be missing. Raises UsageError."""
    link: dict[str, float] = {}
    for word in text.split(","):
        key, parse = ("bytes_per_s", parse_rate_bytes_per_s) if "/" in word else ("latency_ns", parse_time_ns)
        with contextlib.suppress(UsageError):
            link[key] = parse(word)
    if len(link) != text.count(",") + 1:
        raise UsageError(f"'{text}' is no link: write its rate, its latency or both, for example 10Gbit/s,2us")
    return link


def parse_topology(word: str, rate_bytes_per_s: float) -> dict[str, Any]:
    """The tables of a model, by its words or in the file whose name ends in .toml. Raises UsageError.

    Links of a torus or mesh have the rate that was measured between two ranks.
    """
    if word.endswith(".toml"):
        content = read_toml(Path(word), "topology")
        strange = next((name for name in content if name not in _TABLES), None)
        if strange is not None:
            raise UsageError(f"{word}: {strange} is no part of a topology: keep {', '.join(_TABLES)}")
        if "topology" not in content:
            raise UsageError(f'{word} has no [topology]: add one, for example with kind = "torus"')
        return content
    match = _WORD.fullmatch(word)
    if match is None:
        raise UsageError(f"'{word}' is no topology: write torus:4x4x4, mesh:8x8, or a file with [topology]")
    dimensions = list(map(int, match[2].split("x")))
    link = {"bytes_per_s": rate_bytes_per_s, "source": "assumed: as fast as between two ranks"}
    return {"topology": {"kind": match[1], "dimensions": dimensions, "source": "asked for"}, "link": [link]}
