/*
 * Reads traits from GGUF metadata.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/files/gguf-families.h"
#include "daemon/files/gguf.h"
#include "daemon/files/trait-reader.h"

/* Keys that would change the results and are not implemented. */
static const struct refusal refusals[] = {
        { ".expert_count", 0 },
        { ".attention.sliding_window_pattern", 0 },
        { ".attention.scale", 0 },
        { ".attention.output_scale", 0 },
        { ".attention.clamp_kqv", 0 },
        { ".attention.max_alibi_bias", 0 },
        { ".attention.temperature_length", 0 },
        { ".attention.temperature_scale", 0 },
        { ".attn_logit_softcapping", 0 },
        { ".final_logit_softcapping", 0 },
        { ".logit_scale", 1 },
        { ".residual_scale", 1 },
        { ".embedding_scale", 1 },
        { ".rope.dimension_sections", 0 },
        { ".rope.scaling.alpha", 1 },
        { ".rope.scaling.yarn_log_multiplier", 0 },
};

static bool pair_find(struct trait_reader *rd)
{
        return gguf_has(rd->from, rd->key);
}

static bool pair_whole(const struct trait_reader *rd, uint32_t *ret_value)
{
        struct gguf_array array;
        uint32_t value;

        if (gguf_u32(rd->from, rd->key, ret_value))
                return true;
        /* one number for each layer, all of them the same */
        if (!gguf_array(rd->from, rd->key, &array) || !gguf_next_u32(&array, ret_value))
                return false;
        while (gguf_next_u32(&array, &value))
                if (value != *ret_value)
                        return false;
        return !array.left;
}

static bool pair_real(const struct trait_reader *rd, double *ret_value)
{
        float value;

        if (!gguf_f32(rd->from, rd->key, &value))
                return false;
        *ret_value = (double)value;
        return true;
}

static bool pair_flag(const struct trait_reader *rd, bool *ret_value)
{
        return gguf_bool(rd->from, rd->key, ret_value);
}

static const char *pair_text(const struct trait_reader *rd)
{
        return gguf_string(rd->from, rd->key);
}

static const struct trait_source metadata = { "metadata", pair_find, pair_whole,
                                              pair_real,  pair_flag, pair_text };

static const struct gguf_family *read_family(struct trait_reader *rd)
{
        const char *name = gguf_string(rd->from, "general.architecture");
        const struct gguf_family *family = name ? gguf_family_of(name) : NULL;

        if (name && !family)
                trait_reader_fault(rd, "architecture '%s' is not supported yet", shown(name).text);
        else if (!name)
                trait_reader_fault(rd,
                                   "metadata 'general.architecture' is missing or not a string");
        return family;
}

/*
 * A number for all layers, or a list with one for each: then `field` of each layer is set, and the
 * largest is returned.
 */
static uint32_t read_by_layer(struct trait_reader *rd, struct traits *t, const char *key,
                              uint32_t high, const uint32_t *absent,
                              uint32_t *(*field)(struct layer_traits *layer))
{
        struct gguf_array array;
        uint32_t value, most = 1;

        if (!trait_reader_has(rd, key) || !gguf_array(rd->from, rd->key, &array))
                return trait_reader_whole(rd, key, 1, high, absent);
        if (array.left != t->layers) {
                trait_reader_fault(rd, "metadata '%s' is not a list for %" PRIu32 " layers",
                                   rd->key, t->layers);
                return 1;
        }
        if (pair_whole(rd, &value))
                return trait_reader_whole(rd, key, 1, high, absent);
        for (uint32_t i = 0; i < t->layers; i++) {
                if (!gguf_next_u32(&array, &value) || !value || value > high) {
                        trait_reader_fault(rd,
                                           "metadata '%s' has a value for layer %" PRIu32
                                           " that is not between 1 and %" PRIu32,
                                           rd->key, i, high);
                        return 1;
                }
                *field(&t->layer[i]) = value;
                most = value > most ? value : most;
        }
        return most;
}

static uint32_t *kv_heads_of(struct layer_traits *layer)
{
        return &layer->kv_heads;
}

static uint32_t *ffn_of(struct layer_traits *layer)
{
        return &layer->ffn;
}

/* Absent: linear, the only kind before this key existed. */
static enum rope_scaling read_scaling(struct trait_reader *rd)
{
        const char *name = trait_reader_text(rd, ".rope.scaling.type");

        if (!name || !strcmp(name, "linear"))
                return ROPE_LINEAR;
        if (!strcmp(name, "yarn"))
                return ROPE_YARN;
        if (strcmp(name, "none") && (strcmp(name, "longrope") || strcmp(rd->prefix, "phi3")))
                trait_reader_fault(rd, "metadata '%s' is '%s', which is not supported yet", rd->key,
                                   shown(name).text);
        return ROPE_PLAIN;
}

