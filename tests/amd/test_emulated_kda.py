# SPDX-License-Identifier: Apache-2.0
"""The KDA kernels for AMD in the emulator against the recurrence in double
precision. Whatever kernels must not read is NaN; exit code 77 means skipped.

usage: test_emulated_kda.py FOLDER_OF_DEVICE_OBJECTS TARGET
"""

import struct
import sys

import numpy as np

import emulator
import kda_reference as kda
from check_code_objects import panel_bytes, prepare_lds
from kda_reference import poisoned

SPARE_TOKENS, SLOT_PADDING = 3, 16


def rows(values, dtype, padding):
    """Rows of |values|, |padding| elements apart, with spare ones; and the
    distance of two."""
    values = values.reshape(values.shape[0], -1)
    padded = poisoned((values.shape[0] + SPARE_TOKENS,
                       values.shape[1] + padding), dtype)
    padded[:values.shape[0], :values.shape[1]] = kda.to_dtype(values, dtype)
    return padded, padded.shape[1]


class Run:
    """A case in memory as the launchers would hand it to the kernels."""

    def __init__(self, case):
        self.case = case
        gate = kda.FP32 if case.gate == kda.GATE_GIVEN else case.dtype
        beta = kda.FP32 if case.beta == kda.BETA_GIVEN else case.dtype
        self.q, self.q_stride = rows(case.q, case.dtype, case.padding)
        self.k, self.k_stride = rows(case.k, case.dtype, case.padding)
        self.v, self.v_stride = rows(case.v, case.dtype, case.padding)
        self.g, self.g_stride = rows(case.raw_g, gate, case.padding)
        self.b, self.b_stride = rows(case.raw_beta, beta, case.padding)
        self.o = poisoned(self.v.shape, case.dtype)
        self.a_log = case.a_log.astype(np.float32)
        self.dt_bias = case.dt_bias.astype(np.float32)
        self._make_state()
        self._make_tables()

    def _make_state(self):
        case = self.case
        elements = case.value_heads * case.value_dim * case.key_dim
        self.slot_stride = elements + SLOT_PADDING
        memory = poisoned(case.slot_count * self.slot_stride + 8,
                          case.state_dtype)
        skip = -memory.ctypes.data % 16 // memory.itemsize
        self.state = memory[skip:skip + case.slot_count * self.slot_stride]
        self.state = self.state.reshape(case.slot_count, self.slot_stride)
        for n, slot in enumerate(case.slots):
            if slot > 0 and case.computed[n] > 0:
                self.state[slot, :elements] = kda.to_dtype(
                    case.states[n].reshape(-1), case.state_dtype)
        self.before = self.state.copy()
        self.elements = elements

    def _make_tables(self):
        case = self.case
        chunks = [0 if n < case.decodes else -(-length // case.chunk_size)
                  for n, length in enumerate(case.lens)]
        self.loc = np.cumsum([0] + case.lens).astype(np.int32)
        self.offsets = np.cumsum([0] + chunks).astype(np.int64)
        self.indices = np.array([(n, i) for n, count in enumerate(chunks)
                                 for i in range(count)] or [(0, 0)], np.int32)
        self.chunk_count = int(self.offsets[-1])
        self.computed = np.array(case.computed, np.int32)
        self.slots = np.array(case.slots, np.int32)
        self.counts = np.frombuffer(bytearray(struct.pack(
            "<6iq", len(case.lens), case.tokens, case.decodes,
            self.chunk_count, 0, -1, 0)), np.uint8)

    def params(self):
        case, at = self.case, lambda array: array.ctypes.data
        return struct.pack(
            "<13Q7q14i2f", at(self.counts), at(self.loc), at(self.computed),
            at(self.slots), at(self.q), at(self.k), at(self.v), at(self.g),
            at(self.b), at(self.a_log), at(self.dt_bias), at(self.o),
            at(self.state), self.q_stride, self.k_stride, self.v_stride,
            self.g_stride, self.b_stride, self.v_stride, self.slot_stride,
            case.heads, case.value_heads, case.key_dim, case.value_dim,
            case.gate, case.beta, int(case.l2norm), case.dtype, 0,
            case.tokens + SPARE_TOKENS, 1, 1, case.state_dtype, 0, case.scale,
            case.lower_bound)

    def errors(self):
        """Relative L2 errors of outputs and states."""
        case = self.case
        o, states = case.expected()
        width = case.value_heads * case.value_dim
        found = kda.from_dtype(self.o[:case.tokens, :width].copy(), case.dtype)
        live = [n for n in range(len(case.lens)) if case.is_live(n)]
        state = kda.from_dtype(
            np.array([self.state[case.slots[n], :self.elements] for n in live]),
            case.state_dtype)
        return (relative(found, o.reshape(case.tokens, width)),
                relative(state, states[live].reshape(len(live), -1)))

    def check_untouched(self):
        case = self.case
        width = case.value_heads * case.value_dim
        live = {case.slots[n] for n in range(len(case.lens))
                if case.is_live(n)}
        for slot in range(case.slot_count):
            first = self.elements if slot in live else 0
            assert (self.state[slot, first:].tobytes()
                    == self.before[slot, first:].tobytes()), f"slot {slot}"
        assert not self.o[case.tokens:, :width].any(), "tail is not zero"
        assert kda.is_poisoned(self.o[:, width:]), "padding of rows"


def relative(found, expected):
    """Where nothing but zeros is expected, the norm of what was found."""
    norm = np.linalg.norm(expected)
    return np.linalg.norm(found - expected) / (norm or 1.0)


def key_class(case):
    return 4 if case.key_dim <= 64 else 8 if case.key_dim <= 128 else 16


def run_step(kernels, run):
    """kda_recurrent, then kda_chunk; grids are smaller than the work."""
    case = run.case
    state = "f" if case.state_dtype == kda.FP32 else "6bf16_t"
    kernels.launch(f"_Z13kda_recurrentILi{key_class(case) // 2}E{state}E", 3,
                   128, run.params())
    tiles = key_class(case)
    element = 2 if case.dtype == kda.BF16 and case.l2norm else 4
    panel = panel_bytes(tiles, element)
    panels = poisoned((max(run.chunk_count, 1) * case.value_heads
                       * (case.chunk_size // 16) * panel + 16) // 4, kda.FP32)
    address = (panels.ctypes.data + 15) // 16 * 16
    params = run.params() + struct.pack(
        "<3Q2i", run.indices.ctypes.data, run.offsets.ctypes.data, address,
        case.chunk_size, -(-case.value_dim // 32))
    kind = f"ILi{tiles}E" + ("9sg_fp16_t" if element == 2 else "f")
    kernels.launch(f"_Z17kda_chunk_prepare{kind}", 3, tiles * 16, params,
                   prepare_lds(tiles, element))
    kernels.launch(f"_Z14kda_chunk_scan{kind}", 2, 128, params, panel)


# Of outputs and states. bf16: half a unit of the outputs is 2^-9; panels are of
# fp16. fp16: half a unit of the outputs is 2^-12. fp32: rounding alone.
LIMITS = {kda.FP32: (1e-5, 1e-5), kda.BF16: (5.5e-3, 1.1e-3),
          kda.FP16: (6e-4, 1e-5)}
# Of states that are rounded to bf16, uniform in its units: 1.7e-3 in the mean.
BF16_STATE_LIMIT = 2e-3

# Rows stay multiples of four bytes: the emulator cannot store a word at another
# address, which the compiler makes of two halves because the hardware can.
CASES = [
    ("mixed", kda.Case([1, 1, 0, 37, 1, 16], [9, 5, 3, 4, 0, 0])),
    ("hard", kda.Case([70], [2], hard=True)),
    ("hard bound", kda.Case([40, 33], [2, 0], hard=True,
                            gate=kda.GATE_LOWER_BOUND)),
    ("given", kda.Case([1, 20], [3, 0], gate=kda.GATE_GIVEN, hard=True,
                       beta=kda.BETA_GIVEN, l2norm=False, chunk_size=16)),
    ("no slots", kda.Case([1, 1, 18, 17], [3, 2, 0, 7], slots=[-1, 2, 0, 4],
                          beta=kda.BETA_DOUBLE_SIGMOID, chunk_size=32)),
    ("odd sizes", kda.Case([1, 35], [3, 1], group=2, key_dim=80,
                           value_dim=48)),
    ("bf16", kda.Case([1, 65, 19], [3, 1, 0], dtype=kda.BF16, key_dim=128)),
    ("bf16 hard", kda.Case([1, 80], [3, 1], dtype=kda.BF16, hard=True,
                           padding=2)),
    ("fp16", kda.Case([1, 33], [3, 1], dtype=kda.FP16)),
    ("fp16 packed", kda.Case([17], [1], dtype=kda.FP16, padding=2)),
    ("wide", kda.Case([1, 18], [3, 1], key_dim=256, value_dim=32)),
    ("wide bf16", kda.Case([1, 18], [3, 1], key_dim=256, value_dim=32,
                           dtype=kda.BF16)),
    ("bf16 state", kda.Case([1, 1, 35], [3, 2, 1], key_dim=80,
                            state_dtype=kda.BF16)),
    ("all bf16", kda.Case([1, 19, 18], [3, 1, 0], key_dim=128, dtype=kda.BF16,
                          state_dtype=kda.BF16)),
]


def test_kda(kernels):
    failed = 0
    for name, case in CASES:
        run = Run(case)
        run_step(kernels, run)
        run.check_untouched()
        errors = run.errors()
        limits = LIMITS[case.dtype]
        if case.state_dtype == kda.BF16:
            limits = limits[0], BF16_STATE_LIMIT
        good = all(e <= limit for e, limit in zip(errors, limits))
        failed += not good
        print(f"{name:12} o {errors[0]:.2e} state {errors[1]:.2e} "
              f"{'ok' if good else 'FAILED'}", flush=True)
    assert failed == 0


def test_fault(kernels):
    """With a fault no state changes, and the outputs are zero."""
    run = Run(kda.Case([1, 20], [3, 0]))
    run.counts.view(np.int32)[4] = 6  # error_code
    run_step(kernels, run)
    width = run.case.value_heads * run.case.value_dim
    assert not run.o[:, :width].any()
    assert kda.is_poisoned(run.o[:, width:])
    assert run.state.tobytes() == run.before.tobytes()


def test_not_finite(kernels):
    """An infinite value makes its column of the outputs, from its token on, and
    its row of the state no numbers, and changes no bit of anything else. It is
    among the last 16 tokens: what follows would have such a state as factors of
    products in fp16, which the emulator takes for numbers."""
    token, column = 20, 3
    for dtype in kda.FP32, kda.BF16:
        case = kda.Case([30], [2], dtype=dtype)
        clean = Run(case)
        run_step(kernels, clean)
        case.v[token, 0, column] = np.inf
        run = Run(case)
        run_step(kernels, run)
        lost = np.zeros(run.o.shape, bool)
        lost[token:case.tokens, column] = True
        assert np.isnan(kda.from_dtype(run.o[lost], dtype)).all()
        assert run.o[~lost].tobytes() == clean.o[~lost].tobytes()
        lost = np.zeros(run.state.shape, bool)
        first = column * case.key_dim
        lost[case.slots[0], first:first + case.key_dim] = True
        assert np.isnan(run.state[lost]).all()
        assert run.state[~lost].tobytes() == clean.state[~lost].tobytes()


if __name__ == "__main__":
    sys.exit(emulator.run_tests(
        ["kda_recurrent_kda_recurrent", "kda_chunk_prepare", "kda_chunk_scan"],
        [test_fault, test_not_finite, test_kda]))
