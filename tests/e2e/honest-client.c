#include "tests/e2e/honest-client.h"

static const struct want honesty = { .prompt = "An honest man",
                                     .max_tokens = 300,
                                     .ignore_eos = true,
                                     .temperature = 1,
                                     .seed = 5 };

struct honest_client honest_client_start(const struct daemon_fixture *fixture)
{
        struct honest_client honest = { .client = raw_client_greet(fixture) };

        honest.alone = stream_copy(raw_client_complete(honest.client, &honesty));
        honest.id = raw_client_generate(honest.client, &honesty);
        return honest;
}

/*
 * The misbehaving clients may belong to the same user, and then share the honest client's quota.
 * The daemon refuses the honest client for the quota, and the client asks again.
 */
static bool ask_again(struct honest_client *honest, const struct reply *reply)
{
        if (!reply || reply->ok)
                return false;
        assert_string_equal(reply->error, "quota");
        honest->id = raw_client_generate(honest->client, &honesty);
        return true;
}

void honest_client_check(struct honest_client *honest)
{
        const struct stream *stream;

        while (raw_client_poll(honest->client, 0))
                ;
        assert_false(honest->client->hung_up);
        if (ask_again(honest, raw_client_find_reply(honest->client, honest->id)))
                return;
        stream = raw_client_stream(honest->client, honest->id);
        if (!stream || !stream->ended)
                return;
        assert_same_stream(stream, honest->alone);
        honest->rounds++;
        honest->id = raw_client_generate(honest->client, &honesty);
}

void honest_client_check_for(struct honest_client *honest, uint32_t ms)
{
        uint64_t end = now_ms() + ms;

        for (honest_client_check(honest); now_ms() < end; honest_client_check(honest))
                raw_client_poll(honest->client, 5);
}

void honest_client_stop(struct honest_client *honest)
{
        while (ask_again(honest, raw_client_await_reply(honest->client, honest->id)))
                ;
        assert_same_stream(raw_client_await_end(honest->client, honest->id), honest->alone);
        assert_int_equal(honest->client->stream_count, honest->rounds + 2);
        raw_client_close(honest->client);
        stream_free(honest->alone);
}
