"""Documents are part of the product: they are complete, and their commands work."""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from pydantic import BaseModel
from tests.cli.support import call_here
from tests.shared import finished

from hockney.analysis.expect import load_expectations
from hockney.analysis.repeat import LAUNCHES_WANTED
from hockney.cli.commands import COMMANDS, hockney
from hockney.cli.run_options import find_suite
from hockney.cli.schemas import anchor
from hockney.errors import ExitCode
from hockney.machine.files import rows_of
from hockney.report.documents.inventory import Pairing, take_inventory
from hockney.stats.shift import LAUNCHES_MIN
from hockney.stats.states import CONTENTION
from hockney.suites import Suite, SuiteSeries
from hockney.worker.build import build_worker
from hockney.worker.catalogue import describe, load, split_name
from hockney.worker.machine_schema import MachineModel

ROOT = Path(__file__).parents[1]
PAGES = {path.name: path.read_text(encoding="utf-8") for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]}
EVERYTHING = "\n".join(PAGES.values())
_COLUMNS_MAX = 132
DESCRIPTION = describe(build_worker())


@pytest.mark.parametrize("page", ["README.md", *(path.name for path in (ROOT / "docs").glob("*.md"))])
def test_no_line_of_text_is_longer_than_a_screen(page: str) -> None:
    """Rows of tables can't be wrapped, and printed output is shown unchanged."""
    text = re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)
    assert not [line for line in text.splitlines() if len(line) > _COLUMNS_MAX and not line.startswith("|")]


@pytest.mark.parametrize("pattern", [row["name"] for row in DESCRIPTION["patterns"]])
def test_every_pattern_is_defined(pattern: str) -> None:
    """A latency pattern has a mark."""
    (is_stream,) = (row["stream"] for row in DESCRIPTION["patterns"] if row["name"] == pattern)
    first = re.findall(r"^\| ([^|]*) \|", PAGES["metrics.md"], re.MULTILINE)
    assert f"{pattern}{'' if is_stream else ' *'}" in [name for cell in first for name in cell.split(", ")]


def _owners(cell: str) -> set[str]:
    """The patterns that a cell names: `collectives but barrier` are of a kind, `neighbor_…` those that begin so."""
    names = {row["name"]: row["kind"] for row in DESCRIPTION["patterns"]}
    owners, _, others = cell.partition(" but ")

    def named(words: str) -> set[str]:
        each = words.split(", ")
        starts = tuple(word[:-1] for word in each if word.endswith("…"))
        return {
            name for name, kind in names.items() if name in each or kind in each or name.startswith(starts or ("-",))
        }

    return named(owners) - named(others)


@pytest.mark.parametrize(
    ("pattern", "option"),
    [(row["name"], option) for row in DESCRIPTION["patterns"] for option in row["options"]],
    ids=lambda value: value if isinstance(value, str) else value["name"],
)
def test_every_option_of_a_pattern_is_explained(pattern: str, option: dict[str, Any]) -> None:
    rows = re.findall(rf"^\| `{option['name']}` \| ([^|]*) \| ([^|]*) \|", PAGES["metrics.md"], re.MULTILINE)
    (values,) = (values for patterns, values in rows if pattern in _owners(patterns))
    choices = option["choices"].split("|") if option["choices"] else [f"{option['min']}–{option['max']}"]
    if values.endswith(", …"):  # a table of its own
        section = PAGES["metrics.md"].partition("### Algorithms")[2].partition("\n### ")[0]
        known = re.findall(r"^\| ([^|]*) \| (.*)\|$", section, re.MULTILINE)
        (texts,) = (texts for names, texts in known if pattern in _owners(names))
        assert values.split(", ")[:-1] == choices[:2]
        assert {*choices[2:]} <= {*re.findall(r"[a-z-]+", texts)}
    else:
        assert values.split(", ") == choices


def test_every_key_of_a_description_is_on_the_page_of_the_protocol() -> None:
    keys = {key for kind in ("patterns", "transports") for row in DESCRIPTION[kind] for key in row}
    assert [key for key in keys if not re.search(rf"\b{key}\b", PAGES["protocol.md"])] == []


def test_every_option_of_the_worker_is_on_the_page_of_the_protocol() -> None:
    usage = (
        (ROOT / "src/hockney/worker/csrc/main.c").read_text(encoding="utf-8").partition('"usage')[2].partition(";")[0]
    )
    options = set(re.findall(r"--[a-z-]+", usage))
    assert len(options) > 5
    assert [option for option in options if option not in PAGES["protocol.md"]] == []


def _tables(model: type[BaseModel]) -> set[type[BaseModel]]:
    """A model and all those within it."""
    parts = [field.annotation for field in model.model_fields.values()]
    for part in parts:
        parts += get_args(part)
    within = (part for part in parts if isinstance(part, type) and issubclass(part, BaseModel))
    return {model}.union(*map(_tables, within))


