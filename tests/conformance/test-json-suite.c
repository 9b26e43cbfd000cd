/*
 * Tests our JSON reader with a public collection of hard cases: a file's name says whether the file
 * must be accepted (y_), refused (n_), or may be either (i_).
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

#include "json/reader.h"

#define FOLDER "grammars/JSONTestSuite/test_parsing"

static bool ends_in_json(const char *name)
{
        size_t n = strlen(name);

        return n > 5 && !strcmp(name + n - 5, ".json");
}

/* Reads the file into memory that ends where the file ends. */
static char *read_file(const char *path, size_t *ret_bytes)
{
        static char bytes[1 << 20];
        FILE *in = fopen(path, "rb");
        char *exact;

        if (!in)
                fail_msg("%s: %s", path, strerror(errno));
        *ret_bytes = fread(bytes, 1, sizeof(bytes), in);
        assert_true(feof(in));
        fclose(in);
        exact = malloc(*ret_bytes + !*ret_bytes);
        assert_non_null(exact);
        return memcpy(exact, bytes, *ret_bytes);
}

/* This file gives a key twice, which RFC 8259 leaves open and which our reader refuses. */
static bool is_ours_to_refuse(const char *name)
{
        return !strncmp(name, "y_object_duplicated_key", 23);
}

static void accepts_and_refuses_the_files_of_jsontestsuite(void **state)
{
        unsigned accepted = 0, refused = 0, bad = 0;
        char path[1024], why[256];
        struct dirent *entry;
        DIR *folder;

        (void)state;
        snprintf(path, sizeof(path), "%s/" FOLDER, getenv("SAMOVAR_DATA"));
        folder = opendir(path);
        if (!folder)
                fail_msg("%s: %s", path, strerror(errno));
        while ((entry = readdir(folder))) {
                const char *name = entry->d_name;
                struct json_document *json = NULL;
                size_t bytes;
                char *text;
                int r;

                if (!ends_in_json(name))
                        continue;
                snprintf(path, sizeof(path), "%s/" FOLDER "/%s", getenv("SAMOVAR_DATA"), name);
                text = read_file(path, &bytes);
                r = json_parse(text, bytes, UINT32_MAX, &json, why, sizeof(why));
                accepted += name[0] == 'y';
                refused += name[0] == 'n';
                if (name[0] != 'i' && (r == 0) != (name[0] == 'y' && !is_ours_to_refuse(name))) {
                        print_error("%s: %d %s\n", name, r, r ? why : "");
                        bad++;
                }
                json_free(json);
                free(text);
        }
        closedir(folder);
        assert_int_equal(bad, 0);
        assert_true(accepted > 90 && refused > 180);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(accepts_and_refuses_the_files_of_jsontestsuite),
        };

        if (!getenv("SAMOVAR_DATA")) {
                puts("skipped: SAMOVAR_DATA does not say where the files are");
                return 77;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
