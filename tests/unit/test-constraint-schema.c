/*
 * Schemas: what texts look like, which schemas are refused and why, and schemas that are made to
 * cost much.  tests/conformance/test-schema-suite.c has a public suite.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/constraint/json-schema.h"
#include "tests/grammar-accepts.h"

static struct json_schema_options options;

static int compile(const char *schema, struct grammar **ret_grammar, char *why, size_t why_bytes)
{
        return json_schema_compile(schema, strlen(schema), &options, &grammar_limits_default,
                                   ret_grammar, why, why_bytes);
}

static bool accepts(const char *schema, const char *text)
{
        struct grammar *grammar;
        char why[400];
        bool accepted;

        if (compile(schema, &grammar, why, sizeof(why)) != 0)
                fail_msg("%.300s: %s", schema, why);
        accepted = grammar_accepts(grammar, text);
        grammar_free(grammar);
        return accepted;
}

static void check(const char *schema, const char *good, const char *bad)
{
        if (good && !accepts(schema, good))
                fail_msg("%.300s: refuses %s", schema, good);
        if (bad && accepts(schema, bad))
                fail_msg("%.300s: accepts %s", schema, bad);
}

static void check_refusal(const char *schema, const char *sentence)
{
        struct grammar *grammar;
        char why[400] = "";

        if (compile(schema, &grammar, why, sizeof(why)) == 0)
                fail_msg("%.300s is not refused", schema);
        if (strcmp(why, sentence))
                fail_msg("%.60s: '%s', not '%s'", schema, why, sentence);
}

static void space_is_limited_and_never_around_the_value(void **state)
{
        (void)state;
        check("true", "[ 1,\n          2]", "[  1]");
        check("true", "{\"a\" : {} , \"b\":[\n]}", "{\"a\":\n\n1}");
        check("true", "\" a \"", " 1");
        check("true", "[]", "[] ");
        options.space = JSON_SPACE_NONE;
        check("true", "[1,2]", "[1, 2]");
        options.space = JSON_SPACE_FREE;
        check("true", "[  1 ,\r\n\t  2]", "[1] ");
        options.space = JSON_SPACE_ONE;
}

static void members_come_in_their_order(void **state)
{
        const char *schema = "{\"properties\": {\"b\": {}, \"a\": {}}, \"required\": [\"c\"]}";

        (void)state;
        check(schema, "{\"b\":1,\"a\":2,\"c\":3,\"x\":4}", "{\"a\":1,\"b\":2,\"c\":3}");
        check(schema, "{\"c\":1}", "{\"x\":1,\"c\":1}");
        check(schema, NULL, "{\"b\":1,\"b\":1,\"c\":1}");
        options.any_order = true;
        check(schema, "{\"x\":4,\"c\":3,\"a\":2,\"b\":1}", "{\"a\":1,\"b\":2}");
        check(schema, NULL, "{\"c\":1,\"a\":2,\"a\":3}");
        options.any_order = false;
        check("{\"properties\": {\"a\": {}, \"b\": {}}, \"dependentRequired\": {\"b\": [\"a\"]}}",
              "{\"a\":1,\"b\":1}", "{\"b\":1}");
        check("{\"allOf\": [{\"properties\": {\"a\": {}}, \"required\": [\"z\"]}, {\"properties\": "
              "{\"b\": {}, \"z\": {}}}]}",
              "{\"a\":1,\"b\":1,\"z\":1}", "{\"z\":1,\"b\":1}");
        /* Those of allOf and of references stand where a reader finds them. */
        check("{\"allOf\": [{\"$ref\": \"#/$defs/a\"}, {\"properties\": {\"z\": {}}}], \"$defs\": "
              "{\"a\": {\"allOf\": [{\"properties\": {\"b\": {}}}], \"properties\": {\"c\": {}}}}}",
              "{\"c\":1,\"b\":1,\"z\":1}", "{\"z\":1,\"b\":1}");
        check("{\"allOf\": [{\"properties\": {\"z\": {}}}, {\"$ref\": \"#/$defs/a\"}], \"$defs\": "
              "{\"a\": {\"properties\": {\"b\": {}}}}}",
              "{\"z\":1,\"b\":1}", "{\"b\":1,\"z\":1}");
}

