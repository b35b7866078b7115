"""Rules files, as the real libraries follow them: for their operation, ranks and sizes, and for no others."""

from __future__ import annotations

import functools

import pytest

from hockney.analysis.tune.rules import Rule
from hockney.measure.plan import Plan
from hockney.measure.tune import Contest, contest, failure, is_read, kept
from hockney.model import Point
from hockney.worker.catalogue import load

LIBRARIES = ["mpi@openmpi-4", "mpi@mpich-4", "mpi@mpich-5"]


def prepared(word: str, operation: str, algorithm: str) -> tuple[Contest, Rule]:
    """A library, and a rule for 32 to 64 KiB on two ranks: none of its own calls is of that size."""
    catalogue = load([word])
    (transport,) = catalogue.select([word])
    found = contest(Plan("a test", (Point(transport.name, operation, 2, 65536),)), catalogue)
    winner = next(each for each in found.choices[operation] if each.name == algorithm)
    return found, Rule(operation, 2, 32768, 65536, winner, ((1.1, 1.2, 1.3),))


@pytest.mark.parametrize("word", LIBRARIES)
@pytest.mark.parametrize(
    ("operation", "algorithm"), [("allreduce", "recursive_doubling"), ("reduce_scatter_block", "recursive_halving")]
)
def test_a_file_is_followed_where_its_rule_holds_and_nowhere_else(word: str, operation: str, algorithm: str) -> None:
    found, rule = prepared(word, operation, algorithm)
    point = functools.partial(Point, found.transport.name, operation)
    followed = {at: is_read(found, rule, point(*at)) for at in [(2, 32768), (2, 65536)]}
    not_followed = {at: is_read(found, rule, point(*at)) for at in [(2, 16384), (2, 131072), (3, 65536)]}
    assert all(followed.values()), followed
    assert not any(not_followed.values()), not_followed
    with kept(found.files([rule])) as environment:
        assert failure(found, point(2, 65536), environment) is None


@pytest.mark.parametrize(
    ("word", "variable", "value"),
    [
        ("mpi@openmpi-4", "OMPI_MCA_coll", "^tuned"),
        ("mpi@mpich-4", "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "recursive_doubling"),
        ("mpi@mpich-5", "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "recursive_doubling"),
    ],
)
def test_a_file_that_is_ignored_is_noticed(
    monkeypatch: pytest.MonkeyPatch, word: str, variable: str, value: str
) -> None:
    found, rule = prepared(word, "allreduce", "recursive_doubling")
    assert is_read(found, rule)
    monkeypatch.setenv(variable, value)
    assert not is_read(found, rule)
