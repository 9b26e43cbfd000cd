/*
 * The mask thread, with guides of this test: each piece of work on one waits at a gate, so what has
 * been answered is known.  A wait that is too long never ends.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/constraint/guide.h"
#include "daemon/engine/masks.h"

#define REQUESTS 4u
#define FOREVER  UINT64_C(1000000000000000)

static sem_t gate;
static uint32_t words[REQUESTS]; /* the masks: a number that all tokens so far determine */
static struct guide guides[REQUESTS];
static struct request requests[REQUESTS];
static struct masks *masks;

/* ---- what the thread calls ---- */

static void pass_gate(void)
{
        while (sem_wait(&gate))
                ;
}

void guide_begin(struct guide *guide)
{
        pass_gate();
        guide->mask[0] = 1;
}

void guide_take(struct guide *guide, uint32_t token)
{
        pass_gate();
        guide->mask[0] = 31 * guide->mask[0] + token;
}

void guide_confirm(struct guide *guide, uint32_t count)
{
        (void)guide;
        assert_int_equal(count, 0);
}

void guide_look_ahead(struct guide *guide, const uint32_t *guesses, uint32_t count, uint32_t most)
{
        (void)guide;
        (void)guesses;
        assert_int_equal(count, 0);
        assert_int_equal(most, 0);
}

void guide_copy(struct guide *to, const struct guide *from)
{
        pass_gate();
        to->mask[0] = from->mask[0];
}

/* ---- the engine ---- */

/* The first request has made this token, and nothing is guessed. */
static void take(uint32_t token)
{
        masks_take(masks, &requests[0],
                   &(struct masks_take){ .tokens = &token, .guesses = &token, .token_count = 1 });
}

static int set_up(void **state)
{
        (void)state;
        assert_int_equal(sem_init(&gate, 0, 0), 0);
        for (uint32_t i = 0; i < REQUESTS; i++) {
                words[i] = 0;
                guides[i] = (struct guide){ .mask = &words[i] };
                requests[i] = (struct request){ .number = i, .guide = &guides[i] };
        }
        assert_int_equal(masks_start(REQUESTS, &masks), 0);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        masks = masks_join(masks);
        sem_destroy(&gate);
        return 0;
}

static void open_gate(uint32_t count)
{
        while (count--)
                sem_post(&gate);
}

/* Looks until an answer is there. */
static struct request *hear(void)
{
        struct request *request;

        while (!(request = masks_next(masks)))
                sched_yield();
        return request;
}

static void begin_in_time(struct request *request)
{
        open_gate(1);
        masks_begin(masks, request);
        masks_wait(masks, FOREVER);
        assert_ptr_equal(masks_next(masks), request);
}

/* The gate is closed, so the wait is over at once, in vain. */
static void make_late(struct request *request)
{
        masks_begin(masks, request);
        masks_wait(masks, 0);
        assert_null(masks_next(masks));
}

static void makes_the_mask_behind_each_token(void **state)
{
        (void)state;
        begin_in_time(&requests[0]);
        assert_int_equal(words[0], 1);
        for (uint32_t i = 0, word = 1; i < 100; i++) {
                open_gate(1);
                take(i);
                masks_wait(masks, FOREVER);
                assert_ptr_equal(masks_next(masks), &requests[0]);
                word = 31 * word + i;
                assert_int_equal(words[0], word);
        }
}

static void tells_each_answer_once_in_the_order_of_questions(void **state)
{
        (void)state;
        open_gate(3);
        for (uint32_t i = 0; i < 3; i++)
                masks_begin(masks, &requests[2 - i]);
        assert_true(masks_are_open(masks));
        masks_wait(masks, FOREVER);
        for (uint32_t i = 0; i < 3; i++)
                assert_ptr_equal(masks_next(masks), &requests[2 - i]);
        assert_null(masks_next(masks));
        assert_false(masks_are_open(masks));
}

