/* contrib/python/ring_reader.py shares no line with the library, and must read the same records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/daemon-fixture.h"

#define PROMPT "Once upon a time"

static char reader[300];

static void assert_reads_the_same(const struct daemon_fixture *fixture, const char *seed)
{
        struct run_result frames =
                RUN(fixture, NULL, env_path("SAMOVAR"), "complete", PROMPT, "--transport", "socket",
                    "--max-tokens", "1900", "--seed", seed);
        struct run_result ring = RUN(fixture, NULL, "/usr/bin/env", "python3", reader,
                                     fixture->socket, PROMPT, "1900", seed);

        if (frames.status || ring.status)
                fail_msg("samovar ended with %d \"%s\", python3 with %d \"%s\"", frames.status,
                         frames.err, ring.status, ring.err);
        assert_true(frames.out_bytes > 10);
        assert_int_equal(ring.out_bytes, frames.out_bytes);
        assert_memory_equal(ring.out, frames.out, frames.out_bytes);
        run_result_free(&frames);
        run_result_free(&ring);
}

static void the_python_reader_prints_the_same_as_the_command(void **state)
{
        static const char *const seeds[] = { "1", "3", "7", "8" };
        struct daemon_fixture *fixture = *state;

        START_DAEMON(fixture, "--ring-bytes", "64K");
        for (size_t i = 0; i < sizeof(seeds) / sizeof(*seeds); i++)
                assert_reads_the_same(fixture, seeds[i]);
        fixture_stop(fixture);
}

/* 56 bytes were an END before it had `preemptions`; 80 is one of a newer daemon. */
static void the_python_reader_takes_missing_members_of_an_END_for_zero(void **state)
{
        static const char program[] =
                "import sys, struct; sys.path.insert(0, sys.argv[1]); import ring_reader as r\n"
                "body = bytes([2, 1, 7]) + bytes(53) + struct.pack('<4I', 2, 1, 48, 16) + "
                "bytes(8)\n"
                "for size in 48, 56, 72, 80:\n"
                "    end = r.read_end(memoryview(body)[:size])\n"
                "    known = [2, 48, 16] if size > 56 else [0, 0, 0]\n"
                "    assert list(end.values()) == [2, 1, 7] + known, (size, end)\n";
        struct daemon_fixture *fixture = *state;
        struct run_result ran;
        char folder[300];

        snprintf(folder, sizeof(folder), "%s/contrib/python", env_path("SOURCES"));
        ran = RUN(fixture, NULL, "/usr/bin/env", "python3", "-B", "-c", program, folder);
        if (ran.status)
                fail_msg("%s", ran.err);
        run_result_free(&ran);
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
                DAEMON_TEST(the_python_reader_prints_the_same_as_the_command),
                DAEMON_TEST(the_python_reader_takes_missing_members_of_an_END_for_zero),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL", "SOURCES", NULL });
        if (!is_possible()) {
                printf("1..0 # SKIP there is no python3 on an x86-64 here\n");
                return 77;
        }
        snprintf(reader, sizeof(reader), "%s/contrib/python/ring_reader.py", env_path("SOURCES"));
        return cmocka_run_group_tests(tests, NULL, NULL);
}
