#include "tests/unit/call-rig.h"

#include <stdio.h>
#include <string.h>

#include "bridge/anthropic/message-writer.h"

#define MESSAGES "/v1/messages"

/* ---- requests ---- */

/* Reads a body; the reading must not fail. */
static void read_body(struct call_rig *rig, const char *body, struct anthropic_request *request)
{
        struct fields fields = { 0 };

        call_rig_start(rig, MESSAGES, body);
        *request = (struct anthropic_request){ 0 };
        fields.json = rig->call->json;
        anthropic_read_prompt(rig->call, &fields, request);
        anthropic_read_options(rig->call, &fields, request);
        if (fields.failed)
                fail_msg("%s", fields.failure.message);
        assert_false(rig->call->arena.failed);
}

#define BODY(more) "{\"model\":\"m\",\"max_tokens\":9," more "}"

static void reads_messages(const char *more, const char *wanted)
{
        struct anthropic_request request;
        struct call_rig rig;
        struct bytes said = { 0 };
        char body[2048];

        snprintf(body, sizeof(body), "{\"model\":\"m\",\"max_tokens\":9,%s}", more);
        read_body(&rig, body, &request);
        call_rig_unpack(&request.options.packed_messages, &said);
        assert_string_equal(said.at, wanted);
        bytes_deinit(&said);
        call_rig_end(&rig);
}

static void refuses(const char *more, enum failure_class class, const char *words)
{
        struct fields fields = { 0 };
        struct anthropic_request request = { 0 };
        struct call_rig rig;
        char body[1024];

        snprintf(body, sizeof(body), "{%s}", more);
        call_rig_start(&rig, MESSAGES, body);
        fields.json = rig.call->json;
        anthropic_read_prompt(rig.call, &fields, &request);
        anthropic_read_options(rig.call, &fields, &request);
        assert_true(fields.failed);
        assert_int_equal(fields.failure.class, class);
        if (!strstr(fields.failure.message, words))
                fail_msg("'%s' is not in '%s'", words, fields.failure.message);
        call_rig_end(&rig);
}

static void joins_system_blocks_and_drops_those_for_anthropic(void **state)
{
        (void)state;
        reads_messages("\"system\":[{\"type\":\"text\",\"text\":\"x-anthropic-billing-header: 1\"},"
                       "{\"type\":\"text\",\"text\":\"A\",\"cache_control\":{}},"
                       "{\"type\":\"text\",\"text\":\"B\"}],"
                       "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]",
                       "[{\"role\":\"system\",\"content\":\"A\\n\\nB\"},"
                       "{\"role\":\"user\",\"content\":\"hi\"}]");
        reads_messages("\"system\":\"x-anthropic-a: b\","
                       "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]",
                       "[{\"role\":\"user\",\"content\":\"hi\"}]");
}

static void puts_a_system_message_in_the_middle_into_a_user_turn(void **state)
{
        (void)state;
        reads_messages("\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
                       "{\"role\":\"system\",\"content\":\"S\"}]",
                       "[{\"role\":\"user\",\"content\":\"a\\n\\nS\"}]");
        reads_messages("\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
                       "{\"role\":\"assistant\",\"content\":\"b\"},"
                       "{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"S\"}]},"
                       "{\"role\":\"user\",\"content\":\"c\"}]",
                       "[{\"role\":\"user\",\"content\":\"a\"},"
                       "{\"role\":\"assistant\",\"content\":\"b\"},"
                       "{\"role\":\"user\",\"content\":\"S\\n\\nc\"}]");
}

static void joins_neighbouring_turns_of_a_role(void **state)
{
        (void)state;
        reads_messages("\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
                       "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"b\"},"
                       "{\"type\":\"text\",\"text\":\"c\"}]}]",
                       "[{\"role\":\"user\",\"content\":\"a\\nb\\nc\"}]");
}

