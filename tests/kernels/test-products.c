/*
 * The loops of isa.h that multiply: act_quantise() and product(), of every instruction set of this
 * machine.
 *
 * A product is compared with a sum in double over the converted row of x: its floats, its
 * bfloats, or its bytes and their scales.  The error bound is added up along with the sum.
 * With u = 2^-24:
 *
 *      F32, F16    a column is one rounding of the sum so far: u of that
 *      BF16        the same; a product of two bfloats is exact.  By tiles each 32 columns are two
 *                  such sums, which are added, and then their sum is added to those so far
 *      F8_E4M3     the same for each 128 columns; times their scale, on the sum of those so far: u
 *                  of that
 *      blocks      32 columns are an integer, below 2^24 and so exact, times the scale of the
 *                  weights: u of the term; times that of x, on the sum so far: u of that.  Where
 *                  there are least values the same once more.  Scales of runs, of six bits, times
 *                  one of 11 are exact. Those of NVFP4 are floats, and the 32 columns are two
 *                  exact products, whose sum is rounded: u of that.
 *
 * Each rounding also costs half of the smallest float, multiplied by the factor that follows
 * it, if there is one.  F8_E4M3 is summed as 2^-8 of its value.
 */
#include "tests/kernels/panels-rig.h"

#include <float.h>

#include "kernels/blocks.h"

#define TOKENS  67u
#define UNIT    0x1p-24
#define LEAST   0x1p-150 /* half of the smallest float */
#define NORMAL  0x1p-126
#define AS_GOOD 0x1p-100f /* as zero */
#define GUARD   64u
#define COLUMNS 768u

/* Of a row of bfloats, which lies as the instruction set likes it. */
static float bfloat_of(const struct isa *isa, const void *act, uint32_t i)
{
        return is_own_kind(isa, ROW_BF16) ? bfloat_to_float(((const uint16_t *)act)[i])
                                          : ((const float *)act)[i];
}

/* ---- rows of x ---- */

struct acts {
        enum act_kind kind;
        size_t stride;
        uint8_t *bytes;
};

static void acts_fill(struct acts *a, const struct isa *isa, const struct panel *p, const float *x)
{
        a->kind = act_kind_of(p->type);
        a->stride = act_stride(a->kind, p->columns);
        a->bytes = aligned_alloc(64, TOKENS * a->stride);
        assert_non_null(a->bytes);
        memset(a->bytes, 0x7f, TOKENS * a->stride);
        for (uint32_t t = 0; t < TOKENS; t++, x += p->columns) {
                if (a->kind == ACT_FLOATS)
                        memcpy(a->bytes + t * a->stride, x, p->columns * sizeof(*x));
                else
                        isa->act_quantise(a->kind, a->bytes + t * a->stride, x, p->columns);
        }
}

static const struct act_sums *sums_of(const void *act, uint32_t columns)
{
        return (const struct act_sums *)((const uint8_t *)act + act_sums_at(columns));
}

static const void *act_of(const struct acts *a, uint32_t token)
{
        return a->bytes + token * a->stride;
}

/*
 * Out of their order and at another distance: `tokens` of them from `from` on.  At another distance
 * one row of x prefetches, too.
 */
static void product_of(const struct isa *isa, const struct panel *p, const struct acts *a,
                       uint32_t from, uint32_t tokens, size_t more, float *out)
{
        size_t stride = a->stride + more, numbers = (size_t)tokens * PANEL;
        uint8_t *apart = aligned_alloc(64, tokens * stride);
        float *sums = aligned_alloc(64, numbers * sizeof(*sums) + GUARD);

        assert_true(apart && sums);
        memset(apart, 0xff, tokens * stride); /* NaN */
        memset(sums, 0xa5, numbers * sizeof(*sums) + GUARD);
        for (uint32_t t = 0; t < tokens; t++)
                memcpy(apart + t * stride, act_of(a, from + t), a->stride);
        isa->product(
                &(struct piece){
                        .type = p->type,
                        .columns = p->columns,
                        .panels = p->panel,
                        .panel_count = 1,
                        .acts = apart,
                        .act_stride = stride,
                        .rows = tokens,
                        .lone_ahead = more ? 2048 : 0,
                },
                sums);
        for (uint32_t i = 0; i < GUARD; i++)
                assert_int_equal(((uint8_t *)(sums + numbers))[i], 0xa5);
        memcpy(out, sums, numbers * sizeof(*sums));
        free(apart);
        free(sums);
}

