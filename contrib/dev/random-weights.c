/*
 * random-weights OUT.gguf SHAPE [--type TYPE] [--seed N]
 *
 * Writes a model of a real one's shape with random weights: as large and as fast as the real one,
 * but its output means nothing.  It is for measuring, where the real one is not available.  The
 * same arguments give the same bytes.
 *
 *      SHAPE   tiny, llama-3.2-1b, qwen3-0.6b, qwen2.5-7b, gemma-3-4b, phi-4-mini
 *      TYPE    F32, F16, BF16, Q8_0, Q4_0, ... in capitals: of all matrices
 *              f32, f16, bf16, q8_0, q4_0, q4_k_m ... in small letters: as quantising programs mix
 *              them, which mostly give more bits to the head
 *
 * Numbers are so large that the layers' output outweighs the token's own embedding, and a norm
 * follows before it goes on.  So nothing grows without bound.  Although the head is the embedding,
 * no token predicts itself.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/dev/gguf-out.h"
#include "contrib/dev/random-weights-rows.h"
#include "contrib/dev/random-weights-words.h"
#include "kernels/kernels.h"

static const struct shape {
        const char *name, *architecture, *splitter;
        uint32_t layers, width, ffn, heads, kv_heads, head_dim;
        uint32_t vocab, controls, context;
        float base, eps;
        bool tied, biases, head_norms, slowed; /* slowed: with Llama 3's rope factors */
        bool post_norms;                       /* of what each branch adds */
        bool fused;       /* one tensor for Q, K and V, one for gate and `up`; LongRoPE's tables */
        uint32_t window;  /* in some layers, as the architecture says; 0: none */
        uint32_t turning; /* numbers of a head that rotate; 0: all */
} shapes[] = {
        { "tiny", "llama", "llama-bpe", 2, 256, 512, 4, 2, 64, 1024, 16, 32768, 500000, 1e-5f,
          .tied = true, .slowed = true },
        { "llama-3.2-1b", "llama", "llama-bpe", 16, 2048, 8192, 32, 8, 64, 128256, 256, 131072,
          500000, 1e-5f, .tied = true, .slowed = true },
        { "qwen3-0.6b", "qwen3", "qwen2", 28, 1024, 3072, 16, 8, 128, 151936, 293, 40960, 1000000,
          1e-6f, .tied = true, .head_norms = true },
        { "qwen2.5-7b", "qwen2", "qwen2", 28, 3584, 18944, 28, 4, 128, 152064, 421, 32768, 1000000,
          1e-6f, .biases = true },
        { "gemma-3-4b", "gemma3", "llama-bpe", 34, 2560, 10240, 8, 4, 256, 262208, 256, 131072,
          1000000, 1e-6f, .tied = true, .head_norms = true, .post_norms = true, .window = 1024 },
        { "phi-4-mini", "phi3", "llama-bpe", 32, 3072, 8192, 24, 8, 128, 200064, 256, 131072, 10000,
          1e-5f, .tied = true, .fused = true, .turning = 96 },
};

static const struct mixture {
        const char *name;
        enum row_type most, more, head; /* more: of V and down in some layers */
} mixtures[] = {
        { "f32", ROW_F32, ROW_F32, ROW_F32 },       { "f16", ROW_F16, ROW_F16, ROW_F16 },
        { "bf16", ROW_BF16, ROW_BF16, ROW_BF16 },   { "q8_0", ROW_Q8_0, ROW_Q8_0, ROW_Q8_0 },
        { "q4_0", ROW_Q4_0, ROW_Q4_0, ROW_Q6_K },   { "q4_1", ROW_Q4_1, ROW_Q4_1, ROW_Q6_K },
        { "q5_0", ROW_Q5_0, ROW_Q5_0, ROW_Q6_K },   { "q5_1", ROW_Q5_1, ROW_Q5_1, ROW_Q6_K },
        { "q4_k_m", ROW_Q4_K, ROW_Q6_K, ROW_Q6_K }, { "q5_k_m", ROW_Q5_K, ROW_Q6_K, ROW_Q6_K },
        { "q6_k", ROW_Q6_K, ROW_Q6_K, ROW_Q6_K },
};

