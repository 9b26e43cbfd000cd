"""Does each setting and each tensor of a model of families.py matter?"""
import torch
from transformers import AutoConfig

import family_files
import family_gemma4

LEAST = 5e-3

# The value that a setting is changed to, if the model's config has the setting.
OTHERS = {
    "sliding_window": 100, "clip_qkv": 100.0, "embedding_multiplier": 1.0, "alibi": False,
    "residual_multiplier": 1.0, "attention_multiplier": 0.35355339, "logits_scaling": 1.0,
    "attn_logit_softcapping": None, "final_logit_softcapping": None, "query_pre_attn_scalar": 7,
    "logit_scale": 1.0, "hidden_act": "relu", "hidden_activation": "relu", "rotary_dim": 2,
    "do_layer_norm_before": None,
    "activation_function": "tanh", "activation": "relu",
    "scale_embedding": False, "use_parallel_residual": None, "parallel_attn": None,
    "apply_residual_connection_post_layernorm": None, "position_embedding_type": None,
    "scale_attn_by_inverse_layer_idx": None, "original_max_position_embeddings": 32,
}
ROPES = {
    "rope_theta": lambda x: x * 2, "factor": lambda x: x * 2, "beta_fast": lambda x: x * 2,
    "beta_slow": lambda x: x / 8, "attention_factor": lambda x: 1.0,
    "original_max_position_embeddings": lambda x: x * 2 + 60, "low_freq_factor": lambda x: x / 2,
    "high_freq_factor": lambda x: x * 2, "partial_rotary_factor": lambda x: x / 2,
    "llama_4_scaling_beta": lambda x: x / 2,
    "long_factor": lambda x: [a * 2 for a in x], "short_factor": lambda x: [a * 2 for a in x],
}

# These must change nothing.
SILENT = {
    ("phi3-long-short", "rope.long_factor"), ("phi3-long", "rope.short_factor"),
    # the one beside rope_parameters counts
    ("phi3-long-short", "rope.original_max_position_embeddings"),
    ("phi3-long", "rope.original_max_position_embeddings"),
    ("phi3", "original_max_position_embeddings"),
    ("phi3-partial", "original_max_position_embeddings"),
    # a shift of all scores of a query is none
    ("opt", ".k_proj.bias"), ("opt-350m", ".k_proj.bias"), ("xglm", ".k_proj.bias"),
    ("falcon-rw", "rope.rope_theta"),
    ("granite4-dense-nope", "rope.rope_theta"),
    # the norm behind these cancels them because its eps is small
    ("gemma4-wrapped", "layers.5.layer_scalar"), ("gemma4-wrapped", "per_layer_input_scale"),
    ("gemma4-wrapped", "per_layer_model_projection_scale"),
}


def logits(model, tokens):
    with torch.no_grad(), family_files.wide_numbers(model.config.model_type):
        return model(torch.tensor([tokens]), use_cache=False).logits[0, -1].to(torch.float64)


def settings(config):
    """(label, change) for each setting that can be changed alone."""
    text = config.get_text_config()
    for key, other in OTHERS.items():
        value = getattr(text, key, None)
        if value is None or value is False and other is None or value == other:
            continue
        if key == "position_embedding_type":
            other = "nope" if value == "rope" else "rope"
        yield key, lambda c, key=key, other=other, value=value: setattr(
            c.get_text_config(), key, (not value) if other is None and value is True else other)
    if getattr(getattr(text, "attn_config", None), "clip_qkv", None):
        yield "clip_qkv", lambda c: setattr(c.attn_config, "clip_qkv", 100.0)
    ropes = getattr(text, "rope_parameters", None) or {}
    for kind in ([None] if "rope_theta" in ropes else ropes):
        of_kind = ropes[kind] if kind else ropes
        for key, value in of_kind.items():
            if key in ROPES and not (key == "partial_rotary_factor" and value == 1):
                def change(c, kind=kind, key=key, value=value):
                    rope = c.get_text_config().rope_parameters
                    (rope[kind] if kind else rope)[key] = ROPES[key](value)
                yield f"{kind or 'rope'}.{key}", change
    if len(set(getattr(text, "layer_types", None) or [])) > 1:
        yield "layer_types", lambda c: c.get_text_config().layer_types.reverse()
    if getattr(text, "no_rope_layers", None):
        yield "no_rope_layers", lambda c: setattr(c.get_text_config(), "no_rope_layers", [
            1 - a for a in c.get_text_config().no_rope_layers])


def check(name, folder, tokens):
    """How many settings and tensors change nothing although they should."""
    name = name.removesuffix("-wide")
    model = family_files.load(folder)
    usual, bad = logits(model, tokens), 0
    for label, change in settings(model.config):
        config = AutoConfig.from_pretrained(folder)
        change(config)
        try:
            differs = (logits(family_files.load(folder, config), tokens) - usual).abs().max().item()
        except Exception as e:  # the change makes another shape: that is noticed
            print(f"  {label}: {type(e).__name__}: {str(e).splitlines()[0][:60]}")
            continue
        wrong = (differs > LEAST) == ((name, label) in SILENT)
        print(f"  {label}: {differs:.3g}" + ("  WRONG" if wrong else ""))
        bad += wrong
    for label, change in family_gemma4.traits(model):
        changed = family_files.load(folder)
        change(changed)
        differs = (logits(changed, tokens) - usual).abs().max().item()
        wrong = (differs > LEAST) == ((name, label) in SILENT)
        print(f"  {label}: {differs:.3g}" + ("  WRONG" if wrong else ""))
        bad += wrong
    scalars = [(name, p) for name, p in model.named_buffers() if name.endswith("layer_scalar")]
    for label, p in [*model.named_parameters(), *scalars]:
        if "vision" in label or "multi_modal" in label:
            continue
        kept = p.data.clone()
        if label.endswith("layer_scalar"):  # the last norm cancels most of the last one
            p.data = kept / 10
        else:
            p.data = kept + kept.abs().mean() * torch.randn(kept.shape, dtype=kept.dtype)
        differs = (logits(model, tokens) - usual).abs().max().item()
        p.data = kept
        silent = any(name == n and label.endswith(l) for n, l in SILENT)
        if (differs > LEAST) == silent:
            print(f"  {label}: {differs:.3g}  WRONG")
            bad += 1
    return bad
