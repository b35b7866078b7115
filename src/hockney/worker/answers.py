"""The worker's answers as values: one JSON object a line, after a prefix. docs/protocol.md describes each.

A field that is missing, unknown or out of range is a ProtocolError. Numbers stay as the worker gave them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from hockney.worker.errors import ProtocolError

PREFIX = b"@hk "

Int = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
Positive = Annotated[int, Field(ge=1, lt=1 << 63)]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Number = Annotated[float, Field(ge=-1e18, le=1e18, allow_inf_nan=False)]
Time = Annotated[float, Field(gt=0, le=1e18, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Answer(_Strict):
    v: Literal[1]
    id: Int  # the number of the command that it answers


class Rank(_Strict):
    """The place of one rank. `cpu` is -1 if the system does not say, and `cpus_usable` then 0.

    `machine` is the kernel, whose CPUs containers share; `network` the network namespace.
    """

    rank: Int
    host: str
    machine: str
    network: str
    pid: Int
    cpu: Int
    cpus_usable: Int
    bound: str
    strangers: Count

    @property
    def host_key(self) -> tuple[str, str, str]:
        """What tells hosts apart: containers on one machine are hosts, and so are two machines of one name."""
        return self.machine, self.host, self.network


class HelloAnswer(_Answer):
    """The job. `clock_ns` is the cost of reading the clock; `floor_why` says why there is no floor, if so."""

    kind: Literal["hello"]
    worker: str
    family: str
    transport: str
    library: str
    size: Positive
    ranks: tuple[Rank, ...]
    clock_ns: Number
    floor_why: str | None


class MeasureAnswer(_Answer):
    """One measurement of one point: `elapsed_ns[rank][sample]` is the time of one batch of `batch` repetitions.

    One row may summarise all `ranks` of a model. docs/metrics.md says how samples become a figure.
    """

    kind: Literal["measure"]
    pattern: str
    transport: str
    size: Positive
    bytes: Count
    batch: Positive
    samples: Positive
    warmup: Count
    timed: Annotated[str, Field(pattern=r"^(root|mean|sources|slowest|rank \d{1,6})$")]
    divisor: Positive
    algorithm: str | None
    bytes_per_rep: Count
    messages_per_rep: Count
    elapsed_ns: list[list[Count]]
    cpu_user_ns: tuple[Count, ...]
    cpu_system_ns: tuple[Count, ...]
    wall_ns: tuple[Count, ...]
    floor_ns: tuple[Time, Time] | None
    floor_kind: Literal["line", "transport"] | None
    pace_ns: tuple[tuple[Time, ...], tuple[Time, ...]] | None
    solo_ns: tuple[Time, Time] | None
    wake_ns: tuple[Time, Time] | None
    started_ns: Int | None
    counters: dict[str, tuple[Number, ...]]
    verified: bool
    ranks: Literal["summary"] | None = None
    least_ns: list[Count] | None = None
    most_ns: list[Count] | None = None

    @model_validator(mode="after")
    def _is_complete(self) -> MeasureAnswer:
        rows = self.size if self.ranks is None else 1
        of_ranks = (self.elapsed_ns, self.cpu_user_ns, self.cpu_system_ns, self.wall_ns, *self.counters.values())
        if any(len(row) != rows for row in (*of_ranks, *(self.pace_ns or ()))):
            raise ValueError("it does not have a number for each rank")
        if any(len(row) != self.samples for row in (*self.elapsed_ns, self.least_ns, self.most_ns) if row is not None):
            raise ValueError("it does not have a time for each sample")
        if self.timed.startswith("rank ") and int(self.timed[5:]) >= rows:
            raise ValueError(f"the timed {self.timed} does not exist")
        return self


class ErrorAnswer(_Answer):
    """Why a command was refused or a point failed; of a corrupt payload also the ranks, the size and the place."""

    kind: Literal["error"]
    code: str
    message: str
    rank: Int = -1
    sender: Int = Field(default=-1, alias="from")
    bytes: Count = 0
    offset: Count = 0


class LostAnswer(_Answer):
    """A rank that ended early. `signal` and `exit` are 0 where it ended otherwise."""

    kind: Literal["lost"]
    rank: Int
    signal: Int
    exit: Int


class ListeningAnswer(_Answer):
    """The numeric address at which rank 0 waits for the others. It becomes part of their command lines."""

    kind: Literal["listening"]
    host: Annotated[str, Field(pattern=r"^[0-9A-Fa-f.:]{2,45}(%[A-Za-z0-9_.-]{1,15})?$")]
    port: Annotated[int, Field(ge=1, le=65535)]


class ByeAnswer(_Answer):
    """The end of the job."""

    kind: Literal["bye"]


Answer = HelloAnswer | MeasureAnswer | ErrorAnswer | LostAnswer | ListeningAnswer | ByeAnswer
_ANSWER: TypeAdapter[Answer] = TypeAdapter(Annotated[Answer, Field(discriminator="kind")])


def parse(line: bytes) -> Answer:
    """A line without its prefix as an answer. Raises ProtocolError."""
    try:
        return _ANSWER.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(word) for word in first["loc"])
        raise ProtocolError(f"a wrong answer of the worker: {where or 'all of it'}: {first['msg']}") from error
