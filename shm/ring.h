/*
 * Both halves of the token ring (include/samovar/ring.h draws its memory).
 *
 * The writer is the engine thread.  It keeps its own tail and never reads back
 * what it wrote.  From the reader's segment it loads only `head`: once a step, and
 * again if space is short.  It checks the value; an impossible head ends only the
 * streams of that reader.
 *
 * The reader keeps its own head and copies nothing: it may use a record until
 * ring_release().  One thread writes, one reads; they may be two processes.
 *
 * Two pairs of accesses carry the whole protocol:
 *
 *   tail   The writer's release store, after the records, pairs with the reader's
 *          acquire load.  A reader that sees the tail sees the records before it.
 *   head   The reader's release store, after its reads, pairs with the writer's
 *          acquire load.  The writer overwrites only what has been read.
 *
 * A stall works like the doorbell: each side stores, then loads, in one order that
 * both sides agree on.  The writer stores STALLED and loads head again.  The reader
 * stores head and loads the state.  At least one of them sees the other's store.
 */
#ifndef SHM_RING_H
#define SHM_RING_H

#include <stddef.h>
#include <stdint.h>

#include <samovar/ring.h>

/*
 * The size of segment D; segment C is one smv_ring_control.  data_bytes must be a power of two,
 * from 4 KiB to 4 GiB.
 */
size_t ring_segment_bytes(uint64_t data_bytes);

struct ring_writer {
        struct smv_ring *page;
        const struct smv_ring_control *control;
        uint8_t *data;
        uint64_t data_bytes;
        uint64_t tail;      /* the writer's own, including records not yet published */
        uint64_t published; /* the value of page->tail, which is not read back */
        uint64_t head;      /* the newest known; bytes before it may be overwritten */
        uint64_t head_seen; /* the head at the last ring_free_bytes(); `head` may be newer */
};

struct ring_reader {
        struct smv_ring *page; /* the reader loads `state` and `tail`, and writes nothing */
        struct smv_ring_control *control;
        const uint8_t *data;
        uint64_t data_bytes;
        uint64_t head; /* the reader's own; control->head is never beyond it */
        uint64_t tail_seen;
};

enum ring_outcome {
        RING_E_FULL = 1,  /* no free space for this record now */
        RING_E_EMPTY = 2, /* nothing is published beyond the reader's head */
};

/*
 * The caller gives segments D and C, zeroed and aligned to 4096, and keeps owning them.  This fills
 * D's header.
 */
void ring_writer_init(struct ring_writer *writer, void *segment_d,
                      const struct smv_ring_control *segment_c, uint64_t data_bytes);

/* Call it after ring_writer_init().  -EPROTO if D's header is not one that this code knows. */
int ring_reader_init(struct ring_reader *reader, void *segment_d,
                     struct smv_ring_control *segment_c);

/*
 * How many bytes of records fit, whatever their sizes: the free bytes, less the
 * bytes that PADs may waste if each record has at most `record_max` bytes.  Loads
 * head once.  Returns 0 and *ret_bytes, or -EPROTO if the reader's head is
 * impossible.
 */
int ring_free_bytes(struct ring_writer *writer, size_t record_max, uint64_t *ret_bytes);

/* The head that the reader claims, not checked.  Any thread may ask; do not rely on the value. */
uint64_t ring_head(const struct smv_ring_control *control);

/* The bytes that a record with this payload occupies in the ring. */
size_t ring_record_bytes(size_t payload_bytes);

/*
 * Reserves space for one record, and writes its head.  The caller fills *ret_payload,
 * which is aligned to 8.  A record may take at most a quarter of data_bytes.  The
 * record is not visible before ring_publish().  If the last head seen leaves too
 * little space, this loads head again.  RING_E_FULL: still too little; -EPROTO: the
 * head is impossible.  Both leave the ring unchanged.
 */
int ring_put(struct ring_writer *writer, uint8_t type, uint8_t flags, uint32_t stream,
             uint32_t sequence, size_t payload_bytes, void **ret_payload);

/* Publishes all records put so far.  True if there were any. */
int ring_publish(struct ring_writer *writer);

/*
 * The writer's side of a stall: stores STALLED, then loads head once more.  True if
 * the reader has moved since the last ring_free_bytes(): the stall is taken back, so call
 * ring_free_bytes() again.  Otherwise the reader will see the state and tell the writer
 * when it has made space.
 */
int ring_stall(struct ring_writer *writer);
/*
 * The writer's side of a sleep until a client answers: stores ASKING.  It must look for answers
 * once more, behind a full fence.
 */
void ring_ask(struct ring_writer *writer);
void ring_resume(struct ring_writer *writer);

/*
 * The next record, valid until ring_release().  Returns 0, RING_E_EMPTY, or -EPROTO if the sizes in
 * the ring are impossible.
 */
int ring_next(struct ring_reader *reader, const struct smv_record **ret_record);

/* Gives the space of all records taken so far back.  True: the writer has stalled, so tell it. */
int ring_release(struct ring_reader *reader);

/* After an answer, behind a full fence.  True: the writer may sleep until it is told. */
int ring_has_sleeper(const struct ring_reader *reader);

#endif
