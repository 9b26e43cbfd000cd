#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/text/parts/probe.h"
#include "tests/scale.h"
#include "tests/unit/parts-check.h"

#define OPEN         "<tool_call>\n"
#define CLOSE        "\n</tool_call>"
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const char *const hermes[2] = { "<think> and <tool_call>", NULL };

static void check(const char *text, const char *wanted)
{
        const struct dialect dialect = open_dialect(hermes);

        check_with(&dialect, true, false, text, wanted);
}

static void check_tokens(const char *text, const char *wanted)
{
        const struct dialect dialect = with_tokens(open_dialect(hermes));

        check_with(&dialect, true, false, text, wanted);
}

/* ---- calls ---- */

static void reads_calls_and_the_text_around_them(void **state)
{
        (void)state;
        check("Hello.", "T\"Hello.\"");
        check("", "");
        check(OPEN "{\"name\": \"f\", \"arguments\": {\"a\": [1, {}]}}" CLOSE,
              "C0\"f\"A0\"{\"a\": [1, {}]}\"E0");
        check("I ask.\n" OPEN "{\"name\": \"f\", \"arguments\": {}}" CLOSE " Done.",
              "T\"I ask.\"C0\"f\"A0\"{}\"E0T\" Done.\"");
        /* one newline belongs to the mark, and no more */
        check("\n\n\n" OPEN "{\"name\": \"f\", \"arguments\": {}}" CLOSE "\n",
              "T\"\n\n\"C0\"f\"A0\"{}\"E0T\"\n\"");
        check(OPEN "{\"name\": \"f\", \"arguments\": {}}" CLOSE "\n" OPEN
                   "{\"name\": \"g\", \"arguments\": {\"x\": -1.5e3}}" CLOSE,
              "C0\"f\"A0\"{}\"E0C1\"g\"A1\"{\"x\": -1.5e3}\"E1");
        /* EXAONE writes no newlines */
        check("<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call><tool_call>{\"name\":\"g\","
              "\"arguments\":{}}</tool_call>",
              "C0\"f\"A0\"{}\"E0C1\"g\"A1\"{}\"E1");
}

/* vllm#40861: closers and openers in values are text of the value. */
static void strings_may_have_marks_and_braces(void **state)
{
        (void)state;
        check(OPEN
              "{\"name\": \"f\", \"arguments\": {\"a\": \"}</tool_call>{\\\"<tool_call>\"}}" CLOSE,
              "C0\"f\"A0\"{\"a\": \"}</tool_call>{\\\"<tool_call>\"}\"E0");
        check(OPEN "{\"name\": \"f\", \"arguments\": {\"a\\\\\": \"\\u00e9\\\\\"}}" CLOSE,
              "C0\"f\"A0\"{\"a\\\\\": \"\\u00e9\\\\\"}\"E0");
}

static void escapes_control_characters_in_strings(void **state)
{
        (void)state;
        check(OPEN "{\"name\": \"f\", \"arguments\": {\n\"a\": \"x\n\ty\x1f\"\n}}" CLOSE,
              "C0\"f\"A0\"{\n\"a\": \"x\\n\\ty\\u001f\"\n}\"E0");
        check(OPEN "{\"arguments\": {\"a\": \"\b\f\r\n\"}, \"name\": \"f\"}" CLOSE,
              "C0\"f\"A0\"{\"a\": \"\\b\\f\\r\\n\"}\"E0");
}

static void control_characters_between_held_arguments_are_blanks(void **state)
{
        (void)state;
        check(OPEN "{\"arguments\": {\n\t\"a\": \"x\ny\"\n}, \"name\": \"f\"}" CLOSE,
              "C0\"f\"A0\"{\n\t\"a\": \"x\\ny\"\n}\"E0");
}

static void keys_come_in_any_order_and_others_are_skipped(void **state)
{
        (void)state;
        check(OPEN "{\"arguments\": {\"a\": 1}, \"name\": \"f\"}" CLOSE,
              "C0\"f\"A0\"{\"a\": 1}\"E0");
        check(OPEN "{\"id\": 12, \"type\": \"function\", \"arguments\": {\"a\": 1}, \"x\": [{}], "
                   "\"name\": \"f\", \"strict\": true}" CLOSE,
              "C0\"f\"A0\"{\"a\": 1}\"E0");
        check(OPEN "{\"name\": \"f\", \"arguments\": {}, \"id\": \"x\", \"name\": 3}" CLOSE,
              "C0\"f\"A0\"{}\"E0");
        check(OPEN "{\"name\": \"f\", \"parameters\": {\"a\": 1}}" CLOSE,
              "C0\"f\"A0\"{\"a\": 1}\"E0");
}

static void arguments_are_never_empty(void **state)
{
        (void)state;
        check(OPEN "{\"name\": \"f\"}" CLOSE, "C0\"f\"A0\"{}\"E0");
        check(OPEN "{\"name\": \"f\", \"arguments\": null}" CLOSE, "C0\"f\"A0\"{}\"E0");
        check(OPEN "{\"arguments\": null, \"name\": \"f\"}" CLOSE, "C0\"f\"A0\"{}\"E0");
}

static void a_closing_mark_may_be_missing(void **state)
{
        (void)state;
        check(OPEN "{\"name\": \"f\", \"arguments\": {}}", "C0\"f\"A0\"{}\"E0");
        check(OPEN "{\"name\": \"f\", \"arguments\": {}}\n  ", "C0\"f\"A0\"{}\"E0");
        check(OPEN "{\"name\": \"f\", \"arguments\": {}}\n" OPEN "{\"name\": \"g\"}" CLOSE,
              "C0\"f\"A0\"{}\"E0C1\"g\"A1\"{}\"E1");
        check(OPEN "{\"name\": \"f\", \"arguments\": {}} Done", "C0\"f\"A0\"{}\"E0T\" Done\"");
        check(OPEN "{\"name\": \"f\", \"arguments\": {}}</tool_cal.",
              "C0\"f\"A0\"{}\"E0T\"</tool_cal.\"");
        /* the last brace, too */
        check(OPEN "{\"name\": \"f\", \"arguments\": {}" CLOSE "x", "C0\"f\"A0\"{}\"E0T\"x\"");
        check(OPEN "{\"name\": \"f\", \"arguments\": {}", "C0\"f\"A0\"{}\"E0");
}

