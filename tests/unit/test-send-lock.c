/*
 * The send lock: two threads write whole frames on one socket, and no request of either is lost.
 *
 * One thread is the loop: its frames go out in random pieces, and between the pieces it does
 * other things while it holds the send lock.  The other is the waker, with empty frames.
 */
#include "daemon/ipc/send-lock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define FRAMES     20000u
#define QUERY_ROWS 200000u
#define BODY_MAX   300u

struct world {
        struct send_lock send_lock;
        int near, far;
        atomic_uint calls;       /* the waker has called the loop */
        atomic_uint inside;      /* the number of threads that write: never both */
        atomic_uint rings_asked; /* before each ask */
        atomic_uint holds;
        atomic_bool loop_done, waker_done;

        /* the reader's */
        uint32_t frames, rings, torn;
};

static uint32_t next_random(uint64_t *state)
{
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(*state >> 33);
}

static void enter(struct world *w)
{
        assert_int_equal(atomic_fetch_add_explicit(&w->inside, 1, memory_order_relaxed), 0);
}

static void leave(struct world *w)
{
        atomic_fetch_sub_explicit(&w->inside, 1, memory_order_relaxed);
}

static void ring(struct world *w)
{
        static const uint8_t frame[4];

        assert_int_equal(send(w->near, frame, 4, MSG_NOSIGNAL), 4);
}

/* ---- the loop ---- */

static size_t make_frame(uint8_t *to, uint32_t number, uint64_t *random)
{
        uint32_t bytes = 4 + next_random(random) % (BODY_MAX - 4);

        memcpy(to, &bytes, 4);
        memcpy(to + 4, &number, 4);
        for (uint32_t i = 4; i < bytes; i++)
                to[4 + i] = (uint8_t)(number + i);
        return 4 + bytes;
}

/* Everything that waits; each frame may have become longer by another before it is out. */
static void write_pieces(struct world *w, const uint8_t *bytes, size_t count, uint64_t *random)
{
        size_t at = 0;

        enter(w);
        while (at < count) {
                size_t piece = 1 + next_random(random) % 64;

                piece = piece < count - at ? piece : count - at;
                assert_int_equal(send(w->near, bytes + at, piece, MSG_NOSIGNAL), (ssize_t)piece);
                at += piece;
                /* simulates a turn in which the socket was full */
                if (next_random(random) % 4 == 0)
                        sched_yield();
        }
}

static void let_go_and_ring(struct world *w)
{
        leave(w);
        while (send_lock_release(&w->send_lock)) {
                enter(w);
                ring(w);
                leave(w);
        }
}

/* A frame that finds the send lock taken waits for the call, and for nothing else. */
static void *be_loop(void *arg)
{
        struct world *w = arg;
        uint64_t random = 7;

        for (uint32_t n = 0; n < FRAMES; n++) {
                uint8_t frame[4 + BODY_MAX];
                size_t count = make_frame(frame, n, &random);
                unsigned calls = atomic_load(&w->calls);

                while (!send_lock_take(&w->send_lock, SEND_LOCK_CALL)) {
                        for (uint64_t spins = 0; atomic_load(&w->calls) == calls; spins++) {
                                assert_true(spins < 100000000); /* a call was lost */
                                sched_yield();
                        }
                        calls = atomic_load(&w->calls);
                }
                write_pieces(w, frame, count, &random);
                let_go_and_ring(w);
        }
        atomic_store(&w->loop_done, true);
        return NULL;
}

/* ---- the waker ---- */

static void ask_for_ring(struct world *w)
{
        bool called = false;

        atomic_fetch_add(&w->rings_asked, 1);
        if (!send_lock_take(&w->send_lock, SEND_LOCK_RING))
                return;
        enter(w);
        ring(w);
        leave(w);
        while (send_lock_release(&w->send_lock))
                called = true;
        if (called)
                atomic_fetch_add(&w->calls, 1);
}

static void *be_waker(void *arg)
{
        struct world *w = arg;
        uint64_t random = 13;

        for (uint32_t n = 0; n < QUERY_ROWS || !atomic_load(&w->loop_done); n++) {
                ask_for_ring(w);
                for (uint32_t pause = next_random(&random) % 8; pause > 4; pause--)
                        sched_yield();
        }
        atomic_store(&w->waker_done, true);
        return NULL;
}

/* ---- the reader ---- */

static bool read_all(struct world *w, void *to, size_t count)
{
        return recv(w->far, to, count, MSG_WAITALL) == (ssize_t)count;
}

