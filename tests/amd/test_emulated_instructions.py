# SPDX-License-Identifier: Apache-2.0
"""Single instructions in the emulator, as tests/amd/emulator.py sets it up:
those of 16 bits, for registers whose number needs all eight bits, atomics, and
those that read accumulation registers. What is expected follows from AMD's
description of the instruction set: a plain 16-bit operand is the low half of a
register, a sub-dword one the half that it selects; an atomic yields what was in
memory where its bit says so; a[n] is another register than v[n].
Exit code 77 means skipped.

usage: test_emulated_instructions.py FOLDER_OF_DEVICE_OBJECTS TARGET
"""

import ctypes
import struct
import sys
import tempfile

import code_objects
import emulator

LANES = 64
LOW, HIGH, TWO = 1.5, 3.0, 2.0
LDS_BYTES = LANES * 16

PROGRAM = """
  s_load_dwordx2 s[8:9], s[0:1], 0x0
  v_mov_b32 v3, v0
  v_mov_b32 v{r}, {operand}
  v_mov_b32 v{other}, {other_operand}
  v_mov_b32 v4, {two}
  v_mov_b32 v5, 2.0
  v_mov_b32 v6, 1
  v_mov_b32 v7, 0
  s_waitcnt lgkmcnt(0)
  {code}
  v_lshlrev_b32 v3, 2, v3
  global_store_dword v3, v1, s[8:9]
  s_endpgm
"""


def half(value):
    return struct.unpack("<H", struct.pack("<e", value))[0]


