/*
 * A model whose numbers are all known.  It tests steps: a backend's tables, pages and tokens.
 *
 * A token's vector has a single nonzero number.  Token t is always followed by known_model_next(t).
 * V is the vector, and all scores are 0, so attention returns the average of the positions that a
 * row sees, which is the frequency of each token.  The logits after token KNOWN_BROKEN are not
 * finite.
 */
#ifndef TESTS_CUDA_KNOWN_MODEL_H
#define TESTS_CUDA_KNOWN_MODEL_H

#include "kernels/kernels.h"

#define KNOWN_TOKENS 64u
#define KNOWN_BROKEN 63u
#define KNOWN_SIZE   8.0f /* the value of that number */

struct known_model {
        struct kernels *k;
        struct matrix *table, *qkv, *head;
        float *x, *q, *a, *logits;
        struct kv *kv;
        uint32_t window; /* of attention, 0: none */
        uint32_t calls;  /* calls of all operators */
};

/* 0, or the error of the call that failed; the model must be closed in both cases. */
int known_model_open(struct known_model *known_model, struct kernels *k, uint32_t rows,
                     uint32_t wants, uint32_t pages, uint32_t swap_pages);
void known_model_close(struct known_model *known_model);

uint32_t known_model_next(uint32_t token); /* or PICK_NOT_FINITE */
/* Runs all operators from begin to pick.  For a captured step the backend runs them by itself. */
int known_model_forward(struct known_model *known_model, const struct step *step);
/* Does nothing if the backend has no warm_up(); then steps stay single launches. */
int known_model_warm_up(struct known_model *known_model);

#endif
