/*
 * Products of codes by tiles, with the same bits as those of product.h: dots of whole numbers are
 * exact, and what is done with them in floats is the same. Part of product-tiles.h.
 *
 * Some blocks of a panel are unpacked once for all rows of x: their codes to signed bytes, which
 * are a tile of weights for each 16 rows of the panel, and their scales to floats. A dot takes one
 * block, because each block of x has a scale.
 *
 * Q6_K: a code times its run's whole scale has 14 bits with its sign. It is 128 * upper + lower,
 * two signed bytes.
 *
 * For some 70 ns after a tile instruction, Intel's processors do multiplications and conversions of
 * 512 bits at half the speed, but not additions of integers. So a dot becomes a float by an
 * addition to the bits of 1.5 * 2^23, and the multiply-add that applies the scale subtracts that
 * again, times the scale: exact, because scales have 17 bits at most and dots are below 2^22. Dots
 * of Q6_K may be larger, and are converted.
 */

#define CHUNK         16u /* blocks */
#define CHUNK_COLUMNS (CHUNK * ACT_BLOCK)
#define BLOCK_TILES   (8 * SLAB_QUADS) /* bytes of a block's two tiles of weights */
#define WHOLE         0x1.8p23f
/*
 * Rows of a pass: as many as there are registers for their sums. Types with least values have two
 * fewer.
 */
#define CODES_ROWS (LANES == 16 && PASS_MOST > 2 ? 14u : 2u)

struct chunk {
        float scale[CHUNK][PANEL], min[CHUNK][PANEL];
        uint8_t codes[CHUNK][BLOCK_TILES], upper[CHUNK][BLOCK_TILES];
} __attribute__((aligned(64)));

/*
 * Each byte less `zero`. A code is below 128, so a set upper bit keeps the subtraction from
 * borrowing of the next byte; or it has 8 bits, and 128 is subtracted.
 */
LANES_INLINE ivec bytes_less(ivec codes, const uint32_t zero)
{
        const uint32_t upper = 0x80808080, all = zero * 0x01010101;

        if (zero == 128)
                return (ivec)((uvec)codes ^ upper);
        return zero ? (ivec)((((uvec)codes | upper) - all) ^ upper) : codes;
}

/* Codes of four columns, less `zero`, times `run`: the lower and the upper parts. */
LANES_INLINE void scaled_bytes(ivec codes, const int32_t zero, ivec run, ivec *ret_lower,
                               ivec *ret_upper)
{
        ivec lower = { 0 }, upper = { 0 };

        UNROLL for (int32_t i = 0; i < 32; i += 8)
        {
                ivec n = ((codes >> i & 255) - zero) * run, high = (n + 64) >> 7;

                lower |= ((n - (high << 7)) & 255) << i;
                upper |= (high & 255) << i;
        }
        *ret_lower = lower;
        *ret_upper = upper;
}

LANES_INLINE void block_unpack(const enum row_type type, struct chunk *to, const uint32_t at,
                               const uint8_t *block)
{
        const uint32_t zero = code_zero(type);

        for (uint32_t row = 0; row < PANEL; row += LANES)
                UNROLL for (uint32_t quad = 0; quad < 8; quad++)
                {
                        ivec codes = codes_of(type, block, quad / 4, quad % 4, row), upper;
                        const size_t to_quad = quad * SLAB_QUADS + row * 4;

                        if (type == ROW_Q6_K) {
                                scaled_bytes(codes, (int32_t)zero,
                                             run_load(type, block, row, quad / 4), &codes, &upper);
                                memcpy(to->upper[at] + to_quad, &upper, sizeof(upper));
                        } else {
                                codes = bytes_less(codes, zero);
                        }
                        memcpy(to->codes[at] + to_quad, &codes, sizeof(codes));
                }
}

/* Scales, and least values, of `count` blocks of a slab; false: one is not finite. */
LANES_INLINE bool scales_unpack(const enum row_type type, struct chunk *to, const uint32_t at,
                                const uint32_t count, const uint8_t *slab)
{
        float runs[16][PANEL] __attribute__((aligned(64)));
        bool is_finite = true;

        for (uint32_t row = 0; row < PANEL; row += LANES) {
                vec scale = scale_load(type, slab + row * 2), off = scale - scale;

                if (slabs[type].has_mins) {
                        vec min = scale_load(type, slab + SLAB_SCALES + row * 2);

                        off += min - min;
                }
                is_finite = is_finite && !any(off != (vec){ 0 });
                if (slabs[type].runs == RUNS_SIX_BITS)
                        six_bits_load(1, row, runs, slab);
                for (uint32_t b = 0; b < count; b++) {
                        bool is_six = slabs[type].runs == RUNS_SIX_BITS;

                        store(to->scale[at + b] + row, is_six ? load(runs[b] + row) : scale);
                        if (is_six)
                                store(to->min[at + b] + row, load(runs[8 + b] + row));
                }
        }
        return is_finite;
}

