/* The strings of a shape. */
#include <stdlib.h>
#include <string.h>

#include "daemon/constraint/characters.h"
#include "daemon/constraint/regex-text.h"
#include "daemon/constraint/schema-shape.h"
#include "json/bytes.h"

struct string_shape {
        enum writing writing;
        uint32_t term; /* what patterns, formats and lists say; ANY: nothing */
        bool excludes; /* some of it is a complement, which has texts that are no strings */
        uint32_t min, max;
};

static void add(struct schema_compiler *compiler, struct string_shape *string, uint32_t term)
{
        string->term = regex_and2(compiler->pool, string->term, term);
}

static uint32_t pattern(struct schema_compiler *compiler, enum writing writing, uint32_t node)
{
        uint32_t term = REGEX_NONE;
        size_t bytes = 0;
        const char *text = json_string(compiler->json, node, &bytes);
        char why[160];

        if (!text)
                schema_fail(compiler, node, "a pattern must be a text");
        else if (regex_text_read(compiler->pool, text, bytes, writing, REGEX_SEARCH, &term, why,
                                 sizeof(why)) < 0)
                schema_fail(compiler, node, "%s", why);
        return term;
}

/* A text without controls, without quotes. */
static bool write_text(struct bytes *to, enum writing writing, const char *text, size_t count)
{
        if (writing == WRITING_PLAIN)
                return bytes_add(to, text, count) == 0;
        for (size_t i = 0; i < count; i++)
                if (((text[i] == '"' || text[i] == '\\') && bytes_add(to, "\\", 1) < 0) ||
                    bytes_add(to, text + i, 1) < 0)
                        return false;
        return true;
}

static int compare(const void *one, const void *other)
{
        const struct regex_text *a = one, *b = other;
        uint32_t both = a->count < b->count ? a->count : b->count;
        int order = memcmp(a->bytes, b->bytes, both);

        return order ? order : (a->count > b->count) - (a->count < b->count);
}

/* The texts lie behind one another in `all`; their offsets become pointers here. */
static uint32_t one_of(struct schema_compiler *compiler, const struct bytes *all,
                       struct regex_text *texts, uint32_t count)
{
        uint32_t kept = 0, offset = 0;

        for (uint32_t i = 0; i < count; i++) {
                texts[i].bytes = all->at ? all->at + offset : "";
                offset += texts[i].count;
        }
        qsort(texts, count, sizeof(*texts), compare);
        for (uint32_t i = 0; i < count; i++)
                if (kept == 0 || compare(&texts[kept - 1], &texts[i]) != 0)
                        texts[kept++] = texts[i];
        return regex_one_of(compiler->pool, texts, kept);
}

/* One string, in all ways to write it. */
static uint32_t one(struct schema_compiler *compiler, enum writing writing, uint32_t node)
{
        size_t bytes = 0;
        const char *text = json_string(compiler->json, node, &bytes);

        return text ? characters_text(compiler->pool, text, bytes, writing) : REGEX_NONE;
}

static bool has_control(const char *text, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                if ((uint8_t)text[i] < 0x20)
                        return true;
        return false;
}

/* The strings of a list. */
static uint32_t listed(struct schema_compiler *compiler, enum writing writing, uint32_t list)
{
        const struct json_document *json = compiler->json;
        struct regex_text *texts = calloc(json_count(json, list) + 1ul, sizeof(*texts));
        struct bytes all = { 0 };
        uint32_t count = 0, term = REGEX_NONE;
        bool written = texts != NULL;

        for (uint32_t at = json_first(json, list); at != JSON_NONE && written;
             at = json_next(json, at)) {
                size_t bytes = 0, before = all.count;
                const char *text = json_string(json, at, &bytes);

                if (!text)
                        continue;
                if (has_control(text, bytes)) { /* it can be written in more than one way */
                        term = regex_or2(compiler->pool, term, one(compiler, writing, at));
                        continue;
                }
                written = write_text(&all, writing, text, bytes);
                texts[count++].count = all.count - before;
        }
        if (written)
                term = regex_or2(compiler->pool, term, one_of(compiler, &all, texts, count));
        else
                schema_out_of_memory(compiler);
        bytes_deinit(&all);
        free(texts);
        return term;
}

