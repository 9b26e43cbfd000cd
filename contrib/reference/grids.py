#!/usr/bin/env python3
"""Writes kernels/block-grids.c: the codebooks of GGUF's types IQ1, IQ2 and IQ3.

The codebooks are a part of the file format: a file has indexes into them.  They are read from the
Python package `gguf`, which has to be installed.

    grids.py >kernels/block-grids.c
"""
from gguf import quants

# Name, source, count, bits of a number in an entry; and the numbers, in order of their codes.
GRIDS = [
    ("grid_iq2_xxs", quants.IQ2_XXS, 256, 2, (8, 25, 43)),
    ("grid_iq2_xs", quants.IQ2_XS, 512, 2, (8, 25, 43)),
    ("grid_iq2_s", quants.IQ2_S, 1024, 2, (8, 25, 43)),
    ("grid_iq1", quants.IQ1_S, 2048, 2, (-1, 0, 1)),
    ("grid_iq3_xxs", quants.IQ3_XXS, 256, 4, (4, 12, 20, 28, 36, 44, 52, 62)),
    ("grid_iq3_s", quants.IQ3_S, 512, 4, (1, 3, 5, 7, 9, 11, 13, 15)),
]

HEAD = """/* Made by contrib/reference/grids.py. These codebooks are a part of the GGUF format. */
#include "kernels/block-grids.h"

/* clang-format off */"""


def entries(source, bits, numbers):
    source.init_grid()
    grid = source.grid.reshape(source.grid_shape).astype(int)
    for row in grid.tolist():
        yield sum(numbers.index(n) << bits * i for i, n in enumerate(row))


print(HEAD)
for name, source, count, bits, numbers in GRIDS:
    words = ["0x%04x" % e for e in entries(source, bits, numbers)]
    assert len(words) == count
    print("\nconst uint16_t %s[%u] = {" % (name, count))
    for i in range(0, count, 12):
        print("        " + ", ".join(words[i : i + 12]) + ",")
    print("};")
print("\n/* clang-format on */")
