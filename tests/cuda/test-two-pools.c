/*
 * Layers with heads of two sizes, whose pages are in two pools of one group, run by the emulator,
 * against ref.  Heads of 64 numbers have a kernel for long runs.  Those of 512 have none, so attend
 * takes all their runs.
 */
#include "tests/cuda/backend-fixture.h"

#define POOLS    2u
#define LAYERS   2u /* of each pool */
#define COLUMNS  64u
#define HEADS    4u
#define KV_HEADS 2u
#define ROWS     130u
#define WIDEST   (HEADS * 512u)
#define POSITION (SLOT_PAGES * PAGE_POSITIONS)

/* Layers of both pools differ in the size of their heads only. */
static const uint32_t dims[POOLS] = { 64, 512 }, windows[LAYERS] = { 20, 0 };

enum { GPU, REF, SIDES };

/* A layer of each pool in one backend. */
struct model_of_two {
        struct kernels *k;
        struct kv *pools[KV_POOLS_MAX];
        struct matrix *w[POOLS];
        float *x, *q[POOLS], *out[POOLS * LAYERS], *logits;
};

/* ---- objects ---- */

/* Products are exact, so both sides round nearly the same numbers of K and V. */
static float *random_bfloats(size_t count)
{
        float *floats = random_floats(count);

        for (size_t i = 0; i < count; i++)
                floats[i] = bfloat_to_float(float_to_bfloat(floats[i]));
        return floats;
}

static void matrix_make(struct kernels *k, uint32_t pool, const float *rows, struct matrix **ret)
{
        /* q, k and v; or q and k, which is v, too */
        const uint32_t heads = HEADS * dims[pool], kv = KV_HEADS * dims[pool];
        const struct matrix_shape shape = { COLUMNS, 3 - pool, { heads, kv, kv }, { ROW_F32 } };

        assert_int_equal(k->matrix_new(k, &shape, ret), 0);
        for (uint32_t p = 0; p < shape.parts; p++) {
                assert_int_equal(k->weights_put(k, *ret, p, 0, shape.rows[p], rows), 0);
                rows += (size_t)shape.rows[p] * COLUMNS;
        }
}

static void model_of_two_open(struct model_of_two *m, struct kernels *k, enum kv_type type,
                              const float *weights, const float *x)
{
        *m = (struct model_of_two){ .k = k };
        for (uint32_t i = 0; i < POOLS; i++) {
                const struct kv_shape shape = { LAYERS, KV_HEADS,   dims[i], PAGES,
                                                type,   SWAP_PAGES, 0 };

                assert_int_equal(k->kv_new(k, &shape, &m->pools[i]), 0);
                matrix_make(k, i, weights, &m->w[i]);
                assert_int_equal(k->floats_new(k, (size_t)ROWS * WIDEST, &m->q[i]), 0);
        }
        for (uint32_t i = 0; i < POOLS * LAYERS; i++)
                assert_int_equal(k->floats_new(k, (size_t)ROWS * WIDEST, &m->out[i]), 0);
        assert_int_equal(k->floats_new(k, ROWS * COLUMNS, &m->x), 0);
        assert_int_equal(k->floats_new(k, ROWS * 5, &m->logits), 0);
        k->put(k, m->x, x, ROWS * COLUMNS);
}

static void model_of_two_close(struct model_of_two *m)
{
        for (uint32_t i = 0; i < POOLS; i++) {
                m->k->kv_free(m->k, m->pools[i]);
                m->k->matrix_free(m->k, m->w[i]);
                m->k->floats_free(m->k, m->q[i]);
        }
        for (uint32_t i = 0; i < POOLS * LAYERS; i++)
                m->k->floats_free(m->k, m->out[i]);
        m->k->floats_free(m->k, m->x);
        m->k->floats_free(m->k, m->logits);
        m->k->close(m->k);
}

/* ---- a step ---- */