/* ---- the value of a product ---- */

struct sum {
        double sum, off;
};

/* The sum so far, rounded; the added term is off by `off`. */
static void sum_add(struct sum *s, double term, double off)
{
        s->sum += term;
        s->off += off;
        s->off += UNIT * (fabs(s->sum) + s->off) + LEAST;
}

static struct sum numbers_product(const struct isa *isa, const struct panel *p, uint32_t row,
                                  const void *act)
{
        struct sum s = { 0 };
        float w[COLUMNS];

        row_to_floats(p->type, p->file + row * p->row_bytes, p->columns, w);
        for (uint32_t i = 0; i < p->columns; i++) {
                /* of two bfloats the second one is first */
                uint32_t k = p->type == ROW_BF16 && (i ^ 1) < p->columns ? i ^ 1 : i;
                double x = p->type == ROW_BF16 ? bfloat_of(isa, act, k) : ((const float *)act)[k];
                double term = w[k] * x, off = 0;

                if (is_own_kind(isa, p->type)) /* it may add the two before, in any case */
                        off = UNIT * fabs(term) + NORMAL * (1 + fabs(x) + fabs((double)w[k]));
                sum_add(&s, term, off);
        }
        return s;
}

/* Of each 32 columns the even ones and the odd ones are summed apart. */
static struct sum tiles_product(const struct isa *isa, const struct panel *p, uint32_t row,
                                const void *act)
{
        struct sum s = { 0 };
        float w[COLUMNS];

        row_to_floats(p->type, p->file + row * p->row_bytes, p->columns, w);
        for (uint32_t at = 0; at < p->columns; at += 32) {
                struct sum halves[2] = { { 0 }, { 0 } }, both;

                for (uint32_t k = at; k < at + 32 && k < p->columns; k++) {
                        double x = bfloat_of(isa, act, k), number = w[k];

                        sum_add(&halves[k % 2], number * x, NORMAL * (1 + fabs(x) + fabs(number)));
                }
                both = halves[0];
                sum_add(&both, halves[1].sum, halves[1].off + NORMAL);
                sum_add(&s, both.sum, both.off + NORMAL);
        }
        return s;
}

static struct sum e4m3_product(const struct panel *p, uint32_t row, const void *act)
{
        const struct block_format *f = block_format(ROW_F8_E4M3);
        const double min = LEAST * 256;
        const float *x = act;
        struct sum s = { 0 };
        struct block b;

        for (uint32_t at = 0; at < p->columns; at += f->numbers) {
                struct sum codes = { 0 };

                f->take(p->file + row * p->row_bytes + at / f->numbers * f->bytes, &b);
                for (uint32_t i = 0; i < f->numbers; i++)
                        sum_add(&codes, (double)e4m3_to_float(b.codes[i]) * (double)x[at + i], min);
                sum_add(&s, codes.sum * (double)b.scale, codes.off * fabs((double)b.scale) + min);
        }
        return s;
}

static struct sum blocks_product(const struct panel *p, uint32_t row, const void *act)
{
        const struct block_format *f = block_format(p->type);
        const uint8_t *from = p->file + row * p->row_bytes;
        const int8_t *bytes = act;
        const struct act_sums *a = sums_of(act, p->columns);
        struct sum s = { 0 };
        struct block b;

