/*
 * Both halves of the token ring (include/samovar/ring.h draws its memory).
 *
 * The writer is the engine thread.  It keeps its own tail and never reads back
 * what it wrote; of the reader's segment it loads `head` once a step, bounds it
 * against what it knows, and an impossible one is the end of that reader only.
 * The reader keeps its own head and copies nothing: a record is lent to it until
 * ring_release().  One thread writes, one reads; they may be two processes.
 *
 * Two pairs of accesses carry the whole protocol:
 *
 *   tail   the writer's release store, after the records, is met by the reader's
 *          acquire load: who sees the tail sees the bytes.
 *   head   the reader's release store, after its reads, is met by the writer's
 *          acquire load: what is overwritten has been read.
 *
 * A stall is agreed on as sleepers are woken (store, then look again, in one
 * order for both sides): the writer stores STALLED and re-reads head; the reader
 * stores head and reads the state.  At least one of them sees the other.
 */
#ifndef SHM_RING_H
#define SHM_RING_H

#include <stddef.h>
#include <stdint.h>

#include <samovar/ring.h>

/* The size of segment D; segment C is one smv_ring_control.  data_bytes: 2^k, 4 KiB or more. */
size_t ring_segment_bytes(uint64_t data_bytes);

struct ring_writer {
        struct smv_ring *page;
        const struct smv_ring_control *control;
        uint8_t *data;
        uint64_t data_bytes;
        uint64_t tail;      /* ours, with what is not published yet */
        uint64_t published; /* page->tail, which is not read back */
        uint64_t head;      /* the newest we know: what is before it may be overwritten */
        uint64_t head_seen; /* what ring_room() saw last; `head` may be newer */
};

struct ring_reader {
        struct smv_ring *page; /* only `state` and `tail` are read, nothing is written */
        struct smv_ring_control *control;
        const uint8_t *data;
        uint64_t data_bytes;
        uint64_t head; /* ours; control->head is at or behind it */
        uint64_t tail_seen;
};

enum ring_outcome {
        RING_E_FULL = 1,  /* no room for this record now */
        RING_E_EMPTY = 2, /* nothing published beyond our head */
};

/* Segment D and segment C, zeroed, aligned to 4096, not owned.  The writer fills D's header. */
void ring_writer_init(struct ring_writer *writer, void *segment_d,
                      const struct smv_ring_control *segment_c, uint64_t data_bytes);

/* After the writer's.  -EPROTO if D's header is not one we know. */
int ring_reader_init(struct ring_reader *reader, void *segment_d,
                     struct smv_ring_control *segment_c);

/*
 * How many bytes of records fit, whatever their sizes: the free bytes less what
 * PADs may waste on records of at most `record_max` bytes.  Loads head, once.
 * Returns 0 and *ret_bytes, or -EPROTO when the reader's head is impossible.
 */
int ring_room(struct ring_writer *writer, size_t record_max, uint64_t *ret_bytes);

/* What the reader says it has read, for anybody; nothing may rest on it. */
uint64_t ring_head(const struct smv_ring_control *control);

/* What a record of this payload takes in the ring. */
size_t ring_record_bytes(size_t payload_bytes);

/*
 * Space for one record: its head is written, *ret_payload is the caller's to
 * fill, aligned to 8; a quarter of data_bytes is the most a record may take.
 * Not visible before ring_publish().  RING_E_FULL leaves nothing behind, nor does
 * -EPROTO: head is looked at again where the last one seen leaves no room.
 */
int ring_put(struct ring_writer *writer, uint8_t type, uint8_t flags, uint32_t stream,
             uint32_t sequence, size_t payload_bytes, void **ret_payload);

/* Shows everything put so far; true if that was anything. */
int ring_publish(struct ring_writer *writer);

/*
 * The writer's side of a stall: declares it, then looks once more.  True if the
 * reader had moved since the last ring_room() (the stall is taken back: ask for
 * the room again), else the reader will find the state and say so.
 */
int ring_stall(struct ring_writer *writer);
void ring_resume(struct ring_writer *writer);

/* The next record, lent until ring_release(); RING_E_EMPTY, or -EPROTO if the bytes lie. */
int ring_next(struct ring_reader *reader, const struct smv_record **ret_record);

/* Gives everything taken so far back.  True if the writer had stalled: tell it. */
int ring_release(struct ring_reader *reader);

#endif
