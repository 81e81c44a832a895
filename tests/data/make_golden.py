#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the golden cases in tests/data/golden; needs numpy.

    python3 tests/data/make_golden.py           writes them anew
    python3 tests/data/make_golden.py --check   compares them with what is there;
                                             another numpy may change last bits

A case is three files: NAME.model.json, NAME.safetensors with the inputs, and
NAME.expected.safetensors with the outputs in fp32, computed by kda_fp64.py from
the inputs as stored. States and caches that a step must not read, those of
fresh sequences, hold large numbers. The seed of a case is in the files'
metadata.
"""

import argparse
import json
import pathlib
import sys

import numpy as np

import kda_fp64

FOLDER = pathlib.Path(__file__).resolve().parent / "golden"

# What nobody may read: a finite number, so that tools can compare it.
STALE_STATE = 1e30
STALE_CACHE = 3e4


def bf16_bits(x):
    """Round to nearest, ties to even."""
    bits = np.asarray(x, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def stored(x, dtype):
    """The array of a file for |x|, and its values as float64."""
    if dtype == "BF16":
        bits = bf16_bits(x)
        return bits, (bits.astype(np.uint32) << 16).view(np.float32).astype(
            np.float64)
    array = np.asarray(x, dtype={"F16": np.float16, "F32": np.float32,
                                 "I32": np.int32, "I64": np.int64}[dtype])
    return array, array.astype(np.float64)


def safetensors_bytes(tensors, metadata):
    """tensors: name to (dtype, array). Larger elements first, then by name."""
    header, data = {"__metadata__": metadata}, b""
    for name, (dtype, array) in sorted(
            tensors.items(), key=lambda item: (-item[1][1].itemsize, item[0])):
        content = np.ascontiguousarray(array).astype(
            array.dtype.newbyteorder("<")).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def case(name, seed, query_lens, computed_lens=None, slots=None, gate=None,
         heads=1, value_heads=1, conv_width=None, norm=False, hard=False,
         beta="sigmoid", dtype="bf16"):
    return locals()


LOWER_BOUND = {"kind": "lower_bound", "lower_bound": -5.0}

CASES = [
    case("softplus-fresh", 11, [100]),
    case("lower-bound-resumed", 12, [70, 20], [64, 5], gate=LOWER_BOUND),
    # Decodes, then empty, fresh and resumed sequences; one comes late with a
    # single token, the last has no slot.
    case("mixed", 13, [1, 1, 0, 34, 1, 0, 17, 2], [12, 3, 7, 0, 9, 0, 64, 5],
         slots=[2, 0, 4, 6, 1, 5, 3, -1], conv_width=4, norm=True),
    case("grouped-heads", 14, [66], heads=1, value_heads=2, norm=True,
         beta="double_sigmoid"),
    case("conv-2", 15, [1, 2, 3], [0, 9, 1], conv_width=2, gate=LOWER_BOUND),
    case("conv-3", 16, [33, 1, 0], [2, 0, 0], conv_width=3, norm=True),
    # Keys that nearly repeat and beta near 1, as in real traffic.
    case("hard-lower-bound", 17, [130], gate=LOWER_BOUND, hard=True),
    # Decays by hundreds, some of which forget everything.
    case("hard-softplus", 18, [130], hard=True),
    case("decode-fp16", 19, [1, 1, 1], [1, 70, 2000], conv_width=4, norm=True,
         gate=LOWER_BOUND, dtype="fp16"),
]

KEY_DIM = VALUE_DIM = 64


def model_of(spec):
    return {
        "version": 1,
        "name": "golden-" + spec["name"],
        "layers": 1,
        "heads": spec["heads"],
        "value_heads": spec["value_heads"],
        "key_dim": KEY_DIM,
        "value_dim": VALUE_DIM,
        "conv_width": spec["conv_width"] or 4,
        "chunk_size": 64,
        "gate": spec["gate"] or {"kind": "softplus"},
        "beta": spec["beta"],
        "activation_dtype": spec["dtype"],
        "norm_epsilon": 1e-5,
    }


def draw_projections(rng, spec, tokens):
    """q, k, v and the raw gates."""
    heads, value_heads = spec["heads"], spec["value_heads"]
    softplus = spec["gate"] is None
    k = rng.normal(size=(tokens, heads, KEY_DIM))
    raw_g = rng.normal(size=(tokens, value_heads, KEY_DIM))
    raw_beta = rng.normal(size=(tokens, value_heads))
    if spec["hard"]:
        k = rng.normal(size=(1, heads, KEY_DIM)) + 0.02 * k
        raw_g *= 10.0
        raw_beta += 3.0
        if softplus:
            raw_g[rng.random(raw_g.shape) < 0.1] = 1000.0
    return {"q": rng.normal(size=k.shape), "k": k,
            "v": rng.normal(size=(tokens, value_heads, VALUE_DIM)),
            "raw_g": raw_g, "raw_beta": raw_beta}


def draw_weights(rng, spec):
    value_heads = spec["value_heads"]
    weights = {"dt_bias": rng.uniform(-7.8, -1.4, (value_heads, KEY_DIM))}
    if spec["gate"] is None:
        weights["A_log"] = np.log(rng.uniform(1.0, 16.0, value_heads))
    else:
        weights["A_log"] = rng.normal(size=value_heads) * 0.5
    if spec["conv_width"]:
        channels = (2 * spec["heads"] * KEY_DIM + value_heads * VALUE_DIM)
        weights["conv_weight"] = 0.5 * rng.normal(
            size=(channels, spec["conv_width"]))
    if spec["norm"]:
        weights["norm_weight"] = rng.uniform(0.5, 1.5, VALUE_DIM)
    return weights


def draw_pools(rng, spec, weights):
    """State and cache of every sequence."""
    fresh = np.array(spec["computed_lens"]) == 0
    state = 0.3 * rng.normal(
        size=(len(fresh), spec["value_heads"], VALUE_DIM, KEY_DIM))
    state[fresh] = STALE_STATE
    pools = {"initial_state": state}
    if "conv_weight" in weights:
        channels, width = weights["conv_weight"].shape
        cache = rng.normal(size=(len(fresh), width - 1, channels))
        cache[fresh] = STALE_CACHE
        pools["conv_cache"] = cache
    return pools


def inputs_of(spec):
    rng = np.random.default_rng(spec["seed"])
    activations = {"bf16": "BF16", "fp16": "F16"}[spec["dtype"]]
    starts = np.concatenate([[0], np.cumsum(spec["query_lens"])])
    values = draw_projections(rng, spec, int(starts[-1]))
    if spec["norm"]:
        values["output_gate"] = rng.normal(size=values["v"].shape)
    dtypes = {name: activations for name in values}
    dtypes["conv_cache"] = activations
    values.update(draw_weights(rng, spec))
    if spec["computed_lens"]:
        values.update(draw_pools(rng, spec, values))
        values["computed_lens"] = np.array(spec["computed_lens"])
        dtypes["computed_lens"] = "I32"
    if spec["slots"]:
        values["slots"] = np.array(spec["slots"])
        dtypes["slots"] = "I32"
    values["query_start_loc"] = starts
    dtypes["query_start_loc"] = "I32"
    return {name: (dtypes.get(name, "F32"), value)
            for name, value in values.items()}, activations


def expected_dtype(name, activations):
    return {"chunk_indices": "I32", "chunk_offsets": "I64",
            "conv_cache": activations}.get(name, "F32")


def files_of(spec):
    """File name to content."""
    model = model_of(spec)
    inputs, activations = inputs_of(spec)
    arrays, values = {}, {}
    for name, (dtype, value) in inputs.items():
        array, values[name] = stored(value, dtype)
        arrays[name] = (dtype, array)
    expected = kda_fp64.step(model, values,
                             lambda x: stored(x, activations)[1])
    outputs = {name: (dtype, stored(value, dtype)[0])
               for name, value in expected.items()
               for dtype in [expected_dtype(name, activations)]}
    metadata = {"case": spec["name"], "seed": str(spec["seed"])}
    return {
        spec["name"] + ".model.json":
            (json.dumps(model, indent=2) + "\n").encode(),
        spec["name"] + ".safetensors": safetensors_bytes(arrays, metadata),
        spec["name"] + ".expected.safetensors":
            safetensors_bytes(outputs, metadata),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true",
                        help="write nothing, fail if a file would change")
    check = parser.parse_args().check
    changed = []
    FOLDER.mkdir(exist_ok=True)
    for spec in CASES:
        for name, content in files_of(spec).items():
            path = FOLDER / name
            if path.exists() and path.read_bytes() == content:
                continue
            changed.append(name)
            if not check:
                path.write_bytes(content)
    print("\n".join(changed) or "nothing changed")
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
