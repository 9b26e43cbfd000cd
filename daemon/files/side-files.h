/*
 * The other files of a folder that has a vocabulary: tokenizer_config.json, added_tokens.json and
 * special_tokens_map.json.
 *
 * Most kinds of vocabulary files do not have the tokens that were added to the vocabulary later,
 * nor always those of chats.  A tokenizer.json has all of them, and these files are not read for
 * it.
 *
 * Most vocabularies are useful without these files.  So one that is no JSON counts as absent.
 */
#ifndef DAEMON_FILES_SIDE_FILES_H
#define DAEMON_FILES_SIDE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/model/vocabulary.h"
#include "json/reader.h"

#define SIDE_FILES_FAULT_BYTES 256u

struct side_files {
        struct json_document *config, *added, *map; /* NULL: there is no such file */
        uint64_t ids;                               /* the largest id plus one */
        uint64_t count;                             /* of tokens in the lists */
        size_t bytes;                               /* of all spellings together */
        char fault[SIDE_FILES_FAULT_BYTES];         /* why one is no JSON; empty: all are */
};

/* Reads the files beside this one.  0, -EINVAL with the sentence in *why, or another error. */
int side_files_open(struct side_files *ret_side, const char *path, char *why, size_t why_bytes);
void side_files_close(struct side_files *side); /* all zero is fine */
/* Checks documents that were read in another way, and measures them. */
int side_files_measure(struct side_files *side, char *why, size_t why_bytes);

/*
 * How many ids a vocabulary of `entries` has with these tokens.  -EINVAL if that is many more than
 * it has tokens.  side may be NULL, here and in the next two.
 */
int side_files_fit(const struct side_files *side, uint64_t entries, uint64_t *ret_ids, char *why,
                   size_t why_bytes);

/* Bytes that a builder needs for them. */
static inline size_t side_files_bytes(const struct side_files *side)
{
        return side ? side->bytes : 0;
}

/* A switch of tokenizer_config.json; `absent` if that does not have it. */
bool side_files_is_on(const struct side_files *side, const char *key, bool absent);

/* Whether `tokenizer_class` of tokenizer_config.json is this one, or its faster twin. */
bool side_files_has_class(const struct side_files *side, const char *name);

/*
 * The list of tokenizer_config.json: an object of ids and their properties.  JSON_NONE: there is
 * none.  Each of its tokens could be read when the files were opened.
 */
uint32_t side_files_first(const struct side_files *side);
bool side_files_has_list(const struct side_files *side);
bool side_files_listed(const struct json_document *json, uint32_t node, uint64_t *ret_id,
                       const char **ret_name, size_t *ret_bytes);

/* A special token is a text, or an object with it.  NULL: it is empty, or neither. */
const char *side_files_name(const struct json_document *json, uint32_t node, size_t *ret_bytes);

/* Calls `fn` for each special token of a file: `bos_token` and so on, and two lists. */
void side_files_each_special(const struct json_document *json,
                             void (*fn)(void *arg, const struct json_document *json, uint32_t node),
                             void *arg);

#endif
