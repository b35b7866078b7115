"""Byte streams on models: the costs of a write and a read, the waits, and the busy CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.worker.sim import answer, lines, refused, simulate
from tests.worker.test_native import measure

COSTS = {"write": "100 1", "read": "50 0", "poll": "10 0", "drain": "1000 2", "ack": "3000 0"}
SIZE, WRITES = 100, 200


def streamed(tmp_path: Path, *more: str, buffer: int = 2 * SIZE, **options: Any) -> dict[str, Any]:
    model = lines(f"stream {buffer}", *(f"stream_cost {name} {cost}" for name, cost in COSTS.items()), *more)
    return answer(tmp_path, model, 2, "stream", SIZE, writes=WRITES, **options)


def each_ns(result: dict[str, Any]) -> float:
    return float(max(samples[0] for samples in result["elapsed_ns"])) / WRITES


def busy(result: dict[str, Any]) -> list[float]:
    return [cpu / wall for cpu, wall in zip(result["cpu_user_ns"], result["wall_ns"], strict=True)]


def test_the_slower_of_writing_and_draining_sets_the_pace(tmp_path: Path) -> None:
    """A write that does not wait for its acknowledgement is as fast as the other node takes it."""
    for read in ("blocking", "nonblocking"):
        quick = streamed(tmp_path, write="nonblocking", read=read)
        assert each_ns(quick) == pytest.approx(1000 + 2 * SIZE, rel=0.02)
        assert busy(quick)[0] == pytest.approx(1, rel=0.02)
        assert busy(quick)[1] == pytest.approx(1 if read == "nonblocking" else 50 / 1200, rel=0.05)
        slow = streamed(tmp_path, write="blocking", read=read)
        assert each_ns(slow) == pytest.approx(100 + SIZE + 3000, rel=0.02)
        assert busy(slow)[0] == pytest.approx((100 + SIZE) / (100 + SIZE + 3000), rel=0.05)


def test_a_slower_node_is_slower_at_its_own_part(tmp_path: Path) -> None:
    for source, quick, slow in ((0, 1200, 2 * 3200), (1, 2 * 1200, 3200)):
        factor = "node_factor 2 0"
        assert each_ns(streamed(tmp_path, factor, source=source, write="nonblocking")) == pytest.approx(quick, rel=0.02)
        assert each_ns(streamed(tmp_path, factor, source=source, write="blocking")) == pytest.approx(slow, rel=0.02)


def test_a_write_longer_than_the_buffer_goes_in_parts(tmp_path: Path) -> None:
    result = streamed(tmp_path, buffer=SIZE // 2, write="nonblocking", read="blocking")
    assert each_ns(result) == pytest.approx(2 * (1000 + SIZE + 50 + 100 + SIZE / 2), rel=0.05)


def test_a_model_without_streams_has_none(tmp_path: Path) -> None:
    answers, _ = simulate(tmp_path, lines(latency=10), 2, measure("stream", SIZE))
    assert answers[0]["kind"] == "error"
    assert "a byte stream" in answers[0]["message"]
    assert "'lag' is no stream_cost" in refused(tmp_path, lines("stream 10", "stream_cost lag 1 0"))
