/* Which turns may follow an answer on its handle, and with which templates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bridge/core/history-shape.h"
#include "tests/unit/call-rig.h"

#define WITH_TEXT (SHAPE_USER | SHAPE_CONTENT)

/* A conversation whose turns are the letters of a word. */
struct talk {
        struct arena arena;
        struct conversation conversation;
        const struct turn *last;
};

/*
 * s, u: system, user; a: an answer; c: with a call alone, t: with a call and reasoning, r: with
 * reasoning and text; o: a result.  The one behind which `|` stands is the last answer.
 */
static void begin(struct talk *talk, const char *turns)
{
        struct smv_generate options = { SMV_SIZE(smv_generate) };

        *talk = (struct talk){ 0 };
        talk->conversation.arena = &talk->arena;
        for (const char *at = turns; *at; at++) {
                struct turn *turn;

                if (*at == '|') {
                        talk->last = talk->conversation.last_turn;
                        continue;
                }
                turn = conversation_turn(&talk->conversation, *at == 's'   ? TURN_SYSTEM
                                                              : *at == 'u' ? TURN_USER
                                                              : *at == 'o' ? TURN_TOOL
                                                                           : TURN_ASSISTANT);
                if (!strchr("ct", *at))
                        turn->content = TEXT("text");
                if (strchr("tr", *at))
                        turn->reasoning = TEXT("thought");
                if (strchr("ct", *at))
                        conversation_call(&talk->conversation, turn)->name = TEXT("call");
        }
        assert_int_equal(conversation_pack(&talk->conversation, &options), 0);
}

static unsigned shape_of(const char *turns)
{
        struct talk talk;
        unsigned shape;

        begin(&talk, turns);
        shape = history_shape(&talk.conversation, talk.last);
        arena_deinit(&talk.arena);
        return shape;
}

static void takes_the_messages_of_a_user_and_results_of_tools(void **state)
{
        (void)state;
        assert_int_equal(shape_of("ua|u"), WITH_TEXT);
        assert_int_equal(shape_of("suauua|uu"), WITH_TEXT);
        assert_int_equal(shape_of("uc|o"), SHAPE_RESULTS);
        assert_int_equal(shape_of("uc|oou"), SHAPE_RESULTS | SHAPE_USER);
        assert_int_equal(shape_of("ua|su"), WITH_TEXT); /* it is joined to the user's message */
        assert_int_equal(shape_of("ua|s"), WITH_TEXT);  /* ... or becomes one */
}

static void takes_results_but_no_user_behind_reasoning(void **state)
{
        (void)state;
        assert_int_equal(shape_of("ut|o"), SHAPE_RESULTS | SHAPE_REASONING);
        assert_int_equal(shape_of("utoc|o"), SHAPE_RESULTS);
        assert_int_equal(shape_of("ur|u"), 0);
        assert_int_equal(shape_of("utoa|u"), 0);
        assert_int_equal(shape_of("ut|ou"), 0);
}

static void takes_nothing_that_does_not_follow_one_answer(void **state)
{
        (void)state;
        assert_int_equal(shape_of("u|u"), 0);
        assert_int_equal(shape_of("s|u"), 0);
        assert_int_equal(shape_of("uca|u"), 0);
        assert_int_equal(shape_of("ua|"), 0);
        assert_int_equal(shape_of("ua|a"), 0);
        assert_int_equal(shape_of("ua|uau"), 0);
        assert_int_equal(shape_of("ua|o"), 0);
        assert_int_equal(shape_of("uc|uo"), 0);
}

