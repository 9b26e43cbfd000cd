/* Who goes first, who gives way and goes on later, and who is told that it would be too late. */
#include <stdio.h>
#include <string.h>

#include "tests/e2e/talk.h"

static const struct want lengthy = { .prompt = "Once upon a time there was a samovar",
                                     .max_tokens = 1500,
                                     .temperature = 1,
                                     .seed = 41,
                                     .ignore_eos = true,
                                     .class = "background" };

static const struct want brief = { .prompt = "All the guests",
                                   .max_tokens = 5,
                                   .temperature = 1,
                                   .seed = 42,
                                   .ignore_eos = true,
                                   .class = "interactive" };

static const struct stream *await_tokens(struct talk *talk, uint32_t id, size_t count)
{
        uint64_t end = now_ms() + 60000;

        for (;;) {
                const struct stream *stream = talk_stream(talk, id);

                if (stream && stream->token_count >= count)
                        return stream;
                assert_true(now_ms() < end);
                talk_turn(talk, 10);
        }
}

static void background_gives_way_and_goes_on_with_the_same_tokens(void **state)
{
        struct house *house = *state;
        struct stream *alone;
        struct talk *talk;
        uint32_t slow;

        HOUSE(house, "--max-seqs", "1");
        talk = talk_greet(house);
        alone = stream_copy(talk_whole(talk, &lengthy));
        slow = talk_generate(talk, &lengthy);
        for (size_t i = 1; i <= 3; i++) {
                const struct stream *quick;

                await_tokens(talk, slow, 20 * i);
                quick = talk_whole(talk, &brief);
                assert_int_equal(quick->token_count, 5);
                assert_false(talk_stream(talk, slow)->ended); /* else nobody gave way */
                assert_int_equal(talk_status(talk, "requests.parked"), i);
        }
        assert_same_stream(talk_end(talk, slow), alone);
        talk_close(talk);
        stream_free(alone);
        house_stop(house);
}

static void as_often_as_was_said_and_then_no_more(void **state)
{
        struct house *house = *state;
        uint32_t slow, quick;
        struct talk *talk;

        HOUSE(house, "--max-seqs", "1", "--max-parks", "1");
        talk = talk_greet(house);
        slow = talk_generate(talk, &lengthy);
        await_tokens(talk, slow, 20);
        talk_whole(talk, &brief);
        assert_false(talk_stream(talk, slow)->ended);
        quick = talk_generate(talk, &brief);
        await_tokens(talk, quick, 1);
        assert_true(talk_stream(talk, slow)->ended);
        talk_end(talk, quick);
        assert_int_equal(talk_status(talk, "requests.parked"), 1);
        talk_close(talk);
        house_stop(house);
}

static void nobody_gives_way_to_his_like(void **state)
{
        struct want second = brief;
        struct house *house = *state;
        uint32_t slow, quick;
        struct talk *talk;

        HOUSE(house, "--max-seqs", "1");
        talk = talk_greet(house);
        slow = talk_generate(talk, &lengthy);
        await_tokens(talk, slow, 20);
        second.class = "background";
        quick = talk_generate(talk, &second);
        await_tokens(talk, quick, 1);
        assert_true(talk_stream(talk, slow)->ended);
        talk_end(talk, quick);
        assert_int_equal(talk_status(talk, "requests.parked"), 0);
        talk_close(talk);
        house_stop(house);
}

static void who_does_not_read_gives_way_and_finds_every_token_later(void **state)
{
        struct want still = lengthy;
        struct house *house = *state;
        struct talk *sleeper, *other;
        struct stream *alone;
        uint64_t end = now_ms() + 60000;
        uint32_t slow;

        HOUSE(house, "--max-seqs", "1", "--ring-bytes", "64K", "--grace-ms", "50");
        other = talk_greet_by(house, TALK_SOCKET);
        still.class = "interactive"; /* no class holds a place that nobody uses */
        still.max_tokens = 1900;
        alone = stream_copy(talk_whole(other, &still));
        sleeper = talk_greet_by(house, TALK_KICK);
        talk_generate(sleeper, &still);
        slow = talk_generate(sleeper, &still); /* for it there is not enough room left */
        while (!talk_status(other, "requests.stalled"))
                assert_true(now_ms() < end);
        assert_int_equal(talk_whole(other, &brief)->token_count, 5);
        assert_int_equal(talk_status(other, "requests.parked"), 1);
        assert_same_stream(talk_end(sleeper, slow), alone);
        talk_close(sleeper);
        talk_close(other);
        stream_free(alone);
        house_stop(house);
}

static void a_request_ends_at_its_deadline_as_it_is(void **state)
{
        struct house *house = *state;
        struct stream *alone, *late;
        uint64_t begin, half_ms;
        struct reply *reply;
        struct talk *talk;

        HOUSE(house, "--threads", "1");
        talk = talk_greet(house);
        begin = now_ms();
        alone = stream_copy(talk_whole(talk, &lengthy));
        half_ms = 1 + (now_ms() - begin) / 2;
        reply = talk_ask(talk,
                         "op=s prompt=s max_tokens=u temperature=f seed=u ignore_eos=y "
                         "deadline_ms=u",
                         "generate", lengthy.prompt, lengthy.max_tokens, 1.0, 41, 1,
                         (unsigned)half_ms);
        assert_true(reply->ok);
        assert_int_equal(reply_uint(reply, "position"), 0);
        late = talk_end(talk, talk->last_id);
        if (late->end.reason == SMV_END_ERROR) {
                assert_int_equal(late->end.code, SMV_TIMEOUT);
                assert_prefix_stream(late, alone);
        } else { /* it was twice as fast as before */
                assert_same_stream(late, alone);
        }
        talk_close(talk);
        stream_free(alone);
        house_stop(house);
}

/* Twenty wait for one place; who comes then and has a millisecond is told so at once. */
static void what_would_be_too_late_is_refused_with_the_numbers(void **state)
{
        struct house *house = *state;
        const struct want waiting = { .prompt = "One of many",
                                      .max_tokens = 300,
                                      .ignore_eos = true };
        struct reply *reply;
        struct talk *talk;
        uint32_t ids[20];

        HOUSE(house, "--max-seqs", "1");
        talk = talk_greet(house);
        talk_whole(talk, &waiting); /* so that it knows how long one takes */
        for (size_t i = 0; i < 20; i++)
                ids[i] = talk_generate(talk, &waiting);
        reply = talk_ask(talk, "op=s prompt=s max_tokens=u deadline_ms=u", "generate", "Quick", 5,
                         1);
        assert_false(reply->ok);
        assert_int_equal(reply->code, SMV_TIMEOUT);
        assert_string_equal(reply->field, "deadline_ms");
        assert_non_null(strstr(reply->message, "requests are before it"));
        for (size_t i = 0; i < 20; i++)
                talk_end(talk, ids[i]);
        talk_close(talk);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(background_gives_way_and_goes_on_with_the_same_tokens),
                STORY(as_often_as_was_said_and_then_no_more),
                STORY(nobody_gives_way_to_his_like),
                STORY(who_does_not_read_gives_way_and_finds_every_token_later),
                STORY(a_request_ends_at_its_deadline_as_it_is),
                STORY(what_would_be_too_late_is_refused_with_the_numbers),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
