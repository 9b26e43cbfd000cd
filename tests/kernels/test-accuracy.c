/*
 * Single numbers through the operators: every 16-bit weight is read with its exact value, and
 * the functions (silu, gelu, softcap) are right to a few units in the last place over all of
 * their range.
 */
#include "tests/kernels/small-model.h"

#include <errno.h>
#include <float.h>

#include "tests/kernels/bytes-golden.h"
#include "tests/kernels/e4m3.h"

#define ALL       65536u
#define EVERY_ROW 64u

/* A step of `rows` rows that wants them all. */
static void begin(struct kernels *k, struct kv *kv, uint32_t rows)
{
        static const struct pick greedy[ROWS_MAX];
        static uint64_t number = 1;
        struct step_row row[ROWS_MAX];
        struct step_run run = { 0, rows };
        struct step_page page = { 0, 0, 0 };
        uint32_t want[ROWS_MAX];
        struct step step = { .number = number++,
                             .row_count = rows,
                             .run_count = 1,
                             .page_count = 1,
                             .rows = row,
                             .runs = &run,
                             .pages = &page,
                             .want_count = rows,
                             .want = want,
                             .picks = greedy };

        for (uint32_t i = 0; i < rows; i++) {
                row[i] = (struct step_row){ .position = i, .from_row = STEP_TOKEN, .write = true };
                want[i] = i;
        }
        assert_int_equal(k->step_begin(k, KV_ALONE(kv), &step), 0);
}

static struct kv *kv_small(struct kernels *k)
{
        struct kv *kv;

        assert_int_equal(k->kv_new(k, &(struct kv_shape){ 1, 1, 4, 1, KV_F16 }, &kv), 0);
        return kv;
}

static void reads_every_16_bit_weight_exactly(void **state)
{
        enum row_type types[] = { ROW_F16, ROW_BF16 };
        uint16_t *file = malloc(ALL * sizeof(*file));
        float *got = malloc(ALL * sizeof(*got)), *x, *logits, one = 1;

        (void)state;
        for (uint32_t i = 0; i < ALL; i++)
                file[i] = (uint16_t)i;
        for (uint32_t i = 0; i < variant_count * 2; i++) {
                enum row_type type = types[i % 2];
                struct matrix_shape shape = { 1, 1, { ALL }, { type } };
                struct kernels *k = variants[i / 2];
                struct kv *kv = kv_small(k);
                struct matrix *matrix;

                assert_int_equal(k->matrix_new(k, &shape, &matrix), 0);
                assert_int_equal(k->floats_new(k, 1, &x), 0);
                assert_int_equal(k->floats_new(k, ALL, &logits), 0);
                k->weights_put(k, matrix, 0, 0, ALL, file);
                k->put(k, x, &one, 1);
                begin(k, kv, 1);
                assert_int_equal(k->head(k, &(struct head){ .w = matrix }, logits, x), 0);
                assert_int_equal(k->step_end(k), 0);
                k->get(k, got, logits, ALL);
                for (uint32_t n = 0; n < ALL; n++) {
                        float should = type == ROW_F16 ? half_to_float((uint16_t)n)
                                                       : bfloat_to_float((uint16_t)n);

                        /* to instructions for bfloats those without an exponent are 0 */
                        if (type == ROW_BF16 && variant_kind(i / 2) && fabsf(should) < FLT_MIN)
                                should = 0;
                        /* a sum begins at 0, so -0 becomes 0 */
                        if (isnan(should) ? !isnan(got[n]) : got[n] != should)
                                fail_msg("%s: %s %04x is %g, not %g", k->name, row_type_name(type),
                                         n, got[n], should);
                }
                k->floats_free(k, x);
                k->floats_free(k, logits);
                k->matrix_free(k, matrix);
                k->kv_free(k, kv);
        }
        free(file);
        free(got);
}

