"""What a communication library of this machine has to say of itself: how a worker is built for it and started by it.

Each family of workers but the native one has a module that finds its libraries (mpi.py, …) and one line in catalogue.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from hockney.worker.build import Recipe

Item = TypeVar("Item")
Answer = TypeVar("Answer")

REPAIR = "repair or remove this library"


class Library(Protocol):
    """One library. `id` names it in transports: `mpi@openmpi-4.1.4`; `name` is for people: `Open MPI 4.1.4`.

    `kind` is the name of its launcher in launch.LAUNCHERS, `program` that launcher's executable.
    """

    @property
    def id(self) -> str:
        """`base@library`, as transports are named."""
        ...

    @property
    def name(self) -> str:
        """For people."""
        ...

    @property
    def kind(self) -> str:
        """Which launcher starts its jobs."""
        ...

    @property
    def program(self) -> Path:
        """The launcher's executable."""
        ...

    @property
    def is_wheel(self) -> bool:
        """From a Python environment: its programs must not see the system's LD_LIBRARY_PATH."""
        ...

    @property
    def recipe(self) -> Recipe:
        """How the worker for this library is built."""
        ...


def side_by_side(ask: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
    """The answer of each, in order: who asks programs mostly waits. One after another where threads can't be had."""
    answers: dict[int, Answer] = {}

    def put(place: int) -> None:
        with contextlib.suppress(Exception):  # raised below
            answers[place] = ask(items[place])

    threads = [threading.Thread(target=put, args=(place,), daemon=True) for place in range(len(items))]
    with contextlib.suppress(RuntimeError):  # a limit of threads or memory
        for thread in threads:
            thread.start()
    for thread in threads:
        if thread.ident is not None:
            thread.join()
    return [answers[place] if place in answers else ask(item) for place, item in enumerate(items)]


def unique_id(plain: str, taken: Container[str]) -> str:
    """`plain`, or `plain~2` and so on where it is taken: two builds of one version, in two folders."""
    names = itertools.chain([plain], (f"{plain}~{count}" for count in itertools.count(2)))
    return next(name for name in names if name not in taken)


@dataclass(frozen=True)
class Unusable:
    """A compiler wrapper that can't be used: why, and what to do."""

    wrapper: Path
    reason: str
    how: str = REPAIR
