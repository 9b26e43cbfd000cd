/*
 * Traits: what a model is, apart from its numbers.
 *
 * One table of properties instead of a file per architecture; the forward pass
 * (engine/model.c) is driven by it.  Filled from a model file's metadata, each
 * value checked, then never written again; any thread reads it.
 */
#ifndef DAEMON_TRAITS_H
#define DAEMON_TRAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/rope.h"
#include "kernels/kernels.h"

#define TRAITS_NO_TOKEN UINT32_MAX
#define TRAITS_EOS_MAX  8u

/* Tensors that some models have and others have not. */
enum presence { MAYBE_THERE, MUST_BE_THERE, NOT_THERE };

struct traits {
        uint32_t vocab;
        uint32_t context; /* positions the file says it was made for */
        uint32_t width;
        uint32_t layers;
        uint32_t heads, kv_heads, head_dim;
        uint32_t ffn;
        float eps;
        bool tied; /* the head is the embedding, unless the file has one all the same */
        enum presence qkv_bias, output_bias, ffn_bias, qk_norm, rope_table;
        enum activation act;
        float embed_scale;
        float attend_scale; /* 1 / sqrt(head_dim) unless the file differs */
        float attend_softcap, head_softcap;
        uint32_t window;      /* positions that a row sees, its own included; 0: all of them ... */
        uint32_t window_from; /* ... in the layers before this one in any case */
        struct rope_shape rope;
        uint32_t bos; /* put before a text, or TRAITS_NO_TOKEN */
        uint32_t eos_count;
        uint32_t eos[TRAITS_EOS_MAX]; /* any of them ends a stream */
};

#endif
