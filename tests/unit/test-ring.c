#include "shm/ring.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SMALL 4096u
#define LARGE 65536u

struct memory {
        uint8_t *bytes; /* segment D, then segment C */
        struct smv_ring *page;
        struct smv_ring_control *control;
        struct ring_writer writer;
        struct ring_reader reader;
};

static void open_ring(struct memory *m, uint64_t data_bytes)
{
        size_t bytes = ring_segment_bytes(data_bytes) + sizeof(struct smv_ring_control);

        m->bytes = aligned_alloc(4096, bytes);
        assert_non_null(m->bytes);
        memset(m->bytes, 0, bytes);
        m->page = (struct smv_ring *)m->bytes;
        m->control = (struct smv_ring_control *)(m->bytes + ring_segment_bytes(data_bytes));
        ring_writer_init(&m->writer, m->page, m->control, data_bytes);
        assert_int_equal(ring_reader_init(&m->reader, m->page, m->control), 0);
}

static void close_ring(struct memory *m)
{
        free(m->bytes);
}

static uint32_t next_random(uint64_t *state)
{
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(*state >> 33);
}

/* The value of byte `i` of record `number`. */
static uint8_t byte_of(uint32_t number, size_t i)
{
        return (uint8_t)(number * 131u + i * 7u + (number >> 8));
}

static int put_number(struct ring_writer *writer, uint32_t number, size_t payload)
{
        void *room;
        int r = ring_put(writer, SMV_RECORD_TOKENS, number % 3, number % 7, number, payload, &room);

        if (r)
                return r;
        assert_int_equal((uintptr_t)room % 8, 0);
        for (size_t i = 0; i < payload; i++)
                ((uint8_t *)room)[i] = byte_of(number, i);
        return 0;
}

/* True if the record is the one that put_number() wrote. */
static bool is_number(const struct smv_record *record, uint32_t number, size_t payload)
{
        const uint8_t *bytes = (const uint8_t *)record + record->head_bytes;

        if (record->size != sizeof(*record) + payload || record->head_bytes != sizeof(*record) ||
            record->type != SMV_RECORD_TOKENS || record->flags != number % 3 ||
            record->stream != number % 7 || record->sequence != number)
                return false;
        for (size_t i = 0; i < payload; i++)
                if (bytes[i] != byte_of(number, i))
                        return false;
        return true;
}

static void expect_number(struct ring_reader *reader, uint32_t number, size_t payload)
{
        const struct smv_record *record;

        assert_int_equal(ring_next(reader, &record), 0);
        assert_true(is_number(record, number, payload));
}

static void expect_empty(struct ring_reader *reader)
{
        const struct smv_record *record;

        assert_int_equal(ring_next(reader, &record), RING_E_EMPTY);
}

/*
 * Moves both sides of an empty ring to this offset, by whole records.  No record
 * ends at 8, being 16 bytes at least, so no writer is ever there.
 */
static void walk_to(struct memory *m, uint64_t offset)
{
        uint64_t now;

        assert_int_not_equal(offset, 8);
        while ((now = m->writer.tail & (m->writer.data_bytes - 1)) != offset) {
                uint64_t step = (now < offset ? offset : m->writer.data_bytes) - now;

                if (step > 512)
                        step = step - 512 < 16 ? 496 : 512;
                /* too far or behind a PAD: once more around */
                if (step < 16)
                        step = 24;
                assert_int_equal(put_number(&m->writer, 1, (size_t)step - 16), 0);
                ring_publish(&m->writer);
                expect_number(&m->reader, 1, (size_t)step - 16);
                ring_release(&m->reader);
        }
}

static void a_record_is_invisible_before_it_is_published(void **state)
{
        struct memory m;

        (void)state;
        open_ring(&m, SMALL);
        expect_empty(&m.reader);
        assert_false(ring_publish(&m.writer));
        assert_int_equal(put_number(&m.writer, 1, 5), 0);
        assert_int_equal(put_number(&m.writer, 2, 0), 0);
        expect_empty(&m.reader);
        assert_true(ring_publish(&m.writer));
        assert_false(ring_publish(&m.writer));
        expect_number(&m.reader, 1, 5);
        expect_number(&m.reader, 2, 0);
        expect_empty(&m.reader);
        close_ring(&m);
}

