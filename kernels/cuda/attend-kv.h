/*
 * K and V of pages for a warp of attention (attend.h): the layout of a tile's lines in shared
 * memory, and products with them, for each type of numbers.
 *
 *      KV_F16     K times queries that are halves, V times weights that are halves
 *      KV_BF16    the same with bfloats
 *      KV_INT8    integers become halves for K, bfloats for V, exactly; a score is multiplied with
 *                 K's scale of its position, a weight with V's before it becomes a bfloat
 *      KV_FP8     the same with E4M3; K's numbers are read as 2^-8 of themselves, and their scales
 *                 as 2^8 times as large
 *
 * Queries keep the 11 bits of halves where K is bytes.  A weight times a scale does not fit the
 * range of halves.  Where one position has nearly all the weight, other weights of 2^-13 with a
 * scale of 2^-10 would keep only two bits, and there may be thousands of them.  A bfloat has 8
 * bits at any size: for all weights its error is a quarter of the error that V has from being
 * integers (rms).
 *
 * Bytes are transposed in pairs, by the instruction for 16-bit numbers.  So of 16 numbers of a
 * line, a lane has four neighbours.  Those of K are used in the order of pairs (0, 2), (1, 3),
 * and queries are arranged the same way.  Of V, the even numbers belong to one product and the
 * odd ones to the next.
 */
#ifndef KERNELS_CUDA_ATTEND_KV_H
#define KERNELS_CUDA_ATTEND_KV_H

#include "kernels/cuda/attend.h"
#include "kernels/cuda/intrinsics.h"
#include "kernels/page.h"

/*
 * Rows of numbers in shared memory, in chunks of 8.  Eight lanes read the same chunk of eight
 * rows at once, so rows are staggered to use different banks: by exclusive-or where the number of
 * chunks is a multiple of 8, otherwise by an odd pitch.
 */
template <int D> struct row_chunks {
        static constexpr unsigned CHUNKS = D / 8;
        static constexpr unsigned PITCH = CHUNKS % 8 ? CHUNKS | 1 : CHUNKS;
        static constexpr unsigned BYTES = PITCH * 16;
        /* Whether q and sums are kept in registers.  There are not enough for 256. */
        static constexpr bool Q_IN_REGISTERS = D <= 128;
        /* Numbers of V that a warp adds up, and the number of such shares (attend.h). */
        static constexpr int SHARE = D > (int)ATTEND_SHARE ? (int)ATTEND_SHARE : D;
        static constexpr unsigned SHARES = D / SHARE;
};

template <int D> DEVICE unsigned chunk_at(unsigned row, unsigned chunk)
{
        using R = row_chunks<D>;

        return row * R::PITCH + (R::CHUNKS % 8 ? chunk : chunk ^ (row & 7));
}

/* The address of that chunk.  Rows that are 8 apart are always the same number of bytes apart. */
template <int D> DEVICE const uint8_t *row_at(const uint8_t *rows, unsigned row, unsigned chunk)
{
        return rows + chunk_at<D>(row, chunk) * 16;
}

/* The lines of a tile: each as long as WIDTH halves. */
template <int D, kv_type T> struct kv_lines {
        static constexpr int WIDTH = KV_HAS_SCALES(T) ? D / 2 : D;
        static constexpr unsigned CHUNKS = row_chunks<WIDTH>::CHUNKS;
        /* Bytes of the numbers in shared memory. */
        static constexpr unsigned NUMBERS = PAGE_POSITIONS * row_chunks<WIDTH>::BYTES;
        static constexpr unsigned SCALES = KV_HAS_SCALES(T) ? PAGE_POSITIONS * sizeof(float) : 0;
        /* Bytes of a tile in a page. */
        static constexpr unsigned BYTES = PAGE_POSITIONS * CHUNKS * 16 + SCALES;
};

/* The operands of a warp: lines from some position on, and their scales. */
struct kv_columns {
        const uint8_t *keys, *values;
        const float *key_scales, *value_scales;
};

/* A slice in shared memory: the lines of K and of a share of V, then the scales of both. */
template <int D, kv_type T> struct kv_slice {
        static constexpr unsigned NUMBERS =
                kv_lines<D, T>::NUMBERS + kv_lines<row_chunks<D>::SHARE, T>::NUMBERS;
        static constexpr unsigned BYTES = NUMBERS + 2 * kv_lines<D, T>::SCALES;
};

