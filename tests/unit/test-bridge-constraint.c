/* The fields that say which form an answer has become one description for the daemon. */
#include "tests/unit/call-rig.h"

#include <samovar/error.h>
#include <stdio.h>
#include <string.h>

#include "bridge/core/constraint.h"

#define CHAT "/v1/chat/completions"

struct request {
        struct call_rig rig;
        struct fields fields;
        struct smv_generate options;
};

/* Reads a body as chat does. */
static void ask(struct request *request, const char *body)
{
        *request = (struct request){ .options = { SMV_SIZE(smv_generate), .parts = 1 } };
        call_rig_start(&request->rig, CHAT, body);
        request->fields.json = request->rig.call->json;
        constraint_read_extras(request->rig.call, &request->fields, &request->options);
        constraint_read_format(request->rig.call, &request->fields,
                               field_object(&request->fields, 0, "response_format"),
                               "response_format", &request->options);
        assert_false(request->rig.call->arena.failed);
}

static void becomes(const char *body, const char *description, const char *field)
{
        struct request request;

        ask(&request, body);
        if (request.fields.failed)
                fail_msg("%s: %s", body, request.fields.failure.message);
        if (!description) {
                assert_null(request.options.constraint);
                assert_null(request.rig.call->constrained_by);
        } else {
                assert_non_null(request.options.constraint);
                assert_string_equal(request.options.constraint, description);
                assert_int_equal(request.options.constraint_bytes, strlen(description));
                assert_string_equal(request.rig.call->constrained_by, field);
        }
        call_rig_end(&request.rig);
}

static void refuses(const char *body, enum failure_class class, const char *param,
                    const char *words)
{
        struct request request;

        ask(&request, body);
        assert_true(request.fields.failed);
        assert_int_equal(request.fields.failure.class, class);
        assert_string_equal(request.fields.failure.param, param);
        if (!strstr(request.fields.failure.message, words))
                fail_msg("'%s' is not in '%s'", words, request.fields.failure.message);
        call_rig_end(&request.rig);
}

#define SCHEMA "{\"type\":\"object\",\"properties\":{\"z\":{},\"a\":{\"minimum\":1.50e3}}}"
#define FORMAT "response_format"

static void every_field_of_a_schema_becomes_the_same_description(void **state)
{
        static const char description[] = "{\"schema\":" SCHEMA ",\"only_named\":true}";

        (void)state;
        becomes("{\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"n\","
                "\"strict\":false,\"schema\":" SCHEMA "}}}",
                description, FORMAT);
        becomes("{\"response_format\":{\"type\":\"json_schema\",\"schema\":" SCHEMA "}}",
                description, FORMAT);
        becomes("{\"response_format\":{\"type\":\"json_object\",\"schema\":" SCHEMA "}}",
                description, FORMAT);
        becomes("{\"json_schema\":" SCHEMA "}", description, "json_schema");
        becomes("{\"guided_json\":" SCHEMA "}", description, "guided_json");
        becomes("{\"structured_outputs\":{\"json\":" SCHEMA "}}", description,
                "structured_outputs.json");
}

static void a_schema_may_be_the_text_of_its_json(void **state)
{
        (void)state;
        becomes("{\"guided_json\":\"{\\\"b\\\":1, \\\"a\\\":2}\"}",
                "{\"schema\":{\"b\":1,\"a\":2},\"only_named\":true}", "guided_json");
        refuses("{\"guided_json\":\"true, \\\"space\\\": \\\"free\\\"\"}", FAILURE_REQUEST,
                "guided_json", "guided_json is no JSON");
}