/* The sizes of heads alternate. */
static int operators(void *arg)
{
        struct model_of_two *m = arg;

        for (uint32_t i = 0; i < POOLS * LAYERS; i++) {
                uint32_t pool = i % POOLS;
                const struct qkv qkv = { .w = m->w[pool],
                                         .q_norm = { NORM_RMS, NULL, NULL, 1e-5f },
                                         .k_norm = { NORM_RMS, NULL, NULL, 1e-5f },
                                         .v_norm = { NORM_RMS, NULL, NULL, 1e-5f },
                                         .kv = m->pools[pool],
                                         .layer = i / POOLS,
                                         .heads = HEADS,
                                         .kv_heads = KV_HEADS,
                                         .head_dim = dims[pool] };
                const struct attend attend = { .kv = m->pools[pool],
                                               .layer = i / POOLS,
                                               .heads = HEADS,
                                               .kv_heads = KV_HEADS,
                                               .head_dim = dims[pool],
                                               .scale = 1.f / 32,
                                               .window = windows[i / POOLS] };
                int r = m->k->qkv(m->k, &qkv, m->q[pool], m->x);

                if (!r)
                        r = m->k->attend(m->k, &attend, m->out[i], m->q[pool]);
                if (r)
                        return r;
        }
        return 0;
}

struct rows { /* of a slot */
        uint32_t slot, position, count;
};

static void run(struct model_of_two *m, uint64_t number, const struct rows *of, uint32_t run_count,
                const struct step_copy *copies, uint32_t copy_count, bool rehearsed)
{
        struct step_page pages[SLOTS * SLOT_PAGES];
        struct step_run runs[SLOTS];
        struct step_row rows[ROWS];
        struct step step = { .number = number,
                             .run_count = run_count,
                             .copy_count = copy_count,
                             .rows = rows,
                             .runs = runs,
                             .pages = pages,
                             .copies = copies };
        int r;

        for (uint32_t i = 0; i < run_count; i++) {
                runs[i] = (struct step_run){ step.row_count, of[i].count };
                for (uint32_t j = 0; j < of[i].count; j++)
                        rows[step.row_count++] = (struct step_row){ .slot = of[i].slot,
                                                                    .position = of[i].position + j,
                                                                    .from_row = STEP_TOKEN,
                                                                    .write = true };
        }
        for (uint32_t i = 0; number == 1 && i < SLOTS * SLOT_PAGES; i++)
                pages[step.page_count++] =
                        (struct step_page){ i / SLOT_PAGES, i % SLOT_PAGES,
                                            page_of(i / SLOT_PAGES, i % SLOT_PAGES) };
        r = m->k->step_begin(m->k, m->pools, &step);
        assert_int_equal(r, rehearsed ? STEP_REPLAYED : 0);
        if (!rehearsed)
                assert_int_equal(operators(m), 0);
        assert_int_equal(m->k->step_end(m->k), 0);
        assert_int_equal(m->k->collect(m->k, number, NULL), 0);
}

/* ---- tests ---- */

/*
 * Norms add in another order on each side.  So a number of V that lies between two codes of 8 bits
 * may get one of them here and the other there.  Then one column of one KV head is off, in all rows
 * that attend to this position, by a step of the codes at most.  Any other fault is in many
 * columns.
 */
#define COLUMNS_OFF 4u

struct columns_off {
        float step; /* 0: no column may be off */
        uint32_t at[COLUMNS_OFF], count;
};

/* V is less than 8. */
static float step_of(enum kv_type type)
{
        return type == KV_INT8 ? 8.f / 127 : type == KV_FP8 ? 0.5f : 0;
}

static bool may_be_off(struct columns_off *columns, uint32_t column, float off)
{
        if (!(off <= columns->step))
                return false;
        for (uint32_t i = 0; i < columns->count; i++)
                if (columns->at[i] == column)
                        return true;
        if (columns->count == COLUMNS_OFF)
                return false;
        columns->at[columns->count++] = column;
        return true;
}

/* Returns the column of K and V that a number of a layer's output is made of. */
static uint32_t column_of(size_t at, uint32_t dim)
{
        const uint32_t head = (uint32_t)(at / dim % HEADS);

        return head / (HEADS / KV_HEADS) * dim + (uint32_t)(at % dim);
}

