/*
 * Structures: free text and what may stand in it, by hand for each rule, for the ways in which
 * models write their calls, and against expressions of Python's kind, which backtrack.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/constraint/matcher.h"
#include "daemon/constraint/structure.h"

/* The vocabulary: a token for each byte, and control tokens behind them. */
#define BYTES    256
#define CONTROLS 12

#define TEXT(literal)                                                                              \
        {                                                                                          \
                literal, sizeof(literal) - 1                                                       \
        }
#define LITERAL(string)                                                                            \
        {                                                                                          \
                .kind = STRUCTURE_LITERAL, .text = TEXT(string)                                    \
        }
#define SCHEMA(string)                                                                             \
        {                                                                                          \
                .kind = STRUCTURE_SCHEMA, .text = TEXT(string)                                     \
        }
#define REGEX(string)                                                                              \
        {                                                                                          \
                .kind = STRUCTURE_REGEX, .text = TEXT(string)                                      \
        }
#define PARTS(array) .parts = (array), .count = sizeof(array) / sizeof(*(array))
#define SEQUENCE(array)                                                                            \
        {                                                                                          \
                .kind = STRUCTURE_SEQUENCE, PARTS(array)                                           \
        }
#define CHOICE(array)                                                                              \
        {                                                                                          \
                .kind = STRUCTURE_CHOICE, PARTS(array)                                             \
        }
/* Control token 256 + n, where `low` is the byte 0x80 + n. */
#define TOKEN(low) "\xff" low "\x84\x80\x80\x80"

#define T0 TOKEN("\x80")
#define T1 TOKEN("\x81")
#define T2 TOKEN("\x82")
#define T3 TOKEN("\x83")
#define T4 TOKEN("\x84")
#define T5 TOKEN("\x85")

struct rig {
        struct grammar *grammar;
        struct token_trie *trie;
        struct matcher *matcher;
};

static void rig_init(struct rig *rig, const struct structure *structure)
{
        static char bytes[BYTES];
        struct token_text texts[BYTES + CONTROLS] = { 0 };
        uint32_t controls[CONTROLS];
        char why[400];

        for (uint32_t i = 0; i < BYTES; i++) {
                bytes[i] = (char)i;
                texts[i] = (struct token_text){ &bytes[i], 1 };
        }
        for (uint32_t i = 0; i < CONTROLS; i++)
                controls[i] = BYTES + i;
        if (structure_compile(structure, &grammar_limits_default, &rig->grammar, why, sizeof(why)))
                fail_msg("%s", why);
        rig->trie = token_trie_new(texts, BYTES + CONTROLS, controls, CONTROLS);
        rig->matcher = matcher_new(rig->grammar, rig->trie, &matcher_limits_default);
        assert_non_null(rig->matcher);
}

static void rig_deinit(struct rig *rig)
{
        matcher_free(rig->matcher);
        token_trie_free(rig->trie);
        grammar_free(rig->grammar);
}

enum verdict {
        ILLEGAL, /* no text begins so */
        BEGUN,   /* it may go on, but not end */
        WHOLE,   /* it may end */
        FINAL,   /* it must end */
};

/* Takes the text byte by byte, and checks that masks say the same. */
static enum verdict judge(struct rig *rig, const char *text, size_t count)
{
        uint32_t bits[(BYTES + CONTROLS + 31) / 32];

        matcher_reset(rig->matcher);
        for (size_t at = 0; at < count;) {
                unsigned char byte = text[at];
                uint32_t token = byte;
                bool legal;

                if (byte == TOKEN_LEAD)
                        token = (text[at + 1] & 63) | (uint32_t)(text[at + 2] & 63) << 6;
                at += byte == TOKEN_LEAD ? TOKEN_BYTES : 1;
                assert_int_equal(matcher_mask(rig->matcher, bits), MATCHER_FINE);
                legal = bits[token / 32] >> (token % 32) & 1;
                assert_int_equal(matcher_take(rig->matcher, token),
                                 legal ? MATCHER_FINE : MATCHER_ILLEGAL);
                if (!legal)
                        return ILLEGAL;
        }
        assert_int_equal(matcher_mask(rig->matcher, bits), MATCHER_FINE);
        if (!matcher_can_end(rig->matcher))
                return BEGUN;
        return matcher_must_end(rig->matcher) ? FINAL : WHOLE;
}