static void what_cannot_be_read_is_text(void **state)
{
        static const char *const bodies[] = {
                "x",
                "[]",
                "{}",
                "{,",
                "{\"name\": \"\"}",
                "{\"name\": 3}",
                "{\"name\": \"a\\u0062\"}",
                "{\"name\": \"f\", \"name\": \"g\"}",
                "{\"name\": \"f\", \"arguments\": \"{}\"}", /* vllm#35421 */
                "{\"name\": \"f\", \"arguments\": [1]}",
                "{\"name\": \"f\", \"arguments\": nil}",
                "{\"name\": \"f\", \"x\": 01}",
                "{\"name\" \"f\"}",
                "{'name': 'f'}",
                "{\"arguments\": {\"a\": 1}}",
                "{\"arguments\": {\"a\": True}, \"name\": \"f\"}",
                "{\"arguments\": {}, \"arguments\": {}, \"name\": \"f\"}",
        };

        (void)state;
        for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
                const struct dialect dialect = open_dialect(hermes);
                char text[256], wanted[256];
                struct parts_rig rig;

                snprintf(text, sizeof(text), "A\n" OPEN "%s" CLOSE "B", bodies[i]);
                rig_begin(&rig, &dialect, true, false);
                divide(&rig, text, strlen(text), WHOLE);
                /* all bytes are there, in order, and some are marked */
                assert_non_null(strstr(rig.shown, "\"!"));
                assert_int_equal(rig.parts.flags, SMV_PARTS_UNPARSED);
                assert_int_equal(rig.parts.call_count, 0);
                snprintf(wanted, sizeof(wanted), "%s", rig.shown);
                rig_free(&rig);
                check_with(&dialect, true, false, text, wanted);
        }
        check("A\n" OPEN "x" CLOSE "B", "T\"A\"T\"\n" OPEN "\"!T\"x" CLOSE "B\"");
        check(OPEN "{\"name\": 3}" CLOSE, "T\"" OPEN "{\"name\": \"!T\"3}" CLOSE "\"");
}

static void arguments_that_cannot_be_read_are_cut(void **state)
{
        (void)state;
        check(OPEN "{\"name\": \"f\", \"arguments\": {\"a\": True}}" CLOSE,
              "C0\"f\"A0\"{\"a\": \"E0!/T\"True}}" CLOSE "\"");
        /* and the next call is read */
        check(OPEN "{\"name\": \"f\", \"arguments\": {a" CLOSE OPEN "{\"name\": \"g\"}" CLOSE,
              "C0\"f\"A0\"{\"E0!/T\"a" CLOSE "\"C1\"g\"A1\"{}\"E1");
        check(OPEN "{\"name\": \"f\", \"arguments\": {}, \"id\": x}" CLOSE,
              "C0\"f\"A0\"{}\"E0T\", \"id\": \"!T\"x}" CLOSE "\"");
}

static void a_call_is_cut_where_the_text_ends(void **state)
{
        (void)state;
        check(OPEN "{\"name\": \"f\", \"arguments\": {\"a\": \"b", "C0\"f\"A0\"{\"a\": \"b\"E0/");
        check("A\n" OPEN "{\"name\": \"f", "T\"A\"T\"\n" OPEN "{\"name\": \"f\"!");
        check("A\n<tool_c", "T\"A\n<tool_c\"");
        check("A\n", "T\"A\n\"");
        check("<", "T\"<\"");
}

static void a_held_call_has_a_limit(void **state)
{
        const struct dialect dialect = open_dialect(hermes);
        size_t head = strlen(OPEN "{\"arguments\": {\"a\": \"");
        char text[3 * PARTS_HELD_MAX];

        (void)state;
        for (size_t more = 0; more < 2 * PARTS_HELD_MAX; more += 64) {
                bool fits = head + more + 40 < PARTS_HELD_MAX;
                struct parts_rig rig;

                if (!fits && head + more < PARTS_HELD_MAX)
                        continue;
                snprintf(text, sizeof(text), "%s%*s\"}, \"name\": \"f\"}" CLOSE,
                         OPEN "{\"arguments\": {\"a\": \"", (int)more, "");
                rig_begin(&rig, &dialect, true, false);
                divide(&rig, text, strlen(text), PIECES);
                assert_int_equal(rig.parts.call_count, fits);
                assert_int_equal(!strncmp(rig.shown, "T\"<tool_call>", 13), !fits);
                rig_free(&rig);
        }
        /* The name is limited, too. */
        for (uint32_t more = 0; more < 2; more++) {
                struct parts_rig rig;

                snprintf(text, sizeof(text), OPEN "{\"name\": \"%0*d\"}",
                         (int)(PARTS_NAME_MAX + more), 0);
                rig_begin(&rig, &dialect, true, false);
                divide(&rig, text, strlen(text), PIECES);
                assert_int_equal(rig.parts.call_count, !more);
                rig_free(&rig);
        }
}

static void calls_are_text_if_none_were_offered(void **state)
{
        const struct dialect dialect = open_dialect(hermes);
        const struct dialect none = open_dialect((const char *const[2]){ NULL, NULL });

        (void)state;
        check_with(&dialect, false, false, "A\n" OPEN "{\"name\": \"f\"}" CLOSE,
                   "T\"A\n" OPEN "{\"name\": \"f\"}" CLOSE "\"");
        check_with(&none, true, false, "<think>A\n" OPEN "{\"name\": \"f\"}" CLOSE,
                   "T\"<think>A\n" OPEN "{\"name\": \"f\"}" CLOSE "\"");
}

/* ---- other dialects ---- */

