"""Options that exclude or need each other: one table, against which every command is checked before it does anything.

A condition on their values is no row: it stands where the values are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import click
from click.core import ParameterSource

from hockney.errors import UsageError

COMMANDLINE = ParameterSource.COMMANDLINE


class Clash(NamedTuple):
    """Where one of `options` is given, no other of `others` may be; with `needs` one must be.

    They are parameters, with spaces between: "" is always given, and "* csv" is each but csv. `why` may name the first
    two that clash as {0} and {1}; `argv`: a command that helps.
    """

    command: str
    options: str
    others: str
    why: str
    needs: bool = False
    argv: tuple[str, ...] = ()


_AGAINST = "say what to check against, --baseline RUN or --expect FILE.toml: give one of them"
_FORMS = "as_csv as_json parquet osu"
_RUNS = "name the runs to delete, or choose them with --older 90d, --keep 30 or both"
_SIDES = "give --transport, or both --base-transport and --new-transport"
CLASHES = (
    Clash("run", "resume", "* csv quiet", "--resume continues a run with its original settings; it cannot be combined "
          "with a suite or other options than --csv and --quiet"),
    Clash("run", "", "what resume", "name what to run: a pattern, a suite or a file, for example", needs=True,
          argv=("hockney", "run", "pingpong")),
    Clash("run", "machine", "transport hosts hostfile cpus map_by interface launcher",
          "--machine runs on a model alone: leave out --transport, --hosts, --cpus, --map, --interface and --launcher"),
    Clash("", "hostfile", "hosts", "--hostfile names the hosts: leave out --hosts"),
    Clash("", "cpus", "hosts hostfile", "--cpus places ranks on this host only: leave out --hosts"),
    Clash("", "cpus", "map_by", "--cpus places the ranks: leave out --map"),
    Clash("check", "baseline", "expect", _AGAINST),
    Clash("check", "expect", "max_slowdown patience_s",
          "--max-slowdown and --patience go with --baseline; --expect has limits in its file"),
    Clash("check", "baseline", "reference",
          "--baseline measures, so it takes no RUN; hockney compare is for two stored runs"),
    Clash("check", "reference", "expect", _AGAINST, needs=True),
    Clash("check", "reference", "time_s",
          "--time is for measuring, and a named RUN is measured already: leave one of them out"),
    Clash("check", "dry_run", "reference junit markdown",
          "--dry-run measures nothing and has no verdict: leave out RUN, --junit and --markdown"),
    Clash("compare", "* base new everything margin interleave", "interleave",
          "options of measuring need --interleave: two stored runs are only read", needs=True),
    Clash("compare", "transport", "base_transport new_transport", _SIDES),
    Clash("compare", "base_transport", "new_transport", _SIDES, needs=True),
    Clash("compare", "new_transport", "base_transport", _SIDES, needs=True),
    Clash("compare", "hosts", "base_env new_env",
          "--base-env and --new-env only affect jobs on this host: leave out --hosts"),
    Clash("predict", "validate", "* reference transport time_s quiet",
          "--validate has fixed points: combine it with --from, --transport, --time and --quiet only"),
    Clash("predict", "machine", "reference transport topology link",
          "--machine predicts on a model alone: leave out --from, --transport, --topology and --link"),
    Clash("predict", "machine", "time_s",
          "--time limits intervals, which a model has none of: leave it out with --machine"),
    Clash("predict", "", "what validate", "name what to predict, for example", needs=True,
          argv=("hockney", "predict", "alltoall", "-n", "64")),
    Clash("export", _FORMS, _FORMS, "a run is exported as {0} or as {1}, not both: leave one out"),
    Clash("export", "samples", "as_json parquet", "--samples needs --json or --parquet: a CSV has one row per figure",
          needs=True),
    Clash("export", "transport", "osu", "--transport needs --osu: other exports are of the whole run", needs=True),
    Clash("export", "parquet", "output", "--parquet names its file already: leave out --output"),
    Clash("explain", "reference", "machine",
          "explain takes a run or a machine of the archive (--machine NAME): give one of them, not both"),
    Clash("tune", "resume", "dry_run", "--resume measures: leave out --dry-run"),
    Clash("delete", "references", "older_s keep", _RUNS),
    Clash("delete", "", "references older_s keep", _RUNS, needs=True),
)  # fmt: skip


def refuse_clashes(context: click.Context, *, as_json: bool) -> None:
    """Raises UsageError with the sentence of the first row that the command line breaks."""
    source = context.get_parameter_source
    given = [name for name, value in context.params.items() if value not in (None, ()) and source(name) is COMMANDLINE]
    given += ["as_json"] * as_json
    is_here = context.params.get("hosts") == ("local",) and "hostfile" not in given
    elsewhere = [name for name in given if not (is_here and name == "hosts")]  # this host is no other place
    flags = {param.name: max(param.opts, key=len) for param in context.command.params}
    for row in CLASHES:
        known = given if row.options.startswith("*") else elsewhere
        first = next(iter(_those(row.options, known)), "")
        others = [name for name in _those(row.others, known) if name != first]
        is_meant = row.command in ("", context.info_name) and bool(first) == bool(row.options)
        if is_meant and bool(others) != row.needs:
            raise UsageError(row.why.format(*(flags.get(name, "") for name in (first, *others))), argv=row.argv)


def _those(names: str, given: Sequence[str]) -> list[str]:
    listed = names.split()
    if listed[:1] == ["*"]:
        return [name for name in given if name not in (*listed, "as_json", "store")]
    return [name for name in listed if name in given]
