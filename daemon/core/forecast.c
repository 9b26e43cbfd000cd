#include "daemon/core/forecast.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/core/kvpool.h"

#define COUNT_MAX 512u /* then all counts are halved: what was long ago counts less */
/* A request that was preempted takes away this part of the doubt that is left. */
#define DOUBT_PARTS 8u
#define TRUST_LEAST (FORECAST_ONE / 4)
#define TRUST_MOST  (FORECAST_ONE / 64 * 63)
#define TRUST_FIRST (FORECAST_ONE / 4 * 3)

int forecast_init(struct forecast *forecast, uint32_t streams_max, uint32_t target)
{
        assert(target < FORECAST_ONE);
        *forecast = (struct forecast){
                .users = calloc(FORECAST_USERS, sizeof(*forecast->users)),
                .streams = calloc(streams_max, sizeof(*forecast->streams)),
                .stream_max = streams_max,
                .trust = TRUST_FIRST,
                .target = target,
        };
        return forecast->users && forecast->streams ? 0 : -ENOMEM;
}

void forecast_deinit(struct forecast *forecast)
{
        free(forecast->users);
        free(forecast->streams);
        forecast->users = NULL;
        forecast->streams = NULL;
}

/* ---- lengths ---- */

static uint32_t bucket_of(uint32_t tokens)
{
        uint32_t doublings = 0, bucket;

        if (tokens < 4)
                return tokens;
        while (tokens >> doublings >= 8)
                doublings++;
        bucket = 4 * (doublings + 1) + (tokens >> doublings) - 4;
        return bucket < FORECAST_BUCKETS ? bucket : FORECAST_BUCKETS - 1;
}

/* The largest length in the bucket. */
static uint32_t bucket_end(uint32_t bucket)
{
        uint32_t doublings = bucket / 4 ? bucket / 4 - 1 : 0;

        if (bucket < 4)
                return bucket;
        return ((4 + bucket % 4 + 1) << doublings) - 1;
}

static void count_length(struct forecast_lengths *lengths, uint32_t tokens)
{
        lengths->buckets[bucket_of(tokens)]++;
        if (++lengths->count < COUNT_MAX)
                return;
        lengths->count = 0;
        for (uint32_t i = 0; i < FORECAST_BUCKETS; i++)
                lengths->count += lengths->buckets[i] /= 2;
}

static struct forecast_user *find_user(const struct forecast *forecast, uint64_t uid)
{
        for (uint32_t i = 0; i < FORECAST_USERS; i++)
                if (forecast->users[i].used && forecast->users[i].uid == uid)
                        return &forecast->users[i];
        return NULL;
}

static struct forecast_user *add_user(struct forecast *forecast, uint64_t uid)
{
        struct forecast_user *oldest = forecast->users;

        for (uint32_t i = 1; i < FORECAST_USERS; i++)
                if (forecast->users[i].used < oldest->used)
                        oldest = &forecast->users[i];
        *oldest = (struct forecast_user){ .uid = uid };
        return oldest;
}

void forecast_learn(struct forecast *forecast, uint64_t uid, enum request_priority priority,
                    uint32_t tokens)
{
        struct forecast_user *user = find_user(forecast, uid);

        if (!user)
                user = add_user(forecast, uid);
        user->used = ++forecast->uses;
        count_length(&user->lengths[priority], tokens);
        count_length(&forecast->all[priority], tokens);
}

void forecast_note(struct forecast *forecast, bool preempted)
{
        uint32_t doubt = FORECAST_ONE - forecast->trust, step = doubt / DOUBT_PARTS;
        uint32_t back =
                (uint32_t)((uint64_t)step * forecast->target / (FORECAST_ONE - forecast->target));

        forecast->trust = preempted ? forecast->trust + step : forecast->trust - back;
        if (forecast->trust > TRUST_MOST)
                forecast->trust = TRUST_MOST;
        if (forecast->trust < TRUST_LEAST)
                forecast->trust = TRUST_LEAST;
}