static const char *const mistral_v3[2] = { "[TOOL_CALLS]", NULL };
static const char *const mistral_v11[2] = { "[TOOL_CALLS] [CALL_ID] [ARGS]", NULL };
static const char *const mistral_v13[2] = { "[TOOL_CALLS] [ARGS] [THINK]", NULL };
static const char *const llama[2] = { "<|python_tag|>", NULL };
static const char *const deepseek[2] = { "<\uff5ctool\u2581sep\uff5c> ```json <think>", NULL };
static const char *const qwen[2] = { "<tool_call> <function= <parameter= <think>", NULL };
static const char *const glm[2] = { "<tool_call> <arg_key>", NULL };
static const char *const minimax[2] = { "<minimax:tool_call>", NULL };
static const char *const dsml[2] = { "\uff5cDSML\uff5cfunction_calls> <think>", NULL };
static const char *const lfm[2] = { "<|tool_call_start|>", NULL };
static const char *const llama4[2] = { "<|python_start|>", NULL };
static const char *const gemma[2] = { "<|tool_call>call: <|channel>", NULL };
static const char *const apertus[2] = { "<|tools_prefix|>", NULL };
static const char *const functools[2] = { "functools[", NULL };
static const char *const functionary[2] = { "<function= has_code_interpreter", NULL };
static const char *const minicpm[2] = { "<function name=\" <param name=\" <think>", NULL };
static const char *const harmony[2] = { "<|channel|> <|message|>", NULL };
static const char *const kimi[2] = { "<|tool_calls_section_begin|> <think>", NULL };
static const char *const command[2] = { "<|START_ACTION|> <|START_RESPONSE|> <|START_THINKING|>",
                                        NULL };

/* With marks that are text, and with tokens: `tokens` is the same text with their bytes. */
static void check_both(const char *const templates[2], const char *text, const char *tokens,
                       const char *wanted)
{
        const struct dialect marks = open_dialect(templates), ids = with_tokens(marks);

        check_with(&marks, true, false, text, wanted);
        check_with(&ids, true, false, tokens, wanted);
}

static void reads_the_calls_of_mistral(void **state)
{
        const struct dialect v11 = open_dialect(mistral_v11), v13 = open_dialect(mistral_v13);
        const struct dialect ids = with_tokens(v13);

        (void)state;
        check_both(mistral_v13, "Yes.[TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g[ARGS]{}",
                   "Yes.\x01"
                   "f\x06{\"a\": 1}\x01g\x06{}",
                   "T\"Yes.\"C0\"f\"A0\"{\"a\": 1}\"E0C1\"g\"A1\"{}\"E1");
        check_both(mistral_v11, "[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS] {\"a\": \"[ARGS]\"}x",
                   "\x01"
                   "f\x05"
                   "abcdefghi\x06 {\"a\": \"[ARGS]\"}x",
                   "C0\"f\"A0\"{\"a\": \"[ARGS]\"}\"E0T\"x\"");
        check_both(mistral_v13, "[TOOL_CALLS] f {}", "\x01 f {}", "C0\"f\"A0\"{}\"E0");
        check_both(mistral_v13, "[THINK]a[/THINK]b[TOOL_CALLS]f[ARGS]{",
                   "\x03"
                   "a\x04"
                   "b\x01"
                   "f\x06{",
                   "R\"a\"T\"b\"C0\"f\"A0\"{\"E0/");
        /* marks out of place */
        check_with(&v13, true, false, "[TOOL_CALLS]f[CALL_ID]x[ARGS]{}",
                   "T\"[TOOL_CALLS]f[\"!T\"CALL_ID]x[ARGS]{}\"");
        check_with(&v11, true, false, "[TOOL_CALLS]f[ARGS][ARGS]{}",
                   "T\"[TOOL_CALLS]f[ARGS]\"!T\"[ARGS]{}\"");
        check_with(&v13, true, false, "[TOOL_CALLS][ARGS]{}", "T\"[TOOL_CALLS]\"!T\"[ARGS]{}\"");
        check_with(&v13, true, false, "a[ARGS]{}", "T\"a[ARGS]{}\"");
        check_with(&ids, true, false, "\x01\x06{}", "T\"[TOOL_CALLS]\"!T\"[ARGS]{}\"");
        check_with(&ids, true, false, "a\x06{}", "T\"a[ARGS]{}\"");
}

static void reads_a_list_of_calls(void **state)
{
        (void)state;
        check_both(mistral_v3,
                   "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": [1]}, \"id\": "
                   "\"abcdefghi\"}, {\"arguments\": {}, \"name\": \"g\"}]",
                   "\x01 [{\"name\": \"f\", \"arguments\": {\"a\": [1]}} ,\n"
                   "{\"name\": \"g\"} ]",
                   "C0\"f\"A0\"{\"a\": [1]}\"E0C1\"g\"A1\"{}\"E1");
        check_both(mistral_v3, "[TOOL_CALLS][{\"name\": \"f\"}, 3]", "\x01[{\"name\": \"f\"}, 3]",
                   "C0\"f\"A0\"{}\"E0T\", \"!T\"3]\"");
        check_both(mistral_v3, "[TOOL_CALLS][{\"name\": \"f\"}", "\x01[{\"name\": \"f\"}",
                   "C0\"f\"A0\"{}\"E0");
        check_both(mistral_v3, "[TOOL_CALLS][]", "\x01[]", "T\"[TOOL_CALLS][\"!T\"]\"");
}

/* The same text in both dialects: there is no mark in it. */
static void check_llama(const char *text, const char *wanted)
{
        check_both(llama, text, text, wanted);
}

