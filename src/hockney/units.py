"""Numbers with units, for people: sizes read from and written to text, times and rates with three digits.

Sizes use powers of 1024 (K, M, G), rates powers of 1000 (MB/s, GB/s), as the field does; a rate that is read may have
any unit that people write.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence

from hockney.errors import UsageError

BYTES_MAX = 1 << 40  # as the workers' protocol has it
LAUNCHES_MAX = 1000
RANKS_MAX = 1 << 20  # likewise; only models take more than some thousand
DURATION_MAX_S = 366 * 86400
START_LIMIT_S = 60  # of a job, by default: a batch system or a slow network may need some of it

_DIGITS_MAX = 30  # of a whole number: Python refuses to read one of thousands
_PERCENTAGE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*%")
# C0 and C1, direction marks and overrides, line separators, and surrogates left by undecodable bytes.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_PREFIXES |= {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_BYTES_PER_S = {
    f"{prefix}{unit}/s": scale * size_bytes
    for unit, size_bytes in (("B", 1.0), ("bit", 1 / 8), ("b", 1 / 8))
    for prefix, scale in _PREFIXES.items()
}


def parse_bytes(text: str) -> int:
    """`64`, `64K`, `4MiB` -> bytes. Raises UsageError."""
    match = re.fullmatch(r"(\d+)\s*([KMG]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise UsageError(
            f"'{text}' is not a size: write bytes from 0 to {BYTES_MAX >> 30}G, such as 8, 64K or 4M (K, M and G are "
            "powers of 1024)"
        )
    size = int(match[1][:_DIGITS_MAX]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2].upper()]
    if size > BYTES_MAX or len(match[1]) > _DIGITS_MAX:
        raise UsageError(f"'{text}' is too large a message: at most {BYTES_MAX >> 30}G")
    return size


def parse_sizes(text: str) -> tuple[int, ...]:
    """`8`, `0,8,1K` or `1:1M` (powers of two, with both ends) -> sizes in bytes, ascending. Raises UsageError."""
    sizes: set[int] = set()
    for part in text.split(","):
        ends = part.split(":")
        if len(ends) > 2:
            raise UsageError(f"'{part}' is not a range of sizes: write its first and its last, such as 8:64K")
        first, last = parse_bytes(ends[0]), parse_bytes(ends[-1])
        if last < first:
            raise UsageError(f"'{part}' runs backwards: write {ends[-1]}:{ends[0]}")
        sizes |= {first, last}
        sizes.update(size for size in (1 << n for n in range(41)) if first < size < last)
    return tuple(sorted(sizes))


def parse_duration_s(text: str) -> float:
    """`90`, `90s`, `2m`, `3m30s`, `1.5h`, `90d`, `500ms` -> seconds. Raises UsageError."""
    number, unit = r"(\d+(?:\.\d+)?)\s*", "(ms|s|min|m|h|d)"
    if re.fullmatch(rf"{number}|(?:{number}{unit}\s*)+", text.strip()) is None:
        raise UsageError(f"'{text}' is not a duration: write for example 30s, 2m, 1h or 90d")
    scales_s = {"ms": 1e-3, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
    value_s = sum(float(part) * scales_s.get(name, 1.0) for part, name in re.findall(number + unit + "?", text))
    if value_s <= 0:
        raise UsageError(f"'{text}' is too short a duration: write one above 0, for example 30s, 2m, 1h or 90d")
    if value_s > DURATION_MAX_S:
        raise UsageError(f"'{text}' is too long: at most {DURATION_MAX_S // 3600}h, a year")
    return value_s


def parse_count(text: str, most: int, least: int = 1) -> int | None:
    """`12` -> 12; None unless it is a whole number from `least` to `most`."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX
    return int(text) if is_number and least <= int(text) <= most else None


def parse_fraction(text: str) -> float:
    """`1%` or `0.5 %` -> a fraction between 0 and 1. Raises UsageError."""
    return _percentage(text, 1.0, "a precision, above 0 % and below 100 %")


def parse_increase(text: str) -> float:
    """`5%` or `150 %` -> a fraction above 0. Raises UsageError."""
    return _percentage(text, 1e9, "a percentage above 0")


def _percentage(text: str, below: float, what: str) -> float:
    match = _PERCENTAGE.fullmatch(text.strip())
    plain = None if match else _PERCENTAGE.fullmatch(f"{text.strip()}%")
    if plain and 0 < float(plain[1]) / 100 < below:
        fraction = f" (or {percent_digits(float(plain[1]))}% for the fraction)" if float(plain[1]) < 1 else ""
        raise UsageError(f"'{text}' has no unit: write {plain[1]}%{fraction}")
    value = float(match[1]) / 100 if match else 0.0
    if not 0 < value < below:
        raise UsageError(f"'{text}' is not {what}: write for example 1%")
    return value


def parse_time_ns(text: str) -> float:
    """`300 ns`, `1.5us`, `2 ms` -> ns; the u may be a mu. Raises UsageError."""
    plain = re.sub("[\N{MICRO SIGN}\N{GREEK SMALL LETTER MU}]", "u", text)  # two characters with the same glyph
    units = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
    return _quantity(plain, units, "a time", "1.5 us (units: ns, us, ms, s)")


