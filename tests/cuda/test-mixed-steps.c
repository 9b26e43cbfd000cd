/*
 * Prompts and decodes in one step, where the backend for GPUs need not be deterministic,
 * against ref.
 *
 * All numbers are small multiples of 1/8 or of 1/64, so q, k and v are exactly the same in every
 * backend.  The result of attention can be checked against the bound in its header. Chunks have
 * just enough rows for the kernel of prompts, or just too few; steps are captured, or not.  A
 * deterministic backend runs beside it: for decodes and short chunks both have the same bits.
 */
#include "tests/cuda/backend-fixture.h"

#define MY_ROWS   300u
#define MY_SLOTS  5u
#define MY_TABLE  32u /* pages of a slot */
#define MY_TOKENS 50u
#define COLUMNS   64u
#define HEADS     4u
#define KV_HEADS  2u
#define HEAD_DIM  32u
#define OUT       (HEADS * HEAD_DIM)
#define LONG      128u /* attend-prompt.h */
#define STEPS     6u

struct chat {
        struct kernels *k;
        struct matrix *table, *qkv;
        float *x, *q, *a;
        struct kv *kv;
        uint32_t window;
};

static struct {
        uint32_t lengths[MY_SLOTS];
        struct step step;
        struct step_row rows[MY_ROWS];
        struct step_run runs[MY_SLOTS];
        struct step_page pages[MY_SLOTS * MY_TABLE];
} my;

/* Of every 8 one, from -1 to 1. */
static void sparse_row(float row[COLUMNS], uint64_t seed)
{
        for (uint32_t i = 0; i < COLUMNS; i++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                row[i] = seed >> 61 ? 0 : (float)((int32_t)(seed >> 40 & 15) - 7) / 8;
        }
}

static struct matrix *matrix_load(struct kernels *k, uint32_t parts, const uint32_t *rows)
{
        struct matrix_shape shape = { .columns = COLUMNS, .parts = parts };
        struct matrix *matrix;

        for (uint32_t p = 0; p < parts; p++)
                shape.rows[p] = rows[p];
        assert_int_equal(k->matrix_new(k, &shape, &matrix), 0);
        for (uint32_t p = 0; p < parts; p++)
                for (uint32_t r = 0; r < rows[p]; r++) {
                        float row[COLUMNS];

                        sparse_row(row, (uint64_t)(parts * 10 + p) * 1000 + r);
                        k->weights_put(k, matrix, p, r, 1, row);
                }
        return matrix;
}

static int operators(void *arg)
{
        struct chat *c = arg;
        const struct qkv qkv = {
                .w = c->qkv, .kv = c->kv, .heads = HEADS, .kv_heads = KV_HEADS, .head_dim = HEAD_DIM
        };
        const struct attend attend = { .kv = c->kv,
                                       .heads = HEADS,
                                       .kv_heads = KV_HEADS,
                                       .head_dim = HEAD_DIM,
                                       .scale = 1,
                                       .window = c->window };
        const struct embed embed = { .table = c->table, .scale = 1 };
        int r;

        if ((r = c->k->embed(c->k, &embed, c->x)) || (r = c->k->qkv(c->k, &qkv, c->q, c->x)))
                return r;
        return c->k->attend(c->k, &attend, c->a, c->q);
}

static void chat_open(struct chat *c, const char *backend, bool deterministic, uint32_t window)
{
        const struct kv_shape pool = { 1, KV_HEADS, HEAD_DIM, MY_SLOTS * MY_TABLE, KV_F16 };
        struct kernels_conf conf = cuda_conf();

        *c = (struct chat){ .window = window };
        conf.rows_max = MY_ROWS;
        conf.wants_max = 1;
        conf.slots_max = MY_SLOTS;
        conf.pages_max = MY_TABLE;
        conf.deterministic = deterministic;
        if (strcmp(backend, "cuda"))
                assert_int_equal(kernels_open(backend, &conf, &c->k), 0);
        else
                c->k = cuda_open(&conf);
        c->table = matrix_load(c->k, 1, (uint32_t[]){ MY_TOKENS });
        c->qkv =
                matrix_load(c->k, 3, (uint32_t[]){ OUT, KV_HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM });
        assert_int_equal(c->k->floats_new(c->k, MY_ROWS * COLUMNS, &c->x), 0);
        assert_int_equal(c->k->floats_new(c->k, MY_ROWS * OUT, &c->q), 0);
        assert_int_equal(c->k->floats_new(c->k, MY_ROWS * OUT, &c->a), 0);
        assert_int_equal(c->k->kv_new(c->k, &pool, &c->kv), 0);
}

static void chat_close(struct chat *c)
{
        c->k->kv_free(c->k, c->kv);
        c->k->floats_free(c->k, c->x);
        c->k->floats_free(c->k, c->q);
        c->k->floats_free(c->k, c->a);
        c->k->matrix_free(c->k, c->table);
        c->k->matrix_free(c->k, c->qkv);
        c->k->close(c->k);
}