static void a_record_is_contiguous_at_every_offset(void **state)
{
        static const size_t payloads[] = { 0, 1, 7, 8, 9, 64, 500, 1000, 1001, 1008 };
        struct memory m;

        (void)state;
        open_ring(&m, SMALL);
        for (uint64_t offset = 0; offset < SMALL; offset += offset ? 8 : 16) {
                for (uint32_t p = 0; p < sizeof(payloads) / sizeof(payloads[0]); p++) {
                        walk_to(&m, offset);
                        for (uint32_t i = 0; i < 3; i++)
                                assert_int_equal(put_number(&m.writer, i, payloads[p]), 0);
                        ring_publish(&m.writer);
                        for (uint32_t i = 0; i < 3; i++)
                                expect_number(&m.reader, i, payloads[p]);
                        expect_empty(&m.reader);
                        ring_release(&m.reader);
                }
        }
        close_ring(&m);
}

/* A writer that asks for no room, only puts, many times around. */
static void a_writer_never_overtakes_its_reader(void **state)
{
        uint64_t random = 17;
        struct memory m;
        uint32_t written = 0, read = 0, full = 0;

        (void)state;
        open_ring(&m, SMALL);
        while (read < 20000) {
                uint32_t most = next_random(&random) % 40;

                for (uint32_t i = 0; i < most; i++) {
                        int r = put_number(&m.writer, written, written % 300);

                        if (r) {
                                assert_int_equal(r, RING_E_FULL);
                                full++;
                                break;
                        }
                        written++;
                }
                assert_true(m.writer.tail - m.control->head <= SMALL);
                ring_publish(&m.writer);
                for (most = next_random(&random) % 40; most && read < written; most--, read++)
                        expect_number(&m.reader, read, read % 300);
                ring_release(&m.reader);
        }
        assert_true(full > 100);
        close_ring(&m);
}

static void padding_bytes_are_zero(void **state)
{
        struct memory m;

        (void)state;
        open_ring(&m, SMALL);
        memset(m.bytes + SMV_RING_HEADER, 0xEE, SMALL);
        assert_int_equal(put_number(&m.writer, 9, 3), 0);
        for (size_t i = 16 + 3; i < ring_record_bytes(3); i++)
                assert_int_equal(m.bytes[SMV_RING_HEADER + i], 0);
        assert_int_equal(m.bytes[SMV_RING_HEADER + ring_record_bytes(3)], 0xEE);
        close_ring(&m);
}

static void a_full_ring_refuses_records_and_loses_none(void **state)
{
        struct memory m;
        uint32_t count = 0;
        uint64_t room;

        (void)state;
        open_ring(&m, SMALL);
        while (!put_number(&m.writer, count, 48))
                count++;
        assert_int_equal(count, SMALL / 64);
        assert_int_equal(put_number(&m.writer, count, 48), RING_E_FULL);
        assert_int_equal(put_number(&m.writer, count, 0), RING_E_FULL);
        ring_publish(&m.writer);
        assert_int_equal(ring_free_bytes(&m.writer, 64, &room), 0);
        assert_int_equal(room, 0);

        for (uint32_t i = 0; i < count; i++)
                expect_number(&m.reader, i, 48);
        assert_int_equal(put_number(&m.writer, count, 48), RING_E_FULL); /* not given back yet */
        ring_release(&m.reader);
        assert_int_equal(put_number(&m.writer, count, 48), 0); /* found without ring_free_bytes() */
        ring_publish(&m.writer);
        expect_number(&m.reader, count, 48);
        expect_empty(&m.reader);
        close_ring(&m);
}