static void asks_with_a_sample_of_the_same_shape(void **state)
{
        static const char *const wanted[] = {
                "[{\"role\":\"system\",\"content\":\"text\"},"
                "{\"role\":\"user\",\"content\":\"a question\"}]",
                "[{\"role\":\"system\",\"content\":\"text\"},"
                "{\"role\":\"user\",\"content\":\"a question\"},"
                "{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":"
                "\"an earlier "
                "thought\",\"tool_calls\":[{\"id\":\"call12345\",\"type\":\"function\","
                "\"function\":{\"name\":\"an_earlier_call\",\"arguments\":{}}}]},"
                "{\"role\":\"tool\",\"content\":\"a result\",\"tool_call_id\":\"call12345\"}]",
        };
        struct smv_packed packed;
        struct talk talk;

        (void)state;
        begin(&talk, "sut|o");
        for (int whole = 0; whole < 2; whole++) {
                struct bytes text = { 0 };

                assert_int_equal(history_shape_pack(&talk.conversation,
                                                    SHAPE_RESULTS | SHAPE_REASONING, whole,
                                                    &packed),
                                 0);
                call_rig_unpack(&packed, &text);
                assert_string_equal(text.at, wanted[whole]);
                bytes_deinit(&text);
        }
        arena_deinit(&talk.arena);
}

static bool is_steady(unsigned shape, const char *question, const char *whole)
{
        return history_shape_is_steady(shape, (struct text){ question, strlen(question) },
                                       (struct text){ whole, strlen(whole) });
}

/* Each is what a template of models in use does. */
static void knows_templates_that_show_earlier_turns_differently(void **state)
{
        (void)state;
        assert_true(is_steady(WITH_TEXT, "U:a question.A:",
                              "U:a question.A:an earlier answer.U:a second question.A:"));
        /* a blank before the answer; an empty thought in the question alone, or in the whole */
        assert_false(is_steady(WITH_TEXT, "[a question]", "[a question] an earlier answer[..."));
        assert_false(is_steady(WITH_TEXT, "U:a question.A:<think></think>",
                               "U:a question.A:an earlier answer.U:a second question.A:"));
        assert_false(is_steady(WITH_TEXT, "U:a question.A:",
                               "U:a question.A:<think></think>an earlier answer.U:..."));
        /* the tools stand before the last question */
        assert_false(is_steady(WITH_TEXT, "[tools]U:a question.A:",
                               "U:a question.A:an earlier answer.[tools]U:a second question.A:"));
        /* it does not show answers at all */
        assert_false(is_steady(WITH_TEXT, "U:a question.A:", "U:a question.A:"));
        assert_false(is_steady(WITH_TEXT, "U:a question.A:", "U:a"));
}

static void wants_reasoning_and_calls_to_be_shown(void **state)
{
        (void)state;
        assert_true(is_steady(SHAPE_RESULTS, "U.A:", "U.A:{an_earlier_call}T:a result.A:"));
        assert_false(is_steady(SHAPE_RESULTS, "U.A:", "U.A:T:a result.A:"));
        assert_true(is_steady(SHAPE_RESULTS | SHAPE_REASONING,
                              "U.A:", "U.A:<think>an earlier thought</think>{an_earlier_call}T:"));
        assert_false(is_steady(SHAPE_RESULTS | SHAPE_REASONING, "U.A:", "U.A:{an_earlier_call}T:"));
        assert_true(is_steady(SHAPE_RESULTS | SHAPE_REASONING | SHAPE_CONTENT, "U.A:<think>",
                              "U.A:<think>an earlier thought</think>an earlier answer"
                              "{an_earlier_call}T:"));
        assert_false(is_steady(SHAPE_RESULTS | SHAPE_REASONING | SHAPE_CONTENT, "U.A:<think>",
                               "U.A:<think>an earlier thought</think>{an_earlier_call}T:"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(takes_the_messages_of_a_user_and_results_of_tools),
                cmocka_unit_test(takes_results_but_no_user_behind_reasoning),
                cmocka_unit_test(takes_nothing_that_does_not_follow_one_answer),
                cmocka_unit_test(asks_with_a_sample_of_the_same_shape),
                cmocka_unit_test(knows_templates_that_show_earlier_turns_differently),
                cmocka_unit_test(wants_reasoning_and_calls_to_be_shown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
