/* The samovar command when it asks for several streams at once, and the demo that shows a fork. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/raw-client.h"

#define SAMOVAR env_path("SAMOVAR")

/* The daemon's stream for this sample index, as a raw client gets it. */
static struct stream *chosen(const struct daemon_fixture *fixture, uint32_t sample_index)
{
        struct raw_client *client = raw_client_greet(fixture);
        uint32_t id = ++client->last_id;
        struct stream *stream;

        raw_client_send_frame(client,
                              "op=s id=u prompt=s max_tokens=u temperature=f seed=u sample_index=u",
                              "generate", id, "Tea", 40u, 1.0, 9u, sample_index);
        stream = stream_copy(raw_client_await_end(client, id));
        raw_client_close(client);
        return stream;
}

static void several_samples_are_printed_one_below_the_other(void **state)
{
        struct daemon_fixture *fixture = *state;
        char wanted[512];
        size_t used = 0;
        struct run_result ran;

        START_DAEMON(fixture, "--threads", "1");
        for (uint32_t i = 0; i < 3; i++) {
                struct stream *stream = chosen(fixture, i);

                used += (size_t)snprintf(wanted + used, sizeof(wanted) - used,
                                         "%s-- %u of 3 --\n%.*s\n", i ? "\n" : "", i + 1,
                                         (int)stream->text_bytes, stream->text);
                stream_free(stream);
        }
        ran = RUN(fixture, NULL, SAMOVAR, "complete", "Tea", "--max-tokens", "40", "--temp", "1",
                  "--seed", "9", "-n", "3");
        assert_int_equal(ran.status, 0);
        assert_string_equal(ran.out, wanted);
        assert_string_equal(ran.err, "");
        run_result_free(&ran);

        ran = RUN(fixture, NULL, SAMOVAR, "complete", "Tea", "--max-tokens", "2", "-n", "2",
                  "--json");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "{\"number\":1,\"tokens\":["));
        assert_non_null(strstr(ran.out, "{\"number\":2,\"end\":"));
        run_result_free(&ran);

        ran = RUN(fixture, NULL, SAMOVAR, "complete", "Tea", "-n", "65");
        assert_int_equal(ran.status, 2);
        assert_string_equal(ran.out, "");
        assert_string_equal(ran.err, "samovar: -n is 65; it may be 1 to 64\n");
        run_result_free(&ran);
        fixture_stop(fixture);
}

/* Three columns, each with something in it, and what it cost. */
static void fork_demo_prints_three_endings_of_one_story(void **state)
{
        struct daemon_fixture *fixture = *state;
        const char *fork;
        struct run_result ran;

        START_DAEMON(fixture, "--threads", "1");
        ran = RUN(fixture, NULL, SAMOVAR, "fork-demo", "--max-tokens", "400", "--seed", "3");
        if (ran.status)
                fail_msg("%s", ran.err);
        assert_memory_equal(ran.out, "Once upon a time", 16);
        fork = strstr(ran.out, "\n├──");
        assert_non_null(fork);
        assert_null(strchr(ran.out, '\x1b'));
        assert_non_null(strstr(fork, "3 endings in one batch, of "));
        assert_non_null(strstr(fork, " tokens shared, "));
        for (const char *line = ran.out, *end; *line; line = end + 1) {
                size_t cells = 0;

                end = strchr(line, '\n');
                assert_non_null(end);
                for (const char *at = line; at < end; at++)
                        cells += ((unsigned char)*at & 0xc0) != 0x80;
                assert_true(cells < 80);
        }
        run_result_free(&ran);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(several_samples_are_printed_one_below_the_other),
                DAEMON_TEST(fork_demo_prints_three_endings_of_one_story),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
