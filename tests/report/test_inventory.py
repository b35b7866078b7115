"""Items that are listed as ready, and items that are missing with the reason."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.builders import make_library, make_pattern, make_transport

from hockney.cli import execute
from hockney.machine import placement
from hockney.model import Point
from hockney.report.documents import inventory
from hockney.report.documents.inventory import take_inventory
from hockney.worker.catalogue import Catalogue, OptionInfo
from hockney.worker.errors import NoCompiler
from hockney.worker.launch import LAUNCHERS
from hockney.worker.libraries import Missing

OPEN_MPI = make_library("mpi@openmpi-4.1.4", program=Path("/opt/bin/mpiexec"))
ALGORITHM = OptionInfo("algorithm", ("auto", "native"), "auto", 0, 0, "whose")


@pytest.fixture
def catalogue(monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    native, both, worker = frozenset(("barrier",)), ("send", "nonblocking"), Path("worker")
    patterns = (
        make_pattern("pingpong", options=(ALGORITHM,)),
        make_pattern("twoway", ["nonblocking"]),
        make_pattern("oneway", []),
        make_pattern("barrier", sized=False, options=(ALGORITHM,), collective="barrier"),
    )
    transports = (
        make_transport("shm", both, executable=worker),
        make_transport("null", ["send"]),
        make_transport(OPEN_MPI.id, both, native=native, library=OPEN_MPI),
        make_transport("puts", [], native=native),
    )
    made = Catalogue(
        {pattern.name: pattern for pattern in patterns},
        {transport.name: transport for transport in transports},
        (Missing("mpi@mpich-9", "its mpicc fails", "mend it"),),
    )

    def obstacles(self: Catalogue, points: Iterable[Point], *, one_host: bool = True) -> dict[Point, str]:
        del one_host
        return {
            point: f"{point.pattern} needs several messages under way at once, which {point.transport} does not offer"
            for point in points
            if not point.options and not self.patterns[point.pattern].needs <= self.transports[point.transport].caps
        }

    monkeypatch.setattr(Catalogue, "obstacles", obstacles)
    monkeypatch.setattr(inventory, "load", lambda: made)
    return made


@pytest.mark.usefixtures("catalogue")
def test_transports_and_patterns_are_those_of_the_workers() -> None:
    here = take_inventory(cpus=2)
    assert [item.name for item in here.patterns] == ["pingpong", "twoway", "oneway", "barrier"]
    assert [(item.name, item.ready) for item in here.transports] == [
        ("shm", True),
        ("null", True),
        ("mpi@openmpi-4.1.4", True),
        ("puts", True),
        ("mpi@mpich-9", False),
        ("mpi@intel", False),
    ]
    assert (here.transports[-2].why, here.transports[-2].how) == ("its mpicc fails", "mend it")
    assert here.transports[-1].why == "no Intel MPI was found"
    assert here.transports[-1].how == "`hockney setup --mpi intel` (132 MB)"
    assert here.transports[2].summary.startswith(f"{OPEN_MPI.name}: ")
    assert here.transports[0].more["executable"] == "worker"


def test_a_pattern_that_needs_more_ranks_than_cpus_says_how_it_runs_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    farm = make_pattern("pushfarm", ranks=(3, 0, 1))
    monkeypatch.setattr(inventory, "load", lambda: Catalogue({"pushfarm": farm}, {}, ()))
    assert [take_inventory(cpus=cpus).patterns[0].state for cpus in (2, 3)] == ["oversubscribed", "ready"]
    monkeypatch.setattr(placement, "usable_cpus", lambda: [0, 1])
    assert execute(["list", "patterns"]) == 0
    assert re.search(
        "^pushfarm +oversubscribed +needs 3 ranks: here with --oversubscribe. ", capsys.readouterr().out, re.MULTILINE
    )
    assert execute(["list"]) == 0
    assert "\noversubscribed: pushfarm\n" in capsys.readouterr().out


@pytest.mark.usefixtures("catalogue")
def test_the_matrix_gives_reasons() -> None:
    matrix = take_inventory(cpus=2).matrix
    runs = {name: {pattern: pairing.runs for pattern, pairing in row.items()} for name, row in matrix.items()}
    assert runs["shm"] == {"pingpong": "yes", "twoway": "yes", "oneway": "yes", "barrier": "yes"}
    assert runs[OPEN_MPI.id]["barrier"] == "native"
    assert runs["null"]["twoway"] is None
    assert runs["puts"]["barrier"] == "native"  # which needs no messages
    assert {
        (name, pattern): pairing.why for name, row in matrix.items() for pattern, pairing in row.items() if pairing.why
    } == {
        (transport, pattern): f"{pattern} needs several messages under way at once, which {transport} does not offer"
        for transport, pattern in (("null", "twoway"), ("puts", "pingpong"), ("puts", "twoway"))
    }


@pytest.mark.usefixtures("catalogue")
def test_every_launcher_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/ssh" if name == "ssh" else None)
    launchers = {item.name: item for item in take_inventory(cpus=2).launchers}
    assert launchers.keys() == LAUNCHERS.keys()
    assert launchers["openmpi"].more == {"programs": ["/opt/bin/mpiexec"]}
    assert launchers["ssh"].ready
    for name in ("mpich", "intel", "mpiexec", "pvm"):
        assert launchers[name].why
        assert launchers[name].how


@pytest.mark.usefixtures("catalogue")
def test_own_suites_are_listed_with_their_faults(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text('name = "mine"\ntitle = "My own"\ntransports = ["shm", "null"]\n[[series]]\npattern = "twoway"\n')
    bad.write_text('name = "bad"\nseries = []\nfoo = 1\n')
    mine, broken, gone = take_inventory([str(good), str(bad), str(tmp_path / "gone.toml")], cpus=2).suites
    assert (mine.name, mine.summary) == ("mine", "My own: 1 point, 1 more cannot run here")
    assert broken.name == "bad"
    assert "foo" in (broken.why or "")
    bad.write_text('name = "bad"\ntitle = "Bad"\n[[series]]\npattern = "pingpog"\ntransports = "smh"\n')
    why = take_inventory([str(bad)], cpus=2).suites[-1].why or ""
    assert "pingpog" in why
    assert "smh" in why
    bad.write_text('name = "twoway"\ntitle = "Bad"\n[[series]]\npattern = "pingpong"\n')
    why = take_inventory([str(bad)], cpus=2).suites[-1].why or ""
    assert "name: 'twoway' is a pattern's name: give the suite another one" in why
    assert "cannot read" in (gone.why or "")


@pytest.mark.usefixtures("catalogue")
def test_a_suite_that_has_nothing_to_measure(tmp_path: Path) -> None:
    path = tmp_path / "wide.toml"
    path.write_text('name = "wide"\ntitle = "Wide"\ntransports = "shm"\n[[series]]\npattern = "barrier"\nranks = 64\n')
    suite = take_inventory([str(path)], cpus=2).suites[-1]
    assert not suite.ready
    assert "more ranks than CPUs (2)" in (suite.why or "")


def test_on_one_cpu_quick_is_ready_and_other_suites_have_a_remedy() -> None:
    suites = {suite.name: suite for suite in take_inventory(cpus=1).suites}
    assert suites["quick"].ready
    assert suites["loggp"].why == (
        "more ranks than CPUs (1) would measure the scheduler; allow this process more CPUs, or use run --oversubscribe"
    )


def test_without_a_compiler_the_rest_is_still_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> Catalogue:
        raise NoCompiler("no C compiler found; install one with: apt-get install gcc")

    monkeypatch.setattr(inventory, "load", fail)
    assert execute(["list"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("Patterns and transports are not known: no C compiler found; install one with")
    assert "Launchers" in output
    assert re.search(r"^missing: [\w, \n]*\bquick\b", output, re.MULTILINE)
    assert [execute(["list", kind]) for kind in ("patterns", "transports", "matrix", "machines")] == [3, 3, 3, 0]


def test_each_pattern_that_a_transport_cannot_run_has_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the workers themselves: capabilities that lack, and what a pattern refuses for itself."""
    assert execute(["list", "matrix"]) == 0
    output = capsys.readouterr().out
    reasons = dict(re.findall(r"^no (\(\d+\)): (.*)$", output, re.MULTILINE))
    assert {*re.findall(r"no (\(\d+\))", output)} == {*reasons}
    assert all(reasons.values())
    assert any("ft: class S" in reason for reason in reasons.values())


