/*
 * Builds JSON with the writer: it puts the commas, and pairs keys with values.
 *
 *      json_put_object(&b);
 *      json_put_key(&b, "id");
 *      json_put_text(&b, id, bytes);
 *      json_put_object_end(&b);
 *      r = json_put_end(&b);
 *
 * The first failure is remembered, as in the writer; json_put_end() returns it.
 */
#ifndef JSON_BUILDER_H
#define JSON_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json/document.h"
#include "json/writer.h"

struct json_builder {
        struct json_writer out;
        bool comma; /* the next value or key needs a comma before it */
};

static inline struct json_builder json_build(struct bytes *to)
{
        return (struct json_builder){ .out = { .to = to } };
}

void json_put_object(struct json_builder *builder);
void json_put_object_end(struct json_builder *builder);
void json_put_array(struct json_builder *builder);
void json_put_array_end(struct json_builder *builder);
void json_put_key(struct json_builder *builder, const char *key);
void json_put_key_bytes(struct json_builder *builder, const char *key, size_t bytes);

void json_put_text(struct json_builder *builder, const char *text, size_t bytes);
void json_put_word(struct json_builder *builder, const char *text); /* NUL-ended; NULL: null */
void json_put_uint(struct json_builder *builder, uint64_t value);
void json_put_int(struct json_builder *builder, int64_t value);
void json_put_float(struct json_builder *builder, double value);
void json_put_bool(struct json_builder *builder, bool value);
void json_put_null(struct json_builder *builder);
void json_put_raw(struct json_builder *builder, const char *json); /* a whole value */
/* A value of a document, with everything in it; null if it is absent. */
void json_put_node(struct json_builder *builder, const struct json_document *from, uint32_t node);

/* The same as key and value. */
void json_put_key_text(struct json_builder *builder, const char *key, const char *text,
                       size_t bytes);
void json_put_key_word(struct json_builder *builder, const char *key, const char *text);
void json_put_key_uint(struct json_builder *builder, const char *key, uint64_t value);
void json_put_key_bool(struct json_builder *builder, const char *key, bool value);
void json_put_key_null(struct json_builder *builder, const char *key);

/* 0 or -ENOMEM.  The text is NUL-ended then; the NUL does not count. */
int json_put_end(struct json_builder *builder);

#endif
