"""The patterns and transports that can be measured here, as the built workers describe themselves.

Only the C sources define a pattern's needs and options and a transport's capabilities. They come from `worker
--describe`. Missing things have a reason and a remedy.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hockney.errors import UsageError, unknown
from hockney.model import Limit, PatternTraits, Point, TransportTraits, placed, split_placed
from hockney.units import RANKS_MAX, parse_count
from hockney.worker.build import Recipe, build_worker
from hockney.worker.errors import BuildError, ProtocolError
from hockney.worker.libraries import (
    MPI,
    NATIVE,
    REPAIR,
    SHMEM,
    Found,
    Library,
    Missing,
    find_ofis,
    find_pvms,
    find_ucxs,
    find_zmqs,
    side_by_side,
)
from hockney.worker.programs import ProgramFailed, answer_of

if TYPE_CHECKING:
    from hockney.worker.machine_model import Model

_LIST = "+N-N"  # the last choice of an option that may be numbers with signs
LIST_MAX = 64  # numbers of such an option
_LIMIT_S = 20.0  # for an answer of a worker, whose library may come from a slow file system


@dataclass(frozen=True)
class OptionInfo:
    """One option of a pattern. `choices` is empty for a whole number from `min` to `max`.

    `list_max`: how many numbers with signs, such as +1-1, it takes in place of a choice.
    """

    name: str
    choices: tuple[str, ...]
    default: str
    min: int
    max: int
    help: str
    list_max: int = 0

    def check(self, value: str) -> str | None:
        """Why value is wrong, or None."""
        if self.list_max:
            right = value in self.choices or re.fullmatch(
                rf"([+-][1-9]\d{{0,8}}){{1,{self.list_max}}}", value, re.ASCII
            )
            words = f"{', '.join(self.choices)}, up to {self.list_max} numbers such as +1-1, or a file of them"
            return None if right else f"must be {words}"
        if self.choices:
            return None if value in self.choices else f"must be one of {', '.join(self.choices)}"
        number = parse_count(value, self.max, self.min)
        return None if number is not None else f"must be a whole number from {self.min} to {self.max}"


@dataclass(frozen=True, kw_only=True)
class PatternInfo(PatternTraits):
    """A pattern as the worker describes it (docs/protocol.md). `ranks` is (least, most or 0, a multiple of).

    `kind`: the group in which lists show it. `senders`: the option for the number of ranks besides rank 0 that only
    send; at least one more must receive.
    `collective`: what its option `algorithm` may leave to the transport; such a point needs none of `needs`.
    """

    name: str
    kind: str
    needs: frozenset[str]
    ranks: tuple[int, int, int]
    timed: str
    options: tuple[OptionInfo, ...]
    grain_bytes: int = 0
    senders: str | None = None
    collective: str | None = None

    def traits_on(self, transport: TransportTraits) -> PatternTraits:
        """The stored traits. Nothing arrives over a transport that carries nothing."""
        known = {field.name: getattr(self, field.name) for field in fields(PatternTraits)}
        return PatternTraits(**known | {"payload": self.payload and "payload" in transport.caps})

    def option(self, name: str) -> OptionInfo:
        """The option of that name. Raises UsageError."""
        for option in self.options:
            if option.name == name:
                return option
        if not self.options:
            raise UsageError(f"{self.name} has no options, so no '{name}'")
        raise unknown(f"option of {self.name}", name, [option.name for option in self.options])

    def threads(self, options: Iterable[tuple[str, str]]) -> int:
        """How many threads each rank has, with these options."""
        defaults = {option.name: option.default for option in self.options}
        return int({**defaults, **dict(options)}.get("threads", "1"))

    @property
    def ranks_default(self) -> int:
        """The number of ranks by default: two, if it takes them."""
        least, most, _ = self.ranks
        return least if least == most else max(2, least)

    @property
    def uses_all_ranks(self) -> bool:
        """Whether all ranks of a job take part, and more than one must."""
        return self.links != "ends" and self.ranks[0] > 1

    @property
    def ranks_most(self) -> int:
        """The largest number of ranks."""
        _, most, step = self.ranks
        return most or RANKS_MAX // step * step

    @property
    def bytes_default(self) -> int:
        """The message size by default: 8 B, if it takes them; 0 where it has no sizes."""
        return max(8, self.grain_bytes) if self.sized else 0


@dataclass(frozen=True, kw_only=True)
class TransportInfo(TransportTraits):
    """A transport that is ready here: `base[@library][:variant][/N]`; native ones have no `library`.

    `native`: its own collectives. `model`: the machine that it simulates, if its clock is virtual. `absent`: what this
    system lacks for it, and `remedy`; such ones are missing in a catalogue.
    """

    name: str
    summary: str
    native: frozenset[str]
    max_bytes: int
    executable: Path
    worker_name: str  # its name in the worker
    absent: str | None = None
    remedy: str = ""
    library: Library | None = None
    model: Model | None = None


_ELSE = "use "  # a remedy that begins so names something else: nothing can be done here


@dataclass(frozen=True)
class Catalogue:
    """Patterns and transports by name, in the worker's order, and missing ones."""

    patterns: dict[str, PatternInfo]
    transports: dict[str, TransportInfo]
    missing: tuple[Missing, ...]

    def to_get(self) -> tuple[Missing, ...]:
        """The missing ones that an installation or a repair gives: not what only another machine or transport has."""
        return tuple(each for each in self.missing if not each.how.startswith(_ELSE))

    def pattern(self, name: str) -> PatternInfo:
        """The pattern of that name. Raises UsageError with the nearest name."""
        if name not in self.patterns:
            raise unknown("pattern", name, self.patterns, listed_by=("hockney", "list", "patterns"))
        return self.patterns[name]

    def select(self, words: Iterable[str]) -> list[TransportInfo]:
        """The transports that words name, each once, in the order given.

        `mpi` means every MPI on this machine, `mpi@openmpi` those whose library begins so, `mpi@/opt/a` the one in that
        folder, `tcp:*` all variants of tcp (but `tcp` alone only its plain one), and `mpi:*` those of every MPI.
        `sim@gpmimd` and `sim@FILE.toml:VARIANT` are models of machines. `tcp/2` is tcp with two ranks on each host.
        Raises UsageError for a word that matches none.
        """
        selected: dict[str, TransportInfo] = {}
        for word in words:
            self.add(word)
            meant = [info for info in self.transports.values() if matches(word, info.name)]
            missing = self.missing_for(word)
            if missing is not None:
                raise UsageError(f"{word} is not here: {missing.why}; {missing.how}")
            if not meant:
                raise self._unknown(word)
            selected.update((info.name, info) for info in meant)
        return list(selected.values())

    def _unknown(self, word: str) -> UsageError:
        """The error for a word that names no transport: of a library, with all others of its family that are here."""
        base, library, variant = split_name(word)
        plain = [name for name in self.transports if name.startswith(f"{base}@") and ":" not in name]
        if library and plain and not variant:
            return unknown("transport", word, plain)
        return unknown("transport", word, ["mpi", *self.transports], listed_by=("hockney", "list", "transports"))

    def add(self, word: str) -> None:
        """Adds the transports that a word names by a model, by a folder, or by ranks per host. Raises UsageError."""
        plain, per_host = split_placed(word)
        if per_host.isdecimal():
            self.add(plain)
            for info in [info for info in self.transports.values() if matches(plain, info.name)]:
                self.filling(info, int(per_host))
            return
        base, name, variant = split_name(word)
        if base == "sim":
            if not name:
                raise UsageError(
                    "sim needs a model: write sim@gpmimd or sim@FILE.toml; list the models",
                    argv=("hockney", "list", "machines"),
                )
            if word not in self.transports:
                from hockney.worker.machine_model import load_model  # with pydantic, which light commands do not load

                self.add_model(word, load_model(name, variant))
            return
        if "/" not in name or f"{base}@{name}" in self.transports:
            return
        if base != "mpi" or not name.startswith("/"):
            raise UsageError(f"'{word}' names no MPI: write mpi@ and the whole path of its folder, as mpi@/opt/mpich")
        library = MPI.at(Path(name))
        try:
            if isinstance(library, Missing):
                raise UsageError(f"{word} is not here: {library.why}; {library.how}")
            self.transports.update(_transports_of(library))
        except (BuildError, ProtocolError) as error:
            raise UsageError(f"{word} is not usable: {error.reason}; {error.remedy or REPAIR}") from error

    def filling(self, info: TransportInfo, per_host: int) -> TransportInfo:
        """The transport with this number of ranks on each host; added if it is new."""
        name = placed(info.name, per_host)
        return self.transports.setdefault(name, replace(info, name=name))

    def add_model(self, word: str, model: Model) -> None:
        """Adds the transport `sim@NAME` whose ranks live on a model. Raises UsageError where it cannot be built."""
        try:
            (_, (plain,)), machine = _describe(build_worker(Recipe("sim"))), model.machine
        except (BuildError, ProtocolError) as error:
            raise UsageError(f"{word} is not usable: {error}") from error
        self.transports[word] = replace(
            plain,
            name=word,
            summary=f"model of the {machine.title}{f', {model.variant}' if model.variant else ''}",
            caps=plain.caps
            - ({"one_sided"} if not machine.put and not machine.get else set())
            - ({"stream"} if machine.stream is None else set()),
            native=plain.native & {name for name in ("alltoall", "barrier") if getattr(machine, name)},
            model=model,
        )

    def missing_for(self, word: str) -> Missing | None:
        """The missing thing behind a `word` that names no transport: itself, or the whole family of `pvm:raw`.

        For `mpi` it is the first library that is installed but unusable.
        """
        if any(matches(word, name) for name in self.transports):
            return None
        word = split_placed(word)[0]
        base = word.partition(":")[0]
        words = (word,) if any(matches(base, name) for name in self.transports) else (word, base)
        return next((entry for entry in self.missing if any(matches(word, entry.name) for word in words)), None)

    def obstacles(self, points: Iterable[Point], *, one_host: bool = True) -> dict[Point, str]:
        """Why points cannot be measured, a sentence for each that cannot, as the workers of their transports say.

        `one_host`: all ranks share this host's memory, which their buffers must fit.
        """
        from hockney.worker.machine_model import why_unfit

        by_worker: dict[Path, list[Point]] = {}
        obstacles: dict[Point, str] = {}
        for point in points:
            transport = self.transports[point.transport]
            why = None if transport.model is None else why_unfit(transport.model, point.ranks)
            if why is None:
                by_worker.setdefault(transport.executable, []).append(point)
            else:
                obstacles[point] = why
        for executable, asked in by_worker.items():
            library = self.transports[asked[0].transport].library or NATIVE
            lines = [_fits_line(self.transports[point.transport], point, one_host) for point in asked]
            try:
                rows = _answers(executable, "--fits", len(asked), "".join(lines), library=library)
            except ProtocolError as error:  # the others go on
                obstacles |= dict.fromkeys(asked, str(error))
            else:
                obstacles |= {point: row["why"] for point, row in zip(asked, rows, strict=True) if row.get("why")}
        return obstacles