/* For any offset, fill and sizes: the room that ring_free_bytes() promised can be written. */
static void the_free_bytes_reported_can_be_written(void **state)
{
        uint64_t random = 5, room, before;
        struct memory m;

        (void)state;
        open_ring(&m, SMALL);
        for (uint32_t round = 0; round < 20000; round++) {
                size_t record_max = 16 + 8 * (next_random(&random) % 127), fill, used = 0;

                walk_to(&m, 16 + 8 * (next_random(&random) % (SMALL / 8 - 2)));
                for (fill = next_random(&random) % 6; fill; fill--)
                        (void)!put_number(&m.writer, 0, next_random(&random) % 600);
                assert_int_equal(ring_free_bytes(&m.writer, record_max, &room), 0);
                before = room;
                assert_true(room <= SMALL - (m.writer.tail - m.reader.head));
                assert_true(room + record_max >= SMALL - (m.writer.tail - m.reader.head));

                for (;;) {
                        size_t most = record_max, payload;

                        if (most > before - used)
                                most = before - used;
                        if (most < 16)
                                break;
                        payload = next_random(&random) % (most - 16 + 1);
                        if (next_random(&random) % 2)
                                payload = most - 16;
                        assert_int_equal(put_number(&m.writer, 0, payload), 0);
                        used += ring_record_bytes(payload);
                        assert_int_equal(ring_free_bytes(&m.writer, record_max, &room), 0);
                        assert_true(room >= before - used);
                }

                ring_publish(&m.writer);
                for (const struct smv_record *record; !ring_next(&m.reader, &record);)
                        ;
                assert_int_equal(m.reader.head, m.writer.tail);
                ring_release(&m.reader);
        }
        close_ring(&m);
}

static void refuses_an_impossible_head(void **state)
{
        uint64_t room, tail, good;
        void *payload;
        struct memory m;

        (void)state;
        open_ring(&m, SMALL);
        walk_to(&m, 1024);
        assert_int_equal(ring_free_bytes(&m.writer, 64, &room), 0);
        good = m.control->head;
        assert_int_equal(put_number(&m.writer, 1, 1000), 0);
        tail = ring_publish(&m.writer) ? m.writer.tail : 0;
        assert_int_equal(put_number(&m.writer, 2, 1000), 0); /* written, not shown */

        const uint64_t lies[] = {
                0,        good - 8,   good + 1,       good + 4,   tail + 8,     m.writer.tail,
                tail - 1, UINT64_MAX, UINT64_MAX - 7, 1ull << 63, tail + SMALL,
        };
        for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
                m.control->head = lies[i];
                assert_int_equal(ring_free_bytes(&m.writer, 64, &room), -EPROTO);
                assert_int_equal(m.writer.head_seen, good);
        }
        m.control->head = tail;
        assert_int_equal(ring_free_bytes(&m.writer, 64, &room), 0);
        m.control->head = good; /* backwards, to where it was once */
        assert_int_equal(ring_free_bytes(&m.writer, 64, &room), -EPROTO);

        while (m.writer.data_bytes - (m.writer.tail - m.writer.head_seen) >= 1024)
                assert_int_equal(put_number(&m.writer, 3, 1008), 0);
        tail = m.writer.tail;
        assert_int_equal(ring_put(&m.writer, 1, 0, 0, 0, 1008, &payload), -EPROTO);
        assert_int_equal(m.writer.tail, tail);
        close_ring(&m);
}

static void refuses_an_invalid_header(void **state)
{
        struct ring_reader reader;
        struct memory m;
        struct smv_ring good;

        (void)state;
        open_ring(&m, SMALL);
        good = *m.page;
#define REFUSED(change)                                                                            \
        do {                                                                                       \
                change;                                                                            \
                assert_int_equal(ring_reader_init(&reader, m.page, m.control), -EPROTO);           \
                *m.page = good;                                                                    \
                assert_int_equal(ring_reader_init(&reader, m.page, m.control), 0);                 \
        } while (0)
        REFUSED(m.page->magic[7] = '2');
        REFUSED(m.page->major = 1);
        REFUSED(m.page->header_bytes = 8192);
        REFUSED(m.page->data_offset = 0);
        REFUSED(m.page->record_align = 16);
        REFUSED(m.page->features = 1);
        REFUSED(m.page->data_bytes = 0);
        REFUSED(m.page->data_bytes = 2048);
        REFUSED(m.page->data_bytes = 4096 + 8);
        REFUSED(m.page->data_bytes = 1ull << 63);
#undef REFUSED
        m.page->minor = 9; /* appended fields are no reason */
        assert_int_equal(ring_reader_init(&reader, m.page, m.control), 0);
        close_ring(&m);
}

