/*
 * OpenAI's `prediction`, from HTTP to a daemon and back: the answer is the same with it, and its
 * usage says how many of the tokens were right.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/bridge-fixture.h"
#include "tests/e2e/raw-client.h"

#define CHAT        "/v1/chat/completions"
#define COMPLETIONS "/v1/completions"
#define QUESTION                                                                                   \
        "\"messages\":[{\"role\":\"user\",\"content\":\"Tell me a story of a red kettle.\"}],"     \
        "\"temperature\":0.7,\"seed\":5,\"max_tokens\":60"

#define ACCEPTED "\"accepted_prediction_tokens\":"
#define REJECTED "\"rejected_prediction_tokens\":"

static struct bridge_fixture start(struct daemon_fixture *fixture, const char *draft)
{
        char model[300];

        snprintf(model, sizeof(model), "%s/models/teaspoon-q8_0.gguf", env_path("SOURCES"));
        START_DAEMON(fixture, "--model", model, "--threads", "1", "--ctx", "512", "--draft", draft,
                     "--constraints-kept", "0");
        return bridge_beside(fixture);
}

/* Posts {QUESTION, `more`}; the answer must have this status. */
static char *ask(const struct bridge_fixture *bridge, const char *path, unsigned status,
                 const char *more)
{
        char *body, what[64], *answer;

        assert_true(asprintf(&body, "{%s%s}",
                             strcmp(path, CHAT) ? "\"prompt\":\"Once upon a time\",\"max_tokens\":"
                                                  "40,\"temperature\":0"
                                                : QUESTION,
                             more) > 0);
        snprintf(what, sizeof(what), "POST %s", path);
        answer = http_ask(bridge, what, "", body, status);
        free(body);
        assert_non_null(answer);
        return answer;
}

static unsigned number(const char *answer, const char *words)
{
        const char *at = strstr(answer, words);

        if (!at)
                fail_msg("'%s' is not in: %s", words, answer);
        return (unsigned)strtoul(at + strlen(words), NULL, 10);
}

static void has(const char *answer, const char *words)
{
        assert_non_null(answer);
        if (!strstr(answer, words))
                fail_msg("'%s' is not in: %s", words, answer);
}

/* All strings with this key, joined, as they are escaped. */
static char *texts_of(const char *answer, const char *key)
{
        char *joined = calloc(1, strlen(answer) + 1), *to = joined, words[32];

        assert_non_null(joined);
        snprintf(words, sizeof(words), "\"%s\":\"", key);
        while ((answer = strstr(answer, words)))
                for (answer += strlen(words); *answer != '"';) {
                        if (*answer == '\\')
                                *to++ = *answer++;
                        *to++ = *answer++;
                }
        return joined;
}

/* The answer of a daemon without drafts: its text, and its tokens. */
static char *plain_text(struct daemon_fixture *fixture, const char *path, const char *more,
                        unsigned *ret_tokens)
{
        struct bridge_fixture bridge = start(fixture, "off");
        char *answer = ask(&bridge, path, 200, more);
        char *text = texts_of(answer, strcmp(path, CHAT) ? "text" : "content");

        if (!strcmp(path, CHAT)) {
                assert_int_equal(number(answer, ACCEPTED), 0);
                assert_int_equal(number(answer, REJECTED), 0);
        }
        *ret_tokens = number(answer, "\"completion_tokens\":");
        free(answer);
        bridge_stop_both(&bridge, fixture);
        assert_true(strlen(text) > 40);
        return text;
}

/* Asks with this content, which is JSON, and compares with the plain answer. */
static char *ask_predicted(const struct bridge_fixture *bridge, const char *path,
                           const char *content, const char *more, const char *plain,
                           unsigned tokens)
{
        char *field, *answer, *text;

        assert_true(asprintf(&field, ",\"prediction\":{\"type\":\"content\",\"content\":%s}%s",
                             content, more) > 0);
        answer = ask(bridge, path, 200, field);
        text = texts_of(answer, strcmp(path, CHAT) ? "text" : "content");
        assert_string_equal(text, plain);
        assert_int_equal(number(answer, "\"completion_tokens\":"), tokens);
        free(text);
        free(field);
        return answer;
}

static void a_right_prediction_is_counted_as_accepted(void **state)
{
        struct daemon_fixture *fixture = *state;
        unsigned tokens;
        char *plain = plain_text(fixture, CHAT, "", &tokens), *content, *answer;
        struct bridge_fixture bridge = start(fixture, "always");

        assert_true(asprintf(&content, "\"%s\"", plain) > 0);
        answer = ask_predicted(&bridge, CHAT, content, "", plain, tokens);
        assert_true(number(answer, ACCEPTED) > tokens / 2);
        assert_true(number(answer, ACCEPTED) < tokens);
        free(answer);
        answer =
                ask_predicted(&bridge, CHAT, content, ",\"timings_per_token\":true", plain, tokens);
        assert_true(number(answer, "\"draft_n\":") >=
                    number(answer, ACCEPTED) + number(answer, REJECTED));
        assert_true(number(answer, "\"draft_n_accepted\":") >= number(answer, ACCEPTED));
        free(answer);
        free(content);
        free(plain);
        bridge_stop_both(&bridge, fixture);
}

