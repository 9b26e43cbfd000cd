/*
 * Weights whose rows are columns in the file (struct tensor: transposed), as GPT-2 has them.
 *
 * No row of them can be read before the whole tensor is.  So each tensor is read at once and
 * transposed in memory.  The models that have such files are small.
 */
#ifndef DAEMON_ENGINE_WEIGHTS_TRANSPOSED_H
#define DAEMON_ENGINE_WEIGHTS_TRANSPOSED_H

#include "daemon/engine/weights.h"

/*
 * Reads the loads of transposed tensors, one after the other on the caller's thread, and removes
 * them from the list.  Between them it calls conf->go_on() as weights_read() does.  Needs host
 * memory for one tensor, twice.  Returns 0 or negative errno and *why.
 */
int weights_read_transposed(const struct checkpoint *checkpoint, struct weights_load *loads,
                            uint32_t *io_count, const struct weights_conf *conf, char *why,
                            size_t why_bytes);

#endif
