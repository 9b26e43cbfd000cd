#include "daemon/constraint/guide.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct guide *guide_new(struct grammar *grammar, const struct token_trie *trie,
                        const uint32_t *ends, uint32_t end_count)
{
        struct guide *guide = calloc(1, sizeof(*guide) + end_count * sizeof(*ends));

        if (!guide)
                return NULL;
        guide->words = trie->words;
        guide->end_count = end_count;
        for (uint32_t i = 0; i < end_count; i++)
                guide->ends[i] = ends[i];
        guide->mask = calloc(trie->words, sizeof(*guide->mask));
        guide->matcher = matcher_new(grammar, trie, &matcher_limits_default);
        return guide->mask && guide->matcher ? guide : guide_free(guide);
}

struct guide *guide_free(struct guide *guide)
{
        if (!guide)
                return NULL;
        matcher_free(guide->matcher);
        free(guide->mask);
        free(guide);
        return NULL;
}

size_t guide_bytes(const struct guide *guide)
{
        return sizeof(*guide) + guide->end_count * sizeof(*guide->ends) +
               guide->words * sizeof(*guide->mask) + matcher_bytes(guide->matcher);
}

static bool spend(struct guide *guide, const char *why)
{
        guide->state = GUIDE_SPENT;
        guide->why = why;
        return false;
}

/* The matcher has worked.  False: a budget is spent. */
static bool charge(struct guide *guide, enum matcher_outcome outcome)
{
        uint64_t used = matcher_used(guide->matcher);

        if (outcome == MATCHER_SPENT)
                return spend(guide, matcher_why(guide->matcher));
        if (used > guide->fuel)
                return spend(guide, "the work for all masks of a stream");
        guide->fuel -= used;
        return true;
}

static void make_mask(struct guide *guide)
{
        if (!charge(guide, matcher_mask(guide->matcher, guide->mask)))
                return;
        guide->state = GUIDE_GOES_ON;
        if (!matcher_can_end(guide->matcher))
                return;
        for (uint32_t i = 0; i < guide->end_count; i++)
                guide->mask[guide->ends[i] >> 5] |= 1u << (guide->ends[i] & 31);
        if (matcher_must_end(guide->matcher))
                guide->state = GUIDE_WHOLE;
}

void guide_begin(struct guide *guide)
{
        guide->fuel = GUIDE_FUEL;
        matcher_reset(guide->matcher);
        make_mask(guide);
}

void guide_take(struct guide *guide, uint32_t token)
{
        enum matcher_outcome outcome;

        if (guide->state == GUIDE_SPENT)
                return;
        guide->fuel += GUIDE_FUEL_TOKEN;
        outcome = matcher_take(guide->matcher, token);
        assert(outcome != MATCHER_ILLEGAL);
        if (charge(guide, outcome))
                make_mask(guide);
}

void guide_copy(struct guide *to, const struct guide *from)
{
        assert(to->words == from->words);
        matcher_copy(to->matcher, from->matcher);
        memcpy(to->mask, from->mask, from->words * sizeof(*from->mask));
        to->state = from->state;
        to->why = from->why;
        to->fuel = from->fuel;
}
