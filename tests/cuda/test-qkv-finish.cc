/*
 * Heads on the emulator: queries, and pages of every type, against the description of page.h in
 * double.  Without rotation and norm the bits must be equal, byte for byte, over the whole
 * pool.
 */
#include <errno.h>
#include <math.h>
#include <vector>

#include "kernels/cuda/qkv-finish.h"
#include "tests/cuda/fixture.h"
#include "tests/kernels/bytes-golden.h"
#include "tests/kernels/e4m3.h"

using std::vector;

#define HEADS    3u
#define KV_HEADS 2u
#define ALL      (HEADS + 2 * KV_HEADS)
#define ROWS     9u
#define BUCKET   11u
#define PAGES    6u
#define TABLE    3u
#define LAYERS   2u
#define POISON   0xa5

static const kv_type types[] = { KV_F16, KV_BF16, KV_INT8, KV_FP8 };

/* A launch that is put on a stream runs at once. */
int device_launch_raw(device *, stream, const launch *launch, const void *kernel, device_run *run,
                      const void *args, size_t)
{
        run(launch, kernel, args);
        return 0;
}

/* ---- a step: rows of two slots, one of which does not write ---- */

struct fixture {
        kv_shape shape;
        vector<float> y; /* (ROWS, ALL, head_dim) */
        vector<view_row> rows;
        vector<uint32_t> tables;
        vector<float> frequency, weights, biases; /* of norms: (ALL, head_dim) */
        vector<uint8_t> pages;
        vector<uint16_t> q; /* (BUCKET, HEADS, head_dim) */
        qkv_finish_args args;
};

static float roll(void) /* -1 .. 1 */
{
        static uint64_t dice = 41;

        return (float)((double)(int64_t)next_random(&dice) * 0x1p-63);
}

static fixture fixture_new(kv_type type, uint32_t dim)
{
        fixture w = {};

        w.shape = { LAYERS, KV_HEADS, dim, PAGES, type };
        for (uint32_t i = 0; i < BUCKET * ALL * dim; i++)
                w.y.push_back(ldexpf(roll(), (int)(i / dim % 7)));
        for (uint32_t r = 0; r < ROWS; r++)
                w.rows.push_back({ r % 2, 11 + r * 3, 0, r != 4 });
        w.tables = { 4, 1, 3, 0, 5, 2 };
        for (uint32_t i = 0; i < dim; i++) {
                w.frequency.push_back(powf(10000, -2 * (float)i / (float)dim));
        }
        for (uint32_t i = 0; i < ALL * dim; i++) {
                w.weights.push_back(roll());
                w.biases.push_back(roll());
        }
        w.args.heads = HEADS;
        w.args.kv_heads = KV_HEADS;
        w.args.k_at = HEADS;
        w.args.v_at = HEADS + KV_HEADS;
        w.args.head_dim = dim;
        w.args.rotation.factor = 1;
        return w;
}

static void run(fixture *w)
{
        const step_counts counts = { ROWS, 0, 0 };

        w->pages.assign(PAGES * kv_page_bytes(&w->shape), POISON);
        w->q.assign(BUCKET * HEADS * w->shape.head_dim, POISON << 8 | POISON);
        w->args.view.counts = &counts;
        w->args.view.rows = w->rows.data();
        w->args.view.tables = w->tables.data();
        w->args.view.pages_max = TABLE;
        w->args.view.rows_max = BUCKET;
        w->args.y = w->y.data();
        w->args.q = w->q.data();
        w->args.rotation.frequency = w->frequency.data();
        w->args.pages = w->pages.data() + kv_tile_offset(&w->shape, 1, 0);
        w->args.page_bytes = kv_page_bytes(&w->shape);
        w->args.tile_bytes = kv_tile_bytes(&w->shape);
        w->args.type = w->shape.type;
        assert_int_equal(qkv_finish(nullptr, &w->args), 0);
}

static void run_in_all_schedules(fixture *w)
{
        vector<uint8_t> pages;
        vector<uint16_t> q;

        for (unsigned s = 0; s < EMU_SCHEDULES; s += SCHEDULES_STEP) {
                emu_set_schedule(s);
                run(w);
                if (!s)
                        pages = w->pages, q = w->q;
                assert_memory_equal(w->pages.data(), pages.data(), pages.size());
                assert_memory_equal(w->q.data(), q.data(), q.size() * 2);
        }
}

