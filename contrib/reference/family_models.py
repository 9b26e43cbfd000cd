"""The small models of families.py: a config for each, and how their files are spelled.

The numbers of a config are unequal on purpose, so that a width that is taken for another one does
not fit.  Windows and trained lengths are shorter than the prompts.
"""
from dataclasses import dataclass, field

SMALL = {
    "vocab_size": 40,
    "hidden_size": 32,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5,
    "layer_norm_eps": 1e-5,
    "norm_eps": 1e-5,
    "norm_epsilon": 1e-5,
    "layer_norm_epsilon": 1e-5,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": None,
    "tie_word_embeddings": False,
}


@dataclass
class Model:
    """A model's type, the type of its numbers, and what its config has besides SMALL."""
    kind: str
    number: str = "bf16"
    changes: dict = field(default_factory=dict)
    rope: dict | None = None
    tensors_of: str | None = None   # another model with the same tensors
    spelling: str = "new"           # of config.json: a key of SPELLINGS, "new" is that of today
    names: str = "new"              # of the tensors: also a key of RENAMED
    shard: str = "1MB"
    in_gguf: bool = True
    remote: str | None = None       # the family, if its code is not a part of transformers
    wrapper: str | None = None      # the class whose text part this is, if not that of its kind


def plain(theta, **more):
    return {"rope_type": "default", "rope_theta": theta} | more


def layers(pattern, times=2):
    """"wwf" twice: two windowed layers, a full one, and again."""
    words = {"w": "sliding_attention", "f": "full_attention", "a": "attention"}
    return [words[letter] for letter in pattern * times]


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64, "rope_theta": 1000.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32,
        "beta_fast": 0.8, "beta_slow": 0.11, "rope_theta": 1000.0}
LINEAR = {"rope_type": "linear", "factor": 3.0, "rope_theta": 1000.0}


def longrope(trained):
    return {"rope_type": "longrope", "rope_theta": 1000.0,
            "original_max_position_embeddings": trained,
            "short_factor": [1.0, 1.25, 1.5, 2.0], "long_factor": [1.0, 2.5, 6.0, 10.0]}


TIED = {"tie_word_embeddings": True}
WINDOW_OF_QWEN = {"use_sliding_window": True, "sliding_window": 7, "max_window_layers": 1}
BIASES = {"attention_bias": True, "mlp_bias": True}

NEAR_LLAMA = {
    "llama-mha": Model("llama", "f16", {"num_key_value_heads": 4}, plain(10000.0)),
    "llama": Model("llama", rope=plain(1000.0)),
    "llama-3": Model("llama", rope=LLAMA3, tensors_of="llama", spelling="old"),
    "llama-linear": Model("llama", rope=LINEAR, tensors_of="llama", spelling="old"),
    "llama-yarn": Model("llama", rope=YARN, tensors_of="llama"),
    "llama-biases": Model("llama", "f32", BIASES | TIED | {"hidden_size": 24,
                                                           "num_key_value_heads": 1},
                          plain(10000.0)),
    "mistral": Model("mistral", changes={"sliding_window": 9}, rope=plain(1000.0),
                     tensors_of="llama", spelling="old"),
    "qwen2": Model("qwen2", rope=plain(100.0)),
    "qwen2-tied": Model("qwen2", "f16", TIED | {"num_key_value_heads": 1},
                        YARN | {"attention_factor": 1.5}, spelling="old"),
    # a GGUF has no key for a window in the last layers alone
    "qwen2-window": Model("qwen2", changes=WINDOW_OF_QWEN, rope=plain(100.0), tensors_of="qwen2",
                          in_gguf=False),
    "qwen3": Model("qwen3", changes={"head_dim": 12}, rope=plain(1000.0), shard="16KB"),
}

GRANITE = TIED | {"embedding_multiplier": 6.0, "residual_multiplier": 0.4,
                  "attention_multiplier": 0.5, "logits_scaling": 0.5}
