#include "tests/e2e/raw-client-ring.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLICE_MS 5 /* a sleeper on a futex hears no reply, so it looks at the socket this often */

struct raw_client_ring {
        const struct smv_ring *page;
        struct smv_ring_control *control;
        const uint8_t *data;
        size_t page_bytes;
        uint64_t data_bytes, head;
        uint8_t *copy;    /* of the data being read: the daemon may empty the segment meanwhile */
        bool resume;      /* the daemon is to be told that there is room again */
        bool lying, gone; /* gone: the daemon has emptied the ring, and the hang-up is on its way */
};

static uint64_t load_tail(const struct raw_client_ring *ring)
{
        return __atomic_load_n(&ring->page->tail, __ATOMIC_ACQUIRE);
}

static void full_fence(void)
{
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/*
 * True if the daemon has hung up on this client, perhaps while we were copying: then the copy is
 * worthless.  The magic goes first, so a reader that still sees it has lost no page.  A client that
 * goes before it has read hello's reply can find the ring gone from the start.
 */
static bool is_gone(struct raw_client_ring *ring)
{
        full_fence();
        if (!*(const volatile char *)ring->page->magic)
                ring->gone = true;
        return ring->gone;
}

/* ---- open ---- */

static const msgpack_object *segment_at(const struct reply *reply, size_t index, const char *name)
{
        char path[32];

        snprintf(path, sizeof(path), "segments.%zu.%s", index, name);
        return reply_at(reply, path);
}

static size_t check_segment(const struct reply *reply, size_t index, const char *kind, int fd,
                            int access_mode)
{
        const msgpack_object *is = segment_at(reply, index, "kind");
        const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
        uint64_t bytes = segment_at(reply, index, "bytes")->via.u64;
        struct stat st;

        assert_int_equal(is->type, MSGPACK_OBJECT_STR);
        assert_int_equal(is->via.str.size, strlen(kind));
        assert_memory_equal(is->via.str.ptr, kind, strlen(kind));
        assert_int_equal(segment_at(reply, index, "fd")->via.u64, index);
        assert_int_equal(fcntl(fd, F_GET_SEALS) & seals, seals);
        assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, access_mode);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_size, bytes);
        return (size_t)bytes;
}

static void check_header(const struct raw_client_ring *ring)
{
        const struct smv_ring *page = ring->page;

        assert_memory_equal(page->magic, SMV_RING_MAGIC, 8);
        assert_int_equal(page->major, 0);
        assert_true(page->minor >= 1);
        assert_int_equal(page->header_bytes, 4096);
        assert_int_equal(page->data_offset, 4096);
        assert_int_equal(page->record_align, 8);
        assert_in_range(page->data_bytes, SMV_RING_BYTES_MIN, SMV_RING_BYTES_MAX);
        assert_int_equal(page->data_bytes & (page->data_bytes - 1), 0);
        assert_int_equal(page->data_bytes, ring->data_bytes);
}

void raw_client_ring_open(struct raw_client *client, const struct reply *reply)
{
        const msgpack_object *segments = reply_at(reply, "segments");
        struct raw_client_ring *ring = calloc(1, sizeof(*ring));
        void *page, *control;

        assert(ring);
        assert_int_equal(segments->via.array.size, 2);
        assert_int_equal(client->passed, 2);
        ring->page_bytes = check_segment(reply, 0, "ring", client->fds[0], O_RDONLY);
        assert_int_equal(check_segment(reply, 1, "control", client->fds[1], O_RDWR), 4096);
        page = mmap(NULL, ring->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, client->fds[0], 0);
        assert_ptr_equal(page, MAP_FAILED);
        page = mmap(NULL, ring->page_bytes, PROT_READ, MAP_SHARED, client->fds[0], 0);
        control = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, client->fds[1], 0);
        assert_true(page != MAP_FAILED && control != MAP_FAILED);
        close(client->fds[0]);
        close(client->fds[1]);
        client->passed = 0;

        ring->page = page;
        ring->control = control;
        ring->data = (const uint8_t *)page + 4096;
        ring->data_bytes = ring->page_bytes - 4096;
        if (client->bells_must_ring || !is_gone(ring))
                check_header(ring);
        ring->copy = malloc(ring->data_bytes);
        assert(ring->copy);
        client->ring = ring;
        raw_client_ring_wake(client);
}

