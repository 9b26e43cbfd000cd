#include "kernels/cuda/pick.h"

#include <errno.h>

#include "kernels/cuda/pick-draw.h"

#define SMALL_VOCAB 4096u

static_assert(PICK_VOCAB_MAX <= 1u << ID_BITS, "an id fits into a sort key");

/*
 * The cuts of top_k and top_p are made before min_p applies: top_p also counts candidates that
 * min_p drops.
 */
DEVICE uint32_t draw_from(smem *smem, candidates *candidates, const pick *pick, uint32_t first)
{
        candidates->inverse_temperature = 1 / (double)pick->temperature;
        if (pick->top_k && pick->top_k < candidates->vocab) {
                candidates_weigh<by_count>(smem, candidates);
                candidates->last = choose<by_count>(smem, candidates, pick->top_k);
        }
        if (pick->top_p < 1) {
                candidates_weigh<by_chance>(smem, candidates);
                candidates->last =
                        choose<by_chance>(smem, candidates, target_of(smem, pick->top_p));
        }
        return draw_kept(smem, candidates, pick, { pick->temperature, pick->min_p }, first);
}

template <unsigned THREADS> KERNEL(THREADS) pick_rows(pick_args a)
{
        uint32_t want = blockIdx.x, picked = PICK_NOT_FINITE;
        const pick *pick = &a.step.picks[want];
        smem *smem = (struct smem *)shared();
        candidates candidates;
        uint64_t first;

        wait_for_predecessor();
        if (want >= a.step.counts->wants || pick_has_more(pick))
                return;

        candidates = row_of(smem, a.logits + (size_t)want * a.stride, a.vocab, &first);
        if (first && candidates.largest != -INFINITY) {
                picked = id_of(first);
                /* min_p above 1 keeps no candidate. */
                if (pick->given)
                        picked = pick->given - 1;
                else if (pick->temperature > 0 && pick->min_p <= 1)
                        picked = draw_from(smem, &candidates, pick, picked);
        }
        if (!threadIdx.x)
                a.tokens[want] = picked;
        if (picked != PICK_NOT_FINITE && pick_asks_for_sum(pick))
                write_logprobs(smem, &candidates, pick, picked, a.entries + pick->first_entry);
}

int pick_tokens(struct device *device, const struct pick_args *args)
{
        bool small = args->vocab <= SMALL_VOCAB;
        const launch launch = { args->wants_max, 1, 1, small ? 64u : 1024u, sizeof(smem), true };

        if (!args->vocab || args->vocab > PICK_VOCAB_MAX || args->stride < args->vocab)
                return -EINVAL;
        return device_launch(device, STREAM_STEPS, launch, small ? pick_rows<64> : pick_rows<1024>,
                             *args);
}