# Without experts, so that the shared part is the whole feed-forward part.
GRANITE4 = GRANITE | {"layer_types": layers("a"), "num_local_experts": 0, "num_experts_per_tok": 0,
                      "shared_intermediate_size": 24, "mamba_n_heads": 8, "mamba_d_state": 4}
PARTIAL = {"partial_rotary_factor": 0.5}
OLMO3 = {"intermediate_size": 12, "sliding_window": 7, "layer_types": layers("wwwf")}
GEMMA2 = TIED | {"head_dim": 12, "num_hidden_layers": 4, "query_pre_attn_scalar": 12,
                 "sliding_window": 7, "attn_logit_softcapping": 2.0,
                 "final_logit_softcapping": 3.0}
GEMMA3 = TIED | {"intermediate_size": 12, "head_dim": 12, "query_pre_attn_scalar": 12,
                 "sliding_window": 7, "layer_types": layers("wwf")}
ROPES_OF_GEMMA3 = {"sliding_attention": plain(100.0), "full_attention": LINEAR | {"factor": 8.0}}

DENSE = {
    "phi3": Model("phi3", changes={"sliding_window": 9}, rope=plain(1000.0), spelling="old"),
    "phi3-partial": Model("phi3", "f16", TIED, plain(1000.0, partial_rotary_factor=0.75),
                          spelling="old"),
    "phi3-long-short": Model("phi3", changes={"original_max_position_embeddings": 64},
                             rope=longrope(64), tensors_of="phi3", spelling="old"),
    "phi3-long": Model("phi3", changes={"original_max_position_embeddings": 8},
                       rope=longrope(8), tensors_of="phi3"),
    "glm": Model("glm", changes={"head_dim": 8, "attention_bias": True},
                 rope=plain(1000.0) | PARTIAL, spelling="old"),
    "glm4": Model("glm4", changes={"head_dim": 8, "attention_bias": True},
                  rope=plain(1000.0) | PARTIAL),
    "olmo": Model("olmo", changes={"clip_qkv": 0.8}, rope=plain(1000.0), spelling="old"),
    "olmo2": Model("olmo2", rope=plain(1000.0), spelling="old"),
    # transformers takes 500000 for windowed layers if the file has the older keys
    "olmo3": Model("olmo3", changes=OLMO3, spelling="old",
                   rope={"sliding_attention": plain(500000.0),
                         "full_attention": YARN | {"rope_theta": 500000.0, "factor": 16.0,
                                                   "beta_fast": 0.15, "beta_slow": 0.01}}),
    # llama.cpp has one base for all layers of OLMo 3
    "olmo3-ropes": Model("olmo3", changes=OLMO3, tensors_of="olmo3", in_gguf=False,
                         rope={"sliding_attention": plain(100.0), "full_attention": YARN}),
    "granite": Model("granite", changes=GRANITE, rope=plain(1000.0), spelling="old"),
    "granite-bias": Model("granite", "f16", GRANITE | BIASES | {"tie_word_embeddings": False},
                          plain(1000.0)),
    "granite4-dense": Model("granitemoehybrid",
                            changes=GRANITE4 | {"position_embedding_type": "rope"},
                            rope=plain(1000.0)),
    "granite4-dense-nope": Model("granitemoehybrid",
                                 changes=GRANITE4 | {"position_embedding_type": "nope"},
                                 rope=plain(1000.0), tensors_of="granite4-dense"),
    "smollm3": Model("smollm3", changes=TIED | {"intermediate_size": 12, "num_hidden_layers": 8,
                                                "no_rope_layers": [1, 1, 1, 0] * 2},
                     rope=plain(1000.0), spelling="old"),
    "gemma": Model("gemma", "f16", TIED | {"head_dim": 12}, plain(1000.0), spelling="old"),
    "gemma2": Model("gemma2", changes=GEMMA2, rope=plain(1000.0), spelling="old"),
    # a GGUF has no key for the scale of scores in Gemma 2 and 3
    "gemma2-scale": Model("gemma2", changes=GEMMA2 | {"query_pre_attn_scalar": 4},
                          rope=plain(1000.0), spelling="old", tensors_of="gemma2", in_gguf=False),
    "gemma3": Model("gemma3_text", changes=GEMMA3, rope=ROPES_OF_GEMMA3, spelling="old"),
    "gemma3-scale": Model("gemma3_text", changes=GEMMA3 | {"query_pre_attn_scalar": 4},
                          rope=ROPES_OF_GEMMA3, tensors_of="gemma3", in_gguf=False),
}