/* One in each row, among zeros. */
static void reads_every_8_bit_weight_exactly(void **state)
{
        const struct matrix_shape shape = { 128, 1, { 256 }, { ROW_F8_E4M3 } };
        uint8_t file[256][132] = { { 0 } };
        float ones[128], got[256], *x, *logits, scale = 0.625f;

        (void)state;
        for (uint32_t i = 0; i < 128; i++)
                ones[i] = 1;
        for (uint32_t n = 0; n < 256; n++) {
                memcpy(file[n], &scale, 4);
                file[n][4 + n * 5 % 128] = (uint8_t)n;
        }
        for (uint32_t i = 0; i < variant_count; i++) {
                struct kernels *k = variants[i];
                struct kv *kv = kv_small(k);
                struct matrix *matrix;

                assert_int_equal(k->matrix_new(k, &shape, &matrix), 0);
                assert_int_equal(k->floats_new(k, 128, &x), 0);
                assert_int_equal(k->floats_new(k, 256, &logits), 0);
                k->weights_put(k, matrix, 0, 0, 256, file);
                k->put(k, x, ones, 128);
                begin(k, kv, 1);
                assert_int_equal(k->head(k, &(struct head){ .w = matrix }, logits, x), 0);
                assert_int_equal(k->step_end(k), 0);
                k->get(k, got, logits, 256);
                for (uint32_t n = 0; n < 256; n++) {
                        int exponent = n >> 3 & 15, fraction = n & 7;
                        double should =
                                exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);

                        should *= n < 128 ? scale : -scale;
                        if (n % 128 == 127 ? !isnan(got[n]) : got[n] != should)
                                fail_msg("%s: %02x is %g, not %g", k->name, n, got[n], should);
                }
                k->floats_free(k, x);
                k->floats_free(k, logits);
                k->matrix_free(k, matrix);
                k->kv_free(k, kv);
        }
}

#define SOFTCAP ACT_N /* a function, too */

static double function(uint32_t which, double x)
{
        switch (which) {
        case ACT_SILU:
                return x / (1 + exp(-x));
        case ACT_GELU_TANH:
                return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
        case ACT_GELU:
                return 0.5 * x * erfc(-x / sqrt(2));
        case ACT_RELU:
                return fmax(x, 0);
        case ACT_RELU_SQUARE:
                return fmax(x, 0) * fmax(x, 0);
        default:
                return 30 * tanh(x / 30);
        }
}

/*
 * The error that rounding alone explains: a part of the result, and of terms that cancelled on
 * the way.
 */
static double allowed(uint32_t which, double x, double y)
{
        double slack = fabs(y) * 6 * 0x1p-24;

        if (which == ACT_RELU || which == ACT_RELU_SQUARE)
                return fabs((float)y - y);
        if (which == ACT_SILU) /* e^-x has the relative error of x, when that is large */
                slack += fabs(y) * fabs(fmin(x, 0)) * 0x1p-24 + (x < -87 ? 2e-36 : 0);
        if (which == ACT_GELU_TANH) /* 1 + tanh cancels for negative x */
                slack += fabs(x) * 4 * 0x1p-24;
        if (which == ACT_GELU) /* a polynomial, and e^(-x^2 / 2) in the same way */
                slack += fabs(y) * (4 + (x < 0 ? x * x : 0)) * 0x1p-24;
        return slack;
}

