/* A client, a scripted daemon at its other end, and helpers that many tests use. */
#ifndef TESTS_UNIT_CLIENT_RIG_H
#define TESTS_UNIT_CLIENT_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/state.h"
#include "tests/unit/fake-daemon.h"

static struct script script; /* one test at a time */

struct wire {
        int daemon;
        struct smv_client *client;
};

static inline void begin(void)
{
        script.count = 0;
        hello(&script);
}

static inline void send_all(int fd, const uint8_t *bytes, size_t count)
{
        while (count) {
                ssize_t n = send(fd, bytes, count, MSG_NOSIGNAL);

                if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
                        return;
                assert_true(n > 0);
                bytes += n;
                count -= (size_t)n;
        }
}

static inline void send_script(struct wire *w)
{
        send_all(w->daemon, script.at, script.count);
        script.count = 0;
}

static inline int connect_fd(int fd, struct smv_client **ret_client)
{
        struct smv_connect o = { SMV_SIZE(smv_connect), .fd = fd, .use_fd = 1, .timeout_ms = 5000 };

        return smv_connect(&o, ret_client);
}

/* A client whose daemon has already said everything in the script. */
static inline void open_wire(struct wire *w)
{
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        w->daemon = pair[0];
        send_script(w);
        assert_int_equal(connect_fd(pair[1], &w->client), 0);
}

static inline void close_wire(struct wire *w)
{
        w->client = smv_close(w->client);
        if (w->daemon >= 0)
                close(w->daemon);
}

static inline void hang_up(struct wire *w)
{
        close(w->daemon);
        w->daemon = -1;
}

static inline uint32_t generate(struct smv_client *client)
{
        struct smv_generate g = { SMV_SIZE(smv_generate), .prompt = "Once" };
        uint32_t stream = 0;

        assert_int_equal(smv_generate(client, &g, &stream), 0);
        return stream;
}

static inline struct smv_event next(struct smv_client *client)
{
        struct smv_event e = { SMV_SIZE(smv_event) };

        assert_int_equal(smv_next(client, &e, 5000), 1);
        return e;
}

static inline int next_now(struct smv_client *client)
{
        struct smv_event e = { SMV_SIZE(smv_event) };

        return smv_next(client, &e, 0);
}

static inline struct smv_problem problem(const struct smv_client *client)
{
        struct smv_problem p = { SMV_SIZE(smv_problem) };

        smv_error(client, &p);
        return p;
}

static inline void expect_tokens(struct smv_client *client, uint32_t stream, uint32_t first,
                                 unsigned count, const char *words)
{
        struct smv_event e = next(client);

        assert_int_equal(e.kind, SMV_EVENT_TOKENS);
        assert_int_equal(e.stream, stream);
        assert_int_equal(e.position, 10 + first);
        assert_int_equal(e.token_count, count);
        for (unsigned i = 0; i < count; i++)
                assert_int_equal(e.tokens[i], first + i);
        assert_int_equal(e.text_bytes, strlen(words));
        assert_memory_equal(e.text, words, e.text_bytes);
}

static inline void expect_end(struct smv_client *client, uint32_t stream, enum smv_reason reason,
                              enum smv_code code)
{
        struct smv_event e = next(client);

        assert_int_equal(e.kind, SMV_EVENT_END);
        assert_int_equal(e.stream, stream);
        assert_int_equal(e.reason, reason);
        assert_int_equal(e.code, code);
}

/* All that the client has sent so far. */
static inline size_t sent_so_far(struct wire *w, uint8_t *sent, size_t size)
{
        size_t count = 0;
        ssize_t n;

        while ((n = recv(w->daemon, sent + count, size - count, MSG_DONTWAIT)) > 0)
                count += (size_t)n;
        return count;
}

static inline void story(struct script *s)
{
        s->count = 0;
        hello(s);
        doorbell(s);
        ok(s, 2);
        tokens_frame(s, 2, 0, 0, 1, "a");
        records_begin(s);
        tokens_record(s, 2, 1, 1, 3, "bcd");
        tokens_record(s, 2, 2, 4, 1, "");
        tokens_record(s, 2, 3, 5, 0, "\xc3\xa9");
        end_record(s, 2, 4, SMV_END_LENGTH, 0);
        records_end(s);
        ok_begin(s, 3, 1);
        text(s, "tokens");
        byte(s, 0x93);
        number(s, 7);
        byte(s, 8);
        byte(s, 0xcd);
        byte(s, 1);
        byte(s, 0);
        frame_end(s);
}

/* After this nothing works, nothing hangs, and SIGPIPE would have killed us. */
static inline void expect_dead(struct smv_client *client)
{
        struct smv_generate g = { SMV_SIZE(smv_generate), .prompt = "x" };
        struct smv_event e = { SMV_SIZE(smv_event) };
        struct pollfd p = { .fd = smv_fd(client), .events = POLLIN };
        const char *json;
        uint32_t stream;

        assert_int_equal(smv_next(client, &e, -1), -ENOTCONN);
        assert_int_equal(smv_generate(client, &g, &stream), -ENOTCONN);
        assert_int_equal(smv_status(client, &json), -ENOTCONN);
        assert_int_equal(smv_cancel(client, 2), -ENOTCONN);
        assert_int_equal(poll(&p, 1, 0), 1);
        assert_int_equal(problem(client).code, SMV_LOST);
}

static inline void expect_lost(struct smv_client *client, unsigned streams)
{
        uint32_t seen = 0;
        struct smv_event e;

        for (unsigned i = 0; i < streams; i++) {
                e = next(client);
                assert_int_equal(e.kind, SMV_EVENT_END);
                assert_int_equal(e.reason, SMV_END_ERROR);
                assert_int_equal(e.code, SMV_LOST);
                assert_false(seen & 1u << e.stream);
                seen |= 1u << e.stream;
        }
        expect_dead(client);
}

/* A daemon for one client, as a thread or a process: the descriptor it spoke to. */
static inline void *accept_one(void *arg)
{
        int fd = accept(*(int *)arg, NULL, NULL);

        send_all(fd, script.at, script.count);
        return (void *)(intptr_t)fd;
}

#endif
