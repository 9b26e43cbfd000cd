#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/detok-oracle.h"

static uint32_t next_random(uint64_t *state)
{
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(*state >> 33);
}

static bool check(const char *text, size_t bytes, const uint8_t *cuts, size_t cut_count,
                  const char *stop)
{
        uint16_t stop_bytes = stop ? (uint16_t)strlen(stop) : 0;

        return oracle_check(text, bytes, cuts, cut_count, &stop, &stop_bytes, stop ? 1 : 0);
}

/* Feeds one piece, and returns how much is shown at once. */
static size_t shown(const char *text, const char *stop)
{
        uint16_t stop_bytes = stop ? (uint16_t)strlen(stop) : 0;
        struct tokenizer tokenizer = { text, strlen(text) };
        char room[DETOK_HELD_MAX + 64];
        struct detok detok;
        size_t bytes;

        detok_begin(&detok, &tokenizer, &stop, &stop_bytes, stop ? 1 : 0, false);
        detok_feed(&detok, 0, room, &bytes);
        return bytes;
}

static void holds_back_an_incomplete_utf8_character(void **state)
{
        (void)state;
        assert_int_equal(shown("a", NULL), 1);
        assert_int_equal(shown("a\xC3", NULL), 1);
        assert_int_equal(shown("a\xC3\xA9", NULL), 3);
        assert_int_equal(shown("a\xE2\x82", NULL), 1);
        assert_int_equal(shown("a\xF0\x9F\x98", NULL), 1);
        assert_int_equal(shown("a\xF0\x9F\x98\x80", NULL), 5);
}

static void shows_bytes_that_cannot_begin_a_character_at_once(void **state)
{
        static const char *const texts[] = {
                "\x80",     "\xBF",      "\xC0",          "\xC1",
                "\xE0\x80", "\xE0\x9F",  "\xED\xA0",      "\xED\xBF",
                "\xF0\x8F", "\xF4\x90",  "\xF5",          "\xFF",
                "\xC3z",    "\xE2\x82z", "\xF0\x9F\x98z", "\xF0\x9F\x98\xFF",
        };

        (void)state;
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                assert_int_equal(shown(texts[i], NULL), strlen(texts[i]));
                assert_true(utf8_valid(texts[i], strlen(texts[i])) < strlen(texts[i]));
        }
        assert_int_equal(shown("\xE2\x82\xC3", NULL), 2); /* a new one has begun */
        assert_int_equal(shown("\xED\x9F", NULL), 0);
        assert_int_equal(shown("\xF4\x8F\xBF", NULL), 0);
}

static void holds_back_the_beginning_of_a_stop_string(void **state)
{
        (void)state;
        assert_int_equal(shown("text ST", "STOP"), 5);
        assert_int_equal(shown("text SS", "STOP"), 6);
        assert_int_equal(shown("text STOX", "STOP"), 9);
        assert_int_equal(shown("text STOP and more", "STOP"), 5);
        assert_int_equal(shown("aabaa", "aabaac"), 0);
        assert_int_equal(shown("aabaab", "aabaac"), 3);
        assert_int_equal(shown("xaabaab", "aabaac"), 4);
        /* a stop that begins inside a character keeps all of it */
        assert_int_equal(shown("a\xC3\xA9", "\xA9!"), 1);
}

static void cuts_the_text_at_the_stop_that_ends_first(void **state)
{
        static const char *const stops[] = { "abcdef", "cd", "bcd", "d!" };
        static const uint16_t sizes[] = { 6, 2, 3, 2 };

        (void)state;
        for (uint8_t cut = 1; cut < 10; cut++) {
                uint8_t cuts[] = { cut, 1, 1, 1, 1 };
                struct tokenizer whole = { "xxabcdef d!", 11 };
                char room[DETOK_HELD_MAX + 11];
                struct detok detok;
                size_t bytes;

                assert_true(oracle_check("xxabcdef d!", 11, cuts, 5, stops, sizes, 4));
                detok_begin(&detok, &whole, stops, sizes, 4, false);
                assert_int_equal(detok_feed(&detok, 0, room, &bytes), DETOK_E_STOP);
                assert_int_equal(bytes, 3); /* "xxa": bcd began before cd */
                assert_int_equal(detok.stop, 2);
        }
}

