"""Health runs are compared by their hosts and links, with the engine of all other runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.health.made import store_health
from tests.builders import make_settings
from tests.cli.support import call_here

from hockney.analysis import host_series
from hockney.analysis.clusters import Pair
from hockney.analysis.compare import Comparison, Verdict, compare_runs
from hockney.analysis.compare.history import history_of
from hockney.errors import UsageError
from hockney.measure.check import usable_baseline
from hockney.measure.plan import Plan
from hockney.results.store import Store

Options = tuple[tuple[str, str], ...]


def compared(path: Path, hosts: int = 6, *, base: dict[Pair, float] | None = None, **new: object) -> Comparison:
    """Two runs whose times scatter by some per cent, of rates that are known."""
    store_health(path, hosts, rates=base, scatter=0.03)
    store_health(path, **{"hosts": hosts, "scatter": 0.03, **new})  # type: ignore[arg-type]
    with Store.open(path, readonly=True) as store:
        return compare_runs(store, 1, 2)


def of_verdict(comparison: Comparison, verdict: Verdict) -> set[tuple[str, Options]]:
    return {(each.point.pattern, each.point.options) for each in comparison.changes if each.verdict is verdict}


def every(pairs: list[Pair], rate: float) -> dict[Pair, float]:
    return dict.fromkeys(pairs, rate)


def test_runs_of_the_same_network_do_not_differ(tmp_path: Path) -> None:
    comparison = compared(tmp_path / "r.db", base={(1, 2): 0.5}, rates={(1, 2): 0.5})
    assert len(comparison.changes) == 6 + 6 + 6 + 30 + 15  # sending, receiving and waiting hosts, links both ways
    assert len(of_verdict(comparison, Verdict.SAME)) == len(comparison.changes)


def test_the_host_and_the_links_that_got_slower_are_named_and_no_others(tmp_path: Path) -> None:
    comparison = compared(tmp_path / "r.db", rates=every([(2, other) for other in range(6) if other != 2], 0.7))
    links = {("flows", (("from", "n3"), ("to", f"n{other}"))) for other in (1, 2, 4, 5, 6)}
    assert of_verdict(comparison, Verdict.SLOWER) == {("flows", (("from", "n3"),)), *links}
    assert not of_verdict(comparison, Verdict.INCONCLUSIVE)
    assert of_verdict(compared(tmp_path / "back.db", base={(2, 4): 0.7}), Verdict.FASTER) == {
        ("flows", (("from", "n3"), ("to", "n5")))
    }


@pytest.mark.parametrize("hosts", [3, 4, 5])
def test_a_slow_host_leaves_nothing_open_about_few_others(tmp_path: Path, hosts: int) -> None:
    slow = every([pair for other in range(hosts) if other != 2 for pair in ((2, other), (other, 2))], 0.3)
    comparison = compared(tmp_path / "r.db", hosts, rates=slow)
    assert all("n3" in dict(options).values() for _, options in of_verdict(comparison, Verdict.SLOWER))
    assert {("flows", (("from", "n3"),)), ("flows", (("to", "n3"),))} <= of_verdict(comparison, Verdict.SLOWER)
    assert not of_verdict(comparison, Verdict.INCONCLUSIVE)


def test_all_hosts_at_half_rate_are_slower_and_not_adrift(tmp_path: Path) -> None:
    pairs = [(a, b) for a in range(6) for b in range(6) if a != b]
    comparison = compared(tmp_path / "r.db", rates=every(pairs, 0.5))
    assert {pattern for pattern, _ in of_verdict(comparison, Verdict.SLOWER)} == {"flows"}
    assert len(of_verdict(comparison, Verdict.SLOWER)) == 6 + 6 + 30
    assert {pattern for pattern, _ in of_verdict(comparison, Verdict.SAME)} == {"rounds"}


@pytest.mark.parametrize(
    ("run", "kinds"), [({"unmeasured": (1,)}, {1}), ({"hosts": 3}, {1, 2}), ({"hosts": 2}, {1, 2})]
)
def test_links_are_compared_where_all_rounds_were_reached(
    tmp_path: Path, run: dict[str, object], kinds: set[int]
) -> None:
    comparison = compared(tmp_path / "r.db", **run)  # type: ignore[arg-type]
    assert {len(each.point.hosts) for each in comparison.changes} == kinds
    assert not comparison.has_no_verdict


def test_of_many_hosts_no_links_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_series, "LINKS_MAX", 5)
    assert len(compared(tmp_path / "r.db").changes) == 6 + 6 + 6


def test_a_history_of_a_host_has_the_night_in_which_it_got_slower(tmp_path: Path) -> None:
    for night in range(12):
        rates = every([(2, other) for other in range(4) if other != 2], 0.8 if night >= 7 else 1 + 0.002 * (night % 3))
        store_health(tmp_path / "r.db", 4, rates=rates, started_unix_s=1e9 + 86400 * night)
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        history = history_of(store, ["n3"])
        assert len(history.tracks) == 3 + 6 + 3
        (event,) = history.events
        assert (event.base, event.new) == (7, 8)
        assert ("flows", (("from", "n3"),)) in {(each.point.pattern, each.point.options) for each in event.changes}
        assert all(each.point.hosts[0] == "n3" and each.point.pattern == "flows" for each in event.changes)


def test_the_screen_has_few_rows_and_no_machine_state(tmp_path: Path) -> None:
    compared(tmp_path / "r.db", rates={(2, 4): 0.5})
    ended = call_here(tmp_path, "compare", "1", "2", "--store", "r.db")
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    (slower,) = [line for line in lines if line.endswith("slower")]
    assert slower.startswith("flows from=n3 to=n5 on tcp, 16 KiB")
    assert any(
        line.startswith("flows of 29 links on tcp, 16 KiB ") and line.endswith("no difference") for line in lines
    )
    assert any(line.startswith("flows to 6 hosts on tcp, 16 KiB ") for line in lines)
    assert len(lines) <= 10
    assert "launch" not in ended.stdout
    assert "state" not in ended.stdout


def test_a_run_without_measurements_of_hosts_is_no_baseline(tmp_path: Path) -> None:
    plan = Plan("health", (), **make_settings()).as_json() | {"hosts": ["n1", "n2", "n3", "n4"]}
    store_health(tmp_path / "r.db", 4, plan=plan, measurements=2, unmeasured=(1,))
    store_health(tmp_path / "r.db", 4, plan=plan)
    with Store.open(tmp_path / "r.db", readonly=True) as store:
        usable_baseline(store, 2)
        with pytest.raises(UsageError, match="run 1 can't be a baseline: it has fewer than 3 measurements") as refused:
            usable_baseline(store, 1)
    assert refused.value.fix is not None
    assert refused.value.fix.argv == ("hockney", "health", "--hosts", "n[1-4]", "--time", "10m")
