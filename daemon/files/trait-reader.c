#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/files/trait-reader.h"

void trait_reader_fault(struct trait_reader *rd, const char *format, ...)
{
        va_list args;

        if (rd->r)
                return;
        rd->r = -EINVAL;
        va_start(args, format);
        vsnprintf(rd->why, rd->why_bytes, format, args);
        va_end(args);
}

bool trait_reader_has(struct trait_reader *rd, const char *key)
{
        snprintf(rd->key, sizeof(rd->key), "%s%s", *key == '.' ? rd->prefix : "", key);
        return rd->kind->find(rd);
}

static bool was_read(const struct trait_reader *rd, const char *key)
{
        for (uint32_t i = 0; i < rd->read_count; i++)
                if (!strcmp(rd->reads[i], key))
                        return true;
        return false;
}

/* A file cannot add to the list: it has only keys that this program names. */
static void note_read(struct trait_reader *rd, const char *key)
{
        if (was_read(rd, key))
                return;
        assert(rd->read_count < READS_MAX);
        rd->reads[rd->read_count++] = key;
}

bool trait_reader_take(struct trait_reader *rd, const char *key)
{
        note_read(rd, key);
        return trait_reader_has(rd, key);
}

const char *trait_reader_first(struct trait_reader *rd, const char *const *keys)
{
        for (const char *const *key = keys; *key; key++)
                if (trait_reader_has(rd, *key))
                        return *key;
        return keys[0];
}

/* True: the key is there.  If it is absent and `absent` is NULL, that is a fault. */
static bool found(struct trait_reader *rd, const char *key, const void *absent)
{
        bool has = trait_reader_has(rd, key);

        note_read(rd, key);
        if (!has && !absent)
                trait_reader_fault(rd, "%s '%s' is missing", rd->kind->whose, rd->key);
        return has;
}

uint32_t trait_reader_whole(struct trait_reader *rd, const char *key, uint32_t low, uint32_t high,
                            const uint32_t *absent)
{
        uint32_t value;

        if (!found(rd, key, absent))
                return absent ? *absent : low;
        if (!rd->kind->whole(rd, &value)) {
                trait_reader_fault(rd, "%s '%s' is not a whole number of 32 bits", rd->kind->whose,
                                   rd->key);
                return low;
        }
        if (value < low || value > high) {
                trait_reader_fault(rd, "%s '%s' is %" PRIu32 ", not %" PRIu32 " to %" PRIu32,
                                   rd->kind->whose, rd->key, value, low, high);
                return low;
        }
        return value;
}

double trait_reader_real(struct trait_reader *rd, const char *key, double low, double high,
                         const double *absent)
{
        double value;

        if (!found(rd, key, absent))
                return absent ? *absent : low;
        if (!rd->kind->real(rd, &value)) {
                trait_reader_fault(rd, "%s '%s' is not a real number", rd->kind->whose, rd->key);
                return low;
        }
        if (!(value >= low && value <= high)) { /* also catches NaN */
                trait_reader_fault(rd, "%s '%s' is %g, not %g to %g", rd->kind->whose, rd->key,
                                   value, low, high);
                return low;
        }
        return value;
}

bool trait_reader_flag(struct trait_reader *rd, const char *key, bool absent)
{
        bool value = absent;

        if (found(rd, key, &value) && !rd->kind->flag(rd, &value))
                trait_reader_fault(rd, "%s '%s' is not true or false", rd->kind->whose, rd->key);
        return value;
}

const char *trait_reader_text(struct trait_reader *rd, const char *key)
{
        const char *text = NULL;

        if (found(rd, key, rd) && !(text = rd->kind->text(rd)))
                trait_reader_fault(rd, "%s '%s' is not a string", rd->kind->whose, rd->key);
        return text;
}

static bool says_nothing(const struct trait_reader *rd, double harmless)
{
        uint32_t whole;
        double real;
        bool flag;

        if (rd->kind->flag(rd, &flag))
                return !flag;
        if (rd->kind->whole(rd, &whole))
                real = whole;
        else if (!rd->kind->real(rd, &real))
                return false;
        return real == 0 || real == harmless;
}

void trait_reader_refuse(struct trait_reader *rd, const struct refusal *refusals, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (!was_read(rd, refusals[i].key) && trait_reader_has(rd, refusals[i].key) &&
                    !says_nothing(rd, refusals[i].harmless))
                        trait_reader_fault(rd, "%s '%s' has a value that is not supported yet",
                                           rd->kind->whose, rd->key);
}

uint32_t trait_reader_head_dim(struct trait_reader *rd, const char *key, const struct traits *t)
{
        uint32_t share = t->width / t->heads;

        if (!trait_reader_has(rd, key) &&
            (t->width % t->heads || share < 2 || share > HEAD_DIM_MAX)) {
                trait_reader_fault(rd,
                                   "a width of %" PRIu32 " and %" PRIu32
                                   " heads do not give heads of 2 to %u numbers",
                                   t->width, t->heads, HEAD_DIM_MAX);
                return 2;
        }
        return trait_reader_whole(rd, key, 2, HEAD_DIM_MAX, &share);
}

void traits_add_eos(struct trait_reader *rd, struct traits *t, uint32_t id)
{
        for (uint32_t i = 0; i < t->eos_count; i++)
                if (t->eos[i] == id)
                        return;
        if (t->eos_count == TRAITS_EOS_MAX)
                trait_reader_fault(rd, "more than %u tokens that end a stream", TRAITS_EOS_MAX);
        else
                t->eos[t->eos_count++] = id;
}

