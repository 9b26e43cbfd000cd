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

void honest_look(struct honest *honest)
{
        const struct stream *stream;

        while (talk_turn(honest->talk, 0))
                ;
        assert_false(honest->talk->hung_up);
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
        assert_same_stream(talk_end(honest->talk, honest->id), honest->alone);
        assert_int_equal(honest->talk->stream_count, honest->rounds + 2);
        talk_close(honest->talk);
        stream_free(honest->alone);
}
