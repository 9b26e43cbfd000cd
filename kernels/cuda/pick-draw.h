/*
 * Draws one of a row's candidates, and reports log-probabilities; for the kernels of pick.h.
 *
 * A draw looks for the best score.  A warp takes 32 spans at a time: each lane makes the least time
 * of one of them, and then all lanes look at the tokens of one span after the other.  Only a token
 * that could have a better score than the best one of this lane so far gets a time of its own.
 */
#ifndef KERNELS_CUDA_PICK_DRAW_H
#define KERNELS_CUDA_PICK_DRAW_H

#include "kernels/cuda/pick-select.h"

#define SCORE_NEAR 1e-5 /* more than the rounding of a score with 1 / temperature */

static_assert(DRAW_SPAN == LANES, "a lane for each token of a span");
static_assert(PICK_LOGPROBS_MAX - 1 <= LIST_MAX, "the likeliest tokens fit the list");

DEVICE bool may_win(const candidates *candidates, const drawing *drawing, float logit, uint32_t id)
{
        return is_kept(candidates, sort_key_of(logit, id)) &&
               (drawing->min_p <= 0 || exp(below_of(candidates, logit)) >= drawing->min_p);
}

DEVICE bool is_better(drawn a, drawn b)
{
        return a.score > b.score || (a.score == b.score && a.id < b.id);
}

/*
 * The tokens of a warp's 32 spans; lane i has the least time of span `first` + i.  The loop is not
 * unrolled, because registers are scarce.
 */
DEVICE void draw_spans(const candidates *candidates, const drawing *drawing, const pick *pick,
                       uint32_t first, drawn *best)
{
        const draw_key key = draw_key_of(pick);
        double least = draw_least(&key, first + lane_number());
        float bound = (float)(SCORE_NEAR - draw_log(least));

#ifdef __CUDACC__
#pragma unroll 1
#endif
        for (unsigned i = 0; i < LANES; i++) {
                uint32_t id = (first + i) * DRAW_SPAN + lane_number();
                double span_least = shuffle_from(least, i);
                float span_bound = shuffle_from(bound, i);
                float logit = id < candidates->vocab ? candidates->logits[id] : -INFINITY;
                drawn drawn = { 0, id };

                if (!(below_of(candidates, logit) + span_bound >= best->score) ||
                    !may_win(candidates, drawing, logit, id))
                        continue;
                drawn.score = draw_score(logit, (float)candidates->largest, drawing->temperature,
                                         draw_time(&key, id, span_least));
                if (is_better(drawn, *best))
                        *best = drawn;
        }
}

/* The best of all threads. */
DEVICE uint32_t block_best(smem *smem, drawn mine)
{
        for (unsigned bits = LANES / 2; bits; bits /= 2) {
                drawn theirs = { shuffle_xor(mine.score, bits), shuffle_xor(mine.id, bits) };

                mine = is_better(theirs, mine) ? theirs : mine;
        }
        if (!lane_number())
                smem->drawn_of_warps[threadIdx.x / LANES] = mine;
        block_sync();
        for (unsigned i = 0; i < blockDim.x / LANES; i++)
                if (is_better(smem->drawn_of_warps[i], mine))
                        mine = smem->drawn_of_warps[i];
        return mine.id;
}

/*
 * All warps begin with the spans around the likeliest token, `first`, which is always kept.  Then
 * they know a score that few tokens can exceed.
 */
DEVICE uint32_t draw_kept(smem *smem, const candidates *candidates, const pick *pick,
                          const drawing &how, uint32_t first)
{
        const uint32_t step = blockDim.x / LANES * LANES;
        uint32_t span = first / (DRAW_SPAN * LANES) * LANES, next = threadIdx.x / LANES * LANES;
        drawn best = { -INFINITY, UINT32_MAX };

        if (!threadIdx.x)
                smem->drawing = how;
        block_sync();
        for (; span * DRAW_SPAN < candidates->vocab; span = next, next += step)
                draw_spans(candidates, &smem->drawing, pick, span, &best);
        return block_best(smem, best);
}

/* Reports logprobs and log-sum over all candidates, including those that were cut. */
DEVICE void write_logprobs(smem *smem, candidates *candidates, const pick *pick, uint32_t picked,
                           logprob *ret_entries)
{
        const uint32_t count = pick->logprobs;
        double all = 0, less;

        candidates->last = LAST_KEY;
        for_each(candidates,
                 [&](uint32_t, float logit) { all += exp(logit - candidates->largest); });
        less = log(block_sum(smem, all));
        if (!threadIdx.x && count)
                ret_entries[0] = { picked, (float)(candidates->logits[picked] -
                                                   candidates->largest - less) };
        if (!threadIdx.x && pick->log_sum)
                ret_entries[pick_log_sum_entry(pick)] = { picked,
                                                          (float)(candidates->largest + less) };
        if (count <= 1)
                return;

        candidates_weigh<by_count>(smem, candidates);
        candidates->last = choose<by_count>(smem, candidates, count - 1);
        list(smem, candidates,
             [&](float, uint64_t sort_key) { return (uint64_t)(sort_key <= candidates->last); });
        for (unsigned i = threadIdx.x; i < count - 1; i += blockDim.x) {
                uint32_t id = id_of(smem->sort_keys[i]), at = 1;

                for (unsigned j = 0; j < count - 1; j++)
                        at += smem->sort_keys[j] < smem->sort_keys[i];
                ret_entries[at] = { id,
                                    (float)(candidates->logits[id] - candidates->largest - less) };
        }
}

#endif
