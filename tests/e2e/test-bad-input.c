/*
 * Bad input gets one clear reply that names the field and the limit.  The connection stays
 * unharmed, or ends where nothing after the input could be trusted.  Other clients notice nothing:
 * while all this is sent, an honest client streams, and its text is the same as when it is alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/honest.h"

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
        RESERVED("principal"),
        RESERVED("adapter"),
        RESERVED("draft"),
        RESERVED("snapshot"),
#define FOREIGN(field)                                                                             \
        {                                                                                          \
                field, "", "\1", 1, SMV_BAD_FIELD                                                  \
        }
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
static void assert_refusal(struct talk *talk, struct honest *honest, uint32_t id,
                           enum smv_code code, const char *field, const char *limit)
{
        const struct reply *reply = talk_reply(talk, id);
        bool named = code == SMV_TOO_LONG || code == SMV_TOO_LARGE || /* in words */
                     strstr(reply->message, field);

        if (reply->ok || reply->code != code || strcmp(reply->field, field) || !named ||
            !strstr(reply->message, limit))
                fail_msg("%s, limit %s: the reply is \"%s\" code %d field \"%s\" \"%s\"", field,
                         limit, reply->error, (int)reply->code, reply->field, reply->message);
        assert_true(talk_ask(talk, "op=s", "status")->ok);
        assert_null(talk_replied(talk, id));
        honest_look(honest);
}

static void every_value_out_of_range_is_refused_by_name(void **state)
{
        struct house *house = *state;
        struct honest honest;
        struct talk *talk;

        HOUSE(house, FAST);
        honest = honest_begin(house);
        talk = talk_greet(house);
        for (size_t i = 0; i < sizeof(bad_values) / sizeof(*bad_values); i++) {
                const struct bad_value *bad = &bad_values[i];
                uint32_t id = ++talk->last_id;
                char format[64];

                snprintf(format, sizeof(format), "op=s id=u prompt=s %s=x", bad->field);
                talk_say(talk, format, "generate", id, "Tea", bad->raw, bad->bytes);
                assert_refusal(talk, &honest, id, bad->code, bad->field, bad->limit);
        }
        assert_int_equal(talk->stream_count, 0);
        talk_close(talk);
        honest_end(&honest);
        house_stop(house);
}

/* Requests in which only one field is wrong. */
static void prompts_and_ids_that_are_none_are_refused(void **state)
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
        struct house *house = *state;
        struct honest honest;
        struct talk *talk;

        HOUSE(house, FAST);
        honest = honest_begin(house);
        talk = talk_greet(house);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                uint32_t id = ++talk->last_id;
                char format[64];

                snprintf(format, sizeof(format), "op=s id=u %s=x", cases[i].field);
                talk_say(talk, format, cases[i].op, id, cases[i].raw, cases[i].bytes);
                assert_refusal(talk, &honest, id, SMV_BAD_VALUE, cases[i].field, cases[i].limit);
        }
        talk_close(talk);
        honest_end(&honest);
        house_stop(house);
}

static void missing_and_clashing_fields_are_refused(void **state)
{
        struct house *house = *state;
        struct honest honest;
        struct talk *talk;
        uint32_t id;

        HOUSE(house, FAST);
        honest = honest_begin(house);
        talk = talk_greet(house);
        id = talk->last_id;
        talk_say(talk, "op=s id=u", "generate", ++id);
        assert_refusal(talk, &honest, id, SMV_MISSING, "prompt", "missing");
        id = ++talk->last_id;
        talk_say(talk, "op=s id=u prompt=s tokens=I", "generate", id, "a", ours, (size_t)2);
        assert_refusal(talk, &honest, id, SMV_BAD_FIELD, "tokens", "only one");
        id = ++talk->last_id;
        talk_say(talk, "op=s id=u", "cancel", id);
        assert_refusal(talk, &honest, id, SMV_MISSING, "stream", "missing");
        id = ++talk->last_id;
        talk_say(talk, "op=s id=u", "tokenize", id);
        assert_refusal(talk, &honest, id, SMV_MISSING, "text", "missing");
        id = ++talk->last_id;
        talk_say(talk, "op=s id=u", "detokenize", id);
        assert_refusal(talk, &honest, id, SMV_MISSING, "tokens", "missing");
        id = ++talk->last_id;
        talk_say(talk, "op=s id=u", "dance", id);
        assert_refusal(talk, &honest, id, SMV_BAD_VALUE, "op", "generate");
        id = ++talk->last_id;
        talk_say(talk, "op=u id=u", 5u, id);
        assert_refusal(talk, &honest, id, SMV_BAD_VALUE, "op", "text");
        id = ++talk->last_id;
        talk_say(talk, "id=u prompt=s", id, "a");
        assert_refusal(talk, &honest, id, SMV_MISSING, "op", "missing");
        id = ++talk->last_id;
        talk_say(talk, "op=s id=u prompt=s", "status", id, "a");
        assert_refusal(talk, &honest, id, SMV_BAD_FIELD, "prompt", "status");

        /* A refusal of a request without an id has the id 0. */
        talk_say(talk, "op=s", "status");
        assert_refusal(talk, &honest, 0, SMV_MISSING, "id", "missing");
        talk_say(talk, "op=s id=u", "status", 0u);
        assert_refusal(talk, &honest, 0, SMV_BAD_VALUE, "id", "4294967295");
        talk_say(talk, "op=s id=i", "status", -1);
        assert_refusal(talk, &honest, 0, SMV_BAD_VALUE, "id", "4294967295");
        talk_say(talk, "op=s id=q", "status", UINT64_C(1) << 32);
        assert_refusal(talk, &honest, 0, SMV_BAD_VALUE, "id", "4294967295");
        talk_say(talk, "op=s id=s", "status", "7");
        assert_refusal(talk, &honest, 0, SMV_BAD_VALUE, "id", "integer");
        talk_close(talk);
        honest_end(&honest);
        house_stop(house);
}

