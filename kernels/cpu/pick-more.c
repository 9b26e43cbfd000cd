#include "kernels/cpu/pick-more.h"

#include <math.h>

#include "kernels/cpu/draw-token.h"
#include "kernels/cuts.h"

/* Sets s->edited, the maxima of its blocks in s->bounds, and s->group_maxima. */
static void edit(const struct candidates *row, const struct pick *pick)
{
        const uint32_t whole = row->vocab / LOGITS_BLOCK, blocks = logit_blocks_of(row->vocab);
        struct pick_scratch *s = row->s;
        struct tail tail;

        logits_edit(pick, row->logits, row->vocab, s->edited);
        tail_fill(&tail, s->edited, row->vocab);
        row->loops->maxima(s->bounds, s->edited, whole);
        row->loops->maxima(s->bounds + whole, tail.logits, blocks - whole);
        for (uint32_t b = blocks; b < logit_blocks_of(blocks) * LOGITS_BLOCK; b++)
                s->bounds[b] = -INFINITY;
        row->loops->maxima(s->group_maxima, s->bounds, logit_blocks_of(blocks));
}

static float largest_of(const struct pick_scratch *s, uint32_t groups)
{
        float largest = -INFINITY;

        for (uint32_t g = 0; g < groups; g++)
                largest = s->group_maxima[g] > largest ? s->group_maxima[g] : largest;
        return largest;
}

static uint32_t id_of(const float *logits, float logit)
{
        uint32_t id = 0;

        while (logits[id] != logit)
                id++;
        return id;
}

static struct line make_line(const struct candidates *row, const struct pick *pick)
{
        struct pick_scratch *s = row->s;
        struct line line = { s->edited, s->listed_ids, 0, s->chances, 0 };
        bool all = !pick->top_k || cuts_need_all(pick);
        uint32_t n = candidates_select(s, s->edited, row->vocab, s->bounds,
                                       all ? row->vocab : pick->top_k);
        const struct candidate *sorted = candidates_sort(s->a, s->b, n);
        double least = n_sigma_least(pick, s->edited, row->vocab);

        for (uint32_t i = 0; i < n; i++) {
                float logit = s->edited[sorted[i].id];

                if (logit < least || logit == -INFINITY)
                        break;
                line.ids[line.count++] = sorted[i].id;
        }
        return line;
}

static uint32_t draw_from_line(const struct candidates *row, const struct pick *pick,
                               const struct line *line)
{
        struct candidates edited = *row;
        struct pick_scratch *s = row->s;

        if (line->count == 1)
                return line->ids[0];
        edited.logits = s->edited;
        edited.largest = s->edited[line->ids[0]];
        for (uint32_t i = 0; i < line->count; i++) {
                double below = (double)s->edited[line->ids[i]] - edited.largest;

                s->a[i].id = line->ids[i];
                s->chances[i] = exp(below / line->temperature);
        }
        return draw_from_few(&edited, pick, line->temperature, s->a, s->chances, line->count);
}

uint32_t pick_more(const struct candidates *row, const struct pick *pick, float *ret_surprise)
{
        struct pick_scratch *s = row->s;
        struct line line;
        uint32_t picked;
        float largest;

        *ret_surprise = 0;

        edit(row, pick);
        largest = largest_of(s, logit_blocks_of(logit_blocks_of(row->vocab)));
        if (largest == -INFINITY)
                return PICK_NONE_LEGAL;
        if (pick->temperature == 0)
                return id_of(s->edited, largest);
        line = make_line(row, pick);
        cuts_make(pick, &line);
        picked = draw_from_line(row, pick, &line);
        if (pick->mirostat)
                *ret_surprise = (float)surprise_of(&line, picked);
        return picked;
}
