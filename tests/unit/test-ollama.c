#include "tests/unit/call-rig.h"

#include <stdio.h>
#include <string.h>

#include "bridge/ollama/record-writer.h"

#define HI "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

/* ---- requests ---- */

static struct fields read_body(struct call_rig *rig, const char *path, const char *body,
                               struct ollama_request *request)
{
        struct fields fields = { 0 };

        call_rig_start(rig, path, body);
        *request = (struct ollama_request){ .chat = !strcmp(path, "/api/chat") };
        fields.json = rig->call->json;
        ollama_read(rig->call, &fields, request);
        assert_false(rig->call->arena.failed);
        return fields;
}

static void reads(struct call_rig *rig, const char *path, const char *body,
                  struct ollama_request *request)
{
        struct fields fields = read_body(rig, path, body, request);

        if (fields.failed)
                fail_msg("%s", fields.failure.message);
}

static void refuses(const char *path, const char *more, enum failure_class class, const char *words)
{
        struct ollama_request request;
        struct fields fields;
        struct call_rig rig;
        char body[512];

        snprintf(body, sizeof(body), "{\"model\":\"m\",%s}", more);
        fields = read_body(&rig, path, body, &request);
        assert_true(fields.failed);
        assert_int_equal(fields.failure.class, class);
        if (!strstr(fields.failure.message, words))
                fail_msg("'%s' is not in '%s'", words, fields.failure.message);
        call_rig_end(&rig);
}

static void reads_a_chat_with_calls_and_results(void **state)
{
        struct ollama_request request;
        struct call_rig rig;
        struct bytes said = { 0 };

        (void)state;
        reads(&rig, "/api/chat",
              "{\"model\":\"m\",\"think\":\"low\",\"messages\":["
              "{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"a\"},"
              "{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"T\",\"tool_calls\":["
              "{\"function\":{\"name\":\"f\",\"arguments\":{\"n\":1}}}]},"
              "{\"role\":\"tool\",\"tool_name\":\"f\",\"content\":\"r\"}]}",
              &request);
        call_rig_unpack(&request.options.packed_messages, &said);
        assert_string_equal(said.at,
                            "[{\"role\":\"system\",\"content\":\"s\"},"
                            "{\"role\":\"user\",\"content\":\"a\"},"
                            "{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":\"T\","
                            "\"tool_calls\":[{\"type\":\"function\",\"function\":{\"name\":\"f\","
                            "\"arguments\":{\"n\":1}}}]},"
                            "{\"role\":\"tool\",\"content\":\"r\",\"name\":\"f\"}]");
        call_rig_unpack(&request.options.packed_vars, &said);
        assert_string_equal(said.at, "{\"enable_thinking\":true,\"thinking\":true,"
                                     "\"reasoning_effort\":\"low\"}");
        assert_true(request.stream);
        bytes_deinit(&said);
        call_rig_end(&rig);
}

static void reads_a_prompt_with_a_system_text(void **state)
{
        struct ollama_request request;
        struct call_rig rig;
        struct bytes said = { 0 };

        (void)state;
        reads(&rig, "/api/generate",
              "{\"model\":\"m\",\"prompt\":\"p\",\"system\":\"s\",\"stream\":false}", &request);
        call_rig_unpack(&request.options.packed_messages, &said);
        assert_string_equal(said.at, "[{\"role\":\"system\",\"content\":\"s\"},"
                                     "{\"role\":\"user\",\"content\":\"p\"}]");
        assert_false(request.stream);
        bytes_deinit(&said);
        call_rig_end(&rig);
}

