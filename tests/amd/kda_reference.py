# SPDX-License-Identifier: Apache-2.0
"""KDA token by token in double precision (arXiv 2510.26692), and inputs."""

import numpy as np

GATE_SOFTPLUS, GATE_LOWER_BOUND, GATE_GIVEN = 0, 1, 2
BETA_SIGMOID, BETA_DOUBLE_SIGMOID, BETA_GIVEN = 0, 1, 2
FP32, BF16, FP16 = 0, 1, 2


def to_dtype(values, dtype):
    """Bits of |values| in |dtype|, rounded to nearest even."""
    values = np.ascontiguousarray(values, np.float32)
    if dtype == FP32:
        return values.copy()
    if dtype == FP16:
        return values.astype(np.float16).view(np.uint16)
    bits = values.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_dtype(bits, dtype):
    if dtype == FP32:
        return bits.astype(np.float64)
    if dtype == FP16:
        return bits.view(np.float16).astype(np.float64)
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


NAN_BITS = 0xff  # of each byte; a NaN in every dtype


def poisoned(shape, dtype):
    array = np.empty(shape, np.float32 if dtype == FP32 else np.uint16)
    array.view(np.uint8).fill(NAN_BITS)
    return array


def is_poisoned(array):
    return (array.copy().view(np.uint8) == NAN_BITS).all()


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


class Case:
    """A batch. Sequence i has slot i + 1 and is fresh where computed is 0."""

    def __init__(self, lens, computed, heads=1, group=1, key_dim=64,
                 value_dim=64, dtype=FP32, gate=GATE_SOFTPLUS,
                 beta=BETA_SIGMOID, hard=False, chunk_size=64, l2norm=True,
                 slots=None, padding=8, state_dtype=FP32, seed=1):
        self.lens, self.computed = lens, computed
        self.heads, self.value_heads = heads, heads * group
        self.key_dim, self.value_dim = key_dim, value_dim
        self.dtype, self.gate, self.beta = dtype, gate, beta
        self.state_dtype = state_dtype
        self.chunk_size, self.l2norm = chunk_size, l2norm
        self.scale, self.lower_bound = key_dim ** -0.5, -5.0
        self.slots = slots or [i + 1 for i in range(len(lens))]
        self.slot_count = len(lens) + 2
        self.tokens = sum(lens)
        self.padding = padding
        self.decodes = 0
        while (self.decodes < len(lens) and lens[self.decodes] == 1
               and computed[self.decodes] > 0):
            self.decodes += 1
        self._fill(np.random.default_rng(seed), hard)

    def _fill(self, random, hard):
        t, h, hv = self.tokens, self.heads, self.value_heads
        k, v = self.key_dim, self.value_dim
        normal = random.standard_normal
        round_to = lambda x, dtype: from_dtype(to_dtype(x, dtype), dtype)
        unit = 1.0 if self.l2norm else k ** -0.5
        keys = normal((t, h, k)) * unit
        if hard:
            keys = normal((1, h, k)) * unit + 0.02 * keys
        self.q = round_to(normal((t, h, k)) * unit, self.dtype)
        self.k = round_to(keys, self.dtype)
        self.v = round_to(normal((t, hv, v)), self.dtype)
        self.a_log = round_to(np.log(1 + 15 * random.random(hv))
                              if self.gate == GATE_SOFTPLUS
                              else 0.5 * normal(hv), FP32)
        self.dt_bias = round_to(-7.8 + 6.4 * random.random((hv, k)) if hard
                                else normal((hv, k)), FP32)
        raw = normal((t, hv, k)) * (10.0 if hard else 1.0)
        if self.gate == GATE_GIVEN:
            raw = -abs(raw)
        if hard and self.gate != GATE_LOWER_BOUND:
            raw[random.random(raw.shape) < 0.1] = \
                1000.0 if self.gate == GATE_SOFTPLUS else -1000.0
        self.raw_g = round_to(raw, FP32 if self.gate == GATE_GIVEN
                              else self.dtype)
        raw_beta = normal((t, hv)) + (3.0 if hard else 0.0)
        if self.beta == BETA_GIVEN:
            raw_beta = sigmoid(raw_beta)
        self.raw_beta = round_to(raw_beta, FP32 if self.beta == BETA_GIVEN
                                 else self.dtype)
        self.states = round_to(normal((len(self.lens), hv, v, k)),
                               self.state_dtype)

    def log_decay(self, token, head):
        x = self.raw_g[token, head]
        if self.gate == GATE_GIVEN:
            return x
        x = x + self.dt_bias[head]
        rate = np.exp(self.a_log[head])
        if self.gate == GATE_SOFTPLUS:
            return -rate * np.logaddexp(0.0, x)
        return self.lower_bound * sigmoid(rate * x)

    def beta_of(self, token, head):
        raw = self.raw_beta[token, head]
        if self.beta == BETA_GIVEN:
            return raw
        return sigmoid(raw) * (2.0 if self.beta == BETA_DOUBLE_SIGMOID else 1.0)

    def is_live(self, n):
        return self.lens[n] > 0 and self.slots[n] > 0

    def expected(self):
        """Outputs and states; zero rows for sequences without a slot."""
        o = np.zeros((self.tokens, self.value_heads, self.value_dim))
        states = self.states.copy()
        token = 0
        for n, length in enumerate(self.lens):
            if self.is_live(n) and self.computed[n] == 0:
                states[n] = 0.0
            for _ in range(length):
                for h in range(self.value_heads):
                    if self.is_live(n):
                        self._step(token, h, states[n, h], o)
                token += 1
        return o, states

    def _step(self, token, head, state, o):
        key_head = head // (self.value_heads // self.heads)
        q, k = self.q[token, key_head], self.k[token, key_head]
        if self.l2norm:
            q = q / np.sqrt(q @ q + 1e-6)
            k = k / np.sqrt(k @ k + 1e-6)
        state *= np.exp(self.log_decay(token, head))
        delta = self.beta_of(token, head) * (self.v[token, head] - state @ k)
        state += np.outer(delta, k)
        o[token, head] = state @ (q * self.scale)
