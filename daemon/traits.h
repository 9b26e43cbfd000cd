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

#include "kernels/kernels.h"

#define TRAITS_NO_TOKEN UINT32_MAX
#define TRAITS_EOS_MAX  8u

struct traits {
        uint32_t vocab;
        uint32_t context; /* positions the file says it was made for */
        uint32_t width;
        uint32_t layers;
        uint32_t heads, kv_heads, head_dim;
        uint32_t ffn;
        float eps;
        bool tied; /* the head is the embedding */
        enum activation act;
        float embed_scale;
        float attend_scale; /* 1 / sqrt(head_dim) unless the file differs */
        float attend_softcap, head_softcap;
        uint32_t window;
        uint32_t rope_dims;
        enum rope_pairing rope_pairing;
        float rope_base;
        uint32_t bos; /* put before a text, or TRAITS_NO_TOKEN */
        uint32_t eos_count;
        uint32_t eos[TRAITS_EOS_MAX]; /* any of them ends a stream */
};

#endif
