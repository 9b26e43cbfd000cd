/*
 * Preview: what a chat template makes of a conversation, without serving anything.
 *
 * --model is a model, which is opened as if it were to be served, so that its template sees what
 * it would see then; or a folder with no more than its tokenizer's files; or a file:
 * a tokenizer_config.json, or a template.  A template by itself knows no bos_token and no
 * eos_token.  --messages has an array of messages, or an object with `messages` and, where they are
 * wanted, `tools`, `template_vars` and `add_generation_prompt`; it means what
 * docs/protocol.md says of the fields of these names.
 *
 * It can not say which tokens the prompt becomes.
 */
#ifndef DAEMON_PREVIEW_H
#define DAEMON_PREVIEW_H

#include "daemon/opening.h"

/* Prints all of the prompt, or nothing.  0, or a negative errno and `why`. */
int preview(struct opening *opening, FILE *to);

#endif
