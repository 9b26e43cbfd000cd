/*
 * Attention of the cpu backend over long contexts, against ref.  It covers every type of pages
 * and every instruction set of this machine.  Rows stand at, before and behind every place
 * where an implementation may cut their positions: at 16, 64, 1024 and their multiples.
 *
 * The bound on the difference from ref, with u = 2^-24.  A row sees n positions.  The weight of
 * a position is e^(score - largest).  The result is the sum of weights times values, divided by
 * the sum of weights.
 *
 *      score     a sum of head_dim products: off by SLACK(head_dim) of the largest possible value,
 *                which is scale |q| |k|.  A cap is nowhere steeper than 1, and adds an error of
 *                SLACK(0) of itself.  So does a slope.
 *      weight    off by the factor e^(error of the score).  The score less the largest is rounded
 *                to u of itself, and weights below e^-104 become 0.  The same holds for all steps
 *                from one largest score to the next, together.  Twice 104 u and the error of e
 *                itself make 256 u.  Each such step is one more product, at most one for 16
 *                positions and one for each span: 4 u.
 *      sums      each number in them is rounded at most n times, and SLACK(n) has room for
 *                the sums of tiles and spans.
 *
 * Both sums have this error, and no value is above the largest.
 */
#include "tests/kernels/context.h"

#define U 0x1p-24

static int open_seats(void **state)
{
        const uint32_t threads[] = { 1 };

        (void)state;
        test_backends_open(threads, 1);
        return 0;
}

static int close_seats(void **state)
{
        (void)state;
        test_backends_close();
        return 0;
}

struct extent { /* bounds of a context: the longest key of all heads, and the largest value */
        double key, value;
};

static struct extent extent_of(const struct context *c)
{
        size_t count = (size_t)CONTEXT_LENGTH * c->kv_heads * c->head_dim;
        struct extent e = { 0, 0 };
        double square = 0;

        for (size_t i = 0; i < count; i++) {
                square = (double)c->k[i] * c->k[i] + (i % c->head_dim ? square : 0);
                e.key = fmax(e.key, sqrt(square));
                e.value = fmax(e.value, fabsf(c->v[i]));
        }
        /*
         * Pages round: a bfloat by 2^-8 of itself, an integer by 1/254 of the largest in its
         * head.  E4M3 is off by 2^-4 of itself.
         */
        e.key *= c->type == KV_FP8 ? 1.07 : 1.01 + sqrt(c->head_dim) / 254;
        e.value *= c->type == KV_FP8 ? 1.07 : 1.01;
        return e;
}

static double slack_of(const struct context *c, const struct extent *e, const float *q,
                       uint32_t own)
{
        double n = own - context_first(c, own) + 1, square = 0, score, weight, sum;

        for (uint32_t d = 0; d < c->head_dim; d++)
                square += (double)q[d] * q[d];
        score = SLACK(c->head_dim) * c->scale * sqrt(square) * e->key;
        score += SLACK(0) * (c->softcap + (c->has_slopes ? n * 0x1p-8 : 0));
        weight = expm1(score + 256 * U + 4 * U * (n / 16 + 4));
        sum = weight + SLACK(n) * (1 + weight);
        assert_true(sum < 0.05); /* or a test says nothing */
        return 2 * sum / (1 - sum) * e->value + 1e-30;
}

/* Near where ref is finite, not finite where it is not. */
static void row_is_near(const struct context *c, const struct extent *e,
                        const struct test_backend *s, uint32_t own, const float *is,
                        const float *should)
{
        const float *q = context_ask(c, 0, own);

        for (uint32_t i = 0; i < context_width(c); i++) {
                uint32_t head = i / c->head_dim;
                double slack = slack_of(c, e, q + (size_t)head * c->head_dim, own);

                if (isfinite(should[i]) ? !(fabs((double)is[i] - should[i]) <= slack)
                                        : isfinite(is[i]))
                        fail_msg("%s: type %d, head_dim %u, %u heads, window %u, position %u: "
                                 "head %u, number %u is %.9g, not %.9g within %.3g",
                                 s->k->name, (int)c->type, c->head_dim, c->heads, c->window, own,
                                 head, i % c->head_dim, is[i], should[i], slack);
        }
}

/* Computes the row at `own` on all backends, and compares each with ref. */
static void row_agrees(const struct context *c, const struct extent *e, uint32_t own)
{
        float *should = malloc(context_width(c) * sizeof(*should));
        float *is = malloc(context_width(c) * sizeof(*is));
        struct chunk chunk = { 0, own, 1 };

        assert_non_null(should);
        assert_non_null(is);
        test_backend_attend(&test_backends[0], c, &chunk, 1, should);
        for (uint32_t i = 1; i < test_backend_count; i++) {
                test_backend_attend(&test_backends[i], c, &chunk, 1, is);
                row_is_near(c, e, &test_backends[i], own, is, should);
        }
        free(should);
        free(is);
}

