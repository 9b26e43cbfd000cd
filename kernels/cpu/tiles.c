/* May the process use tiles; and tiles in plain C. */
#include "kernels/cpu/tiles.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARCH_REQ_XCOMP_PERM 0x1023 /* of asm/prctl.h, since Linux 5.16 */
#define XFEATURE_XTILEDATA  18u

/*
 * CPUID says what the processor has, and XCR0 what the kernel keeps when threads change; a virtual
 * machine may show the first without the second. The kernel may refuse, and so may a filter of
 * system calls.
 */
bool tiles_ask(void)
{
        const uint32_t wanted = 1u << 22 | 1u << 24 | 1u << 25; /* AMX-BF16, -TILE and -INT8 */
        const uint32_t kept = 3u << 17;                         /* XTILECFG and XTILEDATA */
        uint32_t a, b, c, d, low, high;

        if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
                return false;
        if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & wanted) != wanted)
                return false;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        if ((low & kept) != kept)
                return false;
        return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}
#else
bool tiles_ask(void)
{
        return false;
}
#endif

/* ---- in plain C ---- */

struct tile {
        uint8_t bytes[TILE_ROWS][TILE_BYTES];
        uint32_t rows, row_bytes; /* 0: it has no shape */
};

static _Thread_local struct tile tiles[8];

void tile_emulated_release(void)
{
        memset(tiles, 0, sizeof(tiles));
}

void tile_emulated_shape(const struct tile_shape *shape)
{
        static const struct tile_shape none = { .palette = 1 };

        assert(shape->palette == 1 && shape->start_row == 0);
        assert(!memcmp(shape->unused, none.unused, sizeof(none.unused)));
        assert(!memcmp(shape->rows + 8, none.rows, 8));
        assert(!memcmp(shape->row_bytes + 8, none.row_bytes, 8 * sizeof(*none.row_bytes)));
        tile_emulated_release();
        for (uint32_t t = 0; t < 8; t++) {
                assert(shape->rows[t] <= TILE_ROWS && shape->row_bytes[t] <= TILE_BYTES);
                assert((shape->rows[t] == 0) == (shape->row_bytes[t] == 0));
                tiles[t].rows = shape->rows[t];
                tiles[t].row_bytes = shape->row_bytes[t];
        }
}

static struct tile *tile_of(uint32_t t)
{
        assert(t < 8 && tiles[t].rows);
        return &tiles[t];
}

void tile_emulated_zero(uint32_t t)
{
        struct tile *tile = tile_of(t);

        memset(tile->bytes, 0, sizeof(tile->bytes));
}

void tile_emulated_load(uint32_t t, const void *from, size_t stride)
{
        struct tile *tile = tile_of(t);

        tile_emulated_zero(t); /* also what is beyond the shape */
        for (uint32_t row = 0; row < tile->rows; row++)
                memcpy(tile->bytes[row], (const uint8_t *)from + row * stride, tile->row_bytes);
}

void tile_emulated_store(uint32_t t, void *to, size_t stride)
{
        const struct tile *tile = tile_of(t);

        for (uint32_t row = 0; row < tile->rows; row++)
                memcpy((uint8_t *)to + row * stride, tile->bytes[row], tile->row_bytes);
}

/* Returns c. */
static struct tile *dot_check(uint32_t c, uint32_t a, uint32_t b)
{
        const struct tile *x = tile_of(a), *w = tile_of(b);
        struct tile *to = tile_of(c);

        assert(a != b && b != c && a != c);
        assert(x->rows == to->rows && w->row_bytes == to->row_bytes);
        assert(to->row_bytes % 4 == 0 && x->row_bytes == 4 * w->rows);
        return to;
}

static float flushed(float f)
{
        return fabsf(f) < 0x1p-126f ? copysignf(0, f) : f;
}

/*
 * fmaf() rounds what is below 2^-126 at the last bit that such a float has, and may so make 2^-126
 * of it. The hardware rounds to 24 bits first. So near 2^-126 it is done where floats have room.
 */
static float add_product(float a, float b, float sum)
{
        float all = fmaf(a, b, sum), smaller = a, larger = b;

        if (all == 0 || !(fabsf(all) <= 0x1p-126f))
                return all;
        if (fabsf(smaller) > fabsf(larger)) {
                smaller = b;
                larger = a;
        }
        all = fmaf(smaller * 0x1p64f, larger, sum * 0x1p64f);
        return fabsf(all) < 0x1p-62f ? copysignf(0, all) : all * 0x1p-64f;
}

/* The numbers of a dot of bfloats, as floats: the even ones and the odd ones of each pair. */
struct pairs {
        float x[TILE_ROWS][2][16]; /* row, parity, pair */
        float w[TILE_ROWS][2][16]; /* pair, parity, column */
};

