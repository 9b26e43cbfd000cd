#include "daemon/constraint/guide.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FORCED_MOST 8u /* a forced text has so many tokens that begin it, at most */

static bool make_ahead(struct guide_ahead *ahead, uint32_t max, uint32_t words)
{
        assert(max <= GUIDE_AHEAD_MAX);
        ahead->max = max;
        ahead->tokens = calloc(max + 1ul, sizeof(*ahead->tokens));
        ahead->used = calloc(max + 1ul, sizeof(*ahead->used));
        ahead->masks = calloc((size_t)max * words + 1, sizeof(*ahead->masks));
        return ahead->tokens && ahead->used && ahead->masks;
}

static size_t ahead_bytes(const struct guide_ahead *ahead, uint32_t words)
{
        return (ahead->max + 1ul) * (sizeof(*ahead->tokens) + sizeof(*ahead->used)) +
               ((size_t)ahead->max * words + 1) * sizeof(*ahead->masks);
}

struct guide *guide_new(struct grammar *grammar, const struct token_trie *trie,
                        const uint32_t *ends, uint32_t end_count, uint32_t ahead_max)
{
        struct guide *guide = calloc(1, sizeof(*guide) + end_count * sizeof(*ends));

        if (!guide)
                return NULL;
        guide->words = trie->words;
        guide->end_count = end_count;
        for (uint32_t i = 0; i < end_count; i++)
                guide->ends[i] = ends[i];
        guide->grammar = grammar;
        guide->trie = trie;
        guide->mask = calloc(trie->words, sizeof(*guide->mask));
        guide->matcher = matcher_new(grammar, trie, &matcher_limits_default);
        return guide->mask && guide->matcher && make_ahead(&guide->ahead, ahead_max, trie->words)
                       ? guide
                       : guide_free(guide);
}

struct guide *guide_free(struct guide *guide)
{
        if (!guide)
                return NULL;
        matcher_free(guide->matcher);
        free(guide->mask);
        free(guide->ahead.tokens);
        free(guide->ahead.used);
        free(guide->ahead.masks);
        free(guide);
        return NULL;
}

size_t guide_bytes(const struct guide *guide)
{
        return sizeof(*guide) + guide->end_count * sizeof(*guide->ends) +
               guide->words * sizeof(*guide->mask) + matcher_bytes(guide->matcher) +
               ahead_bytes(&guide->ahead, guide->words);
}

static bool spend(struct guide *guide, const char *why)
{
        guide->state = GUIDE_SPENT;
        guide->why = why;
        return false;
}

static bool charge_fuel(struct guide *guide, uint64_t used)
{
        if (used > guide->fuel)
                return spend(guide, "the work for all masks of a stream");
        guide->fuel -= used;
        return true;
}

/* The matcher has worked.  False: a budget is spent. */
static bool charge(struct guide *guide, enum matcher_outcome outcome)
{
        if (outcome == MATCHER_SPENT)
                return spend(guide, matcher_why(guide->matcher));
        return charge_fuel(guide, matcher_used(guide->matcher));
}

/* The tokens that end the stream are legal where the text may end. */
static enum guide_state add_ends(const struct guide *guide, uint32_t *mask)
{
        if (!matcher_can_end(guide->matcher))
                return GUIDE_GOES_ON;
        for (uint32_t i = 0; i < guide->end_count; i++)
                mask[guide->ends[i] >> 5] |= 1u << (guide->ends[i] & 31);
        return matcher_must_end(guide->matcher) ? GUIDE_WHOLE : GUIDE_GOES_ON;
}

static void make_mask(struct guide *guide)
{
        if (charge(guide, matcher_mask(guide->matcher, guide->mask)))
                guide->state = add_ends(guide, guide->mask);
}

void guide_begin(struct guide *guide)
{
        guide->fuel = GUIDE_FUEL;
        guide->ahead.count = 0;
        matcher_reset(guide->matcher);
        make_mask(guide);
}

void guide_take(struct guide *guide, uint32_t token)
{
        enum matcher_outcome outcome;

        guide->ahead.count = 0;
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
        to->ahead.count = 0;
}

/* ---- looking ahead ---- */

static const char *text_of(const struct guide *guide, uint32_t token, uint32_t *ret_count)
{
        const struct token_trie *trie = guide->trie;

        *ret_count = trie->offsets[token + 1] - trie->offsets[token];
        return trie->texts + trie->offsets[token];
}