static void takes_the_defaults_that_programs_send(void **state)
{
        struct ollama_request request;
        struct call_rig rig;

        (void)state;
        reads(&rig, "/api/chat",
              "{\"model\":\"m\",\"format\":\"\",\"keep_alive\":\"5m\"," HI ",\"options\":{"
              "\"temperature\":0.8,\"top_p\":0.9,\"top_k\":40,\"min_p\":0,\"seed\":-1,"
              "\"num_predict\":-1,\"repeat_penalty\":1.1,\"repeat_last_n\":64,\"mirostat\":0,"
              "\"mirostat_tau\":5,\"tfs_z\":1,\"typical_p\":1,\"presence_penalty\":0,"
              "\"frequency_penalty\":0,\"num_ctx\":2048,\"num_keep\":4,\"stop\":[\"x\"]}}",
              &request);
        assert_int_equal(request.options.max_tokens, UINT32_MAX);
        assert_int_equal(request.options.top_k, 40);
        assert_false(request.options.set & SMV_SET_SEED);
        assert_int_equal(request.options.stop_count, 1);
        assert_true(request.options.typical == 0);
        assert_true(request.options.repetition_penalty == 1.1f);
        assert_int_equal(request.options.repeat_window, 64);
        call_rig_end(&rig);
}

static void mirostat_makes_no_other_cut(void **state)
{
        struct ollama_request request;
        const struct smv_generate *o = &request.options;
        struct call_rig rig;

        (void)state;
        reads(&rig, "/api/chat",
              "{\"model\":\"m\"," HI ",\"options\":{\"mirostat\":2,\"mirostat_eta\":0.5,"
              "\"top_k\":40,\"top_p\":0.9,\"min_p\":0.1,\"temperature\":0.5}}",
              &request);
        assert_true(o->mirostat_tau == 5 && o->mirostat_eta == 0.5f && o->temperature == 0.5f);
        assert_true(!o->top_k && o->top_p == 0 && o->min_p == 0);
        assert_int_equal(o->set & (SMV_SET_TOP_K | SMV_SET_TOP_P | SMV_SET_MIN_P), 0);
        call_rig_end(&rig);
        reads(&rig, "/api/chat",
              "{\"model\":\"m\"," HI ",\"options\":{\"mirostat\":0,\"mirostat_tau\":3,"
              "\"top_k\":40}}",
              &request);
        assert_true(o->mirostat_tau == 0 && o->top_k == 40);
        call_rig_end(&rig);
}

static void reads_limits_of_reasoning_by_the_names_of_others(void **state)
{
        static const char *const names[] = { "thinking_token_budget", "reasoning_budget",
                                             "reasoning_budget_tokens", "thinking_budget_tokens" };
        struct ollama_request request;
        const struct smv_generate *o = &request.options;
        struct call_rig rig;
        char body[256];

        (void)state;
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                snprintf(body, sizeof(body),
                         "{\"model\":\"m\"," HI ",\"options\":{\"%s\":%zu,"
                         "\"reasoning_budget_message\":\"So:\"}}",
                         names[i], i);
                reads(&rig, "/api/chat", body, &request);
                assert_true(o->set & SMV_SET_REASONING_MAX);
                assert_int_equal(o->reasoning_max, i);
                assert_string_equal(o->reasoning_end, "So:");
                call_rig_end(&rig);
        }
        reads(&rig, "/api/chat",
              "{\"model\":\"m\"," HI ",\"options\":{\"reasoning_budget\":-1,"
              "\"reasoning_budget_message\":\"So:\"}}",
              &request);
        assert_false(o->set & SMV_SET_REASONING_MAX);
        assert_null(o->reasoning_end);
        call_rig_end(&rig);
        refuses("/api/chat", HI ",\"options\":{\"reasoning_budget_message\":\"a\\u0000b\"}",
                FAILURE_REQUEST, "reasoning_budget_message");
}

