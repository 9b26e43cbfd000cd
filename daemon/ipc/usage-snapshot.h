/*
 * The usage snapshot: how much of the KV pool each user has, and how many of its requests run, as
 * last written by the engine.
 *
 * The engine writes it every few milliseconds while it runs, and before it sleeps.  The loop reads
 * it for `status`.  Neither thread waits for the other, and neither allocates.  A reader that meets
 * a write in progress tries a few more times; then it returns the table that it read the last time,
 * which was complete.  So a row never mixes one user's uid with another user's blocks, and the rows
 * of one table are always from the same step.
 *
 * The number of rows is fixed by usage_snapshot_new().  The engine writes the users that have
 * requests first.  If there is no row left for a user, `status` shows zeros for that user; nothing
 * else depends on it.  One writer, one reader.
 */
#ifndef DAEMON_IPC_USAGE_SNAPSHOT_H
#define DAEMON_IPC_USAGE_SNAPSHOT_H

#include <stdint.h>

struct usage_snapshot;

struct usage_row {
        uint64_t uid;
        uint32_t blocks;  /* blocks that this user's running requests hold or were promised */
        uint32_t cached;  /* this user's blocks in the cache that no request uses now */
        uint32_t running; /* its requests that have a slot ... */
        uint32_t waiting; /* ... and those that wait for one */
};

int usage_snapshot_new(
        uint32_t rows,
        struct usage_snapshot **ret_snapshot); /* 0 or -ENOMEM; no row is written yet */
struct usage_snapshot *usage_snapshot_free(struct usage_snapshot *snapshot); /* takes NULL */

/* The number of rows; any thread. */
uint32_t usage_snapshot_capacity(const struct usage_snapshot *snapshot);

/*
 * Writer's thread: writes a new table of at most usage_snapshot_capacity() rows.  The reader sees
 * the old table until usage_snapshot_end().
 */
void usage_snapshot_begin(struct usage_snapshot *snapshot);
void usage_snapshot_put(struct usage_snapshot *snapshot, const struct usage_row *row);
void usage_snapshot_end(struct usage_snapshot *snapshot);

/*
 * Reader's thread: returns the row count; *ret_rows stays valid until the next
 * usage_snapshot_read().
 */
uint32_t usage_snapshot_read(struct usage_snapshot *snapshot, const struct usage_row **ret_rows);

#endif
