"""From proved cells to rules, and from rules to the files that libraries read.

A cell is one operation on a number of ranks with one size. Neighbouring sizes with one winner become one rule, which
ends at the sizes that were measured. Everything else keeps the library's own choice.
"""

from __future__ import annotations

import itertools
import json
import shlex
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hockney.analysis.compare.values import SeriesChange, Verdict
from hockney.model import Point
from hockney.stats.sequence import chance_above, chance_below, interval, wins_needed
from hockney.units import format_bytes, printable
from hockney.worker.errors import ProtocolError
from hockney.worker.settings import DEFAULT, Choice

GAIN_MIN = 1.05
"""A smaller gain keeps the default."""


@dataclass(frozen=True)
class RaceCell:
    """A proved cell: how many times as fast the winner is as the default, with its interval. Sizes are in bytes."""

    operation: str
    ranks: int
    bytes: int
    winner: Choice = DEFAULT
    gain: tuple[float, float, float] = (1.0, 1.0, 1.0)  # low, value, high

    @property
    def is_rule(self) -> bool:
        """Whether the gain is certain and large enough to be written."""
        low, value, _ = self.gain
        return self.winner != DEFAULT and low > 1 and value >= GAIN_MIN


@dataclass(frozen=True)
class Rule:
    """One winner for messages of `least` to `most` bytes, and its gains at the sizes that were measured there."""

    operation: str
    ranks: int
    least: int
    most: int
    winner: Choice
    gains: tuple[tuple[float, float, float], ...]

    @property
    def words(self) -> tuple[str, str, str]:
        """Its sizes, its gains, and the least that is certain."""
        sizes = format_bytes(self.least) + (f" to {format_bytes(self.most)}" if self.most > self.least else "")
        values = sorted(value for _, value, _ in self.gains)
        span = dict.fromkeys((f"{values[0]:.2f}x", f"{values[-1]:.2f}x"))
        return sizes, " to ".join(span), f"{min(low for low, _, _ in self.gains):.2f}x"

    def __str__(self) -> str:
        sizes, span, least = self.words
        doubt = "" if self.winner.can_be_verified else "; not verified: the library does not show what it takes"
        return (
            f"{self.operation}, {self.ranks} ranks, {sizes}: {self.winner.name}, {span} as fast (at least {least})"
            f"{doubt}"
        )

    def holds_for(self, point: Point) -> bool:
        """Whether it is for this point."""
        return (self.operation, self.ranks) == (point.pattern, point.ranks) and self.least <= point.bytes <= self.most


def rules_of(cells: Iterable[RaceCell]) -> list[Rule]:
    """The rules of cells, by operation, ranks and size."""
    rules: list[Rule] = []
    before: RaceCell | None = None
    for cell in sorted(cells, key=lambda cell: (cell.operation, cell.ranks, cell.bytes)):
        key = (cell.operation, cell.ranks, cell.winner)
        if cell.is_rule:
            goes_on = before is not None and before.is_rule and (before.operation, before.ranks, before.winner) == key
            last = rules.pop() if goes_on else Rule(cell.operation, cell.ranks, cell.bytes, cell.bytes, cell.winner, ())
            rules.append(Rule(*key[:2], last.least, cell.bytes, cell.winner, (*last.gains, cell.gain)))
        before = cell
    return rules


def proved(rules: Sequence[Rule], changes: Sequence[SeriesChange]) -> list[Rule]:
    """What a proof leaves of rules: the sizes at which it shows them faster, with its gains.

    Thresholds hold for all sizes, so they stay together, and only where the proof decided all.
    """
    cells = []
    for change in changes:
        point, ratio = change.point, change.ratio
        winner = next((rule.winner for rule in rules if rule.holds_for(point)), DEFAULT)
        if change.verdict is Verdict.FASTER and ratio is not None:
            gain = (1 / ratio.high, 1 / ratio.value, 1 / ratio.low)
            cells.append(RaceCell(point.pattern, point.ranks, point.bytes, winner, gain))
        else:
            cells.append(RaceCell(point.pattern, point.ranks, point.bytes))
    found = rules_of(cells)
    wanted = {rule.winner for rule in rules if rule.winner.is_threshold}
    is_open = any(change.verdict is Verdict.INCONCLUSIVE for change in changes)
    return [] if wanted and (is_open or wanted != {rule.winner for rule in found}) else found


def other_values(rules: Sequence[Rule], choices: Iterable[Choice]) -> set[Choice]:
    """The choices of other values than a threshold's best one: that with the largest certain gain, for all sizes."""
    taken: dict[str, Choice] = {}
    for rule in sorted(rules, key=lambda rule: -max(low for low, _, _ in rule.gains)):
        for variable in rule.winner.environment if rule.winner.is_threshold else ():
            taken.setdefault(variable, rule.winner)
    return {each for each in choices if any(taken.get(variable, each) != each for variable in each.environment)}


# ---- the race --------------------------------------------------------------------------------------------------------

