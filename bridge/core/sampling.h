/*
 * Reads the options of sampling, length and stops, which the dialects name alike.
 *
 * `object` is the node of the request that has the fields: 0, or Ollama's `options`.  A value of
 * another range than the daemon's is refused by name.
 */
#ifndef BRIDGE_CORE_SAMPLING_H
#define BRIDGE_CORE_SAMPLING_H

#include <samovar/client.h>

#include "bridge/core/fields.h"

/* Why the daemon cannot do what a field asks for, as field_refuse() says it. */
#define NO_SAMPLER "the daemon does not have this sampler yet"

/*
 * temperature, top_p, min_p, top_k, ignore_eos; and the other cuts, by llama.cpp's names:
 * top_n_sigma, typical_p, xtc_probability, xtc_threshold, dynatemp_range, dynatemp_exponent,
 * mirostat (0 or 2), mirostat_tau, mirostat_eta.  The limit of reasoning is vLLM's
 * thinking_token_budget, or llama.cpp's reasoning_budget, reasoning_budget_tokens or
 * thinking_budget_tokens, with reasoning_budget_message.  The tokens of a guess are draft_tokens,
 * llama.cpp's speculative.n_max, or Ollama's draft_num_predict.
 */
void sampling_read(struct fields *fields, uint32_t object, double temperature_max,
                   struct smv_generate *options);
/* The most tokens of reasoning; a negative number: no limit. */
void sampling_limit_reasoning(int64_t tokens, struct smv_generate *options);
/* Negative seeds are numbers as others. */
void sampling_read_seed(struct fields *fields, uint32_t object, struct smv_generate *options);
/* A text, or an array of texts; empty ones are left out. */
void sampling_read_stops(struct fields *fields, struct arena *arena, uint32_t object,
                         const char *name, struct smv_generate *options);
/* max_tokens of this name, if it is there: as asked; the daemon lowers it to what fits. */
bool sampling_read_length(struct fields *fields, uint32_t object, const char *name,
                          struct smv_generate *options);
/* service_tier: the daemon's priority. */
void sampling_read_tier(struct fields *fields, struct smv_generate *options);

#endif
