/* contrib/python/ring_reader.py shares no line with the library, and must read the same records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/harness.h"

#define PROMPT "Once upon a time"

static char reader[300];

static void assert_reads_the_same(const struct house *house, const char *seed)
{
        struct ran frames = RUN(house, NULL, given("SAMOVAR"), "complete", PROMPT, "--transport",
                                "socket", "--max", "1900", "--seed", seed);
        struct ran ring = RUN(house, NULL, "/usr/bin/env", "python3", reader, house->socket, PROMPT,
                              "1900", seed);

        if (frames.status || ring.status)
                fail_msg("samovar ended with %d \"%s\", python3 with %d \"%s\"", frames.status,
                         frames.err, ring.status, ring.err);
        assert_true(frames.out_bytes > 10);
        assert_int_equal(ring.out_bytes, frames.out_bytes);
        assert_memory_equal(ring.out, frames.out, frames.out_bytes);
        ran_free(&frames);
        ran_free(&ring);
}

static void the_page_of_python_reads_what_the_command_prints(void **state)
{
        static const char *const seeds[] = { "1", "3", "7", "8" };
        struct house *house = *state;

        HOUSE(house, "--ring-bytes", "64K");
        for (size_t i = 0; i < sizeof(seeds) / sizeof(*seeds); i++)
                assert_reads_the_same(house, seeds[i]);
        house_stop(house);
}

/* This needs an x86-64, because plain Python has no other way to order its loads. */
static bool is_possible(void)
{
#ifdef __x86_64__
        return !system("python3 -c '' 2>/dev/null");
#else
        return false;
#endif
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(the_page_of_python_reads_what_the_command_prints),
        };

        need((const char *const[]){ "SAMOVARD", "SAMOVAR", "BABBLE", "SOURCES", NULL });
        if (!is_possible()) {
                printf("1..0 # SKIP there is no python3 on an x86-64 here\n");
                return 77;
        }
        snprintf(reader, sizeof(reader), "%s/contrib/python/ring_reader.py", given("SOURCES"));
        return cmocka_run_group_tests(tests, NULL, NULL);
}
