# SPDX-License-Identifier: Apache-2.0
"""How far the kernels of two builds are from each other, by `stepgraph kda` on
the golden cases: relative L2 of o, and of the state that is farthest.

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
from closeness import TOLERANCES, error  # noqa: E402


def run(tool, case, path, *options):
    command = [tool, "kda", "--model", GOLDEN / f"{case}.model.json", "--in",
               GOLDEN / f"{case}.safetensors", "--out", path, *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return safetensors.read(path)


def state_error(ours, theirs):
    """A state at a time: one that is not used may be 1e30 and would hide others."""
    errors = [error(ours.row(n), theirs.row(n)) for n in range(ours.shape[0])]
    return max(errors, key=lambda x: (math.isnan(x), x))


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
        assert all(ours[name].shape == theirs[name].shape for name in ours)
        found = [error(ours["o"].values, theirs["o"].values),
                 state_error(ours["final_state"], theirs["final_state"])]
        # Both may be off the recurrence.
        far |= any(not x <= 2 * limit for x, limit in zip(found, TOLERANCES[dtype]))
        print(f"{case:22} {'recurrent' if options else 'chunk':10} {dtype:6} "
              f"{found[0]:9.2e} {found[1]:9.2e}")
    return 1 if far else 0


if __name__ == "__main__":
    sys.exit(main())
