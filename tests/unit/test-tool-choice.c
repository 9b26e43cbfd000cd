/* tool_choice in the forms of OpenAI, for the daemon. */
#include "tests/unit/call-rig.h"

#include <stdio.h>
#include <string.h>

#include "bridge/core/tools.h"
#include "bridge/openai/tool-choice.h"

struct request {
        struct call_rig rig;
        struct fields fields;
        struct conversation conversation;
        struct smv_generate options;
        bool told;
};

/* With the tools f, g and h. */
static void ask(struct request *request, const char *choice)
{
        char body[1024];

        snprintf(body, sizeof(body),
                 "{\"tools\":[{\"function\":{\"name\":\"f\"}},{\"function\":{\"name\":\"g\"}},"
                 "{\"function\":{\"name\":\"h\"}}],\"tool_choice\":%s}",
                 choice);
        *request = (struct request){ .options = { SMV_SIZE(smv_generate) } };
        call_rig_start(&request->rig, "/v1/chat/completions", body);
        request->fields.json = request->conversation.json = request->rig.call->json;
        request->conversation.arena = &request->rig.call->arena;
        request->told =
                openai_read_choice(&request->fields, &request->conversation, &request->options);
        if (request->told)
                tools_read(&request->fields, &request->conversation);
        tools_settle(&request->fields, &request->conversation, false, &request->options);
        assert_false(request->rig.call->arena.failed);
}

static void becomes(const char *choice, enum smv_tool_choice wanted, const char *names,
                    uint32_t max)
{
        struct request request;
        char allowed[64] = "";

        ask(&request, choice);
        if (request.fields.failed)
                fail_msg("%s: %s", choice, request.fields.failure.message);
        assert_true(request.told);
        assert_int_equal(request.options.tool_choice, wanted);
        assert_int_equal(request.options.calls_max, max);
        for (size_t i = 0; i < request.options.allowed_tool_count; i++)
                strcat(allowed, request.options.allowed_tools[i]);
        assert_string_equal(allowed, names);
        call_rig_end(&request.rig);
}

static void every_form_becomes_a_choice_of_the_daemon(void **state)
{
        (void)state;
        becomes("null", SMV_TOOLS_AUTO, "", 0);
        becomes("\"auto\"", SMV_TOOLS_AUTO, "", 0);
        becomes("\"required\"", SMV_TOOLS_REQUIRED, "", 0);
        becomes("{\"type\":\"function\",\"function\":{\"name\":\"g\"}}", SMV_TOOLS_REQUIRED, "g",
                1);
        becomes("{\"type\":\"function\",\"name\":\"f\"}", SMV_TOOLS_REQUIRED, "f", 1);
        becomes("{\"type\":\"allowed_tools\",\"mode\":\"auto\",\"tools\":[{\"type\":\"function\","
                "\"name\":\"f\"},{\"type\":\"function\",\"name\":\"h\"}]}",
                SMV_TOOLS_AUTO, "fh", 0);
        becomes("{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"required\",\"tools\":["
                "{\"type\":\"function\",\"function\":{\"name\":\"g\"}}]}}",
                SMV_TOOLS_REQUIRED, "g", 0);
}

static void none_tells_the_model_of_no_tool(void **state)
{
        struct request request;

        (void)state;
        ask(&request, "\"none\"");
        assert_false(request.told || request.fields.failed);
        assert_int_equal(request.options.tool_choice, SMV_TOOLS_AUTO);
        call_rig_end(&request.rig);
}

static void refuses(const char *choice, const char *words)
{
        struct request request;

        ask(&request, choice);
        assert_true(request.fields.failed);
        assert_string_equal(request.fields.failure.param, "tool_choice");
        if (!strstr(request.fields.failure.message, words))
                fail_msg("'%s' is not in '%s'", words, request.fields.failure.message);
        call_rig_end(&request.rig);
}

static void other_choices_are_refused_with_a_sentence(void **state)
{
        (void)state;
        refuses("\"some\"", "must be auto");
        refuses("7", "must be auto");
        refuses("{\"type\":\"web_search\"}", "web_search");
        refuses("{\"type\":\"function\"}", "without a name");
        refuses("{\"type\":\"function\",\"name\":\"x\"}", "names the tool \"x\"");
        refuses("{\"type\":\"allowed_tools\",\"mode\":\"auto\",\"tools\":[]}", "must be auto");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_form_becomes_a_choice_of_the_daemon),
                cmocka_unit_test(none_tells_the_model_of_no_tool),
                cmocka_unit_test(other_choices_are_refused_with_a_sentence),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