/* Begins to fetch chunks of the lines of a tile: as many of each line as LINES says. */
template <typename LINES, int WIDTH>
DEVICE void fetch_lines(const uint8_t *from, unsigned line_bytes, uint8_t *to)
{
        UNROLL
        for (unsigned i = 0; i < LINES::CHUNKS * PAGE_POSITIONS / LANES; i++) {
                unsigned x = i * LANES + lane_number(), row = x / LINES::CHUNKS;
                unsigned chunk = x % LINES::CHUNKS;

                async_copy(to + chunk_at<WIDTH>(row, chunk) * 16,
                           from + row * line_bytes + chunk * 16, true);
        }
}

/* Begins to fetch the scales of both tiles. */
template <int D, kv_type T> DEVICE void fetch_scales(const uint8_t *from, uint8_t *to)
{
        using L = kv_lines<D, T>;
        constexpr unsigned SCALES = PAGE_POSITIONS * sizeof(float);
        unsigned lane = lane_number();

        if (KV_HAS_SCALES(T) && lane < 2 * SCALES / 16)
                async_copy(to + lane * 16,
                           from + (lane * 16 / SCALES + 1) * (L::BYTES - SCALES) + lane * 16, true);
}

/* Begins to fetch K of a page, and a share of V. */
template <int D, kv_type T>
DEVICE void fetch_share(const uint8_t *from, unsigned share, uint8_t *to)
{
        using K = kv_lines<D, T>;
        using V = kv_lines<row_chunks<D>::SHARE, T>;

        fetch_lines<K, K::WIDTH>(from, K::CHUNKS * 16, to);
        fetch_lines<V, V::WIDTH>(from + K::BYTES + share * V::CHUNKS * 16, K::CHUNKS * 16,
                                 to + K::NUMBERS);
        fetch_scales<D, T>(from, to + kv_slice<D, T>::NUMBERS);
}

/*
 * Begins to fetch K and V of a page, which are adjacent there.  The destination gets the lines of
 * both first, then the scales of both.
 */
template <int D, kv_type T> DEVICE void fetch_slice(const uint8_t *from, uint8_t *to)
{
        using L = kv_lines<D, T>;
        unsigned lane = lane_number();

        UNROLL
        for (unsigned i = 0; i < L::CHUNKS; i++) {
                unsigned x = i * LANES + lane, row = x / L::CHUNKS, chunk = x % L::CHUNKS;
                uint8_t *tile = to + row / PAGE_POSITIONS * L::NUMBERS;

                async_copy(tile + chunk_at<L::WIDTH>(row % PAGE_POSITIONS, chunk) * 16,
                           from + row / PAGE_POSITIONS * L::SCALES + x * 16, true);
        }
        fetch_scales<D, T>(from, to + 2 * L::NUMBERS);
}

/* The operands in a slice that was fetched. */
template <int D, kv_type T> DEVICE kv_columns columns_in(const uint8_t *slice)
{
        using L = kv_lines<D, T>;
        const float *scales = (const float *)(slice + kv_slice<D, T>::NUMBERS);

        return { slice, slice + L::NUMBERS, scales, scales + PAGE_POSITIONS };
}

/* ---- numbers ---- */

/*
 * Bytes 0 and 2, signed, as halves.  Exclusive-or flips the sign bit, so the lower byte holds
 * number + 128.  A half with these bits is 1024 + number + 128; 1152 is subtracted.
 */
DEVICE uint32_t two_halves_of(uint32_t bytes)
{
        return subtract_halves((bytes & 0x00ff00ff) ^ 0x64806480, 0x64806480);
}

/*
 * Bytes 0 and 2, signed, as bfloats, as in linear-formats.h: subtracts 128, or 256 where the sign
 * is set.
 */
DEVICE uint32_t two_bfloats_of(uint32_t bytes)
{
        return subtract_bfloats((bytes & 0x007f007f) | 0x43004300,
                                (bytes & 0x00800080) | 0x43004300);
}

/*
 * E4M3 numbers of bytes 0 and 2: sign 1, exponent 4 (bias 7), fraction 3.  Their exponent and
 * fraction are moved to those of a half, or a bfloat.  Then all numbers are too small by 2^8, or
 * 2^120, subnormal numbers included: both types have subnormal numbers, and GPUs multiply them
 * like others.
 */
DEVICE uint32_t two_small_halves_of(uint32_t bytes)
{
        return (bytes & 0x007f007f) << 7 | (bytes & 0x00800080) << 8;
}

DEVICE uint32_t two_e4m3_bfloats_of(uint32_t bytes)
{
        return scale_bfloats((bytes & 0x007f007f) << 4 | (bytes & 0x00800080) << 8, 0x7b807b80);
}

template <kv_type T> DEVICE uint32_t two_keys_of(uint32_t bytes)
{
        return T == KV_FP8 ? two_small_halves_of(bytes) : two_halves_of(bytes);
}

