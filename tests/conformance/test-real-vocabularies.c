/*
 * Which published vocabularies are read, and what is said of each of the others.
 *
 * tests/golden/real-vocabularies has a line for each vocabulary file in `real`: its path, and how
 * many tokens it has, or why it is refused.  SAMOVAR_DATA says where the files are; without it
 * there is nothing to test.  WRITE=1 writes the list anew.
 */
#include <ftw.h>

#include "tests/unit/texts.h"

#include "daemon/files/vocabulary.h"

#define FILES_MAX  400u
#define LINE_BYTES 1024u

static char *lines[FILES_MAX];
static size_t line_count;

static bool ends_with(const char *name, const char *end)
{
        size_t n = strlen(name), m = strlen(end);

        return n >= m && !strcmp(name + n - m, end);
}

static bool is_vocabulary(const char *name)
{
        return !strcmp(name, "tokenizer.json") || !strcmp(name, "vocab.json") ||
               !strcmp(name, "vocab.txt") || !strncmp(name, "tekken", 6) ||
               ends_with(name, ".tiktoken") || ends_with(name, ".model") ||
               strstr(name, ".model.v") || ends_with(name, ".gguf");
}

/* A vocabulary of merges does not name its splitter; any will do here. */
static void describe(const char *path, char *to, size_t bytes)
{
        struct vocabulary *vocabulary = NULL;
        struct tokenizer *tokenizer = NULL;
        const char *splitter = ends_with(path, "/vocab.json") ? "gpt2" : NULL;
        char why[LINE_BYTES / 2];

        if (vocabulary_open(path, splitter, &vocabulary, why, sizeof(why)) ||
            tokenizer_open(vocabulary, vocabulary->entry_count, &tokenizer, why, sizeof(why)))
                snprintf(to, bytes, "%s", why);
        else
                snprintf(to, bytes, "%u tokens", vocabulary->entry_count);
        tokenizer_close(tokenizer);
        vocabulary_close(vocabulary);
}

static int note_file(const char *path, const struct stat *about, int type, struct FTW *where)
{
        const size_t root = strlen(getenv("SAMOVAR_DATA")) + strlen("/real/");
        char *line;
        int n;

        (void)about;
        if (type != FTW_F || !is_vocabulary(path + where->base))
                return 0;
        line = malloc(LINE_BYTES);
        assert_non_null(line);
        assert_true(line_count < FILES_MAX);
        n = snprintf(line, LINE_BYTES, "%s: ", path + root);
        describe(path, line + n, LINE_BYTES - (size_t)n);
        lines[line_count++] = line;
        return 0;
}

static int by_text(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static void find_lines(void)
{
        char path[1024];

        snprintf(path, sizeof(path), "%s/real", getenv("SAMOVAR_DATA"));
        assert_int_equal(nftw(path, note_file, 16, FTW_PHYS), 0);
        qsort(lines, line_count, sizeof(*lines), by_text);
}

static void real_vocabularies_are_read_or_refused_as_listed(void **state)
{
        bool writes = getenv("WRITE") != NULL;
        char path[1024], known[LINE_BYTES];
        FILE *list;

        (void)state;
        find_lines();
        snprintf(path, sizeof(path), "%s/tests/golden/real-vocabularies", getenv("SOURCES"));
        list = fopen(path, writes ? "w" : "r");
        assert_non_null(list);
        for (size_t i = 0; i < line_count; i++) {
                if (writes) {
                        fprintf(list, "%s\n", lines[i]);
                        continue;
                }
                if (!fgets(known, sizeof(known), list))
                        fail_msg("not in the list: %s", lines[i]);
                known[strcspn(known, "\n")] = '\0';
                assert_string_equal(lines[i], known);
        }
        if (!writes && fgets(known, sizeof(known), list))
                fail_msg("only in the list: %s", known);
        fclose(list);
        while (line_count)
                free(lines[--line_count]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(real_vocabularies_are_read_or_refused_as_listed),
        };

        if (!getenv("SAMOVAR_DATA") || !getenv("SOURCES")) {
                puts("skipped: SAMOVAR_DATA and SOURCES do not say where the files are");
                return 77;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