ROPES_OF_GEMMA4 = {"sliding_attention": plain(10000.0),
                   "full_attention": {"rope_type": "proportional", "rope_theta": 1000000.0,
                                      "partial_rotary_factor": 0.5}}
# A norm cancels a scale before it.  The large eps makes these scales matter.
GEMMA4 = TIED | {"rms_norm_eps": 0.1, "head_dim": 8, "global_head_dim": 16, "sliding_window": 7,
                 "pad_token_id": 0, "final_logit_softcapping": 3.0,
                 "hidden_size_per_layer_input": 0}
# In full layers, V is made of the product that K is made of.
GEMMA4_DENSE = GEMMA4 | {"num_global_key_value_heads": 1, "attention_k_eq_v": True}
# The last layers have neither K nor V, and a feed-forward part that is twice as wide.  Before them
# come a windowed layer and a full one, as in published models: llama.cpp takes K and V of these.
GEMMA4_E = GEMMA4 | {"intermediate_size": 12, "hidden_size_per_layer_input": 8,
                     "vocab_size_per_layer_input": 40, "num_kv_shared_layers": 3,
                     "use_double_wide_mlp": True}
WIDE = {"hidden_size": 64, "intermediate_size": 16, "head_dim": 32, "global_head_dim": 64}

GEMMA4_MODELS = {
    "gemma4": Model("gemma4_text", changes=GEMMA4_DENSE | {"layer_types": layers("wwf")},
                    rope=ROPES_OF_GEMMA4, spelling="global"),
    # as transformers 5.24 stores it: sizes of full layers by layer
    "gemma4-by-layer": Model("gemma4_text", changes=GEMMA4_DENSE | {"layer_types": layers("wwf")},
                             rope=ROPES_OF_GEMMA4, tensors_of="gemma4", in_gguf=False),
    "gemma4-e": Model("gemma4_text", changes=GEMMA4_E | {"layer_types": layers("wwwfwwf", 1)},
                      rope=ROPES_OF_GEMMA4, spelling="global"),
    "gemma4-wide": Model("gemma4_text",
                         changes=GEMMA4_DENSE | WIDE | {"layer_types": layers("wwf", 1)},
                         rope=ROPES_OF_GEMMA4, spelling="global", in_gguf=False),
    "gemma4-e-wide": Model("gemma4_text", changes=GEMMA4_E | WIDE | {
        "num_attention_heads": 2, "num_key_value_heads": 1, "num_kv_shared_layers": 2,
        "layer_types": layers("wwfwf", 1)}, rope=ROPES_OF_GEMMA4, spelling="global", in_gguf=False),
}

MINISTRAL3 = YARN | {"original_max_position_embeddings": 16, "factor": 8.0, "mscale": 1.0,
                     "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.5}
VISION_SIZES = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
                "num_attention_heads": 2, "image_size": 28, "patch_size": 14}
# The parts of a wrapper that are not the text model.
VISION = {
    "Gemma3ForConditionalGeneration": {"vision_config": VISION_SIZES, "mm_tokens_per_image": 1,
                                       "image_token_index": 50},
    "Mistral3ForConditionalGeneration": {"vision_config": VISION_SIZES | {"head_dim": 8},
                                         "image_token_index": 50},
    "Gemma4ForConditionalGeneration": {
        "vision_config": {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
                          "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8,
                          "patch_size": 2, "pooling_kernel_size": 1, "position_embedding_size": 8},
        "image_token_id": 50, "video_token_id": 51, "audio_token_id": 52},
}