/* A call of Llama has a mark or none; other JSON is an answer. */
static void reads_the_calls_of_llama(void **state)
{
        (void)state;
        check_both(llama, "<|python_tag|>{\"name\": \"f\", \"parameters\": {\"a\": 1}}",
                   "\x01{\"name\": \"f\", \"parameters\": {\"a\": 1}}",
                   "C0\"f\"A0\"{\"a\": 1}\"E0");
        check_both(llama, "<|python_tag|>brave_search.call(query=\"x\")",
                   "\x01"
                   "brave_search.call(query=\"x\")",
                   "T\"<|python_tag|>\"!T\"brave_search.call(query=\"x\")\"");
        check_llama("{\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}",
                    "C0\"f\"A0\"{}\"E0");
        check_llama("{\"name\": \"Ann\"}", "T\"{\"name\": \"Ann\"}\"");
        check_llama("{\"name\": [1]}", "T\"{\"name\": [1]}\"");
        check_llama("{\"name\": \"f", "T\"{\"name\": \"f\"");
        check_llama("So: {\"name\": \"f\", \"parameters\": {}}",
                    "T\"So: {\"name\": \"f\", \"parameters\": {}}\"");
        check_llama("<|python{}", "T\"<|python{}\"");
        check_llama(
                "{\"name\": \"f\", \"parameters\": {}}\n{\"name\": \"g\", \"parameters\": {}}; x",
                "C0\"f\"A0\"{}\"E0T\"\n\"C1\"g\"A1\"{}\"E1T\"; x\"");
}

/* ---- reasoning ---- */

static void reads_reasoning(void **state)
{
        (void)state;
        check("<think>\nI see.\n</think>\n\nYes.", "R\"I see.\"T\"Yes.\"");
        check("<think>I see.</think>Yes.", "R\"I see.\"T\"Yes.\"");
        check("<think>\n\n</think>\n\nYes.", "T\"Yes.\"");
        check("<think>\n\n</think>\n\n\nYes.", "T\"\nYes.\"");
        check("\n<think>a</think>b", "R\"a\"T\"b\"");
        check("<think>\n\na\n\n</think>", "R\"\na\n\"");
}

/* Never closed, opened twice, not opened at all: all of that is legal. */
static void reasoning_may_have_any_form(void **state)
{
        const struct dialect dialect = open_dialect(hermes);

        (void)state;
        check("<think>\nI see", "R\"I see\"");
        check("<think>\nI see\n</thi", "R\"I see\n</thi\"");
        check("<think>a</think>\n\n<think>b</think>c", "R\"ab\"T\"c\"");
        check("<think>a <think>b</think>c", "R\"a <think>b\"T\"c\"");
        check("a</think>b", "T\"a</think>b\"");
        check("Write <think> here.", "T\"Write <think> here.\"");
        check_with(&dialect, true, true, "I see.\n</think>\n\nYes.", "R\"I see.\"T\"Yes.\"");
        check_with(&dialect, true, true, "I see.", "R\"I see.\"");
        check_with(&dialect, true, true, "<think>\nI see.</think>", "R\"<think>\nI see.\"");
}

static void calls_follow_reasoning_and_are_text_in_it(void **state)
{
        (void)state;
        check("<think>\n" OPEN "{\"name\": \"f\"}" CLOSE "\n</think>\n\n" OPEN
              "{\"name\": \"g\"}" CLOSE "\n<think>x</think>",
              "R\"" OPEN "{\"name\": \"f\"}" CLOSE "\"C0\"g\"A0\"{}\"E0R\"x\"");
}

static void counts_the_tokens_of_reasoning(void **state)
{
        const struct dialect text = open_dialect(hermes), tokens = with_tokens(text);
        static const char *const pieces[] = { "<th", "ink>", "\n", "a", "b", "</", "think>", "c" };
        struct parts_rig rig;

        (void)state;
        rig_begin(&rig, &text, true, false);
        for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++)
                rig_feed(&rig, pieces[i], strlen(pieces[i]));
        rig_end(&rig);
        assert_int_equal(rig.parts.reasoning_tokens, 7);
        rig_free(&rig);

        rig_begin(&rig, &tokens, true, false);
        divide(&rig,
               "\x03"
               "ab\x04"
               "c",
               5, BYTES);
        assert_int_equal(rig.parts.reasoning_tokens, 4);
        rig_free(&rig);
}

/* ---- marks that are tokens ---- */

static void finds_control_tokens_by_their_ids_only(void **state)
{
        (void)state;
        check_tokens("\x03\nI see.\n\x04\n\nOne:\n\x01\n{\"name\": \"f\"}\n\x02\n\x01"
                     "{\"name\": \"g\"}\x02",
                     "R\"I see.\"T\"One:\"C0\"f\"A0\"{}\"E0C1\"g\"A1\"{}\"E1");
        /* the same characters in other tokens are text */
        check_tokens("<think>A\n" OPEN "{\"name\": \"f\"}" CLOSE,
                     "T\"<think>A\n" OPEN "{\"name\": \"f\"}" CLOSE "\"");
        check_tokens("\x01{\"name\": \"f\", \"arguments\": {\"a\": \"</tool_call>\"}}\x02",
                     "C0\"f\"A0\"{\"a\": \"</tool_call>\"}\"E0");
}

static void a_token_out_of_place_is_text(void **state)
{
        (void)state;
        check_tokens("a\x02"
                     "b\x03"
                     "c\x04",
                     "T\"a</tool_call>b<think>c</think>\"");
        check_tokens("\x03"
                     "a\x01"
                     "b\x04",
                     "R\"a<tool_call>b\"");
        check_tokens("\x01{\"name\": \x01{\"name\": \"f\"}\x02",
                     "T\"<tool_call>{\"name\": \"!C0\"f\"A0\"{}\"E0");
        check_tokens("\x01{\"name\": \"f\", \"arguments\": {\"a\": \"\x02"
                     "b",
                     "C0\"f\"A0\"{\"a\": \"\"E0!/T\"</tool_call>b\"");
        check_tokens("\x01{\"name\": \"f\", \"arguments\": {}\x02"
                     "b",
                     "C0\"f\"A0\"{}\"E0T\"b\"");
        check_tokens("\x01{\"name\": \"f\"}\n\x03"
                     "a",
                     "C0\"f\"A0\"{}\"E0R\"a\"");
}

/* ---- forks ---- */

