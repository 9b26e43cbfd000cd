"""The models of families.py as llama.cpp's converter writes them."""
import math
import re

import gguf
import numpy
import torch

import family_gemma4
import family_remote
from family_models import MODELS

ARCHITECTURES = {
    "llama": "LLAMA", "mistral": "LLAMA", "qwen2": "QWEN2", "qwen3": "QWEN3", "phi3": "PHI3",
    "glm": "CHATGLM", "glm4": "GLM4", "olmo": "OLMO", "olmo2": "OLMO2", "olmo3": "OLMO2",
    "granite": "GRANITE", "granitemoehybrid": "GRANITE", "smollm3": "SMOLLM3", "gemma": "GEMMA",
    "gemma2": "GEMMA2", "gemma3_text": "GEMMA3", "gemma4_text": "GEMMA4", "ministral3": "MISTRAL3",
    "cohere": "COMMAND_R", "cohere2": "COHERE2", "exaone4": "EXAONE4", "nemotron": "NEMOTRON",
    "seed_oss": "SEED_OSS", "stablelm": "STABLELM", "gpt2": "GPT2", "gpt_neox": "GPTNEOX",
    "falcon": "FALCON", "starcoder2": "STARCODER2", "gpt_bigcode": "STARCODER", "mpt": "MPT",
    "bloom": "BLOOM", "phi": "PHI2",
}
# Here the converter makes the two halves of a head neighbours.
PERMUTED = {"LLAMA", "INTERNLM2", "BAICHUAN", "MISTRAL3", "GRANITE", "SMOLLM3", "OLMO"}


def architecture_of(name):
    model = MODELS[name]
    if model.kind == "mistral" and model.wrapper:
        return "MISTRAL3"
    if model.remote:
        return {"pangu": "PANGU_EMBED"}.get(model.remote, model.remote.split("-")[0].upper())
    return ARCHITECTURES.get(model.kind)


def can_write(name):
    return MODELS[name].in_gguf and architecture_of(name) is not None


# ---------------------------------------------------------------- tensors