static void refuses_malformed_records(void **state)
{
        const struct smv_record *record;
        struct smv_record *first, good;
        struct memory m;

        (void)state;
        open_ring(&m, SMALL);
        walk_to(&m, 3072 + 512);
        first = (struct smv_record *)(m.writer.data + 3072 + 512);
        assert_int_equal(put_number(&m.writer, 4, 100), 0);
        assert_int_equal(put_number(&m.writer, 5, 1008), 0); /* behind a PAD */
        ring_publish(&m.writer);
        good = *first;
#define REFUSED(change)                                                                            \
        do {                                                                                       \
                struct ring_reader again = m.reader;                                               \
                change;                                                                            \
                assert_int_equal(ring_next(&again, &record), -EPROTO);                             \
                assert_int_equal(ring_next(&again, &record), -EPROTO);                             \
                assert_int_equal(again.head, m.reader.head);                                       \
                *first = good;                                                                     \
        } while (0)
        REFUSED(first->size = 0);
        REFUSED(first->size = 15);
        REFUSED(first->size = 513);  /* crosses the end */
        REFUSED(first->size = 1025); /* larger than a record may be */
        REFUSED(first->size = UINT32_MAX);
        REFUSED(first->size = UINT32_MAX - 7);
        REFUSED(first->head_bytes = 15);
        REFUSED(first->head_bytes = 117);
        REFUSED(first->type = SMV_RECORD_PAD); /* a PAD that does not reach the end */
        REFUSED((first->type = SMV_RECORD_PAD, first->size = 520));
#undef REFUSED
        expect_number(&m.reader, 4, 100);
        expect_number(&m.reader, 5, 1008);
        ring_release(&m.reader);

        /* A record that reaches beyond the published bytes. */
        assert_int_equal(put_number(&m.writer, 6, 100), 0);
        ring_publish(&m.writer);
        m.page->tail -= 8;
        assert_int_equal(ring_next(&m.reader, &record), -EPROTO);
        close_ring(&m);
}

static void refuses_an_impossible_tail(void **state)
{
        const struct smv_record *record;
        struct memory m;

        (void)state;
        open_ring(&m, SMALL);
        walk_to(&m, 1024);
        const uint64_t head = m.reader.head;
        const uint64_t lies[] = { 0, head - 8, head + 4, head + SMALL + 8, UINT64_MAX };

        for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
                m.page->tail = lies[i];
                assert_int_equal(ring_next(&m.reader, &record), -EPROTO);
        }
        m.page->tail = head;
        expect_empty(&m.reader);
        close_ring(&m);
}

static void handles_a_pad_of_eight_bytes_without_reading_its_type(void **state)
{
        const struct smv_record *record;
        struct smv_record *pad;
        struct memory m;

        (void)state;
        open_ring(&m, SMALL);
        walk_to(&m, SMALL - 8);
        pad = (struct smv_record *)(m.writer.data + SMALL - 8);
        assert_int_equal(put_number(&m.writer, 7, 0), 0);
        ring_publish(&m.writer);
        assert_int_equal(pad->size, 8);
        assert_int_equal(pad->stream, 0);
        /* what would be its type is segment C's memory, here and in a mapping of D alone none */
        assert_ptr_equal(&pad->type, m.control);
        pad->size = 16;
        assert_int_equal(ring_next(&m.reader, &record), -EPROTO);
        pad->size = 8;
        expect_number(&m.reader, 7, 0);
        expect_empty(&m.reader);
        close_ring(&m);
}

static void accepts_a_longer_record_head_and_an_unknown_type(void **state)
{
        const struct smv_record *record;
        struct memory m;
        void *payload;

        (void)state;
        open_ring(&m, SMALL);
        assert_int_equal(ring_put(&m.writer, 77, 0, 3, 0, 24, &payload), 0);
        ((struct smv_record *)m.writer.data)->head_bytes = 24;
        ring_publish(&m.writer);
        assert_int_equal(ring_next(&m.reader, &record), 0);
        assert_int_equal(record->type, 77);
        assert_int_equal(record->head_bytes, 24);
        close_ring(&m);
}

