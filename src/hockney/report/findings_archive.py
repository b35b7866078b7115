"""The wording of findings that only the published figures of the archive have."""

from __future__ import annotations

from hockney.report.wording import Wording

ARCHIVE: dict[str, Wording] = {
    "data beyond a cache": Wording(
        "different data costs more beyond {within_bytes}",
        (
            "Compared with the same data for all, different data takes up to {within_ratio} within {within_bytes},",
            "{beyond_ratio} or more from {beyond_bytes} on: a cache ends between the two.",
        ),
    ),
    "identical rows": Wording(
        "two rows of a grid are identical",
        ("{pattern} among {ranks} takes as long as among {same_as_ranks}: one row may be a copy of the other.",),
    ),
    "kinked scaling law": Wording(
        "scaling law with kinks",
        (
            "{pattern} is not linear in its senders: with {senders} senders",
            "it is up to {most_off_ns} ({most_off_share}) off the line of the others, in {kinked_rows} of {rows} rows.",
        ),
    ),
    "two speeds": Wording(
        "two speeds in one grid",
        (
            "{pattern} takes {slow_ns_per_byte} (as {slow_like}) among {ranks}",
            "and {fast_ns_per_byte} (as {fast_like}) among {fast_ranks}: the first was placed farther apart.",
            "Not so in {same_in}: there a message takes {few_message_ns} and {many_message_ns}.",
        ),
    ),
    "long delays": Wording(
        "delays longer than requested",
        (
            "In {pattern} each microsecond of delay adds {least_ratio} to {most_ratio} us:",
            "the delay is not timed by a clock.",
        ),
    ),
    "time slices": Wording(
        "times are multiples of a time slice",
        ("{multiples} of {figures} times of {pattern} are multiples of {period_ns}; 1 % would be by chance.",),
    ),
    "streaming against round trip": Wording(
        "streaming takes {time_ratio} of half a round trip",
        ("A message of {size_bytes} takes {time_ns} by {pattern}, {half_round_trip_ns} by half the round trip.",),
        {
            "messages overlap": "Messages overlap, so this is no latency.",
            "the sender waits": "A stream should hide part of what one message costs, so the sender waits.",
        },
    ),
    "faster under load": Wording(
        "faster under load than alone",
        (
            "{pattern}, with all ranks at once, takes {loaded_ns} at {size_bytes}; {alone}, alone, takes {alone_ns}.",
            "Load cannot save {gain_ns}: something else differs.",
        ),
    ),
    "derived figure": Wording(
        "printed figures do not follow from the others",
        ("{rows}: printed {printed}, computed {computed}.",),
    ),
    "part longer than the whole": Wording(
        "parts are printed as longer than the whole",
        ("In {rows} the latency is {latencies} clock periods of {totals}: loads overlap, or a column is wrong.",),
    ),
}
