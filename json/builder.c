#include "json/builder.h"

#include <string.h>

#include "json/reader.h"

static void separate(struct json_builder *builder)
{
        if (builder->comma)
                json_write_raw(&builder->out, ",");
        builder->comma = true;
}

static void open_with(struct json_builder *builder, const char *bracket)
{
        separate(builder);
        json_write_raw(&builder->out, bracket);
        builder->comma = false;
}

static void close_with(struct json_builder *builder, const char *bracket)
{
        json_write_raw(&builder->out, bracket);
        builder->comma = true;
}

void json_put_object(struct json_builder *builder)
{
        open_with(builder, "{");
}

void json_put_object_end(struct json_builder *builder)
{
        close_with(builder, "}");
}

void json_put_array(struct json_builder *builder)
{
        open_with(builder, "[");
}

void json_put_array_end(struct json_builder *builder)
{
        close_with(builder, "]");
}

void json_put_key_bytes(struct json_builder *builder, const char *key, size_t bytes)
{
        separate(builder);
        json_write_text(&builder->out, key, bytes);
        json_write_raw(&builder->out, ":");
        builder->comma = false;
}

void json_put_key(struct json_builder *builder, const char *key)
{
        json_put_key_bytes(builder, key, strlen(key));
}

void json_put_text(struct json_builder *builder, const char *text, size_t bytes)
{
        separate(builder);
        json_write_text(&builder->out, text, bytes);
}

void json_put_word(struct json_builder *builder, const char *text)
{
        if (text)
                json_put_text(builder, text, strlen(text));
        else
                json_put_null(builder);
}

void json_put_uint(struct json_builder *builder, uint64_t value)
{
        separate(builder);
        json_write_uint(&builder->out, value);
}

void json_put_int(struct json_builder *builder, int64_t value)
{
        separate(builder);
        json_write_int(&builder->out, value);
}

void json_put_float(struct json_builder *builder, double value)
{
        separate(builder);
        json_write_float(&builder->out, value);
}

void json_put_bool(struct json_builder *builder, bool value)
{
        json_put_raw(builder, value ? "true" : "false");
}

void json_put_null(struct json_builder *builder)
{
        json_put_raw(builder, "null");
}

void json_put_raw(struct json_builder *builder, const char *json)
{
        separate(builder);
        json_write_raw(&builder->out, json);
}

/* One node without its children. */
static void put_one(struct json_builder *builder, const struct json_document *from, uint32_t node)
{
        const char *text;
        size_t bytes = 0;
        bool value = false;

        switch (json_kind(from, node)) {
        case JSON_STRING:
                text = json_string(from, node, &bytes);
                json_put_text(builder, text, bytes);
                break;
        case JSON_NUMBER:
                json_put_raw(builder, json_number(from, node));
                break;
        case JSON_BOOL:
                json_bool(from, node, &value);
                json_put_bool(builder, value);
                break;
        case JSON_ARRAY:
                json_put_array(builder);
                break;
        case JSON_OBJECT:
                json_put_object(builder);
                break;
        default:
                json_put_null(builder);
        }
}

static bool is_open(const struct json_document *from, uint32_t node)
{
        enum json_kind kind = json_kind(from, node);

        return kind == JSON_ARRAY || kind == JSON_OBJECT;
}

static void close_one(struct json_builder *builder, const struct json_document *from, uint32_t node)
{
        if (json_kind(from, node) == JSON_ARRAY)
                json_put_array_end(builder);
        else
                json_put_object_end(builder);
}

/* The reader limits the depth of a document, so the way down has a fixed size. */
void json_put_node(struct json_builder *builder, const struct json_document *from, uint32_t root)
{
        uint32_t path[JSON_DEPTH_MAX + 1];
        uint32_t node = root, next;
        size_t depth = 0, bytes;
        const char *key;

        for (;;) {
                key = node == root ? NULL : json_key(from, node, &bytes);
                if (key)
                        json_put_key_bytes(builder, key, bytes);
                put_one(builder, from, node);
                if (is_open(from, node) && json_count(from, node)) {
                        path[depth++] = node;
                        node = json_first(from, node);
                        continue;
                }
                if (is_open(from, node))
                        close_one(builder, from, node);
                for (;;) {
                        if (!depth)
                                return;
                        next = json_next(from, node);
                        if (next != JSON_NONE)
                                break;
                        node = path[--depth];
                        close_one(builder, from, node);
                }
                node = next;
        }
}

void json_put_key_text(struct json_builder *builder, const char *key, const char *text,
                       size_t bytes)
{
        json_put_key(builder, key);
        json_put_text(builder, text, bytes);
}

void json_put_key_word(struct json_builder *builder, const char *key, const char *text)
{
        json_put_key(builder, key);
        json_put_word(builder, text);
}

void json_put_key_uint(struct json_builder *builder, const char *key, uint64_t value)
{
        json_put_key(builder, key);
        json_put_uint(builder, value);
}

void json_put_key_bool(struct json_builder *builder, const char *key, bool value)
{
        json_put_key(builder, key);
        json_put_bool(builder, value);
}

void json_put_key_null(struct json_builder *builder, const char *key)
{
        json_put_key(builder, key);
        json_put_null(builder);
}

int json_put_end(struct json_builder *builder)
{
        return json_write_end(&builder->out);
}