@pytest.mark.parametrize("table", sorted(_tables(MachineModel), key=str), ids=lambda table: table.__name__)
def test_every_key_of_a_model_is_explained(table: type[BaseModel]) -> None:
    keys = [field.alias or name for name, field in table.model_fields.items()]
    page = PAGES["machines.md"]
    assert [key for key in keys if not re.search(rf"\b{key}\b", page)] == []


@pytest.mark.parametrize("transport", [row["name"] for row in DESCRIPTION["transports"]])
def test_every_transport_is_described(transport: str) -> None:
    """By a row, which names the transport below it."""
    (below,) = (row["below"] for row in DESCRIPTION["transports"] if row["name"] == transport)
    assert below is None or f" on `{below}`" in _row_of(transport)


def _row_of(transport: str) -> str:
    (row,) = re.findall(rf"^\| [^|]*`{transport}`[^|]*\|.*$", PAGES["transports.md"], re.MULTILINE)
    return str(row)


@functools.cache
def cells_of_transports() -> Mapping[str, Mapping[str, Pairing]]:
    return take_inventory(cpus=2).matrix


def test_the_page_says_which_pattern_runs_where() -> None:
    """The patterns with special needs run on the transports that it names, of those that are here."""
    section = " ".join(PAGES["transports.md"].partition("## Which pattern runs where")[2].partition("\n- ")[0].split())
    named = re.findall(r"([a-z, ]+) needs? [a-z ]+, as on ([^.]+)\.", section)
    assert len(named) == 2
    for name, cells in cells_of_transports().items():
        base, _, variant = split_name(name)
        for patterns, where in named:
            if f"`{':'.join(filter(None, (base, variant)))}`" in where:
                assert [one for one in re.split(", | and ", patterns.strip()) if not cells[one].runs] == [], name


def test_the_page_says_whose_collectives_are_native() -> None:
    page = " ".join(PAGES["transports.md"].split())
    listed = re.search(r"`shmem` a ([a-z, ]+), `shm` and `threads` a barrier\.", page)
    assert listed
    every = {row["name"] for row in DESCRIPTION["patterns"] if row["collective"]}
    known = {"mpi": every, "shmem": set(re.split(r", | and ", listed[1])), "shm": {"barrier"}, "threads": {"barrier"}}
    for name, cells in cells_of_transports().items():
        native = {pattern for pattern, pairing in cells.items() if pairing.runs == "native"}
        assert native == known.get(split_name(name)[0], set()), name


def test_every_documented_threshold_is_on_the_page_of_explain() -> None:
    """Or, of a transport, in its row."""
    table = PAGES["explain.md"].partition("## Documented thresholds")[2].partition("\n## ")[0]
    rows = rows_of(ROOT / "src/hockney/analysis/thresholds.toml")
    assert len(rows) > 5
    for row in rows:
        cells = re.findall(rf"`{row['name'].replace(', ', '`, `')}` {row['bytes']}\b", table)
        assert cells, f"{row['name']} {row['bytes']}"
    limits = [(row["name"], limit) for row in DESCRIPTION["transports"] for limit in row["limits"]]
    assert len(limits) > 4
    for name, limit in limits:
        number = limit["bytes"] or THRESHOLD_OF[limit["fact"]]
        assert re.search(rf"\b{number}\b", table + _row_of(name)), limit["name"]


# Facts of the network that a limit is read from, by the kernel's name.
THRESHOLD_OF = {"tcp_receive_buffer_bytes": "net.ipv4.tcp_rmem", "send_buffer_bytes": "net.core.wmem_default"}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_documents_and_has_help_with_an_example(command: str) -> None:
    assert re.search(rf"hockney {command}\b", EVERYTHING)
    done = finished([sys.executable, "-m", "hockney", command, "--help"], check=True)
    assert "Example" in done.stdout
    assert f"hockney {command}" in done.stdout


def test_links_between_pages_lead_somewhere() -> None:
    for name, text in PAGES.items():
        folder = ROOT if (ROOT / name).exists() else ROOT / "docs"
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (folder / target).exists(), f"{name} links to {target}"


def test_links_to_headings_lead_to_one() -> None:
    for name, text in PAGES.items():
        for target, heading in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text):
            titles = re.findall(r"^#+ (.*)", PAGES[Path(target).name or name], re.MULTILINE)
            assert heading in map(anchor, titles), f"{name} links to {target}#{heading}"