static void take_all(const struct context *c)
{
        for (uint32_t i = 0; i < test_backend_count; i++)
                test_backend_use_context(&test_backends[i], c);
}

static void write_all(const struct context *c, uint32_t from, uint32_t to)
{
        for (uint32_t i = 0; i < test_backend_count; i++)
                test_backend_write(&test_backends[i], c, from, to);
}

static void leave_all(void)
{
        for (uint32_t i = 0; i < test_backend_count; i++)
                test_backend_end_step(&test_backends[i]);
}

static const uint32_t owns[] = { 0,   1,    15,   16,   17,   62,   63,   64,   65,   127,
                                 128, 1022, 1023, 1024, 1025, 2047, 2048, 2049, 2050, 3100 };

/* Checks `count` rows, each when all positions that it sees are written and no others. */
static void rows_agree(const struct context *c, uint32_t count)
{
        struct extent e = extent_of(c);

        take_all(c);
        for (uint32_t i = 0, written = 0; i < count; written = owns[i++] + 1) {
                write_all(c, written, owns[i] + 1);
                row_agrees(c, &e, owns[i]);
        }
        leave_all();
}

static void rows_at_every_border_agree_with_ref(void **state)
{
        static const uint32_t dims[] = { 2, 24, 64, 80, 128 };
        static const uint32_t groups[] = { 1, 2, 3, 4, 7, 8, 40 };
        const uint32_t all = sizeof(owns) / sizeof(owns[0]);

        (void)state;
        for (uint32_t i = 0; i < KV_TYPES * 7; i++) { /* every group and every dim of every type */
                struct context c = { .type = i / 7, .head_dim = dims[(i + i / 7) % 5] };
                uint32_t group = groups[i % 7];

                c.kv_heads = group > 4 ? 1 : 2;
                c.heads = group * c.kv_heads;
                context_make(&c);
                rows_agree(&c, group > 8 && c.head_dim > 24 ? all - 6 : all);
                context_free(&c);
        }
}

/* The first position that a row sees, for every row that is not before it. */
static const uint32_t firsts[] = { 0,    1,    15,   16,   17,   40,   62,  63,
                                   64,   65,   100,  127,  128,  500,  960, 1022,
                                   1023, 1024, 1025, 1500, 2047, 2048, 2050 };

static void windows_agree(struct context *c)
{
        struct extent e = extent_of(c);
        uint32_t count = 0;

        take_all(c);
        for (uint32_t i = 0, written = 0; i < sizeof(owns) / sizeof(owns[0]); i++) {
                write_all(c, written, owns[i] + 1);
                written = owns[i] + 1;
                for (uint32_t f = 0; f < sizeof(firsts) / sizeof(firsts[0]); f++, count++) {
                        if (firsts[f] > owns[i])
                                break;
                        c->window = owns[i] - firsts[f] + 1;
                        c->softcap = count & 1 ? 2.5f : 0;
                        c->has_sinks = count & 2;
                        c->has_slopes = count % 3;
                        row_agrees(c, &e, owns[i]);
                }
                c->window = 0;
                row_agrees(c, &e, owns[i]);
        }
        leave_all();
}

static void windows_that_begin_anywhere_agree_with_ref(void **state)
{
        static const uint32_t dims[KV_TYPES] = { 24, 64, 2, 20, 36 };

        (void)state;
        for (uint32_t type = 0; type < KV_TYPES; type++) {
                struct context c = { .type = type, .head_dim = dims[type], .kv_heads = 1 };

                c.heads = 1 + type;
                context_make(&c);
                windows_agree(&c);
                context_free(&c);
        }
}

/* How the scores run over the positions.  They differ by more than a weight can express. */
enum course {
        HUGE_EARLY,
        HUGE_LATE,
        HUGE_IN_A_TILE,
        RISING,
        FALLING,
        LOW,
        TILES_APART,
        SPANS_APART,
        EQUAL,
        COURSES,
};

static float score_at(enum course course, uint32_t position)
{
        static const float spans[] = { 0, 300, -300, 150 };

        switch (course) {
        case HUGE_EARLY:
                return position == 3 ? 400 : 0;
        case HUGE_LATE:
                return position == 1021 || position == 3090 ? 400 : -20;
        case HUGE_IN_A_TILE:
                return position / 64 == 20 ? 300 : 0;
        case RISING:
                return (float)position * 0.25f;
        case FALLING:
                return 800 - (float)position * 0.25f;
        case LOW:
                return -900;
        case TILES_APART:
                return position / 64 % 2 ? 200 : position / 16 % 2 ? 0 : -200;
        case SPANS_APART:
                return spans[position / 1024];
        default:
                return 0;
        }
}

