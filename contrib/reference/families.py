#!/usr/bin/env python3
"""Small models of every family that is served, with what transformers makes of them.

    families.py tests/golden/families

A folder is a model as Hugging Face has it (config.json and safetensors), NAME.gguf is the same model
as llama.cpp's converter would write it, and NAME.txt says which logits it gives: transformers'
own, in float64 but for norms, softmax and the angles of rope, which it always computes in float32.
Prompts and tokens are in the format of forward.py; the first line names the files.

The numbers are random, and large enough that positions matter.  Models that differ in their
config.json alone share their tensors by a symbolic link.  Needs torch, transformers, safetensors
and gguf.  A model is made anew with other numbers whenever torch's generator changes, so make all
of them again or none; and never because a test fails: find out first who is wrong.
"""
import json
import math
import os
import shutil
import sys

import gguf
import numpy
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from forward import wrapped

SMALL = {
    "vocab_size": 40,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": None,
    "tie_word_embeddings": False,
}

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32,
        "beta_fast": 4.0, "beta_slow": 0.25}

# name: model type, type of the numbers, what differs from SMALL, rope, whose tensors
MODELS = {
    "llama-mha": ("llama", "f16", {"num_key_value_heads": 4}, {"rope_theta": 10000.0}, None),
    "llama": ("llama", "bf16", {}, {"rope_theta": 1000.0}, None),
    "llama-3": ("llama", "bf16", {}, LLAMA3 | {"rope_theta": 1000.0}, "llama"),
    "llama-linear": ("llama", "bf16", {},
                     {"rope_type": "linear", "factor": 3.0, "rope_theta": 1000.0}, "llama"),
    "llama-yarn": ("llama", "bf16", {}, YARN | {"rope_theta": 1000.0}, "llama"),
    "llama-biases": ("llama", "f32", {"attention_bias": True, "mlp_bias": True, "hidden_size": 24,
                                      "num_key_value_heads": 1, "tie_word_embeddings": True},
                     {"rope_theta": 10000.0}, None),
    "mistral": ("mistral", "bf16", {"sliding_window": 9}, {"rope_theta": 1000.0}, "llama"),
    "qwen2": ("qwen2", "bf16", {}, {"rope_theta": 100.0}, None),
    "qwen2-tied": ("qwen2", "f16", {"tie_word_embeddings": True, "num_key_value_heads": 1},
                   YARN | {"rope_theta": 1000.0, "attention_factor": 1.5}, None),
    "qwen2-window": ("qwen2", "bf16", {"use_sliding_window": True, "sliding_window": 7,
                                       "max_window_layers": 1}, {"rope_theta": 100.0}, "qwen2"),
    "qwen3": ("qwen3", "bf16", {"head_dim": 12},
              {"rope_theta": 1000.0}, None),
}
OLD_SPELLING = {"llama-3", "llama-linear", "mistral", "qwen2-tied"}
SHARDED = {"qwen3"}
NOT_IN_GGUF = {"qwen2-window"}  # there is no key for a window in the last layers alone
TORCH_TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
PROMPTS = [9, 40]
GREEDY = 12


def config_of(name):
    kind, number, changes, rope, _ = MODELS[name]
    values = SMALL | {"rope_parameters": {"rope_type": "default"} | rope} | changes
    values["dtype"] = TORCH_TYPES[number]
    return AutoConfig.for_model(kind, **values)


def fill(model, seed):
    """Weights of about the size that keeps a stream's, norms near 1, biases that matter."""
    generator = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=generator, dtype=torch.float64)
        if name.endswith("norm.weight"):
            p.data = (1 + 0.2 * noise).to(p.dtype)
        elif name.endswith(".bias"):
            p.data = (0.4 * noise).to(p.dtype)
        else:
            p.data = (noise * (1.0 if "embed" in name else 1.4 / math.sqrt(p.shape[-1]))).to(p.dtype)


def old_spelling(values):
    rope = values.pop("rope_parameters")
    values["rope_theta"] = rope.pop("rope_theta")
    values["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    if rope["rope_type"] != "llama3":
        rope["type"] = rope.pop("rope_type")
    values["torch_dtype"] = values.pop("dtype")


def save(name, folder):
    """The folder: tensors of its own, or a link to another's."""
    _, number, _, _, whose = MODELS[name]
    config = config_of(name)
    shutil.rmtree(folder, ignore_errors=True)
    if whose:
        os.mkdir(folder)
        config.architectures = [type(AutoModelForCausalLM.from_config(config)).__name__]
        config.save_pretrained(folder)
        os.symlink(f"../{whose}/model.safetensors", f"{folder}/model.safetensors")
    else:
        model = AutoModelForCausalLM.from_config(config).to(TORCH_TYPES[number])
        fill(model, sorted(MODELS).index(name))
        model.tie_weights()
        model.save_pretrained(folder, max_shard_size="16KB" if name in SHARDED else "1MB")
    if name in OLD_SPELLING:
        path = f"{folder}/config.json"
        with open(path, encoding="utf-8") as f:
            values = json.load(f)
        old_spelling(values)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(values, f, indent=2)
            f.write("\n")


# ---------------------------------------------------------------- GGUF

NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name):
    ends = {"model.embed_tokens.weight": "token_embd.weight", "lm_head.weight": "output.weight",
            "model.norm.weight": "output_norm.weight"}
    if name in ends:
        return ends[name]
    _, _, layer, rest = name.split(".", 3)
    middle, last = rest.rsplit(".", 1)
    return f"blk.{layer}.{NAMES[middle]}.{last}"


