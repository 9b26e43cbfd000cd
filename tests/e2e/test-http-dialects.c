/*
 * The dialects of Anthropic and Ollama, from HTTP to a daemon and back.  What their answers look
 * like is shown by tests/unit; here is what only a daemon decides.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/bridge-fixture.h"
#include "tests/e2e/chat-model.h"

#define HI "\"model\":\"chat\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

static struct bridge_fixture start(struct daemon_fixture *fixture, const char *chat_template)
{
        start_chat_model(fixture, chat_template);
        return bridge_beside(fixture);
}

static char *post(const struct bridge_fixture *bridge, const char *path, const char *body,
                  unsigned status)
{
        char what[64];

        snprintf(what, sizeof(what), "POST %s", path);
        return http_ask(bridge, what, "", body, status);
}

static void has(const char *answer, const char *words)
{
        if (!answer || !strstr(answer, words))
                fail_msg("'%s' is not in: %s", words, answer ? answer : "nothing");
}

/* The number behind these words. */
static unsigned number(const char *answer, const char *words)
{
        has(answer, words);
        return (unsigned)strtoul(strstr(answer, words) + strlen(words), NULL, 10);
}

/* ---- Anthropic ---- */

static void counts_as_many_tokens_as_a_message_has(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge = start(fixture, CHATML);
        char *counted = post(&bridge, "/v1/messages/count_tokens", "{" HI "}", 200);
        char *said = post(&bridge, "/v1/messages?beta=true", "{" HI ",\"max_tokens\":3}", 200);

        assert_int_equal(number(counted, "\"input_tokens\":"),
                         number(said, "\"input_tokens\":") +
                                 number(said, "\"cache_read_input_tokens\":"));
        has(said, "\"stop_reason\":\"max_tokens\"");
        free(counted);
        free(said);
        bridge_stop_both(&bridge, fixture);
}

static void tells_both_numbers_of_a_prompt_that_is_too_long(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge = start(fixture, CHATML);
        static char body[300000];
        char *said;
        size_t at = (size_t)sprintf(body, "{\"model\":\"chat\",\"max_tokens\":9,\"messages\":"
                                          "[{\"role\":\"user\",\"content\":\"");
        unsigned tokens;

        memset(body + at, 'a', 200000);
        strcpy(body + at + 200000, "\"}]}");
        said = post(&bridge, "/v1/messages", body, 400);
        tokens = number(said, "\"message\":\"prompt is too long: ");
        assert_true(tokens > 200000);
        assert_true(number(said, " tokens > ") < tokens);
        has(said, " maximum\"");
        free(said);
        bridge_stop_both(&bridge, fixture);
}

static void tells_which_stop_sequence_was_met(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge = start(fixture, CHATML);
        /* Among so many letters the model meets one soon. */
        char *said = post(&bridge, "/v1/messages",
                          "{" HI ",\"max_tokens\":100000,\"temperature\":1,\"seed\":1,"
                          "\"stop_sequences\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\"]}",
                          200);

        has(said, "\"stop_reason\":\"stop_sequence\",\"stop_sequence\":\"");
        free(said);
        bridge_stop_both(&bridge, fixture);
}

/* A model that cannot think takes a budget, too: programs send one to every model. */
static void thinking_ends_at_its_budget(void **state)
{
        static const char budget[] = "{" HI ",\"max_tokens\":30,\"thinking\":{\"type\":"
                                     "\"enabled\",\"budget_tokens\":0}}";
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge = start(fixture, CHATML "{{ '<think>' }}");
        char *said = post(&bridge, "/v1/messages", budget, 200);

        /* The end of the thinking has 8 tokens. */
        assert_int_equal(number(said, "\"thinking_tokens\":"), 8);
        free(said);
        said = post(&bridge, "/v1/chat/completions",
                    "{" HI ",\"max_tokens\":30,\"thinking_token_budget\":0,"
                    "\"reasoning_budget_message\":\"Now!\"}",
                    200);
        has(said, "\"reasoning_content\":\"Now!\"");
        has(said, "\"reasoning_tokens\":12");
        free(said);
        bridge_stop_both(&bridge, fixture);
        bridge = start(fixture, CHATML);
        free(post(&bridge, "/v1/messages", budget, 200));
        said = post(&bridge, "/v1/chat/completions",
                    "{" HI ",\"max_tokens\":30,\"reasoning_budget\":0}", 400);
        has(said, "the model has no reasoning that could be limited");
        free(said);
        bridge_stop_both(&bridge, fixture);
}

/* ---- Ollama ---- */

