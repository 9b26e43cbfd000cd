/*
 * A reel: the records of one stream, in order, to be read from any of them.
 *
 * It is as large as the longest stream that was let in can become, taken at once: so there is
 * always room for the next record, and pages that are never written cost nothing.  A record is
 * found by its number in a bounded walk, however many there are.  It does not change; who sends
 * one sets the stream in his copy.
 */
#ifndef DAEMON_EDGE_REEL_H
#define DAEMON_EDGE_REEL_H

#include <stddef.h>
#include <stdint.h>

#include <samovar/ring.h>

struct reel {
        uint8_t *bytes;
        size_t used, room;
        uint32_t count, most; /* records: the next one has the number `count` */
        size_t *marks;        /* where every REEL_STRIDE-th of them begins */
};

#define REEL_STRIDE 256u

/* What one of so many records and bytes takes, for who charges it; -EOVERFLOW: no number says it. */
int reel_bytes(size_t room, uint32_t most, size_t *ret_bytes);

/* 0 or -ENOMEM. */
int reel_init(struct reel *reel, size_t room, uint32_t most);
void reel_deinit(struct reel *reel);

/* A copy of the record that comes next; there is room for it. */
void reel_add(struct reel *reel, const struct smv_record *record);

/* No more will come: what is left of the room is given back.  What it takes from now on. */
size_t reel_seal(struct reel *reel);

/* Where that record begins, or will: `sequence` is at most `count`. */
size_t reel_find(const struct reel *reel, uint32_t sequence);

/* What a record takes here: its size, and what makes it a multiple of 8, which is zero. */
static inline size_t reel_step(const struct smv_record *record)
{
        return (record->size + (size_t)SMV_RING_ALIGN - 1) & ~((size_t)SMV_RING_ALIGN - 1);
}

static inline const struct smv_record *reel_at(const struct reel *reel, size_t at)
{
        return (const struct smv_record *)(const void *)(reel->bytes + at);
}

#endif