static void reads_penalties_by_the_names_of_llama_cpp_and_others(void **state)
{
        struct ollama_request request;
        const struct smv_generate *o = &request.options;
        struct call_rig rig;

        (void)state;
        reads(&rig, "/api/chat",
              "{\"model\":\"m\"," HI ",\"options\":{\"repeat_penalty\":1.2,\"repeat_last_n\":-1,"
              "\"presence_penalty\":-3,\"frequency_penalty\":0.5,\"dry_multiplier\":0.8,"
              "\"dry_base\":2,\"dry_allowed_length\":3,\"dry_penalty_last_n\":100,"
              "\"dry_sequence_breakers\":[],\"no_repeat_ngram_size\":4,\"min_tokens\":5,"
              "\"logit_bias\":{\"7\":-100,\"8\":2.5},\"allowed_token_ids\":[7,8,9],"
              "\"bad_words\":[\"no\",\"never\"]}}",
              &request);
        assert_true(o->repetition_penalty == 1.2f && o->repeat_window == 3072);
        assert_true(o->presence_penalty == -3 && o->frequency_penalty == 0.5f);
        assert_true(o->dry_multiplier == 0.8f && o->dry_base == 2);
        assert_true(o->dry_allowed == 3 && o->dry_window == 100);
        assert_true(o->set & SMV_SET_DRY_BREAKERS && !o->dry_breaker_count);
        assert_true(o->no_repeat_ngram == 4 && o->min_tokens == 5);
        assert_int_equal(o->bias_count, 2);
        assert_true(o->biases[1].token == 8 && o->biases[1].bias == 2.5f);
        assert_int_equal(o->allowed_token_count, 3);
        assert_int_equal(o->banned_text_count, 2);
        assert_string_equal(o->banned_texts[1], "never");
        call_rig_end(&rig);
        reads(&rig, "/api/chat",
              "{\"model\":\"m\"," HI ",\"options\":{\"repeat_penalty\":1.2,\"repeat_last_n\":0,"
              "\"dry_multiplier\":1,\"dry_penalty_last_n\":0}}",
              &request);
        assert_true(o->repetition_penalty == 1 && o->dry_multiplier == 0);
        call_rig_end(&rig);
        refuses("/api/chat", HI ",\"options\":{\"logit_bias\":{\"x\":1}}", FAILURE_REQUEST,
                "logit_bias");
        refuses("/api/chat", HI ",\"options\":{\"bad_words\":[\"\"]}", FAILURE_REQUEST,
                "bad_words");
        refuses("/api/chat", HI ",\"options\":{\"repeat_penalty\":1.2,\"repetition_penalty\":1.3}",
                FAILURE_REQUEST, "repeat_penalty and repetition_penalty");
}

static void reads_the_cuts_by_the_names_of_llama_cpp(void **state)
{
        struct ollama_request request;
        struct call_rig rig;

        (void)state;
        reads(&rig, "/api/chat",
              "{\"model\":\"m\"," HI ",\"options\":{\"top_n_sigma\":1.5,\"typical_p\":0.5,"
              "\"xtc_probability\":0.25,\"xtc_threshold\":0,\"dynatemp_range\":0.5,"
              "\"dynatemp_exponent\":2}}",
              &request);
        assert_true(request.options.n_sigma == 1.5f && request.options.typical == 0.5f);
        assert_true(request.options.xtc_chance == 0.25f && request.options.xtc_least == 0);
        assert_true(request.options.set & SMV_SET_XTC_LEAST);
        assert_true(request.options.temperature_range == 0.5f);
        assert_true(request.options.temperature_exponent == 2);
        call_rig_end(&rig);
        reads(&rig, "/api/chat",
              "{\"model\":\"m\"," HI ",\"options\":{\"top_n_sigma\":-1,\"typical_p\":1}}",
              &request);
        assert_true(request.options.n_sigma == 0 && request.options.typical == 0);
        call_rig_end(&rig);
        refuses("/api/chat", HI ",\"options\":{\"typical_p\":2}", FAILURE_REQUEST, "typical_p");
}

