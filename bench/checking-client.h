/*
 * A client that uses the pipeline and checks everything that it receives.
 *
 * It keeps some streams running on one connection until it has received its share of tokens.
 * It compares every id, position and byte of text with the null model's function, and every END
 * with the request.  It pauses at random.  If nothing comes for ten seconds while streams are
 * alive, it fails: a wake-up was lost.
 */
#ifndef BENCH_CHECKING_CLIENT_H
#define BENCH_CHECKING_CLIENT_H

#include <samovar/client.h>

#include "daemon/ipc/stats.h"

enum checking_client_wait {
        CLIENT_SLEEPS, /* smv_next() sleeps */
        CLIENT_POLLS,  /* poll() on smv_fd() does */
        CLIENT_SPINS,  /* nothing sleeps: the client calls smv_next(…, 0) in a loop */
};

struct checking_client_conf {
        struct smv_connect connect;
        enum checking_client_wait wait;
        size_t batch;        /* smv_wake_after() */
        uint32_t streams;    /* at once, at most 64 */
        uint64_t tokens;     /* the number of tokens it receives */
        uint32_t tokens_max; /* of a stream */
        uint64_t seed;
        uint32_t nap_every; /* average number of events between pauses; 0: never */
        uint64_t nap_ns;    /* maximum length of a pause */
};

/* Its progress so far; in shared memory if other processes look at it. */
struct checking_client_facts {
        counter tokens, records, begun, ends, stopped, naps;
        counter sleeps; /* times its thread gave up its core, without the pauses */
        char what[240]; /* why it failed */
};

/* 0, or -1 and the reason in facts->what. */
int checking_client_run(const struct checking_client_conf *conf,
                        struct checking_client_facts *facts);

#endif
