/*
 * The flag --template: renders a conversation with a chat template, without serving anything.
 *
 * --model names one of the following.  A model: it is opened as for serving, so that its template
 * gets the same values as then.  A folder with only the tokenizer's files.  A file: a
 * tokenizer_config.json, or a template.  A template alone has no bos_token and no eos_token.
 * --messages has an array of messages, or an object with `messages` and, optionally, `tools`,
 * `template_vars`, `add_generation_prompt` and `continue_final_message`.
 * docs/reference/protocol.md describes these fields.
 *
 * It cannot show the tokens of the prompt.
 */
#ifndef DAEMON_START_RENDER_TEMPLATE_H
#define DAEMON_START_RENDER_TEMPLATE_H

#include "daemon/start/model-setup.h"

/* Prints the whole prompt, or nothing.  Returns 0, or a negative errno and `why`. */
int render_template(struct model_setup *setup, FILE *to);

#endif
