/* An entry is a hash whose lowest bit says whether null is allowed, too; they are in order. */
#include "daemon/text/parts/argument-types.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/siphash.h"

/* Schemas nest so deep, and so many are looked at. */
#define DEPTH_MAX   8u
#define SCHEMAS_MAX 65536u

struct argument_types {
        uint32_t references, count;
        uint64_t entries[];
};

/* The types that a value may have. */
enum { STRING = 1 << 0, NONE = 1 << 1, OTHER = 1 << 2, ALL = STRING | NONE | OTHER };

struct reader {
        struct value root; /* the schema of the tool's arguments */
        uint32_t left;     /* schemas that may still be looked at */
};

static unsigned read_schema(struct reader *reader, const struct value *schema, unsigned depth);

static bool is_word(const struct value *value, const char *word)
{
        return value && value->kind == VALUE_STRING && value->text->count == strlen(word) &&
               !memcmp(value->text->bytes, word, value->text->count);
}

static unsigned type_of_word(const struct value *word)
{
        return is_word(word, "string") ? STRING : is_word(word, "null") ? NONE : OTHER;
}

static unsigned type_of_value(const struct value *value)
{
        return value->kind == VALUE_STRING ? STRING : value->kind == VALUE_NONE ? NONE : OTHER;
}

/* The types of all items of a list together; anything else: as if there were no such keyword. */
static unsigned read_list(const struct value *list, unsigned (*type_of)(const struct value *item))
{
        unsigned types = 0;

        if (list->kind != VALUE_LIST)
                return ALL;
        for (uint32_t i = 0; i < list->list->count; i++)
                types |= type_of(&list->list->items[i]);
        return types;
}

static unsigned read_any_of(struct reader *reader, const struct value *list, unsigned depth)
{
        unsigned types = 0;

        if (!list || list->kind != VALUE_LIST)
                return ALL;
        for (uint32_t i = 0; i < list->list->count; i++)
                types |= read_schema(reader, &list->list->items[i], depth);
        return types;
}

static unsigned read_all_of(struct reader *reader, const struct value *list, unsigned depth)
{
        unsigned types = ALL;

        if (!list || list->kind != VALUE_LIST)
                return ALL;
        for (uint32_t i = 0; i < list->list->count; i++)
                types &= read_schema(reader, &list->list->items[i], depth);
        return types;
}

/* "#/$defs/NAME" and the like; NULL: there is no such place. */
static const struct value *find_reference(const struct reader *reader, const struct text *path)
{
        const struct value *at = &reader->root;
        const char *word = path->bytes + 1, *end = path->bytes + path->count;

        if (!path->count || path->bytes[0] != '#')
                return NULL;
        while (at && word < end && *word == '/') {
                const char *next = memchr(word + 1, '/', (size_t)(end - word - 1));
                char key[128];
                size_t bytes;

                next = next ? next : end;
                bytes = (size_t)(next - word - 1);
                if (bytes >= sizeof(key))
                        return NULL;
                memcpy(key, word + 1, bytes);
                key[bytes] = '\0';
                at = value_member(*at, key);
                word = next;
        }
        return word == end ? at : NULL;
}

static unsigned read_reference(struct reader *reader, const struct value *path, unsigned depth)
{
        const struct value *schema;

        if (!path || path->kind != VALUE_STRING)
                return ALL;
        schema = find_reference(reader, path->text);
        return schema ? read_schema(reader, schema, depth) : ALL;
}

/* The types that a value of this schema may have, if each keyword is heeded. */
static unsigned read_schema(struct reader *reader, const struct value *schema, unsigned depth)
{
        const struct value *type = value_member(*schema, "type");
        const struct value *values = value_member(*schema, "enum");
        const struct value *constant = value_member(*schema, "const");
        const struct value *nullable = value_member(*schema, "nullable");
        unsigned types = ALL;

        if (!depth || !reader->left || schema->kind != VALUE_MAP)
                return ALL;
        reader->left--;
        if (type)
                types &= type->kind == VALUE_LIST ? read_list(type, type_of_word)
                                                  : type_of_word(type);
        if (nullable && value_truth(*nullable))
                types |= NONE;
        if (values)
                types &= read_list(values, type_of_value);
        if (constant)
                types &= type_of_value(constant);
        types &= read_any_of(reader, value_member(*schema, "anyOf"), depth - 1);
        types &= read_any_of(reader, value_member(*schema, "oneOf"), depth - 1);
        types &= read_all_of(reader, value_member(*schema, "allOf"), depth - 1);
        return types & read_reference(reader, value_member(*schema, "$ref"), depth - 1);
}

