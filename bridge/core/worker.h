/*
 * A worker: a thread of its own for work that waits, such as for a disk.  The loop must never wait.
 *
 * The work that is given to a worker is done one after another, in that order.  `done` is called on
 * the loop thread.
 */
#ifndef BRIDGE_CORE_WORKER_H
#define BRIDGE_CORE_WORKER_H

#include <stdbool.h>

#include "base/list.h"
#include "base/loop.h"

struct worker;

struct work {
        struct list_head of_worker;
        void (*run)(struct work *work); /* on the worker's thread */
        void (*done)(struct work *work);
};

int worker_new(struct loop *loop, const char *name, struct worker **ret_worker);
void worker_do(struct worker *worker, struct work *work);
/*
 * Waits for the work that is under way, and with `all` for the work behind it.  Calls `done` for
 * all that was run; the rest is dropped.  Takes NULL.
 */
struct worker *worker_free(struct worker *worker, bool all);

#endif