static void a_fork_goes_on_where_its_parent_is(void **state)
{
        static const char text[] =
                "<think>a</think>b\n" OPEN "{\"name\": \"f\", \"arguments\": {\"a\": \"b\"}}" CLOSE;
        const struct dialect dialect = open_dialect(hermes);

        (void)state;
        for (size_t cut = 0; cut <= strlen(text); cut++) {
                struct parts_rig parent, fork;

                rig_begin(&parent, &dialect, true, false);
                rig_feed(&parent, text, cut);
                rig_begin(&fork, &dialect, true, false);
                /* as if it had shown what its parent has */
                rig_write(&fork, parent.shown ? parent.shown : "", parent.count);
                assert_int_equal(
                        bytes_add(&fork.arguments, parent.arguments.at, parent.arguments.count), 0);
                fork.open = parent.open;
                fork.last = parent.last;
                parts_follow(&fork.parts, &parent.parts, NULL);
                rig_feed(&fork, text + cut, strlen(text) - cut);
                rig_end(&fork);
                assert_string_equal(fork.shown, "R\"a\"T\"b\"C0\"f\"A0\"{\"a\": \"b\"}\"E0");
                rig_free(&parent);
                rig_free(&fork);
        }
}

/* ---- random texts ---- */

/* clang-format off */
static const char *const words[] = {
        "<tool_call>", "</tool_call>", "<think>", "</think>", "\n", "\n", " ", "{", "}", "\"",
        "\"name\": \"f\"", "\"arguments\": {", "\"a\": ", "1", "-2.5e7", "[", "]", ",", ":", "\\",
        "true", "null", "\"b\"", "x", "<", ">", "tool", "\\u00e9", "\t", "\x01", "\x02", "\x03",
        "\x04", "\x05", "\x06", "\"arguments\": ", "\"name\": ", "[TOOL_CALLS]", "[ARGS]",
        "[CALL_ID]", "f", "[THINK]", "[/THINK]", "<|python_tag|>", "f[ARGS]{", "{}", "[{", "}]",
        "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"", "\"}}\n</tool_call>",
        "{\"name\": \"f\"}", "{\"name\": \"f\", \"arguments\": {", "0", "e", "-", ".", "\"", "\"}",
        "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>",
        "<|tool_call_end|>", "<|tool_call_argument_begin|>", "functions.f:0", "```", "```json\n",
        "<\uff5ctool\u2581calls\u2581begin\uff5c>", "<\uff5ctool\u2581calls\u2581end\uff5c>",
        "<\uff5ctool\u2581call\u2581begin\uff5c>", "<\uff5ctool\u2581call\u2581end\uff5c>",
        "<\uff5ctool\u2581sep\uff5c>", "<|START_ACTION|>", "<|END_ACTION|>", "<|START_RESPONSE|>",
        "<|END_RESPONSE|>", "<|START_THINKING|>", "<|END_THINKING|>", "\"tool_name\": \"f\"",
        "<function=", "<function=f>", "<parameter=", "<parameter=a>", "</parameter>", "</function>",
        "\n</parameter>\n", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
        "<arg_key>a</arg_key><arg_value>", "<minimax:tool_call>", "</minimax:tool_call>",
        "<invoke name=\"f\">", "<parameter name=\"a\">", "</invoke>", "\" string=\"true\">",
        "<\uff5cDSML\uff5cfunction_calls>\n", "</\uff5cDSML\uff5cfunction_calls>",
        "<\uff5cDSML\uff5cinvoke name=\"f\">", "</\uff5cDSML\uff5cinvoke>",
        "<\uff5cDSML\uff5cparameter name=\"a\" string=\"true\">", "</\uff5cDSML\uff5cparameter>",
        "<\uff5cDSML\uff5cparameter name=\"a\" string=\"false\">",
        "<|tool_call_start|>[", "f(", "f(a=", ")", "a=", "'", "True", "None", "\\x4", "\\u00e9",
        "<|tool_call>call:f{", "a:", "<|\"|>", "<tool_call|>", "<|channel>", "thought", "<channel|>",
        "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>", "analysis",
        "commentary", " to=functions.f", "<|channel|>analysis<|message|>", "\x12", "\x13", "\x14",
        "<|channel|>commentary to=functions.f<|message|>{", "\x15", "\x16", "\x17",
        "<|tools_prefix|>[", "{\"f\": {", "<|tools_suffix|>", "functools[", "<function=f>{",
        "<function name=\"f\">", "<param name=\"a\">", "</param>",
        "\x11", "\x07", "\x08", "\x0e", "\x0f", "\x10",
};
/* clang-format on */

static size_t make_text(char *text, size_t size)
{
        size_t bytes = 0;

        for (uint32_t left = random_below(40); left; left--) {
                const char *word = words[random_below(sizeof(words) / sizeof(*words))];

                if (bytes + strlen(word) > size)
                        break;
                memcpy(text + bytes, word, strlen(word));
                bytes += strlen(word);
        }
        if (bytes && !random_below(3))
                text[random_below((uint32_t)bytes)] = (char)random_below(256);
        return bytes;
}

static void the_cuts_of_a_text_do_not_matter(void **state)
{
        static const char *const *const all[] = {
                hermes,  mistral_v3, mistral_v11, mistral_v13, llama,   deepseek, kimi,
                command, qwen,       glm,         minimax,     dsml,    lfm,      gemma,
                harmony, apertus,    functools,   functionary, minicpm,
        };
        struct dialect dialects[2 * COUNT(all)];
        char text[1024];

        (void)state;
        for (size_t i = 0; i < COUNT(all); i++) {
                dialects[2 * i] = open_dialect(all[i]);
                dialects[2 * i + 1] = with_tokens(dialects[2 * i]);
        }
        seed = 20261127;
        for (uint32_t n = scaled(20000, 2000000); n; n--) {
                const struct dialect *dialect =
                        &dialects[random_below(random_below(4) ? 2 * COUNT(all) : 2)];
                bool calls = random_below(8), in_reasoning = !random_below(4);
                size_t bytes = make_text(text, sizeof(text));
                struct parts_rig whole, other;

                rig_begin(&whole, dialect, calls, in_reasoning);
                divide(&whole, text, bytes, WHOLE);
                for (unsigned way = BYTES; way <= PIECES; way++) {
                        rig_begin(&other, dialect, calls, in_reasoning);
                        divide(&other, text, bytes, way);
                        assert_string_equal(other.shown, whole.shown);
                        assert_int_equal(other.parts.flags, whole.parts.flags);
                        assert_int_equal(other.parts.call_count, whole.parts.call_count);
                        rig_free(&other);
                }
                rig_free(&whole);
        }
}

