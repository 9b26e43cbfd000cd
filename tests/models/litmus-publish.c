/*
 * Publish and retire: the product's ring_put(), ring_publish(), ring_next(), ring_release().
 *
 * The ring is full: four records, each a quarter of it.  The reader takes the first and gives it
 * back, while the writer tries to put a fifth into its place.  Forbidden: a record that differs
 * from the one that was put.
 *
 * A model checker follows words, not blocks of bytes, so for it (LITMUS_CHECK) the ring is two
 * words, with the same accesses of tail and head, in the same order and of the same memory orders.
 * It sees a data race if a record is not ordered by tail or by head.
 *
 * WEAK_TAIL makes the store of tail relaxed, WEAK_HEAD that of head.
 */
#include "tests/models/litmus.h"

#include "shm/ring.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* ring.c stores tail with RELEASE and head with SEQ_CST; its acquire loads stay. */
#ifdef WEAK_TAIL
#undef __ATOMIC_RELEASE
#define __ATOMIC_RELEASE __ATOMIC_RELAXED
#endif
#ifdef WEAK_HEAD
#undef __ATOMIC_SEQ_CST
#define __ATOMIC_SEQ_CST __ATOMIC_RELAXED
#endif

static uint32_t reads;
static bool put_it, wrong;

#ifdef LITMUS_CHECK

#define RECORDS 2u

static uint64_t place[RECORDS], page_tail, control_head;
static struct {
        uint64_t tail, head;
} writer, reader;

static bool put_number(uint32_t number)
{
        if (writer.tail - writer.head == RECORDS) {
                writer.head = __atomic_load_n(&control_head, __ATOMIC_ACQUIRE);
                if (writer.tail - writer.head == RECORDS)
                        return false;
        }
        place[writer.tail++ % RECORDS] = number;
        __atomic_store_n(&page_tail, writer.tail, __ATOMIC_RELEASE);
        return true;
}

static void open_ring(void)
{
}

static void take_one(void)
{
        if (reader.head == reader.tail)
                reader.tail = __atomic_load_n(&page_tail, __ATOMIC_ACQUIRE);
        if (reader.head == reader.tail)
                return;
        if (place[reader.head++ % RECORDS] != reads)
                wrong = true;
        reads++;
}

static void give_back(void)
{
        __atomic_store_n(&control_head, reader.head, __ATOMIC_SEQ_CST);
}

#else

#include "shm/ring.c"

#define DATA_BYTES 4096u
#define RECORDS    4u
#define PAYLOAD    (DATA_BYTES / RECORDS - sizeof(struct smv_record))

static _Alignas(4096) struct {
        struct smv_ring page;
        uint8_t data[DATA_BYTES];
} segment;
static _Alignas(4096) struct smv_ring_control control;
static struct ring_writer writer;
static struct ring_reader reader;

static bool put_number(uint32_t number)
{
        void *payload;

        if (ring_put(&writer, SMV_RECORD_TOKENS, 0, 1, number, PAYLOAD, &payload))
                return false;
        *(uint64_t *)payload = number;
        ring_publish(&writer);
        return true;
}

static void open_ring(void)
{
        __atomic_store_n(&control.head, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&segment.page.tail, 0, __ATOMIC_RELAXED);
        ring_writer_init(&writer, &segment, &control, DATA_BYTES);
        if (ring_reader_init(&reader, &segment, &control))
                wrong = true;
}

static void take_one(void)
{
        const struct smv_record *record;
        int r = ring_next(&reader, &record);

        if (r == RING_E_EMPTY)
                return;
        if (r || record->sequence != reads || *(const uint64_t *)(record + 1) != reads)
                wrong = true;
        reads++;
}

static void give_back(void)
{
        ring_release(&reader);
}

#endif

static const char *const litmus_outcome[LITMUS_OUTCOMES] = {
        "a record was not what was put (forbidden)",
        "the writer found no room",
        "the writer wrote over what was read",
        "... and the reader read it",
};

static void litmus_begin(void)
{
        reads = 0;
        wrong = false;
        open_ring();
        for (uint32_t number = 0; number < RECORDS; number++)
                put_number(number);
}

static void write_one(void)
{
        put_it = put_number(RECORDS);
}

/* Reads the first alone, so that its place is free; then all the others. */
static void read_all(void)
{
        take_one();
        give_back();
        for (uint32_t i = 0; i < RECORDS; i++)
                take_one();
}

static void (*const litmus_thread[3])(void) = { write_one, read_all };

static int litmus_end(void)
{
        if (wrong)
                return LITMUS_FORBIDDEN;
        return 1 + put_it + (reads > RECORDS);
}