static void an_answer_does_not_wait_for_those_behind_it(void **state)
{
        (void)state;
        masks_begin(masks, &requests[0]);
        masks_begin(masks, &requests[1]);
        open_gate(1);
        assert_ptr_equal(hear(), &requests[0]);
        assert_null(masks_next(masks));
        assert_true(masks_are_open(masks));
        open_gate(1);
        assert_ptr_equal(hear(), &requests[1]);
}

/* The gate stays closed: a wait for the late request would never end. */
static void waits_no_more_for_a_request_that_is_late(void **state)
{
        (void)state;
        make_late(&requests[0]);
        masks_wait(masks, FOREVER);
        assert_null(masks_next(masks));
        open_gate(1);
        assert_ptr_equal(hear(), &requests[0]);
        for (uint32_t i = 1; i < MASKS_LATE; i++) {
                take(i);
                masks_wait(masks, FOREVER);
                assert_null(masks_next(masks));
                open_gate(1);
                assert_ptr_equal(hear(), &requests[0]);
        }
        open_gate(1);
        take(1);
        masks_wait(masks, FOREVER);
        assert_ptr_equal(masks_next(masks), &requests[0]);
}

static void waits_for_others_while_a_request_is_late(void **state)
{
        (void)state;
        make_late(&requests[0]);
        open_gate(2);
        masks_begin(masks, &requests[1]);
        masks_wait(masks, FOREVER);
        assert_ptr_equal(masks_next(masks), &requests[0]);
        assert_ptr_equal(masks_next(masks), &requests[1]);
}

static void a_new_request_with_the_number_of_a_late_one_is_not_late(void **state)
{
        struct request next = requests[0];

        (void)state;
        make_late(&requests[0]);
        open_gate(1);
        assert_ptr_equal(hear(), &requests[0]);
        assert_true(masks_is_idle(masks, &requests[0]));
        begin_in_time(&next);
}

static void a_fork_follows_its_parent_through_an_open_question(void **state)
{
        (void)state;
        begin_in_time(&requests[0]);
        take(5);
        masks_fork(masks, &requests[1], &requests[0]);
        masks_fork(masks, &requests[2], &requests[0]);
        open_gate(3);
        masks_wait(masks, FOREVER);
        for (uint32_t i = 0; i < 3; i++) {
                assert_ptr_equal(masks_next(masks), &requests[i]);
                assert_int_equal(words[i], 31 + 5);
        }
}

/* Its guide is read by the thread until then, so it must not be freed. */
static void a_parent_is_idle_when_its_forks_have_begun(void **state)
{
        (void)state;
        begin_in_time(&requests[0]);
        assert_true(masks_is_idle(masks, &requests[0]));
        masks_fork(masks, &requests[1], &requests[0]);
        assert_false(masks_is_idle(masks, &requests[0]));
        assert_false(masks_is_idle(masks, &requests[1]));
        open_gate(1);
        assert_ptr_equal(hear(), &requests[1]);
        assert_true(masks_is_idle(masks, &requests[0]));
        assert_true(masks_is_idle(masks, &requests[1]));
}

static void a_request_is_not_idle_before_its_answer_is_told(void **state)
{
        (void)state;
        open_gate(1);
        masks_begin(masks, &requests[0]);
        masks_wait(masks, FOREVER);
        assert_false(masks_is_idle(masks, &requests[0]));
        assert_ptr_equal(masks_next(masks), &requests[0]);
        assert_true(masks_is_idle(masks, &requests[0]));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(makes_the_mask_behind_each_token),
                TEST(tells_each_answer_once_in_the_order_of_questions),
                TEST(an_answer_does_not_wait_for_those_behind_it),
                TEST(waits_no_more_for_a_request_that_is_late),
                TEST(waits_for_others_while_a_request_is_late),
                TEST(a_new_request_with_the_number_of_a_late_one_is_not_late),
                TEST(a_fork_follows_its_parent_through_an_open_question),
                TEST(a_parent_is_idle_when_its_forks_have_begun),
                TEST(a_request_is_not_idle_before_its_answer_is_told),
        };

        return cmocka_run_group_tests_name("masks", tests, NULL, NULL);
}
