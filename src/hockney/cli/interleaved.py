"""The options of `hockney compare --interleave`, and measuring with them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from hockney.cli import complete
from hockney.cli.run import run
from hockney.errors import UsageError

# The options of `hockney run` that both variants share.
_SHARED = {
    *("transport", "ranks", "sizes", "options", "precision", "time_", "launches", "hosts", "cpus"),
    *("limit", "oversubscribe", "label"),
}
_LAUNCHES = 8  # pairs: with six the interval is a quarter wider
_TIME_S = 120.0
_DEFAULTS = {  # help of options whose default is another than that of `run`
    "launches": "Number of launches of each variant. [default: 8]",
    "time_": "How long to measure both variants. [default: 2m]",
}
_SIDES = ("base", "new")


def interleave_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --interleave, the options of each side, and those of `run` that both share."""
    options = [
        click.option("--interleave", is_flag=True, help="Measure two variants of PATTERN or SUITE in alternation.")
    ]
    for side in _SIDES:
        options += [
            click.option(f"--{side}-env", multiple=True, metavar="NAME=VALUE", help=f"A variable of {side}'s jobs."),
            click.option(
                f"--{side}-transport",
                metavar="NAME",
                help=f"The transport of {side}; an MPI also as mpi@/opt/a.",
                shell_complete=complete.transports,
            ),
        ]
    for option in reversed(options):
        function = option(function)
    shared = [copy.copy(param) for param in run.params if param.name in _SHARED]
    for param in shared:
        if isinstance(param, click.Option) and param.name in _DEFAULTS:
            param.help = _DEFAULTS[param.name]
    function.__click_params__ = [*reversed(shared), *function.__click_params__]  # type: ignore[attr-defined]
    return function


def refuse_idle(wishes: Mapping[str, Any]) -> None:
    """Raises UsageError for options of measuring where two stored runs are compared."""
    given = [name for name, value in wishes.items() if value]
    if given:
        option = next(option for param in click.get_current_context().command.params if param.name == given[0]
                      for option in param.opts if option.startswith("--"))  # fmt: skip
        raise UsageError(f"{option} belongs to --interleave: two stored runs are compared without measuring")


def measure_in_turns(what: str, wishes: dict[str, Any], store: Path | None) -> tuple[str, str]:
    """Measure both variants; returns the numbers of their runs. Raises UsageError, HockneyError when stopped."""
    from hockney.cli.measuring import command_line, measuring
    from hockney.cli.run_options import find_suite, read_options
    from hockney.errors import HockneyError
    from hockney.machine import usable_cpus
    from hockney.machine.topology import read_topology
    from hockney.measure import interleave
    from hockney.measure.plan import make_plan, transport_words
    from hockney.model import RunStatus
    from hockney.stats.pairs import PAIRS_MIN
    from hockney.units import counted

    environments = [_environment(wishes.pop(f"{side}_env")) for side in _SIDES]
    transports = [wishes.pop(f"{side}_transport") for side in _SIDES]
    label = wishes.pop("label")
    suite, common = find_suite(what), read_options({"refine": False, **wishes})
    if common.transports and any(transports):
        raise UsageError("give --transport for both variants, or --base-transport and --new-transport, not all of them")
    if any(transports) and not all(transports):
        raise UsageError("give both --base-transport and --new-transport")
    if environments[0] == environments[1] and transports[0] == transports[1]:
        raise UsageError("both variants are the same: give what differs, for example --new-env NAME=VALUE")
    if common.launches and common.launches < PAIRS_MIN:
        raise UsageError(
            f"{counted(common.launches, 'launch', 'launches')} of each variant can't decide anything: give "
            f"--launches {PAIRS_MIN} or more"
        )
    if common.hosts and any(environments):
        raise UsageError("variables of --base-env and --new-env reach jobs of this host only: leave out --hosts")
    wished = [common if transport is None else replace(common, transports=(transport,)) for transport in transports]
    words = [word for own in wished for word in transport_words(suite, own)]
    with measuring(store, create=True, words=words) as (catalogue, results, display):
        variants = []
        for side, environment, own in zip(_SIDES, environments, wished, strict=True):
            plan = make_plan(suite, own, catalogue, len(usable_cpus()), lambda: read_topology().cache_sizes())
            plan = replace(
                plan,
                launches=common.launches or _LAUNCHES,
                time_s=_TIME_S if common.time_s is None else common.time_s,
            )
            variants.append(interleave.Variant(plan, environment, label and f"{label}-{side}"))
        outcomes = interleave.measure(
            (variants[0], variants[1]), catalogue, results, display, command=command_line("compare")
        )
        numbers = [outcome.run_id for outcome in outcomes]
        if any(outcome.status is RunStatus.INTERRUPTED for outcome in outcomes):
            raise HockneyError(f"stopped; what was measured is stored as runs {numbers[0]} and {numbers[1]}")
    return str(numbers[0]), str(numbers[1])


def _environment(words: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise UsageError(f"'{word}' is not a variable: write NAME=VALUE")
        found[name] = value
    return found


def refuse_second(new: str | None) -> None:
    """Raises UsageError for a second argument, where the first says what to measure."""
    if new is not None:
        raise UsageError(f"--interleave takes one pattern or suite, not '{new}' too")