static void shows_its_models(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge = start(fixture, CHATML);
        char *said = http_ask(&bridge, "GET /api/tags", "", NULL, 200);

        has(said, ":latest\"");
        has(said, "\"parameter_size\":\"");
        free(said);
        said = http_ask(&bridge, "GET /api/ps", "", NULL, 200);
        has(said, "\"expires_at\":\"2318-");
        has(said, "\"size_vram\":0");
        free(said);
        said = post(&bridge, "/api/show", "{\"name\":\"chat:latest\"}", 200);
        has(said, "\"general.architecture\":\"llama\"");
        has(said, ".context_length\":");
        has(said, "\"capabilities\":[\"completion\"]");
        free(said);
        said = http_ask(&bridge, "GET /", "", NULL, 200);
        has(said, "\r\n\r\nOllama is running");
        free(said);
        said = post(&bridge, "/api/pull", "{\"model\":\"chat\"}", 200);
        has(said, "{\"status\":\"success\"}");
        free(said);
        bridge_stop_both(&bridge, fixture);
}

/* The template has the marks of calls and of reasoning; without calls, there are no tools. */
static void tells_what_the_daemon_can_read_of_the_model(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge =
                start(fixture, "{# <think> #}{% for m in messages %}{{ m.content }}"
                               "{% for c in m.tool_calls or [] %}<tool_call>\n"
                               "{\"name\": \"{{ c.function.name }}\", \"arguments\": "
                               "{{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}"
                               "{% endfor %}{% for t in tools or [] %}{{ t.function.name }}"
                               "{% endfor %}");
        char *said = post(&bridge, "/api/show", "{\"model\":\"chat\"}", 200);

        has(said, "\"capabilities\":[\"completion\",\"tools\",\"thinking\"]");
        has(said, "\"template\":\"{{ .Prompt }}tools_example\"");
        has(said, "\"format\":\"gguf\"");
        free(said);
        bridge_stop_both(&bridge, fixture);
        bridge = start(fixture, "{# <think> #}{% for m in messages %}{{ m.content }}{% endfor %}"
                                "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}");
        said = post(&bridge, "/api/show", "{\"model\":\"chat\"}", 200);
        has(said, "\"capabilities\":[\"completion\",\"thinking\"]");
        has(said, "\"template\":\"{{ .Prompt }}\"");
        free(said);
        bridge_stop_both(&bridge, fixture);
}

static void loads_and_unloads_without_a_prompt(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge = start(fixture, CHATML);
        char *said = post(&bridge, "/api/generate", "{\"model\":\"chat\"}", 200);

        has(said, "\"done\":true,\"done_reason\":\"load\"");
        free(said);
        said = post(&bridge, "/api/chat", "{\"model\":\"chat\",\"keep_alive\":0}", 200);
        has(said, "\"done\":true,\"done_reason\":\"unload\"");
        free(said);
        bridge_stop_both(&bridge, fixture);
}

static void answers_a_prompt_raw_and_by_the_template(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge = start(fixture, CHATML);
        char *raw = post(&bridge, "/api/generate",
                         "{\"model\":\"chat\",\"prompt\":\"hi\",\"raw\":true,\"stream\":false,"
                         "\"options\":{\"num_predict\":2}}",
                         200);
        char *said = post(&bridge, "/api/generate",
                          "{\"model\":\"chat\",\"prompt\":\"hi\",\"stream\":false,"
                          "\"options\":{\"num_predict\":2}}",
                          200);

        /* The model puts a token before each text. */
        assert_int_equal(number(raw, "\"prompt_eval_count\":"), 3);
        assert_true(number(said, "\"prompt_eval_count\":") > 20);
        free(raw);
        free(said);
        bridge_stop_both(&bridge, fixture);
}

static bool is_idle(const struct daemon_fixture *fixture)
{
        struct run_result ran = RUN(fixture, NULL, env_path("SAMOVAR"), "status", "--json",
                                    "--socket", fixture->socket);
        bool idle;

        assert_int_equal(ran.status, 0);
        idle = strstr(ran.out, "\"requests\":{\"open\":0,") != NULL;
        run_result_free(&ran);
        return idle;
}

static void a_client_that_leaves_ends_its_stream(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        char *said;
        int fd;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        START_BRIDGE(&bridge, fixture, NULL);
        bridge_await_daemon(&bridge);
        fd = bridge_connect(bridge.port);
        http_send(fd, "POST /api/generate", "",
                  "{\"model\":\"quick\",\"prompt\":\"hi\",\"options\":{\"ignore_eos\":true}}");
        said = http_await(fd, "\"done\":false");
        assert_non_null(said);
        free(said);
        assert_false(is_idle(fixture));
        close(fd);
        for (int left = TIMEOUT_MS / 50; !is_idle(fixture); left--) {
                assert_true(left > 0);
                usleep(50000);
        }
        bridge_stop_both(&bridge, fixture);
}

static void a_model_without_a_template_takes_prompts_as_they_are(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge = start(fixture, NULL);
        char *said = post(&bridge, "/api/generate",
                          "{\"model\":\"chat\",\"prompt\":\"hi\",\"stream\":false,"
                          "\"options\":{\"num_predict\":2}}",
                          200);

        assert_int_equal(number(said, "\"prompt_eval_count\":"), 3);
        free(said);
        free(post(&bridge, "/api/chat", "{" HI "}", 400));
        bridge_stop_both(&bridge, fixture);
}

