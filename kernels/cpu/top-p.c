#include "kernels/cpu/top-p.h"

#include <math.h>

#define SAMPLE 512u
/* Members of the sample between the estimated border and either end of the key range. */
#define MARGIN   12u
#define FEW      256u       /* this few are sorted */
#define LAST_KEY 0xff800000 /* the key of -inf */

/*
 * The candidates among which the border is. The border is the candidate at which the running weight
 * of all candidates reaches the target. The candidates are in s->a, in order of id; their weights
 * are in s->weights, by id.
 */
struct list {
        const struct candidates *candidates;
        uint32_t count;
        /*
         * The running weight within the list that the border reaches, and the weight of the whole
         * list.
         */
        double target, weight;
};

/* Keys [first, last]. */
struct key_range {
        uint32_t first, last;
};

static bool is_in_range(struct key_range at, uint32_t key)
{
        return key - at.first <= at.last - at.first;
}

/*
 * Estimates from a sample in which key range the border is, with `margin` members of the sample on
 * each side. The sample is of `count` candidates: of a list, or of the whole row if `list` is NULL.
 * `behind` is the weight of the candidates behind the border. These are many and similar, so a
 * sample estimates their sum well. The few candidates with most weight might all be missing from
 * the sample.
 */
static struct key_range estimate_range(const struct candidates *candidates,
                                       const struct candidate *list, uint32_t count, double behind,
                                       uint32_t margin)
{
        struct candidate sample[SAMPLE], spare[SAMPLE], *sorted;
        float logits[SAMPLE], weights[SAMPLE], block_weights[SAMPLE / LOGITS_BLOCK];
        double sum = 0, stand_for = (double)count / SAMPLE;
        uint32_t at = SAMPLE - 1;

        for (uint32_t i = 0; i < SAMPLE; i++) {
                uint32_t one = (uint32_t)((uint64_t)count * i / SAMPLE);

                logits[i] = candidates->logits[list ? list[one].id : one];
                sample[i] = (struct candidate){ sort_key(logits[i]), i };
        }
        candidates->loops->weigh(weights, block_weights, logits, SAMPLE / LOGITS_BLOCK,
                                 candidates->largest, candidates->factor);
        sorted = candidates_sort(sample, spare, SAMPLE);
        for (; at > 0; at--) {
                sum += weights[sorted[at].id] * stand_for;
                if (sum > behind)
                        break;
        }
        return (struct key_range){
                at < margin ? 0 : sorted[at - margin].key,
                at + margin < SAMPLE ? sorted[at + margin].key : LAST_KEY,
        };
}

/* ---- all candidates ---- */

/* Lists the candidates in the key range. Returns the weight of those before it. */
static double candidates_split(struct list *list, struct key_range on)
{
        const struct candidates *candidates = list->candidates;
        const uint32_t whole = candidates->vocab / LOGITS_BLOCK,
                       blocks = logit_blocks_of(candidates->vocab);
        const struct split at = { candidates->largest, candidates->factor, key_logit(on.last),
                                  on.first ? key_logit(on.first - 1) : INFINITY };
        struct pick_scratch *s = candidates->s;
        double before = 0;
        uint32_t n;

        n = candidates->loops->split(&at, s->block_weights, s->listed_ids, s->listed_weights,
                                     candidates->logits, whole, 0);
        n += candidates->loops->split(&at, s->block_weights + whole, s->listed_ids + n,
                                      s->listed_weights + n, s->tail.logits, blocks - whole,
                                      whole * LOGITS_BLOCK);
        while (n && s->listed_ids[n - 1] >= candidates->vocab)
                n--; /* padding of the last block */
        for (uint32_t b = 0; b < blocks; b++)
                before += s->block_weights[b];
        list->count = n;
        list->weight = 0;
        for (uint32_t i = 0; i < n; i++)
                list->weight += s->listed_weights[i];
        return before;
}

/*
 * Makes the first list. If the sample misled, no second sample is taken: the list is then all
 * candidates before its key range, or all behind it.
 */