static void functions_hold(struct kernels *k, struct kv *kv, uint32_t which, uint32_t parts)
{
        float ones[2] = { 1, 0 }, bias[2] = { 0, 1 }, in[EVERY_ROW], got[EVERY_ROW];
        struct matrix_shape shape = { 1, parts, { 1, 1 }, { ROW_F32, ROW_F32 } };
        float *x, *out, *b;
        struct matrix *matrix;

        assert_int_equal(k->matrix_new(k, &shape, &matrix), 0);
        assert_int_equal(k->floats_new(k, EVERY_ROW, &x), 0);
        assert_int_equal(k->floats_new(k, EVERY_ROW, &out), 0);
        assert_int_equal(k->floats_new(k, 2, &b), 0);
        k->put(k, b, bias, 2);
        for (uint32_t p = 0; p < shape.parts; p++) /* gate = x, up = 0 x + 1 */
                k->weights_put(k, matrix, p, 0, 1, &ones[p]);
        for (uint32_t round = 0; round < 100; round++) {
                float size = round < 50 ? 4 : round < 75 ? 14 : 300;

                for (uint32_t i = 0; i < EVERY_ROW; i++)
                        in[i] = random_float() * size;
                k->put(k, x, in, EVERY_ROW);
                begin(k, kv, EVERY_ROW);
                if (which != SOFTCAP) {
                        struct gate op = { .w = matrix, .bias = b, .act = which };

                        assert_int_equal(k->gate(k, &op, out, x), 0);
                } else {
                        struct head op = { .w = matrix, .softcap = 30 };

                        assert_int_equal(k->head(k, &op, out, x), 0);
                }
                assert_int_equal(k->step_end(k), 0);
                k->get(k, got, out, EVERY_ROW);
                for (uint32_t i = 0; i < EVERY_ROW; i++) {
                        double should = function(which, in[i]);

                        if (!(fabs(got[i] - should) <= allowed(which, in[i], should) + 1e-38))
                                fail_msg("%s: function %u of %.9g is %.9g, not %.9g", k->name,
                                         which, in[i], got[i], should);
                }
        }
        k->floats_free(k, x);
        k->floats_free(k, out);
        k->floats_free(k, b);
        k->matrix_free(k, matrix);
}

static void activation_functions_are_accurate_to_a_few_ulps(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < variant_count; i++) {
                struct kv *kv = kv_small(variants[i]);

                for (uint32_t which = 0; which < ACT_N; which++)
                        for (uint32_t parts = 1; parts <= 2; parts++)
                                functions_hold(variants[i], kv, which, parts);
                functions_hold(variants[i], kv, SOFTCAP, 1);
                variants[i]->kv_free(variants[i], kv);
        }
}

#define HEAD GOLDEN_NUMBERS

/* A line of a tile: a scale, and bytes. */
struct line {
        float scale;
        uint8_t bytes[HEAD];
};

/* K and V as page.h describes them, where K is the row itself, and V twice that. */
static void put_heads(struct kernels *k, enum kv_type type, const float in[HEAD],
                      struct line ret_lines[2])
{
        const struct matrix_shape shape = { HEAD, 3, { HEAD, HEAD, HEAD }, { ROW_F32 } };
        const struct kv_shape pool = { 1, 1, HEAD, 1, type };
        float w[3][HEAD][HEAD] = { 0 }, *x, *q;
        struct qkv op = { .heads = 1, .kv_heads = 1, .head_dim = HEAD };
        struct matrix *matrix;

        assert_int_equal(k->matrix_new(k, &shape, &matrix), 0);
        assert_int_equal(k->kv_new(k, &pool, &op.kv), 0);
        assert_int_equal(k->floats_new(k, HEAD, &x), 0);
        assert_int_equal(k->floats_new(k, HEAD, &q), 0);
        for (uint32_t i = 0; i < HEAD; i++) {
                w[1][i][i] = 1;
                w[2][i][i] = 2;
        }
        for (uint32_t p = 0; p < 3; p++)
                k->weights_put(k, matrix, p, 0, HEAD, w[p]);
        k->put(k, x, in, HEAD);
        op.w = matrix;
        begin(k, op.kv, 1);
        assert_int_equal(k->qkv(k, &op, q, x), 0);
        assert_int_equal(k->step_end(k), 0);
        for (uint32_t v = 0; v < 2; v++) {
                const uint8_t *tile = kv_tile(op.kv, 0, 0, 0) + v * (16 * HEAD + 64);
                uint32_t apart = !v && k->layout == KV_LAYOUT_LANES ? 16 : 1;

                memcpy(&ret_lines[v].scale, tile + 16 * HEAD, sizeof(float));
                for (uint32_t i = 0; i < HEAD; i++)
                        ret_lines[v].bytes[i] = tile[i * apart];
        }
        k->floats_free(k, x);
        k->floats_free(k, q);
        k->matrix_free(k, matrix);
        k->kv_free(k, op.kv);
}