static const float *head_of(const fixture *w, uint32_t row, uint32_t head)
{
        return &w->y[((size_t)row * ALL + head) * w->shape.head_dim];
}

/* ---- exactly ---- */

/* Numbers as a type has them; scale: where it goes. */
static void put(kv_type type, uint8_t *to, uint8_t *scale_to, const float *x, uint32_t dim)
{
        const double top = type == KV_FP8 ? 448 : 127;
        double most = 0;
        bool fit = true;
        float scale;

        for (uint32_t i = 0; !KV_HAS_SCALES(type) && i < dim; i++) {
                uint32_t bits = type == KV_BF16 ? two_bfloats(x[i], 0) : two_halves(x[i], 0);

                memcpy(to + i * 2, &bits, 2);
        }
        if (!KV_HAS_SCALES(type))
                return;
        for (uint32_t i = 0; i < dim; i++) {
                fit = fit && isfinite(x[i]);
                most = fmax(most, fabs((double)x[i]));
        }
        scale = (float)(most / top); /* rounded twice, which is as good as once */
        if (most / top < 0x1p-126)
                scale = 0;
        for (uint32_t i = 0; i < dim; i++) {
                float number = fit && scale > 0 ? (float)((double)x[i] / scale) : 0;

                to[i] = type == KV_FP8 ? e4m3_nearest(number)
                                       : (uint8_t)(int8_t)nearbyint((double)number);
        }
        if (!fit)
                scale = float_of(0x7fc00000);
        memcpy(scale_to, &scale, 4);
}

static void check_exactly(fixture *w)
{
        const uint32_t dim = w->shape.head_dim;
        const kv_type of_q = w->shape.type == KV_BF16 ? KV_BF16 : KV_F16;
        const size_t line = dim * (KV_HAS_SCALES(w->shape.type) ? 1 : 2);
        const size_t tile = 16 * line + (KV_HAS_SCALES(w->shape.type) ? 64 : 0);
        vector<uint8_t> pages(PAGES * LAYERS * KV_HEADS * 2 * tile, POISON);
        vector<uint16_t> q(BUCKET * HEADS * dim, POISON << 8 | POISON);

        for (uint32_t r = 0; r < ROWS; r++) {
                const view_row *row = &w->rows[r];
                size_t page = w->tables[row->slot * TABLE + row->position / 16];

                for (uint32_t h = 0; h < HEADS; h++)
                        put(of_q, (uint8_t *)&q[(r * HEADS + h) * dim], nullptr, head_of(w, r, h),
                            dim);
                for (uint32_t x = 0; row->write && x < 2 * KV_HEADS; x++) {
                        /* [layer][kv head] K | V */
                        size_t at =
                                ((page * LAYERS + 1) * KV_HEADS + x % KV_HEADS) * 2 + x / KV_HEADS;
                        uint8_t *to = &pages[at * tile];

                        put(w->shape.type, to + row->position % 16 * line,
                            to + 16 * line + row->position % 16 * 4, head_of(w, r, HEADS + x), dim);
                }
        }
        assert_memory_equal(w->pages.data(), pages.data(), pages.size());
        assert_memory_equal(w->q.data(), q.data(), q.size() * 2);
}

static void plain_heads_match_page_h_bit_for_bit(void **)
{
        for (kv_type type : types)
                for (uint32_t dim : { 32u, 64u, 80u, 96u, 128u, 256u }) {
                        fixture w = fixture_new(type, dim);

                        run_in_all_schedules(&w);
                        check_exactly(&w);
                }
}

static const kv_type bytes[] = { KV_INT8, KV_FP8 };

/* Ties, the largest number anywhere, numbers too small for a scale, and all zeros. */
static void extreme_values_of_byte_pages_match_page_h(void **)
{
        const float sizes[] = {
                1, 0, 0x1p-126f, 126.99f * 0x1p-126f / 127, 0x1p-149f, 1e36f, 1e-30f
        };

        for (kv_type type : bytes) {
                fixture w = fixture_new(type, 80);

                for (uint32_t i = 0; i < ROWS * ALL; i++) {
                        const float top = type == KV_FP8 && i % 3 ? 448 : 127;
                        float *x = &w.y[i * 80];

                        for (uint32_t d = 0; d < 80; d++)
                                x[d] = sizes[i % 7] * (0.5f + (float)(d * 29 % 127)) *
                                       (d % 3 ? 1 : -1);
                        x[i * 11 % 80] = sizes[i % 7] * (i % 2 ? top : -top);
                }
                run_in_all_schedules(&w);
                check_exactly(&w);
        }
}

