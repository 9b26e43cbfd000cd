/*
 * Masks over a vocabulary so large that the matcher remembers what stays inside of a lexeme.  Each
 * token of the mask is taken, and each other one is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/constraint/json-schema.h"
#include "daemon/constraint/matcher.h"

#define TOKENS  4000
#define LONGEST 8
#define STEPS   60
#define WORDS   ((TOKENS + 31) / 32)

static char texts[TOKENS][LONGEST + 1];

/* Single bytes first, so that no text is without tokens. */
static struct token_trie *random_vocabulary(void)
{
        static const char letters[] = "\"\"\"\\,:{}[]n1 \nabcdefu\xc3\xa4-.e0";
        struct token_text of[TOKENS];

        for (unsigned i = 0; i < TOKENS; i++) {
                unsigned count = i < sizeof(letters) - 1 ? 1 : 1 + rand() % LONGEST;

                for (unsigned j = 0; j < count; j++)
                        texts[i][j] = i < sizeof(letters) - 1
                                              ? letters[i]
                                              : letters[rand() % (sizeof(letters) - 1)];
                of[i] = (struct token_text){ texts[i], count };
        }
        return token_trie_new(of, TOKENS, NULL, 0);
}

/* Returns a legal token, or TOKENS. */
static unsigned check_mask(struct matcher *matcher, const uint32_t *bits)
{
        unsigned legal[TOKENS], count = 0;

        for (unsigned i = 0; i < TOKENS; i++) {
                bool allowed = bits[i / 32] >> (i % 32) & 1;
                enum matcher_outcome outcome = matcher_take(matcher, i);

                if (outcome != (allowed ? MATCHER_FINE : MATCHER_ILLEGAL))
                        fail_msg("'%s': %d, the mask says %d", texts[i], outcome, allowed);
                if (allowed) {
                        matcher_back(matcher, 1);
                        legal[count++] = i;
                }
        }
        return count ? legal[rand() % count] : TOKENS;
}

static void walk(struct matcher *matcher)
{
        uint32_t bits[WORDS], again[WORDS];
        unsigned taken = 0;

        for (unsigned step = 0; step < STEPS; step++) {
                unsigned token;

                assert_int_equal(matcher_mask(matcher, bits), MATCHER_FINE);
                assert_int_equal(matcher_mask(matcher, again), MATCHER_FINE);
                assert_memory_equal(bits, again, sizeof(bits));
                token = check_mask(matcher, bits);
                if (token == TOKENS || (taken > 4 && rand() % 8 == 0)) {
                        matcher_back(matcher, taken < 3 ? taken : 3);
                        taken -= taken < 3 ? taken : 3;
                        continue;
                }
                assert_int_equal(matcher_take(matcher, token), MATCHER_FINE);
                taken++;
        }
}

static void every_token_of_a_mask_is_taken_and_no_other(void **state)
{
        static const char *const schemas[] = {
                "{\"type\": \"array\", \"items\": {\"type\": \"string\"}}",
                "{\"type\": \"object\", \"additionalProperties\": {\"type\": \"string\"}}",
                "{\"properties\": {\"a\": {\"type\": \"string\"}, \"b\": {\"enum\": [\"ab\", 1]}},"
                " \"required\": [\"a\"], \"type\": \"object\"}",
                "{\"anyOf\": [{\"type\": \"string\", \"maxLength\": 9}, {\"type\": \"array\","
                " \"items\": {\"type\": \"string\", \"pattern\": \"^[a-f ]*$\"}}]}",
                "true",
        };
        static const struct json_schema_options options = { JSON_SPACE_ONE, false };
        struct token_trie *trie;

        (void)state;
        srand(3);
        trie = random_vocabulary();
        for (unsigned i = 0; i < sizeof(schemas) / sizeof(*schemas); i++) {
                struct grammar *grammar;
                struct matcher *matcher;
                char why[300];

                if (json_schema_compile(schemas[i], strlen(schemas[i]), &options,
                                        &grammar_limits_default, &grammar, why, sizeof(why)))
                        fail_msg("%s: %s", schemas[i], why);
                matcher = matcher_new(grammar, trie, &matcher_limits_default);
                assert_non_null(matcher);
                matcher_reset(matcher);
                walk(matcher);
                matcher_reset(matcher);
                walk(matcher);
                matcher_free(matcher);
                grammar_free(grammar);
        }
        token_trie_free(trie);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_token_of_a_mask_is_taken_and_no_other),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
