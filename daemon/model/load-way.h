/*
 * The ways to read weights from their files.  `auto` decides after it has checked whether the files
 * are in the page cache; daemon/engine/weights.h describes the others.
 */
#ifndef DAEMON_MODEL_LOAD_WAY_H
#define DAEMON_MODEL_LOAD_WAY_H

enum load_way { LOAD_AUTO, LOAD_CACHED, LOAD_URING, LOAD_PLAIN, LOAD_WAY_N };

static inline const char *load_way_name(enum load_way way)
{
        static const char *const names[LOAD_WAY_N] = {
                [LOAD_AUTO] = "auto",
                [LOAD_CACHED] = "cached",
                [LOAD_URING] = "uring",
                [LOAD_PLAIN] = "plain",
        };

        return names[way];
}

#endif