def parse_rate_bytes_per_s(text: str) -> float:
    """`800 MB/s`, `2.5GB/s`, `10 Gbit/s`, `10 Gb/s`, `2 GiB/s` -> bytes/s. Raises UsageError.

    M is 10^6, Mi is 2^20; B is a byte, b or bit an eighth of a byte.
    """
    known = "B/s, bit/s or b/s, after k, M, G or T for powers of 1000, Ki, Mi, Gi or Ti for powers of 1024"
    return _quantity(text, _BYTES_PER_S, "a rate", f"2.5 GB/s (units: {known})")


def parse_frequency_hz(text: str) -> int:
    """`100k/s`, `2.5 M/s`, `800 /s`, `100kHz` -> events a second, a whole number. Raises UsageError."""
    units = {f"{prefix}{unit}": _PREFIXES[prefix] for unit in ("/s", "Hz") for prefix in ("", "k", "M", "G")}
    value_hz = _quantity(text, units, "a rate of events", "100k/s (units: /s, k/s, M/s, G/s; also Hz, kHz, MHz, GHz)")
    if value_hz != round(value_hz):
        raise UsageError(
            f"'{text}' is not a whole number of events a second: write for example {math.ceil(value_hz)}/s"
        )
    return round(value_hz)


def _quantity(text: str, units: Mapping[str, float], what: str, example: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-zA-Z/]+)", text.strip())
    if match is None or match[2] not in units or not 0 < float(match[1]) <= 1e18:
        raise UsageError(f"'{text}' is not {what}: write for example {example}")
    return float(match[1]) * units[match[2]]


def format_bytes(count: int) -> str:
    """8 -> `8 B`, 65536 -> `64 KiB`; sizes that are no multiple stay in bytes."""
    for suffix, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count > 0 and count % scale == 0:
            return f"{count // scale:,} {suffix}"
    return f"{count:,} B"


def format_mebibytes(count: int | None) -> str:
    """200 << 20 -> `200 MiB`, None -> `unlimited`; from 10 GiB on in GiB."""
    return "unlimited" if count is None else f"{count >> 30:,} GiB" if count >> 30 > 9 else f"{count / 2**20:,.0f} MiB"


def bytes_word(count: int) -> str:
    """65536 -> `64K`: a size as options take it."""
    return format_bytes(count).replace("iB", "").replace(" B", "").replace(",", "").replace(" ", "")


def percent_digits(fraction: float) -> str:
    """0.05 -> `5`, 10000.0 -> `1000000`: no trailing zeros after the point, never an exponent."""
    return f"{100 * fraction:.10f}".rstrip("0").rstrip(".")


def format_share(share: float) -> str:
    """`94%`; `<1%` for a share above 0 that rounds to 0."""
    return "<1%" if 0 < share <= 0.005 else f"{share:.0%}"


def format_ns(value_ns: float) -> str:
    """Three digits and a unit that fits: `27.1 ns`, `1.52 us`, `24.5 us`, `3.10 ms`."""
    return _scaled(value_ns, (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)))


def format_rate(bytes_per_s: float) -> str:
    """Three digits: `850 MB/s`, `12.3 GB/s`."""
    return _scaled(bytes_per_s, (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0)))


def format_messages(per_s: float) -> str:
    """Messages or events: three digits, `920 /s`, `1.25 M/s`."""
    return _scaled(per_s, (("G/s", 1e9), ("M/s", 1e6), ("k/s", 1e3), ("/s", 1.0)))


def _scaled(value: float, units: Sequence[tuple[str, float]]) -> str:
    """With three digits, in the greatest unit of which it is one or more; the edges are where rounding adds a digit."""
    unit, scale = next((unit for unit in units if abs(value) >= unit[1] * 0.9995), units[-1])
    scaled = value / scale
    digits = 0 if abs(scaled) >= 99.95 else 1 if abs(scaled) >= 9.995 else 2
    return f"{scaled:,.{digits}f} {unit}"


def format_duration_s(value_s: float) -> str:
    """For progress: `300 ms`, `5 s`, `1 min 20 s`, `2 h 05 min`."""
    if 0.0005 <= value_s < 0.9995:
        return f"{value_s * 1e3:.0f} ms"
    whole = max(0, round(value_s))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def local_time(unix_s: float) -> str:
    """`2026-03-01 14:05`, in the local time zone."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(unix_s))


def printable(text: str, keep: str = "\n") -> str:
    r"""A text in which nothing steers a terminal: control characters and those that turn the direction of writing.

    They become `\x1b`, `\u202e`; those in `keep` stay. All that is printed passes this.
    """
    return _STEERING.sub(
        lambda match: match[0] if match[0] in keep else match[0].encode("unicode_escape").decode(), text
    )


def counted(count: int, noun: str, plural: str = "") -> str:
    """(1, "rank") -> `1 rank`, (2, "rank") -> `2 ranks`; `plural` where an s alone does not make it."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def listed(texts: Sequence[str], word: str = "and", more: str = "more") -> str:
    """`shm, threads and tcp`; of five or more the first three, `and 2 more`."""
    shown = texts if len(texts) < 5 else [*texts[:3], f"{len(texts) - 3} {more}"]
    return f" {word} ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def ordinal(number: int) -> str:
    """1 -> `1st`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
