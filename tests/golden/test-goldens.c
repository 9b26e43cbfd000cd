/*
 * Compares the model code with a forward pass that was written independently (contrib/reference):
 * small generated models, logits and greedy tokens in tests/golden/NAME.txt.
 *
 * The generator makes each model anew from the arguments in the golden, so the first check is that
 * it still makes the same bytes.
 *
 * TOY_MODEL_MAKER is the generator, SOURCES the project's root.
 */
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/golden/golden.h"

#define GOLDENS_MIN 6u

/* About three times the errors that we measured. */
static const struct nearness full_rounded = { KV_F32, 5e-3, 5e-2, 0.9, NULL },
                             half_rounded = { KV_F16, 5e-3, 5e-2, 0.9, NULL };
static const struct nearness full = { KV_F32, 5e-6, 1e-3, 0.9, &full_rounded },
                             half = { KV_F16, 2e-2, 2e-2, 0.9, &half_rounded };

struct golden {
        char *name;
        char arguments[512];
        uint64_t fnv;
        unsigned text_count;
        struct text texts[TEXTS_MAX];
};

static glob_t names;
static char folder[] = "/tmp/test-goldens-XXXXXX";
static char path[128];

static void golden_read(char *name, struct golden *golden)
{
        FILE *in = fopen(name, "r");

        assert_non_null(in);
        *golden = (struct golden){ .name = name };
        assert_int_equal(
                fscanf(in, "toy-model %511[^\n] fnv %" SCNx64, golden->arguments, &golden->fnv), 2);
        golden->text_count = texts_read(in, golden->texts);
        fclose(in);
}

static uint64_t file_fnv(const char *file)
{
        uint64_t hash = UINT64_C(0xcbf29ce484222325);
        FILE *in = fopen(file, "rb");
        int c;

        assert_non_null(in);
        while ((c = getc(in)) != EOF)
                hash = (hash ^ (uint64_t)c) * UINT64_C(0x100000001b3);
        fclose(in);
        return hash;
}

/* Makes the golden's model file at `path`, or the test fails. */
static void model_make(const struct golden *golden)
{
        char command[1024];
        uint64_t fnv;
        int count = snprintf(command, sizeof(command), "'%s' '%s' %s", getenv("TOY_MODEL_MAKER"),
                             path, golden->arguments);

        assert_in_range(count, 1, sizeof(command) - 1);
        assert_int_equal(system(command), 0);
        fnv = file_fnv(path);
        if (fnv != golden->fnv)
                fail_msg("%s: the generator makes another file: %016" PRIx64, golden->name, fnv);
}

static void check(const char *backend, const struct nearness *near)
{
        static struct golden golden;
        struct sum sum = { 0 };

        for (size_t g = 0; g < names.gl_pathc; g++) {
                struct sum one = { 0 };

                golden_read(names.gl_pathv[g], &golden);
                print_message("# %s: %s\n", backend, golden.name);
                model_make(&golden);
                texts_check(path, backend, golden.texts, golden.text_count, near, &one);
                print_message("# ... %u of %u tokens clear, logits differ by %.2g at most\n",
                              one.clear, one.tokens, one.worst);
                sum.tokens += one.tokens;
                sum.clear += one.clear;
                sum.worst = fmax(sum.worst, one.worst);
        }
        print_message("# %s: %u of %u tokens clear, logits differ by %.2g at most\n", backend,
                      sum.clear, sum.tokens, sum.worst);
        assert_true(sum.clear >= near->share * sum.tokens);
}

static void ref_backend_matches_the_golden_files(void **state)
{
        (void)state;
        check("ref", &full);
}

static void cpu_backend_matches_the_golden_files(void **state)
{
        (void)state;
        check("cpu", &full);
}

static void ref_backend_with_an_f16_cache_is_near_the_golden_files(void **state)
{
        (void)state;
        check("ref", &half);
}

static void cpu_backend_with_an_f16_cache_is_near_the_golden_files(void **state)
{
        (void)state;
        check("cpu", &half);
}

static int set_up(void **state)
{
        char pattern[1024];

        (void)state;
        snprintf(pattern, sizeof(pattern), "%s/tests/golden/*.txt", getenv("SOURCES"));
        if (glob(pattern, 0, NULL, &names) || names.gl_pathc < GOLDENS_MIN) {
                print_error("%s: fewer than %u goldens\n", pattern, GOLDENS_MIN);
                return -1;
        }
        if (!mkdtemp(folder))
                return -1;
        snprintf(path, sizeof(path), "%s/model.gguf", folder);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        globfree(&names);
        unlink(path);
        return rmdir(folder);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ref_backend_matches_the_golden_files),
                cmocka_unit_test(cpu_backend_matches_the_golden_files),
                cmocka_unit_test(ref_backend_with_an_f16_cache_is_near_the_golden_files),
                cmocka_unit_test(cpu_backend_with_an_f16_cache_is_near_the_golden_files),
        };

        if (!getenv("TOY_MODEL_MAKER") || !getenv("SOURCES")) {
                puts("skipped: TOY_MODEL_MAKER and SOURCES do not say where generator and goldens "
                     "are");
                return 77;
        }
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
