/*
 * The counters of the bridge, for /metrics.  The names are vLLM's under our prefix; metrics.c has
 * the table.  Counters of the daemon are asked for when /metrics is read.  Loop thread only.
 */
#ifndef BRIDGE_CORE_METRICS_H
#define BRIDGE_CORE_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "bridge/core/metrics-gen-ai.h"
#include "json/bytes.h"

struct metrics;
struct json_document;
struct smv_event;

/* otel: OpenTelemetry's names too (metrics-gen-ai.h). */
int metrics_new(bool otel, struct metrics **ret_metrics);
struct metrics *metrics_free(struct metrics *metrics); /* takes NULL */

/*
 * A call is over.  `route` is the pattern of its route, which lives as long as the metrics; NULL:
 * there was none.  status 0: the client left before the answer.
 */
void metrics_call(struct metrics *metrics, const char *route, const char *method, unsigned status,
                  uint64_t took_ns);
/*
 * One of `choices` choices of a request has ended.  `reason` is a word of OpenAI's finish_reason.
 * `first`: it is the first choice, which counts the prompt of all.
 */
void metrics_end(struct metrics *metrics, const char *reason, const struct smv_event *end,
                 bool first, uint32_t choices);
/* A request for tokens has ended, with all its choices or with a failure. */
void metrics_request(struct metrics *metrics, const struct gen_ai_request *request);
/* How the answer of a stored response began. */
enum history_way {
        HISTORY_CONTINUED, /* on the handle of the response before */
        HISTORY_RENDERED,  /* on a new handle */
        HISTORY_NONE,      /* without a handle */
        HISTORY_WAYS,
};
void metrics_history(struct metrics *metrics, enum history_way way);
/* A client was cut because it read too slowly. */
void metrics_slow_client(struct metrics *metrics);

/* The whole text.  status: the daemon's, or NULL if it is away.  0 or -ENOMEM. */
int metrics_write(const struct metrics *metrics, uint32_t calls, const struct json_document *status,
                  struct bytes *to);

#endif
