"""Writes a GGUF file, version 3: keys and values, then the tensors' places, then their bytes."""
import os
import struct

TENSOR_TYPES = {"F32": 0, "Q4_0": 2, "Q8_0": 8}
ALIGNMENT = 32
STRING, ARRAY = 8, 9
SCALARS = {"u32": (4, "<I"), "i32": (5, "<i"), "f32": (6, "<f"), "bool": (7, "<?")}


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, what):
    """A value with its type. kind: a scalar's name, "string", or either in a list."""
    if isinstance(kind, list):
        number = STRING if kind[0] == "string" else SCALARS[kind[0]][0]
        head = struct.pack("<IIQ", ARRAY, number, len(what))
        return head + b"".join(value(kind[0], one)[4:] for one in what)
    if kind == "string":
        return struct.pack("<I", STRING) + string(what)
    number, form = SCALARS[kind]
    return struct.pack("<I", number) + struct.pack(form, what)


def padded(data):
    return data + b"\0" * (-len(data) % ALIGNMENT)


def write(path, keys, tensors):
    """keys: (name, kind, value); tensors: (name, shape with rows first, type, bytes)."""
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(keys))
    head += b"".join(string(name) + value(kind, what) for name, kind, what in keys)
    at = 0
    for name, shape, kind, data in tensors:
        head += string(name) + struct.pack("<I", len(shape))
        head += b"".join(struct.pack("<Q", n) for n in reversed(shape))
        head += struct.pack("<IQ", TENSOR_TYPES[kind], at)
        at += len(padded(data))
    with open(path + ".new", "wb") as file:
        file.write(padded(head))
        for _, _, _, data in tensors:
            file.write(padded(data))
    os.replace(path + ".new", path)
