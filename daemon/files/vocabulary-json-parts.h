/*
 * Reading tokenizer.json part by part: what vocabulary-json.c and its parts share.
 *
 * Each function reads one part of the file into the builder.  0, or -EINVAL or -ENOMEM with the
 * sentence in the builder's *why.
 */
#ifndef DAEMON_FILES_VOCABULARY_JSON_PARTS_H
#define DAEMON_FILES_VOCABULARY_JSON_PARTS_H

#include "daemon/files/vocabulary-builder.h"
#include "json/reader.h"

#define BAR "\xE2\x96\x81"

enum json_model {
        JSON_MODEL_BPE,
        JSON_MODEL_WORDPIECE,
        JSON_MODEL_WORDS,   /* WordLevel: a pre-token is one entry, or unknown */
        JSON_MODEL_UNIGRAM, /* a list of pieces and scores */
};

struct json_tokenizer {
        struct vocabulary_builder m;
        const struct json_document *json;
        const char *splitter; /* named by the caller, or NULL */
        uint32_t model, added;
        enum json_model kind;
        bool letters; /* its pieces are bytes, written as letters */
        bool plain;   /* its pieces are characters as they are; neither: a bar is a blank */
        bool bars;    /* its normalizer turns blanks into bars */
        bool fallback;
        bool words; /* its pre_tokenizer first cuts at blanks, and drops them */
};

/* In this order, after the border of words is known. */
int json_tokenizer_decoder(struct json_tokenizer *rd);
int json_tokenizer_normaliser(struct json_tokenizer *rd);
int json_tokenizer_cuts(struct json_tokenizer *rd); /* its pre_tokenizer */
int json_tokenizer_ends(struct json_tokenizer *rd); /* its post_processor */

/* Its model of the kind Unigram, in place of json_words_measure(), json_words_read(). */
int json_tokenizer_measure_scored(struct json_tokenizer *rd, uint64_t *ret_count,
                                  uint64_t *ret_bytes);
int json_tokenizer_read_scored(struct json_tokenizer *rd);

/* ---- shapes ---- */

static inline uint32_t json_tokenizer_member(const struct json_tokenizer *rd, uint32_t node,
                                             const char *key)
{
        return json_member(rd->json, node, key);
}

/* Whether a member is this text. */
bool json_tokenizer_says(const struct json_tokenizer *rd, uint32_t node, const char *key,
                         const char *text);
bool json_tokenizer_is(const struct json_tokenizer *rd, uint32_t node, const char *type);
bool json_tokenizer_is_null(const struct json_tokenizer *rd, uint32_t node);
bool json_tokenizer_is_on(const struct json_tokenizer *rd, uint32_t node, const char *key,
                          bool absent);
/* Whether a part of the file, or one of the steps in its list, is of this type. */
bool json_tokenizer_has(const struct json_tokenizer *rd, const char *part, const char *list,
                        const char *type);
/* A Replace step from one text to another. */
bool json_tokenizer_replaces(const struct json_tokenizer *rd, uint32_t node, const char *from,
                             const char *to);

/* Steps of a pipeline in order: those of a Sequence, or a single one. */
struct json_steps {
        uint32_t at;
        bool alone;
};
struct json_steps json_tokenizer_steps(const struct json_tokenizer *rd, uint32_t node,
                                       const char *list);
uint32_t json_tokenizer_step(const struct json_tokenizer *rd, struct json_steps *steps);

/* An expression for exactly this text, which the caller frees.  NULL: out of memory. */
char *json_tokenizer_quote(const char *text);

/* -EINVAL: this part of the file is of a type that is not supported there. */
int json_tokenizer_refuse(struct json_tokenizer *rd, const char *part, uint32_t node);

#endif