/* The text in two parts, of which the border may be in the middle of a word. */
static void parts_of_a_prediction_are_joined(void **state)
{
        struct daemon_fixture *fixture = *state;
        unsigned tokens, whole;
        char *plain = plain_text(fixture, CHAT, "", &tokens), *content, *answer;
        struct bridge_fixture bridge = start(fixture, "always");
        int cut = 21;

        assert_true(asprintf(&content, "\"%s\"", plain) > 0);
        answer = ask_predicted(&bridge, CHAT, content, "", plain, tokens);
        whole = number(answer, ACCEPTED);
        free(answer);
        free(content);
        while (plain[cut - 1] == '\\')
                cut++;
        assert_true(
                asprintf(&content,
                         "[{\"type\":\"text\",\"text\":\"%.*s\"},"
                         "{\"type\":\"text\",\"text\":\"\"},{\"text\":\"%s\",\"type\":\"text\"}]",
                         cut, plain, plain + cut) > 0);
        answer = ask_predicted(&bridge, CHAT, content, "", plain, tokens);
        assert_int_equal(number(answer, ACCEPTED), whole);
        free(answer);
        free(content);
        free(plain);
        bridge_stop_both(&bridge, fixture);
}

static void a_stream_tells_the_counts_with_its_usage(void **state)
{
        struct daemon_fixture *fixture = *state;
        unsigned tokens;
        char *plain = plain_text(fixture, CHAT, "", &tokens), *content, *answer;
        struct bridge_fixture bridge = start(fixture, "always");

        assert_true(asprintf(&content, "\"%s\"", plain) > 0);
        answer = ask_predicted(&bridge, CHAT, content,
                               ",\"stream\":true,\"stream_options\":{\"include_usage\":true},"
                               "\"timings_per_token\":true",
                               plain, tokens);
        has(answer, "data: [DONE]");
        assert_true(number(answer, ACCEPTED) > tokens / 2);
        assert_true(number(answer, "\"draft_n_accepted\":") >= number(answer, ACCEPTED));
        free(answer);
        free(content);
        free(plain);
        bridge_stop_both(&bridge, fixture);
}

/* Its first letters are right, so it is followed. */
static void a_wrong_prediction_is_counted_as_rejected(void **state)
{
        struct daemon_fixture *fixture = *state;
        unsigned tokens, rejected;
        char *plain = plain_text(fixture, CHAT, "", &tokens), *content, *answer;
        struct bridge_fixture bridge = start(fixture, "always");

        assert_true(asprintf(&content, "\"%.20s, and 1 2 3 4 5 6 7 8 9 10 11 12\"", plain) > 0);
        answer =
                ask_predicted(&bridge, CHAT, content, ",\"timings_per_token\":true", plain, tokens);
        rejected = number(answer, REJECTED);
        assert_true(rejected > 0);
        assert_true(number(answer, "\"draft_n\":") - number(answer, "\"draft_n_accepted\":") >=
                    rejected);
        free(answer);
        free(content);
        free(plain);
        bridge_stop_both(&bridge, fixture);
}

/* Their usage has no details: the status of the daemon tells. */
static void completions_take_a_prediction(void **state)
{
        struct daemon_fixture *fixture = *state;
        unsigned tokens;
        char *plain = plain_text(fixture, COMPLETIONS, "", &tokens), *content, *answer;
        struct bridge_fixture bridge = start(fixture, "always");

        assert_true(asprintf(&content, "\"%s\"", plain) > 0);
        answer = ask_predicted(&bridge, COMPLETIONS, content, "", plain, tokens);
        assert_true(fixture_status(fixture, "drafts_right") > tokens / 2);
        free(answer);
        free(content);
        free(plain);
        bridge_stop_both(&bridge, fixture);
}

static void choices_share_a_prediction_and_their_counts_are_added(void **state)
{
        struct daemon_fixture *fixture = *state;
        unsigned tokens, both, accepted;
        char *first = plain_text(fixture, CHAT, "", &tokens);
        char *plain = plain_text(fixture, CHAT, ",\"n\":2", &both), *content, *answer;
        struct bridge_fixture bridge = start(fixture, "always");

        assert_memory_equal(plain, first, strlen(first));
        assert_true(asprintf(&content, "\"%s\"", first) > 0);
        answer = ask_predicted(&bridge, CHAT, content, "", first, tokens);
        accepted = number(answer, ACCEPTED);
        free(answer);
        answer = ask_predicted(&bridge, CHAT, content, ",\"n\":2", plain, both);
        assert_true(number(answer, ACCEPTED) > 0 && accepted > 0);
        assert_true(number(answer, ACCEPTED) + number(answer, REJECTED) >= accepted);
        free(answer);
        free(content);
        free(first);
        free(plain);
        bridge_stop_both(&bridge, fixture);
}

