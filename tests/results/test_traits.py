"""Traits of a run's patterns and transports: stored with it, or those of a list."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hockney.model import PatternTraits
from hockney.results.traits import pattern_traits, traits_json, transport_traits
from hockney.worker.catalogue import Catalogue


@pytest.fixture(scope="module")
def stored(catalogue: Catalogue) -> dict[str, object]:
    traits = traits_json(catalogue.patterns.values(), catalogue.transports.values())
    return json.loads(json.dumps({"traits": traits}))  # type: ignore[no-any-return]


def test_stored_traits_are_those_of_the_worker(catalogue: Catalogue, stored: dict[str, object]) -> None:
    transport = catalogue.transports["unix"]
    for pattern in catalogue.patterns.values():
        assert pattern_traits(stored, pattern.name) == pattern.traits_on(transport)
    read = transport_traits(stored, "unix")
    assert (read.caps, read.carrier, read.limits) == (transport.caps, "kernel", transport.limits)
    assert read.sleeps


@pytest.mark.parametrize("name", ["pingpong", "barrier", "memload", "pairs", "alltoall", "ft", "rounds", "pushfarm"])
def test_a_pattern_whose_traits_are_not_stored_has_those_of_the_worker(name: str, stored: dict[str, object]) -> None:
    now = pattern_traits(stored, name)
    assert now.summary
    assert pattern_traits({}, name) == replace(now, summary="")


@pytest.mark.parametrize("name", ["shm", "threads", "null", "pipe", "unix", "tcp", "udp"])
def test_a_transport_whose_traits_are_not_stored_has_that_carrier(name: str, stored: dict[str, object]) -> None:
    then, now = transport_traits({}, name), transport_traits(stored, name)
    assert (then.carrier, then.below, then.sleeps) == (now.carrier, now.below, now.sleeps)


@pytest.mark.parametrize(
    ("name", "is_harness", "is_paced"),
    [("null", True, False), ("sim@quick", False, False), ("shm", False, False), ("pipe", False, False),
     ("tcp", False, True), ("udp", False, False)],
)  # fmt: skip
def test_the_harness_carries_nothing_and_tcp_alone_is_paced(
    name: str, is_harness: bool, is_paced: bool, stored: dict[str, object]
) -> None:
    traits = transport_traits(stored, name)
    assert (traits.is_harness, traits.is_paced) == (is_harness, is_paced)


def test_a_transport_whose_traits_are_not_stored_is_above_shm_only_if_it_is_the_plain_one() -> None:
    assert transport_traits({}, "mpi@openmpi-4.1.4").below == "shm"
    assert transport_traits({}, "mpi@openmpi-4.1.4:rma").below is None


def test_a_trait_of_a_later_version_is_ignored() -> None:
    facts = {"traits": {"patterns": {"new": {"sized": False, "colour": "red"}}}}
    assert pattern_traits(facts, "new") == PatternTraits(sized=False)