struct example {
        enum verdict verdict;
        struct regex_text text;
};

static void check(const struct structure *structure, const struct example *examples, size_t count)
{
        struct rig rig;

        rig_init(&rig, structure);
        for (size_t i = 0; i < count; i++) {
                enum verdict verdict = judge(&rig, examples[i].text.bytes, examples[i].text.count);

                if (verdict != examples[i].verdict)
                        fail_msg("'%s': %d, not %d", examples[i].text.bytes, verdict,
                                 examples[i].verdict);
        }
        rig_deinit(&rig);
}

#define CHECK(structure, ...)                                                                      \
        check((structure), (const struct example[]){ __VA_ARGS__ },                                \
              sizeof((const struct example[]){ __VA_ARGS__ }) / sizeof(struct example))

static void free_text_is_any_text_until_a_mark(void **state)
{
        static const struct structure call[] = { LITERAL("<call>"),
                                                 SCHEMA("{\"type\":\"integer\"}"),
                                                 LITERAL("</call>") };
        static const struct structure parts[] = { SEQUENCE(call) };
        static const struct structure text = { .kind = STRUCTURE_TEXT, PARTS(parts), .max = 9 };

        (void)state;
        CHECK(&text, { WHOLE, TEXT("") }, { WHOLE, TEXT("any text, <call and <<cal") },
              { WHOLE, TEXT("\x80 is no UTF-8") }, { BEGUN, TEXT("so <call>") },
              { BEGUN, TEXT("<call>12") }, { ILLEGAL, TEXT("<call>x") },
              { WHOLE, TEXT("<<call>12</call>") },
              { WHOLE, TEXT("<call>12</call> and <call>3</call>.") },
              { ILLEGAL, TEXT("<call>1</call><call>2</call><call>.") }, { ILLEGAL, TEXT(T0) },
              { ILLEGAL, TEXT("<call>" T0) });
}

static void the_first_mark_that_comes_begins_its_part(void **state)
{
        static const struct structure one[] = { LITERAL("aba"), LITERAL("1") };
        static const struct structure other[] = { LITERAL("ba!"), LITERAL("2") };
        static const struct structure parts[] = { SEQUENCE(one), SEQUENCE(other) };
        static const struct structure text = { .kind = STRUCTURE_TEXT, PARTS(parts), .max = 9 };

        (void)state;
        CHECK(&text, { BEGUN, TEXT("aba") }, { ILLEGAL, TEXT("abab") }, { ILLEGAL, TEXT("aba!") },
              { WHOLE, TEXT("aba1") }, { WHOLE, TEXT("bba!2aaba1") }, { ILLEGAL, TEXT("bba!1") });
}

static void parts_of_free_text_are_counted(void **state)
{
        static const struct structure parts[] = { LITERAL("+"), LITERAL("-") };
        struct structure text = { .kind = STRUCTURE_TEXT, PARTS(parts), .min = 1, .max = 2 };

        (void)state;
        CHECK(&text, { BEGUN, TEXT("a") }, { WHOLE, TEXT("a+") }, { WHOLE, TEXT("a+b-c") },
              { ILLEGAL, TEXT("+-+") });
        text.closed = true;
        CHECK(&text, { BEGUN, TEXT("a") }, { WHOLE, TEXT("a+") }, { BEGUN, TEXT("a+b") },
              { FINAL, TEXT("a+b-") });
        text.min = 0;
        text.max = 1;
        CHECK(&text, { WHOLE, TEXT("") }, { WHOLE, TEXT("a") }, { FINAL, TEXT("a+") });
}

static void text_before_a_mark_stands_anywhere(void **state)
{
        static const struct structure end[] = { LITERAL("</think>") };
        static const struct structure parts[] = {
                { .kind = STRUCTURE_TEXT, PARTS(end), .min = 1, .max = 1, .closed = true },
                REGEX("\\n{0,2}"),
                SCHEMA("{\"enum\":[1,12]}"),
        };
        static const struct structure both = SEQUENCE(parts);

        (void)state;
        CHECK(&both, { BEGUN, TEXT("") }, { BEGUN, TEXT("12</think") },
              { BEGUN, TEXT("</think>\n") }, { WHOLE, TEXT("x</</think>\n\n1") },
              { FINAL, TEXT("</think>12") }, { ILLEGAL, TEXT("</think></think>") });
}

