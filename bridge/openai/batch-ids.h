/*
 * The custom_ids of a batch: each stands in one line, and has one answer at most.
 *
 * Only hashes are kept, 64 bits each, with a key that no client knows.
 */
#ifndef BRIDGE_OPENAI_BATCH_IDS_H
#define BRIDGE_OPENAI_BATCH_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "bridge/core/arena.h"

struct batch_ids;
struct batch_ids *batch_ids_new(void); /* for BATCH_LINES_MAX of them; NULL: out of memory */
struct batch_ids *batch_ids_free(struct batch_ids *ids); /* takes NULL */

/* False: the id was there, or there is no space for more. */
bool batch_ids_add(struct batch_ids *ids, struct text id);
/* The id has its answer now.  False: it is not there, or had one. */
bool batch_ids_answer(struct batch_ids *ids, struct text id);
bool batch_ids_is_answered(const struct batch_ids *ids, struct text id);

#endif
