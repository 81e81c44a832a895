# SPDX-License-Identifier: Apache-2.0
"""How close results of one KDA layer have to be."""

import math

# Largest root mean square error, as a part of the root mean square, of o and of
# the state. bf16: kernels may round normalised q and k and what they multiply
# to bf16, by 2^-9 each. fp16 has three bits more. In fp32 nothing is rounded
# but sums of some hundred fp32 products.
TOLERANCES = {"BF16": (5.5e-3, 1.1e-3), "F16": (7e-4, 1.4e-4), "F32": (1e-5, 1e-5)}


def error(expected, found):
    """Not a number where anything is none."""
    squares = sum(x * x for x in expected)
    difference = sum((x - y) ** 2 for x, y in zip(expected, found))
    return math.sqrt(difference / squares) if squares else math.sqrt(difference)