static void bytes_hold(struct kernels *k, enum kv_type type, const float in[HEAD])
{
        const double top = type == KV_FP8 ? 448 : 127;
        struct line lines[2];

        put_heads(k, type, in, lines);
        for (uint32_t v = 0; v < 2; v++) {
                float scale = lines[v].scale;
                double most = 0;

                for (uint32_t i = 0; i < HEAD; i++)
                        most = isfinite(in[i]) ? fmax(most, fabs((double)in[i] * (v + 1))) : NAN;
                for (uint32_t i = 0; i < HEAD; i++)
                        most = isfinite(in[i]) ? most : NAN;
                if (isnan(most))
                        assert_true(isnan(scale));
                else if (most / top < 0x1p-126)
                        assert_true(float_bits(scale) == 0);
                else /* rounded twice, which is once */
                        assert_true(scale == (float)(most / top));
                for (uint32_t i = 0; i < HEAD; i++) {
                        float number = scale > 0 ? (float)((double)in[i] * (v + 1) / scale) : 0;

                        assert_int_equal(lines[v].bytes[i],
                                         type == KV_FP8 ? e4m3_nearest(number)
                                                        : (uint8_t)(int8_t)nearbyint(number));
                }
        }
}

static void quantises_pages_to_bytes_and_scales_as_page_h_defines(void **state)
{
        static const float heads[][HEAD] = {
                { 0 },
                { 127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 63.5f, -127 },
                { -254, 1, 3, 5, -1, -3, -5, 253 },
                { -448, 17, 19, 0x1p-10f, -0x1.8p-9f, 0x1p-6f, -0x1.ep-7f, 447 },
                { -3e38f / 2, 1, 1e38f, -1e37f },
                { 1e-30f, -1e-31f, 3e-32f },
                { 127 * 0x1p-126f, 0x1p-126f, 0x1p-127f, -0x1.8p-126f },
                { 63 * 0x1p-126f, 0x1p-126f },
                { 448 * 0x1p-126f, 0x1p-126f, 0x1p-127f, -0x1.8p-126f },
                { 0x1p-149f, -0x1p-140f },
                { 1, INFINITY, 2 },
                { NAN, 1, 2, 3, 4, 5, 6, 7 },
                { 1, 2, 3, 4, 5, 6, 7, -INFINITY },
        };
        static const enum kv_type types[] = { KV_INT8, KV_FP8 };
        float head[HEAD];

        (void)state;
        for (uint32_t i = 0; i < 2 * (variant_count + 1); i++) {
                struct kernels *k = i / 2 < variant_count ? variants[i / 2] : ref;

                for (uint32_t h = 0; h < sizeof(heads) / sizeof(*heads); h++)
                        bytes_hold(k, types[i % 2], heads[h]);
                for (uint32_t round = 0; round < 300; round++) {
                        for (uint32_t d = 0; d < HEAD; d++)
                                head[d] = ldexpf(random_float(), (int)random_below(round % 40 + 1));
                        bytes_hold(k, types[i % 2], head);
                }
        }
}

/* Against the numbers of other programs: tests/kernels/bytes-golden.h says which. */
static void quantised_pages_match_those_of_other_programs(void **state)
{
        (void)state;
        for (uint32_t i = 0; i <= variant_count; i++)
                for (size_t g = 0; g < sizeof(bytes_goldens) / sizeof(*bytes_goldens); g++) {
                        const struct bytes_golden *golden = &bytes_goldens[g];
                        struct line lines[2];
                        float in[HEAD];

                        memcpy(in, golden->numbers, sizeof(in));
                        put_heads(i < variant_count ? variants[i] : ref, golden->type, in, lines);
                        assert_int_equal(float_bits(lines[0].scale), golden->scale);
                        assert_memory_equal(lines[0].bytes, golden->bytes, HEAD);
                }
}

