/*
 * The model code against a forward pass that was written apart from it (contrib/reference): small
 * generated models, logits and greedy tokens in tests/golden/NAME.txt.
 *
 * The generator makes each model anew from the arguments in the golden, so the first thing to hold
 * is that it still makes the same bytes.  After the prompt a sequence is fed the golden's tokens
 * and not its own: one near tie that falls the other way would hide all that comes after it.
 *
 * BABBLE_MAKER is the generator, SOURCES the project's root.
 */
#include <ctype.h>
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

#include "daemon/engine/model.h"

#define CASES_MAX   4u
#define PROMPT_MAX  160u
#define GREEDY_MAX  64u
#define VOCAB_MAX   512u
#define PAGES       ((PROMPT_MAX + GREEDY_MAX + PAGE_POSITIONS - 1) / PAGE_POSITIONS)
#define CHUNK       7u
#define GOLDENS_MIN 6u
#define PAGE_STRIDE 5u

_Static_assert(PAGES % PAGE_STRIDE, "the pages would be given out twice");

/* What has to be near, and how near: times the largest logit, and at least times 1. */
static const struct nearness {
        enum kv_type kv;
        double tolerance;
        double clear; /* a greedy token counts where it leads the second best by more */
        double share; /* of them that are clear, at least */
} full = { KV_F32, 5e-6, 1e-3, 0.9 }, half = { KV_F16, 2e-2, 2e-2, 0.9 };

struct text {
        uint32_t prompt_count, greedy_count, vocab;
        uint32_t prompt[PROMPT_MAX], greedy[GREEDY_MAX];
        double margin[GREEDY_MAX];
        uint32_t at[2]; /* which greedy tokens these were chosen from */
        double logits[2][VOCAB_MAX];
};

struct golden {
        char *name;
        char arguments[512];
        uint64_t fnv;
        unsigned text_count;
        struct text texts[CASES_MAX];
};

struct stand {
        struct checkpoint *checkpoint;
        struct traits traits;
        struct kernels *kernels;
        struct model *model;
        uint64_t number;
};

static glob_t names;
static char folder[] = "/tmp/test-goldens-XXXXXX";
static char path[128];

static void list_read(FILE *in, const char *key, uint32_t max, uint32_t *ret_count,
                      uint32_t *ret_tokens, double *ret_numbers)
{
        char word[16];

        if (fscanf(in, "%15s %" SCNu32, word, ret_count) != 2 || strcmp(word, key))
                fail_msg("no %s where it should be", key);
        assert_in_range(*ret_count, 1, max);
        for (uint32_t i = 0; i < *ret_count; i++)
                assert_int_equal(ret_tokens ? fscanf(in, "%" SCNu32, &ret_tokens[i])
                                            : fscanf(in, "%lf", &ret_numbers[i]),
                                 1);
}

static void text_read(FILE *in, struct text *text)
{
        uint32_t count;

        list_read(in, "prompt", PROMPT_MAX, &text->prompt_count, text->prompt, NULL);
        list_read(in, "greedy", GREEDY_MAX, &text->greedy_count, text->greedy, NULL);
        list_read(in, "margin", GREEDY_MAX, &count, NULL, text->margin);
        assert_int_equal(count, text->greedy_count);
        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(fscanf(in, " logits %" SCNu32, &text->at[i]), 1);
                assert_in_range(text->at[i], i, text->greedy_count - 1);
                assert_int_equal(fscanf(in, "%" SCNu32, &text->vocab), 1);
                assert_in_range(text->vocab, 2, VOCAB_MAX);
                for (uint32_t v = 0; v < text->vocab; v++)
                        assert_int_equal(fscanf(in, "%lf", &text->logits[i][v]), 1);
        }
        assert_int_equal(text->at[0], 0);
}

static bool more(FILE *in)
{
        int c;

        do
                c = getc(in);
        while (isspace(c));
        return ungetc(c, in) != EOF;
}

