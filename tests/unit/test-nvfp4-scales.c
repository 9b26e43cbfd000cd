/* NVFP4 of GGUF (files/scales.h): tensors find their scales, and rows are combined with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/files/scales.h"

static struct tensor nvfp4(const char *name)
{
        return (struct tensor){
                .name = name, .type = ROW_NVFP4, .rows = 3, .columns = 128, .bytes = 3 * 72
        };
}

static struct tensor floats(const char *name, uint32_t columns)
{
        return (struct tensor){ .name = name, .rows = 1, .columns = columns, .bytes = columns * 4 };
}

static void nvfp4_table(struct tensor_table *table, const struct tensor *tensors, uint32_t count)
{
        assert_int_equal(tensor_table_init(table, count), 0);
        memcpy(table->tensors, tensors, count * sizeof(*tensors));
        assert_null(tensor_table_by_name(table));
}

static void nvfp4_takes_the_scale_beside_it_and_drops_the_input_scale(void **state)
{
        const struct tensor tensors[] = {
                floats("a.scale", 1),       nvfp4("a.weight"),    nvfp4("b.weight"),
                floats("a.input_scale", 1), floats("c.scale", 1),
        };
        const struct tensor *a, *b;
        struct tensor_table table;
        struct scales *scales;
        uint64_t from;

        (void)state;
        nvfp4_table(&table, tensors, 5);
        assert_int_equal(scales_join_nvfp4(&table, &scales), 0);
        assert_int_equal(table.count, 3);
        assert_non_null(tensor_table_find(&table, "c.scale"));
        a = tensor_table_find(&table, "a.weight");
        b = tensor_table_find(&table, "b.weight");
        assert_true(!a->unserved && !b->unserved);
        assert_string_equal(a->scales->tensor.name, "a.scale");
        assert_int_equal(scales_of(a, 1, 2, &from), 1);
        assert_int_equal(scales_of(b, 1, 2, &from), 0);
        assert_int_equal(tensor_taken_bytes(a), 3 * 80);
        tensor_table_deinit(&table);
        free(scales);
}

static void refuses_a_scale_of_nvfp4_that_is_not_one_float(void **state)
{
        const struct tensor tensors[] = { floats("a.scale", 2), nvfp4("a.weight"), nvfp4("b.scale"),
                                          nvfp4("b.weight") };
        struct tensor_table table;
        struct scales *scales;

        (void)state;
        nvfp4_table(&table, tensors, 4);
        assert_int_equal(scales_join_nvfp4(&table, &scales), 0);
        assert_string_equal(tensor_table_find(&table, "a.weight")->unserved,
                            "its scale 'a.scale' is not one float, but 1 x 2 of type F32");
        assert_string_equal(tensor_table_find(&table, "b.weight")->unserved,
                            "its scale 'b.scale' is not one float, but 3 x 128 of type NVFP4");
        tensor_table_deinit(&table);
        free(scales);
}

static void interleaves_the_scale_of_nvfp4_or_one(void **state)
{
        const struct tensor tensors[] = { floats("a.scale", 1), nvfp4("a.weight"),
                                          nvfp4("b.weight") };
        const float scale = 2.5f;
        struct tensor_table table;
        struct scales *scales;
        uint8_t rows[3 * 80];

        (void)state;
        nvfp4_table(&table, tensors, 3);
        assert_int_equal(scales_join_nvfp4(&table, &scales), 0);
        for (uint32_t with = 0; with < 2; with++) {
                const struct tensor *t = tensor_table_find(&table, with ? "a.weight" : "b.weight");

                for (uint32_t i = 0; i < 3 * 72; i++)
                        rows[sizeof(rows) - 3 * 72 + i] = (uint8_t)i;
                scales_interleave(t, 0, 3, with ? &scale : NULL, rows);
                for (uint32_t block = 0; block < 6; block++) {
                        float is;

                        memcpy(&is, rows + (size_t)block * 40, sizeof(is));
                        assert_true(is == (with ? scale : 1));
                        for (uint32_t i = 0; i < 36; i++)
                                assert_int_equal(rows[block * 40 + 4 + i],
                                                 (uint8_t)(block * 36 + i));
                }
        }
        tensor_table_deinit(&table);
        free(scales);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nvfp4_takes_the_scale_beside_it_and_drops_the_input_scale),
                cmocka_unit_test(refuses_a_scale_of_nvfp4_that_is_not_one_float),
                cmocka_unit_test(interleaves_the_scale_of_nvfp4_or_one),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