static void reasoning_may_be_left_out(void **state)
{
        static const struct structure end[] = { LITERAL("</think>") };
        static const struct structure open[] = {
                LITERAL("<think>"),
                { .kind = STRUCTURE_TEXT, PARTS(end), .min = 1, .max = 1, .closed = true }
        };
        static const struct structure either[] = { SEQUENCE(open), LITERAL("") };
        static const struct structure call[] = { LITERAL(T1) };
        static const struct regex_text marks[] = { TEXT("<think>"), TEXT("</think>") };
        static const struct structure parts[] = { CHOICE(either),
                                                  { .kind = STRUCTURE_TEXT,
                                                    PARTS(call),
                                                    .max = REGEX_FOREVER,
                                                    .without = marks,
                                                    .without_count = 2 } };
        static const struct structure both = SEQUENCE(parts);

        (void)state;
        CHECK(&both, { WHOLE, TEXT("<think") }, { BEGUN, TEXT("<think>") },
              { ILLEGAL, TEXT("<think>" T1) }, { WHOLE, TEXT("<think>x</think>y" T1) },
              { ILLEGAL, TEXT("x<think>") }, { ILLEGAL, TEXT("<think>x</think>y</think>") },
              { WHOLE, TEXT("x" T1 T1) });
}

static void lists_have_texts_between(void **state)
{
        static const struct structure element[] = { REGEX("a?") };
        struct structure list = {
                .kind = STRUCTURE_LIST, PARTS(element), .min = 2, .max = 3, .text = TEXT(", ")
        };

        (void)state;
        CHECK(&list, { BEGUN, TEXT("a") }, { BEGUN, TEXT("a,") }, { WHOLE, TEXT("a, a") },
              { WHOLE, TEXT(", ") }, { FINAL, TEXT("a, , a") }, { ILLEGAL, TEXT("a, a, a,") });
        list.min = 0;
        list.max = REGEX_FOREVER;
        CHECK(&list, { WHOLE, TEXT("") }, { WHOLE, TEXT("a") }, { ILLEGAL, TEXT("aa") },
              { WHOLE, TEXT("a, a, a, a") });
        list.max = 1;
        CHECK(&list, { WHOLE, TEXT("") }, { FINAL, TEXT("a") });
        list.text = (struct regex_text){ 0 };
        list.max = 2;
        CHECK(&list, { WHOLE, TEXT("") }, { WHOLE, TEXT("a") }, { FINAL, TEXT("aa") });
}

/* ---- calls as models write them, with the tools get(n: integer) and "say"(any object) ---- */

#define GET                                                                                        \
        "{\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"],"                     \
        "\"additionalProperties\":false,\"type\":\"object\"}"
#define ANY_OBJECT "{\"type\":\"object\"}"

#define OBJECT_CALL(array, name, key, schema)                                                      \
        static const struct structure array[] = {                                                  \
                LITERAL("{\"name\": \"" name "\", \"" key "\": "), SCHEMA(schema), LITERAL("}")    \
        }

/* Hermes 2 and 3, Qwen2.5, Qwen3: a block a call, with text before and between. */
static void calls_of_hermes(void **state)
{
        OBJECT_CALL(get, "get", "arguments", GET);
        OBJECT_CALL(say, "say", "arguments", ANY_OBJECT);
        static const struct structure tools[] = { SEQUENCE(get), SEQUENCE(say) };
        static const struct structure block[] = { LITERAL("<tool_call>"), LITERAL("\n"),
                                                  CHOICE(tools), LITERAL("\n</tool_call>") };
        static const struct structure blocks[] = { SEQUENCE(block) };
        static const struct structure automatic = { .kind = STRUCTURE_TEXT,
                                                    PARTS(blocks),
                                                    .max = REGEX_FOREVER };
        static const struct structure required = { .kind = STRUCTURE_LIST,
                                                   PARTS(blocks),
                                                   .min = 1,
                                                   .max = REGEX_FOREVER,
                                                   .text = TEXT("\n") };

        (void)state;
        CHECK(&automatic, { WHOLE, TEXT("I call <tool_call") },
              { WHOLE, TEXT("I call <tool_call>\n{\"name\": \"get\", \"arguments\": {\"n\": 1}}\n"
                            "</tool_call>\n<tool_call>\n{\"name\": \"say\", \"arguments\": {}}\n"
                            "</tool_call>") },
              { ILLEGAL, TEXT("<tool_call>\n{\"name\": \"get\", \"arguments\": {}") },
              { ILLEGAL, TEXT("<tool_call>\n{\"name\": \"go") });
        CHECK(&required, { ILLEGAL, TEXT("I") },
              { WHOLE, TEXT("<tool_call>\n{\"name\": \"say\", \"arguments\": {\"a\": []}}\n"
                            "</tool_call>") },
              { ILLEGAL, TEXT("<tool_call>\n{\"name\": \"say\", \"arguments\": {}}\n"
                              "</tool_call>\n\n") });
}

