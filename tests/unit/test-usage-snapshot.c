/* The usage snapshot: a reader sees a table as it was written, whole, and never waits for it. */
#include "daemon/ipc/usage-snapshot.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct usage_snapshot *open_board(uint32_t rows)
{
        struct usage_snapshot *usage_snapshot;

        assert_int_equal(usage_snapshot_new(rows, &usage_snapshot), 0);
        return usage_snapshot;
}

static void put(struct usage_snapshot *usage_snapshot, uint32_t uid, uint32_t blocks,
                uint32_t cached)
{
        usage_snapshot_put(usage_snapshot, &(struct usage_row){ .uid = uid,
                                                                .blocks = blocks,
                                                                .cached = cached,
                                                                .running = ~blocks,
                                                                .waiting = ~cached });
}

static void expect(const struct usage_row *row, uint32_t uid, uint32_t blocks, uint32_t cached)
{
        assert_int_equal(row->uid, uid);
        assert_int_equal(row->blocks, blocks);
        assert_int_equal(row->cached, cached);
        assert_int_equal(row->running, ~blocks);
        assert_int_equal(row->waiting, ~cached);
}

static void sees_the_table_that_was_written_last(void **state)
{
        struct usage_snapshot *usage_snapshot = open_board(3);
        const struct usage_row *rows;

        (void)state;
        assert_int_equal(usage_snapshot_capacity(usage_snapshot), 3);
        assert_int_equal(usage_snapshot_read(usage_snapshot, &rows), 0);
        usage_snapshot_begin(usage_snapshot);
        put(usage_snapshot, 7, 1, 2);
        put(usage_snapshot, 0, 3, 4);
        put(usage_snapshot, UINT32_MAX, UINT32_MAX, 0);
        usage_snapshot_end(usage_snapshot);
        assert_int_equal(usage_snapshot_read(usage_snapshot, &rows), 3);
        expect(&rows[0], 7, 1, 2);
        expect(&rows[1], 0, 3, 4);
        expect(&rows[2], UINT32_MAX, UINT32_MAX, 0);
        usage_snapshot_begin(usage_snapshot);
        put(usage_snapshot, 8, 5, 6);
        usage_snapshot_end(usage_snapshot);
        assert_int_equal(usage_snapshot_read(usage_snapshot, &rows), 1);
        expect(&rows[0], 8, 5, 6);
        usage_snapshot_begin(usage_snapshot);
        usage_snapshot_end(usage_snapshot);
        assert_int_equal(usage_snapshot_read(usage_snapshot, &rows), 0);
        assert_null(usage_snapshot_free(usage_snapshot));
        assert_null(usage_snapshot_free(NULL));
}

/* As when the engine loses its processor half-way. */
static void sees_the_previous_table_while_a_new_one_is_written(void **state)
{
        struct usage_snapshot *usage_snapshot = open_board(2);
        const struct usage_row *rows;

        (void)state;
        usage_snapshot_begin(usage_snapshot);
        put(usage_snapshot, 1, 10, 100);
        assert_int_equal(usage_snapshot_read(usage_snapshot, &rows), 0);
        usage_snapshot_end(usage_snapshot);
        assert_int_equal(usage_snapshot_read(usage_snapshot, &rows), 1);
        for (uint32_t i = 2; i < 9; i++) {
                usage_snapshot_begin(usage_snapshot);
                assert_int_equal(usage_snapshot_read(usage_snapshot, &rows), 1);
                put(usage_snapshot, i, 10 * i, 100 * i);
                put(usage_snapshot, 0, 0, 0);
                assert_int_equal(usage_snapshot_read(usage_snapshot, &rows), 1);
                expect(&rows[0], i - 1, 10 * i - 10, 100 * i - 100);
                usage_snapshot_end(usage_snapshot);
                assert_int_equal(usage_snapshot_read(usage_snapshot, &rows), 2);
                expect(&rows[1], 0, 0, 0);
                usage_snapshot_begin(usage_snapshot);
                put(usage_snapshot, i, 10 * i, 100 * i);
                usage_snapshot_end(usage_snapshot);
                assert_int_equal(usage_snapshot_read(usage_snapshot, &rows), 1);
        }
        usage_snapshot_free(usage_snapshot);
}

static void asserts_if_more_rows_are_written_than_fit(void **state)
{
        struct usage_snapshot *usage_snapshot = open_board(2);
        pid_t child = fork();
        int status;

        (void)state;
        assert_true(child >= 0);
        if (!child) {
                close(2); /* the assertion's message is expected */
                usage_snapshot_begin(usage_snapshot);
                for (uint32_t i = 0; i < 3; i++)
                        put(usage_snapshot, i, 0, 0);
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(!WIFEXITED(status) || WEXITSTATUS(status));
        usage_snapshot_free(usage_snapshot);
}

/*
 * The number of a table determines its contents: how many rows there are, and what is in each.
 * So a reader can check that each look is whole, and that tables come in order.
 */
#define ROWS  40u
#define LOOKS 200000u
/* ... of which at least this many must differ, or the two threads have hardly met */
#define FRESH 100u

struct writing {
        struct usage_snapshot *usage_snapshot;
        bool over;
};

static uint32_t rows_of(uint32_t number)
{
        return 1 + number % ROWS;
}

/* If both threads share one processor, the writer yields it within a table, and between two. */
static void *write_many(void *arg)
{
        struct writing *writing = arg;

        for (uint32_t n = 1; !__atomic_load_n(&writing->over, __ATOMIC_RELAXED); n++) {
                usage_snapshot_begin(writing->usage_snapshot);
                for (uint32_t i = 0; i < rows_of(n); i++) {
                        put(writing->usage_snapshot, n, n + i, n ^ i);
                        if (!i && n % 32 == 0)
                                sched_yield();
                }
                usage_snapshot_end(writing->usage_snapshot);
                if (n % 32 == 16)
                        sched_yield();
                for (uint32_t spin = n % 512; spin; spin--)
                        __asm__ volatile("");
        }
        return NULL;
}

static void a_reader_never_sees_rows_of_two_tables(void **state)
{
        struct writing writing = { .usage_snapshot = open_board(ROWS) };
        uint32_t last = 0, fresh = 0;
        pthread_t thread;

        (void)state;
        assert_int_equal(pthread_create(&thread, NULL, write_many, &writing), 0);
        for (uint32_t look = 0; look < LOOKS || fresh < FRESH; look++) {
                const struct usage_row *rows;
                uint32_t count = usage_snapshot_read(writing.usage_snapshot, &rows);

                if (!count && !last)
                        continue;
                assert_true(rows[0].uid >= last);
                if (rows[0].uid == last)
                        sched_yield();
                fresh += rows[0].uid > last;
                last = rows[0].uid;
                assert_int_equal(count, rows_of(last));
                for (uint32_t i = 0; i < count; i++)
                        if (rows[i].uid != last || rows[i].blocks != last + i ||
                            rows[i].cached != (last ^ i))
                                fail_msg("row %u of table %u is not its own", i, last);
        }
        __atomic_store_n(&writing.over, true, __ATOMIC_RELAXED);
        pthread_join(thread, NULL);
        usage_snapshot_free(writing.usage_snapshot);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(sees_the_table_that_was_written_last),
                cmocka_unit_test(sees_the_previous_table_while_a_new_one_is_written),
                cmocka_unit_test(asserts_if_more_rows_are_written_than_fit),
                cmocka_unit_test(a_reader_never_sees_rows_of_two_tables),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