@pytest.mark.usefixtures("catalogue")
def test_the_screens(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["list"]) == 0
    assert "mpi@mpich-9" in capsys.readouterr().out
    assert execute(["list", "transports"]) == 0
    assert "its mpicc fails; mend it" in capsys.readouterr().out
    assert execute(["list", "matrix"]) == 0
    output = capsys.readouterr().out
    assert "no (1): the pattern needs several messages under way at once, which the transport does not" in output
    assert "(2)" not in output
    assert "native: " in output
    assert execute(["list", "patterns"]) == 0
    assert "auto|native" in capsys.readouterr().out


def test_the_list_of_everything_names_a_transport_once_for_all_its_ready_variants(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("tcp", "tcp:nonblock", "tcp:spin", "shm")
    known = {name: make_transport(name) for name in names}
    monkeypatch.setattr(inventory, "load", lambda: Catalogue({}, known, ()))
    assert execute(["list"]) == 0
    assert re.search("^tcp, shm$", capsys.readouterr().out, re.MULTILINE)
    assert execute(["list", "transports"]) == 0
    assert re.search("^tcp:spin +ready", capsys.readouterr().out, re.MULTILINE)


def test_an_option_that_takes_numbers_in_place_of_a_word_says_how_many(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["list", "patterns", "--json"]) == 0
    options = [each for row in json.loads(capsys.readouterr().out)["patterns"] for each in row["options"]]
    known = {each["name"]: (*each["choices"], each["default"]) for each in options if each["list_max"] == 64}
    assert known == {"distances": ("grid", "grid"), "fragment": ("fixed", "fixed")}
    assert {each["name"] for each in options if each["list_max"]} == known.keys()
    assert not [word for each in options for word in each["choices"] if not re.fullmatch(r"[\w:-]+", word)]


@pytest.mark.usefixtures("catalogue")
def test_machines_are_those_of_the_archive_with_their_source(capsys: pytest.CaptureFixture[str]) -> None:
    details = {item.name: item.more for item in take_inventory(cpus=2).machines}
    assert details["gpmimd"]["figures"] == 208
    assert details["t3e"]["figures"] == 3  # the one that is printed as na is none
    assert execute(["list", "machines"]) == 0
    text = capsys.readouterr().out
    assert "64 T9000 transputers" in text
    assert "Roger Heeley" in text
    assert execute(["list", "machines", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["machines"]
    assert [machine["name"] for machine in listed] == list(details)
    assert listed[0]["source"]["date"] == "August 1997"
    assert execute(["list"]) == 0
    assert "paragon" in capsys.readouterr().out