static void nothing_to_expect_is_no_prediction(void **state)
{
        static const char *const fields[] = {
                ",\"prediction\":null",
                ",\"prediction\":{\"type\":\"content\",\"content\":\"\"}",
                ",\"prediction\":{\"type\":\"content\",\"content\":[]}",
                ",\"prediction\":{\"type\":\"content\",\"content\":[{\"type\":\"text\",\"text\":"
                "\"\"}]}",
        };
        struct daemon_fixture *fixture = *state;
        unsigned tokens;
        char *plain = plain_text(fixture, CHAT, "", &tokens);
        struct bridge_fixture bridge = start(fixture, "always");

        for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
                char *answer = ask(&bridge, CHAT, 200, fields[i]);
                char *text = texts_of(answer, "content");

                assert_string_equal(text, plain);
                assert_int_equal(number(answer, ACCEPTED), 0);
                assert_int_equal(number(answer, REJECTED), 0);
                free(text);
                free(answer);
        }
        free(plain);
        bridge_stop_both(&bridge, fixture);
}

static void malformed_predictions_are_refused_by_their_field(void **state)
{
        static const struct {
                const char *value, *param, *words;
        } bad[] = {
                { "\"text\"", "prediction", "prediction" },
                { "7", "prediction", "prediction" },
                { "[]", "prediction", "prediction" },
                { "true", "prediction", "prediction" },
                { "{}", "prediction.type", "must be content" },
                { "{\"content\":\"a\"}", "prediction.type", "must be content" },
                { "{\"type\":\"text\",\"content\":\"a\"}", "prediction.type", "must be content" },
                { "{\"type\":7,\"content\":\"a\"}", "prediction.type", "must be content" },
                { "{\"type\":\"content\"}", "prediction.content", "text or a list of parts" },
                { "{\"type\":\"content\",\"content\":null}", "prediction.content",
                  "text or a list of parts" },
                { "{\"type\":\"content\",\"content\":7}", "prediction.content",
                  "text or a list of parts" },
                { "{\"type\":\"content\",\"content\":{\"type\":\"text\",\"text\":\"a\"}}",
                  "prediction.content", "text or a list of parts" },
                { "{\"type\":\"content\",\"content\":[\"a\"]}", "prediction", "of the type text" },
                { "{\"type\":\"content\",\"content\":[{\"type\":\"image_url\"}]}", "prediction",
                  "of the type text" },
                { "{\"type\":\"content\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
                  "{\"type\":\"text\"}]}",
                  "prediction", "of the type text" },
                { "{\"type\":\"content\",\"content\":[{\"type\":\"text\",\"text\":7}]}",
                  "prediction", "of the type text" },
                { "{\"type\":\"content\",\"content\":[null]}", "prediction", "of the type text" },
        };
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge = start(fixture, "always");

        for (size_t i = 0; i < 2 * sizeof(bad) / sizeof(*bad); i++) {
                const char *path = i % 2 ? CHAT : COMPLETIONS;
                char field[200], param[64], *answer;

                snprintf(field, sizeof(field), ",\"prediction\":%s", bad[i / 2].value);
                answer = ask(&bridge, path, 400, field);
                snprintf(param, sizeof(param), "\"param\":\"%s", bad[i / 2].param);
                has(answer, param);
                has(answer, bad[i / 2].words);
                has(answer, "\"type\":\"invalid_request_error\"");
                free(answer);
        }
        bridge_stop_both(&bridge, fixture);
}

static void a_prediction_of_more_than_a_mebibyte_is_refused(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge = start(fixture, "always");
        const int most = 1 << 20;
        char *letters = malloc((size_t)most + 1), *field, *answer;

        assert_non_null(letters);
        memset(letters, 'a', (size_t)most + 1);
        for (int i = 0; i < 2; i++) {
                assert_true(asprintf(&field,
                                     ",\"prediction\":{\"type\":\"content\",\"content\":[{\"type\":"
                                     "\"text\",\"text\":\"%.*s\"},{\"type\":\"text\",\"text\":"
                                     "\"b%s\"}]}",
                                     most - 1, letters, i ? "" : "b") > 0);
                answer = ask(&bridge, CHAT, i ? 200 : 400, field);
                if (!i) {
                        has(answer, "\"param\":\"prediction.content\"");
                        has(answer, "prediction.content has 1048577 bytes; it may have 1048576");
                }
                free(answer);
                free(field);
        }
        free(letters);
        bridge_stop_both(&bridge, fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_right_prediction_is_counted_as_accepted),
                DAEMON_TEST(parts_of_a_prediction_are_joined),
                DAEMON_TEST(a_stream_tells_the_counts_with_its_usage),
                DAEMON_TEST(a_wrong_prediction_is_counted_as_rejected),
                DAEMON_TEST(completions_take_a_prediction),
                DAEMON_TEST(choices_share_a_prediction_and_their_counts_are_added),
                DAEMON_TEST(nothing_to_expect_is_no_prediction),
                DAEMON_TEST(malformed_predictions_are_refused_by_their_field),
                DAEMON_TEST(a_prediction_of_more_than_a_mebibyte_is_refused),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR_HTTP", "SOURCES", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
