/*
 * The architectures that a GGUF file may name: a row for each, with what the file does not say.
 *
 * Keys are given without the architecture's name: ".block_count".  Files converted from Hugging
 * Face keep the two halves of a head as they are, or reorder the rows of Q and K so that neighbours
 * rotate together: `pairing` says which.
 */
#ifndef DAEMON_FILES_GGUF_FAMILIES_H
#define DAEMON_FILES_GGUF_FAMILIES_H

#include "daemon/files/trait-reader.h"

struct gguf_family {
        const char *name;
        enum rope_pairing pairing;
        bool no_rope;
        enum presence qkv_bias, output_bias, ffn_bias, head_bias;

        enum residual residual;
        enum norm_kind norm; /* NORM_NONE: RMSNorm */
        enum presence norm_bias;
        bool no_norm_weights, no_pre_norms, post_norms, embed_norm;
        enum presence qk_norm;
        enum head_norm_span qk_span;
        bool plain; /* no gate */
        enum activation activation;

        bool in_turns;   /* windows: in all layers but each `period`-th */
        uint32_t period; /* unless ".attention.sliding_window_pattern" says it */

        void (*read)(struct trait_reader *rd, struct traits *t); /* or NULL */
};

/* The row of "general.architecture"; NULL: not known. */
const struct gguf_family *gguf_family_of(const char *name);

#endif
