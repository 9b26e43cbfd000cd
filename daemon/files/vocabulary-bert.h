/*
 * How BERT's tokenizer prepares a text: for the files that say it in their own way.
 */
#ifndef DAEMON_FILES_VOCABULARY_BERT_H
#define DAEMON_FILES_VOCABULARY_BERT_H

#include <stdbool.h>

#include "daemon/files/vocabulary-builder.h"

/*
 * An expression: punctuation, and what else of ASCII is neither a letter, a number, a blank nor a
 * control.  Hugging Face's library knows the punctuation of Unicode 8.
 */
extern const char vocabulary_sign[];

/* 0, -EINVAL or -ENOMEM, with the sentence in the builder's *why. */
int vocabulary_bert_normals(struct vocabulary_builder *builder, bool clean, bool part_han,
                            bool drop_accents, bool lower);
/* A word is what stands between blanks and signs; each sign is a word. */
int vocabulary_bert_cuts(struct vocabulary_builder *builder);

#endif
