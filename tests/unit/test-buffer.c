#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/edge/buffer.h"

static void an_empty_buffer_allocates_nothing(void **state)
{
        struct buffer buffer;

        (void)state;
        buffer_init(&buffer, 100);
        assert_int_equal(buffer_count(&buffer), 0);
        assert_null(buffer.bytes);
        assert_int_equal(buffer_append(&buffer, "abc", 3), 0);
        assert_non_null(buffer.bytes);
        buffer_take(&buffer, 3);
        assert_null(buffer.bytes);
        assert_int_equal(buffer.room, 0);
        assert_int_equal(buffer.max, 100);
        buffer_deinit(&buffer);
        buffer_deinit(NULL);
}

static void refuses_bytes_beyond_its_maximum(void **state)
{
        uint8_t bytes[5000] = { 1 };
        struct buffer buffer;

        (void)state;
        buffer_init(&buffer, sizeof(bytes));
        assert_int_equal(buffer_append(&buffer, bytes, 4999), 0);
        assert_int_equal(buffer_append(&buffer, bytes, 2), BUFFER_E_FULL);
        assert_int_equal(buffer_count(&buffer), 4999);
        assert_int_equal(buffer_append(&buffer, bytes, 1), 0);
        assert_int_equal(buffer_append(&buffer, bytes, 1), BUFFER_E_FULL);
        assert_int_equal(buffer_reserve(&buffer, SIZE_MAX), BUFFER_E_FULL);
        assert_int_equal(buffer_reserve(&buffer, 0), 0);
        assert_true(buffer.room <= buffer.max);
        buffer_take(&buffer, 10);
        assert_int_equal(buffer_append(&buffer, bytes, 10), 0);
        buffer_deinit(&buffer);
}

/* Compared with a plain array: the bytes come out as they went in, in order. */
static void returns_random_pieces_unchanged_and_in_order(void **state)
{
        static uint8_t model[1u << 16];
        size_t head = 0, tail = 0;
        uint32_t random = 12345;
        uint8_t next_byte = 0;
        struct buffer buffer;

        (void)state;
        buffer_init(&buffer, 3000);
        for (uint32_t i = 0; i < 20000; i++) {
                uint8_t piece[700];
                size_t count;

                random = random * 1664525u + 1013904223u;
                count = (random >> 8) % sizeof(piece);
                if (random >> 31) {
                        for (size_t j = 0; j < count; j++)
                                piece[j] = next_byte++;
                        if (buffer_append(&buffer, piece, count)) {
                                assert_true(tail - head + count > 3000);
                                next_byte = (uint8_t)(next_byte - count);
                                continue;
                        }
                        for (size_t j = 0; j < count; j++)
                                model[tail++ % sizeof(model)] = piece[j];
                } else {
                        if (count > buffer_count(&buffer))
                                count = buffer_count(&buffer);
                        for (size_t j = 0; j < count; j++)
                                assert_int_equal(buffer.bytes[buffer.start + j],
                                                 model[head++ % sizeof(model)]);
                        buffer_take(&buffer, count);
                }
                assert_int_equal(buffer_count(&buffer), tail - head);
                assert_true(buffer.room <= buffer.max);
        }
        assert_true(tail > 1000000);
        buffer_deinit(&buffer);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_empty_buffer_allocates_nothing),
                cmocka_unit_test(refuses_bytes_beyond_its_maximum),
                cmocka_unit_test(returns_random_pieces_unchanged_and_in_order),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
