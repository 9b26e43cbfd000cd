/*
 * The facts that the backend reports about itself, and the parts of it that the environment can
 * disable.
 */
#include <errno.h>

#include "tests/cuda/backend-fixture.h"

static struct kernels *open_with(const char *without)
{
        struct kernels_conf conf = cuda_conf();

        conf.deterministic = false;
        setenv("SMV_CUDA_WITHOUT", without, 1);
        return cuda_open(&conf);
}

static void find_blas(bool there)
{
        void (*set)(bool there);

        *(void **)&set = emulated("device_emu_blas");
        set(there);
}

static void reports_the_device_and_cublaslt(void **state)
{
        struct kernels *k = open_with("");

        (void)state;
        assert_string_equal(k->name, "cuda/blas");
        assert_string_equal(k->about, "emulated, a stand-in for cuBLASLt");
        assert_null(k->missing);
        k->close(k);
}

static void reports_a_missing_cublaslt_and_the_remedy(void **state)
{
        struct kernels *k;

        (void)state;
        find_blas(false);
        k = open_with("");
        assert_string_equal(k->name, "cuda");
        assert_string_equal(k->about, "emulated");
        assert_non_null(k->missing);
        assert_non_null(strstr(k->missing, "was not found"));
        assert_non_null(strstr(k->missing, "SMV_CUBLASLT"));
        k->close(k);
        find_blas(true);
}

static void does_not_report_a_missing_cublaslt_if_it_is_disabled(void **state)
{
        struct kernels_conf conf = cuda_conf();
        struct kernels *k;

        (void)state;
        find_blas(false);
        k = open_with("early,blas");
        assert_string_equal(k->name, "cuda");
        assert_null(k->missing);
        assert_non_null(k->warm_up);
        k->close(k);
        unsetenv("SMV_CUDA_WITHOUT");
        conf.deterministic = true;
        k = cuda_open(&conf);
        assert_null(k->missing);
        k->close(k);
        find_blas(true);
}

static void does_not_record_steps_without_graphs(void **state)
{
        struct kernels *k = open_with("graph");

        (void)state;
        assert_null(k->warm_up);
        assert_string_equal(k->name, "cuda/blas");
        k->close(k);
}

static void refuses_a_part_that_does_not_exist(void **state)
{
        static const char *const wrong[] = { "graphs", "blas,late", "earl", "early blas" };
        struct kernels_conf conf = cuda_conf();
        struct kernels *k;

        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
                setenv("SMV_CUDA_WITHOUT", wrong[i], 1);
                assert_int_equal(kernels_open("cuda", &conf, &k), -EINVAL);
                assert_non_null(strstr(kernels_errtext(), wrong[i]));
                assert_non_null(strstr(kernels_errtext(), "early, graph, blas"));
        }
        unsetenv("SMV_CUDA_WITHOUT");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reports_the_device_and_cublaslt),
                cmocka_unit_test(reports_a_missing_cublaslt_and_the_remedy),
                cmocka_unit_test(does_not_report_a_missing_cublaslt_if_it_is_disabled),
                cmocka_unit_test(does_not_record_steps_without_graphs),
                cmocka_unit_test(refuses_a_part_that_does_not_exist),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
