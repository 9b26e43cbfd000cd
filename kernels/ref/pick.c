/*
 * The definition of picking, which kernels/draw.h describes in words.
 *
 * Candidates are sorted with one heap of ids that has the worst candidate at its root. While the
 * logits are read, a better id replaces the root, so the heap ends with the best top_k (or simply
 * all). Then the worst is taken out again and again, which fills the array from the end, so that
 * the best is first. The most likely tokens for logprobs are found in the same way.
 *
 * Every candidate that is kept after all cuts gets a score, and the best one is drawn.
 */
#include <math.h>

#include "kernels/cuts.h"
#include "kernels/draw.h"
#include "kernels/ref/ref.h"

static bool better(const float *logits, uint32_t a, uint32_t b)
{
        return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

static void heap_sink(const float *logits, uint32_t *ids, uint32_t at, uint32_t count)
{
        uint32_t id = ids[at];

        for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
                if (child + 1 < count && better(logits, ids[child], ids[child + 1]))
                        child++;
                if (better(logits, ids[child], id))
                        break;
                ids[at] = ids[child];
        }
        ids[at] = id;
}

/* ids[0 .. keep) = the best candidates, best first */
static void sort_best(const float *logits, uint32_t vocab, uint32_t *ids, uint32_t keep)
{
        for (uint32_t i = 0; i < keep; i++)
                ids[i] = i;
        for (uint32_t i = keep / 2; i-- > 0;)
                heap_sink(logits, ids, i, keep);
        for (uint32_t i = keep; i < vocab; i++) {
                if (better(logits, i, ids[0])) {
                        ids[0] = i;
                        heap_sink(logits, ids, 0, keep);
                }
        }
        for (uint32_t left = keep; left-- > 1;) {
                uint32_t worst = ids[0];

                ids[0] = ids[left];
                ids[left] = worst;
                heap_sink(logits, ids, 0, left);
        }
}

/* The id of the largest logit, or PICK_NOT_FINITE. */
static uint32_t find_largest(const float *logits, uint32_t vocab)
{
        uint32_t best = 0;

        for (uint32_t i = 0; i < vocab; i++) {
                if (isnan(logits[i]) || logits[i] == INFINITY)
                        return PICK_NOT_FINITE;
                if (logits[i] > logits[best])
                        best = i;
        }
        return logits[best] == -INFINITY ? PICK_NOT_FINITE : best;
}

/* The token with the best score. */
static uint32_t draw_token(const struct pick *pick, const struct line *line)
{
        const struct draw_key key = draw_key_of(pick);
        const float largest = line->logits[line->ids[0]];
        uint32_t best = line->ids[0];
        double best_score = -INFINITY;

        for (uint32_t i = 0; line->count > 1 && i < line->count; i++) {
                uint32_t id = line->ids[i];
                double least = draw_least(&key, id / DRAW_SPAN);
                double score = draw_score(line->logits[id], largest, line->temperature,
                                          draw_time(&key, id, least));

                if (score > best_score || (score == best_score && id < best)) {
                        best_score = score;
                        best = id;
                }
        }
        return best;
}

/* All candidates that n_sigma keeps. */
static struct line make_line(struct ref *ref, const struct pick *pick, uint32_t vocab)
{
        struct line line = { ref->edited, ref->ids, vocab, ref->chances, 0 };
        double least = n_sigma_least(pick, ref->edited, vocab);

        sort_best(ref->edited, vocab, ref->ids, vocab);
        while (line.logits[line.ids[line.count - 1]] < least ||
               line.logits[line.ids[line.count - 1]] == -INFINITY)
                line.count--;
        return line;
}

/* *ret_surprise: 0 if nothing is drawn. */
static uint32_t pick_row(struct ref *ref, const struct pick *pick, const float *logits,
                         uint32_t vocab, float *ret_surprise)
{
        uint32_t largest = find_largest(logits, vocab), picked;
        struct line line;

        *ret_surprise = 0;

        assert(pick->temperature >= 0);
        if (largest == PICK_NOT_FINITE)
                return largest;
        if (pick->given)
                return pick->given - 1;
        logits_edit(pick, logits, vocab, ref->edited);
        largest = find_largest(ref->edited, vocab);
        if (largest == PICK_NOT_FINITE)
                return PICK_NONE_LEGAL;
        if (pick->temperature == 0)
                return largest;
        line = make_line(ref, pick, vocab);
        cuts_make(pick, &line);
        picked = draw_token(pick, &line);
        *ret_surprise = (float)surprise_of(&line, picked);
        return picked;
}

static void write_logprobs(struct ref *ref, const struct pick *pick, const float *logits,
                           uint32_t vocab, uint32_t picked, struct logprob *ret_entries)
{
        const uint32_t count = pick->logprobs;
        double largest = logits[find_largest(logits, vocab)], sum = 0;

        assert(count <= vocab + 1);
        for (uint32_t i = 0; i < vocab; i++)
                sum += exp(logits[i] - largest);
        if (count > 1)
                sort_best(logits, vocab, ref->ids, count - 1);
        for (uint32_t i = 0; i < count; i++) {
                uint32_t id = i ? ref->ids[i - 1] : picked;

                ret_entries[i] = (struct logprob){ id, (float)(logits[id] - largest - log(sum)) };
        }
        if (pick->log_sum)
                ret_entries[pick_log_sum_entry(pick)] =
                        (struct logprob){ picked, (float)(largest + log(sum)) };
}

int ref_pick(struct kernels *k, const float *logits, uint32_t vocab)
{
        struct ref *ref = ref_of(k);
        const struct step *step = &ref->steps.step;
        uint32_t *picked = steps_tokens_out(&ref->steps);

        assert(vocab && vocab <= ref->vocab_max);
        for (uint32_t i = 0; i < step->want_count; i++) {
                const float *row = logits + (size_t)i * vocab;
                struct logprob *entries = steps_entries_out(&ref->steps, i);
                const struct pick *pick = &step->picks[i];
                float surprise;

                picked[i] = pick_row(ref, pick, row, vocab, &surprise);
                if (pick_failed(picked[i]))
                        continue;
                steps_copy_row(&ref->steps, i, row, vocab);
                if (pick_asks_for_sum(pick))
                        write_logprobs(ref, pick, row, vocab, picked[i], entries);
                if (pick->mirostat)
                        entries[pick->logprobs] = (struct logprob){ picked[i], surprise };
        }
        return 0;
}