/* With a scale of 1: each code's number, the middle between two, and numbers close to that. */
static void rounds_to_the_nearest_e4m3(void **)
{
        fixture w = fixture_new(KV_FP8, 128);
        uint32_t byte = 0;

        for (uint32_t i = 0; i < ROWS * ALL; i++) {
                float *x = &w.y[i * 128];

                for (uint32_t d = 0; d < 128; d += 4, byte = (byte + 1) % 0x7e) {
                        double low = e4m3_value((uint8_t)byte);
                        float middle = (float)(low + e4m3_value((uint8_t)(byte + 1))) / 2;

                        x[d] = (float)low;
                        x[d + 1] = -middle;
                        x[d + 2] = nextafterf(middle, 0);
                        x[d + 3] = nextafterf(middle, 448);
                }
                x[i % 128] = -448;
        }
        run_in_all_schedules(&w);
        check_exactly(&w);
}

/* Against the numbers of other programs: heads that are the same few numbers again and again. */
static void quantised_pages_match_those_of_other_programs(void **)
{
        for (const bytes_golden &golden : bytes_goldens) {
                const uint32_t dim = 4 * GOLDEN_NUMBERS, line = 11; /* of row 0 */
                fixture w = fixture_new(golden.type, dim);
                const uint8_t *tile;
                uint32_t scale;

                for (uint32_t i = 0; i < w.y.size(); i++)
                        w.y[i] = float_of(golden.numbers[i % GOLDEN_NUMBERS]);
                run(&w);
                tile = &w.pages[w.tables[0] * kv_page_bytes(&w.shape) +
                                kv_tile_offset(&w.shape, 1, 0)];
                for (uint32_t i = 0; i < dim; i++)
                        assert_int_equal(tile[line * dim + i], golden.bytes[i % GOLDEN_NUMBERS]);
                memcpy(&scale, tile + 16 * dim + line * 4, 4);
                assert_int_equal(scale, golden.scale);
        }
}

static void a_head_with_a_number_that_is_not_finite_has_no_finite_scale(void **)
{
        for (kv_type type : bytes)
                for (float unfit : { NAN, -NAN, INFINITY, -INFINITY }) {
                        fixture w = fixture_new(type, 64);

                        for (uint32_t i = 0; i < ROWS * ALL; i += 3)
                                if (i % ALL >= HEADS)
                                        w.y[i * 64 + i % 64] = unfit;
                        run_in_all_schedules(&w);
                        check_exactly(&w);
                }
}

/* ---- turned and normed ---- */

/* The norm of that head; NORM_NONE for v. */
static row_norm norm_of(const fixture *w, uint32_t head)
{
        const bool is_q = head < HEADS, each = w->args.span == SPAN_HEADS;
        const uint32_t at = each ? (is_q ? head : head - HEADS) * w->shape.head_dim : 0;
        row_norm norm = is_q ? w->args.q_norm : w->args.k_norm;

        if (head >= HEADS + KV_HEADS)
                norm.kind = NORM_NONE;
        norm.weight = norm.weight ? norm.weight + at : nullptr;
        norm.bias = norm.bias ? norm.bias + at : nullptr;
        return norm;
}

static void normalise(vector<double> *x, const row_norm *norm)
{
        const double count = (double)x->size();
        double mean = 0, squares = 0;

        for (double number : *x)
                mean += norm->kind == NORM_LAYER ? number / count : 0;
        for (double number : *x)
                squares += (number - mean) * (number - mean);
        for (size_t i = 0; norm->kind != NORM_NONE && i < x->size(); i++) {
                (*x)[i] = ((*x)[i] - mean) / sqrt(squares / count + (double)norm->eps);
                (*x)[i] *= norm->weight ? (double)norm->weight[i] : 1;
                (*x)[i] += norm->bias ? (double)norm->bias[i] : 0;
        }
}

