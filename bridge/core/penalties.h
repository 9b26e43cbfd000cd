/*
 * Reads what a draw makes of the tokens before it, by the names of OpenAI, vLLM and llama.cpp:
 *
 *      presence_penalty, frequency_penalty     up to `most` and down to its negative
 *      repetition_penalty                      of prompt and answer; llama.cpp's repeat_penalty
 *                                              looks at repeat_last_n tokens, by default 64
 *      dry_multiplier, dry_base, dry_allowed_length, dry_penalty_last_n, dry_sequence_breakers
 *      no_repeat_ngram_size, min_tokens, logit_bias, allowed_token_ids, bad_words
 */
#ifndef BRIDGE_CORE_PENALTIES_H
#define BRIDGE_CORE_PENALTIES_H

#include <samovar/client.h>

#include "bridge/core/fields.h"

/* `object` has the fields, as for sampling_read(). */
void penalties_read(struct fields *fields, struct arena *arena, uint32_t object, double most,
                    struct smv_generate *options);

/* An array of token ids; NULL if it is absent, empty or wrong. */
const uint32_t *fields_tokens(struct fields *fields, struct arena *arena, uint32_t object,
                              const char *name, size_t *ret_count);

#endif
