/*
 * Reference attention against the formula in long double, among pages full of NaN.  It also
 * checks the promise that a row's bits do not depend on other rows.
 */
#include "tests/kernels/ref-fixture.h"

/* Keys and values of one slot, as pages give them back. */
struct past {
        float kv[2][TABLE * 16][KV_HEADS][DIM];
};

/* Bytes: with a scale that no other position, head, or tile has. */
static void number_put(const struct fixture *b, size_t at, float f)
{
        float *scale;
        uint8_t *place = kv_place(b, at, &scale);

        switch (b->kv->shape.type) {
        case KV_F16:
                *(uint16_t *)place = float_to_half(f);
                break;
        case KV_BF16:
                *(uint16_t *)place = float_to_bfloat(f);
                break;
        case KV_INT8:
                *scale = (1 + (float)(at / DIM % 997) * 0.001f) / 127;
                *(int8_t *)place = (int8_t)rintf(f / *scale);
                break;
        case KV_FP8:
                *scale = (1 + (float)(at / DIM % 997) * 0.001f) / 448;
                *place = float_to_e4m3(f / *scale);
                break;
        case KV_F32:
                *(float *)place = f;
        }
}

static void past_fill(struct fixture *b, struct past *past, uint32_t slot, uint32_t count)
{
        noise((float *)past->kv, sizeof(past->kv) / 4, 100 + slot);
        for (uint32_t i = 0; i < 2 * count * KV_HEADS * DIM; i++) {
                uint32_t d = i % DIM, h = i / DIM % KV_HEADS, p = i / DIM / KV_HEADS % count;
                uint32_t v = i / DIM / KV_HEADS / count;
                size_t at = number_at(slot, p, 1, h, v, d);
                float *f = &past->kv[v][p][h][d];

                number_put(b, at, *f);
                *f = kv_number(b, at);
        }
}

static long double attend_expect(const struct attend *op, const struct past *past, const float *q,
                                 uint32_t own, uint32_t h, uint32_t d)
{
        long double top = 0, bottom = op->sinks ? expl(op->sinks[h]) : 0;

        for (uint32_t p = 0; p <= own; p++) {
                long double s = 0;

                if (op->window && own - p >= op->window)
                        continue;
                for (uint32_t i = 0; i < DIM; i++)
                        s += (long double)q[h * DIM + i] * past->kv[0][p][h / 2][i] * op->scale;
                if (op->softcap > 0)
                        s = op->softcap * tanhl(s / op->softcap);
                if (op->slopes)
                        s -= (long double)op->slopes[h] * (own - p);
                top += expl(s) * past->kv[1][p][h / 2][d];
                bottom += expl(s);
        }
        return top / bottom;
}

static struct attend attend_make(const struct fixture *b)
{
        return (struct attend){ .kv = b->kv,
                                .layer = 1,
                                .heads = HEADS,
                                .kv_heads = KV_HEADS,
                                .head_dim = DIM,
                                .scale = 1.75f };
}

static void attend_check(struct fixture *b, const struct attend *op, const struct past *past,
                         uint32_t position, uint32_t count)
{
        static float q[ROWS * HEADS * DIM], out[ROWS * HEADS * DIM];
        size_t n = (size_t)count * HEADS * DIM;
        float *bq, *bout;

        noise(q, n, 7);
        bq = given(b, q, n);
        bout = floats_new(b, n);
        begin_one(b, 1, position, count);
        assert_int_equal(b->k->attend(b->k, op, bout, bq), 0);
        b->k->get(b->k, out, bout, n);
        for (uint32_t i = 0; i < n; i++) {
                uint32_t r = i / (HEADS * DIM);

                assert_near(out[i], attend_expect(op, past, q + (size_t)r * HEADS * DIM,
                                                  position + r, i / DIM % HEADS, i % DIM));
        }
        b->k->step_end(b->k);
}