def _fits_line(transport: TransportInfo, point: Point, one_host: bool) -> str:
    options = "".join(f" {name}={value}" for name, value in point.idle.options)
    ranks = f"{point.ranks} {point.ranks if one_host else 0}"
    return f"{transport.worker_name} {ranks} measure pattern={point.pattern} bytes={point.bytes}{options}\n"


def split_name(name: str) -> tuple[str, str, str]:
    """`mpi@openmpi-4.1.4:sync/2` -> base, library, variant; those that are absent are empty."""
    rest, _, variant = split_placed(name)[0].partition(":")
    base, _, library = rest.partition("@")
    return base, library, variant


def matches(word: str, name: str) -> bool:
    """Whether the word of a user means the transport of that name, as Catalogue.select has it."""
    if word.startswith("sim@"):  # else gpmimd would be gpmimd-calibrated, too
        return name == word
    (name, per_host), (word, wanted) = split_placed(name), split_placed(word)
    if not fnmatch.fnmatchcase(per_host, wanted):
        return False
    if fnmatch.fnmatchcase(name, word):
        return True
    base, library, variant = split_name(name)
    wanted_base, wanted_library, wanted_variant = split_name(word)
    # The name of a provider may begin with that of another: tcp and tcp-rxm.
    is_whole = "/" in wanted_library or (base == "ofi" and bool(wanted_library))
    return (
        bool(library)
        and bool(variant) == bool(wanted_variant)  # `mpi:*` is no plain one, as `tcp:*` is not tcp
        and (library == wanted_library if is_whole else library.startswith(wanted_library))
        and fnmatch.fnmatchcase(base, wanted_base)
        and fnmatch.fnmatchcase(variant, wanted_variant)
    )


