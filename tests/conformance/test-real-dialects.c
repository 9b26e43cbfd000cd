/*
 * Which dialect of calls each published template has, and whether it writes calls that way.
 *
 * tests/golden/real-dialects has a line for each template in `real`: its path, the dialect, what
 * the probe says, and the mark that opens reasoning.  SAMOVAR_DATA says where the files are;
 * without it there is nothing to test.  WRITE=1 writes the list anew.
 */
#include <ftw.h>

#include "daemon/files/chat-source.h"
#include "daemon/text/parts/probe.h"
#include "tests/unit/parts-check.h"

#define FILES_MAX  400u
#define LINE_BYTES 1024u

static char *lines[FILES_MAX];
static size_t line_count;

static bool is_template(const char *name)
{
        const char *end = strrchr(name, '.');

        return (end && !strcmp(end, ".jinja")) || !strcmp(name, "tokenizer_config.json");
}

/* ---- arguments as objects and as texts ---- */

#define CALL(arguments)                                                                            \
        "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\","           \
        "\"content\":"                                                                             \
        "\"\",\"tool_calls\":[{\"id\":\"abcdefghi\",\"type\":\"function\",\"function\":{\"name\":" \
        "\"f\",\"arguments\":" arguments "}}]}],\"tools\":[{\"type\":\"function\",\"function\":{"  \
        "\"name\":\"f\",\"description\":\"A tool.\",\"parameters\":{\"type\":\"object\","          \
        "\"properties\":{},\"required\":[]}}}]}"

/* The text that the template writes, without blanks.  The caller frees it. */
static char *render(const struct chat *chat, const char *text)
{
        struct conversation about = { .bytes = strlen(text) };
        const struct tm now = { .tm_year = 125, .tm_mday = 1 };
        struct rendered rendered = { 0 };
        struct json_document *json;
        struct arena *arena;
        char why[256], *to;
        size_t count = 0;

        assert_int_equal(arena_new(32u << 20, &arena), 0);
        assert_int_equal(json_parse(text, strlen(text), 256, &json, why, sizeof(why)), 0);
        assert_int_equal(value_from_json(arena, json, json_member(json, 0, "messages"), TEXT_GIVEN,
                                         &about.messages),
                         0);
        assert_int_equal(value_from_json(arena, json, json_member(json, 0, "tools"), TEXT_GIVEN,
                                         &about.tools),
                         0);
        (void)chat_render(chat, arena, &about, &now, &rendered, why, sizeof(why));
        to = calloc(1, rendered.bytes + 1);
        assert_non_null(to);
        for (size_t i = 0; i < rendered.bytes; i++)
                if (rendered.text[i] != ' ')
                        to[count++] = rendered.text[i];
        rendered_free(&rendered);
        json_free(json);
        arena_free(arena);
        return to;
}

static void check_forms(const struct chat *chat)
{
        char *object = render(chat, CALL("{\"a\":\"x\",\"b\":{\"c\":[1,2.5,null]}}"));
        char *text = render(chat, CALL("\"{\\\"a\\\":\\\"x\\\",\\\"b\\\":{\\\"c\\\":"
                                       "[1,2.5,null]}}\""));

        assert_string_equal(object, text);
        free(object);
        free(text);
}

static const char *probe(const struct chat_source *source, const struct dialect *dialect)
{
        const struct chat_conf conf = { .plain = source->plain,
                                        .tools = source->tools,
                                        .bos = source->bos ? source->bos : "<s>",
                                        .eos = source->eos ? source->eos : "</s>" };
        const char *said = "is silent";
        struct chat *chat;

        assert_int_equal(chat_open(&conf, &chat), 0);
        if (chat_refusal(chat))
                said = "cannot be opened";
        else
                check_forms(chat);
        if (!chat_refusal(chat))
                switch (probe_dialect(chat, dialect)) {
                case 0:
                        said = "agrees";
                        break;
                case PROBE_E_WRONG:
                        said = "differs";
                        break;
                default:
                        break;
                }
        chat_close(chat);
        return said;
}

static void describe(const struct chat_source *source, char *to, size_t bytes)
{
        const struct dialect dialect =
                open_dialect((const char *const[2]){ source->plain, source->tools });
        const char *think = dialect.marks[MARK_THINK].spelling.text;

        if (dialect_has_calls(&dialect))
                snprintf(to, bytes, "%s, %s, %s", dialect.name, probe(source, &dialect),
                         think ? think : "no mark");
        else
                snprintf(to, bytes, "no calls, %s", think ? think : "no mark");
}

static int note_file(const char *path, const struct stat *about, int type, struct FTW *where)
{
        const size_t root = strlen(getenv("SAMOVAR_DATA")) + strlen("/real/");
        struct chat_source source;
        char why[256], *line;
        int n;

        (void)about;
        if (type != FTW_F || !is_template(path + where->base) ||
            chat_source_file(path, &source, why, sizeof(why)))
                return 0;
        if (source.plain || source.tools) {
                line = malloc(LINE_BYTES);
                assert_non_null(line);
                assert_true(line_count < FILES_MAX);
                n = snprintf(line, LINE_BYTES, "%s: ", path + root);
                describe(&source, line + n, LINE_BYTES - (size_t)n);
                lines[line_count++] = line;
        }
        chat_source_deinit(&source);
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

/* A template also writes a call alike if the client gives its arguments as a text. */
static void real_templates_have_the_dialects_that_are_listed(void **state)
{
        bool writes = getenv("WRITE") != NULL;
        char path[1024], known[LINE_BYTES];
        FILE *list;

        (void)state;
        find_lines();
        snprintf(path, sizeof(path), "%s/tests/golden/real-dialects", getenv("SOURCES"));
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
                cmocka_unit_test(real_templates_have_the_dialects_that_are_listed),
        };

        if (!getenv("SAMOVAR_DATA") || !getenv("SOURCES")) {
                puts("skipped: SAMOVAR_DATA and SOURCES do not say where the files are");
                return 77;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