static void equal_scores_give_the_mean_of_the_values(void **state)
{
        const float q[2 * DIM] = { 0 };
        struct attend op;
        struct fixture b;
        float out[2 * DIM], *bout;

        (void)state;
        fixture_open(&b);
        op = attend_make(&b);
        op.heads = 2;
        for (uint32_t p = 0; p < 2; p++)
                for (uint32_t i = 0; i < 2 * DIM; i++) {
                        ((float *)b.kv->pages)[number_at(0, p, 1, i / DIM, 0, i % DIM)] = 9;
                        ((float *)b.kv->pages)[number_at(0, p, 1, i / DIM, 1, i % DIM)] =
                                (float)(p ? 3 * i : i);
                }
        bout = floats_new(&b, 2 * DIM);
        begin_one(&b, 0, 1, 1);
        assert_int_equal(b.k->attend(b.k, &op, bout, given(&b, q, 2 * DIM)), 0);
        b.k->get(b.k, out, bout, 2 * DIM);
        for (uint32_t i = 0; i < 2 * DIM; i++)
                assert_true(out[i] == (float)(2 * i));
        fixture_close(&b);
}

static void attention_matches_its_formula_and_ignores_nan_in_unused_pages(void **state)
{
        float sinks[HEADS] = { -1, 0, 2, 0.5f }, slopes[HEADS] = { 0.5f, 0.25f, 0.125f, 0 };
        static struct past past;
        struct attend op;
        struct fixture b;

        (void)state;
        for (int type = 0; type < KV_TYPES; type++) {
                fixture_open_kv(&b, (enum kv_type)type);
                past_fill(&b, &past, 1, 45);
                op = attend_make(&b);
                attend_check(&b, &op, &past, 0, 45);
                op.softcap = 0.75f;
                attend_check(&b, &op, &past, 12, 30);
                op.sinks = given(&b, sinks, HEADS);
                attend_check(&b, &op, &past, 0, 3);
                op.softcap = 0;
                op.slopes = given(&b, slopes, HEADS);
                attend_check(&b, &op, &past, 30, 15);
                op.window = 5;
                attend_check(&b, &op, &past, 0, 40);
                op.softcap = 3;
                op.window = 1;
                attend_check(&b, &op, &past, 44, 1);
                fixture_close(&b);
        }
}

static void does_not_read_pages_behind_the_window(void **state)
{
        static struct past past;
        struct step_page gone = { 1, 0, UINT32_MAX };
        struct attend op;
        struct fixture b;

        (void)state;
        fixture_open(&b);
        past_fill(&b, &past, 1, 30);
        op = attend_make(&b);
        op.window = 6;
        /* page 0 leaves the table, and of page 1 the lines before 20 are poison */
        for (uint32_t p = 16; p < 20; p++)
                for (uint32_t i = 0; i < 2 * KV_HEADS * DIM; i++)
                        ((float *)b.kv->pages)[number_at(1, p, 1, i / DIM % KV_HEADS,
                                                         i / DIM / KV_HEADS, i % DIM)] = NAN;
        b.k->step_begin(b.k, KV_ALONE(b.kv),
                        &(struct step){ .number = ++b.number, .page_count = 1, .pages = &gone });
        b.k->step_end(b.k);
        attend_check(&b, &op, &past, 25, 5);
        fixture_close(&b);
}

static void large_scores_neither_overflow_nor_vanish(void **state)
{
        const float q[2 * DIM] = { 1e6f, 0, 0, 0, 0, 0, -1e6f };
        float *pages, out[2 * DIM], *bout;
        struct attend op;
        struct fixture b;

        (void)state;
        fixture_open(&b);
        op = attend_make(&b);
        op.heads = 2;
        pages = (float *)b.kv->pages;
        for (uint32_t p = 0; p < 2; p++)
                for (uint32_t i = 0; i < 2 * DIM; i++) {
                        pages[number_at(0, p, 1, i / DIM, 0, i % DIM)] = (float)(p + 1);
                        pages[number_at(0, p, 1, i / DIM, 1, i % DIM)] = (float)(p + 1);
                }
        bout = floats_new(&b, 2 * DIM);
        begin_one(&b, 0, 1, 1);
        assert_int_equal(b.k->attend(b.k, &op, bout, given(&b, q, 2 * DIM)), 0);
        b.k->get(b.k, out, bout, 2 * DIM);
        for (uint32_t i = 0; i < 2 * DIM; i++)
                assert_true(out[i] == (i < DIM ? 2 : 1));
        fixture_close(&b);
}

#define LAYER_ROWS 24u

