/*
 * One replay of a trace.  Every request is sent at its time, whatever the state of the requests
 * before it (an open loop).  A client that waits for answers before its next request would
 * spare the server just when it is slow.  One connection, one thread.
 */
#ifndef BENCH_REPLAY_H
#define BENCH_REPLAY_H

#include <samovar/client.h>

#include "bench/trace.h"

/* Seconds after the replay began. */
struct replay_times {
        uint32_t stream, tokens; /* tokens: that have arrived */
        double sent, first, last;
};

struct replay {
        struct smv_client *client;
        const struct trace *trace;
        struct replay_times *times; /* one for each request of the trace */
        uint64_t seed;
        uint32_t vocab;
        uint32_t salt; /* added to a request's number when its prompt is made up */
        char why[256];
};

/*
 * 0 when each request has received all its tokens; else a negative errno and one line in `why`.
 * A request that was refused, was cut short or found a part of its prompt in the pool would
 * spoil the comparison, so each of these is an error.
 */
int replay_run(struct replay *replay);

#endif
