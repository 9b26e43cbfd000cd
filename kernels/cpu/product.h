/*
 * Products of a panel and rows of x. Part of loops.inc.
 *
 * A pass holds one accumulator for each (weight row, row of x) in registers, for as many rows of
 * x as fit, and walks over the columns once. Each accumulator does the same chain of operations
 * whatever other rows are in the pass, so a row's bits do not depend on them.
 *
 * Numbers, and F8_E4M3: see product-float.h.
 *
 * Codes: sum = (float)(sum of code * byte over 32 columns) * w.scale * x.scale + sum. If there
 * are least values, then sum = least * -(scale * sum of bytes) + sum. The integer sum is exact,
 * the product with w.scale is rounded, and each multiply-add after it is rounded once. NVFP4: the
 * first 16 columns' sum times their scale is exact; the second one's is added, rounded once.
 */

/* One quad of several vectors of rows. */
LANES_INLINE void quad_load(const enum row_type type, const uint32_t width, const uint32_t row,
                            ivec ret_codes[WIDTH_ALL], const uint8_t *block, const uint32_t quad)
{
        UNROLL for (uint32_t g = 0; g < width; g++)
        {
                ivec codes = codes_of(type, block, quad / 4, quad % 4, row + g * LANES);

                ret_codes[g] = numbers_of(type, codes);
        }
}

/*
 * Dots of quads [first, first + count) of 32 columns, times factors if there are any.
 *
 * Quads are handled one by one, or two by two if sums hold no more. In the second case a sum
 * lives only from one product to the next, and the registers are free for dots and codes.
 */
LANES_INLINE void quads_dots(const enum row_type type, const uint32_t tokens, const uint32_t width,
                             const uint32_t row, ivec dots[PASS_MOST][WIDTH_ALL],
                             const ivec *factor, const uint8_t *block, const uint32_t first,
                             const uint32_t count, const struct acts *x)
{
        const uint32_t fit = quads_that_fit(code_most(type)), at_once = quads_at_once(fit);
        /*
         * nibbles of both halves are in the same bytes, which are loaded once if both are used
         * together
         */
        const bool in_pairs = count == 8 && slabs[type].low == LOW_NIBBLES;
        ivec sums[PASS_MOST][WIDTH_ALL];

        UNROLL for (uint32_t t = 0; t < tokens; t++)
        {
                UNROLL for (uint32_t g = 0; g < width; g++)
                {
                        sums[t][g] = sums_of(dots[t][g], factor);
                }
        }
        UNROLL for (uint32_t i = 0; i < count; i += at_once)
        {
                const uint32_t last = i + at_once - 1;
                const bool is_full = last % fit == fit - 1 || last == count - 1;
                const uint32_t quads[2] = {
                        first + (in_pairs ? i % 2 * 4 + i / 2 : i),
                        first + (in_pairs ? last % 2 * 4 + last / 2 : last),
                };
                ivec w[2][WIDTH_ALL];

                UNROLL for (uint32_t q = 0; q < at_once; q++)
                {
                        quad_load(type, width, row, w[q], block, quads[q]);
                }
                UNROLL for (uint32_t t = 0; t < tokens; t++)
                {
                        const int8_t *bytes = act_bytes_of(x, t);

                        UNROLL for (uint32_t q = 0; q < at_once; q++)
                        {
                                ivec quad = splat_quad(bytes + quads[q] * 4);

                                UNROLL for (uint32_t g = 0; g < width; g++)
                                {
                                        sums[t][g] = quad_dot(code_zero(type) == 128, sums[t][g],
                                                              w[q][g], quad);
                                }
                        }
                        UNROLL for (uint32_t g = 0; is_full && g < width; g++)
                        {
                                dots[t][g] =
                                        dots_of(dots[t][g], sums[t][g], factor ? &factor[g] : NULL);
                                sums[t][g] = sums_of(dots[t][g], factor);
                        }
                }
        }
}

/*
 * Applies the value that is subtracted from all codes: `are`: adds its effect to the dots; else:
 * the dots begin with it.
 */
