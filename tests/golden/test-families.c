/*
 * Compares every family of models that is served with transformers.
 *
 * tests/golden/families has small models in Hugging Face's format and as GGUF, and the logits that
 * transformers computed (contrib/reference/families.py).  tests/golden/fp8 has the same for weights
 * of eight bits in every form that is served (contrib/reference/fp8.py), in Hugging Face's format
 * alone.  tests/golden/types has models of GGUF's rarer types, and the logits of the numbers that
 * they mean (contrib/reference/gguf_types.py).  SOURCES is the project's root.  FAMILY names one of
 * the models, to look at it alone.  FAMILY_RESULTS names a file: then ref's differences from
 * transformers, with K and V in F32, are written to it, and nothing else is computed.
 */
#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/golden/golden.h"

#define FAMILIES 71u
#define IN_GGUF  55u
#define FP8      7u
#define TYPES    3u

/*
 * The float32 computation of transformers limits the first tolerance.  f16 keeps 11 bits of K and
 * V, bf16 8, int8 has 8 for a head's largest number, fp8 4.  Where rows are rounded, the rounding
 * decides: the tolerances are about three times the errors that we measured.
 */
static const struct nearness full_rounded = { KV_F32, 5e-2, 5e-2, 0.9, NULL },
                             half_rounded = { KV_F16, 5e-2, 5e-2, 0.9, NULL },
                             bfloat_rounded = { KV_BF16, 8e-2, 1e-1, 0.8, NULL },
                             integer_rounded = { KV_INT8, 11e-2, 1e-1, 0.8, NULL },
                             fp8_rounded = { KV_FP8, 50e-2, 1, 0.25, NULL };
static const struct nearness full = { KV_F32, 5e-6, 1e-3, 0.9, &full_rounded },
                             half = { KV_F16, 5e-3, 2e-2, 0.9, &half_rounded },
                             bfloat = { KV_BF16, 3e-2, 5e-2, 0.8, &bfloat_rounded },
                             integer = { KV_INT8, 6e-2, 5e-2, 0.8, &integer_rounded },
                             fp8 = { KV_FP8, 40e-2, 1, 0.25, &fp8_rounded };

/* Nothing is rounded for weights of eight bits; the embedding, in BF16, is not used in a
 * product. */
static const struct nearness eight_bits = { KV_F32, 5e-6, 1e-3, 0.9, &eight_bits };

struct family {
        char folder[512], gguf[512]; /* paths; gguf is empty if there is none */
        unsigned text_count;
        struct text texts[TEXTS_MAX];
};

static glob_t families, eights, types;
static FILE *results; /* NULL: nobody wants them */

static void family_read(const char *name, struct family *family)
{
        char folder[64], file[64];
        FILE *in = fopen(name, "r");
        int parent = (int)(strrchr(name, '/') - name);

        assert_non_null(in);
        *family = (struct family){ 0 };
        assert_int_equal(fscanf(in, "files %63s %63s", folder, file), 2);
        snprintf(family->folder, sizeof(family->folder), "%.*s/%s", parent, name, folder);
        if (strcmp(file, "-"))
                snprintf(family->gguf, sizeof(family->gguf), "%.*s/%s", parent, name, file);
        family->text_count = texts_read(in, family->texts);
        fclose(in);
}

/* The name of the golden model, without the folder and without ".txt". */
static void write_result(const char *path, double worst)
{
        const char *name = strrchr(path, '/') + 1;

        fprintf(results, "%.*s %.9g\n", (int)(strlen(name) - strlen(".txt")), name, worst);
}

static unsigned check_format(const glob_t *names, bool as_gguf, const char *backend,
                             const struct nearness *near, struct sum *sum)
{
        static struct family family;
        unsigned models = 0;

        for (size_t i = 0; i < names->gl_pathc; i++) {
                struct sum one = { 0 };
                const char *path;

                family_read(names->gl_pathv[i], &family);
                path = as_gguf ? family.gguf : family.folder;
                if (!*path)
                        continue;
                models++;
                texts_check(path, backend, family.texts, family.text_count, near, &one);
                print_message("# %s: %s: logits differ by %.2g at most\n", backend,
                              strrchr(path, '/') + 1, one.worst);
                if (results)
                        write_result(names->gl_pathv[i], one.worst);
                sum->tokens += one.tokens;
                sum->clear += one.clear;
        }
        return models;
}

