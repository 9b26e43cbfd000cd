/*
 * Slots: where this client answers the questions of its streams, and sees whole rows.
 *
 * They are two segments beside the ring (include/samovar/ring.h).  The first is written by this
 * client; the second by the daemon, which may overwrite a row when its question is over.
 */
#ifndef CLIENT_SLOTS_H
#define CLIENT_SLOTS_H

#include <stddef.h>
#include <stdint.h>

#include <samovar/ring.h>

#include "client/shared-segment.h"

struct slots {
        uint32_t vocab;
        uint32_t count; /* 0: this connection has none */
        void *answers;
        uint32_t row_count; /* slots with a whole row: all or none */
        void *rows;
};

/* `rows` may be NULL.  0; or a negative errno and *ret_why, as for shared_ring_open(). */
int slots_open(struct slots *slots, const struct shared_segment *answers,
               const struct shared_segment *rows, uint32_t vocab, const char **ret_why);
void slots_close(struct slots *slots);

/* The numbers of a mask. */
static inline size_t slots_mask_count(const struct slots *slots)
{
        return ((size_t)slots->vocab + 31) / 32;
}

/* Writes an answer to the question `of` (SMV_OF()).  mask NULL: all tokens. */
void slots_answer_mask(struct slots *slots, uint32_t slot, uint64_t of, const uint32_t *mask);
void slots_answer_token(struct slots *slots, uint32_t slot, uint64_t of, uint32_t token);

/* The logits of the row `of`; NULL: there is no such row, or it is gone. */
const float *slots_row(const struct slots *slots, uint32_t slot, uint64_t of);

#endif
