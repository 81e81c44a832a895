# SPDX-License-Identifier: Apache-2.0
"""One step of a Kimi Delta Attention layer in double precision.

Written from the formulas of the Kimi Linear report (arXiv 2510.26692), token by
token, for clarity and not for speed. Arrays are numpy arrays of float64:

    q, k   [T, heads, K]              raw_g     [T, value_heads, K]
    v      [T, value_heads, V]        raw_beta  [T, value_heads]
    a_log  [value_heads]              dt_bias   [value_heads, K]
    state  [value_heads, V, K]

T tokens of N sequences lie behind each other; query_start_loc [N + 1] has where
each begins. computed_lens [N] counts the tokens of a sequence before this step:
with 0 it is fresh and starts from zeros, whatever its state and cache hold. A
slot below 0 means that a sequence has no place to keep its state: its outputs
are zero. An empty sequence changes nothing.
"""

import numpy as np


def sigmoid(x):
    # tanh keeps the precision on both sides and cannot overflow.
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def log_decay(raw_g, a_log, dt_bias, gate):
    """Natural logarithm of the decay, per key channel; gate is a model's."""
    x = raw_g + dt_bias
    rate = np.exp(a_log)[:, None]
    if gate["kind"] == "softplus":
        return -rate * np.logaddexp(0.0, x)
    if gate["kind"] == "lower_bound":
        return gate["lower_bound"] * sigmoid(rate * x)
    raise ValueError(gate["kind"])


def normalised(x):
    return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + 1e-6)


def recurrence(q, k, v, g, beta, scale, state):
    """One sequence. Returns the outputs and the state after the last token."""
    group = v.shape[1] // q.shape[1]
    state = state.copy()
    outputs = np.zeros_like(v)
    for t in range(v.shape[0]):
        for head in range(v.shape[1]):
            query = scale * normalised(q[t, head // group])
            key = normalised(k[t, head // group])
            decayed = state[head] * np.exp(g[t, head])
            error = v[t, head] - decayed @ key
            state[head] = decayed + beta[t, head] * np.outer(error, key)
            outputs[t, head] = state[head] @ query
    return outputs, state


def short_conv(x, weight, history):
    """One sequence: x [length, channels], weight [channels, W], history
    [W - 1, channels], oldest first. Returns outputs and the next history."""
    inputs = np.concatenate([history, x])
    width = weight.shape[1]
    outputs = np.zeros_like(x)
    for t in range(x.shape[0]):
        total = np.sum(inputs[t:t + width] * weight.T, axis=0)
        outputs[t] = total * sigmoid(total)
    return outputs, inputs[len(inputs) - (width - 1):]


def gated_norm(o, gate, weight, epsilon):
    mean_square = np.mean(o * o, axis=-1, keepdims=True)
    return o / np.sqrt(mean_square + epsilon) * weight * sigmoid(gate)


def chunk_tables(query_start_loc, computed_lens, chunk_size):
    """Pairs (sequence, chunk of the sequence) and the running count of chunks.
    The longest prefix of sequences of one token that continue has no chunks."""
    indices, offsets = [], [0]
    decoding = True
    for n, computed in enumerate(computed_lens):
        length = query_start_loc[n + 1] - query_start_loc[n]
        decoding = decoding and length == 1 and computed > 0
        count = 0 if decoding else -(-length // chunk_size)
        indices += [(n, i) for i in range(count)]
        offsets.append(offsets[-1] + count)
    return (np.array(indices, dtype=np.int32).reshape(-1, 2),
            np.array(offsets, dtype=np.int64))


def step(model, case, rounded):
    """Runs one layer. model is the content of a model file, case a dictionary
    of the inputs by the names that case files use. rounded is applied to what
    an implementation keeps in the activation dtype between two ops: the outputs
    of the convolution, and o before the norm. Returns the expected outputs."""
    starts = [int(start) for start in case["query_start_loc"]]
    sequences = len(starts) - 1
    computed = case.get("computed_lens", np.zeros(sequences, dtype=np.int32))
    slots = case.get("slots", np.arange(sequences))
    tokens, heads, key_dim = case["q"].shape
    value_heads, value_dim = case["v"].shape[1:]
    q, k, v = case["q"], case["k"], case["v"]
    state_shape = (sequences, value_heads, value_dim, key_dim)
    states = case.get("initial_state", np.zeros(state_shape)).copy()
    expected = {}

    if "conv_weight" in case:
        packed = np.concatenate([x.reshape(tokens, -1) for x in (q, k, v)], 1)
        caches = case["conv_cache"].copy()
        for n in range(sequences):
            part = slice(starts[n], starts[n + 1])
            if part.start == part.stop or slots[n] < 0:
                continue
            history = caches[n] if computed[n] > 0 else np.zeros_like(caches[n])
            packed[part], caches[n] = short_conv(packed[part],
                                                 case["conv_weight"], history)
        packed = rounded(packed)
        ends = np.cumsum([q[0].size, k[0].size])
        q, k, v = (x.reshape(old.shape) for x, old in
                   zip(np.split(packed, ends, axis=1), (q, k, v)))
        expected["conv_cache"] = caches

    g = log_decay(case["raw_g"], case["A_log"], case["dt_bias"], model["gate"])
    beta = sigmoid(case["raw_beta"])
    if model["beta"] == "double_sigmoid":
        beta = 2.0 * beta
    o = np.zeros_like(v)
    for n in range(sequences):
        part = slice(starts[n], starts[n + 1])
        if part.start == part.stop or slots[n] < 0:
            continue
        state = states[n] if computed[n] > 0 else np.zeros_like(states[n])
        o[part], states[n] = recurrence(q[part], k[part], v[part], g[part],
                                        beta[part], key_dim ** -0.5, state)
    if "norm_weight" in case:
        o = gated_norm(rounded(o), case["output_gate"], case["norm_weight"],
                       model["norm_epsilon"])

    expected["o"] = o
    expected["final_state"] = states
    expected["chunk_indices"], expected["chunk_offsets"] = chunk_tables(
        starts, computed, model["chunk_size"])
    return expected
