# SPDX-License-Identifier: Apache-2.0
"""stepgraph kda on the golden cases, and on files that are wrong."""

import json
import math

import safetensors
import tool
from closeness import TOLERANCES, error
from safetensors import Tensor
from tool import ROOT, ToolTest

GOLDEN = ROOT / "tests" / "data" / "golden"
CASES = sorted(path.name.split(".")[0] for path in GOLDEN.glob("*.model.json"))


class Kda(ToolTest):
    def model(self, case, **changes):
        model = json.loads((GOLDEN / f"{case}.model.json").read_text())
        model.update(changes)
        return self.write("model.json", json.dumps(model))

    def kda(self, model, inputs, *options):
        """Runs the tool; inputs are a path or tensors. Returns the bytes of
        the result as well."""
        if isinstance(inputs, dict):
            inputs = safetensors.write(self.folder / "in.safetensors", inputs)
        path = self.folder / "out.safetensors"
        result = self.done("kda", "--model", model, "--in", inputs, "--out", path, *options)
        self.assertEqual(result.stderr, "")
        self.assertEqual(list(self.folder.glob("*.tmp")), [])
        return safetensors.read(path), path.read_bytes()

    def golden(self, case, *options):
        model = GOLDEN / f"{case}.model.json"
        return self.kda(model, GOLDEN / f"{case}.safetensors", *options)

    @staticmethod
    def inputs(case):
        return safetensors.read(GOLDEN / f"{case}.safetensors")

    def check(self, case, found, inputs=None):
        inputs = inputs or self.inputs(case)
        expected = safetensors.read(GOLDEN / f"{case}.expected.safetensors")
        o_tolerance, state_tolerance = TOLERANCES[found["o"].dtype]
        starts = inputs["query_start_loc"].values
        slots = inputs["slots"].values if "slots" in inputs else range(len(starts) - 1)
        for name, tensor in found.items():
            self.assertEqual(tensor.shape, expected[name].shape, (case, name))
        self.assertEqual(found["o"].dtype, inputs["q"].dtype)
        self.assertLessEqual(error(expected["o"].values, found["o"].values), o_tolerance, case)
        for n, slot in enumerate(slots):
            wanted, state = expected["final_state"].row(n), found["final_state"].row(n)
            if starts[n] == starts[n + 1] or slot < 0:
                self.assertEqual(wanted, state, (case, n))
            self.assertLessEqual(error(wanted, state), state_tolerance, (case, n))
            if slot < 0:
                rows = range(starts[n], starts[n + 1])
                self.assertFalse(any(any(found["o"].row(t)) for t in rows), case)
        for name in ("conv_cache", "chunk_indices", "chunk_offsets"):
            if name in found:
                self.assertEqual(found[name].dtype, expected[name].dtype)
                self.assertEqual(found[name].data, expected[name].data, (case, name))

    def test_golden_cases(self):
        self.assertGreaterEqual(len(CASES), 9)
        for case in CASES:
            found, _ = self.golden(case)
            names = {"o", "final_state", "chunk_indices", "chunk_offsets"}
            if "conv_weight" in self.inputs(case):
                names.add("conv_cache")
            self.assertEqual(set(found), names, case)
            self.check(case, found)

    def test_replay_eager_and_larger_shapes_are_equal(self):
        for case in CASES:
            inputs = self.inputs(case)
            tokens = inputs["q"].shape[0] + 37
            sequences = inputs["query_start_loc"].shape[0] + 3
            _, exact = self.golden(case)
            larger = ("--shape", f"{tokens},{sequences}", "--slots", "40")
            for options in (["--eager"], larger, [*larger, "--eager"]):
                _, found = self.golden(case, *options)
                self.assertEqual(found, exact, (case, options))

    def test_recurrent(self):
        for case in CASES:
            found, replayed = self.golden(case, "--recurrent")
            self.assertNotIn("chunk_indices", found)
            self.assertNotIn("chunk_offsets", found)
            self.check(case, found)
            for options in (["--eager"], ["--shape", "40,40"]):
                _, other = self.golden(case, "--recurrent", *options)
                self.assertEqual(other, replayed, (case, options))

    def test_recurrent_form_of_a_first_token(self):
        """A sequence that goes on takes the recurrent form from its first
        token, also beside a fresh one: alone it has the same bits."""
        case = "conv-3"
        inputs, model = self.inputs(case), GOLDEN / f"{case}.model.json"
        starts = inputs["query_start_loc"].values
        self.assertEqual((starts, inputs["computed_lens"].values), ([0, 33, 34, 34], [2, 0, 0]))

        def first(tensor, count):
            size = len(tensor.data) // tensor.shape[0]
            return Tensor(tensor.dtype, [count, *tensor.shape[1:]], tensor.data[: count * size])

        alone = dict(inputs)
        for name, tensor in inputs.items():
            if tensor.shape[0] == starts[-1]:
                alone[name] = first(tensor, 33)
        for name in ("computed_lens", "initial_state", "conv_cache"):
            alone[name] = first(inputs[name], 1)
        alone["query_start_loc"] = first(inputs["query_start_loc"], 2)
        expected, _ = self.kda(model, alone, "--recurrent")
        found, _ = self.kda(model, inputs, "--recurrent")
        for name, tensor in expected.items():
            self.assertEqual(first(found[name], tensor.shape[0]).data, tensor.data, name)

    def test_steps_are_told(self):
        for options, text in (
            ([], "56 tokens of 8 sequences in 1 replayed step\n"),
            (["--eager"], "in 1 eager step\n"),
            (["--recurrent"], "in 34 replayed steps\n"),
        ):
            out = self.folder / "out.safetensors"
            model, inputs = GOLDEN / "mixed.model.json", GOLDEN / "mixed.safetensors"
            result = self.done("kda", "--model", model, "--in", inputs, "-o", out, *options)
            self.assertTrue(result.stdout.endswith(text), result.stdout)

    def test_fp32(self):
        """What is bf16 in a file is exact in fp32. With a convolution or norm
        the reference rounds to bf16 in between."""
        for case in CASES:
            inputs = self.inputs(case)
            if "conv_weight" in inputs or "norm_weight" in inputs:
                continue
            for name, tensor in inputs.items():
                if tensor.dtype == "BF16":
                    inputs[name] = Tensor.of("F32", tensor.shape, tensor.values)
            found, _ = self.kda(self.model(case, activation_dtype="fp32"), inputs)
            self.check(case, found, inputs)

    def test_bf16_state(self):
        """From a past of bf16 numbers o has the same bits whatever the state is
        kept in, and the state that a step leaves is the fp32 one, rounded."""
        case = "lower-bound-resumed"
        inputs = self.inputs(case)
        past = inputs["initial_state"]
        # The upper halves of the floats.
        halves = b"".join(past.data[i + 2 : i + 4] for i in range(0, len(past.data), 4))
        inputs["initial_state"] = Tensor("BF16", past.shape, halves)
        narrow, _ = self.kda(self.model(case, state_dtype="bf16"), inputs)
        wide_past = Tensor.of("F32", past.shape, inputs["initial_state"].values)
        wide, _ = self.kda(self.model(case), {**inputs, "initial_state": wide_past})
        self.assertEqual(narrow["o"].data, wide["o"].data)
        state = narrow["final_state"]
        self.assertEqual((state.dtype, state.shape), ("BF16", wide["final_state"].shape))
        for found, exact in zip(state.values, wide["final_state"].values):
            self.assertLessEqual(abs(found - exact), abs(exact) * 2**-8)
        path = safetensors.write(self.folder / "in.safetensors", inputs)
        self.refused(
            "kda", "--model", self.model(case), "--in", path, "-o", path,
            says=["initial_state", "expected F32", "found BF16"],
        )  # fmt: skip

    def test_given_gates_and_betas(self):
        case = "softplus-fresh"
        inputs = self.inputs(case)
        rate = math.exp(inputs.pop("A_log").values[0])
        bias = inputs.pop("dt_bias").values
        raw = inputs["raw_g"]
        gates = [
            -rate * math.log1p(math.exp(x + bias[i % len(bias)])) for i, x in enumerate(raw.values)
        ]
        inputs["raw_g"] = Tensor.of("F32", raw.shape, gates)
        betas = [1 / (1 + math.exp(-x)) for x in inputs["raw_beta"].values]
        inputs["raw_beta"] = Tensor.of("F32", inputs["raw_beta"].shape, betas)
        model = self.model(case, gate={"kind": "given"}, beta="given")
        found, _ = self.kda(model, inputs)
        self.check(case, found)
        inputs["A_log"] = Tensor.of("F32", [1], [0])
        path = safetensors.write(self.folder / "in.safetensors", inputs)
        self.refused("kda", "--model", model, "--in", path, "-o", path, says=["A_log", "given"])

    def test_what_is_left_out_has_a_default(self):
        case = "lower-bound-resumed"
        inputs, model = self.inputs(case), GOLDEN / f"{case}.model.json"
        _, expected = self.golden(case)

        def same(changed):
            # The metadata of the golden file stays behind.
            found, _ = self.kda(model, changed)
            for name, tensor in found.items():
                reference = safetensors.read(self.folder / "expected.safetensors")[name]
                self.assertEqual(tensor.data, reference.data, name)

        (self.folder / "expected.safetensors").write_bytes(expected)
        # A past and no lengths: all go on.
        same({name: t for name, t in inputs.items() if name != "computed_lens"})
        same({**inputs, "slots": Tensor.of("I64", [2], [5, 3])})
        offsets = inputs["query_start_loc"]
        same({**inputs, "query_start_loc": Tensor.of("I64", offsets.shape, offsets.values)})
        # No bias is a bias of 0.
        zero = Tensor.of("F32", inputs["dt_bias"].shape, [0] * len(inputs["dt_bias"].values))
        _, zeros = self.kda(model, {**inputs, "dt_bias": zero})
        _, none = self.kda(model, {n: t for n, t in inputs.items() if n != "dt_bias"})
        self.assertEqual(zeros, none)
        self.assertNotEqual(zeros, expected)

    def test_fresh_sequences_need_no_past(self):
        case = "conv-3"
        inputs, model = self.inputs(case), GOLDEN / f"{case}.model.json"
        lens = Tensor.of("I32", inputs["computed_lens"].shape, [0, 0, 0])
        with_past, _ = self.kda(model, {**inputs, "computed_lens": lens})
        for name in ("initial_state", "conv_cache", "computed_lens"):
            del inputs[name]
        without, _ = self.kda(model, inputs)
        self.assertEqual(with_past["o"].data, without["o"].data)
        for name in ("final_state", "conv_cache"):
            for n in (0, 1):
                self.assertEqual(with_past[name].row(n), without[name].row(n), name)
            # An empty sequence that brought nothing leaves nothing.
            self.assertFalse(any(without[name].row(2)), name)

    def test_without_tokens(self):
        inputs = self.inputs("softplus-fresh")
        for name in ("q", "k", "v", "raw_g", "raw_beta"):
            inputs[name] = Tensor(inputs[name].dtype, [0, *inputs[name].shape[1:]], b"")
        for sequences in (0, 3):
            inputs["query_start_loc"] = Tensor.of("I32", [sequences + 1], [0] * (sequences + 1))
            for options in ([], ["--eager"], ["--recurrent"], ["--shape", "70,5"]):
                found, _ = self.kda(GOLDEN / "softplus-fresh.model.json", inputs, *options)
                self.assertEqual(found["o"].shape, [0, 1, 64])
                self.assertEqual(found["final_state"].shape, [sequences, 1, 64, 64])
                self.assertFalse(any(found["final_state"].values))
                if "--recurrent" not in options:
                    self.assertEqual(found["chunk_indices"].shape, [0, 2])
                    self.assertEqual(found["chunk_offsets"].values, [0] * (sequences + 1))


