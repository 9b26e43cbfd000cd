/*
 * A model whose every number is known, for tests of steps: of a backend's tables, pages, tokens.
 *
 * A token is a vector with one number.  What follows token t is toy_next(t), always.  V is the
 * vector, and all scores are 0, so what attention makes of a row is the average of what it sees: how
 * often each token is there.  What follows token TOY_BROKEN is not finite.
 */
#ifndef TESTS_CUDA_TOY_H
#define TESTS_CUDA_TOY_H

#include "kernels/kernels.h"

#define TOY_TOKENS 64u
#define TOY_BROKEN 63u
#define TOY_SIZE   8.0f /* of the one number */

struct toy {
        struct kernels *k;
        struct mat *table, *qkv, *head;
        float *x, *q, *a, *logits;
        struct kv *kv;
        uint32_t window; /* of attention, 0: none */
        uint32_t calls;  /* of all operators */
};

/* 0 or what failed; to be closed in any case. */
int toy_open(struct toy *toy, struct kernels *k, uint32_t rows, uint32_t wants, uint32_t pages);
void toy_close(struct toy *toy);

uint32_t toy_next(uint32_t token); /* or PICK_NOT_FINITE */
/* All operators from begin to pick; of one that is rehearsed they follow by themselves. */
int toy_forward(struct toy *toy, const struct step *step);
int toy_rehearse(struct toy *toy); /* where the backend can; else steps stay launches */

#endif
