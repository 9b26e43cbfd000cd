/*
 * The weights that a lane of a product holds, and how they become operands.  For each format:
 *
 *      lane_weights     the lane's data of one step, of rows g and g + 8 of a tile of 16, as read
 *      load_weights()   begins to read it
 *      share_scales()   exchanges between lanes the scales that several of them need
 *      widen()          the weights of one group, as bfloats
 *      factors_of()     the factors for the sums of one group
 *
 * linear.h describes the layout in memory.
 */
#ifndef KERNELS_CUDA_LINEAR_FORMATS_H
#define KERNELS_CUDA_LINEAR_FORMATS_H

#include "kernels/cuda/intrinsics.h"
#include "kernels/cuda/linear.h"

#define GROUP     32u /* a lane has eight of these columns, in 16 bytes of x */
#define TILE_ROWS 16u /* rows of w in a tile */

/*
 * A step is the part of k that a warp reads in one go.  These are its number of groups, and the
 * bytes of weights of one row.
 */
#define GROUPS_OF(format)                                                                          \
        ((format) == LINEAR_BFLOAT || (format) == LINEAR_INT8 || (format) == LINEAR_E4M3 ? 2u : 4u)
#define STEP_BYTES(format)                                                                         \
        ((format) == LINEAR_BFLOAT ? 128u                                                          \
         : (format) == LINEAR_K5   ? 80u                                                           \
         : (format) == LINEAR_K6   ? 96u                                                           \
                                   : 64u)
/* The size of a row's scales, in halves. */
#define ROW_SCALES(format, columns)                                                                \
        ((format) == LINEAR_BFLOAT ? 0u                                                            \
         : (format) == LINEAR_E4M3 ? (columns) / 128 * 2                                           \
         : (format) == LINEAR_K6   ? ((columns) / 256 * 9 + 7) / 8 * 8                             \
                                   : (columns) / GROUP)
#define HAS_MINS(format) ((format) == LINEAR_K4 || (format) == LINEAR_K5)

/* The addresses where the lane reads in row g of the tile, and in row g + 8. */
struct lane_rows {
        const uint8_t *weights[2], *scales[2];
        /* LINEAR_K6: bytes of a row's scales.  The halves that multiply them come next. */
        uint32_t halves;
};

template <linear_format FORMAT> DEVICE lane_rows find_rows(const linear_matrix *w, unsigned tile)
{
        unsigned lane = lane_number();
        size_t steps = w->columns / (GROUP * GROUPS_OF(FORMAT));
        lane_rows rows;

        rows.halves = w->columns / 256 * 16;
        UNROLL
        for (unsigned i = 0; i < 2; i++) {
                size_t row = tile * TILE_ROWS + lane / 4 + i * 8;

                rows.weights[i] = (const uint8_t *)w->weights + row * steps * STEP_BYTES(FORMAT) +
                                  lane % 4 * 16;
                rows.scales[i] =
                        (const uint8_t *)(w->scales + row * ROW_SCALES(FORMAT, w->columns));
        }
        return rows;
}

template <linear_format FORMAT> struct lane_weights;

template <> struct lane_weights<LINEAR_BFLOAT> {
        uint4 weights[2][2]; /* [row][group] */
};

template <> struct lane_weights<LINEAR_INT8> {
        uint4 weights[2];
        uint32_t scales[2]; /* of two groups */
};

template <> struct lane_weights<LINEAR_INT4> {
        uint4 weights[2];
        uint2 scales[2]; /* of four groups */
};

template <> struct lane_weights<LINEAR_E4M3> {
        uint4 weights[2];
        float scales[2]; /* each is that of two steps */
};

/*
 * 128 columns, half a block of the file.  Each lane holds one word of the scales, for the other
 * lanes, too.
 */
template <> struct lane_weights<LINEAR_K4> {
        uint4 weights[2];
        uint32_t scales[2];
};

template <> struct lane_weights<LINEAR_K5> {
        uint4 weights[2];
        uint32_t fifths[2]; /* the fifth bits */
        uint32_t scales[2];
};

template <> struct lane_weights<LINEAR_K6> {
        uint4 weights[2];
        uint2 uppers[2]; /* the upper two bits */
        uint32_t scales[2];
        uint32_t half[2]; /* the half that multiplies the scales */
};

DEVICE uint32_t word(const uint4 &of, unsigned i)
{
        return i == 0 ? of.x : i == 1 ? of.y : i == 2 ? of.z : of.w;
}

/* The bits of number i of a lane's eight, where words have `width` bits of each. */
DEVICE uint32_t bits_at(uint32_t words, uint32_t i, unsigned width)
{
        return words >> (i / 2 * width + i % 2 * 16) & ((1u << width) - 1);
}

