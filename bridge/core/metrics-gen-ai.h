/*
 * Metrics under the names of OpenTelemetry's conventions for generative AI, besides our own: the
 * setting otel.  Attributes are labels, with _ for the dots.  Loop thread only.
 *
 * The bridge is the server of its clients (gen_ai_server_...), and a client of the daemon
 * (gen_ai_client_...).
 */
#ifndef BRIDGE_CORE_METRICS_GEN_AI_H
#define BRIDGE_CORE_METRICS_GEN_AI_H

#include <stdint.h>

#include "bridge/core/metrics-text.h"

struct gen_ai;

/* A request for tokens that has ended. */
struct gen_ai_request {
        const char *operation;  /* gen_ai.operation.name; lives as long as the metrics */
        const char *model;      /* the daemon's name for it */
        unsigned status;        /* error.type: the status of its failure; 0: it succeeded */
        uint64_t took_ns;       /* from the client's request to the end of the answer */
        uint64_t asked_ns;      /* from the question to the daemon to the end */
        uint64_t first_ns;      /* from the client's request to the first piece; 0: none came */
        uint64_t decode_ns;     /* from the first to the last token of the first choice */
        uint32_t decoded;       /* tokens of that choice behind its first one */
        uint64_t input, output; /* tokens */
};

struct gen_ai *gen_ai_new(void);                    /* NULL: out of memory */
struct gen_ai *gen_ai_free(struct gen_ai *metrics); /* takes NULL */
void gen_ai_note(struct gen_ai *metrics, const struct gen_ai_request *request);
void gen_ai_write(const struct gen_ai *metrics, struct bytes *to, int *result);

#endif