static void constrains_the_answer_by_a_format(void **state)
{
        static const struct {
                const char *format, *description;
        } formats[] = {
                { "\"json\"", "{\"schema\":{\"type\":\"object\"}}" },
                { "{\"b\":1,\"a\":2}", "{\"schema\":{\"b\":1,\"a\":2},\"only_named\":true}" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
                struct ollama_request request;
                struct call_rig rig;
                char body[256];

                snprintf(body, sizeof(body), "{\"model\":\"m\",\"format\":%s," HI "}",
                         formats[i].format);
                reads(&rig, "/api/chat", body, &request);
                assert_string_equal(request.options.constraint, formats[i].description);
                assert_int_equal(request.options.parts, 1);
                call_rig_end(&rig);
        }
}

static void refuses_by_name_what_it_cannot_honour(void **state)
{
        (void)state;
        refuses("/api/chat", HI ",\"options\":{\"repeat_penalty\":0}", FAILURE_REQUEST,
                "repeat_penalty is 0");
        refuses("/api/chat", HI ",\"options\":{\"repeat_last_n\":4000,\"repeat_penalty\":1.3}",
                FAILURE_REQUEST, "repeat_last_n is 4000");
        refuses("/api/chat", HI ",\"options\":{\"mirostat\":1}", FAILURE_UNSUPPORTED,
                "mirostat is 1; the daemon has version 2 only");
        refuses("/api/chat", HI ",\"format\":\"xml\"", FAILURE_REQUEST, "format must be");
        refuses("/api/chat", HI ",\"format\":7", FAILURE_REQUEST, "format must be");
        refuses("/api/chat",
                "\"messages\":[{\"role\":\"user\",\"content\":\"a\",\"images\":[\"A\"]}]",
                FAILURE_UNSUPPORTED, "images");
        refuses("/api/chat", HI ",\"keep_alive\":\"soon\"", FAILURE_REQUEST, "keep_alive");
        refuses("/api/chat", HI ",\"think\":7", FAILURE_REQUEST, "think");
        refuses("/api/chat", "\"messages\":[{\"role\":\"x\",\"content\":\"a\"}]", FAILURE_REQUEST,
                "messages[0].role");
        refuses("/api/generate", "\"prompt\":\"a\",\"suffix\":\"b\"", FAILURE_UNSUPPORTED,
                "suffix");
        refuses("/api/generate", "\"prompt\":\"a\",\"template\":\"b\"", FAILURE_UNSUPPORTED,
                "template");
        refuses("/api/generate", "\"prompt\":\"a\",\"context\":[1]", FAILURE_UNSUPPORTED,
                "context");
}

static void empty_requests_load_or_unload(void **state)
{
        static const struct {
                const char *keep_alive;
                bool unload;
        } cases[] = { { "5", false },       { "0", true },          { "-1", false },
                      { "\"0\"", true },    { "\"0s\"", true },     { "\"-1m\"", false },
                      { "\"5m\"", false },  { "\"1h30m\"", false }, { "\"1.5h\"", false },
                      { "\"0h0m\"", true }, { "null", false } };
        struct ollama_request request;
        struct call_rig rig;
        char body[128];

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                snprintf(body, sizeof(body), "{\"model\":\"m\",\"keep_alive\":%s}",
                         cases[i].keep_alive);
                reads(&rig, i % 2 ? "/api/chat" : "/api/generate", body, &request);
                assert_true(request.empty);
                if (request.unload != cases[i].unload)
                        fail_msg("keep_alive %s", cases[i].keep_alive);
                call_rig_end(&rig);
        }
}

/* ---- answers ---- */

struct answer {
        struct call_rig rig;
        struct ollama_answer own;
};

static void clean(struct call *call)
{
        struct ollama_answer *own = call->own;

        own->run = run_deinit(own->run);
}

static struct run *begin(struct answer *answer, const char *path, bool stream)
{
        struct ollama_request *request = &answer->own.request;

        reads(&answer->rig, path, "{\"model\":\"m\",\"prompt\":\"hi\"," HI "}", request);
        answer->rig.call->own = &answer->own;
        answer->rig.call->clean = clean;
        answer->own.run = run_new(answer->rig.call, &request->options,
                                  stream ? &ollama_streamed : &ollama_whole, &answer->own);
        assert_non_null(answer->own.run);
        call_rig_accept(answer->own.run, 30);
        return answer->own.run;
}