def permuted(numbers, heads):
    """Rows of each head: its two halves become neighbours."""
    shape = numbers.shape
    return numbers.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def llama3_table(config, rope):
    out = []
    for i in range(config.head_dim // 2):
        length = 2 * math.pi * rope["rope_theta"] ** (2 * i / config.head_dim)
        trained = rope["original_max_position_embeddings"]
        smooth = (trained / length - rope["low_freq_factor"]) / (
            rope["high_freq_factor"] - rope["low_freq_factor"])
        smooth = min(max(smooth, 0), 1)
        out.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return numpy.array(out, dtype=numpy.float32)


def write_tensor(writer, name, numbers, kind):
    if numbers.ndim == 1 or kind == "f32":
        writer.add_tensor(name, numbers.astype(numpy.float32))
    elif kind == "f16":
        writer.add_tensor(name, numbers.astype(numpy.float16))
    else:  # what is there fits a BF16 exactly
        bits = numpy.ascontiguousarray(numbers.astype(numpy.float32)).view(numpy.uint32) >> 16
        writer.add_tensor(name, bits.astype(numpy.uint16).view(numpy.uint8),
                          raw_shape=(*numbers.shape[:-1], numbers.shape[-1] * 2),
                          raw_dtype=gguf.GGMLQuantizationType.BF16)


def write_gguf(name, model, path):
    kind, number, _, _, _ = MODELS[name]
    config, rope = model.config, model.config.rope_parameters
    architecture = "llama" if kind == "mistral" else kind
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    config.head_dim = head_dim
    w = gguf.GGUFWriter(path, architecture)
    w.add_name(name)
    w.add_vocab_size(config.vocab_size)
    w.add_context_length(config.max_position_embeddings)
    w.add_embedding_length(config.hidden_size)
    w.add_feed_forward_length(config.intermediate_size)
    w.add_block_count(config.num_hidden_layers)
    w.add_head_count(config.num_attention_heads)
    w.add_head_count_kv(config.num_key_value_heads)
    w.add_key_length(head_dim)
    w.add_value_length(head_dim)
    w.add_rope_dimension_count(head_dim)
    w.add_rope_freq_base(rope["rope_theta"])
    w.add_layer_norm_rms_eps(config.rms_norm_eps)
    w.add_bos_token_id(config.bos_token_id)
    w.add_eos_token_id(config.eos_token_id)
    if getattr(config, "sliding_window", None):
        w.add_sliding_window(config.sliding_window)
    if rope["rope_type"] == "linear":
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(rope["factor"])
    elif rope["rope_type"] == "yarn":
        w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        w.add_rope_scaling_factor(rope["factor"])
        w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        w.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
        w.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
        if "attention_factor" in rope:  # there it comes on top of what follows from the factor
            usual = 1 + 0.1 * math.log(rope["factor"])
            w.add_rope_scaling_attn_factors(rope["attention_factor"] / usual)
    elif rope["rope_type"] == "llama3":
        w.add_tensor("rope_freqs.weight", llama3_table(config, rope))
    for tensor, p in model.named_parameters():
        numbers = p.detach().to(torch.float64).numpy()
        if architecture == "llama" and ".q_proj." in tensor:
            numbers = permuted(numbers, config.num_attention_heads)
        if architecture == "llama" and ".k_proj." in tensor:
            numbers = permuted(numbers, config.num_key_value_heads)
        write_tensor(w, gguf_name(tensor), numbers, number)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


# ---------------------------------------------------------------- goldens


def logits(model, tokens):
    with torch.no_grad():
        return model(torch.tensor([tokens]), use_cache=False).logits[0, -1].to(torch.float64).tolist()


def case(model, prompt):
    tokens, margins, all_logits = list(prompt), [], []
    for _ in range(GREEDY):
        numbers = logits(model, tokens)
        best, second = sorted(range(len(numbers)), key=lambda i: (-numbers[i], i))[:2]
        margins.append(numbers[best] - numbers[second])
        all_logits.append(numbers)
        tokens.append(best)
    text = f"prompt {len(prompt)}" + wrapped([str(t) for t in prompt])
    text += f"greedy {GREEDY}" + wrapped([str(t) for t in tokens[len(prompt) :]])
    text += f"margin {GREEDY}" + wrapped([f"{m:.9g}" for m in margins])
    for at in (0, GREEDY - 1):
        text += f"logits {at} {len(all_logits[at])}" + wrapped([f"{a:.9g}" for a in all_logits[at]])
    return text


def prompts():
    generator = torch.Generator().manual_seed(7)
    return [torch.randint(3, SMALL["vocab_size"], (n,), generator=generator).tolist() for n in PROMPTS]


def main(folder):
    os.makedirs(folder, exist_ok=True)
    for name in MODELS:
        save(name, f"{folder}/{name}")
    for name in MODELS:
        model = AutoModelForCausalLM.from_pretrained(
            f"{folder}/{name}", dtype=torch.float64, attn_implementation="eager").eval()
        file = "-" if name in NOT_IN_GGUF else f"{name}.gguf"
        text = f"files {name} {file}\n" + "".join(case(model, p) for p in prompts())
        with open(f"{folder}/{name}.txt", "w", encoding="ascii") as f:
            f.write(text)
        if name not in NOT_IN_GGUF:
            write_gguf(name, model, f"{folder}/{file}")


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__)
