/*
 * A model whose numbers are all known.  It tests steps: a backend's tables, pages and tokens.
 *
 * A token's vector has a single nonzero number.  Token t is always followed by toy_next(t).  V
 * is the vector, and all scores are 0, so attention returns the average of the positions that a
 * row sees, which is the frequency of each token.  The logits after token TOY_BROKEN are not
 * finite.
 */
#ifndef TESTS_CUDA_TOY_H
#define TESTS_CUDA_TOY_H

#include "kernels/kernels.h"

#define TOY_TOKENS 64u
#define TOY_BROKEN 63u
#define TOY_SIZE   8.0f /* the value of that number */

struct toy {
        struct kernels *k;
        struct mat *table, *qkv, *head;
        float *x, *q, *a, *logits;
        struct kv *kv;
        uint32_t window; /* of attention, 0: none */
        uint32_t calls;  /* calls of all operators */
};

/* 0, or the error of the call that failed; the toy must be closed in both cases. */
int toy_open(struct toy *toy, struct kernels *k, uint32_t rows, uint32_t wants, uint32_t pages);
void toy_close(struct toy *toy);

uint32_t toy_next(uint32_t token); /* or PICK_NOT_FINITE */
/* Runs all operators from begin to pick.  For a rehearsed step the backend runs them by itself. */
int toy_forward(struct toy *toy, const struct step *step);
int toy_rehearse(struct toy *toy); /* where the backend can; otherwise steps stay single launches */

#endif
