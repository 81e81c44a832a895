# SPDX-License-Identifier: Apache-2.0
"""random_fill and the kernels of verify for AMD in the emulator, bit by bit
against models of them. Exit code 77 means skipped.

usage: test_emulated_tools.py FOLDER_OF_DEVICE_OBJECTS TARGET
"""

import struct
import sys

import numpy as np

import emulator
from emulator import at
from kda_reference import BF16, FP16, FP32, to_dtype


# --- random_fill ---

WORD, DOUBLE = (1 << 32) - 1, (1 << 64) - 1


def row_key(seed, row):
    x = (seed + row * 0x9e3779b97f4a7c15) & DOUBLE
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & DOUBLE
    x = (x ^ x >> 27) * 0x94d049bb133111eb & DOUBLE
    x ^= x >> 31
    return x & WORD, x >> 32


def bytes_sum(key, column):
    h = (column * 0x9e3779b1 + key[0]) & WORD
    h = (h ^ h >> 16) * 0x21f0aaad & WORD
    h = (h ^ h >> 15) * 0xd35a2d97 & WORD
    h = h ^ h >> 15 ^ key[1]
    return sum(h.to_bytes(4, "little")) - 510


def random_rows(seed, rows, columns, step, offset):
    """The sum is right to the last bit in 53, so that it rounds once."""
    sums = np.array([[bytes_sum(key, c) for c in range(columns)]
                     for key in (row_key(seed, r) for r in range(rows))])
    return (sums * float(step) + float(offset)).astype(np.float32)


