/*
 * Facts that the peer relies on: how a Unix stream socket and the loop distinguish a client that
 * has finished asking (shutdown) from one that is gone (close).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/loop.h"
#include "base/sys.h"

struct pair {
        struct loop *loop;
        struct loop_watch *watch;
        struct loop_timer *timer;
        int ours, theirs;
        unsigned calls, seen;
        void (*meanwhile)(struct pair *pair);
};

static void on_fd(void *arg, unsigned mask)
{
        struct pair *pair = arg;

        pair->calls++;
        pair->seen |= mask;
        if (pair->calls > 100)
                loop_stop(pair->loop);
}

static void on_timer(void *arg)
{
        struct pair *pair = arg;

        if (!pair->meanwhile) {
                loop_stop(pair->loop);
                return;
        }
        pair->meanwhile(pair);
        pair->meanwhile = NULL;
        pair->calls = pair->seen = 0;
        loop_timer_set(pair->timer, 20000000);
}

static int set_up(void **state)
{
        struct pair *pair = calloc(1, sizeof(*pair));
        int fds[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
        pair->ours = fds[0];
        pair->theirs = fds[1];
        *state = pair;
        return 0;
}

static int tear_down(void **state)
{
        struct pair *pair = *state;

        close(pair->ours);
        if (pair->theirs >= 0)
                close(pair->theirs);
        free(pair);
        return 0;
}

static void close_theirs(struct pair *pair)
{
        close(pair->theirs);
        pair->theirs = -1;
}

/* Watches `mask` for 20 ms, and for 20 more after `meanwhile`; counts the events of the last
 * period. */
static void watch(struct pair *pair, unsigned mask, void (*meanwhile)(struct pair *pair))
{
        pair->calls = pair->seen = 0;
        pair->meanwhile = meanwhile;
        assert_int_equal(loop_new(&pair->loop), 0);
        assert_int_equal(loop_watch_new(pair->loop, pair->ours, mask, on_fd, pair, &pair->watch),
                         0);
        assert_int_equal(loop_timer_new(pair->loop, on_timer, pair, &pair->timer), 0);
        loop_timer_set(pair->timer, 20000000);
        loop_run(pair->loop);
        loop_timer_free(pair->timer);
        loop_watch_free(pair->watch);
        loop_free(pair->loop);
}

static void a_half_closed_socket_reads_zero_and_still_takes_bytes(void **state)
{
        struct pair *pair = *state;
        char byte;

        shutdown(pair->theirs, SHUT_WR);
        assert_int_equal(sys_read(pair->ours, &byte, 1), 0);
        assert_int_equal(sys_send(pair->ours, "", 0), 0);
        assert_int_equal(sys_send(pair->ours, "x", 1), 1);
        assert_int_equal(read(pair->theirs, &byte, 1), 1);
}

static void an_empty_send_to_a_closed_socket_fails(void **state)
{
        struct pair *pair = *state;
        char byte;

        close_theirs(pair);
        assert_int_equal(sys_read(pair->ours, &byte, 1), 0);
        assert_int_equal(sys_send(pair->ours, "", 0), -EPIPE);
}

static void an_empty_send_to_a_closed_socket_fails_with_bytes_unread(void **state)
{
        struct pair *pair = *state;

        assert_int_equal(write(pair->theirs, "abc", 3), 3);
        assert_int_equal(sys_send(pair->ours, "abc", 3), 3);
        close_theirs(pair);
        assert_int_equal(sys_send(pair->ours, "", 0), -EPIPE);
}

static void an_empty_send_to_a_full_socket_succeeds(void **state)
{
        struct pair *pair = *state;
        static char bytes[65536];

        while (sys_send(pair->ours, bytes, sizeof(bytes)) > 0)
                ;
        assert_int_equal(sys_send(pair->ours, "x", 1), -EAGAIN);
        assert_int_equal(sys_send(pair->ours, "", 0), 0);
}

static void read_events_repeat_after_end_of_file(void **state)
{
        struct pair *pair = *state;

        shutdown(pair->theirs, SHUT_WR);
        watch(pair, LOOP_READ, NULL);
        assert_true(pair->calls > 100);
}

static void hup_fires_once_for_a_half_close(void **state)
{
        struct pair *pair = *state;

        shutdown(pair->theirs, SHUT_WR);
        watch(pair, LOOP_HUP, NULL);
        assert_int_equal(pair->seen, LOOP_HUP);
        assert_int_equal(pair->calls, 1);
}

static void hup_fires_again_when_a_half_closed_socket_is_closed(void **state)
{
        struct pair *pair = *state;

        shutdown(pair->theirs, SHUT_WR);
        watch(pair, LOOP_HUP, close_theirs);
        assert_true(pair->seen & LOOP_HUP);
        assert_true(pair->calls >= 1 && pair->calls < 5);
}

static void hup_fires_when_a_socket_is_closed_with_bytes_unread(void **state)
{
        struct pair *pair = *state;

        shutdown(pair->theirs, SHUT_WR);
        assert_int_equal(sys_send(pair->ours, "unread", 6), 6);
        watch(pair, LOOP_HUP, close_theirs);
        assert_int_equal(pair->seen, LOOP_HUP);
        assert_true(pair->calls >= 1 && pair->calls < 5);
}

static void write_alone_fires_when_the_other_side_closes_a_full_socket(void **state)
{
        struct pair *pair = *state;
        static char bytes[65536];

        while (sys_send(pair->ours, bytes, sizeof(bytes)) > 0)
                ;
        watch(pair, LOOP_WRITE, NULL);
        assert_int_equal(pair->calls, 0);
        watch(pair, LOOP_WRITE, close_theirs);
        assert_true(pair->seen & LOOP_WRITE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(a_half_closed_socket_reads_zero_and_still_takes_bytes),
                TEST(an_empty_send_to_a_closed_socket_fails),
                TEST(an_empty_send_to_a_closed_socket_fails_with_bytes_unread),
                TEST(an_empty_send_to_a_full_socket_succeeds),
                TEST(read_events_repeat_after_end_of_file),
                TEST(hup_fires_once_for_a_half_close),
                TEST(hup_fires_again_when_a_half_closed_socket_is_closed),
                TEST(hup_fires_when_a_socket_is_closed_with_bytes_unread),
                TEST(write_alone_fires_when_the_other_side_closes_a_full_socket),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