/* Number 0 of keys makes the score; the others add a little, or nothing where all are equal. */
static void take_course(struct context *c, enum course course)
{
        for (uint32_t i = 0; i < CONTEXT_LENGTH * c->kv_heads; i++) {
                float *k = c->k + (size_t)i * c->head_dim;

                for (uint32_t d = 0; d < c->head_dim; d++)
                        k[d] *= course == EQUAL ? 0 : 0.25f;
                k[0] = score_at(course, i / c->kv_heads) / c->scale;
        }
        for (size_t i = 0; i < QUERY_ROWS * context_width(c); i += c->head_dim)
                c->q[i] = 1;
}

static void scores_that_differ_wildly_agree_with_ref(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < COURSES * 2; i++) {
                struct context c = { .type = (i + i / 4) % KV_TYPES,
                                     .head_dim = i % 2 ? 8 : 19,
                                     .kv_heads = 1,
                                     .heads = 2 };

                context_make(&c);
                take_course(&c, i / 2);
                c.has_sinks = i % 3 == 0;
                rows_agree(&c, sizeof(owns) / sizeof(owns[0]));
                context_free(&c);
        }
}

/* Rows that see it, and as the first that they see, when there is a window. */
static void look_at(struct context *c, const struct extent *e, uint32_t position)
{
        static const uint32_t after[] = { 0, 1, 20, 70, 1000, 1024 };

        for (uint32_t i = 0; i < sizeof(after) / sizeof(after[0]); i++)
                for (uint32_t way = 0; way < 4; way++) {
                        c->window = way & 1 ? after[i] + 1 : 0;
                        c->softcap = way & 2 ? 4 : 0;
                        row_agrees(c, e, position + after[i]);
                }
}

static void infinite_keys_and_values_give_the_same_finiteness_as_ref(void **state)
{
        static const uint32_t places[] = { 0, 15, 16, 63, 64, 500, 1023, 1024, 2047, 2048 };

        (void)state;
        for (uint32_t type = 0; type < KV_TYPES; type++) {
                struct context c = { .type = type, .head_dim = 20, .kv_heads = 1, .heads = 2 };
                struct extent e;

                context_make(&c);
                e = extent_of(&c);
                take_all(&c);
                write_all(&c, 0, CONTEXT_LENGTH);
                for (uint32_t i = 0; i < 4 * sizeof(places) / sizeof(places[0]); i++) {
                        uint32_t position = places[i / 4];
                        float *at = context_at(&c, i & 1 ? c.v : c.k, position) + 3, was = *at;

                        *at = i & 2 ? INFINITY : -INFINITY;
                        write_all(&c, position, position + 1);
                        look_at(&c, &e, position);
                        *at = was;
                        write_all(&c, position, position + 1);
                }
                leave_all();
                context_free(&c);
        }
}

/* Its weight may be nothing: a number that is none is none then, too. */
static void a_value_that_is_not_finite_shows_even_with_zero_weight(void **state)
{
        static const enum course courses[] = { HUGE_EARLY, HUGE_LATE, HUGE_IN_A_TILE, FALLING };
        static const uint32_t places[] = { 1, 40, 1200, 1300, 2500 };

        (void)state;
        for (uint32_t i = 0; i < KV_TYPES * 5; i++) {
                struct context c = { .type = i / 5, .head_dim = 8, .kv_heads = 1, .heads = 2 };
                struct extent e;

                context_make(&c);
                take_course(&c, courses[i % 4]);
                e = extent_of(&c);
                context_at(&c, c.v, places[i % 5])[i % 8] = i & 1 ? NAN : INFINITY;
                take_all(&c);
                write_all(&c, 0, 3101);
                row_agrees(&c, &e, 39);
                row_agrees(&c, &e, 3095);
                leave_all();
                context_free(&c);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(rows_at_every_border_agree_with_ref),
                cmocka_unit_test(windows_that_begin_anywhere_agree_with_ref),
                cmocka_unit_test(scores_that_differ_wildly_agree_with_ref),
                cmocka_unit_test(infinite_keys_and_values_give_the_same_finiteness_as_ref),
                cmocka_unit_test(a_value_that_is_not_finite_shows_even_with_zero_weight),
        };

        random_seed();
        return cmocka_run_group_tests(tests, open_seats, close_seats);
}