        for (uint32_t at = 0; at < p->columns; at += 32, a++) {
                double dot = 0, term, min, off;
                int less = 0;

                if (at % f->numbers == 0)
                        f->take(from + at / f->numbers * f->bytes, &b);
                for (uint32_t i = 0; i < 32; i++) {
                        uint32_t k = at % f->numbers + i;
                        int code = f->table ? f->table[b.codes[k]] : b.codes[k] - f->zero;

                        dot += (double)block_run_scale(f, b.scales[k / f->run]) *
                               (code * bytes[at + i]);
                        less += b.mins[k / f->run] * bytes[at + i];
                }
                term = (double)b.scale * dot * a->scale;
                off = UNIT * fabs(term) * (f->has_e4m3_scales ? 2 : 1);
                sum_add(&s, term, off + LEAST * fabs((double)a->scale));
                min = (double)b.min * less * a->scale;
                if (less && b.min != 0)
                        sum_add(&s, -min,
                                UNIT * fabs(min) + LEAST * fmax(fabs((double)a->scale),
                                                                fabs((double)b.min * 63)));
        }
        return s;
}

static struct sum product_should(const struct isa *isa, const struct panel *p, uint32_t row,
                                 const void *act)
{
        if (p->type == ROW_F8_E4M3)
                return e4m3_product(p, row, act);
        if (p->type == ROW_BF16 && has_tiles(isa))
                return tiles_product(isa, p, row, act);
        return block_format(p->type) ? blocks_product(p, row, act)
                                     : numbers_product(isa, p, row, act);
}

static void products_near(const struct isa *isa, const struct panel *p, const struct acts *a,
                          const float *out)
{
        for (uint32_t t = 0; t < TOKENS; t++)
                for (uint32_t row = 0; row < PANEL; row++) {
                        struct sum s = product_should(isa, p, row, act_of(a, t));
                        double is = out[t * PANEL + row];

                        /* doubles are rounded, too */
                        if (isnan(s.sum) ? !isnan(is)
                                         : !(fabs(is - s.sum) <= s.off * (1 + 0x1p-20)))
                                fail_msg("%s, %s, %u columns: token %u, row %u is %.9g, not %.9g "
                                         "within %.3g",
                                         isa->name, row_type_name(p->type), p->columns, t, row, is,
                                         s.sum, s.off);
                }
}

/* ---- tests ---- */

static const uint32_t columns_of[] = { 1, 2, 3, 31, 32, 33, 64, 96, 100, 255, 256, 257, 512, 768 };

/*
 * Rows of various magnitudes.  They include subnormal numbers, and no number is too large to be
 * summed.
 */
static float *mixed_rows_make(uint32_t columns)
{
        static const float sizes[] = { 1,         1,        1,        0x1p-130f, 0x1p-148f,
                                       0x1p-101f, 0x1p-99f, 0x1p-60f, 0x1p60f,   0x1p100f };
        float *x = random_floats((size_t)TOKENS * columns);

        for (uint32_t t = 0; t < TOKENS; t++) {
                uint32_t mixed = random_below(4);

                for (uint32_t i = 0; i < columns; i++) {
                        float *to = &x[(size_t)t * columns + i];

                        if (i % 32 == 0 || mixed == 0)
                                *to *= sizes[t % COUNT(sizes)];
                        else
                                *to *= sizes[(t + i / 32 * mixed) % COUNT(sizes)];
                        if (random_below(9) == 0)
                                *to = random_below(2) ? 0 : -0.0f;
                }
        }
        memset(x, 0, columns * sizeof(*x)); /* a row of nothing */
        return x;
}

/* One row after the other, then many of them at any distance. */
static void any_call_gives_the_same(const struct isa *isa, const struct panel *p,
                                    const struct acts *a, const float *should)
{
        float out[TOKENS * PANEL];

        for (uint32_t tokens = 1; tokens <= TOKENS; tokens++) {
                uint32_t from = random_below(TOKENS - tokens + 1);

                product_of(isa, p, a, from, tokens, random_below(3) * 64, out);
                if (memcmp(out, should + from * PANEL, tokens * PANEL * sizeof(*out)))
                        fail_msg("%s, %s, %u columns: %u tokens from %u on have other bits",
                                 isa->name, row_type_name(p->type), p->columns, tokens, from);
        }
}

