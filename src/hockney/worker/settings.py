"""What an MPI library lets its users choose: algorithms of operations, and thresholds, as the library itself says.

The worker of a library prints its control variables (MPI_T) without starting a job. They also show whether a setting
was taken: the worker reads them in the environment that a job would have.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hockney.errors import UsageError
from hockney.units import format_bytes
from hockney.worker.catalogue import TransportInfo
from hockney.worker.errors import ProtocolError
from hockney.worker.programs import ProgramFailed, answer_of, output_of

_LIMIT_S = 20.0
KINDS = ("openmpi", "mpich", "intel")
"""The kinds of libraries (Library.kind) that can be asked."""


class Variable(BaseModel):
    """A control variable. `value`: in that environment; None if it has none. `words`: of an enumeration."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: str = Field(pattern=r"^[A-Za-z0-9_]+$", max_length=255)
    constant: bool
    value: int | str | None
    words: dict[str, int]
    about: str


class _Variables(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    v: int
    kind: str = Field(pattern="^variables$")
    id: int
    variables: list[Variable]


@dataclass(frozen=True)
class Choice:
    """One choice: an algorithm, which a rules file calls `word`, or variables that a job has in its `environment`.

    `expected`: the library's variables that then have these values. `is_threshold`: it is of all operations and sizes.
    """

    name: str
    word: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)
    expected: Mapping[str, int] = field(default_factory=dict, hash=False)
    is_threshold: bool = False

    @property
    def can_be_verified(self) -> bool:
        """Whether the library shows that it takes it: a rules file by what it refuses, a variable by its value."""
        return not self.environment or bool(self.expected)


DEFAULT = Choice("default")


def kind_of(transport: TransportInfo) -> str:
    """The kind of its library; "" without one."""
    return transport.library.kind if transport.library is not None else ""


def variables(
    transport: TransportInfo, prefixes: Iterable[str], environment: Mapping[str, str] | None = None
) -> dict[str, Variable]:
    """The library's variables whose names begin so, by name, in our environment with these changes.

    Raises UsageError for a transport without a library that can be asked, ProtocolError.
    """
    if kind_of(transport) not in KINDS or transport.library is None:
        raise UsageError(f"{transport.name} cannot be tuned: choose an MPI: Open MPI, MPICH or Intel MPI")
    hidden = {"LD_LIBRARY_PATH"} if transport.library.is_wheel else set()
    ours = {name: value for name, value in os.environ.items() if name not in hidden}
    worker = f"the worker {transport.executable.name}"
    try:
        argv = [str(transport.executable), "--variables", *prefixes]
        said = answer_of(argv, _LIMIT_S, environment={**ours, **(environment or {})})
    except ProgramFailed as error:
        raise ProtocolError(f"{worker} does not print its library's variables: {error}") from error
    lines = [line[4:] for line in said.split("\n") if line.startswith("@hk ")]
    try:
        (answer,) = map(_Variables.model_validate_json, lines)
    except (ValidationError, ValueError) as error:
        raise ProtocolError(f"{worker} does not answer --variables as this version of hockney asks for it") from error
    return {variable.name: variable for variable in answer.variables}


def is_taken(transport: TransportInfo, choice: Choice) -> bool:
    """Whether the library has read a choice's variables. True where it does not show them. Raises as `variables`."""
    known = variables(transport, choice.expected, choice.environment) if choice.expected else {}
    return all(name in known and known[name].value == value for name, value in choice.expected.items())


def algorithms(transport: TransportInfo, operation: str, bytes_max: int) -> list[Choice]:
    """The library's algorithms of a collective operation; empty if it lets nobody choose. Raises as `variables`."""
    if kind_of(transport) == "intel":
        return _of_intel(transport, operation)
    is_mpich = kind_of(transport) == "mpich"
    return _of_mpich(transport, operation) if is_mpich else _of_openmpi(transport, operation, bytes_max)


_SEGMENTS = (8192, 65536)  # the library takes any number


def _of_openmpi(transport: TransportInfo, operation: str, bytes_max: int) -> list[Choice]:
    """Those with a pipeline are also tried with segments. A word is an algorithm, a fan-out and a segment's bytes."""
    name = f"coll_tuned_{operation}_algorithm"
    known = variables(transport, [name]).get(name)
    choices = []
    for word, number in known.words.items() if known is not None else ():
        if number != 0:  # the library's own choice
            choices.append(Choice(word, f"{number} 0 0"))
            if re.search("chain|pipeline|binary|segmented", word):
                cut = [size for size in _SEGMENTS if size < bytes_max]
                choices += [Choice(f"{word} ({format_bytes(size)} segments)", f"{number} 0 {size}") for size in cut]
    return choices


