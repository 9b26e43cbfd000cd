#include "client/shared-ring.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shm/doorbell.h"

/* The longest sleep if a daemon that dies, or a batch, may leave the client asleep. */
#define SLEEP_MAX_NS      1000000000u
#define POLL_SLEEP_MAX_NS 1000000u /* the longest sleep if the daemon never wakes the client */

static const char *check(const struct shared_segment *records, const struct shared_segment *control)
{
        const char *why = shared_segment_fault(records);

        if (!why)
                why = shared_segment_fault(control);
        if (!why &&
            (records->bytes < SMV_RING_HEADER || control->bytes < sizeof(struct smv_ring_control)))
                why = "a segment of it has an impossible size";
        return why;
}

static int map(struct shared_ring *ring, const struct shared_segment *records,
               const struct shared_segment *control)
{
        int r = shared_segment_map(records, records->bytes, false, &ring->segment);

        ring->segment_bytes = (size_t)records->bytes;
        return r ? r
                 : shared_segment_map(control, sizeof(struct smv_ring_control), true,
                                      &ring->control);
}

int shared_ring_open(struct shared_ring *ring, const struct shared_segment *records,
                     const struct shared_segment *control, enum smv_doorbell doorbell,
                     const char **ret_why)
{
        struct shared_ring new = { .doorbell = doorbell };
        int r;

        *ret_why = check(records, control);
        if (*ret_why)
                return -EPROTO;
        r = map(&new, records, control);
        if (r) {
                *ret_why = strerror(-r);
        } else if (ring_reader_init(&new.reader, new.segment, new.control) ||
                   ring_segment_bytes(new.reader.data_bytes) > new.segment_bytes) {
                r = -EPROTO;
                *ret_why = "its header has an unknown format";
        }
        if (r) {
                shared_ring_close(&new);
                return r;
        }
        doorbell_awake(&new.reader);
        *ring = new;
        return 0;
}

void shared_ring_close(struct shared_ring *ring)
{
        if (ring->segment)
                munmap(ring->segment, ring->segment_bytes);
        if (ring->control)
                munmap(ring->control, sizeof(struct smv_ring_control));
        *ring = (struct shared_ring){ 0 };
}

/* The bytes from `record` to the reader's head, which may be at the end of the ring. */
static size_t bytes_taken(const struct ring_reader *reader, const struct smv_record *record)
{
        uint64_t end = ((reader->head - 1) & (reader->data_bytes - 1)) + 1;

        return (size_t)(end - (uint64_t)((const uint8_t *)record - reader->data));
}

int shared_ring_next(struct shared_ring *ring, struct record *ret_record)
{
        struct ring_reader *reader = &ring->reader;
        const struct smv_record *record;
        uint64_t at = reader->head;
        int r;

        if (!ring->segment || ring->stopped)
                return 0;
        shared_ring_set_awake(ring);

        r = ring_next(reader, &record);
        if (r == RING_E_EMPTY)
                return 0;
        if (!r)
                r = record_read((const char *)record, bytes_taken(reader, record), ret_record);
        if (r)
                return r;
        ring->taken_at = at;
        return 1;
}

void shared_ring_unread(struct shared_ring *ring)
{
        ring->reader.head = ring->taken_at;
}

void shared_ring_release(struct shared_ring *ring, bool all)
{
        uint64_t read = ring->reader.head - ring->released;

        if (!read || ring->stopped || (!all && read < ring->reader.data_bytes / 4))
                return;
        ring->released = ring->reader.head;
        if (ring_release(&ring->reader))
                ring->stalled = true;
}

bool shared_ring_may_sleep(struct shared_ring *ring)
{
        ring->asleep = true;
        if (doorbell_may_sleep(&ring->reader, ring->wake_bytes))
                return true;
        shared_ring_set_awake(ring);
        return false;
}

bool shared_ring_has_sleeper(const struct shared_ring *ring)
{
        return ring->segment && ring_has_sleeper(&ring->reader);
}

void shared_ring_set_awake(struct shared_ring *ring)
{
        if (!ring->asleep)
                return;
        ring->asleep = false;
        doorbell_awake(&ring->reader);
}

/* Not a private futex: the waker is another process. */
void shared_ring_sleep(const struct shared_ring *ring, uint64_t ns)
{
        struct timespec time = {
                .tv_sec = (time_t)(ns / 1000000000u),
                .tv_nsec = (long)(ns % 1000000000u),
        };
        const uint32_t *word;
        uint32_t value;

        word = doorbell_word(&ring->reader, &value);
        /* Ignore the result: the caller looks at the ring next in any case. */
        syscall(SYS_futex, word, FUTEX_WAIT, value, &time, NULL, 0);
}

uint64_t shared_ring_sleep_max(const struct shared_ring *ring)
{
        switch (ring->doorbell) {
        case SMV_DOORBELL_NONE:
                return POLL_SLEEP_MAX_NS;
        case SMV_DOORBELL_KICK:
                return ring->wake_bytes ? SLEEP_MAX_NS : UINT64_MAX;
        default:
                return SLEEP_MAX_NS;
        }
}
