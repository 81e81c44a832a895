# SPDX-License-Identifier: Apache-2.0
"""Reads what the compiler made of the device code for AMD GPUs: no scratch,
registers and LDS that leave room for the workgroups a compute unit that each
params.h states, and matrix instructions where they belong.

usage: check_code_objects.py FOLDER_OF_DEVICE_OBJECTS TARGET...
"""

import glob
import re
import sys
import tempfile

import code_objects

LDS_BYTES = {"gfx90a": 64 << 10, "gfx942": 64 << 10, "gfx950": 160 << 10}
SIMDS, WAVE, REGISTERS, GRANULE = 4, 64, 512, 8
SIMD_WAVES = 8


def panel_bytes(tiles, element):
    """kernels/kda_chunk/panel.h"""
    return (3 * tiles + 2) * 256 * element + tiles * 64


def prepare_lds(tiles, element):
    region = max(panel_bytes(tiles, element), 3 * 1024 * tiles)
    return region + tiles // 4 * 2176 + 2304


class Expected:
    """Of one kernel: threads and dynamic LDS a workgroup, workgroups a compute
    unit, and whether it multiplies matrices."""

    def __init__(self, threads, workgroups, lds=0, matrix=False):
        self.threads, self.workgroups = threads, workgroups
        self.lds, self.matrix = lds, matrix


def expectations():
    """By a regular expression on the kernel's mangled name."""
    table = {
        "batch_ingest": Expected(256, 1),
        "chunk_metadata": Expected(1024, 1),
        "compare_rows": Expected(256, 1),
        "compare_slots": Expected(256, 1),
        "gated_norm": Expected(256, 4),
        "random_fill": Expected(256, 1),
        "short_conv": Expected(256, 4),
        "slot_snapshot": Expected(256, 1),
        "step_done": Expected(64, 1),
    }
    for pieces, workgroups in ((2, 4), (4, 4), (8, 2)):
        for state in "f", "6bf16_t":
            table[f"_Z13kda_recurrentILi{pieces}E{state}E.*"] = Expected(
                128, workgroups)
    # kernels/kda_chunk/params.h, in the order of key tiles.
    rows = (("prepare", 2, "9sg_fp16_t", (2, 2, 1)),
            ("prepare", 4, "f", (2, 1, 1)),
            ("scan", 2, "9sg_fp16_t", (4, 4, 2)),
            ("scan", 4, "f", (4, 2, 1)))
    for kernel, element, name, workgroups in rows:
        for tiles, count in zip((4, 8, 16), workgroups):
            prepare = kernel == "prepare"
            key = f"_Z\\d+kda_chunk_{kernel}ILi{tiles}E{name}E.*"
            table[key] = Expected(
                tiles * 16 if prepare else 128, count,
                prepare_lds(tiles, element) if prepare
                else panel_bytes(tiles, element), matrix=True)
    return table


def workgroups_by_registers(kernel, threads):
    # Accumulation registers come out of the same file.
    used = -(-max(kernel["vgpr_count"], 1) // GRANULE) * GRANULE
    waves = min(REGISTERS // used, SIMD_WAVES) * SIMDS
    return waves // (threads // WAVE)


def faults_of(target, kernel, code, expected):
    if kernel["private_segment_fixed_size"] != 0:
        yield f"{kernel['private_segment_fixed_size']} bytes of scratch"
    if kernel["vgpr_spill_count"] != 0:
        yield f"{kernel['vgpr_spill_count']} registers spilled"
    if kernel["max_flat_workgroup_size"] != expected.threads:
        yield f"compiled for {kernel['max_flat_workgroup_size']} threads"
    lds = kernel["group_segment_fixed_size"] + expected.lds
    if lds * expected.workgroups > LDS_BYTES[target]:
        yield f"{lds} bytes of LDS for {expected.workgroups} workgroups"
    room = workgroups_by_registers(kernel, expected.threads)
    if room < expected.workgroups:
        yield (f"{kernel['vgpr_count']} registers leave {room} workgroups, "
               f"expected {expected.workgroups}")
    if expected.matrix and not any("v_mfma" in line for line in code):
        yield "no matrix instruction"


def main():
    folder, targets = sys.argv[1], sys.argv[2:]
    tools = code_objects.Tools.from_environment()
    table = expectations()
    seen, faults = set(), 0
    with tempfile.TemporaryDirectory() as scratch:
        for path in sorted(glob.glob(folder + "/kernels_*.o")):
            for target in targets:
                code = code_objects.extract(tools, path, target, scratch)
                functions = code_objects.disassembly_of(tools, code)
                for name, kernel in code_objects.kernels_of(
                        tools, code).items():
                    key = next((k for k in table if re.fullmatch(k, name)),
                               None)
                    if key is None:
                        found = ["a kernel that this check does not know"]
                    else:
                        seen.add((target, key))
                        found = faults_of(target, kernel, functions[name],
                                          table[key])
                    for fault in found:
                        print(f"{target} {name}: {fault}")
                        faults += 1
    for target in targets:
        for key in table:
            if (target, key) not in seen:
                print(f"{target}: no kernel {key}")
                faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