static const struct smv_event eos = { SMV_SIZE(smv_event), .reason = SMV_END_EOS,
                                      .output_tokens = 7, .queued_ns = 1, .prefill_ns = 2 };

static void note(char seen[512], const char *mark, const char *text)
{
        size_t at = strlen(seen);

        snprintf(seen + at, 512 - at, "%s%s", mark, text);
}

/* Is it "2026-11-27T10:00:00.123456789Z"? */
static bool is_time(const char *text)
{
        static const char form[] = "dddd-dd-ddTdd:dd:dd.dddddddddZ";

        for (size_t i = 0; i < sizeof(form); i++)
                if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
                        return false;
        return true;
}

/* Writes down in a few letters what a record shows.  True: it is the last one. */
static bool take_record(const struct json_document *json, bool chat, char seen[512])
{
        uint32_t message = chat ? json_at(json, "message") : 0;
        uint32_t calls = json_member(json, message, "tool_calls");
        const char *thinking = json_string(json, json_member(json, message, "thinking"), NULL);
        bool done = false;

        assert_string_equal(json_text_at(json, "model"), "m");
        assert_true(is_time(json_text_at(json, "created_at")));
        if (chat)
                assert_string_equal(json_text_at(json, "message.role"), "assistant");
        note(seen, "|", json_text_at(json, chat ? "message.content" : "response"));
        if (thinking)
                note(seen, "~", thinking);
        for (uint32_t call = json_first(json, calls); call != JSON_NONE;
             call = json_next(json, call)) {
                uint32_t function = json_member(json, call, "function");
                uint32_t arguments = json_member(json, function, "arguments");

                note(seen, "<", json_string(json, json_member(json, function, "name"), NULL));
                assert_int_equal(json_kind(json, arguments), JSON_OBJECT);
                note(seen, json_count(json, arguments) ? "+" : "-", ">");
        }
        assert_true(json_bool(json, json_at(json, "done"), &done));
        if (done)
                note(seen, " ", json_text_at(json, "done_reason"));
        else
                assert_int_equal(json_member(json, 0, "done_reason"), JSON_NONE);
        return done;
}

/* Reads the lines; none is blank, and the last one is done. */
static void follow(const struct call_rig *rig, bool chat, char seen[512])
{
        struct json_document *json = NULL;
        bool done = false;
        char why[128];

        *seen = '\0';
        assert_string_equal(rig->type, "application/x-ndjson");
        for (const char *at = rig->said.at; *at;) {
                const char *end = strchr(at, '\n');

                assert_false(done);
                assert_non_null(end);
                assert_int_not_equal(end - at, 0);
                assert_int_equal(json_parse(at, (size_t)(end - at), 4096, &json, why, sizeof(why)),
                                 0);
                done = take_record(json, chat, seen);
                json = json_free(json);
                at = end + 1;
        }
        assert_true(done);
        assert_true(rig->finished);
}

static void say_all(struct run *run)
{
        call_rig_think(run, "Hm");
        call_rig_text(run, "Yes");
        call_rig_text(run, ".");
        call_rig_call(run, "f");
        call_rig_arguments(run, "{\"a\":");
        call_rig_arguments(run, "1}");
        call_rig_call_end(run);
        call_rig_call(run, "g");
        call_rig_call_end(run);
        call_rig_finish(run, &eos);
}

static void streams_records_with_whole_calls(void **state)
{
        struct answer answer;
        char seen[512];

        (void)state;
        say_all(begin(&answer, "/api/chat", true));
        follow(&answer.rig, true, seen);
        assert_string_equal(seen, "|~Hm|Yes|.|<f+>|<g->| stop");
        call_rig_end(&answer.rig);
        say_all(begin(&answer, "/api/generate", true));
        follow(&answer.rig, false, seen);
        assert_string_equal(seen, "|~Hm|Yes|.| stop");
        call_rig_end(&answer.rig);
}

