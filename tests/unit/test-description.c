/* Descriptions of constraints: what they accept, and each sentence that refuses one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/description-grammar.h"
#include "tests/grammar-accepts.h"

static int compile(const char *text, struct grammar **ret_grammar, char why[256])
{
        why[0] = 0;
        *ret_grammar = NULL;
        return description_grammar(text, strlen(text), &grammar_limits_default, ret_grammar, why,
                                   256);
}

static void refused(const char *text, const char *sentence)
{
        struct grammar *grammar;
        char why[256];

        if (compile(text, &grammar, why) != -EINVAL || strcmp(why, sentence) != 0)
                fail_msg("%s: '%s', not '%s'", text, why, sentence);
        assert_null(grammar);
}

/* Is this a whole text by the description? */
static bool accepts(const char *description, const char *text)
{
        struct grammar *grammar;
        char why[256];
        bool whole;

        if (compile(description, &grammar, why))
                fail_msg("%s: %s", description, why);
        whole = grammar_accepts(grammar, text);
        grammar_free(grammar);
        return whole;
}

#define KINDS "json, schema, regex, grammar, choices and tags; one is wanted"

static void refuses_what_is_no_description(void **state)
{
        (void)state;
        refused("[]", "it is not an object of JSON");
        refused("7", "it is not an object of JSON");
        refused("{}", "it has 0 of " KINDS);
        refused("{\"space\":\"one\"}", "it has 0 of " KINDS);
        refused("{\"json\":true,\"regex\":\"a\"}", "it has 2 of " KINDS);
        refused("{\"jsn\":true}", "it has the unknown member \"jsn\"");
        refused("{\"json\":true,\"\":1}", "it has the unknown member \"\"");
}

static void refuses_members_of_the_wrong_kind(void **state)
{
        (void)state;
        refused("{\"json\":false}", "json is not true");
        refused("{\"json\":1}", "json is not true");
        refused("{\"regex\":7}", "regex is not a text");
        refused("{\"grammar\":[]}", "grammar is not a text");
        refused("{\"choices\":\"a\"}", "choices is not a list of texts");
        refused("{\"choices\":[]}", "choices is not a list of texts");
        refused("{\"choices\":{\"a\":\"b\"}}", "choices is not a list of texts");
        refused("{\"choices\":[\"a\",7]}", "choices has no text at index 1");
}

static void refuses_options_that_are_wrong_or_have_no_meaning(void **state)
{
        (void)state;
        refused("{\"json\":true,\"space\":\"two\"}", "space is not \"one\", \"none\" or \"free\"");
        refused("{\"schema\":{},\"space\":1}", "space is not \"one\", \"none\" or \"free\"");
        refused("{\"schema\":{},\"any_order\":1}", "any_order is not true or false");
        refused("{\"schema\":{},\"only_named\":\"yes\"}", "only_named is not true or false");
        refused("{\"regex\":\"a\",\"space\":\"one\"}", "space does not go with regex");
        refused("{\"choices\":[\"a\"],\"any_order\":true}", "any_order does not go with choices");
}

#define TAG(more) "{\"begin\":\"<a>\",\"end\":\"</a>\"" more "}"

static void refuses_tags_that_are_wrong(void **state)
{
        (void)state;
        refused("{\"tags\":[]}", "tags is not a list of 1 to 256 tags");
        refused("{\"tags\":{}}", "tags is not a list of 1 to 256 tags");
        refused("{\"tags\":[7]}", "tags[0]: it is not an object of JSON");
        refused("{\"tags\":[" TAG("") "]}", "tags[0]: it has 0 of " KINDS);
        refused("{\"tags\":[" TAG(",\"tags\":[]") "]}", "tags[0]: a tag cannot have tags");
        refused("{\"tags\":[{\"json\":true,\"end\":\"b\"}]}", "tags[0]: begin is not a text");
        refused("{\"tags\":[" TAG(
                        ",\"json\":true") ",{\"json\":true,\"begin\":\"\",\"end\":\"b\"}]}",
                "tags[1]: begin is empty");
        refused("{\"tags\":[" TAG(",\"json\":true") "],\"min\":2,\"max\":1}",
                "min is more than max");
        refused("{\"tags\":[" TAG(",\"json\":true") "],\"min\":257}",
                "min is not a number from 0 to 256");
        refused("{\"tags\":[" TAG(",\"json\":true") "],\"closed\":1}",
                "closed is not true or false");
        refused("{\"tags\":[" TAG(",\"json\":true") "],\"space\":\"one\"}",
                "space does not go with tags");
        refused("{\"json\":true,\"min\":1}", "min does not go with json");
}

