#include "daemon/files/tensor-names.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define LAYER_DIGITS_MAX 9u

struct renaming {
        const char *from, *to; /* NULL: left out */
};

/* After "model.", which a model saved without its head lacks. */
static const struct renaming outside[] = {
        { "embed_tokens.weight", "token_embd.weight" },
        { "norm.weight", "output_norm.weight" },
        { "lm_head.weight", "output.weight" },
};

/* After "layers.N." and "blk.N.". */
static const struct renaming inside[] = {
        { "input_layernorm.weight", "attn_norm.weight" },
        { "self_attn.q_proj.weight", "attn_q.weight" },
        { "self_attn.q_proj.bias", "attn_q.bias" },
        { "self_attn.q_norm.weight", "attn_q_norm.weight" },
        { "self_attn.k_proj.weight", "attn_k.weight" },
        { "self_attn.k_proj.bias", "attn_k.bias" },
        { "self_attn.k_norm.weight", "attn_k_norm.weight" },
        { "self_attn.v_proj.weight", "attn_v.weight" },
        { "self_attn.v_proj.bias", "attn_v.bias" },
        { "self_attn.o_proj.weight", "attn_output.weight" },
        { "self_attn.o_proj.bias", "attn_output.bias" },
        { "self_attn.rotary_emb.inv_freq", NULL }, /* computed from config.json */
        { "post_attention_layernorm.weight", "ffn_norm.weight" },
        { "mlp.gate_proj.weight", "ffn_gate.weight" },
        { "mlp.gate_proj.bias", "ffn_gate.bias" },
        { "mlp.up_proj.weight", "ffn_up.weight" },
        { "mlp.up_proj.bias", "ffn_up.bias" },
        { "mlp.down_proj.weight", "ffn_down.weight" },
        { "mlp.down_proj.bias", "ffn_down.bias" },
};

/* After the last dot: scales that other programs use to round activations. */
static const char *const rounding[] = {
        "input_scale", "activation_scale", "output_scale", "q_scale",
        "k_scale",     "v_scale",          "kv_scale",
};

static const struct renaming *find_renaming(const struct renaming *table, size_t count,
                                            const char *name, size_t bytes)
{
        for (size_t i = 0; i < count; i++)
                if (strlen(table[i].from) == bytes && !memcmp(table[i].from, name, bytes))
                        return &table[i];
        return NULL;
}

/* The number of digits in "layers.N.", without leading zeros; 0: another kind of name. */
static unsigned layer_digits(const char *name)
{
        unsigned n;

        if (strncmp(name, "layers.", 7))
                return 0;
        n = (unsigned)strspn(name + 7, "0123456789");
        if (!n || n > LAYER_DIGITS_MAX || name[7 + n] != '.' || (n > 1 && name[7] == '0'))
                return 0;
        return n;
}

/* Length of the suffix of a weight's scales; 0: not such a name. */
static size_t scales_ending(const char *name)
{
        const char *at = strstr(name, ".weight_scale");

        if (!at || (strcmp(at, ".weight_scale") && strcmp(at, ".weight_scale_inv")))
                return 0;
        return strlen(at + strlen(".weight"));
}

static bool is_for_rounding(const char *name)
{
        const char *dot = strrchr(name, '.');

        for (size_t i = 0; dot && i < sizeof(rounding) / sizeof(*rounding); i++)
                if (!strcmp(dot + 1, rounding[i]))
                        return true;
        return false;
}

bool tensor_name_canonical(const char *name, char *ret_name)
{
        const char *rest = strncmp(name, "model.", 6) ? name : name + 6;
        unsigned digits = layer_digits(rest);
        size_t ending = scales_ending(rest), bytes = strlen(rest) - ending;
        const struct renaming *r;
        int n;

        if (is_for_rounding(name))
                return false;
        if (digits)
                r = find_renaming(inside, sizeof(inside) / sizeof(*inside), rest + 7 + digits + 1,
                                  bytes - (7 + digits + 1));
        else
                r = find_renaming(outside, sizeof(outside) / sizeof(*outside), rest, bytes);
        if (r && !r->to)
                return false;
        if (!r)
                n = sprintf(ret_name, "%s", name);
        else if (digits)
                n = sprintf(ret_name, "blk.%.*s.%s%s", (int)digits, rest + 7, r->to, rest + bytes);
        else
                n = sprintf(ret_name, "%s%s", r->to, rest + bytes);
        assert((size_t)n <= strlen(name) + TENSOR_NAME_GROWTH_MAX);
        return true;
}