static void refuses_in_the_words_of_each_dialect(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge = start(fixture, CHATML);
        char *said = post(
                &bridge, "/api/chat",
                "{\"model\":\"other\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}", 404);

        has(said, "{\"error\":\"model 'other' not found\"}");
        free(said);
        said = post(&bridge, "/v1/messages",
                    "{\"model\":\"other\",\"max_tokens\":1,\"messages\":"
                    "[{\"role\":\"user\",\"content\":\"a\"}]}",
                    404);
        has(said, "{\"type\":\"error\",\"error\":{\"type\":\"not_found_error\"");
        free(said);
        free(post(&bridge, "/api/embed", "{\"model\":\"chat\",\"input\":\"a\"}", 400));
        free(post(&bridge, "/api/create", "{\"model\":\"a\",\"from\":\"chat\"}", 400));
        free(http_ask(&bridge, "DELETE /api/delete", "", "{\"model\":\"chat\"}", 400));
        bridge_stop_both(&bridge, fixture);
}

/* ---- constrained answers ---- */

static void every_route_constrains_its_answer(void **state)
{
#define FORMAT "{\"type\":\"json_schema\",\"schema\":{\"enum\":[7]}}"
        static const struct {
                const char *path, *body, *answer;
        } cases[] = {
                { "/v1/chat/completions", "{" HI ",\"response_format\":" FORMAT "}",
                  "\"content\":\"7\"" },
                { "/v1/chat/completions", "{" HI ",\"n\":2,\"guided_choice\":[\"yes\"]}",
                  "\"content\":\"yes\"" },
                { "/v1/completions",
                  "{\"prompt\":\"a\",\"structured_outputs\":{\"regex\":\"x{3}\"}}",
                  "\"text\":\"xxx\"" },
                { "/v1/responses", "{\"input\":\"a\",\"text\":{\"format\":" FORMAT "}}",
                  "\"text\":\"7\"" },
                { "/v1/messages",
                  "{" HI ",\"max_tokens\":9,\"output_config\":{\"format\":" FORMAT "}}",
                  "\"text\":\"7\"" },
                { "/api/chat", "{" HI ",\"stream\":false,\"format\":{\"enum\":[7]}}",
                  "\"content\":\"7\"" },
                { "/api/generate",
                  "{\"model\":\"chat\",\"prompt\":\"a\",\"stream\":false,\"format\":{\"enum\":[7]}"
                  "}",
                  "\"response\":\"7\"" },
        };
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge = start(fixture, CHATML);

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                char *said = post(&bridge, cases[i].path, cases[i].body, 200);

                has(said, cases[i].answer);
                free(said);
        }
        bridge_stop_both(&bridge, fixture);
}

static void a_constraint_that_is_refused_has_the_name_of_its_field(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge = start(fixture, CHATML);
        char *said = post(&bridge, "/v1/chat/completions",
                          "{" HI ",\"stream\":true,\"guided_json\":{\"frob\":1}}", 400);

        has(said, "\"message\":\"guided_json: ");
        has(said, "/frob");
        has(said, "\"param\":\"guided_json\"");
        free(said);
        said = post(&bridge, "/api/chat", "{" HI ",\"format\":{\"frob\":1}}", 400);
        has(said, "{\"error\":\"format: ");
        free(said);
        bridge_stop_both(&bridge, fixture);
}

/* The next turn has no constraint, so its prompt may think, and is rendered again. */
static void a_response_may_follow_a_constrained_one(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge = start(fixture, CHATML);
        char *first = post(&bridge, "/v1/responses",
                           "{\"input\":\"a\",\"text\":{\"format\":" FORMAT "}}", 200);
        char id[64] = "", body[256], *said;

        has(first, "\"id\":\"");
        assert_int_equal(sscanf(strstr(first, "\"id\":\"") + 6, "%63[^\"]", id), 1);
        snprintf(body, sizeof(body),
                 "{\"input\":\"b\",\"previous_response_id\":\"%s\",\"max_output_tokens\":2}", id);
        said = post(&bridge, "/v1/responses", body, 200);
        free(first);
        free(said);
        bridge_stop_both(&bridge, fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(counts_as_many_tokens_as_a_message_has),
                DAEMON_TEST(tells_both_numbers_of_a_prompt_that_is_too_long),
                DAEMON_TEST(tells_which_stop_sequence_was_met),
                DAEMON_TEST(thinking_ends_at_its_budget),
                DAEMON_TEST(shows_its_models),
                DAEMON_TEST(tells_what_the_daemon_can_read_of_the_model),
                DAEMON_TEST(loads_and_unloads_without_a_prompt),
                DAEMON_TEST(answers_a_prompt_raw_and_by_the_template),
                DAEMON_TEST(a_client_that_leaves_ends_its_stream),
                DAEMON_TEST(a_model_without_a_template_takes_prompts_as_they_are),
                DAEMON_TEST(refuses_in_the_words_of_each_dialect),
                DAEMON_TEST(every_route_constrains_its_answer),
                DAEMON_TEST(a_constraint_that_is_refused_has_the_name_of_its_field),
                DAEMON_TEST(a_response_may_follow_a_constrained_one),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
