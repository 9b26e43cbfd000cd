/*
 * Words in JSON: an object of names and ids, as in tokenizer.json and vocab.json.
 */
#ifndef DAEMON_FILES_VOCABULARY_JSON_H
#define DAEMON_FILES_VOCABULARY_JSON_H

#include "daemon/files/vocabulary-builder.h"
#include "json/reader.h"

struct json_words {
        uint64_t count;
        uint64_t ids;   /* the largest id plus one */
        uint64_t bytes; /* of all names together */
};

/* 0, or -EINVAL and *why: a member is not an integer within the limits. */
int json_words_measure(const struct json_document *json, uint32_t object,
                       struct json_words *ret_words, char *why, size_t why_bytes);
/* Some ids may be unused, but a small file must not cause a large table.  0 or -EINVAL. */
int json_words_fit(const struct json_words *words, char *why, size_t why_bytes);
/* Call it after those two.  fallback: names like <0x0A> are bytes. */
int json_words_read(const struct json_document *json, uint32_t object,
                    struct vocabulary_builder *builder, enum spelling spelling, bool fallback);

#endif
