# SPDX-License-Identifier: Apache-2.0
"""batch_ingest, chunk_metadata and step_done for AMD in the emulator, against
models of them. Exit code 77 means skipped.

usage: test_emulated_batch.py FOLDER_OF_DEVICE_OBJECTS TARGET
"""

import struct
import sys

import numpy as np

import emulator
from emulator import at

COUNTS = "<6iq"
(FIRST_OFFSET, DECREASING, TOKEN_COUNT, SLOT_RANGE, DUPLICATE, PHASE, TABLES,
 COMPUTED) = 3, 4, 5, 6, 7, 8, 9, 10
STALE, SEQUENCE_COUNT = 1, 2


# --- chunk_metadata ---

class Batch:
    """Of a capacity of 40 sequences, 200 tokens and 50 slots; slot 2 is none."""
    SEQUENCES, TOKENS, SLOTS, NULL, CHUNK = 40, 200, 50, 2, 16

    def __init__(self, lens, computed=None, slots=None, content=0, given=None,
                 wide=False, alone=False):
        self.n = len(lens)
        self.loc = np.cumsum([0] + lens).astype(np.int64)
        self.computed = np.array(computed or [0] * self.n, np.int32)
        self.slots = np.array(slots or range(3, 3 + self.n), np.int32)
        self.content, self.given, self.wide = content, given, wide
        # Whether the op has to make the counts that it starts from.
        self.alone = alone

    def chunks(self, decodes):
        return [0 if n < decodes else int(-(-(self.loc[n + 1] - self.loc[n])
                                            // self.CHUNK))
                for n in range(self.n)]

    def decodes(self):
        n = 0
        while (n < self.n and self.loc[n + 1] - self.loc[n] == 1
               and self.computed[n] > 0):
            n += 1
        return n

    def tables(self):
        chunks = self.chunks(self.decodes())
        offsets = np.cumsum([0] + chunks).astype(np.int64)
        indices = [(n, i) for n, count in enumerate(chunks)
                   for i in range(count)]
        return offsets, np.array(indices or [(0, 0)], np.int32)

    def fault(self):
        """Code, sequence and value of the first fault, by walking along."""
        decodes, used = self.decodes(), set()
        if self.loc[0] != 0:
            return FIRST_OFFSET, 0, int(self.loc[0])
        for n in range(self.n):
            length = int(self.loc[n + 1] - self.loc[n])
            slot = int(self.slots[n])
            if length < 0:
                return DECREASING, n, length
            if self.loc[n + 1] > self.TOKENS:
                return TOKEN_COUNT, n, int(self.loc[n + 1])
            if length == 0:
                continue
            if slot >= self.SLOTS:
                return SLOT_RANGE, n, slot
            if slot >= 0 and slot != self.NULL:
                if slot in used:
                    return DUPLICATE, n, slot
                used.add(slot)
            if self.content == 1 and n >= decodes or \
                    self.content == 2 and n < decodes:
                return PHASE, n, length
            if self.computed[n] < 0:
                return COMPUTED, n, int(self.computed[n])
        return self.table_fault() if self.given else None

    def table_fault(self):
        offsets, indices = self.tables()
        given_offsets, given_indices = self.given
        for n in range(self.n):
            if given_offsets[n] != offsets[n]:
                return TABLES, n, int(offsets[n])
            for row in range(offsets[n], offsets[n + 1]):
                if tuple(given_indices[row]) != tuple(indices[row]):
                    return TABLES, n, row
        if given_offsets[self.n] != offsets[self.n]:
            return TABLES, -1, int(offsets[self.n])
        return None


def run_metadata(kernels, batch, stamps):
    capacity = batch.SEQUENCES
    loc = np.full(capacity + 1, -1, np.int64 if batch.wide else np.int32)
    loc[:batch.n + 1] = batch.loc
    copy = np.full(capacity + 1, -1, np.int32)
    computed = np.full(capacity, -1, np.int32)
    computed[:batch.n] = batch.computed
    slots = np.full(capacity, 1 << 30, np.int32)
    slots[:batch.n] = batch.slots
    offsets = np.full(capacity + 1, -7, np.int64)
    indices = np.full((64, 2), -7, np.int32)
    if batch.given:
        offsets[:batch.n + 1] = batch.given[0]
        indices[:len(batch.given[1])] = batch.given[1]
    before = -5 if batch.alone else 0
    counts = bytearray(struct.pack(COUNTS, before or batch.n, -5, -5, -5,
                                   before, -5, 0))
    memory = np.frombuffer(counts, np.uint8)
    real = np.array([batch.n], np.int32)
    # A full batch may leave its count to the capacity.
    counted = batch.alone and batch.n < capacity
    kernels.launch("chunk_metadata", 1, 1024, struct.pack(
        "<9Q10i", at(memory), at(loc), at(copy) if batch.wide else 0,
        at(computed), at(slots), at(indices), at(offsets), at(stamps),
        at(real) if counted else 0, capacity, batch.TOKENS, 64, batch.CHUNK,
        batch.SLOTS, batch.NULL, batch.content, 8 if batch.wide else 4,
        1 if batch.given else 0, 1 if batch.alone else 0))
    found = struct.unpack(COUNTS, counts)
    assert not stamps.any(), "stamps are left over"
    fault = batch.fault()
    if fault:
        code, sequence, value = fault
        assert found == (batch.n, 0, 0, 0, code, sequence, value), \
            f"{found} instead of {fault}"
        return
    decodes = batch.decodes()
    expected_offsets, expected_indices = batch.tables()
    total = int(expected_offsets[-1])
    assert found == (batch.n, batch.loc[-1], decodes, total, 0, -1, 0), found
    assert (offsets[:batch.n + 1] == expected_offsets).all(), offsets
    assert (indices[:total] == expected_indices[:total]).all(), indices
    assert batch.given or (indices[total:] == -7).all()
    if batch.wide:
        assert (copy[:batch.n + 1] == batch.loc).all()


def metadata_batches():
    yield Batch([])
    yield Batch([0, 0, 0])
    yield Batch([1, 1, 0, 17, 0, 64, 1], [4, 2, 0, 0, 3, 9, 9])
    yield Batch([1] * 40, [1] * 40, content=1)
    yield Batch([16, 17, 15], wide=True)
    yield Batch([1, 0, 20], [2, 0, 0], alone=True)
    yield Batch([2] * 40, alone=True)
    yield Batch([3, 4], slots=[7, 7], alone=True)
    yield Batch([3, 4, 5, 6], slots=[7, 8, 8, 7])
    yield Batch([3, 0, 5, 6], slots=[7, 7, 8, 7])
    yield Batch([3, 4, 5], slots=[2, 2, -1])
    yield Batch([3, 4, 5], slots=[7, 50, 7])
    yield Batch([3, -4, 5], slots=[7, 50, 7])
    yield Batch([100, 101])
    yield Batch([3, 4], [0, -2])
    yield Batch([1, 4], [3, 2], content=1)
    yield Batch([1, 4], [3, 2], content=2)
    for lens in ([3, 4], []):
        shifted = Batch(lens)
        shifted.loc += 1
        yield shifted
    for change in range(5):
        batch = Batch([1, 20, 0, 33], [3, 0, 0, 1])
        offsets, indices = batch.tables()
        if change == 1:
            offsets[3] += 1
        elif change == 2:
            indices[3, 1] = 7
        elif change == 3:
            offsets[4] += 2
        elif change == 4:
            offsets[1], indices[0, 0] = 9, 9
        batch.given = offsets, indices
        yield batch


def test_metadata(kernels):
    stamps = np.zeros(1 + Batch.SLOTS, np.uint64)
    for batch in metadata_batches():
        run_metadata(kernels, batch, stamps)


# --- batch_ingest and step_done ---

def test_ingest_and_done(kernels):
    for place in (0, 1):
        for step, header_step, count in ((4, 4, 4), (5, 5, 0), (7, 3, 2),
                                         (8, 8, 7)):
            run_ingest(kernels, place, step, header_step, count)


def run_ingest(kernels, place, step, header_step, count):
    """One step, whose arrays are in the entry or, at place 1, elsewhere; the
    count is there too."""
    capacity, depth, entry = 6, 3, 512
    table = 4 * (capacity + 1)
    loc_at, computed_at, slots_at = 56, 56 + table, 56 + 2 * table
    loc, computed, slots = [0, 1, 4, 4, 9], [2, 0, 1, 5], [3, -1, 0, 4]
    ring = np.full(depth * entry, 0x7f, np.uint8)
    base = step % depth * entry
    elsewhere = [np.array(values, np.int32) for values in
                 (loc, computed, slots, [count])]
    ring[base:base + 56] = np.frombuffer(struct.pack(
        "<Q4i4Q", header_step, 6 if place else count, 0, place, 0,
        *(at(array) for array in elsewhere)), np.uint8)
    if not place:
        for offset, values in ((loc_at, loc), (computed_at, computed),
                               (slots_at, slots)):
            ring[base + offset:base + offset + 4 * len(values)] = \
                np.array(values, np.int32).view(np.uint8)
    cursor = np.array([step, 77], np.uint64)
    counts = bytearray(40)
    memory = np.frombuffer(counts, np.uint8)[:32]
    out = [np.full(capacity + 2, -9, np.int32) for _ in range(3)]
    kernels.launch("batch_ingest", 1, 256, struct.pack(
        "<8Q10I4i", at(ring), at(cursor), at(memory), at(out[0]), at(out[1]),
        at(out[2]), 0, 0, capacity, 0, loc_at, computed_at, slots_at, slots_at,
        0, 0, entry, 0, depth, capacity, 0, 0))
    error = (STALE if header_step != step else
             SEQUENCE_COUNT if count > capacity else 0)
    real = 0 if error else count
    tail = 0 if error else loc[real]
    value = {0: 0, STALE: header_step,
             SEQUENCE_COUNT: -1 if place else count}[error]
    assert list(cursor) == [step + 1, step]
    assert struct.unpack(COUNTS, counts[:32]) == \
        (real, tail, 0, 0, error, -1, value)
    assert list(out[0]) == loc[:real] + [tail] * (capacity + 1 - real) + [-9]
    assert list(out[1][:-1]) == \
        computed[:real] + [0] * (capacity - real) + [-9]
    assert list(out[2][:-1]) == slots[:real] + [-1] * (capacity - real) + [-9]
    check_done(kernels, cursor, memory, error, value)


def check_done(kernels, cursor, counts, error, value):
    for read in (0, 1):
        mailbox = np.zeros(7, np.uint64)
        mailbox[1:4] = 1, read, 5
        kernels.launch("step_done", 1, 64, struct.pack(
            "<3Q", at(cursor), at(counts), at(mailbox)))
        assert mailbox[0] == cursor[1]
        assert mailbox[3] == (6 if error else 5)
        recorded = bool(error) and read == 1
        assert mailbox[1] == (2 if recorded else 1)
        if recorded:
            assert list(mailbox[4:6]) == [cursor[1], value % (1 << 64)]
            assert list(mailbox[6:].view(np.int32)) == [error, -1]
        else:
            assert not mailbox[4:].any()


if __name__ == "__main__":
    sys.exit(emulator.run_tests(
        [f"{op}_{op}" for op in ("batch_ingest", "chunk_metadata",
                                 "step_done")],
        [test_ingest_and_done, test_metadata]))
