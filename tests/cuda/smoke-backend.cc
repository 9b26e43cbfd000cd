/*
 * Smoke tests that open the backend as the daemon does, and run the model of known-model.h beside
 * the backend "ref".
 */
#include "tests/cuda/smoke.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <vector>

extern "C" {
#include "tests/cuda/known-model.h"
}

#define SLOTS    2u
#define TABLE    16u /* pages of a slot */
#define PAGES    (SLOTS * TABLE)
#define ROWS_MAX 128u
#define STEPS    20u

/* The model in one backend. */
struct player {
        struct kernels *k;
        struct known_model known_model;
        uint64_t number; /* of the last step */
};

static void must(int error, const char *what)
{
        if (error)
                smoke_fail("%s: %s (%d)", what, kernels_errtext(), error);
}

static void check(const player *p, int error, const char *what)
{
        if (error)
                smoke_fail("%s: %s (%d)", what, p->k->lost(p->k) ? p->k->lost(p->k) : "?", error);
}

static player open_player(const char *backend, const char *library)
{
        kernels_conf conf = {};
        player p = {};

        if (!library && strcmp(backend, "ref"))
                smoke_fail("this test needs --library");
        conf.isa = "auto";
        conf.threads = 1;
        conf.rows_max = ROWS_MAX;
        conf.slots_max = SLOTS;
        conf.pages_max = TABLE;
        conf.vocab_max = KNOWN_TOKENS;
        conf.wants_max = ROWS_MAX;
        conf.library = library;
        must(kernels_open(backend, &conf, &p.k), "to open the backend");
        check(&p, known_model_open(&p.known_model, p.k, ROWS_MAX, ROWS_MAX, PAGES, 0),
              "to make the model");
        return p;
}

static void close_player(player *p)
{
        known_model_close(&p->known_model);
        p->k->close(p->k);
}

/*
 * One step of `count` rows of slot 0 from `position` on, all of them wanted.  Tokens are those
 * of tokens(), or, for a single row, the pick of the step before.
 */
static void run(player *p, uint32_t position, uint32_t count, const uint32_t *tokens,
                uint32_t *ret_picked)
{
        std::vector<step_row> rows(count);
        std::vector<uint32_t> want(count);
        std::vector<pick> picks(count);
        step_page pages[TABLE];
        const step_run all = { 0, count };
        step step = {};
        int r;

        for (uint32_t i = 0; i < count; i++) {
                rows[i] = { 0, position + i, tokens ? tokens[i] : 0, STEP_TOKEN, 0, 1 };
                if (!tokens) {
                        rows[i].from_row = i;
                        rows[i].from_step = p->number;
                }
                want[i] = i;
                picks[i] = {};
                picks[i].top_p = 1;
                picks[i].position = position + i + 1;
        }
        for (uint32_t i = 0; i < TABLE; i++)
                pages[i] = { 0, i, PAGES - 1 - i };
        step.number = ++p->number;
        step.row_count = step.want_count = count;
        step.run_count = 1;
        step.page_count = position ? 0 : TABLE;
        step.rows = rows.data();
        step.runs = &all;
        step.pages = pages;
        step.want = want.data();
        step.picks = picks.data();
        check(p, known_model_forward(&p->known_model, &step), "a step");
        r = p->k->step_end(p->k);
        check(p, r ? r : p->k->collect(p->k, p->number, ret_picked), "a step's end");
}

static std::vector<uint32_t> some_tokens(uint32_t count)
{
        std::vector<uint32_t> tokens(count);

        for (uint32_t i = 0; i < count; i++)
                tokens[i] = i * 7 % KNOWN_BROKEN;
        return tokens;
}

static void compare(player *a, player *b, const float *of_a, const float *of_b, uint32_t rows,
                    const char *what)
{
        std::vector<float> numbers(rows * KNOWN_TOKENS), others(rows * KNOWN_TOKENS);

        a->k->get(a->k, numbers.data(), of_a, numbers.size());
        b->k->get(b->k, others.data(), of_b, others.size());
        check(a, a->k->lost(a->k) ? -EIO : 0, what);
        for (size_t i = 0; i < numbers.size(); i++)
                if (!(fabsf(numbers[i] - others[i]) <= 0.01f * (1 + fabsf(others[i]))))
                        smoke_fail("%s: row %zu, column %zu is %g, and %g by the backend ref", what,
                                   i / KNOWN_TOKENS, i % KNOWN_TOKENS, (double)numbers[i],
                                   (double)others[i]);
}

/* `count` rows in one step: the results of attention and the head, and the picks. */
static void smoke_rows(const char *library, uint32_t count)
{
        player gpu = open_player("cuda", library), ref = open_player("ref", nullptr);
        std::vector<uint32_t> tokens = some_tokens(count), picked(count), others(count);

        run(&gpu, 0, count, tokens.data(), picked.data());
        run(&ref, 0, count, tokens.data(), others.data());
        compare(&gpu, &ref, gpu.known_model.a, ref.known_model.a, count, "attention");
        compare(&gpu, &ref, gpu.known_model.logits, ref.known_model.logits, count, "logits");
        for (uint32_t i = 0; i < count; i++)
                if (picked[i] != others[i] || picked[i] != known_model_next(tokens[i]))
                        smoke_fail("row %u picked %u instead of %u", i, picked[i],
                                   known_model_next(tokens[i]));
        printf("%u rows by %s (%s) as by ref\n", count, gpu.k->name,
               gpu.k->about ? gpu.k->about : "");
        close_player(&gpu);
        close_player(&ref);
}

static void smoke_attend(const char *library)
{
        smoke_rows(library, 40);
}

static void smoke_wide(const char *library)
{
        smoke_rows(library, ROWS_MAX);
}

/* Decodes that are fed by their own picks. */
static void smoke_steps(const char *library, bool recorded)
{
        player gpu = open_player("cuda", library);
        uint32_t token = 2, picked;

        if (recorded)
                check(&gpu, known_model_warm_up(&gpu.known_model), "to capture the steps");
        for (uint32_t i = 0; i < STEPS; i++) {
                run(&gpu, i, 1, i ? nullptr : &token, &picked);
                token = known_model_next(token);
                if (picked != token)
                        smoke_fail("step %u picked %u instead of %u", i, picked, token);
        }
        printf("%u steps, each fed by the pick of the one before it\n", STEPS);
        close_player(&gpu);
}

static void smoke_launched(const char *library)
{
        smoke_steps(library, false);
}

static void smoke_recorded(const char *library)
{
        smoke_steps(library, true);
}

const smoke_test smoke_backend_tests[] = {
        { "attend", smoke_attend },
        { "wide", smoke_wide },
        { "step-launched", smoke_launched },
        { "step-recorded", smoke_recorded },
};
const size_t smoke_backend_test_count = sizeof(smoke_backend_tests) / sizeof(*smoke_backend_tests);