LANES_INLINE void less_dots(const enum row_type type, const uint32_t tokens, const uint32_t width,
                            ivec dots[PASS_MOST][WIDTH_ALL], const bool are, const struct acts *x)
{
        UNROLL for (uint32_t t = 0; t < tokens; t++)
        {
                const struct act_sums *a = act_sums_of(x, t);
                ivec less = dots_start(code_zero(type), splat_dword(a->minus_sum));

                UNROLL for (uint32_t g = 0; g < width; g++)
                {
                        dots[t][g] = are ? dots[t][g] + less : less;
                }
        }
}

/*
 * Dots of 32 columns that have one scale. If the dots are not needed until all quads are summed
 * (`late`), they begin at 0 and occupy no registers until then.
 */
LANES_INLINE void whole_dots(const enum row_type type, const uint32_t tokens, const uint32_t width,
                             const uint32_t row, ivec dots[PASS_MOST][WIDTH_ALL],
                             const uint8_t *block, const struct acts *x)
{
        const bool late = LANES == 8;

        UNROLL for (uint32_t t = 0; late && t < tokens; t++)
        {
                UNROLL for (uint32_t g = 0; g < width; g++)
                {
                        dots[t][g] = splat_dword(0);
                }
        }
        if (!late)
                less_dots(type, tokens, width, dots, false, x);
        quads_dots(type, tokens, width, row, dots, NULL, block, 0, 8, x);
        if (late)
                less_dots(type, tokens, width, dots, true, x);
}

LANES_INLINE ivec less_of(const struct acts *x, const uint32_t t)
{
        return splat_quad((const int8_t *)act_sums_of(x, t)->minus_sum_halves);
}

/* Dots of 32 columns with a whole-number scale for each 16. */
LANES_INLINE void scaled_dots(const enum row_type type, const uint32_t tokens, const uint32_t width,
                              const uint32_t row, ivec dots[PASS_MOST][WIDTH_ALL],
                              const uint8_t *block, const struct acts *x)
{
        ivec first[WIDTH_ALL], second[WIDTH_ALL];

        UNROLL for (uint32_t g = 0; g < width; g++)
        {
                first[g] = both_halves(run_load(type, block, row + g * LANES, 0));
                second[g] = both_halves(run_load(type, block, row + g * LANES, 1));
                UNROLL for (uint32_t t = 0; t < tokens; t++)
                {
                        ivec pair = (first[g] & 0xffff) | (second[g] & (int32_t)0xffff0000);
                        ivec less = pair_dot(pair, less_of(x, t));

                        dots[t][g] = dots_start(code_zero(type), less);
                }
        }
        quads_dots(type, tokens, width, row, dots, first, block, 0, 4, x);
        quads_dots(type, tokens, width, row, dots, second, block, 4, 4, x);
}

LANES_INLINE void runs_load(const enum row_type type, const uint32_t width, const uint32_t row,
                            vec ret_runs[WIDTH_ALL], const uint8_t *block, const uint32_t half)
{
        UNROLL for (uint32_t g = 0; g < width; g++)
        {
                if (slabs[type].runs == RUNS_E4M3)
                        ret_runs[g] = load_e4m3(block + half * PANEL + row + g * LANES);
                else
                        ret_runs[g] = to_floats(run_load(type, block, row + g * LANES, half));
        }
}

/*
 * The same as floats, where multiplying floats is cheapest. The results are whole numbers as
 * well: a dot of 16 columns is at most 16 * 32 * 127, and two of them times 128 are less than
 * 2^24. A 0 is never -0, because it is added to a +0. Scales that are E4M3 are floats anyway; here
 * they are 2^-8 of their value.
 */
