# SPDX-License-Identifier: Apache-2.0
"""Replays: totals that add up, and reports that say so."""

import json

import tool
from tool import DEMO, ToolTest, run


def read_requests(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class Replay(ToolTest):
    def replay(self, *arguments, shapes="demo"):
        path = self.folder / "report.json"
        result = self.done(
            "replay", "--model", "tiny", "--shapes", shapes, "--report", path, "--quiet", *arguments
        )
        self.assertEqual(result.stderr, "")
        report = json.loads(path.read_text())
        self.check_sums(report)
        self.assertEqual([file.name for file in self.folder.glob("*.tmp")], [])
        return report

    def check_sums(self, report):
        validator = tool.validator("report")
        if validator:
            validator.validate(report)
        steps = report["steps"]
        self.assertEqual(steps["total"], steps["graph"] + steps["eager"])
        self.assertEqual(steps["total"], sum(steps["by_phase"].values()))
        self.assertEqual(steps["eager"], sum(r["steps"] for r in steps["eager_by_reason"]))
        self.assertEqual(steps["graph"], sum(shape["hits"] for shape in report["shapes"]))
        times = report["step_time"]
        self.assertEqual(times["all"]["steps"], steps["total"])
        parts = [times[phase] for phase in ("decode", "prefill", "mixed") if times[phase]]
        self.assertEqual(times["all"]["total_ns"], sum(part["total_ns"] for part in parts))
        self.assertEqual(report["errors"], {"steps": 0, "first": None})
        self.assertEqual(report["verified"]["mismatched_rows"], 0)
        verified = steps["total"] if report["options"]["verify"] else 0
        self.assertEqual(report["verified"]["steps"], verified)

    def check_requests(self, report, requests):
        """Each request is its input and all but the first of its output."""
        inputs = sum(request["input_length"] for request in requests)
        outputs = sum(request["output_length"] for request in requests)
        found = report["requests"]
        self.assertEqual(found["count"], len(requests))
        self.assertEqual(found["finished"], len(requests))
        self.assertEqual(found["input_tokens"], inputs)
        self.assertEqual(found["output_tokens"], outputs)
        work = inputs + outputs - len(requests)
        self.assertEqual(report["tokens"]["real"], work)
        if report["options"]["clock"] == "virtual":
            # Steps of 1 ms and 1 us a token, with idle time in between.
            busy_ns = report["steps"]["total"] * 1000000 + work * 1000
            last_ns = max(request["timestamp"] for request in requests) * 1000000
            self.assertGreaterEqual(found["schedule_ns"], busy_ns)
            self.assertLessEqual(found["schedule_ns"], busy_ns + last_ns)

    def test_demo_is_verified(self):
        report = self.replay("--requests", DEMO, "--verify")
        self.check_requests(report, read_requests(DEMO))
        self.assertEqual(report["steps"]["eager"], 0)
        self.assertTrue(all(shape["captured"] for shape in report["shapes"]))

    def test_same_seed_same_steps(self):
        reports = [self.replay("--requests", DEMO, "--seed", "7") for _ in range(2)]
        for report in reports:
            for shape in report["shapes"]:
                del shape["capture_ns"], shape["graph_bytes"]
        for key in ("requests", "steps", "tokens", "sequences", "shapes"):
            self.assertEqual(reports[0][key], reports[1][key])

    def test_host_tables(self):
        report = self.replay("--requests", DEMO, "--verify", "--tables", "host")
        self.check_requests(report, read_requests(DEMO))
        self.assertEqual(report["options"]["tables"], "host")

    def test_eager_steps_have_a_reason(self):
        report = self.replay("--requests", DEMO, "--eager", "--limit", "9")
        self.check_requests(report, read_requests(DEMO)[:9])
        steps = report["steps"]
        self.assertEqual(steps["graph"], 0)
        self.assertEqual([r["reason"] for r in steps["eager_by_reason"]], ["requested"])
        self.assertEqual(report["tokens"]["padded"], 0)

    def test_few_slots_and_a_small_ring(self):
        report = self.replay("--requests", DEMO, "--verify", "--slots", "3", "--ring-depth", "2")
        self.check_requests(report, read_requests(DEMO))
        self.assertEqual(report["options"]["slots"], 3)
        self.assertEqual(report["options"]["ring_depth"], 2)

    def test_real_clock(self):
        report = self.replay("--requests", DEMO, "--clock", "real", "--limit", "12")
        self.check_requests(report, read_requests(DEMO)[:12])

    def test_shapes_that_do_not_fit(self):
        shapes = self.write(
            "shapes.json",
            json.dumps(
                {
                    "version": 1,
                    "limits": {"max_tokens": 300, "max_sequences": 16},
                    "shapes": [
                        {"name": "few", "phase": "decode", "max_tokens": 2, "max_sequences": 2},
                        {"name": "some", "phase": "mixed", "max_tokens": 100, "max_sequences": 16},
                    ],
                }
            ),
        )
        report = self.replay("--requests", DEMO, "--verify", shapes=shapes)
        self.check_requests(report, read_requests(DEMO))
        reasons = {r["reason"]: r for r in report["steps"]["eager_by_reason"]}
        self.assertEqual(list(reasons), ["tokens"])
        self.assertEqual(reasons["tokens"]["largest_actual"], 300)
        self.assertEqual(reasons["tokens"]["limit"], 100)

    def test_step_without_a_shape_fails(self):
        shapes = self.write(
            "shapes.json",
            json.dumps(
                {
                    "version": 1,
                    "limits": {"max_tokens": 64, "max_sequences": 4},
                    "shapes": [{"name": "one", "phase": "decode", "max_tokens": 1, "max_sequences": 1}],
                    "policy": {"on_no_match": "error"},
                }
            ),
        )
        result = run("replay", "--model", "tiny", "--shapes", shapes, "--requests", DEMO, "--quiet")
        self.assertEqual(result.returncode, tool.FAILED)
        self.assertRegex(result.stderr, r"\Astepgraph: step 1: [^\n]*no shape[^\n]*\n\Z")

    def test_batches(self):
        lines = [
            {"query_lens": [5, 0, 3], "computed_lens": [0, 0, 0], "slots": [4, 9, 2]},
            {"query_lens": [1, 1], "computed_lens": [3, 5], "slots": [2, 4]},
            # A sequence that began elsewhere, and one without a slot.
            {"query_lens": [1, 7], "computed_lens": [100, 0], "slots": [0, -1]},
            {"query_lens": [], "computed_lens": [], "slots": []},
        ]
        path = self.write("batches.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        report = self.replay("--batches", path, "--verify")
        self.assertIsNone(report["requests"])
        self.assertEqual(report["tokens"]["real"], 18)
        self.assertEqual(report["steps"]["total"], 4)
        self.assertEqual(report["sequences"], 7)
        self.assertEqual(report["options"]["slots"], 10)
        report = self.replay("--batches", path, "--limit", "2", "--slots", "12")
        self.assertEqual(report["tokens"]["real"], 10)
        self.assertEqual(report["options"]["slots"], 12)

    def test_empty_trace(self):
        path = self.write("empty.jsonl", "")
        result = self.done("replay", "--model", "tiny", "--shapes", "demo", "--requests", path, "--quiet")
        self.assertIn("0 of 0 finished", result.stdout)

    def test_progress_without_a_terminal(self):
        arguments = ["replay", "--model", "tiny", "--shapes", "demo", "--requests", DEMO]
        result = self.done(*arguments)
        self.assertIn("capture: 100%", result.stderr)
        self.assertIn("replay: 100%", result.stderr)
        for text in (result.stdout, result.stderr):
            self.assertNotIn("\x1b", text)
            self.assertNotIn("\r", text)

    def test_report_to_a_full_device(self):
        result = run(
            "replay", "--model", "tiny", "--shapes", "demo", "--requests", DEMO,
            "--limit", "2", "--quiet", "--report", "/dev/full",
        )
        self.assertNotEqual(result.returncode, tool.DONE)
        self.assertEqual(result.stderr.count("\n"), 1)


if __name__ == "__main__":
    tool.main()