template <kv_type T> DEVICE uint32_t two_values_of(uint32_t bytes)
{
        return T == KV_FP8 ? two_e4m3_bfloats_of(bytes) : two_bfloats_of(bytes);
}

/*
 * Numbers that are not finite become 0.  Bits 15 and 31 of the result tell which of the two were
 * not finite.
 */
template <kv_type T> DEVICE uint32_t drop_nonfinite(uint32_t *two)
{
        constexpr uint32_t MOST = T == KV_BF16 ? 0x7f807f80 : 0x7c007c00;
        uint32_t nonfinite = ((*two & MOST) + (0x80008000 - MOST)) & 0x80008000;

        *two &= ~((nonfinite >> 15) * 0xffff);
        return nonfinite;
}

template <kv_type T> DEVICE uint32_t two_weights(float low, float high)
{
        return T == KV_F16 ? two_halves(low, high) : two_bfloats(low, high);
}

template <kv_type T>
DEVICE void multiply_numbers(float c[4], const uint32_t a[4], const uint32_t b[2])
{
        if (T == KV_BF16)
                multiply_bfloats(c, a, b);
        else
                multiply_halves(c, a, b);
}

/* ---- q, and scores ---- */

template <int D, kv_type T> DEVICE void load_q(uint32_t part[4], const uint8_t *q, unsigned k)
{
        unsigned lane = lane_number();

        if constexpr (!KV_HAS_SCALES(T)) {
                load_matrices<false>(part, q + chunk_at<D>(lane % 16, 2 * k + lane / 16) * 16);
        } else {
                UNROLL
                for (unsigned i = 0; i < 2; i++) {
                        const uint8_t *at =
                                q + chunk_at<D>(lane / 4 + i * 8, 2 * k + lane % 4 / 2) * 16;
                        const uint2 four = *(const uint2 *)(at + lane % 2 * 8);

                        part[i] = (four.x & 0xffff) | four.y << 16;
                        part[i + 2] = four.x >> 16 | (four.y & 0xffff0000);
                }
        }
}

/* q is in registers (register_q), or in shared memory (q). */
template <int D, int N, kv_type T>
DEVICE void score_numbers(float score[N][4], const uint32_t (*register_q)[4], const uint8_t *q,
                          const uint8_t *keys)
{
        unsigned lane = lane_number();

        UNROLL
        for (unsigned k = 0; k < D / 16; k++) {
                uint32_t other[4];

                if (!row_chunks<D>::Q_IN_REGISTERS)
                        load_q<D, T>(other, q, k);
                UNROLL
                for (unsigned j = 0; j < N; j += 2) {
                        uint32_t part[4];

                        load_matrices<false>(part, row_at<D>(keys, lane / 16 * 8 + lane % 8,
                                                             2 * k + lane / 8 % 2) +
                                                           j * 8 * row_chunks<D>::BYTES);
                        multiply_numbers<T>(score[j],
                                            row_chunks<D>::Q_IN_REGISTERS ? register_q[k] : other,
                                            part);
                        multiply_numbers<T>(score[j + 1],
                                            row_chunks<D>::Q_IN_REGISTERS ? register_q[k] : other,
                                            part + 2);
                }
        }
}

/* Takes two steps of 16 numbers at once; if their number is odd, the last step is alone. */
template <int D, int N, kv_type T>
DEVICE void score_bytes(float score[N][4], const uint32_t (*register_q)[4], const uint8_t *q,
                        const kv_columns *kv)
{
        constexpr int WIDTH = kv_lines<D, T>::WIDTH;
        unsigned lane = lane_number();

        UNROLL
        for (unsigned k = 0; k < D / 16; k += 2) {
                const bool both = k + 1 < D / 16;
                uint32_t other[2][4];

                if (!row_chunks<D>::Q_IN_REGISTERS) {
                        load_q<D, T>(other[0], q, k);
                        load_q<D, T>(other[1], q, k + both);
                }
                UNROLL
                for (unsigned j = 0; j < N; j += 2) {
                        uint32_t part[4];

                        load_matrices<false>(part, row_at<WIDTH>(kv->keys, lane / 16 * 8 + lane % 8,
                                                                 k + (both ? lane / 8 % 2 : 0)) +
                                                           j * 8 * row_chunks<WIDTH>::BYTES);
                        UNROLL
                        for (unsigned x = 0; x < 4; x++) {
                                const uint32_t two[2] = { two_keys_of<T>(part[x]),
                                                          two_keys_of<T>(part[x] >> 8) };

                                if (x % 2 && !both)
                                        continue;
                                multiply_halves(score[j + x / 2],
                                                row_chunks<D>::Q_IN_REGISTERS
                                                        ? register_q[k + x % 2]
                                                        : other[x % 2],
                                                two);
                        }
                }
        }
        UNROLL
        for (unsigned j = 0; j < N; j++) {
                float2 scale = *(const float2 *)(kv->key_scales + j * 8 + lane % 4 * 2);

                if (T == KV_FP8)
                        scale = { scale.x * 0x1p8f, scale.y * 0x1p8f };
                score[j][0] *= scale.x;
                score[j][1] *= scale.y;
                score[j][2] *= scale.x;
                score[j][3] *= scale.y;
        }
}

