/*
 * From metadata to traits.
 *
 * Everything has bounds, so that later products of these numbers stay far from
 * any overflow.  A fault does not break off the reading: it is kept, the number
 * takes its lower bound, and the first fault is told at the end.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "daemon/error.h"
#include "daemon/files/gguf.h"
#include "daemon/why.h"

#define ARCHITECTURE "llama"

#define LAYERS_MAX   1024u
#define WIDTH_MAX    (1u << 20)
#define HEADS_MAX    1024u
#define HEAD_DIM_MAX 512u
#define VOCAB_MAX    (1u << 22)
#define CONTEXT_MAX  (1u << 24)

struct reading {
        const struct gguf *gguf;
        int r; /* of the first fault */
        char *why;
        size_t why_bytes;
};

__attribute__((format(printf, 2, 3))) static void fault(struct reading *rd, const char *format, ...)
{
        va_list args;

        if (rd->r)
                return;
        rd->r = -EINVAL;
        va_start(args, format);
        vsnprintf(rd->why, rd->why_bytes, format, args);
        va_end(args);
}

/* Between low and high; `absent` if the key is not there, NULL: it must be. */
static uint32_t number(struct reading *rd, const char *key, uint32_t low, uint32_t high,
                       const uint32_t *absent)
{
        uint32_t value;

        if (!gguf_has(rd->gguf, key) && absent)
                return *absent;
        if (!gguf_has(rd->gguf, key)) {
                fault(rd, "metadata '%s' is missing", key);
                return low;
        }
        if (!gguf_u32(rd->gguf, key, &value)) {
                fault(rd, "metadata '%s' is not a whole number of 32 bits", key);
                return low;
        }
        if (value < low || value > high) {
                fault(rd, "metadata '%s' is %" PRIu32 ", not %" PRIu32 " to %" PRIu32, key, value,
                      low, high);
                return low;
        }
        return value;
}

static float real(struct reading *rd, const char *key, float low, float high, const float *absent)
{
        float value;

        if (!gguf_has(rd->gguf, key) && absent)
                return *absent;
        if (!gguf_has(rd->gguf, key)) {
                fault(rd, "metadata '%s' is missing", key);
                return low;
        }
        if (!gguf_f32(rd->gguf, key, &value)) {
                fault(rd, "metadata '%s' is not a real number", key);
                return low;
        }
        if (!(value >= low && value <= high)) { /* NaN, too */
                fault(rd, "metadata '%s' is %g, not %g to %g", key, (double)value, (double)low,
                      (double)high);
                return low;
        }
        return value;
}

static void read_architecture(struct reading *rd)
{
        const char *name = gguf_string(rd->gguf, "general.architecture");

        if (!name)
                fault(rd, "metadata 'general.architecture' is missing or not a string");
        else if (strcmp(name, ARCHITECTURE))
                fault(rd, "architecture '%s' is not served yet", shown(name).text);
}

/* What would change the numbers, and is not done here. */
static void read_refusals(struct reading *rd, const struct traits *t)
{
        const char *scaling = ARCHITECTURE ".rope.scaling.type", *kind;
        static const float one = 1;
        static const uint32_t none = 0;

        kind = gguf_string(rd->gguf, scaling);
        if (gguf_has(rd->gguf, scaling) && (!kind || strcmp(kind, "none")))
                fault(rd, "metadata '%s' is '%s', which is not served yet", scaling,
                      shown(kind ? kind : "?").text);
        (void)real(rd, ARCHITECTURE ".rope.scale_linear", 1, 1, &one);
        (void)number(rd, ARCHITECTURE ".expert_count", 0, 0, &none);
        (void)number(rd, ARCHITECTURE ".attention.value_length", t->head_dim, t->head_dim,
                     &t->head_dim);
}