# Rules with these need parameters, too; without them MPICH takes what it finds in memory.
_WITH_PARAMETERS = re.compile(r"k_\w+|(pipelined_)?tree|recexch\w*|recursive_multiplying|ccl")


def _of_mpich(transport: TransportInfo, operation: str) -> list[Choice]:
    """MPICH compares the words of a rules file with texts that its library holds; MPI_T has no list of them."""
    variable = f"MPIR_CVAR_{operation.upper()}_INTRA_ALGORITHM"
    if variable not in variables(transport, [variable]):
        return []
    pattern = rb"(?<=\0)(algorithm=MPIR_%s_(?:intra|allcomm)_(\w+))(?=\0)" % operation.capitalize().encode()
    found = sorted({(name.decode(), word.decode()) for word, name in re.findall(pattern, _library_bytes(transport))})
    return [Choice(name, word) for name, word in found if not _WITH_PARAMETERS.fullmatch(name)]


def _of_intel(transport: TransportInfo, operation: str) -> list[Choice]:
    """Intel MPI names no algorithm. The description of a variable has the range of their numbers."""
    setting = f"I_MPI_ADJUST_{operation.upper()}"
    for variable in variables(transport, ["MPIR_CVAR_USE_"]).values():
        if re.search(rf"@Alias:#\s*{setting}(?!\w)", variable.about):
            found = re.search(r"range: (\d{1,3})-(\d{1,3})(?!\d)", variable.about)
            numbers = range(int(found[1]), int(found[2]) + 1) if found else range(0)
            return [Choice(f"algorithm {number}", str(number), {setting: str(number)}) for number in numbers]
    return []


# ---- thresholds -----------------------------------------------------------------------------------------------------

_THRESHOLDS = {  # of messages between ranks of one host
    "openmpi": r"btl_(vader|sm)_eager_limit",
    "mpich": r"MPIR_CVAR_CH4_(?!\w*GPU)\w*(THRESHOLD|EAGER_MAX_MSG_SIZE)",
    "intel": r"MPIR_CVAR_CH4_\w*EAGER\w*",
}
_UCX = ("UCX_RNDV_THRESH", "UCX_ZCOPY_THRESH")
_UCX_SIZES = (4096, 32768, 262144)


def thresholds(transport: TransportInfo) -> list[Choice]:
    """A quarter and four times each threshold of the library, and sizes for UCX's. Raises as `variables`."""
    before = "OMPI_MCA_" if kind_of(transport) == "openmpi" else ""
    found = [
        _threshold(f"{before}{name}", size, {name: size})
        for name, variable in variables(transport, ["btl_", "MPIR_CVAR_CH4_"]).items()
        if re.fullmatch(_THRESHOLDS[kind_of(transport)], name)
        and isinstance(variable.value, int)
        and variable.value > 4
        for size in (variable.value // 4, variable.value * 4)
    ]
    if "libucp" in output_of(["ldd", str(transport.executable)]):
        known = re.findall(r"^(UCX_\w+)=", output_of(["ucx_info", "-f"]), re.MULTILINE)
        found += [_threshold(name, size, {}) for name in _UCX if name in known for size in _UCX_SIZES]
    return found


def _threshold(variable: str, size: int, expected: Mapping[str, int]) -> Choice:
    return Choice(f"{variable}={size}", str(size), {variable: str(size)}, expected, is_threshold=True)


# ---- MPICH's own rules ----------------------------------------------------------------------------------------------


def selection_trees(transport: TransportInfo) -> dict[str, dict[str, Any]]:
    """MPICH's own rules, by the variable whose file replaces them. They are text in its library.

    Raises ProtocolError if they are not there: a file without them would make MPICH end at other operations.
    """
    text = _library_bytes(transport)
    trees: dict[str, dict[str, Any]] = {}
    for match in re.finditer(rb'\{"collective=[^\0]*', text):
        try:
            tree = json.loads(match[0])
        except ValueError:
            continue
        layer = next((name for mark, name in _LAYERS.items() if mark in match[0]), None)
        if isinstance(tree, dict) and layer is not None:
            trees.setdefault(layer, tree)
    if trees.keys() != set(_LAYERS.values()):
        raise ProtocolError(
            f"the library of {transport.name} does not show its own rules, so none can be added to them"
        )
    return trees


_LAYERS = {
    b"algorithm=MPIR_Bcast_intra_": "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE",
    b"composition=MPIDI_": "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE",
}


def _library_bytes(transport: TransportInfo) -> bytes:
    """The MPI library that a worker loads. Raises ProtocolError."""
    found = re.search(r"=> (/\S*libmpi\w*\.so\S*)", output_of(["ldd", str(transport.executable)]))
    try:
        return Path(found[1]).read_bytes() if found else b""
    except OSError as error:
        raise ProtocolError(f"cannot read {found and found[1]}: {error.strerror}") from error