/* llama.cpp's number for a file that is mostly of this type, or for the mixture of this name. */
static const uint32_t file_types[ROW_TYPE_N] = {
        [ROW_F32] = 0,      [ROW_F16] = 1,     [ROW_Q4_0] = 2,       [ROW_Q4_1] = 3,
        [ROW_Q8_0] = 7,     [ROW_Q5_0] = 8,    [ROW_Q5_1] = 9,       [ROW_Q2_K] = 10,
        [ROW_Q3_K] = 12,    [ROW_Q4_K] = 15,   [ROW_Q5_K] = 17,      [ROW_Q6_K] = 18,
        [ROW_IQ2_XXS] = 19, [ROW_IQ2_XS] = 20, [ROW_IQ3_XXS] = 23,   [ROW_IQ1_S] = 24,
        [ROW_IQ4_NL] = 25,  [ROW_IQ3_S] = 26,  [ROW_IQ2_S] = 28,     [ROW_IQ4_XS] = 30,
        [ROW_IQ1_M] = 31,   [ROW_BF16] = 32,   [ROW_TQ1_0] = 36,     [ROW_TQ2_0] = 37,
        [ROW_MXFP4] = 38,   [ROW_NVFP4] = 39,  [ROW_F8_E4M3] = 1024, /* it has none of its own */
};

struct random_weights {
        const struct shape *shape;
        struct mixture types;
        uint64_t seed;
        struct out out;
};

/* The code goes through the tensors three times: to count them, to announce them in the header, and
 * to write them. */
struct act {
        enum { COUNT, ANNOUNCE, WRITE } what;
        uint32_t index;
};

/* ---- tensors ---- */

static void tensor(struct random_weights *s, struct act *act, const char *name, uint32_t rows,
                   uint32_t columns, enum row_type type, double deviation)
{
        size_t bytes = row_bytes(type, columns);
        uint64_t dice = s->seed << 32 | act->index++;

        if (act->what == ANNOUNCE)
                out_tensor(&s->out, name, rows, columns, random_weights_gguf_type(type),
                           rows * bytes);
        if (act->what != WRITE)
                return;
        for (uint32_t r = 0; r < rows; r++)
                out_bytes(&s->out, random_weights_row(type, deviation, columns, &dice), bytes);
        out_align(&s->out);
}

/* One row, in floats: `middle`, with noise of size `beside`. */
static void vector(struct random_weights *s, struct act *act, const char *name, uint32_t columns,
                   double middle, double beside)
{
        uint64_t dice = s->seed << 32 | act->index++;

        if (act->what == ANNOUNCE)
                out_tensor(&s->out, name, 1, columns, random_weights_gguf_type(ROW_F32),
                           4 * columns);
        if (act->what != WRITE)
                return;
        for (uint32_t c = 0; c < columns; c++) {
                float number = (float)(middle + dice_unit(&dice) * beside);
                uint32_t bits;

                memcpy(&bits, &number, sizeof(bits));
                out_int(&s->out, bits, 4);
        }
        out_align(&s->out);
}

static uint32_t turning(const struct shape *h)
{
        return h->turning ? h->turning : h->head_dim;
}

/* Fast rotations stay as they are, slow ones become slower, with a transition in between. */
static void rope_factors(struct random_weights *s, struct act *act, const char *name)
{
        uint32_t count = turning(s->shape) / 2;

        act->index++;
        if (act->what == ANNOUNCE)
                out_tensor(&s->out, name, 1, count, random_weights_gguf_type(ROW_F32), 4 * count);
        if (act->what != WRITE)
                return;
        for (uint32_t i = 0; i < count; i++) {
                float at = (float)i / (float)count, factor = (at - 0.45f) * 155 + 1;
                uint32_t bits;

                factor = factor < 1 ? 1 : factor > 32 ? 32 : factor;
                memcpy(&bits, &factor, sizeof(bits));
                out_int(&s->out, bits, 4);
        }
        out_align(&s->out);
}

/* The layers that get more bits, as in llama.cpp: the first and last ones, and every third of the
 * others. */
