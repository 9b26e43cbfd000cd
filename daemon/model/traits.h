/*
 * Traits: the properties of a model, without its weights.
 *
 * There is one table of properties instead of a file per architecture; the forward pass
 * (engine/model.c) is driven by it.  It is filled from a model file's metadata, with every value
 * checked, and never written again.  Any thread may read it.
 */
#ifndef DAEMON_MODEL_TRAITS_H
#define DAEMON_MODEL_TRAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/model/rope.h"
#include "kernels/kernels.h"

#define TRAITS_NO_TOKEN UINT32_MAX
#define TRAITS_EOS_MAX  8u

/* Whether a model has a certain tensor. */
enum presence { MAYBE_THERE, MUST_BE_THERE, NOT_THERE };

struct traits {
        uint32_t vocab;
        uint32_t context; /* the context length that the file states */
        uint32_t width;
        uint32_t layers;
        uint32_t heads, kv_heads, head_dim;
        uint32_t ffn;
        float eps;
        bool tied; /* the embedding is also the head, unless the file has a separate head */
        enum presence qkv_bias, output_bias, ffn_bias, qk_norm, rope_table;
        enum activation act;
        float embed_scale;
        float attend_scale; /* 1 / sqrt(head_dim) unless the file says otherwise */
        float attend_softcap, head_softcap;
        /* sliding window: positions that a row sees, including its own; 0: no window */
        uint32_t window;
        uint32_t window_from; /* layers below this one have no window */
        struct rope_shape rope;
        uint32_t bos; /* token put before a text, or TRAITS_NO_TOKEN */
        uint32_t eos_count;
        uint32_t eos[TRAITS_EOS_MAX]; /* each of them ends a stream */
};

#endif