static void panel_check(const struct panel *p)
{
        float *x = mixed_rows_make(p->columns), first[TOKENS * PANEL], out[TOKENS * PANEL];
        float tiles[TOKENS * PANEL];
        bool has_any_tiles = false;

        for (uint32_t i = 0; i < isa_count; i++) {
                struct acts a;

                acts_fill(&a, isas[i], p, x);
                for (uint32_t t = 0; t < TOKENS; t++)
                        product_of(isas[i], p, &a, t, 1, 0, out + t * PANEL);
                products_near(isas[i], p, &a, out);
                any_call_gives_the_same(isas[i], p, &a, out);
                if (i == 0)
                        memcpy(first, out, sizeof(first));
                if (!is_own_kind(isas[i], p->type) && memcmp(out, first, sizeof(out)))
                        fail_msg("%s, %s, %u columns: other bits than %s has", isas[i]->name,
                                 row_type_name(p->type), p->columns, isas[0]->name);
                if (has_tiles(isas[i]) && has_any_tiles && memcmp(out, tiles, sizeof(out)))
                        fail_msg("%s, %s, %u columns: other bits than emulated tiles have",
                                 isas[i]->name, row_type_name(p->type), p->columns);
                if (has_tiles(isas[i])) {
                        memcpy(tiles, out, sizeof(tiles));
                        has_any_tiles = true;
                }
                free(a.bytes);
        }
        free(x);
}

static void products_are_within_the_error_bound_and_equal_across_isas(void **state)
{
        (void)state;
        for (enum row_type type = 0; type < ROW_TYPE_N; type++)
                for (size_t c = 0; c < COUNT(columns_of); c++) {
                        struct panel p;

                        if (!row_bytes(type, columns_of[c]))
                                continue;
                        panel_make(&p, type, columns_of[c]);
                        panel_check(&p);
                        panel_free(&p);
                }
}

/* Where a block's scales are, of the block and not of runs. */
static void scales_at(enum row_type type, uint32_t *ret_at, uint32_t *ret_bytes)
{
        bool two = type == ROW_Q4_1 || type == ROW_Q5_1 || type == ROW_Q4_K || type == ROW_Q5_K ||
                   type == ROW_Q2_K;

        bool is_last =
                type == ROW_Q3_K || type == ROW_Q6_K || type == ROW_TQ1_0 || type == ROW_TQ2_0;
        bool is_float = type == ROW_F8_E4M3 || type == ROW_NVFP4;

        *ret_at = type == ROW_Q2_K    ? 80
                  : type == ROW_IQ1_M ? 48
                  : is_last           ? block_format(type)->bytes - 2
                                      : 0;
        *ret_bytes = type == ROW_MXFP4 ? 1 : type == ROW_IQ1_M ? 8 : two || is_float ? 4 : 2;
}

/* All codes and scales of runs become this byte. */
static void codes_fill(struct panel *p, uint8_t with)
{
        const struct block_format *f = block_format(p->type);
        uint32_t at, bytes;

        scales_at(p->type, &at, &bytes);
        for (size_t b = 0; b < PANEL * p->row_bytes; b += f->bytes) {
                uint8_t *block = p->file + b;

                memset(block, with, at);
                memset(block + at + bytes, with, f->bytes - at - bytes);
        }
        panel_fill(p);
}

/* Every code at its largest beside every byte at its largest: sums of pairs have 16 bits in one
 * instruction set, and none may be cut off. */
