#!/usr/bin/env python3
"""Small models with weights of eight bits, in every form that is served, and what transformers makes of them.

    fp8.py tests/golden/fp8

A folder is a model as Hugging Face has it.  All have the same first shard, by a symbolic link: codes in
F8_E4M3, and what is not quantized, in BF16.  The second one has the scales, of other shapes and types in
each, and what such a form has besides.  Weights are put together by compressed-tensors' dequantize(),
in float32, and transformers computes with them as it does for families.py; NAME.txt is in the same format.

The head's rows are no whole blocks of 128, K and V have fewer rows than a block, and attention's output has two
blocks of columns.  transformers' own Fp8Dequantize, which cannot take rows that are no whole blocks, must agree
about all the others.  Needs torch, transformers, safetensors, compressed-tensors and gguf, all of
them made anew or none; and never because a test fails: find out first who is wrong.
"""
import json
import math
import os
import shutil
import sys

import torch
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.lifecycle.forward import dequantize
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.integrations.finegrained_fp8 import Fp8Dequantize

from families import SMALL, case, fill, prompts

SIZES = {
    "vocab_size": 264,
    "hidden_size": 128,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0},
    "dtype": torch.bfloat16,
}
CODES = "model-00001-of-00002.safetensors"
SCALES = "model-00002-of-00002.safetensors"
USUAL = 60.0  # so large are codes

BLOCKS = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128],
          "modules_to_not_convert": ["model.embed_tokens"]}
TENSORS = {"quant_method": "fp8", "activation_scheme": "static", "ignored_layers": ["model.embed_tokens"],
           "kv_cache_scheme": "static"}
ROWS = {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0, "modules_to_not_convert": ["model.embed_tokens"]}
MODELOPT = {"quant_method": "modelopt", "quant_algo": "FP8", "producer": {"name": "modelopt", "version": "0.39.0"},
            "config_groups": {"group_0": {"input_activations": {"dynamic": False, "num_bits": 8, "type": "float"},
                                          "weights": {"dynamic": False, "num_bits": 8, "type": "float"},
                                          "targets": ["Linear"]}},
            "ignore": ["model.embed_tokens"], "kv_cache_scheme": {"dynamic": False, "num_bits": 8, "type": "float"}}


def compressed(weights, **more):
    weights = {"num_bits": 8, "type": "float", "symmetric": True, "dynamic": False, "group_size": None,
               "actorder": None, "block_structure": None, "observer": "minmax", "observer_kwargs": {}} | weights
    inputs = weights | {"strategy": "token", "dynamic": True, "block_structure": None, "observer": None}
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs, "output_activations": None}
    return {"quant_method": "compressed-tensors", "format": "float-quantized", "quantization_status": "compressed",
            "config_groups": {"group_0": group | more}, "ignore": [], "kv_cache_scheme": None,
            "global_compression_ratio": None, "sparsity_config": {}, "transform_config": {}, "version": "0.12.2"}


# name: model type, what config.json says, what a scale covers, its tensor's ending and type
FORMS = {
    "blocks": ("qwen3", BLOCKS, "block", "_scale_inv", torch.bfloat16),
    "tensors": ("llama", TENSORS, "tensor", "_scale", torch.float32),
    "modelopt": ("llama", MODELOPT, "tensor", "_scale", torch.float32),
    "rows": ("llama", ROWS, "channel", "_scale", torch.float32),
    "compressed-blocks": ("llama", compressed({"strategy": "block", "block_structure": [128, 128]},
                                              format="float-quantized"), "block", "_scale", torch.float32),
    "compressed-rows": ("qwen3", compressed({"strategy": "channel"}), "channel", "_scale", torch.bfloat16),
    "compressed-tensors": ("llama", compressed({"strategy": "tensor"}), "tensor", "_scale", torch.float16),
}


def config_of(kind):
    return AutoConfig.for_model(kind, **(SMALL | SIZES))


def is_coded(name):
    return "_proj." in name or "lm_head" in name