static void tags_come_in_free_text(void **state)
{
        static const char two[] =
                "{\"tags\":[" TAG(",\"json\":true") ",{\"begin\":\"<n>\",\"end\":\"</n>\","
                                                    "\"regex\":\"[0-9]+\"}]}";
        static const char once[] =
                "{\"tags\":[" TAG(",\"json\":true") "],\"min\":1,\"max\":1,\"closed\":true}";

        (void)state;
        assert_true(accepts(two, "no tag at all"));
        assert_true(accepts(two, "one <a>[1]</a> and <n>12</n>, and more"));
        assert_false(accepts(two, "one <a>[1</a>"));
        assert_false(accepts(two, "<n>x</n>"));
        assert_true(accepts(once, "so: <a>{}</a>"));
        assert_false(accepts(once, "so: <a>{}</a>."));
        assert_false(accepts(once, "nothing"));
        assert_false(accepts(once, "<a>1</a><a>2</a>"));
}

static void says_what_is_wrong_inside(void **state)
{
        const char *const wrong[] = { "{\"json\":", "{\"regex\":\"(\"}", "{\"grammar\":\"x\"}",
                                      "{\"schema\":{\"type\":7}}" };

        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
                struct grammar *grammar;
                char why[256];

                if (compile(wrong[i], &grammar, why) != -EINVAL || !why[0])
                        fail_msg("%s: '%s'", wrong[i], why);
        }
}

static void refuses_too_many_choices(void **state)
{
        char *text = malloc(5 * (DESCRIPTION_CHOICES_MAX + 10)), *at = text;

        (void)state;
        assert_non_null(text);
        at = stpcpy(at, "{\"choices\":[\"a\"");
        for (uint32_t i = 0; i < DESCRIPTION_CHOICES_MAX; i++)
                at = stpcpy(at, ",\"a\"");
        stpcpy(at, "]}");
        refused(text, "choices has 100001 texts; it may have 100000");
        free(text);
}

static void each_kind_accepts_its_texts(void **state)
{
        const char *const pair = "{\"schema\":{\"properties\":{\"a\":{},\"b\":{}},"
                                 "\"required\":[\"a\",\"b\"]}}";
        const char *const any = "{\"schema\":{\"properties\":{\"a\":{},\"b\":{}},"
                                "\"required\":[\"a\",\"b\"]},\"any_order\":true}";

        (void)state;
        assert_true(accepts("{\"json\":true}", "{\"a\": [1, null]}"));
        assert_false(accepts("{\"json\":true}", "{a}"));
        assert_true(accepts("{\"regex\":\"a+b\"}", "aab"));
        assert_false(accepts("{\"regex\":\"a+b\"}", "aa"));
        assert_true(accepts("{\"grammar\":\"root ::= \\\"a\\\" | \\\"bc\\\"\"}", "bc"));
        assert_true(accepts("{\"choices\":[\"a\",\"ab\"]}", "a"));
        assert_true(accepts("{\"choices\":[\"a\",\"ab\"]}", "ab"));
        assert_false(accepts("{\"choices\":[\"a\",\"ab\"]}", "b"));
        assert_true(accepts("{\"json\":true,\"space\":\"none\"}", "[1,2]"));
        assert_false(accepts("{\"json\":true,\"space\":\"none\"}", "[1, 2]"));
        assert_true(accepts("{\"json\":true,\"space\":\"free\"}", "[1,   2]"));
        assert_true(accepts(pair, "{\"a\": 1, \"b\": 2}"));
        assert_false(accepts(pair, "{\"b\": 2, \"a\": 1}"));
        assert_true(accepts(any, "{\"b\": 2, \"a\": 1}"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(refuses_what_is_no_description),
                cmocka_unit_test(refuses_members_of_the_wrong_kind),
                cmocka_unit_test(refuses_options_that_are_wrong_or_have_no_meaning),
                cmocka_unit_test(refuses_tags_that_are_wrong),
                cmocka_unit_test(tags_come_in_free_text),
                cmocka_unit_test(says_what_is_wrong_inside),
                cmocka_unit_test(refuses_too_many_choices),
                cmocka_unit_test(each_kind_accepts_its_texts),
        };

        return cmocka_run_group_tests_name("description", tests, NULL, NULL);
}
