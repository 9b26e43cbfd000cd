#include "client/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "shm/doorbell.h"

/* The longest sleep if a daemon that dies, or a batch, may leave the client asleep. */
#define PATIENCE_NS      1000000000u
#define PATIENCE_POLL_NS 1000000u /* the longest sleep if the daemon never wakes the client */

/*
 * Only tmpfs is accepted: touching a page of a file on disk, or a huge page, may fail and kill the
 * program.  Returns NULL, or the fault.
 */
static const char *find_fault(const struct shared_segment *segment)
{
        struct statfs fs;
        struct stat st;
        int seals;

        if (fstatfs(segment->fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
                return "a segment of it is not shared memory";
        seals = fcntl(segment->fd, F_GET_SEALS);
        if (seals < 0 || !(seals & F_SEAL_SHRINK))
                return "a segment of it is not sealed against shrinking";
        if (fstat(segment->fd, &st) < 0 || st.st_size < 0 || (uint64_t)st.st_size < segment->bytes)
                return "a segment of it is smaller than was said";
        return NULL;
}

static const char *check(const struct shared_segment *ring, const struct shared_segment *control)
{
        const char *why = find_fault(ring);

        if (!why)
                why = find_fault(control);
        if (!why && (ring->bytes < SMV_RING_HEADER || ring->bytes > SIZE_MAX / 2 ||
                     control->bytes < sizeof(struct smv_ring_control)))
                why = "a segment of it has an impossible size";
        return why;
}

static int map(struct shared *shared, const struct shared_segment *ring,
               const struct shared_segment *control)
{
        void *at;

        at = mmap(NULL, (size_t)ring->bytes, PROT_READ, MAP_SHARED, ring->fd, 0);
        if (at == MAP_FAILED)
                return -errno;
        shared->ring = at;
        shared->ring_bytes = (size_t)ring->bytes;

        at = mmap(NULL, sizeof(struct smv_ring_control), PROT_READ | PROT_WRITE, MAP_SHARED,
                  control->fd, 0);
        if (at == MAP_FAILED)
                return -errno;
        shared->control = at;
        return 0;
}

int shared_open(struct shared *shared, const struct shared_segment *ring,
                const struct shared_segment *control, enum smv_doorbell doorbell,
                const char **ret_why)
{
        struct shared new = { .doorbell = doorbell };
        int r;

        *ret_why = check(ring, control);
        if (*ret_why)
                return -EPROTO;
        r = map(&new, ring, control);
        if (r) {
                *ret_why = strerror(-r);
        } else if (ring_reader_init(&new.reader, new.ring, new.control) ||
                   ring_segment_bytes(new.reader.data_bytes) > new.ring_bytes) {
                r = -EPROTO;
                *ret_why = "its header is not one that we know";
        }
        if (r) {
                shared_close(&new);
                return r;
        }
        doorbell_awake(&new.reader);
        *shared = new;
        return 0;
}

void shared_close(struct shared *shared)
{
        if (shared->ring)
                munmap(shared->ring, shared->ring_bytes);
        if (shared->control)
                munmap(shared->control, sizeof(struct smv_ring_control));
        *shared = (struct shared){ 0 };
}

/* The bytes from `record` to the reader's head, which may be at the end of the ring. */
static size_t bytes_taken(const struct ring_reader *reader, const struct smv_record *record)
{
        uint64_t end = ((reader->head - 1) & (reader->data_bytes - 1)) + 1;

        return (size_t)(end - (uint64_t)((const uint8_t *)record - reader->data));
}

int shared_next(struct shared *shared, struct record *ret_record)
{
        struct ring_reader *reader = &shared->reader;
        const struct smv_record *record;
        uint64_t at = reader->head;
        int r;

        if (!shared->ring || shared->over)
                return 0;
        shared_awake(shared);

        r = ring_next(reader, &record);
        if (r == RING_E_EMPTY)
                return 0;
        if (!r)
                r = record_read((const char *)record, bytes_taken(reader, record), ret_record);
        if (r)
                return r;
        shared->taken_at = at;
        return 1;
}

void shared_put_back(struct shared *shared)
{
        shared->reader.head = shared->taken_at;
}

void shared_release(struct shared *shared, bool all)
{
        uint64_t read = shared->reader.head - shared->released;

        if (!read || shared->over || (!all && read < shared->reader.data_bytes / 4))
                return;
        shared->released = shared->reader.head;
        if (ring_release(&shared->reader))
                shared->stalled = true;
}

bool shared_lie_down(struct shared *shared)
{
        shared->asleep = true;
        if (doorbell_may_sleep(&shared->reader, shared->batch))
                return true;
        shared_awake(shared);
        return false;
}

void shared_awake(struct shared *shared)
{
        if (!shared->asleep)
                return;
        shared->asleep = false;
        doorbell_awake(&shared->reader);
}

/* Not a private futex: the waker is another process. */
void shared_sleep(const struct shared *shared, uint64_t ns)
{
        struct timespec time = {
                .tv_sec = (time_t)(ns / 1000000000u),
                .tv_nsec = (long)(ns % 1000000000u),
        };
        const uint32_t *word;
        uint32_t value;

        word = doorbell_word(&shared->reader, &value);
        /* Ignore the result: the caller looks at the ring next in any case. */
        syscall(SYS_futex, word, FUTEX_WAIT, value, &time, NULL, 0);
}

uint64_t shared_patience(const struct shared *shared)
{
        switch (shared->doorbell) {
        case SMV_DOORBELL_NONE:
                return PATIENCE_POLL_NS;
        case SMV_DOORBELL_KICK:
                return shared->batch ? PATIENCE_NS : UINT64_MAX;
        default:
                return PATIENCE_NS;
        }
}
