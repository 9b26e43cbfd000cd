"""The files of families.py as Hugging Face has them: config.json and safetensors, old and new."""
import contextlib
import dataclasses
import json
import os
import re
import shutil

import torch
import transformers
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import CONFIG_MAPPING, AutoConfig, AutoModelForCausalLM

import family_gemma4
from family_models import MODELS, SMALL, VISION

transformers.utils.logging.disable_progress_bar()
TORCH_TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def config_of(name):
    model = MODELS[name]
    kind = CONFIG_MAPPING[model.kind]
    keys = {f.name for f in dataclasses.fields(kind)} | set(kind.attribute_map)
    values = {key: value for key, value in SMALL.items() if key in keys}
    values |= {"num_hidden_layers": len(model.changes["layer_types"])} \
        if "layer_types" in model.changes else {}
    values |= model.changes
    if model.rope:
        values["rope_parameters"] = model.rope
    values["dtype"] = TORCH_TYPES[model.number]
    if not model.wrapper:
        return kind(**values)
    wrapper = getattr(transformers, model.wrapper).config_class
    more = VISION[model.wrapper] | {"tie_word_embeddings": values["tie_word_embeddings"]}
    return wrapper(text_config=kind(**values), dtype=values["dtype"], **more)


def class_of(config):
    try:
        return transformers.AutoModelForImageTextToText._model_mapping[type(config)]
    except KeyError:
        return AutoModelForCausalLM._model_mapping[type(config)]


def load(folder, config=None):
    """The stored model in float64."""
    config = config or AutoConfig.from_pretrained(folder)
    # transformers 5.24 adds Falcon's slopes twice if it is eager
    attention = "sdpa" if getattr(config, "alibi", False) else "eager"
    return class_of(config).from_pretrained(
        folder, config=config, dtype=torch.float64, attn_implementation=attention).eval()


@contextlib.contextmanager
def wide_numbers(kind):
    """XGLM makes a mask of the default type, which has to hold the least float64."""
    torch.set_default_dtype(torch.float64 if kind == "xglm" else torch.float32)
    yield
    torch.set_default_dtype(torch.float32)


def rewrite_json(path, change):
    with open(path, encoding="utf-8") as f:
        values = json.load(f)
    change(values)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(values, f, indent=2)
        f.write("\n")


def old_rope(values):
    """The keys of published files, from before all was in rope_parameters."""
    rope = values.pop("rope_parameters")
    if "full_attention" in rope:
        local = rope["sliding_attention"]["rope_theta"]
        rope = rope["full_attention"]
        if values["model_type"] == "gemma3_text":
            values["rope_local_base_freq"] = local
    theta, part = rope.pop("rope_theta"), rope.pop("partial_rotary_factor", None)
    if values["model_type"] == "gpt_neox":
        values |= {"rotary_emb_base": theta, "rotary_pct": part}
    else:
        values["rope_theta"] = theta
        if part is not None:
            values["partial_rotary_factor"] = part
    values["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    if values["model_type"] == "phi3":  # there the trained length is not a part of it
        rope.pop("original_max_position_embeddings", None)
    if rope["rope_type"] != "llama3" and values["model_type"] not in ("olmo3", "gemma3_text"):
        rope["type"] = rope.pop("rope_type")


def old_layers(values):
    """Layers as a pattern instead of a list, where published files have that."""
    kind = values["model_type"]
    if kind in ("gemma2", "gemma3_text", "cohere2"):
        pattern = values.pop("layer_types").index("full_attention") + 1
        values.pop("_sliding_window_pattern", None)
        if kind != "gemma2":
            values["sliding_window_pattern"] = pattern


def old_spelling(values):
    values["torch_dtype"] = values.pop("dtype")
    text = values.get("text_config", values)
    if "rope_parameters" in text:
        old_rope(text)
    old_layers(text)


def global_sizes(values):
    """The sizes of Gemma 4's full layers as keys of their own, as in published files."""
    text = values.get("text_config", values)
    of_full = next(iter(text.pop("per_layer_config").values()))
    text |= {"global_head_dim": of_full["head_dim"],
             "num_global_key_value_heads": of_full.get("num_key_value_heads")}


SPELLINGS = {"old": old_spelling, "global": global_sizes}


def rename(folder, change):
    """Gives the tensors other names; a name of None leaves one out."""
    path = f"{folder}/model.safetensors"
    with safe_open(path, "pt") as f:
        tensors = change({name: f.get_tensor(name) for name in f.keys()})
    save_file(tensors, path, {"format": "pt"})


def without_prefix(tensors):
    """As files that were stored without a head, which is tied."""
    return {re.sub(r"^(transformer|model)\.", "", name): t for name, t in tensors.items()}


def with_buffers(tensors):
    """As files of earlier versions, which have the masks of attention."""
    more = {}
    for name in tensors:
        found = re.match(r"(.*(?:\.attn|\.attention))\.(c_attn|query_key_value|qkv_proj)\.weight",
                         name)
        if found:
            mask = torch.ones(16, 16, dtype=torch.uint8).tril().reshape(1, 1, 16, 16)
            kind = "causal_mask" if found[2] == "qkv_proj" else "bias"
            more |= {f"{found[1]}.{kind}": mask, f"{found[1]}.masked_bias": torch.tensor(-1e9)}
            if "attention" in name:
                more[f"{found[1]}.rotary_emb.inv_freq"] = torch.tensor([0.5, 0.25])
    return tensors | more


RENAMED = {
    "bare": without_prefix,
    "unused": lambda tensors: tensors | family_gemma4.unused(tensors),
    "buffers": with_buffers,
    "bare with buffers": lambda tensors: with_buffers(without_prefix(tensors)),
    "inner": lambda tensors: {re.sub(r"^language_model\.(?:model\.)?", "model.language_model.",
                                     re.sub(r"^language_model\.lm_head", "lm_head", name)): t
                              for name, t in tensors.items()},
}


def without_type(rope):
    """rope_type has an older name, which stays when the file has it."""
    if not isinstance(rope, dict):
        return rope
    return {key: without_type(value) for key, value in rope.items() if key != "type"}


def check_spelling(meant, read):
    for key in ("rope_parameters", "layer_types"):
        one, other = without_type(getattr(meant, key, None)), without_type(getattr(read, key, None))
        if one != other:
            raise ValueError(f"{meant.model_type}: {key}: {one} was read as {other}")


def save(name, folder, fill):
    """The folder: tensors of its own, or a link to another's."""
    model = MODELS[name]
    config = config_of(name)
    shutil.rmtree(folder, ignore_errors=True)
    if model.tensors_of:
        os.mkdir(folder)
        config.architectures = [class_of(config).__name__]
        config.save_pretrained(folder)
        os.symlink(f"../{model.tensors_of}/model.safetensors", f"{folder}/model.safetensors")
    else:
        made = class_of(config)(config).to(TORCH_TYPES[model.number])
        fill(made, name)
        made.save_pretrained(folder, max_shard_size=model.shard)
    if model.names != "new":
        rename(folder, RENAMED[model.names])
    if model.spelling != "new":
        rewrite_json(f"{folder}/config.json", SPELLINGS[model.spelling])
        again = AutoConfig.from_pretrained(folder)
        check_spelling(config.get_text_config(), again.get_text_config())
