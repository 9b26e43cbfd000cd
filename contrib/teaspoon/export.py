#!/usr/bin/env python3
"""Writes a trained model in the forms that are served.

    export.py RUN_DIR tokenizer.json OUT_DIR [--name teaspoon]

OUT_DIR gets NAME-f32.gguf, NAME-q8_0.gguf, NAME-q4_0.gguf, and NAME, a folder as Hugging Face has
it: config.json, model.safetensors, tokenizer.json and what belongs to them.
"""
import argparse
import json
import os
import shutil

from safetensors.numpy import save_file

import gguf_file
from documents import HERE
from quantise import KINDS
from tokenizer import Tokenizer
from train import load_model

# Ours, Hugging Face's, GGUF's.
NAMES = [("input_norm", "input_layernorm", "attn_norm"), ("q", "self_attn.q_proj", "attn_q"),
         ("k", "self_attn.k_proj", "attn_k"), ("v", "self_attn.v_proj", "attn_v"),
         ("o", "self_attn.o_proj", "attn_output"),
         ("post_norm", "post_attention_layernorm", "ffn_norm"),
         ("gate", "mlp.gate_proj", "ffn_gate"), ("up", "mlp.up_proj", "ffn_up"),
         ("down", "mlp.down_proj", "ffn_down")]
FILE_TYPES = {"F32": 0, "Q4_0": 2, "Q8_0": 7}
NORMAL, CONTROL, USER = 1, 3, 4
# How requests draw that give no sampling parameters: a model of this size garbles answers that are
# drawn from all tokens.
TEMPERATURE, MIN_P = 0.3, 0.1


def names(layers):
    """(ours, Hugging Face's, GGUF's) of all weights, in the order of GGUF files."""
    yield "embedding", "model.embed_tokens.weight", "token_embd.weight"
    for i in range(layers):
        for ours, theirs, there in NAMES:
            yield ("layers.%d.%s" % (i, ours), "model.layers.%d.%s.weight" % (i, theirs),
                   "blk.%d.%s.weight" % (i, there))
    yield "norm", "model.norm.weight", "output_norm.weight"


def weights_of(model):
    return {name: weight.detach().numpy() for name, weight in model.named_parameters()}


def chat_template():
    with open(os.path.join(HERE, "chat_template.jinja"), encoding="utf-8") as file:
        return file.read()


def write_json(path, said):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(said, file, indent=2, ensure_ascii=False)
        file.write("\n")


def hugging_face(folder, model, tokenizer, tokenizer_path):
    shape, special = model.shape, tokenizer.special
    os.makedirs(folder, exist_ok=True)
    ends = [special["<|im_end|>"], special["<|endoftext|>"]]
    write_json(os.path.join(folder, "config.json"), {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
        "attention_bias": False, "mlp_bias": False, "hidden_size": shape.width,
        "intermediate_size": shape.inner, "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads, "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head, "vocab_size": shape.vocabulary,
        "max_position_embeddings": shape.context, "rope_theta": shape.theta,
        "rms_norm_eps": shape.epsilon, "tie_word_embeddings": True, "bos_token_id": None,
        "eos_token_id": ends, "pad_token_id": special["<|endoftext|>"], "torch_dtype": "float32"})
    write_json(os.path.join(folder, "generation_config.json"), {
        "bos_token_id": None, "eos_token_id": ends, "pad_token_id": special["<|endoftext|>"],
        "do_sample": True, "temperature": TEMPERATURE, "min_p": MIN_P})
    write_json(os.path.join(folder, "tokenizer_config.json"), {
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": None,
        "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "unk_token": None,
        "add_bos_token": False, "clean_up_tokenization_spaces": False,
        "model_max_length": shape.context, "chat_template": chat_template()})
    shutil.copyfile(tokenizer_path, os.path.join(folder, "tokenizer.json"))
    weights = weights_of(model)
    save_file({theirs: weights[ours] for ours, theirs, _ in names(shape.layers)},
              os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})


