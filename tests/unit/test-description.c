/* Descriptions of constraints: what they accept, and each sentence that refuses one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/constraint/description.h"
#include "daemon/constraint/matcher.h"

static int compile(const char *text, struct grammar **ret_grammar, char why[256])
{
        why[0] = 0;
        *ret_grammar = NULL;
        return description_compile(text, strlen(text), &grammar_limits_default, ret_grammar, why,
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
        const struct token_text letter = { "a", 1 };
        struct token_trie *trie = token_trie_new(&letter, 1, NULL, 0);
        struct grammar *grammar;
        struct matcher *matcher;
        char why[256];
        bool whole;

        if (compile(description, &grammar, why))
                fail_msg("%s: %s", description, why);
        matcher = matcher_new(grammar, trie, &matcher_limits_default);
        assert_non_null(matcher);
        matcher_reset(matcher);
        whole = matcher_take_bytes(matcher, text, strlen(text)) == MATCHER_FINE &&
                matcher_can_end(matcher);
        matcher_free(matcher);
        grammar_free(grammar);
        token_trie_free(trie);
        return whole;
}

#define KINDS "json, schema, regex, grammar and choices; one is wanted"

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
        refused("{\"regex\":\"a\",\"space\":\"one\"}",
                "space goes with json and schema, not with regex");
        refused("{\"choices\":[\"a\"],\"any_order\":true}",
                "any_order goes with json and schema, not with choices");
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
                cmocka_unit_test(says_what_is_wrong_inside),
                cmocka_unit_test(refuses_too_many_choices),
                cmocka_unit_test(each_kind_accepts_its_texts),
        };

        return cmocka_run_group_tests_name("description", tests, NULL, NULL);
}
