/*
 * Draws a token from each wanted row's logits, and reports the log-probabilities of the likeliest
 * tokens.
 *
 *      tokens[want]   = the token that kernels/draw.h chooses, PICK_NOT_FINITE or PICK_NONE_LEGAL
 *      entries        = of each row whose pick has not failed, from pick.first_entry on:
 *                       { picked, then the likeliest }, log(softmax(row)), as many as its pick asks
 *                       for; with mirostat then { picked, its surprise }; with log_sum then
 *                       { picked, log(sum(exp(row))) }.  Others are not written
 *
 *      logits    (wants_max, stride)   floats; the first `vocab` of a row are its logits
 *      edited    (wants_max, vocab)    scratch memory of pick_more_tokens()
 *      tokens    (wants_max)
 *      entries   as many as the picks of the step have together
 *
 * There are two kernels.  One picks for rows whose picks have no more than top_k, top_p and min_p.
 * The other one picks for the rest (pick_has_more()), and a step without such rows need not run it.
 * Mask and edits of a pick are in device memory.
 *
 * Contract of a pick, beyond kernels.h: 0 <= temperature, finite; 0 <= top_p; logprobs at most
 * PICK_LOGPROBS_MAX, and at most 1 + vocab.
 *
 * Grid: wants_max blocks, of 64 threads where the vocabulary is small, otherwise of 1024, or 512
 * for the other kernel.  Blocks of rows past counts->wants, and of the other kernel's rows, have
 * nothing to do.  38 KiB of shared memory.
 *
 * Bytes.  Every pick reads its row once, for the largest logit.  A greedy pick, or a pick with a
 * min_p greater than 1, needs no more.  A draw reads the row once more.  top_k and top_p each read
 * it twice more, min_p not at all.  logprobs and the log-sum read it once, and three times more to
 * report other tokens than the picked one.  In two cases each search (of top_k, top_p, logprobs)
 * that ends among them reads the row up to five times more: where more than 256 logits share a 32nd
 * of the temperature, or where they are 32 temperatures or more below the largest.  All reads but
 * the first come out of the L2 cache.
 *
 * A pick with more reads its row once, writes a copy of it, and reads this once for the largest
 * logit.  Then n_sigma reads it twice, dynamic temperature twice, top_k and top_p each twice,
 * typical four times, min_p once, mirostat twice, XTC twice and the draw once.
 *
 * exp(), in double, is the main cost of top_p: once for each token that top_k keeps, and again for
 * those near its end.  Afterwards logprobs compute it once for all tokens.  A draw makes a random
 * number and a logarithm for every 32 tokens, and a few more for each token that could win.
 *
 * Exactness of sums. A token's chance is exp((logit - largest) * (1 / temperature)), in double,
 * converted to a whole number of units of 2^-62. Whole numbers give the same bits in any order of
 * summing, so nothing depends on which thread is first. The error of a sum is less than 2^-43 of
 * itself (1.2e-13, with 2^20 tokens, each rounded as badly as possible), plus the error of exp()
 * and its argument (1e-14). Where a cut falls that close to the border between two tokens, this
 * backend and another may choose differently. The same happens where borders are met exactly: ten
 * of forty equal chances reach 0.25 here, but in doubles a fortieth is rounded first. The sums of
 * logprobs, and of other cuts, are of doubles: each thread's in ascending order of its ids
 * (thread, thread + threads, ...), then lanes pairwise, then warps in ascending order.
 */
#ifndef KERNELS_CUDA_PICK_H
#define KERNELS_CUDA_PICK_H

#include "kernels/cuda/device.h"
#include "kernels/cuda/step-view.h"

#define PICK_VOCAB_MAX (1u << 20)

struct pick_args {
        step_view step; /* counts, picks */
        const float *logits;
        uint32_t vocab;     /* 1 .. PICK_VOCAB_MAX */
        uint32_t stride;    /* floats from one row to the next */
        uint32_t wants_max; /* of this bucket */
        float *edited;
        uint32_t *tokens;
        logprob *entries;
};

/* These put a kernel on STREAM_STEPS.  -EINVAL: such rows are not served. */
int pick_tokens(struct device *device, const struct pick_args *args);
int pick_more_tokens(struct device *device, const struct pick_args *args);

#endif