/* `blocks` blocks from a slab's beginning on; false: a scale is not finite. */
LANES_INLINE bool chunk_unpack(const enum row_type type, struct chunk *to, const uint8_t *panel,
                               const uint32_t blocks)
{
        const struct slab *s = &slabs[type];
        const uint32_t each = s->columns / ACT_BLOCK;
        bool is_finite = true;

        for (uint32_t b = 0; b < blocks; b += each, panel += s->bytes) {
                const uint8_t *block = panel + slab_blocks_at(s);

                is_finite = scales_unpack(type, to, b, each, panel) && is_finite;
                for (uint32_t i = 0; i < each; i++, block += slab_block_bytes(s))
                        block_unpack(type, to, b + i, block);
        }
        return is_finite;
}

/* A pass: some rows of x, and a chunk. */
struct codes_walk {
        float *out;
        bool is_first;
        const struct chunk *chunk;
        uint32_t blocks;
        struct acts x; /* from the chunk's first block on */
};

/* Tiles that a store writes: sums of all rows of x and 16 rows of the panel, twice. */
struct dots {
        int32_t of[2][TILE_ROWS][TILE_BYTES / sizeof(int32_t)];
} __attribute__((aligned(64)));

/* There are two sets of tiles: one has dots while the other one is stored. */
#define TILES_DOTS(SUM, NEXT, X)                                                                   \
        do {                                                                                       \
                tile_zero(SUM);                                                                    \
                tile_zero(NEXT);                                                                   \
                tile_load(X, x, stride);                                                           \
                tile_load(6, weights, SLAB_QUADS);                                                 \
                tile_load(7, weights + TILE_BYTES, SLAB_QUADS);                                    \
                tile_dot_bytes(SUM, X, 6);                                                         \
                tile_dot_bytes(NEXT, X, 7);                                                        \
        } while (0)

LANES_INLINE void tiles_dots(const uint32_t set, const uint8_t *weights, const int8_t *x,
                             size_t stride)
{
        if (set == 0)
                TILES_DOTS(0, 1, 4);
        else
                TILES_DOTS(2, 3, 5);
}

LANES_INLINE void dots_store(const uint32_t set, struct dots *to)
{
        if (set == 0) {
                tile_store(0, to->of[0], TILE_BYTES);
                tile_store(1, to->of[1], TILE_BYTES);
        } else {
                tile_store(2, to->of[0], TILE_BYTES);
                tile_store(3, to->of[1], TILE_BYTES);
        }
}

LANES_INLINE ivec dots_load(const struct dots *dots, const uint32_t t, const uint32_t row)
{
        return load_dwords(&dots->of[row / 16][t][row % 16]);
}

/*
 * The compiler must load the scales of x once more for the other half of the panel: if it kept
 * them, they would need the registers of the sums.
 */
#define FORGET(pointer) __asm__("" : "+r"(pointer))

/* Adds a block's part to the sums, as sums_add() does. `upper`: NULL, or dots of upper parts. */
LANES_INLINE void dots_add(const enum row_type type, const uint32_t rows, vec sums[][WIDTH_ALL],
                           const struct codes_walk *w, const uint32_t block,
                           const struct dots *dots, const struct dots *upper)
{
        struct acts x = w->x;

        x.sums += block * sizeof(struct act_sums);
        UNROLL for (uint32_t g = 0; g < WIDTH_ALL; g++)
        {
                const vec scale = load(w->chunk->scale[block] + g * LANES);
                const vec less = scale * -WHOLE;

                FORGET(x.sums);
                UNROLL for (uint32_t t = 0; t < rows; t++)
                {
                        ivec dot = dots_load(dots, t, g * LANES);
                        vec scaled;

                        if (type == ROW_Q6_K)
                                scaled = scale *
                                         to_floats((dots_load(upper, t, g * LANES) << 7) + dot);
                        else
                                scaled = fused((vec)(dot + (ivec)splat(WHOLE)), scale, less);
                        sums[t][g] = fused(scaled, splat(act_sums_of(&x, t)->scale), sums[t][g]);
                }
        }
        if (!slabs[type].has_mins)
                return;
        UNROLL for (uint32_t g = 0; g < WIDTH_ALL; g++)
        {
                const vec min = load(w->chunk->min[block] + g * LANES);

                FORGET(x.sums);
                UNROLL for (uint32_t t = 0; t < rows; t++)
                {
                        vec less = splat(act_sums_of(&x, t)->minus_sum_scaled);

                        sums[t][g] = fused(min, less, sums[t][g]);
                }
        }
}

/*
 * Dots of one block, stores of the one before, floats of the one before that: a store that waits
 * for its dots would stop all that is behind it.
 */
