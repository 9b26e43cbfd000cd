/*
 * Tiles of AMX: the processor's, or (TILES_ARE_EMULATED) plain C with the same bits, for tests on
 * machines without them.
 *
 * A tile register is a number that the compiler knows, so operations are macros:
 *
 *      tile_zero(t)   tile_load(t, from, stride)   tile_store(t, to, stride)
 *      tile_dot_bf(c, a, b)     c[m][n] += sum over k of a[m][k] * b[k][n]: floats of bfloats
 *      tile_dot_bytes(c, a, b)  the same: whole numbers of signed bytes
 *
 * `a` has rows of x. `b` has a row for each two columns (of bytes: four), with these numbers of a
 * weight row side by side, as panels have them (panel.h).
 *
 * The order of tile_dot_bf(): from the first column on, a chain of fused multiply-adds over the
 * even columns of the tile, and one over the odd columns, each from +0. Both are added, and that
 * is added to c. Each step is rounded to nearest even, as if exponents had no end; what is then
 * below 2^-126 is a zero of its sign. Subnormal inputs are zeros. A NaN may have any bits.
 *
 * Tiles belong to a thread. tiles_shape() sets their sizes, and makes them zero. A thread that is
 * about to sleep calls tiles_release(), so that the kernel has less to save.
 */
#ifndef KERNELS_CPU_TILES_H
#define KERNELS_CPU_TILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TILE_ROWS  16u
#define TILE_BYTES 64u /* of a row */

/* As LDTILECFG reads it. */
struct tile_shape {
        uint8_t palette, start_row, unused[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
};
_Static_assert(sizeof(struct tile_shape) == 64, "as the processor reads it");

/*
 * Tiles 0 and 1: sums of `rows` rows of x and 16 weight rows each. 2 and 3: those of `more` rows.
 * 4 and 5: `rows` and `more` rows of x, `depth` bytes of each. 6 and 7: weights.
 */
static inline struct tile_shape tile_shape_of(uint32_t rows, uint32_t more, uint32_t depth)
{
        struct tile_shape shape = { .palette = 1 };

        for (uint32_t t = 0; t < 8; t++) {
                bool is_x = t == 4 || t == 5, is_more = t == 2 || t == 3 || t == 5;

                shape.row_bytes[t] = (uint16_t)(is_x ? depth : TILE_BYTES);
                shape.rows[t] = (uint8_t)(t >= 6 ? depth / 4 : is_more ? more : rows);
        }
        return shape;
}

/*
 * Has this machine tiles for bfloats and for bytes, and may this process use them? Asks the kernel
 * for them. Call it before other threads are started: these have them then, too.
 */
bool tiles_ask(void);

/* Tiles in plain C. They assert what a processor would fault on. */
void tile_emulated_shape(const struct tile_shape *shape);
void tile_emulated_release(void);
void tile_emulated_zero(uint32_t t);
void tile_emulated_load(uint32_t t, const void *from, size_t stride);
void tile_emulated_store(uint32_t t, void *to, size_t stride);
void tile_emulated_dot_bf(uint32_t c, uint32_t a, uint32_t b);
void tile_emulated_dot_bytes(uint32_t c, uint32_t a, uint32_t b);

#ifdef TILES_ARE_EMULATED

#define tiles_shape(shape)         tile_emulated_shape(shape)
#define tiles_release()            tile_emulated_release()
#define tile_zero(t)               tile_emulated_zero(t)
#define tile_load(t, from, stride) tile_emulated_load(t, from, stride)
#define tile_store(t, to, stride)  tile_emulated_store(t, to, stride)
#define tile_dot_bf(c, a, b)       tile_emulated_dot_bf(c, a, b)
#define tile_dot_bytes(c, a, b)    tile_emulated_dot_bytes(c, a, b)

#else

/*
 * The intrinsics of gcc 12 do not say all of the memory that they read, so the compiler could leave
 * out what was written there.
 */
#define tiles_shape(shape) __asm__ volatile("ldtilecfg %0" ::"m"(*(shape)))
#define tiles_release()    _tile_release()
#define tile_zero(t)       _tile_zero(t)
#define tile_load(t, from, stride)                                                                 \
        __asm__ volatile("tileloadd (%0, %1), %%tmm" TILE_NAME(t)::"r"(from),                      \
                         "r"((size_t)(stride))                                                     \
                         : "memory")
#define tile_store(t, to, stride)                                                                  \
        __asm__ volatile("tilestored %%tmm" TILE_NAME(t) ", (%0, %1)" ::"r"(to),                   \
                         "r"((size_t)(stride))                                                     \
                         : "memory")
#define tile_dot_bf(c, a, b)    _tile_dpbf16ps(c, a, b)
#define tile_dot_bytes(c, a, b) _tile_dpbssd(c, a, b)
#define TILE_NAME(t)            #t

#endif
#endif