static void objects_may_have_only_the_members_that_are_named(void **state)
{
        (void)state;
        options.only_named = true;
        check("{\"properties\": {\"a\": {}}, \"required\": [\"c\"]}", "{\"a\":1,\"c\":2}",
              "{\"c\":2,\"x\":3}");
        check("{\"properties\": {\"a\": {\"properties\": {\"b\": {}}}}}", "{\"a\":{\"b\":1}}",
              "{\"a\":{\"c\":1}}");
        check("{\"properties\": {}}", "{}", "{\"a\":1}");
        /* All schemas of one object name its members together. */
        check("{\"allOf\": [{\"properties\": {\"a\": {}}}, {\"properties\": {\"b\": {}}}]}",
              "{\"a\":1,\"b\":1}", "{\"a\":1,\"b\":1,\"c\":1}");
        /* It names none, speaks of others, or needs more. */
        check("{\"type\": \"object\"}", "{\"a\":1}", "1");
        check("{\"properties\": {\"a\": {}}, \"additionalProperties\": {\"type\": \"null\"}}",
              "{\"x\":null}", "{\"x\":1}");
        check("{\"properties\": {\"a\": {}}, \"patternProperties\": {\"^x\": {}}}", "{\"y\":1}",
              "{\"y\"}");
        check("{\"properties\": {\"a\": {}}, \"propertyNames\": {\"maxLength\": 1}}", "{\"y\":1}",
              "{\"yy\":1}");
        check("{\"properties\": {\"a\": {}}, \"minProperties\": 2}", "{\"a\":1,\"y\":1}",
              "{\"a\":1}");
        options.only_named = false;
}

static void keywords_of_earlier_drafts_have_their_meaning(void **state)
{
        const char *tuple = "{\"type\": \"array\", \"items\": [{\"type\": \"integer\"}, {\"type\": "
                            "\"null\"}], \"additionalItems\": {\"type\": \"boolean\"}}";
        const char *needs =
                "{\"type\": \"object\", \"properties\": {\"a\": {}, \"b\": {}, \"c\": {}}, "
                "\"dependencies\": {\"a\": [\"b\"], \"c\": {\"required\": [\"a\"]}}}";

        (void)state;
        check(tuple, "[1,null,true,false]", "[1,null,1]");
        check(tuple, "[1]", "[null]");
        check("{\"items\": [{}], \"additionalItems\": false}", "[1]", "[1,2]");
        check("{\"items\": {\"type\": \"null\"}, \"additionalItems\": false}", "[null,null]",
              "[1]");
        check("{\"additionalItems\": false, \"type\": \"array\"}", "[1,2]", "1");
        check(needs, "{\"a\":1,\"b\":1}", "{\"a\":1}");
        check(needs, "{\"a\":1,\"b\":1,\"c\":1}", "{\"c\":1}");
        check(needs, "{\"b\":1}", "{\"b\":1,\"c\":1}");
}

