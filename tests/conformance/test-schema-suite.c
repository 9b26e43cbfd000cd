/*
 * The JSON-Schema-Test-Suite, draft 2020-12: which schemas compile, and which texts they accept.
 *
 * No invalid value may be accepted.  The counts of all others are those of schema-suite-results,
 * beside this file.  A value is written compactly, as it is in the suite.  Members may come in any
 * order, since a value has none.
 *
 * SAMOVAR_DATA says where the suite is; without it there is nothing to test.  SMV_PRINT=1 prints
 * the counts, each schema that is refused, and each valid value that is not accepted.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/constraint/json-schema.h"
#include "daemon/constraint/matcher.h"
#include "json/builder.h"
#include "json/bytes.h"
#include "json/reader.h"
#include "tests/skip.h"

#define SUITE "grammars/JSON-Schema-Test-Suite/tests/draft2020-12"

struct counts {
        unsigned schemas, compiled, valid, accepted, invalid, leaked;
};

static char *read_file(const char *path, size_t *ret_bytes)
{
        FILE *file = fopen(path, "r");
        char *text = malloc(1 << 20);

        assert_non_null(file);
        *ret_bytes = fread(text, 1, 1 << 20, file);
        assert_true(*ret_bytes < 1 << 20);
        fclose(file);
        return text;
}

static struct bytes text_of(const struct json_document *json, uint32_t node)
{
        struct bytes text = { 0 };
        struct json_builder builder = json_build(&text);

        json_put_node(&builder, json, node);
        assert_int_equal(json_put_end(&builder), 0);
        return text;
}

static bool accepts(struct matcher *matcher, const struct bytes *text)
{
        matcher_reset(matcher);
        return matcher_take_bytes(matcher, text->at, text->count) == MATCHER_FINE &&
               matcher_can_end(matcher);
}

static void check_values(const struct json_document *json, uint32_t tests, struct matcher *matcher,
                         const char *about, struct counts *counts)
{
        for (uint32_t at = json_first(json, tests); at != JSON_NONE; at = json_next(json, at)) {
                struct bytes text = text_of(json, json_member(json, at, "data"));
                bool accepted = accepts(matcher, &text), valid = false;

                json_bool(json, json_member(json, at, "valid"), &valid);
                counts->valid += valid;
                counts->invalid += !valid;
                counts->accepted += valid && accepted;
                counts->leaked += !valid && accepted;
                if (getenv("SMV_PRINT") && valid != accepted)
                        print_message("# %s: %s: %.200s\n", valid ? "refused" : "LEAK", about,
                                      text.at);
                bytes_deinit(&text);
        }
}

static void check_schema(const struct json_document *json, uint32_t group, struct counts *counts)
{
        static const struct json_schema_options options = { JSON_SPACE_ONE, true };
        struct bytes schema = text_of(json, json_member(json, group, "schema"));
        const char *about = json_string(json, json_member(json, group, "description"), NULL);
        struct grammar *grammar;
        char why[300];

        counts->schemas++;
        if (json_schema_compile(schema.at, schema.count, &options, &grammar_limits_default,
                                &grammar, why, sizeof(why)) == 0) {
                struct token_trie *trie = token_trie_new(NULL, 0, NULL, 0);
                struct matcher *matcher = matcher_new(grammar, trie, &matcher_limits_default);

                counts->compiled++;
                check_values(json, json_member(json, group, "tests"), matcher, about, counts);
                matcher_free(matcher);
                token_trie_free(trie);
                grammar_free(grammar);
        } else if (getenv("SMV_PRINT")) {
                print_message("# not compiled: %s: %s\n", about, why);
        }
        bytes_deinit(&schema);
}

/* One line of the results. */
static void check_file(const char *folder, const char *name, FILE *results, unsigned *leaked)
{
        struct counts counts = { 0 };
        struct json_document *json;
        char path[1024], why[200];
        size_t bytes;
        char *text;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        text = read_file(path, &bytes);
        assert_int_equal(json_parse(text, bytes, 1000000, &json, why, sizeof(why)), 0);
        for (uint32_t at = json_first(json, 0); at != JSON_NONE; at = json_next(json, at))
                check_schema(json, at, &counts);
        fprintf(results, "%s\t%u of %u\t%u of %u\t%u of %u\n", name, counts.compiled,
                counts.schemas, counts.accepted, counts.valid, counts.invalid - counts.leaked,
                counts.invalid);
        if (counts.leaked)
                print_error("%s: %u invalid values are accepted\n", name, counts.leaked);
        *leaked += counts.leaked;
        json_free(json);
        free(text);
}

static int is_json(const struct dirent *entry)
{
        size_t count = strlen(entry->d_name);

        return count > 5 && strcmp(entry->d_name + count - 5, ".json") == 0;
}

static void accepts_no_invalid_value_and_as_many_valid_ones_as_before(void **state)
{
        struct dirent **names;
        char *made = NULL, *wanted, path[1024], folder[512];
        unsigned leaked = 0;
        size_t bytes;
        FILE *results;
        int count;

        (void)state;
        if (!getenv("SAMOVAR_DATA"))
                skip_because("SAMOVAR_DATA is not set");
        snprintf(folder, sizeof(folder), "%s/" SUITE, getenv("SAMOVAR_DATA"));
        count = scandir(folder, &names, is_json, alphasort);
        assert_true(count > 0);
        results = open_memstream(&made, &bytes);
        fputs("file\tschemas compiled\tvalid accepted\tinvalid refused\n", results);
        for (int i = 0; i < count; i++) {
                check_file(folder, names[i]->d_name, results, &leaked);
                free(names[i]);
        }
        free(names);
        fclose(results);
        if (getenv("SMV_PRINT"))
                fputs(made, stdout);
        assert_int_equal(leaked, 0);
        snprintf(path, sizeof(path), "%s/tests/conformance/schema-suite-results",
                 getenv("SOURCES"));
        wanted = read_file(path, &bytes);
        wanted[bytes] = 0;
        assert_string_equal(made, wanted);
        free(wanted);
        free(made);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(accepts_no_invalid_value_and_as_many_valid_ones_as_before),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
