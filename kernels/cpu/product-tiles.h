/*
 * An instruction set whose products of some types are made by tiles; all else is TILES_BASE's.
 * amx.c compiles it for the tiles of the processor, amx-emulated.c for those in plain C. Both give
 * the same bits. The vectors of simd.h, and the panels' codes as vectors (product-codes.h), come
 * from the including file.
 *
 * Columns are taken by slices, and a slice by panels. With many rows a slice is so narrow that its
 * weights stay in the L1 cache and its columns of all rows in the L2 cache; sums are loaded and
 * stored for each slice.
 *
 * Bfloats: a tile has 32 columns. Rows of x lie as they are, 16 in a tile. 32 columns of a panel
 * are two tiles of weights, one for each 16 rows, as they lie. Rows are taken by up to 32, which
 * share the weights: four tiles of sums. Each sum is a chain of tile_dot_bf() from the first column
 * on, whatever other rows there are, so a row's bits do not depend on them. With few rows, slices
 * are long: they only keep x near.
 *
 * Codes: see product-tiles-codes.h.
 */
#include <assert.h>

#include "kernels/convert.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/tiles.h"

#define TILE_COLUMNS (TILE_BYTES / 2)
#define TILE_PANEL   (TILE_COLUMNS / 2 * SLAB_QUADS) /* bytes of a panel in a tile's columns */
#define SUMS_STRIDE  (PANEL * sizeof(float))
#define ROWS_FEW     64u
#define SLICE        256u /* columns */
#define SLICE_FEW    2048u
#define ROWS_AHEAD   9u /* from so many rows on, passes fetch the weights that come next */

/* A thread's tiles keep their sizes until others are needed: setting them takes 60 ns. */
static _Thread_local uint32_t shape_now;

static void shape(uint32_t rows, uint32_t more, uint32_t depth)
{
        uint32_t wanted = rows << 16 | more << 8 | depth;
        struct tile_shape next;

        if (wanted == shape_now)
                return;
        next = tile_shape_of(rows, more, depth);
        tiles_shape(&next);
        shape_now = wanted;
}

static void release(void)
{
        if (shape_now)
                tiles_release();
        shape_now = 0;
}

/*
 * The weights that come next, and which a pass fetches into the L2 cache: `lines` of them at each
 * step. Of several passes over the same weights each fetches its part, or memory would be idle in
 * all but the first.
 */
struct fetched {
        const uint8_t *at;
        uint32_t lines;
        bool is_near; /* into the L1 cache */
};

static struct fetched fetched_by(const uint8_t *next, size_t bytes, uint32_t steps, uint32_t pass,
                                 uint32_t passes)
{
        uint32_t parts = steps * passes;
        uint32_t lines = (uint32_t)((bytes / LINE + parts - 1) / parts);
        size_t from = (size_t)pass * steps * lines * LINE;

        return (struct fetched){ next + from, from < bytes ? lines : 0, false };
}

static inline void fetch_lines(struct fetched *f)
{
        for (uint32_t i = 0; i < f->lines; i++, f->at += LINE)
                fetch(f->at, f->is_near);
}

/* Some columns of a panel. */
struct slice {
        const uint8_t *panel;
        uint32_t at, columns; /* the columns [at, at + columns) */
        size_t bytes;
        const uint8_t *next; /* weights that are likely to be needed next */
        float *out;          /* of the panel, for all rows */
};

/* A pass over some tiles of a panel. */
struct walk {
        float *out;
        bool is_first; /* its sums begin at 0 */
        const uint8_t *panel;
        uint32_t tiles, pairs; /* pairs of columns in each tile */
        const uint8_t *x;
        size_t stride;
        uint32_t rows;
        struct fetched fetched;
};

