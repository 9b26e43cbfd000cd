/*
 * Calls by grammar in every dialect: random walks through the masks of the form of an answer.
 *
 * Each text that comes out is read by the parts, as the text of a model would be.  All of it must
 * be whole calls of the tools, whose arguments are what the tools want; a function here, which
 * knows nothing of schemas, checks them.  Marks are texts in one run, control tokens in another.
 */
#include "daemon/edge/answer-form.h"

#include "daemon/constraint/matcher.h"
#include "daemon/edge/call-form.h"
#include "daemon/text/parts/dialect-rows.h"
#include "tests/grammar-accepts.h"
#include "tests/unit/parts-check.h"

#define FIRST_MARK 256u
#define TOKENS     (FIRST_MARK + MARK_N)
#define WALKS      12u
#define STEPS      150u /* random ones; then the walk looks for the end */
#define STEPS_MAX  4000u
#define CALLS_MAX  64u

#define GET_SCHEMA                                                                                 \
        "{\"type\":\"object\",\"properties\":{"                                                    \
        "\"n\":{\"type\":\"integer\"},\"s\":{\"type\":\"string\",\"minLength\":1,"                 \
        "\"maxLength\":40},\"e\":{\"enum\":[\"a<b\",7,null]},"                                     \
        "\"l\":{\"type\":\"array\",\"maxItems\":2,\"items\":{\"type\":\"boolean\"}},"              \
        "\"o\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"string\",\"maxLength\":5},"  \
        "\"y\":{\"type\":\"null\"}},\"additionalProperties\":false}},"                             \
        "\"required\":[\"n\",\"e\"],\"additionalProperties\":false}"
#define GET_ALL_SCHEMA "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}"
#define GET            "{\"name\":\"get\",\"schema\":" GET_SCHEMA "}"
#define GET_ALL        "{\"name\":\"get_all\",\"schema\":" GET_ALL_SCHEMA "}"
#define TOOLS                                                                                      \
        "[{\"name\":\"get\",\"parameters\":" GET_SCHEMA                                            \
        "},{\"name\":\"get_all\",\"parameters\":" GET_ALL_SCHEMA "}]"
#define WISH(required, max)                                                                        \
        "{\"required\":" required ",\"max\":" max ",\"tools\":[" GET "," GET_ALL "]}"

static struct {
        struct dialect dialect;
        struct served served;
        struct grammar *grammar;
        struct token_trie *trie;
        struct matcher *matcher;
        struct argument_types *types;
        uint32_t tokens[STEPS_MAX];
        size_t count;
} world;

/* ---- dialects ---- */

/* The signs of a row, and no others. */
static struct dialect dialect_of(const struct dialect_row *row, bool with_marks)
{
        char signs[256] = "";
        struct dialect dialect;

        for (size_t i = 0; i < DIALECT_SIGNS_MAX && row->signs.has[i]; i++) {
                strcat(signs, row->signs.has[i]);
                strcat(signs, " ");
        }
        dialect = open_dialect((const char *const[2]){ signs, NULL });
        assert_string_equal(dialect.name, row->name);
        if (!with_marks)
                return dialect;
        dialect = with_tokens(dialect);
        for (uint32_t mark = 0; mark < MARK_N; mark++)
                dialect.marks[mark].token = FIRST_MARK + mark;
        return dialect;
}

static void open_world(const struct dialect *dialect, const char *wish)
{
        const struct answer_form form = { .calls = { wish, (uint32_t)strlen(wish) } };
        static char bytes[FIRST_MARK];
        struct token_text texts[TOKENS] = { 0 };
        uint32_t controls[MARK_N];
        const char *field;
        char why[400] = "";

        for (uint32_t i = 0; i < FIRST_MARK; i++) {
                bytes[i] = (char)i;
                texts[i] = (struct token_text){ &bytes[i], 1 };
        }
        for (uint32_t i = 0; i < MARK_N; i++)
                controls[i] = FIRST_MARK + i;
        world.dialect = *dialect;
        world.served = (struct served){ .dialect = &world.dialect };
        if (answer_form_compile(&world.served, &form, &world.grammar, &field, why, sizeof(why)))
                fail_msg("%s: %s", dialect->name, why);
        world.trie = token_trie_new(texts, TOKENS, controls, MARK_N);
        world.matcher = matcher_new(world.grammar, world.trie, &matcher_limits_default);
        assert_non_null(world.matcher);
}

