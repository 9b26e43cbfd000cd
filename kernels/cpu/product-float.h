/*
 * Products of a panel of numbers and rows of x, and the parts that all products share. Part of
 * loops.inc; product.h explains what a pass is.
 *
 * F32, F16, BF16: sum = w x + sum, rounded once, column by column.
 *
 * F8_E4M3: sum = (the codes' sum over 128 columns, as that of numbers) * w.scale + sum, rounded
 * once.
 *
 * The rest of the panel is prefetched: see fetch_ahead().
 */

#define AHEAD_FEW 8192u /* bytes */
#define AHEAD     4096u
#define LINE      64u
#define WIDTH_ALL (PANEL / LANES) /* vectors */

/*
 * The data that a pass prefetches while it walks over a panel. One of several passes prefetches,
 * for each cache line of the panel, the line at `at`, which then moves on by `step`. step 0: there
 * is only one pass, and `lone` says how far ahead it prefetches.
 *
 * When several passes walk over the same panel, only the first one would have anything to
 * prefetch. Memory would be idle during the others. So each of n passes prefetches its n-th part
 * of the next panel, one n-th of a line for each line of its own panel.
 *
 * The L1 cache can wait for only a few lines at a time, fewer than are needed to keep memory
 * busy. The L2 cache can wait for more. So data is prefetched into L2, and into L1 only if there
 * is time for both.
 */
struct ahead {
        const uint8_t *at;
        uint32_t step; /* bytes */
        uint32_t lone; /* bytes: see isa.h; 0 if there are several passes */
        bool is_near;  /* into L1, too */
};

LANES_INLINE struct ahead ahead_of(const uint8_t *panel, size_t bytes, uint32_t pass,
                                   uint32_t passes, uint32_t lone)
{
        if (passes == 1)
                return (struct ahead){ .lone = lone };
        return (struct ahead){ .at = panel + bytes + bytes * pass / passes,
                               .step = (LINE + passes - 1) / passes,
                               .is_near = passes > 2 };
}

LANES_INLINE void fetch(const uint8_t *at, const bool is_near)
{
        if (is_near)
                __builtin_prefetch(at, 0, 3);
        else
                __builtin_prefetch(at, 0, 2);
}

/*
 * Called before `bytes` of the panel at `own` are read.
 *
 * With one row of x, a pass waits only for memory. Some processors see one stream, line by line,
 * and prefetch it by themselves, as fast as memory delivers; hints disturb them. Others do not get
 * far enough ahead (`lone`).
 *
 * With a few rows of numbers or bytes the work for a line is small, so the same rule applies. With
 * codes, F8_E4M3 among them, every processor needs hints.
 *
 * With vectors of less than 16 floats there are too few registers for one more address, and
 * products take longer than memory. So every pass of several rows prefetches its own panel.
 */
LANES_INLINE void fetch_ahead(const enum row_type type, struct ahead *ahead, const uint32_t tokens,
                              const uint32_t row, const uint8_t *own, const uint32_t bytes)
{
        if (row) /* the pass over the first part of the panel prefetched it all */
                return;
        if (tokens == 1 && !ahead->lone)
                return;
        UNROLL for (uint32_t i = 0; i < bytes; i += LINE)
        {
                if (tokens == 1) {
                        fetch(own + ahead->lone + i, true);
                } else if (LANES < 16) {
                        fetch(own + AHEAD + i, true);
                } else if (ahead->step) {
                        fetch(ahead->at, ahead->is_near);
                        ahead->at += ahead->step;
                } else if (slabs[type].low > LOW_BYTES || type == ROW_F8_E4M3) {
                        fetch(own + AHEAD_FEW + i, false);
                } else if (ahead->lone) {
                        fetch(own + ahead->lone + i, true);
                }
        }
}

LANES_INLINE void sums_clear(vec sums[PASS_MOST][WIDTH_ALL], const uint32_t tokens,
                             const uint32_t width)
{
        UNROLL for (uint32_t t = 0; t < tokens; t++)
        {
                UNROLL for (uint32_t g = 0; g < width; g++)
                {
                        sums[t][g] = (vec){ 0 };
                }
        }
}

