/*
 * The memory orders of the words that both sides share:
 *
 *   tail    The writer stores with release, the reader loads with acquire.  This
 *           orders the records.
 *   head    The reader stores with release or more (see state), the writer loads
 *           with acquire.  This orders the reads before the overwriting.
 *   state   It has a meaning only together with head.  In ring_stall() and
 *           ring_release() each side stores its own word and then loads the
 *           other's; all four accesses are sequentially consistent.  So there is
 *           one order of the four.  One of the stores comes first in it, and the
 *           load of the other side comes after that store.  With weaker orders,
 *           both loads could run before both stores: the reader would not tell the
 *           writer, and the writer would wait for the reader.  A release store and a
 *           full fence, as ring.md has it for other clients, do the same.
 *
 * The other accesses are relaxed, because they order nothing.  ring_resume() stores
 * `state` back, and ring_head() only shows a number.
 *
 * Each shared word is loaded once into a local variable before it is checked, so
 * that the value that was checked is the value that is used.
 */
#include "shm/ring.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define DATA_BYTES_MIN 4096u
#define DATA_BYTES_MAX (1ull << 32) /* keeps every size well inside a u32 */

static uint64_t round_up(uint64_t bytes)
{
        return (bytes + SMV_RING_ALIGN - 1) & ~(uint64_t)(SMV_RING_ALIGN - 1);
}

static bool data_bytes_good(uint64_t n)
{
        return n >= DATA_BYTES_MIN && n <= DATA_BYTES_MAX && !(n & (n - 1));
}

size_t ring_segment_bytes(uint64_t data_bytes)
{
        assert(data_bytes_good(data_bytes));
        return SMV_RING_HEADER + (size_t)data_bytes;
}

size_t ring_record_bytes(size_t payload_bytes)
{
        return (size_t)round_up(sizeof(struct smv_record) + payload_bytes);
}

uint64_t ring_head(const struct smv_ring_control *control)
{
        return __atomic_load_n(&control->head, __ATOMIC_RELAXED);
}

/* The writer. */

void ring_writer_init(struct ring_writer *writer, void *segment_d,
                      const struct smv_ring_control *segment_c, uint64_t data_bytes)
{
        struct smv_ring *page = segment_d;

        assert(data_bytes_good(data_bytes));
        assert((uintptr_t)segment_d % 4096 == 0 && (uintptr_t)segment_c % 4096 == 0);

        memcpy(page->magic, SMV_RING_MAGIC, sizeof(page->magic));
        page->major = SMV_RING_MAJOR;
        page->minor = SMV_RING_MINOR;
        page->header_bytes = SMV_RING_HEADER;
        page->data_offset = SMV_RING_HEADER;
        page->record_align = SMV_RING_ALIGN;
        page->data_bytes = data_bytes;
        *writer = (struct ring_writer){
                .page = page,
                .control = segment_c,
                .data = (uint8_t *)segment_d + SMV_RING_HEADER,
                .data_bytes = data_bytes,
        };
}

/* A reader cannot have read more than was published, and its head never moves back. */
static int load_head(struct ring_writer *writer)
{
        uint64_t head = __atomic_load_n(&writer->control->head, __ATOMIC_ACQUIRE);

        if (head < writer->head || head > writer->published || head % SMV_RING_ALIGN)
                return -EPROTO;
        writer->head = head;
        return 0;
}

static uint64_t free_bytes(const struct ring_writer *writer)
{
        return writer->data_bytes - (writer->tail - writer->head);
}

static uint64_t bytes_to_end(const struct ring_writer *writer)
{
        return writer->data_bytes - (writer->tail & (writer->data_bytes - 1));
}

/*
 * The free bytes are at most the whole ring, so the end of the buffer is among them
 * at most once.  Only the record that meets the end leaves a PAD, and the PAD is
 * smaller than that record.
 */
int ring_free_bytes(struct ring_writer *writer, size_t record_max, uint64_t *ret_bytes)
{
        uint64_t to_end = bytes_to_end(writer), usable, waste;
        int r = load_head(writer);

        if (r)
                return r;
        writer->head_seen = writer->head;

        usable = free_bytes(writer);
        if (usable > to_end && record_max > SMV_RING_ALIGN) {
                waste = round_up(record_max) - SMV_RING_ALIGN;
                usable -= waste < to_end ? waste : to_end;
        }
        *ret_bytes = usable;
        return 0;
}

/* Eight bytes are too few for a record's head; the reader takes them as a PAD. */
static void put_pad(struct ring_writer *writer, uint64_t bytes)
{
        const struct smv_record pad = {
                .size = (uint32_t)bytes,
                .type = SMV_RECORD_PAD,
                .head_bytes = sizeof(pad),
        };

        memcpy(writer->data + (writer->tail & (writer->data_bytes - 1)), &pad,
               bytes < sizeof(pad) ? bytes : sizeof(pad));
        writer->tail += bytes;
}

/*
 * Loading head again must not change head_seen: ring_stall() has to know whether the
 * reader has moved since ring_free_bytes() found too little space.
 */