static void a_stall_is_undone_if_the_reader_has_moved(void **state)
{
        struct memory m;
        uint64_t room;

        (void)state;
        open_ring(&m, SMALL);
        assert_int_equal(put_number(&m.writer, 1, 1000), 0);
        assert_int_equal(put_number(&m.writer, 2, 1000), 0);
        ring_publish(&m.writer);
        assert_int_equal(ring_free_bytes(&m.writer, 64, &room), 0);

        assert_false(ring_stall(&m.writer));
        expect_number(&m.reader, 1, 1000);
        assert_true(ring_release(&m.reader)); /* tell it */
        assert_true(ring_stall(&m.writer));
        assert_int_equal(m.page->state, SMV_RING_RUN);
        expect_number(&m.reader, 2, 1000);
        assert_false(ring_release(&m.reader));

        /* a look at head for a record in between hides nothing from the stall */
        assert_int_equal(ring_free_bytes(&m.writer, 64, &room), 0);
        for (int i = 0; i < 3; i++)
                assert_int_equal(put_number(&m.writer, 3, 1000), 0);
        ring_publish(&m.writer);
        for (int i = 0; i < 3; i++)
                expect_number(&m.reader, 3, 1000);
        assert_false(ring_release(&m.reader));
        for (int i = 0; i < 3; i++)
                assert_int_equal(put_number(&m.writer, 4, 1000), 0);
        assert_true(ring_stall(&m.writer));

        assert_int_equal(ring_free_bytes(&m.writer, 64, &room), 0);
        assert_false(ring_stall(&m.writer));
        ring_resume(&m.writer);
        assert_false(ring_release(&m.reader));
        close_ring(&m);
}

/* Two threads.  The sender stalls as the engine does; a nudge is one flag. */

#define RECORDS 1000000u

struct traffic {
        struct memory m;
        uint32_t nudged; /* the reader has told the writer */
        uint32_t finished;
        uint32_t stalled; /* the writer has been, once at least */
        uint64_t bad;
};

static size_t payload_of(uint64_t *random)
{
        uint32_t r = next_random(random);

        return r % 64 ? r % 96 : r % 1009;
}

static void *write_records(void *arg)
{
        struct traffic *t = arg;
        struct ring_writer *writer = &t->m.writer;
        uint64_t random = 42, room;

        for (uint32_t n = 0; n < RECORDS;) {
                if (ring_free_bytes(writer, 1024, &room)) {
                        t->bad++;
                        break;
                }
                if (room < 1024) {
                        __atomic_store_n(&t->stalled, 1, __ATOMIC_RELEASE);
                        if (!ring_stall(writer)) {
                                while (!__atomic_exchange_n(&t->nudged, 0, __ATOMIC_ACQ_REL))
                                        sched_yield();
                                ring_resume(writer);
                        }
                        continue;
                }
                for (; n < RECORDS && room >= 1024; n++) {
                        size_t payload = payload_of(&random);

                        if (put_number(writer, n, payload))
                                t->bad++;
                        room -= ring_record_bytes(payload);
                        if (next_random(&random) % 4 == 0)
                                ring_publish(writer);
                }
                ring_publish(writer);
        }
        __atomic_store_n(&t->finished, 1, __ATOMIC_RELEASE);
        return NULL;
}

/*
 * A resume that gets lost leaves both waiting for ever.  So a reader that finds
 * nothing for this many looks in a row, with a writer that is not done, gives up.
 */
#define LOOKS_MAX 5000000u

static void *read_records(void *arg)
{
        struct traffic *t = arg;
        uint64_t random = 42, own = 7;
        uint32_t n = 0, looks = 0;

        /* However fast it reads, the writer has to wait for it once. */
        while (!__atomic_load_n(&t->stalled, __ATOMIC_ACQUIRE))
                sched_yield();
        while (n < RECORDS && !t->bad && looks < LOOKS_MAX) {
                const struct smv_record *record;
                int r = ring_next(&t->m.reader, &record);

                if (r == RING_E_EMPTY) {
                        if (ring_release(&t->m.reader))
                                __atomic_store_n(&t->nudged, 1, __ATOMIC_RELEASE);
                        sched_yield();
                        looks++;
                        continue;
                }
                if (r || !is_number(record, n, payload_of(&random)))
                        break;
                (void)next_random(&random); /* the writer's coin */
                looks = 0;
                n++;
                if (next_random(&own) % 16 == 0 && ring_release(&t->m.reader))
                        __atomic_store_n(&t->nudged, 1, __ATOMIC_RELEASE);
        }
        ring_release(&t->m.reader);
        return (void *)(uintptr_t)n;
}

