#include "tests/e2e/manual-ring.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define FDS_MAX 253

/* ---- hello ---- */

void manual_ring_send_hello(struct raw_client *client, const char *transport, const char *doorbell,
                            uint32_t bytes)
{
        static const uint32_t versions[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };

        client->leaves_ring = true;
        raw_client_send_frame(client, "op=s id=u versions=I transport=s doorbell=s ring_bytes=u",
                              "hello", ++client->last_id, versions, (size_t)2, transport, doorbell,
                              bytes);
}

/* A peek gives us descriptors of our own; the read that takes the message drops those in it. */
static void receive(int fd, int *fds, size_t n)
{
        char byte;
        struct iovec part = { .iov_base = &byte, .iov_len = 1 };
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(4 * sizeof(int))];
        } rights;
        struct msghdr message = { .msg_iov = &part,
                                  .msg_iovlen = 1,
                                  .msg_control = &rights,
                                  .msg_controllen = sizeof(rights) };

        assert_int_equal(recvmsg(fd, &message, MSG_PEEK | MSG_CMSG_CLOEXEC), 1);
        assert_false(message.msg_flags & MSG_CTRUNC);
        assert_true(message.msg_controllen >= CMSG_LEN(n * sizeof(int)));
        assert_int_equal(rights.head.cmsg_type, SCM_RIGHTS);
        assert_int_equal(rights.head.cmsg_len, CMSG_LEN(n * sizeof(int)));
        memcpy(fds, CMSG_DATA(&rights.head), n * sizeof(int));
}

void manual_ring_take_fds(struct raw_client *client, int fds[2])
{
        receive(client->fd, fds, 2);
}

int receive_fd(int fd)
{
        int passed = -1;

        receive(fd, &passed, 1);
        return passed;
}

/* Hello is sent; its reply has two descriptors of a ring, and some of slots. */
static struct manual_ring *map_ring(struct raw_client *client, uint32_t bytes,
                                    uint32_t slot_segments, struct reply **ret_reply)
{
        struct manual_ring *ring = calloc(1, sizeof(*ring));
        struct reply *reply;
        void *page, *own;
        int fds[4];

        assert(ring);
        ring->client = client;
        ring->slot_segments = slot_segments;
        receive(client->fd, fds, 2 + slot_segments);
        ring->data = fds[0];
        ring->control = fds[1];
        memcpy(ring->slots, fds + 2, slot_segments * sizeof(int));
        *ret_reply = reply = raw_client_await_reply(ring->client, ring->client->last_id);
        assert_true(reply->ok);
        assert_int_equal(reply_at(reply, "segments")->via.array.size, 2 + slot_segments);
        ring->bytes = reply_uint(reply, "segments.0.bytes");
        assert_int_equal(ring->bytes, SMV_RING_HEADER + bytes);
        page = mmap(NULL, ring->bytes, PROT_READ, MAP_SHARED, ring->data, 0);
        own = mmap(NULL, sizeof(*ring->own), PROT_READ | PROT_WRITE, MAP_SHARED, ring->control, 0);
        assert_true(page != MAP_FAILED && own != MAP_FAILED);
        ring->page = page;
        ring->own = own;
        __atomic_store_n(&ring->own->wake_position, SMV_WAKE_NEVER, __ATOMIC_SEQ_CST);
        return ring;
}

struct manual_ring *manual_ring_adopt(int fd, const char *doorbell, uint32_t bytes)
{
        struct raw_client *client = raw_client_adopt(fd);
        struct reply *reply;

        manual_ring_send_hello(client, "ring", doorbell, bytes);
        return map_ring(client, bytes, 0, &reply);
}

struct manual_ring *manual_ring_open(const struct daemon_fixture *fixture, const char *doorbell,
                                     uint32_t bytes)
{
        int fd = fixture_connect(fixture);

        assert_true(fd >= 0);
        return manual_ring_adopt(fd, doorbell, bytes);
}

struct manual_ring *manual_ring_open_with_slots(const struct daemon_fixture *fixture,
                                                uint32_t slots, bool whole_rows)
{
        static const uint32_t versions[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };
        struct raw_client *client = raw_client_adopt(fixture_connect(fixture));
        struct manual_ring *ring;
        struct reply *reply;
        void *answers, *rows;

        client->leaves_ring = true;
        raw_client_send_frame(client,
                              "op=s id=u versions=I transport=s doorbell=s ring_bytes=u "
                              "ask_slots=u whole_rows=y",
                              "hello", ++client->last_id, versions, (size_t)2, "ring", "kick",
                              MANUAL_RING_BYTES, slots, whole_rows);
        ring = map_ring(client, MANUAL_RING_BYTES, whole_rows ? 2 : 1, &reply);
        ring->answers_bytes = reply_uint(reply, "segments.2.bytes");
        answers = mmap(NULL, ring->answers_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                       ring->slots[0], 0);
        assert_true(answers != MAP_FAILED);
        ring->answers = answers;
        if (!whole_rows)
                return ring;
        ring->rows_bytes = reply_uint(reply, "segments.3.bytes");
        rows = mmap(NULL, ring->rows_bytes, PROT_READ, MAP_SHARED, ring->slots[1], 0);
        assert_true(rows != MAP_FAILED);
        ring->rows = rows;
        return ring;
}

