/*
 * Bad input gets one clear reply that names the field and the limit.  The connection stays
 * unharmed, or ends where nothing after the input could be trusted.  Other clients notice nothing:
 * while all this is sent, an honest client streams, and its text is the same as when it is alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/honest-client.h"

static const uint32_t ours[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };

#define NAN64  "\xcb\x7f\xf8\0\0\0\0\0\0"
#define INF64  "\xcb\x7f\xf0\0\0\0\0\0\0"
#define MINF64 "\xcb\xff\xf0\0\0\0\0\0\0"
#define ONE64  "\xcb\x3f\xf0\0\0\0\0\0\0"
#define HUGE64 "\xcb\x7e\x37\xe4\x3c\x88\0\x75\x9c" /* 1e300 */
#define TINY64 "\xcb\x33\x7a\0\0\0\0\0\0"
#define NAN32  "\xca\x7f\xc0\0\0"
#define U33    "\xcf\0\0\0\1\0\0\0\0" /* 2^32 */
#define TEXT64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* A generation with one more field; the limit is in the message. */
static const struct bad_value {
        const char *field, *limit, *raw;
        size_t bytes;
        enum smv_code code;
} bad_values[] = {
#define BAD(field, limit, raw)                                                                     \
        {                                                                                          \
                field, limit, raw, sizeof(raw) - 1, SMV_BAD_VALUE                                  \
        }
        BAD("max_tokens", "4294967295", "\0"),
        BAD("max_tokens", "4294967295", "\xff"),
        BAD("max_tokens", "4294967295", U33),
        BAD("max_tokens", "integer", ONE64),
        BAD("max_tokens", "integer", "\xc0"),
        BAD("max_tokens", "integer", "\xc3"),
        BAD("max_tokens", "integer", "\xa1\x35"),
        BAD("max_tokens", "integer", "\x90"),
        BAD("max_tokens", "integer", "\x80"),
        BAD("temperature", "100", "\xff"),
        BAD("temperature", "100", "\x65"),
        BAD("temperature", "100", NAN64),
        BAD("temperature", "100", NAN32),
        BAD("temperature", "100", INF64),
        BAD("temperature", "100", MINF64),
        BAD("temperature", "100", HUGE64),
        BAD("temperature", "number", "\xa1\x31"),
        BAD("temperature", "number", "\xc0"),
        BAD("temperature", "number", "\xc2"),
        BAD("top_k", "1024", "\xcd\x04\x01"),
        BAD("top_k", "1024", "\xff"),
        BAD("top_k", "integer", ONE64),
        BAD("top_p", "1", "\0"),
        BAD("top_p", "1", "\2"),
        BAD("top_p", "1", "\xff"),
        BAD("top_p", "1", NAN64),
        BAD("top_p", "1", TINY64),
        BAD("top_p", "number", "\xc4\1\0"),
        BAD("min_p", "1", "\2"),
        BAD("min_p", "1", "\xd0\x80"),
        BAD("min_p", "1", NAN64),
        BAD("min_p", "1", INF64),
        BAD("seed", "18446744073709551615", "\xff"),
        BAD("seed", "18446744073709551615", "\xd3\x80\0\0\0\0\0\0\0"),
        BAD("seed", "integer", ONE64),
        BAD("seed", "integer", "\xa1\x31"),
        BAD("stop", "1", "\xa0"),
        BAD("stop", "16", "\x90"),
        BAD("stop", "256", "\x91\xa0"),
        BAD("stop", "text", "\x91\x07"),
        BAD("stop", "text", "\xc0"),
        BAD("stop", "text", "\x07"),
        BAD("stop", "16",
            "\xdc\0\x11\xa1"
            "a\xa1"
            "a\xa1"
            "a\xa1"
            "a\xa1"
            "a\xa1"
            "a\xa1"
            "a\xa1"
            "a\xa1"
            "a\xa1"
            "a\xa1"
            "a\xa1"
            "a\xa1"
            "a\xa1"
            "a\xa1"
            "a\xa1"
            "a\xa1"
            "a"),
        BAD("stop", "256", "\xda\1\1" TEXT64 TEXT64 TEXT64 TEXT64 "x"),
        BAD("stop", "UTF-8", "\xa2\xc3\x28"),
        BAD("stop_tokens", "257", "\x91\xcd\1\2"),
        BAD("stop_tokens", "4294967295", "\x91" U33),
        BAD("stop_tokens", "-1", "\x91\xff"),
        BAD("stop_tokens", "integers", "\x91" ONE64),
        BAD("stop_tokens", "array", "\7"),
        BAD("stop_tokens", "16", "\xdc\0\x11\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1"),
        BAD("ignore_eos", "bool", "\1"),
        BAD("ignore_eos", "bool", "\xa3yes"),
        BAD("ignore_eos", "bool", "\xc0"),
        BAD("model", "64", "\xa0"),
        BAD("model", "64", "\xd9\x41" TEXT64 "x"),
        BAD("model", "text", "\7"),
        BAD("model", "UTF-8", "\xa1\xff"),
        { "model", "", "\xa4nope", 5, SMV_NO_MODEL },
#define RESERVED(field)                                                                            \
        {                                                                                          \
                field, "", "\1", 1, SMV_RESERVED                                                   \
        }
        RESERVED("adapter"),
        RESERVED("draft"),
        RESERVED("snapshot"),
#define FOREIGN(field)                                                                             \
        {                                                                                          \
                field, "", "\1", 1, SMV_BAD_FIELD                                                  \
        }
        FOREIGN("principal"),
        FOREIGN("stream"),
        FOREIGN("text"),
        FOREIGN("versions"),
        FOREIGN("temprature"),
        FOREIGN("Prompt"),
        FOREIGN("op"), /* again */
        FOREIGN("id"),
        FOREIGN("prompt"),
};

