/*
 * A turn counter and a table (a seqlock).
 *
 * The writer makes the counter odd, writes the cells, and makes the counter even again.  A reader
 * has a complete table if the counter was even before it read the cells and is unchanged
 * afterwards.
 *
 * Cells are stored with release and loaded with acquire.  Suppose that a reader loads a cell newer
 * than its first look at the counter.  Then it also sees the odd counter that was stored before
 * this cell, and its second look detects the change.  The even counter is stored with release, so a
 * reader that starts from it sees all cells that belong to it.  Relaxed cells and two fences would
 * be enough, but ThreadSanitizer does not understand fences.  On the processors that we know these
 * orders cost nothing.
 */
#include "daemon/ipc/usage-snapshot.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"

#define LINE  128 /* two cache lines: processors fetch them in pairs */
#define TRIES 16

struct cell {
        _Atomic uint64_t uid;
        _Atomic uint32_t blocks, cached, running, waiting;
};

struct usage_snapshot {
        _Alignas(LINE) _Atomic uint64_t turns; /* odd: a write is in progress */
        _Atomic uint32_t count;
        uint32_t put; /* writer only: rows written so far */
        _Alignas(LINE) uint32_t capacity;
        uint32_t seen_count;           /* reader only, like all fields below up to `cells` */
        struct usage_row *seen, *next; /* a complete table, and space for another */
        _Alignas(LINE) struct cell cells[];
};

int usage_snapshot_new(uint32_t rows, struct usage_snapshot **ret_snapshot)
{
        struct usage_row *copies;
        struct usage_snapshot *snapshot;
        size_t bytes;

        assert(rows && rows <= UINT32_MAX / 64);
        bytes = sizeof(*snapshot) + rows * sizeof(struct cell);
        snapshot = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);
        copies = calloc(rows, 2 * sizeof(*copies));
        if (!snapshot || !copies) {
                free(copies);
                free(snapshot);
                return error_raise(-ENOMEM);
        }
        *snapshot =
                (struct usage_snapshot){ .capacity = rows, .seen = copies, .next = copies + rows };
        *ret_snapshot = snapshot;
        return 0;
}

struct usage_snapshot *usage_snapshot_free(struct usage_snapshot *snapshot)
{
        if (!snapshot)
                return NULL;
        free(snapshot->seen < snapshot->next ? snapshot->seen : snapshot->next);
        free(snapshot);
        return NULL;
}

uint32_t usage_snapshot_capacity(const struct usage_snapshot *snapshot)
{
        return snapshot->capacity;
}

void usage_snapshot_begin(struct usage_snapshot *snapshot)
{
        uint64_t turns = atomic_load_explicit(&snapshot->turns, memory_order_relaxed);

        assert(turns % 2 == 0);
        atomic_store_explicit(&snapshot->turns, turns + 1, memory_order_relaxed);
        snapshot->put = 0;
}

void usage_snapshot_put(struct usage_snapshot *snapshot, const struct usage_row *row)
{
        struct cell *cell = &snapshot->cells[snapshot->put];

        assert(snapshot->put < snapshot->capacity);
        atomic_store_explicit(&cell->uid, row->uid, memory_order_release);
        atomic_store_explicit(&cell->blocks, row->blocks, memory_order_release);
        atomic_store_explicit(&cell->cached, row->cached, memory_order_release);
        atomic_store_explicit(&cell->running, row->running, memory_order_release);
        atomic_store_explicit(&cell->waiting, row->waiting, memory_order_release);
        snapshot->put++;
}

void usage_snapshot_end(struct usage_snapshot *snapshot)
{
        uint64_t turns = atomic_load_explicit(&snapshot->turns, memory_order_relaxed);

        assert(turns % 2);
        atomic_store_explicit(&snapshot->count, snapshot->put, memory_order_release);
        atomic_store_explicit(&snapshot->turns, turns + 1, memory_order_release);
}

/* Copies into `next`; false if the copy may be inconsistent. */
static bool copy(struct usage_snapshot *snapshot, uint32_t *ret_count)
{
        uint64_t turns = atomic_load_explicit(&snapshot->turns, memory_order_acquire);
        uint32_t count = atomic_load_explicit(&snapshot->count, memory_order_acquire);

        if (turns % 2)
                return false;
        for (uint32_t i = 0; i < count; i++) {
                struct cell *cell = &snapshot->cells[i];

                snapshot->next[i] = (struct usage_row){
                        .uid = atomic_load_explicit(&cell->uid, memory_order_acquire),
                        .blocks = atomic_load_explicit(&cell->blocks, memory_order_acquire),
                        .cached = atomic_load_explicit(&cell->cached, memory_order_acquire),
                        .running = atomic_load_explicit(&cell->running, memory_order_acquire),
                        .waiting = atomic_load_explicit(&cell->waiting, memory_order_acquire),
                };
        }
        *ret_count = count;
        return atomic_load_explicit(&snapshot->turns, memory_order_relaxed) == turns;
}

uint32_t usage_snapshot_read(struct usage_snapshot *snapshot, const struct usage_row **ret_rows)
{
        uint32_t tries = TRIES, count = 0;
        bool whole = false;

        while (!whole && tries--)
                whole = copy(snapshot, &count);
        if (whole) {
                struct usage_row *old = snapshot->seen;

                snapshot->seen = snapshot->next;
                snapshot->next = old;
                snapshot->seen_count = count;
        }
        *ret_rows = snapshot->seen;
        return snapshot->seen_count;
}
