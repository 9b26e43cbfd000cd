/*
 * The matcher besides its masks: forced text, control tokens, going back, copies, hostile
 * vocabularies, and what happens when a budget is spent.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/constraint/choices.h"
#include "daemon/constraint/gbnf.h"
#include "daemon/constraint/json-schema.h"
#include "daemon/constraint/matcher.h"

#define BYTES 256 /* the vocabulary: a token for each byte, and two control tokens */

struct rig {
        struct grammar *grammar;
        struct token_trie *trie;
        struct matcher *matcher;
};

static struct token_trie *byte_trie(void)
{
        static const uint32_t controls[] = { BYTES, BYTES + 1 };
        static char bytes[BYTES];
        struct token_text texts[BYTES + 2] = { 0 };

        for (int i = 0; i < BYTES; i++) {
                bytes[i] = (char)i;
                texts[i] = (struct token_text){ &bytes[i], 1 };
        }
        return token_trie_new(texts, BYTES + 2, controls, 2);
}

static struct rig rig_of(struct grammar *grammar, const struct matcher_limits *limits)
{
        struct rig rig = { grammar, byte_trie(), NULL };

        assert_non_null(rig.trie);
        rig.matcher = matcher_new(rig.grammar, rig.trie, limits);
        assert_non_null(rig.matcher);
        matcher_reset(rig.matcher);
        return rig;
}

static struct rig rig_gbnf(const char *text, const struct matcher_limits *limits)
{
        struct grammar *grammar;
        char why[200];

        if (gbnf_compile(text, strlen(text), &grammar_limits_default, &grammar, why, sizeof(why)))
                fail_msg("%s", why);
        return rig_of(grammar, limits);
}

static struct rig rig_schema(const char *text, const struct matcher_limits *limits)
{
        static const struct json_schema_options options;
        struct grammar *grammar;
        char why[200];

        if (json_schema_compile(text, strlen(text), &options, &grammar_limits_default, &grammar,
                                why, sizeof(why)))
                fail_msg("%s", why);
        return rig_of(grammar, limits);
}

static void rig_deinit(struct rig *rig)
{
        matcher_free(rig->matcher);
        token_trie_free(rig->trie);
        grammar_free(rig->grammar);
}

static void take(struct rig *rig, const char *text)
{
        for (; *text; text++)
                assert_int_equal(matcher_take(rig->matcher, (uint8_t)*text), MATCHER_FINE);
}

static void check_legal(struct rig *rig, const char *letters)
{
        uint32_t bits[(BYTES + 2 + 31) / 32];

        assert_int_equal(matcher_mask(rig->matcher, bits), MATCHER_FINE);
        for (int i = 0; i < BYTES; i++)
                if ((bool)(bits[i / 32] >> (i % 32) & 1) != (i && strchr(letters, i)))
                        fail_msg("byte %d is%s legal", i, strchr(letters, i) ? " not" : "");
}

static void tells_the_text_that_must_come(void **state)
{
        static const struct regex_text choices[] = { { "orderId", 7 }, { "orderName", 9 } };
        struct grammar *grammar;
        uint8_t bytes[16];
        size_t count;
        struct rig rig;
        char why[100];

        (void)state;
        assert_int_equal(
                choices_compile(choices, 2, &grammar_limits_default, &grammar, why, sizeof(why)),
                0);
        rig = rig_of(grammar, &matcher_limits_default);
        assert_int_equal(matcher_forced(rig.matcher, bytes, sizeof(bytes), &count), MATCHER_FINE);
        assert_int_equal(count, 5);
        assert_memory_equal(bytes, "order", 5);
        check_legal(&rig, "o"); /* nothing was taken */
        assert_int_equal(matcher_forced(rig.matcher, bytes, 3, &count), MATCHER_FINE);
        assert_int_equal(count, 3);
        take(&rig, "orderI");
        assert_false(matcher_can_end(rig.matcher));
        take(&rig, "d");
        assert_true(matcher_must_end(rig.matcher));
        assert_int_equal(matcher_forced(rig.matcher, bytes, sizeof(bytes), &count), MATCHER_FINE);
        assert_int_equal(count, 0);
        rig_deinit(&rig);
}

