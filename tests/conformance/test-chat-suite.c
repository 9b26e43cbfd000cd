/*
 * What models of each dialect write, by the tests of llama.cpp: its templates, the answers, and the
 * messages that they should become.
 *
 * contrib/dev/calls takes the cases from the sources of llama.cpp, and runs this program with the
 * file's path in CHAT_SUITE.  Each line is a case.  A case passes if text, reasoning and calls are
 * those expected, blanks at their ends aside; arguments are compared as JSON.  Marks are text, and
 * then control tokens; the answer comes in bytes, and in one piece.
 *
 * The cases that do not pass are listed in chat-suite-results, beside this file, with the reason.
 * SMV_PRINT=1 prints what became of them.
 */
#include "daemon/files/chat-source.h"
#include "daemon/text/parts/probe.h"
#include "json/builder.h"
#include "tests/unit/parts-check.h"

#define LINE_BYTES (256u << 10)

struct answer {
        struct bytes text, reasoning, calls;
};

struct suite_case {
        struct json_document *json;
        struct chat_source source;
        struct chat *chat;
        struct dialect dialect;
        struct argument_types *types;
        bool in_reasoning;
        const char *template;
};

static const char *string_of(const struct json_document *json, uint32_t node, const char *name)
{
        const char *text = json_string(json, json_member(json, node, name), NULL);

        assert_non_null(text);
        return text;
}

static uint64_t number_of(const struct suite_case *test, const char *name)
{
        uint64_t number = 0;

        assert_true(json_whole(test->json, json_member(test->json, 0, name), &number));
        return number;
}

/* ---- the prompt ---- */

static struct value value_of(const struct suite_case *test, struct arena *arena, const char *name)
{
        struct value value;

        assert_int_equal(value_from_json(arena, test->json, json_member(test->json, 0, name),
                                         TEXT_GIVEN, &value),
                         0);
        return value;
}

static bool ends_with_mark(const struct rendered *rendered, const struct dialect *dialect)
{
        size_t bytes = dialect->marks[MARK_THINK].bytes, end = rendered->bytes;

        while (end && json_is_blank((uint8_t)rendered->text[end - 1]))
                end--;
        return bytes && end >= bytes &&
               !memcmp(rendered->text + end - bytes, dialect->marks[MARK_THINK].spelling.text,
                       bytes);
}

/* Templates have either name for it. */
static void set_thinking(struct arena *arena, bool thinking, struct value *ret_vars)
{
        static const char *const names[] = { "enable_thinking", "thinking" };

        assert_int_equal(value_map(arena, 2, ret_vars), 0);
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(value_map_name(arena, ret_vars, names[i], value_bool(thinking)),
                                 0);
        assert_int_equal(value_map_end(arena, ret_vars), 0);
}

/* Makes the types of the tools, and finds out whether the prompt opens reasoning. */
static void look_at_prompt(struct suite_case *test)
{
        struct conversation about = { .add_generation_prompt = true, .bytes = LINE_BYTES };
        const struct tm now = { .tm_year = 125, .tm_mday = 1 };
        struct rendered rendered = { 0 };
        struct arena *arena;
        char why[256];

        assert_int_equal(arena_new(4u << 20, &arena), 0);
        about.messages = value_of(test, arena, "messages");
        about.tools = value_of(test, arena, "tools");
        if (!about.tools.list->count)
                about.tools = value_none();
        set_thinking(arena, number_of(test, "thinking"), &about.vars);
        assert_int_equal(argument_types_make(about.tools, &test->types), 0);
        if (!chat_refusal(test->chat) &&
            !chat_render(test->chat, arena, &about, &now, &rendered, why, sizeof(why)))
                test->in_reasoning = ends_with_mark(&rendered, &test->dialect);
        if (number_of(test, "continues"))
                test->in_reasoning = number_of(test, "continues") == 2;
        rendered_free(&rendered);
        arena_free(arena);
}

static void open_case(struct suite_case *test, const char *line)
{
        struct chat_conf conf = { .bos = "<s>", .eos = "</s>" };
        char why[256];

        assert_int_equal(json_parse(line, strlen(line), 4096, &test->json, why, sizeof(why)), 0);
        test->template = string_of(test->json, 0, "template");
        assert_int_equal(chat_source_file(test->template, &test->source, why, sizeof(why)), 0);
        conf.plain = test->source.plain;
        conf.tools = test->source.tools;
        assert_int_equal(chat_open(&conf, &test->chat), 0);
        test->dialect = open_dialect((const char *const[2]){ conf.plain, conf.tools });
        if (probe_dialect(test->chat, &test->dialect) == PROBE_E_WRONG)
                dialect_drop_calls(&test->dialect);
        look_at_prompt(test);
}

static void close_case(struct suite_case *test)
{
        argument_types_unref(test->types);
        chat_close(test->chat);
        chat_source_deinit(&test->source);
        json_free(test->json);
}

/* ---- the answer ---- */

