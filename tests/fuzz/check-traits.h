/* Whatever a file says: accepted traits keep to their bounds, and speeds are speeds. */
#ifndef TESTS_FUZZ_CHECK_TRAITS_H
#define TESTS_FUZZ_CHECK_TRAITS_H

#include <assert.h>
#include <math.h>

#include "daemon/model/traits.h"

static inline void check_traits(const struct traits *t)
{
        float speeds[256];

        assert(t->layers && t->width && t->ffn && t->context && t->vocab >= 2);
        assert(t->heads && t->kv_heads && t->heads % t->kv_heads == 0);
        assert(t->head_dim >= 2 && t->head_dim <= 512 && t->rope.dims <= t->head_dim);
        assert(t->eos_count <= TRAITS_EOS_MAX);
        for (uint32_t i = 0; i < t->eos_count; i++)
                assert(t->eos[i] < t->vocab);
        assert(t->bos < t->vocab || t->bos == TRAITS_NO_TOKEN);
        assert(t->attend_scale > 0 && t->eps > 0 && t->eps <= 1);
        assert(isfinite(t->rope.attention) && t->rope.attention > 0);
        rope_frequencies(&t->rope, NULL, speeds);
        for (uint32_t i = 0; i < t->rope.dims / 2; i++)
                assert(speeds[i] > 0 && speeds[i] <= 1);
}

#endif
