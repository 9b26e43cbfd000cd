#!/usr/bin/env python3
"""Writes tests/kernels/bytes-golden.h: heads, and what they are in pages of int8 and fp8 (kernels/page.h).

Scales and quotients are numpy's, of 32 bits; bytes are numpy's integers, and E4M3 of the Python
package `ml_dtypes`: both have to be installed.

    bytes.py >tests/kernels/bytes-golden.h
"""
import importlib.metadata

import ml_dtypes
import numpy

COUNT = 8  # numbers in a head

HEAD = """/*
 * Made by contrib/reference/bytes.py from numpy %s and ml_dtypes %s: bits of floats, and
 * bytes.
 */
#ifndef TESTS_KERNELS_BYTES_GOLDEN_H
#define TESTS_KERNELS_BYTES_GOLDEN_H

#include <stdint.h>

#include "kernels/page.h"

#define GOLDEN_NUMBERS %du

static const struct bytes_golden {
        enum kv_type type;
        uint32_t numbers[GOLDEN_NUMBERS], scale;
        uint8_t bytes[GOLDEN_NUMBERS];
} bytes_goldens[] = {
        /* clang-format off */"""

TAIL = """        /* clang-format on */
};

#endif"""


def heads():
    rng = numpy.random.default_rng(1)
    for size in (1, 1e-3, 1e4, 1e-30, 1e30):
        for _ in range(3):
            yield rng.standard_normal(COUNT) * size
        for times in (15, 1000, 1e5):  # one of them stands out
            yield rng.standard_normal(COUNT) * size * numpy.where(numpy.arange(COUNT) == rng.integers(COUNT), times, 1)
    for _ in range(4):  # at every size
        yield rng.standard_normal(COUNT) * 2.0 ** rng.integers(-20, 1, COUNT)
    # between two, with and without an exponent, and the smallest of all
    yield [448, 17, 19, 0.0146484375, -2.0 ** -10, 3 * 2.0 ** -10, 2.0 ** -11, 0]
    yield [-448, 432, 416, -1.0625, 1.1875, 2.0 ** -6, 15 * 2.0 ** -10, 1]
    yield [127, 0.5, 1.5, 2.5, -0.5, -1.5, 63.5, -127]
    yield [448 * 2.0 ** -126, 2.0 ** -126, 2.0 ** -127, -3 * 2.0 ** -128, 0, 0, 0, 0]
    yield [200 * 2.0 ** -126, 2.0 ** -126, -1e-45, 0, 0, 0, 0, 0]
    yield [0] * COUNT


def above_448(rng):
    """A head whose largest number is more than 448 of its rounded scale."""
    while True:
        x = rng.standard_normal(COUNT).astype(numpy.float32)
        most = numpy.abs(x).max()
        if most / (most / numpy.float32(448)) > 448:
            return x


def print_head(name, x):
    x = numpy.asarray(x, dtype=numpy.float32)
    scale = numpy.abs(x).max() / numpy.float32(448 if name == "KV_FP8" else 127)
    scale = scale if scale >= numpy.float32(2.0 ** -126) else numpy.float32(0)
    quotients = x / scale if scale > 0 else numpy.zeros_like(x)
    if name == "KV_FP8":
        bytes = quotients.astype(ml_dtypes.float8_e4m3fn).view(numpy.uint8)
    else:
        bytes = numpy.rint(quotients).astype(numpy.int8).view(numpy.uint8)
    print("        { %s, { %s }," % (name, ", ".join("0x%08x" % n for n in x.view(numpy.uint32))))
    print("          0x%08x, { %s } }," % (scale.view(numpy.uint32), ", ".join("0x%02x" % b for b in bytes)))


print(HEAD % (importlib.metadata.version("numpy"), importlib.metadata.version("ml_dtypes"), COUNT))
for name in ("KV_INT8", "KV_FP8"):
    for x in [*heads(), *(above_448(numpy.random.default_rng(seed)) for seed in range(3))]:
        print_head(name, x)
print(TAIL)