LANES_INLINE void sums_store(float *out, vec sums[PASS_MOST][WIDTH_ALL], const uint32_t tokens,
                             const uint32_t width)
{
        UNROLL for (uint32_t t = 0; t < tokens; t++)
        {
                UNROLL for (uint32_t g = 0; g < width; g++)
                {
                        store(out + t * PANEL + g * LANES, sums[t][g]);
                }
        }
}

/* F32, F16: `width` vectors of the panel's rows, from `row` on. */
LANES_INLINE void numbers_pass(const enum row_type type, const uint32_t tokens,
                               const uint32_t width, const uint32_t row, float *out,
                               const uint8_t *panel, struct ahead ahead, uint32_t columns,
                               const uint8_t *acts, size_t stride)
{
        vec sums[PASS_MOST][WIDTH_ALL];

        sums_clear(sums, tokens, width);
        for (size_t k = 0; k < columns; k++) {
                vec w[WIDTH_ALL];

                fetch_ahead(type, &ahead, tokens, row, panel + k * slabs[type].bytes,
                            slabs[type].bytes);
                UNROLL for (uint32_t g = 0; g < width; g++)
                {
                        w[g] = load_as(type, panel, k * PANEL + row + g * LANES);
                }
                UNROLL for (uint32_t t = 0; t < tokens; t++)
                {
                        vec x = splat(((const float *)(acts + t * stride))[k]);

                        UNROLL for (uint32_t g = 0; g < width; g++)
                        {
                                sums[t][g] = fused(w[g], x, sums[t][g]);
                        }
                }
        }
        sums_store(out, sums, tokens, width);
}

/*
 * BF16: columns in twos, the second one first, as processors with an instruction for it do.
 * Without the instruction, x is floats rounded to bfloats, because bfloats would have to be
 * unpacked for every vector.
 */
LANES_INLINE void bfloats_add(const uint32_t tokens, const uint32_t width,
                              vec sums[PASS_MOST][WIDTH_ALL], const uint8_t *panel, size_t k,
                              const uint8_t *acts, size_t stride)
{
#if BFLOATS_BY_HARDWARE
        UNROLL for (uint32_t t = 0; t < tokens; t++)
        {
                ivec x = splat_quad((const int8_t *)(acts + t * stride + k * 4));

                UNROLL for (uint32_t g = 0; g < width; g++)
                {
                        ivec w = load_dwords(panel + g * LANES * 4);

                        sums[t][g] =
                                (vec)_mm512_dpbf16_ps((__m512)sums[t][g], (__m512bh)w, (__m512bh)x);
                }
        }
#else
        UNROLL for (uint32_t odd = 2; odd-- > 0;)
        {
                vec w[WIDTH_ALL];

                UNROLL for (uint32_t g = 0; g < width; g++)
                {
                        ivec two = load_dwords(panel + g * LANES * 4);

                        w[g] = (vec)(odd ? two & (int32_t)0xffff0000 : two << 16);
                }
                UNROLL for (uint32_t t = 0; t < tokens; t++)
                {
                        vec x = splat(((const float *)(acts + t * stride))[2 * k + odd]);

                        UNROLL for (uint32_t g = 0; g < width; g++)
                        {
                                sums[t][g] = fused(w[g], x, sums[t][g]);
                        }
                }
        }
#endif
}

/*
 * The most rows of a pass that prefetches. Vectors of less than 16 floats leave no registers for
 * more. Products of bfloats were not measured with more.
 */
#if LANES == 16 && !BFLOATS_BY_HARDWARE
#define BFLOATS_AHEAD PASS_MOST
#else
#define BFLOATS_AHEAD 4u
#endif