/* The client gets one reply, of this kind; then the connection works as before. */
static void assert_refusal(struct raw_client *client, struct honest_client *honest, uint32_t id,
                           enum smv_code code, const char *field, const char *limit)
{
        const struct reply *reply = raw_client_await_reply(client, id);
        bool named = code == SMV_TOO_LONG || code == SMV_TOO_LARGE || /* in words */
                     strstr(reply->message, field);

        if (reply->ok || reply->code != code || strcmp(reply->field, field) || !named ||
            !strstr(reply->message, limit))
                fail_msg("%s, limit %s: the reply is \"%s\" code %d field \"%s\" \"%s\"", field,
                         limit, reply->error, (int)reply->code, reply->field, reply->message);
        assert_true(raw_client_call(client, "op=s", "status")->ok);
        assert_null(raw_client_find_reply(client, id));
        honest_client_check(honest);
}

static void refuses_each_value_out_of_range_and_names_its_field(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;
        struct raw_client *client;

        START_DAEMON(fixture, MANY_CONNECTS);
        honest = honest_client_start(fixture);
        client = raw_client_greet(fixture);
        for (size_t i = 0; i < sizeof(bad_values) / sizeof(*bad_values); i++) {
                const struct bad_value *bad = &bad_values[i];
                uint32_t id = ++client->last_id;
                char format[64];

                snprintf(format, sizeof(format), "op=s id=u prompt=s %s=x", bad->field);
                raw_client_send_frame(client, format, "generate", id, "Tea", bad->raw, bad->bytes);
                assert_refusal(client, &honest, id, bad->code, bad->field, bad->limit);
        }
        assert_int_equal(client->stream_count, 0);
        raw_client_close(client);
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

/* Requests in which only one field is wrong. */
static void refuses_invalid_prompts_texts_and_ids(void **state)
{
        static const struct {
                const char *op, *field, *limit, *raw;
                size_t bytes;
        } cases[] = {
#define CASE(op, field, limit, raw) { op, field, limit, raw, sizeof(raw) - 1 }
                CASE("generate", "prompt", "text", "\7"),
                CASE("generate", "prompt", "text", "\xc0"),
                CASE("generate", "prompt", "text", "\xc4\1a"),
                CASE("generate", "prompt", "UTF-8",
                     "\xa4"
                     "ab\xc0\xaf"),
                CASE("generate", "prompt", "UTF-8", "\xa3\xed\xa0\x80"),
                CASE("generate", "prompt", "UTF-8",
                     "\xa2"
                     "a\xe2"),
                CASE("generate", "tokens", "1", "\x90"),
                CASE("generate", "tokens", "257", "\x92\1\xcd\1\2"),
                CASE("generate", "tokens", "4294967295", "\x91" U33),
                CASE("generate", "tokens", "-1", "\x91\xff"),
                CASE("generate", "tokens", "integers",
                     "\x91\xa1"
                     "a"),
                CASE("generate", "tokens", "array",
                     "\xa1"
                     "a"),
                CASE("detokenize", "tokens", "257", "\x91\xcd\1\2"),
                CASE("detokenize", "tokens", "1", "\x90"),
                CASE("tokenize", "text", "text", "\7"),
                CASE("tokenize", "text", "UTF-8", "\xa1\x80"),
                CASE("cancel", "stream", "4294967295", "\0"),
                CASE("cancel", "stream", "4294967295", U33),
                CASE("cancel", "stream", "integer",
                     "\xa1"
                     "1"),
        };
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;
        struct raw_client *client;

        START_DAEMON(fixture, MANY_CONNECTS);
        honest = honest_client_start(fixture);
        client = raw_client_greet(fixture);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                uint32_t id = ++client->last_id;
                char format[64];

                snprintf(format, sizeof(format), "op=s id=u %s=x", cases[i].field);
                raw_client_send_frame(client, format, cases[i].op, id, cases[i].raw,
                                      cases[i].bytes);
                assert_refusal(client, &honest, id, SMV_BAD_VALUE, cases[i].field, cases[i].limit);
        }
        raw_client_close(client);
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

static void refuses_missing_and_conflicting_fields(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;
        struct raw_client *client;
        uint32_t id;

        START_DAEMON(fixture, MANY_CONNECTS);
        honest = honest_client_start(fixture);
        client = raw_client_greet(fixture);
        id = client->last_id;
        raw_client_send_frame(client, "op=s id=u", "generate", ++id);
        assert_refusal(client, &honest, id, SMV_MISSING, "prompt", "missing");
        id = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u prompt=s tokens=I", "generate", id, "a", ours,
                              (size_t)2);
        assert_refusal(client, &honest, id, SMV_BAD_FIELD, "tokens", "only one");
        id = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u", "cancel", id);
        assert_refusal(client, &honest, id, SMV_MISSING, "stream", "missing");
        id = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u", "tokenize", id);
        assert_refusal(client, &honest, id, SMV_MISSING, "text", "missing");
        id = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u", "detokenize", id);
        assert_refusal(client, &honest, id, SMV_MISSING, "tokens", "missing");
        id = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u", "dance", id);
        assert_refusal(client, &honest, id, SMV_BAD_VALUE, "op", "generate");
        id = ++client->last_id;
        raw_client_send_frame(client, "op=u id=u", 5u, id);
        assert_refusal(client, &honest, id, SMV_BAD_VALUE, "op", "text");
        id = ++client->last_id;
        raw_client_send_frame(client, "id=u prompt=s", id, "a");
        assert_refusal(client, &honest, id, SMV_MISSING, "op", "missing");
        id = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u prompt=s", "status", id, "a");
        assert_refusal(client, &honest, id, SMV_BAD_FIELD, "prompt", "status");

        /* A refusal of a request without an id has the id 0. */
        raw_client_send_frame(client, "op=s", "status");
        assert_refusal(client, &honest, 0, SMV_MISSING, "id", "missing");
        raw_client_send_frame(client, "op=s id=u", "status", 0u);
        assert_refusal(client, &honest, 0, SMV_BAD_VALUE, "id", "4294967295");
        raw_client_send_frame(client, "op=s id=i", "status", -1);
        assert_refusal(client, &honest, 0, SMV_BAD_VALUE, "id", "4294967295");
        raw_client_send_frame(client, "op=s id=q", "status", UINT64_C(1) << 32);
        assert_refusal(client, &honest, 0, SMV_BAD_VALUE, "id", "4294967295");
        raw_client_send_frame(client, "op=s id=s", "status", "7");
        assert_refusal(client, &honest, 0, SMV_BAD_VALUE, "id", "integer");
        raw_client_close(client);
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

/* Each side of a limit of the daemon, with both numbers in the message. */
static void refuses_a_request_that_can_never_fit_and_states_the_limit(void **state)
{
        static char prompt[2048];
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;
        struct raw_client *client;
        uint32_t id;

        /* 1 MiB is 64 blocks of 16 positions; the last token of all needs none. */
        START_DAEMON(fixture, MANY_CONNECTS, "--ctx", "1536", "--kv-bytes", "1M", "--frame-bytes",
                     "64K");
        honest = honest_client_start(fixture);
        client = raw_client_greet(fixture);
        memset(prompt, 'a', sizeof(prompt));

        id = ++client->last_id; /* bos is put before it */
        raw_client_send_frame(client, "op=s id=u prompt=t", "generate", id, prompt, (size_t)1535);
        assert_refusal(client, &honest, id, SMV_TOO_LONG, "prompt", "1536");
        id = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u prompt=t max_tokens=u", "generate", id, prompt,
                              (size_t)535, 1001u);
        assert_refusal(client, &honest, id, SMV_TOO_LONG, "max_tokens", "1001");
        id = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u prompt=t max_tokens=u", "generate", id, prompt,
                              (size_t)535, 1000u);
        assert_refusal(client, &honest, id, SMV_TOO_LARGE, "max_tokens", "1024");
        id = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u prompt=t max_tokens=u", "generate", id, prompt,
                              (size_t)535, 490u);
        assert_refusal(client, &honest, id, SMV_TOO_LARGE, "max_tokens", "1024");
        id = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u prompt=t max_tokens=u", "generate", id, prompt,
                              (size_t)535, 489u);
        assert_true(raw_client_await_reply(client, id)->ok);
        raw_client_call(client, "op=s stream=u", "cancel", id);
        raw_client_await_end(client, id);
        raw_client_close(client);
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