/* Llama 3: one call, perhaps behind a control token, and nothing else. */
static void calls_of_llama_3(void **state)
{
        OBJECT_CALL(get, "get", "parameters", GET);
        static const struct structure marks[] = { LITERAL(T0), LITERAL("") };
        static const struct structure call[] = { CHOICE(marks), SEQUENCE(get) };
        static const struct structure required = SEQUENCE(call);

        (void)state;
        CHECK(&required, { FINAL, TEXT("{\"name\": \"get\", \"parameters\": {\"n\":2}}") },
              { FINAL, TEXT(T0 "{\"name\": \"get\", \"parameters\": {\"n\":2}}") },
              { ILLEGAL, TEXT("{\"name\": \"say") }, { ILLEGAL, TEXT(T0 T0) });
}

/* Mistral v3: one array of calls, each with an id of nine characters. */
static void calls_of_mistral_v3(void **state)
{
        static const struct structure get[] = { LITERAL("{\"name\": \"get\", \"arguments\": "),
                                                SCHEMA(GET),
                                                REGEX(", \"id\": \"[A-Za-z0-9]{9}\"\\}") };
        static const struct structure tools[] = { SEQUENCE(get) };
        static const struct structure array[] = {
                LITERAL(T3),
                LITERAL("["),
                { .kind = STRUCTURE_LIST, PARTS(tools), .min = 1, .max = 2, .text = TEXT(", ") },
                LITERAL("]"),
        };
        static const struct structure calls[] = { SEQUENCE(array) };
        static const struct structure automatic = {
                .kind = STRUCTURE_TEXT, PARTS(calls), .max = 1, .closed = true
        };

        (void)state;
        CHECK(&automatic, { WHOLE, TEXT("No call.") },
              { FINAL, TEXT(T3 "[{\"name\": \"get\", \"arguments\": {\"n\": 1}, "
                               "\"id\": \"a1b2c3d4e\"}]") },
              { FINAL, TEXT("x" T3 "[{\"name\": \"get\", \"arguments\": {\"n\": 1}, "
                            "\"id\": \"a1b2c3d4e\"}, {\"name\": \"get\", "
                            "\"arguments\": {\"n\": 1}, \"id\": \"a1b2c3d4f\"}]") },
              { ILLEGAL, TEXT(T3 "[]") });
}

/* Mistral v13: calls one behind the other, with control tokens around the name. */
static void calls_of_mistral_v13(void **state)
{
        static const struct structure get[] = { LITERAL("get" T5), SCHEMA(GET) };
        static const struct structure say[] = { LITERAL("say" T5), SCHEMA(ANY_OBJECT) };
        static const struct structure tools[] = { SEQUENCE(get), SEQUENCE(say) };
        static const struct structure call[] = { LITERAL(T3), CHOICE(tools) };
        static const struct structure calls[] = { SEQUENCE(call) };
        static const struct structure more[] = {
                CHOICE(tools),
                { .kind = STRUCTURE_LIST, PARTS(calls), .min = 0, .max = REGEX_FOREVER }
        };
        static const struct structure first[] = { LITERAL(T3), SEQUENCE(more) };
        static const struct structure firsts[] = { SEQUENCE(first) };
        static const struct structure automatic = {
                .kind = STRUCTURE_TEXT, PARTS(firsts), .max = 1, .closed = true
        };

        (void)state;
        CHECK(&automatic, { WHOLE, TEXT("get") }, { ILLEGAL, TEXT(T3 "say{") },
              { WHOLE, TEXT("Now" T3 "get" T5 "{\"n\": 1}") },
              { WHOLE, TEXT(T3 "get" T5 "{\"n\": 1}" T3 "say" T5 "{}") },
              { ILLEGAL, TEXT(T3 "get" T5 "{\"n\": 1} ") });
}

