/*
 * A walker: a client that goes the road and checks every step of it.
 *
 * It keeps some streams running on one connection until it has had its share of
 * tokens.  Every id, position and byte of text is compared with what the null
 * model's function says it must be, every END with what was asked; it dawdles and
 * hurries by chance.  Nothing for ten seconds, with streams alive, is a failure:
 * somebody has lost a wake-up.
 */
#ifndef BENCH_WALKER_H
#define BENCH_WALKER_H

#include <samovar/client.h>

#include "daemon/stats.h"

enum walker_wait {
        WALKER_NEXT, /* smv_next() sleeps */
        WALKER_POLL, /* poll() on smv_fd() does */
        WALKER_TURN, /* nobody does: smv_next(…, 0) in turns */
};

struct walker_conf {
        struct smv_connect connect;
        enum walker_wait wait;
        size_t batch;        /* smv_batch() */
        uint32_t streams;    /* at once, at most 64 */
        uint64_t tokens;     /* its share */
        uint32_t tokens_max; /* of a stream */
        uint64_t seed;
        uint32_t nap_every; /* about so many events; 0: never */
        uint64_t nap_ns;    /* up to this */
};

/* What it has done so far; in shared memory, if others look. */
struct walker_facts {
        counter tokens, records, begun, ends, stopped, naps;
        counter sleeps; /* times its thread gave its core away, less the naps */
        char what[240]; /* why it failed */
};

/* 0, or -1 and facts->what. */
int walker_walk(const struct walker_conf *conf, struct walker_facts *facts);

#endif
