/* Whatever a file says: accepted traits keep to their bounds, and speeds are speeds. */
#ifndef TESTS_FUZZ_CHECK_TRAITS_H
#define TESTS_FUZZ_CHECK_TRAITS_H

#include <assert.h>
#include <math.h>

#include "daemon/model/traits.h"

static inline void check_rope(const struct traits *t, const struct rope_shape *rope)
{
        float speeds[ROPE_PAIRS_MAX];

        assert(rope->still <= rope->dims / 2 && isfinite(rope->attention) && rope->attention > 0);
        /* the tables of LongRoPE may be tensors */
        if (rope->scaling == ROPE_LONG && t->rope_tables != NOT_THERE)
                return;
        for (unsigned longer = 0; longer < 2; longer++) {
                rope_frequencies(rope, longer ? UINT32_MAX : 0, NULL, speeds);
                for (uint32_t i = 0; i < rope->dims / 2 - rope->still; i++)
                        assert(speeds[i] > 0 && isfinite(speeds[i]));
        }
}

static inline void check_layer(const struct traits *t, uint32_t layer)
{
        const struct layer_traits *l = &t->layer[layer], *from = l - l->kv_back;

        assert(l->rope == TRAITS_NO_ROPE || l->rope < t->rope_count);
        assert(l->rope == TRAITS_NO_ROPE || t->ropes[l->rope].dims <= l->head_dim);
        assert(l->ffn && l->ffn <= 1u << 20 && l->head_dim >= 2 && l->head_dim <= 512);
        assert(l->kv_heads && t->heads % l->kv_heads == 0);
        assert(l->kv_back <= layer && !from->kv_back && from->window == l->window);
        assert(from->kv_heads == l->kv_heads && from->head_dim == l->head_dim);
}

static inline void check_traits(const struct traits *t)
{
        assert(t->layers && t->layers <= TRAITS_LAYERS_MAX);
        assert(t->width && t->ffn && t->ffn <= 1u << 20 && t->context && t->vocab >= 2);
        assert(t->heads && t->kv_heads && t->heads % t->kv_heads == 0);
        assert(t->head_dim >= 2 && t->head_dim <= 512);
        assert(t->eos_count <= TRAITS_EOS_MAX);
        for (uint32_t i = 0; i < t->eos_count; i++)
                assert(t->eos[i] < t->vocab);
        assert(t->bos < t->vocab || t->bos == TRAITS_NO_TOKEN);
        assert(t->attend_scale > 0 && t->eps > 0 && t->eps <= 1);
        assert(isfinite(t->embed_scale) && isfinite(t->head_scale) && t->head_scale > 0);
        assert(!(t->query_beta > 0) || t->query_length);
        for (uint32_t i = 0; i < t->rope_count; i++)
                check_rope(t, &t->ropes[i]);
        for (uint32_t i = 0; i < t->layers; i++)
                check_layer(t, i);
}

#endif