/* Does the text of one of these tokens begin with that of the other?  Returns the longer one. */
static uint32_t longer_of(const struct guide *guide, uint32_t one, uint32_t other)
{
        uint32_t one_count, other_count, least;
        const char *one_text = text_of(guide, one, &one_count);
        const char *other_text = text_of(guide, other, &other_count);

        least = one_count < other_count ? one_count : other_count;
        if (!least || memcmp(one_text, other_text, least) != 0)
                return TOKEN_TRIE_NONE;
        return one_count >= other_count ? one : other;
}

/*
 * Only one text is legal, if each legal token begins the longest of them.  That one is the likely
 * token, as tokenizers prefer long ones.  TOKEN_TRIE_NONE: more than one text is legal.
 */
static uint32_t find_forced(const struct guide *guide, const uint32_t *mask, bool *ret_sure)
{
        uint32_t found = TOKEN_TRIE_NONE, count = 0;

        for (uint32_t i = 0; i < guide->words; i++)
                for (uint32_t bits = mask[i]; bits; bits &= bits - 1) {
                        uint32_t token = i * 32 + (uint32_t)__builtin_ctz(bits);

                        found = count ? longer_of(guide, found, token) : token;
                        if (++count > FORCED_MOST || found == TOKEN_TRIE_NONE)
                                return TOKEN_TRIE_NONE;
                }
        *ret_sure = count == 1;
        return found;
}

static bool is_legal(const struct guide *guide, const uint32_t *mask, uint32_t token)
{
        return token < guide->trie->token_count && (mask[token >> 5] >> (token & 31) & 1);
}

static bool is_end(const struct guide *guide, uint32_t token)
{
        for (uint32_t i = 0; i < guide->end_count; i++)
                if (guide->ends[i] == token)
                        return true;
        return false;
}

/* What would be left for the stream, if all that is ahead had come. */
static uint64_t fuel_ahead(const struct guide *guide)
{
        uint64_t fuel = guide->fuel;

        for (uint32_t i = 0; i < guide->ahead.count; i++)
                fuel += GUIDE_FUEL_TOKEN - guide->ahead.used[i];
        return fuel;
}

/* Takes a legal token, and makes the mask behind it.  False: that is not possible. */
static bool step_ahead(struct guide *guide, uint32_t token, uint32_t *taken)
{
        struct guide_ahead *ahead = &guide->ahead;
        uint32_t *mask = ahead->masks + (size_t)ahead->count * guide->words;
        uint64_t used;

        if (grammar_is_crowded(guide->grammar))
                return false;

        if (matcher_take(guide->matcher, token) != MATCHER_FINE)
                return false;
        ++*taken;
        used = matcher_used(guide->matcher);
        if (matcher_mask(guide->matcher, mask) != MATCHER_FINE)
                return false;
        used += matcher_used(guide->matcher);
        ahead->used[ahead->count] = used;
        return used <= fuel_ahead(guide) + GUIDE_FUEL_TOKEN &&
               add_ends(guide, mask) == GUIDE_GOES_ON;
}

void guide_look_ahead(struct guide *guide, const uint32_t *guesses, uint32_t count, uint32_t most)
{
        struct guide_ahead *ahead = &guide->ahead;
        uint32_t taken = 0;

        assert(most <= ahead->max && !ahead->count);
        ahead->forced = ahead->sure = 0;
        while (ahead->count < most && guide->state == GUIDE_GOES_ON) {
                uint32_t at = ahead->count, token = TOKEN_TRIE_NONE;
                const uint32_t *mask = guide_mask(guide, at);
                bool guessed = !ahead->forced && at < count && is_legal(guide, mask, guesses[at]);
                bool sure = false;

                token = guessed ? guesses[at] : find_forced(guide, mask, &sure);
                if (token == TOKEN_TRIE_NONE || is_end(guide, token) ||
                    !step_ahead(guide, token, &taken))
                        break;
                ahead->tokens[ahead->count++] = token;
                ahead->forced += !guessed;
                ahead->sure |= (uint32_t)sure << at;
        }
        matcher_back(guide->matcher, taken);
}

void guide_confirm(struct guide *guide, uint32_t count)
{
        struct guide_ahead *ahead = &guide->ahead;

        assert(count <= ahead->count);
        for (uint32_t i = 0; i < count && guide->state != GUIDE_SPENT; i++) {
                guide->fuel += GUIDE_FUEL_TOKEN;
                if (matcher_take(guide->matcher, ahead->tokens[i]) == MATCHER_SPENT)
                        spend(guide, matcher_why(guide->matcher));
                else
                        charge_fuel(guide, ahead->used[i]);
        }
}