WRAPPED = {
    # published configs say neither the layers' kinds nor the bases
    "gemma3-wrapped": Model(
        "gemma3_text", changes=GEMMA3 | {"layer_types": layers("wwwwwf", 1)},
        rope={"sliding_attention": plain(10000.0), "full_attention": plain(1000000.0)},
        wrapper="Gemma3ForConditionalGeneration", names="inner"),
    # the eps of published models, and their tensors of K and V that no layer uses
    "gemma4-wrapped": Model("gemma4_text", changes=GEMMA4_E | {
        "rms_norm_eps": 1e-6, "hidden_size": 40, "num_attention_heads": 2,
        "num_key_value_heads": 1, "num_kv_shared_layers": 2, "layer_types": layers("wf", 3)},
        rope=ROPES_OF_GEMMA4, spelling="global", wrapper="Gemma4ForConditionalGeneration",
        names="unused"),
    "ministral3": Model("ministral3", changes={"head_dim": 12}, rope=MINISTRAL3),
    "mistral3": Model("mistral", changes={"head_dim": 12, "sliding_window": None},
                      rope=plain(1000.0), wrapper="Mistral3ForConditionalGeneration",
                      spelling="old"),
}

COHERE = TIED | {"logit_scale": 0.3}
EXAONE4 = {"intermediate_size": 12, "head_dim": 8, "sliding_window": 7,
           "sliding_window_pattern": "LLLG", "layer_types": layers("wwwf")}
POST_NORMS = {
    "cohere": Model("cohere", changes=COHERE, rope=plain(1000.0), spelling="old"),
    # llama.cpp knows these norms in models of 64 layers and more
    "cohere-norms": Model("cohere", "f16", COHERE | {"use_qk_norm": True, "attention_bias": True},
                          plain(1000.0), in_gguf=False),
    "cohere2": Model("cohere2", changes=COHERE | {"intermediate_size": 12, "sliding_window": 7,
                                                  "layer_types": layers("wwwf")},
                     rope=plain(1000.0), spelling="old"),
    # llama.cpp knows windows in models of 64 layers alone
    "exaone4": Model("exaone4", changes=EXAONE4, rope=plain(1000.0), spelling="old",
                     in_gguf=False),
    "exaone4-full": Model("exaone4", changes={
        "sliding_window": None, "layer_types": layers("f"), "head_dim": 8}, rope=LLAMA3),
    "nemotron": Model("nemotron", changes={"head_dim": 8}, rope=plain(1000.0) | PARTIAL,
                      spelling="old"),
    "nemotron-bias": Model("nemotron", "f16", BIASES, plain(1000.0) | PARTIAL),
    "seed_oss": Model("seed_oss", changes={"attention_bias": True, "head_dim": 12},
                      rope=plain(1000.0), spelling="old"),
    "stablelm": Model("stablelm", changes={"use_qkv_bias": True}, rope=plain(1000.0) | PARTIAL,
                      spelling="old"),
    "stablelm-parallel": Model("stablelm", changes={
        "use_parallel_residual": True, "qk_layernorm": True}, rope=plain(1000.0) | PARTIAL),
}

