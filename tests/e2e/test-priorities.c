/* Which request runs first, which is preempted and continues later, and which is refused because it
 * would be too late. */
#include <stdio.h>
#include <string.h>

#include "tests/e2e/talk.h"

static const struct want lengthy = { .prompt = "Once upon a time there was a samovar",
                                     .max_tokens = 1500,
                                     .temperature = 1,
                                     .seed = 41,
                                     .ignore_eos = true,
                                     .class = "background" };

static const struct want endless = { .prompt = "Once upon a time there was a samovar",
                                     .max_tokens = ENDLESS,
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
        uint64_t end = now_ms() + PATIENCE_MS;

        for (;;) {
                const struct stream *stream = talk_stream(talk, id);

                if (stream && stream->token_count >= count)
                        return stream;
                assert_true(now_ms() < end);
                talk_turn(talk, 10);
        }
}

static const struct stream *cancel(struct talk *talk, uint32_t id)
{
        assert_true(talk_ask(talk, "op=s stream=u", "cancel", id)->ok);
        assert_int_equal(talk_end(talk, id)->end.reason, SMV_END_CANCELLED);
        return talk_stream(talk, id);
}

/* The background stream has its place again when more tokens of it come; its earlier tokens come
 * before those of the other stream. */
static void background_gives_way_and_goes_on_with_the_same_tokens(void **state)
{
        const struct stream *stream, *alone;
        struct want again = endless;
        struct house *house = *state;
        struct talk *talk;
        size_t count = 0;
        uint32_t slow;

        ENDLESS_HOUSE(house, "--max-seqs", "1");
        talk = talk_greet(house);
        slow = talk_generate(talk, &endless);
        for (size_t i = 1; i <= 3; i++) {
                await_tokens(talk, slow, count + 20);
                assert_int_equal(talk_whole(talk, &brief)->token_count, 5);
                count = talk_stream(talk, slow)->token_count;
                assert_int_equal(talk_status(talk, "requests.parked"), i);
        }
        await_tokens(talk, slow, count + 20);
        stream = cancel(talk, slow);
        again.max_tokens = (uint32_t)stream->token_count;
        alone = talk_whole(talk, &again);
        assert_int_equal(alone->token_count, stream->token_count);
        assert_memory_equal(alone->tokens, stream->tokens,
                            alone->token_count * sizeof(*alone->tokens));
        talk_close(talk);
        house_stop(house);
}

/* While `quick` waits `slow` continues, until the test cancels it. */
static void expect_no_way_given(struct talk *talk, uint32_t slow, const struct want *quick)
{
        uint64_t end = now_ms() + PATIENCE_MS;
        uint32_t id = talk_generate(talk, quick);

        while (talk_status(talk, "requests.waiting") != 1)
                assert_true(now_ms() < end);
        await_tokens(talk, slow, talk_stream(talk, slow)->token_count + 100);
        assert_null(talk_stream(talk, id));
        cancel(talk, slow);
        assert_int_equal(talk_end(talk, id)->token_count, 5);
}

static void as_often_as_was_said_and_then_no_more(void **state)
{
        struct house *house = *state;
        struct talk *talk;
        uint32_t slow;

        ENDLESS_HOUSE(house, "--max-seqs", "1", "--max-parks", "1");
        talk = talk_greet(house);
        slow = talk_generate(talk, &endless);
        await_tokens(talk, slow, 20);
        talk_whole(talk, &brief);
        await_tokens(talk, slow, talk_stream(talk, slow)->token_count + 1);
        expect_no_way_given(talk, slow, &brief);
        assert_int_equal(talk_status(talk, "requests.parked"), 1);
        talk_close(talk);
        house_stop(house);
}

static void nobody_gives_way_to_his_like(void **state)
{
        struct want second = brief;
        struct house *house = *state;
        struct talk *talk;
        uint32_t slow;

        ENDLESS_HOUSE(house, "--max-seqs", "1");
        talk = talk_greet(house);
        slow = talk_generate(talk, &endless);
        await_tokens(talk, slow, 20);
        second.class = "background";
        expect_no_way_given(talk, slow, &second);
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
        uint64_t end = now_ms() + PATIENCE_MS;
        uint32_t slow;

        QUICK_HOUSE(house, "--max-seqs", "1", "--ring-bytes", "64K", "--grace-ms", "50");
        other = talk_greet_by(house, TALK_SOCKET);
        still.class = "interactive"; /* an idle class does not reserve a place */
        still.max_tokens = 1900;
        alone = stream_copy(talk_whole(other, &still));
        sleeper = talk_greet_by(house, TALK_KICK);
        talk_generate(sleeper, &still);
        slow = talk_generate(sleeper, &still); /* there is not enough room left for it */
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
        struct want again = endless;
        const struct stream *late, *alone;
        struct reply *reply;
        struct talk *talk;

        ENDLESS_HOUSE(house, "--threads", "1");
        talk = talk_greet(house);
        reply = talk_ask(talk,
                         "op=s prompt=s max_tokens=u temperature=f seed=u ignore_eos=y "
                         "deadline_ms=u",
                         "generate", endless.prompt, endless.max_tokens, 1.0, 41, 1, 1500);
        assert_true(reply->ok);
        assert_int_equal(reply_uint(reply, "position"), 0);
        late = talk_end(talk, talk->last_id);
        assert_int_equal(late->end.reason, SMV_END_ERROR);
        assert_int_equal(late->end.code, SMV_TIMEOUT);
        again.max_tokens = 100;
        alone = talk_whole(talk, &again);
        if (late->token_count < alone->token_count)
                assert_prefix_stream(late, alone);
        else
                assert_prefix_stream(alone, late);
        talk_close(talk);
        house_stop(house);
}

/* Twenty requests wait for one place, which does not become free.  A request that comes then with a
 * deadline of a millisecond is refused at once. */
static void what_would_be_too_late_is_refused_with_the_numbers(void **state)
{
        struct house *house = *state;
        const struct want waiting = { .prompt = "One of many",
                                      .max_tokens = 300,
                                      .ignore_eos = true };
        struct want first = endless;
        struct reply *reply;
        struct talk *talk;
        uint32_t id, ids[20];

        ENDLESS_HOUSE(house, "--max-seqs", "1");
        talk = talk_greet(house);
        talk_whole(talk, &waiting); /* so that the daemon knows how long one takes */
        first.class = "interactive";
        id = talk_generate(talk, &first);
        await_tokens(talk, id, 1);
        for (size_t i = 0; i < 20; i++)
                ids[i] = talk_generate(talk, &waiting);
        reply = talk_ask(talk, "op=s prompt=s max_tokens=u deadline_ms=u", "generate", "Quick", 5,
                         1);
        assert_false(reply->ok);
        assert_int_equal(reply->code, SMV_TIMEOUT);
        assert_string_equal(reply->field, "deadline_ms");
        assert_non_null(strstr(reply->message, "20 requests are before it"));
        cancel(talk, id);
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

        need((const char *const[]){ "SAMOVARD", "BABBLE", "BABBLE_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
