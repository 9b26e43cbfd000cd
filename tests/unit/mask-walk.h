/*
 * Random walks: a matcher along random tokens, and back over some of them.  In each state its mask
 * is compared with what a recogniser of another kind says about each of 300 tokens.
 */
#ifndef TESTS_MASK_WALK_H
#define TESTS_MASK_WALK_H

#include <stdio.h>
#include <string.h>

#include "daemon/constraint/matcher.h"
#include "tests/unit/span-recogniser.h"

#define TOKENS 300
#define STEPS  9

static uint64_t random_state;

static inline unsigned random_below(unsigned bound)
{
        random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
        return (random_state >> 33) % bound;
}

static char token_bytes[TOKENS][5];

/* Texts of 1 to 4 letters; some are equal, as in real vocabularies. */
static inline struct token_trie *random_vocabulary(void)
{
        struct token_text texts[TOKENS];

        for (int i = 0; i < TOKENS; i++) {
                unsigned count = i < 4 ? 1 : 1 + random_below(4);

                memset(token_bytes[i], 0, sizeof(token_bytes[i]));
                for (unsigned j = 0; j < count; j++)
                        token_bytes[i][j] = i < 4 ? "abc\""[i] : "abc\""[random_below(4)];
                texts[i] = (struct token_text){ token_bytes[i], count };
        }
        return token_trie_new(texts, TOKENS, NULL, 0);
}

/* Compares the mask with the recogniser's; returns a legal token, or -1. */
static inline int check_mask(struct span_grammar *grammar, struct matcher *matcher,
                             const char *source, const char *text)
{
        uint32_t bits[(TOKENS + 31) / 32];
        char longer[SPAN_TEXT + 8];
        bool whole;
        bool begins[256]; /* this letter may come next */
        int legal[TOKENS], count = 0;

        span_accepts(grammar, text, strlen(text), &whole);
        if (whole != matcher_can_end(matcher))
                fail_msg("behind '%s' of\n%s: can end: %d, not %d", text, source, !whole, whole);
        if (matcher_mask(matcher, bits) != MATCHER_FINE)
                fail_msg("behind '%s' of\n%s: %s", text, source, matcher_why(matcher));
        for (int i = 0; i < TOKENS; i++) {
                bool mask = bits[i / 32] >> (i % 32) & 1, wanted;

                snprintf(longer, sizeof(longer), "%.*s%.4s", SPAN_TEXT, text, token_bytes[i]);
                wanted = (i < 4 || begins[(int)token_bytes[i][0]]) &&
                         span_accepts(grammar, longer, strlen(longer), &whole);
                if (i < 4) /* the first tokens are the letters */
                        begins[(int)token_bytes[i][0]] = wanted;
                if (mask != wanted)
                        fail_msg("'%s' behind '%s' of\n%s: %d, not %d", token_bytes[i], text,
                                 source, mask, wanted);
                if (wanted)
                        legal[count++] = i;
        }
        assert_int_equal(matcher_must_end(matcher), matcher_can_end(matcher) && count == 0);
        return count ? legal[random_below(count)] : -1;
}

/* Takes tokens, and sometimes goes back over some of them. */
static inline void walk(struct span_grammar *grammar, struct matcher *matcher, const char *source)
{
        char text[SPAN_TEXT + 1] = "";
        size_t behind[STEPS + 1] = { 0 };
        int taken = 0;

        for (int step = 0; step < STEPS; step++) {
                int token = check_mask(grammar, matcher, source, text);
                int illegal = random_below(TOKENS);
                uint32_t bits[(TOKENS + 31) / 32];

                assert_int_equal(matcher_mask(matcher, bits), MATCHER_FINE);
                if (!(bits[illegal / 32] >> (illegal % 32) & 1))
                        assert_int_equal(matcher_take(matcher, illegal), MATCHER_ILLEGAL);
                if ((token < 0 || random_below(3) == 0) && taken) {
                        int back = 1 + random_below(taken);

                        matcher_back(matcher, back);
                        taken -= back;
                        text[behind[taken]] = 0;
                        continue;
                }
                if (token < 0 || strlen(text) + 8 > SPAN_TEXT)
                        return;
                assert_int_equal(matcher_take(matcher, token), MATCHER_FINE);
                strcat(text, token_bytes[token]);
                behind[++taken] = strlen(text);
        }
}

#endif
