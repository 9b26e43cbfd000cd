#!/usr/bin/env python3
"""Writes tests/kernels/blocks-golden.h: a block of each format, and the numbers that it means.

The numbers are those of the Python package `gguf` (made by the people of llama.cpp), which has to
be installed, with numpy; those of F8_E4M3, which GGUF has not, are those of `ml_dtypes` (made by the people
of JAX), times the scale in numpy's float32.  The blocks are any bytes, but for their scales, which are
small; F8_E4M3's first two have every code once.

Of each format of GGUF there is also a sum over many random blocks, so that all indexes into codebooks
occur.  Their scales are halves below 2, of which some are subnormal.  The test makes the same blocks.

NVFP4's blocks begin with a float here, which the file has in another tensor.

    blocks.py >tests/kernels/blocks-golden.h
"""
import importlib.metadata
import random

import gguf
import ml_dtypes
import numpy

# ... and where their scales are.
FORMATS = [
    ("Q4_0", [0]),
    ("Q8_0", [0]),
    ("Q4_K", [0, 2]),
    ("Q5_K", [0, 2]),
    ("Q6_K", [208]),
    ("Q4_1", [0, 2]),
    ("Q5_0", [0]),
    ("Q5_1", [0, 2]),
    ("Q2_K", [80, 82]),
    ("Q3_K", [108]),
    ("IQ4_NL", [0]),
    ("MXFP4", []),
    ("MXFP4", []),
    ("MXFP4", []),
    ("IQ4_XS", [0]),
    ("IQ3_XXS", [0]),
    ("IQ3_S", [0]),
    ("IQ2_XXS", [0]),
    ("IQ2_XS", [0]),
    ("IQ2_S", [0]),
    ("IQ1_S", [0]),
    ("IQ1_M", []),
    ("TQ1_0", [52]),
    ("TQ2_0", [64]),
    ("NVFP4", []),
]
E4M3_SCALES = [0.0123, -4.56, 7.8e-40]  # the last one makes numbers without an exponent of their own
EXPONENTS = [121, 0, 1]  # of MXFP4's blocks; the last two make numbers without an exponent of their own

HEAD = """/* Made by contrib/reference/blocks.py from gguf %s and ml_dtypes %s:
 * bits of floats, for what the bytes mean. */
#ifndef TESTS_KERNELS_BLOCKS_GOLDEN_H
#define TESTS_KERNELS_BLOCKS_GOLDEN_H

#include "kernels/blocks.h"

static const struct block_golden {
        enum row_type type;
        uint8_t bytes[210];
        uint32_t floats[BLOCK_NUMBERS_MAX];
} block_goldens[] = {
        /* clang-format off */"""

MIDDLE = """        /* clang-format on */
};

/*
 * Blocks of random bytes: of splitmix64, from the seed 1 on, each number's lowest byte first.  In
 * the upper bytes of scales, which are at `upper`, bit 6 is cleared.  The sum of all numbers' bits
 * b is s = (s ^ b) * 0x100000001b3, from 0 on, in 64 bits.
 */
#define BLOCK_SUM_BLOCKS %uu
static const struct block_sum {
        enum row_type type;
        uint8_t upper[2]; /* 255: none */
        uint64_t sum;
} block_sums[] = {"""

TAIL = """};

#endif"""

BLOCKS = 1024


def lines(values, format, many):
    words = [format % v for v in values]
    rows = [", ".join(words[i : i + many]) for i in range(0, len(words), many)]
    return ",\n              ".join(rows)


def golden(name, block, floats):
    bits = floats.astype(numpy.float32).view(numpy.uint32).ravel().tolist()
    print("        { ROW_%s," % name)
    print("          .bytes = { " + lines(block, "0x%02x", 12).replace("\n  ", "\n            ") + " },")
    print("          .floats = { " + lines(bits, "0x%08x", 6).replace("\n  ", "\n            ") + " } },")


def random_words():
    state = 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        yield (z ^ z >> 31).to_bytes(8, "little")


def block_sum(name, scales):
    kind = gguf.GGMLQuantizationType[name]
    _, size = gguf.GGML_QUANT_SIZES[kind]
    words = random_words()
    blocks = bytearray(b"".join(next(words) for _ in range((size * BLOCKS + 7) // 8))[: size * BLOCKS])
    upper = [55] if name == "IQ1_M" else [at + 1 for at in scales]
    for b in range(BLOCKS):
        for at in upper:
            blocks[b * size + at] &= 0xBF
    floats = gguf.dequantize(numpy.frombuffer(bytes(blocks), dtype=numpy.uint8), kind)
    s = 0
    for bits in floats.astype(numpy.float32).view(numpy.uint32).ravel().tolist():
        s = (s ^ bits) * 0x100000001B3 % 2**64
    upper = ", ".join(str(u) for u in (upper + [255, 255])[:2])
    print("        { ROW_%s, { %s }, UINT64_C(0x%016x) }," % (name, upper, s))


random.seed(1)
exponents = iter(EXPONENTS)
print(HEAD % (importlib.metadata.version("gguf"), importlib.metadata.version("ml_dtypes")))
for name, scales in FORMATS:
    kind = gguf.GGMLQuantizationType[name]
    _, size = gguf.GGML_QUANT_SIZES[kind]
    block = bytearray(random.randbytes(size))
    for at in scales:
        block[at : at + 2] = numpy.float16(random.uniform(-0.05, 0.05)).tobytes()
    if name == "MXFP4":
        block[0] = next(exponents)
    if name == "IQ1_M":
        for i, at in enumerate(range(49, 57, 2)):  # the half 0x2345
            block[at] = (block[at] & 15) | (5 - i) << 4
    floats = gguf.dequantize(numpy.frombuffer(bytes(block), dtype=numpy.uint8), kind)
    if name == "NVFP4":
        block = numpy.float32(1).tobytes() + block
    golden(name, block, floats)
codes = list(range(256))
for i, scale in enumerate(E4M3_SCALES):
    if i % 2 == 0:
        random.shuffle(codes)
    half = bytes(codes[i % 2 * 128 :][:128])
    numbers = numpy.frombuffer(half, dtype=ml_dtypes.float8_e4m3fn).astype(numpy.float32)
    scale = numpy.float32(scale)
    golden("F8_E4M3", scale.tobytes() + half, numbers * scale)
print(MIDDLE % BLOCKS)
for name, scales in dict(FORMATS).items():
    block_sum(name, scales)
print(TAIL)
