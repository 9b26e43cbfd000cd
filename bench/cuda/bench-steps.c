/*
 * Whole steps of models that have the shapes of real ones and random weights, by the operators that
 * the daemon's engine calls: prompts, and decodes that are fed by their own picks, one step behind.
 *
 *      bench-steps [--tiny] [--quick] [--predict] [--threads N] --library FILE MODEL ...
 *
 * Each step is measured as launches and as a graph (warm_up() of kernels.h).  --quick measures
 * graphs only, with fewer samples.  Lines are those of figure.h.
 *
 * All rows of a step are the same sequence, in pages of their own.  So all rows should pick the
 * same token, and the same token in both ways.  If some rows do not, the program says how many and
 * goes on; its exit status is then 1.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda/figure.h"
#include "bench/cuda/random-model.h"

#define CONTEXT 1024u
/* Positions that are decoded before the benchmark goes back to CONTEXT. */
#define MORE      128u
#define PROMPT    2048u
#define BATCH_MAX 256u
#define SEGMENTS  7u
#define QUICK     3u     /* segments with --quick */
#define SEGMENT   0.1    /* seconds, at least */
#define LAUNCH    2.5e-6 /* of the host's time, predicted */
#define PER_LAYER 8u     /* launches */

#define REPLAY    20e-6 /* the same for a whole step */
#define REHEARSAL 0.4   /* seconds */
#define COMPARED  5u    /* steps */

enum way { LAUNCHED, RECORDED };
static const char *const ways[] = { "launched", "recorded" };

static const uint32_t batches[] = { 1, 8, 32, 64, 128, 256 };
#define BATCHES (sizeof(batches) / sizeof(*batches))

static const struct named {
        const char *name;
        struct random_shape shape;
        /* Tokens/s on each card: of decodes, 0 where predict() has a formula; of a prompt. */
        double expected[CARDS][BATCHES], prompt[CARDS];
} models[] = {
        { "Llama-3.2-1B, bf16",
          { 16, 2048, 8192, 32, 8, 64, 128256, ROW_BF16, true, false },
          { [CARD_H200] = { 1500, 0, 0, 46e3, 0, 75e3 } },
          { 317e3, 317e3 } },
        { "Llama-3.1-8B, bf16",
          { 32, 4096, 14336, 32, 8, 128, 128256, ROW_BF16, false, false },
          { { 159, 1200, 3000, 3600, 9200, 0 }, { 264, 0, 0, 10.0e3, 0, 16.9e3 } },
          { 33e3, 44e3 } },
        { "Qwen3-0.6B, bf16",
          { 28, 1024, 3072, 16, 8, 128, 151936, ROW_BF16, true, true },
          { [CARD_H200] = { 2050 } },
          { 700e3, 700e3 } },
        { "Llama-3.1-8B, Q4_0",
          { 32, 4096, 14336, 32, 8, 128, 128256, ROW_Q4_0, false, false },
          { { 350, 2500, 3700, 0, 6200, 0 }, { 715 } },
          { 30e3, 44e3 } },
        { "Llama-3.1-8B, Q4_K",
          { 32, 4096, 14336, 32, 8, 128, 128256, ROW_Q4_K, false, false },
          { { 295, 0, 3700, 0, 6200, 0 } },
          { 30e3, 44e3 } },
        { "Llama-3.1-8B, F8_E4M3",
          { 32, 4096, 14336, 32, 8, 128, 128256, ROW_F8_E4M3, false, false },
          { { 260, 1900, 3500, 0, 6200, 0 } },
          { 30e3, 44e3 } },
        { "Llama-3.2-1B, Q8_0",
          { 16, 2048, 8192, 32, 8, 64, 128256, ROW_Q8_0, true, false },
          { { 0 } },
          { 317e3, 317e3 } },
};

