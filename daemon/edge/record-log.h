/*
 * A record log: the log of the records of one stream, in order; readers can start at any record.
 *
 * It is allocated at once, as large as the stream can become.  So there is always room for the next
 * record, and pages that are never written cost nothing.  A record is found by its number in a
 * bounded walk, whatever their count.  Records do not change; a sender sets the stream number in
 * its copy.
 */
#ifndef DAEMON_EDGE_RECORD_LOG_H
#define DAEMON_EDGE_RECORD_LOG_H

#include <stddef.h>
#include <stdint.h>

#include <samovar/ring.h>

struct record_log {
        uint8_t *bytes;
        size_t used, room;
        uint32_t count, most; /* records; the next one has the number `count` */
        size_t *marks;        /* the offset of every RECORD_LOG_STRIDE-th record */
};

#define RECORD_LOG_STRIDE 256u

/* 0 or -ENOMEM. */
int record_log_init(struct record_log *log, size_t room, uint32_t most);
void record_log_deinit(struct record_log *log);

/* Appends a copy of the next record; there is room for it. */
void record_log_add(struct record_log *log, const struct smv_record *record);

/* No more records will come: frees the unused room. */
void record_log_seal(struct record_log *log);

/* The bytes that its records have taken so far, for the charge. */
size_t record_log_used(const struct record_log *log);

/* The offset of that record, or of the next one to come: `sequence` is at most `count`. */
size_t record_log_find(const struct record_log *log, uint32_t sequence);

/* The bytes of a record in the log: its size, padded with zeros to a multiple of 8. */
static inline size_t record_log_step(const struct smv_record *record)
{
        return (record->size + (size_t)SMV_RING_ALIGN - 1) & ~((size_t)SMV_RING_ALIGN - 1);
}

static inline const struct smv_record *record_log_at(const struct record_log *log, size_t at)
{
        return (const struct smv_record *)(const void *)(log->bytes + at);
}

#endif