def permuted(numbers, heads):
    """Rows of each head: its two halves become neighbours."""
    shape = numbers.shape
    halves_of_heads = numbers.reshape(heads, 2, shape[0] // heads // 2, *shape[1:])
    return halves_of_heads.swapaxes(1, 2).reshape(shape)


def llama3_table(head_dim, rope):
    out = []
    for i in range(head_dim // 2):
        length = 2 * math.pi * rope["rope_theta"] ** (2 * i / head_dim)
        trained = rope["original_max_position_embeddings"]
        smooth = (trained / length - rope["low_freq_factor"]) / (
            rope["high_freq_factor"] - rope["low_freq_factor"])
        smooth = min(max(smooth, 0), 1)
        out.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return numpy.array(out, dtype=numpy.float32)


def kv_heads(config):
    if config.model_type == "gemma4_text":
        return family_gemma4.kv_heads(config)
    if config.model_type == "falcon" and not config.new_decoder_architecture:
        return 1 if config.multi_query else config.num_attention_heads
    return (getattr(config, "num_kv_heads", None) or getattr(config, "num_key_value_heads", None) or
            config.num_attention_heads)


def width_of_heads(config):
    if config.model_type == "gemma4_text":
        return family_gemma4.head_dim(config, "full_attention")
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def gathered(numbers, config):
    """Rows of each group, queries then a key and a value: all queries, all keys, all values."""
    groups = kv_heads(config)
    dim = config.hidden_size // config.num_attention_heads
    parts = numbers.reshape(groups, -1, dim, *numbers.shape[1:])
    return numpy.concatenate([part.reshape(-1, *numbers.shape[1:]) for part in (
        parts[:, :-2], parts[:, -2:-1], parts[:, -1:])])


def halves(name, numbers):
    """A gate and the factor of its result, where transformers has them in one."""
    gate, up = numpy.split(numbers, 2)
    return [(name.replace("shared_mlp.input_linear", "mlp.gate_proj"), gate),
            (name.replace("shared_mlp.input_linear", "mlp.up_proj"), up)]


def rewritten(name, numbers, kind, architecture, config):
    """A tensor of transformers as the tensors that the converter makes of it."""
    if architecture in PERMUTED and ".q_proj." in name:
        numbers = permuted(numbers, config.num_attention_heads)
    elif architecture in PERMUTED and ".k_proj." in name:
        numbers = permuted(numbers, config.num_key_value_heads)
    elif kind in ("gemma", "gemma2", "gemma3_text", "nemotron") and name.endswith("norm.weight"):
        numbers = numbers + 1
    elif kind == "gpt2" and re.search(r"\.c_(attn|proj|fc)\.weight", name):
        numbers = numbers.T
    elif kind in ("gpt_neox", "bloom", "falcon") and "query_key_value" in name:
        numbers = gathered(numbers, config)
    elif "shared_mlp.input_linear" in name:
        return halves(name, numbers)
    return [(name.replace("shared_mlp.output_linear", "mlp.down_proj"), numbers)]


def text_tensors(model, name):
    """The tensors of the text model by name; norms of single heads become one tensor."""
    out, kind, tensors = {}, MODELS[name].kind, dict(model.named_parameters())
    if MODELS[name].remote == "qwen":
        tensors = family_remote.names_of_qwen(tensors, None)
    tensors |= {f"{name}.weight": p for name, p in model.named_buffers()
                if name.endswith("layer_scalar")}
    for name, p in tensors.items():
        name = name.replace("model.language_model.", "model.")
        if kind == "bloom":
            name = name.removeprefix("transformer.")
        numbers = p.detach().to(torch.float64).numpy()
        head = re.match(r"(.*)\.norms\.(\d+)(\..*)", name)
        if head:
            name, numbers = head[1] + head[3], numbers[None]
            if name in out:
                numbers = numpy.concatenate([out[name], numbers])
        if not re.search(r"vision|multi_modal", name):
            out[name] = numbers
    return out


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


def write_tensors(writer, name, model, config):
    architecture = architecture_of(name)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[architecture], config.num_hidden_layers)
    tensors = text_tensors(model, name)
    if MODELS[name].names == "unused":
        tensors |= {key: p.to(torch.float64).numpy()
                    for key, p in family_gemma4.unused(tensors).items()}
    for tensor, numbers in tensors.items():
        for part, rows in rewritten(tensor, numbers, MODELS[name].kind, architecture, config):
            found = names.get_name(part, (".weight", ".bias"))
            if found is None:
                raise ValueError(f"{name}: {part} has no name in GGUF")
            write_tensor(writer, found, rows, MODELS[name].number)


# ---------------------------------------------------------------- keys


def wide(config):
    if config.model_type == "gemma4_text":
        return family_gemma4.wide(config)
    for key in ("shared_intermediate_size", "intermediate_size", "n_inner", "ffn_hidden_size"):
        if getattr(config, key, None):
            return getattr(config, key)
    return 4 * config.hidden_size


def write_sizes(w, name, config, head_dim):
    def get(*keys):
        return next((getattr(config, k) for k in keys if getattr(config, k, None)), None)

    w.add_vocab_size(config.vocab_size)
    w.add_context_length(get("max_position_embeddings", "max_seq_len") or 128)
    w.add_embedding_length(config.hidden_size)
    w.add_feed_forward_length(wide(config) * (2 if MODELS[name].remote == "qwen" else 1))
    w.add_block_count(config.num_hidden_layers)
    w.add_head_count(config.num_attention_heads)
    w.add_head_count_kv(kv_heads(config))
    w.add_key_length(head_dim)
    w.add_value_length(head_dim)
    if get("rms_norm_eps"):
        w.add_layer_norm_rms_eps(config.rms_norm_eps)
    else:  # OLMo 1 has no key for it
        w.add_layer_norm_eps(get("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon",
                                 "norm_eps") or 1e-5)
    w.add_bos_token_id(config.bos_token_id)
    w.add_eos_token_id(config.eos_token_id)


def write_yarn(w, rope):
    w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    w.add_rope_scaling_factor(rope["factor"])
    w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    w.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
    w.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
    if "attention_factor" in rope:  # there it comes on top of what follows from the factor
        usual = 1 + 0.1 * math.log(rope["factor"])
        w.add_rope_scaling_attn_factors(rope["attention_factor"] / usual)
    if "mscale_all_dim" in rope:
        w.add_rope_scaling_yarn_log_mul(rope["mscale_all_dim"])
    if "llama_4_scaling_beta" in rope:
        w.add_attn_temperature_scale(rope["llama_4_scaling_beta"])


def write_longrope(w, rope, config):
    trained = config.original_max_position_embeddings
    scale = config.max_position_embeddings / trained
    w.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE)
    w.add_rope_scaling_orig_ctx_len(trained)
    w.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(scale) / math.log(trained)))
    for size in ("long", "short"):
        w.add_tensor(f"rope_factors_{size}.weight",
                     numpy.array(rope[f"{size}_factor"], dtype=numpy.float32))