# How the libraries of each family but the native one are found, and the family's name and packages.
_FAMILIES: dict[str, tuple[Callable[[], Found], str, str]] = {
    "mpi": (MPI, "MPI", "libopenmpi-dev openmpi-bin"),
    "shmem": (SHMEM, "OpenSHMEM", "libopenmpi-dev openmpi-bin"),
    "pvm": (find_pvms, "PVM", "pvm pvm-dev"),
    "zmq": (find_zmqs, "ZeroMQ", "libzmq3-dev"),
    "ucx": (find_ucxs, "UCX", "libucx-dev ucx-utils"),
    "ofi": (find_ofis, "libfabric", "libfabric-dev libfabric-bin"),
}


def load(
    words: Iterable[str] | None = None, *, recipe: Recipe | None = None, libraries: Sequence[Library] | None = None
) -> Catalogue:
    """The patterns and transports of every worker that is built, or can be built, here.

    `words` name the transports that are wanted: libraries of other families are not searched for. `libraries`: these
    and no others. Raises BuildError without a native worker. A library whose worker cannot be built is missing.
    """
    native = build_worker(recipe or Recipe())
    patterns, of_native = _describe(native)
    described = {info.name: info for info in of_native}
    missing: list[Missing] = []
    usable = list(libraries or ())
    families = _named(words, described) if libraries is None else []
    searches = side_by_side(lambda name: _FAMILIES[name][0](), families)
    for name, (working, unusable) in zip(families, searches, strict=True):
        usable += working
        missing += unusable
        if not working:
            _, title, packages = _FAMILIES[name]
            how = f"install one, for example: apt install {packages}"
            missing.append(Missing(name, f"no {title} was found", how))
    for library in usable:
        try:
            described |= _transports_of(library)
        except (BuildError, ProtocolError) as error:  # noqa: PERF203 - a few libraries
            missing.append(Missing(library.id, error.reason, error.remedy or REPAIR))
    absent = [Missing(info.name, info.absent, info.remedy) for info in described.values() if info.absent is not None]
    transports = {name: info for name, info in described.items() if info.absent is None}
    return Catalogue(patterns, transports, (*absent, *missing))