/* Each side of a limit of the daemon, with both numbers in the message. */
static void what_can_never_fit_is_refused_with_the_numbers(void **state)
{
        static char prompt[2048];
        struct house *house = *state;
        struct honest honest;
        struct talk *talk;
        uint32_t id;

        /* 1 MiB is 64 blocks of 16 positions; the last token of all needs none. */
        HOUSE(house, FAST, "--ctx", "1536", "--kv-bytes", "1M", "--frame-bytes", "64K");
        honest = honest_begin(house);
        talk = talk_greet(house);
        memset(prompt, 'a', sizeof(prompt));

        id = ++talk->last_id; /* bos is put before it */
        talk_say(talk, "op=s id=u prompt=t", "generate", id, prompt, (size_t)1535);
        assert_refusal(talk, &honest, id, SMV_TOO_LONG, "prompt", "1536");
        id = ++talk->last_id;
        talk_say(talk, "op=s id=u prompt=t max_tokens=u", "generate", id, prompt, (size_t)535,
                 1001u);
        assert_refusal(talk, &honest, id, SMV_TOO_LONG, "max_tokens", "1001");
        id = ++talk->last_id;
        talk_say(talk, "op=s id=u prompt=t max_tokens=u", "generate", id, prompt, (size_t)535,
                 1000u);
        assert_refusal(talk, &honest, id, SMV_TOO_LARGE, "max_tokens", "1024");
        id = ++talk->last_id;
        talk_say(talk, "op=s id=u prompt=t max_tokens=u", "generate", id, prompt, (size_t)535,
                 490u);
        assert_refusal(talk, &honest, id, SMV_TOO_LARGE, "max_tokens", "1024");
        id = ++talk->last_id;
        talk_say(talk, "op=s id=u prompt=t max_tokens=u", "generate", id, prompt, (size_t)535,
                 489u);
        assert_true(talk_reply(talk, id)->ok);
        talk_ask(talk, "op=s stream=u", "cancel", id);
        talk_end(talk, id);
        talk_close(talk);
        honest_end(&honest);
        house_stop(house);
}

static void an_id_is_taken_until_its_end_was_read(void **state)
{
        struct want want = { .prompt = "Tea", .max_tokens = ENDLESS, .ignore_eos = true };
        struct house *house = *state;
        struct honest honest;
        struct talk *talk;
        uint32_t id;

        ENDLESS_HOUSE(house, FAST);
        honest = honest_begin(house);
        talk = talk_greet(house);
        id = talk_generate(talk, &want);
        assert_true(talk_reply(talk, id)->ok);
        talk_say(talk, "op=s id=u prompt=s", "generate", id, "Tea");
        assert_refusal(talk, &honest, id, SMV_DUP_ID, "id", "alive");
        talk_say(talk, "op=s id=u text=s", "tokenize", id, "Tea");
        assert_refusal(talk, &honest, id, SMV_DUP_ID, "id", "alive");
        talk_ask(talk, "op=s stream=u", "cancel", id);
        assert_int_equal(talk_end(talk, id)->end.reason, SMV_END_CANCELLED);
        want.max_tokens = 3;
        for (uint32_t i = 0; i < 20; i++) {
                talk->last_id = id - 1; /* the same again */
                assert_int_equal(talk_generate(talk, &want), id);
                assert_true(talk_reply(talk, id)->ok);
                while (talk->stream_count < i + 2)
                        assert_true(talk_turn(talk, 10000));
                assert_int_equal(talk_end(talk, id)->token_count, 3);
        }
        assert_int_equal(talk->stream_count, 21);
        talk_close(talk);
        honest_end(&honest);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(every_value_out_of_range_is_refused_by_name),
                STORY(prompts_and_ids_that_are_none_are_refused),
                STORY(missing_and_clashing_fields_are_refused),
                STORY(what_can_never_fit_is_refused_with_the_numbers),
                STORY(an_id_is_taken_until_its_end_was_read),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", "BABBLE_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
