/*
 * Picks tokens from the logits of a step's rows (pick.h), with the vocabulary of Llama 3.
 */
#include <stdio.h>
#include <vector>

#include "bench/cuda/bench.h"
#include "kernels/cuda/pick.h"

#define VOCAB    128256u
#define WANTS    256u
#define OF_BLOCK 65e9 /* bytes/s that one block can read, a guess */

static const struct {
        const char *name;
        pick how;
        unsigned readings; /* how often a row's logits are read (pick.h) */
} kinds[] = {
        { "greedy", { 0, 1, 0, 0, 0, 1, 1, 0 }, 1 },
        { "drawn", { 1, 1, 0, 0, 0, 2, 1, 0 }, 2 },
        { "drawn, top_p 0.9", { 1, 0.9f, 0, 0, 0, 3, 1, 0 }, 4 },
        { "drawn, top_k 40, 5 logprobs", { 1, 1, 0, 40, 0, 4, 1, 6 }, 8 },
};

static double predict(const card &card, uint32_t wants, unsigned readings)
{
        double row = (double)VOCAB * 4, first = row * wants / card.memory;
        double block = row / OF_BLOCK * ((wants + 131) / 132);

        return (first > block ? first : block) * readings + PREDICTED_GAP;
}

static figure time_picks(bench *b, const float *logits, const pick *pick, uint32_t wants,
                         uint32_t vocab)
{
        step_counts *counts = bench_sent<step_counts>(b, { { wants, wants, wants } });
        std::vector<struct pick> all(wants, *pick);
        struct pick *picks;
        std::vector<uint32_t> tokens(wants);
        pick_args args = {};
        auto put = [&](unsigned) { bench_must(pick_tokens(b->device, &args), "picks"); };
        figure f;

        for (uint32_t i = 0; i < wants; i++)
                all[i].first_entry = i * pick_entries(pick);
        picks = bench_sent(b, all);
        args.step.counts = counts;
        args.step.picks = picks;
        args.logits = logits;
        args.vocab = args.stride = vocab;
        args.wants_max = wants;
        args.tokens = (uint32_t *)bench_new(b, wants * sizeof(uint32_t));
        args.entries = (logprob *)bench_new(b, wants * PICK_ENTRIES_MAX * sizeof(logprob));
        put(0);
        bench_wait(b);
        f = bench_time_recorded(b, b->tiny ? 2 : 16, put);
        bench_fetch(b, tokens.data(), args.tokens, wants * sizeof(uint32_t));
        for (uint32_t token : tokens)
                bench_check(token < vocab, "a token of the vocabulary");
        bench_delete(b, counts);
        bench_delete(b, picks);
        bench_delete(b, args.tokens);
        bench_delete(b, args.entries);
        return f;
}

void bench_pick(bench *b)
{
        uint32_t vocab = b->tiny ? 500 : VOCAB;
        float *logits =
                b->device ? bench_array<float>(b, FILL_FLOATS, (size_t)WANTS * vocab) : nullptr;
        char what[100];

        for (const auto &kind : kinds)
                for (uint32_t wants : { 1u, 64u, 256u }) {
                        figure f = {};

                        if (b->tiny && wants > 1)
                                continue;
                        snprintf(what, sizeof(what), "%s, %u row%s of %u", kind.name, wants,
                                 wants > 1 ? "s" : "", VOCAB);
                        if (b->device)
                                f = figure_times(time_picks(b, logits, &kind.how, wants, vocab),
                                                 1e6);
                        figure_tell("pick", what, "us", predict_each([&](const card &card) {
                                            return predict(card, wants, kind.readings) * 1e6;
                                    }),
                                    b->device ? &f : nullptr, 0);
                }
        if (b->device)
                bench_delete(b, logits);
}
