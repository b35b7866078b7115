"""A communication library of this machine: how a worker is built for it, and how its jobs start."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hockney.worker.build import Recipe

Item = TypeVar("Item")
Answer = TypeVar("Answer")

REPAIR = "repair or remove this library"


@dataclass(frozen=True)
class Library:
    """One library. `id` names it in transports: `mpi@openmpi-4.1.4`; `name` is for people: `Open MPI 4.1.4`.

    `kind` is the name of its launcher in launch.LAUNCHERS, `program` that launcher's executable. `is_wheel`: from a
    Python environment, whose programs must not see the system's LD_LIBRARY_PATH.
    """

    id: str
    name: str
    kind: str
    program: Path
    recipe: Recipe
    is_wheel: bool = False


@dataclass(frozen=True)
class Unusable:
    """A compiler wrapper or daemon that can't be used: why, and what to do."""

    path: Path
    reason: str
    how: str = REPAIR


def side_by_side(ask: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
    """The answer of each, in order: who asks programs mostly waits. `ask` raises nothing."""
    answers: dict[int, Answer] = {}

    def put(place: int) -> None:
        answers[place] = ask(items[place])

    threads = [threading.Thread(target=put, args=(place,)) for place in range(len(items))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answers[place] for place in range(len(items))]


def unique_id(plain: str, taken: Container[str]) -> str:
    """`plain`, or `plain~2` and so on where it is taken: two builds of one version, in two folders."""
    names = itertools.chain([plain], (f"{plain}~{count}" for count in itertools.count(2)))
    return next(name for name in names if name not in taken)
