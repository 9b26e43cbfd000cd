#include "daemon/text/parts/probe.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/text/parts.h"
#include "json/reader.h"

/* Words that no template has.  The values are in the calls only. */
static const struct sample {
        const char *name, *key, *value; /* the value as JSON */
} samples[] = {
        { "brinewhistle", "tarnfield", "\"mosslantern\"" },
        { "copperwillow", "harrowfen", "90210731" },
};
#define CALLS_MAX 2u

#define ARENA_BYTES (64u << 10)
#define TEXT_BYTES  4096u /* of the calls, as a template writes them, at most */

/* An id has nine letters, which Mistral wants; or it is the name with a number. */
#define CALL(id, name, key, value)                                                                 \
        "{\"id\":\"" id "\",\"type\":\"function\",\"function\":{\"name\":\"" name                  \
        "\",\"arguments\":{\"" key "\":" value "}}}"
#define FIRST(id)  CALL(id, "brinewhistle", "tarnfield", "\"mosslantern\"")
#define SECOND(id) CALL(id, "copperwillow", "harrowfen", "90210731")
#define MESSAGES(calls)                                                                            \
        "[{\"role\":\"user\",\"content\":\"A question.\"},"                                        \
        "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[" calls "]}]"

/* Of one call and of two; the second row is that of DIALECT_NUMBERED. */
static const char *const messages[2][CALLS_MAX] = {
        { MESSAGES(FIRST("abcdefghi")), MESSAGES(FIRST("abcdefghi") "," SECOND("abcdefghj")) },
        { MESSAGES(FIRST("functions.brinewhistle:0")),
          MESSAGES(FIRST("functions.brinewhistle:0") "," SECOND("functions.copperwillow:1")) },
};

#define TOOL(name, key, type)                                                                      \
        "{\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"description\":\"A "          \
        "tool.\",\"parameters\":{\"type\":\"object\",\"properties\":{\"" key                       \
        "\":{\"type\":\"" type "\",\"description\":\"A word.\"}},\"required\":[\"" key "\"]}}}"
static const char tools[] = "[" TOOL("brinewhistle", "tarnfield",
                                     "string") "," TOOL("copperwillow", "harrowfen", "integer") "]";

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

/* Where the first call begins: at its mark, or at its object if it has no mark. */
static const char *find_call(const struct dialect *dialect, const char *text, const char *value)
{
        const char *name = find_last(text, value, samples[0].name);

        if (dialect->traits & DIALECT_BARE)
                return name ? find_last(text, name, dialect->shape == SHAPE_PYTHON ? "[" : "{")
                            : NULL;
        if (dialect->shape == SHAPE_CHANNELS)
                return find_last(text, value, dialect->marks[MARK_START].spelling.text);
        return find_last(text, value, dialect->marks[MARK_CALL].spelling.text);
}

static bool has_value(const char *arguments, size_t bytes, const struct sample *sample)
{
        struct json_document *json;
        char why[128];
        const char *text, *number;
        uint32_t value;
        bool same;

        if (json_parse(arguments, bytes, 16, &json, why, sizeof(why)))
                return false;
        value = json_member(json, 0, sample->key);
        text = json_string(json, value, NULL);
        number = json_number(json, value);
        same = text ? strlen(text) + 2 == strlen(sample->value) &&
                               !strncmp(text, sample->value + 1, strlen(text))
                    : number && !strcmp(number, sample->value);
        json_free(json);
        return same;
}

/* Is this the call, whole?  It has three parts. */
static bool is_call(const struct smv_record_part *parts, const char *text,
                    const struct sample *sample)
{
        return parts[0].kind == SMV_PART_CALL && parts[1].kind == SMV_PART_ARGUMENTS &&
               parts[2].kind == SMV_PART_CALL_END && !parts[2].flags &&
               parts[0].bytes == strlen(sample->name) &&
               !memcmp(text, sample->name, parts[0].bytes) &&
               has_value(text + parts[0].bytes, parts[1].bytes, sample);
}

/* Do the parts begin with so many calls, with nothing between them but blanks? */
static bool are_calls(const struct parts_out *out, unsigned count)
{
        const char *text = out->text;
        unsigned found = 0;

        for (size_t i = 0; i < out->count && found < count;) {
                const struct smv_record_part *part = &out->parts[i];

                if (part->kind == SMV_PART_TEXT && found) {
                        for (uint32_t j = 0; j < part->bytes; j++)
                                if (!json_is_blank((uint8_t)text[j]))
                                        return false;
                        text += part->bytes;
                        i++;
                        continue;
                }
                if (out->count - i < 3 || !is_call(part, text, &samples[found]))
                        return false;
                text += part[0].bytes + part[1].bytes;
                i += 3;
                found++;
        }
        return found == count;
}

/* Reads the text behind `at`, in which marks are text. */
static int read_calls(const struct dialect *dialect, const char *at, size_t bytes, unsigned count)
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
                r = are_calls(&out, count) ? 0 : PROBE_E_WRONG;
        }
        free(parts);
        free(out.text);
        free(out.parts);
        return r < 0 ? error_raise(r) : r;
}

static int probe(const struct dialect *dialect, const struct rendered *rendered, unsigned count)
{
        const char *end = rendered->text + rendered->bytes;
        const char *value = find_last(rendered->text, end, "mosslantern");
        const char *at;

        if (!value || (count > 1 && !find_last(rendered->text, end, samples[1].value)))
                return PROBE_E_SILENT;
        at = find_call(dialect, rendered->text, value);
        return at ? error_pass(read_calls(dialect, at, (size_t)(end - at), count)) : PROBE_E_WRONG;
}

static int probe_with(const struct chat *chat, const struct dialect *dialect, unsigned count)
{
        bool numbered = dialect->traits & DIALECT_NUMBERED;
        struct rendered rendered = { 0 };
        struct arena *arena;
        int r = arena_new(ARENA_BYTES, &arena);

        if (r)
                return error_pass(r);
        r = render(chat, messages[numbered][count - 1], arena, &rendered);
        if (!r)
                r = probe(dialect, &rendered, count);
        rendered_free(&rendered);
        arena_free(arena);
        return error_pass(r);
}

int probe_dialect(const struct chat *chat, const struct dialect *dialect)
{
        int r = PROBE_E_SILENT;

        if (chat_refusal(chat) || !dialect_has_calls(dialect))
                return PROBE_E_SILENT;
        /* Some templates take only one call. */
        for (unsigned count = CALLS_MAX; count && r == PROBE_E_SILENT; count--)
                r = probe_with(chat, dialect, count);
        return error_pass(r);
}