/* The text of a control token is as good as other text, but only if it is asked for. */
static void control_tokens_are_text_only_on_request(void **state)
{
        static const char *const stop = "<|end";
        static const uint16_t bytes = 5;
        struct tokenizer control = { "<|end|>", 7, .is_control = true }, text = { "a<|e", 4 };
        char room[DETOK_HELD_MAX + 7];
        struct detok detok, fork;
        size_t n;

        (void)state;
        detok_begin(&detok, &control, NULL, NULL, 0, true);
        assert_int_equal(detok_feed(&detok, 0, room, &n), 0);
        assert_int_equal(n, 7);
        assert_memory_equal(room, "<|end|>", 7);
        detok_begin(&detok, &control, &stop, &bytes, 1, true);
        assert_int_equal(detok_feed(&detok, 0, room, &n), DETOK_E_STOP);
        assert_int_equal(n, 0);
        detok_begin(&detok, &control, &stop, &bytes, 1, false);
        assert_int_equal(detok_feed(&detok, 0, room, &n), 0);
        assert_int_equal(n, 0);

        /* A control token between the parts of a stop string separates them only if it is shown. */
        for (int shown = 0; shown < 2; shown++) {
                struct tokenizer each = text;

                detok_begin(&fork, &each, &stop, &bytes, 1, shown);
                assert_int_equal(detok_feed(&fork, 0, room, &n), 0);
                assert_int_equal(n, 1);
                detok_begin(&detok, &each, &stop, &bytes, 1, shown);
                detok_follow(&detok, &fork);
                each = (struct tokenizer){ "<|x|>", 5, .is_control = true };
                assert_int_equal(detok_feed(&detok, 0, room, &n), 0);
                assert_int_equal(n, shown ? 8 : 0);
                each = (struct tokenizer){ "nd", 2 };
                assert_int_equal(detok_feed(&detok, 0, room, &n), shown ? 0 : DETOK_E_STOP);
        }
}

/* The first to end counts, also if another began before it; of equal ones, the first. */
static void says_which_stop_string_ended_the_stream(void **state)
{
        static const struct {
                const char *text, *stops[4];
                uint32_t stop;
        } cases[] = {
                { "abcd", { "x", "abcd", "bc" }, 2 }, { "abc", { "c", "bc", "abc" }, 2 },
                { "abc", { "abc", "bc", "c" }, 0 },   { "aab", { "b", "ab", "b", "ab" }, 1 },
                { "one two", { "two", "one" }, 1 },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct tokenizer whole = { cases[i].text, strlen(cases[i].text) };
                uint16_t sizes[4];
                uint32_t count = 0;
                char room[DETOK_HELD_MAX + 8];
                struct detok detok;
                size_t bytes;

                for (; count < 4 && cases[i].stops[count]; count++)
                        sizes[count] = (uint16_t)strlen(cases[i].stops[count]);
                detok_begin(&detok, &whole, cases[i].stops, sizes, count, false);
                assert_int_equal(detok_feed(&detok, 0, room, &bytes), DETOK_E_STOP);
                assert_int_equal(detok.stop, cases[i].stop);
        }
}

static void decodes_multi_byte_text_split_at_any_byte(void **state)
{
        static const char text[] = "gr\xC3\xBC\xC3\x9F \xE2\x82\xAC 10 \xF0\x9F\x98\x80\xF0\x9F"
                                   "\x98\x81 \xE4\xBD\xA0\xE5\xA5\xBD \xED\x95\x9C.";
        const size_t n = sizeof(text) - 1;
        static const char *const stops[] = { NULL, "\xF0\x9F\x98\x81", "\xBD ", "\x98\x80\xF0",
                                             ".",  "\xE2\x82\xAD" };

        (void)state;
        for (size_t s = 0; s < sizeof(stops) / sizeof(stops[0]); s++)
                for (size_t a = 0; a < n; a++)
                        for (size_t b = 0; a + b < n; b++) {
                                uint8_t cuts[] = { (uint8_t)a, (uint8_t)b };

                                check(text, n, cuts, 2, stops[s]);
                        }
        assert_true(check(text, n, NULL, 0, "\xBD "));
        assert_false(check(text, n, NULL, 0, "\xE2\x82\xAD"));
}