static void put(struct bytes *to, const char *text, size_t bytes)
{
        assert_int_equal(bytes_add(to, text, bytes), 0);
}

static void put_json(struct bytes *to, const char *json, size_t bytes)
{
        struct json_document *document;
        struct bytes plain = { 0 };
        char why[128];

        if (json_parse(json, bytes, 4096, &document, why, sizeof(why))) {
                put(to, json, bytes);
                return;
        }
        struct json_builder builder = json_build(&plain);

        json_put_node(&builder, document, 0);
        assert_int_equal(json_put_end(&builder), 0);
        put(to, plain.at, plain.count);
        bytes_deinit(&plain);
        json_free(document);
}

/* Takes the parts of what was written down; see parts-rig.h. */
static void take_parts(struct answer *answer, const struct parts_out *out, struct bytes *arguments)
{
        size_t at = 0;

        for (size_t i = 0; i < out->count; i++) {
                const struct smv_record_part *part = &out->parts[i];
                const char *text = out->text + at;

                at += part->bytes;
                if (part->kind == SMV_PART_TEXT)
                        put(&answer->text, text, part->bytes);
                if (part->kind == SMV_PART_REASONING)
                        put(&answer->reasoning, text, part->bytes);
                if (part->kind == SMV_PART_CALL) {
                        put(&answer->calls, text, part->bytes);
                        put(&answer->calls, " ", 1);
                        arguments->count = 0;
                }
                if (part->kind == SMV_PART_ARGUMENTS)
                        put(arguments, text, part->bytes);
                if (part->kind == SMV_PART_CALL_END) {
                        put_json(&answer->calls, arguments->at, arguments->count);
                        put(&answer->calls, "\n", 1);
                }
        }
}

static enum dialect_mark mark_at(const struct dialect *dialect, const char *text)
{
        for (unsigned mark = 0; mark < MARK_N; mark++)
                if (dialect->marks[mark].is_token &&
                    !strncmp(text, dialect->marks[mark].spelling.text, dialect->marks[mark].bytes))
                        return (enum dialect_mark)mark;
        return MARK_N;
}

static void read_answer(const struct suite_case *test, const struct dialect *dialect, bool in_bytes,
                        struct answer *ret_answer)
{
        const char *text = string_of(test->json, 0, "input");
        size_t bytes = JSON_SCAN_ESCAPE_BYTES * strlen(text) * 2;
        bool calls = json_count(test->json, json_member(test->json, 0, "tools")) &&
                     number_of(test, "choice") != 2;
        struct parts_out out = { .text = malloc(2 * bytes + (256u << 10)),
                                 .parts = calloc(bytes + 4096, sizeof(*out.parts)) };
        struct bytes arguments = { 0 };
        struct parts parts;

        *ret_answer = (struct answer){ 0 };
        assert_true(out.text && out.parts);
        parts_begin(&parts, dialect, test->types, calls, test->in_reasoning);
        while (*text) {
                enum dialect_mark mark = mark_at(dialect, text);
                size_t piece = 1;

                while (!in_bytes && text[piece] && mark_at(dialect, text + piece) == MARK_N)
                        piece++;
                if (mark < MARK_N)
                        parts_mark(&parts, mark, &out);
                else
                        parts_feed(&parts, text, piece, &out);
                text += mark < MARK_N ? dialect->marks[mark].bytes : piece;
        }
        if (!number_of(test, "partial"))
                parts_end(&parts, &out);
        take_parts(ret_answer, &out, &arguments);
        if (number_of(test, "partial") && parts.state == PARTS_IN_CALL && arguments.count)
                put(&ret_answer->calls, arguments.at, arguments.count);
        bytes_deinit(&arguments);
        free(out.text);
        free(out.parts);
}

static void answer_deinit(struct answer *answer)
{
        bytes_deinit(&answer->text);
        bytes_deinit(&answer->reasoning);
        bytes_deinit(&answer->calls);
}

/* ---- judging ---- */

static bool same_text(const struct bytes *got, const char *wanted)
{
        const char *text = got->at, *end = got->at + got->count;
        size_t bytes = strlen(wanted);

        while (bytes && json_is_blank((uint8_t)wanted[bytes - 1]))
                bytes--;
        while (bytes && json_is_blank((uint8_t)*wanted)) {
                wanted++;
                bytes--;
        }
        while (text < end && json_is_blank((uint8_t)end[-1]))
                end--;
        while (text < end && json_is_blank((uint8_t)*text))
                text++;
        return (size_t)(end - text) == bytes && !memcmp(text, wanted, bytes);
}

/* An answer does not have the text that it continues. */
static const char *without_beginning(const struct suite_case *test, const char *wanted,
                                     const char *name)
{
        uint32_t messages = json_member(test->json, 0, "messages"), last = JSON_NONE;
        const char *begun;

        if (!number_of(test, "continues"))
                return wanted;
        for (uint32_t at = json_first(test->json, messages); at != JSON_NONE;
             at = json_next(test->json, at))
                last = at;
        begun = json_string(test->json, json_member(test->json, last, name), NULL);
        return begun && !strncmp(wanted, begun, strlen(begun)) ? wanted + strlen(begun) : wanted;
}