LANES_INLINE void scaled_floats(const enum row_type type, const uint32_t tokens,
                                const uint32_t width, const uint32_t row,
                                vec floats[PASS_MOST][WIDTH_ALL], const uint8_t *block,
                                const struct acts *x)
{
        sums_clear(floats, tokens, width);
        UNROLL for (uint32_t half = 0; half < 2; half++)
        {
                ivec dots[PASS_MOST][WIDTH_ALL];
                vec run[WIDTH_ALL];

                UNROLL for (uint32_t t = 0; t < tokens; t++)
                {
                        const struct act_sums *a = act_sums_of(x, t);
                        ivec less =
                                dots_start(code_zero(type), splat_dword(a->minus_sum_halves[half]));

                        UNROLL for (uint32_t g = 0; g < width; g++)
                        {
                                dots[t][g] = less;
                        }
                }
                if (tokens ==
                    1) /* one row would wait for the loads; more rows need the registers for dots */
                        runs_load(type, width, row, run, block, half);
                quads_dots(type, tokens, width, row, dots, NULL, block, half * 4, 4, x);
                if (tokens > 1)
                        runs_load(type, width, row, run, block, half);
                UNROLL for (uint32_t t = 0; t < tokens; t++)
                {
                        UNROLL for (uint32_t g = 0; g < width; g++)
                        {
                                floats[t][g] = fused(to_floats(dots[t][g]), run[g], floats[t][g]);
                        }
                }
        }
}

/*
 * Adds one block's part to the sums, from its dots as integers or as floats. `scale` and `min`
 * are those of each row; `min` is subtracted.
 */
LANES_INLINE void sums_add(const uint32_t tokens, const uint32_t width,
                           vec sums[PASS_MOST][WIDTH_ALL], ivec (*dots)[WIDTH_ALL],
                           vec (*floats)[WIDTH_ALL], const vec scale[WIDTH_ALL], const vec *min,
                           const struct acts *x)
{
        UNROLL for (uint32_t t = 0; t < tokens; t++)
        {
                const struct act_sums *a = act_sums_of(x, t);

                UNROLL for (uint32_t g = 0; g < width; g++)
                {
                        vec dot = floats ? floats[t][g] : to_floats(dots[t][g]);

                        sums[t][g] = fused(dot * scale[g], splat(a->scale), sums[t][g]);
                        if (min)
                                sums[t][g] = fused(min[g], splat(a->minus_sum_scaled), sums[t][g]);
                }
        }
}

/* Blocks of 32 columns. */
LANES_INLINE void blocks_pass(const enum row_type type, const uint32_t tokens, const uint32_t width,
                              const uint32_t row, float *out, const uint8_t *panel,
                              struct ahead ahead, uint32_t columns, struct acts x)
{
        const struct slab *s = &slabs[type];
        vec sums[PASS_MOST][WIDTH_ALL];

        sums_clear(sums, tokens, width);
        for (uint32_t k = 0; k < columns; k += 32) {
                ivec dots[PASS_MOST][WIDTH_ALL];
                vec scale[WIDTH_ALL], min[WIDTH_ALL];

                fetch_ahead(type, &ahead, tokens, row, panel, s->bytes);
                whole_dots(type, tokens, width, row, dots, panel + slab_blocks_at(s), &x);
                UNROLL for (uint32_t g = 0; g < width; g++)
                {
                        const uint8_t *at = panel + (row + g * LANES) * 2;

                        scale[g] = scale_load(type, at);
                        if (s->has_mins)
                                min[g] = scale_load(type, at + SLAB_SCALES);
                }
                sums_add(tokens, width, sums, dots, NULL, scale, s->has_mins ? min : NULL, &x);
                panel += s->bytes;
                acts_next(&x);
        }
        sums_store(out, sums, tokens, width);
}

/* Like six_bits_load(), without least values; or without runs: all scales are that of the block. */
LANES_INLINE void whole_runs_load(const enum row_type type, const uint32_t width,
                                  const uint32_t row, float runs[8][PANEL], const uint8_t *slab)
{
        const struct slab *s = &slabs[type];

        UNROLL for (uint32_t g = 0; g < width; g++)
        {
                const uint32_t at = row + g * LANES;
                const uint8_t *from = slab + slab_runs_at(s) + at;
                vec scale = scale_load(type, slab + at * 2);

                UNROLL for (uint32_t i = 0; i < 8; i++)
                {
                        store(runs[i] + at,
                              s->runs == RUNS_WHOLE
                                      ? to_floats(widen_bytes(from + i * PANEL)) * scale
                                      : scale);
                }
        }
}

