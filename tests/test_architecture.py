"""Rules for the code as a whole: imports point one way, and light commands load nothing heavy."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.shared import finished

from hockney.worker import build

PACKAGE = Path(__file__).parents[1] / "src" / "hockney"
# The rooms, from the top down: a room imports only rooms after it. docs/architecture.md shows the same.
ROOMS = [
    "cli",
    "render",
    "report",
    "measure",
    "archive",
    "analysis",
    "results",
    "stats",
    "worker",
    "suites",
    "machine",
    "model",
    "units",
    "files",
    "errors",
    "version",
]
LEVEL = {name: level for level, name in enumerate(reversed(ROOMS))}


def test_the_page_names_the_rooms_in_this_order() -> None:
    page = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = page.partition("## Rooms")[2].partition("## Where")[0]
    assert re.findall(r"^(\w+)(?:/|\.py) ", rooms, re.MULTILINE) == ROOMS


@functools.cache
def nodes() -> dict[Path, list[ast.AST]]:
    """What each file consists of."""
    return {path: list(ast.walk(ast.parse(path.read_text(encoding="utf-8")))) for path in PACKAGE.rglob("*.py")}


def names() -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Each file with one name of hockney that it imports: `("results", "runs", "Run")`."""
    for path, parts in nodes().items():
        found = {
            f"{node.module}.{alias.name}" for node in parts if isinstance(node, ast.ImportFrom) for alias in node.names
        }
        found |= {alias.name for node in parts if isinstance(node, ast.Import) for alias in node.names}
        yield from ((path, tuple(name.split(".")[1:])) for name in sorted(found) if name.startswith("hockney."))


def imports() -> Iterator[tuple[Path, str, str]]:
    """Each file of a room with that room, and one that it imports from."""
    for path, name in names():
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room not in ("__init__", "__main__") and name[0] in LEVEL.keys() - {room}:
            yield path, room, name[0]


def test_no_files_or_folders_of_a_folder_import_each_other_in_a_circle() -> None:
    """Imports for types count, too. A figure knows its series, from which it reads its samples."""
    within: dict[Path, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path, name in names():
        own = path.relative_to(PACKAGE).with_suffix("").parts
        depth = next(level for level, part in enumerate(own) if name[level : level + 1] != (part,))
        folder = PACKAGE.joinpath(*own[:depth])
        other = "".join(name[depth : depth + 1])
        is_part = (folder / other).is_dir() or (folder / f"{other}.py").is_file()
        within[folder][own[depth]].add(other if other and is_part else "__init__")
    figures = within[PACKAGE / "results"]["figures"]
    assert "runs" in figures, "then this exception goes"
    figures.remove("runs")
    for folder, below in within.items():
        for part, others in below.items():
            others.discard(part)
        try:
            graphlib.TopologicalSorter(below).prepare()
        except graphlib.CycleError as error:
            pytest.fail(f"{folder.relative_to(PACKAGE)}: {' <- '.join(error.args[1])}")


def test_imports_point_one_way() -> None:
    assert {room for _, room, _ in imports()} <= LEVEL.keys(), "say in ROOMS where the others belong"
    upwards = [(str(path), other) for path, room, other in imports() if LEVEL[other] >= LEVEL[room]]
    assert upwards == []


def test_rooms_have_ten_levels() -> None:
    """The longest way down over real imports."""
    below: dict[str, set[str]] = {room: set() for room in ROOMS}
    for _, room, other in imports():
        below[room].add(other)
    height: dict[str, int] = {}
    for room in reversed(ROOMS):
        height[room] = 1 + max((height[name] for name in below[room]), default=0)
    assert max(height.values()) <= 10


def test_patterns_see_nothing_of_any_transport() -> None:
    folder = PACKAGE / "worker/csrc/patterns"
    allowed = {f'"{path.name}"' for path in folder.glob("*.h")} | {
        '"../pattern.h"',
        '"../algorithms/algorithms.h"',
        '"../collective.h"',
        '"../device.h"',
        '"../layout.h"',
        '"../mix.h"',
        '"../onesided.h"',
        '"../payload.h"',
        '"../sync.h"',
        '"../cacheline.h"',
        '"../sleepers.h"',
        '"../startup.h"',
        '"../team.h"',
    }
    allowed |= {"<math.h>", "<stdatomic.h>", "<stddef.h>", "<stdio.h>", "<stdlib.h>", "<string.h>", "<unistd.h>"}
    for path in folder.glob("*.[ch]"):
        included = {line.split(maxsplit=1)[1] for line in path.read_text().splitlines() if line.startswith("#include")}
        assert included <= allowed, path.name


def test_transports_see_nothing_of_any_pattern() -> None:
    for path in (PACKAGE / "worker/csrc/transports").glob("*.[ch]"):
        assert "pattern.h" not in path.read_text(), path.name


def test_the_name_of_a_class_means_one_thing() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path, parts in nodes().items():
        for node in parts:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


@pytest.mark.parametrize("family", list(build.FAMILY_SOURCES))
def test_the_family_is_listed(family: str) -> None:
    """Only some units are: in another, a file that asks would be compiled for no family, and nobody would say so."""
    asks = re.compile(r"\bHK_FAMILY_(?!H\b)")
    for (unit, options), sources in build.units_of(build.Recipe(family)).items():
        asking = [str(source) for source, text in sources.items() if asks.search(text)]
        assert not asking or f"-DHK_FAMILY_{family.upper()}" in options, f"{asking} stand in the unit {unit}"
    assert not [path.name for path in build.SOURCES.rglob("*.h") if asks.search(path.read_text())], "read in any unit"


@pytest.mark.parametrize(
    "arguments", [[], ["--help"], ["quick", "--help"], ["run", "--help"], ["check", "--help"]], ids=" ".join
)
def test_light_commands_load_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from hockney.cli import execute\n"
        f"code = execute({[*arguments]!r})\n"
        "heavy = {'numpy', 'scipy', 'pydantic', 'psutil'} & set(sys.modules)\n"
        "assert code == 0 and not heavy, (code, heavy)\n"
    )
    environment = {"HOCKNEY_STORE": str(tmp_path / "none.db"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = finished([sys.executable, "-c", program], env=environment)
    assert done.returncode == 0, done.stderr