_ALPHA = 0.05
_ALIKE = 1.02  # a smaller difference is not worth measuring, nor a second rule
Ratios = Mapping[tuple[int, Point], Sequence[float]]  # times of the default's, one of each launch, by choice from 1 on


class Referee:
    """Says after each launch who leaves which point.

    A choice leaves if it seems not to be 5 % faster than the default, or not 2 % faster than the best one of now. Each
    of these tests is wrong of one entry in 20 at most, both together of more; that costs gains, and makes no rule. The
    best one leaves when nobody else is left and its gain is certain, among all entries.
    """

    def __init__(self, choices: Sequence[Choice], points: Sequence[Point]) -> None:
        self.ratios: Ratios = {}
        self._choices, self._points, self._left = choices, points, set[tuple[int, Point]]()
        self._chance = _ALPHA / max(1, len(points) * len(choices))

    def decide(self, ratios: Ratios) -> set[tuple[int, Point]]:
        """The entries that have left."""
        self.ratios = ratios
        for point, values in self._by_point().items():
            launches = max(map(len, values.values()))
            there = [n for n in values if len(values[n]) == launches and (n, point) not in self._left]
            best = min(there, key=lambda n: statistics.median(values[n]), default=0)
            for number in there:
                rivals = [own / its for own, its in zip(values[number], values[best], strict=True)]
                is_beaten = number != best and chance_above(rivals, 1 / _ALIKE) <= _ALPHA
                if is_beaten or chance_above(values[number], 1 / GAIN_MIN) <= _ALPHA:
                    self._left.add((number, point))
            if there == [best] and chance_below(values[best], 1) <= self._chance:
                self._left.add((best, point))
        return self._left

    def too_few(self) -> tuple[int, int] | None:
        """If the race ended before anybody could be certain: how many launches it had, and how many it takes."""
        needed = next(count for count in itertools.count(1) if wins_needed(count, self._chance) <= count)
        made = max(map(len, self.ratios.values()), default=0)
        is_open = any(len(values) == made and entry not in self._left for entry, values in self.ratios.items())
        return (made, needed) if is_open and made < needed else None

    def cells(self, without: Collection[Choice] = ()) -> list[RaceCell]:
        """The winner of each point, of those that may win. It keeps that of the size before, if that is as good."""
        cells, before, known = list[RaceCell](), dict[tuple[str, int], Choice](), self._by_point()
        for point in sorted(self._points, key=lambda point: point.bytes):
            curve, values = (point.pattern, point.ranks), known.get(point, {})
            of = {
                choice: cell
                for choice, cell in ((self._choices[n - 1], self._cell(n, point, values[n])) for n in values)
                if cell.is_rule and choice not in without
            }
            best = max(of, key=lambda choice: of[choice].gain[1], default=DEFAULT)
            kept = before.get(curve, DEFAULT)
            if kept in of and of[kept].gain[1] * _ALIKE >= of[best].gain[1]:
                best = kept
            before[curve] = best
            cells.append(of.get(best, RaceCell(*curve, point.bytes)))
        return cells

    def unmeasured(self) -> list[Point]:
        """The points of which nothing is known."""
        known = self._by_point()
        return [point for point in self._points if point not in known]

    def slower(self) -> set[Choice]:
        """The thresholds that seem slower than the default at some point: they hold for all."""
        slower = {n for (n, _), values in self.ratios.items() if values and statistics.median(values) > GAIN_MIN}
        return {self._choices[n - 1] for n in slower if self._choices[n - 1].is_threshold}

    def _cell(self, number: int, point: Point, ratios: Sequence[float]) -> RaceCell:
        time = interval(ratios, 2 * self._chance)
        gain = (1 / time.high if time.high else 0.0, 1 / time.value, 1 / time.low if time.low else float("inf"))
        return RaceCell(point.pattern, point.ranks, point.bytes, self._choices[number - 1], gain)

    def _by_point(self) -> dict[Point, dict[int, Sequence[float]]]:
        found: dict[Point, dict[int, Sequence[float]]] = {}
        for (number, point), values in self.ratios.items():
            if values:
                found.setdefault(point, {})[number] = values
        return found


# ---- files -----------------------------------------------------------------------------------------------------------


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
    if operation in _REFUSED.get(kind, {}):
        return _REFUSED[kind][operation]
    if kind == "openmpi" and operation in ("gather", "allgatherv") and () < version < (4, 1):
        return "Open MPI has no such rules before 4.1"
    known = {"openmpi": _OPENMPI.keys(), "mpich": _MPICH.keys()}.get(kind, {operation})
    return "" if operation in known else "its rules files have no sizes for it"


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
_REFUSED = {
    "openmpi": {
        "scatter": "Open MPI chooses by an argument that only the root has to give, so ranks could choose differently"
    },
    "mpich": dict.fromkeys(
        ("gather", "scatter"), "MPICH chooses by the number of elements, so a rule would not fit other types"
    ),
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
