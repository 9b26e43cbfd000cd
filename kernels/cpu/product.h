/*
 * Products of a panel and rows of x.  Part of body.h.
 *
 * A pass holds one accumulator for each (weight row, row of x) in registers, for as many rows of x as
 * there is room for, and walks the columns once.  Each accumulator makes the same chain of operations
 * whatever the pass is made of, so a row's bits are its own.
 *
 * Numbers: sum = w x + sum, rounded once, column by column.
 * Codes:   sum = (float)(sum of code * byte over 32 columns) * w.scale * x.scale + sum, and where
 *          there are least values, sum = least * -(scale * sum of bytes) + sum.  The first is
 *          exact, the product with w.scale is rounded, and what follows once.
 *
 * What is still to come of the panel is fetched ahead, every line of it: the processor's own prefetching
 * loses a stream that it has to share with others, and a stream with holes costs more than all
 * the arithmetic.
 */

#define AHEAD 4096u /* bytes */

LANES_INLINE void fetch_ahead(const uint8_t *at, uint32_t bytes)
{
        UNROLL for (uint32_t i = 0; i < bytes; i += 64)
        {
                __builtin_prefetch(at + AHEAD + i);
        }
}

LANES_INLINE void sums_clear(vec sums[TILE][WIDTH], const uint32_t tokens)
{
        UNROLL for (uint32_t t = 0; t < tokens; t++)
        {
                UNROLL for (uint32_t g = 0; g < WIDTH; g++)
                {
                        sums[t][g] = (vec){ 0 };
                }
        }
}

LANES_INLINE void sums_store(float *out, vec sums[TILE][WIDTH], const uint32_t tokens)
{
        UNROLL for (uint32_t t = 0; t < tokens; t++)
        {
                UNROLL for (uint32_t g = 0; g < WIDTH; g++)
                {
                        store(out + t * PANEL + g * LANES, sums[t][g]);
                }
        }
}

/* F32, F16: WIDTH vectors of the panel's rows, from `row` on. */
LANES_INLINE void numbers_pass(const enum row_type type, const uint32_t tokens, const uint32_t row,
                               float *out, const uint8_t *panel, uint32_t columns,
                               const uint8_t *acts, size_t stride)
{
        vec sums[TILE][WIDTH];

        sums_clear(sums, tokens);
        for (size_t k = 0; k < columns; k++) {
                fetch_ahead(panel + k * slabs[type].bytes, slabs[type].bytes);
                UNROLL for (uint32_t g = 0; g < WIDTH; g++)
                {
                        vec w = load_as(type, panel, k * PANEL + row + g * LANES);

                        UNROLL for (uint32_t t = 0; t < tokens; t++)
                        {
                                const float *x = (const float *)(acts + t * stride);

                                sums[t][g] = fused(w, splat(x[k]), sums[t][g]);
                        }
                }
        }
        sums_store(out, sums, tokens);
}

/* BF16: columns in twos; the second one first, as processors that have an instruction for it do. */
LANES_INLINE vec bfloats_dot(vec sum, ivec w, uint32_t x)
{
#if BFLOATS_BY_HARDWARE
        return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)w, (__m512bh)splat_dword((int32_t)x));
#else
        vec even = (vec)(w << 16), odd = (vec)(w & (int32_t)0xffff0000);

        sum = fused(odd, splat(bits_float(x & 0xffff0000)), sum);
        return fused(even, splat(bits_float(x << 16)), sum);
#endif
}

LANES_INLINE void bfloats_pass(const uint32_t tokens, const uint32_t row, float *out,
                               const uint8_t *panel, uint32_t columns, const uint8_t *acts,
                               size_t stride)
{
        vec sums[TILE][WIDTH];

        sums_clear(sums, tokens);
        for (size_t k = 0; k < (columns + 1u) / 2; k++, panel += SLAB_QUADS) {
                if (tokens <= 4) /* beside more of them the compiler finds no registers for it */
                        fetch_ahead(panel, SLAB_QUADS);
                UNROLL for (uint32_t g = 0; g < WIDTH; g++)
                {
                        ivec w = load_dwords(panel + (row + g * LANES) * 4);

                        UNROLL for (uint32_t t = 0; t < tokens; t++)
                        {
                                const uint32_t *x = (const uint32_t *)(acts + t * stride);

                                sums[t][g] = bfloats_dot(sums[t][g], w, x[k]);
                        }
                }
        }
        sums_store(out, sums, tokens);
}