static void the_largest_codes_times_the_largest_bytes_do_not_overflow(void **state)
{
        static const uint8_t fills[] = { 0, 0xff, 0x80, 0x7f, 0x88, 0x0f, 0xf0 };
        float x[TOKENS * 256], out[TOKENS * PANEL];

        (void)state;
        for (size_t n = 0; n < COUNT(x); n++)
                x[n] = n / 256 % 3 == 0 || (n / 256 % 3 == 1 && random_below(2)) ? 1 : -1;
        for (uint32_t n = 0; n < COUNT(fills) * ROW_TYPE_N; n++) {
                enum row_type type = n / COUNT(fills);
                struct panel p;

                if (!block_format(type))
                        continue;
                panel_make(&p, type, 256);
                codes_fill(&p, fills[n % COUNT(fills)]);
                for (uint32_t i = 0; i < isa_count; i++) {
                        struct acts a;

                        acts_fill(&a, isas[i], &p, x);
                        product_of(isas[i], &p, &a, 0, TOKENS, 0, out);
                        products_near(isas[i], &p, &a, out);
                        free(a.bytes);
                }
                panel_free(&p);
        }
}

/* ---- NaN and infinity ---- */

static void infect(const struct isa *isa, const struct panel *p, float *x, const float *healthy,
                   float with)
{
        uint32_t token = random_below(TOKENS), column = random_below(p->columns);
        float *at = &x[token * p->columns + column], was = *at, out[TOKENS * PANEL];
        struct acts a;

        *at = with;
        acts_fill(&a, isa, p, x);
        product_of(isa, p, &a, 0, TOKENS, 0, out);
        *at = was;
        free(a.bytes);
        for (uint32_t row = 0; row < PANEL; row++)
                if (isfinite(out[token * PANEL + row]))
                        fail_msg("%s, %s: of %g in column %u of %u row %u is %g", isa->name,
                                 row_type_name(p->type), with, column, p->columns, row,
                                 out[token * PANEL + row]);
        for (uint32_t t = 0; t < TOKENS; t++)
                if (t != token)
                        assert_memory_equal(out + t * PANEL, healthy + t * PANEL,
                                            PANEL * sizeof(*out));
}

/* A row of weights of which one number, or one scale, is none. */
static void infect_weights(const struct isa *isa, struct panel *p, const struct acts *a,
                           const float *healthy)
{
        const uint32_t row = random_below(PANEL);
        uint8_t *at = p->file + row * p->row_bytes;
        float out[TOKENS * PANEL];

        /* it has no code for a number that is not finite */
        if (p->type == ROW_MXFP4)
                return;
        if (block_format(p->type)) {
                uint32_t scale, bytes;

                scales_at(p->type, &scale, &bytes);
                at += scale;
        }
        if (p->type == ROW_F8_E4M3 && random_below(2))
                at[4 + random_below(128)] |= 0x7f;
        else if (p->type == ROW_F32 || p->type == ROW_F8_E4M3 || p->type == ROW_NVFP4)
                memcpy(at, &(uint32_t){ 0x7fc00000 }, 4);
        else if (p->type == ROW_IQ1_M)
                iq1_m_scale_put(at - 48, 0x7e00);
        else
                memcpy(at, &(uint16_t){ p->type == ROW_BF16 ? 0x7fc0 : 0x7e00 }, 2);
        panel_fill(p);
        product_of(isa, p, a, 0, TOKENS, 0, out);
        for (uint32_t n = 0; n < COUNT(out); n++) {
                if (n % PANEL == row)
                        assert_false(isfinite(out[n]));
                else
                        assert_int_equal(float_bits(out[n]), float_bits(healthy[n]));
        }
}

