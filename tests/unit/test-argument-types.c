#include "daemon/text/parts/argument-types.h"
#include "tests/unit/parts-check.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* A tool "f" whose argument "a" has this schema, with these definitions. */
#define TOOL(schema)                                                                               \
        "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":"           \
        "\"object\",\"properties\":{\"a\":" schema "},\"$defs\":{\"word\":{\"type\":\"string\"},"  \
        "\"loop\":{\"$ref\":\"#/$defs/loop\"},\"any\":{\"$ref\":\"#/$defs/maybe/anyOf/0\"}}}}}]"

static struct argument_types *make(const char *tools)
{
        struct argument_types *types;
        struct json_document *json;
        struct arena *arena;
        struct value value;
        char why[128];

        assert_int_equal(arena_new(8u << 20, &arena), 0);
        assert_int_equal(json_parse(tools, strlen(tools), 1u << 16, &json, why, sizeof(why)), 0);
        assert_int_equal(value_from_json(arena, json, 0, TEXT_GIVEN, &value), 0);
        assert_int_equal(argument_types_make(value, &types), 0);
        json_free(json);
        arena_free(arena);
        return types;
}

static enum argument_type find(const struct argument_types *types, const char *tool,
                               const char *key)
{
        return argument_types_find(types, tool, strlen(tool), key, strlen(key));
}

static void a_schema_says_whether_only_strings_are_allowed(void **state)
{
        static const struct {
                const char *tools;
                enum argument_type type;
        } cases[] = {
                { TOOL("{\"type\":\"string\"}"), ARGUMENT_STRING },
                { TOOL("{\"type\":[\"string\"]}"), ARGUMENT_STRING },
                { TOOL("{\"enum\":[\"1\",\"2\"]}"), ARGUMENT_STRING },
                { TOOL("{\"const\":\"1\"}"), ARGUMENT_STRING },
                { TOOL("{\"anyOf\":[{\"type\":\"string\"},{\"const\":\"x\"}]}"), ARGUMENT_STRING },
                { TOOL("{\"allOf\":[{},{\"type\":\"string\"}]}"), ARGUMENT_STRING },
                { TOOL("{\"$ref\":\"#/$defs/word\"}"), ARGUMENT_STRING },
                /* each keyword narrows what the others allow */
                { TOOL("{\"type\":[\"string\",\"number\"],\"enum\":[\"1\"]}"), ARGUMENT_STRING },
                { TOOL("{\"type\":[\"string\",\"null\"]}"), ARGUMENT_STRING_OR_NULL },
                { TOOL("{\"type\":[\"null\",\"string\"]}"), ARGUMENT_STRING_OR_NULL },
                { TOOL("{\"type\":\"string\",\"nullable\":true}"), ARGUMENT_STRING_OR_NULL },
                { TOOL("{\"enum\":[\"a\",null]}"), ARGUMENT_STRING_OR_NULL },
                { TOOL("{\"oneOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/word\"}]}"),
                  ARGUMENT_STRING_OR_NULL },
                { TOOL("{}"), ARGUMENT_ANY },
                { TOOL("true"), ARGUMENT_ANY },
                { TOOL("{\"type\":\"integer\"}"), ARGUMENT_ANY },
                { TOOL("{\"type\":\"null\"}"), ARGUMENT_ANY },
                { TOOL("{\"type\":[\"string\",\"integer\"]}"), ARGUMENT_ANY },
                { TOOL("{\"enum\":[\"a\",1]}"), ARGUMENT_ANY },
                { TOOL("{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"object\"}]}"), ARGUMENT_ANY },
                { TOOL("{\"$ref\":\"#/$defs/loop\"}"), ARGUMENT_ANY },
                { TOOL("{\"$ref\":\"#/$defs/none\"}"), ARGUMENT_ANY },
                { TOOL("{\"$ref\":\"elsewhere\"}"), ARGUMENT_ANY },
                { TOOL("{\"$ref\":\"\"}"), ARGUMENT_ANY },
                { TOOL("{\"type\":7,\"enum\":8,\"anyOf\":9}"), ARGUMENT_ANY },
                { "[]", ARGUMENT_ANY },
                { "[1,null,{}]", ARGUMENT_ANY },
                { "[{\"name\":\"f\",\"parameters\":{\"properties\":{\"a\":{\"type\":\"string\"}}}}"
                  "]",
                  ARGUMENT_STRING },
                { "[{\"name\":\"f\",\"input_schema\":{\"properties\":{\"a\":{\"type\":\"string\"}}}"
                  "}]",
                  ARGUMENT_STRING },
        };

        (void)state;
        for (size_t i = 0; i < COUNT(cases); i++) {
                struct argument_types *types = make(cases[i].tools);

                print_message("# %s\n", cases[i].tools);
                assert_int_equal(find(types, "f", "a"), cases[i].type);
                assert_int_equal(find(types, "f", "b"), ARGUMENT_ANY);
                assert_int_equal(find(types, "g", "a"), ARGUMENT_ANY);
                argument_types_unref(types);
        }
}

