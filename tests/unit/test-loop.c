/* The loop: what a handler may do to watches and timers, its own included. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/loop.h"
#include "base/sys.h"

#define PAIRS 4

struct world {
        struct loop *loop;
        struct loop_timer *end, *timer;
        struct loop_watch *watches[PAIRS];
        int ours[PAIRS], theirs[PAIRS];
        unsigned calls, timer_calls, seen;
};

static void on_end(void *arg)
{
        loop_stop(((struct world *)arg)->loop);
}

static int set_up(void **state)
{
        struct world *world = calloc(1, sizeof(*world));

        assert_int_equal(loop_new(&world->loop), 0);
        assert_int_equal(loop_timer_new(world->loop, on_end, world, &world->end), 0);
        for (uint32_t i = 0; i < PAIRS; i++) {
                int fds[2];

                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
                world->ours[i] = fds[0];
                world->theirs[i] = fds[1];
        }
        *state = world;
        return 0;
}

static int tear_down(void **state)
{
        struct world *world = *state;

        loop_timer_free(world->end);
        loop_timer_free(world->timer);
        for (uint32_t i = 0; i < PAIRS; i++) {
                loop_watch_free(world->watches[i]);
                close(world->ours[i]);
                close(world->theirs[i]);
        }
        loop_free(world->loop);
        free(world);
        return 0;
}

static void run_for(struct world *world, uint64_t ms)
{
        assert_int_equal(loop_timer_set(world->end, ms * 1000000), 0);
        assert_int_equal(loop_run(world->loop), 0);
}

static void watch_all(struct world *world, unsigned mask, loop_fd_handler handler)
{
        for (uint32_t i = 0; i < PAIRS; i++)
                assert_int_equal(loop_watch_new(world->loop, world->ours[i], mask, handler, world,
                                                &world->watches[i]),
                                 0);
}

static void free_all(void *arg, unsigned mask)
{
        struct world *world = arg;

        (void)mask;
        world->calls++;
        for (uint32_t i = 0; i < PAIRS; i++)
                world->watches[i] = loop_watch_free(world->watches[i]);
}

static void a_handler_may_free_its_own_watch_and_pending_ones(void **state)
{
        struct world *world = *state;

        watch_all(world, LOOP_READ, free_all);
        for (uint32_t i = 0; i < PAIRS; i++)
                assert_int_equal(write(world->theirs[i], "x", 1), 1);
        run_for(world, 20);
        assert_int_equal(world->calls, 1);
}

static void watch_nothing(void *arg, unsigned mask)
{
        struct world *world = arg;

        world->calls++;
        world->seen |= mask;
        for (uint32_t i = 0; i < PAIRS; i++)
                assert_int_equal(loop_watch_set(world->watches[i], 0), 0);
}

static void an_empty_event_mask_takes_effect_in_the_same_turn(void **state)
{
        struct world *world = *state;

        watch_all(world, LOOP_READ | LOOP_WRITE, watch_nothing);
        assert_int_equal(write(world->theirs[0], "x", 1), 1);
        run_for(world, 20);
        assert_int_equal(world->calls, 1);
        assert_true(world->seen & LOOP_WRITE);
}

static void read_one(void *arg, unsigned mask)
{
        struct world *world = arg;
        char byte;

        world->seen |= mask;
        world->calls++;
        assert_int_equal(read(world->ours[0], &byte, 1), 1);
}

static void a_watch_is_level_triggered(void **state)
{
        struct world *world = *state;

        assert_int_equal(loop_watch_new(world->loop, world->ours[0], LOOP_READ, read_one, world,
                                        &world->watches[0]),
                         0);
        assert_int_equal(write(world->theirs[0], "12345", 5), 5);
        run_for(world, 20);
        assert_int_equal(world->calls, 5);
        assert_int_equal(world->seen, LOOP_READ);
}

static void on_timer_freeing(void *arg)
{
        struct world *world = arg;

        world->timer_calls++;
        world->timer = loop_timer_free(world->timer);
}

static void on_timer_again(void *arg)
{
        struct world *world = arg;

        if (++world->timer_calls < 5)
                assert_int_equal(loop_timer_set(world->timer, 1000000), 0);
}

static void a_timer_may_free_itself(void **state)
{
        struct world *world = *state;

        assert_int_equal(loop_timer_new(world->loop, on_timer_freeing, world, &world->timer), 0);
        assert_int_equal(loop_timer_set(world->timer, 0), 0);
        run_for(world, 20);
        assert_int_equal(world->timer_calls, 1);
}

static void a_timer_fires_once_each_time_it_is_set(void **state)
{
        struct world *world = *state;

        assert_int_equal(loop_timer_new(world->loop, on_timer_again, world, &world->timer), 0);
        assert_int_equal(loop_timer_set(world->timer, 1000000), 0);
        run_for(world, 50);
        assert_int_equal(world->timer_calls, 5);
}

static void a_timer_can_be_moved_and_cleared(void **state)
{
        struct world *world = *state;
        uint64_t began_ns = sys_clock_ns();

        assert_int_equal(loop_timer_new(world->loop, on_timer_again, world, &world->timer), 0);
        assert_int_equal(loop_timer_set(world->timer, 1000000), 0);
        loop_timer_clear(world->timer);
        assert_int_equal(loop_timer_set(world->end, 1000000), 0);
        run_for(world, 30);
        assert_int_equal(world->timer_calls, 0);
        assert_true(sys_clock_ns() - began_ns >= 29000000);
}

static void a_timer_never_fires_early(void **state)
{
        struct world *world = *state;

        for (uint64_t ms = 1; ms < 20; ms += 6) {
                uint64_t began_ns = sys_clock_ns();
                struct loop *loop;
                struct loop_timer *timer;
                struct world inner = { 0 };

                assert_int_equal(loop_new(&loop), 0);
                inner.loop = loop;
                assert_int_equal(loop_timer_new(loop, on_end, &inner, &timer), 0);
                assert_int_equal(loop_timer_set(timer, ms * 1000000), 0);
                assert_int_equal(loop_run(loop), 0);
                /* the kernel's coarse clock ticks in between */
                assert_true(sys_clock_ns() - began_ns + 4000000 >= ms * 1000000);
                loop_timer_free(timer);
                loop_free(loop);
        }
        (void)world;
}

