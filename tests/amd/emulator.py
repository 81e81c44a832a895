# SPDX-License-Identifier: Apache-2.0
"""Launches kernels of a gfx90a, gfx942 or gfx950 code object in tinygrad's
emulator.

The emulator interprets CDNA instructions and works on this process's memory.
STEPGRAPH_CDNA_EMULATOR names the root of a tinygrad tree.
"""

import ctypes
import mmap
import os
import struct
import sys
import tempfile

import code_objects

PAGE = 4096
NOP = 0xbf800000
NORESERVE = 0x4000  # Linux: memory is taken when it is written
LDS_GRANULE = 512
LDS_SHIFT, LDS_MASK = 15, 0x1ff


def available():
    root = os.environ.get("STEPGRAPH_CDNA_EMULATOR")
    return bool(root) and os.path.exists(
        os.path.join(root, "test/mockgpu/amd/emu.py"))


def at(array):
    """The address of a numpy array, as params have it."""
    return array.ctypes.data


def load_emulator():
    # Its own cache of compiled instructions belongs to nobody else.
    os.environ.setdefault("CACHELEVEL", "0")
    sys.path.insert(0, os.environ["STEPGRAPH_CDNA_EMULATOR"])
    from test.mockgpu.amd import emu
    reserve_lds(emu)
    use_whole_registers(emu)
    refuse_modifiers(emu)
    return_from_atomics(emu)
    read_accumulators(emu)
    return emu.run_asm


def reserve_lds(emu):
    """Puts LDS at the start of 4 GiB that can be read: the emulator reads it
    for lanes that are switched off too, at whatever address they hold."""
    reserve = mmap.mmap(-1, (1 << 32) + PAGE,
                        mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(reserve))
    buffer_type, specification = emu.Buffer, emu.BufferSpec

    def make(device, size, dtype, options=None):
        caller = sys._getframe(1).f_code.co_name
        if options is None and caller == "run_asm" and dtype.itemsize == 4:
            options = specification(external_ptr=address)
        return buffer_type(device, size, dtype, options=options)

    make.reserve = reserve  # it lives as long as the function
    emu.Buffer = make


def use_whole_registers(emu):
    """Makes registers 128 to 255 operands of 16-bit instructions. The emulator
    takes such a number for the upper half of the register 128 below, which is
    how RDNA3 encodes halves; CDNA's encoding has no halves."""
    constant = emu._c
    callers = "_load_vsrc0", "_compile_vop12", "_compile_vopc", "get_cmp_bit"

    def make(value, *arguments):
        # What it compares numbers with, alone and behind 256 other operands.
        if value in (128, 384) and sys._getframe(1).f_code.co_name in callers:
            value = 1 << 16
        return constant(value, *arguments)

    emu._c = make


def refuse_modifiers(emu):
    """Stops at sub-dword instructions with modifiers, which the emulator
    ignores: negated, absolute or scaled operands, results that are clamped or
    whose sign is extended."""
    compile_sdwa = emu._compile_sdwa

    def checked(instruction, context):
        for name in ("src0_neg", "src0_abs", "src1_neg", "src1_abs", "omod",
                     "clmp"):
            assert not getattr(instruction, name, 0), f"{name} is ignored"
        assert getattr(instruction, "dst_unused", 0) != 1, "sign is ignored"
        return compile_sdwa(instruction, context)

    for kind, handler in emu._INST_HANDLERS.items():
        if handler is compile_sdwa:
            emu._INST_HANDLERS[kind] = checked


def return_from_atomics(emu):
    """Makes atomics return what was in memory where they have to: the emulator
    looks for the bit under the name that RDNA has for it."""
    attribute = emu._iattr

    def read(instruction, name, *default):
        return attribute(instruction, "sc0" if name == "glc" else name,
                         *default)

    emu._iattr = read


def read_accumulators(emu):
    """Reads accumulation registers where the acc bits of an instruction say so:
    one bit each for the factors of a matrix product, one for what is written to
    LDS or handed to an atomic. The emulator reads the vector registers of the
    same numbers. It knows accumulators as results, and as data of stores."""
    operands = {emu._compile_mfma: (("src0",), ("src1",)),
                emu._compile_mem_op: (("data0", "data1", "data"),)}

    class Context(emu._Ctx):
        accumulators = ()  # operands' numbers, as expressions of the emulator

        def rvgpr_dyn(self, number, *arguments):
            parts = number.toposort()
            if any(operand in parts for operand in self.accumulators):
                return self.raccvgpr_dyn(number, *arguments)
            return super().rvgpr_dyn(number, *arguments)

    def aware(compile_one):
        def compile_with_bits(instruction, context):
            bits, kind = getattr(instruction, "acc", 0) or 0, type(instruction)
            context.accumulators = [
                context.inst_field(getattr(kind, name))
                for bit, names in enumerate(operands[compile_one])
                for name in names if bits >> bit & 1 and hasattr(kind, name)]
            return compile_one(instruction, context)

        return compile_with_bits

    for kind, handler in emu._INST_HANDLERS.items():
        if handler in operands:
            emu._INST_HANDLERS[kind] = aware(handler)
    emu._compile_mfma = aware(emu._compile_mfma)
    emu._Ctx = Context