static void a_value_that_is_not_finite_affects_only_its_own_row(void **state)
{
        static const uint32_t columns[] = { 33, 64, 256, 512 };
        const float bad[] = { NAN, -NAN, INFINITY, -INFINITY, bits_float(0x7f800001) };

        (void)state;
        for (uint32_t n = 0; n < COUNT(columns) * ROW_TYPE_N * isa_count; n++) {
                const struct isa *isa = isas[n % isa_count];
                enum row_type type = n / isa_count % ROW_TYPE_N;
                uint32_t count = columns[n / isa_count / ROW_TYPE_N];
                float *x = random_floats(TOKENS * count), healthy[TOKENS * PANEL];
                struct panel p;
                struct acts a;

                if (row_bytes(type, count)) {
                        panel_make(&p, type, count);
                        acts_fill(&a, isa, &p, x);
                        product_of(isa, &p, &a, 0, TOKENS, 0, healthy);
                        for (uint32_t i = 0; i < 8 * COUNT(bad); i++)
                                infect(isa, &p, x, healthy, bad[i % COUNT(bad)]);
                        infect_weights(isa, &p, &a, healthy);
                        free(a.bytes);
                        panel_free(&p);
                }
                free(x);
        }
}

/* ---- act() ---- */

static void block_is_as_defined(const int8_t *bytes, const struct act_sums *a, const float *x)
{
        int sum = 0, second = 0, largest = 0;
        float most = 0;

        for (uint32_t i = 0; i < ACT_BLOCK; i++) {
                most = fmaxf(most, fabsf(x[i]));
                sum += bytes[i];
                second += i < 16 ? 0 : bytes[i];
                largest = abs(bytes[i]) > largest ? abs(bytes[i]) : largest;
        }
        assert_int_equal(a->minus_sum, -sum);
        assert_int_equal(a->minus_sum_halves[0], second - sum);
        assert_int_equal(a->minus_sum_halves[1], -second);
        assert_true(a->minus_sum_scaled == a->scale * (float)a->minus_sum);
        if (most < AS_GOOD) {
                assert_true(a->scale == 0);
                return;
        }
        assert_int_equal(largest, 127);
        assert_true(a->scale == most / 127);
        for (uint32_t i = 0; i < ACT_BLOCK; i++) {
                double apart = fabs(x[i] - (double)bytes[i] * a->scale);

                /*
                 * Half a unit, plus as much as the rounding of 127 / most and of its product
                 * costs.
                 */
                assert_true(apart <= a->scale * (0.5 + 127 * 4 * UNIT));
        }
}

/* Blocks of every size that floats have, from nothing on. */
static float *blocks_make(uint32_t columns)
{
        float *x = random_floats(columns);

        for (uint32_t i = 0; i < columns; i++) {
                int exponent = (int)(i / ACT_BLOCK) % 280 - 152;

                x[i] = ldexpf(x[i], exponent > 128 ? 128 : exponent);
                if (random_below(20) == 0)
                        x[i] = -0.0f;
        }
        x[280 * ACT_BLOCK] = FLT_MAX; /* one of each in their blocks */
        x[281 * ACT_BLOCK + 5] = -FLT_MAX;
        x[282 * ACT_BLOCK + 16] = FLT_TRUE_MIN;
        for (uint32_t i = 0; i < ACT_BLOCK; i++) { /* in the middle between two bytes */
                x[283 * ACT_BLOCK + i] = i ? (float)i + 0.5f : 127;
                x[284 * ACT_BLOCK + i] = i ? -(float)i - 0.5f : 127;
                x[285 * ACT_BLOCK + i] = 0;
                x[286 * ACT_BLOCK + i] = AS_GOOD;
                x[287 * ACT_BLOCK + i] = nextafterf(AS_GOOD, 0);
        }
        return x;
}

static void activations_become_bytes_scale_and_sums_as_defined(void **state)
{
        enum { BLOCKS = 600, WIDE = BLOCKS * ACT_BLOCK };
        size_t bytes = act_stride(ACT_BYTES, WIDE);
        int8_t *first = malloc(bytes), *is = malloc(bytes);
        const struct act_sums *sums = sums_of(is, WIDE);
        float *x;

        (void)state;
        assert_true(first && is);
        for (uint32_t round = 0; round < 20; round++) {
                x = blocks_make(WIDE);
                for (uint32_t i = 0; i < isa_count; i++) {
                        memset(is, 0x7f, bytes);
                        isas[i]->act_quantise(ACT_BYTES, is, x, WIDE);
                        for (uint32_t b = 0; b < BLOCKS; b++)
                                block_is_as_defined(is + b * ACT_BLOCK, &sums[b],
                                                    x + b * ACT_BLOCK);
                        if (i == 0)
                                memcpy(first, is, bytes);
                        assert_memory_equal(is, first, bytes);
                }
                free(x);
        }
        free(first);
        free(is);
}