/* ---- making ---- */

static uint64_t entry_of(const char *tool, size_t tool_bytes, const char *key, size_t key_bytes)
{
        static const uint64_t first[2];
        const uint64_t second[2] = { siphash_short(first, tool, tool_bytes) };

        return siphash_short(second, key, key_bytes) & ~UINT64_C(1);
}

static void add_tool(struct argument_types *types, struct value tool, uint32_t *left)
{
        const struct value *function = value_member(tool, "function");
        struct value about = function ? *function : tool;
        const struct value *name = value_member(about, "name");
        const struct value *schema = value_member(about, "parameters");
        const struct value *keys;
        struct reader reader = { .left = *left };

        schema = schema ? schema : value_member(about, "input_schema");
        keys = schema ? value_member(*schema, "properties") : NULL;
        if (!name || name->kind != VALUE_STRING || !keys || keys->kind != VALUE_MAP)
                return;
        reader.root = *schema;
        for (uint32_t i = 0; i < keys->map->count && types->count < ARGUMENT_TYPES_MAX; i++) {
                const struct map_entry *entry = &keys->map->entries[i];
                unsigned may = read_schema(&reader, &entry->value, DEPTH_MAX);

                if (entry->key.kind != VALUE_STRING || !(may & STRING) || may & OTHER)
                        continue;
                types->entries[types->count++] =
                        entry_of(name->text->bytes, name->text->count, entry->key.text->bytes,
                                 entry->key.text->count) |
                        !!(may & NONE);
        }
        *left = reader.left;
}

static int by_number(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static size_t bytes_of(uint32_t count)
{
        return sizeof(struct argument_types) + count * sizeof(uint64_t);
}

int argument_types_make(struct value tools, struct argument_types **ret_types)
{
        struct argument_types *types, *shrunk;
        uint32_t left = SCHEMAS_MAX;

        *ret_types = NULL;
        if (tools.kind != VALUE_LIST || !tools.list->count)
                return 0;
        types = malloc(bytes_of(ARGUMENT_TYPES_MAX));
        if (!types)
                return error_raise(-ENOMEM);
        *types = (struct argument_types){ .references = 1 };
        for (uint32_t i = 0; i < tools.list->count; i++)
                add_tool(types, tools.list->items[i], &left);
        if (!types->count) {
                free(types);
                return 0;
        }
        qsort(types->entries, types->count, sizeof(*types->entries), by_number);
        shrunk = realloc(types, bytes_of(types->count));
        *ret_types = shrunk ? shrunk : types;
        return 0;
}

/* ---- use ---- */

struct argument_types *argument_types_ref(struct argument_types *types)
{
        if (types)
                types->references++;
        return types;
}

struct argument_types *argument_types_unref(struct argument_types *types)
{
        assert(!types || types->references);
        if (types && !--types->references)
                free(types);
        return NULL;
}

size_t argument_types_bytes(const struct argument_types *types)
{
        return types ? bytes_of(types->count) : 0;
}

enum argument_type argument_types_find(const struct argument_types *types, const char *tool,
                                       size_t tool_bytes, const char *key, size_t key_bytes)
{
        uint64_t wanted = entry_of(tool, tool_bytes, key, key_bytes);
        uint32_t low = 0, high = types ? types->count : 0;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (types->entries[middle] < wanted)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (!types || low == types->count || (types->entries[low] | 1) != (wanted | 1))
                return ARGUMENT_ANY;
        return types->entries[low] & 1 ? ARGUMENT_STRING_OR_NULL : ARGUMENT_STRING;
}
