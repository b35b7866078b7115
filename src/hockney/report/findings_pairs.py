"""The wording of findings about patterns, ranks and samples, and sentences on pairs of ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hockney.analysis.explain.pairs import Inconclusive, Outlier, PairClass
from hockney.report.wording import Wording
from hockney.units import counted, format_ns

PAIRS: dict[str, Wording] = {
    "duplex limit": Wording(
        "limited duplex",
        (
            "{pattern} costs {first_ratio} of {one_way} per message at {first_bytes} (0.5: full duplex, 1: half).",
            "At {last_bytes} it costs {last_ratio}.",
        ),
        {
            "directions slow each other down": "The two directions slow each other down.",
            "directions take turns": "The two directions take turns most of the time.",
            "one direction waits": "In one direction alone the sender or the receiver waits.",
        },
    ),
    "shared path": Wording(
        "{sharing} share one path",
        ("In {pattern} each gets {of_alone_ratio} of the best rate alone ({alone}, {alone_bytes_per_s}).",),
    ),
    "slower than its parts": Wording(
        "slower than its parts",
        (
            "{pattern} of {size_bytes} among {ranks}|{pattern} among {ranks}",
            "takes {time_ns}, {slower_ratio} times {parts} ({parts_ns}).",
        ),
    ),
    "broken scaling law": Wording(
        "scaling law broken",
        (
            "With {at} {axis}, {pattern} takes {least_ratio} to {most_ratio} times",
            "what the other numbers of {axis} predict, at {broken_bytes}.",
            "It follows the law at {following_bytes}.",
            "{pattern} moves {among_2_bytes_per_s} for each rank among 2, {among_4_bytes_per_s} among 4.",
        ),
        {
            "bandwidth": "Bandwidth is missing, not time per message.",
            "own block": "The own block, half of what is copied among 2, takes its share.",
        },
    ),
    "slow rank or pair": Wording(
        "slow rank or pair",
        (
            "Links {links} take {slower_ratio} times as long as the others ({timed} timed side by side).",
            "Rank {common_ranks} is in each of them.",
            "Ranks {slow_pair} take {time_ns}, {slower_ratio} times their class ({class}, {class_ns}, {load}).",
            "Rank {slow_rank} takes {time_ns} with {pairs} others, {slower_ratio} times its class ({class}, {load}).",
            "Hosts: {hosts}.",
            "Also slow: {others}.",
        ),
        {"slow or farther off": "These ranks are slow, or farther apart than the others (topology unknown)."},
    ),
    "slow group": Wording(
        "slow group of ranks",
        (
            "Ranks {slow_group} with {reach}: {time_ns}, {slower_ratio} times {class} ({class_ns}, {load}).",
            "Hosts: {hosts}.",
            "Also slow: {others}.",
        ),
        {"slow or farther off": "A switch or group is slow, or these ranks are farther apart (topology unknown)."},
    ),
    "outliers": Wording(
        "outliers",
        (
            "{slow_share} of samples ({outliers} of {samples}) take over twice the median: {excess_ns} longer,",
            "{rate_per_s} in a second of samples.",
        ),
        dict.fromkeys(("others", "load"), "Other programs used the CPUs during the run."),
    ),
    "yielding library": Wording("yields the CPU while it waits", ("{seen}",)),
    "far above the floor": Wording(
        "{floors_ratio} times the floor",
        (
            "Half a round trip of {size_bytes} takes {latency_ns}; the floor is {floor_ns}.",
            "Up to {usual_ratio} times is usual through memory.",
        ),
        {
            "yields": "The library yields the CPU while it waits, so this is the time of system calls.",
            "another path": "{path}: messages do not go through memory (docs/transports.md).",
        },
    ),
}


def class_text(pair_class: PairClass) -> str:
    """`one host: 1.00 us (10 pairs, 1.00 us to 1.40 us)`."""
    count = counted(len(pair_class.pairs), "pair")
    span = f", {format_ns(pair_class.fastest_ns)} to {format_ns(pair_class.slowest_ns)}"
    return f"{pair_class.name}: {format_ns(pair_class.median_ns)} ({count}{span if len(pair_class.pairs) > 1 else ''})"


def outlier_text(outlier: Outlier, hosts: Sequence[str]) -> str:
    """`ranks 1 and 3: 1.30 us, 1.30x their class (one host, 1.00 us)`."""
    names = _names(outlier.ranks, hosts)
    if len(names) == 1:
        who, whose = f"rank {names[0]} with {outlier.of_pairs} others", "its"
    else:
        who, whose = f"ranks {' and '.join(names)}" + (f" with {outlier.reach}" if outlier.reach else ""), "their"
    doubt = "; they may lie farther apart (topology unknown)" if outlier.may_be_farther else ""
    than = f"{whose} class ({outlier.class_name}, {format_ns(outlier.class_ns)})"
    return f"{who}: {format_ns(outlier.time.value)}, {outlier.factor:.2f}x {than}{doubt}"


def inconclusive_text(pair: Inconclusive, hosts: Sequence[str]) -> str:
    """`ranks 1 and 3 may be slow (inconclusive): 1.30 us, 1.30x their class (one host, 1.00 us); why. Fix.`."""
    time = pair.time.estimate
    why = (
        f"{pair.time.n} measurements are too few for an interval"
        if time is None
        else f"the interval is {format_ns(time.low)} to {format_ns(time.high)}"
    )
    than = f"{pair.time.value / pair.class_ns:.2f}x their class ({pair.class_name}, {format_ns(pair.class_ns)})"
    return (
        f"ranks {' and '.join(_names(pair.ranks, hosts))} may be slow (inconclusive): {format_ns(pair.time.value)}, "
        f"{than}; {why}. Measure longer with --time."
    )


def _names(ranks: Iterable[int], hosts: Sequence[str]) -> list[str]:
    return [f"{rank} ({hosts[rank]})" if len(set(hosts)) > 1 else str(rank) for rank in ranks]
