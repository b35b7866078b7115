"""Sizes, durations and precisions as people write them; times and rates as people read them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from hockney import units
from hockney.errors import UsageError

READ: Mapping[Callable[[str], Any], Mapping[str, Any]] = {
    units.parse_bytes: {
        "0": 0,
        "8": 8,
        "8B": 8,
        "64K": 65536,
        "64k": 65536,
        "64KB": 65536,
        "64 KiB": 65536,
        " 4M ": 4 << 20,
        "4MiB": 4 << 20,
        "1G": 1 << 30,
        "12345678901": 12345678901,
        "1024G": units.BYTES_MAX,
    },
    units.parse_sizes: {
        "8": (8,),
        "64,8,8,0": (0, 8, 64),
        "1:16": (1, 2, 4, 8, 16),
        "3:20": (3, 4, 8, 16, 20),
        "0:4": (0, 1, 2, 4),
        "8:8": (8,),
        "4:5, 1K": (4, 5, 1024),
        "1:1M": tuple(1 << n for n in range(21)),
    },
    units.parse_duration_s: {
        "90": 90.0,
        "90s": 90.0,
        "2m": 120.0,
        "2 min": 120.0,
        "1.5h": 5400.0,
        "90d": 7776000.0,
        "500ms": 0.5,
        " 1s ": 1.0,
        "3m30s": 210.0,
        "1 h 05 min": 3900.0,
        "8784h": 366 * 86400.0,
    },
    units.parse_fraction: {"1%": 0.01, "0.5 %": 0.005, " .1% ": 0.001, "99%": 0.99},
    units.parse_increase: {"5%": 0.05, ".5%": 0.005, "100%": 1.0, " 250 % ": 2.5},
    units.parse_time_ns: {
        "300 ns": 300.0,
        "1.5us": 1500.0,
        "1.5 \N{MICRO SIGN}s": 1500.0,
        "1.5\N{GREEK SMALL LETTER MU}s": 1500.0,
        "2 ms": 2e6,
        "1 s": 1e9,
    },
    units.parse_rate_bytes_per_s: {
        "800 MB/s": 800e6,
        "2.5GB/s": 2.5e9,
        "1 TB/s": 1e12,
        "5 B/s": 5.0,
        "3 kB/s": 3e3,
        "3 MiB/s": 3.0 * (1 << 20),
        "3 TiB/s": 3.0 * (1 << 40),
        "10 Gbit/s": 1.25e9,
        "10 Gb/s": 1.25e9,
        "100 Mbit/s": 12.5e6,
        "8 b/s": 1.0,
        "2 GiB/s": 2.0 * (1 << 30),
        "1.5 KiB/s": 1536.0,
        "8 Gibit/s": float(1 << 30),
    },
    units.parse_frequency_hz: {
        "100k/s": 100_000,
        "800 /s": 800,
        "100kHz": 100_000,
        "2.5 MHz": 2_500_000,
        "800 Hz": 800,
        "1GHz": 10**9,
        "1.5kHz": 1500,
    },
}
NO_SIZE = "is not a size: write bytes from 0 to 1024G, such as 8, 64K or 4M (K, M and G are powers of 1024)"
NO_DURATION = "is not a duration: write for example 30s, 2m, 1h or 90d"
NO_PRECISION = "is not a precision, above 0 % and below 100 %: write for example 1%"
NO_FREQUENCY = "is not a rate of events: write for example 100k/s (units: /s, k/s, M/s, G/s; also Hz"
REFUSED: Sequence[tuple[Callable[[str], Any], Sequence[str], str]] = [
    (units.parse_bytes, ["", "K", "-1", "1.5K", "8X", "8 8", "1T", "1e3", "0x10", "8BB", "1E"], NO_SIZE),
    (units.parse_sizes, ["", "8,", "8:"], "'' is not a size"),
    (units.parse_sizes, ["1:2:4"], "is not a range of sizes"),
    (units.parse_sizes, ["8:1E"], "'1E' is not a size"),
    (units.parse_sizes, ["1M:1K"], "runs backwards: write 1K:1M"),
    (units.parse_duration_s, ["", "s", "-1s", "1w", "1h30", "1h-30m", "inf", "nan", "1e3"], NO_DURATION),
    (units.parse_bytes, ["1025G", "1" * 31], "is too large a message: at most 1024G"),
    (units.parse_duration_s, ["8784.1h"], "is too long: at most 8784h"),
    (units.parse_duration_s, ["0", "0.0h", "0m0s"], "is too short a duration: write one above 0"),
    (units.parse_fraction, ["", "%", "0", "100", "100%", "-1%", "x", "nan", "inf", "1%5", "1%%"], NO_PRECISION),
    (units.parse_increase, ["", "0%", "-5%", "0"], "is not a percentage above 0: write for example 1%"),
    *(
        refused
        for parse in (units.parse_fraction, units.parse_increase)
        for refused in (
            (parse, ["2"], "'2' has no unit: write 2%"),
            (parse, ["0.02"], "'0.02' has no unit: write 0.02% (or 2% for the fraction)"),
            (parse, ["5.5"], "'5.5' has no unit: write 5.5%"),
        )
    ),
    (
        units.parse_time_ns,
        ["1 parsec", "us", "0 us", "-1 us", "1 GB/s", "1 m\N{MICRO SIGN}s", "1 Us", ""],
        "is not a time: write for example 1.5 us (units: ns, us, ms, s)",
    ),
    (
        units.parse_rate_bytes_per_s,
        ["1 GB", "1 gb/s", "1 GBit/s", "1 us", "0 GB/s", "GB/s", "1 iB/s", ""],
        "is not a rate: write for example 2.5 GB/s (units: B/s, bit/s or b/s",
    ),
    (units.parse_frequency_hz, ["100", "kHz", "0 Hz", "1 khz", "1 MB/s", "1 KiHz", "-1 Hz", ""], NO_FREQUENCY),
    (units.parse_frequency_hz, ["0.5 Hz"], "is not a whole number of events a second: write for example 1/s"),
]
WRITTEN: Mapping[Callable[[Any], str], Mapping[float, str]] = {
    units.format_bytes: {
        0: "0 B",
        1000: "1,000 B",
        1024: "1 KiB",
        1536: "1,536 B",
        65536: "64 KiB",
        1 << 20: "1 MiB",
        3 << 30: "3 GiB",
    },
    units.bytes_word: {0: "0", 8: "8", 1000: "1000", 1 << 16: "64K", 3 << 20: "3M"},
    units.format_ns: {
        0.0: "0.00 ns",
        2.5: "2.50 ns",
        9.996: "10.0 ns",
        27.14: "27.1 ns",
        99.96: "100 ns",
        184.4: "184 ns",
        999.4: "999 ns",
        999.6: "1.00 us",
        1520.0: "1.52 us",
        24_540.0: "24.5 us",
        99_960.0: "100 us",
        999_600.0: "1.00 ms",
        3.1e6: "3.10 ms",
        2.5e9: "2.50 s",
        -27.14: "-27.1 ns",
    },
    units.format_rate: {
        12.3e9: "12.3 GB/s",
        999.7e6: "1.00 GB/s",
        850e6: "850 MB/s",
        80.04e3: "80.0 kB/s",
        5.0: "5.00 B/s",
    },
    units.format_messages: {5.0: "5.00 /s", 920.0: "920 /s", 1.25e3: "1.25 k/s", 1.25e6: "1.25 M/s", 2e9: "2.00 G/s"},
    units.format_share: {0: "0%", 1e-6: "<1%", 0.005: "<1%", 0.0051: "1%", 0.5: "50%", 1: "100%"},
    units.ordinal: {
        1: "1st",
        2: "2nd",
        3: "3rd",
        4: "4th",
        11: "11th",
        12: "12th",
        13: "13th",
        21: "21st",
        113: "113th",
    },
    units.format_duration_s: {
        -3.0: "0 s",
        0.0: "0 s",
        0.0004: "0 s",
        0.0006: "1 ms",
        0.4: "400 ms",
        0.9994: "999 ms",
        0.9996: "1 s",
        5.0: "5 s",
        59.6: "1 min 00 s",
        80.0: "1 min 20 s",
        3599.4: "59 min 59 s",
        3599.6: "1 h 00 min",
        7500.0: "2 h 05 min",
    },
}


@pytest.mark.parametrize(
    ("parse", "text", "expected"), [(parse, *each) for parse, texts in READ.items() for each in texts.items()]
)
def test_valid_texts_are_parsed(parse: Callable[[str], Any], text: str, expected: Any) -> None:
    assert parse(text) == (pytest.approx(expected) if isinstance(expected, float) else expected)


@pytest.mark.parametrize(
    ("parse", "text", "said"), [(parse, text, said) for parse, texts, said in REFUSED for text in texts]
)
def test_invalid_texts_are_refused(parse: Callable[[str], Any], text: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)) as refused:
        parse(text)
    assert str(refused.value).startswith("'")


@pytest.mark.parametrize(
    ("text", "limits", "count"),
    [("0", (3,), None), ("1", (3,), 1), ("3", (3,), 3), ("4", (3,), None), ("0", (3, 0), 0), ("2", (3, 3), None),
     ("-1", (3, -1), None), ("\N{SUPERSCRIPT TWO}", (3,), None), ("", (3,), None), ("1" * 31, (10**40,), None)],
)  # fmt: skip
def test_a_count_lies_between_its_limits(text: str, limits: tuple[int, ...], count: int | None) -> None:
    assert units.parse_count(text, *limits) == count


@pytest.mark.parametrize(
    ("write", "value", "text"), [(write, *each) for write, texts in WRITTEN.items() for each in texts.items()]
)
def test_values_are_formatted(write: Callable[[float], str], value: float, text: str) -> None:
    assert write(value) == text


@pytest.mark.parametrize("text", ["5", "7", "0.5", "0.00001", "0.00000002", "12.345", "100", "1000000"])
def test_a_percentage_is_printed_unchanged(text: str) -> None:
    assert units.percent_digits(units.parse_increase(f"{text}%")) == text


@pytest.mark.parametrize("count", [0, 1, 1000, 1024, 1536, 1 << 20, (1 << 20) + 1, 3 << 30])
def test_formatted_bytes_are_read_back(count: int) -> None:
    assert units.parse_bytes(units.format_bytes(count).replace(",", "")) == count
    assert units.parse_bytes(units.bytes_word(count)) == count


@pytest.mark.parametrize(
    ("count", "words", "expected"),
    [(0, ["point"], "0 points"), (1, ["point"], "1 point"), (2, ["epoch"], "2 epochs"),
     (1, ["launch", "launches"], "1 launch"), (3, ["launch", "launches"], "3 launches")],
)  # fmt: skip
def test_counted(count: int, words: list[str], expected: str) -> None:
    assert units.counted(count, *words) == expected


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["shm"], "shm"),
        (["shm", "tcp"], "shm and tcp"),
        (["shm", "tcp", "udp"], "shm, tcp and udp"),
        (["shm", "tcp", "udp", "unix"], "shm, tcp, udp and unix"),
        (["shm", "tcp", "udp", "unix", "pipe"], "shm, tcp, udp and 2 more"),
    ],
)
def test_names_are_listed(names: list[str], text: str) -> None:
    assert units.listed(names) == text