class CodeObject:
    """An ELF file in memory, at addresses as far apart as it asks for."""

    def __init__(self, tools, path):
        with open(path, "rb") as file:
            elf = file.read()
        offset, = struct.unpack_from("<Q", elf, 32)
        size, count = struct.unpack_from("<HH", elf, 54)
        segments = [struct.unpack_from("<IIQQQQQQ", elf, offset + i * size)
                    for i in range(count)]
        loads = [s for s in segments if s[0] == 1]
        end = max(address + memory for _, _, _, address, _, _, memory, _ in loads)
        self.memory = mmap.mmap(-1, (end + PAGE - 1) // PAGE * PAGE)
        for _, _, start, address, _, in_file, _, _ in loads:
            self.memory[address:address + in_file] = elf[start:start + in_file]
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.size = len(self.memory)
        self.symbols = dict(self._symbols(elf))
        self.kernels = code_objects.kernels_of(tools, path)
        # The emulator has no caches, and does not know what controls them.
        for address in code_objects.cache_controls_of(tools, path):
            struct.pack_into("<II", self.memory, address, NOP, NOP)

    @staticmethod
    def _symbols(elf):
        offset, = struct.unpack_from("<Q", elf, 40)
        size, count = struct.unpack_from("<HH", elf, 58)
        sections = [struct.unpack_from("<IIQQQQIIQQ", elf, offset + i * size)
                    for i in range(count)]
        for section in sections:
            if section[1] != 11:  # SHT_DYNSYM
                continue
            names = sections[section[6]][4]
            for at in range(section[4], section[4] + section[5], 24):
                name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", elf, at)
                text = elf[names + name:elf.index(b"\0", names + name)]
                yield text.decode(), value

    def _user_registers(self, descriptor, arguments):
        """The first scalar registers, as far as the kernel needs them: the
        address of its arguments, on gfx90a behind that of scratch memory."""
        properties, = struct.unpack_from("<H", self.memory, descriptor + 56)
        assert properties & 0x1e == 8, "other registers than the arguments'"
        scratch = [0] * 4 if properties & 1 else []
        return scratch + [arguments & 0xffffffff, arguments >> 32]

    def launch(self, run_asm, name, grid, block, shared_bytes, params):
        """Runs |grid| blocks of |block| threads with the struct |params|."""
        kernel = self.kernels[name]
        assert len(params) == kernel["params_size"], "params.h has changed"
        descriptor = self.symbols[name + ".kd"]
        fixed_lds, scratch = struct.unpack_from("<II", self.memory, descriptor)
        entry, = struct.unpack_from("<q", self.memory, descriptor + 16)
        rsrc2, = struct.unpack_from("<I", self.memory, descriptor + 52)
        granules = -(-(fixed_lds + shared_bytes) // LDS_GRANULE)
        assert granules <= LDS_MASK
        rsrc2 = rsrc2 & ~(LDS_MASK << LDS_SHIFT) | granules << LDS_SHIFT
        arguments = bytearray(kernel["kernarg_segment_size"] + 64)
        arguments[:len(params)] = params
        for kind, value, form in (("hidden_block_count_x", grid, "<I"),
                                  ("hidden_group_size_x", block, "<H")):
            if kind in kernel:
                struct.pack_into(form, arguments, kernel[kind], value)
        buffer = (ctypes.c_char * len(arguments)).from_buffer(arguments)
        address = ctypes.addressof(buffer)
        error = run_asm(self.base + descriptor + entry, self.size, grid, 1, 1,
                        block, 1, 1, address, rsrc2, scratch, "cdna",
                        self._user_registers(descriptor, address))
        assert error == 0, f"{name}: the emulator returned {error}"


class Kernels:
    """Those of the device objects |names| in the folder |objects|."""

    def __init__(self, objects, target, names, folder):
        tools = code_objects.Tools.from_environment()
        self.run_asm = load_emulator()
        self.loaded = {}
        for name in names:
            path = code_objects.extract(
                tools, f"{objects}/kernels_{name}.hip.o", target, folder)
            loaded = CodeObject(tools, path)
            self.loaded.update((kernel, loaded) for kernel in loaded.kernels)

    def launch(self, start, grid, block, params, shared_bytes=0):
        """Launches the one kernel whose name starts with |start|."""
        name, = [name for name in self.loaded if name.startswith(start)]
        self.loaded[name].launch(self.run_asm, name, grid, block, shared_bytes,
                                 params)


def run_tests(names, tests):
    """Exit code of a program with the arguments FOLDER_OF_DEVICE_OBJECTS and
    TARGET that calls |tests| with the kernels of the device objects |names|."""
    if not available():
        print("STEPGRAPH_CDNA_EMULATOR is not set: skipped")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        kernels = Kernels(sys.argv[1], sys.argv[2], names, folder)
        for test in tests:
            test(kernels)
            print(f"{test.__name__} ok", flush=True)
    return 0
