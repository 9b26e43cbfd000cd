/* A client with a ring, and at its other end a daemon made of the writer's half and a socket. */
#ifndef TESTS_UNIT_CLIENT_RING_RIG_H
#define TESTS_UNIT_CLIENT_RING_RIG_H

#include "tests/unit/client-rig.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "shm/doorbell.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* The contents of hello's reply and the descriptors with it; a test may corrupt them. */
struct offer {
        uint64_t ring_bytes, control_bytes; /* as hello's reply says */
        unsigned ring_at, control_at;       /* which descriptor is which */
        int fds[32];
        unsigned fd_count;
};

struct ringer {
        struct wire wire;
        int ring_fd, control_fd; /* the daemon's own, for writing */
        uint64_t data_bytes;
        void *ring;
        struct smv_ring_control *control;
        struct ring_writer writer;
        struct doorbell bell;
        struct offer offer;
        enum smv_doorbell doorbell;
        uint64_t end;      /* the position behind the last END */
        uint32_t sequence; /* of stream 2 */
        unsigned rung;
};

static inline int make_segment(size_t bytes, int seals)
{
        int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
        return fd;
}

static inline int read_only(int fd)
{
        char path[64];
        int again;

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        again = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(again >= 0);
        return again;
}

static inline void *map_all(int fd, size_t bytes)
{
        void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        assert_ptr_not_equal(at, MAP_FAILED);
        return at;
}

static inline void make_ring(struct ringer *r, uint64_t data_bytes)
{
        size_t bytes = ring_segment_bytes(data_bytes);

        *r = (struct ringer){ .data_bytes = data_bytes };
        r->ring_fd = make_segment(bytes, SEALS);
        r->control_fd = make_segment(sizeof(struct smv_ring_control), SEALS);
        r->ring = map_all(r->ring_fd, bytes);
        r->control = map_all(r->control_fd, sizeof(struct smv_ring_control));
        ring_writer_init(&r->writer, r->ring, r->control, data_bytes);
        r->bell.control = r->control;
        r->offer = (struct offer){
                .ring_bytes = bytes,
                .control_bytes = sizeof(struct smv_ring_control),
                .control_at = 1,
                .fds = { read_only(r->ring_fd), fcntl(r->control_fd, F_DUPFD_CLOEXEC, 0) },
                .fd_count = 2,
        };
}

static inline void segment(struct script *s, const char *kind, unsigned at, uint64_t bytes)
{
        byte(s, 0x83);
        text(s, "kind");
        text(s, kind);
        text(s, "fd");
        number(s, at);
        text(s, "bytes");
        number(s, (uint32_t)bytes);
}

static inline void hello_ring(struct script *s, const struct offer *offer)
{
        ok_begin(s, 1, 4);
        text(s, "version");
        number(s, 0);
        text(s, "frame_bytes");
        number(s, 8u << 20);
        text(s, "transport");
        text(s, "ring");
        text(s, "segments");
        byte(s, 0x93);
        segment(s, "from the future", 1, 4096);
        segment(s, "ring", offer->ring_at, offer->ring_bytes);
        segment(s, "control", offer->control_at, offer->control_bytes);
        frame_end(s);
}

static inline void send_fds(int to, const void *bytes, size_t count, const int *fds, unsigned n)
{
        union {
                struct cmsghdr first;
                char bytes[CMSG_SPACE(32 * sizeof(int))];
        } control = { 0 };
        struct iovec part = { (void *)(uintptr_t)bytes, count };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

        if (n) {
                message.msg_control = &control;
                message.msg_controllen = CMSG_SPACE(n * sizeof(int));
                control.first.cmsg_level = SOL_SOCKET;
                control.first.cmsg_type = SCM_RIGHTS;
                control.first.cmsg_len = CMSG_LEN(n * sizeof(int));
                memcpy(CMSG_DATA(&control.first), fds, n * sizeof(int));
        }
        assert_int_equal(sendmsg(to, &message, MSG_NOSIGNAL), count);
}

/* Sends the reply, with its descriptors on the first byte, and closes the daemon's copies. */
static inline void send_offer(struct ringer *r, int to)
{
        struct offer *offer = &r->offer;

        script.count = 0;
        hello_ring(&script, offer);
        send_fds(to, script.at, script.count, offer->fds, offer->fd_count);
        script.count = 0;
        while (offer->fd_count)
                close(offer->fds[--offer->fd_count]);
}