/* The shortest texts for their parts, many times in one token: the rig has the promised room. */
static void the_densest_texts_have_room(void **state)
{
        static const struct {
                const char *const *templates;
                const char *first, *then;
        } dense[] = {
                { hermes, "", "<tool_call>{\"name\":\"f\"}x" },
                { hermes, "", "<tool_call>x" },
                { hermes, "", "<think>x</think>" },
                { mistral_v13, "", "[TOOL_CALLS]f{x" },
                { mistral_v13, "", "[TOOL_CALLS]f{}x" },
                { mistral_v13, "", "[TOOL_CALLS]x]" },
                { mistral_v3, "", "[TOOL_CALLS][{\"name\":\"f\"}]x" },
                { mistral_v3, "[TOOL_CALLS][", "{\"name\":\"f\"}," },
                { llama, "", "{\"name\":\"f\",\"parameters\":{}}" },
                { llama, "", "<|python_tag|>x" },
                { qwen, "", "<function=f></function>x" },
                { qwen, "", "<function=f><parameter=a>" },
                { qwen, "<function=f><parameter=a>", "\"" },
                { qwen, "<function=f><parameter=a>[", "\"\"," },
                { qwen, "", "<function=f><parameter=a>1</parameter></function>" },
                { glm, "", "<tool_call>f</tool_call>" },
                { lfm, "<|tool_call_start|>[", "f()," },
                { lfm, "<|tool_call_start|>[", "f(a=1)," },
                { lfm, "<|tool_call_start|>[f(", "a=1," },
                { lfm, "<|tool_call_start|>[f(a='", "\"" },
                { llama4, "", "[f()]" },
                { gemma, "", "<|tool_call>call:f{}" },
                { harmony, "", " to=f<|message|>{}" },
                { harmony, "", " to=f<|message|>{x<|end|>" },
                { glm, "<tool_call>f<arg_key>a</arg_key><arg_value>[\"</arg_value></tool_call>",
                  "<tool_call>f</tool_call>" },
                { gemma, "<|tool_call>call:f{a:{", "a:1," },
                { kimi, "", "<|tool_call_begin|>f{}" },
                { kimi, "", "<|tool_call_begin|>f{x" },
                { deepseek, "", "<\uff5ctool\u2581call\u2581begin\uff5c>f{}" },
                { command, "", "<|START_ACTION|>[{\"name\":\"f\"}]x" },
        };
        char text[4096];

        (void)state;
        for (size_t i = 0; i < sizeof(dense) / sizeof(*dense); i++) {
                const struct dialect dialect = open_dialect(dense[i].templates);
                struct parts_rig rig;

                strcpy(text, dense[i].first);
                while (strlen(text) + strlen(dense[i].then) < sizeof(text))
                        strcat(text, dense[i].then);
                rig_begin(&rig, &dialect, true, false);
                rig_feed(&rig, text, strlen(text));
                rig_end(&rig);
                rig_free(&rig);
        }
}

/* ---- JSON ---- */

/* Does the text begin with a whole value, and end with it? */
static bool scans(const char *text, size_t bytes)
{
        enum json_scan_outcome outcome = JSON_SCAN_MORE;
        struct json_scan scan;

        json_scan_begin(&scan);
        for (size_t i = 0; i < bytes; i++) {
                if (outcome != JSON_SCAN_MORE)
                        return false;
                outcome = json_scan_feed(&scan, (uint8_t)text[i]);
        }
        return outcome == JSON_SCAN_DONE;
}

static void scans_what_another_reader_of_json_accepts(void **state)
{
        static const char *const json[] = {
                "{",       "}",      "[",
                "]",       ",",      ":",
                "\"a\"",   "\"b\":", "\"\\n\\u0041\\\"\"",
                "0",       "-1",     "1.5",
                "1e5",     "2E+7",   "-0.1e-9",
                "01",      ".5",     "1.",
                "-",       "+1",     "true",
                "false",   "null",   "nul",
                " ",       "\n",     "[]",
                "{}",      "\"",     "\\",
                "\"c\":1", "[1,",    "{\"d\":",
        };
        uint32_t accepted = 0;
        char text[256];

        (void)state;
        seed = 7;
        for (uint32_t n = scaled(200000, 20000000); n; n--) {
                struct json_document *document = NULL;
                bool scanned, parsed;
                char why[256] = "";

                text[0] = "{["[random_below(2)];
                text[1] = '\0';
                for (uint32_t left = random_below(6); left; left--)
                        strcat(text, json[random_below(sizeof(json) / sizeof(*json))]);
                strcat(text, text[0] == '{' ? "}" : "]");
                scanned = scans(text, strlen(text));
                parsed = !json_parse(text, strlen(text), 100, &document, why, sizeof(why));
                json_free(document);
                /* a line break in a string, and a key that comes twice */
                if (scanned && !parsed && (strchr(text, '\n') || strstr(why, "duplicate")))
                        continue;
                if (scanned != parsed)
                        fail_msg("%s: %d, not %d: %s", text, scanned, parsed, why);
                accepted += parsed;
        }
        assert_true(accepted > 1000);
}

static void values_nest_so_deep_and_no_deeper(void **state)
{
        char text[2 * JSON_SCAN_DEPTH_MAX + 2];

        (void)state;
        for (uint32_t deep = JSON_SCAN_DEPTH_MAX; deep <= JSON_SCAN_DEPTH_MAX + 1; deep++) {
                memset(text, '[', deep);
                memset(text + deep, ']', deep);
                assert_int_equal(scans(text, 2 * (size_t)deep), deep == JSON_SCAN_DEPTH_MAX);
        }
}

/* ---- dialects ---- */