/* The result of attention for the step's rows. */
static float *answer(struct chat *c)
{
        float *a = malloc(MY_ROWS * OUT * sizeof(*a));
        int r = c->k->step_begin(c->k, KV_ALONE(c->kv), &my.step);

        assert_non_null(a);
        if (r != STEP_REPLAYED) {
                assert_int_equal(r, 0);
                assert_int_equal(operators(c), 0);
        }
        c->k->get(c->k, a, c->a, my.step.row_count * OUT);
        assert_int_equal(c->k->step_end(c->k), 0);
        assert_int_equal(c->k->collect(c->k, my.step.number, NULL), 0);
        return a;
}

/* Slots one after the other; a long run only if all that are left have room for a row. */
static void add_run(uint32_t slot, uint32_t count)
{
        struct step_run *run = &my.runs[my.step.run_count];

        if (my.step.row_count + count + MY_SLOTS > MY_ROWS)
                count = 1;
        if (my.lengths[slot] + count > MY_TABLE * PAGE_POSITIONS)
                my.lengths[slot] = 0;
        *run = (struct step_run){ my.step.row_count, count };
        my.step.run_count++;
        for (uint32_t i = 0; i < count; i++) {
                uint32_t position = my.lengths[slot]++, index = position / PAGE_POSITIONS;

                my.rows[my.step.row_count++] = (struct step_row){ .slot = slot,
                                                                  .position = position,
                                                                  .token = random_below(MY_TOKENS),
                                                                  .from_row = STEP_TOKEN,
                                                                  .write = 1 };
                if (position % PAGE_POSITIONS == 0)
                        my.pages[my.step.page_count++] = (struct step_page){
                                slot, index, (slot + index * 7) % MY_TABLE * MY_SLOTS + slot
                        };
        }
}

static void make_step(uint64_t number)
{
        uint32_t first = random_below(MY_SLOTS);

        my.step = (struct step){
                .number = number, .rows = my.rows, .runs = my.runs, .pages = my.pages
        };
        for (uint32_t i = 0; i < MY_SLOTS; i++) {
                uint32_t kind = i == 2 ? 0 : random_below(4);

                add_run((first + i) % MY_SLOTS, kind == 0   ? LONG + random_below(40)
                                                : kind == 1 ? LONG - 1 - random_below(100)
                                                            : 1);
        }
}

/* Values are no larger than 4: attend.h's slack, and attend-prompt.h's. */
static void check(const float *is, const float *should, const float *alone, uint32_t *ret_other)
{
        for (uint32_t r = 0; r < my.step.run_count; r++) {
                const struct step_run *run = &my.runs[r];

                for (uint32_t i = run->row * OUT; i < (run->row + run->count) * OUT; i++) {
                        double want = (double)should[i];

                        if (!(fabs((double)is[i] - want) <= 4 * 0x1p-10 + fabs(want) * 0x1p-8))
                                fail_msg("step %u: run of %u rows: row %u number %u: %g, not %g",
                                         (unsigned)my.step.number, run->count, i / OUT, i % OUT,
                                         (double)is[i], want);
                        if (is[i] == alone[i])
                                continue;
                        if (run->count < LONG)
                                fail_msg("step %u: run of %u rows: other bits than alone",
                                         (unsigned)my.step.number, run->count);
                        ++*ret_other;
                }
        }
}

static void compare_with_ref(bool rehearsed, uint32_t window)
{
        struct chat fast, exact, plain;
        uint32_t other = 0;

        memset(&my, 0, sizeof(my));
        chat_open(&fast, "cuda", false, window);
        chat_open(&exact, "cuda", true, window);
        chat_open(&plain, "ref", true, window);
        if (rehearsed)
                assert_int_equal(fast.k->warm_up(fast.k, operators, &fast), 0);
        for (uint64_t number = 1; number <= STEPS; number++) {
                float *is, *alone, *should;

                make_step(number);
                is = answer(&fast);
                alone = answer(&exact);
                should = answer(&plain);
                check(is, should, alone, &other);
                free(is);
                free(alone);
                free(should);
        }
        /* otherwise the kernel of prompts was never used */
        assert_true(other > 0);
        chat_close(&fast);
        chat_close(&exact);
        chat_close(&plain);
}

static void steps_of_prompts_and_decodes_match_ref(void **state)
{
        (void)state;
        compare_with_ref(false, 0);
        compare_with_ref(false, 100);
}

static void rehearsed_steps_of_prompts_and_decodes_match_ref(void **state)
{
        (void)state;
        compare_with_ref(true, 0);
        compare_with_ref(true, 100);
}

static int begin_random(void **state)
{
        (void)state;
        random_seed();
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(steps_of_prompts_and_decodes_match_ref),
                cmocka_unit_test(rehearsed_steps_of_prompts_and_decodes_match_ref),
        };

        return cmocka_run_group_tests(tests, begin_random, NULL);
}
