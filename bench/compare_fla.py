# SPDX-License-Identifier: Apache-2.0
"""How far one KDA layer is from the recurrence in double precision: ours, by
`stepgraph kda`, and flash-linear-attention's chunk_kda on the same tensors.

    python3 bench/compare_fla.py build/nvidia/cli/stepgraph out.json

Needs an NVIDIA GPU, torch, triton, safetensors and flash-linear-attention.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from fla.ops.kda import chunk_kda
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests/data"))
import kda_fp64  # noqa: E402

HEADS, DIM = 4, 128
LENGTHS = [513, 64, 200, 700]
LOWER_BOUND = {"kind": "lower_bound", "lower_bound": -5.0}
SOFTPLUS = {"kind": "softplus"}


def make_inputs(gate, hard, seed):
    """Random inputs rounded to bf16, which both sides and the reference read.

    Hard ones have nearly equal keys, betas near 1, gate inputs ten times as
    large and a bias in the range of trained models.
    """
    rng = np.random.default_rng(seed)
    tokens, count = sum(LENGTHS), len(LENGTHS)
    shape = (tokens, HEADS, DIM)
    k = rng.normal(size=shape)
    if hard:
        k = rng.normal(size=(1, HEADS, DIM)) + 0.02 * k
    inputs = {
        "q": rng.normal(size=shape),
        "k": k,
        "v": rng.normal(size=shape),
        "raw_g": rng.normal(size=shape) * (10 if hard else 1),
        "raw_beta": rng.normal(size=shape[:2]) + (3 if hard else 0),
    }
    inputs = {name: torch.tensor(x).to(torch.bfloat16)
              for name, x in inputs.items()}
    rate = (rng.uniform(1, 16, HEADS) if gate is SOFTPLUS
            else np.exp(0.5 * rng.normal(size=HEADS)))
    bias = (rng.uniform(-7.8, -1.4, (HEADS, DIM)) if hard
            else rng.normal(size=(HEADS, DIM)))
    inputs["A_log"] = torch.tensor(np.log(rate), dtype=torch.float32)
    inputs["dt_bias"] = torch.tensor(bias, dtype=torch.float32)
    inputs["initial_state"] = torch.tensor(
        rng.normal(size=(count, HEADS, DIM, DIM)), dtype=torch.float32)
    inputs["query_start_loc"] = torch.tensor(
        np.concatenate([[0], np.cumsum(LENGTHS)]), dtype=torch.int32)
    return inputs


def run_reference(inputs, gate):
    x = {name: tensor.double().numpy() for name, tensor in inputs.items()}
    g = kda_fp64.log_decay(x["raw_g"], x["A_log"], x["dt_bias"], gate)
    beta = kda_fp64.sigmoid(x["raw_beta"])
    outputs, states = np.zeros_like(x["v"]), []
    for n, first in enumerate(x["query_start_loc"][:-1].astype(int)):
        rows = slice(first, first + LENGTHS[n])
        outputs[rows], state = kda_fp64.recurrence(
            x["q"][rows], x["k"][rows], x["v"][rows], g[rows], beta[rows],
            DIM**-0.5, x["initial_state"][n])
        states.append(state)
    return outputs, np.stack(states)


def run_ours(tool, inputs, gate, folder):
    model = {"version": 1, "name": "compare", "layers": 1, "heads": HEADS,
             "key_dim": DIM, "value_dim": DIM, "gate": gate}
    (folder / "model.json").write_text(json.dumps(model))
    save_file(inputs, folder / "in.safetensors")
    subprocess.run([tool, "kda", "--model", folder / "model.json",
                    "--in", folder / "in.safetensors",
                    "--out", folder / "out.safetensors"], check=True)
    result = load_file(folder / "out.safetensors")
    return result["o"].double().numpy(), result["final_state"].double().numpy()


def run_fla(inputs, gate):
    x = {name: tensor.cuda() for name, tensor in inputs.items()}
    bound = gate.get("lower_bound")
    o, state = chunk_kda(
        q=x["q"][None], k=x["k"][None], v=x["v"][None], g=x["raw_g"][None],
        beta=x["raw_beta"][None], A_log=x["A_log"],
        dt_bias=x["dt_bias"].flatten(), initial_state=x["initial_state"],
        output_final_state=True, use_qk_l2norm_in_kernel=True,
        use_gate_in_kernel=True, use_beta_sigmoid_in_kernel=True,
        safe_gate=bound is not None, lower_bound=bound, state_v_first=True,
        cu_seqlens=x["query_start_loc"].long())
    return o[0].double().cpu().numpy(), state.double().cpu().numpy()


def distance(found, expected):
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def main():
    tool, out = sys.argv[1:]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for gate in (SOFTPLUS, LOWER_BOUND):
            for hard in (False, True):
                inputs = make_inputs(gate, hard, seed=7)
                o, state = run_reference(inputs, gate)
                ours = run_ours(tool, inputs, gate, pathlib.Path(folder))
                fla = run_fla(inputs, gate)
                rows.append({
                    "gate": gate["kind"], "hard": hard,
                    "o": distance(ours[0], o), "o_fla": distance(fla[0], o),
                    "state": distance(ours[1], state),
                    "state_fla": distance(fla[1], state)})
                print(rows[-1], flush=True)
    pathlib.Path(out).write_text(json.dumps(rows, indent=2) + "\n")


main()