static void a_stop_before_the_run_takes_effect(void **state)
{
        struct world *world = *state;

        loop_stop(world->loop);
        assert_int_equal(loop_run(world->loop), 0);
}

static void on_usr1(void *arg)
{
        struct world *world = arg;

        world->calls++;
        loop_stop(world->loop);
}

static void a_signal_calls_its_handler(void **state)
{
        struct world *world = *state;

        assert_int_equal(loop_signal(world->loop, SIGUSR1, on_usr1, world), 0);
        kill(getpid(), SIGUSR1);
        run_for(world, 1000);
        assert_int_equal(world->calls, 1);
}

static void note_order(void *arg)
{
        struct world *world = arg;

        assert_int_equal(world->calls, 1); /* behind the handler that posted it */
        world->timer_calls++;
}

static struct loop_task *task, *other_task;

static void post(void *arg, unsigned mask)
{
        read_one(arg, mask);
        loop_task_post(task);
        loop_task_post(task);
        assert_int_equal(((struct world *)arg)->timer_calls, 0);
}

static void a_task_runs_once_at_the_end_of_its_turn(void **state)
{
        struct world *world = *state;

        assert_int_equal(loop_task_new(world->loop, note_order, world, &task), 0);
        assert_int_equal(loop_watch_new(world->loop, world->ours[0], LOOP_READ, post, world,
                                        &world->watches[0]),
                         0);
        assert_int_equal(write(world->theirs[0], "1", 1), 1);
        run_for(world, 20);
        assert_int_equal(world->calls, 1);
        assert_int_equal(world->timer_calls, 1);
        task = loop_task_free(task);
}

static void post_again(void *arg)
{
        struct world *world = arg;

        if (world->timer_calls++ < 100)
                loop_task_post(task);
        else
                loop_stop(world->loop);
}

/* Level-triggered events have their handler called between the tasks. */
static void a_task_may_post_itself_and_the_loop_does_not_wait(void **state)
{
        struct world *world = *state;

        assert_int_equal(loop_task_new(world->loop, post_again, world, &task), 0);
        assert_int_equal(loop_watch_new(world->loop, world->ours[0], LOOP_READ, read_one, world,
                                        &world->watches[0]),
                         0);
        assert_int_equal(write(world->theirs[0], "1", 1), 1);
        loop_task_post(task); /* before the loop runs */
        assert_int_equal(loop_run(world->loop), 0);
        assert_int_equal(world->timer_calls, 101);
        assert_int_equal(world->calls, 1);
        task = loop_task_free(task);
}

static void free_both(void *arg)
{
        struct world *world = arg;

        world->timer_calls++;
        task = loop_task_free(task);
        other_task = loop_task_free(other_task);
}

static void a_task_may_free_itself_and_pending_ones(void **state)
{
        struct world *world = *state;

        assert_int_equal(loop_task_new(world->loop, free_both, world, &task), 0);
        assert_int_equal(loop_task_new(world->loop, free_both, world, &other_task), 0);
        loop_task_post(task);
        loop_task_post(other_task);
        run_for(world, 20);
        assert_int_equal(world->timer_calls, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        const struct CMUnitTest tests[] = {
                TEST(a_handler_may_free_its_own_watch_and_pending_ones),
                TEST(an_empty_event_mask_takes_effect_in_the_same_turn),
                TEST(a_watch_is_level_triggered),
                TEST(a_timer_may_free_itself),
                TEST(a_timer_fires_once_each_time_it_is_set),
                TEST(a_timer_can_be_moved_and_cleared),
                TEST(a_timer_never_fires_early),
                TEST(a_stop_before_the_run_takes_effect),
                TEST(a_signal_calls_its_handler),
                TEST(a_task_runs_once_at_the_end_of_its_turn),
                TEST(a_task_may_post_itself_and_the_loop_does_not_wait),
                TEST(a_task_may_free_itself_and_pending_ones),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
