/*
 * Loading: the weights come while the daemon listens already.
 *
 * It tells of itself as it goes: the counts that `status` shows, a line in the log at its beginning
 * and at its end, and every few seconds between.  Engine thread; what it should do meanwhile is
 * the engine's (weights.h: go_on).
 */
#ifndef DAEMON_ENGINE_LOADING_H
#define DAEMON_ENGINE_LOADING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/load-way.h"
#include "daemon/stats.h"

struct model;

struct loading_conf {
        enum load_way way;
        uint32_t threads; /* 0: one a core */
        char *why; /* why it failed, or ""; to be read when the engine is joined.  NULL: nobody asks */
        size_t why_bytes;
};

/* -ECANCELED: go_on() has said no, about every 20 ms it is asked. */
int loading_run(const struct loading_conf *conf, struct model *model, struct stats *stats,
                bool (*go_on)(void *arg), void *arg);

#endif