/* Q4_K, Q5_K, and types with whole-number scales of 32 columns, or with one scale of 256. */
LANES_INLINE void runs_pass(const enum row_type type, const uint32_t tokens, const uint32_t width,
                            const uint32_t row, float *out, const uint8_t *panel,
                            struct ahead ahead, uint32_t columns, struct acts x)
{
        const struct slab *s = &slabs[type];
        float runs[16][PANEL] __attribute__((aligned(64)));
        vec sums[PASS_MOST][WIDTH_ALL];

        sums_clear(sums, tokens, width);
        for (uint32_t k = 0; k < columns; k += 256) {
                fetch_ahead(type, &ahead, tokens, row, panel, slab_blocks_at(s));
                if (s->runs == RUNS_SIX_BITS)
                        six_bits_load(width, row, runs, panel);
                else
                        whole_runs_load(type, width, row, runs, panel);
                panel += slab_blocks_at(s);
                for (uint32_t run = 0; run < 8; run++) {
                        ivec dots[PASS_MOST][WIDTH_ALL];
                        vec scale[WIDTH_ALL], min[WIDTH_ALL];

                        fetch_ahead(type, &ahead, tokens, row, panel, slab_block_bytes(s));
                        whole_dots(type, tokens, width, row, dots, panel, &x);
                        UNROLL for (uint32_t g = 0; g < width; g++)
                        {
                                scale[g] = load(runs[run] + row + g * LANES);
                                if (s->has_mins)
                                        min[g] = load(runs[8 + run] + row + g * LANES);
                        }
                        sums_add(tokens, width, sums, dots, NULL, scale, s->has_mins ? min : NULL,
                                 &x);
                        panel += slab_block_bytes(s);
                        acts_next(&x);
                }
        }
        sums_store(out, sums, tokens, width);
}

/*
 * The part that Q2_K subtracts: the two runs' least values times the sums of their bytes, whole
 * numbers.
 */
LANES_INLINE void mins_subtract(const uint32_t tokens, const uint32_t width, const uint32_t row,
                                vec sums[PASS_MOST][WIDTH_ALL], const vec min[WIDTH_ALL],
                                const uint8_t *block, const struct acts *x)
{
        UNROLL for (uint32_t g = 0; g < width; g++)
        {
                const uint8_t *at = block + row + g * LANES;
                ivec first = widen_bytes(at) >> 4 & 15, second = widen_bytes(at + PANEL) >> 4 & 15;
                ivec pair = first | second << 16;

                UNROLL for (uint32_t t = 0; t < tokens; t++)
                {
                        const struct act_sums *a = act_sums_of(x, t);
                        ivec n = pair_dot(pair, less_of(x, t));

                        sums[t][g] = fused(to_floats(n) * min[g], splat(a->scale), sums[t][g]);
                }
        }
}

/* Q6_K, Q3_K, Q2_K, NVFP4 and others: scales of 16 columns. */
LANES_INLINE void halves_pass(const enum row_type type, const uint32_t tokens, const uint32_t width,
                              const uint32_t row, float *out, const uint8_t *panel,
                              struct ahead ahead, uint32_t columns, struct acts x)
{
        const struct slab *s = &slabs[type];
        const bool as_floats = LANES == 16 || s->runs == RUNS_E4M3;
        vec sums[PASS_MOST][WIDTH_ALL];

        sums_clear(sums, tokens, width);
        for (uint32_t k = 0; k < columns; k += s->columns) {
                vec scale[WIDTH_ALL], min[WIDTH_ALL];

                fetch_ahead(type, &ahead, tokens, row, panel, slab_blocks_at(s));
                UNROLL for (uint32_t g = 0; g < width; g++)
                {
                        const uint8_t *at =
                                panel + (row + g * LANES) * (s->runs == RUNS_E4M3 ? 4 : 2);

                        scale[g] = scale_load(type, at);
                        if (s->has_mins)
                                min[g] = load_half((const uint16_t *)(at + SLAB_SCALES));
                }
                panel += slab_blocks_at(s);
                for (uint32_t run = 0; run < s->columns / 32u; run++) {
                        ivec dots[PASS_MOST][WIDTH_ALL];
                        vec floats[PASS_MOST][WIDTH_ALL];

                        fetch_ahead(type, &ahead, tokens, row, panel, slab_block_bytes(s));
                        if (as_floats)
                                scaled_floats(type, tokens, width, row, floats, panel, &x);
                        else
                                scaled_dots(type, tokens, width, row, dots, panel, &x);
                        sums_add(tokens, width, sums, dots, as_floats ? floats : NULL, scale, NULL,
                                 &x);
                        if (s->has_mins)
                                mins_subtract(tokens, width, row, sums, min, panel, &x);
                        panel += slab_block_bytes(s);
                        acts_next(&x);
                }
        }
        sums_store(out, sums, tokens, width);
}