struct bench {
        bool tiny, quick, predict;
        bool wrong; /* some rows picked another token */
        const struct card *card;
        const char *library;
        unsigned threads;
        const struct named *named;
        struct random_shape shape;
        uint32_t context, prompt, more, batch_max, slot_pages, prompt_pages;
        struct kernels *k;
        struct random_model model;
        uint64_t number; /* of the last step */
        double begun;    /* the host's seconds from the step's begin to its end */
        enum way way;
        uint32_t picked[BATCHES][COMPARED]; /* tokens of the first steps, with launches */
};

static void must(int error, const char *what)
{
        if (!error)
                return;
        fprintf(stderr, "bench-steps: %s: %s (%d)\n", what, kernels_errtext(), error);
        exit(1);
}

/* ---- predictions ---- */

/* The least seconds of a step: the time to read weights, or to multiply, and to read K and V. */
static double limit(const struct card *card, const struct random_shape *s, uint32_t batch,
                    uint32_t context)
{
        double numbers = random_numbers(s), bytes = numbers * random_bytes_of_number(s->type);
        double read = bytes / card->memory, multiply = 2 * numbers * batch / card->products;
        double kv = 4.0 * s->layers * s->kv_heads * s->head_dim * context * batch / card->memory;

        return (read > multiply ? read : multiply) + kv;
}

/*
 * Five boundaries between kernels a layer, and 85 % of the limit from 64 rows on.  Launches cost
 * the host more time than the device needs, until there are many rows.
 */
static double predict_on(const struct bench *b, unsigned card, unsigned batch)
{
        const struct random_shape *s = &b->named->shape;
        double seconds = limit(&cards[card], s, batches[batch], CONTEXT) +
                         (5 * s->layers + 2) * PREDICTED_GAP;
        double host = (PER_LAYER * s->layers + 6) * LAUNCH;

        if (b->way == LAUNCHED && host > seconds)
                return batches[batch] / host;
        if (b->named->expected[card][batch])
                return b->named->expected[card][batch];
        return batches[batch] / seconds * (batches[batch] < 64 ? 1 : 0.85);
}

static struct prediction predict(const struct bench *b, unsigned batch)
{
        struct prediction prediction;

        for (unsigned i = 0; i < CARDS; i++)
                prediction.on[i] = predict_on(b, i, batch);
        return prediction;
}

/* ---- steps ---- */

static struct pick greedy(uint64_t position)
{
        return (struct pick){ .top_p = 1, .position = position };
}

static void run(struct bench *b, const struct step *step)
{
        double began = figure_clock();

        must(random_forward(&b->model, step), "a step");
        b->begun = figure_clock() - began;
}

/* Sets up the tables of all slots, and copies the pages of slot 0 to each of them. */
static void set_up(struct bench *b)
{
        uint32_t slots = b->batch_max, seen = (b->context + PAGE_POSITIONS - 1) / PAGE_POSITIONS;
        struct step_page *pages = calloc((size_t)slots * b->slot_pages, sizeof(*pages));
        struct step_copy *copies = calloc((size_t)slots * seen, sizeof(*copies));
        struct step step = { .number = ++b->number, .pages = pages, .copies = copies };

        if (!pages || !copies)
                abort();
        for (uint32_t s = 0; s < slots; s++)
                for (uint32_t i = 0; i < b->slot_pages; i++) {
                        uint32_t page = b->prompt_pages + s * b->slot_pages + i;

                        pages[step.page_count++] = (struct step_page){ s, i, page };
                        if (i < seen)
                                copies[step.copy_count++] = (struct step_copy){ i, page };
                }
        run(b, &step);
        must(b->k->collect(b->k, step.number, NULL), "page tables");
        free(pages);
        free(copies);
}

