"""Hosts that get worse from run to run, each by its rates over the usual rate of the run: drift of all cancels.

One run alone is no sign: a host may be busy for a night. Two in a row are, if both are below what is usual for this
host, by 7 % and by 2.5 standard deviations of its own earlier runs. Runs in which it was worse are not usual: it stays
named until it recovers. Of all hosts together one run is a sign where the usual rate itself is lower by a quarter.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from hockney.analysis.health.matrices import Matrices

NIGHT, WORSE = "night", "worse_hosts"  # in the stored facts: Night and Worse, of each run of health
RUNS_MAX = 16  # that are looked back to
NIGHTS_MAX = 366
"""Runs that are read: what has been worse in as many is usual."""
ALL = ""  # instead of a host: all of them
_EARLIER_MIN = 3  # runs before the two
_LOSS, _LOSS_OF_ALL = 0.93, 0.75
_DEVIATIONS = 2.5
_DEVIATION_MIN = 0.01  # less is the scatter of any network

Night = dict[str, dict[str, Annotated[float, Field(gt=0)]]]
"""A run by host, what it `sends` and `receives`: shares of the usual rate; ALL: the usual rate itself, in bytes/s."""


@dataclass(frozen=True)
class Worse:
    """What a host sends or receives now and in the run before, and what was usual for it in earlier `runs`.

    In shares of the usual rate of each run; of ALL in bytes/s.
    """

    host: str
    way: str  # sends, receives; of ALL: usual
    now: Annotated[float, Field(gt=0)]
    before: float
    usual: float
    runs: int


def night_of(known: Matrices) -> Night:
    """The values of a run; none without a rate."""
    usual = known.usual_bytes_per_s
    if not usual:
        return {}
    night: Night = {ALL: {"usual": usual}}
    for number, name in enumerate(known.hosts):
        for end, way in enumerate(("sends", "receives")):
            rates = [rate.value for pair, rate in known.bytes_per_s.items() if pair[end] == number]
            if rates:
                night.setdefault(name, {})[way] = statistics.median(rates) / usual
    return night


def worse_hosts(now: Night, earlier: Sequence[tuple[Night, Collection[tuple[str, str]]]]) -> Iterator[Worse]:
    """What is worse in a run and in the one before than in the `earlier` ones: each with what was worse there already.

    Oldest first.
    """
    for host, ways in now.items():
        for way, value in ways.items():
            known = [(night[host][way], (host, way) in worse) for night, worse in earlier if way in night.get(host, {})]
            if not known:
                continue
            before, _ = known.pop()
            values = [each for each, is_worse in known if not is_worse][-RUNS_MAX:]
            if len(values) < _EARLIER_MIN:
                continue
            usual = statistics.median(values)
            scatter = 1.4826 * statistics.median(abs(each / usual - 1) for each in values)
            limit = min(_LOSS, 1 - _DEVIATIONS * max(scatter, _DEVIATION_MIN)) * usual
            is_sudden = host == ALL and value < _LOSS_OF_ALL * usual
            if max(value, before) < limit or is_sudden:
                yield Worse(host, way, value, before, usual, len(values))
