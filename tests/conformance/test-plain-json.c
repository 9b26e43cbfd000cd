/*
 * The files of JSONTestSuite through the schema `true`, which allows every JSON value: a file's
 * name says whether the file must be accepted (y_), refused (n_), or may be either (i_).
 *
 * SAMOVAR_DATA says where the files are; without it there is nothing to test.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/constraint/json-schema.h"
#include "daemon/constraint/matcher.h"
#include "tests/skip.h"

#define FOLDER     "grammars/JSONTestSuite/test_parsing"
#define FILE_BYTES (1u << 20)

/* What json-schema.h excludes on purpose: none of these may be accepted. */
static const char *const narrowed[] = {
        /* space before or behind the value */
        "y_array_with_leading_space.json",
        "y_array_with_trailing_space.json",
        "y_structure_trailing_newline.json",
        "y_structure_whitespace_array.json",
        /* more than 16 digits behind the point */
        "y_number_double_close_to_zero.json",
};

static struct matcher *matcher_for(const char *schema, struct grammar **ret_grammar,
                                   struct token_trie **ret_trie)
{
        static const struct json_schema_options options = { JSON_SPACE_FREE, false };
        struct matcher *matcher;
        char why[300];

        assert_int_equal(json_schema_compile(schema, strlen(schema), &options,
                                             &grammar_limits_default, ret_grammar, why,
                                             sizeof(why)),
                         0);
        *ret_trie = token_trie_new(NULL, 0, NULL, 0);
        matcher = matcher_new(*ret_grammar, *ret_trie, &matcher_limits_default);
        assert_non_null(matcher);
        matcher_reset(matcher);
        return matcher;
}

static bool accepts(struct matcher *matcher, const char *path)
{
        static char text[FILE_BYTES];
        FILE *in = fopen(path, "rb");
        size_t bytes;

        if (!in)
                fail_msg("%s: %s", path, strerror(errno));
        bytes = fread(text, 1, sizeof(text), in);
        assert_true(feof(in));
        fclose(in);
        matcher_reset(matcher);
        return matcher_take_bytes(matcher, text, bytes) == MATCHER_FINE && matcher_can_end(matcher);
}

static bool is_narrowed(const char *name)
{
        for (size_t i = 0; i < sizeof(narrowed) / sizeof(*narrowed); i++)
                if (strcmp(name, narrowed[i]) == 0)
                        return true;
        return false;
}

static void accepts_and_refuses_the_files_of_jsontestsuite_by_the_schema_true(void **state)
{
        unsigned valid = 0, invalid = 0, narrow = 0, bad = 0;
        char path[1024];
        struct token_trie *trie;
        struct grammar *grammar;
        struct matcher *matcher;
        struct dirent *entry;
        DIR *folder;

        (void)state;
        if (!getenv("SAMOVAR_DATA"))
                skip_because("SAMOVAR_DATA is not set");
        snprintf(path, sizeof(path), "%s/" FOLDER, getenv("SAMOVAR_DATA"));
        folder = opendir(path);
        if (!folder)
                fail_msg("%s: %s", path, strerror(errno));
        matcher = matcher_for("true", &grammar, &trie);
        while ((entry = readdir(folder))) {
                const char *name = entry->d_name;
                bool accepted;

                if (name[0] != 'y' && name[0] != 'n')
                        continue;
                snprintf(path, sizeof(path), "%s/" FOLDER "/%s", getenv("SAMOVAR_DATA"), name);
                accepted = accepts(matcher, path);
                valid += name[0] == 'y';
                invalid += name[0] == 'n';
                narrow += is_narrowed(name);
                if (accepted != (name[0] == 'y' && !is_narrowed(name))) {
                        print_error("%s: %s\n", name, accepted ? "accepted" : "refused");
                        bad++;
                }
        }
        closedir(folder);
        matcher_free(matcher);
        grammar_free(grammar);
        token_trie_free(trie);
        assert_int_equal(bad, 0);
        assert_int_equal(narrow, sizeof(narrowed) / sizeof(*narrowed));
        assert_true(valid > 90 && invalid > 180);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(accepts_and_refuses_the_files_of_jsontestsuite_by_the_schema_true),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
