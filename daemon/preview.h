/*
 * Preview: renders a conversation with a chat template, without serving anything.
 *
 * --model names one of the following.  A model: it is opened as for serving, so that its template
 * gets the same values as then.  A folder with only the tokenizer's files.  A file: a
 * tokenizer_config.json, or a template.  A template alone has no bos_token and no eos_token.
 * --messages has an array of messages, or an object with `messages` and, optionally, `tools`,
 * `template_vars` and `add_generation_prompt`.  docs/protocol.md describes these fields.
 *
 * Preview cannot show the tokens of the prompt.
 */
#ifndef DAEMON_PREVIEW_H
#define DAEMON_PREVIEW_H

#include "daemon/opening.h"

/* Prints the whole prompt, or nothing.  Returns 0, or a negative errno and `why`. */
int preview(struct opening *opening, FILE *to);

#endif