/* V of the one position that there is to see, which has every byte in it. */
static void reads_every_byte_of_a_page_exactly(void **state)
{
        static const enum kv_type types[] = { KV_INT8, KV_FP8 };
        const float scales[] = { 1, 0x1p-120f, 0x1p117f };
        float *q, *out, zeros[256] = { 0 }, got[256];

        (void)state;
        for (uint32_t i = 0; i < 6 * (variant_count + 1); i++) {
                struct kernels *k = i / 6 < variant_count ? variants[i / 6] : ref;
                const struct kv_shape pool = { 1, 1, 256, 1, types[i % 2] };
                struct attend op = { .heads = 1, .kv_heads = 1, .head_dim = 256, .scale = 1 };
                const float scale = scales[i / 2 % 3];
                struct kv *kv;
                uint8_t *v;

                assert_int_equal(k->kv_new(k, &pool, &kv), 0);
                op.kv = kv;
                assert_int_equal(k->floats_new(k, 256, &q), 0);
                assert_int_equal(k->floats_new(k, 256, &out), 0);
                k->put(k, q, zeros, 256);
                v = kv_tile(kv, 0, 0, 0) + 16 * 256 + 64;
                for (uint32_t byte = 0; byte < 256; byte++)
                        v[byte] = (uint8_t)byte;
                memcpy(v + 16 * 256, &scale, sizeof(scale));
                begin(k, kv, 1);
                assert_int_equal(k->attend(k, &op, out, q), 0);
                assert_int_equal(k->step_end(k), 0);
                k->get(k, got, out, 256);
                for (uint32_t byte = 0; byte < 256; byte++) {
                        double number =
                                types[i % 2] == KV_INT8 ? (int8_t)byte : e4m3_value((uint8_t)byte);

                        if (!isnan(number) && got[byte] != number * scale)
                                fail_msg("%s: %s %02x is %g, not %g", k->name,
                                         kv_type_name(types[i % 2]), byte, got[byte],
                                         number * scale);
                }
                k->floats_free(k, q);
                k->floats_free(k, out);
                k->kv_free(k, kv);
        }
}

static bool is_intel(void)
{
        FILE *file = fopen("/proc/cpuinfo", "r");
        char line[4096] = "";

        while (file && fgets(line, sizeof(line), file) && strncmp(line, "vendor_id", 9) != 0)
                ;
        if (file)
                fclose(file);
        return strstr(line, "GenuineIntel") != NULL;
}

static const char *best_name(void)
{
        uint32_t last = variant_count - 1; /* the variants go upwards */
        const char *name;

        while (!strcmp(variants[last]->name, "cpu/amx-emulated"))
                last--;
        name = variants[last]->name;
        /* Intel's instruction for bfloats is slow. */
        return !strcmp(name, "cpu/avx512bf16") && is_intel() ? "cpu/avx512" : name;
}

static void refuses_an_unknown_instruction_set(void **state)
{
        struct kernels_conf conf = { .threads = 1,
                                     .isa = "mmx",
                                     .rows_max = 1,
                                     .slots_max = 1,
                                     .pages_max = 1,
                                     .vocab_max = 1,
                                     .wants_max = 1 };
        struct kernels *k = NULL;

        (void)state;
        assert_int_equal(kernels_open("cpu", &conf, &k), -EINVAL);
        assert_null(k);
        conf.isa = "auto";
        assert_int_equal(kernels_open("cpu", &conf, &k), 0);
        assert_string_equal(k->name, best_name());
        k->close(k);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_every_16_bit_weight_exactly),
                cmocka_unit_test(reads_every_8_bit_weight_exactly),
                cmocka_unit_test(activation_functions_are_accurate_to_a_few_ulps),
                cmocka_unit_test(quantises_pages_to_bytes_and_scales_as_page_h_defines),
                cmocka_unit_test(quantised_pages_match_those_of_other_programs),
                cmocka_unit_test(reads_every_byte_of_a_page_exactly),
                cmocka_unit_test(refuses_an_unknown_instruction_set),
        };

        random_seed();
        return cmocka_run_group_tests(tests, variants_open, variants_close);
}
