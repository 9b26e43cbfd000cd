/*
 * Adds the tokens of the files beside a vocabulary (side-files.h) to it.
 *
 * Each added token has the id and the flags of `added_tokens_decoder` in tokenizer_config.json.
 * added_tokens.json has ids alone.  The special tokens (`bos_token`, ...) stand in
 * tokenizer_config.json or in special_tokens_map.json.  As in Hugging Face's `transformers`, the
 * first of the two counts if it has `added_tokens_decoder`, else the second.  But a token that only
 * one of them names is always read.  A special token without an id is left out.
 */
#ifndef DAEMON_FILES_SIDE_TOKENS_H
#define DAEMON_FILES_SIDE_TOKENS_H

#include "daemon/files/side-files.h"
#include "daemon/files/vocabulary-builder.h"

/*
 * Adds the tokens.  One that the vocabulary has by its id gets the kind and the spelling that are
 * listed.  The builder has room for the ids and the bytes; it has all of its own entries; the
 * files must outlive it.  side may be NULL, here and below.
 */
int side_tokens_add(const struct side_files *side, struct vocabulary_builder *builder);

/* Behind that: sets bos, eos, add_bos and what ends a text, if the files say so. */
void side_tokens_set_ends(const struct side_files *side, struct vocabulary_builder *builder);

#endif
