/*
 * Reads what a model's files say about how to generate: the sampling parameters of requests that
 * give none, and more tokens that end a stream.
 *
 *      GGUF        general.sampling.temp, .top_k, .top_p and .min_p
 *      a folder    generation_config.json: temperature, top_k, top_p, min_p, and eos_token_id.
 *                  do_sample false means temperature 0, as in transformers.
 *
 * These are wishes, so nothing here is a reason not to serve the model: a value that cannot be
 * taken is left out, and so is a sampler that is not served.
 */
#ifndef DAEMON_FILES_GENERATION_SOURCE_H
#define DAEMON_FILES_GENERATION_SOURCE_H

#include <stddef.h>

#include "daemon/files/checkpoint.h"
#include "daemon/model/sampling-defaults.h"

/*
 * *defaults keeps what the files do not say; end tokens are added to the traits.  Returns how many
 * values were left out; *ret_left_out has their names with commas between them.
 */
unsigned generation_source_read(const struct checkpoint *checkpoint,
                                struct sampling_defaults *defaults, struct traits *traits,
                                char *ret_left_out, size_t bytes);

#endif
