#include "bench/cpu-model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/model.h"
#include "base/sys.h"
#include "base/errtext.h"

/* Slots: one for each of a batch, then these. */
enum { SLOT_EMPTY = CPU_BATCH_MAX, SLOT_DEEP, SLOT_PROMPT, SLOTS };

#define PICKS    64u /* one after the other, that are timed together */
#define HEAD     64u /* columns of a head: it is as large as a cache */
#define WAITED   1u  /* steps before the clock is looked at */
#define PAGES(n) (((n) + PAGE_POSITIONS - 1) / PAGE_POSITIONS)

struct cpu_model {
        struct cpu_model_conf conf;
        struct checkpoint *checkpoint;
        struct traits traits;
        struct kernels *kernels;
        struct model *model;
        uint32_t depth;
        uint32_t first_page[SLOTS + 1];
        uint64_t number; /* of the last step */
        struct kv *no_kv;
        struct matrix *head; /* that makes logits to pick from */
        float *x, *logits;
};

/* ---- steps ---- */

static struct pick greedy(uint32_t position)
{
        return (struct pick){ .top_p = 1, .position = position };
}

/* Ends the program: there is nothing to measure any more. */
static void must(int r, const char *what)
{
        if (!r)
                return;
        fprintf(stderr, "bench-cpu: %s: %s\n", what, strerror(-r));
        exit(1);
}

/*
 * Decodes one more token in each of `batch` slots from this one on.  Its input is the result of
 * the step before, unless this is the first step.
 */
static void decode_step(struct cpu_model *m, uint32_t slot, uint32_t batch, uint32_t position,
                        bool first)
{
        struct step_row rows[CPU_BATCH_MAX];
        struct step_run runs[CPU_BATCH_MAX];
        struct pick picks[CPU_BATCH_MAX];
        uint32_t want[CPU_BATCH_MAX];
        const struct step step = { .number = ++m->number,
                                   .row_count = batch,
                                   .run_count = batch,
                                   .want_count = batch,
                                   .rows = rows,
                                   .runs = runs,
                                   .want = want,
                                   .picks = picks };

        for (uint32_t i = 0; i < batch; i++) {
                rows[i] = (struct step_row){ .slot = slot + i,
                                             .position = position,
                                             .token = i + 1,
                                             .from_row = first ? STEP_TOKEN : i,
                                             .from_step = first ? 0 : step.number - 1,
                                             .write = 1 };
                runs[i] = (struct step_run){ i, 1 };
                want[i] = i;
                picks[i] = greedy(position);
        }
        must(model_forward(m->model, &step), "a step");
}

/* 0: some row's was no token. */
static bool tokens_come(struct cpu_model *m, uint32_t batch)
{
        uint32_t tokens[CPU_BATCH_MAX];

        must(model_collect(m->model, m->number, tokens), "a step's tokens");
        for (uint32_t i = 0; i < batch; i++)
                if (tokens[i] == PICK_NOT_FINITE)
                        return false;
        return true;
}

static double decode(struct cpu_model *m, uint32_t slot, uint32_t batch, uint32_t position)
{
        uint64_t began = 0;

        for (uint32_t i = 0; i < m->conf.tokens + WAITED; i++) {
                if (i == WAITED)
                        began = sys_clock_ns();
                decode_step(m, slot, batch, position + i, !i);
                if (!tokens_come(m, batch))
                        return 0;
        }
        return (double)(sys_clock_ns() - began) / 1e9;
}

double cpu_model_batch(struct cpu_model *m, uint32_t batch)
{
        return decode(m, 0, batch, CPU_CONTEXT);
}

double cpu_model_stream(struct cpu_model *m, uint32_t depth)
{
        return decode(m, depth ? SLOT_DEEP : SLOT_EMPTY, 1, depth);
}

double cpu_model_prompt(struct cpu_model *m)
{
        static struct step_row rows[CPU_PROMPT];
        const struct step_run all = { 0, CPU_PROMPT };
        const uint32_t want = CPU_PROMPT - 1;
        const struct pick pick = greedy(CPU_PROMPT);
        const struct step step = { .number = ++m->number,
                                   .row_count = CPU_PROMPT,
                                   .run_count = 1,
                                   .want_count = 1,
                                   .rows = rows,
                                   .runs = &all,
                                   .want = &want,
                                   .picks = &pick };
        uint64_t began;

        for (uint32_t i = 0; i < CPU_PROMPT; i++)
                rows[i] = (struct step_row){ .slot = SLOT_PROMPT,
                                             .position = i,
                                             .token = i * 7919u % m->traits.vocab,
                                             .from_row = STEP_TOKEN,
                                             .write = 1 };
        began = sys_clock_ns();
        must(model_forward(m->model, &step), "a prompt");
        return tokens_come(m, 1) ? (double)(sys_clock_ns() - began) / 1e9 : 0;
}

