"""What Gemma 4 has besides other families: keys of GGUF files, and traits without a setting."""
import re

import numpy
import torch


def head_dim(config, kind):
    return config.per_layer_config[kind].head_dim


def kv_heads(config):
    """A number, or a list if full layers have another number than windowed ones."""
    of_kind = {kind: config.per_layer_config[kind].num_key_value_heads
               for kind in ("sliding_attention", "full_attention")}
    if of_kind["sliding_attention"] == of_kind["full_attention"]:
        return of_kind["full_attention"]
    return [of_kind[kind] for kind in config.layer_types]


def wide(config):
    """A number, or a list if layers that share K and V are twice as wide."""
    if not config.use_double_wide_mlp:
        return config.intermediate_size
    return [config.intermediate_size * (2 if mode == "reuse" else 1)
            for mode in config.kv_sharing_modes]


def still_pairs(config):
    """Factors that the angles of full layers are divided by: pairs that do not turn have 1e30."""
    pairs = head_dim(config, "full_attention") // 2
    turning = int(config.rope_parameters["full_attention"]["partial_rotary_factor"] * pairs)
    return numpy.array([1.0] * turning + [1e30] * (pairs - turning), dtype=numpy.float32)


def write_keys(w, config):
    width = head_dim(config, "sliding_attention")
    w.add_key_length_swa(width)
    w.add_value_length_swa(width)
    w.add_rope_dimension_count_swa(width)
    w.add_shared_kv_layers(config.num_kv_shared_layers)
    w.add_embedding_length_per_layer_input(config.hidden_size_per_layer_input)
    w.add_tensor("rope_freqs.weight", still_pairs(config))


def unused(tensors):
    """{name: tensor} of K and V of layers that share those of others.

    The first published files of E2B and E4B have these for all layers, and so have GGUF files of
    them.  transformers neither reads nor stores them.
    """
    out, generator = {}, torch.Generator().manual_seed(4)
    first = next(name for name in tensors if name.endswith("layers.0.self_attn.k_proj.weight"))
    heads = len(tensors[first]) // len(tensors[first.replace("k_proj", "k_norm")])
    for name in tensors:
        found = re.match(r"(.*\.layers\.\d+\.self_attn\.)q_norm\.weight", name)
        if found and f"{found[1]}k_proj.weight" not in tensors and "vision" not in name:
            width, inputs = len(tensors[name]), tensors[f"{found[1]}q_proj.weight"].shape[1]
            for part, shape in (("k_proj", (heads * width, inputs)),
                                ("v_proj", (heads * width, inputs)), ("k_norm", (width,))):
                out[f"{found[1]}{part}.weight"] = torch.randn(shape, generator=generator).to(
                    torch.bfloat16)
    return out


# ---------------------------------------------------------------- traits


def text_model(model):
    return getattr(model.model, "language_model", model.model)


def attentions(model):
    return [layer.self_attn for layer in text_model(model).layers]


def scale_scores(model):
    for attention in attentions(model):
        attention.scaling = attention.head_dim ** -0.5


def take_values_as_they_are(model):
    for attention in attentions(model):
        attention.v_norm = torch.nn.Identity()


def take_values_of_normed_keys(model):
    for attention in attentions(model):
        if attention.use_alternative_attention:
            attention.v_norm = torch.nn.Sequential(attention.k_norm, attention.v_norm)


def share_of_first_layers(kind):
    """Shared layers take K and V of the first layer of their kind, instead of the last."""
    def change(model):
        own = [a for a in attentions(model) if a.layer_type == kind and not a.is_kv_shared_layer]
        for attention in own:
            attention.store_full_length_kv = attention is own[0]
    return change


def gate_layers_by(activation):
    def change(model):
        for layer in text_model(model).layers:
            layer.act_fn = activation
    return change


def set_buffer(name, value):
    return lambda model: text_model(model).get_submodule(name).embed_scale.fill_(value)


def traits(model):
    """(label, change of the model) for each trait of Gemma 4 that its config does not set."""
    config = model.config.get_text_config()
    if config.model_type != "gemma4_text":
        return
    yield "scale of scores", scale_scores
    yield "norm of V", take_values_as_they_are
    yield "scale of embeddings", set_buffer("embed_tokens", 1)
    if config.attention_k_eq_v:
        yield "V before the norm of K", take_values_of_normed_keys
    if config.hidden_size_per_layer_input:
        yield "scale of embeddings by layer", set_buffer("embed_tokens_per_layer", 1)
        for name in ("per_layer_input_scale", "per_layer_model_projection_scale"):
            yield name, lambda changed, name=name: setattr(text_model(changed), name, 1)
        yield "gate of inputs by layer", gate_layers_by(torch.nn.ReLU())
    own = [a.layer_type for a in attentions(model) if not a.is_kv_shared_layer]
    for kind in sorted(set(own)) if config.num_kv_shared_layers else ():
        if own.count(kind) > 1:
            yield f"{kind} shared of the last", share_of_first_layers(kind)