static void close_world(void)
{
        matcher_free(world.matcher);
        token_trie_free(world.trie);
        grammar_free(world.grammar);
}

/* The types of the arguments, as the parts of a request with these tools get them. */
static int make_types(void **state)
{
        struct json_document *json = NULL;
        struct arena *arena;
        struct value tools;
        char why[128];

        (void)state;
        assert_int_equal(json_parse(TOOLS, strlen(TOOLS), 1000, &json, why, sizeof(why)), 0);
        assert_int_equal(arena_new(1u << 20, &arena), 0);
        assert_int_equal(value_from_json(arena, json, 0, TEXT_GIVEN, &tools), 0);
        assert_int_equal(argument_types_make(tools, &world.types), 0);
        arena_free(arena);
        json_free(json);
        return 0;
}

static int free_types(void **state)
{
        (void)state;
        world.types = argument_types_unref(world.types);
        return 0;
}

/* ---- walks ---- */

static bool is_legal(const uint32_t *bits, uint32_t token)
{
        return bits[token / 32] >> (token % 32) & 1;
}

static void show_walk(void)
{
        for (size_t i = 0; i < world.count; i++)
                if (world.tokens[i] < FIRST_MARK)
                        print_message("%c", (int)world.tokens[i]);
                else
                        print_message(
                                "%s",
                                world.dialect.marks[world.tokens[i] - FIRST_MARK].spelling.text);
        print_message("\n");
}

static bool take(uint32_t token)
{
        if (matcher_take(world.matcher, token) != MATCHER_FINE)
                return false;
        if (world.count == STEPS_MAX) {
                show_walk();
                fail_msg("%s: this does not end", world.dialect.name);
        }
        world.tokens[world.count++] = token;
        return true;
}

/* Takes all of this text, or nothing. */
static bool take_text(const char *text)
{
        size_t taken = 0;

        while (text[taken] && take((uint8_t)text[taken]))
                taken++;
        if (!text[taken])
                return taken > 0;
        matcher_back(world.matcher, (uint32_t)taken);
        world.count -= taken;
        return false;
}

/* Marks that are text, which random bytes would hardly become. */
static bool take_mark(bool to_end)
{
        static const uint8_t first[] = { MARK_CALLS, MARK_CALL }, last[] = { MARK_ANSWER_END };
        const uint8_t *marks = to_end ? last : first;
        size_t count = to_end ? sizeof(last) : sizeof(first);

        for (size_t i = 0; i < count; i++)
                if (world.dialect.marks[marks[i]].bytes &&
                    take_text(world.dialect.marks[marks[i]].spelling.text))
                        return true;
        return to_end && take_text("<|end|><|start|>assistant");
}

static void step_at_random(bool to_end)
{
        static const char closers[] = "\"}])<>/\n=,: 0e";
        const struct dialect_writing *writing = world.dialect.writing;
        uint32_t bits[(TOKENS + 31) / 32], token = random_below(TOKENS);

        assert_int_equal(matcher_mask(world.matcher, bits), MATCHER_FINE);
        if (to_end && writing->end && take_text(writing->end))
                return;
        if ((to_end || random_below(16) == 0) && take_mark(to_end))
                return;
        for (uint32_t mark = TOKENS - 1; mark >= FIRST_MARK && (to_end || random_below(2)); mark--)
                if (is_legal(bits, mark) && take(mark))
                        return;
        if ((to_end || random_below(8) == 0) && writing->value_end && take_text(writing->value_end))
                return;
        for (size_t i = 0; closers[i] && (to_end || random_below(3)); i++)
                if (is_legal(bits, (uint8_t)closers[i]) && take((uint8_t)closers[i]))
                        return;
        while (!is_legal(bits, token))
                token = (token + 1) % TOKENS;
        assert_true(take(token));
}

static void walk(void)
{
        world.count = 0;
        matcher_reset(world.matcher);
        for (uint32_t i = 0; !matcher_must_end(world.matcher); i++) {
                if (i >= STEPS && matcher_can_end(world.matcher))
                        return;
                step_at_random(i >= STEPS);
        }
}

/* ---- reading it ---- */