DEVICE void load_weights(lane_weights<LINEAR_BFLOAT> *ret, const lane_rows &rows, unsigned step)
{
        for (unsigned i = 0; i < 4; i++)
                ret->weights[i / 2][i % 2] =
                        load_once(rows.weights[i / 2] + (size_t)step * 128 + i % 2 * 64);
}

DEVICE void load_weights(lane_weights<LINEAR_INT8> *ret, const lane_rows &rows, unsigned step)
{
        for (unsigned i = 0; i < 2; i++) {
                ret->weights[i] = load_once(rows.weights[i] + (size_t)step * 64);
                ret->scales[i] = ((const uint32_t *)rows.scales[i])[step];
        }
}

DEVICE void load_weights(lane_weights<LINEAR_INT4> *ret, const lane_rows &rows, unsigned step)
{
        for (unsigned i = 0; i < 2; i++) {
                ret->weights[i] = load_once(rows.weights[i] + (size_t)step * 64);
                ret->scales[i] = ((const uint2 *)rows.scales[i])[step];
        }
}

DEVICE void load_weights(lane_weights<LINEAR_E4M3> *ret, const lane_rows &rows, unsigned step)
{
        for (unsigned i = 0; i < 2; i++) {
                ret->weights[i] = load_once(rows.weights[i] + (size_t)step * 64);
                ret->scales[i] = ((const float *)rows.scales[i])[step / 2];
        }
}

/*
 * Of four lanes, lane 0 holds the two halves; lanes 1 and 2 hold the 64 bits that include those
 * of the step.
 */
DEVICE uint32_t load_run_scales(const uint8_t *scales, unsigned step)
{
        unsigned t = lane_number() % 4;

        return ((const uint32_t *)scales)[step / 2 * 4 + (t % 3 ? t + step % 2 : t)];
}

DEVICE void load_weights(lane_weights<LINEAR_K4> *ret, const lane_rows &rows, unsigned step)
{
        for (unsigned i = 0; i < 2; i++) {
                ret->weights[i] = load_once(rows.weights[i] + (size_t)step * 64);
                ret->scales[i] = load_run_scales(rows.scales[i], step);
        }
}

DEVICE void load_weights(lane_weights<LINEAR_K5> *ret, const lane_rows &rows, unsigned step)
{
        for (unsigned i = 0; i < 2; i++) {
                const uint8_t *from = rows.weights[i] + (size_t)step * 80;

                ret->weights[i] = load_once(from);
                ret->fifths[i] = *(const uint32_t *)(from + 64 - lane_number() % 4 * 12);
                ret->scales[i] = load_run_scales(rows.scales[i], step);
        }
}

/* Lanes 0 and 2 hold the scales of the first 64 columns, lanes 1 and 3 those of the other 64. */
DEVICE void load_weights(lane_weights<LINEAR_K6> *ret, const lane_rows &rows, unsigned step)
{
        for (unsigned i = 0; i < 2; i++) {
                const uint8_t *from = rows.weights[i] + (size_t)step * 96;

                ret->weights[i] = load_once(from);
                ret->uppers[i] = *(const uint2 *)(from + 64 - lane_number() % 4 * 8);
                ret->scales[i] = ((const uint32_t *)rows.scales[i])[step * 2 + lane_number() % 2];
                ret->half[i] = ((const uint16_t *)(rows.scales[i] + rows.halves))[step / 2];
        }
}

/* ---- weights ---- */

/*
 * A group's weights as bfloats, for two products.  Of the lane's eight columns, the first product
 * takes 0, 1 as its columns 2t, 2t+1 and 2, 3 as its columns 2t+8, 2t+9.  The second takes 4, 5
 * and 6, 7.
 */
DEVICE void widen(uint32_t a[2][4], const lane_weights<LINEAR_BFLOAT> &w, unsigned group)
{
        for (unsigned i = 0; i < 8; i++) {
                unsigned row = i / 4, two = i % 4;

                a[two / 2][two % 2 * 2 + row] = word(w.weights[row][group], two);
        }
}

/*
 * 128 .. 255 are the bfloats 0x4300 .. 0x437f, and 256 is 0x4380.  So the seven lower bits of a
 * byte give a bfloat that is 128 too large.  128 is subtracted, or 256 if the sign bit is set.
 */
DEVICE void widen(uint32_t a[2][4], const lane_weights<LINEAR_INT8> &w, unsigned group)
{
        for (unsigned i = 0; i < 8; i++) {
                unsigned row = i / 4, two = i % 4;
                uint32_t bytes = word(w.weights[row], group * 2 + two / 2) >> two % 2 * 8;

                a[two / 2][two % 2 * 2 + row] = subtract_bfloats((bytes & 0x007f007f) | 0x43004300,
                                                                 (bytes & 0x00800080) | 0x43004300);
        }
}

