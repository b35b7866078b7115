"""The table of options that exclude or need each other."""

from __future__ import annotations

import re

import click
import pytest

from hockney.cli.clashes import CLASHES, Clash, refuse_clashes
from hockney.cli.commands import hockney
from hockney.errors import UsageError

VALUES = {  # of options that take no word
    "time_s": "3s",
    "patience_s": "3s",
    "older_s": "1d",
    "keep": "2",
    "max_slowdown": "5%",
    "precision": "1%",
    "timeout_s": "3s",
    "launches": "6",
    "map_by": "node",
}


def command_of(row: Clash) -> click.Command:
    name = row.command or "quick"
    found = hockney.get_command(click.Context(hockney), name)
    assert found is not None
    return found


def refused(row: Clash, *names: str) -> bool:
    """Whether the row refuses a command line with these parameters."""
    command, words = command_of(row), list[str]()
    params = {param.name: param for param in command.params}
    for name in filter(None, names):
        param = params[name]
        is_flag = isinstance(param, click.Option) and param.is_flag
        words += [max(param.opts, key=len)] if isinstance(param, click.Option) else []
        words += [] if is_flag else [VALUES.get(name, "a")]
    for param in command.params:
        if param.required and param.name not in names:
            words += [*([max(param.opts, key=len)] if isinstance(param, click.Option) else []), "a"]
    try:
        refuse_clashes(command.make_context(command.name, words), as_json=False)
    except UsageError as error:
        return bool(re.fullmatch(re.sub(r"\\{[01]\\}", ".*", re.escape(row.why)), str(error)))
    return False


def names_of(row: Clash, names: str) -> list[str]:
    listed = names.split()
    if listed[:1] != ["*"]:
        return listed
    known = [param.name or "" for param in command_of(row).params]
    return [name for name in known if name not in (*listed, "as_json", "store")]


@pytest.mark.parametrize("row", CLASHES, ids=lambda row: f"{row.command} {row.options}, {row.others}")
def test_a_row_holds_for_each_of_its_options(row: Clash, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hockney.cli.clashes.CLASHES", (row,))
    for option in names_of(row, row.options) or [""]:
        assert refused(row, option) == row.needs
        others = [name for name in names_of(row, row.others) if name != option]
        assert others
        for other in others:
            assert refused(row, option, other) != row.needs, other


@pytest.mark.parametrize(
    ("words", "is_refused"),
    [
        (["pingpong", "--machine", "t3d", "--hosts", "local"], False),
        (["pingpong", "--machine", "t3d", "--hosts", "a"], True),
        (["pingpong", "--hosts", "local", "--hostfile", "f"], True),
        (["--resume", "--no-refine"], True),
        (["--resume", "-q", "--csv", "f"], False),
    ],
)
def test_this_host_is_no_other_place_and_a_switch_counts_where_it_is_off(words: list[str], *, is_refused: bool) -> None:
    context = command_of(CLASHES[0]).make_context("run", words)
    if is_refused:
        with pytest.raises(UsageError):
            refuse_clashes(context, as_json=False)
    else:
        refuse_clashes(context, as_json=False)


def test_the_options_that_clash_are_named() -> None:
    row = next(row for row in CLASHES if row.command == "export")
    with pytest.raises(UsageError, match="exported as --json or as --osu, not both"):
        refuse_clashes(command_of(row).make_context("export", ["--osu"]), as_json=True)
