"""Topologies by words and in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from hockney.analysis.predict.topology import parse_link, parse_network, parse_topology
from hockney.errors import UsageError


def test_words_have_links_of_the_measured_rate() -> None:
    tables = parse_topology("mesh:4x2", 1e9)
    assert (tables["topology"]["kind"], tables["topology"]["dimensions"]) == ("mesh", [4, 2])
    assert [link["bytes_per_s"] for link in tables["link"]] == [1e9]


def test_a_file_has_its_own_links(tmp_path: Path) -> None:
    path = tmp_path / "way.toml"
    path.write_text('ranks_per_node = 2\n[topology]\nkind = "switch"\nnodes = 4\nsource = "x"\n')
    assert set(parse_topology(str(path), 1e9)) == {"topology", "ranks_per_node"}


def test_links_have_the_rate_and_the_latency_that_are_asked_for(tmp_path: Path) -> None:
    assert parse_network(None, None, 1e9) == {}
    assert parse_network(None, "2us", 1e9) == {"link": [{"latency_ns": 2000.0, "source": "asked for"}]}
    (link,) = parse_network("torus:4", "2us", 1e9)["link"]
    assert (link["bytes_per_s"], link["latency_ns"]) == (1e9, 2000.0)
    (link,) = parse_network("torus:4", "10 Gbit/s, 300 ns", 1e9)["link"]
    assert (link["bytes_per_s"], link["latency_ns"]) == (1.25e9, 300.0)
    path = tmp_path / "way.toml"
    path.write_text('[topology]\nkind = "switch"\nnodes = 4\nsource = "x"\n')
    assert set(parse_network(str(path), "1GB/s", 1e9)) == {"topology", "link"}
    path.write_text(path.read_text() + '[[link]]\nlatency_ns = 5\nsource = "x"\n')
    with pytest.raises(UsageError, match="has links: leave out --link"):
        parse_network(str(path), "1GB/s", 1e9)


@pytest.mark.parametrize("text", ["", ",", "2us,", "10Gbit", "10", "2us,3us", "1GB/s,2GB/s", "0us", "1GB/s,2us,3us"])
def test_a_wrong_link_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no link: write its rate, its latency or both, for example 10Gbit/s,2us"):
        parse_link(text)


def test_a_link_out_of_range_is_named_as_it_was_given() -> None:
    said = "--link 0.000001B/s has 1 error:\n  bytes_per_s: 1e-06: input should be greater than or equal to 1"
    with pytest.raises(UsageError, match=said):
        parse_network(None, "0.000001B/s", 1e9)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[class.all]\n", "class is no part of a topology: keep topology, link, switch, tcp"),
        ("ranks_per_node = 2\n", "has no [topology]"),
        ("[topology\n", "is not TOML"),
    ],
)
def test_a_wrong_file_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "way.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        parse_topology(str(path), 1e9)
    assert said in str(refused.value)


@pytest.mark.parametrize("word", ["torus", "torus:", "torus:4x", "ring:8", "torus:1000000000", "none.toml"])
def test_a_wrong_word_is_refused(word: str) -> None:
    with pytest.raises(UsageError):
        parse_topology(word, 1e9)