struct layer_case {
        float w[(HEADS + 2 * KV_HEADS) * DIM * WIDTH], x[LAYER_ROWS * WIDTH];
        float out[LAYER_ROWS * HEADS * DIM];
};

/* qkv and attend of the rows of slot 0 in steps of `chunk`, with or without another slot's rows. */
static void layer_run(struct layer_case *c, uint32_t chunk, bool company)
{
        const float frequency[] = { 1, 0.25f, 0.0625f };
        size_t q_count = HEADS * DIM;
        float *x, *q, *out;
        struct attend attend;
        struct qkv qkv;
        struct fixture b;

        fixture_open(&b);
        attend = attend_make(&b);
        qkv = (struct qkv){
                .w = matrix_of(&b, WIDTH, 3,
                               (uint32_t[]){ HEADS * DIM, KV_HEADS * DIM, KV_HEADS * DIM }, c->w),
                .rope = { DIM, ROPE_HALVES, given(&b, frequency, 3), 1 },
                .kv = b.kv,
                .layer = 1,
                .heads = HEADS,
                .kv_heads = KV_HEADS,
                .head_dim = DIM
        };
        x = floats_new(&b, ROWS * WIDTH);
        q = floats_new(&b, ROWS * q_count);
        out = floats_new(&b, ROWS * q_count);
        for (uint32_t at = 0; at < LAYER_ROWS; at += chunk) {
                struct span spans[] = { { 1, at, chunk }, { 0, at, chunk } };
                uint32_t skip = company ? chunk : 0;

                for (uint32_t i = 0; i < skip * WIDTH; i++)
                        b.k->put(b.k, x + i, &c->w[i], 1);
                b.k->put(b.k, x + (size_t)skip * WIDTH, c->x + (size_t)at * WIDTH,
                         (size_t)chunk * WIDTH);
                begin(&b, spans + !company, company ? 2 : 1, true, NULL, 0);
                assert_int_equal(b.k->qkv(b.k, &qkv, q, x), 0);
                assert_int_equal(b.k->attend(b.k, &attend, out, q), 0);
                b.k->get(b.k, c->out + at * q_count, out + skip * q_count, chunk * q_count);
                b.k->step_end(b.k);
        }
        fixture_close(&b);
}

static void a_row_has_the_same_bits_alone_chunked_and_batched(void **state)
{
        static struct layer_case whole, other;

        (void)state;
        noise(whole.w, sizeof(whole.w) / 4, 1);
        noise(whole.x, sizeof(whole.x) / 4, 2);
        layer_run(&whole, LAYER_ROWS, false);
        for (uint32_t chunk = 1; chunk <= LAYER_ROWS; chunk++) {
                if (LAYER_ROWS % chunk)
                        continue;
                for (int company = 0; company < 2; company++) {
                        memcpy(other.w, whole.w, sizeof(other.w));
                        memcpy(other.x, whole.x, sizeof(other.x));
                        memset(other.out, 0, sizeof(other.out));
                        layer_run(&other, chunk, company);
                        assert_memory_equal(other.out, whole.out, sizeof(whole.out));
                }
        }
}

static void a_copied_page_serves_another_slot(void **state)
{
        static struct past past;
        struct step_copy copy = { tables[0][0], tables[1][0] };
        struct attend op;
        struct fixture b;

        (void)state;
        fixture_open(&b);
        past_fill(&b, &past, 0, 10);
        b.k->step_begin(b.k, KV_ALONE(b.kv),
                        &(struct step){ .number = ++b.number, .copy_count = 1, .copies = &copy });
        b.k->step_end(b.k);
        op = attend_make(&b);
        attend_check(&b, &op, &past, 3, 7); /* which asks slot 1 */
        fixture_close(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(equal_scores_give_the_mean_of_the_values),
                cmocka_unit_test(attention_matches_its_formula_and_ignores_nan_in_unused_pages),
                cmocka_unit_test(does_not_read_pages_behind_the_window),
                cmocka_unit_test(large_scores_neither_overflow_nor_vanish),
                cmocka_unit_test(a_row_has_the_same_bits_alone_chunked_and_batched),
                cmocka_unit_test(a_copied_page_serves_another_slot),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
