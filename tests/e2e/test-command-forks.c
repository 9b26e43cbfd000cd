/* The samovar command when it asks for several streams at once, and the demo that shows a fork. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/talk.h"

#define SAMOVAR given("SAMOVAR")

/* The daemon's stream for this choice, as a raw client gets it. */
static struct stream *chosen(const struct house *house, uint32_t choice)
{
        struct talk *talk = talk_greet(house);
        uint32_t id = ++talk->last_id;
        struct stream *stream;

        talk_say(talk, "op=s id=u prompt=s max_tokens=u temperature=f seed=u choice=u", "generate",
                 id, "Tea", 40u, 1.0, 9u, choice);
        stream = stream_copy(talk_end(talk, id));
        talk_close(talk);
        return stream;
}

static void many_are_printed_one_below_the_other(void **state)
{
        struct house *house = *state;
        char wanted[512];
        size_t used = 0;
        struct ran ran;

        HOUSE(house, "--threads", "1");
        for (uint32_t i = 0; i < 3; i++) {
                struct stream *stream = chosen(house, i);

                used += (size_t)snprintf(wanted + used, sizeof(wanted) - used,
                                         "%s-- %u of 3 --\n%.*s\n", i ? "\n" : "", i + 1,
                                         (int)stream->text_bytes, stream->text);
                stream_free(stream);
        }
        ran = RUN(house, NULL, SAMOVAR, "complete", "Tea", "--max", "40", "--temp", "1", "--seed",
                  "9", "-n", "3");
        assert_int_equal(ran.status, 0);
        assert_string_equal(ran.out, wanted);
        assert_string_equal(ran.err, "");
        ran_free(&ran);

        ran = RUN(house, NULL, SAMOVAR, "complete", "Tea", "--max", "2", "-n", "2", "--json");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "{\"number\":1,\"tokens\":["));
        assert_non_null(strstr(ran.out, "{\"number\":2,\"end\":"));
        ran_free(&ran);

        ran = RUN(house, NULL, SAMOVAR, "complete", "Tea", "-n", "65");
        assert_int_equal(ran.status, 1);
        assert_string_equal(ran.out, "");
        assert_string_equal(ran.err, "samovar: n is 65; it may be up to 64\n");
        ran_free(&ran);
        house_stop(house);
}

/* Three columns, each with something in it, and what it cost. */
static void fork_demo_tells_one_story_in_three_ways(void **state)
{
        struct house *house = *state;
        const char *fork;
        struct ran ran;

        HOUSE(house, "--threads", "1");
        ran = RUN(house, NULL, SAMOVAR, "fork-demo", "--max", "400", "--seed", "3");
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
        ran_free(&ran);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest stories[] = {
                STORY(many_are_printed_one_below_the_other),
                STORY(fork_demo_tells_one_story_in_three_ways),
        };

        need((const char *const[]){ "SAMOVARD", "SAMOVAR", "BABBLE", NULL });
        return cmocka_run_group_tests(stories, NULL, NULL);
}