static void control_tokens_are_legal_where_the_grammar_names_them(void **state)
{
        struct rig rig = rig_gbnf("root ::= <[256]> x <[257]>\nx ::= \"(\" x \")\" | [a-z]*",
                                  &matcher_limits_default);
        uint32_t bits[(BYTES + 2 + 31) / 32];

        (void)state;
        assert_int_equal(matcher_mask(rig.matcher, bits), MATCHER_FINE);
        assert_int_equal(bits[8], 1);
        check_legal(&rig, "");
        assert_int_equal(matcher_take(rig.matcher, 257), MATCHER_ILLEGAL);
        assert_int_equal(matcher_take(rig.matcher, 255), MATCHER_ILLEGAL);
        assert_int_equal(matcher_take(rig.matcher, 256), MATCHER_FINE);
        take(&rig, "(a)");
        assert_int_equal(matcher_mask(rig.matcher, bits), MATCHER_FINE);
        assert_int_equal(bits[8], 2);
        assert_int_equal(matcher_take(rig.matcher, 257), MATCHER_FINE);
        assert_true(matcher_must_end(rig.matcher));
        matcher_back(rig.matcher, 2);
        check_legal(&rig, "abcdefghijklmnopqrstuvwxyz)");
        rig_deinit(&rig);
}

static void a_long_text_needs_no_more_memory_than_what_is_open(void **state)
{
        struct matcher_limits limits = matcher_limits_default;
        struct rig rig;

        (void)state;
        limits.items = 2000;
        limits.row_items = 100;
        rig = rig_schema("{\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": "
                         "{\"a\": {\"type\": \"integer\"}, \"b\": {}}, \"required\": [\"a\"], "
                         "\"additionalProperties\": false}}",
                         &limits);
        take(&rig, "[{\"a\":1}");
        for (int i = 0; i < 3000; i++) {
                take(&rig, ",{\"a\":12,\"b\":\"x\"}");
                matcher_back(rig.matcher, 8);
                check_legal(&rig, " \n\"");
                take(&rig, "\"b\":[[1]]}");
        }
        check_legal(&rig, " \n,]");
        take(&rig, "]");
        assert_true(matcher_must_end(rig.matcher));
        rig_deinit(&rig);
}

static void goes_back_as_far_as_it_says(void **state)
{
        struct matcher_limits limits = matcher_limits_default;
        struct rig rig;

        (void)state;
        limits.back_max = 4;
        rig = rig_gbnf("root ::= [a-z]+ \"!\"", &limits);
        assert_int_equal(matcher_back_most(rig.matcher), 0);
        take(&rig, "ab");
        assert_int_equal(matcher_back_most(rig.matcher), 2);
        matcher_back(rig.matcher, 2);
        check_legal(&rig, "abcdefghijklmnopqrstuvwxyz");
        take(&rig, "abcdef!");
        assert_int_equal(matcher_back_most(rig.matcher), 4);
        matcher_back(rig.matcher, 1);
        check_legal(&rig, "abcdefghijklmnopqrstuvwxyz!");
        rig_deinit(&rig);
}

static void a_copy_goes_its_own_way(void **state)
{
        struct rig rig =
                rig_schema("{\"enum\": [\"left\", \"lift\", [1, 2]]}", &matcher_limits_default);
        struct matcher *copy = matcher_new(rig.grammar, rig.trie, &matcher_limits_default);

        (void)state;
        take(&rig, "\"l");
        matcher_copy(copy, rig.matcher);
        take(&rig, "eft\"");
        assert_int_equal(matcher_take(copy, 'i'), MATCHER_FINE);
        assert_int_equal(matcher_back_most(copy), 3);
        assert_true(matcher_must_end(rig.matcher));
        assert_false(matcher_can_end(copy));
        matcher_free(copy);
        rig_deinit(&rig);
}

static void a_spent_budget_is_told_and_stays(void **state)
{
        struct matcher_limits limits = matcher_limits_default;
        uint32_t bits[(BYTES + 2 + 31) / 32];
        struct rig rig;

        (void)state;
        limits.row_items = 4;
        rig = rig_gbnf("root ::= a | b | c | d\na ::= \"x\" a? \"1\"\nb ::= \"x\" b? \"2\"\n"
                       "c ::= \"x\" c? \"3\"\nd ::= \"x\" d? \"4\"",
                       &limits);
        assert_int_equal(matcher_mask(rig.matcher, bits), MATCHER_SPENT);
        assert_string_equal(matcher_why(rig.matcher),
                            "too many rules of the grammar match at one place");
        assert_int_equal(matcher_take(rig.matcher, 'x'), MATCHER_SPENT);
        rig_deinit(&rig);
}

static void a_text_that_nests_too_deeply_is_illegal(void **state)
{
        struct matcher_limits limits = matcher_limits_default;
        struct rig rig;

        (void)state;
        limits.depth = 20;
        rig = rig_gbnf("root ::= \"(\" root* \")\"", &limits);
        take(&rig, "((()(");
        for (int i = 0; i < 20 && matcher_take(rig.matcher, '(') == MATCHER_FINE; i++)
                ;
        check_legal(&rig, ")");
        rig_deinit(&rig);
}

