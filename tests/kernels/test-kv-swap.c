/* Swap pages of the CPU backends: copies of steps between them and the pool. */
#include "tests/kernels/swapped-stream.h"

static void look(void *to, const void *from, size_t bytes)
{
        memcpy(to, from, bytes);
}

static void a_stream_that_was_in_the_swap_has_the_same_bits(void **state)
{
        (void)state;
        for (int type = 0; type < KV_TYPES; type++) {
                swapped_stream_has_the_same_bits(ref, (enum kv_type)type);
                for (uint32_t i = 0; i < variant_count; i++)
                        swapped_stream_has_the_same_bits(variants[i], (enum kv_type)type);
        }
}

static void chains_of_copies_in_a_step_keep_all_contents(void **state)
{
        (void)state;
        chains_of_copies_keep_all_contents(ref, look);
        for (uint32_t i = 0; i < variant_count; i++)
                chains_of_copies_keep_all_contents(variants[i], look);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_stream_that_was_in_the_swap_has_the_same_bits),
                cmocka_unit_test(chains_of_copies_in_a_step_keep_all_contents),
        };

        return cmocka_run_group_tests(tests, variants_open, variants_close);
}
