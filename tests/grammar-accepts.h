/* Whether a grammar has a text, for tests. */
#ifndef TESTS_GRAMMAR_ACCEPTS_H
#define TESTS_GRAMMAR_ACCEPTS_H

#include <assert.h>
#include <string.h>

#include "daemon/constraint/matcher.h"

static inline bool grammar_accepts(struct grammar *grammar, const char *text)
{
        const struct token_text letter = { "a", 1 };
        struct token_trie *trie = token_trie_new(&letter, 1, NULL, 0);
        struct matcher *matcher = trie ? matcher_new(grammar, trie, &matcher_limits_default) : NULL;
        bool whole;

        assert(matcher);
        matcher_reset(matcher);
        whole = matcher_take_bytes(matcher, text, strlen(text)) == MATCHER_FINE &&
                matcher_can_end(matcher);
        matcher_free(matcher);
        token_trie_free(trie);
        return whole;
}

#endif
