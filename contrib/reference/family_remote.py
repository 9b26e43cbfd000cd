"""Models of families.py whose code is not a part of transformers.

InternLM 1 and 2, Pangu and Baichuan 7B compute as Llama does, Baichuan 13B as Llama with ALiBi
instead of rope.  Baichuan 2 divides each row of its head by the row's length.  Qwen 1 and MiMo
compute as Qwen2 does.  So transformers' Llama and Qwen2 compute the goldens, and the files get the
published names afterwards.
"""
import torch

import family_files
from family_models import MODELS

INTERNLM2 = {
    "model.embed_tokens": "model.tok_embeddings", "lm_head": "output", "self_attn.o_proj":
    "attention.wo", "mlp.gate_proj": "feed_forward.w1", "mlp.up_proj": "feed_forward.w3",
    "mlp.down_proj": "feed_forward.w2", "input_layernorm": "attention_norm",
    "post_attention_layernorm": "ffn_norm",
}


class Alibi:
    """Llama without rope, and with a line added to the scores of each head."""

    def __init__(self, model):
        self.model, self.config = model, model.config
        model.model.rotary_emb.inv_freq.zero_()

    def named_parameters(self):
        return self.model.named_parameters()

    def __call__(self, tokens, use_cache):
        heads, length = self.config.num_attention_heads, tokens.shape[1]
        slopes = 2.0 ** (-8 / heads * torch.arange(1, heads + 1, dtype=torch.float64))
        at = torch.arange(length)
        bias = slopes[:, None, None] * (at[None, :] - at[:, None])
        bias = bias.masked_fill(at[None, :] > at[:, None], -torch.inf)
        return self.model(tokens, attention_mask=bias[None], use_cache=use_cache)


def computing(name, model):
    """The model that computes; the file keeps the weights of `model`."""
    if MODELS[name].remote == "baichuan2":
        head = model.lm_head.weight
        head.data = head.data / torch.linalg.vector_norm(head.data, dim=1, keepdim=True)
    return Alibi(model) if MODELS[name].remote == "baichuan-13b" else model


def grouped(q, k, v, groups):
    """For each head of keys: its queries, the key, the value."""
    width = q.shape[1]
    parts = [t.reshape(groups, -1, width) for t in (q, k, v)]
    return torch.cat(parts, 1).reshape(-1, width)


def names_of_internlm2(tensors, groups):
    out = {}
    for name, tensor in tensors.items():
        for old, new in INTERNLM2.items():
            name = name.replace(old, new)
        out[name] = tensor
    for name in [name for name in out if ".q_proj." in name]:
        q, k, v = (out.pop(name.replace("q_proj", f"{letter}_proj")) for letter in "qkv")
        out[name.replace("self_attn.q_proj", "attention.wqkv")] = grouped(q, k, v, groups)
    return out


def names_of_baichuan(tensors, groups):
    del groups
    out = dict(tensors)
    for name in [name for name in out if ".q_proj." in name]:
        parts = [out.pop(name.replace("q_proj", f"{letter}_proj")) for letter in "qkv"]
        out[name.replace("q_proj", "W_pack")] = torch.cat(parts)
    return out


QWEN = {
    "model.embed_tokens": "transformer.wte", "model.norm": "transformer.ln_f",
    "model.layers": "transformer.h", "self_attn.o_proj": "attn.c_proj", "mlp.gate_proj": "mlp.w2",
    "mlp.up_proj": "mlp.w1", "mlp.down_proj": "mlp.c_proj", "input_layernorm": "ln_1",
    "post_attention_layernorm": "ln_2",
}


def names_of_qwen(tensors, groups):
    del groups
    out = {}
    for name, tensor in tensors.items():
        for old, new in QWEN.items():
            name = name.replace(old, new)
        out[name] = tensor
    for name in [name for name in out if ".q_proj." in name]:
        parts = [out.pop(name.replace("q_proj", f"{letter}_proj")) for letter in "qkv"]
        out[name.replace("self_attn.q_proj", "attn.c_attn")] = torch.cat(parts)
    return out


