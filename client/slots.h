/*
 * Slots: where this client answers the questions of its streams, and sees whole rows.
 *
 * They are two segments beside the ring (include/samovar/ring.h).  The first is written by this
 * client; the second by the daemon, which may overwrite a row when its question is over.
 */
#ifndef CLIENT_SLOTS_H
#define CLIENT_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <samovar/protocol.h>
#include <samovar/ring.h>

#include "client/shared-segment.h"

struct slots {
        uint32_t vocab;
        uint32_t count; /* 0: this connection has none */
        void *answers;
        void *rows; /* NULL: they show no whole rows */
        /* Of the newest stream of each: an answer for an older one must not be written. */
        uint32_t tickets[SMV_ASK_SLOTS_MAX];
};

/* `rows` may be NULL.  0; or a negative errno and *ret_why, as for shared_ring_open(). */
int slots_open(struct slots *slots, uint32_t count, const struct shared_segment *answers,
               const struct shared_segment *rows, uint32_t vocab, const char **ret_why);
void slots_close(struct slots *slots);

/* The numbers of a mask. */
static inline size_t slots_mask_count(const struct slots *slots)
{
        return ((size_t)slots->vocab + 31) / 32;
}

/* A stream has begun that has this slot.  False: there is no such slot. */
bool slots_give(struct slots *slots, uint32_t slot, uint32_t ticket);
/* Whether the slot is still that of the stream with this ticket. */
bool slots_has(const struct slots *slots, uint32_t slot, uint32_t ticket);

/* Writes an answer for a stream that has the slot.  mask NULL: all tokens. */
void slots_answer_mask(struct slots *slots, uint32_t slot, uint32_t position, const uint32_t *mask);
void slots_answer_token(struct slots *slots, uint32_t slot, uint32_t position, uint32_t token);

/* The logits of the row at this position; NULL: there is no such row, or it is gone. */
const float *slots_row(const struct slots *slots, uint32_t slot, uint32_t ticket,
                       uint32_t position);

#endif
