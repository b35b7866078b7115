"""The wording of findings about curves, and of notes."""

from __future__ import annotations

from hockney.report.wording import Wording

_DOCUMENTED = "Likely cause: {set_value} ({meaning}).|Likely cause: {threshold}, {default_bytes} ({meaning})."

CURVES: dict[str, Wording] = {
    "protocol switch": Wording(
        "{answer?confirmed}protocol switch between {below_bytes} and {above_bytes}"
        "|{answer?suspected}suspected protocol switch between {below_bytes} and {above_bytes}"
        "|{answer?not seen}no protocol switch at {first_bytes}",
        (
            "{pattern} jumps by {jump_ns}.",
            "{pattern} falls by {fall_ns}.",
            "{pattern} jumps by {least_jump_ns} at least.",
            "{pattern} falls by {least_fall_ns} at least.",
            "The time rises by {step_ns} more than the best rate ({peak_bytes_per_s}) explains ({explained_ns}).",
            "{thresholds}: documented, but {pattern} is straight there.",
        ),
        {
            "documented": _DOCUMENTED,
            "cache": "The L{level} cache ({cache_bytes}) may explain this.",
            "drift": "Only {rounds} rounds measured both sizes, so the machine may have changed in between.",
        },
    ),
    "drift": Wording(
        "no protocol switch between {below_bytes} and {above_bytes}, but drift",
        (
            "The medians jump, but in the {rounds} rounds that measured both sizes {pattern} changes by {jump_ns}.",
            "The medians fall, but in the {rounds} rounds that measured both sizes {pattern} changes by -{fall_ns}.",
        ),
    ),
    "bend": Wording(
        "bend between {below_bytes} and {above_bytes}|curved from {from_bytes} to {to_bytes}",
        (
            "Each byte of {pattern} costs {before_ns_per_byte} before and {after_ns_per_byte} after it.",
            "{pattern} goes from {first_ns} to {last_ns}; the line of shorter messages gives {line_ns}.",
        ),
        {
            "documented": _DOCUMENTED,
            "curved": "The time changes gradually, as where a cache fills: there is no switch.",
        },
    ),
    "cache limit": Wording(
        "rate falls by {fall_share} beyond the L{level} cache ({cache_bytes})",
        ("{pattern}: {within_bytes_per_s} at {within_bytes}, {beyond_bytes_per_s} at {beyond_bytes}.",),
    ),
    "flat latency": Wording(
        "latency does not depend on the size up to {flat_bytes}",
        (
            "{pattern} takes {first_ns} at {first_bytes} and {last_ns} at {flat_bytes}.",
            "{pattern} takes {plateau_ns} at {first_bytes}, as the line through longer sizes gives for {flat_bytes}.",
        ),
    ),
}

NOTES: dict[str, str] = {
    "another version": "Measured by hockney {version}, read by {this_version}: definitions may have changed.",
    "ended early": "The run was {how} before its end.",
    "still running": "The run is still being measured.",
    "one launch": "Intervals cover one launch only, not the variation from launch to launch.",
    "unreadable setting": "{variable} was set to '{value}', which is no size: {threshold} is not known.",
    "points without interval": "Left out: {points} points with too few measurements in one state (such as {example}).",
    "failed points": "Left out: {points} points that failed ({example}: {why}).",
    "short streams": "† {streams} streams with fewer than 8 events in a row, such as {example}: use a longer --time.",
    "oversubscribed": "More ranks than CPUs, so only checked for yielding: {places}.",
}
