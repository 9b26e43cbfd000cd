#include "tests/e2e/honest.h"

static const struct want honesty = { .prompt = "An honest man",
                                     .max_tokens = 300,
                                     .ignore_eos = true,
                                     .temperature = 1,
                                     .seed = 5 };

struct honest honest_begin(const struct house *house)
{
        struct honest honest = { .talk = talk_greet(house) };

        honest.alone = stream_copy(talk_whole(honest.talk, &honesty));
        honest.id = talk_generate(honest.talk, &honesty);
        return honest;
}

/*
 * The misbehaving clients may belong to the same user, and then share the honest client's quota.
 * The daemon refuses the honest client for the quota, and the client asks again.
 */
static bool ask_again(struct honest *honest, const struct reply *reply)
{
        if (!reply || reply->ok)
                return false;
        assert_string_equal(reply->error, "quota");
        honest->id = talk_generate(honest->talk, &honesty);
        return true;
}

void honest_look(struct honest *honest)
{
        const struct stream *stream;

        while (talk_turn(honest->talk, 0))
                ;
        assert_false(honest->talk->hung_up);
        if (ask_again(honest, talk_replied(honest->talk, honest->id)))
                return;
        stream = talk_stream(honest->talk, honest->id);
        if (!stream || !stream->ended)
                return;
        assert_same_stream(stream, honest->alone);
        honest->rounds++;
        honest->id = talk_generate(honest->talk, &honesty);
}

void honest_look_for(struct honest *honest, uint32_t ms)
{
        uint64_t end = now_ms() + ms;

        for (honest_look(honest); now_ms() < end; honest_look(honest))
                talk_turn(honest->talk, 5);
}

void honest_end(struct honest *honest)
{
        while (ask_again(honest, talk_reply(honest->talk, honest->id)))
                ;
        assert_same_stream(talk_end(honest->talk, honest->id), honest->alone);
        assert_int_equal(honest->talk->stream_count, honest->rounds + 2);
        talk_close(honest->talk);
        stream_free(honest->alone);
}
