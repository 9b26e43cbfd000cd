/*
 * The counters of the bridge, for /metrics.  Many names are vLLM's under our prefix.  Counters of
 * the daemon are asked for when /metrics is read (metrics-daemon.h).  Loop thread only.
 */
#ifndef BRIDGE_CORE_METRICS_H
#define BRIDGE_CORE_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "bridge/core/metrics-gen-ai.h"
#include "bridge/http/conf.h"
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
 * One of `choices` choices of a request has ended; each could have `max_tokens` tokens.  `reason`
 * is a word of OpenAI's finish_reason.  `first`: it is the first choice, which counts the prompt of
 * all.
 */
void metrics_end(struct metrics *metrics, const char *reason, const struct smv_event *end,
                 bool first, uint32_t choices, uint32_t max_tokens);
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
/*
 * Why a prompt was not cached as far as it could be.  Which part has changed is known only for
 * requests that ask for it (cache-miss.h).
 */
enum miss_reason {
        MISS_NOTHING_CACHED, /* but, perhaps, a first token that all prompts have */
        MISS_PREFIX,         /* the beginning is cached, with another continuation */
        MISS_TOOLS,
        MISS_SYSTEM,
        MISS_MESSAGES,
        MISS_UNKNOWN, /* the part was not found */
        MISS_REASONS,
};
void metrics_miss(struct metrics *metrics, enum miss_reason reason);
/* "nothing_cached" */
const char *metrics_miss_word(enum miss_reason reason);
/* The tokens of all prompts and answers so far. */
void metrics_tokens(const struct metrics *metrics, uint64_t *ret_prompts, uint64_t *ret_answers);
/* A client was cut because it read too slowly. */
void metrics_slow_client(struct metrics *metrics);
/* A client left before the end of its answer. */
void metrics_client_left(struct metrics *metrics);

/* What others know at the moment. */
struct metrics_now {
        uint32_t calls; /* that are being answered */
        struct http_counts http;
        const struct json_document *status; /* the daemon's; NULL: it is away */
        bool shows_users;                   /* the reader may see what each user does */
};

/* The whole text.  0 or -ENOMEM. */
int metrics_write(const struct metrics *metrics, const struct metrics_now *now, struct bytes *to);

#endif
