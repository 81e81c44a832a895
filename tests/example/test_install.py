# SPDX-License-Identifier: Apache-2.0
"""What is installed is enough for the example, with a compiler alone.

    python3 test_install.py BUILD_FOLDER SOURCE_ROOT CMAKE CC

The host flavour: it needs a HIP header, jansson, threads and libm.
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD, ROOT, CMAKE, CC = sys.argv[1:5]
DEFINE = "-D__HIP_PLATFORM_AMD__=1"


def run(*command):
    result = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=600, check=False
    )
    if result.returncode != 0:
        raise AssertionError((command, result.stdout, result.stderr))
    return result.stdout


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.prefix = pathlib.Path(folder.name)
        run(CMAKE, "--install", BUILD, "--prefix", self.prefix)
        self.include = self.prefix / "include" / "stepgraph"

    def test_the_example_builds_and_runs(self):
        program = self.prefix / "serve_requests"
        (library,) = self.prefix.rglob("libstepgraph.a")
        source = pathlib.Path(ROOT) / "tests" / "example" / "serve_requests.c"
        run(CC, "-std=c11", DEFINE, f"-I{self.include}", source, "-o", program,
            library, "-ljansson", "-lpthread", "-lm")
        self.assertIn('stepgraph_steps_total{phase="mixed"} 1\n', run(program))

    def test_every_header_compiles_alone(self):
        headers = sorted(self.include.rglob("*.h"))
        self.assertGreater(len(headers), 30)
        for header in headers:
            for language in ("c", "c++"):
                run(CC, "-x", language, "-Wall", "-Wextra", "-fsyntax-only", DEFINE,
                    f"-I{self.include}", "-include", header, "/dev/null")

    def test_the_tool_is_there(self):
        self.assertRegex(run(self.prefix / "bin" / "stepgraph", "--version"), "stepgraph")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
