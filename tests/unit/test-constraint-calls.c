/* Structures of the ways in which models write their calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/structure-rig.h"

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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(calls_of_hermes),      cmocka_unit_test(calls_of_llama_3),
                cmocka_unit_test(calls_of_mistral_v3),  cmocka_unit_test(calls_of_mistral_v13),
                cmocka_unit_test(calls_of_deepseek),    cmocka_unit_test(calls_of_kimi),
                cmocka_unit_test(calls_of_qwen3_coder), cmocka_unit_test(calls_of_deepseek_v3_2),
                cmocka_unit_test(calls_of_glm),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