def codes():
    """What all forms have: the tensors of a llama, those of linear layers as codes."""
    model = AutoModelForCausalLM.from_config(config_of("llama")).to(torch.float32)
    fill(model, 8)
    tensors = {}
    for name, p in model.named_parameters():
        if is_coded(name):
            tensors[name] = (p.data * (USUAL * math.sqrt(p.shape[-1]) / 1.4)).to(torch.float8_e4m3fn)
        else:
            tensors[name] = p.data.to(torch.bfloat16)
    return tensors


def shape_of(covers, rows, columns, index):
    if covers == "tensor":
        return [] if index % 2 else [1]
    if covers == "channel":
        return [rows, 1]
    return [-(-rows // 128), -(-columns // 128)]


def scales(name, tensors):
    """The second shard: scales, a qwen3's own norms, and what is said of rows, K and V."""
    kind, _, covers, ending, number = FORMS[name]
    generator = torch.Generator().manual_seed(sorted(FORMS).index(name))
    out = {}
    for index, (key, codes_) in enumerate((k, t) for k, t in tensors.items() if is_coded(k)):
        rows, columns = codes_.shape
        shape = shape_of(covers, rows, columns, index)
        share = 0.5 + torch.rand(shape, generator=generator, dtype=torch.float64)
        out[key + ending] = (share * 1.4 / math.sqrt(columns) / USUAL).to(number)
        if covers == "tensor":
            out[key.replace(".weight", ".input_scale")] = torch.tensor(0.25)
    if kind == "qwen3":
        for which in "qk":
            noise = torch.randn(SIZES["head_dim"], generator=generator, dtype=torch.float64)
            out[f"model.layers.0.self_attn.{which}_norm.weight"] = (1 + 0.2 * noise).to(torch.bfloat16)
    if "kv_cache_scheme" in FORMS[name][1] and covers == "tensor":
        for which in "kv":
            projection = f"{which}_proj." if name == "modelopt" else ""
            out[f"model.layers.0.self_attn.{projection}{which}_scale"] = torch.tensor(0.125)
    return out


def whole(codes_, scale, covers):
    """Numbers of codes and scales."""
    args = QuantizationArgs(num_bits=8, type="float", symmetric=True, strategy=covers,
                            block_structure=[128, 128] if covers == "block" else None)
    numbers = dequantize(codes_, scale.to(torch.float32), args=args, dtype=torch.float32)
    if covers != "block" or codes_.shape[0] <= 128 or codes_.shape[0] % 128 == 0:
        again = Fp8Dequantize(None)._dequantize_one(codes_, scale, output_dtype=torch.float32)
        assert torch.equal(numbers, again)
    return numbers


def write(name, folder, first):
    kind, quantization, covers, ending, _ = FORMS[name]
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    os.symlink(f"../{CODES}", f"{folder}/{CODES}")
    second = scales(name, first)
    save_file(second, f"{folder}/{SCALES}", metadata={"format": "pt"})
    places = {key: CODES for key in first} | {key: SCALES for key in second}
    with open(f"{folder}/model.safetensors.index.json", "w", encoding="utf-8") as f:
        json.dump({"metadata": {}, "weight_map": dict(sorted(places.items()))}, f, indent=2)
        f.write("\n")
    config = config_of(kind)
    model = AutoModelForCausalLM.from_config(config).to(torch.float64).eval()
    config.architectures = [type(model).__name__]
    with open(f"{folder}/config.json", "w", encoding="utf-8") as f:
        json.dump(json.loads(config.to_json_string(use_diff=True)) | {"quantization_config": quantization}, f, indent=2)
        f.write("\n")
    numbers = {}
    for key, tensor in (first | second).items():
        if is_coded(key) and key.endswith(".weight"):
            numbers[key] = whole(tensor, second[key + ending], covers)
        elif key.endswith(".weight"):
            numbers[key] = tensor
    model.load_state_dict({key: tensor.to(torch.float64) for key, tensor in numbers.items()}, strict=True)
    model.config._attn_implementation = "eager"
    return model


def main(folder):
    os.makedirs(folder, exist_ok=True)
    first = codes()
    save_file(first, f"{folder}/{CODES}", metadata={"format": "pt"})
    for name in FORMS:
        model = write(name, f"{folder}/{name}", first)
        with open(f"{folder}/{name}.txt", "w", encoding="ascii") as f:
            f.write(f"files {name} -\n" + "".join(case(model, p) for p in prompts()))


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__)
