/*
 * The forecast: how long answers will become, and how many blocks they will need at most.
 *
 * Programs ask for many more tokens than they get, so what a request asks for says little about
 * what it needs.  The forecast learns the lengths of answers, for each user and class.  It tells
 * the rest of an answer from those that were at least as long: the quantile `trust` of them.  While
 * a user is new, all users of the class count; while the daemon is new, FORECAST_GUESS tokens.
 *
 * Streams grow by a token in each step.  So the number of blocks that they will need at a time is
 * known from their rests: all grow until the shortest has ended and gives its blocks back, then the
 * others go on.  The most is reached just before one of them ends.  (Gong and others, 2025.)
 *
 * `trust` adapts.  Each request that was preempted because blocks ran out raises it, each other one
 * lowers it.  It comes to rest where the part of requests that are preempted is the target.
 *
 * Engine thread only; nothing here allocates after forecast_init().
 */
#ifndef DAEMON_CORE_FORECAST_H
#define DAEMON_CORE_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/request.h"

#define FORECAST_GUESS   256u /* tokens */
#define FORECAST_USERS   64u /* users whose lengths are known; the one used last longest ago goes */
#define FORECAST_BUCKETS 96u
#define FORECAST_SPARE   63u
/* How many answers must be known before they count. */
#define FORECAST_ENOUGH 16u

/* How many answers had a length in each bucket: exact up to 4, then four buckets for a doubling. */
struct forecast_lengths {
        uint32_t count; /* of all buckets */
        uint16_t buckets[FORECAST_BUCKETS];
};

struct forecast_user {
        uint64_t uid;
        uint64_t used; /* a serial number; 0: the entry is free */
        struct forecast_lengths lengths[REQUEST_PRIORITY_N];
};

/* A stream that runs, or is to run. */
struct forecast_stream {
        uint32_t rest;  /* tokens that it will still make */
        uint32_t spare; /* positions for which it has blocks already, FORECAST_SPARE at most */
        uint32_t own;   /* blocks that come free at its end */
};

struct forecast {
        struct forecast_user *users;
        struct forecast_lengths all[REQUEST_PRIORITY_N];
        struct forecast_stream *streams; /* for forecast_most() */
        uint32_t stream_count, stream_max;
        uint64_t uses;
        uint32_t trust;  /* FORECAST_ONE is 1 */
        uint32_t target; /* the part of requests that may be preempted, the same */
};
#define FORECAST_ONE (1u << 20)

/* `target`: in parts of FORECAST_ONE.  0 or -ENOMEM. */
int forecast_init(struct forecast *forecast, uint32_t streams_max, uint32_t target);
void forecast_deinit(struct forecast *forecast);

/* A request has ended, by itself, with so many tokens. */
void forecast_learn(struct forecast *forecast, uint64_t uid, enum request_priority priority,
                    uint32_t tokens);
/* A request has retired.  Was it preempted because blocks ran out? */
void forecast_note(struct forecast *forecast, bool preempted);

/* The tokens that a request will still make that has made `made` of `most`. */
uint32_t forecast_rest(const struct forecast *forecast, uint64_t uid,
                       enum request_priority priority, uint32_t made, uint32_t most);

/* The streams for forecast_most(), one by one; forecast_clear() begins anew. */
void forecast_clear(struct forecast *forecast);
void forecast_add(struct forecast *forecast, const struct forecast_stream *stream);
/*
 * The most blocks that will be in use at once if `in_use` are now, including those that are
 * promised to the streams.  Orders the streams.
 */
uint64_t forecast_most(struct forecast *forecast, uint64_t in_use);

#endif
