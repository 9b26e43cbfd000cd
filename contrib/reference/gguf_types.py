#!/usr/bin/env python3
"""Small models with weights of GGUF's rarer types, and the logits of the numbers that they mean.

    gguf_types.py tests/golden/types

A model has random blocks of several types.  The Python package `gguf`, which has to be installed,
says what they mean.  forward.py computes with these numbers in doubles.  NAME.txt is as
families.py writes it.  Weights of NVFP4 have a scale in another tensor, X.scale, or none.
"""
import os
import random
import sys
import tempfile

import gguf
import numpy

from forward import Model, case

WIDTH, HEADS, KV_HEADS, HEAD_DIM, FFN, VOCAB = 256, 4, 1, 64, 256, 72
PROMPTS = [[7], [65, 3, 3, 40, 12, 71, 0, 5, 9]]

# Where a block has its scale.
SCALES = {"IQ4_XS": 0, "IQ3_XXS": 0, "IQ3_S": 0, "IQ2_XXS": 0, "IQ2_XS": 0, "IQ2_S": 0, "IQ1_S": 0,
          "IQ1_M": None, "TQ1_0": 52, "TQ2_0": 64, "NVFP4": None}

# Types of the embedding, of each layer's q, k, v, o, gate, up and down, and of the head.
MODELS = {
    "codebooks": ["IQ4_XS", "IQ3_XXS", "IQ3_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ1_S", "IQ1_M", "IQ4_XS"],
    "ternary": ["TQ2_0", "TQ1_0", "IQ1_S", "IQ1_M", "TQ2_0", "TQ1_0", "IQ2_XXS", "IQ4_XS", "IQ3_S"],
    "nvfp4": ["NVFP4", "NVFP4", "NVFP4", "IQ4_XS", "NVFP4", "NVFP4", "NVFP4", "NVFP4", "NVFP4"],
}
PARTS = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]
ROWS = [HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM, WIDTH, FFN, FFN, WIDTH]


def put_scale(name, blocks, scale):
    half = numpy.array([scale], dtype=numpy.float16).view(numpy.uint16)[0]
    if name == "IQ1_M":
        for i in range(4):
            blocks[:, 49 + 2 * i] = blocks[:, 49 + 2 * i] & 15 | (half >> 4 * i & 15) << 4
    elif name != "NVFP4":
        blocks[:, SCALES[name]] = half & 255
        blocks[:, SCALES[name] + 1] = half >> 8


def weights(name, rows, columns, size, random_bytes):
    """Rows of blocks, and the scale that belongs to them if it is not 1."""
    kind = gguf.GGMLQuantizationType[name]
    numbers, stored = gguf.GGML_QUANT_SIZES[kind]
    blocks = numpy.frombuffer(random_bytes(rows * columns // numbers * stored), dtype=numpy.uint8)
    blocks = blocks.reshape(-1, stored).copy()
    if name == "NVFP4":
        blocks[:, :4] = blocks[:, :4] % 24 + 0x30
    put_scale(name, blocks, 1)
    means = gguf.dequantize(blocks.reshape(rows, -1), kind)
    scale = numpy.float32(size / numpy.sqrt(numpy.mean(means.astype(numpy.float64) ** 2)))
    put_scale(name, blocks, scale)
    return blocks.reshape(rows, -1), scale if name == "NVFP4" else None


def tensors(types, seed):
    dice = random.Random(seed)
    sizes = [("token_embd", VOCAB, 1.0)]
    sizes += [("blk.0." + part, rows, WIDTH**-0.5) for part, rows in zip(PARTS, ROWS)]
    sizes += [("output", VOCAB, 4 * WIDTH**-0.5)]
    for (name, rows, size), kind in zip(sizes, types):
        yield name, kind, *weights(kind, rows, WIDTH, size, dice.randbytes)


def write(path, content, as_floats):
    w = gguf.GGUFWriter(path, "llama")
    w.add_context_length(64)
    w.add_embedding_length(WIDTH)
    w.add_block_count(1)
    w.add_feed_forward_length(FFN)
    w.add_head_count(HEADS)
    w.add_head_count_kv(KV_HEADS)
    w.add_key_length(HEAD_DIM)
    w.add_value_length(HEAD_DIM)
    w.add_rope_dimension_count(HEAD_DIM)
    w.add_rope_freq_base(10000.0)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_vocab_size(VOCAB)
    for name in ["blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"]:
        w.add_tensor(name + ".weight", numpy.ones(WIDTH, dtype=numpy.float32))
    for name, kind, blocks, scale in content:
        kind = gguf.GGMLQuantizationType[kind]
        if as_floats:
            floats = gguf.dequantize(blocks, kind)
            w.add_tensor(name + ".weight", floats if scale is None else floats * scale)
            continue
        w.add_tensor(name + ".weight", blocks, raw_dtype=kind)
        if scale is not None:
            w.add_tensor(name + ".scale", numpy.array([scale], dtype=numpy.float32))
            w.add_tensor(name + ".input_scale", numpy.array([2.0], dtype=numpy.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def make(folder, name, seed):
    content = list(tensors(MODELS[name], seed))
    if name == "nvfp4":  # one weight without a scale: it is larger, and a norm follows it
        content[0] = content[0][:3] + (None,)
    write(os.path.join(folder, name + ".gguf"), content, False)
    with tempfile.TemporaryDirectory() as floats:
        path = os.path.join(floats, "floats.gguf")
        write(path, content, True)
        with open(path, "rb") as file:
            model = Model(file.read())
    with open(os.path.join(folder, name + ".txt"), "w", encoding="ascii") as out:
        out.write(f"files - {name}.gguf\n")
        out.write("".join(case(model, prompt, 12) for prompt in PROMPTS))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    for seed, model_name in enumerate(MODELS):
        make(sys.argv[1], model_name, seed)