static void check_rope(struct trait_reader *rd, struct traits *t, struct rope_shape *rope)
{
        bool by_parts = rope->scaling == ROPE_LLAMA3 || rope->scaling == ROPE_YARN;
        double stretched = rope->trained * rope->factor;

        if (rope->dims % 2 || rope->dims / 2 > ROPE_PAIRS_MAX)
                trait_reader_fault(
                        rd, "rope rotates %" PRIu32 " numbers of a head, not an even count to %u",
                        rope->dims, 2 * ROPE_PAIRS_MAX);
        if (!(rope->base > 1))
                trait_reader_fault(rd, "rope's base is %g, which is not greater than 1",
                                   rope->base);
        if (by_parts && !(rope->low < rope->high))
                trait_reader_fault(rd, "rope is scaled between %g turns and %g: no range",
                                   rope->low, rope->high);
        /* Files with YaRN give the context before the stretching, or after it. */
        if (rope->scaling == ROPE_YARN && stretched > t->context)
                t->context = stretched < CONTEXT_MAX ? (uint32_t)stretched : CONTEXT_MAX;
}

void traits_share_kv(struct trait_reader *rd, struct traits *t, uint32_t count)
{
        uint32_t first = t->layers - count;

        for (uint32_t i = first; i < t->layers; i++) {
                uint32_t back = i - first + 1;

                while (back <= i && !t->layer[i - back].window != !t->layer[i].window)
                        back++;
                if (back <= i)
                        t->layer[i].kv_back = (uint16_t)back;
                else
                        trait_reader_fault(rd,
                                           "layer %" PRIu32 " shares the keys and values of an "
                                           "earlier layer, and there is none of its kind",
                                           i);
        }
}

/* A layer that has nothing of its own has what the model has. */
static void finish_layers(struct traits *t)
{
        for (uint32_t i = 0; i < t->layers; i++) {
                struct layer_traits *l = &t->layer[i];

                l->kv_heads = l->kv_heads ? l->kv_heads : t->kv_heads;
                l->head_dim = l->head_dim ? l->head_dim : t->head_dim;
                l->ffn = l->ffn ? l->ffn : t->ffn;
        }
}

static uint32_t larger(uint32_t a, uint32_t b)
{
        return a > b ? a : b;
}

static void set_largest(struct traits *t)
{
        t->kv_heads = t->head_dim = t->ffn = 0;
        for (uint32_t i = 0; i < t->layers; i++) {
                t->kv_heads = larger(t->kv_heads, t->layer[i].kv_heads);
                t->head_dim = larger(t->head_dim, t->layer[i].head_dim);
                t->ffn = larger(t->ffn, t->layer[i].ffn);
        }
}

static void check_heads(struct trait_reader *rd, const struct traits *t,
                        const struct layer_traits *layer)
{
        if (t->heads % layer->kv_heads)
                trait_reader_fault(rd,
                                   "%" PRIu32 " heads are not a multiple of %" PRIu32 " kv heads",
                                   t->heads, layer->kv_heads);
        if (layer->rope != TRAITS_NO_ROPE && t->ropes[layer->rope].dims > layer->head_dim)
                trait_reader_fault(rd,
                                   "rope rotates %" PRIu32 " numbers of a head, which has %" PRIu32,
                                   t->ropes[layer->rope].dims, layer->head_dim);
}

/* Layers with a window have heads of one shape, and so have the others (engine/model-shapes.h). */
static void check_shapes(struct trait_reader *rd, const struct traits *t)
{
        const struct layer_traits *first[2] = { NULL, NULL };

        for (uint32_t i = 0; i < t->layers; i++) {
                const struct layer_traits *l = &t->layer[i], **same = &first[l->window > 0];

                *same = *same ? *same : l;
                if (l->kv_heads != (*same)->kv_heads || l->head_dim != (*same)->head_dim)
                        trait_reader_fault(rd,
                                           "layer %" PRIu32 " has %" PRIu32 " kv heads of %" PRIu32
                                           ", and another layer like it has %" PRIu32 " of %" PRIu32
                                           "; this is not supported yet",
                                           i, l->kv_heads, l->head_dim, (*same)->kv_heads,
                                           (*same)->head_dim);
        }
        for (uint32_t i = 0; i < t->layers; i++)
                check_heads(rd, t, &t->layer[i]);
}

void traits_check(struct trait_reader *rd, struct traits *t)
{
        finish_layers(t);
        set_largest(t);
        if (t->vocab < 2 || t->vocab > VOCAB_MAX)
                trait_reader_fault(rd, "the vocabulary has %" PRIu32 " tokens, not 2 to %u",
                                   t->vocab, VOCAB_MAX);
        check_shapes(rd, t);
        if (t->qkv_order == QKV_BY_HEAD && t->heads != t->kv_heads)
                trait_reader_fault(rd,
                                   "%" PRIu32 " heads and %" PRIu32
                                   " kv heads in one tensor, which "
                                   "is by heads",
                                   t->heads, t->kv_heads);
        if (t->qkv_order == QKV_IN_FOURS && t->kv_heads % 4)
                trait_reader_fault(rd,
                                   "%" PRIu32 " heads are not a multiple of 4, and one tensor has "
                                   "them in quarters",
                                   t->kv_heads);
        for (uint32_t i = 0; i < t->rope_count; i++)
                check_rope(rd, t, &t->ropes[i]);
        if (!(t->attend_scale > 0))
                t->attend_scale = (float)(1 / sqrt((double)t->head_dim));
}
