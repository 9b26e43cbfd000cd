/*
 * Constrained output, as a client of the library sees it: answers of the shipped model follow their
 * constraints, and nothing else changes.
 */
#include <ctype.h>
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/reader.h"
#include "tests/e2e/daemon-fixture.h"
#include "tests/e2e/honest-client.h"

#define TOKENS_MOST  2000u
#define TEXT_MOST    8000u
#define STREAMS_MOST 16u

/* Every answer of it is whole within 100 tokens. */
#define PERSON                                                                                     \
        "{\"schema\":{\"type\":\"object\",\"properties\":{"                                        \
        "\"name\":{\"type\":\"string\",\"maxLength\":12},"                                         \
        "\"age\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":120},"                            \
        "\"kind\":{\"enum\":[\"cat\",\"dog\",\"bird\"]}},"                                         \
        "\"required\":[\"name\",\"age\",\"kind\"],\"additionalProperties\":false},"                \
        "\"space\":\"none\"}"

/* What came of one stream. */
struct heard {
        uint32_t stream, tokens[TOKENS_MOST];
        char text[TEXT_MOST];
        size_t token_count, text_bytes;
        bool ended;
        struct smv_event end;
};

static void start_teaspoon(struct daemon_fixture *fixture, const char *flag, const char *value)
{
        char model[256];

        snprintf(model, sizeof(model), "%s/models/teaspoon-q8_0.gguf", env_path("SOURCES"));
        /* No constraint is kept: at the end the memory is compared. */
        START_DAEMON(fixture, "--model", model, "--threads", "1", MANY_CONNECTS,
                     "--constraints-kept", "0", flag, value);
}

static struct smv_client *connect_to(const struct daemon_fixture *fixture)
{
        struct smv_connect at = { SMV_SIZE(smv_connect), .socket = fixture->socket };
        struct smv_client *client;

        assert_int_equal(smv_connect(&at, &client), 0);
        return client;
}

/* Reads an event of one of these streams.  Returns which one. */
static struct heard *hear_one(struct smv_client *client, struct heard *heard, size_t count)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        size_t i = 0;

        assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
        while (i < count && heard[i].stream != event.stream)
                i++;
        assert_true(i < count);
        if (event.kind == SMV_EVENT_END) {
                heard[i].end = event;
                heard[i].ended = true;
                return &heard[i];
        }
        assert_true(heard[i].token_count + event.token_count <= TOKENS_MOST);
        assert_true(heard[i].text_bytes + event.text_bytes < TEXT_MOST);
        memcpy(heard[i].tokens + heard[i].token_count, event.tokens,
               event.token_count * sizeof(uint32_t));
        memcpy(heard[i].text + heard[i].text_bytes, event.text, event.text_bytes);
        heard[i].token_count += event.token_count;
        heard[i].text_bytes += event.text_bytes;
        heard[i].text[heard[i].text_bytes] = '\0';
        return &heard[i];
}

static void hear(struct smv_client *client, struct heard *heard, size_t count)
{
        for (size_t ended = 0; ended < count;)
                ended += hear_one(client, heard, count)->ended;
}

/* Begins `n` streams with one request. */
static void begin(struct smv_client *client, const struct smv_generate *how, struct heard *heard,
                  uint32_t n)
{
        struct smv_generate many = *how;
        uint32_t first;

        many.n = n;
        assert_int_equal(smv_generate(client, &many, &first), 0);
        for (uint32_t i = 0; i < n; i++) {
                memset(&heard[i], 0, sizeof(heard[i]));
                heard[i].stream = first + i;
        }
}

static struct smv_generate question(const char *constraint, uint64_t seed)
{
        return (struct smv_generate){ SMV_SIZE(smv_generate), .prompt = "Once upon a time",
                                      .max_tokens = 300,      .temperature = 1,
                                      .seed = seed,           .constraint = constraint };
}

static void ask(struct smv_client *client, const struct smv_generate *how, struct heard *ret_heard)
{
        begin(client, how, ret_heard, 1);
        hear(client, ret_heard, 1);
}