static void golden_read(char *name, struct golden *golden)
{
        FILE *in = fopen(name, "r");

        assert_non_null(in);
        *golden = (struct golden){ .name = name };
        assert_int_equal(
                fscanf(in, "babble %511[^\n] fnv %" SCNx64, golden->arguments, &golden->fnv), 2);
        do {
                assert_true(golden->text_count < CASES_MAX);
                text_read(in, &golden->texts[golden->text_count++]);
        } while (more(in));
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

/* The golden's model file at `path`, or the test fails. */
static void model_make(const struct golden *golden)
{
        char command[1024];
        uint64_t fnv;
        int count = snprintf(command, sizeof(command), "'%s' '%s' %s", getenv("BABBLE_MAKER"), path,
                             golden->arguments);

        assert_in_range(count, 1, sizeof(command) - 1);
        assert_int_equal(system(command), 0);
        fnv = file_fnv(path);
        if (fnv != golden->fnv)
                fail_msg("%s: the generator makes another file: %016" PRIx64, golden->name, fnv);
}

static void stand_open(struct stand *stand, const char *backend, enum kv_type kv)
{
        struct kernels_conf conf = {
                .threads = 2,
                .isa = "auto",
                .rows_max = PROMPT_MAX,
                .slots_max = 1,
                .pages_max = PAGES,
                .wants_max = 1,
        };
        struct model_conf model = {
                .rows_max = PROMPT_MAX,
                .wants_max = 1,
                .blocks = PAGES,
                .kv = kv,
        };
        char why[256] = "";
        int r;

        *stand = (struct stand){ 0 };
        r = checkpoint_open(path, &stand->checkpoint, why, sizeof(why));
        if (!r)
                r = checkpoint_traits(stand->checkpoint, &stand->traits, why, sizeof(why));
        conf.vocab_max = stand->traits.vocab;
        if (!r)
                r = kernels_open(backend, &conf, &stand->kernels);
        if (!r)
                r = model_open(stand->checkpoint, &stand->traits, stand->kernels, &model,
                               &stand->model, why, sizeof(why));
        if (r)
                fail_msg("%s: %d: %s", backend, r, why);
}

static void stand_close(struct stand *stand)
{
        model_close(stand->model);
        stand->kernels->close(stand->kernels);
        checkpoint_close(stand->checkpoint);
}

/* One step; the last row's logits and its greedy token where ret_token is not NULL. */
static void run(struct stand *stand, uint32_t position, const uint32_t *tokens, uint32_t count,
                uint32_t *ret_token, float *ret_logits)
{
        struct step_row rows[PROMPT_MAX];
        struct step_page pages[PAGES];
        struct step_run all = { 0, count };
        uint32_t want = count - 1;
        struct pick pick = { .position = position + count };
        struct step step = {
                .number = ++stand->number,
                .row_count = count,
                .run_count = 1,
                .want_count = ret_token ? 1 : 0,
                .rows = rows,
                .runs = &all,
                .pages = pages,
                .want = &want,
                .picks = &pick,
        };

        assert_true(count <= PROMPT_MAX);
        for (uint32_t i = 0; i < count; i++) {
                uint32_t index = (position + i) / PAGE_POSITIONS;

                rows[i] = (struct step_row){
                        .position = position + i,
                        .token = tokens[i],
                        .from_row = STEP_TOKEN,
                        .write = 1,
                };
                assert_true(index < PAGES);
                if ((position + i) % PAGE_POSITIONS == 0) /* in an order of memory of its own */
                        pages[step.page_count++] =
                                (struct step_page){ 0, index, (index * PAGE_STRIDE + 3) % PAGES };
        }
        assert_int_equal(model_forward(stand->model, &step), 0);
        assert_int_equal(model_collect(stand->model, step.number, ret_token), 0);
        if (ret_token)
                model_logits(stand->model, 0, ret_logits);
}

/* The largest difference, in units of the largest logit (or of 1, if that is more). */
static double differ(const struct text *text, unsigned which, const float *logits)
{
        double worst = 0, size = 1;

        for (uint32_t v = 0; v < text->vocab; v++) {
                double d = fabs((double)logits[v] - text->logits[which][v]);

                if (!(d <= worst)) /* a NaN too */
                        worst = d;
                size = fmax(size, fabs(text->logits[which][v]));
        }
        return worst / size;
}

struct sum {
        unsigned tokens, clear;
        double worst;
};

/* The prompt, `chunk` rows a step, then the golden's tokens one by one. */
static void check_text(struct stand *stand, const struct text *text, uint32_t chunk,
                       const struct nearness *near, struct sum *sum)
{
        static float logits[VOCAB_MAX];
        uint32_t token = 0, n;

        assert_int_equal(stand->traits.vocab, text->vocab);
        for (uint32_t at = 0; at < text->prompt_count; at += n) {
                bool last = text->prompt_count - at <= chunk;

                n = last ? text->prompt_count - at : chunk;
                run(stand, at, text->prompt + at, n, last ? &token : NULL, logits);
        }
        for (uint32_t i = 0; i < text->greedy_count; i++) {
                bool clear = text->margin[i] > near->clear;

                if (clear && token != text->greedy[i])
                        fail_msg("chunks of %u: greedy token %u is %u, not %u", chunk, i, token,
                                 text->greedy[i]);
                sum->clear += clear;
                sum->tokens++;
                for (unsigned w = 0; w < 2; w++) {
                        double d = i == text->at[w] ? differ(text, w, logits) : 0;

                        if (!(d <= near->tolerance))
                                fail_msg("chunks of %u: logits of token %u differ by %g", chunk, i,
                                         d);
                        sum->worst = fmax(sum->worst, d);
                }
                run(stand, text->prompt_count + i, &text->greedy[i], 1, &token, logits);
        }
}

static void check_golden(const char *backend, const struct golden *golden,
                         const struct nearness *near, struct sum *sum)
{
        static const uint32_t chunks[] = { PROMPT_MAX, CHUNK };

        print_message("# %s: %s\n", backend, golden->name);
        model_make(golden);
        for (unsigned t = 0; t < golden->text_count; t++) {
                for (unsigned c = 0; c < 2; c++) {
                        struct stand stand;

                        stand_open(&stand, backend, near->kv);
                        check_text(&stand, &golden->texts[t], chunks[c], near, sum);
                        stand_close(&stand);
                }
        }
}

static void check(const char *backend, const struct nearness *near)
{
        static struct golden golden;
        struct sum sum = { 0 };

        for (size_t g = 0; g < names.gl_pathc; g++) {
                struct sum one = { 0 };

                golden_read(names.gl_pathv[g], &golden);
                check_golden(backend, &golden, near, &one);
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

static void ref_computes_the_goldens(void **state)
{
        (void)state;
        check("ref", &full);
}

static void cpu_computes_the_goldens(void **state)
{
        (void)state;
        check("cpu", &full);
}

static void ref_with_half_kv_stays_near_the_goldens(void **state)
{
        (void)state;
        check("ref", &half);
}

static void cpu_with_half_kv_stays_near_the_goldens(void **state)
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
                cmocka_unit_test(ref_computes_the_goldens),
                cmocka_unit_test(cpu_computes_the_goldens),
                cmocka_unit_test(ref_with_half_kv_stays_near_the_goldens),
                cmocka_unit_test(cpu_with_half_kv_stays_near_the_goldens),
        };

        if (!getenv("BABBLE_MAKER") || !getenv("SOURCES")) {
                puts("skipped: BABBLE_MAKER and SOURCES do not say where generator and goldens "
                     "are");
                return 77;
        }
        return cmocka_run_group_tests(tests, set_up, tear_down);
}