static void chooses_the_dialect_by_the_template(void **state)
{
        static const char *const plain[2] = { "{{ messages }}", NULL };
        static const char *const second[2] = { "{{ messages }}", "<tool_call>" };
        static const char *const closes[2] = { "content.split('</think>')", NULL };
        static const char *const coder[2] = { "<tool_call>\n<function=", NULL };

        (void)state;
        assert_string_equal(open_dialect(hermes).name, "hermes");
        assert_string_equal(open_dialect(second).name, "hermes");
        assert_string_equal(open_dialect(plain).name, "");
        assert_string_equal(open_dialect(coder).name, "");
        assert_string_equal(open_dialect(qwen).name, "qwen3-coder");
        assert_string_equal(open_dialect(glm).name, "glm-4");
        assert_string_equal(open_dialect(mistral_v3).name, "mistral-v3");
        assert_string_equal(open_dialect(mistral_v11).name, "mistral-v11");
        assert_string_equal(open_dialect(mistral_v13).name, "mistral-v13");
        assert_string_equal(open_dialect(llama).name, "llama3");
        assert_string_equal(open_dialect(deepseek).name, "deepseek-v3");
        assert_int_equal(open_dialect(plain).marks[MARK_THINK].bytes, 0);
        /* R1 only writes the mark that ends reasoning */
        assert_int_equal(open_dialect(closes).marks[MARK_THINK].bytes, 7);
}

/* The signs only choose among the rows of the dialect that is named. */
static void a_name_chooses_the_dialect(void **state)
{
        static const struct {
                const char *name, *template, *dialect, *calls;
        } cases[] = {
                { "glm-4", "<tool_call>", "glm-4", NULL },
                { "llama3", NULL, "llama3", NULL },
                { "none", "<tool_call>", "", NULL },
                { "deepseek-v3.2", NULL, "deepseek-v3.2", "<\uff5cDSML\uff5cfunction_calls>" },
                { "deepseek-v3.2", "\uff5cDSML\uff5ctool_calls>", "deepseek-v3.2",
                  "<\uff5cDSML\uff5ctool_calls>" },
        };
        struct tokenizer *tokenizer;

        (void)state;
        assert_int_equal(tokenizer_open_bytes(300, &tokenizer), 0);
        for (size_t i = 0; i < COUNT(cases); i++) {
                const struct dialect_conf conf = { .tokenizer = tokenizer,
                                                   .templates = { cases[i].template },
                                                   .name = cases[i].name };
                struct dialect dialect;

                dialect_open(&conf, &dialect);
                assert_string_equal(dialect.name, cases[i].dialect);
                assert_int_equal(dialect_is_known(cases[i].name), *dialect.name != '\0');
                if (cases[i].calls)
                        assert_string_equal(dialect.marks[MARK_CALLS].spelling.text,
                                            cases[i].calls);
        }
        tokenizer_close(tokenizer);
}

#define EACH  "{% for m in messages %}{% for c in m.tool_calls or [] %}{% set f = c.function %}"
#define ENDED "{% endfor %}{{ m.content }}{% endfor %}"

/* A template renders an earlier call, and the parser must find it. */
static void a_template_must_write_calls_as_its_dialect_does(void **state)
{
        static const struct {
                const char *template, *name;
                int outcome;
        } cases[] = {
                { EACH "<tool_call>\n{\"name\": \"{{ f.name }}\", \"arguments\": "
                       "{{ f.arguments | tojson }}}\n</tool_call>" ENDED,
                  "hermes", 0 },
                { "{% for t in tools or [] %}<tool_call>{{ t | tojson }}{% endfor %}" EACH
                  "<tool_call>{\"arguments\": {{ f.arguments | tojson }}, \"name\": "
                  "\"{{ f.name }}\"}</tool_call>" ENDED,
                  "hermes", 0 },
                { EACH "[TOOL_CALLS][{{ f | tojson }}]" ENDED, "mistral-v3", 0 },
                { EACH "[TOOL_CALLS]{{ f.name }}[CALL_ID]{{ c.id }}[ARGS]"
                       "{{ f.arguments | tojson }}" ENDED,
                  "mistral-v11", 0 },
                { EACH "[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}" ENDED,
                  "mistral-v13", 0 },
                { EACH "{\"name\": \"{{ f.name }}\", \"parameters\": {{ f.arguments | tojson }}}"
                       "{# ipython <|python_tag|> #}" ENDED,
                  "llama3", 0 },
                { EACH "<|tool_calls_section_begin|><|tool_call_begin|>{{ c.id }}"
                       "<|tool_call_argument_begin|>{{ f.arguments | tojson }}"
                       "<|tool_call_end|>" ENDED,
                  "kimi-k2", 0 },
                { EACH "<\uff5ctool\u2581call\u2581begin\uff5c>function<\uff5ctool\u2581sep\uff5c>"
                       "{{ f.name }}\n```json\n{{ f.arguments | tojson }}\n```"
                       "<\uff5ctool\u2581call\u2581end\uff5c>" ENDED,
                  "deepseek-v3", 0 },
                { EACH "<|START_ACTION|>[{\"tool_call_id\": 0, \"tool_name\": \"{{ f.name }}\", "
                       "\"parameters\": {{ f.arguments | tojson }}}]<|END_ACTION|>" ENDED,
                  "command-r", 0 },
                { EACH "<tool_call>\n<function={{ f.name }}>\n{% for k, v in f.arguments.items() %}"
                       "<parameter={{ k }}>\n{{ v }}\n</parameter>\n{% endfor %}</function>\n"
                       "</tool_call>" ENDED,
                  "qwen3-coder", 0 },
                { EACH "<tool_call>{{ f.name }}\n{% for k, v in f.arguments.items() %}"
                       "<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v }}</arg_value>\n{% endfor %}"
                       "</tool_call>" ENDED,
                  "glm-4", 0 },
                { EACH "<|tool_call_start|>[{{ f.name }}({% for k, v in f.arguments.items() %}"
                       "{{ k }}={{ v | tojson }}{% endfor %})]<|tool_call_end|>" ENDED,
                  "lfm2", 0 },
                { EACH "<|tool_call>call:{{ f.name }}{ {%- for k, v in f.arguments.items() -%}"
                       "{{ k }}:{% set q = '<|\"|>' if v is string else '' %}{{ q }}{{ v }}{{ q }}"
                       "{% endfor %}}<tool_call|>" ENDED,
                  "gemma4", 0 },
                { EACH
                  "<tool_call>{\"name\": \"{{ f.name }}\", \"arguments\": {{ '' + f.arguments }}}"
                  "</tool_call>" ENDED,
                  "hermes", 0 },
                { EACH "<|start|>assistant to=functions.{{ f.name }}<|channel|>commentary json"
                       "<|message|>{{ f.arguments | tojson }}<|call|>" ENDED,
                  "harmony", 0 },
                /* all calls stand in one list */
                { "{% for m in messages %}{% for c in m.tool_calls or [] %}"
                  "{{ '[TOOL_CALLS][' if loop.first else ', ' }}{{ c.function | tojson }}"
                  "{{ ']' if loop.last }}{% endfor %}{% endfor %}",
                  "mistral-v3", 0 },
                /* only one call is taken */
                { "{% for m in messages %}{% if m.tool_calls and m.tool_calls | length > 1 %}"
                  "{{ raise_exception('no') }}{% endif %}{% endfor %}" EACH
                  "[TOOL_CALLS][{{ f | tojson }}]" ENDED,
                  "mistral-v3", 0 },
                /* the second call cannot be read */
                { EACH "{{ '[TOOL_CALLS][' if loop.first }}{{ f | tojson }}"
                       "{{ ']' if loop.last }}" ENDED,
                  "mistral-v3", PROBE_E_WRONG },
                /* the arguments are a text, or in a form of their own */
                { EACH "<tool_call>{\"name\": \"{{ f.name }}\", \"arguments\": "
                       "{{ f.arguments | tojson | tojson }}}</tool_call>" ENDED,
                  "hermes", PROBE_E_WRONG },
                { "{# <tool_call> #}" EACH "{{ f.name }}({{ f.arguments | tojson }})" ENDED,
                  "hermes", PROBE_E_WRONG },
                { "{# <tool_call> #}{{ messages[0].content }}", "hermes", PROBE_E_SILENT },
                { "{# <tool_call> #}{{ raise_exception('no') }}", "hermes", PROBE_E_SILENT },
                { "{{ messages }}", "", PROBE_E_SILENT },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct dialect dialect =
                        open_dialect((const char *const[2]){ cases[i].template, NULL });
                const struct chat_conf conf = { .plain = cases[i].template };
                struct chat *chat;

                assert_string_equal(dialect.name, cases[i].name);
                assert_int_equal(chat_open(&conf, &chat), 0);
                assert_null(chat_refusal(chat));
                assert_int_equal(probe_dialect(chat, &dialect), cases[i].outcome);
                chat_close(chat);
                dialect_drop_calls(&dialect);
                assert_string_equal(dialect.name, "");
                assert_false(dialect_has_calls(&dialect));
        }
}