/* Quad `j` of a half of 32 columns' codes: `half` 1 is the later 16 columns. */
LANES_INLINE ivec codes_of(const enum row_type type, const uint8_t *codes, const uint32_t half,
                           const uint32_t j, const uint32_t lane)
{
        const struct slab *s = &slabs[type];
        const uint8_t *low = codes + lane * 4, *high = low + slab_low_bytes(s);
        const uint32_t above = s->low == LOW_PAIRS ? 2 : 4;
        ivec z, h;

        if (s->low == LOW_BYTES)
                return load_dwords(low + (half * 4 + j) * SLAB_QUADS);
        if (s->low == LOW_NIBBLES) {
                z = load_dwords(low + j * SLAB_QUADS);
                z = (half ? shift_down(z, 4) : z) & 0x0f0f0f0f;
        } else {
                z = shift_down(load_dwords(low + half * SLAB_QUADS), 2 * j) & 0x03030303;
        }
        if (s->high == HIGH_FIFTHS) {
                h = shift_down(load_dwords(high), half * 4 + j) & 0x01010101;
                z |= h << (int32_t)above;
        }
        if (s->high == HIGH_PAIRS) {
                h = shift_down(load_dwords(high + half * SLAB_QUADS), 2 * j) & 0x03030303;
                z |= h << (int32_t)above;
        }
        return z;
}

/* Codes from -128 on, as those of bytes. */
static const uint8_t iq4_nl_codes[16] = { 1,   24,  45,  63,  79,  93,  106, 118,
                                          129, 141, 153, 166, 181, 197, 217, 241 };
static const uint8_t mxfp4_codes[16] = { 128, 129, 130, 131, 132, 134, 136, 140,
                                         128, 127, 126, 125, 124, 122, 120, 116 };

LANES_INLINE ivec dot_of(const enum row_type type, ivec sum, ivec codes, ivec x)
{
        if (type == ROW_IQ4_NL)
                codes = look_up(iq4_nl_codes, codes);
        if (type == ROW_MXFP4)
                codes = look_up(mxfp4_codes, codes);
        if (type == ROW_Q8_0 || slabs[type].has_table)
                return quad_dot_bytes(sum, codes, x);
        return quad_dot(sum, codes, x);
}

/* The sum of products of 16 columns, for every row of the pass. */
LANES_INLINE void half_dots(const enum row_type type, const uint32_t tokens, const uint32_t row,
                            ivec dots[TILE][WIDTH], const uint8_t *codes, const uint32_t half,
                            const uint8_t *acts, size_t stride)
{
        UNROLL for (uint32_t j = 0; j < 4; j++)
        {
                ivec w[WIDTH];

                UNROLL for (uint32_t g = 0; g < WIDTH; g++)
                {
                        w[g] = codes_of(type, codes, half, j, row + g * LANES);
                }
                UNROLL for (uint32_t t = 0; t < tokens; t++)
                {
                        const struct act *a = (const struct act *)(acts + t * stride);
                        ivec x = splat_quad(a->bytes + half * 16 + j * 4);

                        UNROLL for (uint32_t g = 0; g < WIDTH; g++)
                        {
                                dots[t][g] = dot_of(type, dots[t][g], w[g], x);
                        }
                }
        }
}

/* ... of 32 columns that have one scale. */
LANES_INLINE void whole_dots(const enum row_type type, const uint32_t tokens, const uint32_t row,
                             ivec dots[TILE][WIDTH], const uint8_t *codes, const uint8_t *acts,
                             size_t stride)
{
        const uint32_t zero = slabs[type].has_table ? 128 : slabs[type].zero;

        UNROLL for (uint32_t t = 0; t < tokens; t++)
        {
                const struct act *a = (const struct act *)(acts + t * stride);

                UNROLL for (uint32_t g = 0; g < WIDTH; g++)
                {
                        dots[t][g] = quad_start(zero, a->less);
                }
        }
        half_dots(type, tokens, row, dots, codes, 0, acts, stride);
        half_dots(type, tokens, row, dots, codes, 1, acts, stride);
}