static void assert_same(const struct heard *a, const struct heard *b)
{
        assert_string_equal(a->text, b->text);
        assert_int_equal(a->token_count, b->token_count);
        assert_memory_equal(a->tokens, b->tokens, a->token_count * sizeof(uint32_t));
        assert_int_equal(a->end.reason, b->end.reason);
}

/* ---- what an answer is ---- */

/* A slow judge of PERSON, which knows nothing of schemas. */
static void assert_person(const struct heard *heard)
{
        struct json_document *json = NULL;
        const char *kind, *name;
        uint64_t age = 1000;
        char why[200];

        assert_int_equal(heard->end.reason, SMV_END_EOS);
        assert_int_equal(json_parse(heard->text, heard->text_bytes, 100, &json, why, sizeof(why)),
                         0);
        assert_int_equal(json_count(json, 0), 3);
        assert_string_equal(json_key(json, json_first(json, 0), NULL), "name");
        name = json_string(json, json_member(json, 0, "name"), NULL);
        kind = json_string(json, json_member(json, 0, "kind"), NULL);
        assert_non_null(name);
        assert_true(json_whole(json, json_member(json, 0, "age"), &age) && age <= 120);
        assert_true(kind &&
                    (!strcmp(kind, "cat") || !strcmp(kind, "dog") || !strcmp(kind, "bird")));
        assert_null(strchr(heard->text, ' ') && strchr(heard->text, ' ') < strchr(heard->text, ':')
                            ? heard->text
                            : NULL);
        json_free(json);
}

static void answers_follow_their_schema(void **state)
{
        static struct heard heard[STREAMS_MOST];
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;

        start_teaspoon(fixture, NULL, NULL);
        client = connect_to(fixture);
        for (uint64_t seed = 1; seed <= 4; seed++) {
                const struct smv_generate how = question(PERSON, seed);

                begin(client, &how, heard, STREAMS_MOST);
                hear(client, heard, STREAMS_MOST);
                for (uint32_t i = 0; i < STREAMS_MOST; i++)
                        assert_person(&heard[i]);
        }
        smv_close(client);
        fixture_stop(fixture);
}

static bool is_date(const char *text)
{
        for (unsigned i = 0; i < 10; i++)
                if (i == 4 || i == 7 ? text[i] != '-' : !isdigit((unsigned char)text[i]))
                        return false;
        return !text[10];
}

static bool is_choice(const char *text)
{
        return !strcmp(text, "yes") || !strcmp(text, "no") || !strcmp(text, "perhaps not");
}

static bool is_row(const char *text)
{
        size_t count = text[0] == 'a' ? strspn(text + 1, "bcd") : 0;

        return count && !strcmp(text + 1 + count, "e");
}

static bool is_object(const char *text)
{
        struct json_document *json = NULL;
        char why[200];
        bool is = !json_parse(text, strlen(text), 100, &json, why, sizeof(why)) &&
                  json_kind(json, 0) == JSON_OBJECT;

        json_free(json);
        return is;
}

static void each_kind_of_constraint_is_followed(void **state)
{
        static const struct {
                const char *constraint;
                bool (*is_right)(const char *text);
        } kinds[] = {
                { "{\"regex\":\"[0-9]{4}-[0-9]{2}-[0-9]{2}\"}", is_date },
                { "{\"choices\":[\"yes\",\"no\",\"perhaps not\"]}", is_choice },
                { "{\"grammar\":\"root ::= \\\"a\\\" [b-d]{1,20} \\\"e\\\"\"}", is_row },
                { "{\"schema\":{\"type\":\"object\",\"maxProperties\":2,\"additionalProperties\":"
                  "{\"type\":\"boolean\"},\"propertyNames\":{\"maxLength\":5}}}",
                  is_object },
        };
        static struct heard heard[4];
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;

        start_teaspoon(fixture, NULL, NULL);
        client = connect_to(fixture);
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
                const struct smv_generate how = question(kinds[i].constraint, 7);

                begin(client, &how, heard, 4);
                hear(client, heard, 4);
                for (uint32_t j = 0; j < 4; j++) {
                        assert_int_equal(heard[j].end.reason, SMV_END_EOS);
                        assert_true(kinds[i].is_right(heard[j].text));
                }
        }
        smv_close(client);
        fixture_stop(fixture);
}

