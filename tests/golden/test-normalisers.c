/*
 * The steps of normalisers give the texts that Hugging Face's `tokenizers` gives
 * (contrib/reference/normalisers.py).  SOURCES is the project's root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/text/normaliser.h"

#define LINE_BYTES 4096u
#define BARX       "\xE2\x96\x81x"

static const struct {
        const char *name;
        struct vocabulary_normal steps[5];
        uint32_t count;
} known[] = {
        { "nfc", { { NORMAL_NFC, NULL, NULL, 0 } }, 1 },
        { "nfd", { { NORMAL_NFD, NULL, NULL, 0 } }, 1 },
        { "lower", { { NORMAL_LOWER, NULL, NULL, 0 } }, 1 },
        { "drop-marks", { { NORMAL_DROP_MARKS, NULL, NULL, 0 } }, 1 },
        { "trim-left", { { NORMAL_TRIM_LEFT, NULL, NULL, 0 } }, 1 },
        { "trim-right", { { NORMAL_TRIM_RIGHT, NULL, NULL, 0 } }, 1 },
        { "replace", { { NORMAL_REPLACE, "a+|\\s{2,}", "<>", 2 } }, 1 },
        { "replace-empty", { { NORMAL_REPLACE, "b*", ".", 1 } }, 1 },
        { "prepend", { { NORMAL_PREPEND, NULL, BARX, 4 } }, 1 },
        { "nmt", { { NORMAL_NMT, NULL, NULL, 0 } }, 1 },
        { "bert",
          { { NORMAL_CLEAN, NULL, NULL, 0 },
            { NORMAL_PART_HAN, NULL, NULL, 0 },
            { NORMAL_NFD, NULL, NULL, 0 },
            { NORMAL_DROP_ACCENTS, NULL, NULL, 0 },
            { NORMAL_LOWER, NULL, NULL, 0 } },
          5 },
        { "bert-cased",
          { { NORMAL_CLEAN, NULL, NULL, 0 }, { NORMAL_PART_HAN, NULL, NULL, 0 } },
          2 },
};

static unsigned digit(char c)
{
        return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static size_t read_hex(const char *from, char *to)
{
        size_t count = 0;

        for (; from[0] && from[0] != '-' && from[1]; from += 2)
                to[count++] = (char)(digit(from[0]) << 4 | digit(from[1]));
        return count;
}

static void check(const struct normaliser *normaliser, const char *name, char *line)
{
        char text[LINE_BYTES], wanted[LINE_BYTES], *space = strchr(line, ' '), *got;
        size_t bytes, want, count;
        uint64_t steps = 0;

        assert_non_null(space);
        *space = '\0';
        bytes = read_hex(line, text);
        want = read_hex(space + 1, wanted);
        assert_int_equal(normaliser_run(normaliser, text, bytes, &got, &count, &steps), 0);
        if (count != want || memcmp(got, wanted, want))
                fail_msg("%s: '%.*s' became '%.*s', not '%.*s'", name, (int)bytes, text, (int)count,
                         got, (int)want, wanted);
        assert_true(count <= bytes * normaliser->growth + normaliser->prefix);
        free(got);
}

static void each_step_gives_the_text_of_the_library(void **state)
{
        FILE *in;
        struct normaliser normaliser = { 0 };
        static char line[LINE_BYTES];
        unsigned texts = 0, steps = 0;
        const char *name = "";
        char path[1024], why[256];

        (void)state;
        snprintf(path, sizeof(path), "%s/tests/golden/texts/normalisers.txt", getenv("SOURCES"));
        in = fopen(path, "r");
        assert_non_null(in);
        while (fgets(line, sizeof(line), in)) {
                line[strcspn(line, "\n")] = '\0';
                if (*line != ':') {
                        check(&normaliser, name, line);
                        texts++;
                        continue;
                }
                normaliser_close(&normaliser);
                name = NULL;
                for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
                        if (strcmp(known[i].name, line + 1))
                                continue;
                        name = known[i].name;
                        assert_int_equal(normaliser_open(&normaliser, known[i].steps,
                                                         known[i].count, why, sizeof(why)),
                                         0);
                }
                assert_non_null(name);
                steps++;
        }
        normaliser_close(&normaliser);
        fclose(in);
        assert_int_equal(steps, sizeof(known) / sizeof(*known));
        assert_true(texts >= 60 * steps);
}

static void refuses_what_would_make_a_text_too_long_or_cannot_be_read(void **state)
{
        static char content[300];
        struct vocabulary_normal step = { NORMAL_REPLACE, "a", content, sizeof(content) };
        struct normaliser normaliser;
        char why[256];

        (void)state;
        assert_int_not_equal(normaliser_open(&normaliser, &step, 1, why, sizeof(why)), 0);
        assert_non_null(strstr(why, "more than 256 times as long"));
        step = (struct vocabulary_normal){ NORMAL_REPLACE, "(a)\\1", "b", 1 };
        assert_int_not_equal(normaliser_open(&normaliser, &step, 1, why, sizeof(why)), 0);
        assert_non_null(strstr(why, "it replaces the expression"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_step_gives_the_text_of_the_library),
                cmocka_unit_test(refuses_what_would_make_a_text_too_long_or_cannot_be_read),
        };

        if (!getenv("SOURCES")) {
                puts("skipped: SOURCES does not say where the goldens are");
                return 77;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