struct reading {
        char names[CALLS_MAX][16];
        struct bytes arguments[CALLS_MAX];
        uint32_t calls, whole;
        bool has_text, failed;
};

static void read_part(struct reading *reading, const struct smv_record_part *part, const char *text)
{
        reading->failed |= part->flags != 0;
        switch (part->kind) {
        case SMV_PART_CALL:
                assert_true(reading->calls < CALLS_MAX && part->bytes < 16);
                memcpy(reading->names[reading->calls++], text, part->bytes);
                break;
        case SMV_PART_ARGUMENTS:
                assert_int_equal(bytes_add(&reading->arguments[part->call], text, part->bytes), 0);
                break;
        case SMV_PART_CALL_END:
                reading->whole++;
                break;
        default:
                reading->has_text = true;
        }
}

static void read_out(struct reading *reading, struct parts_out *out)
{
        size_t at = 0;

        for (size_t i = 0; i < out->count; i++) {
                read_part(reading, &out->parts[i], out->text + at);
                at += out->parts[i].bytes;
        }
        free(out->text);
        free(out->parts);
}

static void read_walk(struct reading *reading)
{
        struct parts_rig rig;
        struct parts_out out;

        rig_begin_typed(&rig, &world.dialect, world.types, true, false);
        for (size_t i = 0; i < world.count; i++) {
                char byte = (char)world.tokens[i];

                out = rig_room(&rig, JSON_SCAN_ESCAPE_BYTES * 2);
                if (world.tokens[i] < FIRST_MARK)
                        parts_feed(&rig.parts, &byte, 1, &out);
                else
                        parts_mark(&rig.parts, world.tokens[i] - FIRST_MARK, &out);
                read_out(reading, &out);
        }
        out = rig_room(&rig, 0);
        parts_end(&rig.parts, &out);
        read_out(reading, &out);
}

/* An object with at most a text at x, and a null at y. */
static bool fits_o(const struct json_document *json, uint32_t object)
{
        uint32_t x = json_member(json, object, "x"), y = json_member(json, object, "y");

        return json_kind(json, object) == JSON_OBJECT &&
               (x == JSON_NONE || json_kind(json, x) == JSON_STRING) &&
               (y == JSON_NONE || json_kind(json, y) == JSON_NULL) &&
               json_count(json, object) == (x != JSON_NONE) + (unsigned)(y != JSON_NONE);
}

/* Is this what the tool get wants?  Keys are known, and n and e are there. */
static bool fits_get(const struct json_document *json)
{
        uint64_t whole = 0;
        bool truth, fits = true;
        size_t bytes = 0;

        for (uint32_t at = json_first(json, 0); at != JSON_NONE; at = json_next(json, at)) {
                const char *key = json_key(json, at, NULL), *text = json_string(json, at, NULL);

                if (!strcmp(key, "n"))
                        fits &= json_kind(json, at) == JSON_NUMBER &&
                                !strpbrk(json_number(json, at), ".eE");
                else if (!strcmp(key, "s"))
                        fits &= json_string(json, at, &bytes) && bytes;
                else if (!strcmp(key, "e"))
                        fits &= json_kind(json, at) == JSON_NULL ||
                                (text && !strcmp(text, "a<b")) ||
                                (json_whole(json, at, &whole) && whole == 7);
                else if (!strcmp(key, "l"))
                        for (uint32_t item = json_first(json, at); item != JSON_NONE;
                             item = json_next(json, item))
                                fits &= json_bool(json, item, &truth);
                else if (!strcmp(key, "o"))
                        fits &= fits_o(json, at);
                else
                        fits = false;
        }
        return fits && json_member(json, 0, "n") != JSON_NONE &&
               json_member(json, 0, "e") != JSON_NONE;
}

static void check_call(const struct reading *reading, uint32_t call)
{
        const struct bytes *arguments = &reading->arguments[call];
        struct json_document *json = NULL;
        char why[256] = "";
        bool fits;

        if (json_parse(arguments->at, arguments->count, 4096, &json, why, sizeof(why)))
                fail_msg("%s: %.*s: %s", world.dialect.name, (int)arguments->count, arguments->at,
                         why);
        fits = !strcmp(reading->names[call], "get")
                       ? fits_get(json)
                       : !strcmp(reading->names[call], "get_all") && !json_count(json, 0);
        if (!fits || json_kind(json, 0) != JSON_OBJECT)
                show_walk();
        if (!fits || json_kind(json, 0) != JSON_OBJECT)
                fail_msg("%s: %s does not want %.*s", world.dialect.name, reading->names[call],
                         (int)arguments->count, arguments->at);
        json_free(json);
}