static void numbers_are_as_json_writes_them(void **state)
{
        (void)state;
        check("{\"type\": \"number\"}", "-0.5e-10", "01");
        check("{\"type\": \"number\"}", "-0", "1.");
        check("{\"type\": \"number\"}", "1E+3", "+1");
        check("{\"type\": \"number\"}", "1234567890123456", "12345678901234567");
        check("{\"type\": \"integer\"}", "-12", "1.0");
        check("{\"type\": \"integer\", \"minimum\": -3, \"exclusiveMaximum\": 12}", "-3", "12");
        check("{\"type\": \"integer\", \"minimum\": -3, \"exclusiveMaximum\": 12}", "11", "-4");
        check("{\"minimum\": 1.5, \"maximum\": 1.75}", "1.6", "1.76");
        check("{\"minimum\": 1.5, \"maximum\": 1.75}", "\"x\"", "1.4");
        check("{\"multipleOf\": 0.25, \"minimum\": 1, \"type\": \"number\"}", "1.25", "1.3");
        check("{\"multipleOf\": 99991, \"type\": \"integer\"}", "199982", "199983");
        check("{\"type\": \"number\", \"maximum\": 123456789012345}", "123456789012344.9999",
              "123456789012345.1");
        check("{\"type\": \"number\", \"not\": {\"type\": \"integer\"}}", "1.5", "1.0");
}

static void names_of_hosts_have_the_lengths_that_standards_allow(void **state)
{
        const char *host = "{\"type\": \"string\", \"format\": \"hostname\"}";
        const char *email = "{\"type\": \"string\", \"format\": \"email\"}";
        char good[300], bad[300], label[64] = "";

        (void)state;
        memset(label, 'a', 63);
        snprintf(good, sizeof(good), "\"%s.%s.%s.%.61s\"", label, label, label, label);
        snprintf(bad, sizeof(bad), "\"%s.%s.%s.%.62s\"", label, label, label, label);
        check(host, good, bad);
        check(host, "\"a.b-c\"", "\"a..b\"");
        snprintf(bad, sizeof(bad), "\"%sa\"", label);
        check(host, NULL, bad);
        snprintf(good, sizeof(good), "\"%sa@b\"", label);
        snprintf(bad, sizeof(bad), "\"%saa@b\"", label);
        check(email, good, bad);
        snprintf(good, sizeof(good), "\"a@%s.%s.%s.%.60s\"", label, label, label, label);
        snprintf(bad, sizeof(bad), "\"a@%s.%s.%s.%.61s\"", label, label, label, label);
        check(email, good, bad);
}

static void strings_are_counted_in_characters(void **state)
{
        (void)state;
        check("{\"type\": \"string\", \"maxLength\": 2}", "\"\\ud83d\\ude00\\n\"", "\"abc\"");
        check("{\"type\": \"string\", \"minLength\": 2}", "\"é😀\"", "\"😀\"");
        check("{\"type\": \"string\"}", "\"\\u00e9\\/\"", "\"\\ud800\"");
        check("{\"type\": \"string\"}", "\"\x7f\"", "\"\t\"");
        check("{\"type\": \"string\"}", NULL, "\"\xed\xa0\x80\"");
        check("{\"type\": \"string\", \"pattern\": \"^a.*b$\", \"maxLength\": 3}", "\"a\\\"b\"",
              "\"aabb\"");
        check("{\"type\": \"string\", \"pattern\": \"b\"}", "\"abc\"", "\"ac\"");
        check("{\"type\": \"string\", \"format\": \"date\"}", "\"2024-02-29\"", "\"2023-02-29\"");
        check("{\"type\": \"string\", \"format\": \"date\"}", "\"0001-01-01\"", "\"0000-02-01\"");
        check("{\"type\": \"string\", \"format\": \"ipv6\"}", "\"::1\"", "\"1::2::3\"");
        check("{\"type\": \"string\", \"not\": {\"enum\": [\"ab\", \"b\"]}}", "\"abc\"", "\"ab\"");
}