def single(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


# Puts the words 1 to 4 into a8 to a11, and others into v8 to v11.
FILL = "".join(f"v_accvgpr_write_b32 a{8 + i}, {1 + i}\n"
               f"v_mov_b32 v{8 + i}, {11 + i}\n" for i in range(4))
# Code that writes a8 to a11 to LDS, one behind the other at the address v2.
WRITES = (
    "".join(f"ds_write_b32 v2, a{8 + i} offset:{4 * i}\n" for i in range(4)),
    "ds_write_b64 v2, a[8:9]\n ds_write_b64 v2, a[10:11] offset:8\n",
    "ds_write_b96 v2, a[8:10]\n ds_write_b32 v2, a11 offset:12\n",
    "ds_write_b128 v2, a[8:11]\n",
    "ds_write2_b32 v2, a8, a9 offset1:1\n"
    "ds_write2_b32 v2, a10, a11 offset0:2 offset1:3\n",
    "ds_write2_b64 v2, a[8:9], a[10:11] offset1:1\n",
)
# The lane's four words in LDS as the four bytes of one.
GATHER = """
  ds_read_b128 v[12:15], v2
  s_waitcnt lgkmcnt(0)
  v_lshl_or_b32 v1, v13, 8, v12
  v_lshl_or_b32 v1, v14, 16, v1
  v_lshl_or_b32 v1, v15, 24, v1
"""

# Code with a result in v1: of v{r}, which holds LOW and HIGH, and v4, TWO in 16
# bits, or v5, TWO in 32 bits.
INSTRUCTIONS = (
    ("v_cvt_f32_f16_e32 v1, v{r}", single(LOW)),
    ("v_cvt_f32_f16_e64 v1, v{r}", single(LOW)),
    ("v_cvt_f32_f16_sdwa v1, v{r} src0_sel:WORD_0", single(LOW)),
    ("v_cvt_f32_f16_sdwa v1, v{r} src0_sel:WORD_1", single(HIGH)),
    ("v_add_f16_e32 v1, v4, v{r}", half(TWO + LOW)),
    ("v_mul_f16_sdwa v1, v4, v{r} src0_sel:DWORD src1_sel:WORD_1",
     half(TWO * HIGH)),
    ("v_cmp_lt_f16_e32 vcc, v4, v{r}\n v_cndmask_b32_e32 v1, v7, v6, vcc", 0),
    ("v_cmp_lt_f16_e32 vcc, v{r}, v4\n v_cndmask_b32_e32 v1, v7, v6, vcc", 1),
    ("v_or_b32_sdwa v1, v7, v{r} src0_sel:DWORD src1_sel:WORD_1", half(HIGH)),
    ("v_cvt_f16_f32_e32 v{r}, v5\n v_mov_b32 v1, v{r}", half(TWO)),
    ("v_cvt_f16_f32_sdwa v{r}, v5 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE "
     "src0_sel:DWORD\n v_mov_b32 v1, v{r}", half(TWO) << 16 | half(LOW)),
    ("v_lshlrev_b32 v2, 2, v3" +
     2 * "\n global_atomic_add v1, v2, v6, s[8:9] {yields}" +
     "\n s_waitcnt vmcnt(0)", 1),
    # Sums of four products and, in 16 bits, of eight that are not zero.
    ("v_accvgpr_write_b32 a{r}, v5\n v_mfma_f32_16x16x4f32 v[8:11], a{r}, v5, 0"
     "\n v_mov_b32 v1, v11", single(4 * TWO * TWO)),
    ("v_accvgpr_write_b32 a{r}, v5\n v_mfma_f32_16x16x4f32 v[8:11], v5, a{r}, 0"
     "\n v_mov_b32 v1, v11", single(4 * TWO * TWO)),
    ("v_accvgpr_write_b32 a8, v4\n v_accvgpr_write_b32 a9, v4"
     "\n v_mfma_f32_16x16x16f16 v[12:15], a[8:9], a[8:9], 0"
     "\n v_mov_b32 v1, v15", single(8 * TWO * TWO)),
    ("v_accvgpr_write_b32 a{r}, 1\n v_lshlrev_b32 v2, 2, v3"
     "\n global_atomic_add v2, a{r}, s[8:9]"
     "\n global_atomic_add v1, v2, v7, s[8:9] {yields}"
     "\n s_waitcnt vmcnt(0)", 1),
) + tuple((FILL + "v_lshlrev_b32 v2, 4, v3\n" + code + GATHER, 0x04030201)
          for code in WRITES)


def assemble(tools, target, register, code, folder):
    other = register - 128 if register >= 128 else register + 1
    yields = "glc" if target == "gfx90a" else "sc0"
    text = PROGRAM.format(
        r=register, other=other, code=code.format(r=register, yields=yields),
        operand=half(HIGH) << 16 | half(LOW), two=half(TWO),
        other_operand=half(7.0) << 16 | half(5.0))
    with open(f"{folder}/program.s", "w") as file:
        file.write(text)
    code_objects.run(tools.clang, "--target=amdgcn-amd-amdhsa",
                     f"-mcpu={target}", "-c", f"{folder}/program.s", "-o",
                     f"{folder}/program.o")
    code_objects.run(tools.objcopy, "-O", "binary", "-j", ".text",
                     f"{folder}/program.o", f"{folder}/program.bin")
    with open(f"{folder}/program.bin", "rb") as file:
        return file.read()


def result_of(run_asm, program):
    """What one wave that starts at |program| stores: one word, in all lanes."""
    out = (ctypes.c_uint32 * LANES)()
    arguments = (ctypes.c_uint64 * 1)(ctypes.addressof(out))
    # The emulator reads ahead of the last instruction.
    memory = ctypes.create_string_buffer(program + bytes(64))
    user_registers = 2 << 1
    lds = LDS_BYTES // emulator.LDS_GRANULE << emulator.LDS_SHIFT
    resources = user_registers | lds
    error = run_asm(ctypes.addressof(memory), len(memory), 1, 1, 1, LANES, 1, 1,
                    ctypes.addressof(arguments), resources, 0, "cdna")
    assert error == 0 and len(set(out)) == 1
    return out[0]


def main():
    if not emulator.available():
        print("STEPGRAPH_CDNA_EMULATOR is not set: skipped")
        return 77
    tools = code_objects.Tools.from_environment()
    run_asm = emulator.load_emulator()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for register in (100, 130, 255):
            for code, expected in INSTRUCTIONS:
                found = result_of(run_asm, assemble(
                    tools, sys.argv[2], register, code, folder))
                if found != expected:
                    print(f"{code} for {register}: {found:#x} instead of "
                          f"{expected:#x}")
                    failed += 1
    print(f"{3 * len(INSTRUCTIONS) - failed} right, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