class Refused(ToolTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out.safetensors"
        self.out.write_text("as it was")

    def kda_refused(self, case, inputs, *options, says=()):
        path = inputs
        if isinstance(inputs, dict):
            path = safetensors.write(self.folder / "in.safetensors", inputs)
        model = GOLDEN / f"{case}.model.json"
        arguments = ["kda", "--model", model, "--in", path, "--out", self.out, *options]
        self.refused(*arguments, says=says)
        self.assertEqual(self.out.read_text(), "as it was")
        self.assertEqual(list(self.folder.glob("*.tmp")), [])

    def test_options(self):
        model, inputs = GOLDEN / "mixed.model.json", GOLDEN / "mixed.safetensors"
        self.assertIn("conv_cache", self.done("kda", "--help").stdout)
        self.refused("kda", "--in", inputs, "-o", self.out, says="--model")
        self.refused("kda", "--model", model, "-o", self.out, says="--in")
        self.refused("kda", "--model", model, "--in", inputs, says="--out")
        self.kda_refused("mixed", self.folder / "nowhere.safetensors", says="nowhere")
        good = ["kda", "--model", model, "--in", inputs]
        self.refused(*good, "-o", self.folder, says="directory")
        self.refused(*good, "-o", self.folder / "no" / "file", says="file")
        for shape in ("56", "56,", "56,8,1", "0,8", "-1,8", "a,b", "56,99999999999", " 56,8"):
            self.kda_refused("mixed", inputs, f"--shape={shape}", says=["--shape", shape])
        self.kda_refused("mixed", inputs, "--shape", "55,8", says=["56", "55"])
        self.kda_refused("mixed", inputs, "--shape", "56,7", says=["8", "7"])
        self.kda_refused("mixed", inputs, "--slots", "6", says=["slots", "below 6"])
        self.kda_refused("mixed", inputs, "--slots", "0", says="--slots")

    def test_other_models(self):
        inputs = GOLDEN / "softplus-fresh.safetensors"
        self.kda_refused("grouped-heads", inputs, says=["v: expected BF16 [100, 2, 64], found BF16 [100, 1, 64]"])
        self.kda_refused("decode-fp16", inputs, says=["q: expected F16 [100, 1, 64], found BF16"])

    def test_missing_and_surplus(self):
        inputs = safetensors.read(GOLDEN / "mixed.safetensors")
        for name in ("q", "k", "v", "raw_g", "raw_beta", "A_log", "query_start_loc"):
            rest = {key: tensor for key, tensor in inputs.items() if key != name}
            self.kda_refused("mixed", rest, says=["in.safetensors", f"{name}: expected", "found none"])
        for name in ("norm_weight", "output_gate"):
            rest = {key: tensor for key, tensor in inputs.items() if key != name}
            self.kda_refused("mixed", rest, says=[f"{name}: expected", "go together"])
        for name in ("initial_state", "conv_cache"):
            rest = {key: tensor for key, tensor in inputs.items() if key != name}
            self.kda_refused("mixed", rest, says=[f"{name}: expected", "sequence 0 goes on"])
        rest = {key: tensor for key, tensor in inputs.items() if key != "conv_weight"}
        self.kda_refused("mixed", rest, says="conv_cache: expected no such tensor without conv_weight")
        self.kda_refused("mixed", {**inputs, "poem": inputs["q"]}, says="poem: expected no such tensor")

    def test_types_and_shapes(self):
        inputs = safetensors.read(GOLDEN / "mixed.safetensors")
        for name, tensor in inputs.items():
            wrong = "F64" if tensor.dtype != "I32" else "F32"
            count = len(tensor.values)
            other = Tensor.of(wrong, tensor.shape, [0] * count)
            self.kda_refused("mixed", {**inputs, name: other}, says=[f"{name}: expected", f"found {wrong} ["])
            flat = Tensor(tensor.dtype, [count, 1, 1, 1, 1], tensor.data)
            self.kda_refused("mixed", {**inputs, name: flat}, says=[": expected", f"[{count}, 1, 1, 1, 1]"])
            nested = Tensor(tensor.dtype, [1] * 8, tensor.data[: len(tensor.data) // count])
            self.kda_refused("mixed", {**inputs, name: nested}, says=": expected")

    def test_offsets(self):
        inputs = safetensors.read(GOLDEN / "mixed.safetensors")
        good = inputs["query_start_loc"].values
        for index, value, says in (
            (0, 1, "expected 0 first, found 1"),
            (0, -1, "expected 0 first, found -1"),
            (3, 1, "expected at least 2 at 3, found 1"),
            (5, 57, "expected at most 56 tokens, as q has, at 5, found 57"),
            (8, 55, "expected 56 tokens, as q has, at 8, found 55"),
            (8, 2**40, "at 8, found 1099511627776"),
        ):
            values = [*good[:index], value, *good[index + 1 :]]
            offsets = Tensor.of("I64", [9], values)
            self.kda_refused("mixed", {**inputs, "query_start_loc": offsets}, says=["query_start_loc", says])
        empty = Tensor.of("I32", [0], [])
        self.kda_refused("mixed", {**inputs, "query_start_loc": empty}, says="query_start_loc")

    def test_lengths_and_slots(self):
        inputs = safetensors.read(GOLDEN / "mixed.safetensors")
        for name, index, value, says in (
            ("computed_lens", 2, -1, "at 2, found -1"),
            ("computed_lens", 4, 2**31, "at 4, found 2147483648"),
            ("slots", 5, 2**20, "below 1048576 at 5, found 1048576"),
            ("slots", 5, -(2**40), "at 5"),
            ("slots", 5, 6, "expected different slots, found 6 at 3 and 5"),
        ):
            values = inputs[name].values
            values[index] = value
            self.kda_refused("mixed", {**inputs, name: Tensor.of("I64", [8], values)}, says=[f"{name}: ", says])

    def test_truncated(self):
        content = (GOLDEN / "conv-2.safetensors").read_bytes()
        path = self.folder / "in.safetensors"
        for size in (0, 5, 8, 100, len(content) - 1):
            path.write_bytes(content[:size])
            self.kda_refused("conv-2", path, says="in.safetensors")


if __name__ == "__main__":
    tool.main()
