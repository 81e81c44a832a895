# SPDX-License-Identifier: Apache-2.0
"""Runs the tool for the tests beside this file.

    python3 test_NAME.py TOOL SOURCE_ROOT

Tests that find no device are skipped as a whole, with exit code 77.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = sys.argv[1] if len(sys.argv) > 2 else ""
ROOT = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ".")
DEMO = str(ROOT / "cli" / "demo" / "requests.jsonl")

DONE, FAILED, USAGE = 0, 1, 2


def run(*arguments, **options):
    return subprocess.run(
        [TOOL, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        **options,
    )


def validator(kind):
    """The validator of schemas/KIND.schema.json, or None without one."""
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        return None
    schema = json.loads((ROOT / "schemas" / f"{kind}.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


class ToolTest(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def done(self, *arguments):
        """Runs the tool, which must succeed without complaint."""
        result = run(*arguments)
        self.assertEqual(result.returncode, DONE, result.stderr)
        return result

    def refused(self, *arguments, code=USAGE, says=()):
        """The tool tells one fault in one line and prints nothing else."""
        result = run(*arguments)
        self.assertEqual(result.returncode, code, (arguments, result))
        self.assertEqual(result.stdout, "", arguments)
        self.assertRegex(result.stderr, r"\Astepgraph: [^\n]+\n\Z", arguments)
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, result.stderr, arguments)
        return result


def main():
    if run("info").returncode != DONE:
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
