/*
 * Batches: files of requests that run in the background, some at a time, until all are answered.
 *
 * A batch belongs to a principal, by its name; for every other one it is not there.  It expires
 * after 24 hours, and is forgotten some time after its end.  With a state folder, batches survive a
 * restart and go on where they were; without one, they end with the process.  Loop thread only.
 *
 * In the state folder a batch has a record ID.json; while it runs, also its input ID.input, and its
 * answers ID.output and ID.errors.
 */
#ifndef BRIDGE_OPENAI_BATCH_STORE_H
#define BRIDGE_OPENAI_BATCH_STORE_H

#include "bridge/openai/batch-run.h"
#include "bridge/openai/file-store.h"

struct batch_store;

/* NULL: out of memory.  The bridge has its settings and its state folder. */
struct batch_store *batch_store_new(struct bridge *bridge);
/* Ends those that run.  Before the bridge is freed.  Takes NULL. */
struct batch_store *batch_store_free(struct batch_store *store);

struct batch_conf {
        const char *owner;
        const struct stored_file *input;
        struct text endpoint, metadata; /* metadata: JSON, or at NULL */
};

/*
 * -ENOMEM; -EDQUOT: as many batches of the owner run as may; or another negative errno.  Then
 * done() is not called.  Otherwise it is called once, perhaps before this returns: 0, the batch
 * runs; or a negative errno, and batch NULL: the disk has refused it.
 */
int batch_begin(struct batch_store *store, const struct batch_conf *conf,
                void (*done)(void *arg, struct batch *batch, int result), void *arg);
/* NULL: there is none for this owner. */
struct batch *batch_find(const struct batch_store *store, const char *owner, struct text id);
/* The newest first, as file_store_next(). */
struct batch *batch_next(const struct batch_store *store, const char *owner,
                         const struct batch *after);

/* ---- a start ---- */

/* Takes the record of this name, or sets it aside.  A negative errno: memory, or descriptors. */
int batch_store_restore(struct batch_store *store, const char *name);
/* All were taken: those that have not ended go on.  The files were restored before. */
int batch_store_restored(struct batch_store *store);
/* Does a batch of this id need the files beside its record? */
bool batch_store_needs(const struct batch_store *store, struct text id);

#endif