static void alternatives_are_exact(void **state)
{
        (void)state;
        check("{\"enum\": [1, \"1\", [1, {\"a\": null}]], \"type\": [\"string\", \"array\"]}",
              "[1,{\"a\":null}]", "1");
        check("{\"anyOf\": [{\"type\": \"integer\"}, {\"minimum\": 2}], \"maximum\": 5}", "2.5",
              "1.5");
        check("{\"oneOf\": [{\"type\": \"integer\"}, {\"minimum\": 2}]}", "2.5", "3");
        check("{\"oneOf\": [{\"required\": [\"a\"]}, {\"required\": [\"b\"]}], \"type\": "
              "\"object\"}",
              "{\"a\":1}", "{\"a\":1,\"b\":2}");
        check("{\"if\": {\"properties\": {\"k\": {\"const\": \"x\"}}, \"required\": [\"k\"]}, "
              "\"then\": {\"required\": [\"v\"]}, \"type\": \"object\"}",
              "{\"k\":\"x\",\"v\":1}", "{\"k\":\"x\"}");
        check("{\"$defs\": {\"t\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/t\"}}}, "
              "\"$ref\": \"#/$defs/t\", \"maxItems\": 2}",
              "[[[],[],[]],[]]", "[[],[],[]]");
        check("{\"patternProperties\": {\"^n\": {\"type\": \"number\"}}, "
              "\"additionalProperties\": {\"type\": \"null\"}}",
              "{\"n1\":1,\"x\":null}", "{\"n1\":null}");
        check("{\"propertyNames\": {\"maxLength\": 2}}", "{\"ab\":1}", "{\"abc\":1}");
        check("{\"minProperties\": 1, \"maxProperties\": 2}", "{\"a\":1}", "{}");
}

static void what_cannot_be_enforced_is_refused_by_name_and_place(void **state)
{
        (void)state;
        check_refusal("{\"properties\": {\"a\": {\"maxLenght\": 3}}}",
                      "schema, at \"/properties/a/maxLenght\": the keyword maxLenght is not "
                      "supported");
        check_refusal("{\"items\": [1]}",
                      "schema, at \"/items/0\": a schema is an object, true or false");
        check_refusal("{\"format\": \"color\"}",
                      "schema, at \"/format\": the format color is not supported");
        check_refusal("{\"$ref\": \"http://x.org/s\"}",
                      "schema, at \"/$ref\": $ref http://x.org/s is not in this schema");
        check_refusal("{\"$ref\": \"#\"}", "schema, at \"/$ref\": the references are a circle");
        check_refusal("{\"properties\": {\"a\": {\"$ref\": \"#/$defs/a\"}}, \"$defs\": {\"a\": "
                      "{\"$ref\": \"#/$defs/b\"}, \"b\": {\"type\": \"null\", \"$ref\": "
                      "\"#/$defs/c\"}, \"c\": {\"$ref\": \"#/$defs/b\"}}}",
                      "schema, at \"/$defs/b/$ref\": the references are a circle");
        check_refusal("{\"pattern\": \"a(?=b)\"}", "schema, at \"/pattern\": regular expression, "
                                                   "byte 2: look-around is not supported");
        check_refusal("{\"uniqueItems\": true}",
                      "schema, at \"/uniqueItems\": uniqueItems is not supported");
        check_refusal("{\"contains\": {}}", "schema, at \"/contains\": contains is not supported");
        check_refusal("{\"unevaluatedProperties\": false}",
                      "schema, at \"/unevaluatedProperties\": the keyword unevaluatedProperties is "
                      "not supported");
        check_refusal("{\"type\": \"text\"}",
                      "schema, at \"/type\": a type is null, boolean, integer, number, string, "
                      "array or object");
        check_refusal("{\"minLength\": -1}", "schema, at \"/minLength\": it must be a count");
        check_refusal("{\"minimum\": 3, \"maximum\": 2, \"type\": \"integer\"}",
                      "no text can match: it asks for what it excludes");
        check_refusal("{\"properties\": {\"a\": false}, \"required\": [\"a\"], \"type\": "
                      "\"object\"}",
                      "no text can match: it asks for what it excludes");
        check_refusal("{\"$ref\": \"#/$defs/a\", \"$defs\": {\"a\": {\"type\": \"object\", "
                      "\"properties\": {\"a\": {\"$ref\": \"#\"}}, \"required\": [\"a\"]}}}",
                      "no text can match: it asks for what it excludes");
}

