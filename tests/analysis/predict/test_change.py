"""Changes of models: the meaning of each name, and refusals."""

from __future__ import annotations

from typing import Any

import pytest
from tests.analysis.predict.machines import GAP, LATENCY, PER_BYTE, RECEIVE, SEND, content, model

from hockney.analysis.predict.change import PARAMETERS, changed, parameters_of, parse_change
from hockney.errors import UsageError
from hockney.worker.machine_model import Model, builtin_models, load_model
from hockney.worker.machine_schema import CostSegment


def after(*words: str, of: Model | None = None) -> dict[str, Any]:
    """The content of a model with these changes."""
    models = {"": of or model()}
    return dict(changed(models, [parse_change(word) for word in words])[""].content)


def segment(*words: str, of: Model | None = None) -> dict[str, Any]:
    first: dict[str, Any] = after(*words, of=of)["class"]["all"]["segment"][0]
    return first


@pytest.mark.parametrize(
    ("word", "key", "expected"),
    [
        ("L=0.5x", "latency", {"fixed_ns": LATENCY / 2}),
        ("L=+1us", "latency", {"fixed_ns": LATENCY + 1000}),
        ("o_s=2x", "send_cpu", 2 * SEND),
        ("o_r=+300ns", "recv_cpu", RECEIVE + 300),
        ("g=.5x", "transfer", {"fixed_ns": GAP / 2, "per_byte_ns": PER_BYTE}),
        ("g=+30 ns", "transfer", {"fixed_ns": GAP + 30, "per_byte_ns": PER_BYTE}),
        ("G=3x", "transfer", {"fixed_ns": GAP, "per_byte_ns": 3 * PER_BYTE}),
        ("bandwidth=2x", "transfer", {"fixed_ns": GAP, "per_byte_ns": PER_BYTE / 2}),
        ("class.all.segment.transfer=2x", "transfer", {"fixed_ns": 2 * GAP, "per_byte_ns": 2 * PER_BYTE}),
        ("class.all.segment[1].transfer.per_byte_ns=7", "transfer", {"fixed_ns": GAP, "per_byte_ns": 7}),
        ("class.all.segment.latency=5us", "latency", 5000.0),
        ("class.all.segment.late=+1us", "late", 1000.0),
    ],
)
def test_a_change_affects_the_costs_that_its_name_means(word: str, key: str, expected: object) -> None:
    now = segment(word)
    assert now.pop(key) == expected
    assert now.pop("source") == f"made up; {word}"
    assert now == {name: value for name, value in segment().items() if name not in (key, "source")}


def test_other_tables_change_with_their_parameters() -> None:
    tables: dict[str, Any] = {
        "link": [{"bytes_per_s": 1e9, "latency_ns": 10, "source": "made up"}],
        "topology": {"kind": "torus", "dimensions": [4, 4], "turn_ns": 8, "source": "made up"},
        "barrier": {"per_round_ns": 40, "source": "made up"},
    }
    of = model(**tables)
    halved = after("L=0.5x", of=of)
    assert (halved["link"][0]["latency_ns"], halved["topology"]["turn_ns"], halved["barrier"]["per_round_ns"]) == (
        5,
        4,
        20,
    )
    assert after("L=+5ns", of=of)["barrier"]["per_round_ns"] == 45
    for word, link, per_byte in (("link.bandwidth=2x", 2e9, PER_BYTE), ("bandwidth=2x", 2e9, PER_BYTE / 2)):
        assert after(word, of=of)["link"][0]["bytes_per_s"] == link
        assert segment(word, of=of)["transfer"]["per_byte_ns"] == per_byte
    assert after("link.bytes_per_s=4GB/s", of=of)["link"][0]["bytes_per_s"] == 4e9
    assert after("topology.dimensions=[8, 2]", of=of)["topology"]["dimensions"] == [8, 2]
    assert after("ranks_per_node=2")["ranks_per_node"] == 2


