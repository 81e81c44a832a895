#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the JSON Schema files against a validator that is not ours.

The examples and bundled files pass; the cases of tests/schemas/invalid/schema
are refused; those of invalid/meaning pass, since only the readers can refuse
them. Run from the root of the repository.
"""

import json
import pathlib
import sys

try:
    import jsonschema
except ImportError:
    sys.exit(f"{sys.executable} has no jsonschema: install python3-jsonschema")

SCHEMAS = pathlib.Path("schemas")
INVALID = pathlib.Path("tests/schemas/invalid")


def load_validators():
    validators = {}
    for kind in ("model", "shapes", "batch", "request"):
        schema = json.loads((SCHEMAS / f"{kind}.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        validators[kind] = jsonschema.Draft202012Validator(schema)
    return validators


def read_values(path):
    """The values of a JSON file, or of each line of a file of lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return [json.loads(text)]
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def check(validators, path, kind, is_valid, failures):
    for value in read_values(path):
        if validators[kind].is_valid(value) != is_valid:
            wanted = "pass" if is_valid else "be refused"
            failures.append(f"{path}: expected to {wanted} by the schema")


def main():
    validators = load_validators()
    failures = []
    valid = [(path, "model") for path in (SCHEMAS / "models").glob("*.json")]
    valid += [(path, "shapes") for path in (SCHEMAS / "shapes").glob("*.json")]
    valid += [
        (SCHEMAS / "examples" / "model.json", "model"),
        (SCHEMAS / "examples" / "shapes.json", "shapes"),
        (SCHEMAS / "examples" / "batches.jsonl", "batch"),
        (SCHEMAS / "examples" / "requests.jsonl", "request"),
    ]
    counts = {"valid": 0, "schema": 0, "meaning": 0}
    for path, kind in valid:
        check(validators, path, kind, True, failures)
        counts["valid"] += 1
    for folder, is_valid in (("schema", False), ("meaning", True)):
        for path in sorted((INVALID / folder).glob("*.json*")):
            kind = path.name.split(".")[-2]
            check(validators, path, kind, is_valid, failures)
            counts[folder] += 1
    if counts["valid"] < 9 or counts["schema"] < 120 or counts["meaning"] < 20:
        failures.append(f"files are missing: {counts}")
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"checked {counts}, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
