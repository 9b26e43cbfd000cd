/* The table of a client's streams: it finds what a plain list finds, in a few steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/stream-table.h"

#define STREAMS 1000u
#define ACTIONS 200000u

static void add(struct stream_table *table, uint32_t id)
{
        assert_int_equal(stream_table_reserve(table, 1), 0);
        stream_table_add(table, &(struct client_stream){ .id = id, .number = id * 3ull });
}

/* How many streams a search looks at, at most. */
static size_t longest_chain(const struct stream_table *table)
{
        size_t longest = 0;

        for (size_t i = 0; i < table->size; i++) {
                size_t count = 0;

                for (uint32_t at = table->chains[i]; at; at = table->at[at - 1].next)
                        count++;
                if (count > longest)
                        longest = count;
        }
        return longest;
}

/* Ids in a row, and those of streams that outlived all others: every 64th, every 4096th ... */
static void finds_one_of_a_thousand_streams_in_a_few_steps(void **state)
{
        static const uint32_t distances[] = { 1, 2, 64, 100, 1024, 4096, 65536, 1u << 20 };

        (void)state;
        for (size_t d = 0; d < sizeof(distances) / sizeof(*distances); d++) {
                struct stream_table table = { 0 };

                for (uint32_t i = 0; i < STREAMS; i++)
                        add(&table, 7 + i * distances[d]);
                assert_int_equal(table.count, STREAMS);
                assert_true(longest_chain(&table) <= 8);
                for (uint32_t i = 0; i < STREAMS; i++)
                        assert_int_equal(stream_table_find(&table, 7 + i * distances[d])->id,
                                         7 + i * distances[d]);
                assert_null(stream_table_find(&table, 6));
                stream_table_deinit(&table);
        }
}

static void finds_nothing_in_an_empty_table(void **state)
{
        struct stream_table table = { 0 };

        (void)state;
        assert_null(stream_table_find(&table, 1));
        add(&table, 1);
        stream_table_remove(&table, stream_table_find(&table, 1));
        assert_null(stream_table_find(&table, 1));
        assert_int_equal(table.count, 0);
        stream_table_deinit(&table);
}

/* Ids come in order, and their streams end in any order. */
static void finds_what_a_list_finds_while_streams_come_and_go(void **state)
{
        static bool alive[ACTIONS + 1];
        struct stream_table table = { 0 };
        uint32_t last = 0, count = 0;

        (void)state;
        srand(11);
        for (uint32_t i = 0; i < ACTIONS; i++) {
                uint32_t id = 1 + (uint32_t)rand() % (last + 1);
                struct client_stream *found = stream_table_find(&table, id);

                assert_true(!found == !alive[id]);
                if (found) {
                        assert_int_equal(found->number, id * 3ull);
                        stream_table_remove(&table, found);
                        alive[id] = false;
                        count--;
                } else if (count < STREAMS) {
                        add(&table, ++last);
                        alive[last] = true;
                        count++;
                }
                assert_int_equal(table.count, count);
        }
        for (uint32_t id = 1; id <= last; id++)
                assert_true(!stream_table_find(&table, id) == !alive[id]);
        assert_true(longest_chain(&table) <= 8);
        stream_table_deinit(&table);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(finds_one_of_a_thousand_streams_in_a_few_steps),
                cmocka_unit_test(finds_nothing_in_an_empty_table),
                cmocka_unit_test(finds_what_a_list_finds_while_streams_come_and_go),
        };

        return cmocka_run_group_tests_name("stream-table", tests, NULL, NULL);
}