/* Few letters, so that stops overlap themselves and one another all the time. */
static void random_streams_agree_with_the_oracle(void **state)
{
        static const char letters[] = "ab\xC3\xA9\xF0\x9F\x80\xE2\x82z";
        uint64_t random = 11;
        uint32_t stopped = 0, runs = 30000;

        (void)state;
        for (uint32_t run = 0; run < runs; run++) {
                uint32_t alphabet = 2 + next_random(&random) % (sizeof(letters) - 2);
                uint32_t longest = run % 50 ? 6 : SMV_STOP_BYTES_MAX;
                size_t n = next_random(&random) % (run % 50 ? 80 : 1500);
                char text[1500], bytes[SMV_STOPS_MAX][SMV_STOP_BYTES_MAX];
                uint32_t count = next_random(&random) % (SMV_STOPS_MAX + 1);
                const char *stops[SMV_STOPS_MAX];
                uint16_t sizes[SMV_STOPS_MAX];
                uint8_t cuts[1500];

                for (size_t i = 0; i < n; i++) {
                        text[i] = letters[next_random(&random) % alphabet];
                        cuts[i] = (uint8_t)(next_random(&random) % 9);
                }
                for (uint32_t i = 0; i < count; i++) {
                        stops[i] = bytes[i];
                        sizes[i] = (uint16_t)(1 + next_random(&random) % longest);
                        for (uint32_t k = 0; k < sizes[i]; k++)
                                bytes[i][k] = letters[next_random(&random) % alphabet];
                        if (n > sizes[i] && next_random(&random) % 2) /* one that may well come */
                                memcpy(bytes[i], text + next_random(&random) % (n - sizes[i]),
                                       sizes[i]);
                }
                stopped += oracle_check(text, n, cuts, n, stops, sizes, count);
        }
        assert_true(stopped > runs / 4 && stopped < runs);
}

/* The most that can wait: 255 bytes of a stop that begin inside a character of four. */
static void the_buffer_holds_the_longest_text_that_can_wait(void **state)
{
        char text[SMV_STOP_BYTES_MAX + 3], room[DETOK_HELD_MAX + sizeof(text)];
        struct tokenizer tokenizer = { text, sizeof(text) - 1 };
        const char *stop = text + 3;
        uint16_t bytes = SMV_STOP_BYTES_MAX;
        struct detok detok;
        size_t n;

        (void)state;
        memset(text, 'x', sizeof(text));
        memcpy(text, "\xF0\x9F\x98\x80", 4);
        detok_begin(&detok, &tokenizer, &stop, &bytes, 1, false);
        assert_int_equal(detok_feed(&detok, 0, room, &n), 0);
        assert_int_equal(n, 0);
        assert_int_equal(detok.held_count, DETOK_HELD_MAX);
        tokenizer = (struct tokenizer){ "y", 1 };
        assert_int_equal(detok_feed(&detok, 0, room, &n), 0);
        assert_int_equal(n, DETOK_HELD_MAX + 1);
        assert_int_equal(detok_flush(&detok, room), 0);
}

/* Each of up to four bytes that lead anywhere, against arithmetic. */
static void validates_utf8_as_the_unicode_standard_does(void **state)
{
        static const uint8_t edges[] = { 0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0,
                                         0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0,
                                         0xF1, 0xF3, 0xF4, 0xF5, 0xF8, 0xFC, 0xFE, 0xFF };
        const size_t k = sizeof(edges);
        uint32_t valid = 0;

        (void)state;
        for (size_t i = 0; i < k * k * k * k; i++) {
                uint8_t text[4] = { edges[i % k], edges[i / k % k], edges[i / k / k % k],
                                    edges[i / k / k / k] };

                for (size_t n = 0; n <= 4; n++) {
                        size_t r = utf8_valid((const char *)text, n);

                        if (r != oracle_valid(text, n))
                                fail_msg("%02X %02X %02X %02X, %zu bytes", text[0], text[1],
                                         text[2], text[3], n);
                        valid += r == n;
                }
        }
        assert_true(valid > 0);
        assert_int_equal(utf8_valid("\xF4\x8F\xBF\xBF\xED\x9F\xBF\xEE\x80\x80", 10), 10);
        assert_int_equal(utf8_valid("\xED\xA0\x80", 3), 0);
        assert_int_equal(utf8_valid("twelve bytes\xC0\x80", 14), 12);
        assert_int_equal(utf8_valid("eight ascii, then \xC3\xA9 and \xC3", 26), 25);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(holds_back_an_incomplete_utf8_character),
                cmocka_unit_test(shows_bytes_that_cannot_begin_a_character_at_once),
                cmocka_unit_test(holds_back_the_beginning_of_a_stop_string),
                cmocka_unit_test(cuts_the_text_at_the_stop_that_ends_first),
                cmocka_unit_test(says_which_stop_string_ended_the_stream),
                cmocka_unit_test(control_tokens_are_text_only_on_request),
                cmocka_unit_test(decodes_multi_byte_text_split_at_any_byte),
                cmocka_unit_test(random_streams_agree_with_the_oracle),
                cmocka_unit_test(the_buffer_holds_the_longest_text_that_can_wait),
                cmocka_unit_test(validates_utf8_as_the_unicode_standard_does),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
