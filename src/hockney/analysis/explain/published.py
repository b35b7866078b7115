"""The figures of the archive as a Reading: what they stand for among hockney's patterns is data, archive.toml.

The bounds of a published figure are what its print leaves open: its digits, and the factor where the report does not
say whether it counts one direction or both (`times`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hockney.analysis.explain.curve import Curve, Mark, Options, Reading
from hockney.analysis.explain.data import rows_of
from hockney.analysis.explain.finding import scaled
from hockney.archive import Machine, Published
from hockney.stats.fit import Estimate

_SCALE = {"us": 1e3, "MB/s": 1e6}  # to ns and bytes/s

Key = tuple[str, int, Options, str]


def read_machine(machine: Machine) -> Reading:
    """All that was published of a machine, as curves; a machine whose report prints none has none."""
    marks: dict[Key, list[Mark]] = {}
    peaks: dict[Key, Estimate] = {}
    for one in machine.figures:
        for row in _rows(one):
            key = _key(one, row)
            if row["is"] == "peak":
                peaks[key] = _estimate(one, row)
            else:
                marks.setdefault(key, []).append(_MAKERS[row["is"]](one, row))
    return Reading(
        subject=machine.name,
        curves=tuple(
            Curve(
                machine.name,
                *key,
                marks=tuple(sorted(marks.get(key, ()), key=lambda mark: mark.bytes)),
                peak_bytes_per_s=peaks.get(key),
            )
            for key in dict.fromkeys([*marks, *peaks])
        ),
        published=machine.figures,
    )


def estimate_of(one: Published) -> Estimate:
    """A published figure with what its printed digits leave open, in its own unit."""
    value = one.value or 0.0
    return Estimate(value, value - one.within, value + one.within)


def _estimate(one: Published, row: Mapping[str, Any]) -> Estimate:
    """In ns or bytes/s, by the factors that the report leaves open."""
    least, most = row.get("times", (1, 1))
    found = scaled(estimate_of(one), _SCALE[one.unit])
    return Estimate(found.value, found.low * least, found.high * most)


def _rows(one: Published) -> Iterator[Mapping[str, Any]]:
    return (
        row for row in rows_of("archive") if row["report"] == one.report and one.value and one.matches(row["where"])
    )


def _key(one: Published, row: Mapping[str, Any]) -> Key:
    options = {name: str(one.get(column)) for name, column in row.get("options", {}).items()}
    options.update(row.get("fixed", {}))
    # Reports spell a mode as they like; ours are words without a hyphen.
    told = tuple(sorted((name, value.replace("non-", "non")) for name, value in options.items()))
    ranks = row["ranks"]
    return row["pattern"], ranks if isinstance(ranks, int) else int(one.at[ranks]), told, row.get("state", "")


def _time(one: Published, row: Mapping[str, Any]) -> Mark:
    return Mark(_bytes(one, row), _estimate(one, row))


def _rate(one: Published, row: Mapping[str, Any]) -> Mark:
    """A rate at a size is a time."""
    size, rate = _bytes(one, row), _estimate(one, row)
    return Mark(size, Estimate(1e9 * size / rate.value, 1e9 * size / rate.high, 1e9 * size / rate.low))


def _half(one: Published, row: Mapping[str, Any]) -> Mark:
    """The smallest number of words that reaches half the best rate: one word fewer did not."""
    size, words = _bytes(one, row), float(one.at["words"])
    time_ns = 1e9 * size / ((one.value or 0.0) * _SCALE[one.unit])
    return Mark(size, Estimate(time_ns, time_ns * (words - 1) / words, time_ns))


_MAKERS = {"time": _time, "rate": _rate, "half": _half}


def _bytes(one: Published, row: Mapping[str, Any]) -> int:
    size = one.get("bytes") if "bytes" not in row else row["bytes"]
    return int(size or 0)