/* Numbers 2 i and 2 i + 1 of a row are the halves of a dword. */
static void pairs_of(float to[TILE_ROWS][2][16], const struct tile *from)
{
        for (uint32_t row = 0; row < TILE_ROWS; row++)
                for (uint32_t i = 0; i < 16; i++) {
                        uint32_t two, halves[2];
                        float f[2];

                        memcpy(&two, from->bytes[row] + i * sizeof(two), sizeof(two));
                        halves[0] = two << 16;
                        halves[1] = two & 0xffff0000;
                        memcpy(f, halves, sizeof(f));
                        to[row][0][i] = flushed(f[0]);
                        to[row][1][i] = flushed(f[1]);
                }
}

/*
 * Both chains of a row of x and all columns. Returns false if a sum came near 2^-126: then
 * row_carefully() has to do it.
 */
#define INLINE static inline __attribute__((always_inline))
INLINE bool row_quickly(float chains[2][16], const struct pairs *p, uint32_t row, uint32_t pairs)
{
        uint32_t near[16] = { 0 }, all = 0;

        for (uint32_t k = 0; k < pairs; k++)
                for (uint32_t parity = 0; parity < 2; parity++)
                        for (uint32_t i = 0; i < 16; i++) {
                                float sum = fmaf(p->x[row][parity][k], p->w[k][parity][i],
                                                 chains[parity][i]);

                                near[i] |= (sum != 0) & (fabsf(sum) <= 0x1p-126f);
                                chains[parity][i] = sum;
                        }
        for (uint32_t i = 0; i < 16; i++)
                all |= near[i];
        return !all;
}

static void row_carefully(float chains[2][16], const struct pairs *p, uint32_t row, uint32_t pairs)
{
        for (uint32_t k = 0; k < pairs; k++)
                for (uint32_t parity = 0; parity < 2; parity++)
                        for (uint32_t i = 0; i < 16; i++)
                                chains[parity][i] =
                                        add_product(p->x[row][parity][k], p->w[k][parity][i],
                                                    chains[parity][i]);
}

/* Whole numbers: a column of x at a time, so that all sums of a row are added at once. */
INLINE void row_of_bytes(int32_t sums[16], const int8_t x[TILE_BYTES],
                         const int32_t w[TILE_BYTES][16], uint32_t bytes)
{
        for (uint32_t k = 0; k < bytes; k++)
                for (uint32_t i = 0; i < 16; i++)
                        sums[i] = (int32_t)((uint32_t)sums[i] + (uint32_t)(x[k] * w[k][i]));
}

/* Tests multiply much. Without its own instruction a fused multiply-add is a call. */
#if defined(__x86_64__)
#define WITH_FMA __attribute__((target("avx2,fma")))

WITH_FMA static bool row_quickly_with_fma(float chains[2][16], const struct pairs *p, uint32_t row,
                                          uint32_t pairs)
{
        return row_quickly(chains, p, row, pairs);
}

static bool row_is_quick(float chains[2][16], const struct pairs *p, uint32_t row, uint32_t pairs)
{
        if (__builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2"))
                return row_quickly_with_fma(chains, p, row, pairs);
        return row_quickly(chains, p, row, pairs);
}
#else
static bool row_is_quick(float chains[2][16], const struct pairs *p, uint32_t row, uint32_t pairs)
{
        return row_quickly(chains, p, row, pairs);
}
#endif

void tile_emulated_dot_bf(uint32_t c, uint32_t a, uint32_t b)
{
        struct tile *to = dot_check(c, a, b);
        const uint32_t pairs = tiles[a].row_bytes / 4;
        struct pairs p;

        pairs_of(p.x, &tiles[a]);
        pairs_of(p.w, &tiles[b]);
        for (uint32_t row = 0; row < to->rows; row++) {
                float chains[2][16] = { 0 }, sums[16];

                if (!row_is_quick(chains, &p, row, pairs)) {
                        memset(chains, 0, sizeof(chains));
                        row_carefully(chains, &p, row, pairs);
                }
                memcpy(sums, to->bytes[row], sizeof(sums));
                for (uint32_t i = 0; i < 16; i++)
                        sums[i] = flushed(flushed(sums[i]) + flushed(chains[0][i] + chains[1][i]));
                memcpy(to->bytes[row], sums, to->row_bytes);
        }
}

void tile_emulated_dot_bytes(uint32_t c, uint32_t a, uint32_t b)
{
        struct tile *to = dot_check(c, a, b);
        int32_t w[TILE_BYTES][16];

        for (uint32_t k = 0; k < TILE_BYTES; k++)
                for (uint32_t i = 0; i < 16; i++)
                        w[k][i] = (int8_t)tiles[b].bytes[k / 4][i * 4 + k % 4];
        for (uint32_t row = 0; row < to->rows; row++) {
                int32_t sums[16];

                memcpy(sums, to->bytes[row], sizeof(sums));
                row_of_bytes(sums, (const int8_t *)tiles[a].bytes[row], w, tiles[a].row_bytes);
                memcpy(to->bytes[row], sums, to->row_bytes);
        }
}
