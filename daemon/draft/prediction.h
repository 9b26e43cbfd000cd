/*
 * A prediction: the tokens of an answer that a client expects.  A request and its siblings share
 * one, so it counts references; only the loop changes the count.  The tokens do not change.  The
 * loop indexes the first PREDICTION_INDEXED of them, in a millisecond; the engine indexes the rest,
 * while it uses the prediction.
 */
#ifndef DAEMON_DRAFT_PREDICTION_H
#define DAEMON_DRAFT_PREDICTION_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/draft/places.h"

#define PREDICTION_INDEXED 65536u

struct prediction {
        uint32_t references;
        uint32_t count;
        struct places *places; /* from position 0 on */
};

/* Copies at least one token; one reference is the caller's.  0 or -ENOMEM. */
int prediction_new(const uint32_t *tokens, uint32_t count, struct prediction **ret_prediction);
struct prediction *prediction_ref(struct prediction *prediction);   /* takes NULL */
struct prediction *prediction_unref(struct prediction *prediction); /* takes NULL */
size_t prediction_bytes(const struct prediction *prediction);       /* NULL: 0 */

#endif