static bool is_as_expected(const struct suite_case *test, const struct answer *answer)
{
        const char *text = without_beginning(test, string_of(test->json, 0, "content"), "content");
        const char *reasoning =
                without_beginning(test, string_of(test->json, 0, "reasoning"), "reasoning_content");
        uint32_t calls = json_member(test->json, 0, "calls");
        struct bytes wanted = { 0 };
        bool same;

        for (uint32_t at = json_first(test->json, calls); at != JSON_NONE;
             at = json_next(test->json, at)) {
                const char *name = string_of(test->json, at, "name");
                const char *arguments = string_of(test->json, at, "arguments");

                put(&wanted, name, strlen(name));
                put(&wanted, " ", 1);
                put_json(&wanted, arguments, strlen(arguments));
                put(&wanted, "\n", 1);
        }
        put(&wanted, "", 1);
        same = same_text(&answer->calls, wanted.at);
        bytes_deinit(&wanted);
        /* Without a format of reasoning, llama.cpp leaves reasoning in the text. */
        if (!number_of(test, "format") && answer->reasoning.count)
                return same && same_text(&answer->text, text + strlen(text) - answer->text.count);
        return same && same_text(&answer->text, text) && same_text(&answer->reasoning, reasoning);
}

static void print_answer(const struct suite_case *test, const struct answer *answer, unsigned line)
{
        printf("%u %s [%s]%s%s\n  input     %s\n", line, test->template, test->dialect.name,
               test->in_reasoning ? " in reasoning" : "",
               number_of(test, "continues") ? " continued" : "", string_of(test->json, 0, "input"));
        printf("  wanted    %s | %s | ", string_of(test->json, 0, "content"),
               string_of(test->json, 0, "reasoning"));
        for (uint32_t at = json_first(test->json, json_member(test->json, 0, "calls"));
             at != JSON_NONE; at = json_next(test->json, at))
                printf("%s %s ", string_of(test->json, at, "name"),
                       string_of(test->json, at, "arguments"));
        printf("\n  got       %.*s | %.*s | %.*s\n", (int)answer->text.count, answer->text.at,
               (int)answer->reasoning.count, answer->reasoning.at, (int)answer->calls.count,
               answer->calls.at);
}

static bool check_case(const struct suite_case *test, unsigned line)
{
        const struct dialect dialects[] = { test->dialect, with_tokens(test->dialect) };
        bool good = true;

        for (unsigned way = 0; way < 4 && good; way++) {
                struct answer answer;

                read_answer(test, &dialects[way / 2], way % 2, &answer);
                good = is_as_expected(test, &answer);
                if (!good && getenv("SMV_PRINT"))
                        print_answer(test, &answer, line);
                answer_deinit(&answer);
        }
        return good;
}

/* A case is listed by its number, and the file of its template. */
static bool is_listed(const char *list, const struct suite_case *test, unsigned number)
{
        char wanted[300];

        snprintf(wanted, sizeof(wanted), "\n%u %s: ", number, strrchr(test->template, '/') + 1);
        return strstr(list, wanted);
}

static char *read_list(void)
{
        char path[1024];
        char *list = calloc(1, LINE_BYTES);
        FILE *file;

        snprintf(path, sizeof(path), "%s/tests/conformance/chat-suite-results", getenv("SOURCES"));
        file = fopen(path, "r");
        assert_non_null(file);
        assert_non_null(list);
        assert_true(fread(list, 1, LINE_BYTES - 1, file) < LINE_BYTES - 1);
        fclose(file);
        return list;
}

static void answers_become_the_messages_that_are_expected(void **state)
{
        static char line[LINE_BYTES];
        unsigned count = 0, good = 0, amiss = 0;
        FILE *file = fopen(getenv("CHAT_SUITE"), "r");
        char *list = read_list();

        (void)state;
        assert_non_null(file);
        while (fgets(line, sizeof(line), file)) {
                struct suite_case test = { 0 };
                bool passes, listed;

                open_case(&test, line);
                passes = check_case(&test, ++count);
                listed = is_listed(list, &test, count);
                if (passes == listed)
                        print_message("# %u, of %s, %s\n", count, test.template,
                                      passes ? "is listed and passes" : "does not pass");
                good += passes;
                amiss += passes == listed;
                close_case(&test);
        }
        fclose(file);
        free(list);
        print_message("# %u of %u cases\n", good, count);
        assert_int_equal(amiss, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(answers_become_the_messages_that_are_expected),
        };

        if (!getenv("CHAT_SUITE") || !getenv("SOURCES")) {
                puts("skipped: CHAT_SUITE and SOURCES name no files");
                return 77;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