static void *be_reader(void *arg)
{
        struct world *w = arg;
        uint32_t bytes;

        while (read_all(w, &bytes, 4)) {
                uint8_t body[BODY_MAX];
                uint32_t number;

                if (!bytes) {
                        w->rings++;
                        continue;
                }
                if (bytes > BODY_MAX || !read_all(w, body, bytes)) {
                        w->torn++;
                        break;
                }
                memcpy(&number, body, 4);
                w->torn += number != w->frames++;
                for (uint32_t i = 4; i < bytes; i++)
                        w->torn += body[i] != (uint8_t)(number + i);
        }
        return NULL;
}

static void tears_no_frame_and_loses_no_request(void **state)
{
        struct world w = { .frames = 0 };
        pthread_t loop, waker, reader;
        int fds[2];

        (void)state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        w.near = fds[0];
        w.far = fds[1];
        assert_int_equal(pthread_create(&reader, NULL, be_reader, &w), 0);
        assert_int_equal(pthread_create(&loop, NULL, be_loop, &w), 0);
        assert_int_equal(pthread_create(&waker, NULL, be_waker, &w), 0);
        pthread_join(loop, NULL);
        pthread_join(waker, NULL);
        shutdown(w.near, SHUT_WR);
        pthread_join(reader, NULL);
        print_message("# %u frames, %u rings for %u asked, %u calls\n", w.frames, w.rings,
                      atomic_load(&w.rings_asked), atomic_load(&w.calls));
        assert_int_equal(w.torn, 0);
        assert_int_equal(w.frames, FRAMES);
        assert_in_range(w.rings, 1, atomic_load(&w.rings_asked));
        assert_int_equal(atomic_load(&w.send_lock.word), 0); /* both have let go */
        close(w.near);
        close(w.far);
}

/*
 * The same, one request at a time: a ring must follow each request before the waker asks again,
 * whichever thread has the send lock.  The socket is its clock, so a lost ring is a time-out.
 */
static void *ask_one_by_one(void *arg)
{
        struct world *w = arg;
        uint8_t byte[4];

        for (uint32_t n = 0; n < 30000 || atomic_load(&w->holds) < 1000; n++) {
                ask_for_ring(w);
                assert_int_equal(recv(w->far, byte, 4, MSG_WAITALL), 4);
        }
        atomic_store(&w->waker_done, true);
        return NULL;
}

static void a_kick_follows_every_failed_take(void **state)
{
        const struct timeval lost = { .tv_sec = 20 };
        struct world w = { .frames = 0 };
        uint64_t random = 31;
        pthread_t waker;
        int fds[2];

        (void)state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        w.near = fds[0];
        w.far = fds[1];
        assert_int_equal(setsockopt(w.far, SOL_SOCKET, SO_RCVTIMEO, &lost, sizeof(lost)), 0);
        assert_int_equal(pthread_create(&waker, NULL, ask_one_by_one, &w), 0);
        while (!atomic_load(&w.waker_done)) {
                if (!send_lock_take(&w.send_lock, SEND_LOCK_CALL)) {
                        sched_yield();
                        continue;
                }
                enter(&w); /* and has nothing to say: only the waker's rings are read */
                atomic_fetch_add(&w.holds, 1);
                if (next_random(&random) % 2)
                        sched_yield();
                let_go_and_ring(&w);
                if (next_random(&random) % 2)
                        sched_yield();
        }
        pthread_join(waker, NULL);
        print_message("# the send lock was held %u times meanwhile\n", atomic_load(&w.holds));
        close(w.near);
        close(w.far);
}

/* ---- alone ---- */

static void release_reports_a_request_once_and_keeps_the_lock(void **state)
{
        struct send_lock send_lock = { 0 };

        (void)state;
        assert_true(send_lock_take(&send_lock, SEND_LOCK_CALL));
        assert_false(send_lock_take(&send_lock, SEND_LOCK_RING));
        assert_false(send_lock_take(&send_lock, SEND_LOCK_RING)); /* two asks, one word */
        assert_int_equal(send_lock_release(&send_lock), SEND_LOCK_RING);
        /* it is still ours while we ring */
        assert_false(send_lock_take(&send_lock, SEND_LOCK_RING));
        assert_int_equal(send_lock_release(&send_lock), SEND_LOCK_RING);
        assert_int_equal(send_lock_release(&send_lock), 0);

        /* a take that succeeds leaves no word */
        assert_true(send_lock_take(&send_lock, SEND_LOCK_RING));
        assert_false(send_lock_take(&send_lock, SEND_LOCK_CALL));
        assert_int_equal(send_lock_release(&send_lock), SEND_LOCK_CALL);
        assert_int_equal(send_lock_release(&send_lock), 0);
        assert_true(send_lock_take(&send_lock, SEND_LOCK_CALL));
        assert_int_equal(send_lock_release(&send_lock), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(release_reports_a_request_once_and_keeps_the_lock),
                cmocka_unit_test(tears_no_frame_and_loses_no_request),
                cmocka_unit_test(a_kick_follows_every_failed_take),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