/* `head`, then `part` with a number in it for each of `count`, then `tail`. */
static char *repeated(const char *head, const char *part, unsigned count, const char *tail)
{
        char *text = NULL;
        size_t bytes;
        FILE *to = open_memstream(&text, &bytes);

        fputs(head, to);
        for (unsigned i = 0; i < count; i++)
                fprintf(to, part, i ? "," : "", i);
        fputs(tail, to);
        fclose(to);
        return text;
}

static void large_schemas_compile(void **state)
{
        char *schema;

        (void)state;
        check("{\"type\": \"array\", \"minItems\": 2, \"maxItems\": 1000000}", "[1,1]", "[1]");
        check("{\"type\": \"string\", \"minLength\": 3, \"maxLength\": 1000000}", "\"abc\"",
              "\"ab\"");
        check("{\"type\": \"string\", \"pattern\": \"^(a|aa){500}$\"}", NULL, "\"aaa\"");
        check("{\"type\": \"string\", \"pattern\": \"^(a+)+$\"}", "\"aaaa\"", "\"aab\"");
        schema = repeated("{\"enum\": [", "%s\"value %u\"", 20000, "]}");
        check(schema, "\"value 19999\"", "\"value 20000\"");
        free(schema);
        schema = repeated("{\"type\": \"object\", \"properties\": {", "%s\"p%u\": {}", 1000, "}}");
        check(schema, "{\"p0\":1,\"p500\":1,\"p999\":1}", "{\"p5\":1,\"p4\":1}");
        free(schema);
        schema = repeated("{\"anyOf\": [",
                          "%s{\"type\": \"object\", \"properties\": {\"k\": {\"const\": %u}}, "
                          "\"required\": [\"k\"], \"additionalProperties\": false}",
                          500, "]}");
        check(schema, "{\"k\":499}", "{\"k\":500}");
        free(schema);
}

static void explosions_are_refused(void **state)
{
        char *schema, deep[1000] = "";

        (void)state;
        schema = repeated(
                "{\"allOf\": [",
                "%s{\"anyOf\": [{\"minimum\": 1%u}, {\"maximum\": 1}, {\"minLength\": 2}]}", 12,
                "]}");
        check_refusal(schema, "schema, at \"/allOf/11/anyOf/2\": alternatives (anyOf, oneOf, if, "
                              "not) multiply beyond the limit");
        free(schema);
        for (int i = 0; i < 100; i++)
                strcat(deep, "{\"not\":");
        check_refusal(deep, "byte 448: nested deeper than 64 levels");
}

static void keywords_that_only_describe_are_read_over(void **state)
{
        (void)state;
        check("{\"self\": {\"vendor\": \"a\"}, \"links\": [{\"rel\": \"b\"}], \"type\": \"null\"}",
              "null", "1");
        check("{\"properties\": {\"a\": {\"readonly\": true, \"type\": \"null\"}}}", "{\"a\":null}",
              "{\"a\":1}");
        check("{\"strict\": true, \"type\": \"null\"}", "null", "1");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_of_hosts_have_the_lengths_that_standards_allow),
                cmocka_unit_test(space_is_limited_and_never_around_the_value),
                cmocka_unit_test(members_come_in_their_order),
                cmocka_unit_test(objects_may_have_only_the_members_that_are_named),
                cmocka_unit_test(keywords_of_earlier_drafts_have_their_meaning),
                cmocka_unit_test(numbers_are_as_json_writes_them),
                cmocka_unit_test(strings_are_counted_in_characters),
                cmocka_unit_test(alternatives_are_exact),
                cmocka_unit_test(what_cannot_be_enforced_is_refused_by_name_and_place),
                cmocka_unit_test(large_schemas_compile),
                cmocka_unit_test(explosions_are_refused),
                cmocka_unit_test(keywords_that_only_describe_are_read_over),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