int ring_put(struct ring_writer *writer, uint8_t type, uint8_t flags, uint32_t stream,
             uint32_t sequence, size_t payload_bytes, void **ret_payload)
{
        uint64_t bytes, pad;
        uint8_t *at;

        assert(type != SMV_RECORD_PAD);
        assert(payload_bytes <= writer->data_bytes / 4 - sizeof(struct smv_record));

        bytes = ring_record_bytes(payload_bytes);
        pad = bytes_to_end(writer) < bytes ? bytes_to_end(writer) : 0;
        if (free_bytes(writer) < pad + bytes) {
                int r = load_head(writer);

                if (r)
                        return r;
                if (free_bytes(writer) < pad + bytes)
                        return RING_E_FULL;
        }

        if (pad)
                put_pad(writer, pad);
        at = writer->data + (writer->tail & (writer->data_bytes - 1));
        memset(at + bytes - SMV_RING_ALIGN, 0, SMV_RING_ALIGN); /* zero the padding */
        *(struct smv_record *)at = (struct smv_record){
                .size = (uint32_t)(sizeof(struct smv_record) + payload_bytes),
                .stream = stream,
                .type = type,
                .flags = flags,
                .head_bytes = sizeof(struct smv_record),
                .sequence = sequence,
        };
        writer->tail += bytes;
        *ret_payload = at + sizeof(struct smv_record);
        return 0;
}

int ring_publish(struct ring_writer *writer)
{
        if (writer->published == writer->tail)
                return false;
        writer->published = writer->tail;
        /* release: a reader that sees this tail sees the records before it */
        __atomic_store_n(&writer->page->tail, writer->tail, __ATOMIC_RELEASE);
        return true;
}

void ring_ask(struct ring_writer *writer)
{
        /* The caller looks for answers behind a full fence. */
        __atomic_store_n(&writer->page->state, SMV_RING_ASKING, __ATOMIC_SEQ_CST);
}

int ring_stall(struct ring_writer *writer)
{
        /* Store the state, then load head.  ring_release() is the counterpart. */
        __atomic_store_n(&writer->page->state, SMV_RING_STALLED, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&writer->control->head, __ATOMIC_SEQ_CST) == writer->head_seen)
                return false;
        ring_resume(writer);
        return true;
}

void ring_resume(struct ring_writer *writer)
{
        /* relaxed: a reader that still sees STALLED tells the writer once too often; no harm */
        __atomic_store_n(&writer->page->state, SMV_RING_RUN, __ATOMIC_RELAXED);
}

/* The reader. */

int ring_reader_init(struct ring_reader *reader, void *segment_d,
                     struct smv_ring_control *segment_c)
{
        struct smv_ring *page = segment_d;
        uint64_t data_bytes = __atomic_load_n(&page->data_bytes, __ATOMIC_RELAXED);

        if (memcmp(page->magic, SMV_RING_MAGIC, sizeof(page->magic)) ||
            page->major != SMV_RING_MAJOR || page->header_bytes != SMV_RING_HEADER ||
            page->data_offset != SMV_RING_HEADER || page->record_align != SMV_RING_ALIGN ||
            page->features || !data_bytes_good(data_bytes))
                return -EPROTO;

        *reader = (struct ring_reader){
                .page = page,
                .control = segment_c,
                .data = (const uint8_t *)segment_d + SMV_RING_HEADER,
                .data_bytes = data_bytes,
        };
        return 0;
}

static int load_tail(struct ring_reader *reader)
{
        /* acquire: makes the records before this tail readable */
        uint64_t tail = __atomic_load_n(&reader->page->tail, __ATOMIC_ACQUIRE);

        if (tail < reader->tail_seen || tail - reader->head > reader->data_bytes ||
            tail % SMV_RING_ALIGN)
                return -EPROTO;
        reader->tail_seen = tail;
        return tail == reader->head ? RING_E_EMPTY : 0;
}

/*
 * The bytes from the reader's head to the next record.  -EPROTO if no correct writer could have
 * written this record.
 */
static int measure(const struct ring_reader *reader, const struct smv_record *record,
                   uint64_t *ret_bytes, bool *ret_pad)
{
        uint64_t to_end = reader->data_bytes - (reader->head & (reader->data_bytes - 1));
        uint64_t left = reader->tail_seen - reader->head;
        uint64_t size = __atomic_load_n(&record->size, __ATOMIC_RELAXED);
        uint64_t bytes = round_up(size);

        if (to_end < sizeof(*record) || record->type == SMV_RECORD_PAD) {
                if (size != to_end || size > left)
                        return -EPROTO;
                *ret_pad = true;
        } else {
                if (size < sizeof(*record) || bytes > reader->data_bytes / 4 || bytes > to_end ||
                    bytes > left || record->head_bytes < sizeof(*record) ||
                    record->head_bytes > size)
                        return -EPROTO;
                *ret_pad = false;
        }
        *ret_bytes = bytes;
        return 0;
}

int ring_next(struct ring_reader *reader, const struct smv_record **ret_record)
{
        for (;;) {
                const struct smv_record *record;
                uint64_t bytes;
                bool pad;
                int r;

                if (reader->head == reader->tail_seen) {
                        r = load_tail(reader);
                        if (r)
                                return r;
                }
                record = (const struct smv_record *)(reader->data +
                                                     (reader->head & (reader->data_bytes - 1)));
                r = measure(reader, record, &bytes, &pad);
                if (r)
                        return r;
                reader->head += bytes;
                if (!pad) {
                        *ret_record = record;
                        return 0;
                }
        }
}

int ring_release(struct ring_reader *reader)
{
        /* Store head (includes release), then load the state.  ring_stall() is the counterpart. */
        __atomic_store_n(&reader->control->head, reader->head, __ATOMIC_SEQ_CST);
        return __atomic_load_n(&reader->page->state, __ATOMIC_SEQ_CST) == SMV_RING_STALLED;
}

int ring_has_sleeper(const struct ring_reader *reader)
{
        return __atomic_load_n(&reader->page->state, __ATOMIC_SEQ_CST) != SMV_RING_RUN;
}