static uint32_t check_walk(bool required)
{
        struct reading reading = { 0 };

        walk();
        read_walk(&reading);
        if (reading.failed || reading.calls != reading.whole ||
            (required && (reading.has_text || !reading.calls))) {
                show_walk();
                fail_msg("%s: these are no calls", world.dialect.name);
        }
        for (uint32_t i = 0; i < reading.calls; i++) {
                check_call(&reading, i);
                bytes_deinit(&reading.arguments[i]);
        }
        return reading.calls;
}

static void check_walks(const char *wish, bool required, uint32_t max)
{
        for (size_t row = 0; row < dialect_row_count; row++)
                for (unsigned marks = 0; marks < 2; marks++) {
                        const struct dialect dialect = dialect_of(&dialect_rows[row], marks);

                        assert_non_null(dialect.writing);
                        open_world(&dialect, wish);
                        for (unsigned i = 0; i < WALKS; i++)
                                assert_true(check_walk(required) <= max);
                        close_world();
                }
}

static void each_required_answer_is_whole_calls_of_the_tools(void **state)
{
        (void)state;
        check_walks(WISH("true", "0"), true, CALLS_MAX);
}

static void a_bound_on_calls_holds(void **state)
{
        (void)state;
        check_walks(WISH("true", "1"), true, 1);
        check_walks(WISH("true", "2"), true, 2);
}

static void each_call_in_free_text_is_whole(void **state)
{
        (void)state;
        check_walks(WISH("false", "0"), false, CALLS_MAX);
}

/* ---- texts of models ---- */

static void calls_are_written_as_templates_write_them(void **state)
{
        static const struct {
                const char *dialect, *text;
        } rows[] = {
                { "hermes",
                  "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"n\": 1, \"e\": 7}}\n"
                  "</tool_call>\n<tool_call>\n{\"name\": \"get_all\", \"arguments\": {}}"
                  "\n</tool_call>" },
                { "llama3", "{\"name\": \"get\", \"parameters\": {\"n\": 1, \"e\": null}}" },
                { "mistral-v13", "[TOOL_CALLS]get_all[ARGS]{}[TOOL_CALLS]get_all[ARGS]{}" },
                { "qwen3-coder", "<tool_call>\n<function=get>\n<parameter=n>\n1\n</parameter>\n"
                                 "<parameter=e>\na<b\n</parameter>\n</function>\n</tool_call>" },
                { "glm-4", "<tool_call>get<arg_key>n</arg_key><arg_value>1</arg_value>"
                           "<arg_key>e</arg_key><arg_value>7</arg_value></tool_call>" },
                { "lfm2", "<|tool_call_start|>[get(n=1, s=\"a\\nb\", e=None, l=[True, False]), "
                          "get_all()]<|tool_call_end|>" },
                { "gemma4", "<|tool_call>call:get{n:1,s:<|\"|>a \"b\"<|\"|>,e:<|\"|>a<b<|\"|>,"
                            "l:[true]}<tool_call|>" },
                { "harmony", "<|channel|>commentary to=functions.get_all <|constrain|>json"
                             "<|message|>{}<|call|>" },
                { "command-r", "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": "
                               "\"get_all\", \"parameters\": {}}\n]<|END_ACTION|>" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                size_t row = dialect_row_count;
                struct dialect dialect;

                while (strcmp(dialect_rows[--row].name, rows[i].dialect) != 0)
                        assert_true(row > 0);
                dialect = dialect_of(&dialect_rows[row], false);
                open_world(&dialect, WISH("true", "0"));
                assert_true(grammar_accepts(world.grammar, rows[i].text));
                close_world();
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(calls_are_written_as_templates_write_them),
                cmocka_unit_test(each_required_answer_is_whole_calls_of_the_tools),
                cmocka_unit_test(a_bound_on_calls_holds),
                cmocka_unit_test(each_call_in_free_text_is_whole),
        };

        return cmocka_run_group_tests(tests, make_types, free_types);
}