double cpu_model_pick(struct cpu_model *m, const struct pick *pick, uint32_t count)
{
        struct step_row rows[CPU_BATCH_MAX];
        struct step_run runs[CPU_BATCH_MAX];
        struct pick picks[CPU_BATCH_MAX];
        uint32_t want[CPU_BATCH_MAX], tokens[CPU_BATCH_MAX];
        const struct head head = { .w = m->head };
        struct kernels *k = m->kernels;
        uint64_t spent = 0;

        for (uint32_t n = 0; n < PICKS; n++) {
                const struct step step = { .number = ++m->number,
                                           .row_count = count,
                                           .run_count = count,
                                           .want_count = count,
                                           .rows = rows,
                                           .runs = runs,
                                           .want = want,
                                           .picks = picks };
                uint64_t began;

                for (uint32_t i = 0; i < count; i++) {
                        rows[i] = (struct step_row){ .slot = i, .from_row = STEP_TOKEN };
                        runs[i] = (struct step_run){ i, 1 };
                        want[i] = i;
                        picks[i] = *pick;
                        picks[i].seed = i;
                        picks[i].position = n;
                }
                must(k->step_begin(k, KV_ALONE(m->no_kv), &step), "a step of picks");
                must(k->head(k, &head, m->logits, m->x), "a head");
                began = sys_clock_ns();
                must(k->pick(k, m->logits, m->traits.vocab), "picks");
                spent += sys_clock_ns() - began;
                must(k->step_end(k), "a step of picks");
                must(k->collect(k, m->number, tokens), "picks");
        }
        return (double)spent / PICKS / 1e9;
}

/* ---- contexts ---- */

static uint32_t positions_of(const struct cpu_model *m, uint32_t slot)
{
        uint32_t more = m->conf.tokens + WAITED;

        switch (slot) {
        case SLOT_EMPTY:
                return more;
        case SLOT_DEEP:
                return m->depth + more;
        case SLOT_PROMPT:
                return CPU_PROMPT;
        default:
                return CPU_CONTEXT + more;
        }
}

/* Sets the tables of all slots; once the prompt has been read, also the contents of pages. */
static int tell_pages(struct cpu_model *m, bool copied)
{
        uint32_t count = m->first_page[SLOTS], from = m->first_page[SLOT_PROMPT];
        struct step_page *pages = calloc(count, sizeof(*pages));
        struct step_copy *copies = calloc(count, sizeof(*copies));
        struct step step = { .number = ++m->number, .pages = pages, .copies = copies };
        int r = pages && copies ? 0 : -ENOMEM;

        for (uint32_t slot = 0; !r && slot < SLOTS; slot++)
                for (uint32_t page = m->first_page[slot]; page < m->first_page[slot + 1]; page++) {
                        uint32_t index = page - m->first_page[slot];

                        pages[step.page_count++] = (struct step_page){ slot, index, page };
                        if (copied && slot != SLOT_PROMPT)
                                copies[step.copy_count++] =
                                        (struct step_copy){ from + index % PAGES(CPU_PROMPT),
                                                            page };
                }
        if (!r)
                r = model_forward(m->model, &step);
        free(pages);
        free(copies);
        return r ? r : model_collect(m->model, m->number, NULL);
}

/* ---- opening ---- */

/* From -1 to 1. */
static float throw(uint32_t * dice)
{
        *dice = *dice * 1664525u + 1013904223u;
        return (float)(*dice >> 8) * 0x1p-23f - 1;
}

/*
 * Each logit is the sum of 64 random numbers, some of them negated.  This gives a bell curve of
 * width 3.5.
 */
static int make_head(struct cpu_model *m)
{
        const uint32_t vocab = m->traits.vocab;
        const struct matrix_shape shape = {
                .columns = HEAD, .parts = 1, .rows = { vocab }, .type = { ROW_F32 }
        };
        struct kernels *k = m->kernels;
        float row[HEAD], x[CPU_BATCH_MAX * HEAD];
        uint32_t dice = 1;
        int r;

        if ((r = k->matrix_new(k, &shape, &m->head)) ||
            (r = k->floats_new(k, CPU_BATCH_MAX * HEAD, &m->x)) ||
            (r = k->floats_new(k, (size_t)CPU_BATCH_MAX * vocab, &m->logits)))
                return r;
        for (uint32_t i = 0; i < CPU_BATCH_MAX * HEAD; i++)
                x[i] = throw(&dice) < 0 ? -0.75f : 0.75f;
        for (uint32_t id = 0; !r && id < vocab; id++) {
                for (uint32_t i = 0; i < HEAD; i++)
                        row[i] = throw(&dice);
                r = k->weights_put(k, m->head, 0, id, 1, row);
        }
        return r ? r : k->put(k, m->x, x, CPU_BATCH_MAX * HEAD);
}

