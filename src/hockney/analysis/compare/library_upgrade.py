"""Which transports of two runs, or of a run and this machine, differ in the version of their library only."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hockney.worker.catalogue import split_name

_VERSION = re.compile(r"-\d.*")


def renamed(before: Iterable[str], after: Iterable[str]) -> dict[str, str]:
    """Old name -> new name: `mpi@openmpi-4.1.4` -> `mpi@openmpi-5.0.1`.

    Only where one library of a kind is gone and one has come.
    """
    gone, come = set(before) - set(after), set(after) - set(before)
    kinds: dict[tuple[str, str, str], tuple[list[str], list[str]]] = {}
    for side, names in enumerate((gone, come)):
        for name in names:
            base, library, variant = split_name(name)
            if library:
                kinds.setdefault((base, _VERSION.sub("", library), variant), ([], []))[side].append(name)
    return {old[0]: new[0] for old, new in kinds.values() if len(old) == len(new) == 1}
