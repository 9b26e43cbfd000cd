/* A reel: records come out as they were put in, from any record on. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/edge/reel.h"

/* Of 16 to 79 bytes, and no two alike. */
static const struct smv_record *make_record(uint32_t sequence)
{
        static _Alignas(8) uint8_t bytes[96];
        struct smv_record *record = (struct smv_record *)bytes;
        uint32_t size = 16 + sequence * 37u % 64;

        *record = (struct smv_record){ .size = size,
                                       .stream = 5,
                                       .type = SMV_RECORD_TOKENS,
                                       .head_bytes = sizeof(*record),
                                       .sequence = sequence };
        for (uint32_t i = 16; i < size; i++)
                bytes[i] = (uint8_t)(sequence + i);
        memset(bytes + size, 0xee, sizeof(bytes) - size); /* bytes outside of the record */
        return record;
}

static void expect_from(const struct reel *reel, uint32_t from)
{
        size_t at = reel_find(reel, from);

        for (uint32_t i = from; i < reel->count; i++) {
                const struct smv_record *record = reel_at(reel, at), *same = make_record(i);
                const uint8_t *end = (const uint8_t *)record + record->size;

                assert_memory_equal(record, same, same->size);
                for (size_t j = record->size; j < reel_step(record); j++)
                        assert_int_equal(*end++, 0);
                at += reel_step(record);
        }
        assert_int_equal(at, reel->used);
}

static void every_record_is_found_by_its_number(void **state)
{
        enum { COUNT = 3 * REEL_STRIDE + 7 };
        struct reel reel;
        size_t taken;

        (void)state;
        assert_int_equal(reel_init(&reel, COUNT * 80, COUNT), 0);
        assert_int_equal(reel_find(&reel, 0), 0);
        for (uint32_t i = 0; i < COUNT; i++) {
                reel_add(&reel, make_record(i));
                if (i % 97 == 0)
                        expect_from(&reel, i / 2);
        }
        taken = reel_seal(&reel);
        assert_int_equal(taken, reel.used + 4 * sizeof(size_t));
        for (uint32_t from = 0; from <= COUNT; from++)
                expect_from(&reel, from);
        reel_deinit(&reel);
}

static void a_reel_of_one_stride_less_and_more_is_full_to_the_byte(void **state)
{
        (void)state;
        for (uint32_t count = REEL_STRIDE - 1; count <= REEL_STRIDE + 1; count++) {
                struct reel reel;
                size_t room = 0;

                for (uint32_t i = 0; i < count; i++)
                        room += reel_step(make_record(i));
                assert_int_equal(reel_init(&reel, room, count), 0);
                for (uint32_t i = 0; i < count; i++)
                        reel_add(&reel, make_record(i));
                assert_int_equal(reel.used, room);
                expect_from(&reel, 0);
                expect_from(&reel, count - 1);
                reel_seal(&reel);
                expect_from(&reel, count);
                reel_deinit(&reel);
        }
}

static void what_no_number_says_is_no_size(void **state)
{
        size_t bytes;

        (void)state;
        assert_int_equal(reel_bytes(SIZE_MAX, 1, &bytes), -EOVERFLOW);
        assert_int_equal(reel_bytes(1000, REEL_STRIDE, &bytes), 0);
        assert_int_equal(bytes, 1000 + 2 * sizeof(size_t));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_record_is_found_by_its_number),
                cmocka_unit_test(a_reel_of_one_stride_less_and_more_is_full_to_the_byte),
                cmocka_unit_test(what_no_number_says_is_no_size),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