/* ---- values ---- */

/*
 * 0 times NaN is NaN.  So at an EDGE, where a row may not see all positions, values of V that are
 * not finite are replaced by 0.  Returns which positions those were: bit j for the first number
 * of this lane in column j, bit 16 + j for the second.
 */
template <int D, int N, bool EDGE, kv_type T>
DEVICE uint32_t add_numbers(float sums[D / 8][4], const uint8_t *v, const float weight[N][4])
{
        unsigned lane = lane_number();
        uint32_t nonfinite = 0;

        UNROLL
        for (unsigned j = 0; j < N / 2; j++) {
                uint32_t weights[4], low = 0, high = 0; /* not finite, in the two columns */

                UNROLL
                for (unsigned x = 0; x < 4; x++)
                        weights[x] = two_weights<T>(weight[2 * j + x / 2][x % 2 * 2],
                                                    weight[2 * j + x / 2][x % 2 * 2 + 1]);
                UNROLL
                for (unsigned d = 0; d < D / 8; d += 2) {
                        uint32_t part[4];

                        load_matrices<true>(part, row_at<D>(v, lane % 16, d + lane / 16) +
                                                          j * 16 * row_chunks<D>::BYTES);
                        if (EDGE) {
                                low |= drop_nonfinite<T>(part) | drop_nonfinite<T>(part + 2);
                                high |= drop_nonfinite<T>(part + 1) | drop_nonfinite<T>(part + 3);
                        }
                        multiply_numbers<T>(sums[d], weights, part);
                        multiply_numbers<T>(sums[d + 1], weights, part + 2);
                }
                nonfinite |= low >> 15 << 2 * j | high >> 15 << (2 * j + 1);
        }
        return nonfinite;
}

/* The same for a scale that is not finite: all numbers of its line count as not finite. */
DEVICE uint32_t drop_nonfinite_scales(float2 *scale)
{
        uint32_t nonfinite = 0;

        if ((bits_of(scale->x) & 0x7f800000) == 0x7f800000) {
                scale->x = 0;
                nonfinite = 1;
        }
        if ((bits_of(scale->y) & 0x7f800000) == 0x7f800000) {
                scale->y = 0;
                nonfinite |= 1u << 16;
        }
        return nonfinite;
}

template <int D, int N, bool EDGE, kv_type T>
DEVICE uint32_t add_bytes(float sums[D / 8][4], const kv_columns *kv, const float weight[N][4])
{
        constexpr int WIDTH = kv_lines<D, T>::WIDTH;
        unsigned lane = lane_number();
        uint32_t nonfinite = 0;

        UNROLL
        for (unsigned j = 0; j < N / 2; j++) {
                uint32_t weights[4];

                UNROLL
                for (unsigned i = 0; i < 2; i++) {
                        const float *w = weight[2 * j + i];
                        float2 scale =
                                *(const float2 *)(kv->value_scales + j * 16 + i * 8 + lane % 4 * 2);

                        if (EDGE)
                                nonfinite |= drop_nonfinite_scales(&scale) << (2 * j + i);
                        weights[2 * i] = two_bfloats(w[0] * scale.x, w[1] * scale.y);
                        weights[2 * i + 1] = two_bfloats(w[2] * scale.x, w[3] * scale.y);
                }
                UNROLL
                for (unsigned c = 0; c < D / 16; c += 2) {
                        const bool both = c + 1 < D / 16;
                        uint32_t part[4];

                        load_matrices<true>(part, row_at<WIDTH>(kv->values, lane % 16,
                                                                c + (both ? lane / 16 : 0)) +
                                                          j * 16 * row_chunks<WIDTH>::BYTES);
                        UNROLL
                        for (unsigned x = 0; x < 4; x++) {
                                unsigned odd = x % 2 * 8, i = x / 2 * 2;
                                const uint32_t two[2] = { two_values_of<T>(part[i] >> odd),
                                                          two_values_of<T>(part[i + 1] >> odd) };

                                if (i && !both)
                                        continue;
                                multiply_bfloats(sums[2 * c + x], weights, two);
                        }
                }
        }
        return nonfinite;
}

#endif