/* ... of 32 columns with two whole scales, each times its own. */
LANES_INLINE void scaled_dots(const enum row_type type, const uint32_t tokens, const uint32_t row,
                              ivec dots[TILE][WIDTH], const uint8_t *codes, const uint8_t *scales,
                              const uint8_t *acts, size_t stride)
{
        const uint32_t zero = slabs[type].zero;

        UNROLL for (uint32_t half = 0; half < 2; half++)
        {
                ivec part[TILE][WIDTH];

                UNROLL for (uint32_t t = 0; t < tokens; t++)
                {
                        const struct act *a = (const struct act *)(acts + t * stride);

                        UNROLL for (uint32_t g = 0; g < WIDTH; g++)
                        {
                                part[t][g] = quad_start(zero, half ? a->less_second
                                                                   : a->less - a->less_second);
                        }
                }
                half_dots(type, tokens, row, part, codes, half, acts, stride);
                UNROLL for (uint32_t g = 0; g < WIDTH; g++)
                {
                        ivec scale = load_bytes(scales + half * PANEL + row + g * LANES);

                        if (slabs[type].runs == RUNS_HALVES)
                                scale &= 15;
                        UNROLL for (uint32_t t = 0; t < tokens; t++)
                        {
                                ivec product = part[t][g] * scale;

                                dots[t][g] = half ? dots[t][g] + product : product;
                        }
                }
        }
}

LANES_INLINE vec scale_load(const enum row_type type, const uint8_t *at)
{
        return type == ROW_MXFP4 ? load_bfloat((const uint16_t *)at)
                                 : load_half((const uint16_t *)at);
}

/* One block's share of the sums; `scale` and `least` of each row, the latter to be subtracted. */
LANES_INLINE void sums_add(const uint32_t tokens, vec sums[TILE][WIDTH], ivec dots[TILE][WIDTH],
                           const vec scale[WIDTH], const vec *least, const uint8_t *acts,
                           size_t stride)
{
        UNROLL for (uint32_t t = 0; t < tokens; t++)
        {
                const struct act *a = (const struct act *)(acts + t * stride);

                UNROLL for (uint32_t g = 0; g < WIDTH; g++)
                {
                        sums[t][g] = fused(to_floats(dots[t][g]) * scale[g], splat(a->scale),
                                           sums[t][g]);
                        if (least)
                                sums[t][g] = fused(least[g], splat(a->less_scaled), sums[t][g]);
                }
        }
}

/* Blocks of 32 columns. */
LANES_INLINE void blocks_pass(const enum row_type type, const uint32_t tokens, const uint32_t row,
                              float *out, const uint8_t *panel, uint32_t columns,
                              const uint8_t *acts, size_t stride)
{
        const struct slab *s = &slabs[type];
        vec sums[TILE][WIDTH];

        sums_clear(sums, tokens);
        for (uint32_t k = 0; k < columns; k += 32) {
                ivec dots[TILE][WIDTH];
                vec scale[WIDTH], least[WIDTH];

                fetch_ahead(panel, s->bytes);
                whole_dots(type, tokens, row, dots, panel + slab_codes_at(s), acts, stride);
                UNROLL for (uint32_t g = 0; g < WIDTH; g++)
                {
                        const uint8_t *at = panel + (row + g * LANES) * 2;

                        scale[g] = scale_load(type, at);
                        if (s->has_leasts)
                                least[g] = scale_load(type, at + SLAB_SCALES);
                }
                sums_add(tokens, sums, dots, scale, s->has_leasts ? least : NULL, acts, stride);
                panel += s->bytes;
                acts += sizeof(struct act);
        }
        sums_store(out, sums, tokens);
}