static int make_picks(struct cpu_model *m)
{
        const struct kv_shape shape = { 1, 1, m->traits.head_dim, 1, KV_F16 };
        int r = make_head(m);

        return r ? r : m->kernels->kv_new(m->kernels, &shape, &m->no_kv);
}

static int open_kernels(struct cpu_model *m)
{
        const struct kernels_conf conf = { .threads = m->conf.threads,
                                           .pin = true,
                                           .isa = m->conf.isa,
                                           .lone_ahead = m->conf.lone_ahead,
                                           .rows_max = CPU_PROMPT,
                                           .slots_max = SLOTS,
                                           .pages_max = PAGES(positions_of(m, SLOT_DEEP)),
                                           .vocab_max = m->traits.vocab,
                                           .wants_max = CPU_BATCH_MAX };

        for (uint32_t slot = 0; slot < SLOTS; slot++)
                m->first_page[slot + 1] = m->first_page[slot] + PAGES(positions_of(m, slot));
        return kernels_open("cpu", &conf, &m->kernels);
}

static int load(struct cpu_model *m, char *why, size_t why_bytes)
{
        const struct model_conf conf = { .rows_max = CPU_PROMPT,
                                         .wants_max = CPU_BATCH_MAX,
                                         .blocks = m->first_page[SLOTS],
                                         .kv = KV_F16 };
        const struct weights_conf weights = { .threads = m->conf.threads };
        enum load_way way;
        int r;

        r = model_open(m->checkpoint, &m->traits, m->kernels, &conf, &m->model, why, why_bytes);
        if (!r)
                r = model_load(m->model, &weights, &way, why, why_bytes);
        while (!r && model_back_pool(m->model))
                ;
        return r;
}

static int open_all(struct cpu_model *m, const char *path, char *why, size_t why_bytes)
{
        int r;

        if ((r = checkpoint_open(path, &m->checkpoint, why, why_bytes)) ||
            (r = checkpoint_traits(m->checkpoint, &m->traits, why, why_bytes)))
                return r;
        m->depth = CPU_DEPTH_MAX;
        while (m->depth + m->conf.tokens + WAITED > m->traits.context)
                m->depth /= 2;
        r = open_kernels(m);
        if (r)
                return errtext_set(why, why_bytes, r, "the backend: %s", strerror(-r));
        if ((r = load(m, why, why_bytes)))
                return r;
        if (!(r = make_picks(m)) && !(r = tell_pages(m, false)) && cpu_model_prompt(m) <= 0)
                return errtext_set(why, why_bytes, -EDOM, "its logits are not finite");
        if (!r)
                r = tell_pages(m, true);
        return r ? errtext_set(why, why_bytes, r, "its contexts: %s", strerror(-r)) : 0;
}

int cpu_model_open(const char *path, const struct cpu_model_conf *conf,
                   struct cpu_model **ret_model, char *why, size_t why_bytes)
{
        struct cpu_model *m = calloc(1, sizeof(*m));
        int r;

        if (!m)
                return errtext_set(why, why_bytes, -ENOMEM, "no memory");
        m->conf = *conf;
        r = open_all(m, path, why, why_bytes);
        if (r) {
                cpu_model_close(m);
                return r;
        }
        *ret_model = m;
        return 0;
}

struct cpu_model *cpu_model_close(struct cpu_model *m)
{
        if (!m)
                return NULL;
        if (m->no_kv)
                m->kernels->kv_free(m->kernels, m->no_kv);
        if (m->logits)
                m->kernels->floats_free(m->kernels, m->logits);
        if (m->x)
                m->kernels->floats_free(m->kernels, m->x);
        if (m->head)
                m->kernels->matrix_free(m->kernels, m->head);
        model_close(m->model);
        if (m->kernels)
                m->kernels->close(m->kernels);
        checkpoint_close(m->checkpoint);
        free(m);
        return NULL;
}

const char *cpu_model_kernels(const struct cpu_model *m)
{
        return m->kernels->name;
}

const struct traits *cpu_model_traits(const struct cpu_model *m)
{
        return &m->traits;
}

const struct checkpoint *cpu_model_checkpoint(const struct cpu_model *m)
{
        return m->checkpoint;
}

uint32_t cpu_model_depth(const struct cpu_model *m)
{
        return m->depth;
}