static const struct forecast_lengths *lengths_of(const struct forecast *forecast, uint64_t uid,
                                                 enum request_priority priority)
{
        const struct forecast_user *user = find_user(forecast, uid);

        if (user && user->lengths[priority].count >= FORECAST_ENOUGH)
                return &user->lengths[priority];
        return forecast->all[priority].count >= FORECAST_ENOUGH ? &forecast->all[priority] : NULL;
}

/* An answer that is longer than all others may be half-way. */
static uint32_t length_after(const struct forecast *forecast,
                             const struct forecast_lengths *lengths, uint32_t made)
{
        uint32_t first = bucket_of(made + 1), longer = 0, before = 0;
        uint64_t wanted;

        for (uint32_t i = first; i < FORECAST_BUCKETS; i++)
                longer += lengths->buckets[i];
        if (!longer)
                return 2 * made + 1;
        wanted = ((uint64_t)longer * forecast->trust + FORECAST_ONE - 1) / FORECAST_ONE;
        for (uint32_t i = first; i < FORECAST_BUCKETS; i++) {
                before += lengths->buckets[i];
                if (before >= wanted)
                        return bucket_end(i);
        }
        return bucket_end(FORECAST_BUCKETS - 1);
}

uint32_t forecast_rest(const struct forecast *forecast, uint64_t uid,
                       enum request_priority priority, uint32_t made, uint32_t most)
{
        const struct forecast_lengths *lengths = lengths_of(forecast, uid, priority);
        uint32_t length = made < FORECAST_GUESS ? FORECAST_GUESS : 2 * made;

        assert(made <= most);
        if (lengths)
                length = length_after(forecast, lengths, made);
        return (length < most ? length : most) - made;
}

/* ---- blocks ---- */

void forecast_clear(struct forecast *forecast)
{
        forecast->stream_count = 0;
}

void forecast_add(struct forecast *forecast, const struct forecast_stream *stream)
{
        assert(forecast->stream_count < forecast->stream_max && stream->spare <= FORECAST_SPARE);
        forecast->streams[forecast->stream_count++] = *stream;
}

/* The shortest rest first.  A shell sort, because the library's may allocate. */
static void order_streams(struct forecast *forecast)
{
        struct forecast_stream *at = forecast->streams;

        for (uint32_t gap = forecast->stream_count / 2; gap; gap /= 2) {
                for (uint32_t i = gap; i < forecast->stream_count; i++) {
                        struct forecast_stream moved = at[i];
                        uint32_t to = i;

                        for (; to >= gap && at[to - gap].rest > moved.rest; to -= gap)
                                at[to] = at[to - gap];
                        at[to] = moved;
                }
        }
}

/*
 * The blocks that streams take beyond those that they have until each has made `rest`.  There are
 * many streams, and few values of `spare`.
 */
static uint64_t growth(const uint32_t *by_spare, uint32_t rest)
{
        uint64_t blocks = 0;

        for (uint32_t spare = 0; spare <= FORECAST_SPARE && spare < rest; spare++)
                blocks += (uint64_t)by_spare[spare] * blocks_for(rest - spare);
        return blocks;
}

uint64_t forecast_most(struct forecast *forecast, uint64_t in_use)
{
        uint32_t by_spare[FORECAST_SPARE + 1] = { 0 }; /* streams that have not ended */
        uint64_t most = in_use;

        order_streams(forecast);
        for (uint32_t i = 0; i < forecast->stream_count; i++)
                by_spare[forecast->streams[i].spare]++;
        for (uint32_t i = 0; i < forecast->stream_count; i++) {
                const struct forecast_stream *stream = &forecast->streams[i];
                uint64_t then = in_use + growth(by_spare, stream->rest);

                most = then > most ? then : most;
                /* It has ended: its growth is no longer counted, and its own blocks are free. */
                in_use = in_use > stream->own ? in_use - stream->own : 0;
                by_spare[stream->spare]--;
        }
        return most;
}