/* Scales and least values of eight runs, times those of the block: exact in floats. */
LANES_INLINE void six_bits_load(const uint32_t row, float runs[16][PANEL], const uint8_t *slab)
{
        UNROLL for (uint32_t g = 0; g < WIDTH; g++)
        {
                const uint32_t at = row + g * LANES;
                const uint8_t *from = slab + 2 * SLAB_SCALES + at * 4;
                vec scale = load_half((const uint16_t *)(slab + at * 2));
                vec least = load_half((const uint16_t *)(slab + SLAB_SCALES + at * 2));
                ivec six[3], last;

                UNROLL for (uint32_t w = 0; w < 3; w++)
                {
                        six[w] = load_dwords(from + w * SLAB_QUADS);
                }
                UNROLL for (uint32_t i = 0; i < 15; i++)
                {
                        ivec n = shift_down(six[i / 5], i % 5 * 6) & 63;

                        store(runs[i] + at, to_floats(n) * (i < 8 ? scale : least));
                }
                last = shift_down(six[0], 30) | shift_down(six[1], 30) << 2 |
                       shift_down(six[2], 30) << 4;
                store(runs[15] + at, to_floats(last) * least);
        }
}

/* Q4_K, Q5_K */
LANES_INLINE void runs_pass(const enum row_type type, const uint32_t tokens, const uint32_t row,
                            float *out, const uint8_t *panel, uint32_t columns, const uint8_t *acts,
                            size_t stride)
{
        const struct slab *s = &slabs[type];
        float runs[16][PANEL] __attribute__((aligned(64)));
        vec sums[TILE][WIDTH];

        sums_clear(sums, tokens);
        for (uint32_t k = 0; k < columns; k += 256) {
                fetch_ahead(panel, slab_codes_at(s));
                six_bits_load(row, runs, panel);
                panel += slab_codes_at(s);
                for (uint32_t run = 0; run < 8; run++) {
                        ivec dots[TILE][WIDTH];
                        vec scale[WIDTH], least[WIDTH];

                        fetch_ahead(panel, slab_code_bytes(s));
                        whole_dots(type, tokens, row, dots, panel, acts, stride);
                        UNROLL for (uint32_t g = 0; g < WIDTH; g++)
                        {
                                scale[g] = load(runs[run] + row + g * LANES);
                                least[g] = load(runs[8 + run] + row + g * LANES);
                        }
                        sums_add(tokens, sums, dots, scale, least, acts, stride);
                        panel += slab_code_bytes(s);
                        acts += sizeof(struct act);
                }
        }
        sums_store(out, sums, tokens);
}

/* What Q2_K subtracts: the two runs' least values times the sums of their bytes, whole numbers. */
LANES_INLINE void leasts_subtract(const uint32_t tokens, const uint32_t row, vec sums[TILE][WIDTH],
                                  const vec least[WIDTH], const uint8_t *runs, const uint8_t *acts,
                                  size_t stride)
{
        UNROLL for (uint32_t g = 0; g < WIDTH; g++)
        {
                const uint8_t *at = runs + row + g * LANES;
                ivec first = load_bytes(at) >> 4 & 15, second = load_bytes(at + PANEL) >> 4 & 15;

                UNROLL for (uint32_t t = 0; t < tokens; t++)
                {
                        const struct act *a = (const struct act *)(acts + t * stride);
                        ivec n = first * (a->less - a->less_second) + second * a->less_second;

                        sums[t][g] = fused(to_floats(n) * least[g], splat(a->scale), sums[t][g]);
                }
        }
}

/* Q6_K, Q3_K, Q2_K: whole scales of 16 columns. */
LANES_INLINE void halves_pass(const enum row_type type, const uint32_t tokens, const uint32_t row,
                              float *out, const uint8_t *panel, uint32_t columns,
                              const uint8_t *acts, size_t stride)
{
        const struct slab *s = &slabs[type];
        vec sums[TILE][WIDTH];

        sums_clear(sums, tokens);
        for (uint32_t k = 0; k < columns; k += 256) {
                const uint8_t *runs = panel + slab_runs_at(s);
                vec scale[WIDTH], least[WIDTH];

                fetch_ahead(panel, slab_codes_at(s));
                UNROLL for (uint32_t g = 0; g < WIDTH; g++)
                {
                        const uint8_t *at = panel + (row + g * LANES) * 2;

                        scale[g] = load_half((const uint16_t *)at);
                        if (s->has_leasts)
                                least[g] = load_half((const uint16_t *)(at + SLAB_SCALES));
                }
                panel += slab_codes_at(s);
                for (uint32_t run = 0; run < 8; run++) {
                        ivec dots[TILE][WIDTH];

                        fetch_ahead(panel, slab_code_bytes(s));
                        scaled_dots(type, tokens, row, dots, panel, runs, acts, stride);
                        sums_add(tokens, sums, dots, scale, NULL, acts, stride);
                        if (s->has_leasts)
                                leasts_subtract(tokens, row, sums, least, runs, acts, stride);
                        panel += slab_code_bytes(s);
                        runs += 2 * PANEL;
                        acts += sizeof(struct act);
                }
        }
        sums_store(out, sums, tokens);
}