def write_rope(w, config, head_dim):
    ropes = config.rope_parameters
    rope = ropes.get("full_attention", ropes)
    part = rope.get("partial_rotary_factor", 1) if rope["rope_type"] != "proportional" else 1
    w.add_rope_dimension_count(int(head_dim * part))
    w.add_rope_freq_base(rope["rope_theta"])
    local = ropes.get("sliding_attention", rope)["rope_theta"]
    # 10000 is what a reader has to take for Gemma 3 if nothing is said
    if local != (10000.0 if config.model_type == "gemma3_text" else rope["rope_theta"]):
        w.add_rope_freq_base_swa(local)
    if config.model_type in ("cohere", "cohere2", "nemotron"):
        w.add_rope_scaling_type(gguf.RopeScalingType.NONE)
    elif rope["rope_type"] == "linear":
        w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        w.add_rope_scaling_factor(rope["factor"])
    elif rope["rope_type"] == "yarn":
        write_yarn(w, rope)
    elif rope["rope_type"] == "longrope":
        write_longrope(w, rope, config)
    elif rope["rope_type"] == "llama3":
        w.add_tensor("rope_freqs.weight", llama3_table(head_dim, rope))


def write_window(w, config):
    if config.model_type == "phi3":  # 0 tells Phi 4 from Phi 3
        w.add_sliding_window(config.sliding_window or 0)
    elif getattr(config, "sliding_window", None):
        w.add_sliding_window(config.sliding_window)
    windowed = [kind == "sliding_attention" for kind in getattr(config, "layer_types", None) or []]
    if config.model_type in ("olmo3", "gemma4_text"):
        w.add_sliding_window_pattern(windowed)
    elif config.model_type == "gemma3_text" and windowed.index(False) != 5:
        w.add_sliding_window_pattern(windowed.index(False) + 1)


def write_factors(w, config):
    adders = {
        "clip_qkv": w.add_clamp_kqv, "embedding_multiplier": w.add_embedding_scale,
        "residual_multiplier": w.add_residual_scale,
        "attention_multiplier": w.add_attention_scale, "logits_scaling": w.add_logit_scale,
        "logit_scale": w.add_logit_scale,
        "attn_logit_softcapping": w.add_attn_logit_softcapping,
        "final_logit_softcapping": w.add_final_logit_softcapping,
    }
    attention = getattr(config, "attn_config", config)  # of MPT
    for key, add in adders.items():
        if getattr(attention, key, None) is not None:
            add(getattr(attention, key))
    if config.model_type == "mpt":
        w.add_max_alibi_bias(attention.alibi_bias_max)
    if config.model_type in ("gpt_neox", "stablelm"):
        w.add_parallel_residual(config.use_parallel_residual)
    if config.model_type == "falcon":
        w.add_tensor_data_layout("jploski")
    if getattr(config, "position_embedding_type", None) == "nope":
        w.add_rope_scaling_finetuned(False)


def write(name, model, path):
    config = model.config.get_text_config()
    head_dim = width_of_heads(config)
    w = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[gguf.MODEL_ARCH[architecture_of(name)]])
    w.add_name(name)
    write_sizes(w, name, config, head_dim)
    if getattr(config, "rope_parameters", None):
        write_rope(w, config, head_dim)
    write_window(w, config)
    write_factors(w, config)
    if config.model_type == "gemma4_text":
        family_gemma4.write_keys(w, config)
    write_tensors(w, name, model, config)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