static inline int connect_ring(struct ringer *r, struct smv_connect *o)
{
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        r->wire.daemon = pair[0];
        send_offer(r, pair[0]);
        o->size = sizeof(*o);
        o->fd = pair[1];
        o->use_fd = 1;
        o->timeout_ms = 5000;
        r->doorbell = o->doorbell;
        return smv_connect(o, &r->wire.client);
}

/* Opens a client with a ring and streams, whose ids count from 2.  Its requests have been read. */
static inline void open_ring(struct ringer *r, uint64_t data_bytes, unsigned streams,
                             struct smv_connect o)
{
        uint8_t sent[4096];

        make_ring(r, data_bytes);
        assert_int_equal(connect_ring(r, &o), 0);
        assert_int_equal(smv_transport_used(r->wire.client), SMV_TRANSPORT_RING);
        for (unsigned i = 0; i < streams; i++) {
                ok(&script, 2 + i);
                send_script(&r->wire);
                assert_int_equal(generate(r->wire.client), 2 + i);
        }
        assert_true(sent_so_far(&r->wire, sent, sizeof(sent)) > 0);
}

static inline void close_ring(struct ringer *r)
{
        close_wire(&r->wire);
        munmap(r->ring, ring_segment_bytes(r->data_bytes));
        munmap(r->control, sizeof(struct smv_ring_control));
        close(r->ring_fd);
        close(r->control_fd);
}

/* The daemon's side. */

static inline int try_tokens(struct ringer *r, uint32_t stream, uint32_t sequence, uint32_t first,
                             unsigned count, const char *words)
{
        struct smv_record_tokens t = {
                .position = 10 + first,
                .token_count = (uint16_t)count,
                .text_bytes = (uint16_t)strlen(words),
        };
        void *at;
        int outcome = ring_put(&r->writer, SMV_RECORD_TOKENS, 0, stream, sequence,
                               sizeof(t) + 4 * count + strlen(words), &at);

        if (outcome)
                return outcome;
        memcpy(at, &t, sizeof(t));
        for (unsigned i = 0; i < count; i++)
                memcpy((char *)at + sizeof(t) + 4 * i, &(uint32_t){ first + i }, 4);
        memcpy((char *)at + sizeof(t) + 4 * count, words, strlen(words));
        return 0;
}

/* Puts one token of stream 2, which is not published yet. */
static inline void put_token(struct ringer *r, const char *words)
{
        assert_int_equal(try_tokens(r, 2, r->sequence, r->sequence, 1, words), 0);
        r->sequence++;
}

static inline int try_end(struct ringer *r, uint32_t stream, uint32_t sequence)
{
        struct smv_record_end end = { .reason = SMV_END_LENGTH, .output_tokens = sequence };
        void *at;
        int outcome = ring_put(&r->writer, SMV_RECORD_END, 0, stream, sequence, sizeof(end), &at);

        if (outcome)
                return outcome;
        memcpy(at, &end, sizeof(end));
        r->end = r->writer.tail;
        return 0;
}

/* Publishes the records; true if the reader is to be woken. */
static inline bool publish(struct ringer *r)
{
        struct doorbell_news news;
        uint64_t room;

        assert_true(ring_publish(&r->writer));
        /* as the engine does in each step */
        assert_int_equal(ring_free_bytes(&r->writer, 128, &room), 0);
        news = (struct doorbell_news){ r->writer.tail, r->end, doorbell_wake_level(&r->writer) };
        return doorbell_is_due(&r->bell, &news);
}

static inline void ring_bell(struct ringer *r)
{
        r->rung++;
        if (r->doorbell == SMV_DOORBELL_KICK)
                send_all(r->wire.daemon, (const uint8_t *)"\0\0\0", 4);
        else
                syscall(SYS_futex, &r->writer.page->tail, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static inline void show(struct ringer *r)
{
        if (publish(r))
                ring_bell(r);
}

static inline bool is_asleep(const struct ringer *r)
{
        return __atomic_load_n(&r->control->wake_position, __ATOMIC_SEQ_CST) != SMV_WAKE_NEVER;
}

static inline unsigned open_fds(void)
{
        unsigned count = 0;

        for (int fd = 0; fd < 256; fd++)
                count += fcntl(fd, F_GETFD) >= 0;
        return count;
}

#endif