/* DeepSeek V3.1: calls between two marks, and text before them only. */
static void calls_of_deepseek(void **state)
{
        static const struct structure get[] = { LITERAL("get" T4), SCHEMA(GET) };
        static const struct structure tools[] = { SEQUENCE(get) };
        static const struct structure call[] = { LITERAL(T2), CHOICE(tools), LITERAL(T3) };
        static const struct structure calls[] = { SEQUENCE(call) };
        static const struct structure section[] = {
                LITERAL(T0),
                { .kind = STRUCTURE_LIST, PARTS(calls), .min = 1, .max = REGEX_FOREVER },
                LITERAL(T1),
        };
        static const struct structure sections[] = { SEQUENCE(section) };
        static const struct structure automatic = {
                .kind = STRUCTURE_TEXT, PARTS(sections), .max = 1, .closed = true
        };
#define ONE_CALL T2 "get" T4 "{\"n\": 7}" T3

        (void)state;
        CHECK(&automatic, { FINAL, TEXT("I ask." T0 ONE_CALL ONE_CALL T1) },
              { ILLEGAL, TEXT(T0 T1) }, { ILLEGAL, TEXT(T2) });
        CHECK(&sections[0], { FINAL, TEXT(T0 ONE_CALL T1) }, { ILLEGAL, TEXT("I") });
}

/* Kimi: names with a number behind them; calls may come in reasoning, and end it. */
static void calls_of_kimi(void **state)
{
        static const struct structure get[] = { LITERAL("functions.get:"), REGEX("[0-9]{1,3}"),
                                                LITERAL(T4), SCHEMA(GET) };
        static const struct structure call[] = { LITERAL(T2), SEQUENCE(get), LITERAL(T3) };
        static const struct structure calls[] = { SEQUENCE(call) };
        static const struct structure section[] = {
                LITERAL(T0),
                { .kind = STRUCTURE_LIST, PARTS(calls), .min = 1, .max = REGEX_FOREVER },
                LITERAL(T1),
        };
        static const struct structure sections[] = { SEQUENCE(section) };
        static const struct structure answer[] = {
                LITERAL("</think>"),
                { .kind = STRUCTURE_TEXT, PARTS(sections), .max = 1, .closed = true }
        };
        static const struct structure ends[] = { SEQUENCE(answer), SEQUENCE(section) };
        static const struct structure reasoning = {
                .kind = STRUCTURE_TEXT, PARTS(ends), .min = 1, .max = 1, .closed = true
        };
#define KIMI_CALL T0 T2 "functions.get:0" T4 "{\"n\": 7}" T3 T1

        (void)state;
        CHECK(&reasoning, { BEGUN, TEXT("hm") }, { WHOLE, TEXT("hm</think>The answer") },
              { FINAL, TEXT("hm</think>The" KIMI_CALL) }, { FINAL, TEXT("hm" KIMI_CALL) },
              { ILLEGAL, TEXT("hm" T0 T2 "functions.get:" T4) });
}

/* ---- what is refused ---- */

static void check_refused(const struct structure *structure, const char *sentence)
{
        struct grammar *grammar;
        char why[400] = "";

        assert_int_equal(
                structure_compile(structure, &grammar_limits_default, &grammar, why, sizeof(why)),
                -EINVAL);
        assert_string_equal(why, sentence);
}

/* ---- arguments in tags ---- */

#define ARGUMENTS                                                                                  \
        "{\"type\":\"object\",\"properties\":{"                                                    \
        "\"s\":{\"type\":\"string\",\"maxLength\":30},"                                            \
        "\"n\":{\"type\":\"integer\"},\"o\":{\"type\":[\"string\",\"null\"]},"                     \
        "\"u\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"array\"}]},\"e\":{\"enum\":[\"a<b\"," \
        "7]}},"                                                                                    \
        "\"required\":[\"s\"],\"additionalProperties\":false}"

static const struct json_tags qwen_tags = {
        .key = TEXT("<parameter="),
        .key_end = TEXT(">\n"),
        .value_end = TEXT("\n</parameter>"),
        .between = TEXT("\n"),
};

