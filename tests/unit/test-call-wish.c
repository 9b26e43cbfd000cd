/* Which calls a request wants: the texts that its tools and its choice become. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/edge/call-form.h"

#define NODES_MAX 1000u

static struct value value_of(struct arena *arena, const char *text)
{
        struct json_document *json = NULL;
        struct value value = { .kind = VALUE_NONE };
        char why[128];

        if (!text)
                return value;
        assert_int_equal(json_parse(text, strlen(text), NODES_MAX, &json, why, sizeof(why)), 0);
        assert_int_equal(value_from_json(arena, json, 0, TEXT_GIVEN, &value), 0);
        json_free(json);
        return value;
}

static int put(struct call_question *question, const char *tools, const char *names,
               struct bytes *text, char why[256])
{
        struct arena *arena;
        int r;

        assert_int_equal(arena_new(1u << 20, &arena), 0);
        question->tools = value_of(arena, tools);
        question->names = value_of(arena, names);
        r = call_wish_put(question, text, why, 256);
        arena_free(arena);
        return r;
}

static void becomes(struct call_question question, const char *tools, const char *names,
                    const char *wish)
{
        struct bytes text = { 0 };
        char why[256] = "";

        if (put(&question, tools, names, &text, why))
                fail_msg("%s", why);
        assert_string_equal(text.count ? text.at : "", wish);
        bytes_deinit(&text);
}

static void refuses(struct call_question question, const char *tools, const char *names,
                    const char *sentence)
{
        struct bytes text = { 0 };
        char why[256] = "";

        assert_int_equal(put(&question, tools, names, &text, why), -EINVAL);
        assert_string_equal(why, sentence);
        bytes_deinit(&text);
}

#define SCHEMA     "{\"type\":\"object\",\"properties\":{\"z\":{\"minimum\":1.5},\"a\":{}}}"
#define TOOL(more) "{\"type\":\"function\",\"function\":{\"name\":\"f\"" more "}}"
#define F          "[" TOOL(",\"parameters\":" SCHEMA) "]"
#define STRICT_F   "[" TOOL(",\"strict\":true,\"parameters\":" SCHEMA) "]"
#define NOTHING    "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}"

static const struct call_question must = { .choice = WIRE_TOOLS_REQUIRED }, may = { 0 },
                                  none = { .choice = WIRE_TOOLS_NONE };

static void calls_that_nothing_binds_are_free(void **state)
{
        (void)state;
        becomes(may, F, NULL, "");
        becomes(may, "[]", NULL, "");
        becomes(may, NULL, NULL, "");
        becomes(none, STRICT_F, NULL, "");
}

static void required_calls_follow_all_schemas_in_their_order(void **state)
{
        (void)state;
        becomes(must, F, NULL,
                "{\"required\":true,\"max\":0,\"tools\":[{\"name\":\"f\",\"schema\":" SCHEMA "}]}");
        becomes(must, "[{\"name\":\"g\",\"input_schema\":{}}," TOOL("") "]", NULL,
                "{\"required\":true,\"max\":0,\"tools\":[{\"name\":\"g\",\"schema\":"
                "{\"type\":\"object\"}},{\"name\":\"f\",\"schema\":" NOTHING "}]}");
        becomes(must, "[{\"name\":\"g\"}," TOOL("") "]", "[\"f\"]",
                "{\"required\":true,\"max\":0,\"tools\":[{\"name\":\"f\",\"schema\":" NOTHING
                "}]}");
}

static void if_the_model_decides_only_strict_tools_have_their_schema(void **state)
{
        struct call_question constrained = may, one = may;

        (void)state;
        becomes(may, STRICT_F, NULL,
                "{\"required\":false,\"max\":0,\"tools\":[{\"name\":\"f\",\"schema\":" SCHEMA
                "}]}");
        constrained.constrained = true;
        becomes(constrained, F, NULL,
                "{\"required\":false,\"max\":0,\"tools\":[{\"name\":\"f\",\"schema\":"
                "{\"type\":\"object\"}}]}");
        one.max = 1;
        becomes(one, F, NULL,
                "{\"required\":false,\"max\":1,\"tools\":[{\"name\":\"f\",\"schema\":"
                "{\"type\":\"object\"}}]}");
}

static void wishes_without_a_meaning_are_refused(void **state)
{
        (void)state;
        refuses(must, "[]", NULL, "there are no tools to call");
        refuses(must, F, "[\"g\"]", "no tool has the name \"g\"");
        refuses(must, "[{\"description\":\"d\"}]", NULL, "a tool has no name");
        refuses(must, "[" TOOL(",\"parameters\":{\"type\":\"string\"}") "]", NULL,
                "tool \"f\": its parameters are no schema of an object");
        refuses(must, "[" TOOL(",\"parameters\":[]") "]", NULL,
                "tool \"f\": its parameters are no schema of an object");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(calls_that_nothing_binds_are_free),
                cmocka_unit_test(required_calls_follow_all_schemas_in_their_order),
                cmocka_unit_test(if_the_model_decides_only_strict_tools_have_their_schema),
                cmocka_unit_test(wishes_without_a_meaning_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
