#include "kernels/cpu/narrow.h"

#include <math.h>

#define SAMPLE 512u
/* Places in the sample between the estimated border and either end of the stretch. */
#define ASIDE    12u
#define FEW      256u       /* this few are sorted */
#define LAST_KEY 0xff800000 /* the key of -inf */

/*
 * The candidates among which the border is. The border is the candidate at which the running
 * weight of the line reaches the target. The candidates are in s->a, in order of id; their
 * weights are in s->each, by id.
 */
struct list {
        const struct line *line;
        uint32_t count;
        /*
         * The running weight within the list that the border reaches, and the weight of the whole
         * list.
         */
        double target, weight;
};

/* Keys [first, last]. */
struct stretch {
        uint32_t first, last;
};

static bool is_on(struct stretch at, uint32_t key)
{
        return key - at.first <= at.last - at.first;
}

/*
 * Estimates from a sample in which stretch the border is, with a margin of `aside` places of the
 * sample on each side. The sample is of `count` candidates: of a list, or of the line if `list`
 * is NULL. `behind` is the weight of the candidates behind the border. These are many and
 * similar, so a sample estimates their sum well. The few candidates with most weight might all be
 * missing from the sample.
 */
static struct stretch guess(const struct line *line, const struct candidate *list, uint32_t count,
                            double behind, uint32_t aside)
{
        struct candidate sample[SAMPLE], room[SAMPLE], *sorted;
        float logits[SAMPLE], each[SAMPLE], sums[SAMPLE / LOGITS_BLOCK];
        double sum = 0, stand_for = (double)count / SAMPLE;
        uint32_t at = SAMPLE - 1;

        for (uint32_t i = 0; i < SAMPLE; i++) {
                uint32_t one = (uint32_t)((uint64_t)count * i / SAMPLE);

                logits[i] = line->logits[list ? list[one].id : one];
                sample[i] = (struct candidate){ sort_key(logits[i]), i };
        }
        line->loops->weigh(each, sums, logits, SAMPLE / LOGITS_BLOCK, line->largest, line->factor);
        sorted = candidates_sort(sample, room, SAMPLE);
        for (; at > 0; at--) {
                sum += each[sorted[at].id] * stand_for;
                if (sum > behind)
                        break;
        }
        return (struct stretch){
                at < aside ? 0 : sorted[at - aside].key,
                at + aside < SAMPLE ? sorted[at + aside].key : LAST_KEY,
        };
}

/* ---- the line ---- */

/*
 * Lists the candidates in the stretch. s->sums gets the weights of those before it, by block.
 * Returns the total of these.
 */
static double line_split(struct list *list, struct stretch on)
{
        const struct line *line = list->line;
        const uint32_t whole = line->vocab / LOGITS_BLOCK, blocks = blocks_of(line->vocab);
        const struct split at = { line->largest, line->factor, key_logit(on.last),
                                  on.first ? key_logit(on.first - 1) : INFINITY };
        struct sorter *s = line->s;
        double before = 0;
        uint32_t n;

        n = line->loops->split(&at, s->sums, s->where, s->found, line->logits, whole, 0);
        n += line->loops->split(&at, s->sums + whole, s->where + n, s->found + n, s->tail.logits,
                                blocks - whole, whole * LOGITS_BLOCK);
        while (n && s->where[n - 1] >= line->vocab)
                n--; /* padding of the last block */
        for (uint32_t b = 0; b < blocks; b++)
                before += s->sums[b];
        for (uint32_t b = blocks; b < round_up(blocks, LOGITS_BLOCK); b++)
                s->sums[b] = 0;
        list->count = n;
        list->weight = 0;
        for (uint32_t i = 0; i < n; i++)
                list->weight += s->found[i];
        return before;
}

/*
 * Makes the first list. If the sample misled, no second sample is taken: the list is then all
 * candidates before its stretch, or all behind it.
 */
static struct list list_make(const struct line *line, double target, double whole)
{
        struct stretch on = guess(line, NULL, line->vocab, whole - target, ASIDE);
        struct list list = { .line = line };
        double before = line_split(&list, on);
        struct sorter *s = line->s;

