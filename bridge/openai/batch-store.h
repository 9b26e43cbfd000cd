/*
 * Batches: files of requests that run in the background, some at a time, until all are answered.
 *
 * A batch first reads all its lines and fails if one is wrong.  Then each line becomes a call like
 * one of HTTP (bridge_route()), of background class, whose answer goes to the output file, or, if
 * it was refused, to the error file.  A line that the daemon has no place for waits and is asked
 * again.  A batch expires after 24 hours.
 *
 * A batch belongs to a principal; for every other one it is not there.  Batches end with the
 * process.  Loop thread only; no step takes longer than reading some lines.
 */
#ifndef BRIDGE_OPENAI_BATCH_STORE_H
#define BRIDGE_OPENAI_BATCH_STORE_H

#include "bridge/core/bridge.h"
#include "bridge/openai/file-store.h"

struct batch;
struct batch_store;

struct batch_store *batch_store_new(void); /* NULL: out of memory */
/* Ends those that run.  Before the bridge is freed.  Takes NULL. */
struct batch_store *batch_store_free(struct batch_store *store);

struct batch_conf {
        struct bridge *bridge;
        uint32_t principal;
        const char *principal_name;
        struct stored_file *input;
        struct text endpoint, metadata; /* metadata: JSON, or at NULL */
};

/* -ENOMEM; -EDQUOT: as many batches of the principal run as may; or another negative errno. */
int batch_begin(struct batch_store *store, const struct batch_conf *conf, struct batch **ret_batch);
/* NULL: there is none for this principal. */
struct batch *batch_find(const struct batch_store *store, uint32_t principal, struct text id);
/* The newest first, as file_store_next(). */
struct batch *batch_next(const struct batch_store *store, uint32_t principal,
                         const struct batch *after);
/* Answers that are there stay; no more lines begin.  False: it has ended already. */
bool batch_cancel(struct batch *batch);
const char *batch_id(const struct batch *batch);
void batch_put(struct json_builder *to, const struct batch *batch);

#endif