/* Runs the whole prompt in one step, in the first pages; its last row is wanted. */
static double read_prompt(struct bench *b)
{
        struct step_row *rows = calloc(b->prompt, sizeof(*rows));
        struct step_page *pages = calloc(b->prompt_pages, sizeof(*pages));
        const struct step_run all = { 0, b->prompt };
        const uint32_t want = b->prompt - 1;
        const struct pick pick = greedy(b->prompt);
        const struct step step = { ++b->number, b->prompt, 1,    b->prompt_pages, 0,    1, rows,
                                   &all,        pages,     NULL, &want,           &pick };
        double began;
        uint32_t token;

        if (!rows || !pages)
                abort();
        for (uint32_t i = 0; i < b->prompt; i++)
                rows[i] = (struct step_row){ .position = i,
                                             .token = i * 7919u % b->shape.vocab,
                                             .from_row = STEP_TOKEN,
                                             .write = 1 };
        for (uint32_t i = 0; i < b->prompt_pages; i++)
                pages[i] = (struct step_page){ 0, i, i };
        began = figure_clock();
        run(b, &step);
        must(b->k->collect(b->k, step.number, &token), "a prompt");
        began = figure_clock() - began;
        free(rows);
        free(pages);
        if (token == PICK_NOT_FINITE) {
                fprintf(stderr, "bench-steps: %s: the logits of a prompt are not finite\n",
                        b->named->name);
                b->wrong = true;
        }
        return began;
}

struct decoding {
        uint32_t batch, done; /* steps */
        struct step_row rows[BATCH_MAX];
        struct step_run runs[BATCH_MAX];
        uint32_t want[BATCH_MAX], tokens[BATCH_MAX];
        struct pick picks[BATCH_MAX];
        /* Whether the row picked another token at least once. */
        bool is_apart[BATCH_MAX];
        uint32_t apart; /* the number of such rows */
};

static void put_decode(struct bench *b, struct decoding *d)
{
        uint32_t position = b->context + d->done % b->more;
        struct step step = { ++b->number, d->batch, d->batch, 0,    0,       d->batch,
                             d->rows,     d->runs,  NULL,     NULL, d->want, d->picks };

        for (uint32_t i = 0; i < d->batch; i++) {
                d->rows[i] = (struct step_row){ i, position, 1, STEP_TOKEN, 0, 1 };
                if (d->done) {
                        d->rows[i].from_row = i;
                        d->rows[i].from_step = step.number - 1;
                }
                d->runs[i] = (struct step_run){ i, 1 };
                d->want[i] = i;
                d->picks[i] = greedy(position);
        }
        run(b, &step);
        d->done++;
}

/* Counts the rows that did not pick the expected token; a line on stderr reports the first. */
static void judge(struct bench *b, struct decoding *d, uint32_t expected)
{
        for (uint32_t i = 0; i < d->batch; i++) {
                bool good = d->tokens[i] == expected && expected != PICK_NOT_FINITE;

                if (good || d->is_apart[i])
                        continue;
                if (!d->apart++)
                        fprintf(stderr,
                                "bench-steps: %s, %u at once, %s: row %u picked %d, not %d\n",
                                b->named->name, d->batch, ways[b->way], i, (int)d->tokens[i],
                                (int)expected);
                d->is_apart[i] = true;
        }
}

static void take(struct bench *b, struct decoding *d, uint64_t number)
{
        must(b->k->collect(b->k, number, d->tokens), "a token");
        judge(b, d, d->tokens[0]);
}

/* Compares the first steps of a batch, whose tokens must not depend on the way to the device. */
static void compare(struct bench *b, struct decoding *d, unsigned which)
{
        for (uint32_t i = 0; i < COMPARED; i++) {
                put_decode(b, d);
                take(b, d, b->number);
                if (b->way == LAUNCHED)
                        b->picked[which][i] = d->tokens[0];
                else if (!b->quick)
                        judge(b, d, b->picked[which][i]);
        }
}

static uint32_t segments(const struct bench *b)
{
        return b->tiny ? 2 : b->quick ? QUICK : SEGMENTS;
}

/* Measures tokens a second, and the cost of a step for the host. */
static struct figure decode(struct bench *b, struct decoding *d, struct figure *ret_host)
{
        double rates[SEGMENTS], host[SEGMENTS];
        uint32_t count = segments(b);

