/* The automaton against its definition: at every place, the longest word that begins there. */
#include "tests/unit/texts.h"

#include "daemon/text/added-tokens.h"

#define WORDS 8u

static uint32_t longest(const struct added_token *words, uint32_t count, const char *text,
                        size_t bytes)
{
        uint32_t best = UINT32_MAX, length = 0;

        for (uint32_t i = 0; i < count; i++)
                if (words[i].count <= bytes && !memcmp(words[i].bytes, text, words[i].count) &&
                    (words[i].count > length || (words[i].count == length && words[i].id < best))) {
                        best = words[i].id;
                        length = words[i].count;
                }
        return best;
}

static void check(const struct added_token *words, uint32_t count, const char *text, size_t bytes,
                  uint64_t *steps)
{
        struct added_token *copy = malloc(count * sizeof(*copy));
        struct added_tokens *added_tokens;
        uint32_t state = 0, length;

        memcpy(copy, words, count * sizeof(*copy));
        assert_int_equal(added_tokens_new(copy, count, &added_tokens), 0);
        free(copy);
        for (size_t at = bytes; at;) {
                uint32_t id;

                at--;
                state = added_tokens_step(added_tokens, state, text[at], steps);
                id = added_token(added_tokens, state, &length);
                assert_int_equal(id, longest(words, count, text + at, bytes - at));
                for (uint32_t i = 0; i < count && id != UINT32_MAX; i++)
                        if (words[i].id == id)
                                assert_int_equal(length, words[i].count);
        }
        added_tokens_free(added_tokens);
}

static void finds_the_longest_word_at_every_position(void **state)
{
        uint64_t seed = 3, steps = 0;

        (void)state;
        for (unsigned round = 0; round < 3000; round++) {
                struct added_token words[WORDS];
                char spelt[WORDS][6], text[64];
                uint32_t count = (uint32_t)(texts_random(&seed) % WORDS) + 1;

                for (uint32_t i = 0; i < count; i++) {
                        uint32_t n = (uint32_t)(texts_random(&seed) % 6) + 1;

                        for (uint32_t k = 0; k < n; k++)
                                spelt[i][k] = (char)('a' + texts_random(&seed) % 2);
                        words[i] = (struct added_token){ spelt[i], n, 10 + i };
                }
                for (size_t i = 0; i < sizeof(text); i++)
                        text[i] = (char)('a' + texts_random(&seed) % 2);
                check(words, count, text, sizeof(text), &steps);
        }
}

/* Forwards, every place would be read a thousand bytes ahead. */
static void near_matches_take_linear_time(void **state)
{
        static char almost[1000], text[20000];
        const struct added_token words[] = { { almost, sizeof(almost), 0 },
                                             { "a", 1, 1 },
                                             { almost + 500, 500, 2 } };
        uint64_t steps = 0;

        (void)state;
        memset(almost, 'a', sizeof(almost));
        almost[sizeof(almost) - 1] = 'b';
        memset(text, 'a', sizeof(text));
        check(words, 3, text, sizeof(text), &steps);
        assert_in_range(steps, sizeof(text), 2 * sizeof(text));
        text[10000] = 'b';
        text[19999] = 'b';
        steps = 0;
        check(words, 3, text, sizeof(text), &steps);
        assert_in_range(steps, sizeof(text), 2 * sizeof(text));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(finds_the_longest_word_at_every_position),
                cmocka_unit_test(near_matches_take_linear_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
