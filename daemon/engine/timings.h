/*
 * The times of a request: its members for the END, the histograms and rates of `status`, and its
 * progress for `list`.
 * Engine thread only; now_ns never decreases.
 */
#ifndef DAEMON_ENGINE_TIMINGS_H
#define DAEMON_ENGINE_TIMINGS_H

#include "daemon/core/request.h"
#include "daemon/ipc/stats.h"

/* A step has a row of the request. */
static inline void timings_row(struct stats *stats, struct request *request, uint64_t now_ns)
{
        if (request->first_row_ns)
                return;
        request->first_row_ns = now_ns;
        request_tell_fact(request, REQUEST_FOUND, request->sequence.cached_count);
        request_tell_fact(request, REQUEST_READ, request->sequence.cached_count);
        atomic_store_explicit(&request->has_begun, true, memory_order_relaxed);
        histogram_add(&stats->queue, now_ns - request->accepted_ns);
}

/* A token came.  If none is generated, it only shows that the prompt was read. */
static inline void timings_token(struct stats *stats, struct request *request, uint64_t now_ns)
{
        bool generates = request->max_tokens > 0;

        if (generates) {
                counter_add(&stats->tokens_out, 1);
                rate_add(&stats->tokens_out_rate, now_ns, 1);
                atomic_store_explicit(&request->tokens_made, request_tokens_made(request) + 1,
                                      memory_order_relaxed);
        }
        if (generates && request->first_token_ns)
                histogram_add(&stats->token_gap, now_ns - request->last_token_ns);
        else if (generates)
                histogram_add(&stats->first_token, now_ns - request->accepted_ns);
        if (!request->first_token_ns)
                request->first_token_ns = now_ns;
        request->last_token_ns = now_ns;
}

/* The END is written. */
static inline void timings_end(struct stats *stats, const struct request *request, uint64_t now_ns)
{
        histogram_add(&stats->total, now_ns - request->accepted_ns);
}

#endif