def _command_lines() -> list[str]:
    """The lines of hockney in the blocks of all pages, without comments; docs/commands.md lists names."""
    pages = "\n".join(text for name, text in PAGES.items() if name != "commands.md")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", pages, re.MULTILINE | re.DOTALL)
    text = "".join(block for kind, block in blocks if kind in ("", "console"))
    lines = re.findall(r"^(?:\$ )?(?:\./)?hockney ([a-z].*?)(?:\s+#.*)?$", text, re.MULTILINE)
    return sorted(set(lines))


@pytest.mark.parametrize("line", _command_lines())
def test_command_line_in_the_documents_is_understood(line: str) -> None:
    name, *words = shlex.split(line)
    command = hockney.get_command(click.Context(hockney), name)
    assert command is not None
    command.make_context(name, words)


def test_the_page_of_commands_has_every_option_and_no_other() -> None:
    commands = [hockney, *(hockney.get_command(click.Context(hockney), name) for name in COMMANDS)]
    params = [
        option for command in commands if command for option in command.params if isinstance(option, click.Option)
    ]
    options = {name for option in params for name in (*option.opts, *option.secondary_opts) if name.startswith("--")}
    assert set(re.findall(r"--[a-z][a-z-]*", PAGES["commands.md"])) == options | {"--help"}


def test_every_environment_variable_is_on_the_page_of_commands() -> None:
    """Those of hockney, and those of others that it reads by name, except those that it sets or passes on."""
    package = ROOT / "src" / "hockney"
    code = "".join(path.read_text(encoding="utf-8") for end in ("py", "c") for path in package.rglob(f"*.{end}"))
    names = set(re.findall(r'(?:environ\.get|environ\[|getenv|environment\.get)\(?"([A-Z_]{2,})"', code))
    names |= set(re.findall(r"\bHOCKNEY_[A-Z]+\b", code)) - {"HOCKNEY_JOB"}
    set_by_hockney = {"PVM_DPATH", "PVM_VMID", "UCX_TLS"}
    assert len(names) > 8
    assert [name for name in names - set_by_hockney if not re.search(rf"\b{name}\b", PAGES["commands.md"])] == []


def test_every_exit_code_is_on_the_page_of_commands() -> None:
    header = next(line for line in PAGES["commands.md"].splitlines() if line.startswith("| command | 0"))
    assert [cell.strip() for cell in header.strip("|").split("|")[1:]] == [str(code.value) for code in ExitCode]


def test_every_command_in_backquotes_that_prints_rates_exists() -> None:
    """Those of docs/validation.md; they take too long to be run here."""
    modules = re.findall(r"`python -m ([\w.]+)", EVERYTHING)
    assert modules
    for module in modules:
        path = ROOT / f"{module.replace('.', '/')}.py"
        assert '__name__ == "__main__"' in path.read_text(encoding="utf-8"), module
    for script in re.findall(r"`(scripts/[\w-]+)", EVERYTHING):
        assert (ROOT / script).exists(), script


def test_screens_in_the_documents_are_printed() -> None:
    """Each line of a block of kind `screen` is in a snapshot of a screen."""
    printed = {line.strip() for path in (ROOT / "tests").rglob("*.ambr") for line in path.read_text().splitlines()}
    blocks = re.findall(r"^```screen\n(.*?)^```", EVERYTHING, re.MULTILINE | re.DOTALL)
    assert blocks
    assert [line for block in blocks for line in block.splitlines() if line.strip() not in printed] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_conflict_of_a_merge(page: str) -> None:
    assert re.findall(r"^(?:<{7}|>{7}) .*", PAGES[page], re.MULTILINE) == []


# ---- short enough to be read ----------------------------------------------------------------------------------------


def _words(text: str) -> int:
    """How many words there are; rules and bars of tables are none."""
    return len(re.findall(r"\S*\w\S*", text))


# How many words a page may have: a guide is read from end to end, other pages are looked up.
_GUIDE, _REFERENCE = 700, 2_000
_WORDS_MAX = {
    **dict.fromkeys(("tutorial.md", "suites.md", "osu-imb.md", "nightly.md", "tuning.md", "why-wide.md"), _GUIDE),
    "event-builder.md": 850,  # with a worked example
    "json.md": 3_150,
    "methods.md": 2_150,
    "CHANGELOG.md": 1_000,
}
# Not counted: what scripts/bench writes, and the tables that a new pattern, transport, option, finding, column or
# benchmark of another tool gets a row in.
_ROWS = r"<!-- table[^>]*begin -->(?:.*\n)*?<!-- table.*end -->"
_ROWS += r"|^\| (?:pattern|transport|option|code|OSU|IMB) \|.*\n(?:\|.*\n)+"
_ROWS += r"|^  \w+ +Value\?.*\n"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_short_enough_to_be_read(page: str) -> None:
    assert _words(re.sub(_ROWS, "", PAGES[page], flags=re.MULTILINE)) <= _WORDS_MAX.get(page, _REFERENCE)