static void outputs_near(struct model_of_two *sides, uint32_t rows, enum kv_type type)
{
        size_t count = (size_t)ROWS * WIDEST;
        float *is = malloc(count * sizeof(*is)), *should = malloc(count * sizeof(*should));

        assert_true(is && should);
        for (uint32_t i = 0; i < POOLS * LAYERS; i++) {
                struct columns_off columns = { .step = step_of(type) };
                size_t some = (size_t)rows * HEADS * dims[i % POOLS];

                sides[GPU].k->get(sides[GPU].k, is, sides[GPU].out[i], some);
                sides[REF].k->get(sides[REF].k, should, sides[REF].out[i], some);
                for (size_t at = 0; at < some; at++) { /* V has numbers of about 1 */
                        float off = fabsf(is[at] - should[at]);

                        if (!(off <= 0.01f + fabsf(should[at]) * 0.01f) &&
                            !may_be_off(&columns, column_of(at, dims[i % POOLS]), off))
                                fail_msg("layer %u, number %zu is %g, not %g", i, at, is[at],
                                         should[at]);
                }
        }
        free(is);
        free(should);
}

static void pages_are_copied(struct model_of_two *m, uint32_t from, uint32_t to)
{
        for (uint32_t i = 0; i < POOLS; i++) {
                size_t bytes = kv_page_bytes(
                        &(struct kv_shape){ LAYERS, KV_HEADS, dims[i], 1, KV_F16, 0, 0 });
                uint8_t *pages = malloc(PAGES * bytes);

                assert_non_null(pages);
                peek(pages, m->pools[i]->pages, PAGES * bytes);
                assert_memory_equal(pages + from * bytes, pages + to * bytes, bytes);
                free(pages);
        }
}

static void compare(enum kv_type type, bool deterministic, bool rehearsed)
{
        /* Slot 2 takes what slot 1 has at positions 0 to 15, by way of a swap page. */
        const uint32_t from = page_of(1, 0), to = page_of(2, 0);
        const struct step_copy out = { from, PAGES, 0 }, back = { PAGES, to, 0 };
        const struct rows first[] = { { 0, 0, POSITION } }, other[] = { { 1, 0, 30 } };
        const struct rows last[] = { { 1, 30, 3 }, { 2, 16, 2 } };
        const uint32_t compared[] = { POSITION, 30, 3, 5 }; /* rows of each step */
        float *weights = random_bfloats((size_t)(WIDEST + 1024) * COLUMNS);
        float *x = random_bfloats(ROWS * COLUMNS);
        struct kernels_conf conf = cuda_conf();
        struct model_of_two sides[SIDES];
        struct kernels *k;

        assert_int_equal(kernels_open("ref", &conf, &k), 0);
        model_of_two_open(&sides[REF], k, type, weights, x);
        conf.deterministic = deterministic;
        model_of_two_open(&sides[GPU], cuda_open(&conf), type, weights, x);
        if (rehearsed)
                assert_int_equal(sides[GPU].k->warm_up(sides[GPU].k, operators, &sides[GPU]), 0);
        for (uint32_t step = 1; step < 5; step++) {
                for (uint32_t side = 0; side < SIDES; side++) {
                        bool replayed = rehearsed && side == GPU;

                        if (step == 1)
                                run(&sides[side], step, first, 1, NULL, 0, replayed);
                        if (step == 2)
                                run(&sides[side], step, other, 1, NULL, 0, replayed);
                        if (step == 3)
                                run(&sides[side], step, last, 1, &out, 1, replayed);
                        if (step == 4)
                                run(&sides[side], step, last, 2, &back, 1, replayed);
                }
                outputs_near(sides, compared[step - 1], type);
        }
        if (type == KV_F16)
                pages_are_copied(&sides[GPU], from, to);
        for (uint32_t side = 0; side < SIDES; side++)
                model_of_two_close(&sides[side]);
        free(weights);
        free(x);
}

static void heads_of_two_sizes_alternate_by_layer(void **state)
{
        static const enum kv_type types[] = { KV_F16, KV_BF16, KV_INT8, KV_FP8 };

        (void)state;
        for (uint32_t i = 0; i < 4; i++)
                compare(types[i], i % 2, false);
}

static void captured_steps_have_heads_of_two_sizes(void **state)
{
        (void)state;
        compare(KV_F16, false, true);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(heads_of_two_sizes_alternate_by_layer),
                cmocka_unit_test(captured_steps_have_heads_of_two_sizes),
        };

        random_seed();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