        put_decode(b, d);
        for (uint32_t s = 0; s < count; s++) {
                double began = figure_clock(), sum = 0;
                uint32_t steps = 0;

                do {
                        put_decode(b, d);
                        sum += b->begun;
                        take(b, d, b->number - 1);
                        steps++;
                } while (steps < 4 || (!b->tiny && figure_clock() - began < SEGMENT));
                rates[s] = (double)d->batch * steps / (figure_clock() - began);
                host[s] = sum / steps * 1e6;
        }
        take(b, d, b->number);
        *ret_host = figure_of(host, count);
        return figure_of(rates, count);
}

/* ---- figures ---- */

static void tell_apart(struct bench *b, const struct decoding *d, uint32_t batch)
{
        const struct figure f = { d->apart, d->apart, d->apart };
        char what[160];

        if (!d->apart)
                return;
        snprintf(what, sizeof(what), "%s, %u at once, %s, rows that picked otherwise",
                 b->named->name, batch, ways[b->way]);
        figure_tell("steps", what, "rows", prediction_of_all(0), &f, 0);
        b->wrong = true;
}

static void tell_decodes(struct bench *b, unsigned which)
{
        struct decoding *d = calloc(1, sizeof(*d));
        uint32_t batch = batches[which];
        struct figure f = { 0, 0, 0 }, host = { 0, 0, 0 };
        double expected;
        char what[160];

        if (!d)
                abort();
        d->batch = batch < b->batch_max ? batch : b->batch_max;
        if (!b->predict) {
                compare(b, d, which);
                f = decode(b, d, &host);
        }
        snprintf(what, sizeof(what), "%s, %u at once, context %u, %s", b->named->name, batch,
                 CONTEXT, ways[b->way]);
        figure_tell("steps", what, "tokens/s", predict(b, which), b->predict ? NULL : &f,
                    f.median / batch * limit(b->card, &b->named->shape, batch, CONTEXT));
        snprintf(what, sizeof(what), "%s, %u at once, the host's time for a step, %s",
                 b->named->name, batch, ways[b->way]);
        expected = b->way == RECORDED ? REPLAY : (PER_LAYER * b->named->shape.layers + 6) * LAUNCH;
        figure_tell("steps", what, "us", prediction_of_all(expected * 1e6),
                    b->predict ? NULL : &host, 0);
        tell_apart(b, d, batch);
        free(d);
}

static void tell_prompts(struct bench *b)
{
        struct prediction predicted;
        double samples[SEGMENTS];
        uint32_t count = b->tiny ? 2 : 3;
        struct figure f = { 0, 0, 0 };
        char what[120];

        if (!b->predict) {
                read_prompt(b);
                for (uint32_t i = 0; i < count; i++)
                        samples[i] = b->prompt / read_prompt(b);
                f = figure_of(samples, count);
        }
        snprintf(what, sizeof(what), "%s, a prompt of %u, %s", b->named->name, PROMPT,
                 ways[b->way]);
        memcpy(predicted.on, b->named->prompt, sizeof(predicted.on));
        figure_tell("steps", what, "tokens/s", predicted, b->predict ? NULL : &f,
                    f.median / (b->card->products / 2 / random_numbers(&b->named->shape)));
}

static void tell_warm_up(struct bench *b)
{
        double began = figure_clock();
        struct figure f;
        char what[120];

        if (!b->predict)
                must(random_warm_up(&b->model), "the warm-up");
        began = figure_clock() - began;
        f = (struct figure){ began, began, began };
        snprintf(what, sizeof(what), "%s, warm-up", b->named->name);
        figure_tell("steps", what, "s", prediction_of_all(REHEARSAL), b->predict ? NULL : &f, 0);
}

static void close_model(struct bench *b)
{
        random_close(&b->model);
        b->k->close(b->k);
}

