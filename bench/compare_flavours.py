# SPDX-License-Identifier: Apache-2.0
"""How far the kernels of two builds are from each other, by `stepgraph kda` on
the golden cases: relative L2 of o and of the states.

    python3 bench/compare_flavours.py build/host/cli/stepgraph build/nvidia/cli/stepgraph

Exit code 1 where a distance is above what the two may be off together.
"""

import itertools
import math
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "data" / "golden"
sys.path.insert(0, str(ROOT / "tests" / "cli"))
import safetensors  # noqa: E402

# Twice what a build may be off the recurrence (tests/cli/test_kda.py).
LIMITS = {"BF16": (1.1e-2, 2.2e-3), "F16": (1.4e-3, 2.8e-4), "F32": (2e-5, 2e-5)}


def run(tool, case, path, *options):
    command = [tool, "kda", "--model", GOLDEN / f"{case}.model.json", "--in",
               GOLDEN / f"{case}.safetensors", "--out", path, *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return safetensors.read(path)


def distance(expected, found):
    assert len(expected) == len(found)
    squares = sum(x * x for x in expected)
    difference = sum((x - y) ** 2 for x, y in zip(expected, found))
    return math.sqrt(difference / squares) if squares else math.sqrt(difference)


def main():
    first, second = sys.argv[1:]
    models = sorted(GOLDEN.glob("*.model.json"))
    assert models, f"no cases in {GOLDEN}"
    far = False
    print(f"{'case':22} {'form':10} {'dtype':6} {'o':>9} {'state':>9}")
    for model, options in itertools.product(models, ([], ["--recurrent"])):
        case = model.name.removesuffix(".model.json")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "out.safetensors"
            ours, theirs = (run(tool, case, path, *options) for tool in (first, second))
        dtype = ours["o"].dtype
        found = [distance(ours[name].values, theirs[name].values)
                 for name in ("o", "final_state")]
        far |= any(not x <= limit for x, limit in zip(found, LIMITS[dtype]))
        print(f"{case:22} {'recurrent' if options else 'chunk':10} {dtype:6} "
              f"{found[0]:9.2e} {found[1]:9.2e}")
    return 1 if far else 0


if __name__ == "__main__":
    sys.exit(main())
