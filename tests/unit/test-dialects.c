/*
 * What models of each dialect write, and its parts: the files of tests/golden/parts.
 *
 *      signs TEXT       what the template has
 *      dialect NAME     the dialect that it therefore is
 *      >>> a case; "(in reasoning)" at its end: the prompt has opened reasoning
 *      the text
 *      ===
 *      its parts, as parts-rig.h writes them down
 *      <<<
 *
 * The texts are those of public test suites, and some more.
 */
#include <glob.h>

#include "tests/unit/parts-check.h"
#include "tests/unit/template-rig.h"

#define TEXT_MAX 16384u

struct example {
        char title[128];
        char text[TEXT_MAX], parts[TEXT_MAX];
};

/* The next line, without its end; NULL: there is none. */
static char *next_line(char **at)
{
        char *line = *at;
        size_t bytes = strcspn(line, "\n");

        if (!*line)
                return NULL;
        *at += bytes + (line[bytes] == '\n');
        line[bytes] = '\0';
        return line;
}

static void read_until(char **at, const char *end, char to[TEXT_MAX])
{
        size_t count = 0;
        const char *line;

        for (line = next_line(at); line && strcmp(line, end); line = next_line(at)) {
                assert_true(count + strlen(line) + 2 < TEXT_MAX);
                count += (size_t)sprintf(to + count, "%s%s", count ? "\n" : "", line);
        }
        assert_non_null(line);
        to[count] = '\0';
}

/* False: the file is over. */
static bool read_example(char **at, struct example *ret_example)
{
        const char *line = next_line(at);

        if (!line)
                return false;
        assert_int_equal(strncmp(line, ">>> ", 4), 0);
        snprintf(ret_example->title, sizeof(ret_example->title), "%s", line + 4);
        read_until(at, "===", ret_example->text);
        read_until(at, "<<<", ret_example->parts);
        return true;
}

/* The text with each mark in it as the byte of its token. */
static void put_tokens(const struct dialect *dialect, const char *text, char *to)
{
        while (*text) {
                unsigned mark = 0;

                while (mark < MARK_N && (!dialect->marks[mark].is_token ||
                                         strncmp(text, dialect->marks[mark].spelling.text,
                                                 dialect->marks[mark].bytes)))
                        mark++;
                if (mark < MARK_N) {
                        *to++ = (char)(mark < 8 ? mark + 1 : mark - 8 + 0x0e);
                        text += dialect->marks[mark].bytes;
                } else {
                        *to++ = *text++;
                }
        }
        *to = '\0';
}

static void check_example(const struct dialect *dialect, const struct example *example)
{
        const struct dialect ids = with_tokens(*dialect);
        bool in_reasoning = strstr(example->title, "(in reasoning)");
        static char tokens[TEXT_MAX];

        print_message("#   %s\n", example->title);
        check_with(dialect, true, in_reasoning, example->text, example->parts);
        put_tokens(&ids, example->text, tokens);
        check_with(&ids, true, in_reasoning, tokens, example->parts);
}

static const char *after(const char *word, const char *line)
{
        assert_non_null(line);
        assert_int_equal(strncmp(line, word, strlen(word)), 0);
        return line + strlen(word);
}

static unsigned check_file(const char *path)
{
        static struct example example;
        struct dialect dialect;
        size_t bytes;
        char *text = rig_read(path, &bytes), *at = text;
        unsigned count = 0;

        print_message("# %s\n", strrchr(path, '/') + 1);
        dialect = open_dialect((const char *const[2]){ after("signs ", next_line(&at)), NULL });
        assert_string_equal(dialect.name, after("dialect ", next_line(&at)));
        for (; read_example(&at, &example); count++)
                check_example(&dialect, &example);
        free(text);
        return count;
}

static void reads_what_the_models_of_each_dialect_write(void **state)
{
        unsigned count = 0;
        char pattern[1024];
        glob_t found;

        (void)state;
        snprintf(pattern, sizeof(pattern), "%s/tests/golden/parts/*.txt", getenv("SOURCES"));
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        for (size_t i = 0; i < found.gl_pathc; i++)
                count += check_file(found.gl_pathv[i]);
        print_message("# %u examples\n", count);
        assert_true(count > 40);
        globfree(&found);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_what_the_models_of_each_dialect_write),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