        if (before >= target && before > 0)
                before = line_split(&list, (struct stretch){ 0, on.first - 1 });
        else if (before + list.weight < target && on.last < LAST_KEY)
                before = line_split(&list, (struct stretch){ on.last + 1, LAST_KEY });
        for (uint32_t i = 0; i < list.count; i++) {
                uint32_t id = s->where[i];

                s->a[i] = (struct candidate){ sort_key(line->logits[id]), id };
                s->each[id] = s->found[i];
        }
        list.target = target - before;
        return list;
}

/* ---- the list ---- */

/*
 * The weight of the candidates before a stretch, of those up to its end, and of all. They are
 * summed in the same order, so `until` equals `all` if there is no candidate behind the stretch.
 */
struct weights {
        double before, until, all;
};

static struct weights list_weigh(const struct list *list, struct stretch at)
{
        const struct sorter *s = list->line->s;
        struct weights sum = { 0 };

        for (uint32_t i = 0; i < list->count; i++) {
                double weight = s->each[s->a[i].id];

                sum.before += s->a[i].key < at.first ? weight : 0;
                sum.until += s->a[i].key <= at.last ? weight : 0;
                sum.all += weight;
        }
        return sum;
}

/*
 * Keeps only the candidates in the stretch on the list, and adds the weights of those before it
 * to s->sums.
 */
static void list_keep(struct list *list, struct stretch at)
{
        struct sorter *s = list->line->s;
        uint32_t n = 0;

        for (uint32_t i = 0; i < list->count; i++) {
                struct candidate c = s->a[i];

                s->sums[c.id / LOGITS_BLOCK] += c.key < at.first ? s->each[c.id] : 0;
                s->a[n] = c;
                n += is_on(at, c.key);
        }
        list->count = n;
}

/* Shortens the list to the one of three parts that contains the border; returns that part. */
static struct stretch list_shorten(struct list *list, uint32_t aside)
{
        struct stretch at = guess(list->line, list->line->s->a, list->count,
                                  list->weight - list->target, aside);
        struct weights sum = list_weigh(list, at);

        if (sum.before >= list->target && sum.before > 0) {
                at = (struct stretch){ 0, at.first - 1 };
                list->weight = sum.before;
        } else if (sum.until >= list->target || sum.until >= sum.all) {
                list->target -= sum.before;
                list->weight = sum.until - sum.before;
        } else {
                at = (struct stretch){ at.last + 1, LAST_KEY };
                list->target -= sum.until;
                list->weight = sum.all - sum.until;
        }
        list_keep(list, at);
        return at;
}

/*
 * Finds the candidate at which the sum, in this order, reaches the target; if rounding prevents
 * that, the last one. All candidates up to it are kept.
 */
static struct kept list_reach(const struct list *list, const struct candidate *c)
{
        struct sorter *s = list->line->s;
        double sum = 0;
        uint32_t i = 0;

        for (;; i++) {
                s->sums[c[i].id / LOGITS_BLOCK] += s->each[c[i].id];
                sum += s->each[c[i].id];
                if (sum >= list->target || i + 1 == list->count)
                        break;
        }
        return (struct kept){ key_logit(c[i].key), c[i].id };
}

struct kept narrow(const struct line *line, double target, double whole)
{
        struct list list = list_make(line, target, whole);
        struct sorter *s = line->s;
        uint32_t aside = ASIDE;

        if (!list.count) /* by rounding: all candidates are before the stretch */
                return KEPT_ALL;
        while (list.count > FEW) {
                uint32_t count = list.count;
                struct stretch at = list_shorten(&list, aside);

                if (at.first == at.last && s->a[0].key == at.first)
                        return list_reach(&list, s->a); /* all are equal: in order of id */
                /*
                 * If the sample has few values, the margin may include everything. Then the next
                 * stretch is a single value of the sample.
                 */
                aside = list.count > count / 2 ? 0 : ASIDE;
        }
        return list_reach(&list, candidates_sort(s->a, s->b, list.count));
}