/* Qwen3-Coder: each argument in tags, in any order; strings as they are. */
static void calls_of_qwen3_coder(void **state)
{
        static const struct structure call[] = {
                LITERAL("<tool_call>"),
                LITERAL("\n<function=f>\n"),
                { .kind = STRUCTURE_SCHEMA,
                  .text = TEXT(ARGUMENTS),
                  .schema = { .any_order = true, .tags = &qwen_tags } },
                LITERAL("\n</function>\n</tool_call>"),
        };
        static const struct structure calls[] = { SEQUENCE(call) };
        static const struct structure text = { .kind = STRUCTURE_TEXT, PARTS(calls), .max = 2 };
#define QWEN(arguments)      TEXT("<tool_call>\n<function=f>\n" arguments "\n</function>\n</tool_call>")
#define ARGUMENT(key, value) "<parameter=" key ">\n" value "\n</parameter>"

        (void)state;
        CHECK(&text, { WHOLE, QWEN(ARGUMENT("s", "")) }, { WHOLE, QWEN(ARGUMENT("s", "12")) },
              { WHOLE, QWEN(ARGUMENT("s", "a \"b\"\n</param> \\")) },
              { WHOLE, QWEN(ARGUMENT("n", "-4") "\n" ARGUMENT("s", "a")) },
              { ILLEGAL, QWEN(ARGUMENT("n", "a")) }, { ILLEGAL, QWEN(ARGUMENT("n", "4")) },
              { ILLEGAL, QWEN(ARGUMENT("s", "x</parameter>")) },
              { ILLEGAL, QWEN(ARGUMENT("s", "0123456789012345678901234567890")) },
              { ILLEGAL, QWEN(ARGUMENT("s", "a") "\n" ARGUMENT("s", "a")) },
              { ILLEGAL, QWEN(ARGUMENT("s", "a") "\n" ARGUMENT("x", "a")) });
#define WITH(key, value) QWEN(ARGUMENT("s", "a") "\n" ARGUMENT(key, value))
        CHECK(&text, { WHOLE, WITH("o", "null") }, { WHOLE, WITH("o", "nullx") },
              { ILLEGAL, WITH("o", "null ") }, { WHOLE, WITH("o", "12") },
              { WHOLE, WITH("u", "12 apples") }, { ILLEGAL, WITH("u", "12") },
              { ILLEGAL, WITH("u", " true") }, { WHOLE, WITH("u", "[1,\"</parameter>\"]") },
              { ILLEGAL, WITH("u", "[1") }, { ILLEGAL, WITH("u", "\"x\"") },
              { WHOLE, WITH("e", "a<b") }, { WHOLE, WITH("e", "7") },
              { ILLEGAL, WITH("e", "\"a<b\"") });
}

/* DeepSeek V3.2: the tag of a key says whether the value is a string. */
static void calls_of_deepseek_v3_2(void **state)
{
        static const struct json_tags tags = {
                .key = TEXT("<parameter name=\""),
                .key_end = TEXT("\" string=\"false\">"),
                .raw_key_end = TEXT("\" string=\"true\">"),
                .value_end = TEXT("</parameter>\n"),
        };
        static const struct structure arguments = { .kind = STRUCTURE_SCHEMA,
                                                    .text = TEXT(ARGUMENTS),
                                                    .schema = { .tags = &tags } };
#define RAW(key, value)  "<parameter name=\"" key "\" string=\"true\">" value "</parameter>\n"
#define JSON(key, value) "<parameter name=\"" key "\" string=\"false\">" value "</parameter>\n"

        (void)state;
        CHECK(&arguments, { WHOLE, TEXT(RAW("s", "x")) }, { ILLEGAL, TEXT(JSON("s", "x")) },
              { ILLEGAL, TEXT(JSON("s", "\"x\"")) }, { WHOLE, TEXT(RAW("s", "x") JSON("n", "1")) },
              { ILLEGAL, TEXT(RAW("s", "x") RAW("n", "1")) },
              { WHOLE, TEXT(RAW("s", "x") RAW("u", "[1]")) },
              { FINAL, TEXT(RAW("s", "") JSON("n", "1") JSON("o", "null") RAW("u", "null")
                                    RAW("e", "a<b")) });
}

