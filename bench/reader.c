#include "bench/reader.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void *map(const struct segment *segment, int rights)
{
        int fd = segment_lend(segment);
        void *at = mmap(NULL, segment->bytes, rights, MAP_SHARED | MAP_POPULATE, fd, 0);

        close(fd);
        return at == MAP_FAILED ? NULL : at;
}

int reader_open(struct reader *reader, const struct channel *channel, int socket)
{
        void *ring = map(&channel->segment_d, PROT_READ);
        void *control = map(&channel->segment_c, PROT_READ | PROT_WRITE);
        int r = ring && control ? ring_reader_init(&reader->ring, ring, control) : -ENOMEM;

        reader->bell = channel->bell;
        reader->socket = socket;
        if (!r)
                doorbell_awake(&reader->ring);
        return r;
}

static void sleep_ns(uint64_t ns)
{
        const struct timespec time = { .tv_nsec = (long)ns };

        (void)nanosleep(&time, NULL);
}

/* The caller checks the ring after any wake-up, whatever its cause. */
static void sleep_once(struct reader *reader)
{
        const struct timespec second = { .tv_sec = 1 };
        const uint32_t *word;
        char kicks[256];
        uint32_t value;

        if (reader->bell == CHANNEL_NONE) {
                sleep_ns(1000000);
                return;
        }
        if (doorbell_may_sleep(&reader->ring, 0)) {
                word = doorbell_word(&reader->ring, &value);
                if (reader->bell == CHANNEL_FUTEX)
                        (void)syscall(SYS_futex, word, FUTEX_WAIT, value, &second, NULL, 0);
                else
                        (void)recv(reader->socket, kicks, sizeof(kicks), 0);
        }
        doorbell_awake(&reader->ring);
}

const struct smv_record *reader_next(struct reader *reader)
{
        const struct smv_record *record;
        int r;

        for (;;) {
                r = ring_next(&reader->ring, &record);
                if (!r)
                        return record;
                if (r != RING_E_EMPTY)
                        return NULL;
                (void)ring_release(&reader->ring);
                sleep_once(reader);
        }
}
