/* The form of an answer: where its constraint begins, with and without reasoning. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/edge/answer-form.h"
#include "tests/grammar-accepts.h"
#include "tests/unit/parts-check.h"

/* Signs of a template whose marks of reasoning are <think> and </think>, and of gpt-oss. */
#define THINKS "<tool_call> <think> </think>"
#define SPEAKS "<|channel|>analysis <|start|> <|message|> <|end|> <|constrain|> <|call|>"

static struct {
        struct dialect dialect;
        struct served served;
        struct tokenizer *tokenizer;
} world;

static void open_world(const char *signs)
{
        const char *const templates[2] = { signs, NULL };

        assert_int_equal(tokenizer_open_bytes(300, &world.tokenizer), 0);
        world.dialect = open_dialect(templates);
        world.served = (struct served){ .tokenizer = world.tokenizer, .dialect = &world.dialect };
}

/* Is this a whole answer? */
static bool accepts(enum answer_reasoning reasoning, const char *description, const char *text)
{
        const struct answer_form form = { reasoning,
                                          { description, (uint32_t)strlen(description) },
                                          { 0 } };
        struct grammar *grammar = NULL;
        const char *field;
        char why[256] = "";
        bool whole;

        if (answer_form_compile(&world.served, &form, &grammar, &field, why, sizeof(why)))
                fail_msg("%s: %s", description, why);
        whole = grammar_accepts(grammar, text);
        grammar_free(grammar);
        return whole;
}

#define SEVEN "{\"schema\":{\"enum\":[7]}}"

static void without_parts_the_constraint_holds_from_the_first_token(void **state)
{
        (void)state;
        open_world(THINKS);
        assert_int_equal(answer_reasoning(&world.served, false, false), ANSWER_WITHOUT);
        assert_int_equal(answer_reasoning(&world.served, true, false), ANSWER_MAY_OPEN);
        assert_int_equal(answer_reasoning(&world.served, true, true), ANSWER_IS_OPEN);
        assert_true(accepts(ANSWER_WITHOUT, SEVEN, "7"));
        assert_false(accepts(ANSWER_WITHOUT, SEVEN, "<think>a</think>7"));
        tokenizer_close(world.tokenizer);
        world.served.dialect = NULL;
        assert_int_equal(answer_reasoning(&world.served, true, false), ANSWER_WITHOUT);
}

static void an_answer_may_reason_first(void **state)
{
        (void)state;
        open_world(THINKS);
        assert_true(accepts(ANSWER_MAY_OPEN, SEVEN, "7"));
        assert_true(accepts(ANSWER_MAY_OPEN, SEVEN, "<think>is it 8? no.\n</think>\n\n7"));
        assert_true(accepts(ANSWER_MAY_OPEN, SEVEN, "<think></think>7"));
        assert_false(accepts(ANSWER_MAY_OPEN, SEVEN, "<think>7"));
        assert_false(accepts(ANSWER_MAY_OPEN, SEVEN, "<think>a</think>\n\n\n7"));
        assert_false(accepts(ANSWER_MAY_OPEN, SEVEN, "<think>a</think>8"));
        assert_false(accepts(ANSWER_MAY_OPEN, SEVEN, "a</think>7"));
        assert_false(accepts(ANSWER_MAY_OPEN, SEVEN, "<think>a</think>7<think>"));
        tokenizer_close(world.tokenizer);
}

static void an_answer_that_begins_in_reasoning_must_end_it(void **state)
{
        (void)state;
        open_world(THINKS);
        assert_true(accepts(ANSWER_IS_OPEN, SEVEN, "hm <think> </think>7"));
        assert_true(accepts(ANSWER_IS_OPEN, SEVEN, "</think>\n7"));
        assert_false(accepts(ANSWER_IS_OPEN, SEVEN, "7"));
        assert_false(accepts(ANSWER_IS_OPEN, SEVEN, "a</think>b</think>7"));
        tokenizer_close(world.tokenizer);
}

static void the_answer_of_channels_is_the_final_message(void **state)
{
        static const char think[] = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
                                    "<|channel|>final<|message|>7";

        (void)state;
        open_world(SPEAKS);
        assert_int_equal(world.dialect.shape, SHAPE_CHANNELS);
        assert_int_equal(answer_reasoning(&world.served, true, false), ANSWER_MAY_OPEN);
        assert_true(accepts(ANSWER_MAY_OPEN, SEVEN, think));
        assert_true(accepts(ANSWER_MAY_OPEN, SEVEN, "<|channel|>final<|message|>7"));
        assert_false(accepts(ANSWER_MAY_OPEN, SEVEN, "7"));
        tokenizer_close(world.tokenizer);
}

/* ---- calls ---- */

#define TOOL                                                                                       \
        "{\"name\":\"f\",\"schema\":{\"type\":\"object\",\"properties\":{\"a\":{\"enum\":[1]}},"   \
        "\"required\":[\"a\"],\"additionalProperties\":false}}"
#define MUST "{\"required\":true,\"max\":0,\"tools\":[" TOOL "]}"
#define MAY  "{\"required\":false,\"max\":0,\"tools\":[" TOOL "]}"
#define CALL "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\":1}}\n</tool_call>"

static bool accepts_calls(enum answer_reasoning reasoning, const char *wish,
                          const char *description, const char *text)
{
        const struct answer_form form = {
                reasoning,
                { description, description ? (uint32_t)strlen(description) : 0 },
                { wish, (uint32_t)strlen(wish) },
        };
        struct grammar *grammar = NULL;
        const char *field;
        char why[256] = "";
        bool whole;

        if (answer_form_compile(&world.served, &form, &grammar, &field, why, sizeof(why)))
                fail_msg("%s: %s", wish, why);
        whole = grammar_accepts(grammar, text);
        grammar_free(grammar);
        return whole;
}