void manual_ring_disconnect(struct manual_ring *ring)
{
        ring->client = raw_client_close(ring->client);
}

struct manual_ring *manual_ring_close(struct manual_ring *ring)
{
        manual_ring_disconnect(ring);
        munmap((void *)(uintptr_t)ring->page, ring->bytes);
        munmap(ring->own, sizeof(*ring->own));
        if (ring->answers)
                munmap(ring->answers, ring->answers_bytes);
        if (ring->rows)
                munmap((void *)(uintptr_t)ring->rows, ring->rows_bytes);
        close(ring->data);
        close(ring->control);
        while (ring->slot_segments)
                close(ring->slots[--ring->slot_segments]);
        free(ring);
        return NULL;
}

/* ---- reading ---- */

static void tell(struct manual_ring *ring)
{
        __atomic_store_n(&ring->own->head, ring->head, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&ring->page->state, __ATOMIC_SEQ_CST) == SMV_RING_STALLED)
                raw_client_send(ring->client, "\0\0\0\0", 4);
}

uint32_t manual_ring_read(struct manual_ring *ring, uint32_t most)
{
        uint64_t tail = __atomic_load_n(&ring->page->tail, __ATOMIC_ACQUIRE);
        uint64_t data_bytes = ring->bytes - SMV_RING_HEADER;
        uint32_t count = 0;

        assert_true(tail - ring->head <= data_bytes);
        while (ring->head < tail && count < most) {
                uint64_t at = ring->head & (data_bytes - 1), rest = data_bytes - at, step;
                const uint8_t *record = (const uint8_t *)ring->page + SMV_RING_HEADER + at;
                struct smv_record head = { .size = 0 };

                memcpy(&head, record, rest < sizeof(head) ? rest : sizeof(head));
                step = (head.size + 7u) & ~(uint64_t)7;
                assert_true(step && step <= rest && step <= tail - ring->head);
                if (rest < sizeof(head) || head.type == SMV_RECORD_PAD) {
                        assert_int_equal(step, rest);
                } else {
                        raw_client_take_record(ring->client, record, step);
                        count++;
                }
                ring->head += step;
        }
        tell(ring);
        return count;
}

struct stream *manual_ring_await_end(struct manual_ring *ring, uint32_t id)
{
        uint64_t end = now_ms() + TIMEOUT_MS;
        struct stream *stream;

        while (!(stream = raw_client_stream(ring->client, id)) || !stream->ended) {
                if (ring->client->hung_up || now_ms() > end)
                        fail_msg("no END of %u in the ring", id);
                if (!manual_ring_read(ring, UINT32_MAX))
                        raw_client_poll(ring->client, 1);
        }
        return stream;
}

uint64_t blocks_of(int fd)
{
        struct stat file;

        assert_int_equal(fstat(fd, &file), 0);
        return (uint64_t)file.st_blocks;
}

/* ---- children ---- */

pid_t fork_child(void)
{
        pid_t pid = fork();

        assert(pid >= 0);
        if (!pid) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                setenv("CMOCKA_TEST_ABORT", "1", 1);
        }
        return pid;
}

void child_becomes(uint32_t uid)
{
        assert_int_equal(setresuid(uid, uid, uid), 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* the kernel forgets it when the uid changes */
}

void kill_child(pid_t pid)
{
        kill(pid, SIGKILL);
        assert_int_equal(await_process(pid), -SIGKILL);
}

ssize_t send_with_fds(int fd, const void *bytes, size_t count, const int *fds, size_t n)
{
        static union {
                struct cmsghdr head;
                char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
        } rights;
        struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = count };
        struct msghdr message = { .msg_iov = &part,
                                  .msg_iovlen = 1,
                                  .msg_control = &rights,
                                  .msg_controllen = CMSG_SPACE(n * sizeof(int)) };

        assert(n && n <= FDS_MAX);
        memset(&rights, 0, sizeof(rights));
        rights.head.cmsg_level = SOL_SOCKET;
        rights.head.cmsg_type = SCM_RIGHTS;
        rights.head.cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(&rights.head), fds, n * sizeof(int));
        return sendmsg(fd, &message, MSG_NOSIGNAL);
}
