# SPDX-License-Identifier: Apache-2.0
"""The example: the README prints it as it is, it is short, and it works.

    python3 test_example.py EXAMPLE SOURCE_ROOT
"""

import pathlib
import re
import subprocess
import sys
import unittest

PROGRAM, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
SOURCE = ROOT / "tests" / "example" / "serve_requests.c"
# What the program's steps add up to: tokens are 100 + 7 + 350 of the prompts,
# 4 * 3 of the decodes and 1 + 1 + 60.
EXPECTED = {
    'stepgraph_steps_total{phase="prefill"}': 1,
    'stepgraph_steps_total{phase="decode"}': 4,
    'stepgraph_steps_total{phase="mixed"}': 1,
    'stepgraph_graph_steps_total{shape="decode-8"}': 4,
    'stepgraph_graph_steps_total{shape="mixed-512"}': 1,
    'stepgraph_graph_steps_total{shape="prefill-2048"}': 1,
    'stepgraph_tokens_total{kind="real"}': 100 + 7 + 350 + 12 + 62,
    "stepgraph_sequences_total": 18,
    "stepgraph_error_steps_total": 0,
}


class Example(unittest.TestCase):
    def test_the_readme_prints_it(self):
        readme = (ROOT / "README.md").read_text()
        section = readme.split("\n## Embedding\n")[1].split("\n## ")[0]
        blocks = re.findall(r"^```c\n(.*?)^```$", section, re.M | re.S)
        self.assertEqual(len(blocks), 1)
        self.assertEqual(blocks[0], SOURCE.read_text())

    def test_it_is_short(self):
        self.assertLessEqual(len(SOURCE.read_text().splitlines()), 80)

    def test_it_serves(self):
        result = subprocess.run(
            [PROGRAM], capture_output=True, text=True, timeout=600, check=False
        )
        if result.stderr.startswith("unsupported"):
            self.skipTest(result.stderr)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        samples = re.findall(r"^([^# ]\S*) (\d+)$", result.stdout, re.M)
        found = {name: int(value) for name, value in samples}
        for key, value in EXPECTED.items():
            self.assertEqual(found[key], value, key)
        for key, value in found.items():
            if key.startswith("stepgraph_eager_steps_total"):
                self.assertEqual(value, 0, key)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