static vector<double> finished(const fixture *w, uint32_t row, uint32_t head)
{
        const uint32_t dim = w->shape.head_dim, position = w->rows[row].position;
        const uint32_t dims = head < HEADS + KV_HEADS ? w->args.rotation.dims : 0;
        const double clip = w->args.clip > 0 ? (double)w->args.clip : INFINITY;
        const float *x = head_of(w, row, head);
        const row_norm norm = norm_of(w, head);
        vector<double> y(x, x + dim);

        for (double &number : y)
                number = fmin(fmax(number, -clip), clip);
        normalise(&y, &norm);
        for (uint32_t p = 0; p < dims / 2; p++) {
                bool halves = w->args.rotation.pairing == ROPE_HALVES;
                uint32_t i = halves ? p : 2 * p, j = halves ? p + dims / 2 : i + 1;
                double angle = (double)position * (double)w->frequency[p], was = y[i];

                y[i] = was * cos(angle) - y[j] * sin(angle);
                y[j] = was * sin(angle) + y[j] * cos(angle);
        }
        for (double &number : y)
                if (head < HEADS && w->args.query_length)
                        number *= 1 + (double)w->args.query_beta *
                                              log(1 + position / w->args.query_length);
        return y;
}

static void check_queries(const fixture *w)
{
        const uint32_t dim = w->shape.head_dim;
        const bool bfloats = w->shape.type == KV_BF16;

        for (uint32_t h = 0; h < ROWS * HEADS; h++) {
                const vector<double> want = finished(w, h / HEADS, h % HEADS);
                double most = 0;

                for (double number : want)
                        most = fmax(most, fabs(number));
                for (uint32_t i = 0; i < dim; i++) {
                        const uint16_t bits = w->q[h * dim + i];
                        double have = (double)(bfloats ? from_bfloat(bits) : from_half(bits));

                        assert_true(fabs(have - want[i]) <=
                                    most * ((bfloats ? 0x1p-8 : 0x1p-11) + 1e-5));
                }
        }
}

/* Half a unit of the rounded number, and a little for floats. */
static void check_nearly(const fixture *w)
{
        const uint32_t dim = w->shape.head_dim;

        for (uint32_t r = 0; r < ROWS; r++)
                for (uint32_t h = HEADS; w->rows[r].write && h < ALL; h++) {
                        const vector<double> want = finished(w, r, h);
                        const uint32_t x = h - HEADS, line = w->rows[r].position % 16;
                        const size_t page =
                                w->tables[w->rows[r].slot * TABLE + w->rows[r].position / 16];
                        const uint8_t *tile = &w->pages[page * kv_page_bytes(&w->shape) +
                                                        kv_tile_offset(&w->shape, 1, x % KV_HEADS) +
                                                        x / KV_HEADS * kv_tile_bytes(&w->shape)];
                        double most = 0;
                        float scale = 0;

                        for (double number : want)
                                most = fmax(most, fabs(number));
                        if (KV_HAS_SCALES(w->shape.type))
                                memcpy(&scale, tile + kv_scales_offset(&w->shape) + line * 4, 4);
                        for (uint32_t i = 0; i < dim; i++) {
                                const size_t at = line * dim + i;
                                double have, off;

                                if (w->shape.type == KV_INT8) {
                                        have = (double)((const int8_t *)tile)[at] * (double)scale;
                                        off = most / 254;
                                } else if (w->shape.type == KV_FP8) {
                                        have = e4m3_value(tile[at]) * (double)scale;
                                        off = fmax(fabs(want[i]) * 0x1p-4, most / 448 * 0x1p-10);
                                } else if (w->shape.type == KV_BF16) {
                                        have = (double)from_bfloat(((const uint16_t *)tile)[at]);
                                        off = 0x1p-8 * most;
                                } else {
                                        have = (double)from_half(((const uint16_t *)tile)[at]);
                                        off = 0x1p-11 * most;
                                }
                                assert_true(fabs(have - want[i]) <= off * 1.001 + most * 1e-5);
                        }
                }
}

static void give_norms(fixture *w, norm_kind kind, head_norm_span span)
{
        const uint32_t k = span == SPAN_HEADS ? HEADS * w->shape.head_dim : w->shape.head_dim;
        const float *biases = kind == NORM_LAYER ? w->biases.data() : nullptr;

        w->args.span = span;
        w->args.q_norm = { kind, w->weights.data(), biases, 1e-5f };
        w->args.k_norm = { kind, w->weights.data() + k, biases ? biases + k : nullptr, 1e-5f };
}