static void an_id_can_be_reused_only_after_its_stream_has_ended(void **state)
{
        struct want want = { .prompt = "Tea", .max_tokens = ENDLESS, .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;
        struct raw_client *client;
        uint32_t id;

        START_ENDLESS_DAEMON(fixture, MANY_CONNECTS);
        honest = honest_client_start(fixture);
        client = raw_client_greet(fixture);
        id = raw_client_generate(client, &want);
        assert_true(raw_client_await_reply(client, id)->ok);
        raw_client_send_frame(client, "op=s id=u prompt=s", "generate", id, "Tea");
        assert_refusal(client, &honest, id, SMV_DUP_ID, "id", "alive");
        raw_client_send_frame(client, "op=s id=u text=s", "tokenize", id, "Tea");
        assert_refusal(client, &honest, id, SMV_DUP_ID, "id", "alive");
        raw_client_call(client, "op=s stream=u", "cancel", id);
        assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_CANCELLED);
        want.max_tokens = 3;
        for (uint32_t i = 0; i < 20; i++) {
                client->last_id = id - 1; /* the same again */
                assert_int_equal(raw_client_generate(client, &want), id);
                assert_true(raw_client_await_reply(client, id)->ok);
                while (client->stream_count < i + 2)
                        assert_true(raw_client_poll(client, 10000));
                assert_int_equal(raw_client_await_end(client, id)->token_count, 3);
        }
        assert_int_equal(client->stream_count, 21);
        raw_client_close(client);
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(refuses_each_value_out_of_range_and_names_its_field),
                DAEMON_TEST(refuses_invalid_prompts_texts_and_ids),
                DAEMON_TEST(refuses_missing_and_conflicting_fields),
                DAEMON_TEST(refuses_a_request_that_can_never_fit_and_states_the_limit),
                DAEMON_TEST(an_id_can_be_reused_only_after_its_stream_has_ended),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