static uint32_t all_of_list(struct schema_compiler *compiler, enum writing writing, uint32_t list)
{
        const struct json_document *json = compiler->json;
        uint32_t term = REGEX_NONE;

        for (uint32_t at = json_first(json, list); at != JSON_NONE; at = json_next(json, at))
                term = regex_or2(compiler->pool, term, one(compiler, writing, at));
        return term;
}

static void limit(struct string_shape *string, uint32_t min, uint32_t max)
{
        string->min = min > string->min ? min : string->min;
        string->max = max < string->max ? max : string->max;
}

static void read_schema(struct schema_compiler *compiler, struct string_shape *string,
                        uint32_t schema)
{
        uint32_t node = schema_keyword(compiler, schema, "pattern"), term;
        const char *format;

        limit(string, schema_count(compiler, schema, "minLength", 0),
              schema_count(compiler, schema, "maxLength", REGEX_FOREVER));
        if (node != JSON_NONE)
                add(compiler, string, pattern(compiler, string->writing, node));
        node = schema_keyword(compiler, schema, "format");
        if (node == JSON_NONE)
                return;
        format = json_string(compiler->json, node, NULL);
        if (!format || !shape_format(compiler, format, string->writing, &term))
                schema_fail(compiler, node, "the format %.60s is not supported",
                            format ? format : "");
        else
                add(compiler, string, term);
}

static void read_denied(struct schema_compiler *compiler, struct string_shape *string,
                        uint32_t element)
{
        uint32_t node = element_node(element);
        double count = 0;

        string->excludes = true;
        json_real(compiler->json, node, &count);
        if (count < 0 || count > 1e9)
                count = 1e9;
        if (shape_denies(compiler, element, "pattern")) {
                add(compiler, string,
                    regex_not(compiler->pool, pattern(compiler, string->writing, node)));
        } else if (shape_denies(compiler, element, "const")) {
                add(compiler, string,
                    regex_not(compiler->pool, one(compiler, string->writing, node)));
        } else if (shape_denies(compiler, element, "enum")) {
                add(compiler, string,
                    regex_not(compiler->pool, all_of_list(compiler, string->writing, node)));
        } else if (shape_denies(compiler, element, "maxLength")) {
                limit(string, (uint32_t)count + 1, REGEX_FOREVER);
        } else if (shape_denies(compiler, element, "minLength")) {
                if (count < 1)
                        string->term = REGEX_NONE;
                else
                        limit(string, 0, (uint32_t)count - 1);
        }
}

/* One character with all escapes of JSON; surrogates only in pairs. */
static uint32_t free_character(struct regex_pool *pool)
{
        static const char text[] = "[^\"\\\\\\x00-\\x1f]|\\\\([\"\\\\/bfnrt]|"
                                   "u([0-9a-cA-CefEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|"
                                   "[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2}))";
        uint32_t term = REGEX_NONE;
        char why[100];

        regex_text_read(pool, text, sizeof(text) - 1, WRITING_PLAIN, REGEX_WHOLE, &term, why,
                        sizeof(why));
        return term;
}

uint32_t shape_strings(struct schema_compiler *compiler, const struct shape *shape,
                       enum writing writing)
{
        struct string_shape string = { writing, REGEX_ANY, false, 0, REGEX_FOREVER };
        struct regex_pool *pool = compiler->pool;
        uint32_t character;

        if (!(shape->types & 1u << JSON_STRING))
                return REGEX_NONE;
        for (uint32_t i = 0; i < shape->leaf->count; i++) {
                uint32_t element = shape->leaf->elements[i];

                if (element_kind(element) == MATCHES)
                        read_schema(compiler, &string, element_node(element));
                else if (element_kind(element) == IS)
                        add(compiler, &string, one(compiler, writing, element_node(element)));
                else
                        read_denied(compiler, &string, element);
        }
        for (uint32_t i = 0; i < shape->list_count; i++)
                add(compiler, &string, listed(compiler, writing, shape->lists[i]));
        if (string.min > string.max)
                return REGEX_NONE;
        if (string.term != REGEX_ANY && !string.excludes && string.min == 0 &&
            string.max == REGEX_FOREVER)
                return string.term;
        character =
                string.term == REGEX_ANY && writing == WRITING_JSON && !schema_is_python(compiler)
                        ? free_character(pool)
                        : characters_any(pool, writing);
        return regex_and2(pool, string.term, regex_repeat(pool, character, string.min, string.max));
}
