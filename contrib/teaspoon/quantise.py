"""The two block formats that teaspoon is shipped in, as llama.cpp defines them.

A row is cut into blocks of 32 numbers. A block is a scale in float16 and a small integer for each
number: Q8_0 has a byte each, Q4_0 four bits each, of which 8 stands for zero.
"""
import numpy

BLOCK = 32


def blocks_of(rows):
    return numpy.ascontiguousarray(rows, dtype=numpy.float32).reshape(-1, BLOCK)


def inverse(scale):
    """One over each, in float32, as its makers do; zero of zero."""
    safe = numpy.where(scale == 0, numpy.float32(1), scale)
    return numpy.where(scale == 0, numpy.float32(0), numpy.float32(1) / safe)


def rounded(x):
    """Halves away from zero. (numpy's own rounds them to even.)"""
    whole = numpy.trunc(x)
    return whole + numpy.trunc(2 * (x - whole))


def with_scale(scale, integers):
    half = scale.astype("<f2").view(numpy.uint8).reshape(-1, 2)
    return numpy.concatenate([half, integers.view(numpy.uint8)], axis=1).tobytes()


def q8_0(rows):
    blocks = blocks_of(rows)
    scale = numpy.abs(blocks).max(axis=1, keepdims=True) / numpy.float32(127)
    return with_scale(scale, rounded(blocks * inverse(scale)).astype(numpy.int8))


def q4_0(rows):
    """The largest number keeps its sign and becomes -8: the other end, 7, is a little short."""
    blocks = blocks_of(rows)
    at = numpy.abs(blocks).argmax(axis=1)[:, None]
    scale = numpy.take_along_axis(blocks, at, axis=1) / numpy.float32(-8)
    small = numpy.trunc(blocks * inverse(scale) + numpy.float32(8.5)).clip(0, 15)
    small = small.astype(numpy.uint8)
    # The low halves of the bytes are the first 16 numbers, the high ones the last.
    return with_scale(scale, small[:, :16] | small[:, 16:] << 4)


def f32(rows):
    return numpy.ascontiguousarray(rows, dtype="<f4").tobytes()


def meant(data, kind, shape):
    """The numbers that stored bytes mean."""
    if kind == "F32":
        return numpy.frombuffer(data, dtype="<f4").reshape(shape)
    raw = numpy.frombuffer(data, dtype=numpy.uint8).reshape(-1, SIZES[kind])
    scale = raw[:, :2].copy().view("<f2").astype(numpy.float32)
    if kind == "Q8_0":
        small = raw[:, 2:].view(numpy.int8)
    else:
        small = numpy.concatenate([raw[:, 2:] & 15, raw[:, 2:] >> 4], axis=1).astype(numpy.int8) - 8
    return (scale * small.astype(numpy.float32)).reshape(shape)


SIZES = {"Q8_0": 34, "Q4_0": 18}
KINDS = {"F32": f32, "Q8_0": q8_0, "Q4_0": q4_0}