def _transports_of(library: Library) -> dict[str, TransportInfo]:
    """The transports in a library's worker, by name. Raises BuildError, ProtocolError."""
    transports = {}
    for info in _describe(build_worker(library.recipe), library)[1]:
        variant = info.name.partition(":")[2]
        name = f"{library.id}:{variant}" if variant else library.id
        transports[name] = replace(info, name=name, library=library)
    return transports


def _named(words: Iterable[str] | None, native: Iterable[str]) -> list[str]:
    """The families that words name; all of them without words, or where one is misspelt."""
    bases = ["*"] if words is None else [split_name(word)[0] for word in words]
    names = [*_FAMILIES, "sim", *native]
    if not all(fnmatch.filter(names, base) for base in bases):
        return [*_FAMILIES]
    return [name for name in _FAMILIES if any(fnmatch.fnmatchcase(name, base) for base in bases)]


def native_patterns() -> dict[str, PatternInfo]:
    """All patterns by name; every family of workers has the same. Raises BuildError, ProtocolError."""
    return _describe(build_worker())[0]


def describe(executable: Path, library: Library = NATIVE) -> dict[str, Any]:
    """A worker's description of itself. Each start asks for it: a library that a worker was built with may be gone.

    Raises ProtocolError.
    """
    return _answers(executable, "--describe", 1, library=library)[0]


def _answers(
    executable: Path, flag: str, count: int, text: str = "", *, library: Library = NATIVE
) -> list[dict[str, Any]]:
    """This number of answers of a worker, without starting a job. Raises ProtocolError.

    A worker of a Python environment's library must not see the system's ones.
    """
    worker = f"the worker {executable.name}"
    hidden = ("LD_LIBRARY_PATH",) if library.is_wheel else ()
    environment = {name: os.environ[name] for name in os.environ if name not in hidden} | dict(library.environment)
    try:
        said = answer_of([executable, flag], _LIMIT_S, data=text.encode(), environment=environment)
    except ProgramFailed as error:
        raise ProtocolError(f"{worker} does not run: {error}") from error
    lines = [line[4:] for line in said.split("\n") if line.startswith("@hk ")]
    with suppress(ValueError):
        rows = [row for row in map(json.loads, lines) if isinstance(row, dict)]
        if len(rows) == len(lines) == count and all(isinstance(row.get("why", ""), str | None) for row in rows):
            return rows
    raise ProtocolError(f"{worker} does not answer {flag} as this version of hockney asks for it")


def _describe(executable: Path, library: Library = NATIVE) -> tuple[dict[str, PatternInfo], list[TransportInfo]]:
    """The patterns and transports of a worker. Raises ProtocolError."""
    described = describe(executable, library)
    try:
        patterns = {row["name"]: _pattern(row) for row in described["patterns"]}
        return patterns, [_transport(row, executable) for row in described["transports"]]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ProtocolError(f"the worker {executable.name} describes itself wrongly: {error}") from error


# The rows of `--describe` have the names of these classes' fields; a name too many or too few is a TypeError.
def _pattern(row: dict[str, Any]) -> PatternInfo:
    options = tuple(_option(option) for option in row["options"])
    return PatternInfo(**{**row, "needs": frozenset(row["needs"]), "ranks": tuple(row["ranks"]), "options": options})


def _option(row: dict[str, Any]) -> OptionInfo:
    choices = tuple(row["choices"].split("|")) if row["choices"] else ()
    default = choices[row["default"]] if choices else str(row["default"])
    words = tuple(word for word in choices if word != _LIST)
    return OptionInfo(**{**row, "choices": words, "default": default}, list_max=LIST_MAX * (words != choices))


def _transport(row: dict[str, Any], executable: Path) -> TransportInfo:
    sets = {name: frozenset(row[name]) for name in ("caps", "native")}
    limits = tuple(Limit(**limit) for limit in row["limits"])
    return TransportInfo(**{**row, **sets, "limits": limits}, executable=executable, worker_name=row["name"])