static void hostile_vocabularies_are_read(void **state)
{
        static char large[70000];
        struct token_text texts[] = { { "a", 1 },  { "\xff", 1 }, { large, sizeof(large) },
                                      { "a", 1 },  { NULL, 0 },   { "a\0b", 3 },
                                      { "ab", 2 }, { large, 128 } };
        struct token_trie *trie = token_trie_new(texts, 8, NULL, 0);
        struct token_trie *empty = token_trie_new(NULL, 0, NULL, 0);
        struct grammar *grammar;
        struct matcher *matcher;
        uint32_t bits[1];
        char why[100];

        (void)state;
        assert_int_equal(trie->left_out, 2);
        assert_int_equal(
                regex_compile("[^b]*", 5, &grammar_limits_default, &grammar, why, sizeof(why)), 0);
        matcher = matcher_new(grammar, trie, &matcher_limits_default);
        matcher_reset(matcher);
        assert_int_equal(matcher_mask(matcher, bits), MATCHER_FINE);
        assert_int_equal(bits[0], 1 | 1 << 3 | 1 << 7);
        assert_int_equal(matcher_take(matcher, 1), MATCHER_ILLEGAL);
        assert_int_equal(matcher_take(matcher, 3), MATCHER_FINE);
        matcher_free(matcher);
        matcher = matcher_new(grammar, empty, &matcher_limits_default);
        matcher_reset(matcher);
        assert_int_equal(matcher_mask(matcher, bits), MATCHER_FINE);
        matcher_free(matcher);
        grammar_free(grammar);
        token_trie_free(trie);
        token_trie_free(empty);
}

static void one_grammar_has_parts_of_several_kinds(void **state)
{
        static const struct regex_text choices[] = { { "yes", 3 }, { "no", 2 } };
        static const struct json_schema_options options;
        const char *schema = "{\"enum\":[1,\"x\"]}", *gbnf = "root ::= \"(\" root* \")\"";
        struct grammar *grammar = grammar_new(&grammar_limits_default);
        uint32_t parts[4], root;
        char why[200];
        struct rig rig;

        (void)state;
        assert_int_equal(regex_add(grammar, "[a-c]+", 6, &parts[0], why, sizeof(why)), 0);
        assert_int_equal(json_schema_add(grammar, schema, strlen(schema), &options, &parts[1], why,
                                         sizeof(why)),
                         0);
        assert_int_equal(gbnf_add(grammar, gbnf, strlen(gbnf), &parts[2], why, sizeof(why)), 0);
        assert_int_equal(choices_add(grammar, choices, 2, &parts[3], why, sizeof(why)), 0);
        root = grammar_rule(grammar);
        grammar_add(grammar, root, parts, 4);
        assert_int_equal(grammar_seal(grammar, root, why, sizeof(why)), 0);
        rig = rig_of(grammar, &matcher_limits_default);
        take(&rig, "cab");
        check_legal(&rig, "\"1abc");
        take(&rig, "1(()");
        check_legal(&rig, "()");
        take(&rig, ")");
        check_legal(&rig, "ny");
        take(&rig, "no");
        assert_true(matcher_must_end(rig.matcher));
        rig_deinit(&rig);
}

static void parts_of_a_grammar_share_its_budgets(void **state)
{
        static const struct json_schema_options options;
        struct grammar_limits limits = grammar_limits_default;
        const char *schema = "{\"maxLength\":100,\"minLength\":1}";
        struct grammar *grammar;
        uint32_t symbol;
        char why[200];
        int r = 0;

        (void)state;
        limits.symbols = 2000;
        grammar = grammar_new(&limits);
        for (int i = 0; i < 1000 && r == 0; i++)
                r = json_schema_add(grammar, schema, strlen(schema), &options, &symbol, why,
                                    sizeof(why));
        assert_int_equal(r, 0);
        assert_int_equal(grammar_seal(grammar, symbol, why, sizeof(why)), -E2BIG);
        assert_string_equal(why, "the grammar has more symbols than the limit");
        grammar_free(grammar);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(tells_the_text_that_must_come),
                cmocka_unit_test(control_tokens_are_legal_where_the_grammar_names_them),
                cmocka_unit_test(a_long_text_needs_no_more_memory_than_what_is_open),
                cmocka_unit_test(goes_back_as_far_as_it_says),
                cmocka_unit_test(a_copy_goes_its_own_way),
                cmocka_unit_test(a_spent_budget_is_told_and_stays),
                cmocka_unit_test(a_text_that_nests_too_deeply_is_illegal),
                cmocka_unit_test(hostile_vocabularies_are_read),
                cmocka_unit_test(one_grammar_has_parts_of_several_kinds),
                cmocka_unit_test(parts_of_a_grammar_share_its_budgets),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