static void a_million_records_arrive_intact_in_another_thread(void **state)
{
        static struct traffic t;
        pthread_t writer, reader;
        void *count;

        (void)state;
        t = (struct traffic){ 0 };
        open_ring(&t.m, LARGE);
        assert_int_equal(pthread_create(&writer, NULL, write_records, &t), 0);
        assert_int_equal(pthread_create(&reader, NULL, read_records, &t), 0);
        pthread_join(reader, &count);
        if ((uintptr_t)count == RECORDS) {
                pthread_join(writer, NULL);
                assert_int_equal(t.bad, 0);
        }
        assert_int_equal((uintptr_t)count, RECORDS);
        close_ring(&t.m);
}

/*
 * The stall alone, as tight as it gets: one record fills the ring's room, and each
 * side goes only when the other has moved.  The reader releases exactly once per
 * record, so a nudge that is not given never comes.
 */
#define ROUNDS 20000u

static void *stall_writer(void *arg)
{
        struct traffic *t = arg;
        uint64_t room;

        for (uint32_t n = 0; n < ROUNDS;) {
                uint32_t waits = 0;

                if (ring_free_bytes(&t->m.writer, 1024, &room))
                        return (void *)1;
                if (room >= 2048) {
                        if (put_number(&t->m.writer, n++, 1008))
                                return (void *)1;
                        ring_publish(&t->m.writer);
                        continue;
                }
                if (ring_stall(&t->m.writer))
                        continue;
                while (!__atomic_exchange_n(&t->nudged, 0, __ATOMIC_ACQ_REL)) {
                        if (++waits == LOOKS_MAX) {
                                __atomic_store_n(&t->finished, 1, __ATOMIC_RELEASE);
                                return (void *)1;
                        }
                        sched_yield();
                }
                ring_resume(&t->m.writer);
        }
        return NULL;
}

static void *stall_reader(void *arg)
{
        struct traffic *t = arg;

        for (uint32_t n = 0; n < ROUNDS;) {
                const struct smv_record *record;

                if (__atomic_load_n(&t->finished, __ATOMIC_ACQUIRE))
                        break;
                if (ring_next(&t->m.reader, &record)) {
                        sched_yield();
                        continue;
                }
                n++;
                if (ring_release(&t->m.reader))
                        __atomic_store_n(&t->nudged, 1, __ATOMIC_RELEASE);
        }
        return NULL;
}

static void a_reader_that_frees_bytes_always_resumes_a_stalled_writer(void **state)
{
        static struct traffic t;
        pthread_t writer, reader;
        void *lost;

        (void)state;
        t = (struct traffic){ 0 };
        open_ring(&t.m, SMALL);
        assert_int_equal(pthread_create(&writer, NULL, stall_writer, &t), 0);
        assert_int_equal(pthread_create(&reader, NULL, stall_reader, &t), 0);
        pthread_join(writer, &lost);
        pthread_join(reader, NULL);
        assert_null(lost);
        close_ring(&t.m);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_record_is_invisible_before_it_is_published),
                cmocka_unit_test(a_record_is_contiguous_at_every_offset),
                cmocka_unit_test(a_writer_never_overtakes_its_reader),
                cmocka_unit_test(padding_bytes_are_zero),
                cmocka_unit_test(a_full_ring_refuses_records_and_loses_none),
                cmocka_unit_test(the_free_bytes_reported_can_be_written),
                cmocka_unit_test(refuses_an_impossible_head),
                cmocka_unit_test(refuses_an_invalid_header),
                cmocka_unit_test(refuses_malformed_records),
                cmocka_unit_test(refuses_an_impossible_tail),
                cmocka_unit_test(handles_a_pad_of_eight_bytes_without_reading_its_type),
                cmocka_unit_test(accepts_a_longer_record_head_and_an_unknown_type),
                cmocka_unit_test(a_stall_is_undone_if_the_reader_has_moved),
                cmocka_unit_test(a_million_records_arrive_intact_in_another_thread),
                cmocka_unit_test(a_reader_that_frees_bytes_always_resumes_a_stalled_writer),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
