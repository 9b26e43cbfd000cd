/*
 * Follows a grammar that was compiled from hostile text along a text that is hostile, too, and
 * checks that masks, tokens and steps back agree.  For fuzzers.
 */
#ifndef TESTS_FUZZ_CONSTRAINT_WALK_H
#define TESTS_FUZZ_CONSTRAINT_WALK_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "daemon/constraint/matcher.h"

#define WALK_TOKENS 270 /* all bytes, and texts of several */

static const struct grammar_limits walk_grammar_limits = { 20000, 2000, 20000, 100000, 1000000 };
static const struct matcher_limits walk_matcher_limits = { 2000, 200, 8, 64, 100000 };

static struct token_trie *walk_trie(void)
{
        static const char *const texts[] = { "ab",  "\":",  "\",\"", "{\"", "}}", "[[",  "  ",
                                             "tru", "null", "00",    ".5",  "é",  "\\u", "))" };
        static const uint32_t control = 256;
        struct token_text tokens[WALK_TOKENS + 1] = { 0 };
        static char bytes[256];

        for (int i = 0; i < 256; i++) {
                bytes[i] = (char)i;
                tokens[i] = (struct token_text){ &bytes[i], 1 };
        }
        for (int i = 0; i < 14; i++)
                tokens[257 + i] = (struct token_text){ texts[i], (uint32_t)strlen(texts[i]) };
        return token_trie_new(tokens, WALK_TOKENS + 1, &control, 1);
}

/* A token is taken if and only if the mask has it.  Some are taken back. */
static bool walk_takes(struct matcher *matcher, uint32_t token)
{
        uint32_t bits[(WALK_TOKENS + 32) / 32];
        enum matcher_outcome outcome;
        bool legal;

        if (matcher_mask(matcher, bits) != MATCHER_FINE)
                return false;
        legal = bits[token / 32] >> (token % 32) & 1;
        outcome = matcher_take(matcher, token);
        if (outcome == MATCHER_SPENT)
                return false;
        assert(legal == (outcome == MATCHER_FINE));
        assert(!legal || !matcher_must_end(matcher) || matcher_can_end(matcher));
        return true;
}

/* Walks along the bytes as tokens; true if the last place can end. */
static bool walk_along(struct grammar *grammar, const uint8_t *data, size_t size)
{
        struct token_trie *trie = walk_trie();
        struct matcher *matcher = matcher_new(grammar, trie, &walk_matcher_limits);
        bool ends = false;

        assert(trie && matcher);
        matcher_reset(matcher);
        for (size_t i = 0; i < size && i < 64; i++) {
                if (!walk_takes(matcher, data[i] % 5 ? data[i] : 256 + data[i] % 15u))
                        break;
                if (data[i] % 7 == 0 && matcher_back_most(matcher) > 1)
                        matcher_back(matcher, 1);
        }
        matcher_reset(matcher);
        ends = matcher_take_bytes(matcher, (const char *)data, size) == MATCHER_FINE &&
               matcher_can_end(matcher);
        matcher_free(matcher);
        token_trie_free(trie);
        return ends;
}

/* The input is two texts with a NUL between them. */
static size_t walk_split(const uint8_t *data, size_t size)
{
        const uint8_t *found = size ? memchr(data, 0, size) : NULL;

        return found ? (size_t)(found - data) : size;
}

#endif
