/* What the answers of OpenAI's chat and text completions have in common. */
#ifndef BRIDGE_OPENAI_WRITING_H
#define BRIDGE_OPENAI_WRITING_H

#include "bridge/core/run.h"

/* "usage": {...} */
void openai_put_usage(struct json_builder *to, const struct run *run);
/* "timings": {...}, as llama-server writes them. */
void openai_put_timings(struct json_builder *to, const struct run *run);
/* A fingerprint of what decides the tokens besides the seed: the model. */
void openai_put_fingerprint(struct json_builder *to, const struct call *call);

#endif
