/* The board: a reader sees a table as it was written, whole, and never waits for it. */
#include "daemon/board.h"

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

static struct board *open_board(uint32_t rows)
{
        struct board *board;

        assert_int_equal(board_new(rows, &board), 0);
        return board;
}

static void put(struct board *board, uint32_t uid, uint32_t blocks, uint32_t cached)
{
        board_put(board, &(struct board_row){ .uid = uid, .blocks = blocks, .cached = cached });
}

static void expect(const struct board_row *row, uint32_t uid, uint32_t blocks, uint32_t cached)
{
        assert_int_equal(row->uid, uid);
        assert_int_equal(row->blocks, blocks);
        assert_int_equal(row->cached, cached);
}

static void what_was_written_last_is_seen(void **state)
{
        struct board *board = open_board(3);
        const struct board_row *rows;

        (void)state;
        assert_int_equal(board_room(board), 3);
        assert_int_equal(board_look(board, &rows), 0);
        board_begin(board);
        put(board, 7, 1, 2);
        put(board, 0, 3, 4);
        put(board, UINT32_MAX, UINT32_MAX, 0);
        board_end(board);
        assert_int_equal(board_look(board, &rows), 3);
        expect(&rows[0], 7, 1, 2);
        expect(&rows[1], 0, 3, 4);
        expect(&rows[2], UINT32_MAX, UINT32_MAX, 0);
        board_begin(board);
        put(board, 8, 5, 6);
        board_end(board);
        assert_int_equal(board_look(board, &rows), 1);
        expect(&rows[0], 8, 5, 6);
        board_begin(board);
        board_end(board);
        assert_int_equal(board_look(board, &rows), 0);
        assert_null(board_free(board));
        assert_null(board_free(NULL));
}

/* As when the engine loses its processor half-way. */
static void while_it_is_being_written_the_last_whole_one_is_seen(void **state)
{
        struct board *board = open_board(2);
        const struct board_row *rows;

        (void)state;
        board_begin(board);
        put(board, 1, 10, 100);
        assert_int_equal(board_look(board, &rows), 0);
        board_end(board);
        assert_int_equal(board_look(board, &rows), 1);
        for (uint32_t i = 2; i < 9; i++) {
                board_begin(board);
                assert_int_equal(board_look(board, &rows), 1);
                put(board, i, 10 * i, 100 * i);
                put(board, 0, 0, 0);
                assert_int_equal(board_look(board, &rows), 1);
                expect(&rows[0], i - 1, 10 * i - 10, 100 * i - 100);
                board_end(board);
                assert_int_equal(board_look(board, &rows), 2);
                expect(&rows[1], 0, 0, 0);
                board_begin(board);
                put(board, i, 10 * i, 100 * i);
                board_end(board);
                assert_int_equal(board_look(board, &rows), 1);
        }
        board_free(board);
}

static void a_row_more_than_there_are_is_a_bug(void **state)
{
        struct board *board = open_board(2);
        pid_t child = fork();
        int status;

        (void)state;
        assert_true(child >= 0);
        if (!child) {
                close(2); /* the assertion's message is expected */
                board_begin(board);
                for (uint32_t i = 0; i < 3; i++)
                        put(board, i, 0, 0);
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(!WIFEXITED(status) || WEXITSTATUS(status));
        board_free(board);
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
        struct board *board;
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
                board_begin(writing->board);
                for (uint32_t i = 0; i < rows_of(n); i++) {
                        put(writing->board, n, n + i, n ^ i);
                        if (!i && n % 32 == 0)
                                sched_yield();
                }
                board_end(writing->board);
                if (n % 32 == 16)
                        sched_yield();
                for (uint32_t spin = n % 512; spin; spin--)
                        __asm__ volatile("");
        }
        return NULL;
}

static void every_look_is_of_one_table(void **state)
{
        struct writing writing = { .board = open_board(ROWS) };
        uint32_t last = 0, fresh = 0;
        pthread_t thread;

        (void)state;
        assert_int_equal(pthread_create(&thread, NULL, write_many, &writing), 0);
        for (uint32_t look = 0; look < LOOKS || fresh < FRESH; look++) {
                const struct board_row *rows;
                uint32_t count = board_look(writing.board, &rows);

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
        board_free(writing.board);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_was_written_last_is_seen),
                cmocka_unit_test(while_it_is_being_written_the_last_whole_one_is_seen),
                cmocka_unit_test(a_row_more_than_there_are_is_a_bug),
                cmocka_unit_test(every_look_is_of_one_table),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
