#include "daemon/text/parts/probe.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/text/parts.h"
#include "json/reader.h"

/* Words that no template has.  The value is in the call only, and has bytes that JSON escapes. */
#define NAME  "brinewhistle"
#define KEY   "tarnfield"
#define VALUE "mosslantern"

#define ARENA_BYTES (64u << 10)
#define TEXT_BYTES  4096u /* of a call, as a template writes it, at most */

/* The id has nine letters, which Mistral wants; or it is the name with a number. */
#define MESSAGES(id, arguments)                                                                    \
        "[{\"role\":\"user\",\"content\":\"A question.\"},"                                        \
        "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"" id "\","             \
        "\"type\":\"function\",\"function\":{\"name\":\"" NAME "\","                               \
        "\"arguments\":" arguments "}}]}]"
#define OBJECT   "{\"" KEY "\":\"" VALUE "\"}"
#define TEXT     "\"{\\\"" KEY "\\\":\\\"" VALUE "\\\"}\""
#define ID       "abcdefghi"
#define NUMBERED "functions." NAME ":0"

/* Some templates want the arguments as a text, and fail otherwise. */
static const char *const messages[2][2] = {
        { MESSAGES(ID, OBJECT), MESSAGES(ID, TEXT) },
        { MESSAGES(NUMBERED, OBJECT), MESSAGES(NUMBERED, TEXT) },
};
static const char tools[] =
        "[{\"type\":\"function\",\"function\":{\"name\":\"" NAME "\",\"description\":\"A tool.\","
        "\"parameters\":{\"type\":\"object\",\"properties\":{\"" KEY "\":{\"type\":\"string\","
        "\"description\":\"A word.\"}},\"required\":[\"" KEY "\"]}}}]";

static int read_value(struct arena *arena, const char *text, struct value *ret_value)
{
        struct json_document *json;
        char why[128];
        int r = json_parse(text, strlen(text), 64, &json, why, sizeof(why));

        if (r)
                return error_raise(r);
        r = value_from_json(arena, json, 0, TEXT_GIVEN, ret_value);
        json_free(json);
        return error_pass(r);
}

/* 0 and the text, PROBE_E_SILENT or -ENOMEM. */
static int render(const struct chat *chat, const char *conversation, struct arena *arena,
                  struct rendered *ret_rendered)
{
        struct conversation about = { .bytes = strlen(conversation) + sizeof(tools) };
        const struct tm now = { .tm_year = 125, .tm_mday = 1 };
        char why[256];
        int r = read_value(arena, conversation, &about.messages);

        if (!r)
                r = read_value(arena, tools, &about.tools);
        if (!r)
                r = chat_render(chat, arena, &about, &now, ret_rendered, why, sizeof(why));
        return r == -EINVAL ? PROBE_E_SILENT : error_pass(r);
}

/* The last place of a word before `end`, or NULL. */
static const char *find_last(const char *text, const char *end, const char *word)
{
        size_t bytes = strlen(word);

        for (const char *at = end; at-- > text;)
                if ((size_t)(end - at) >= bytes && !memcmp(at, word, bytes))
                        return at;
        return NULL;
}

/* Where the call begins that has the value: at its mark, or at its object if it has no mark. */
static const char *find_call(const struct dialect *dialect, const char *text, const char *value)
{
        const char *name = find_last(text, value, NAME);

        if (dialect->traits & DIALECT_BARE)
                return name ? find_last(text, name, dialect->shape == SHAPE_PYTHON ? "[" : "{")
                            : NULL;
        if (dialect->shape == SHAPE_CHANNELS)
                return find_last(text, value, dialect->marks[MARK_START].spelling.text);
        return find_last(text, value, dialect->marks[MARK_CALL].spelling.text);
}

static bool has_value(const char *arguments, size_t bytes)
{
        struct json_document *json;
        char why[128];
        const char *value;
        bool same;

        if (json_parse(arguments, bytes, 16, &json, why, sizeof(why)))
                return false;
        value = json_string(json, json_member(json, 0, KEY), NULL);
        same = value && !strcmp(value, VALUE);
        json_free(json);
        return same;
}

/* Are the first parts the call, whole? */
static bool is_call(const struct parts_out *out)
{
        const struct smv_record_part *parts = out->parts;

        return out->count >= 3 && parts[0].kind == SMV_PART_CALL &&
               parts[1].kind == SMV_PART_ARGUMENTS && parts[2].kind == SMV_PART_CALL_END &&
               !parts[2].flags && parts[0].bytes == strlen(NAME) &&
               !memcmp(out->text, NAME, parts[0].bytes) &&
               has_value(out->text + parts[0].bytes, parts[1].bytes);
}

/* Reads the text behind `at`, in which marks are text. */
static int read_call(const struct dialect *dialect, const char *at, size_t bytes)
{
        struct dialect plain = *dialect;
        struct parts_out out = { 0 };
        struct parts *parts;
        int r;

        bytes = bytes < TEXT_BYTES ? bytes : TEXT_BYTES;
        for (unsigned mark = 0; mark < MARK_N; mark++)
                plain.marks[mark].is_token = false;
        parts = malloc(sizeof(*parts));
        out.text = malloc(parts_bytes_max(JSON_SCAN_ESCAPE_BYTES * bytes));
        out.parts = calloc(parts_count_max(&plain, bytes), sizeof(*out.parts));
        r = parts && out.text && out.parts ? 0 : -ENOMEM;
        if (!r) {
                parts_begin(parts, &plain, NULL, true, false);
                parts_feed(parts, at, bytes, &out);
                r = is_call(&out) ? 0 : PROBE_E_WRONG;
        }
        free(parts);
        free(out.text);
        free(out.parts);
        return r < 0 ? error_raise(r) : r;
}

static int probe(const struct dialect *dialect, const struct rendered *rendered)
{
        const char *end = rendered->text + rendered->bytes;
        const char *value = find_last(rendered->text, end, VALUE);
        const char *at;

        if (!value)
                return PROBE_E_SILENT;
        at = find_call(dialect, rendered->text, value);
        return at ? error_pass(read_call(dialect, at, (size_t)(end - at))) : PROBE_E_WRONG;
}

static int probe_with(const struct chat *chat, const struct dialect *dialect,
                      const char *conversation)
{
        struct rendered rendered = { 0 };
        struct arena *arena;
        int r = arena_new(ARENA_BYTES, &arena);

        if (r)
                return error_pass(r);
        r = render(chat, conversation, arena, &rendered);
        if (!r)
                r = probe(dialect, &rendered);
        rendered_free(&rendered);
        arena_free(arena);
        return error_pass(r);
}

int probe_dialect(const struct chat *chat, const struct dialect *dialect)
{
        bool numbered = dialect->traits & DIALECT_NUMBERED;
        int r = PROBE_E_SILENT;

        if (chat_refusal(chat) || !dialect_has_calls(dialect))
                return PROBE_E_SILENT;
        for (unsigned text = 0; text < 2 && r == PROBE_E_SILENT; text++)
                r = probe_with(chat, dialect, messages[numbered][text]);
        return error_pass(r);
}