/*
 * One row of x walks over the panel once, so that memory sees one stream. Several rows share the
 * cost of unpacking a vector of codes, and need the registers.
 */
LANES_INLINE uint32_t pass_width(const enum row_type type, const uint32_t tokens)
{
        if (slabs[type].low == LOW_NUMBERS)
                return tokens == 1 ? WIDTH_ALL : WIDTH;
        return tokens == 1 ? WIDTH_ALL : tokens < 4 ? WIDTH_FEW : WIDTH_CODES;
}

LANES_INLINE void pass(const enum row_type type, const uint32_t tokens, float *out,
                       const uint8_t *panel, struct ahead ahead, uint32_t columns,
                       const uint8_t *acts, size_t stride)
{
        const uint32_t width = pass_width(type, tokens);
        const struct acts x = { (const int8_t *)acts, acts + act_sums_at(columns), stride };

        for (uint32_t row = 0; row < PANEL; row += width * LANES, out += width * LANES) {
                if (type == ROW_BF16)
                        bfloats_pass(tokens, width, row, out, panel, ahead, columns, acts, stride);
                else if (type == ROW_F8_E4M3)
                        e4m3_pass(tokens, width, row, out, panel, ahead, columns, acts, stride);
                else if (slabs[type].low == LOW_NUMBERS)
                        numbers_pass(type, tokens, width, row, out, panel, ahead, columns, acts,
                                     stride);
                else if (slabs[type].columns == 32)
                        blocks_pass(type, tokens, width, row, out, panel, ahead, columns, x);
                else if (slabs[type].runs < RUNS_SIGNED)
                        runs_pass(type, tokens, width, row, out, panel, ahead, columns, x);
                else
                        halves_pass(type, tokens, width, row, out, panel, ahead, columns, x);
        }
}

/* Of rare types: each number of rows is another loop, which takes long to compile. */
#define TILE_RARE (LANES > 4 && PASS_MOST > 2 ? 4u : 1u)

/*
 * The most rows of x of a pass: as many as there are registers for their sums, and for the
 * integer sums.
 */
LANES_INLINE uint32_t pass_most(const enum row_type type)
{
        const bool are_dots_wanted = slabs[type].runs >= RUNS_SIGNED ||
                                     quads_at_once(quads_that_fit(code_most(type))) > 1;
        const uint32_t tile = slabs[type].low == LOW_NUMBERS ? TILE
                              : are_dots_wanted              ? TILE_DOTS
                                                             : TILE_CODES;
        const uint32_t most = slabs[type].is_rare && tile > TILE_RARE ? TILE_RARE : tile;

        return most < PASS_MOST ? most : PASS_MOST;
}

/*
 * Runs passes of nearly equal size, one after the other: eight rows are four and four, not six
 * and two.
 */
LANES_INLINE void passes(const enum row_type type, float *out, const uint8_t *panel,
                         uint32_t columns, const uint8_t *acts, size_t stride, uint32_t tokens,
                         uint32_t lone_ahead)
{
        const uint32_t most = pass_most(type), n = (tokens + most - 1) / most;
        const size_t bytes = panel_bytes(type, columns);

        for (uint32_t i = 0; i < n; i++) {
                uint32_t from = tokens * i / n, count = tokens * (i + 1) / n - from;
                float *to = out + from * PANEL;
                const uint8_t *x = acts + from * stride;
                const struct ahead ahead = ahead_of(panel, bytes, i, n, lone_ahead);

                switch (count) {
#define PASS(N)                                                                                    \
        case N:                                                                                    \
                if (N <= most)                                                                     \
                        pass(type, N <= most ? N : 1, to, panel, ahead, columns, x, stride);       \
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