FALCON = TIED | {"ffn_hidden_size": 48}
NEW_FALCON = FALCON | {"new_decoder_architecture": True, "num_kv_heads": 2}
SIX_HEADS = {"hidden_size": 24, "num_attention_heads": 6}
OLDER = {
    "gpt2": Model("gpt2", changes=TIED | {"n_inner": 24}, names="bare with buffers"),
    "gptj": Model("gptj", changes={"n_inner": 24, "rotary_dim": 4}),
    # two heads in each of the four parts of the tensor of Q, V and K
    "codegen": Model("codegen", changes={"hidden_size": 64, "num_attention_heads": 8, "n_inner": 24,
                                         "rotary_dim": 4}, names="buffers"),
    "gpt_neox": Model("gpt_neox", rope=plain(1000.0) | PARTIAL, spelling="old", names="buffers"),
    "gpt_neox-serial": Model("gpt_neox", changes={"use_parallel_residual": False},
                             tensors_of="gpt_neox",
                             rope=plain(1000.0) | PARTIAL),
    "falcon": Model("falcon", changes=FALCON, rope=plain(1000.0), spelling="old"),
    "falcon-new": Model("falcon", changes=NEW_FALCON, rope=plain(1000.0)),
    "falcon-new-one": Model("falcon", changes=NEW_FALCON | {"num_ln_in_parallel_attn": 1},
                            rope=plain(1000.0), spelling="old"),
    # the slopes of four heads times these positions are bfloats, to which transformers rounds them
    "falcon-rw": Model("falcon", changes=TIED | {
        "hidden_size": 24, "alibi": True, "multi_query": False, "parallel_attn": False,
        "bias": True}, rope=plain(1000.0), spelling="old", in_gguf=False),
    "starcoder2": Model("starcoder2", changes=TIED | {"sliding_window": 9}, rope=plain(1000.0),
                        spelling="old"),
    "gpt_bigcode": Model("gpt_bigcode", changes=TIED | {"n_inner": 24}),
    # transformers takes no notice of expansion_ratio and alibi_bias_max: 4 and 8 in published files
    "mpt": Model("mpt", changes=TIED | {"hidden_size": 24, "max_seq_len": 128}),
    "mpt-clip": Model("mpt", changes=TIED | SIX_HEADS | {
        "max_seq_len": 128, "attn_config": {"clip_qkv": 0.8}}),
    "bloom": Model("bloom", changes=TIED | {"hidden_size": 24, "n_head": 6}, names="bare"),
    "opt": Model("opt", changes=TIED | {"ffn_dim": 24}),
    # of 350M: norms behind the sums, and tokens of another width than the stream
    "opt-350m": Model("opt", "f16", TIED | {"ffn_dim": 24, "do_layer_norm_before": False,
                                            "word_embed_proj_dim": 20}),
    "phi": Model("phi", changes={"num_key_value_heads": 4}, rope=plain(1000.0) | PARTIAL,
                 spelling="old"),
    "phi-norms": Model("phi", changes={"qk_layernorm": True}, rope=plain(1000.0) | PARTIAL,
                       in_gguf=False),
    "xglm": Model("xglm", changes=TIED | {"ffn_dim": 24}),
}

DEEP = {"hidden_size": 16, "intermediate_size": 12, "num_attention_heads": 2,
        "num_key_value_heads": 2}
REMOTE = {
    "internlm2": Model("llama", rope=plain(1000.0), spelling="old", remote="internlm2"),
    # llama.cpp takes 32 layers for 7B, 40 for 13B, and knows no position of others
    "baichuan": Model("llama", changes=DEEP | {"num_hidden_layers": 32}, rope=plain(10000.0),
                      spelling="old", remote="baichuan"),
    "baichuan-13b": Model("llama", changes=DEEP | {"num_hidden_layers": 40}, rope=plain(10000.0),
                          spelling="old", remote="baichuan-13b"),
    # only a vocabulary of 125696 tokens tells that a GGUF is one
    "baichuan2": Model("llama", changes={"num_key_value_heads": 4}, rope=plain(10000.0),
                       spelling="old", remote="baichuan2", in_gguf=False, number="f32"),
    "internlm": Model("llama", changes={"num_key_value_heads": 4, "attention_bias": True},
                      rope=plain(1000.0), spelling="old", remote="internlm", in_gguf=False),
    "mimo": Model("qwen2", rope=plain(1000.0), spelling="old", remote="mimo", in_gguf=False),
    "pangu": Model("llama", "f16", {"attention_bias": True}, plain(1000.0), spelling="old",
                   remote="pangu"),
    "qwen": Model("qwen2", changes={"num_key_value_heads": 4}, rope=plain(100.0), spelling="old",
                  remote="qwen"),
}

MODELS = NEAR_LLAMA | DENSE | GEMMA4_MODELS | WRAPPED | POST_NORMS | OLDER | REMOTE