static void reads_expressions_grammars_and_choices(void **state)
{
        (void)state;
        becomes("{\"regex\":\"a+\"}", "{\"regex\":\"a+\"}", "regex");
        becomes("{\"guided_regex\":\"a+\"}", "{\"regex\":\"a+\"}", "guided_regex");
        becomes("{\"grammar\":\"root ::= \\\"a\\\"\"}", "{\"grammar\":\"root ::= \\\"a\\\"\"}",
                "grammar");
        becomes("{\"ebnf\":\"root ::= [a]\"}", "{\"grammar\":\"root ::= [a]\"}", "ebnf");
        becomes("{\"guided_grammar\":\"root ::= [a]\"}", "{\"grammar\":\"root ::= [a]\"}",
                "guided_grammar");
        becomes("{\"guided_choice\":[\"b\",\"a\"]}", "{\"choices\":[\"b\",\"a\"]}",
                "guided_choice");
        becomes("{\"structured_outputs\":{\"regex\":\"a+\",\"disable_any_whitespace\":true}}",
                "{\"regex\":\"a+\"}", "structured_outputs.regex");
        becomes("{\"structured_outputs\":{\"choice\":[\"b\"]}}", "{\"choices\":[\"b\"]}",
                "structured_outputs.choice");
        becomes("{\"structured_outputs\":{\"grammar\":\"root ::= [a]\"}}",
                "{\"grammar\":\"root ::= [a]\"}", "structured_outputs.grammar");
}

static void json_without_a_schema_is_any_object(void **state)
{
        static const char object[] = "{\"schema\":{\"type\":\"object\"}}";

        (void)state;
        becomes("{\"response_format\":{\"type\":\"json_object\"}}", object, FORMAT);
        becomes("{\"structured_outputs\":{\"json_object\":true}}", object,
                "structured_outputs.json_object");
}

static void space_between_values_may_be_forbidden(void **state)
{
        (void)state;
        becomes("{\"structured_outputs\":{\"json\":{\"a\":1},\"disable_any_whitespace\":true}}",
                "{\"schema\":{\"a\":1},\"space\":\"none\",\"only_named\":true}",
                "structured_outputs.json");
        becomes("{\"structured_outputs\":{\"json_object\":true,\"disable_any_whitespace\":true}}",
                "{\"schema\":{\"type\":\"object\"},\"space\":\"none\"}",
                "structured_outputs.json_object");
}

static void other_members_may_be_allowed(void **state)
{
        (void)state;
        becomes("{\"structured_outputs\":{\"json\":{\"a\":1},\"disable_additional_properties\":"
                "false}}",
                "{\"schema\":{\"a\":1}}", "structured_outputs.json");
}

static void a_value_that_asks_for_nothing_constrains_nothing(void **state)
{
        (void)state;
        becomes("{}", NULL, NULL);
        becomes("{\"response_format\":null,\"guided_json\":null,\"structured_outputs\":null}", NULL,
                NULL);
        becomes("{\"response_format\":{},\"guided_json\":{},\"json_schema\":{},\"grammar\":\"\","
                "\"guided_choice\":[],\"structured_outputs\":{\"json\":null,\"regex\":\"\","
                "\"choice\":[],\"json_object\":false,\"whitespace_pattern\":null}}",
                NULL, NULL);
        becomes("{\"response_format\":{\"type\":\"text\"}}", NULL, NULL);
}

static void refuses_two_constraints_by_both_names(void **state)
{
        (void)state;
        refuses("{\"guided_regex\":\"a\",\"response_format\":{\"type\":\"json_object\"}}",
                FAILURE_REQUEST, FORMAT, "guided_regex and response_format");
        refuses("{\"structured_outputs\":{\"json_object\":true,\"choice\":[\"a\"]}}",
                FAILURE_REQUEST, "structured_outputs.choice",
                "structured_outputs.json_object and structured_outputs.choice");
        refuses("{\"guided_json\":{\"a\":1},\"grammar\":\"root ::= [a]\"}", FAILURE_REQUEST,
                "grammar", "guided_json and grammar");
}

static void refuses_what_no_description_can_say(void **state)
{
        (void)state;
        refuses("{\"response_format\":{\"type\":\"xml\"}}", FAILURE_UNSUPPORTED, FORMAT,
                "\"xml\"; it may be text, json_object or json_schema");
        refuses("{\"response_format\":{\"json_schema\":{\"schema\":{}}}}", FAILURE_UNSUPPORTED,
                FORMAT, "has the type \"\"");
        refuses("{\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"n\"}}}",
                FAILURE_REQUEST, FORMAT, "response_format has no schema");
        refuses("{\"structured_outputs\":{\"whitespace_pattern\":\" \"}}", FAILURE_UNSUPPORTED,
                "whitespace_pattern", "disable_any_whitespace");
        refuses("{\"structured_outputs\":{\"structural_tag\":\"x\"}}", FAILURE_UNSUPPORTED,
                "structural_tag", "structural_tag");
        refuses("{\"guided_whitespace_pattern\":\" \"}", FAILURE_UNSUPPORTED,
                "guided_whitespace_pattern", "disable_any_whitespace");
}