/* "NaN or infinite as they are" */
static void the_scale_of_an_activation_block_with_nan_or_infinity_is_not_finite(void **state)
{
        (void)state;
        for (uint32_t round = 0; round < 100 * isa_count; round++) {
                float *x = random_floats(3 * ACT_BLOCK);
                uint32_t at = ACT_BLOCK + random_below(ACT_BLOCK);
                int8_t a[3 * (ACT_BLOCK + sizeof(struct act_sums))] __attribute__((aligned(64)));
                const struct act_sums *sums = sums_of(a, 3 * ACT_BLOCK);

                x[at] = INFINITY;
                isas[round % isa_count]->act_quantise(ACT_BYTES, a, x, 3 * ACT_BLOCK);
                assert_true(isinf(sums[1].scale));
                x[ACT_BLOCK + random_below(ACT_BLOCK)] = NAN;
                isas[round % isa_count]->act_quantise(ACT_BYTES, a, x, 3 * ACT_BLOCK);
                assert_true(isnan(sums[1].scale));
                block_is_as_defined(a, &sums[0], x);
                block_is_as_defined(a + 2 * ACT_BLOCK, &sums[2], x + 2 * ACT_BLOCK);
                free(x);
        }
}

/* The nearest of all bfloats, of two as near the even one: found by looking at both neighbours. */
static uint16_t bfloat_nearest(float x)
{
        uint16_t down = (uint16_t)(float_bits(x) >> 16), up = (uint16_t)(down + 1);
        double low = bfloat_to_float(down), high = bfloat_to_float(up);

        if (isinf(high)) /* as far away as if there were one more */
                high = copysign(0x1p128, low);
        if (isinf(x) || fabs(x - low) < fabs(high - x))
                return down;
        if (fabs(x - low) > fabs(high - x))
                return up;
        return down & 1 ? up : down;
}

static void activations_round_to_the_nearest_bfloat(void **state)
{
        float x[257], is[258];

        (void)state;
        assert_true(sizeof(is) <= act_stride(ACT_BFLOATS, COUNT(x)));
        for (uint32_t round = 0; round < 2000 * isa_count; round++) {
                const struct isa *isa = isas[round % isa_count];

                for (uint32_t i = 0; i < COUNT(x); i++)
                        x[i] = bits_float(random_below(2) ? random_next()
                                                          : random_next() & 0xffff8000);
                memset(is, 0x7f, sizeof(is));
                isa->act_quantise(ACT_BFLOATS, is, x, COUNT(x));
                for (uint32_t i = 0; i < COUNT(x); i++) {
                        float bfloat = bfloat_of(isa, is, i), should;

                        if (isnan(x[i])) {
                                assert_true(isnan(bfloat));
                                continue;
                        }
                        should = bfloat_to_float(bfloat_nearest(x[i]));
                        assert_int_equal(float_bits(bfloat), float_bits(should));
                }
                assert_true(bfloat_of(isa, is, COUNT(x)) == 0); /* behind them */
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(activations_become_bytes_scale_and_sums_as_defined),
                cmocka_unit_test(
                        the_scale_of_an_activation_block_with_nan_or_infinity_is_not_finite),
                cmocka_unit_test(activations_round_to_the_nearest_bfloat),
                cmocka_unit_test(the_largest_codes_times_the_largest_bytes_do_not_overflow),
                cmocka_unit_test(products_are_within_the_error_bound_and_equal_across_isas),
                cmocka_unit_test(a_value_that_is_not_finite_affects_only_its_own_row),
        };

        random_seed();
        return cmocka_run_group_tests(tests, isas_find, variants_close);
}
