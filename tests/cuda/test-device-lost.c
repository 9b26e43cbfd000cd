/*
 * The backend for GPUs when there is no memory left, and on a device that is lost.  Every call
 * reports the error, none hangs, and the backend can be closed.
 */
#include "tests/cuda/backend-fixture.h"
#include "tests/cuda/known-model.h"

#include <errno.h>

#define MY_ROWS  8u
#define MY_PAGES 8u
#define MY_SWAP  2u
#define STEPS    4u

static struct {
        void (*memory)(size_t bytes);
        void (*refuse)(uint64_t pieces);
        void (*lose)(uint64_t operations);
} device;

static struct kernels_conf my_conf(void)
{
        struct kernels_conf conf = cuda_conf();

        conf.rows_max = conf.wants_max = MY_ROWS;
        conf.row_copies_max = 2;
        conf.slots_max = 2;
        conf.pages_max = 2;
        conf.vocab_max = KNOWN_TOKENS;
        return conf;
}

/* Two rows of a sequence; the first goes on from the step before. */
static int one_step(struct known_model *known_model, uint64_t number)
{
        static const struct pick picks[2] = { { .logprobs = 2 }, { .row = 2 } };
        const uint32_t position = (uint32_t)(number - 1) * 2, want[] = { 0, 1 };
        const struct step_run run = { 0, 2 };
        const struct step_page pages[] = { { 1, 0, 5 }, { 1, 1, 6 } };
        const struct step_copy copies[] = { { 7, 3 }, { 3, MY_PAGES + 1 }, { MY_PAGES + 1, 7 } };
        const struct step_row rows[] = {
                { 1, position, 0, number > 1 ? 1 : STEP_TOKEN, number - 1, 1 },
                { 1, position + 1, 9, STEP_TOKEN, 0, 1 },
        };
        const struct step step = { .number = number,
                                   .row_count = 2,
                                   .run_count = 1,
                                   .page_count = number == 1 ? 2 : 0,
                                   .copy_count = 3,
                                   .want_count = 2,
                                   .rows = rows,
                                   .runs = &run,
                                   .pages = pages,
                                   .copies = copies,
                                   .want = want,
                                   .picks = picks };
        int r;

        known_model->window = number % 2 ? 0 : 3;
        r = known_model_forward(known_model, &step);

        return r ? r : known_model->k->step_end(known_model->k);
}

/*
 * A call in the middle of a step was refused.  After that no other step can begin, and each
 * call says so.
 */
static void all_is_refused(struct known_model *known_model, uint64_t number, int why)
{
        const char *how = known_model->k->lost(known_model->k);
        float x[KNOWN_TOKENS];
        uint32_t tokens[2];

        assert_non_null(how);
        assert_ptr_equal(strstr(how, "the GPU failed: the emulated device "), how);
        assert_int_equal(one_step(known_model, number + 1), why);
        assert_int_equal(one_step(known_model, number + 2), why);
        assert_int_equal(known_model->k->collect(known_model->k, number, tokens), why);
        known_model->k->get(known_model->k, x, known_model->x, KNOWN_TOKENS);
        if (why == -EIO) {
                assert_int_equal(
                        known_model->k->put(known_model->k, known_model->x, x, KNOWN_TOKENS), why);
                assert_int_equal(
                        known_model->k->weights_put(known_model->k, known_model->head, 0, 0, 1, x),
                        why);
        }
}

static int play(struct known_model *known_model)
{
        uint32_t tokens[2];
        int r;

        for (uint64_t number = 1; number <= STEPS; number++) {
                r = one_step(known_model, number);
                if (!r && number > 1)
                        r = known_model->k->collect(known_model->k, number - 1, tokens);
                if (r) {
                        all_is_refused(known_model, number, r);
                        return r;
                }
        }
        r = known_model->k->collect(known_model->k, STEPS, tokens);
        if (r)
                return r;
        assert_int_equal(tokens[1], known_model_next(9));
        assert_int_equal(tokens[0], known_model_next(known_model_next(9)));
        return 0;
}

/* A whole life: open, load, some steps, close. */
static int live(void)
{
        struct kernels_conf conf = my_conf();
        struct kernels *k;
        struct known_model known_model;
        int r;

        seed_device();
        r = kernels_open("cuda", &conf, &k);
        if (r) {
                assert_true(*kernels_errtext());
                return r;
        }
        r = known_model_open(&known_model, k, MY_ROWS, MY_ROWS, MY_PAGES, MY_SWAP);
        assert_int_equal(k->lost(k) != NULL, r == -EIO); /* more memory may come */
        if (!r) {
                assert_true(k->kv_copy_ns(k, known_model.kv) >= 1);
                r = k->lost(k) ? -EIO : play(&known_model);
        }
        assert_true(r || !k->lost(k));
        known_model_close(&known_model);
        k->close(k);
        return r;
}

static void reports_every_failed_allocation(void **state)
{
        uint32_t n = 0;
        int r;

        (void)state;
        do {
                device.refuse(n);
                r = live();
                assert_true(r == -ENOMEM || !r);
        } while (r && ++n < 200);
        device.refuse(UINT64_MAX);
        assert_int_equal(r, 0);
        assert_true(n > 20);
        print_message("%u pieces of memory\n", n);
}

static void refuses_a_device_with_too_little_memory(void **state)
{
        (void)state;
        for (size_t bytes = 0; bytes < 1u << 16; bytes = bytes * 2 + 100) {
                device.memory(bytes);
                assert_int_equal(live(), -ENOMEM);
        }
        device.memory((size_t)1 << 40);
        assert_int_equal(live(), 0);
}

static void reports_a_lost_device_after_any_operation(void **state)
{
        uint32_t n = 0;
        int r;

        (void)state;
        do {
                device.lose(n);
                r = live();
                assert_true(r == -EIO || !r);
        } while (r && (n += 1 + random_below(3)) < 2000);
        device.lose(UINT64_MAX);
        assert_int_equal(r, 0);
        assert_true(n > 40);
        print_message("%u operations\n", n);
        assert_int_equal(live(), 0);
}

static void refuses_a_missing_device_or_an_invalid_library(void **state)
{
        struct kernels_conf conf = my_conf();
        struct kernels *k;

        (void)state;
        conf.device = 1;
        assert_int_equal(kernels_open("cuda", &conf, &k), -ENODEV);
        assert_true(*kernels_errtext());
        conf.library = "/nowhere";
        assert_int_equal(kernels_open("cuda", &conf, &k), -ENOENT);
        assert_true(*kernels_errtext());
        conf.library = NULL;
        assert_int_equal(kernels_open("cuda", &conf, &k), -ENOENT);
        conf.library = "/proc/self/cmdline";
        assert_int_equal(kernels_open("cuda", &conf, &k), -ELIBBAD);
        assert_true(*kernels_errtext());
}

static int find_device(void **state)
{
        (void)state;
        random_seed();
        *(void **)&device.memory = emulated("device_emu_memory");
        *(void **)&device.refuse = emulated("device_emu_refuse");
        *(void **)&device.lose = emulated("device_emu_lose");
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reports_every_failed_allocation),
                cmocka_unit_test(refuses_a_device_with_too_little_memory),
                cmocka_unit_test(reports_a_lost_device_after_any_operation),
                cmocka_unit_test(refuses_a_missing_device_or_an_invalid_library),
        };

        return cmocka_run_group_tests(tests, find_device, NULL);
}