/* ---- what does not change ---- */

static void a_constraint_that_allows_the_free_answer_gives_it(void **state)
{
        static struct heard free_one, bound;
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;

        start_teaspoon(fixture, NULL, NULL);
        client = connect_to(fixture);
        for (uint64_t seed = 1; seed <= 20; seed++) {
                struct smv_generate how = question(NULL, seed);

                how.max_tokens = 60;
                ask(client, &how, &free_one);
                how.constraint = "{\"regex\":\"(.|\\\\s)*\"}";
                ask(client, &how, &bound);
                assert_same(&free_one, &bound);
        }
        smv_close(client);
        fixture_stop(fixture);
}

static void free_streams_beside_constrained_ones_do_not_change(void **state)
{
        static struct heard alone[2][4], beside[2][4];
        struct daemon_fixture *fixture = *state;
        const struct smv_generate how[2] = { question(NULL, 3), question(PERSON, 4) };
        struct smv_client *client;

        start_teaspoon(fixture, NULL, NULL);
        client = connect_to(fixture);
        for (unsigned i = 0; i < 2; i++) {
                begin(client, &how[i], alone[i], 4);
                hear(client, alone[i], 4);
        }
        begin(client, &how[0], beside[0], 4);
        begin(client, &how[1], beside[1], 4);
        hear(client, beside[0], 8);
        for (unsigned i = 0; i < 8; i++)
                assert_same(&alone[i / 4][i % 4], &beside[i / 4][i % 4]);
        smv_close(client);
        fixture_stop(fixture);
}

/* The child's text goes on where its parent was: together they are one answer. */
static void a_fork_follows_the_constraint_of_its_parent(void **state)
{
        static struct heard heard[3];
        struct daemon_fixture *fixture = *state;
        const struct smv_generate how =
                question("{\"grammar\":\"root ::= (\\\"ab\\\" [c-z] \\\"!\\\"){200}\"}", 11);
        const struct smv_fork fork = { SMV_SIZE(smv_fork), .count = 2 };
        struct smv_client *client;
        uint32_t forks[2];

        start_teaspoon(fixture, "--max-tokens", "2000");
        client = connect_to(fixture);
        begin(client, &how, heard, 1);
        while (heard[0].text_bytes < 50)
                hear_one(client, heard, 1);
        assert_int_equal(smv_fork(client, heard[0].stream, &fork, forks), 0);
        memset(&heard[1], 0, 2 * sizeof(heard[1]));
        heard[1].stream = forks[0];
        heard[2].stream = forks[1];
        hear(client, heard, 3);
        for (unsigned i = 1; i < 3; i++) {
                /* The rest of a whole answer: "ab?!" over and over, from some point on. */
                const char *text = heard[i].text;

                assert_true(heard[i].text_bytes > 0);
                for (size_t back = 0; back < heard[i].text_bytes; back++) {
                        char c = text[heard[i].text_bytes - 1 - back];
                        static const char turn[] = "!?ba";

                        if (heard[i].end.reason == SMV_END_EOS)
                                assert_true(turn[back % 4] == '?' ? c >= 'c' && c <= 'z'
                                                                  : c == turn[back % 4]);
                }
                assert_int_not_equal(heard[i].end.reason, SMV_END_ERROR);
        }
        smv_close(client);
        fixture_stop(fixture);
}

/* With one slot, an interactive request can only end while the other one is preempted. */
static void a_preempted_stream_goes_on_under_its_constraint(void **state)
{
        static struct heard alone, paused, between;
        struct daemon_fixture *fixture = *state;
        struct smv_generate how = question("{\"regex\":\"([a-f]{3} )*\"}", 5);
        struct smv_generate quick = question(NULL, 6);
        struct smv_client *client;

        start_teaspoon(fixture, "--max-seqs", "1");
        client = connect_to(fixture);
        how.priority = SMV_PRIORITY_BACKGROUND;
        how.max_tokens = 400;
        quick.priority = SMV_PRIORITY_INTERACTIVE;
        quick.max_tokens = 3;
        ask(client, &how, &alone);
        begin(client, &how, &paused, 1);
        while (paused.token_count < 10)
                hear_one(client, &paused, 1);
        {
                static struct heard both[2];

                both[0] = paused;
                begin(client, &quick, &both[1], 1);
                hear(client, both, 2);
                paused = both[0];
                between = both[1];
        }
        assert_true(between.ended);
        assert_same(&alone, &paused);
        smv_close(client);
        fixture_stop(fixture);
}