/*
 * Sign 1, exponent 4, fraction 3.  Moved to the place of a bfloat's exponent and fraction, they
 * are 2^-120 of their value, also when subnormal.  All ones are read as 480.
 */
DEVICE void widen(uint32_t a[2][4], const lane_weights<LINEAR_E4M3> &w, unsigned group)
{
        for (unsigned i = 0; i < 8; i++) {
                unsigned row = i / 4, two = i % 4;
                uint32_t bytes = word(w.weights[row], group * 2 + two / 2);
                uint32_t signs = two % 2 ? bytes : bytes << 8;
                uint32_t rest = two % 2 ? bytes >> 4 : bytes << 4;

                a[two / 2][two % 2 * 2 + row] =
                        scale_bfloats((signs & 0x80008000) | (rest & 0x07f007f0), 0x7b807b80);
        }
}

/* The same for one number, in the lower eight bits, as a float. */
DEVICE float from_e4m3(uint32_t bits)
{
        return float_of((bits & 0x80) << 24 | (bits & 0x7f) << 20) * 0x1p120f;
}

DEVICE void widen(uint32_t a[2][4], const lane_weights<LINEAR_INT4> &w, unsigned group)
{
        for (unsigned i = 0; i < 8; i++) {
                unsigned row = i / 4, two = i % 4;
                uint32_t bits = word(w.weights[row], group) >> two * 4;

                a[two / 2][two % 2 * 2 + row] =
                        subtract_bfloats((bits & 0x000f000f) | 0x43004300, 0x43084308);
        }
}

DEVICE void widen(uint32_t a[2][4], const lane_weights<LINEAR_K4> &w, unsigned group)
{
        for (unsigned i = 0; i < 8; i++) {
                unsigned row = i / 4, two = i % 4;
                uint32_t bits = word(w.weights[row], group) >> two * 4;

                a[two / 2][two % 2 * 2 + row] =
                        subtract_bfloats((bits & 0x000f000f) | 0x43004300, 0x43004300);
        }
}

/* Moves bits at `from` to the place of a number's fifth bit. */
DEVICE uint32_t to_fifth(uint32_t bits, unsigned from)
{
        return from < 4 ? bits << (4 - from) : bits >> (from - 4);
}

DEVICE void widen(uint32_t a[2][4], const lane_weights<LINEAR_K5> &w, unsigned group)
{
        for (unsigned i = 0; i < 8; i++) {
                unsigned row = i / 4, two = i % 4;
                uint32_t bits = word(w.weights[row], group) >> two * 4;

                bits = (bits & 0x000f000f) | 0x43004300;
                bits |= to_fifth(w.fifths[row], group * 4 + two) & 0x00100010;
                a[two / 2][two % 2 * 2 + row] = subtract_bfloats(bits, 0x43004300);
        }
}

/* 0x4320 is 160: the 128 of the trick above, and the 32 that are added to a packed number. */
DEVICE void widen(uint32_t a[2][4], const lane_weights<LINEAR_K6> &w, unsigned group)
{
        for (unsigned i = 0; i < 8; i++) {
                unsigned row = i / 4, two = i % 4;
                uint32_t bits = word(w.weights[row], group) >> two * 4;
                uint32_t upper = group < 2 ? w.uppers[row].x : w.uppers[row].y;

                bits = (bits & 0x000f000f) | 0x43004300;
                bits |= to_fifth(upper, group % 2 * 8 + two * 2) & 0x00300030;
                a[two / 2][two % 2 * 2 + row] = subtract_bfloats(bits, 0x43204320);
        }
}

/* ---- the factors of the sums ---- */

/* For rows g and g + 8. */
struct factors {
        /* LINEAR_K6: of the first product; other formats: of both. */
        float scales[2];
        /* LINEAR_K6: of the second product. */
        float second[2];
        /* Negative; these multiply the sum of x, where HAS_MINS. */
        float mins[2];
};

/*
 * The scales of a step that all four lanes of a row need.  Empty where each lane reads them
 * itself.
 */
template <linear_format FORMAT> struct shared_scales {
};

struct shared_run_scales {
        float scale[2], min[2];
        uint64_t six[2]; /* 6-bit integers: four scales, four least values */
};

template <> struct shared_scales<LINEAR_K4> : shared_run_scales {
};

template <> struct shared_scales<LINEAR_K5> : shared_run_scales {
};

template <> struct shared_scales<LINEAR_K6> {
        float scale[2];
        uint64_t bytes[2]; /* eight scales, each of 16 columns */
};

template <linear_format FORMAT>
DEVICE void share_scales(shared_scales<FORMAT> *, const lane_weights<FORMAT> &, unsigned)
{
}

