"""Models of families.py for the kernels for GPUs, which serve heads of 32 numbers and more.

NAME-wide has the traits of NAME, two heads of 32 numbers and two layers.  CodeGen has four heads,
one for each part of its tensor of Q, V and K, and one layer.  The models are stored in Hugging
Face's format alone, because the format makes no difference to the kernels.
"""
import dataclasses

from family_models import layers

HEADS, HEAD_DIM = 2, 32
# One model of each row of the table in docs/reference/models.md.
NAMES = [
    "llama", "mistral", "ministral3", "qwen2", "qwen3", "phi3", "glm", "glm4", "olmo", "olmo2",
    "olmo3", "granite", "smollm3", "gemma", "gemma2", "gemma3", "cohere", "cohere2", "exaone4",
    "nemotron", "stablelm", "seed_oss", "baichuan", "baichuan-13b", "internlm2", "gpt2",
    "gpt_bigcode", "starcoder2", "gptj", "gpt_neox", "falcon", "mpt", "bloom", "opt", "phi", "xglm",
    # with operators that the model above does not use
    "qwen", "baichuan2", "codegen", "falcon-rw", "stablelm-parallel", "opt-350m",
]
# The configs of these kinds have no number of heads of K and V, or another key for it.
WITHOUT_GROUPS = {
    "codegen", "gpt2", "gpt_bigcode", "gptj", "gpt_neox", "falcon", "mpt", "bloom", "opt", "xglm",
}
# Two layers are enough for a pattern of two.
PATTERNS = {
    "layer_types": layers("wf", 1), "sliding_window_pattern": "LG", "no_rope_layers": [1, 0],
    "num_hidden_layers": 2,
}


def wide(model):
    changes = model.changes | {key: value for key, value in PATTERNS.items() if key in model.changes}
    if "head_dim" in changes:
        changes["head_dim"] = HEAD_DIM
    else:
        changes["hidden_size"] = HEADS * HEAD_DIM
    changes.pop("n_head", None)
    changes["num_attention_heads"] = HEADS
    if model.kind == "codegen":
        changes |= {"num_attention_heads": 4, "hidden_size": 4 * HEAD_DIM, "num_hidden_layers": 1}
    if model.kind == "falcon":
        changes.setdefault("ffn_hidden_size", 48)
    if model.kind not in WITHOUT_GROUPS:
        every = changes.get("num_key_value_heads") == 4  # all heads have their own K and V
        changes["num_key_value_heads"] = HEADS if every else 1
    number = "f32" if model.remote == "baichuan2" else "bf16"  # the daemon rounds the divided head
    return dataclasses.replace(model, changes=changes, number=number, tensors_of=None,
                               shard="1MB", in_gguf=False,
                               spelling="old" if model.remote else "new")


def product_of(name):
    """The usual size of a product.  Wide heads have larger scores, which would multiply rounding."""
    return 1.0 if name.endswith("-wide") else 1.4


def add(models):
    models.update({f"{name}-wide": wide(models[name]) for name in NAMES})