/* Returns false if the GPU has too little memory for the model. */
static bool open_model(struct bench *b)
{
        const struct kernels_conf conf = {
                .rows_max = b->prompt > b->batch_max ? b->prompt : b->batch_max,
                .slots_max = b->batch_max,
                .pages_max = b->prompt_pages > b->slot_pages ? b->prompt_pages : b->slot_pages,
                .vocab_max = b->shape.vocab,
                .wants_max = b->batch_max,
                .library = b->library,
        };
        double began = figure_clock();
        char what[160];
        int r;

        must(kernels_open("cuda", &conf, &b->k), "the backend");
        b->card = card_of(b->k->about);
        if (b->k->missing)
                fprintf(stderr, "bench-steps: %s\n", b->k->missing);
        r = random_open(&b->model, b->k, &b->shape, &conf,
                        b->prompt_pages + b->batch_max * b->slot_pages, b->threads);
        if (r != -ENOMEM) {
                must(r, "a model");
                fprintf(stderr, "bench-steps: %s: made in %.1f s\n", b->named->name,
                        figure_clock() - began);
                return true;
        }
        close_model(b);
        snprintf(what, sizeof(what), "%s, does not fit into the GPU's memory", b->named->name);
        fprintf(stderr, "bench-steps: %s\n", what);
        figure_tell("steps", what, "-", prediction_of_all(0), NULL, 0);
        return false;
}

static void set_sizes(struct bench *b)
{
        static const struct random_shape tiny = { 2, 64, 128, 4, 2, 32, 128, ROW_BF16, true, true };
        static const struct random_shape of_large_blocks = { 2,  256, 256,      8,    2,
                                                             32, 128, ROW_BF16, true, true };

        b->shape = b->named->shape;
        b->context = CONTEXT;
        b->prompt = PROMPT;
        b->more = MORE;
        b->batch_max = BATCH_MAX;
        if (b->tiny) {
                enum row_type type = b->shape.type;

                b->shape = row_bytes(type, tiny.columns) ? tiny : of_large_blocks;
                b->shape.type = type;
                b->context = 33;
                b->prompt = 40;
                b->more = 15;
                b->batch_max = 3;
        }
        b->prompt_pages = (b->prompt + PAGE_POSITIONS - 1) / PAGE_POSITIONS;
        b->slot_pages = (b->context + b->more + PAGE_POSITIONS - 1) / PAGE_POSITIONS;
}

static void measure(struct bench *b)
{
        set_sizes(b);
        b->number = 0;
        if (!b->predict && !open_model(b))
                return;
        for (b->way = b->quick ? RECORDED : LAUNCHED; b->way <= RECORDED; b->way++) {
                if (b->way == RECORDED)
                        tell_warm_up(b);
                tell_prompts(b);
                if (!b->predict)
                        set_up(b);
                for (unsigned i = 0; i < BATCHES; i++)
                        tell_decodes(b, i);
        }
        if (!b->predict)
                close_model(b);
}

static int refuse(void)
{
        fputs("usage: bench-steps [--tiny] [--quick] [--predict] [--threads N] --library FILE "
              "MODEL ...\nmodels:\n",
              stderr);
        for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++)
                fprintf(stderr, "    \"%s\"\n", models[i].name);
        return 2;
}

int main(int argc, char **argv)
{
        struct bench b = { .threads = 8, .card = card_of(NULL) };
        int i = 1;

        for (; i < argc && argv[i][0] == '-'; i++)
                if (!strcmp(argv[i], "--tiny"))
                        b.tiny = true;
                else if (!strcmp(argv[i], "--quick"))
                        b.quick = true;
                else if (!strcmp(argv[i], "--predict"))
                        b.predict = true;
                else if (!strcmp(argv[i], "--threads") && i + 1 < argc)
                        b.threads = (unsigned)atoi(argv[++i]);
                else if (!strcmp(argv[i], "--library") && i + 1 < argc)
                        b.library = argv[++i];
                else
                        return refuse();
        if (i == argc || !b.threads || (!b.library && !b.predict))
                return refuse();
        for (; i < argc; i++) {
                b.named = NULL;
                for (size_t m = 0; m < sizeof(models) / sizeof(*models); m++)
                        if (!strcmp(models[m].name, argv[i]))
                                b.named = &models[m];
                if (!b.named)
                        return refuse();
                measure(&b);
        }
        return b.wrong;
}