/* GLM: tags around keys, too; any further argument, if the schema allows it. */
static void calls_of_glm(void **state)
{
        static const struct json_tags tags = {
                .key = TEXT("<arg_key>"),
                .key_end = TEXT("</arg_key>\n<arg_value>"),
                .value_end = TEXT("</arg_value>\n"),
        };
        struct structure arguments = { .kind = STRUCTURE_SCHEMA,
                                       .text = TEXT("{\"properties\":{\"ab\":{\"type\":\"null\"}},"
                                                    "\"propertyNames\":{\"pattern\":\"^a\"}}"),
                                       .schema = { .tags = &tags } };
#define GLM(key, value) "<arg_key>" key "</arg_key>\n<arg_value>" value "</arg_value>\n"

        (void)state;
        CHECK(&arguments, { WHOLE, TEXT("") }, { WHOLE, TEXT(GLM("ab", "null")) },
              { ILLEGAL, TEXT(GLM("ab", "x")) }, { WHOLE, TEXT(GLM("a", "x") GLM("abc", "[{}]")) },
              { ILLEGAL, TEXT(GLM("b", "x")) }, { ILLEGAL, TEXT(GLM("a<", "x")) });
        arguments.text = (struct regex_text)TEXT("{\"type\":\"string\"}");
        check_refused(&arguments, "no text can match: it asks for what it excludes");
        arguments.text = (struct regex_text)TEXT("{\"required\":[\"a>\"]}");
        check_refused(&arguments,
                      "part \"\": schema, at \"\": the key \"a>\" cannot stand in a tag");
}

static void a_fault_is_told_with_the_place_of_its_part(void **state)
{
        static const struct structure inner[] = { LITERAL("a"), SCHEMA("{\"maxLenght\":1}") };
        static const struct structure nested[] = { LITERAL("a"), SEQUENCE(inner) };
        static const struct structure schema = SEQUENCE(nested);
        static const struct structure text[] = { { .kind = STRUCTURE_TEXT }, LITERAL("a") };
        static const struct structure early = SEQUENCE(text);
        static const struct structure hidden[] = { LITERAL("<a"), LITERAL("<ab") };
        static const struct structure marks = { .kind = STRUCTURE_TEXT, PARTS(hidden), .max = 1 };
        static const struct structure markless = { .kind = STRUCTURE_TEXT, PARTS(text), .max = 1 };
        static const struct structure no_text = LITERAL("a\x80");
        static const struct structure no_token = LITERAL("a\xff\x80");
        static const struct structure nothing = { .kind = STRUCTURE_CHOICE };
        struct structure deep[20];

        (void)state;
        check_refused(&schema, "part \"/1/1\": schema, at \"/maxLenght\": the keyword maxLenght is "
                               "not supported");
        check_refused(&early, "part \"/0\": free text that may be the last of all is not the last");
        check_refused(&marks,
                      "part \"/1\": its mark is never complete: another one is inside of it");
        check_refused(&markless, "part \"\": a part of free text does not begin with a mark");
        check_refused(&no_text, "part \"\": a text is not UTF-8");
        check_refused(&no_token, "part \"\": a text is not UTF-8");
        check_refused(&nothing, "part \"\": there is nothing to choose");
        for (int i = 0; i < 20; i++)
                deep[i] = (struct structure){ .kind = STRUCTURE_SEQUENCE,
                                              .parts = &deep[i + 1],
                                              .count = i < 19 };
        check_refused(&deep[0], "part \"/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0\": parts are nested more "
                                "than 16 deep");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(free_text_is_any_text_until_a_mark),
                cmocka_unit_test(the_first_mark_that_comes_begins_its_part),
                cmocka_unit_test(parts_of_free_text_are_counted),
                cmocka_unit_test(text_before_a_mark_stands_anywhere),
                cmocka_unit_test(reasoning_may_be_left_out),
                cmocka_unit_test(lists_have_texts_between),
                cmocka_unit_test(calls_of_hermes),
                cmocka_unit_test(calls_of_llama_3),
                cmocka_unit_test(calls_of_mistral_v3),
                cmocka_unit_test(calls_of_mistral_v13),
                cmocka_unit_test(calls_of_deepseek),
                cmocka_unit_test(calls_of_kimi),
                cmocka_unit_test(calls_of_qwen3_coder),
                cmocka_unit_test(calls_of_deepseek_v3_2),
                cmocka_unit_test(calls_of_glm),
                cmocka_unit_test(a_fault_is_told_with_the_place_of_its_part),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
