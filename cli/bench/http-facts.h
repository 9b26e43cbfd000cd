/* Asks a server that speaks the API of OpenAI about its models and its version. */
#ifndef CLI_BENCH_HTTP_FACTS_H
#define CLI_BENCH_HTTP_FACTS_H

#include <stddef.h>
#include <stdint.h>

#include "cli/bench/target.h"
#include "cli/web.h"

/*
 * Reads the list of models below `base`.  Its version is found at the places where vLLM and
 * llama-server tell it.  authorization: "" or a header's value.  model: NULL or the name of one.
 * 0, or a negative errno and one line in *why.
 */
int http_facts_read(struct web *web, const char *base, const char *authorization, const char *model,
                    uint32_t timeout_s, struct target_facts *facts, char *why, size_t why_bytes);

#endif
