"""Which transports of two runs, or of a run and this machine, are one and the same but for a library's version."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hockney.worker.catalogue import split_name

_VERSION = re.compile(r"-\d.*")


def renamed(before: Iterable[str], after: Iterable[str]) -> dict[str, str]:
    """What is called otherwise now: `mpi@openmpi-4.1.4` -> `mpi@openmpi-5.0.1`.

    Only where one library of a kind is gone and one has come: with more, nobody knows which became which.
    """
    gone, come = set(before) - set(after), set(after) - set(before)
    pairs = {}
    for name in gone:
        kin = [other for other in come if _plain(other) == _plain(name)]
        if len(kin) == 1 and sum(_plain(other) == _plain(name) for other in gone) == 1 and "@" in name:
            pairs[name] = kin[0]
    return pairs


def _plain(name: str) -> tuple[str, str, str]:
    base, library, variant = split_name(name)
    return base, _VERSION.sub("", library), variant