static void reads_thoughts_calls_and_results(void **state)
{
        (void)state;
        reads_messages("\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
                       "{\"role\":\"assistant\",\"content\":["
                       "{\"type\":\"thinking\",\"thinking\":\"T\",\"signature\":\"any\"},"
                       "{\"type\":\"redacted_thinking\",\"data\":\"x\"},"
                       "{\"type\":\"text\",\"text\":\"b\"},"
                       "{\"type\":\"tool_use\",\"id\":\"i\",\"name\":\"f\",\"input\":{\"n\":1}}]},"
                       "{\"role\":\"user\",\"content\":["
                       "{\"type\":\"tool_result\",\"tool_use_id\":\"i\",\"is_error\":true,"
                       "\"content\":[{\"type\":\"text\",\"text\":\"r\"}]},"
                       "{\"type\":\"text\",\"text\":\"c\"}]}]",
                       "[{\"role\":\"user\",\"content\":\"a\"},"
                       "{\"role\":\"assistant\",\"content\":\"b\",\"reasoning_content\":\"T\","
                       "\"tool_calls\":[{\"id\":\"i\",\"type\":\"function\",\"function\":"
                       "{\"name\":\"f\",\"arguments\":{\"n\":1}}}]},"
                       "{\"role\":\"tool\",\"content\":\"Error:\\nr\",\"tool_call_id\":\"i\"},"
                       "{\"role\":\"user\",\"content\":\"c\"}]");
}

#define HI "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

static void reads_tools_and_whether_to_think(void **state)
{
        struct anthropic_request request;
        struct call_rig rig;
        struct bytes said = { 0 };

        (void)state;
        read_body(&rig,
                  BODY(HI ",\"thinking\":{\"type\":\"disabled\"},\"tool_choice\":"
                          "{\"type\":\"auto\",\"disable_parallel_tool_use\":true},"
                          "\"tools\":[{\"name\":\"f\",\"description\":\"d\",\"strict\":true,"
                          "\"input_schema\":{\"type\":\"object\"},\"defer_loading\":true}]"),
                  &request);
        call_rig_unpack(&request.options.packed_tools, &said);
        assert_string_equal(
                said.at,
                "[{\"type\":\"function\",\"function\":{\"name\":\"f\","
                "\"description\":\"d\",\"strict\":true,\"parameters\":{\"type\":\"object\"}}}]");
        call_rig_unpack(&request.options.packed_vars, &said);
        assert_string_equal(said.at, "{\"enable_thinking\":false,\"thinking\":false}");
        assert_true(request.one_call);
        assert_int_equal(request.options.calls_max, 1);
        assert_int_equal(request.options.tool_choice, SMV_TOOLS_AUTO);
        bytes_deinit(&said);
        call_rig_end(&rig);
        read_body(&rig, BODY(HI ",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024}"),
                  &request);
        assert_true(request.has_budget && request.budget == 1024);
        assert_false(request.options.set & SMV_SET_REASONING_MAX);
        call_rig_end(&rig);
}

#define TOOLS ",\"tools\":[{\"name\":\"f\"},{\"name\":\"g\"}]"

static void asks_for_calls_of_any_tool_or_of_one(void **state)
{
        struct anthropic_request request;
        struct call_rig rig;

        (void)state;
        read_body(&rig, BODY(HI TOOLS ",\"tool_choice\":{\"type\":\"any\"}"), &request);
        assert_int_equal(request.options.tool_choice, SMV_TOOLS_REQUIRED);
        assert_int_equal(request.options.allowed_tool_count, 0);
        assert_int_equal(request.options.calls_max, 0);
        call_rig_end(&rig);

        read_body(&rig, BODY(HI TOOLS ",\"tool_choice\":{\"type\":\"tool\",\"name\":\"g\"}"),
                  &request);
        assert_int_equal(request.options.tool_choice, SMV_TOOLS_REQUIRED);
        assert_int_equal(request.options.allowed_tool_count, 1);
        assert_string_equal(request.options.allowed_tools[0], "g");
        call_rig_end(&rig);
}

static void tells_the_model_of_no_tool_if_none_may_be_called(void **state)
{
        struct anthropic_request request;
        struct call_rig rig;

        (void)state;
        read_body(&rig,
                  BODY(HI ",\"tool_choice\":{\"type\":\"none\"},\"tools\":[{\"name\":\"f\"}]"),
                  &request);
        assert_null(request.options.packed_tools.bytes);
        call_rig_end(&rig);
}

static void takes_any_length_and_lets_the_daemon_lower_it(void **state)
{
        struct anthropic_request request;
        struct call_rig rig;

        (void)state;
        read_body(&rig, "{\"model\":\"m\",\"max_tokens\":100000000000," HI "}", &request);
        assert_int_equal(request.options.max_tokens, UINT32_MAX);
        assert_int_equal(request.options.clamp, 1);
        call_rig_end(&rig);
}