static void calls_may_follow_reasoning_or_must(void **state)
{
        (void)state;
        open_world(THINKS);
        assert_true(accepts_calls(ANSWER_WITHOUT, MUST, NULL, CALL));
        assert_true(accepts_calls(ANSWER_MAY_OPEN, MUST, NULL, "<think>hm</think>\n\n" CALL));
        assert_true(accepts_calls(ANSWER_IS_OPEN, MUST, NULL, "hm</think>" CALL "\n" CALL));
        assert_false(accepts_calls(ANSWER_IS_OPEN, MUST, NULL, "hm</think>Well"));
        assert_false(accepts_calls(ANSWER_IS_OPEN, MUST, NULL, "hm" CALL));
        assert_false(accepts_calls(ANSWER_MAY_OPEN, MUST, NULL, "I call. " CALL));
        assert_true(accepts_calls(ANSWER_MAY_OPEN, MAY, NULL, "I call. " CALL));
        assert_true(accepts_calls(ANSWER_MAY_OPEN, MAY, NULL, "<think>hm</think>No."));
        assert_false(accepts_calls(ANSWER_MAY_OPEN, MAY, NULL, CALL "and more"));
        assert_false(accepts_calls(ANSWER_MAY_OPEN, MAY, NULL, "<tool_call>\n{\"name\": \"g\""));
        tokenizer_close(world.tokenizer);
}

static void beside_a_constraint_the_answer_is_one_of_both(void **state)
{
        (void)state;
        open_world(THINKS);
        assert_true(accepts_calls(ANSWER_MAY_OPEN, MAY, SEVEN, "7"));
        assert_true(accepts_calls(ANSWER_MAY_OPEN, MAY, SEVEN, "<think>hm</think>" CALL));
        assert_false(accepts_calls(ANSWER_MAY_OPEN, MAY, SEVEN, "8"));
        assert_false(accepts_calls(ANSWER_MAY_OPEN, MAY, SEVEN, "7" CALL));
        tokenizer_close(world.tokenizer);
        open_world(SPEAKS);
        assert_true(accepts_calls(ANSWER_MAY_OPEN, MAY, SEVEN, "<|channel|>final<|message|>7"));
        assert_true(accepts_calls(ANSWER_MAY_OPEN, MAY, SEVEN,
                                  "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
                                  "<|channel|>commentary to=functions.f <|constrain|>json"
                                  "<|message|>{\"a\": 1}<|call|>"));
        tokenizer_close(world.tokenizer);
}

static void a_fault_in_a_schema_names_its_tool(void **state)
{
#define BAD "{\"name\":\"g\",\"schema\":{\"type\":\"object\",\"properties\":{\"b\":{\"foo\":1}}}}"
        static const char *const wishes[] = {
                "{\"required\":true,\"max\":1,\"tools\":[" TOOL "," BAD "]}",
                "{\"required\":false,\"max\":1,\"tools\":[" TOOL "," BAD "]}",
        };
        static const char *const descriptions[] = { "", SEVEN };
        static const char *const signs[] = { THINKS, SPEAKS, "<|python_tag|>" };

        (void)state;
        for (unsigned i = 0; i < 12; i++) {
                const char *wish = wishes[i % 2], *description = descriptions[i / 2 % 2];
                const struct answer_form form = { i % 2 ? ANSWER_MAY_OPEN : ANSWER_WITHOUT,
                                                  { description, (uint32_t)strlen(description) },
                                                  { wish, (uint32_t)strlen(wish) } };
                struct grammar *grammar = NULL;
                const char *field = NULL;
                char why[256] = "";

                open_world(signs[i / 4]);
                assert_int_equal(answer_form_compile(&world.served, &form, &grammar, &field, why,
                                                     sizeof(why)),
                                 -EINVAL);
                assert_string_equal(field, "tools");
                assert_string_equal(why,
                                    "tool \"g\": schema, at \"/properties/b/foo\": the keyword "
                                    "foo is not supported");
                tokenizer_close(world.tokenizer);
        }
}

static void a_fault_has_the_place_in_the_description(void **state)
{
        static const char wrong[] = "{\"tags\":[{\"begin\":\"<a>\",\"end\":\"</a>\",\"json\":true},"
                                    "{\"begin\":\"<b>\",\"end\":\"</b>\",\"schema\":{\"foo\":1}}]}";
        const struct answer_form form = { ANSWER_MAY_OPEN, { wrong, sizeof(wrong) - 1 }, { 0 } };
        struct grammar *grammar = NULL;
        const char *field = NULL;
        char why[256] = "";

        (void)state;
        open_world(THINKS);
        assert_int_equal(
                answer_form_compile(&world.served, &form, &grammar, &field, why, sizeof(why)),
                -EINVAL);
        assert_string_equal(field, "constraint");
        assert_string_equal(why, "tags[1]: schema, at \"/foo\": the keyword foo is not supported");
        tokenizer_close(world.tokenizer);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(without_parts_the_constraint_holds_from_the_first_token),
                cmocka_unit_test(an_answer_may_reason_first),
                cmocka_unit_test(an_answer_that_begins_in_reasoning_must_end_it),
                cmocka_unit_test(the_answer_of_channels_is_the_final_message),
                cmocka_unit_test(a_fault_has_the_place_in_the_description),
                cmocka_unit_test(calls_may_follow_reasoning_or_must),
                cmocka_unit_test(beside_a_constraint_the_answer_is_one_of_both),
                cmocka_unit_test(a_fault_in_a_schema_names_its_tool),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
