# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments and wrong files: one line on stderr, exit code 2."""

import tool
from tool import DEMO, ROOT, ToolTest, run

MODEL = (ROOT / "schemas" / "models" / "tiny.json").read_text()
SHAPES = (ROOT / "schemas" / "shapes" / "demo.json").read_text()
BATCH = '{"query_lens":[1],"computed_lens":[0],"slots":[0]}\n'
REQUEST = '{"timestamp":0,"input_length":3,"output_length":2}\n'


class Usage(ToolTest):
    def test_commands(self):
        self.refused(says="no command")
        self.refused("restart", says=["'restart'", "replay, dump, kda, validate or info"])
        self.refused("--verbose", says="--verbose")

    def test_help_and_version(self):
        self.assertIn("Exit codes", self.done("--help").stdout)
        self.assertRegex(self.done("--version").stdout, r"\Astepgraph \d+\.\d+\.\d+\n")
        for command in ("replay", "dump", "kda", "validate", "info"):
            text = self.done(command, "--help").stdout
            self.assertIn(f"usage: stepgraph {command}", text)
        self.assertIn("--ring-depth", self.done("replay", "--help").stdout)

    def test_replay_options(self):
        good = ["replay", "--model", "tiny", "--requests", DEMO]
        self.refused("replay", says="--model")
        self.refused("replay", "--model", "tiny", says="neither")
        self.refused(*good, "--batches", DEMO, says="both")
        self.refused(*good, "--clock", "fast", says="virtual or real")
        self.refused(*good, "--tables", "given", says="device or host")
        self.refused(*good, "--slots", "0", says="from 1 to")
        self.refused(*good, "--limit=-3", says="whole number")
        self.refused(*good, "--seed", "x", says="whole number")
        self.refused(*good, "--report", says="no value")
        self.refused(*good, "--report", self.folder, says="directory")
        self.refused(*good, "--report", "/nowhere/at/all", says="/nowhere/at/all")
        self.refused(*good, "--verify", "--ring-depth", "1", says="at least 2")
        self.refused(*good, "stray", says="'stray'")
        self.refused(*good, "--verify=yes", says="takes no value")
        self.refused(*good, "--quiet", "--quiet", says="more than once")

    def test_dump_options(self):
        good = ["dump", "--model", "tiny", "--shapes", "demo"]
        self.refused("dump", says="--model")
        self.refused(*good, "--format", "xml", says="text, json, dot or html")
        self.refused(*good, "--format", "html", says="not available")
        self.refused(*good, "--target", "gfx000", says=["gfx000", "gfx942"])
        self.refused(*good, "--shape", "huge", says=["'huge'", "decode-8"])
        self.refused(*good, "-o", self.folder / "no" / "file", says="file")
        self.refused(*good, "-o", self.folder, says="directory")

    def test_other_options(self):
        self.refused("validate", says="FILE")
        self.refused("validate", "--kind", "poem", DEMO, says="auto, model")
        self.refused("info", "more", says="'more'")

    def test_control_characters_stay_out(self):
        result = run("replay", "--model", "a\x1b[31m\nb", "--requests", DEMO)
        self.assertEqual(result.returncode, tool.USAGE)
        self.assertEqual(result.stderr.count("\n"), 1)
        self.assertNotIn("\x1b", result.stderr)


class Files(ToolTest):
    def test_missing(self):
        nowhere = self.folder / "nowhere.json"
        self.refused("replay", "--model", nowhere, "--requests", DEMO, says="nowhere")
        self.refused("replay", "--model", "giant", "--requests", DEMO, says=["giant", "tiny"])
        self.refused("replay", "--model", "tiny", "--shapes", nowhere, "--requests", DEMO, says="nowhere")
        for kind in ("--requests", "--batches"):
            self.refused("replay", "--model", "tiny", kind, nowhere, says="nowhere")
        self.refused("dump", "--model", nowhere, says="nowhere")
        self.refused("validate", nowhere, says="nowhere")
        self.refused("validate", self.folder, says=self.folder.name)

    def broken(self, suffix, text, *command):
        path = self.write(f"broken{suffix}", text)
        self.refused(*[path if word is None else word for word in command], says=path.name)
        self.refused("validate", path, says=path.name)

    def test_broken_model(self):
        for text in (
            MODEL[:40],
            MODEL.replace('"layers": 2', '"layers": -2'),
            MODEL.replace('"layers": 2', '"layers": 2, "layers": 2'),
            MODEL + "x",
        ):
            self.broken(".json", text, "dump", "--model", None)

    def test_broken_shapes(self):
        for text in (
            SHAPES[:60],
            SHAPES.replace('"decode-8"', "8"),
            SHAPES.replace('"max_tokens": 2048', '"max_tokens": 1e99'),
        ):
            self.broken(".json", text, "dump", "--model", "tiny", "--shapes", None)

    def test_broken_batches(self):
        for text in (
            BATCH[:20],
            BATCH + BATCH.replace('"slots":[0]', '"slots":[0,1]'),
            BATCH.replace("[1]", "[-1]"),
        ):
            self.broken(".jsonl", text, "replay", "--model", "tiny", "--batches", None)

    def test_broken_requests(self):
        for text in (
            REQUEST[:40],
            REQUEST + REQUEST.replace("3", "0"),
            "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,374\n",
        ):
            self.broken(".jsonl", text, "replay", "--model", "tiny", "--requests", None)

    def test_batches_beyond_the_limits(self):
        path = self.write("large.jsonl", BATCH + BATCH.replace("[1]", "[5000]"))
        arguments = ["replay", "--model", "tiny", "--shapes", "demo", "--batches", path]
        self.refused(*arguments, says=["large.jsonl:2", "5000", "2048"])
        path = self.write("slot.jsonl", BATCH.replace('"slots":[0]', '"slots":[7]'))
        self.refused(*arguments[:-1], path, "--slots", "7", says=["slot 7", "--slots"])

    def test_validate_tells_each_file(self):
        model = ROOT / "schemas" / "models" / "tiny.json"
        shapes = ROOT / "schemas" / "shapes" / "demo.json"
        batches = self.write("batches.jsonl", BATCH * 3)
        csv = self.write("trace.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n")
        result = self.done("validate", model, shapes, batches, csv, DEMO)
        lines = result.stdout.splitlines()
        self.assertEqual(len(lines), 5)
        self.assertTrue(lines[0].endswith(": valid model 'tiny', 2 layers"), lines)
        self.assertIn(": valid shapes, 5 up to 2048 tokens", lines[1])
        self.assertIn(": valid batches, 3 of 3 tokens", lines[2])
        self.assertIn(": valid requests, 1 of them", lines[3])
        self.assertIn(": valid requests, 40 of them", lines[4])
        self.refused("validate", "--kind", "shapes", model, says="tiny.json")
        other = self.write("other.json", '{"poem": true}')
        self.refused("validate", other, says=["other.json", "--kind"])
        mixed = run("validate", other, model)
        self.assertEqual(mixed.returncode, tool.USAGE)
        self.assertEqual(len(mixed.stdout.splitlines()), 1)
        self.assertEqual(len(mixed.stderr.splitlines()), 1)


if __name__ == "__main__":
    tool.main()
