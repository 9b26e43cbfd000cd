/*
 * A model of one layer that has the forms of operators that small-model.h does not have: learned
 * positions, LayerNorm, gates of one part, norms of what a branch adds.  Its steps have the same
 * bits when they are replayed, and need no memory that was not there.  If the backend is asked
 * for that, a row has the same bits alone and among others.
 */
#include "tests/cuda/operator-sides.h"

#define DIM     32u
#define HEADS   3u
#define COLUMNS 48u
#define FF      70u
#define VOCAB   90u
#define PLACES  140u
#define EPS     1e-5f

static const struct kv_shape pool = { 2, HEADS, DIM, PAGES, KV_F16, SWAP_PAGES };

struct plain { /* as small-model.h's, for one backend at a time */
        struct sides s;
        struct both_matrix table, places, qkv, o, up, down;
        struct both_floats weight, bias, heads, x, q, a, g;
        uint32_t side;
};

static void plain_open(struct plain *p, bool deterministic)
{
        struct sides *s = &p->s;
        const uint32_t of_heads = HEADS * DIM, qkv[] = { of_heads, of_heads, of_heads };

        sides_open(s, deterministic, &pool);
        s->host.s.vocab = VOCAB;
        p->table = both_matrix(s, COLUMNS, 1, &(uint32_t){ VOCAB }, ROW_BF16, NULL);
        p->places = both_matrix(s, COLUMNS, 1, &(uint32_t){ PLACES }, ROW_BF16, NULL);
        p->qkv = both_matrix(s, COLUMNS, 3, qkv, ROW_BF16, NULL);
        p->o = both_matrix(s, of_heads, 1, &(uint32_t){ COLUMNS }, ROW_BF16, NULL);
        p->up = both_matrix(s, COLUMNS, 1, &(uint32_t){ FF }, ROW_BF16, NULL);
        p->down = both_matrix(s, FF, 1, &(uint32_t){ COLUMNS }, ROW_BF16, NULL);
        p->weight = both_random(s, VOCAB + 3 * of_heads);
        p->bias = both_random(s, VOCAB + 3 * of_heads);
        p->heads = both_random(s, of_heads);
        p->x = both_floats(s, NULL, (size_t)ROWS_MAX * COLUMNS);
        p->q = both_floats(s, NULL, (size_t)ROWS_MAX * of_heads);
        p->a = both_floats(s, NULL, (size_t)ROWS_MAX * of_heads);
        p->g = both_floats(s, NULL, (size_t)ROWS_MAX * FF);
}

static int branches(struct plain *p)
{
        struct kernels *k = p->s.k[p->side];
        const struct row_norm layer = { NORM_LAYER, p->weight.of[p->side], p->bias.of[p->side],
                                        EPS };
        const struct row_norm rms = { NORM_RMS, p->weight.of[p->side], NULL, EPS };
        const struct qkv qkv = { .w = p->qkv.of[p->side],
                                 .norm = layer,
                                 .bias = p->bias.of[p->side],
                                 .clip = 4,
                                 .span = SPAN_WHOLE,
                                 .q_norm = rms,
                                 .k_norm = layer,
                                 .query_beta = 0.2f,
                                 .query_length = 16,
                                 .kv = p->s.model[p->side].kv,
                                 .heads = HEADS,
                                 .kv_heads = HEADS,
                                 .head_dim = DIM };
        const struct attend attend = { .kv = qkv.kv,
                                       .heads = HEADS,
                                       .kv_heads = HEADS,
                                       .head_dim = DIM,
                                       .scale = 0.1f,
                                       .slopes = p->heads.of[p->side] };
        const struct linear o = { p->o.of[p->side], NULL, rms, 0.3f };
        const struct gate up = { p->up.of[p->side], layer, p->bias.of[p->side], ACT_RELU_SQUARE };
        const struct linear down = { .w = p->down.of[p->side], .scale = 0.5f };
        float *x = p->x.of[p->side], *q = p->q.of[p->side], *a = p->a.of[p->side];
        int r;

        /* Both branches read the same x. */
        if ((r = k->qkv(k, &qkv, q, x)) || (r = k->attend(k, &attend, a, q)) ||
            (r = k->gate(k, &up, p->g.of[p->side], x)) || (r = k->project(k, &o, x, a)))
                return r;
        return k->project(k, &down, x, p->g.of[p->side]);
}

static int operators(void *arg)
{
        struct plain *p = arg;
        struct kernels *k = p->s.k[p->side];
        const struct row_norm layer = { NORM_LAYER, p->weight.of[p->side], p->bias.of[p->side],
                                        EPS };
        const struct embed embed = { p->table.of[p->side], 2, p->places.of[p->side], 1, layer };
        const struct head head = { p->table.of[p->side], layer, p->bias.of[p->side], 0.5f, 8 };
        int r = k->embed(k, &embed, p->x.of[p->side]);

        if (!r)
                r = branches(p);
        if (!r)
                r = k->head(k, &head, p->s.model[p->side].logits, p->x.of[p->side]);
        return r ? r : k->pick(k, p->s.model[p->side].logits, VOCAB);
}

