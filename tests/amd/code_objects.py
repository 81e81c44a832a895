# SPDX-License-Identifier: Apache-2.0
"""AMD code objects inside the build's device objects: what they hold."""

import os
import re
import subprocess


class Tools:
    """LLVM's binary tools, all of one version."""

    def __init__(self, clang, objcopy, bundler, readelf, objdump):
        self.clang = clang
        self.objcopy = objcopy
        self.bundler = bundler
        self.readelf = readelf
        self.objdump = objdump

    @staticmethod
    def from_environment():
        prefix = os.environ.get("STEPGRAPH_LLVM_BIN", "")
        suffix = os.environ.get("STEPGRAPH_LLVM_SUFFIX", "")
        name = lambda tool: os.path.join(prefix, tool + suffix)
        return Tools(name("clang"), name("llvm-objcopy"),
                     name("clang-offload-bundler"), name("llvm-readelf"),
                     name("llvm-objdump"))


def run(*command):
    return subprocess.run(command, check=True, capture_output=True,
                          text=True).stdout


def extract(tools, fat_object, target, folder):
    """Writes the code object of |target| to |folder|; returns its path."""
    name = os.path.basename(fat_object)
    bundle = os.path.join(folder, name + ".bundle")
    path = os.path.join(folder, f"{name}.{target}.co")
    run(tools.objcopy, "-O", "binary", "-j", ".hip_fatbin", fat_object, bundle)
    run(tools.bundler, "-type=o", "-unbundle",
        f"-targets=hipv4-amdgcn-amd-amdhsa--{target}", f"-input={bundle}",
        f"-output={path}")
    return path


def kernels_of(tools, path):
    """Metadata of the kernels by name: integers by key, hidden arguments by
    kind, and the bytes of the others as "params_size"."""
    kernels = {}
    fields = {}
    for line in run(tools.readelf, "--notes", path).splitlines():
        if re.match(r"  - \.", line):
            fields = {}
        match = re.match(r" +(?:- )?\.(\w+): +(\S+)$", line)
        if not match:
            continue
        key, value = match.groups()
        if key == "offset":
            fields["last_offset"] = int(value)
        elif key == "value_kind" and value.startswith("hidden_"):
            fields[value] = fields["last_offset"]
        elif key == "value_kind":
            fields["params_size"] = fields["last_offset"] + fields["size"]
        elif key == "name" and line.startswith("    .name"):
            kernels[value] = fields
        elif value.isdigit():
            fields[key] = int(value)
    return kernels


def disassembly_of(tools, path):
    """Instructions of each function of the code object, by name."""
    functions = {}
    lines = []
    for line in run(tools.objdump, "-d", path).splitlines():
        match = re.match(r"[0-9a-f]+ <(\w+)>:", line)
        if match:
            lines = functions.setdefault(match.group(1), [])
        else:
            lines.append(line)
    return functions


def cache_controls_of(tools, path):
    """Addresses of the instructions that write back or drop caches."""
    pattern = re.compile(
        r"\s+buffer_(?:wbl2|invl2|inv|wbinvl1_vol)\b.*// ([0-9A-F]+):")
    return [int(match.group(1), 16)
            for line in run(tools.objdump, "-d", path).splitlines()
            if (match := pattern.match(line))]
