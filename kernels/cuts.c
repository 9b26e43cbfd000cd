#include "kernels/cuts.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/draw.h"

bool cuts_need_all(const struct pick *pick)
{
        return pick->temperature_range > 0 && pick->order == TEMPERATURE_FIRST;
}

void logits_edit(const struct pick *pick, const float *logits, uint32_t vocab, float *ret_logits)
{
        memcpy(ret_logits, logits, vocab * sizeof(*logits));
        for (uint32_t i = 0; i < pick->edit_count; i++) {
                const struct pick_edit *edit = &pick->edits[i];

                assert(edit->token < vocab && edit->theta > 0);
                assert(!i || edit[-1].token < edit->token);
                ret_logits[edit->token] = logit_edited(edit, logits[edit->token]);
        }
        for (uint32_t id = 0; pick->mask && id < vocab; id++)
                if (!(pick->mask[id / 32] >> id % 32 & 1))
                        ret_logits[id] = -INFINITY;
}

double n_sigma_least(const struct pick *pick, const float *logits, uint32_t vocab)
{
        double sum = 0, squares = 0, largest = -INFINITY;
        uint32_t count = 0;

        if (pick->n_sigma <= 0)
                return -INFINITY;
        for (uint32_t id = 0; id < vocab; id++) {
                if (logits[id] == -INFINITY)
                        continue;
                sum += logits[id];
                count++;
                largest = logits[id] > largest ? logits[id] : largest;
        }
        assert(count);
        for (uint32_t id = 0; id < vocab; id++) {
                double off = logits[id] - sum / count;

                squares += logits[id] == -INFINITY ? 0 : off * off;
        }
        return largest - pick->n_sigma * sqrt(squares / count);
}

static double logit_at(const struct line *line, uint32_t at)
{
        return line->logits[line->ids[at]];
}

/* Sets the chances of the line. */
static void weigh(const struct line *line, double temperature)
{
        double sum = 0;

        for (uint32_t i = 0; i < line->count; i++) {
                line->chances[i] = exp((logit_at(line, i) - logit_at(line, 0)) / temperature);
                sum += line->chances[i];
        }
        for (uint32_t i = 0; i < line->count; i++)
                line->chances[i] /= sum;
}

static double entropy(const struct line *line)
{
        double sum = 0;

        for (uint32_t i = 0; i < line->count && line->chances[i] > 0; i++)
                sum -= line->chances[i] * log(line->chances[i]);
        return sum;
}

static double find_temperature(const struct pick *pick, const struct line *line)
{
        double range = pick->temperature_range, lo, part;

        if (range <= 0 || line->count == 1)
                return pick->temperature;
        weigh(line, 1);
        lo = fmax(0, pick->temperature - range);
        part = entropy(line) / log(line->count);
        return lo + (pick->temperature + range - lo) * pow(part, pick->temperature_exponent);
}

static uint32_t least(uint32_t a, uint32_t b)
{
        return a < b ? a : b;
}

static double far_from(const struct line *line, double h, uint32_t at)
{
        return fabs(-log(line->chances[at]) - h);
}

/* Removes candidates [from, to). */
static void drop(struct line *line, uint32_t from, uint32_t to)
{
        memmove(line->ids + from, line->ids + to, (line->count - to) * sizeof(*line->ids));
        memmove(line->chances + from, line->chances + to,
                (line->count - to) * sizeof(*line->chances));
        line->count -= to - from;
}

/*
 * -log(p) rises along the line, so the nearest to the entropy are around one place. From there the
 * run [before, behind) grows in both directions. To the left, candidates that are equally far come
 * in groups, each from its front on; the last group may be taken in part.
 */
static void keep_typical(struct line *line, double wanted, double temperature)
{
        uint32_t before = 0, behind, kept;
        double h, sum = 0;

        weigh(line, temperature);
        h = entropy(line);
        while (before < line->count && -log(line->chances[before]) < h)
                before++;
        behind = before;
        while (sum < wanted && (before || behind < line->count)) {
                uint32_t end = before;

                if (!before || (behind < line->count &&
                                far_from(line, h, behind) < far_from(line, h, before - 1))) {
                        sum += line->chances[behind++];
                        continue;
                }
                while (before && far_from(line, h, before - 1) == far_from(line, h, end - 1))
                        before--;
                for (kept = before; kept < end && sum < wanted; kept++)
                        sum += line->chances[kept];
                drop(line, kept, end);
                behind -= end - kept;
        }
        line->count = behind;
        drop(line, 0, before);
}

/* top_p, then min_p */
static void keep_likely(struct line *line, const struct pick *pick, double temperature)
{
        const double *chances = line->chances;
        uint32_t keep = 0;
        double sum = 0;

        weigh(line, temperature);
        if (pick->top_p < 1) {
                while (keep < line->count) {
                        sum += chances[keep++];
                        if (sum >= pick->top_p)
                                break;
                }
                line->count = keep;
        }
        while (pick->min_p > 0 && line->count > 1 &&
               chances[line->count - 1] < pick->min_p * chances[0])
                line->count--;
}

static void keep_expected(struct line *line, double mu, double temperature)
{
        weigh(line, temperature);
        while (line->count > 1 && -log2(line->chances[line->count - 1]) > mu)
                line->count--;
}

static void drop_top(struct line *line, const struct pick *pick, double temperature)
{
        uint32_t likely = 0;

        if (draw(pick->seed, pick->sample_index, pick->position) >= pick->xtc_chance)
                return;
        weigh(line, temperature);
        while (likely < line->count && line->chances[likely] >= pick->xtc_least)
                likely++;
        if (likely < 2)
                return;
        drop(line, 0, likely - 1);
}

void cuts_make(const struct pick *pick, struct line *line)
{
        const bool is_first = pick->order == TEMPERATURE_FIRST;
        double temperature;

        assert(line->count);
        line->temperature = is_first ? find_temperature(pick, line) : 1;
        if (line->temperature <= 0)
                line->count = 1;
        if (pick->top_k)
                line->count = least(line->count, pick->top_k);
        temperature = line->temperature;
        if (line->count > 1 && pick->typical > 0 && pick->typical < 1)
                keep_typical(line, pick->typical, temperature);
        if (line->count > 1)
                keep_likely(line, pick, temperature);
        if (line->count > 1 && pick->mirostat)
                keep_expected(line, pick->mu, temperature);
        if (line->count > 1 && pick->xtc_chance > 0)
                drop_top(line, pick, temperature);
        if (!is_first)
                line->temperature = find_temperature(pick, line);
        if (line->temperature <= 0)
                line->count = 1;
}

double surprise_of(const struct line *line, uint32_t id)
{
        double sum = 0;

        if (line->count == 1)
                return 0;
        for (uint32_t i = 0; i < line->count; i++)
                sum += exp((logit_at(line, i) - logit_at(line, 0)) / line->temperature);
        return log2(sum) - ((double)line->logits[id] - logit_at(line, 0)) /
                                   (line->temperature * 0.69314718055994530942);
}