LANES_INLINE void pass(const enum row_type type, const uint32_t tokens, float *out,
                       const uint8_t *panel, uint32_t columns, const uint8_t *acts, size_t stride)
{
        for (uint32_t row = 0; row < PANEL; row += WIDTH * LANES, out += WIDTH * LANES) {
                if (type == ROW_BF16)
                        bfloats_pass(tokens, row, out, panel, columns, acts, stride);
                else if (slabs[type].low == LOW_NUMBERS)
                        numbers_pass(type, tokens, row, out, panel, columns, acts, stride);
                else if (slabs[type].runs == RUNS_NONE)
                        blocks_pass(type, tokens, row, out, panel, columns, acts, stride);
                else if (slabs[type].runs == RUNS_SIX_BITS)
                        runs_pass(type, tokens, row, out, panel, columns, acts, stride);
                else
                        halves_pass(type, tokens, row, out, panel, columns, acts, stride);
        }
}

/* Rows of a pass: as many as there are registers for their sums, and for those of integers beside. */
LANES_INLINE uint32_t pass_most(const enum row_type type)
{
        return slabs[type].low == LOW_NUMBERS    ? TILE
               : slabs[type].runs >= RUNS_SIGNED ? TILE_HALVES
                                                 : TILE_CODES;
}

/* One pass after the other, of much the same size: eight rows are four and four, not six and two. */
LANES_INLINE void passes(const enum row_type type, float *out, const uint8_t *panel,
                         uint32_t columns, const uint8_t *acts, size_t stride, uint32_t tokens)
{
        const uint32_t most = pass_most(type), n = (tokens + most - 1) / most;

        for (uint32_t i = 0; i < n; i++) {
                uint32_t from = tokens * i / n, count = tokens * (i + 1) / n - from;
                float *to = out + from * PANEL;
                const uint8_t *x = acts + from * stride;

                switch (count) {
#define PASS(N)                                                                                    \
        case N:                                                                                    \
                if (N <= most)                                                                     \
                        pass(type, N <= most ? N : 1, to, panel, columns, x, stride);              \
                break
                        PASS(1);
                        PASS(2);
                        PASS(3);
                        PASS(4);
                        PASS(5);
                        PASS(6);
                        PASS(7);
                        PASS(8);
                        PASS(9);
                        PASS(10);
                        PASS(11);
                        PASS(12);
#undef PASS
                }
        }
}

static void product(enum row_type type, float *out, const void *panel, uint32_t columns,
                    const void *acts, size_t stride, uint32_t tokens)
{
        switch (type) {
#define TYPE(T)                                                                                    \
        case T:                                                                                    \
                passes(T, out, panel, columns, acts, stride, tokens);                              \
                break
                TYPE(ROW_F32);
                TYPE(ROW_F16);
                TYPE(ROW_BF16);
                TYPE(ROW_Q4_0);
                TYPE(ROW_Q8_0);
                TYPE(ROW_Q4_K);
                TYPE(ROW_Q5_K);
                TYPE(ROW_Q6_K);
                TYPE(ROW_Q4_1);
                TYPE(ROW_Q5_0);
                TYPE(ROW_Q5_1);
                TYPE(ROW_Q2_K);
                TYPE(ROW_Q3_K);
                TYPE(ROW_IQ4_NL);
                TYPE(ROW_MXFP4);
#undef TYPE
        default:
                assert(false);
        }
}
