/* A client of the house that maps its ring: hello with two descriptors, records out of memory. */
#ifndef TESTS_UNIT_EDGE_CLIENT_RING_H
#define TESTS_UNIT_EDGE_CLIENT_RING_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/unit/edge-client.h"

struct ringer {
        struct client client;
        int fds[4]; /* in the order in which they came */
        unsigned fd_count;
        size_t ring_bytes; /* size of the segment */
        uint8_t *ring;
        struct smv_ring_control *control;
        struct ring_reader reader;
};

/* NULL and 0: the field is left out. */
struct greeting {
        const char *transport, *doorbell;
        int64_t ring_bytes;
};

static inline void ask_ring(struct client *client, uint32_t id, struct greeting greeting)
{
        struct wire_writer writer;
        struct buffer frame;

        OPEN_FRAME(writer, frame,
                   3u + !!greeting.transport + !!greeting.doorbell + !!greeting.ring_bytes);
        put_head(&writer, "hello", id);
        wire_put_text(&writer, "versions");
        wire_put_array(&writer, 2);
        wire_put_uint(&writer, 0);
        wire_put_uint(&writer, 0);
        if (greeting.transport) {
                wire_put_text(&writer, "transport");
                wire_put_text(&writer, greeting.transport);
        }
        if (greeting.doorbell) {
                wire_put_text(&writer, "doorbell");
                wire_put_text(&writer, greeting.doorbell);
        }
        if (greeting.ring_bytes) {
                wire_put_text(&writer, "ring_bytes");
                wire_put_uint(&writer, (uint64_t)greeting.ring_bytes);
        }
        wire_end(&writer);
        send_all(client, &frame);
}

/* One read that also takes descriptors. */
static inline void fill_with_fds(struct ringer *ringer)
{
        struct client *client = &ringer->client;
        struct pollfd ask = { .fd = client->fd, .events = POLLIN };
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(4 * sizeof(int))];
        } rights;
        struct iovec part;
        struct msghdr message = { .msg_iov = &part,
                                  .msg_iovlen = 1,
                                  .msg_control = &rights,
                                  .msg_controllen = sizeof(rights) };
        const struct cmsghdr *head;
        ssize_t n;

        assert_int_equal(poll(&ask, 1, WAIT_MS), 1);
        assert_int_equal(buffer_reserve(&client->in, 65536), 0);
        part = (struct iovec){ client->in.bytes + client->in.end, 65536 };
        n = recvmsg(client->fd, &message, 0);
        assert_true(n > 0);
        assert_int_equal(message.msg_flags & MSG_CTRUNC, 0);
        client->in.end += (size_t)n;
        head = CMSG_FIRSTHDR(&message);
        if (!head)
                return;
        assert_int_equal(head->cmsg_type, SCM_RIGHTS);
        ringer->fd_count = (unsigned)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        assert_in_range(ringer->fd_count, 1, 4);
        memcpy(ringer->fds, CMSG_DATA(head), ringer->fd_count * sizeof(int));
}

static inline bool is_text(const msgpack_object *value, const char *text)
{
        return value && value->type == MSGPACK_OBJECT_STR && value->via.str.size == strlen(text) &&
               !memcmp(value->via.str.ptr, text, strlen(text));
}

/* Checks a segment's row of the reply, which must describe the descriptor that came. */
static inline size_t check_segment(const struct ringer *ringer, const msgpack_object *segments,
                                   uint32_t at, const char *kind)
{
        const msgpack_object *row = &segments->via.array.ptr[at];
        struct stat stat;

        assert_true(is_text(get(row, "kind"), kind));
        assert_int_equal(get_uint(row, "fd"), at);
        assert_int_equal(fstat(ringer->fds[at], &stat), 0);
        assert_int_equal(stat.st_size, get_uint(row, "bytes"));
        return (size_t)stat.st_size;
}

static inline void map_ring(struct ringer *ringer, const msgpack_object *segments)
{
        assert_int_equal(segments->via.array.size, 2);
        assert_int_equal(ringer->fd_count, 2);
        ringer->ring_bytes = check_segment(ringer, segments, 0, "ring");
        assert_int_equal(check_segment(ringer, segments, 1, "control"),
                         sizeof(struct smv_ring_control));
        ringer->ring = mmap(NULL, ringer->ring_bytes, PROT_READ, MAP_SHARED, ringer->fds[0], 0);
        ringer->control = mmap(NULL, sizeof(struct smv_ring_control), PROT_READ | PROT_WRITE,
                               MAP_SHARED, ringer->fds[1], 0);
        assert_true((void *)ringer->ring != MAP_FAILED && (void *)ringer->control != MAP_FAILED);
        assert_int_equal(ring_reader_init(&ringer->reader, ringer->ring, ringer->control), 0);
}

