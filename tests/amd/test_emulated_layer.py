# SPDX-License-Identifier: Apache-2.0
"""short_conv and gated_norm for AMD in the emulator, against double precision.
Whatever they must not read is NaN. Exit code 77 means skipped.

usage: test_emulated_layer.py FOLDER_OF_DEVICE_OBJECTS TARGET
"""

import struct
import sys

import numpy as np

import emulator
from emulator import at
from kda_reference import (BF16, FP16, FP32, from_dtype, is_poisoned,
                           poisoned, sigmoid, to_dtype)

# Half a unit in the last place of outputs, at most, relative to them.
ROUNDING = {FP32: 0.0, BF16: 2.0 ** -8, FP16: 2.0 ** -11}


def make_counts(sequences, tokens, error):
    return np.frombuffer(bytearray(struct.pack(
        "<6iq", sequences, tokens, 0, 0, error, -1, 0)), np.uint8)


def random_rows(random, shape, spare, dtype):
    """Random elements and |spare| rows that are NaN, and the values."""
    bits = to_dtype(random.standard_normal(shape), dtype)
    rows = poisoned((shape[0] + spare,) + shape[1:], dtype)
    rows[:shape[0]] = bits
    return rows, from_dtype(bits, dtype)


def check_close(rows, dtype, expected, terms):
    """|terms|: the sum of the magnitudes that were added."""
    found = from_dtype(rows.copy(), dtype)
    limit = 2e-6 * terms + 1e-6 + 1.01 * ROUNDING[dtype] * abs(expected)
    assert (abs(found - expected) <= limit).all(), \
        abs(found - expected).max()


def test_short_conv(kernels):
    # A grid of one block takes the tiles in order, of two does not.
    for dtype, width, grid, error in ((FP32, 4, 1, 0), (BF16, 3, 2, 0),
                                      (FP16, 2, 1, 0), (FP32, 4, 2, 6)):
        run_short_conv(kernels, dtype, width, grid, error)


def run_short_conv(kernels, dtype, width, grid, error):
    random = np.random.default_rng(3)
    channels = 32
    # Sequence 3 starts with the last row of a tile of 8.
    lens, computed, slots = [1, 14, 0, 5, 6], [4, 0, 1, 3, 2], [3, 1, 2, 4, -1]
    tokens = sum(lens)
    x, inputs = random_rows(random, (tokens, channels), 4, dtype)
    weight = random.standard_normal((channels, width)).astype(np.float32)
    cache, history = random_rows(random, (5, width - 1, channels), 0, dtype)
    # Slot 1 is a fresh sequence's.
    cache[1] = poisoned(cache[1].shape, dtype)
    expected_cache = cache.copy()
    y = poisoned(x.shape, dtype)
    loc = np.cumsum([0] + lens).astype(np.int32)
    counts = make_counts(len(lens), tokens, error)
    lengths = np.array(computed, np.int32), np.array(slots, np.int32)
    kernels.launch("short_conv", grid, 256, struct.pack(
        "<8Q3q6i", at(counts), at(loc), at(lengths[0]), at(lengths[1]), at(x),
        at(weight), at(cache), at(y), channels, channels,
        (width - 1) * channels, channels, width, dtype, 0, 8, 256))
    for n, length in enumerate(lens):
        rows, slot = slice(loc[n], loc[n + 1]), slots[n]
        if error or slot < 0:
            assert is_poisoned(y[rows]) if error else not y[rows].any()
            continue
        before = history[slot] if computed[n] else 0 * history[slot]
        whole = np.concatenate([before, inputs[rows]])
        terms = [whole[i:i + length] * weight[:, i] for i in range(width)]
        check_close(y[rows], dtype, sum(terms) * sigmoid(sum(terms)),
                    sum(abs(term) for term in terms))
        if length:
            expected_cache[slot] = to_dtype(whole[length:], dtype)
    assert cache.tobytes() == expected_cache.tobytes()
    assert is_poisoned(y[tokens:])


def test_gated_norm(kernels):
    for dtype, dim, error in ((FP32, 80, 0), (BF16, 128, 0), (FP16, 32, 0),
                              (FP32, 80, 6)):
        run_gated_norm(kernels, dtype, dim, error)


def run_gated_norm(kernels, dtype, dim, error):
    random = np.random.default_rng(4)
    tokens, capacity, heads = 5, 7, 3
    spare = capacity - tokens
    o, x = random_rows(random, (tokens, heads, dim), spare, dtype)
    gate, gates = random_rows(random, (tokens, heads, dim), spare, dtype)
    weight = random.standard_normal(dim).astype(np.float32)
    y = poisoned(o.shape, dtype)
    counts = make_counts(2, tokens, error)
    kernels.launch("gated_norm", 3, 256, struct.pack(
        "<5Q3q6ifi", at(counts), at(o), at(gate), at(weight), at(y),
        heads * dim, heads * dim, heads * dim, heads, dim, dtype, capacity, 4,
        1, 1e-5, 0))
    if error:
        assert not y.any()
        return
    expected = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight * \
        sigmoid(gates)
    check_close(y[:tokens], dtype, expected, abs(expected))
    assert not y[tokens:].any()


if __name__ == "__main__":
    sys.exit(emulator.run_tests(
        ["gated_norm_gated_norm", "short_conv_short_conv"],
        [test_gated_norm, test_short_conv]))