static void writes_the_same_as_one_record(void **state)
{
        struct answer answer;
        struct json_document *json;
        char seen[512] = "";

        (void)state;
        say_all(begin(&answer, "/api/chat", false));
        json = call_rig_json(&answer.rig);
        assert_true(take_record(json, true, seen));
        assert_string_equal(seen, "|Yes.~Hm<f+><g-> stop");
        assert_int_equal(json_uint_at(json, "prompt_eval_count"), 30);
        assert_int_equal(json_uint_at(json, "prompt_eval_duration"), 2);
        assert_int_equal(json_uint_at(json, "eval_count"), 7);
        assert_int_equal(json_uint_at(json, "eval_duration"), 1);
        assert_int_equal(json_uint_at(json, "load_duration"), 1);
        json_free(json);
        call_rig_end(&answer.rig);
}

static void a_call_that_is_cut_becomes_text(void **state)
{
        struct answer answer;
        struct json_document *json;
        struct run *run;
        char seen[512];

        (void)state;
        for (int way = 0; way < 4; way++) {
                int stream = way % 2;

                *seen = '\0';
                run = begin(&answer, "/api/chat", stream);
                call_rig_call(run, "f");
                call_rig_arguments(run, "{\"a\":");
                if (way > 1)
                        call_rig_call_cut(run);
                call_rig_finish(run, &eos);
                if (stream) {
                        follow(&answer.rig, true, seen);
                } else {
                        json = call_rig_json(&answer.rig);
                        take_record(json, true, seen);
                        json_free(json);
                }
                if (way < 2)
                        assert_string_equal(seen, "| length");
                else
                        assert_string_equal(
                                seen, stream ? "|{\"name\": \"f\", \"arguments\": {\"a\":| length"
                                             : "|{\"name\": \"f\", \"arguments\": {\"a\": length");
                call_rig_end(&answer.rig);
        }
}

static void silence_is_broken_by_a_record_without_content(void **state)
{
        struct answer answer;
        char seen[512];

        (void)state;
        begin(&answer, "/api/chat", true);
        call_ping(answer.rig.call, answer.rig.call->written_ns + UINT64_C(10000000));
        call_rig_finish(answer.own.run, &eos);
        follow(&answer.rig, true, seen);
        assert_string_equal(seen, "|| stop");
        call_rig_end(&answer.rig);
}

static void an_error_in_the_stream_is_a_line(void **state)
{
        struct answer answer;
        struct smv_event end = eos;

        (void)state;
        end.reason = SMV_END_ERROR;
        end.code = SMV_NUMERIC;
        begin(&answer, "/api/chat", true);
        call_rig_finish(answer.own.run, &end);
        assert_int_equal(strncmp(answer.rig.said.at, "{\"error\":\"", 10), 0);
        assert_true(answer.rig.finished);
        call_rig_end(&answer.rig);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_a_chat_with_calls_and_results),
                cmocka_unit_test(reads_a_prompt_with_a_system_text),
                cmocka_unit_test(takes_the_defaults_that_programs_send),
                cmocka_unit_test(reads_the_cuts_by_the_names_of_llama_cpp),
                cmocka_unit_test(mirostat_makes_no_other_cut),
                cmocka_unit_test(reads_limits_of_reasoning_by_the_names_of_others),
                cmocka_unit_test(reads_penalties_by_the_names_of_llama_cpp_and_others),
                cmocka_unit_test(constrains_the_answer_by_a_format),
                cmocka_unit_test(refuses_by_name_what_it_cannot_honour),
                cmocka_unit_test(empty_requests_load_or_unload),
                cmocka_unit_test(streams_records_with_whole_calls),
                cmocka_unit_test(writes_the_same_as_one_record),
                cmocka_unit_test(a_call_that_is_cut_becomes_text),
                cmocka_unit_test(silence_is_broken_by_a_record_without_content),
                cmocka_unit_test(an_error_in_the_stream_is_a_line),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