@pytest.mark.parametrize(("name", "key"), [("L", "ack"), ("o_s", "write"), ("o_r", "read"), ("g", "drain")])
def test_a_time_is_added_to_streams_too(name: str, key: str) -> None:
    of = load_model("ancor")
    costs = dict(of.content["stream"])
    word = f"{name}=+1us"
    costs |= {key: {**costs[key], "fixed_ns": costs[key]["fixed_ns"] + 1000}, "source": f"{costs['source']}; {word}"}
    assert after(word, of=of)["stream"] == costs


def test_computing_and_cpus_need_no_table() -> None:
    assert after("compute=0.5x")["cpu"] == {"compute_factor": 0.5, "source": "compute=0.5x"}
    assert after("cpu.per_node=2")["cpu"] == {"per_node": 2, "source": "cpu.per_node=2"}


def test_a_parameter_that_two_classes_share_is_changed_once() -> None:
    """Made by a program, a table may be there twice."""
    shared = content()
    shared["put"] = shared["class"]
    assert segment("L=2x", of=Model.from_content("shared", shared))["latency"] == {"fixed_ns": 2 * LATENCY}


def test_changes_follow_each_other_and_leave_the_model_unchanged() -> None:
    before = model()
    assert segment("L=2x", "L=+1us", of=before)["latency"] == {"fixed_ns": 2 * LATENCY + 1000}
    assert before == model()
    assert changed({"": before}, []) == {"": before}


def test_every_cost_of_a_message_is_of_one_parameter() -> None:
    of_messages = [name for key in ("L", "o_s", "o_r", "g") for name in PARAMETERS[key].of_message]
    keys = {field.alias or name for name, field in CostSegment.model_fields.items()}
    assert sorted(of_messages) == sorted(keys - {"source", "up_to_bytes", "protocol", "packet_bytes"})
    assert PARAMETERS["G"].of_message == PARAMETERS["bandwidth"].of_message == PARAMETERS["g"].of_message


def test_which_parameters_a_model_has() -> None:
    assert parameters_of(model()) == ["L", "o_s", "o_r", "g", "G", "bandwidth", "compute"]
    assert "link.bandwidth" in parameters_of(load_model("gpmimd"))


@pytest.mark.parametrize("name", builtin_models())
def test_every_model_can_be_changed(name: str) -> None:
    of = load_model(name)
    for parameter in parameters_of(of):
        assert changed({"": of}, [parse_change(f"{parameter}=0.5x")])[""].record["key"] != of.record["key"]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("L", "'L' is not a change: write NAME=FACTORx or NAME=+TIME"),
        ("=2x", "'=2x' is not a change"),
        ("L=0x", "'L=0x' needs a factor above 0 other than 1: write for example L=0.5x"),
        ("L=1x", "needs a factor above 0 other than 1"),
        ("L=-2x", "'L=-2x' needs a factor above 0"),
        ("L=nanx", "'L=nanx' needs a factor above 0"),
        ("L=9e99x", "'L=9e99x' needs a factor above 0"),
        ("L=-1us", "'L=-1us' is negative: write a factor below 1, for example L=0.5x"),
        ("L=+1", "'1' is not a time: write for example 1.5 us"),
        ("L=5us", "'L=5us' has neither a factor nor a plus"),
        ("G=+1ns", "G takes a factor, not a time"),
        ("Latency=2x", "unknown parameter 'Latency': did you mean 'L' (latency)?"),
        ("titl=2x", "unknown parameter 'titl': known are L, o_s"),
        ("link.bandwith=2x", "unknown parameter 'link'"),
        ("class.al.segment.latency=2x", "unknown key of class 'al': did you mean 'all'?"),
        ("class.all.segment[2].latency=2x", "unknown key of class.all 'segment[2]'"),
        ("class.all.segment.late=2x", "unknown key of class.all.segment 'late'"),
        ("title=2x", "title is no number"),
        ("link.bandwidth=2x", "changes nothing, as the model has no such cost: change one of L, o_s, o_r"),
        ("topology.nodes=64", "changes nothing, as that is so already"),
        ("topology.nodes=many", "made-up with topology.nodes=many has 1 error"),
        ("ranks_per_node=0", "greater than or equal to 1"),
        ("nonsense=3", "unknown parameter 'nonsense'"),
    ],
)
def test_a_wrong_change_is_refused_with_a_remedy(word: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        after(word)
    assert said in str(refused.value)
