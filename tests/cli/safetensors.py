# SPDX-License-Identifier: Apache-2.0
"""Reads and writes safetensors files with nothing but the standard library."""

import json
import math
import struct

# Codes of the module struct; a bfloat16 is the upper half of a float.
CODES = {"F32": "f", "F64": "d", "I32": "i", "I64": "q", "BF16": "H", "F16": "e"}


class Tensor:
    """dtype and shape as files have them, and the bytes of the elements."""

    def __init__(self, dtype, shape, data):
        self.dtype = dtype
        self.shape = list(shape)
        self.data = bytes(data)

    @classmethod
    def of(cls, dtype, shape, values):
        """A tensor of another type than BF16."""
        assert len(values) == math.prod(shape)
        return cls(dtype, shape, struct.pack(f"<{len(values)}{CODES[dtype]}", *values))

    @property
    def values(self):
        """The elements as a flat list of numbers."""
        count = math.prod(self.shape)
        values = struct.unpack(f"<{count}{CODES[self.dtype]}", self.data)
        if self.dtype == "BF16":
            bits = struct.pack(f"<{count}I", *(value << 16 for value in values))
            values = struct.unpack(f"<{count}f", bits)
        return list(values)

    def row(self, index):
        """Values along the first dimension."""
        size = math.prod(self.shape[1:])
        return self.values[index * size : (index + 1) * size]


def read(path):
    """Name to Tensor."""
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    header.pop("__metadata__", None)
    return {
        name: Tensor(
            entry["dtype"],
            entry["shape"],
            content[begin + entry["data_offsets"][0] : begin + entry["data_offsets"][1]],
        )
        for name, entry in header.items()
    }


def write(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        header[name] = {
            "dtype": tensor.dtype,
            "shape": tensor.shape,
            "data_offsets": [len(data), len(data) + len(tensor.data)],
        }
        data += tensor.data
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path
