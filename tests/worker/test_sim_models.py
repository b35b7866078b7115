"""Models that are wrong: one sentence each, which names the file, the line and the culprit."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from tests.shared import finished
from tests.worker.sim import SIM, lines, refused, simulate
from tests.worker.test_native import measure

from hockney.worker.build import build_worker
from hockney.worker.machine_model import compiled_file, load_model

GRAPH = ["topology graph 1 2", "edge 0 2", "edge 1 2"]
CLASS = ["class all any", "segment 0 eager 0"]


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (["nonsense 1"], "line 2: unknown keyword 'nonsense'"),
        ([], "line 1: the model has no topology"),
        (["topology cube 3"], "line 2: 'cube' is no topology"),
        (["topology torus"], "line 2: 'topology' has 1 values, not 2"),
        (["topology torus 0"], "line 2: '0' of topology must be from 1 to 1048576"),
        (["topology tree 2 down:2 width:1,1"], "line 2: 'down:2' needs 2 whole numbers of 1 or more"),
        (["topology tree 2 width:1,1 down:2,2"], "line 2: a tree needs 'down:' and its numbers"),
        (["topology dragonfly 9 2 2 1", *CLASS], "too few global links"),
        (["topology switch"], "line 2: no class of messages applies to any pair"),
        (["topology switch", "class a same_node", "segment 0 eager 0"], "no class of messages applies to any pair"),
        (["topology switch", "class a any"], "line 3: class a has no segment for the largest messages"),
        (["topology switch", "class a any", "segment 64 eager 0"], "line 4: class a has no segment for the largest"),
        (["topology switch", *CLASS, "segment 64 eager 0"], "line 5: the segments of class all need increasing sizes"),
        (["topology switch", "segment 0 eager 0"], "line 3: a segment must follow its class"),
        (["topology switch", "class a any", "segment 0 fast 0"], "line 4: 'fast' is no protocol"),
        (["topology switch", "class a any", "cost latency 1 0 0"], "line 4: a cost must follow its segment"),
        (lines(speed=1), "line 5: 'speed' is no cost"),
        (lines(latency=-1), "line 5: '-1' of cost must be from 0 to 1e+15"),
        (lines(latency="nan"), "line 5: 'nan' is not a number"),
        (lines(latency="1 2"), "line 5: 'cost' has 3 values, not 4"),
        (["topology switch", *CLASS, "cost latency 0 0 5"], "line 5: a cost per packet needs the bytes of a packet"),
        (["topology switch", "class a switches 3 1"], "line 3: '1' of class must be from 3"),
        (
            ["topology switch", *CLASS, "class put:a same_node", "segment 0 eager 0"],
            "no class of puts applies to any pair",
        ),
        (["edge 0 1"], "line 2: only a graph has edges"),
        (["topology graph 1 2", "edge 0 3"], "line 3: '3' of edge must be from 0 to 2"),
        (["topology graph 1 2", "edge 1 1"], "line 3: an edge needs two ends"),
        (["topology graph 1 2", "edge 0 2", *CLASS], "there is no route from node 0 to node 1"),
        ([*GRAPH, "via 0 1 0", *CLASS], "a route goes from 0 to 0, where there is no edge"),
        ([*GRAPH, "via 0 2", *CLASS], "'via' has 2 values, not 3"),
        (["place 1 0"], "line 2: the place of rank 0 is missing"),
        (["place 0 5", "place 1 0", "topology torus 4", *CLASS], "a rank is on node 5, but there are 4 nodes"),
        (["ranks 1", "topology switch", *CLASS], "it allows at most 1 ranks, not 2"),
        (["place 0 0", "topology switch", *CLASS], "it places 1 ranks, not 2"),
        (["topology torus 1", *CLASS], "a rank is on node 1, but there are 1 nodes"),
        (["node_cpus 0"], "line 2: '0' of node_cpus must be from 1"),
        (["topology graph 0 9", "edge 0 8", "topology graph 0 2"], "line 4: the model has a topology already"),
        (["topology tree 2 down:1024,1024 width:4096,1024", *CLASS], "the tree has too many links"),
        (["ranks 1.5"], "line 2: '1.5' is not a whole number"),
        (["topology tree 1 down:1048577 width:1", *CLASS], "'down:1048577' needs 1 whole numbers of 1 or more"),
        (["noise gaussian 1"], "line 2: 'gaussian' is no noise"),
        (["noise lognormal"], "line 2: 'noise' has 1 values, not 2"),
        (["name " + "x" * 100], "line 2: the name 'xxx"),
        (["via " + "1 " * 600], "line 2: the line has more than 512 words"),
        (["# " + "x" * 5000], "line 2: the line is too long"),
    ],
)
def test_a_wrong_model(tmp_path: Path, model: list[str], says: str) -> None:
    said = refused(tmp_path, model)
    assert said.startswith("hockney worker: model ")
    assert says in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("topology", ["tree 1 down:1048576 width:1", "torus 1048576"])
def test_the_largest_models(tmp_path: Path, topology: str) -> None:
    answers, done = simulate(tmp_path, lines(topology=topology), 1, "quit")
    assert (done.returncode, done.stderr, answers[0]["kind"]) == (0, "", "bye")


def test_an_error_of_what_uses_a_models_file_is_not_the_folders() -> None:
    """And the file is gone afterwards."""
    held = contextlib.ExitStack()
    path = held.enter_context(compiled_file(load_model("gpmimd"), 2))
    assert path.read_text()
    with pytest.raises(FileNotFoundError, match="no fork"), held:
        raise FileNotFoundError("no fork")
    assert not path.exists()


def test_no_model(tmp_path: Path) -> None:
    worker = build_worker(SIM)
    for words, says in (
        ((), "needs --model FILE: 'sim'"),
        (("--model", str(tmp_path / "none")), "No such file"),
        (("--model", "x", "--seed", "-1"), "not a seed: '-1'"),
    ):
        done = finished([worker, "-t", "sim", *words])
        assert done.returncode == 2
        assert says in done.stderr
    (tmp_path / "empty").write_text("")
    done = finished([worker, "--model", tmp_path / "empty"])
    assert "the model is empty" in done.stderr
    (tmp_path / "other").write_text("hockney-model 2\n")
    done = finished([worker, "--model", tmp_path / "other"])
    assert "begins with the line 'hockney-model 1'" in done.stderr


def test_comments_and_blank_lines(tmp_path: Path) -> None:
    answers, done = simulate(tmp_path, ["", "# a comment", *lines(latency="5 0 0 # ns"), "  "], 2, "quit")
    assert (answers[0]["kind"], done.returncode) == ("bye", 0)


@pytest.mark.parametrize(
    ("model", "pattern", "size"),
    [
        (lines("link 0 1e-6 0", send_cpu=100), "pingpong", 8),
        (lines("link 0 0 1e15", send_cpu=100), "pingpong", 8),
        (lines(send_cpu=1e15), "pingpong", 8),
        (lines(out=5e14), "alltoall", 8),
        (lines("noise lognormal 5", send_cpu=1e14), "pingpong", 8),
        (lines("node_factor 1e6 0", send_cpu=1e14), "pingpong", 8),
        (lines("barrier 1e15 0"), "barrier", 0),
    ],
)
def test_virtual_time_never_wraps_round(model: list[str], pattern: str, size: int, tmp_path: Path) -> None:
    """A link of 1e-6 B/s gave 600 ns."""
    answers, done = simulate(tmp_path, model, 4, measure(pattern, size, batch=1, samples=5))
    assert done.returncode == 0
    assert answers[0]["kind"] == "error"
    assert answers[0]["message"].startswith("it takes more than 13 days of virtual time")


def test_a_point_that_takes_less_is_simulated_after_one_that_takes_too_long(tmp_path: Path) -> None:
    commands = [measure("pingpong", size, batch=1, samples=1) for size in (8, 0)]
    first, second, _ = simulate(tmp_path, lines("link 0 1e-6 0", send_cpu=100), 2, *commands)[0]
    assert (first["kind"], second["kind"], second["elapsed_ns"]) == ("error", "measure", [[200], [200]])


def test_long_times_below_the_end_are_right(tmp_path: Path) -> None:
    answers, _ = simulate(tmp_path, lines("link 0 1 0"), 2, measure("oneway", 100_000, batch=1, samples=1))
    assert answers[0]["elapsed_ns"][1] == [100_000 * 10**9]