/* Up to 16 rows of x. */
static inline void walk_narrow(struct walk w)
{
        if (w.is_first) {
                tile_zero(0);
                tile_zero(1);
        } else {
                tile_load(0, w.out, SUMS_STRIDE);
                tile_load(1, w.out + TILE_ROWS, SUMS_STRIDE);
        }
        for (uint32_t i = 0; i < w.tiles; i++, w.panel += TILE_PANEL, w.x += TILE_BYTES) {
                fetch_lines(&w.fetched);
                tile_load(4, w.x, w.stride);
                tile_load(6, w.panel, SLAB_QUADS);
                tile_load(7, w.panel + TILE_BYTES, SLAB_QUADS);
                tile_dot_bf(0, 4, 6);
                tile_dot_bf(1, 4, 7);
        }
        tile_store(0, w.out, SUMS_STRIDE);
        tile_store(1, w.out + TILE_ROWS, SUMS_STRIDE);
}

/* 17 to 32 rows. */
static inline void walk_wide(struct walk w)
{
        float *below = w.out + TILE_ROWS * PANEL;

        if (w.is_first) {
                tile_zero(0);
                tile_zero(1);
                tile_zero(2);
                tile_zero(3);
        } else {
                tile_load(0, w.out, SUMS_STRIDE);
                tile_load(1, w.out + TILE_ROWS, SUMS_STRIDE);
                tile_load(2, below, SUMS_STRIDE);
                tile_load(3, below + TILE_ROWS, SUMS_STRIDE);
        }
        for (uint32_t i = 0; i < w.tiles; i++, w.panel += TILE_PANEL, w.x += TILE_BYTES) {
                fetch_lines(&w.fetched);
                tile_load(6, w.panel, SLAB_QUADS);
                tile_load(4, w.x, w.stride);
                tile_dot_bf(0, 4, 6);
                tile_load(7, w.panel + TILE_BYTES, SLAB_QUADS);
                tile_dot_bf(1, 4, 7);
                tile_load(5, w.x + TILE_ROWS * w.stride, w.stride);
                tile_dot_bf(2, 5, 6);
                tile_dot_bf(3, 5, 7);
        }
        tile_store(0, w.out, SUMS_STRIDE);
        tile_store(1, w.out + TILE_ROWS, SUMS_STRIDE);
        tile_store(2, below, SUMS_STRIDE);
        tile_store(3, below + TILE_ROWS, SUMS_STRIDE);
}

static void walk(const struct walk *w)
{
        bool is_wide = w->rows > TILE_ROWS;

        if (!w->tiles)
                return;
        shape(is_wide ? TILE_ROWS : w->rows, is_wide ? w->rows - TILE_ROWS : TILE_ROWS,
              w->pairs * 4);
        if (is_wide)
                walk_wide(*w);
        else
                walk_narrow(*w);
}

/*
 * Only the last slice has columns that are no whole tile; an odd last column has a zero beside it
 * in the panel, and in x.
 */
static bool bfloats_slice(const struct piece *p, const struct slice *s)
{
        const uint32_t tiles = s->columns / TILE_COLUMNS;
        const uint32_t left = (s->columns % TILE_COLUMNS + 1) / 2;
        const uint32_t passes = (p->rows + 2 * TILE_ROWS - 1) / (2 * TILE_ROWS);

        for (uint32_t pass = 0; pass < passes; pass++) {
                uint32_t from = pass * 2 * TILE_ROWS, rows = p->rows - from;
                struct walk w = {
                        .out = s->out + (size_t)from * PANEL,
                        .is_first = s->at == 0,
                        .panel = s->panel,
                        .tiles = tiles,
                        .pairs = TILE_COLUMNS / 2,
                        .x = p->acts + from * p->act_stride + s->at * sizeof(uint16_t),
                        .stride = p->act_stride,
                        .rows = rows < 2 * TILE_ROWS ? rows : 2 * TILE_ROWS,
                };

                if (p->rows >= ROWS_AHEAD && tiles)
                        w.fetched = fetched_by(s->next, s->bytes, tiles, pass, passes);
                if (p->rows == 1 && p->lone_ahead)
                        w.fetched = (struct fetched){ s->panel + p->lone_ahead, TILE_PANEL / LINE,
                                                      true };
                walk(&w);
                w.is_first = w.is_first && !tiles;
                w.panel += (size_t)tiles * TILE_PANEL;
                w.x += tiles * TILE_BYTES;
                w.tiles = left > 0;
                w.pairs = left;
                w.fetched.lines = 0;
                walk(&w);
        }
        return true;
}