LANES_INLINE void blocks_walk(const enum row_type type, const uint32_t rows, vec sums[][WIDTH_ALL],
                              const struct codes_walk *w)
{
        const struct chunk *chunk = w->chunk;
        const size_t stride = w->x.stride;
        struct dots dots[2];

        tiles_dots(0, chunk->codes[0], w->x.bytes, stride);
        for (uint32_t b = 0; b < w->blocks; b += 2) {
                const int8_t *x = w->x.bytes + b * ACT_BLOCK;

                if (b + 1 < w->blocks)
                        tiles_dots(1, chunk->codes[b + 1], x + ACT_BLOCK, stride);
                dots_store(0, &dots[0]);
                if (b > 0)
                        dots_add(type, rows, sums, w, b - 1, &dots[1], NULL);
                if (b + 2 < w->blocks)
                        tiles_dots(0, chunk->codes[b + 2], x + 2 * ACT_BLOCK, stride);
                if (b + 1 < w->blocks)
                        dots_store(1, &dots[1]);
                dots_add(type, rows, sums, w, b, &dots[0], NULL);
        }
        if (w->blocks % 2 == 0)
                dots_add(type, rows, sums, w, w->blocks - 1, &dots[1], NULL);
}

/* The same with two dots for each block. */
LANES_INLINE void upper_blocks_walk(const enum row_type type, const uint32_t rows,
                                    vec sums[][WIDTH_ALL], const struct codes_walk *w)
{
        const struct chunk *chunk = w->chunk;
        const size_t stride = w->x.stride;
        const int8_t *x = w->x.bytes;
        struct dots dots[2];

        tiles_dots(0, chunk->codes[0], x, stride);
        for (uint32_t b = 0; b < w->blocks; b++, x += ACT_BLOCK) {
                tiles_dots(1, chunk->upper[b], x, stride);
                dots_store(0, &dots[0]);
                if (b + 1 < w->blocks)
                        tiles_dots(0, chunk->codes[b + 1], x + ACT_BLOCK, stride);
                dots_store(1, &dots[1]);
                dots_add(type, rows, sums, w, b, &dots[0], &dots[1]);
        }
}

LANES_INLINE void codes_pass(const enum row_type type, const uint32_t rows,
                             const struct codes_walk *w)
{
        vec sums[CODES_ROWS][WIDTH_ALL];

        UNROLL for (uint32_t t = 0; t < rows; t++)
        {
                UNROLL for (uint32_t g = 0; g < WIDTH_ALL; g++)
                {
                        sums[t][g] =
                                w->is_first ? (vec){ 0 } : load(w->out + t * PANEL + g * LANES);
                }
        }
        if (type == ROW_Q6_K)
                upper_blocks_walk(type, rows, sums, w);
        else
                blocks_walk(type, rows, sums, w);
        UNROLL for (uint32_t t = 0; t < rows; t++)
        {
                UNROLL for (uint32_t g = 0; g < WIDTH_ALL; g++)
                {
                        store(w->out + t * PANEL + g * LANES, sums[t][g]);
                }
        }
}

/*
 * Passes of nearly equal size, the larger ones first, because another size is another shape. Each
 * fetches its part of the weights that come next.
 */
LANES_INLINE bool codes_slice(const enum row_type type, const struct piece *p,
                              const struct slice *s)
{
        const uint32_t most = slabs[type].has_mins && CODES_ROWS > 2 ? CODES_ROWS - 2 : CODES_ROWS;
        const uint32_t passes = (p->rows + most - 1) / most;
        const uint32_t each = p->rows / passes, larger = p->rows % passes;
        struct chunk chunk;

        if (!chunk_unpack(type, &chunk, s->panel, s->columns / ACT_BLOCK))
                return false;
        for (uint32_t pass = 0, from = 0, rows; pass < passes; pass++, from += rows) {
                rows = each + (pass < larger);
                const uint8_t *act = p->acts + from * p->act_stride;
                const struct codes_walk w = {
                        .out = s->out + (size_t)from * PANEL,
                        .is_first = s->at == 0,
                        .chunk = &chunk,
                        .blocks = s->columns / ACT_BLOCK,
                        .x = { (const int8_t *)act + s->at,
                               act + act_sums_at(p->columns) +
                                       s->at / ACT_BLOCK * sizeof(struct act_sums),
                               p->act_stride },
                };
                struct fetched fetched = fetched_by(s->next, s->bytes, 1, pass, passes);

                fetch_lines(&fetched);
                shape(rows, rows, ACT_BLOCK);
                switch (rows) {
/* tiled_from[] is so large that no pass has fewer than most - 6 rows. */
#define PASS(N)                                                                                    \
        case N:                                                                                    \
                assert(N <= most && N + 6 >= most);                                                \
                if (N <= most && N + 6 >= most)                                                    \
                        codes_pass(type, N <= most ? N : 1, &w);                                   \
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
                        PASS(13);
                        PASS(14);
#undef PASS
                }
        }
        return true;
}

/* A function for each type, because the compiler takes longer for one that has them all. */
#define TYPE(T)                                                                                    \
        static __attribute__((noinline)) bool slice_##T(const struct piece *p,                     \
                                                        const struct slice *s)                     \
        {                                                                                          \
                return codes_slice(T, p, s);                                                       \
        }
TYPE(ROW_Q8_0)
TYPE(ROW_Q4_0)
TYPE(ROW_Q4_K)
TYPE(ROW_Q6_K)
#undef TYPE
