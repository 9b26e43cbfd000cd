/*
 * Memory of the core: any allocation may fail, and then nothing is left behind.
 *
 * The test replaces malloc, so it does not run under a sanitizer, which has its own.  There,
 * `faults` runs the same check with a whole daemon.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/plan.h"
#include "daemon/core/prefix.h"
#include "daemon/core/sched.h"
#include "tests/skip.h"

static const struct sched_conf conf = {
        .blocks = 5,
        .slots = 2,
        .rows = 3,
        .context = 40,
        .depth = 2,
        .requests_max = 3,
        .channels = 2,
        .stall_timeout_ns = 1,
        .lead_ns = 1,
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STANDS_IN 0
static unsigned long asked, fails_at;
static long held;
#else
#define STANDS_IN 1

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void __libc_free(void *at);
void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void free(void *at);

static volatile unsigned long asked, fails_at; /* the n-th fails; 0: none does */
static volatile long held;

static void *give(void *at)
{
        held += at != NULL;
        return at;
}

void *malloc(size_t bytes)
{
        return ++asked == fails_at ? NULL : give(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes)
{
        return ++asked == fails_at ? NULL : give(__libc_calloc(count, bytes));
}

void free(void *at)
{
        held -= at != NULL;
        __libc_free(at);
}
#endif

/* Makes and frees one, with each of its allocations failing in turn. */
static void fail_each(int (*make)(void), void (*unmake)(void), unsigned long least)
{
        unsigned long n = 0;
        int made = -ENOMEM;
        long before;

        if (!STANDS_IN)
                skip_because("a sanitizer has the allocator");
        while (made) {
                before = held;
                asked = 0;
                fails_at = ++n;
                made = make();
                fails_at = 0;
                if (!made)
                        unmake();
                assert_true(made == -ENOMEM || (!made && n > asked));
                assert_int_equal(held, before);
        }
        assert_true(n > least); /* else it takes its memory elsewhere */
}

static struct sched *sched;
static struct plan plan;

static int make_sched(void)
{
        return sched_new(&conf, &sched);
}

static void unmake_sched(void)
{
        sched = sched_free(sched);
        assert_null(sched);
}

static int make_plan(void)
{
        return plan_init(&plan, &conf);
}

static void unmake_plan(void)
{
        plan_deinit(&plan);
        assert_null(plan.rows);
}

static void a_failed_sched_new_frees_its_memory(void **state)
{
        (void)state;
        fail_each(make_sched, unmake_sched, 15);
}

static void a_failed_plan_init_frees_its_memory(void **state)
{
        (void)state;
        fail_each(make_plan, unmake_plan, 4);
}

static void empty_objects_can_be_freed(void **state)
{
        (void)state;
        assert_null(sched_free(NULL));
        plan_deinit(NULL);
        prefix_deinit(NULL);
        kvpool_deinit(NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_failed_sched_new_frees_its_memory),
                cmocka_unit_test(a_failed_plan_init_frees_its_memory),
                cmocka_unit_test(empty_objects_can_be_freed),
        };

        return cmocka_run_group_tests_name("core-memory", tests, NULL, NULL);
}