/* The stretch factor, under its key or the old one.  0 means that nothing is stretched. */
static double read_stretch(struct trait_reader *rd)
{
        static const double one = 1;
        const char *key = trait_reader_has(rd, ".rope.scaling.factor") ? ".rope.scaling.factor"
                                                                       : ".rope.scale_linear";
        double stretch = trait_reader_real(rd, key, 0, STRETCH_MAX, &one);

        if (stretch > 0 && stretch < 1)
                trait_reader_fault(rd, "metadata '%s' is %g, less than 1", rd->key, stretch);
        return stretch > 1 ? stretch : 1;
}

/*
 * YaRN's factor for cos and sin follows from the stretch, and is multiplied by attn_factor.  Files
 * may repeat the first in yarn_attn_factor.  If it has another value there, programs disagree on
 * its meaning, so that is not served.
 */
static void read_yarn(struct trait_reader *rd, struct rope_shape *rope)
{
        static const double slow = 1, fast = 32, ext = 1;
        double follows = rope_attention(rope->factor, 1), said;

        rope->whole = true;
        rope->low =
                trait_reader_real(rd, ".rope.scaling.yarn_beta_slow", TURNS_MIN, TURNS_MAX, &slow);
        rope->high =
                trait_reader_real(rd, ".rope.scaling.yarn_beta_fast", TURNS_MIN, TURNS_MAX, &fast);
        said = trait_reader_real(rd, ".rope.scaling.yarn_attn_factor", ATTENTION_MIN, ATTENTION_MAX,
                                 &follows);
        if (!(fabs(said - follows) < 1e-4))
                trait_reader_fault(rd, "metadata '%s' is %g, not %g as follows from the factor",
                                   rd->key, said, follows);
        said = trait_reader_real(rd, ".rope.scaling.yarn_ext_factor", -1, 1, &ext);
        if (said != 1 && said != -1) /* -1: not set */
                trait_reader_fault(rd, "metadata '%s' is %g: only 1 is supported", rd->key, said);
        rope->attention *= follows;
}

/* Llama 3's scaling has no keys here: it is stored as a table, 'rope_freqs.weight'. */
static void read_rope(struct trait_reader *rd, const struct gguf_family *family, struct traits *t)
{
        static const double base = 10000, one = 1;
        struct rope_shape *rope = &t->ropes[0];

        for (uint32_t i = 0; family->no_rope && i < t->layers; i++)
                t->layer[i].rope = TRAITS_NO_ROPE;
        if (family->no_rope)
                return;
        t->rope_count = 1;
        rope->pairing = family->pairing;
        rope->dims = trait_reader_whole(rd, ".rope.dimension_count", 0, t->head_dim, &t->head_dim);
        rope->base = trait_reader_real(rd, ".rope.freq_base", 1, ROPE_BASE_MAX, &base);
        rope->scaling = read_scaling(rd);
        rope->factor = read_stretch(rd);
        rope->trained = trait_reader_whole(rd, ".rope.scaling.original_context_length", 1,
                                           CONTEXT_MAX, &t->context);
        rope->attention = trait_reader_real(rd, ".rope.scaling.attn_factor", ATTENTION_MIN,
                                            ATTENTION_MAX, &one);
        if (rope->scaling == ROPE_YARN)
                read_yarn(rd, rope);
        else if (rope->factor == 1)
                rope->scaling = ROPE_PLAIN;
}

/* A list that says of each layer whether it has a window: of bytes, or of numbers. */
static void read_listed_windows(struct trait_reader *rd, struct traits *t, uint32_t window)
{
        struct gguf_array array;
        const char *bytes = NULL;
        uint32_t has = 0;

        if (!gguf_array(rd->from, rd->key, &array) || array.left != t->layers) {
                trait_reader_fault(rd, "metadata '%s' is not a list for %" PRIu32 " layers",
                                   rd->key, t->layers);
                return;
        }
        if (!gguf_bytes(&array, &bytes))
                bytes = NULL;
        for (uint32_t i = 0; i < t->layers; i++) {
                if (bytes)
                        has = (uint8_t)bytes[i];
                else if (!gguf_next_u32(&array, &has))
                        trait_reader_fault(rd, "metadata '%s' is not a list of true and false",
                                           rd->key);
                if (has)
                        t->layer[i].window = window;
        }
}

/* The pattern may be a list, or a number: each so-many-th layer has no window. */
static void read_windows(struct trait_reader *rd, const struct gguf_family *family,
                         struct traits *t)
{
        static const char pattern[] = ".attention.sliding_window_pattern";
        static const uint32_t no_window = 0;
        uint32_t window =
                trait_reader_whole(rd, ".attention.sliding_window", 0, CONTEXT_MAX, &no_window);
        uint32_t period = family->period, number;