def test_the_readme_has_at_most_120_lines_and_names_every_page() -> None:
    assert PAGES["README.md"].count("\n") <= 120
    named = set(re.findall(r"\]\(docs/([\w-]+\.md)\)", PAGES["README.md"]))
    assert named == {path.name for path in (ROOT / "docs").glob("*.md")}


@pytest.mark.parametrize("page", PAGES)
def test_no_cell_of_a_table_is_an_essay(page: str) -> None:
    cells = [cell for line in PAGES[page].splitlines() if line.startswith("|") for cell in line.split("|")]
    assert [cell for cell in cells if _words(cell) > 40] == []


@pytest.mark.parametrize("page", [name for name in PAGES if (ROOT / "docs" / name).exists()])
def test_page_opens_with_its_purpose(page: str) -> None:
    assert re.match(r"# .+\n\nThis page [^.]+[.:]", PAGES[page])


def test_contended_has_one_meaning_everywhere() -> None:
    definitions = (ROOT / "src/hockney/report/page/definitions.toml").read_text(encoding="utf-8")
    assert f"- **contended**: {CONTENTION}\n" in PAGES["glossary.md"]
    assert f"contended: {CONTENTION}" in definitions


def test_no_page_names_a_place_of_somebodys_machine() -> None:
    for name, text in PAGES.items():
        assert not re.search(r"(?<![\w.])/(home|root|work|tmp)/", text), name


def test_the_page_on_checking_has_valid_expectations(tmp_path: Path) -> None:
    """Its files of limits are read, and its numbers of launches are those of the code."""
    page = PAGES["checking.md"]
    path = tmp_path / "expect.toml"
    for number, block in zip((2, 1), re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL), strict=True):
        path.write_text(block)
        assert len(load_expectations(path, load(("mpi",))).expect) == number
    # The number of launches of a check is the same on the page, in the help and in the code.
    check = hockney.get_command(click.Context(hockney), "check")
    assert check is not None
    assert f"in {LAUNCHES_WANTED} launches or more" in " ".join(page.split())
    assert f"in {LAUNCHES_WANTED} launches or more" in " ".join((check.help or "").split())
    assert f"at least {LAUNCHES_MIN} launches of each run" in " ".join(page.split())


@pytest.mark.parametrize(("heading", "table"), [("Keys of the suite", Suite), ("Keys of a series", SuiteSeries)])
def test_every_key_of_a_suite_is_explained(heading: str, table: type[BaseModel]) -> None:
    section = PAGES["suites.md"].partition(f"## {heading}\n")[2].partition("\n## ")[0]
    keys = [field.alias or name for name, field in table.model_fields.items()]
    assert sorted(re.findall(r"^\| `(\w+)`", section, re.MULTILINE)) == sorted(keys)


def test_the_suite_on_its_page_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "trigger.toml"
    path.write_text(re.findall(r"^```toml\n(.*?)^```", PAGES["suites.md"], re.MULTILINE | re.DOTALL)[0])
    suite = find_suite(str(path))
    assert {series.pairs for series in suite.series} == {None, "all"}
    assert "0,100,400" in suite.series[0].options.values()


# ---- the tutorial is carried out -----------------------------------------------------------------------------------

TUTORIAL = PAGES["tutorial.md"]


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", TUTORIAL, re.MULTILINE | re.DOTALL)


def shorter(text: str) -> str:
    """The same with a tenth of the time for each run."""
    return re.sub(r"""(--time |time = ")(\d+)s""", lambda time: f"{time[1]}{int(time[2]) * 100}ms", text)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tutorial's commands, run in their order, with a separate store."""
    folder = tmp_path_factory.mktemp("tutorial")
    (folder / "mine.toml").write_text(shorter(blocks("toml")[0]))
    lines = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    assert len(lines) > 10
    for line in lines:
        words = shlex.split(shorter(line))
        assert words[0] == "./hockney"
        done = call_here(folder, *words[1:])
        said = " ".join(done.stderr.split())
        assert done.returncode == 0 or "; nothing is known to " in said, f"{line}\n{done.stderr}"
        assert done.stdout or "-o" in words, line
    return folder


def test_the_tutorials_commands_work(place: Path) -> None:
    assert (place / "first.csv").read_text().count("\n") > 3
    assert json.loads((place / "first.json").read_text())["format"] == "hockney-export"


def test_the_tutorials_program_works(place: Path) -> None:
    done = finished(
        [sys.executable, "-c", blocks("python")[0]],
        env={**os.environ, "HOCKNEY_STORE": str(place / "results.db")},
        check=True,
    )
    assert " ns, " in done.stdout