void raw_client_ring_close(struct raw_client *client)
{
        struct raw_client_ring *ring = client->ring;

        while (client->passed)
                close(client->fds[--client->passed]);
        if (!ring)
                return;
        munmap((void *)(uintptr_t)ring->page, ring->page_bytes);
        munmap(ring->control, 4096);
        free(ring->copy);
        free(ring);
}

/* ---- read ---- */

static void copy_out(const struct raw_client_ring *ring, uint64_t tail)
{
        size_t count = (size_t)(tail - ring->head), at = ring->head % ring->data_bytes;
        size_t first = count < ring->data_bytes - at ? count : (size_t)ring->data_bytes - at;

        memcpy(ring->copy, ring->data + at, first);
        memcpy(ring->copy + first, ring->data, count - first);
}

static void walk(struct raw_client *client, uint64_t tail)
{
        const struct raw_client_ring *ring = client->ring;

        for (uint64_t at = ring->head; at != tail;) {
                const uint8_t *bytes = ring->copy + (at - ring->head);
                uint64_t left = ring->data_bytes - at % ring->data_bytes;
                struct smv_record head = { 0 };
                uint64_t step;

                memcpy(&head, bytes, left < sizeof(head) ? left : sizeof(head));
                step = (head.size + UINT64_C(7)) & ~UINT64_C(7);
                assert_true(head.size >= 8 && step <= left && step <= tail - at);
                if (left < sizeof(head) || head.type == SMV_RECORD_PAD)
                        assert_int_equal(head.size, left);
                else
                        assert_int_equal(raw_client_take_record(client, bytes, step), step);
                at += step;
        }
}

bool raw_client_ring_take(struct raw_client *client)
{
        struct raw_client_ring *ring = client->ring;
        uint64_t tail;
        uint32_t state;

        if (!ring || ring->gone)
                return false;
        tail = load_tail(ring);
        if (tail == ring->head || is_gone(ring))
                return false;
        assert_int_equal(tail % 8, 0);
        assert_in_range(tail - ring->head, 8, ring->data_bytes);
        copy_out(ring, tail);
        if (is_gone(ring))
                return false;
        walk(client, tail);

        ring->head = tail;
        __atomic_store_n(&ring->control->head, tail, __ATOMIC_RELEASE);
        full_fence();
        state = __atomic_load_n(&ring->page->state, __ATOMIC_RELAXED);
        assert_in_range(state, SMV_RING_RUN, SMV_RING_STALLED);
        ring->resume = ring->resume || state == SMV_RING_STALLED;
        raw_client_ring_resume(client);
        return true;
}

/* A half-closed client cannot send it; one whose socket is full sends it later. */
void raw_client_ring_resume(struct raw_client *client)
{
        struct raw_client_ring *ring = client->ring;

        if (!ring || !ring->resume || client->in_frame || client->hung_up)
                return;
        if (send(client->fd, "\0\0\0\0", 4, MSG_DONTWAIT | MSG_NOSIGNAL) == 4 || errno != EAGAIN)
                ring->resume = false;
}

/* ---- sleep ---- */

static void wish(struct raw_client_ring *ring, uint64_t position)
{
        __atomic_store_n(&ring->control->wake_position, position, __ATOMIC_RELEASE);
}

bool raw_client_ring_announce_sleep(struct raw_client *client)
{
        struct raw_client_ring *ring = client->ring;

        raw_client_ring_resume(client);
        if (!ring || ring->gone)
                return true;
        wish(ring, ring->head);
        full_fence();
        ring->lying = load_tail(ring) == ring->head;
        return ring->lying;
}

void raw_client_ring_wake(struct raw_client *client)
{
        struct raw_client_ring *ring = client->ring;
        struct pollfd bell = { .fd = client->fd, .events = POLLIN };

        if (!ring || ring->gone)
                return;
        if (ring->lying && client->bells_must_ring && client->transport == RAW_CLIENT_KICK &&
            load_tail(ring) != ring->head && poll(&bell, 1, TIMEOUT_MS) <= 0)
                fail_msg("%s", "records have come and the bell has not rung");
        ring->lying = false;
        wish(ring, SMV_WAKE_NEVER);
}

void raw_client_ring_sleep(struct raw_client *client, int timeout_ms)
{
        const struct raw_client_ring *ring = client->ring;
        int ms = timeout_ms < SLICE_MS ? timeout_ms : SLICE_MS;
        struct timespec slice = { .tv_nsec = ms * 1000000L };

        if (ring->lying)
                syscall(SYS_futex, (const uint32_t *)(const void *)&ring->page->tail, FUTEX_WAIT,
                        (uint32_t)ring->head, &slice, NULL, 0);
}
