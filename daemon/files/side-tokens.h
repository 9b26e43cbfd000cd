/*
 * Tokens in the other files of a folder: tokenizer_config.json and added_tokens.json.
 *
 * A tokenizer.model and a file of ranks do not have the tokens that were added to the vocabulary
 * later, nor always those of chats.  A tokenizer.json has all of them, and these files are not read
 * for it.
 */
#ifndef DAEMON_FILES_SIDE_TOKENS_H
#define DAEMON_FILES_SIDE_TOKENS_H

#include "daemon/files/vocabulary-builder.h"
#include "json/reader.h"

struct side_tokens {
        struct json_document *config, *added; /* NULL: there is no such file */
        uint64_t ids;                         /* the largest id plus one */
        uint64_t count;
        size_t bytes; /* of all spellings together */
};

/* Reads the files beside this one.  0, -EINVAL with the sentence in *why, or another error. */
int side_tokens_open(struct side_tokens *ret_side, const char *path, char *why, size_t why_bytes);
void side_tokens_close(struct side_tokens *side); /* all zero is fine */

/*
 * Adds those that the vocabulary does not have by their id; and bos, eos and add_bos if the files
 * name them.  The builder has room for `ids` and `bytes`; the files must outlive it.
 */
int side_tokens_add(const struct side_tokens *side, struct vocabulary_builder *builder);

#endif