/* ---- refusals ---- */

static void refused(struct smv_client *client, const struct smv_generate *how, enum smv_code code,
                    const char *field, const char *words)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        uint32_t stream;

        assert_int_not_equal(smv_generate(client, how, &stream), 0);
        smv_error(client, &problem);
        assert_int_equal(problem.code, code);
        assert_string_equal(problem.field, field);
        if (!strstr(problem.message, words))
                fail_msg("\"%s\" has not \"%s\"", problem.message, words);
}

static void a_constraint_that_cannot_be_kept_is_refused_with_its_place(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_generate how = question(NULL, 1);
        struct smv_client *client;

        start_teaspoon(fixture, NULL, NULL);
        client = connect_to(fixture);
        how.constraint = "{\"schema\":{\"maxLenght\":3}}";
        refused(client, &how, SMV_BAD_VALUE, "constraint", "/maxLenght");
        how.constraint = "{\"schema\":{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}}";
        refused(client, &how, SMV_BAD_VALUE, "constraint", "no text can match");
        how.constraint = "{\"regex\":\"(a\"}";
        refused(client, &how, SMV_BAD_VALUE, "constraint", "");
        how.constraint = "{\"json\":true,\"regex\":\"a\"}";
        refused(client, &how, SMV_BAD_VALUE, "constraint", "2 of json, schema");
        how.constraint = "no JSON";
        refused(client, &how, SMV_BAD_VALUE, "constraint", "");
        how.constraint = "{\"json\":true}";
        how.ignore_eos = 1;
        refused(client, &how, SMV_BAD_VALUE, "ignore_eos", "constraint");
        smv_close(client);
        fixture_stop(fixture);
}

static void constraints_are_charged_to_their_user(void **state)
{
        static struct heard heard;
        struct daemon_fixture *fixture = *state;
        struct smv_generate how = question("{\"regex\":\"[a-z]{10}\"}", 1);
        struct smv_client *client;

        start_teaspoon(fixture, "--uid-constraint-bytes", "1M");
        client = connect_to(fixture);
        refused(client, &how, SMV_QUOTA, "", "uid_constraint_bytes");
        how.constraint = NULL;
        how.max_tokens = 3;
        ask(client, &how, &heard);
        smv_close(client);
        fixture_stop(fixture);
}

/* fixture_stop() sees that nothing of them is left. */
static void clients_that_leave_leave_nothing(void **state)
{
        static struct heard heard;
        struct daemon_fixture *fixture = *state;
        struct smv_generate how = question("{\"regex\":\"[a-z]{5000}\"}", 1);

        start_teaspoon(fixture, NULL, NULL);
        for (unsigned i = 0; i < 20; i++) {
                struct smv_client *client = connect_to(fixture);

                begin(client, &how, &heard, 1);
                for (unsigned events = 0; events < i; events++)
                        hear_one(client, &heard, 1);
                smv_close(client);
        }
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(answers_follow_their_schema),
                DAEMON_TEST(each_kind_of_constraint_is_followed),
                DAEMON_TEST(a_constraint_that_allows_the_free_answer_gives_it),
                DAEMON_TEST(free_streams_beside_constrained_ones_do_not_change),
                DAEMON_TEST(a_fork_follows_the_constraint_of_its_parent),
                DAEMON_TEST(a_preempted_stream_goes_on_under_its_constraint),
                DAEMON_TEST(a_constraint_that_cannot_be_kept_is_refused_with_its_place),
                DAEMON_TEST(constraints_are_charged_to_their_user),
                DAEMON_TEST(clients_that_leave_leave_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