#include "kernels/cpu/product-tiles-codes.h"

/*
 * Multiplies a slice, for all rows; false: this panel is to be multiplied without tiles.
 */
typedef bool slice_work(const struct piece *p, const struct slice *s);

/* Returns the panels that are to be multiplied without tiles: 1 << panel. */
static uint64_t slices_walk(const struct piece *p, uint32_t most, slice_work *work, float *out)
{
        const struct slab *slab = &slabs[p->type];
        uint64_t refused = 0;

        assert(p->panel_count <= PIECE_PANELS);
        for (uint32_t at = 0; at < p->columns; at += most) {
                const uint8_t *first = p->panels + (size_t)at / slab->columns * slab->bytes;
                struct slice s = { .at = at,
                                   .columns = p->columns - at < most ? p->columns - at : most };

                s.bytes = (size_t)(s.columns + slab->columns - 1) / slab->columns * slab->bytes;
                for (uint32_t i = 0; i < p->panel_count; i++) {
                        bool is_last = i + 1 == p->panel_count;

                        s.panel = first + i * p->panel_stride;
                        s.next = s.panel + p->panel_stride;
                        if (is_last && p->columns - at > most)
                                s.next = first + s.bytes;
                        s.out = out + (size_t)i * p->rows * PANEL;
                        if (!(refused >> i & 1) && !work(p, &s))
                                refused |= (uint64_t)1 << i;
                }
        }
        return refused;
}

/* The number of rows from which tiles are faster; BF16: always, because vectors give other bits. */
static const uint16_t tiled_from[ROW_TYPE_N] = {
        [ROW_BF16] = 1, [ROW_Q8_0] = 49, [ROW_Q4_0] = 49, [ROW_Q4_K] = 49, [ROW_Q6_K] = 201,
};

static void product(const struct piece *p, float *out)
{
        uint64_t refused = 0;

        if (!isa_is_tiled(tiled_from, p->type, p->rows)) {
                TILES_BASE.product(p, out);
                return;
        }
        switch (p->type) {
        case ROW_BF16:
                slices_walk(p, p->rows > ROWS_FEW ? SLICE : SLICE_FEW, bfloats_slice, out);
                break;
        case ROW_Q8_0:
                refused = slices_walk(p, CHUNK_COLUMNS, slice_ROW_Q8_0, out);
                break;
        case ROW_Q4_0:
                refused = slices_walk(p, CHUNK_COLUMNS, slice_ROW_Q4_0, out);
                break;
        case ROW_Q4_K:
                refused = slices_walk(p, CHUNK_COLUMNS, slice_ROW_Q4_K, out);
                break;
        case ROW_Q6_K:
                refused = slices_walk(p, CHUNK_COLUMNS, slice_ROW_Q6_K, out);
                break;
        default:
                assert(false);
        }
        for (uint32_t i = 0; refused >> i; i++) {
                struct piece one = *p;

                if (!(refused >> i & 1))
                        continue;
                one.panels += i * p->panel_stride;
                one.panel_count = 1;
                TILES_BASE.product(&one, out + (size_t)i * p->rows * PANEL);
        }
}

static void act_quantise(enum act_kind kind, void *to, const float *x, uint32_t columns)
{
        if (kind == ACT_BFLOATS)
                bfloats_make(false, to, x, columns);
        else
                TILES_BASE.act_quantise(kind, to, x, columns);
}