/* The code of the reply to hello.  If it is OK and offers a ring, the ring is mapped. */
static inline enum smv_code take_welcome(struct ringer *ringer, uint32_t id)
{
        struct client *client = &ringer->client;
        const msgpack_object *segments;
        enum smv_code code = SMV_OK;
        msgpack_unpacked reply;

        ringer->fd_count = 0;
        fill_with_fds(ringer);
        assert_true(next_reply(client, &reply));
        assert_int_equal(get_uint(&reply.data, "id"), id);
        segments = get(&reply.data, "segments");
        if (!get(&reply.data, "ok")) {
                code = (enum smv_code)get_uint(&reply.data, "code");
                assert_int_equal(ringer->fd_count, 0);
        } else if (is_text(get(&reply.data, "transport"), "ring")) {
                map_ring(ringer, segments);
        } else {
                assert_true(is_text(get(&reply.data, "transport"), "socket"));
                assert_int_equal(segments->via.array.size, 0);
                assert_int_equal(ringer->fd_count, 0);
        }
        drop_frame(client, &reply);
        return code;
}

static inline void ringer_open(struct edge_fixture *fixture, struct ringer *ringer)
{
        *ringer = (struct ringer){ .ring = NULL };
        client_open(fixture, &ringer->client);
}

/* Closes its socket; its mappings stay until ringer_close(). */
static inline void ringer_leave(struct ringer *ringer)
{
        close(ringer->client.fd);
        ringer->client.fd = -1;
}

static inline void ringer_close(struct ringer *ringer)
{
        client_close(&ringer->client);
        if (ringer->ring) {
                munmap(ringer->ring, ringer->ring_bytes);
                munmap(ringer->control, sizeof(*ringer->control));
        }
        for (unsigned i = 0; i < ringer->fd_count; i++)
                close(ringer->fds[i]);
}

static inline void say_hello_with(struct edge_fixture *fixture, struct ringer *ringer,
                                  struct greeting greeting)
{
        ringer_open(fixture, ringer);
        ask_ring(&ringer->client, 1, greeting);
        assert_int_equal(take_welcome(ringer, 1), SMV_OK);
}

static inline void say_hello_with_ring(struct edge_fixture *fixture, struct ringer *ringer)
{
        say_hello_with(fixture, ringer, (struct greeting){ .transport = "ring" });
        assert_non_null(ringer->ring);
}

/*
 * Sends a request, takes the reply, and returns the request as the engine, which is the test,
 * has it.
 */
static inline struct request *generate(struct edge_fixture *fixture, struct ringer *ringer,
                                       uint32_t id)
{
        uint32_t before = fixture->submits;

        ask_generate(&ringer->client, id);
        assert_int_equal(reply_code(&ringer->client, id), SMV_OK);
        ENGINE_UNTIL(fixture, fixture->submits == before + 1);
        return fixture->live[fixture->live_count - 1];
}

/* The next record of the ring, which must be there already. */
static inline const struct smv_record *ring_record(struct ringer *ringer)
{
        const struct smv_record *record;

        assert_int_equal(ring_next(&ringer->reader, &record), 0);
        return record;
}

static inline void expect_ring_end(struct ringer *ringer, uint32_t stream)
{
        const struct smv_record *record = ring_record(ringer);

        assert_int_equal(record->type, SMV_RECORD_END);
        assert_int_equal(record->stream, stream);
}

/* Whether all bytes of its ring and of its control page are zero. */
static inline bool ring_is_zero(const struct ringer *ringer)
{
        const uint8_t *control = (const uint8_t *)ringer->control;

        for (size_t i = 0; i < ringer->ring_bytes; i++)
                if (__atomic_load_n(&ringer->ring[i], __ATOMIC_RELAXED))
                        return false;
        for (size_t i = 0; i < sizeof(*ringer->control); i++)
                if (__atomic_load_n(&control[i], __ATOMIC_RELAXED))
                        return false;
        return true;
}

/* Whether nothing comes within `ms`, not even the end of the stream. */
static inline bool is_silent(const struct client *client, int ms)
{
        struct pollfd ask = { .fd = client->fd, .events = POLLIN };

        return poll(&ask, 1, ms) == 0;
}

#endif
