/* Swap pages of the GPU backend: copies of steps between them and the pool. */
#include "tests/cuda/backend-fixture.h"
#include "tests/kernels/swapped-stream.h"
#include "tests/skip.h"

#include <errno.h>

static struct kernels *gpu;

static void a_stream_that_was_in_the_swap_has_the_same_bits(void **state)
{
        (void)state;
        for (int type = 0; type < KV_TYPES; type++)
                if (gpu->kv_types >> type & 1)
                        swapped_stream_has_the_same_bits(gpu, (enum kv_type)type);
}

static void chains_of_copies_in_a_step_keep_all_contents(void **state)
{
        (void)state;
        chains_of_copies_keep_all_contents(gpu, peek);
}

static void refuses_shapes_with_pages_that_have_no_number_or_no_memory(void **state)
{
        struct kv_shape shape = { 1, 1, 64, 4, KV_F16, UINT32_MAX - 3 };
        struct kv *kv;

        (void)state;
        assert_int_equal(gpu->kv_new(gpu, &shape, &kv), -EINVAL);
        shape.pages = 0;
        assert_int_equal(gpu->kv_new(gpu, &shape, &kv), -EINVAL);
        shape = (struct kv_shape){ 1u << 20, 1u << 20, 64, 1, KV_F16, 1u << 13 };
        assert_int_equal(gpu->kv_new(gpu, &shape, &kv), -ENOMEM);
        assert_null(gpu->lost(gpu));
}

/* Another pool may have what one could not get. */
static void a_swap_without_pinned_memory_is_refused_and_the_pool_is_freed(void **state)
{
        const struct kv_shape shape = { 1, 1, 64, 4, KV_F16, 4 };
        void (*refuse)(uint64_t pieces);
        struct kv *kv;

        (void)state;
        *(void **)&refuse = if_emulated("device_emu_refuse");
        if (!refuse)
                skip_because("only the emulator refuses memory on demand");
        for (uint64_t pieces = 0; pieces < 2; pieces++) {
                refuse(pieces);
                assert_int_equal(gpu->kv_new(gpu, &shape, &kv), -ENOMEM);
                refuse(UINT64_MAX);
                assert_null(gpu->lost(gpu));
        }
        assert_int_equal(gpu->kv_new(gpu, &shape, &kv), 0);
        gpu->kv_free(gpu, kv);
}

static int open_gpu(void **state)
{
        struct kernels_conf conf = cuda_conf();

        (void)state;
        random_seed();
        gpu = cuda_open(&conf);
        return 0;
}

static int close_gpu(void **state)
{
        (void)state;
        gpu->close(gpu); /* aborts if there is a pool that was not freed */
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_stream_that_was_in_the_swap_has_the_same_bits),
                cmocka_unit_test(chains_of_copies_in_a_step_keep_all_contents),
                cmocka_unit_test(refuses_shapes_with_pages_that_have_no_number_or_no_memory),
                cmocka_unit_test(a_swap_without_pinned_memory_is_refused_and_the_pool_is_freed),
        };

        return cmocka_run_group_tests(tests, open_gpu, close_gpu);
}
