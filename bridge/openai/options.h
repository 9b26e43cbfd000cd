/*
 * The options that the routes of OpenAI share: sampling, length, stops, class.
 *
 * Fields that the daemon cannot honour are refused by name; those that are only hints, and unknown
 * ones, are ignored.
 */
#ifndef BRIDGE_OPENAI_OPTIONS_H
#define BRIDGE_OPENAI_OPTIONS_H

#include <samovar/client.h>

#include "bridge/core/call.h"
#include "bridge/core/fields.h"

/* Those of chat/completions and completions. */
void openai_read_options(struct call *call, struct fields *fields, struct smv_generate *options);
/* Those of responses, too: temperature, top_p, and the extras of vLLM and other servers. */
void openai_read_sampling(struct call *call, struct fields *fields, struct smv_generate *options);
/* stream and stream_options. */
struct openai_stream {
        bool stream, usage;
};
struct openai_stream openai_read_stream(struct fields *fields);
/* The tier that was asked for, as the answer says it. */
const char *openai_tier(const struct smv_generate *options);

#endif
