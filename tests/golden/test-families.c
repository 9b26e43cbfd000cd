/*
 * Compares every family of models that is served with transformers.
 *
 * tests/golden/families has small models in Hugging Face's format and as GGUF, and the logits that
 * transformers computed (contrib/reference/families.py).  tests/golden/fp8 has the same for weights
 * of eight bits in every form that is served (contrib/reference/fp8.py), in Hugging Face's format
 * alone.  tests/golden/types has models of GGUF's rarer types, and the logits of the numbers that
 * they mean (contrib/reference/gguf_types.py).
 *
 * families/bounds says by how much the logits of each model may differ; the page
 * docs/reference/models.md shows these numbers.  With the argument `cuda`, the models whose names
 * end with -wide run on the backend of CUDA_LIBRARY, which serves no smaller heads.
 *
 * SOURCES is the project's root.  FAMILY names one of the models, to look at it alone.
 * FAMILY_DIFFERENCES names a file to which the differences are written, and not compared.
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

#define MODELS_MAX 256u
#define LOOSE      20 /* a bound that is so many times a difference was not measured */
#define FP8        7u
#define TYPES      3u

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

/* A GPU rounds the rows that it multiplies to BF16. */
static const struct nearness on_gpu = { KV_F16, 5e-2, 5e-2, 0.8, NULL };

enum backend { REF, CPU, CUDA, BACKENDS };
static const char *const backends[BACKENDS] = { "ref", "cpu", "cuda" };

/* A model in one format, and by how much its logits may differ on each backend; 0: it is not served
 * there.  With weights as they are stored, K and V are in F32 for ref and cpu, F16 for cuda. */
struct model_bounds {
        char name[64];
        double most[BACKENDS];
        bool seen[BACKENDS];
};

struct family {
        char folder[512], gguf[512]; /* paths; gguf is empty if there is none */
        unsigned text_count;
        struct text texts[TEXTS_MAX];
};

static glob_t families, eights, types;
static struct model_bounds bounds[MODELS_MAX];
static unsigned bound_count;
static bool compared[BACKENDS];
static FILE *measured; /* where the differences are written instead of compared; may be NULL */

static bool bounds_read(void)
{
        char path[1024], most[BACKENDS][16];
        FILE *in;

        snprintf(path, sizeof(path), "%s/tests/golden/families/bounds", getenv("SOURCES"));
        in = fopen(path, "r");
        if (!in)
                return false;
        while (bound_count < MODELS_MAX &&
               fscanf(in, "%63s %15s %15s %15s", bounds[bound_count].name, most[REF], most[CPU],
                      most[CUDA]) == 4) {
                for (unsigned b = 0; b < BACKENDS; b++)
                        bounds[bound_count].most[b] = strtod(most[b], NULL);
                bound_count++;
        }
        fclose(in);
        return true;
}

static struct model_bounds *bounds_of(const char *name)
{
        for (unsigned i = 0; i < bound_count; i++)
                if (!strcmp(bounds[i].name, name))
                        return &bounds[i];
        fail_msg("%s is not in bounds: contrib/dev/families --write BUILD adds it", name);
        return NULL;
}

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

static double check_model(const struct family *family, const char *path, const char *backend,
                          const struct nearness *near, struct sum *sum)
{
        struct sum one = { 0 };

        print_message("# %s: %s\n", backend, strrchr(path, '/') + 1);
        texts_check(path, backend, family->texts, family->text_count, near, &one);
        sum->tokens += one.tokens;
        sum->clear += one.clear;
        return one.worst;
}

static void compare(const char *name, enum backend backend, double worst)
{
        struct model_bounds *bound;

        print_message("# %s: %s: logits differ by %.2g at most\n", backends[backend], name, worst);
        if (measured) {
                fprintf(measured, "%s\t%s\t%.3g\n", name, backends[backend], worst);
                return;
        }
        bound = bounds_of(name);
        bound->seen[backend] = true;
        if (!(worst <= bound->most[backend]))
                fail_msg("%s: %s: logits differ by %g, and the file bounds permits %g",
                         backends[backend], name, worst, bound->most[backend]);
        if (bound->most[backend] > LOOSE * worst)
                fail_msg("%s: %s: the file bounds permits %g, and logits differ by %g only",
                         backends[backend], name, bound->most[backend], worst);
}

static bool is_wide(const char *path)
{
        const char *end = strrchr(path, '-');

        return end && !strcmp(end, "-wide");
}

/* The models for GPUs add nothing to the checks of other caches, and no other one runs on a GPU. */
static bool runs(const char *path, const char *backend, const struct nearness *near)
{
        if (!*path)
                return false;
        return !strcmp(backend, "cuda") ? is_wide(path) : near->kv == KV_F32 || !is_wide(path);
}

static void check_all(enum backend backend, const struct nearness *near, bool in_bounds)
{
        static struct family family;
        struct sum sum = { 0 };

        compared[backend] |= in_bounds;
        for (size_t i = 0; i < families.gl_pathc; i++) {
                family_read(families.gl_pathv[i], &family);
                for (unsigned f = 0; f < 2; f++) {
                        const char *path = f ? family.gguf : family.folder;
                        double worst;

                        if (!runs(path, backends[backend], near))
                                continue;
                        worst = check_model(&family, path, backends[backend], near, &sum);
                        if (in_bounds)
                                compare(strrchr(path, '/') + 1, backend, worst);
                }
        }
        print_message("# %s: %u of %u tokens are clear\n", backends[backend], sum.clear,
                      sum.tokens);
        assert_true(getenv("FAMILY") || sum.clear >= near->share * sum.tokens);
}