/* The value of lane t of the four lanes that have the same rows. */
DEVICE uint32_t from_lane(uint32_t mine, unsigned t)
{
        return shuffle_from(mine, lane_number() / 4 * 4 + t);
}

DEVICE void share_run_scales(shared_run_scales *ret, const uint32_t scales[2], unsigned step)
{
        for (unsigned row = 0; row < 2; row++) {
                uint32_t halves = from_lane(scales[row], 0);
                uint64_t low = from_lane(scales[row], 1), high = from_lane(scales[row], 2);

                ret->scale[row] = from_half(halves & 0xffff);
                ret->min[row] = -from_half(halves >> 16);
                ret->six[row] = (high << 32 | low) >> step % 2 * 16;
        }
}

DEVICE void share_scales(shared_scales<LINEAR_K4> *ret, const lane_weights<LINEAR_K4> &w,
                         unsigned step)
{
        share_run_scales(ret, w.scales, step);
}

DEVICE void share_scales(shared_scales<LINEAR_K5> *ret, const lane_weights<LINEAR_K5> &w,
                         unsigned step)
{
        share_run_scales(ret, w.scales, step);
}

DEVICE void share_scales(shared_scales<LINEAR_K6> *ret, const lane_weights<LINEAR_K6> &w, unsigned)
{
        for (unsigned row = 0; row < 2; row++) {
                uint64_t low = from_lane(w.scales[row], 0), high = from_lane(w.scales[row], 1);

                ret->scale[row] = from_half(w.half[row]);
                ret->bytes[row] = high << 32 | low;
        }
}

#define TWO_TO_23 8388608.0f

/* n * by, which a float holds exactly: 2^23 with n in its lower bits is 2^23 + n. */
DEVICE float times_integer(uint32_t n, float by)
{
        return fmaf(float_of(0x4b000000 | n), by, -TWO_TO_23 * by);
}

DEVICE factors factors_of(const lane_weights<LINEAR_BFLOAT> &, const shared_scales<LINEAR_BFLOAT> &,
                          unsigned)
{
        return {};
}

DEVICE factors factors_of(const lane_weights<LINEAR_INT8> &w, const shared_scales<LINEAR_INT8> &,
                          unsigned group)
{
        factors by = {};

        for (unsigned row = 0; row < 2; row++)
                by.scales[row] = from_half(w.scales[row] >> group * 16 & 0xffff);
        return by;
}

DEVICE factors factors_of(const lane_weights<LINEAR_INT4> &w, const shared_scales<LINEAR_INT4> &,
                          unsigned group)
{
        factors by = {};

        for (unsigned row = 0; row < 2; row++) {
                uint32_t two = group < 2 ? w.scales[row].x : w.scales[row].y;

                by.scales[row] = from_half(two >> group % 2 * 16 & 0xffff);
        }
        return by;
}

DEVICE factors factors_of(const lane_weights<LINEAR_E4M3> &w, const shared_scales<LINEAR_E4M3> &,
                          unsigned)
{
        return { { w.scales[0], w.scales[1] }, {}, {} };
}

DEVICE factors factors_of_runs(const shared_run_scales &shared_scales, unsigned group)
{
        factors by = {};

        for (unsigned row = 0; row < 2; row++) {
                uint32_t scale = (uint32_t)(shared_scales.six[row] >> group * 6) & 63;
                uint32_t min = (uint32_t)(shared_scales.six[row] >> (4 + group) * 6) & 63;

                by.scales[row] = times_integer(scale, shared_scales.scale[row]);
                by.mins[row] = times_integer(min, shared_scales.min[row]);
        }
        return by;
}

DEVICE factors factors_of(const lane_weights<LINEAR_K4> &,
                          const shared_scales<LINEAR_K4> &shared_scales, unsigned group)
{
        return factors_of_runs(shared_scales, group);
}

DEVICE factors factors_of(const lane_weights<LINEAR_K5> &,
                          const shared_scales<LINEAR_K5> &shared_scales, unsigned group)
{
        return factors_of_runs(shared_scales, group);
}

/* A byte is the scale plus 128. */
DEVICE factors factors_of(const lane_weights<LINEAR_K6> &,
                          const shared_scales<LINEAR_K6> &shared_scales, unsigned group)
{
        factors by = {};

        for (unsigned row = 0; row < 2; row++) {
                uint32_t two = (uint32_t)(shared_scales.bytes[row] >> group * 16);
                float first = float_of(0x4b000000 | (two & 255));
                float second = float_of(0x4b000000 | (two >> 8 & 255));

                by.scales[row] = (first - (TWO_TO_23 + 128)) * shared_scales.scale[row];
                by.second[row] = (second - (TWO_TO_23 + 128)) * shared_scales.scale[row];
        }
        return by;
}

#endif
