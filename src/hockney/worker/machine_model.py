"""A model of a machine: its TOML file, on top of its base's, with the overrides of a variant.

machine_schema.py has the keys; machine_text.py makes the lines that the sim worker reads.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hockney.errors import HockneyError, UsageError, unknown
from hockney.worker.machine_schema import MachineModel, Torus
from hockney.worker.toml_models import read_toml, toml, validated

MODELS = Path(__file__).parents[1] / "archive" / "models"


@dataclass(frozen=True)
class Model:
    """A model by its name, with the overrides of a variant; `content` is its whole file, `key` a hash of that."""

    name: str
    variant: str
    content: Mapping[str, Any]
    machine: MachineModel

    @classmethod
    def from_content(cls, name: str, content: Mapping[str, Any], variant: str = "") -> Model:
        """The model with this content, from a file or not. Raises UsageError with all errors."""
        machine = validated(content, f"{name}:{variant}".rstrip(":"), MachineModel)
        if machine.machine is not None:
            known = _machines_of_archive()
            if machine.machine not in known:
                raise UsageError(f"{name}: {unknown('machine', machine.machine, known)}")
        return cls(name, variant, content, machine)

    @property
    def key(self) -> str:
        """A hash of everything in it."""
        return hashlib.sha256(json.dumps(self.content, sort_keys=True, default=str).encode()).hexdigest()[:16]

    @property
    def record(self) -> dict[str, Any]:
        """The stored form of a model: name, key, all parameters with their sources, and the figures of the fit."""
        machine = self.machine
        return {
            "name": self.name,
            "variant": self.variant,
            "key": self.key,
            "title": machine.title,
            "machine": machine.machine,
            "exact": machine.noise is None,
            "torus": torus_of(machine),
            "parameters": list(_parameters(self.content)),
            "used": [row.model_dump(by_alias=True) for row in machine.used],
            "structure": [row.model_dump() for row in (*machine.structure, *machine.run)],
            "not_modelled": [row.model_dump() for row in machine.not_modelled],
        }

    def variants_for(self, pattern: str, ranks: int, options: Mapping[str, str]) -> Sequence[str]:
        """Which variants measure a point of a suite; "" is the plain model."""
        fitting = (run.variants for run in self.machine.run if run.fits(pattern, ranks, options))
        return next(fitting, ("",))


def torus_of(machine: MachineModel) -> dict[str, list[int]] | None:
    """The dimensions of a torus and the nodes of its ranks; None for another topology."""
    if not isinstance(machine.topology, Torus):
        return None
    dimensions = list(machine.topology.dimensions)
    ranks = range(math.prod(dimensions) * machine.ranks_per_node)
    nodes = [rank // machine.ranks_per_node for rank in ranks] if machine.placement is None else machine.placement.nodes
    return {"dimensions": dimensions, "nodes": list(nodes)}


def builtin_models() -> list[str]:
    """Names of the models that come with hockney."""
    return sorted(path.stem for path in MODELS.glob("*.toml"))


def _machines_of_archive() -> list[str]:
    """Names of the machines that the classic reports measured, also of those without a model."""
    return [row["name"] for row in read_toml(MODELS.parent / "reports.toml", "list of reports")["machine"]]


def load_model(name: str, variant: str = "") -> Model:
    """The model of that name, or in the file whose name ends in .toml. Raises UsageError with all that is wrong."""
    plain = Model.from_content(name, _content(name, bases_left=8))
    variants = plain.machine.variant
    if not variant:
        return plain
    if variant not in variants:
        raise unknown(f"variant of {name}", variant, variants)
    return Model.from_content(name, _merged(plain.content, variants[variant]), variant)


def write_model(model: Model, path: Path, head: str) -> None:
    """Writes the file of a model; `head` is its comment. Raises HockneyError where it cannot be written."""
    try:
        path.write_text(toml(model.content, head), encoding="utf-8")
    except OSError as error:
        raise HockneyError(f"cannot write {path}: {error.strerror}") from error


def _content(name: str, bases_left: int) -> dict[str, Any]:
    """The content of a file, on top of its base's."""
    if name not in builtin_models() and not name.endswith(".toml"):
        if name in _machines_of_archive():
            raise UsageError(
                f"the archive has published figures of {name}, but no model of it; the machines with a model",
                argv=("hockney", "list", "machines"),
            )
        raise unknown("model", name, builtin_models(), listed_by=("hockney", "list", "machines"))
    path = Path(name) if name.endswith(".toml") else MODELS / f"{name}.toml"
    content = read_toml(path, "model")
    base = content.pop("base", None)
    if base is None:
        return content
    if not isinstance(base, str) or not bases_left:
        raise UsageError(f"{path}: base must name another model, which this one changes")
    is_near = base.endswith(".toml") and not Path(base).is_absolute()
    return _merged(_content(str(path.parent / base) if is_near else base, bases_left - 1), content)


def _parameters(table: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, str, str]]:
    """Key, value and source of everything that has a source."""
    for name, value in table.items():
        if name in ("source", "run", "used", "structure", "not_modelled", "variant"):
            continue
        key = f"{place}.{name}".lstrip(".")
        if isinstance(value, dict) and "source" not in table:
            yield from _parameters(value, key)
        elif isinstance(value, list) and value and isinstance(value[0], dict) and "source" not in table:
            for number, item in enumerate(value, 1):
                yield from _parameters(item, f"{key}[{number}]")
        elif "source" in table:
            yield key, _text(value), table["source"]


def _text(value: Any) -> str:
    """A cost as `100 + 0.5/B + 32/packet`, else unchanged from the file."""
    units = {"fixed_ns": "", "per_byte_ns": "/B", "per_packet_ns": "/packet"}
    if isinstance(value, dict) and units.keys() >= value.keys():
        return " + ".join(f"{value[name]}{unit}" for name, unit in units.items() if name in value)
    return value if isinstance(value, str) else json.dumps(value)


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of both; a value or list of the changes replaces the base's."""
    merged = dict(base)
    for name, value in changes.items():
        known = merged.get(name)
        merged[name] = _merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return merged
