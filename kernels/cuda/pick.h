/*
 * Drawing a token from each wanted row's logits, and what is told of the likeliest ones.
 *
 *      tokens[want]   = the token that kernels/draw.h names, or PICK_NOT_FINITE
 *      logprobs[want] = { picked, then the likeliest }, log(softmax(row)), as many as its pick asks
 *                       for; nothing is written of the others, nor where the pick is not finite
 *
 *      logits    (wants_max, stride)   floats, of which the first `vocab` of a row are its logits
 *      tokens    (wants_max)
 *      logprobs  (wants_max, PICK_LOGPROBS_MAX)
 *
 * Contract of a pick, beyond kernels.h: 0 <= temperature, finite; 0 <= top_p; logprobs at most
 * PICK_LOGPROBS_MAX, and at most 1 + vocab.
 *
 * Grid: wants_max blocks of 64 threads where the vocabulary is small, of 1024 else; blocks past
 * counts->wants have nothing to do.  36 KiB of shared memory.
 *
 * Bytes.  All read their row once, for the largest; that is all for who is greedy, or whose min_p is
 * more than 1.  Who draws reads it once more, to weigh spans of ids, and of one span
 * (1,024 ids at most) again.  top_k and top_p read it twice more each, min_p not at all; logprobs
 * once, and three times more to tell of others than the picked one.  Where more than 128 logits
 * share a 32nd of the temperature, or are all the way 32 temperatures below the largest, each search
 * that ends among them (of top_k, top_p, logprobs) reads it up to five times more.  All but the
 * first reading come out of the L2 cache.
 *
 * exp(), in double, is the price of a draw: once for each token that top_k and top_p keep, and again
 * in that one span.  Before, top_p asks it once for each that top_k keeps, and again for those near
 * its end; afterwards logprobs ask it once for all.  For draws nobody asks it of a token that is
 * surely less likely than min_p, or less than e^-44 times as likely as the first, which weighs nothing.
 *
 * What is summed, and how exactly.  A token's chance is exp((logit - largest) * (1 / temperature)),
 * in double, then a whole number of units of 2^-62.  Whole numbers are summed in any order to the
 * same bits, so nothing depends on which thread is first.  Against exact numbers a sum is off by less
 * than 2^-43 of itself (1.2e-13, with 2^20 tokens, each rounded as badly as can be), and by what
 * exp() and its argument are off (1e-14).  Where a cut or a draw falls that near to the border between
 * two tokens, this backend and another may part.  So they may where borders are met exactly: ten of
 * forty equal chances reach 0.25 here, but in doubles a fortieth is rounded first.
 * The sum of logprobs is of doubles: each thread's in ascending order of its ids
 * (thread, thread + threads, ...), then lanes pairwise, then warps in ascending order.
 */
#ifndef KERNELS_CUDA_PICK_H
#define KERNELS_CUDA_PICK_H

#include "kernels/cuda/device.h"
#include "kernels/cuda/step.h"

#define PICK_VOCAB_MAX (1u << 20)

struct pick_args {
        step_view step; /* counts, picks */
        const float *logits;
        uint32_t vocab;     /* 1 .. PICK_VOCAB_MAX */
        uint32_t stride;    /* floats from one row to the next */
        uint32_t wants_max; /* of this bucket */
        uint32_t *tokens;
        logprob *logprobs;
};

/* Puts it on STREAM_STEPS. */
int pick_tokens(struct device *device, const struct pick_args *args);

#endif
