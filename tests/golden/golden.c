#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/golden/golden.h"

#define PAGES       ((PROMPT_MAX + GREEDY_MAX + PAGE_POSITIONS - 1) / PAGE_POSITIONS)
#define CHUNK       7u
#define PAGE_STRIDE 5u
#define LOGPROBS    33u /* fewer than the smallest vocabulary has tokens */

_Static_assert(PAGES % PAGE_STRIDE, "the pages would be given out twice");

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

unsigned texts_read(FILE *in, struct text ret_texts[TEXTS_MAX])
{
        unsigned count = 0;

        do {
                assert_true(count < TEXTS_MAX);
                text_read(in, &ret_texts[count++]);
        } while (more(in));
        return count;
}

void stand_open(struct stand *stand, const char *path, const char *backend, enum kv_type kv)
{
        struct kernels_conf conf = {
                .threads = 2,
                .isa = "auto",
                .rows_max = PROMPT_MAX,
                .slots_max = 1,
                .pages_max = PAGES,
                .wants_max = 1,
                .library = getenv("CUDA_LIBRARY"),
        };
        struct model_conf model = {
                .context = 64, /* more than the texts of models have whose rope depends on it */
                .rows_max = PROMPT_MAX,
                .wants_max = 1,
                .blocks = PAGES,
                .kv = kv,
        };
        const struct weights_conf weights = { .threads = 2 };
        enum load_way way;
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
        if (!r)
                r = model_load(stand->model, &weights, &way, why, sizeof(why));
        if (r)
                fail_msg("%s on %s: %d: %s", path, backend, r, why);
}

void stand_close(struct stand *stand)
{
        model_close(stand->model);
        stand->kernels->close(stand->kernels);
        checkpoint_close(stand->checkpoint);
}

static bool rounds(const struct stand *stand)
{
        const struct tensor_table *table = checkpoint_tensors(stand->checkpoint);
        bool some = false;

        for (uint32_t i = 0; i < table->count; i++)
                some |= table->tensors[i].rows > 1 && table->tensors[i].type != ROW_F32 &&
                        table->tensors[i].type != ROW_F16;
        return some && !strncmp(stand->kernels->name, "cpu", 3);
}

/* Runs one step; returns the last row's logits, and its greedy token if ret_token is not NULL. */
static void run(struct stand *stand, uint32_t position, const uint32_t *tokens, uint32_t count,
                uint32_t *ret_token, float *ret_logits)
{
        struct step_row rows[PROMPT_MAX];
        struct step_page pages[PAGES];
        struct step_run all = { 0, count };
        uint32_t want = count - 1;
        struct pick pick = { .position = position + count, .logprobs = LOGPROBS };
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
                if ((position + i) % PAGE_POSITIONS == 0) /* pages are permuted in memory */
                        pages[step.page_count++] =
                                (struct step_page){ 0, index, (index * PAGE_STRIDE + 3) % PAGES };
        }
        assert_int_equal(model_forward(stand->model, &step), 0);
        assert_int_equal(model_collect(stand->model, step.number, ret_token), 0);
        if (ret_token)
                model_logits(stand->model, 0, ret_logits);
}

static double size_of(const struct text *text, unsigned which)
{
        double size = 1;

        for (uint32_t v = 0; v < text->vocab; v++)
                size = fmax(size, fabs(text->logits[which][v]));
        return size;
}

/* Compares the model's log-probabilities of the picked and of the likeliest token with log(softmax)
 * of the golden's logits. */
static double differ_told(struct stand *stand, const struct text *text, unsigned which)
{
        const double *logits = text->logits[which];
        struct logprob told[LOGPROBS];
        double largest = logits[0], sum = 0, worst = 0;

        model_logprobs(stand->model, stand->number, 0, told);
        for (uint32_t v = 1; v < text->vocab; v++)
                largest = fmax(largest, logits[v]);
        for (uint32_t v = 0; v < text->vocab; v++)
                sum += exp(logits[v] - largest);
        for (uint32_t i = 0; i < LOGPROBS; i++) {
                double d = fabs(told[i].logprob - (logits[told[i].token] - largest - log(sum)));

                if (!(d <= worst))
                        worst = d;
        }
        assert_int_equal(told[0].token, told[1].token); /* it was picked greedily */
        return worst;
}

/* The largest difference, in units of the largest logit (or of 1, if that is more). */
static double differ(const struct text *text, unsigned which, const float *logits)
{
        double worst = 0;

        for (uint32_t v = 0; v < text->vocab; v++) {
                double d = fabs((double)logits[v] - text->logits[which][v]);

                /* This is true for a NaN, too. */
                if (!(d <= worst))
                        worst = d;
        }
        return worst / size_of(text, which);
}

/* Compares the logits of greedy token i, if the golden has them. */
static void check_logits(struct stand *stand, const struct text *text, uint32_t i,
                         const float *logits, const struct nearness *near, struct sum *sum)
{
        for (unsigned w = 0; w < 2; w++) {
                double d, told;

                if (i != text->at[w])
                        continue;
                d = differ(text, w, logits);
                if (!(d <= near->tolerance))
                        fail_msg("logits of token %u differ by %g", i, d);
                told = differ_told(stand, text, w) / size_of(text, w);
                /* the error of the logit and that of the sum */
                if (!(told <= 2 * near->tolerance))
                        fail_msg("logprobs of token %u differ by %g", i, told);
                sum->worst = fmax(sum->worst, d);
        }
}

/* Runs the prompt, `chunk` rows a step, then the golden's tokens one by one. */
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
                check_logits(stand, text, i, logits, near, sum);
                run(stand, text->prompt_count + i, &text->greedy[i], 1, &token, logits);
        }
}

void texts_check(const char *path, const char *backend, const struct text *texts,
                 unsigned text_count, const struct nearness *near, struct sum *sum)
{
        static const uint32_t chunks[] = { PROMPT_MAX, CHUNK };
        bool emulated = !strcmp(backend, "cuda");

        for (unsigned t = 0; t < text_count; t++) {
                for (unsigned c = 0; c < 2; c++) {
                        struct stand stand;

                        if (emulated && c != (t == 0))
                                continue;
                        stand_open(&stand, path, backend, near->kv);
                        check_text(&stand, &texts[t], chunks[c],
                                   rounds(&stand) ? near->rounded : near, sum);
                        stand_close(&stand);
                }
        }
}