        if (family->in_turns && trait_reader_take(rd, pattern) &&
            !gguf_u32(rd->from, rd->key, &number)) {
                read_listed_windows(rd, t, window);
                return;
        }
        if (family->in_turns)
                period = trait_reader_whole(rd, pattern, 1, LAYERS_MAX, &period);
        for (uint32_t i = 0; i < t->layers; i++)
                if (!family->in_turns || (i + 1) % period)
                        t->layer[i].window = window;
}

static void read_heads(struct trait_reader *rd, struct traits *t)
{
        t->heads = trait_reader_whole(rd, ".attention.head_count", 1, HEADS_MAX, NULL);
        t->kv_heads =
                read_by_layer(rd, t, ".attention.head_count_kv", HEADS_MAX, &t->heads, kv_heads_of);
        t->head_dim = trait_reader_head_dim(rd, ".attention.key_length", t);
}

static void read_vocabulary(struct trait_reader *rd, struct traits *t)
{
        static const char *const ends[] = {
                "tokenizer.ggml.eos_token_id",
                "tokenizer.ggml.eot_token_id",
                "tokenizer.ggml.eom_token_id",
        };
        const struct tensor *embedding = gguf_tensor(rd->from, "token_embd.weight");
        const uint32_t none = TRAITS_NO_TOKEN;
        uint32_t id;

        t->vocab = trait_reader_whole(rd, ".vocab_size", 2, VOCAB_MAX,
                                      embedding ? &embedding->rows : NULL);
        t->bos = trait_reader_whole(rd, "tokenizer.ggml.bos_token_id", 0, t->vocab - 1, &none);
        if (!trait_reader_flag(rd, "tokenizer.ggml.add_bos_token", true))
                t->bos = TRAITS_NO_TOKEN;
        for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
                id = trait_reader_whole(rd, ends[i], 0, t->vocab - 1, &none);
                if (id != TRAITS_NO_TOKEN)
                        traits_add_eos(rd, t, id);
        }
}

static void set_form(const struct gguf_family *family, struct traits *t)
{
        t->residual = family->residual;
        t->norm = family->norm == NORM_NONE ? NORM_RMS : family->norm;
        t->norm_weights = !family->no_norm_weights;
        t->norm_bias = family->norm_bias;
        t->pre_norms = !family->no_pre_norms;
        t->post_norms = family->post_norms;
        t->embed_norm = family->embed_norm ? MUST_BE_THERE : NOT_THERE;
        t->qkv_bias = family->qkv_bias;
        t->output_bias = family->output_bias;
        t->ffn_bias = family->ffn_bias;
        t->head_bias = family->head_bias;
        t->qk_norm = family->qk_norm;
        t->qk_norm_bias = NOT_THERE;
        t->qk_norm_kind = NORM_RMS;
        t->qk_norm_span = family->qk_span;
        t->rope_tables = NOT_THERE;
        t->layer_scale = NOT_THERE;
        t->gated = !family->plain;
        t->act = family->activation;
}

static void read_sizes(struct trait_reader *rd, struct traits *t)
{
        const char *eps = t->norm == NORM_RMS ? ".attention.layer_norm_rms_epsilon"
                                              : ".attention.layer_norm_epsilon";

        t->layers = trait_reader_whole(rd, ".block_count", 1, LAYERS_MAX, NULL);
        t->width = trait_reader_whole(rd, ".embedding_length", 1, WIDTH_MAX, NULL);
        t->ffn = read_by_layer(rd, t, ".feed_forward_length", WIDTH_MAX, NULL, ffn_of);
        t->context = trait_reader_whole(rd, ".context_length", 1, CONTEXT_MAX, NULL);
        t->eps = (float)trait_reader_real(rd, eps, EPS_MIN, 1, NULL);
        read_heads(rd, t);
        (void)trait_reader_whole(rd, ".attention.value_length", t->head_dim, t->head_dim,
                                 &t->head_dim);
}

int gguf_traits(const struct gguf *gguf, struct traits *ret_traits, char *why, size_t why_bytes)
{
        struct trait_reader rd = {
                .kind = &metadata, .from = gguf, .why = why, .why_bytes = why_bytes
        };
        const struct gguf_family *family = read_family(&rd);
        struct traits t = { .embed_scale = 1, .residual_scale = 1, .head_scale = 1 };

        if (!family)
                return error_raise(rd.r);
        rd.prefix = family->name;
        set_form(family, &t);
        t.tied = !gguf_tensor(gguf, "output.weight");
        read_sizes(&rd, &t);
        read_windows(&rd, family, &t);
        read_rope(&rd, family, &t);
        read_vocabulary(&rd, &t);
        if (family->read)
                family->read(&rd, &t);
        trait_reader_refuse(&rd, refusals, sizeof(refusals) / sizeof(*refusals));
        traits_check(&rd, &t);
        if (rd.r)
                return error_raise(rd.r);
        *ret_traits = t;
        return 0;
}
