"""From rules to the files that libraries read."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hockney.analysis.tune.rules import Rule
from hockney.units import printable
from hockney.worker.errors import ProtocolError


@dataclass(frozen=True)
class RuleFiles:
    """The content of files by what follows the name that the user gives, and the variables that make a job read them.

    `{file}` in a variable stands for that name. The first file has the comments. `is_sourced`: and sets the variables.
    """

    texts: Mapping[str, str]
    environment: Mapping[str, str]
    is_sourced: bool = True

    def variables(self, name: str) -> dict[str, str]:
        """The variables of a job, once the files are there."""
        return {variable: value.replace("{file}", name) for variable, value in self.environment.items()}

    def exports(self, name: str) -> list[str]:
        """The variables as a shell sets them."""
        return [f"export {variable}={shlex.quote(value)}" for variable, value in self.variables(name).items()]

    def named(self, name: str) -> dict[str, str]:
        """The content of the files that are called so."""
        exports = "".join(f"{line}\n" for line in self.exports(name)) if self.is_sourced else ""
        return {suffix: text + (exports if suffix == "" else "") for suffix, text in self.texts.items()}


def rule_files(
    kind: str, rules: Sequence[Rule], head: Sequence[str], trees: Mapping[str, dict[str, Any]] | None = None
) -> RuleFiles:
    """The files for a kind of library. `head`: lines about machine, date and versions.

    `trees`: MPICH's own rules (settings.selection_trees). Raises ProtocolError where they are not those that are known.
    """
    comments = "".join(f"# {printable(line, keep='')}\n" for line in (*head, "", *map(str, rules)))
    if any(rule.winner.is_threshold for rule in rules):
        merged = {name: value for rule in rules for name, value in rule.winner.environment.items()}
        return RuleFiles({"": comments}, merged)
    if kind == "intel":
        return RuleFiles({"": comments}, _of_intel(rules))
    if kind == "openmpi":
        return RuleFiles({"": comments + _of_openmpi(rules)}, _RULES_OF_OPENMPI, is_sourced=False)
    files = {f".{number}.json": tree for number, tree in enumerate(_of_mpich(rules, trees or {}).values(), 1)}
    environment = {name: f"{{file}}{suffix}" for name, suffix in zip(trees or {}, files, strict=True)}
    texts = {suffix: json.dumps(tree, indent=1) + "\n" for suffix, tree in files.items()}
    return RuleFiles({"": comments} | texts, environment)


def can_be_ruled(kind: str, operation: str, version: tuple[int, ...] = ()) -> str:
    """Why no rules can be written for an operation; empty if they can. `version`: of the library; (): any."""
    if kind == "openmpi" and operation in ("gather", "allgatherv") and () < version < (4, 1):
        return "Open MPI has no such rules before 4.1"
    known = {"openmpi": _OPENMPI.keys(), "mpich": _MPICH.keys()}.get(kind, {operation})
    return _REFUSED.get((kind, operation)) or ("" if operation in known else "its rules files have no sizes for it")


def _grouped(rules: Iterable[Rule]) -> dict[str, dict[int, list[Rule]]]:
    """By operation and ranks."""
    grouped: dict[str, dict[int, list[Rule]]] = {}
    for rule in rules:
        grouped.setdefault(rule.operation, {}).setdefault(rule.ranks, []).append(rule)
    return grouped


# ---- Open MPI: coll_tuned's dynamic rules, version 1, which 4 and 5 read ---------------------------------------------

# The number of each operation (COLLTYPE in coll_base_functions.h), and whether its size is that of all ranks' blocks.
_OPENMPI = {
    "allgather": (0, True),
    "allgatherv": (1, False),
    "allreduce": (2, False),
    "alltoall": (3, True),
    "barrier": (6, False),
    "bcast": (7, False),
    "gather": (9, True),
    "reduce": (11, False),
    "reduce_scatter": (12, True),
    "reduce_scatter_block": (13, True),
}
_RULES_OF_OPENMPI = {
    "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
    "OMPI_MCA_coll_tuned_dynamic_rules_filename": "{file}",
}
_BY_ELEMENTS = "MPICH chooses by the number of elements, so a rule would not fit other types"
_REFUSED = {
    ("openmpi", "scatter"): "Open MPI chooses by an argument that only the root has to give, so ranks could choose "
    "differently",
    ("mpich", "gather"): _BY_ELEMENTS,
    ("mpich", "scatter"): _BY_ELEMENTS,
}
_OWN = "0 0 0"  # the library's own choice


def _of_openmpi(rules: Sequence[Rule]) -> str:
    """A list holds up to the next number of ranks, so an empty one follows each: a rule is of its own number alone."""
    lines = [f"{len(_grouped(rules))} # operations"]
    for operation, by_ranks in _grouped(rules).items():
        number, is_of_all = _OPENMPI[operation]
        counts = sorted({0, *by_ranks, *(ranks + 1 for ranks in by_ranks)})
        lines += [f"{number} # {operation}", f"{len(counts)} # numbers of ranks"]
        for ranks in counts:
            ends = {0: _OWN}  # from a size on
            for rule in by_ranks.get(ranks, ()):
                factor = ranks if is_of_all else 1
                ends |= {rule.least * factor: rule.winner.word, rule.most * factor + 1: _OWN}
            lines += [f"{ranks} {len(ends)} # ranks, sizes: bytes, algorithm, fan-out, segment"]
            lines += [f"{size} {choice}" for size, choice in sorted(ends.items())]
    return "".join(f"{line}\n" for line in lines)


# ---- MPICH: a tree of conditions, of which the first that holds is followed ------------------------------------------

Tree = dict[str, Any]
_COMMUTATIVE = ("is_commutative=no", "is_commutative=yes")
_ANY_OPERATOR = (("is_op_built_in=no", "is_op_built_in=yes"), _COMMUTATIVE, ("count<pow2", "count=any"))
# The condition for the size of a message, and those that MPICH's own rules make for reductions: where the first of a
# pair holds, its own choice stays.
_MPICH: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    **dict.fromkeys(("bcast", "alltoall"), ("avg_msg_size", ())),
    **dict.fromkeys(("allreduce", "reduce"), ("avg_msg_size", _ANY_OPERATOR)),
    **dict.fromkeys(("allgather", "allgatherv"), ("total_msg_size", ())),
    **dict.fromkeys(("reduce_scatter", "reduce_scatter_block"), ("total_msg_size", (_COMMUTATIVE,))),
}


def _of_mpich(rules: Sequence[Rule], trees: Mapping[str, Tree]) -> dict[str, Tree]:
    """The trees with the rules added. Above the algorithms a rule needs the composition that uses them alone."""
    added: dict[str, Tree] = json.loads(json.dumps(trees))
    for layer, tree in added.items():
        for operation, by_ranks in _grouped(rules).items():
            try:
                parent = tree[f"collective={operation}"]
                own = parent.pop("comm_type=intra")
                composition = _flat(own) if "CH4" in layer else None
            except LookupError as error:
                raise ProtocolError(f"this MPICH has other rules for {operation} than hockney knows") from error
            split: Tree = {}
            for ranks, of_ranks in sorted(by_ranks.items()):
                split.setdefault(f"comm_size<={ranks - 1}", own)
                split[f"comm_size<={ranks}"] = _with_rules(own, of_ranks, composition)
            split["comm_size=any"] = own
            tree[f"collective={operation}"] = {"comm_type=intra": split, **parent}
    return added


def _flat(tree: Tree) -> str:
    """The composition of communicators without nodes, which is the algorithm below it: the last one."""
    key = list(tree)[-1]
    return key if key.startswith("composition=") else _flat(tree[key])


def _with_rules(own: Tree, rules: Sequence[Rule], composition: str | None) -> Tree:
    """A subtree for the rules' number of ranks. Conditions of communicators stay above those of messages.

    MPICH evaluates the former once for each communicator. Those of its size are decided here: within a message's
    conditions `comm_size<8` would also hold for 8.
    """
    ranks = rules[0].ranks
    if not any(key.startswith(("comm_", "is_node_consecutive")) for key in own):
        return _by_size(own, rules, composition)
    kept: Tree = {}
    for key, below in own.items():
        holds = _size_holds(key, ranks)
        if holds is not False:
            kept["comm_size=any" if holds else key] = _with_rules(below, rules, composition)
        if holds:
            break
    return kept


def _size_holds(key: str, ranks: int) -> bool | None:
    """Whether a condition for the communicator's size holds; None for any other condition."""
    if key == "comm_size=pow2":
        return ranks & (ranks - 1) == 0
    if key == "comm_size=any":
        return True
    for sign, margin in (("comm_size<=", 0), ("comm_size<", 1)):
        if key.startswith(sign) and key[len(sign) :].isdecimal():
            return ranks <= int(key[len(sign) :]) - margin
    return None


def _by_size(own: Tree, rules: Sequence[Rule], composition: str | None) -> Tree:
    size, exceptions = _MPICH[rules[0].operation]
    factor = rules[0].ranks if size == "total_msg_size" else 1
    chosen: Tree = {}
    for rule in rules:
        if rule.least > 0:
            chosen.setdefault(f"{size}<={rule.least * factor - 1}", own)
        leaf: Tree = {}
        for word in reversed((composition or rule.winner.word).split("/")):
            leaf = {word: leaf}
        for exception, otherwise in reversed(exceptions):
            leaf = {exception: own, otherwise: leaf}
        chosen[f"{size}<={rule.most * factor}"] = leaf
    return {**chosen, f"{size}=any": own}


# ---- Intel MPI: one variable for each operation ----------------------------------------------------------------------


def _of_intel(rules: Sequence[Rule]) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for rule in rules:
        (name,) = rule.winner.environment
        one = f"{rule.winner.word}:{rule.least}-{rule.most}@{rule.ranks}-{rule.ranks}"
        chosen[name] = f"{chosen[name]};{one}" if name in chosen else one
    return chosen
