"""Samples come back unchanged, and a damaged blob is an error, never other numbers."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

from hockney.results.store.codec import decode, encode

LOW, HIGH = np.iinfo(np.int64).min, np.iinfo(np.int64).max

# Written by version 1; it must be readable for ever.
GOLDEN = bytes.fromhex("01780163616260606001e20922ea0c5c8c8ca718816c20608750081200304101b4")
GOLDEN_SAMPLES = [[200, 210, 190, 190], [5, 4, 3, 1000]]


@pytest.mark.parametrize(
    "samples",
    [
        [[0]],
        [[200, 210, 190], [5, 4, 3]],
        [[LOW, HIGH, 0, HIGH, LOW, -1]],
        [[2**31 - 1, 0], [0, 2**31 - 1]],  # differences still fit 32 bits
        [[2**31, 0], [0, -(2**31)]],
        [[], []],
    ],
)
def test_round_trip(samples: list[list[int]]) -> None:
    array = np.array(samples, dtype=np.int64)
    back = decode(encode(array))
    assert back.dtype == np.int64
    assert back.shape == array.shape
    assert back.tolist() == samples


@pytest.mark.parametrize("scale", [10, 1e6, 1e12, 1e18])
@pytest.mark.parametrize("shape", [(1, 1), (2, 40), (64, 200), (3, 0)])
def test_round_trip_of_random_samples(scale: float, shape: tuple[int, int]) -> None:
    array = (np.random.default_rng(5).lognormal(0, 0.5, shape) * scale).astype(np.int64)
    assert np.array_equal(decode(encode(array)), array)


def test_any_layout_in_memory_is_accepted() -> None:
    array = np.arange(24, dtype=np.int64).reshape(4, 6).T[::2]
    assert np.array_equal(decode(encode(array)), array)


def test_neighbouring_samples_take_a_quarter_of_their_room() -> None:
    array = np.random.default_rng(5).integers(20_000, 20_200, (2, 200))
    assert len(encode(array)) < array.nbytes / 4


def test_blob_of_version_1_is_read() -> None:
    assert decode(GOLDEN).tolist() == GOLDEN_SAMPLES


def test_no_damaged_byte_gives_other_samples() -> None:
    array = np.random.default_rng(5).integers(0, 300, (2, 20))
    blob = encode(array)
    for i in range(1, len(blob)):
        damaged = blob[:i] + bytes([blob[i] ^ 0x55]) + blob[i + 1 :]
        with contextlib.suppress(ValueError):
            assert np.array_equal(decode(damaged), array)  # a bit that zlib does not use


@pytest.mark.parametrize("blob", [b"", b"\0", b"\2" + GOLDEN[1:], b"\1", b"\1x", GOLDEN[:-5], GOLDEN[:8]])
def test_cut_blob_is_an_error(blob: bytes) -> None:
    with pytest.raises(ValueError, match="samples"):
        decode(blob)


def test_head_that_does_not_fit_its_numbers_is_an_error() -> None:
    import struct
    import zlib

    def blob(*head: Any, numbers: bytes) -> bytes:
        return b"\1" + zlib.compress(struct.pack("<BII", *head) + numbers)

    assert decode(blob(4, 1, 1, numbers=b"\2\0\0\0")).tolist() == [[1]]
    for wrong in (
        blob(4, 1, 2, numbers=b"\2\0\0\0"),
        blob(5, 1, 1, numbers=b"\2\0\0\0\0"),
        b"\1" + zlib.compress(b"x"),
    ):
        with pytest.raises(ValueError, match="samples"):
            decode(wrong)