static struct list list_make(const struct candidates *candidates, double target, double whole)
{
        struct key_range on =
                estimate_range(candidates, NULL, candidates->vocab, whole - target, MARGIN);
        struct list list = { .candidates = candidates };
        double before = candidates_split(&list, on);
        struct pick_scratch *s = candidates->s;

        if (before >= target && before > 0)
                before = candidates_split(&list, (struct key_range){ 0, on.first - 1 });
        else if (before + list.weight < target && on.last < LAST_KEY)
                before = candidates_split(&list, (struct key_range){ on.last + 1, LAST_KEY });
        for (uint32_t i = 0; i < list.count; i++) {
                uint32_t id = s->listed_ids[i];

                s->a[i] = (struct candidate){ sort_key(candidates->logits[id]), id };
                s->weights[id] = s->listed_weights[i];
        }
        list.target = target - before;
        return list;
}

/* ---- the list ---- */

/*
 * The weight of the candidates before a key range, of those up to its end, and of all. They are
 * summed in the same order, so `until` equals `all` if there is no candidate behind the key range.
 */
struct weights {
        double before, until, all;
};

static struct weights list_weigh(const struct list *list, struct key_range at)
{
        const struct pick_scratch *s = list->candidates->s;
        struct weights sum = { 0 };

        for (uint32_t i = 0; i < list->count; i++) {
                double weight = s->weights[s->a[i].id];

                sum.before += s->a[i].key < at.first ? weight : 0;
                sum.until += s->a[i].key <= at.last ? weight : 0;
                sum.all += weight;
        }
        return sum;
}

/* Keeps only the candidates in the key range on the list. */
static void list_keep(struct list *list, struct key_range at)
{
        struct pick_scratch *s = list->candidates->s;
        uint32_t n = 0;

        for (uint32_t i = 0; i < list->count; i++) {
                struct candidate c = s->a[i];

                s->a[n] = c;
                n += is_in_range(at, c.key);
        }
        list->count = n;
}

/* Shortens the list to the one of three parts that contains the border; returns that part. */
static struct key_range list_shorten(struct list *list, uint32_t margin)
{
        struct key_range at = estimate_range(list->candidates, list->candidates->s->a, list->count,
                                             list->weight - list->target, margin);
        struct weights sum = list_weigh(list, at);

        if (sum.before >= list->target && sum.before > 0) {
                at = (struct key_range){ 0, at.first - 1 };
                list->weight = sum.before;
        } else if (sum.until >= list->target || sum.until >= sum.all) {
                list->target -= sum.before;
                list->weight = sum.until - sum.before;
        } else {
                at = (struct key_range){ at.last + 1, LAST_KEY };
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
static struct cutoff list_reach(const struct list *list, const struct candidate *c)
{
        const float *weights = list->candidates->s->weights;
        double sum = 0;
        uint32_t i = 0;

        for (;; i++) {
                sum += weights[c[i].id];
                if (sum >= list->target || i + 1 == list->count)
                        break;
        }
        return (struct cutoff){ key_logit(c[i].key), c[i].id };
}

struct cutoff find_top_p(const struct candidates *candidates, double target, double whole)
{
        struct list list = list_make(candidates, target, whole);
        struct pick_scratch *s = candidates->s;
        uint32_t margin = MARGIN;

        if (!list.count) /* by rounding: all candidates are before the key range */
                return CUTOFF_NONE;
        while (list.count > FEW) {
                uint32_t count = list.count;
                struct key_range at = list_shorten(&list, margin);

                if (at.first == at.last && s->a[0].key == at.first)
                        return list_reach(&list, s->a); /* all are equal: in order of id */
                /*
                 * If the sample has few values, the margin may include everything. Then the next
                 * key range is a single value of the sample.
                 */
                margin = list.count > count / 2 ? 0 : MARGIN;
        }
        return list_reach(&list, candidates_sort(s->a, s->b, list.count));
}