def test_random_fill(kernels):
    # Rows, elements, stride; rows and columns that a block fills.
    for dtype, seed, (rows, columns, stride, tile_rows, tile_columns) in (
            (FP32, 7, (5, 37, 40, 2, 16)), (BF16, 1 << 63, (3, 48, 48, 3, 48)),
            (FP16, DOUBLE, (4, 30, 34, 1, 30)), (FP32, 0, (1, 1, 1, 9, 9))):
        step, offset = np.float32(0x2a51) * np.float32(2.0 ** -20), 0.3125
        item = np.float32 if dtype == FP32 else np.uint16
        data = np.full((rows + 1, stride), 77, item)
        grid = -(-rows // tile_rows) * -(-columns // tile_columns)
        kernels.launch("random_fill", grid, 256, struct.pack(
            "<QQqq4i2f", at(data), seed, rows, stride, columns, dtype,
            tile_rows, tile_columns, step, offset))
        expected = np.full_like(data, 77)
        expected[:rows, :columns] = to_dtype(
            random_rows(seed, rows, columns, step, offset), dtype)
        assert data.tobytes() == expected.tobytes(), f"dtype {dtype}"


# --- verify ---

SLOT_BYTES, SLOTS, SHADOWS, NULL = 4 * 16 + 5, 9, 4, 2
POOL_STRIDE, SHADOW_STRIDE = 112, 96
DEPTH, ENTRY, SLOTS_AT, SOURCES_AT = 3, 256, 64, 128
# Of six sequences: two that are fine, and every way not to be looked at.
SOURCES, TARGETS = [4, 8, -1, NULL, SLOTS, 5, 6], [2, 0, 1, 1, 1, -1, SHADOWS]
PAIRS = [(4, 2), (8, 0)]


def make_ring(step):
    """Entry of |step|; another step's sequences are all pairs of slot 1."""
    ring = np.zeros(DEPTH * ENTRY, np.uint8)
    for number in (step - 1, step, step + 1):
        entry = ring[number % DEPTH * ENTRY:][:ENTRY]
        own = number == step
        entry[:16] = np.frombuffer(struct.pack("<Q2i", number, len(SOURCES), 0),
                                   np.uint8)
        for place, values in ((SLOTS_AT, TARGETS), (SOURCES_AT, SOURCES)):
            values = values if own else [1] * len(values)
            entry[place:place + 4 * len(values)] = np.array(
                values, np.int32).view(np.uint8)
    return ring


def aligned(shape):
    """Bytes at an address that is a multiple of 16."""
    size = int(np.prod(shape))
    memory = np.zeros(size + 16, np.uint8)
    skip = -at(memory) % 16
    return memory[skip:skip + size].reshape(shape)


def slots_params(ring, cursor, pool, shadow, record):
    return struct.pack(
        "<4Q3qQ2i8I6i", at(ring), at(cursor), at(pool), at(shadow), POOL_STRIDE,
        SHADOW_STRIDE, SLOT_BYTES, 0 if record is None else at(record), 16, 0,
        0, 0, SLOTS_AT, SOURCES_AT, 0, 0, ENTRY, 0, DEPTH, SLOTS, SHADOWS, NULL,
        11, 0)


def make_pools():
    random = np.random.default_rng(5)
    pool, shadow = aligned((SLOTS, POOL_STRIDE)), aligned((SHADOWS,
                                                           SHADOW_STRIDE))
    pool[:] = random.integers(0, 256, pool.shape)
    shadow[:] = random.integers(0, 256, shadow.shape)
    return pool, shadow


def test_slot_snapshot(kernels):
    for step in (6, 7):
        pool, shadow = make_pools()
        expected, before = shadow.copy(), pool.copy()
        if step == 7:
            for source, target in PAIRS:
                expected[target, :SLOT_BYTES] = pool[source, :SLOT_BYTES]
        # The entry is that of step 7; after it comes what is next.
        cursor = np.array([step - 1, 99], np.uint64)
        ring = make_ring(7)
        if step == 6:
            ring[6 % DEPTH * ENTRY] = 3  # an old step
        kernels.launch("slot_snapshot", len(SOURCES) + 2, 256,
                       slots_params(ring, cursor, pool, shadow, None))
        assert (shadow == expected).all() and (pool == before).all()


def record_of(record):
    return tuple(record[:2]) + tuple(record[2:].view(np.int32))


def test_compare_slots(kernels):
    cursor, ring = np.array([99, 7], np.uint64), make_ring(7)
    # Byte of slot 4 that differs; the last is behind the slot's end.
    for byte in (None, 0, 15, 31, 63, 64, SLOT_BYTES - 1, SLOT_BYTES):
        pool, shadow = make_pools()
        for source, target in PAIRS:
            shadow[target, :SLOT_BYTES] = pool[source, :SLOT_BYTES]
        if byte is not None:
            shadow[2, byte] = pool[4, byte] ^ 0x10
        record = np.zeros(3, np.uint64)
        kernels.launch("compare_slots", len(SOURCES) + 2, 256,
                       slots_params(ring, cursor, pool, shadow, record))
        differs = byte is not None and byte < SLOT_BYTES
        assert record_of(record) == ((1, 7, 11, 4) if differs else
                                     (0, 0, 0, 0)), byte
    # Another step's difference is kept, and counted on.
    pool[:] = shadow[0, 0] + 1
    shadow[:] = shadow[0, 0]
    record[:] = np.array([3, 5, 1 | 2 << 32], np.uint64)
    kernels.launch("compare_slots", len(SOURCES) + 2, 256,
                   slots_params(ring, cursor, pool, shadow, record))
    assert record_of(record) == (3 + len(PAIRS), 5, 1, 2)


def test_compare_rows(kernels):
    tokens, capacity, stride, row_bytes = 3, 5, 48, 40
    counts = np.frombuffer(bytearray(struct.pack(
        "<6iq", 2, tokens, 0, 0, 0, -1, 0)), np.uint8)
    cursor = np.array([99, 7], np.uint64)
    for row, byte in ((None, 0), (0, 0), (2, 39), (2, 40), (3, 0)):
        live, shadow = aligned((capacity, stride)), aligned((capacity, stride))
        live[:] = shadow[:] = 0xff  # not a number, and equal to itself
        if row is not None:
            live[row, byte] = 0x7f
        record = np.zeros(3, np.uint64)
        kernels.launch("compare_rows", capacity, 256, struct.pack(
            "<4Q2qQ2i", at(counts), at(cursor), at(live), at(shadow), stride,
            row_bytes, at(record), 13, 0))
        differs = row is not None and row < tokens and byte < row_bytes
        assert record_of(record) == ((1, 7, 13, row) if differs else
                                     (0, 0, 0, 0)), (row, byte)


if __name__ == "__main__":
    sys.exit(emulator.run_tests(
        ["random_fill_random_fill", "verify_verify"],
        [test_random_fill, test_slot_snapshot, test_compare_slots,
         test_compare_rows]))