static void sees_whether_a_prompt_opens_reasoning(void **state)
{
        static const struct {
                const char *prompt;
                bool opens;
        } cases[] = {
                { "<|im_start|>assistant\n<think>\n", true },
                { "<think>", true },
                { "<think>\n\n", true },
                { "<think>\n\n</think>\n\n", false },
                { "<|im_start|>assistant\n", false },
                { "<think>a", false },
                { "", false },
                { "think>\n", false },
        };
        const struct dialect dialect = open_dialect(hermes);
        struct tokenizer *tokenizer;

        (void)state;
        assert_int_equal(tokenizer_open_bytes(300, &tokenizer), 0);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                uint32_t tokens[64];
                size_t count = strlen(cases[i].prompt);

                for (size_t k = 0; k < count; k++)
                        tokens[k] = (uint8_t)cases[i].prompt[k];
                assert_int_equal(dialect_opens_reasoning(&dialect, tokenizer, tokens, count),
                                 cases[i].opens);
        }
        tokenizer_close(tokenizer);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_calls_and_the_text_around_them),
                cmocka_unit_test(strings_may_have_marks_and_braces),
                cmocka_unit_test(escapes_control_characters_in_strings),
                cmocka_unit_test(control_characters_between_held_arguments_are_blanks),
                cmocka_unit_test(keys_come_in_any_order_and_others_are_skipped),
                cmocka_unit_test(arguments_are_never_empty),
                cmocka_unit_test(a_closing_mark_may_be_missing),
                cmocka_unit_test(what_cannot_be_read_is_text),
                cmocka_unit_test(arguments_that_cannot_be_read_are_cut),
                cmocka_unit_test(a_call_is_cut_where_the_text_ends),
                cmocka_unit_test(a_held_call_has_a_limit),
                cmocka_unit_test(calls_are_text_if_none_were_offered),
                cmocka_unit_test(reads_the_calls_of_mistral),
                cmocka_unit_test(reads_a_list_of_calls),
                cmocka_unit_test(reads_the_calls_of_llama),
                cmocka_unit_test(reads_reasoning),
                cmocka_unit_test(reasoning_may_have_any_form),
                cmocka_unit_test(calls_follow_reasoning_and_are_text_in_it),
                cmocka_unit_test(counts_the_tokens_of_reasoning),
                cmocka_unit_test(finds_control_tokens_by_their_ids_only),
                cmocka_unit_test(a_token_out_of_place_is_text),
                cmocka_unit_test(a_fork_goes_on_where_its_parent_is),
                cmocka_unit_test(the_cuts_of_a_text_do_not_matter),
                cmocka_unit_test(the_densest_texts_have_room),
                cmocka_unit_test(scans_what_another_reader_of_json_accepts),
                cmocka_unit_test(values_nest_so_deep_and_no_deeper),
                cmocka_unit_test(chooses_the_dialect_by_the_template),
                cmocka_unit_test(a_name_chooses_the_dialect),
                cmocka_unit_test(a_template_must_write_calls_as_its_dialect_does),
                cmocka_unit_test(sees_whether_a_prompt_opens_reasoning),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