LANES_INLINE void bfloats_pass(const uint32_t tokens, const uint32_t width, const uint32_t row,
                               float *out, const uint8_t *panel, struct ahead ahead,
                               uint32_t columns, const uint8_t *acts, size_t stride)
{
        vec sums[PASS_MOST][WIDTH_ALL];

        sums_clear(sums, tokens, width);
        for (size_t k = 0; k < (columns + 1u) / 2; k++, panel += SLAB_QUADS) {
                if (tokens <= BFLOATS_AHEAD)
                        fetch_ahead(ROW_BF16, &ahead, tokens, row, panel, SLAB_QUADS);
                bfloats_add(tokens, width, sums, panel + row * 4, k, acts, stride);
        }
        sums_store(out, sums, tokens, width);
}

/* F8_E4M3: all sums are 2^-8 of their value until the end. */
LANES_INLINE void e4m3_pass(const uint32_t tokens, const uint32_t width, const uint32_t row,
                            float *out, const uint8_t *panel, struct ahead ahead, uint32_t columns,
                            const uint8_t *acts, size_t stride)
{
        const struct slab *s = &slabs[ROW_F8_E4M3];
        vec sums[PASS_MOST][WIDTH_ALL];

        sums_clear(sums, tokens, width);
        for (uint32_t at = 0; at < columns; at += s->columns, panel += s->bytes) {
                const float *scales = (const float *)panel + row;
                const uint16_t *starts = (const uint16_t *)(panel + E4M3_STARTS) + row;
                const uint8_t *codes = panel + E4M3_CODES + row;
                vec block[PASS_MOST][WIDTH_ALL];

                fetch_ahead(ROW_F8_E4M3, &ahead, tokens, row, panel, E4M3_CODES);
                UNROLL for (uint32_t g = 0; g < width; g++)
                {
                        vec start = load_half(starts + g * LANES);

                        UNROLL for (uint32_t t = 0; t < tokens; t++)
                        {
                                block[t][g] = start;
                        }
                }
                for (uint32_t k = at; k < at + s->columns; k++, codes += PANEL) {
                        vec w[WIDTH_ALL];

                        if (k % 2 == 0) /* a cache line has two columns */
                                fetch_ahead(ROW_F8_E4M3, &ahead, tokens, row, codes, 2 * PANEL);
                        UNROLL for (uint32_t g = 0; g < width; g++)
                        {
                                w[g] = load_e4m3(codes + g * LANES);
                        }
                        UNROLL for (uint32_t t = 0; t < tokens; t++)
                        {
                                vec x = splat(((const float *)(acts + t * stride))[k]);

                                UNROLL for (uint32_t g = 0; g < width; g++)
                                {
                                        block[t][g] = fused(w[g], x, block[t][g]);
                                }
                        }
                }
                UNROLL for (uint32_t t = 0; t < tokens; t++)
                {
                        UNROLL for (uint32_t g = 0; g < width; g++)
                        {
                                vec scale = load(scales + g * LANES);

                                sums[t][g] = fused(block[t][g], scale, sums[t][g]);
                        }
                }
        }
        UNROLL for (uint32_t t = 0; t < tokens; t++)
        {
                UNROLL for (uint32_t g = 0; g < width; g++)
                {
                        sums[t][g] *= 256.0f;
                }
        }
        sums_store(out, sums, tokens, width);
}

/* ---- rows of x ---- */

/* Rounds to nearest, ties to even; NaN stays NaN. */
LANES_INLINE uint32_t bfloat_round(float f)
{
        uint32_t u = float_bits(f);

        return (u & 0x7fffffff) > 0x7f800000 ? u | 0x400000 : u + 0x7fff + (u >> 16 & 1);
}

/* Numbers of 16 bits; or, if the instruction set multiplies floats, floats. */
LANES_INLINE void bfloats_make(const bool are_floats, void *to, const float *x, uint32_t columns)
{
        uint16_t *bfloats = to;
        float *floats = to;

        if (are_floats) {
                for (uint32_t i = 0; i < columns; i++)
                        floats[i] = bits_float(bfloat_round(x[i]) & 0xffff0000);
                floats[columns] = 0;
        } else {
                for (uint32_t i = 0; i < columns; i++)
                        bfloats[i] = (uint16_t)(bfloat_round(x[i]) >> 16);
                bfloats[columns] = 0;
        }
}
