/* What the answers of OpenAI's chat and text completions have in common. */
#ifndef BRIDGE_OPENAI_WRITING_H
#define BRIDGE_OPENAI_WRITING_H

#include "bridge/core/run.h"
#include "bridge/core/vocabulary.h"

/* "usage": {...} */
void openai_put_usage(struct json_builder *to, const struct run *run);
/* "timings": {...}, as llama-server writes them. */
void openai_put_timings(struct json_builder *to, const struct run *run);
/* The array of chat logprobs of the tokens that are ready, which are taken then. */
void openai_put_chat_logprobs(struct json_builder *to, const struct vocabulary *vocabulary,
                              struct run_choice *choice);
/* -9999 stands for the logarithm of 0, which JSON has no number for. */
double openai_logprob(float logprob);
/* A fingerprint of what decides the tokens besides the seed: the model. */
void openai_put_fingerprint(struct json_builder *to, const struct call *call);

#endif