static bool has_more(uint32_t layer, uint32_t layers)
{
        return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

static void layer(struct random_weights *s, struct act *act, uint32_t number)
{
        const struct shape *h = s->shape;
        uint32_t q = h->heads * h->head_dim, kv = h->kv_heads * h->head_dim;
        enum row_type most = s->types.most,
                      more = has_more(number, h->layers) ? s->types.more : most;
        double in = 1 / sqrt(h->width);
        const struct {
                const char *name;
                uint32_t rows, columns; /* rows 0: a vector */
                enum row_type type;
                double deviation, beside;
                bool wanted;
        } parts[] = {
                { "attn_norm.weight", 0, h->width, 0, 1, 0.05, true },
                /* Larger, so that attention weighs some positions more than others. */
                { "attn_q.weight", q, h->width, most, 3 * in, 0, !h->fused },
                { "attn_k.weight", kv, h->width, most, in, 0, !h->fused },
                { "attn_v.weight", kv, h->width, more, in, 0, !h->fused },
                { "attn_qkv.weight", q + 2 * kv, h->width, most, 2 * in, 0, h->fused },
                { "attn_q.bias", 0, q, 0, 0, 0.3, h->biases },
                { "attn_k.bias", 0, kv, 0, 0, 0.3, h->biases },
                { "attn_v.bias", 0, kv, 0, 0, 0.3, h->biases },
                { "attn_q_norm.weight", 0, h->head_dim, 0, 2, 0.05, h->head_norms },
                { "attn_k_norm.weight", 0, h->head_dim, 0, 1.5, 0.05, h->head_norms },
                { "attn_output.weight", h->width, q, most, 3 / sqrt(q), 0, true },
                { "post_attention_norm.weight", 0, h->width, 0, 1, 0.05, h->post_norms },
                { "ffn_norm.weight", 0, h->width, 0, 1, 0.05, true },
                { "ffn_gate.weight", h->ffn, h->width, most, in, 0, !h->fused },
                { "ffn_up.weight", h->fused ? 2 * h->ffn : h->ffn, h->width, most, in, 0, true },
                { "ffn_down.weight", h->width, h->ffn, more, 3 / sqrt(h->ffn), 0, true },
                { "post_ffw_norm.weight", 0, h->width, 0, 1, 0.05, h->post_norms },
        };
        char name[64];

        for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
                if (!parts[i].wanted)
                        continue;
                snprintf(name, sizeof(name), "blk.%u.%s", number, parts[i].name);
                if (parts[i].rows)
                        tensor(s, act, name, parts[i].rows, parts[i].columns, parts[i].type,
                               parts[i].deviation);
                else
                        vector(s, act, name, parts[i].columns, parts[i].deviation, parts[i].beside);
        }
}

/* Every tensor, in order; returns how many. */
static uint32_t tensors(struct random_weights *s, struct act act)
{
        const struct shape *h = s->shape;
        double small = 1 / sqrt(h->width);

        tensor(s, &act, "token_embd.weight", h->vocab, h->width,
               h->tied ? s->types.head : s->types.most, small);
        for (uint32_t i = 0; i < h->layers; i++)
                layer(s, &act, i);
        vector(s, &act, "output_norm.weight", h->width, 1, 0.05);
        if (!h->tied)
                tensor(s, &act, "output.weight", h->vocab, h->width, s->types.head, small);
        if (h->slowed)
                rope_factors(s, &act, "rope_freqs.weight");
        if (h->fused) {
                rope_factors(s, &act, "rope_factors_long.weight");
                rope_factors(s, &act, "rope_factors_short.weight");
        }
        return act.index;
}

/* ---- the header ---- */

static void pair_of_model(struct random_weights *s, const char *key, uint32_t value)
{
        char whole[96];

        snprintf(whole, sizeof(whole), "%s.%s", s->shape->architecture, key);
        out_pair_u32(&s->out, whole, value);
}

static void real_of_model(struct random_weights *s, const char *key, float value)
{
        char whole[96];

        snprintf(whole, sizeof(whole), "%s.%s", s->shape->architecture, key);
        out_pair_f32(&s->out, whole, value);
}