static void so_many_arguments_are_known_and_no_more(void **state)
{
        static char tools[1u << 20];
        struct argument_types *types;
        unsigned known = 0;
        char key[16];
        size_t at;

        (void)state;
        at = (size_t)sprintf(tools, "[{\"name\":\"f\",\"parameters\":{\"properties\":{");
        for (unsigned i = 0; i < 2 * ARGUMENT_TYPES_MAX; i++)
                at += (size_t)sprintf(tools + at, "%s\"k%u\":{\"type\":\"string\"}", i ? "," : "",
                                      i);
        sprintf(tools + at, "}}}]");
        types = make(tools);
        for (unsigned i = 0; i < 2 * ARGUMENT_TYPES_MAX; i++) {
                sprintf(key, "k%u", i);
                known += find(types, "f", key) == ARGUMENT_STRING;
        }
        assert_int_equal(known, ARGUMENT_TYPES_MAX);
        assert_true(argument_types_bytes(types) <= 8 * ARGUMENT_TYPES_MAX + 64);
        argument_types_unref(types);
}

/* Branches that branch again end by the number of schemas that are looked at. */
static void schemas_that_explode_take_no_time(void **state)
{
        static char tools[1u << 16];
        struct argument_types *types;
        size_t at;

        (void)state;
        at = (size_t)sprintf(tools, "[{\"name\":\"f\",\"parameters\":{\"properties\":{\"a\":"
                                    "{\"$ref\":\"#/$defs/x\"}},\"$defs\":{\"x\":{\"anyOf\":[");
        for (unsigned i = 0; i < 1000; i++)
                at += (size_t)sprintf(tools + at, "%s{\"$ref\":\"#/$defs/x\"}", i ? "," : "");
        sprintf(tools + at, "]}}}}]");
        types = make(tools);
        assert_int_equal(find(types, "f", "a"), ARGUMENT_ANY);
        argument_types_unref(types);
}

/* ---- values ---- */

static const char tools[] =
        "[{\"name\":\"f\",\"parameters\":{\"properties\":{\"s\":{\"type\":\"string\"},"
        "\"n\":{\"type\":[\"string\",\"null\"]},\"i\":{\"type\":\"integer\"},"
        "\"u\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}}}}]";

struct tags {
        const char *sign, *open, *key, *value, *close, *end;
};

static const struct tags dialects[] = {
        { "<tool_call> <function= <parameter=", "<tool_call>\n<function=f>", "\n<parameter=", ">\n",
          "\n</parameter>", "\n</function>\n</tool_call>" },
        { "<seed:tool_call>", "<seed:tool_call>\n<function=f>", "\n<parameter=", ">",
          "</parameter>", "\n</function>\n</seed:tool_call>" },
        { "<tool_call> <arg_key>", "<tool_call>f", "\n<arg_key>", "</arg_key>\n<arg_value>",
          "</arg_value>", "\n</tool_call>" },
        { "<minimax:tool_call>", "<minimax:tool_call>\n<invoke name=\"f\">", "\n<parameter name=\"",
          "\">", "</parameter>", "\n</invoke>\n</minimax:tool_call>" },
};

static void check_value(const struct argument_types *types, const char *key, const char *text,
                        const char *json)
{
        for (size_t i = 0; i < COUNT(dialects); i++) {
                const struct tags *tags = &dialects[i];
                const struct dialect dialect =
                        open_dialect((const char *const[2]){ tags->sign, NULL });
                char call[1024], wanted[1024];

                snprintf(call, sizeof(call), "%s%s%s%s%s%s%s", tags->open, tags->key, key,
                         tags->value, text, tags->close, tags->end);
                snprintf(wanted, sizeof(wanted), "C0\"f\"A0\"{\"%s\": %s}\"E0", key, json);
                check_typed(&dialect, types, true, false, call, wanted);
        }
}

static void strings_are_quoted_whatever_they_look_like(void **state)
{
        static const struct {
                const char *text, *json;
        } strings[] = {
                { "123", "\"123\"" },
                { "true", "\"true\"" },
                { "{}", "\"{}\"" },
                { "[1, 2]", "\"[1, 2]\"" },
                { "\"x\"", "\"\\\"x\\\"\"" },
                { "1e5x", "\"1e5x\"" },
                { "", "\"\"" },
                { "nullify", "\"nullify\"" },
                { "nul", "\"nul\"" },
                { "n", "\"n\"" },
                { "a\nb", "\"a\\nb\"" },
                { " null", "\" null\"" },
        };
        struct argument_types *types = make(tools);

        (void)state;
        for (size_t i = 0; i < COUNT(strings); i++) {
                check_value(types, "s", strings[i].text, strings[i].json);
                check_value(types, "n", strings[i].text, strings[i].json);
        }
        check_value(types, "s", "null", "\"null\"");
        check_value(types, "n", "null", "null");
        argument_types_unref(types);
}

static void other_arguments_are_json_if_they_can_be_read_as_it(void **state)
{
        static const char *const keys[] = { "i", "u", "unknown" };
        struct argument_types *types = make(tools);

        (void)state;
        for (size_t i = 0; i < COUNT(keys); i++) {
                check_value(types, keys[i], "123", "123");
                check_value(types, keys[i], "null", "null");
                check_value(types, keys[i], "{\"a\": 1}", "{\"a\": 1}");
                check_value(types, keys[i], "12 apples", "\"12 apples\"");
                check_value(types, keys[i], "\"x\"", "\"x\"");
        }
        argument_types_unref(types);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_schema_says_whether_only_strings_are_allowed),
                cmocka_unit_test(so_many_arguments_are_known_and_no_more),
                cmocka_unit_test(schemas_that_explode_take_no_time),
                cmocka_unit_test(strings_are_quoted_whatever_they_look_like),
                cmocka_unit_test(other_arguments_are_json_if_they_can_be_read_as_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