def config_of_qwen(values):
    """Twice the width of the feed-forward part, and names of its own."""
    values |= {"architectures": ["QWenLMHeadModel"], "model_type": "qwen", "no_bias": True,
               "intermediate_size": 2 * values["intermediate_size"],
               "kv_channels": values["hidden_size"] // values["num_attention_heads"],
               "layer_norm_epsilon": values.pop("rms_norm_eps"), "rotary_pct": 1.0,
               "rotary_emb_base": int(values.pop("rope_theta")),
               "seq_length": values.pop("max_position_embeddings"),
               "max_position_embeddings": 32768, "use_dynamic_ntk": True, "use_logn_attn": True}
    for key in ("num_key_value_heads", "hidden_act", "head_dim", "rope_scaling", "sliding_window",
                "use_sliding_window", "max_window_layers", "layer_types", "attention_bias"):
        values.pop(key, None)


def names_of_mimo(tensors, groups):
    """The layer of the draft is a part of the published files."""
    del groups
    draft = {f"model.mtp_layers.0.{name}.weight": torch.ones(4)
             for name in ("token_layernorm", "hidden_layernorm")}
    return tensors | draft


def config_of_mimo(values):
    values |= {"architectures": ["MiMoForCausalLM"], "model_type": "mimo", "attention_bias": True,
               "head_dim": values["hidden_size"] // values["num_attention_heads"],
               "use_mrope": False, "num_nextn_predict_layers": 1}


def as_they_are(tensors, groups):
    del groups
    return tensors


def config_of_internlm(values):
    values |= {"architectures": ["InternLMForCausalLM"], "model_type": "internlm",
               "bias": values.pop("attention_bias")}
    for key in ("num_key_value_heads", "head_dim", "rope_scaling"):
        values.pop(key)


def config_of_pangu(values):
    values |= {"architectures": ["PanguEmbeddedForCausalLM"], "model_type": "PanguEmbedded",
               "bias": values.pop("attention_bias")}
    values.pop("head_dim")


def config_of_internlm2(values):
    values |= {"architectures": ["InternLM2ForCausalLM"], "model_type": "internlm2",
               "bias": values.pop("attention_bias")}


def config_of_baichuan(values):
    values |= {"architectures": ["BaiChuanForCausalLM"], "model_type": "baichuan"}
    for key in ("num_key_value_heads", "attention_bias", "head_dim", "rope_scaling", "rope_theta"):
        values.pop(key)


def config_of_baichuan_13b(values):
    """Published configs of 13B have another key for the length, and nothing tells of ALiBi."""
    config_of_baichuan(values)
    values["architectures"] = ["BaichuanForCausalLM"]
    values["model_max_length"] = values.pop("max_position_embeddings")


def config_of_baichuan2(values):
    """Nothing tells of the head but that this setting of the training is there."""
    config_of_baichuan(values)
    values["architectures"] = ["BaichuanForCausalLM"]
    values["z_loss_weight"] = 0


def respell(name, folder):
    """Gives the files of a Llama model the published names."""
    change, config = {
        "internlm2": (names_of_internlm2, config_of_internlm2),
        "baichuan": (names_of_baichuan, config_of_baichuan),
        "baichuan-13b": (names_of_baichuan, config_of_baichuan_13b),
        "baichuan2": (names_of_baichuan, config_of_baichuan2),
        "internlm": (as_they_are, config_of_internlm),
        "mimo": (names_of_mimo, config_of_mimo),
        "pangu": (as_they_are, config_of_pangu),
        "qwen": (names_of_qwen, config_of_qwen),
    }[MODELS[name].remote]
    groups = family_files.config_of(name).num_key_value_heads
    family_files.rename(folder, lambda tensors: change(tensors, groups))

    def simpler(values):
        for key in ("mlp_bias", "pretraining_tp"):
            values.pop(key, None)
        config(values)

    family_files.rewrite_json(f"{folder}/config.json", simpler)