/* ret_logits: (rows of the step, VOCAB) */
static void forward(struct plain *p, const struct chunk *chunks, uint32_t count, int begun,
                    float *ret_logits)
{
        struct model *m = &p->s.model[p->side];
        uint32_t tokens[ROWS_MAX], rows = 0;

        assert_int_equal(model_begin(m, chunks, count), begun);
        if (begun != STEP_REPLAYED)
                assert_int_equal(operators(p), 0);
        for (uint32_t c = 0; c < count; c++)
                rows += chunks[c].count;
        m->k->get(m->k, ret_logits, m->logits, (size_t)rows * VOCAB);
        assert_int_equal(m->k->step_end(m->k), 0);
        assert_int_equal(m->k->collect(m->k, m->step, tokens), 0);
}

static uint64_t memory_left(struct kernels *k)
{
        const struct kernels_objects nothing = { 0 };
        struct kernels_memory memory;

        assert_int_equal(k->memory(k, &nothing, &memory), 0);
        return memory.left;
}

#define STEPS 4u
static const struct chunk steps[STEPS][3] = {
        { { 0, 0, 40 }, { 1, 0, 60 } },
        { { 0, 40, 1 }, { 1, 60, 1 }, { 2, 0, 5 } },
        { { 2, 5, 1 } },
        { { 0, 41, 20 }, { 1, 61, 1 }, { 2, 6, 14 } },
};
static const uint32_t chunks_of[STEPS] = { 2, 3, 1, 3 }, rows_of[STEPS] = { 100, 7, 1, 35 };

static float *logits_new(void)
{
        float *logits = malloc((size_t)ROWS_MAX * VOCAB * sizeof(*logits));

        assert_non_null(logits);
        return logits;
}

static void compare_replayed(bool deterministic)
{
        float *direct[STEPS], *replayed = logits_new();
        struct plain p = { 0 };
        struct kernels *k;
        uint64_t left;

        plain_open(&p, deterministic);
        k = p.s.k[GPU];
        for (uint32_t i = 0; i < STEPS; i++) {
                direct[i] = logits_new();
                forward(&p, steps[i], chunks_of[i], 0, direct[i]);
        }
        assert_int_equal(k->warm_up(k, operators, &p), 0);
        left = memory_left(k);
        for (uint32_t i = 0; i < STEPS; i++) {
                forward(&p, steps[i], chunks_of[i], STEP_REPLAYED, replayed);
                assert_memory_equal(replayed, direct[i],
                                    (size_t)rows_of[i] * VOCAB * sizeof(float));
                if (if_emulated("device_emu_peek")) /* others may use a real GPU */
                        assert_true(memory_left(k) == left);
                free(direct[i]);
        }
        sides_close(&p.s);
        free(replayed);
}

static void a_replayed_step_has_the_same_bits_and_allocates_nothing(void **state)
{
        (void)state;
        compare_replayed(true);
        compare_replayed(false);
}

static void a_row_has_the_same_bits_alone_and_among_others(void **state)
{
        float *whole = logits_new(), *alone = logits_new();
        const struct chunk prompt = { 0, 0, 35 };
        struct plain p = { 0 };

        (void)state;
        plain_open(&p, true);
        forward(&p, &prompt, 1, 0, whole);
        for (uint32_t i = 0; i < prompt.count; i++) {
                const struct chunk one = { 0, i, 1 };

                forward(&p, &one, 1, 0, alone);
                assert_memory_equal(alone, whole + (size_t)i * VOCAB, VOCAB * sizeof(float));
        }
        sides_close(&p.s);
        free(whole);
        free(alone);
}

/* Each number of x is off by 2^-8 when it is multiplied, so logits are off by some hundredths. */
static void the_whole_model_is_near_ref(void **state)
{
        float *is = logits_new(), *should = logits_new();
        struct plain p = { 0 };

        (void)state;
        for (uint32_t deterministic = 0; deterministic < 2; deterministic++) {
                double square = 0, off = 0;

                plain_open(&p, deterministic);
                p.side = GPU;
                forward(&p, steps[0], chunks_of[0], 0, is);
                p.side = REF;
                forward(&p, steps[0], chunks_of[0], 0, should);
                for (size_t i = 0; i < (size_t)rows_of[0] * VOCAB; i++) {
                        square += (double)should[i] * should[i];
                        off += ((double)is[i] - should[i]) * ((double)is[i] - should[i]);
                }
                if (!(off <= square * 0x1p-10))
                        fail_msg("%g of the logits is wrong", sqrt(off / square));
                sides_close(&p.s);
                p = (struct plain){ 0 };
        }
        free(is);
        free(should);
}

static int seed(void **state)
{
        (void)state;
        random_seed();
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_replayed_step_has_the_same_bits_and_allocates_nothing),
                cmocka_unit_test(a_row_has_the_same_bits_alone_and_among_others),
                cmocka_unit_test(the_whole_model_is_near_ref),
        };

        return cmocka_run_group_tests(tests, seed, NULL);
}
