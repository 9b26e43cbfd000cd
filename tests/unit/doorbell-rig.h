/* A ring in shared memory with a writer, a reader and a waker. */
#ifndef TESTS_UNIT_DOORBELL_RIG_H
#define TESTS_UNIT_DOORBELL_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "shm/doorbell.h"

#define RING   65536u
#define RECORD 24u /* of 8 bytes of payload */

struct memory {
        uint8_t *bytes; /* segment D, then segment C */
        struct smv_ring_control *control;
        struct ring_writer writer;
        struct ring_reader reader;
        struct doorbell bell;
        uint64_t end;
        uint32_t number;
};

static inline size_t memory_bytes(void)
{
        return ring_segment_bytes(RING) + sizeof(struct smv_ring_control);
}

/* In memory that a fork shares, zeroed. */
static inline void open_ring(struct memory *m)
{
        *m = (struct memory){ .number = 0 };
        m->bytes = mmap(NULL, memory_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0);
        assert_true(m->bytes != MAP_FAILED);
        m->control = (struct smv_ring_control *)(m->bytes + ring_segment_bytes(RING));
        ring_writer_init(&m->writer, m->bytes, m->control, RING);
        assert_int_equal(ring_reader_init(&m->reader, m->bytes, m->control), 0);
        m->bell.control = m->control;
}

static inline void close_ring(struct memory *m)
{
        munmap(m->bytes, memory_bytes());
}

static inline uint32_t next_random(uint64_t *state)
{
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(*state >> 33);
}

/* False: it is full. */
static inline bool put(struct memory *m, uint8_t type)
{
        void *payload;

        if (ring_put(&m->writer, type, 0, 1, m->number, 8, &payload))
                return false;
        memcpy(payload, &(uint64_t){ m->number++ }, 8);
        if (type == SMV_RECORD_END)
                m->end = m->writer.tail;
        return true;
}

static inline struct doorbell_news news_of(const struct memory *m)
{
        return (struct doorbell_news){ .tail = m->writer.published,
                                       .end = m->end,
                                       .wake_level = doorbell_wake_level(&m->writer) };
}

static inline bool is_due(struct memory *m)
{
        struct doorbell_news news = news_of(m);

        return doorbell_is_due(&m->bell, &news);
}

static inline bool say(struct memory *m, uint8_t type)
{
        assert_true(put(m, type));
        ring_publish(&m->writer);
        return is_due(m);
}

static inline void read_all(struct memory *m)
{
        const struct smv_record *record;

        while (!ring_next(&m->reader, &record))
                ;
        ring_release(&m->reader);
}

#endif