static void constrains_the_answer_by_a_schema(void **state)
{
#define FORMAT "{\"type\":\"json_schema\",\"schema\":{\"b\":1,\"a\":2}}"
        static const struct {
                const char *body, *field;
        } formats[] = {
                { BODY(HI ",\"output_config\":{\"effort\":\"low\",\"format\":" FORMAT "}"),
                  "output_config.format" },
                { BODY(HI ",\"output_format\":" FORMAT), "output_format" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
                struct anthropic_request request;
                struct call_rig rig;

                read_body(&rig, formats[i].body, &request);
                assert_string_equal(request.options.constraint,
                                    "{\"schema\":{\"b\":1,\"a\":2},\"only_named\":true}");
                assert_string_equal(rig.call->constrained_by, formats[i].field);
                assert_int_equal(request.options.parts, 1);
                call_rig_end(&rig);
        }
}

static void refuses_by_name_what_it_cannot_honour(void **state)
{
#define START      "\"model\":\"m\",\"max_tokens\":9,"
#define ONE(block) START "\"messages\":[{\"role\":\"user\",\"content\":[" block "]}]"
        (void)state;
        refuses(START HI ",\"tool_choice\":{\"type\":\"any\"}", FAILURE_REQUEST,
                "there are no tools");
        refuses(START HI TOOLS ",\"tool_choice\":{\"type\":\"tool\",\"name\":\"h\"}",
                FAILURE_REQUEST, "names the tool \"h\"");
        refuses(START HI TOOLS ",\"tool_choice\":{\"type\":\"some\"}", FAILURE_REQUEST,
                "auto, any, tool or none");
        refuses(START HI ",\"output_config\":{\"format\":{\"type\":\"json_schema\"}}",
                FAILURE_REQUEST, "output_config.format has no schema");
        refuses(START HI ",\"output_format\":{\"type\":\"xml\"}", FAILURE_UNSUPPORTED,
                "output_format has the type \"xml\"");
        refuses(START HI TOOLS ",\"output_format\":{\"type\":\"json_object\"},"
                               "\"tool_choice\":{\"type\":\"any\"}",
                FAILURE_REQUEST, "output_format does not go with a tool_choice");
        refuses(START HI ",\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"w\"}]",
                FAILURE_UNSUPPORTED, "web_search_20250305");
        refuses(ONE("{\"type\":\"image\",\"source\":{}}"), FAILURE_UNSUPPORTED, "\"image\"");
        refuses(START HI ",\"temperature\":1.5", FAILURE_REQUEST, "temperature is 1.5");
        refuses(START HI ",\"thinking\":{\"type\":\"much\"}", FAILURE_REQUEST, "thinking.type");
        refuses(START HI ",\"stop_sequences\":[7]", FAILURE_REQUEST, "stop_sequences");
        refuses("\"model\":\"m\"," HI, FAILURE_REQUEST, "max_tokens is missing");
        refuses("\"max_tokens\":9," HI, FAILURE_REQUEST, "model is missing");
        refuses(START "\"messages\":[]", FAILURE_REQUEST, "messages must be");
        refuses(START "\"messages\":[{\"role\":\"tool\",\"content\":\"x\"}]", FAILURE_REQUEST,
                "messages[0].role");
        refuses(ONE("{\"type\":\"tool_result\",\"content\":\"x\"}"), FAILURE_REQUEST,
                "tool_use_id");
}

/* ---- the grammar of the stream ---- */

/* Follows the events; what it has seen is written down in a few letters. */
struct machine {
        enum { NEW, OPEN, BLOCK, ENDED, STOPPED } state;
        char block[16]; /* its type */
        uint64_t count;
        bool signed_; /* the thinking block has its signature */
        char seen[512];
};

static void note(struct machine *machine, const char *mark, const char *text)
{
        size_t at = strlen(machine->seen);

        snprintf(machine->seen + at, sizeof(machine->seen) - at, "%s%s", mark, text);
}

static void take_start(struct machine *machine, const struct json_document *json)
{
        assert_int_equal(machine->state, OPEN);
        assert_int_equal(json_uint_at(json, "index"), machine->count);
        snprintf(machine->block, sizeof(machine->block), "%s",
                 json_text_at(json, "content_block.type"));
        machine->signed_ = false;
        if (!strcmp(machine->block, "tool_use")) {
                assert_int_equal(json_count(json, json_at(json, "content_block.input")), 0);
                note(machine, "<", json_text_at(json, "content_block.name"));
                note(machine, " ", json_text_at(json, "content_block.id"));
        } else {
                assert_string_equal(json_text_at(json, strcmp(machine->block, "text")
                                                               ? "content_block.thinking"
                                                               : "content_block.text"),
                                    "");
                note(machine, "<", machine->block);
        }
        machine->state = BLOCK;
}

static void take_delta(struct machine *machine, const struct json_document *json)
{
        static const char *const kinds[][4] = {
                { "text_delta", "text", "delta.text", "|" },
                { "thinking_delta", "thinking", "delta.thinking", "|" },
                { "signature_delta", "thinking", "delta.signature", "#" },
                { "input_json_delta", "tool_use", "delta.partial_json", "|" },
        };
        const char *type = json_text_at(json, "delta.type");

        assert_int_equal(machine->state, BLOCK);
        assert_int_equal(json_uint_at(json, "index"), machine->count);
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
                if (!strcmp(type, kinds[i][0])) {
                        assert_string_equal(machine->block, kinds[i][1]);
                        machine->signed_ |= *kinds[i][3] == '#';
                        note(machine, kinds[i][3], json_text_at(json, kinds[i][2]));
                        return;
                }
        fail_msg("a delta of the type %s", type);
}

static void take_stop(struct machine *machine, const struct json_document *json)
{
        assert_int_equal(machine->state, BLOCK);
        assert_int_equal(json_uint_at(json, "index"), machine->count++);
        assert_true(machine->signed_ || strcmp(machine->block, "thinking"));
        note(machine, ">", "");
        machine->state = OPEN;
}

static void take_end(struct machine *machine, const struct json_document *json)
{
        assert_int_equal(machine->state, OPEN);
        note(machine, " ", json_text_at(json, "delta.stop_reason"));
        if (json_kind(json, json_at(json, "delta.stop_sequence")) == JSON_STRING)
                note(machine, " ", json_text_at(json, "delta.stop_sequence"));
        json_uint_at(json, "usage.output_tokens");
        machine->state = ENDED;
}

static void take_event(struct machine *machine, const char *name, const struct json_document *json)
{
        assert_string_equal(json_text_at(json, "type"), name);
        if (!strcmp(name, "message_start")) {
                assert_int_equal(machine->state, NEW);
                assert_int_equal(json_count(json, json_at(json, "message.content")), 0);
                assert_int_equal(json_kind(json, json_at(json, "message.stop_reason")), JSON_NULL);
                json_uint_at(json, "message.usage.input_tokens");
                machine->state = OPEN;
        } else if (!strcmp(name, "content_block_start")) {
                take_start(machine, json);
        } else if (!strcmp(name, "content_block_delta")) {
                take_delta(machine, json);
        } else if (!strcmp(name, "content_block_stop")) {
                take_stop(machine, json);
        } else if (!strcmp(name, "message_delta")) {
                take_end(machine, json);
        } else if (!strcmp(name, "message_stop")) {
                assert_int_equal(machine->state, ENDED);
                machine->state = STOPPED;
        } else if (!strcmp(name, "error")) {
                note(machine, "!", json_text_at(json, "error.type"));
                machine->state = STOPPED;
        } else {
                assert_string_equal(name, "ping");
        }
}

/* Reads the stream; each event has a name and one line of data. */
static struct machine follow(const struct call_rig *rig)
{
        struct machine machine = { 0 };
        struct json_document *json = NULL;
        char name[32], why[128];

        assert_string_equal(rig->type, "text/event-stream");
        for (const char *at = rig->said.at; at && *at;) {
                const char *data = strstr(at, "\ndata: "),
                           *end = data ? strstr(data, "\n\n") : NULL;

                assert_int_not_equal(machine.state, STOPPED);
                assert_non_null(end);
                assert_int_equal(sscanf(at, "event: %31[a-z_]\n", name), 1);
                data += strlen("\ndata: ");
                assert_int_equal(
                        json_parse(data, (size_t)(end - data), 4096, &json, why, sizeof(why)), 0);
                take_event(&machine, name, json);
                json = json_free(json);
                at = end + 2;
        }
        assert_int_equal(machine.state, STOPPED);
        assert_true(rig->finished);
        return machine;
}

/* ---- answers ---- */

struct answer {
        struct call_rig rig;
        struct anthropic_message message;
};

static void clean(struct call *call)
{
        struct anthropic_message *message = call->own;

        message->run = run_deinit(message->run);
        blocks_deinit(&message->blocks);
}

static struct run *begin(struct answer *answer, bool stream)
{
        struct anthropic_message *message = &answer->message;
        struct anthropic_request *request = &message->request;

        read_body(&answer->rig, BODY(HI ",\"stop_sequences\":[\"a\",\"END\"]"), request);
        request->stream = stream;
        snprintf(message->id, sizeof(message->id), "msg_1");
        answer->rig.call->own = message;
        answer->rig.call->clean = clean;
        blocks_init(&message->blocks, answer->rig.call, stream);
        message->run = run_new(answer->rig.call, &request->options,
                               stream ? &anthropic_streamed : &anthropic_whole, message);
        assert_non_null(message->run);
        call_rig_accept(message->run, 30);
        return message->run;
}

static const struct smv_event eos = { SMV_SIZE(smv_event), .reason = SMV_END_EOS,
                                      .output_tokens = 7, .cached_tokens = 10 };

/* A thought, a text, two calls with white space between them. */
static void say_all(struct run *run)
{
        call_rig_think(run, "\n");
        call_rig_think(run, "Hm");
        call_rig_think(run, "...\n");
        call_rig_text(run, "\n\n");
        call_rig_text(run, "Yes");
        call_rig_text(run, ", I \n");
        call_rig_call(run, "f");
        call_rig_arguments(run, "{\"a\":");
        call_rig_arguments(run, "1}");
        call_rig_call_end(run);
        call_rig_text(run, "\n");
        call_rig_call(run, "g");
        call_rig_call_end(run);
        call_rig_text(run, " \n");
        call_rig_finish(run, &eos);
}

static void streams_blocks_one_behind_the_other(void **state)
{
        struct answer answer;

        (void)state;
        say_all(begin(&answer, true));
        assert_string_equal(follow(&answer.rig).seen,
                            "<thinking|\nHm|...\n#samovar><text|\n\nYes|, I \n>"
                            "<f call_0|{\"a\":|1}><g call_1> tool_use");
        call_rig_end(&answer.rig);
}

static void writes_the_same_blocks_as_a_whole(void **state)
{
        struct answer answer;
        struct json_document *json;

        (void)state;
        say_all(begin(&answer, false));
        json = call_rig_json(&answer.rig);
        assert_int_equal(json_count(json, json_at(json, "content")), 4);
        assert_string_equal(json_text_at(json, "content.0.thinking"), "\nHm...\n");
        assert_string_equal(json_text_at(json, "content.0.signature"), "samovar");
        assert_string_equal(json_text_at(json, "content.1.text"), "\n\nYes, I \n");
        assert_string_equal(json_text_at(json, "content.2.id"), "call_0");
        assert_int_equal(json_uint_at(json, "content.2.input.a"), 1);
        assert_int_equal(json_count(json, json_at(json, "content.3.input")), 0);
        assert_string_equal(json_text_at(json, "stop_reason"), "tool_use");
        assert_int_equal(json_uint_at(json, "usage.input_tokens"), 20);
        assert_int_equal(json_uint_at(json, "usage.cache_read_input_tokens"), 10);
        assert_int_equal(json_uint_at(json, "usage.cache_creation_input_tokens"), 0);
        assert_int_equal(json_uint_at(json, "usage.output_tokens"), 7);
        assert_int_equal(json_uint_at(json, "usage.output_tokens_details.thinking_tokens"), 0);
        json_free(json);
        call_rig_end(&answer.rig);
}

static void an_empty_answer_has_an_empty_text(void **state)
{
        struct answer answer;

        (void)state;
        call_rig_finish(begin(&answer, true), &eos);
        assert_string_equal(follow(&answer.rig).seen, "<text> end_turn");
        call_rig_end(&answer.rig);
}

static void ends_as(const struct smv_event *end, uint32_t allowed, const char *wanted)
{
        struct answer answer;
        struct run *run = begin(&answer, true);

        run->accepted.max_tokens = allowed;
        call_rig_text(run, "x");
        call_rig_finish(run, end);
        assert_string_equal(follow(&answer.rig).seen, wanted);
        call_rig_end(&answer.rig);
}

static void tells_each_reason_to_stop(void **state)
{
        struct smv_event end = eos;

        (void)state;
        ends_as(&end, 9, "<text|x> end_turn");
        end.reason = SMV_END_LENGTH;
        ends_as(&end, 9, "<text|x> max_tokens");
        ends_as(&end, 5, "<text|x> model_context_window_exceeded");
        end.reason = SMV_END_STOP;
        end.stopped_by = SMV_STOPPED_BY_STRING;
        end.stop_index = 1;
        ends_as(&end, 9, "<text|x> stop_sequence END");
        end.reason = SMV_END_ERROR;
        end.code = SMV_NUMERIC;
        ends_as(&end, 9, "<text|x!api_error");
}

static void a_call_that_is_cut_ends_as_by_its_length(void **state)
{
        struct answer answer;
        struct run *run;
        struct json_document *json;

        (void)state;
        for (int way = 0; way < 4; way++) {
                int stream = way % 2;

                run = begin(&answer, stream);
                call_rig_call(run, "f");
                call_rig_arguments(run, "{\"a\":");
                if (way > 1)
                        call_rig_call_cut(run);
                call_rig_finish(run, &eos);
                if (stream) {
                        assert_string_equal(follow(&answer.rig).seen,
                                            "<f call_0|{\"a\":> max_tokens");
                } else {
                        json = call_rig_json(&answer.rig);
                        if (way < 2)
                                assert_int_equal(json_count(json, json_at(json, "content.0.input")),
                                                 0);
                        else
                                assert_string_equal(json_text_at(json, "content.0.text"),
                                                    "{\"name\": \"f\", \"arguments\": {\"a\":");
                        assert_string_equal(json_text_at(json, "stop_reason"), "max_tokens");
                        json_free(json);
                }
                call_rig_end(&answer.rig);
        }
}

static void silence_is_broken_by_a_ping_event(void **state)
{
        struct answer answer;
        struct run *run = begin(&answer, true);

        (void)state;
        call_ping(answer.rig.call, answer.rig.call->written_ns + UINT64_C(10000000));
        call_rig_finish(run, &eos);
        assert_non_null(strstr(answer.rig.said.at, "event: ping\ndata: {\"type\": \"ping\"}\n\n"));
        follow(&answer.rig);
        call_rig_end(&answer.rig);
}

/* ---- the cache ---- */

static void tells_which_part_of_a_prompt_is_new(void **state)
{
        struct cache_miss miss = { .prompt = TEXT("<s>TOOLS [Be brief.] <u>hello</u>"),
                                   .system = TEXT(" Be brief.\n"),
                                   .first = TEXT("hello"),
                                   .tools = true };

        (void)state;
        assert_int_equal(cache_miss_part(&miss, 4), CACHE_MISS_TOOLS);
        assert_int_equal(cache_miss_part(&miss, 12), CACHE_MISS_SYSTEM);
        assert_int_equal(cache_miss_part(&miss, 26), CACHE_MISS_MESSAGES);
        miss.tools = false;
        assert_int_equal(cache_miss_part(&miss, 4), CACHE_MISS_SYSTEM);
        miss.tools = true;
        miss.prompt = TEXT("<s>[Be brief.] TOOLS <u>hello</u>");
        assert_int_equal(cache_miss_part(&miss, 16), CACHE_MISS_TOOLS);
        miss.system = (struct text){ 0 };
        assert_int_equal(cache_miss_part(&miss, 16), CACHE_MISS_TOOLS);
        miss.first = TEXT("what the template has changed");
        assert_int_equal(cache_miss_part(&miss, 16), CACHE_MISS_MESSAGES);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(joins_system_blocks_and_drops_those_for_anthropic),
                cmocka_unit_test(puts_a_system_message_in_the_middle_into_a_user_turn),
                cmocka_unit_test(joins_neighbouring_turns_of_a_role),
                cmocka_unit_test(reads_thoughts_calls_and_results),
                cmocka_unit_test(reads_tools_and_whether_to_think),
                cmocka_unit_test(asks_for_calls_of_any_tool_or_of_one),
                cmocka_unit_test(tells_the_model_of_no_tool_if_none_may_be_called),
                cmocka_unit_test(takes_any_length_and_lets_the_daemon_lower_it),
                cmocka_unit_test(constrains_the_answer_by_a_schema),
                cmocka_unit_test(refuses_by_name_what_it_cannot_honour),
                cmocka_unit_test(streams_blocks_one_behind_the_other),
                cmocka_unit_test(writes_the_same_blocks_as_a_whole),
                cmocka_unit_test(an_empty_answer_has_an_empty_text),
                cmocka_unit_test(tells_each_reason_to_stop),
                cmocka_unit_test(a_call_that_is_cut_ends_as_by_its_length),
                cmocka_unit_test(silence_is_broken_by_a_ping_event),
                cmocka_unit_test(tells_which_part_of_a_prompt_is_new),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