static void check_fp8(const char *backend)
{
        static struct family family;
        struct sum sum = { 0 };

        for (size_t i = 0; i < eights.gl_pathc; i++) {
                family_read(eights.gl_pathv[i], &family);
                check_model(&family, family.folder, backend, &eight_bits, &sum);
        }
        assert_true(sum.clear >= eight_bits.share * sum.tokens);
}

static void ref_backend_matches_transformers_for_every_family(void **state)
{
        (void)state;
        check_all(REF, &full, true);
}

static void cpu_backend_matches_transformers_for_every_family(void **state)
{
        (void)state;
        check_all(CPU, &full, true);
}

static void ref_backend_with_an_f16_cache_is_near_transformers(void **state)
{
        (void)state;
        check_all(REF, &half, false);
}

static void cpu_backend_with_an_f16_cache_is_near_transformers(void **state)
{
        (void)state;
        check_all(CPU, &half, false);
}

static void bf16_int8_and_fp8_caches_are_near_transformers(void **state)
{
        (void)state;
        check_all(REF, &bfloat, false);
        check_all(CPU, &bfloat, false);
        check_all(REF, &integer, false);
        check_all(CPU, &integer, false);
        check_all(REF, &fp8, false);
        check_all(CPU, &fp8, false);
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
        static struct family family;
        struct sum sum = { 0 };

        for (size_t i = 0; i < types.gl_pathc; i++) {
                family_read(types.gl_pathv[i], &family);
                check_model(&family, family.gguf, backend, &full, &sum);
        }
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

static void gpu_is_near_transformers_for_every_family(void **state)
{
        (void)state;
        check_all(CUDA, &on_gpu, true);
}

static void check_seen(enum backend backend)
{
        for (unsigned i = 0; compared[backend] && i < bound_count; i++)
                if (bounds[i].most[backend] > 0 && !bounds[i].seen[backend])
                        fail_msg("%s: %s is in bounds, but was not compared", backends[backend],
                                 bounds[i].name);
}

/* After the tests of all models. */
static void every_model_with_bounds_was_compared(void **state)
{
        (void)state;
        if (!measured && !getenv("FAMILY"))
                for (enum backend b = 0; b < BACKENDS; b++)
                        check_seen(b);
}

static bool look_for(const char *folder, const char *name, glob_t *ret_names)
{
        char pattern[1024];

        snprintf(pattern, sizeof(pattern), "%s/tests/golden/%s/%s.txt", getenv("SOURCES"), folder,
                 name);
        if (!glob(pattern, 0, NULL, ret_names))
                return true;
        print_error("%s: no models\n", pattern);
        return false;
}

static int set_up(void **state)
{
        const char *one = getenv("FAMILY"), *differences = getenv("FAMILY_DIFFERENCES");

        (void)state;
        if (differences) {
                measured = fopen(differences, "a");
                if (!measured)
                        return -1;
        }
        return (measured || bounds_read()) && look_for("families", one ? one : "*", &families) &&
                               look_for("fp8", "*", &eights) && eights.gl_pathc == FP8 &&
                               look_for("types", "*", &types) && types.gl_pathc == TYPES
                       ? 0
                       : -1;
}

static int tear_down(void **state)
{
        (void)state;
        globfree(&families);
        globfree(&eights);
        globfree(&types);
        return measured ? fclose(measured) : 0;
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ref_backend_matches_transformers_for_every_family),
                cmocka_unit_test(cpu_backend_matches_transformers_for_every_family),
                cmocka_unit_test(every_model_with_bounds_was_compared),
                cmocka_unit_test(ref_backend_with_an_f16_cache_is_near_transformers),
                cmocka_unit_test(cpu_backend_with_an_f16_cache_is_near_transformers),
                cmocka_unit_test(bf16_int8_and_fp8_caches_are_near_transformers),
                cmocka_unit_test(ref_backend_matches_transformers_for_every_fp8_format),
                cmocka_unit_test(cpu_backend_matches_transformers_for_every_fp8_format),
                cmocka_unit_test(ref_backend_matches_the_floats_of_rare_gguf_types),
                cmocka_unit_test(cpu_backend_is_near_the_floats_of_rare_gguf_types),
        };
        const struct CMUnitTest on_a_gpu[] = {
                cmocka_unit_test(gpu_is_near_transformers_for_every_family),
                cmocka_unit_test(every_model_with_bounds_was_compared),
        };

        if (!getenv("SOURCES")) {
                puts("skipped: SOURCES does not say where the goldens are");
                return 77;
        }
        if (getenv("FAMILY_DIFFERENCES"))
                cmocka_set_test_filter("*_for_every_family");
        return argc > 1 && !strcmp(argv[1], "cuda")
                       ? cmocka_run_group_tests(on_a_gpu, set_up, tear_down)
                       : cmocka_run_group_tests(tests, set_up, tear_down);
}