static void a_constraint_does_not_go_with_calls_that_are_required(void **state)
{
        struct request request;

        (void)state;
        ask(&request, "{\"guided_regex\":\"a\"}");
        constraint_settle(request.rig.call, &request.fields, &request.options);
        assert_false(request.fields.failed);
        request.options.tool_choice = SMV_TOOLS_REQUIRED;
        constraint_settle(request.rig.call, &request.fields, &request.options);
        assert_true(request.fields.failed);
        assert_int_equal(request.fields.failure.class, FAILURE_REQUEST);
        assert_string_equal(request.fields.failure.param, "guided_regex");
        assert_non_null(strstr(request.fields.failure.message, "calls only"));
        call_rig_end(&request.rig);

        ask(&request, "{}");
        request.options.tool_choice = SMV_TOOLS_REQUIRED;
        constraint_settle(request.rig.call, &request.fields, &request.options);
        assert_false(request.fields.failed);
        call_rig_end(&request.rig);
}

static void a_refusal_of_the_daemon_names_the_field_of_the_request(void **state)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem), .code = SMV_BAD_VALUE };
        struct failure failure;
        struct request request;

        (void)state;
        problem.name = "bad_value";
        problem.field = "constraint";
        problem.message = "schema, at \"/a\": no";
        ask(&request, "{\"guided_json\":{\"a\":1}}");
        failure = call_problem(request.rig.call, &problem);
        assert_int_equal(failure.class, FAILURE_REQUEST);
        assert_string_equal(failure.param, "guided_json");
        assert_string_equal(failure.message, "guided_json: schema, at \"/a\": no");

        failure = call_code_failure(request.rig.call, SMV_NO_TOKEN);
        assert_string_equal(failure.param, "guided_json");
        assert_string_equal(failure.message, "guided_json: no token is allowed to come next");
        assert_int_equal(failure_status(&failure, DIALECT_OPENAI), 400);
        failure = call_code_failure(request.rig.call, SMV_CONSTRAINT);
        assert_string_equal(failure.param, "guided_json");
        failure = call_code_failure(request.rig.call, SMV_NUMERIC);
        assert_string_equal(failure.param, "");
        call_rig_end(&request.rig);
}

static void a_description_without_memory_fails_the_call(void **state)
{
        struct request request = { 0 };

        (void)state;
        call_rig_start(&request.rig, CHAT, "{\"guided_json\":{\"a\":1}}");
        request.fields.json = request.rig.call->json;
        request.rig.call->arena.failed = true;
        constraint_read_extras(request.rig.call, &request.fields, &request.options);
        assert_null(request.options.constraint);
        assert_false(call_was_read(request.rig.call, &request.fields));
        assert_int_equal(request.rig.status, 503);
        call_rig_end(&request.rig);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_field_of_a_schema_becomes_the_same_description),
                cmocka_unit_test(a_schema_may_be_the_text_of_its_json),
                cmocka_unit_test(reads_expressions_grammars_and_choices),
                cmocka_unit_test(json_without_a_schema_is_any_object),
                cmocka_unit_test(space_between_values_may_be_forbidden),
                cmocka_unit_test(other_members_may_be_allowed),
                cmocka_unit_test(a_value_that_asks_for_nothing_constrains_nothing),
                cmocka_unit_test(refuses_two_constraints_by_both_names),
                cmocka_unit_test(refuses_what_no_description_can_say),
                cmocka_unit_test(a_constraint_does_not_go_with_calls_that_are_required),
                cmocka_unit_test(a_refusal_of_the_daemon_names_the_field_of_the_request),
                cmocka_unit_test(a_description_without_memory_fails_the_call),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
