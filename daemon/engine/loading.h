/*
 * Loading: the weights are read while the daemon already listens.
 *
 * It reports its progress: counters for `status`, a log line at the beginning and at the end, and
 * one every few seconds between.  Engine thread; go_on() lets the engine do other work meanwhile
 * (weights.h: go_on).
 */
#ifndef DAEMON_ENGINE_LOADING_H
#define DAEMON_ENGINE_LOADING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/model/load-way.h"
#include "daemon/ipc/stats.h"

struct model;

struct loading_conf {
        enum load_way way;
        uint32_t threads;              /* 0: one per core */
        const char *path, *draft_path; /* of the model and of the draft model, for `why`; or NULL */
        /* receives the reason of a failure, or ""; read it after engine_join(); may be NULL */
        char *why;
        size_t why_bytes;
};

/* For a draft model, which is loaded first; not counted. */
int loading_run_first(const struct loading_conf *conf, struct model *model,
                      bool (*go_on)(void *arg), void *arg);

/* go_on() is called about every 20 ms.  If it returns false, loading_run() returns -ECANCELED. */
int loading_run(const struct loading_conf *conf, struct model *model, struct stats *stats,
                bool (*go_on)(void *arg), void *arg);

#endif
