/*
 * The kernel must have provided the memory that steps write to before the first step.  The
 * tests count page faults of this process as the kernel reports them.  They also check that
 * pieces of memory are not shared.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernels/kv.h"
#include "kernels/memory.h"

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

static void steps_cause_no_page_faults_in_float_buffers(void **state)
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

static void a_pool_that_is_backed_causes_no_page_faults(void **state)
{
        const struct kv_shape shape = {
                .layers = 4,
                .kv_heads = 4,
                .head_dim = 64,
                .pages = 1024,
                .type = KV_F32,
        };
        struct kernels *k = open_cpu();
        size_t at = 0, parts = 1;
        struct kv *kv;
        long before;

        (void)state;
        assert_int_equal(k->kv_new(k, &shape, &kv), 0);
        kv->pages[0] = kv->pages[5 * MIB] = 9; /* what is there stays */
        while (k->kv_back(k, kv, &at))
                parts++;
        assert_int_equal(kv->pages[0] + kv->pages[5 * MIB], 18);
        kv->pages[0] = kv->pages[5 * MIB] = 0;
        assert_int_equal(at, kv->page_bytes * shape.pages);
        assert_true(parts > 1);
        assert_true(kv->page_bytes * shape.pages >= 8 * MIB);
        for (size_t i = 0; i < kv->page_bytes * shape.pages; i++)
                assert_int_equal(kv->pages[i], 0);
        before = faults();
        memset(kv->pages, 1, kv->page_bytes * shape.pages);
        assert_in_range(faults() - before, 0, FAULTS_FEW - 1);
        k->kv_free(k, kv);
        k->close(k);
}

/* ---- pieces ---- */

static const size_t sizes[] = { 1,           64,           100,      MIB - 1,         MIB,
                                MIB + 1,     3 * MIB + 77, 2 * MIB,  31 * MIB,        MIB,
                                32 * MIB,    5 * MIB,      30 * MIB, 20 * MIB + 4096, 4 * MIB,
                                6 * MIB - 1, 33 * MIB };

#define SIZES (sizeof(sizes) / sizeof(*sizes))

static void is_all(const unsigned char *piece, size_t bytes, unsigned char what)
{
        assert_int_equal(piece[0], what);
        assert_int_equal(memcmp(piece, piece + 1, bytes - 1), 0);
}

static void an_allocation_is_zeroed_and_overlaps_no_other(void **state)
{
        unsigned char *pieces[SIZES] = { NULL };

        (void)state;
        for (size_t turn = 0; turn < 5; turn++) {
                for (size_t i = 0; i < SIZES; i++) {
                        if (pieces[i])
                                continue;
                        pieces[i] = memory_new(1, sizes[i]);
                        assert_non_null(pieces[i]);
                        assert_int_equal((uintptr_t)pieces[i] % MEMORY_ALIGN, 0);
                        is_all(pieces[i], sizes[i], 0);
                        memset(pieces[i], (int)i + 1, sizes[i]);
                }
                for (size_t i = 0; i < SIZES; i++)
                        is_all(pieces[i], sizes[i], (unsigned char)(i + 1));
                for (size_t i = 0; i < SIZES; i++)
                        if (i * 7 % 5 != turn)
                                pieces[i] = memory_free(pieces[i]);
        }
        for (size_t i = 0; i < SIZES; i++)
                pieces[i] = memory_free(pieces[i]);
        assert_null(memory_new(SIZE_MAX / 2, 3));
        assert_null(memory_new(1, SIZE_MAX));
}

static size_t resident(void)
{
        size_t all, held;
        FILE *f = fopen("/proc/self/statm", "r");

        assert_non_null(f);
        assert_int_equal(fscanf(f, "%zu %zu", &all, &held), 2);
        fclose(f);
        return held * (size_t)sysconf(_SC_PAGESIZE);
}

static void freeing_memory_returns_it_to_the_kernel_and_keeps_its_neighbour(void **state)
{
        unsigned char *first = memory_new(1, 12 * MIB), *second = memory_new(1, 12 * MIB);
        size_t before;

        (void)state;
        assert_true(first && second);
        memset(first, 1, 12 * MIB);
        memset(second, 2, 12 * MIB);
        before = resident();
        memory_free(first);
        assert_in_range(before - resident(), 10 * MIB, 14 * MIB);
        is_all(second, 12 * MIB, 2);
        memory_free(second);
        assert_in_range(before - resident(), 20 * MIB, 28 * MIB);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(steps_cause_no_page_faults_in_float_buffers),
                cmocka_unit_test(a_pool_that_is_backed_causes_no_page_faults),
                cmocka_unit_test(an_allocation_is_zeroed_and_overlaps_no_other),
                cmocka_unit_test(freeing_memory_returns_it_to_the_kernel_and_keeps_its_neighbour),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