static void normalises_and_rotates_heads_before_rounding(void **)
{
        for (kv_type type : types)
                for (uint32_t i = 0; i < 4; i++) {
                        fixture w = fixture_new(type, i % 2 ? 80 : 128);

                        w.args.rotation.dims = i % 2 ? 60 : 128;
                        w.args.rotation.pairing = i / 2 ? ROPE_ADJACENT : ROPE_HALVES;
                        if (i != 1)
                                give_norms(&w, NORM_RMS, SPAN_HEAD);
                        run_in_all_schedules(&w);
                        check_nearly(&w);
                        check_queries(&w);
                }
}

/* Heads far from 0: with a square of the mean, little would be left of their differences. */
static void layer_norms_subtract_the_mean_first(void **)
{
        for (kv_type type : types)
                for (head_norm_span span : { SPAN_HEAD, SPAN_HEADS }) {
                        fixture w = fixture_new(type, 80);

                        for (float &number : w.y)
                                number += 300;
                        give_norms(&w, NORM_LAYER, span);
                        run_in_all_schedules(&w);
                        check_nearly(&w);
                        check_queries(&w);
                }
}

static void each_head_has_its_own_norm_if_weights_are_for_all_heads(void **)
{
        fixture w = fixture_new(KV_F16, 64);

        give_norms(&w, NORM_RMS, SPAN_HEADS);
        w.args.k_norm.weight = nullptr; /* ones */
        w.args.rotation.dims = 16;
        run_in_all_schedules(&w);
        check_nearly(&w);
        check_queries(&w);
}

static void clips_numbers_before_their_norm(void **)
{
        for (norm_kind kind : { NORM_NONE, NORM_RMS, NORM_LAYER }) {
                fixture w = fixture_new(KV_F16, 96);

                give_norms(&w, kind, SPAN_HEAD);
                w.args.clip = 0.75f;
                run_in_all_schedules(&w);
                check_nearly(&w);
                check_queries(&w);
        }
}

/* q and k of such rows come normalised; v does not. */
static void clips_only_v_if_norms_are_of_whole_rows(void **)
{
        fixture w = fixture_new(KV_F16, 64);
        vector<float> expected = w.y;

        for (uint32_t i = 0; i < w.y.size(); i++)
                if (i / 64 % ALL >= HEADS + KV_HEADS)
                        expected[i] = fminf(fmaxf(w.y[i], -0.75f), 0.75f);
        give_norms(&w, NORM_RMS, SPAN_WHOLE);
        w.args.clip = 0.75f;
        run_in_all_schedules(&w);
        w.y = expected;
        check_exactly(&w);
}

static void a_query_is_scaled_by_its_position(void **)
{
        fixture w = fixture_new(KV_BF16, 64);

        w.args.query_beta = 0.4f;
        w.args.query_length = 9;   /* positions go from 11 to 35 */
        w.args.rotation.dims = 40; /* of 64 */
        run_in_all_schedules(&w);
        check_nearly(&w);
        check_queries(&w);
}

static void a_number_that_is_not_finite_is_clipped_unless_it_is_nan(void **)
{
        fixture w = fixture_new(KV_BF16, 64);

        w.args.clip = 2;
        w.y[0] = NAN;
        w.y[1] = INFINITY;
        w.y[2] = -INFINITY;
        run(&w);
        assert_true(isnan(from_bfloat(w.q[0])));
        assert_int_equal(w.q[1], 0x4000);
        assert_int_equal(w.q[2], 0xc000);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(plain_heads_match_page_h_bit_for_bit),
                cmocka_unit_test(extreme_values_of_byte_pages_match_page_h),
                cmocka_unit_test(rounds_to_the_nearest_e4m3),
                cmocka_unit_test(quantised_pages_match_those_of_other_programs),
                cmocka_unit_test(a_head_with_a_number_that_is_not_finite_has_no_finite_scale),
                cmocka_unit_test(normalises_and_rotates_heads_before_rounding),
                cmocka_unit_test(layer_norms_subtract_the_mean_first),
                cmocka_unit_test(each_head_has_its_own_norm_if_weights_are_for_all_heads),
                cmocka_unit_test(clips_numbers_before_their_norm),
                cmocka_unit_test(clips_only_v_if_norms_are_of_whole_rows),
                cmocka_unit_test(a_query_is_scaled_by_its_position),
                cmocka_unit_test(a_number_that_is_not_finite_is_clipped_unless_it_is_nan),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
