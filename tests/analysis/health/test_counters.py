"""What is found from the counters of hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.analysis.health.made import known_host, read_health, store_health
from tests.analysis.health.test_health import both, sends

from hockney.analysis.health import Health


def test_a_host_without_cpu_time_is_named_so_and_nothing_that_follows_from_it(tmp_path: Path) -> None:
    """A cgroup held n4 back for half of the 20 s, and a hypervisor n2; all of them lost a little time."""

    def counts(*, is_after: bool, held_us: int, stolen: int) -> dict[str, int]:
        cpu = {"uptime_cs": 7_000, "wanted_ticks": 4_000, "stolen_ticks": 10, "held_back_us": 3, "quota_mcpus": 20}
        more = {"uptime_cs": 2_000, "wanted_ticks": 1_000, "stolen_ticks": stolen, "held_back_us": held_us}
        return {key: value + more.get(key, 0) * is_after for key, value in cpu.items()}

    def made(counted: dict[str, Any]) -> Health:
        store_health(tmp_path / "r.db", 6, known=known, counted=[counted], **faults)
        return read_health(tmp_path / "r.db")

    lacks = {"n2": (0, 600), "n4": (10_000_000, 30)}
    before, after = (
        {
            f"n{n}": {"cpu": counts(is_after=is_after, held_us=held_us, stolen=stolen)}
            for n in range(1, 7)
            for held_us, stolen in [lacks.get(f"n{n}", (500_000, 30))]
        }
        for is_after in (False, True)
    )
    known = [known_host(name, counters=each) for name, each in before.items()]
    faults: dict[str, Any] = {
        "rates": dict.fromkeys(both(sends(3, 6)), 0.25),
        "lost": dict.fromkeys(both([(1, 4)]), 10.0),
    }
    health = made(after)
    assert [(finding.code, finding.facts["host"]) for finding in health.findings] == [
        ("throttled host", "n2"),
        ("throttled host", "n4"),
    ]
    of_n2, of_n4 = (finding.facts for finding in health.findings)
    assert (of_n2["stolen_share"], of_n4["held_share"], of_n4["quota_cpus"]) == (0.6, 0.5, 0.02)
    assert of_n4["of_usual_share"] == pytest.approx(0.25, rel=1e-3)
    assert {finding.code for finding in made(before).findings} == {"slow host", "lossy link"}
    everywhere = made(dict.fromkeys(after, after["n4"]))
    assert {finding.code for finding in everywhere.findings} == {"slow host", "lossy link"}