static void header(struct random_weights *s)
{
        const struct shape *h = s->shape;
        struct out *o = &s->out;

        out_begin(o, tensors(s, (struct act){ COUNT }),
                  21 + WORDS_PAIRS + (h->window ? 1 : 0) + (h->fused ? 1 : 0));
        out_pair_string(o, "general.architecture", h->architecture);
        out_pair_string(o, "general.name", h->name);
        out_pair_u32(o, "general.alignment", OUT_ALIGNMENT);
        out_pair_u32(o, "general.quantization_version", 2);
        out_pair_u32(o, "general.file_type", file_types[s->types.most]);
        pair_of_model(s, "block_count", h->layers);
        pair_of_model(s, "context_length", h->context);
        pair_of_model(s, "embedding_length", h->width);
        pair_of_model(s, "feed_forward_length", h->ffn);
        pair_of_model(s, "attention.head_count", h->heads);
        pair_of_model(s, "attention.head_count_kv", h->kv_heads);
        pair_of_model(s, "attention.key_length", h->head_dim);
        pair_of_model(s, "attention.value_length", h->head_dim);
        real_of_model(s, "attention.layer_norm_rms_epsilon", h->eps);
        pair_of_model(s, "rope.dimension_count", turning(h));
        if (h->window)
                pair_of_model(s, "attention.sliding_window", h->window);
        if (h->fused)
                pair_of_model(s, "rope.scaling.original_context_length", 4096);
        real_of_model(s, "rope.freq_base", h->base);
        out_pair_string(o, "tokenizer.ggml.model", "gpt2");
        out_pair_string(o, "tokenizer.ggml.pre", h->splitter);
        words_out(o, h->vocab, h->controls);
        out_pair_u32(o, "tokenizer.ggml.bos_token_id", h->vocab - h->controls);
        out_pair_u32(o, "tokenizer.ggml.eos_token_id", h->vocab - h->controls + 1);
        out_pair_bool(o, "tokenizer.ggml.add_bos_token", !strcmp(h->architecture, "llama"));
        tensors(s, (struct act){ ANNOUNCE });
        out_align(o);
}

/* ---- arguments ---- */

static bool find_shape(const char *name, const struct shape **ret_shape)
{
        for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
                if (!strcmp(shapes[i].name, name)) {
                        *ret_shape = &shapes[i];
                        return true;
                }
        return false;
}

static bool find_types(const char *name, struct mixture *ret_types)
{
        for (size_t i = 0; i < sizeof(mixtures) / sizeof(*mixtures); i++)
                if (!strcmp(mixtures[i].name, name)) {
                        *ret_types = mixtures[i];
                        return true;
                }
        for (int type = 0; type < ROW_TYPE_N; type++)
                if (random_weights_has((enum row_type)type) &&
                    !strcmp(row_type_name((enum row_type)type), name)) {
                        *ret_types = (struct mixture){ name, (enum row_type)type,
                                                       (enum row_type)type, (enum row_type)type };
                        return true;
                }
        return false;
}

static bool arguments(int argc, char **argv, struct random_weights *s)
{
        char *end;

        if (argc < 3 || argv[1][0] == '-' || argc % 2 == 0 || !find_shape(argv[2], &s->shape))
                return false;
        for (int a = 3; a < argc; a += 2)
                if (!strcmp(argv[a], "--seed")) {
                        s->seed = strtoul(argv[a + 1], &end, 10);
                        if (*end || s->seed > UINT32_MAX)
                                return false;
                } else if (strcmp(argv[a], "--type") || !find_types(argv[a + 1], &s->types)) {
                        return false;
                }
        return true;
}

static int usage(void)
{
        fputs("usage: random-weights OUT.gguf SHAPE [--type TYPE] [--seed N]\nshapes:", stderr);
        for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
                fprintf(stderr, " %s", shapes[i].name);
        fputs("\nof one type:", stderr);
        for (int type = 0; type < ROW_TYPE_N; type++)
                if (random_weights_has((enum row_type)type))
                        fprintf(stderr, " %s", row_type_name((enum row_type)type));
        fputs("\nmixtures:", stderr);
        for (size_t i = 0; i < sizeof(mixtures) / sizeof(*mixtures); i++)
                fprintf(stderr, " %s", mixtures[i].name);
        fputc('\n', stderr);
        return 2;
}

int main(int argc, char **argv)
{
        struct random_weights s = { .seed = 1 };

        find_types("bf16", &s.types);
        if (!arguments(argc, argv, &s))
                return usage();
        s.out.file = fopen(argv[1], "wb");
        if (!s.out.file) {
                perror(argv[1]);
                return 1;
        }
        header(&s);
        tensors(&s, (struct act){ WRITE });
        if (fclose(s.out.file) || s.out.failed) {
                perror(argv[1]);
                return 1;
        }
        return 0;
}