def neighbours(rows, head):
    """GGUF's llama turns neighbours together, Hugging Face's a number and the one half a head on:
    the rows of a head are taken from its two halves in turns."""
    heads = rows.reshape(-1, 2, head // 2, rows.shape[1])
    return heads.swapaxes(1, 2).reshape(rows.shape)


def stored_as(ours, rows, kind):
    """How a tensor is stored in a file of a kind. The embedding is also the head, and is where four
    bits hurt most."""
    if rows.ndim == 1:
        return "F32"
    return "Q8_0" if ours == "embedding" and kind == "Q4_0" else kind


def tensors(model, kind):
    weights = weights_of(model)
    for ours, _, there in names(model.shape.layers):
        rows = weights[ours]
        if ours.endswith((".q", ".k")):
            rows = neighbours(rows, model.shape.head)
        stored = stored_as(ours, rows, kind)
        yield there, rows.shape, stored, KINDS[stored](rows)


def keys(name, model, tokenizer, kind):
    shape, special = model.shape, tokenizer.special
    types = [NORMAL] * len(tokenizer.vocab)
    types += [CONTROL if text.startswith("<|") else USER for text in special]
    yield "general.architecture", "string", "llama"
    yield "general.name", "string", name
    yield "general.license", "string", "apache-2.0"
    yield "general.file_type", "u32", FILE_TYPES[kind]
    yield "general.quantization_version", "u32", 2
    if name == "teaspoon":
        yield "general.sampling.temp", "f32", TEMPERATURE
        yield "general.sampling.min_p", "f32", MIN_P
    yield "llama.vocab_size", "u32", shape.vocabulary
    yield "llama.context_length", "u32", shape.context
    yield "llama.embedding_length", "u32", shape.width
    yield "llama.block_count", "u32", shape.layers
    yield "llama.feed_forward_length", "u32", shape.inner
    yield "llama.attention.head_count", "u32", shape.heads
    yield "llama.attention.head_count_kv", "u32", shape.kv_heads
    yield "llama.attention.key_length", "u32", shape.head
    yield "llama.attention.value_length", "u32", shape.head
    yield "llama.attention.layer_norm_rms_epsilon", "f32", shape.epsilon
    yield "llama.rope.dimension_count", "u32", shape.head
    yield "llama.rope.freq_base", "f32", shape.theta
    yield "tokenizer.ggml.model", "string", "gpt2"
    yield "tokenizer.ggml.pre", "string", "qwen2"
    yield "tokenizer.ggml.tokens", ["string"], tokenizer.tokens
    yield "tokenizer.ggml.token_type", ["i32"], types
    yield "tokenizer.ggml.merges", ["string"], [" ".join(pair) for pair in tokenizer.merges]
    yield "tokenizer.ggml.bos_token_id", "u32", special["<|endoftext|>"]
    yield "tokenizer.ggml.eos_token_id", "u32", special["<|im_end|>"]
    yield "tokenizer.ggml.eot_token_id", "u32", special["<|im_end|>"]
    # A plain text ends with <|endoftext|>; GGUF has no better word for a second end.
    yield "tokenizer.ggml.eom_token_id", "u32", special["<|endoftext|>"]
    yield "tokenizer.ggml.padding_token_id", "u32", special["<|endoftext|>"]
    yield "tokenizer.ggml.add_bos_token", "bool", False
    yield "tokenizer.chat_template", "string", chat_template()


def main():
    ask = argparse.ArgumentParser(description=__doc__,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("run")
    ask.add_argument("tokenizer")
    ask.add_argument("out")
    ask.add_argument("--name", default="teaspoon")
    args = ask.parse_args()
    model, tokenizer = load_model(args.run), Tokenizer(args.tokenizer)
    hugging_face(os.path.join(args.out, args.name), model, tokenizer, args.tokenizer)
    for kind in KINDS:
        path = os.path.join(args.out, "%s-%s.gguf" % (args.name, kind.lower()))
        gguf_file.write(path, list(keys(args.name, model, tokenizer, kind)),
                        list(tensors(model, kind)))


if __name__ == "__main__":
    main()