static void read_heads(struct reading *rd, struct traits *t)
{
        uint32_t share;

        t->heads = number(rd, ARCHITECTURE ".attention.head_count", 1, HEADS_MAX, NULL);
        t->kv_heads = number(rd, ARCHITECTURE ".attention.head_count_kv", 1, HEADS_MAX, &t->heads);
        if (t->heads % t->kv_heads)
                fault(rd, "%" PRIu32 " heads do not divide among %" PRIu32 " kv heads", t->heads,
                      t->kv_heads);
        share = t->width / t->heads;
        t->head_dim = number(rd, ARCHITECTURE ".attention.key_length", 2, HEAD_DIM_MAX, &share);
        if (!gguf_has(rd->gguf, ARCHITECTURE ".attention.key_length") &&
            (t->width % t->heads || share < 2 || share > HEAD_DIM_MAX))
                fault(rd, "a width of %" PRIu32 " for %" PRIu32 " heads makes no head of 2 to %u",
                      t->width, t->heads, HEAD_DIM_MAX);
        t->rope_dims =
                number(rd, ARCHITECTURE ".rope.dimension_count", 0, t->head_dim, &t->head_dim);
        if (t->rope_dims % 2)
                fault(rd, "rope turns %" PRIu32 " numbers of a head, an odd count", t->rope_dims);
}

static void read_vocabulary(struct reading *rd, struct traits *t)
{
        static const char *const ends[] = {
                "tokenizer.ggml.eos_token_id",
                "tokenizer.ggml.eot_token_id",
                "tokenizer.ggml.eom_token_id",
        };
        const struct tensor *embedding = gguf_tensor(rd->gguf, "token_embd.weight");
        const uint32_t none = TRAITS_NO_TOKEN;
        bool bos = true;
        uint32_t id;

        t->vocab = number(rd, ARCHITECTURE ".vocab_size", 2, VOCAB_MAX,
                          embedding ? &embedding->rows : NULL);
        if (t->vocab < 2 || t->vocab > VOCAB_MAX)
                fault(rd, "the vocabulary has %" PRIu32 " tokens, not 2 to %u", t->vocab,
                      VOCAB_MAX);
        t->bos = number(rd, "tokenizer.ggml.bos_token_id", 0, t->vocab - 1, &none);
        if (gguf_has(rd->gguf, "tokenizer.ggml.add_bos_token") &&
            !gguf_bool(rd->gguf, "tokenizer.ggml.add_bos_token", &bos))
                fault(rd, "metadata 'tokenizer.ggml.add_bos_token' is not true or false");
        if (!bos)
                t->bos = TRAITS_NO_TOKEN;
        for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
                id = number(rd, ends[i], 0, t->vocab - 1, &none);
                if (id != TRAITS_NO_TOKEN)
                        t->eos[t->eos_count++] = id;
        }
}

int gguf_traits(const struct gguf *gguf, struct traits *ret_traits, char *why, size_t why_bytes)
{
        struct reading rd = { .gguf = gguf, .why = why, .why_bytes = why_bytes };
        static const float base = 10000;
        struct traits t = {
                .act = ACT_SILU,
                .embed_scale = 1,
                .rope_pairing = ROPE_ADJACENT,
                .tied = !gguf_tensor(gguf, "output.weight"),
        };

        read_architecture(&rd);
        t.layers = number(&rd, ARCHITECTURE ".block_count", 1, LAYERS_MAX, NULL);
        t.width = number(&rd, ARCHITECTURE ".embedding_length", 1, WIDTH_MAX, NULL);
        t.ffn = number(&rd, ARCHITECTURE ".feed_forward_length", 1, WIDTH_MAX, NULL);
        t.context = number(&rd, ARCHITECTURE ".context_length", 1, CONTEXT_MAX, NULL);
        t.eps = real(&rd, ARCHITECTURE ".attention.layer_norm_rms_epsilon", 1e-12f, 1, NULL);
        t.rope_base = real(&rd, ARCHITECTURE ".rope.freq_base", 1, 1e12f, &base);
        read_heads(&rd, &t);
        read_vocabulary(&rd, &t);
        read_refusals(&rd, &t);
        t.attend_scale = (float)(1 / sqrt((double)t.head_dim));
        if (rd.r)
                return error_raise(rd.r);
        *ret_traits = t;
        return 0;
}
