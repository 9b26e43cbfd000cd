/* Writes the logprobs of tokens in the form that OpenAI's chat and Ollama share. */
#ifndef BRIDGE_CORE_LOGPROBS_H
#define BRIDGE_CORE_LOGPROBS_H

#include "bridge/core/fields.h"
#include "bridge/core/run.h"
#include "bridge/core/vocabulary.h"

#define LOGPROBS_TOP_MAX 20u

/* Reads `logprobs` and `top_logprobs` of the request; *ret_wanted: they were asked for. */
void logprobs_read(struct fields *fields, struct smv_generate *options, bool *ret_wanted);
/* The array of those of the tokens that are ready, which are taken then. */
void logprobs_put(struct json_builder *to, const struct vocabulary *vocabulary,
                  struct run_choice *choice);
/* The same without brackets: the elements follow those that `to` has. */
void logprobs_put_more(struct json_builder *to, const struct vocabulary *vocabulary,
                       struct run_choice *choice);
/* -9999 stands for the logarithm of 0, which JSON has no number for. */
double logprob_shown(float logprob);

#endif
