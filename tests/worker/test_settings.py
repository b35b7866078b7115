"""What libraries let users choose: the real ones of this machine, and answers that no worker gives."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.shared import script

from hockney.errors import UsageError
from hockney.worker.build import build_worker
from hockney.worker.catalogue import TransportInfo, load
from hockney.worker.errors import ProtocolError
from hockney.worker.settings import Choice, algorithms, is_taken, selection_trees, thresholds, variables


def library(word: str) -> TransportInfo:
    return load([word]).select([word])[0]


def test_open_mpi_names_the_algorithms_that_its_own_tool_lists() -> None:
    transport = library("mpi@openmpi-4")
    said = subprocess.run(
        ["ompi_info", "--param", "coll", "tuned", "--level", "9", "--parsable"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for operation in ("allreduce", "bcast", "alltoall", "barrier"):
        listed = re.findall(rf":coll_tuned_{operation}_algorithm:enumerator:value:(\d+):(\S+)", said)
        asked = [(each.word, each.name) for each in algorithms(transport, operation, 8)]
        assert asked == [(f"{number} 0 0", word) for number, word in listed if number != "0"]
        assert len(asked) > 4
    cut = [each.word for each in algorithms(transport, "bcast", 1 << 20) if "segments" in each.name]
    assert {"2 0 8192", "2 0 65536", "3 0 8192", "3 0 65536"} <= set(cut)
    assert algorithms(transport, "pingpong", 8) == []


@pytest.mark.parametrize("word", ["mpi@mpich-4", "mpi@mpich-5"])
def test_mpich_takes_each_algorithm_that_its_library_names(word: str) -> None:
    transport = library(word)
    found = {name: [each.name for each in algorithms(transport, name, 8)] for name in ("allreduce", "bcast", "barrier")}
    assert {"recursive_doubling", "reduce_scatter_allgather", "smp", "nb"} <= set(found["allreduce"])
    assert {"binomial", "scatter_ring_allgather"} <= set(found["bcast"])
    for operation, names in found.items():
        variable = f"MPIR_CVAR_{operation.upper()}_INTRA_ALGORITHM"
        numbers = [variables(transport, [variable], {variable: name})[variable].value for name in names]
        assert 0 not in numbers
        assert len({*numbers}) == len(names)
    upper, lower = sorted(selection_trees(transport))
    assert "composition=" in str(selection_trees(transport)[upper]["collective=bcast"])
    assert "algorithm=MPIR_Bcast" in str(selection_trees(transport)[lower]["collective=bcast"])


def test_a_variable_that_is_not_taken_shows() -> None:
    name = "btl_vader_eager_limit"
    for value, expected in (("8192", {name: 4096}), ("8192", {"btl_vader_no_such_limit": 8192})):
        choice = Choice("wrong", environment={f"OMPI_MCA_{name}": value}, expected=expected)
        assert not is_taken(library("mpi@openmpi-4"), choice)


def test_thresholds_are_a_quarter_and_four_times_those_of_now() -> None:
    transport = library("mpi@openmpi-4")
    found = thresholds(transport)
    assert [each.name for each in found] == [
        "OMPI_MCA_btl_vader_eager_limit=1024",
        "OMPI_MCA_btl_vader_eager_limit=16384",
    ]
    assert all(is_taken(transport, each) for each in found)


def test_a_transport_without_such_a_library() -> None:
    with pytest.raises(UsageError, match="shm cannot be tuned: choose an MPI"):
        variables(load([]).transports["shm"], ["coll_"])
    done = subprocess.run([build_worker(), "--variables"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "has no library with control variables" in done.stderr


OF_A_WORKER = {"name": "a", "constant": False, "value": 1, "words": {}, "about": ""}


@pytest.mark.parametrize(
    "said",
    [
        "",
        "@hk {",
        '@hk {"v":1,"kind":"variables","id":0}',
        *(
            "@hk " + json.dumps({"v": 1, "kind": "variables", "id": 0, "variables": [{**OF_A_WORKER, **wrong}]})
            for wrong in ({"name": "a b"}, {"value": 1.5}, {"words": {"x": "1"}}, {"more": 1})
        ),
    ],
)
def test_an_answer_that_no_worker_gives(tmp_path: Path, said: str) -> None:
    stub = script(tmp_path / "worker", f"echo '{said}'")
    with pytest.raises(ProtocolError, match="does not answer --variables"):
        variables(replace(library("mpi@openmpi-4"), executable=stub), ["a"])