static void check(const char *backend, const struct nearness *near)
{
        struct sum sum = { 0 };
        unsigned in_gguf = check_format(&families, true, backend, near, &sum);
        unsigned all = check_format(&families, false, backend, near, &sum);

        assert_true(getenv("FAMILY") || (in_gguf == IN_GGUF && all == FAMILIES));
        print_message("# %s: %u of %u tokens are clear\n", backend, sum.clear, sum.tokens);
        assert_true(getenv("FAMILY") || sum.clear >= near->share * sum.tokens);
}

static void check_fp8(const char *backend)
{
        struct sum sum = { 0 };

        assert_int_equal(check_format(&eights, false, backend, &eight_bits, &sum), FP8);
        assert_true(sum.clear >= eight_bits.share * sum.tokens);
}

static void ref_backend_matches_transformers_for_every_family(void **state)
{
        (void)state;
        check("ref", &full);
}

static void cpu_backend_matches_transformers_for_every_family(void **state)
{
        (void)state;
        check("cpu", &full);
}

static void ref_backend_with_an_f16_cache_is_near_transformers(void **state)
{
        (void)state;
        check("ref", &half);
}

static void cpu_backend_with_an_f16_cache_is_near_transformers(void **state)
{
        (void)state;
        check("cpu", &half);
}

static void bf16_int8_and_fp8_caches_are_near_transformers(void **state)
{
        (void)state;
        check("ref", &bfloat);
        check("cpu", &bfloat);
        check("ref", &integer);
        check("cpu", &integer);
        check("ref", &fp8);
        check("cpu", &fp8);
}

static void ref_backend_matches_transformers_for_every_fp8_format(void **state)
{
        (void)state;
        check_fp8("ref");
}

static void cpu_backend_matches_transformers_for_every_fp8_format(void **state)
{
        (void)state;
        check_fp8("cpu");
}

static void check_types(const char *backend)
{
        struct sum sum = { 0 };

        assert_int_equal(check_format(&types, true, backend, &full, &sum), TYPES);
        assert_true(sum.clear >= full.share * sum.tokens);
}

static void ref_backend_matches_the_floats_of_rare_gguf_types(void **state)
{
        (void)state;
        check_types("ref");
}

static void cpu_backend_is_near_the_floats_of_rare_gguf_types(void **state)
{
        (void)state;
        check_types("cpu");
}

static bool look_for(const char *folder, const char *name, unsigned count, glob_t *ret_names)
{
        char pattern[1024];

        snprintf(pattern, sizeof(pattern), "%s/tests/golden/%s/%s.txt", getenv("SOURCES"), folder,
                 name);
        if (!glob(pattern, 0, NULL, ret_names) && ret_names->gl_pathc == count)
                return true;
        print_error("%s: not %u models\n", pattern, count);
        return false;
}

static int set_up(void **state)
{
        const char *one = getenv("FAMILY");

        (void)state;
        return look_for("families", one ? one : "*", one ? 1 : FAMILIES, &families) &&
                               look_for("fp8", "*", FP8, &eights) &&
                               look_for("types", "*", TYPES, &types)
                       ? 0
                       : -1;
}

static int tear_down(void **state)
{
        (void)state;
        globfree(&families);
        globfree(&eights);
        globfree(&types);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ref_backend_matches_transformers_for_every_family),
                cmocka_unit_test(cpu_backend_matches_transformers_for_every_family),
                cmocka_unit_test(ref_backend_with_an_f16_cache_is_near_transformers),
                cmocka_unit_test(cpu_backend_with_an_f16_cache_is_near_transformers),
                cmocka_unit_test(bf16_int8_and_fp8_caches_are_near_transformers),
                cmocka_unit_test(ref_backend_matches_transformers_for_every_fp8_format),
                cmocka_unit_test(cpu_backend_matches_transformers_for_every_fp8_format),
                cmocka_unit_test(ref_backend_matches_the_floats_of_rare_gguf_types),
                cmocka_unit_test(cpu_backend_is_near_the_floats_of_rare_gguf_types),
        };

        const struct CMUnitTest by_ref[] = { tests[0] };
        const char *path = getenv("FAMILY_RESULTS");
        int r;

        if (!getenv("SOURCES")) {
                puts("skipped: SOURCES does not say where the goldens are");
                return 77;
        }
        if (!path)
                return cmocka_run_group_tests(tests, set_up, tear_down);
        results = fopen(path, "w");
        if (!results) {
                perror(path);
                return 1;
        }
        r = cmocka_run_group_tests(by_ref, set_up, tear_down);
        return fclose(results) ? 1 : r;
}
