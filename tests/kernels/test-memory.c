/*
 * Memory that steps write to: the kernel made it before there was a step.  Counted by the kernel, as
 * faults of this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "kernels/kv.h"

#define MIB        ((size_t)1 << 20)
#define FLOATS     (8 * MIB / sizeof(float))
#define FAULTS_FEW 4 /* of the test's own; 8 MiB are 4 at least, most often thousands */

static struct kernels *open_cpu(void)
{
        const struct kernels_conf conf = {
                .rows_max = 8,
                .slots_max = 1,
                .pages_max = 64,
                .vocab_max = 64,
                .wants_max = 1,
                .threads = 2,
                .isa = "auto",
        };
        struct kernels *k;

        assert_int_equal(kernels_open("cpu", &conf, &k), 0);
        return k;
}

static long faults(void)
{
        struct rusage usage;

        assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
        return usage.ru_minflt;
}

static void no_number_that_a_step_writes_is_the_first_of_its_page(void **state)
{
        struct kernels *k = open_cpu();
        float *host = malloc(FLOATS * sizeof(*host)), *floats;
        long before;

        (void)state;
        assert_non_null(host);
        memset(host, 1, FLOATS * sizeof(*host));
        assert_int_equal(k->floats_new(k, FLOATS, &floats), 0);
        before = faults();
        assert_int_equal(k->put(k, floats, host, FLOATS), 0);
        assert_in_range(faults() - before, 0, FAULTS_FEW - 1);
        k->floats_free(k, floats);
        free(host);
        k->close(k);
}

static void no_block_that_a_step_writes_is_the_first_of_its_page(void **state)
{
        const struct kv_shape shape = {
                .layers = 4,
                .kv_heads = 4,
                .head_dim = 64,
                .pages = 128,
                .type = KV_F32,
        };
        struct kernels *k = open_cpu();
        struct kv *kv;
        long before;

        (void)state;
        assert_int_equal(k->kv_new(k, &shape, &kv), 0);
        assert_true(kv->page_bytes * shape.pages >= 8 * MIB);
        for (size_t i = 0; i < kv->page_bytes * shape.pages; i++)
                assert_int_equal(kv->pages[i], 0);
        before = faults();
        memset(kv->pages, 1, kv->page_bytes * shape.pages);
        assert_in_range(faults() - before, 0, FAULTS_FEW - 1);
        k->kv_free(k, kv);
        k->close(k);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_number_that_a_step_writes_is_the_first_of_its_page),
                cmocka_unit_test(no_block_that_a_step_writes_is_the_first_of_its_page),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
