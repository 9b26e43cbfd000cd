/* A record log: records come out as they were put in, from any record on. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/edge/record-log.h"

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

static void expect_from(const struct record_log *log, uint32_t from)
{
        size_t at = record_log_find(log, from);

        for (uint32_t i = from; i < log->count; i++) {
                const struct smv_record *record = record_log_at(log, at), *same = make_record(i);
                const uint8_t *end = (const uint8_t *)record + record->size;

                assert_memory_equal(record, same, same->size);
                for (size_t j = record->size; j < record_log_step(record); j++)
                        assert_int_equal(*end++, 0);
                at += record_log_step(record);
        }
        assert_int_equal(at, log->used);
}

static void finds_every_record_by_its_number(void **state)
{
        enum { COUNT = 3 * RECORD_LOG_STRIDE + 7 };
        struct record_log log;

        (void)state;
        assert_int_equal(record_log_init(&log, COUNT * 80, COUNT), 0);
        assert_int_equal(record_log_find(&log, 0), 0);
        for (uint32_t i = 0; i < COUNT; i++) {
                record_log_add(&log, make_record(i));
                if (i % 97 == 0)
                        expect_from(&log, i / 2);
        }
        record_log_seal(&log);
        assert_int_equal(record_log_used(&log), log.used + 4 * sizeof(size_t));
        for (uint32_t from = 0; from <= COUNT; from++)
                expect_from(&log, from);
        record_log_deinit(&log);
}

static void a_log_of_about_one_stride_uses_exactly_its_bytes(void **state)
{
        (void)state;
        for (uint32_t count = RECORD_LOG_STRIDE - 1; count <= RECORD_LOG_STRIDE + 1; count++) {
                struct record_log log;
                size_t room = 0;

                for (uint32_t i = 0; i < count; i++)
                        room += record_log_step(make_record(i));
                assert_int_equal(record_log_init(&log, room, count), 0);
                for (uint32_t i = 0; i < count; i++)
                        record_log_add(&log, make_record(i));
                assert_int_equal(log.used, room);
                expect_from(&log, 0);
                expect_from(&log, count - 1);
                record_log_seal(&log);
                expect_from(&log, count);
                record_log_deinit(&log);
        }
}

/* The room that was taken in advance does not count. */
static void counts_only_what_its_records_have_used(void **state)
{
        struct record_log log;

        (void)state;
        assert_int_equal(record_log_init(&log, 1 << 20, 1 << 14), 0);
        assert_int_equal(record_log_used(&log), sizeof(size_t));
        for (uint32_t i = 0; i < RECORD_LOG_STRIDE; i++)
                record_log_add(&log, make_record(i));
        assert_int_equal(record_log_used(&log), log.used + 2 * sizeof(size_t));
        record_log_deinit(&log);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(finds_every_record_by_its_number),
                cmocka_unit_test(a_log_of_about_one_stride_uses_exactly_its_bytes),
                cmocka_unit_test(counts_only_what_its_records_have_used),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
