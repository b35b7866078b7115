"""Oddities in the published figures, each with a test; docs/explain.md has the same list.

Every finding is computed from the figures: the last tests change them, and the findings change with them.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from pathlib import Path

import pytest
from tests.analysis.explain.readings import gaps_of, near
from tests.archive.oddities import ODDITIES, steps, text_of_record

import hockney.archive
from hockney.analysis.explain import DETECTORS, Explanation, explain
from hockney.analysis.explain.curve import CurvePoint, MeasuredCurve, Reading
from hockney.analysis.finding import Finding
from hockney.archive import machines, published
from hockney.archive.curves import estimate_of, read_machine
from hockney.archive.explained import explain_machine
from hockney.machine.files import rows_of
from hockney.report.findings import evidence_of, gap_text, sentence_of
from hockney.stats.fit import Estimate

FOLDER = Path(hockney.archive.__file__).parent


@functools.cache
def explained(machine: str) -> Explanation:
    return explain_machine(machines()[machine])


def with_code(machine: str, code: str) -> list[Finding]:
    return [finding for finding in explained(machine).findings if finding.code == code]


def typed(machine: str, code: str, pattern: str = "", cause: str = "") -> Finding:
    """The one finding with this code, of this pattern and cause where they are given."""
    findings = with_code(machine, code)
    matching = [
        finding for finding in findings if pattern in ("", finding.subject.pattern) and cause in ("", finding.cause)
    ]
    assert len(matching) == 1, findings
    return matching[0]


def test_every_sentence_has_evidence_units_and_intervals_with_a_width() -> None:
    findings = [finding for machine in machines() for finding in explained(machine).findings]
    texts = [sentence_of(finding) for finding in findings]
    assert all(evidence_of(finding) for finding in findings)
    assert any("KiB" in text for text in texts)
    assert not [text for text in texts if re.search(r"\b\d{4,} B\b", text)]
    spans = [span for text in texts for span in re.findall(r"([\d.,]+(?: [num]?s)?) \((.+?) to (.+?)\)", text)]
    assert spans
    assert not [span for span in spans if span[1] == span[2]]


def test_the_oddities_that_ship_are_those_that_the_detectors_find() -> None:
    assert (FOLDER / "oddities.json").read_text(encoding="utf-8") == text_of_record()
    for name in machines():
        computed = explain(read_machine(machines()[name]), (*DETECTORS, *ODDITIES))
        assert list(map(sentence_of, explained(name).findings)) == list(map(sentence_of, computed.findings))


def test_1_the_funnel_of_4_senders_is_that_of_8() -> None:
    same = typed("gpmimd", "identical rows")
    assert (same.subject.pattern, same.subject.ranks, same.facts["same_as_ranks"]) == ("funnel", 5, 9)
    assert same.subject.sizes_bytes == (4, 64, 256, 1024)
    law = typed("gpmimd", "broken scaling law", "funnel")
    assert (law.facts["at"], law.facts["at_ranks"]) == (4, [5])
    assert 1.9 < law.facts["least_ratio"] < law.facts["most_ratio"] < 2.1


def test_2_push_with_26_receivers_is_faster_and_pull_is_not() -> None:
    law = typed("gpmimd", "broken scaling law", "pushfarm")
    assert (law.facts["axis"], law.facts["at"]) == ("receivers", 26)
    assert len(law.facts["over_law_ratio"]) == 6  # at every number of senders
    assert 0.89 < law.facts["least_ratio"] < law.facts["most_ratio"] < 0.93
    # Pull falls by 1.5 % at most, less than such a finding takes; unseen.toml says so.
    assert "pullfarm" not in {finding.subject.pattern for finding in with_code("gpmimd", "broken scaling law")}


def test_3_the_farm_of_3_has_the_speed_of_3_switches_the_one_of_5_that_of_1() -> None:
    speeds = typed("gpmimd", "two speeds")
    assert (speeds.subject.pattern, speeds.subject.ranks) == ("robpush delay_us=0", 3)
    assert speeds.facts["slow_ns_per_byte"].value == pytest.approx(319, abs=1)
    assert speeds.facts["fast_ns_per_byte"].value == pytest.approx(209, abs=1)
    assert [speeds.facts[name] for name in ("slow_like", "fast_like", "fast_ranks")] == ["pairs", "oneway", 5]


def test_4_times_of_the_farms_that_compute_are_multiples_of_a_slice() -> None:
    slices = typed("gpmimd", "time slices")
    assert (slices.subject.pattern, slices.facts["period_ns"]) == ("robpull, robpush", 128e3)


def test_5_different_data_cost_more_beyond_the_cache_of_8_kib() -> None:
    assert typed("gpmimd", "data beyond a cache").subject.sizes_bytes == (8192, 13568)


def test_6_all_to_all_among_62_loses_bandwidth_not_time_per_message() -> None:
    law = typed("gpmimd", "broken scaling law", "alltoall", "bandwidth")
    assert law.facts["at"] == 61
    assert law.subject.sizes_bytes == (64, 256, 1024)


def test_7_two_directions_together_are_no_full_duplex() -> None:
    limit = typed("gpmimd", "duplex limit", cause="directions slow each other down")
    facts = [limit.facts[name] for name in ("first_bytes", "last_bytes")]
    assert facts == [4, 1024]
    assert limit.facts["first_ratio"].value == pytest.approx(0.742, abs=0.001)
    assert limit.facts["last_ratio"].value == pytest.approx(0.586, abs=0.001)


def test_8_through_3_switches_4_bytes_take_as_long_as_a_packet_of_32() -> None:
    """Of oneway the line gives the time of 4 B for 15 B, less than four times as much, so it has no finding."""
    far = typed("gpmimd", "flat latency")
    assert far.subject.pattern == "pairs"
    assert far.facts["flat_bytes"].value == pytest.approx(32, abs=1)


def test_9_a_delay_is_not_timed_by_a_clock() -> None:
    delay = typed("gpmimd", "long delays", "robpush")
    ratios = [delay.facts[name].value for name in ("least_ratio", "most_ratio")]
    assert ratios == pytest.approx([1.05, 1.15], abs=0.01)


def test_10_pull_is_not_linear_in_its_senders_and_push_is() -> None:
    law = typed("gpmimd", "kinked scaling law")
    assert (law.subject.pattern, law.facts["senders"]) == ("pullfarm", [8, 26])  # 2, 4, 6 and 16 are on one line
    assert law.facts["most_off_ns"] == pytest.approx(11_100, abs=50)
    assert law.effect == pytest.approx(0.061, abs=0.001)


def test_11_contended_puts_are_faster_than_uncontended_ones() -> None:
    faster = with_code("t3d", "faster under load")
    assert {finding.subject.pattern for finding in faster} == {"putring statistic=min", "putring statistic=mean"}
    assert max(finding.facts["gain_ns"].value for finding in faster) == pytest.approx(192, abs=1)


def test_12_one_word_goes_a_faster_way_than_several() -> None:
    steps = with_code("t3d", "protocol switch")
    assert sorted(step.subject.sizes_bytes for step in steps) == [(8, 80), (8, 176)]
    # The start-up of several words, from n_1/2, is 1.17 to 1.40 us, against 1.01 and 1.10 us of one.
    assert all(0.3 < step.effect < 0.45 for step in steps)


def test_13_derived_rates_that_do_not_follow() -> None:
    assert set(typed("t3d", "derived figure").facts["printed"]) == {"37", "15", "67", "50"}
    longer = typed("t3d", "part longer than the whole").facts
    rows = list(zip(longer["rows"], longer["latencies"], longer["totals"], strict=True))
    assert {(86, 83), (101, 98)} <= {(latency, total) for _, latency, total in rows}
    assert not [row for row, *_ in rows if row.startswith("Remote DRAM to Cache")]  # 107 of 111, and 122 of 126


def test_14_two_elements_share_one_interface() -> None:
    path = typed("t3d", "shared path")
    assert path.facts["sharing"] == 2
    assert path.facts["of_alone_ratio"] == pytest.approx(0.487, abs=0.001)


def test_15_latencies_out_of_order_and_a_step_below_32_bytes() -> None:
    orders = with_code("scali", "streaming against round trip")
    seen = {(order.subject.pattern, order.cause, order.facts["time_ns"].value) for order in orders}
    assert seen == {
        ("oneway", "the sender waits", 6500),
        ("oneway", "messages overlap", 1500),
        ("twoway", "messages overlap", 5400),
    }
    steps = {(step.subject.state, step.subject.sizes_bytes) for step in with_code("scali", "protocol switch")}
    assert ("inter-node", (0, 32)) in steps


def test_16_the_own_block_slows_the_all_to_all_of_2() -> None:
    block = typed("scali", "broken scaling law", cause="own block")
    rates = [block.facts[name].value for name in ("among_2_bytes_per_s", "among_4_bytes_per_s")]
    assert rates == [67.7e6, 69.9e6]


def test_17_around_1_millisecond_does_not_show_that_a_blocking_write_costs_per_byte_too() -> None:
    assert not explained("ancor").findings
    assert "1 millisecond" in gap_text(gaps_of(explained("ancor"))["whether a blocking write costs per byte too"])


def test_scali_does_not_say_whether_two_way_counts_one_direction_so_no_duplex_ratio_follows() -> None:
    assert not with_code("scali", "duplex limit")
    typed("gpmimd", "duplex limit")  # Com-1.2 states its divisor


def test_statements_without_figures_have_a_reason() -> None:
    names = {detector.what for detector in (*DETECTORS, *ODDITIES)}
    unseen = {row["what"] for row in rows_of(FOLDER / "unseen.toml")}
    for machine in machines():
        for what, gap in gaps_of(explained(machine)).items():
            assert what in names | unseen or what.startswith("lines through")
            assert gap_text(gap)
            assert gap.how is None, "nobody can measure it any more"
    # The Paragon's curves are a picture: its blip at the page size has no figure.
    assert not explained("paragon").findings
    assert "a picture" in gap_text(gaps_of(explained("paragon"))["a blip at the page size"])


def test_figures_that_keep_the_laws_show_no_oddity() -> None:
    """The same machine with the funnel as it should be."""
    reading = read_machine(machines()["gpmimd"])

    def righted(curve: MeasuredCurve) -> MeasuredCurve:
        if curve.pattern != "funnel" or curve.ranks != 5:
            return curve
        return dataclasses.replace(
            curve, points=tuple(CurvePoint(point.bytes, point.time_ns * 0.5) for point in curve.points)
        )

    better = dataclasses.replace(reading, curves=tuple(righted(curve) for curve in reading.curves))
    assert not [each for each in explain(better).findings if each.subject.pattern == "funnel"]


def test_a_published_figure_is_known_to_its_last_digit() -> None:
    by_print = {each.printed: estimate_of(each) for each in published("atlas")}
    assert (by_print["18.78"].low, by_print["18.78"].high) == pytest.approx((18.775, 18.785))
    assert (by_print["6.6"].low, by_print["6.6"].high) == pytest.approx((6.55, 6.65))
    around = next(each for each in published("ancor") if each.printed == "1000")
    assert (estimate_of(around).low, estimate_of(around).high) == (500, 1500)  # printed as 1 millisecond


@pytest.mark.parametrize(("rise_ns", "steps_seen"), [(110_000.0, 0), (120_000.0, 0), (140_000.0, 1)])
def test_a_rise_that_the_lowest_best_rate_explains_is_no_step(rise_ns: float, steps_seen: int) -> None:
    """1000 B more at 8 to 12 MB/s take 83 to 125 us."""
    points = [CurvePoint(size, near(50_000.0 + size / 1000 * rise_ns, 1e-6)) for size in (0, 1000)]
    curve = MeasuredCurve("old", "oneway", 2, (), "here", tuple(points), peak_bytes_per_s=Estimate(10e6, 8e6, 12e6))
    findings = list(steps(Reading("a machine", (curve,))))
    assert len(findings) == steps_seen
    for finding in findings:
        assert finding.facts["step_ns"].value == pytest.approx(rise_ns - 100_000, abs=1)
        assert finding.facts["step_ns"].low == pytest.approx(rise_ns - 125_000, abs=1)
