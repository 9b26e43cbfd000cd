/*
 * The work of a warp in attention (attend.h), shared by all kernels: 16 pairs against some
 * positions, whose K and V lie in shared memory.
 *
 * Positions are taken in columns of 8, as in products, N columns at once; N is even.  A pair's
 * numbers go through the same operations for any other pairs in the tile.  A column that a pair
 * does not see changes no bit of it.
 */
#ifndef KERNELS_CUDA_ATTEND_WARP_H
#define KERNELS_CUDA_ATTEND_WARP_H

#include "kernels/cuda/attend-kv.h"
#include "kernels/cuda/attend-tile.h"

#define LOG2_E 1.4426950408889634f

/*
 * Less than any score, but finite: (NOTHING - NOTHING) is 0, and 2^0 is exactly 1.  Where nothing
 * was seen, the largest score is NOTHING and the sums are 0.
 */
#define LOWEST_SCORE -1e30f

/* The parameters of an operator that all kernels need, computed on the host. */
struct attend_job {
        const uint32_t *tables;
        uint32_t pages_max;
        uint32_t heads, kv_heads, group, window, width;
        const uint8_t *pages;
        size_t page_bytes;
        const uint16_t *q;
        uint16_t *out;
        const float *sinks, *slopes;
        /* Raw scores are multiplied by `tanh_scale` before tanh; 0: there is no tanh. */
        float tanh_scale;
        /* Then they are multiplied by `to_log2`, to become exponents of 2. */
        float to_log2;
        /*
         * Slopes are multiplied by `slope_unit`, so that they can be added before `to_log2` is
         * applied.
         */
        float slope_unit;
};

attend_job attend_job_of(const attend_args *args);

/* The two rows of a product that this lane has numbers of. */
struct lane_pairs {
        int own[2]; /* position; -1: there is no pair in this row */
        float slope[2];
};

/*
 * The results of a warp for the positions that it took so far, and its share of V.  Sums lie as in
 * products: groups of 8 numbers of a head, one after the other.  Where V is bytes: of each 16
 * numbers the even ones, then the odd ones (attend-kv.h).
 */
template <int D> struct running_softmax {
        float sums[row_chunks<D>::SHARE / 8][4];
        /* `most` is an exponent of 2, as are all former scores. */
        float most[2], sum[2];
};

template <int D> DEVICE void running_softmax_init(running_softmax<D> *s)
{
        UNROLL
        for (unsigned x = 0; x < row_chunks<D>::SHARE / 2; x++)
                s->sums[x / 4][x % 4] = 0;
        s->most[0] = s->most[1] = LOWEST_SCORE;
        s->sum[0] = s->sum[1] = 0;
}

/* ---- pairs ---- */

DEVICE uint32_t head_of(const attend_job *a, uint32_t kv_head, uint32_t pair)
{
        return kv_head * a->group + pair % a->group;
}

DEVICE lane_pairs pairs_of(const attend_job *a, const view_run *run, const tile *tile,
                           uint32_t kv_head)
{
        lane_pairs of;

        for (unsigned i = 0; i < 2; i++) {
                uint32_t number = lane_number() / 4 + i * 8, pair = tile->pair + number;
                uint32_t own = run->position + pair / a->group;
                bool there = number < tile->pairs;

                of.own[i] = there ? (int)own : -1;
                of.slope[i] = there && a->slopes
                                      ? a->slopes[head_of(a, kv_head, pair)] * a->slope_unit
                                      : 0;
        }
        return of;
}

/* Begins to fetch the queries of a tile, as one batch. */
template <int D>
DEVICE void fetch_q(const attend_job *a, const view_run *run, const tile *tile, uint32_t kv_head,
                    uint8_t *to)
{
        constexpr unsigned CHUNKS = row_chunks<D>::CHUNKS;

        UNROLL
        for (unsigned i = 0; i < D / 16; i++) {
                unsigned x = i * LANES + lane_number(), row = x / CHUNKS, chunk = x % CHUNKS;
                bool there = row < tile->pairs;
                uint32_t pair = tile->pair + (there ? row : 0);
                size_t number =
                        (size_t)(run->row + pair / a->group) * a->heads + head_of(a, kv_head, pair);

                async_copy(to + chunk_at<D>(row, chunk) * 16, a->q + number * D + chunk * 8, there);
        }
        async_copy_commit();
}

/*
 * The factor that turns a pair's weights into shares of the total: the sum so far and the sink.
 */
DEVICE float share_of(const attend_job *a, uint32_t head, float most, float sum)
{
        float keep = 1;

        if (a->sinks) {
                float sink = a->sinks[head] * LOG2_E, top = fmaxf(most, sink);

                keep = exp2_fast(most - top);
                sum = fmaf(sum, keep, exp2_fast(sink - top));
        }
        return keep / sum;
}

/* ---- positions ---- */

/*
 * Which positions this lane's pairs see, relative to the lane's first position.  A mask of bits
 * would cost a register for each bit, as the compiler translates it.
 */
struct lane_visible {
        int first[2];
        uint32_t count[2];
};

DEVICE lane_visible visible_of(const attend_job *a, const lane_pairs *pairs, int position)
{
        lane_visible visible;

        for (unsigned i = 0; i < 2; i++) {
                int own = pairs->own[i],
                    first = own < 0 ? 0 : (int)first_visible((uint32_t)own, a->window);

                visible.first[i] = first - position - (int)(lane_number() % 4 * 2);
                visible.count[i] = (uint32_t)(own + 1 - first);
        }
        return visible;
}

/*
 * Score [x / 4][x % 4] of a lane belongs to its position number_of(x) and to its pair x / 2 % 2.
 */
DEVICE int number_of(unsigned x)
{
        return (int)(x / 4 * 8 + x % 2);
}

DEVICE bool is_visible(const lane_visible *visible, unsigned x)
{
        return (uint32_t)(number_of(x) - visible->first[x / 2 % 2]) < visible->count[x / 2 % 2];
}

/* Applies softcap and slopes. */
template <int N>
DEVICE void softcap_and_slope_scores(const attend_job *a, const lane_pairs *pairs, int position,
                                     float score[N][4])
{
        /* Position of the lane's first number, relative to the row's own position. */
        float behind[2];

        for (unsigned i = 0; i < 2; i++)
                behind[i] = (float)(position + (int)(lane_number() % 4 * 2) - pairs->own[i]);
        UNROLL
        for (unsigned x = 0; x < 4 * N; x++) {
                float *s = &score[x / 4][x % 4];

                if (a->tanh_scale > 0)
                        *s = tanhf(*s * a->tanh_scale);
                *s = fmaf(pairs->slope[x / 2 % 2], behind[x / 2 % 2] + (float)number_of(x), *s);
        }
}

/*
 * Replaces scores by weights, relative to the largest score so far, and scales earlier sums to
 * that.  Whether columns are at an EDGE depends on a row's neighbours.  So the numbers that a row
 * sees go through the same operations in both cases, and through none that a compiler may or may
 * not fuse.
 */
template <int D, int N, bool EDGE>
DEVICE void weigh(running_softmax<D> *s, float to_log2, const lane_visible *visible,
                  float score[N][4])
{
        UNROLL
        for (unsigned i = 0; i < 2; i++) {
                float raw = LOWEST_SCORE, most, against, scale, sum = 0;

                UNROLL
                for (unsigned j = 0; j < 2 * N; j++) {
                        unsigned x = j / 2 * 4 + i * 2 + j % 2;

                        if (EDGE && !is_visible(visible, x))
                                score[x / 4][x % 4] = LOWEST_SCORE;
                        raw = fmaxf(raw, score[x / 4][x % 4]);
                }
                raw = fmaxf(raw, shuffle_xor(raw, 1));
                raw = fmaxf(raw, shuffle_xor(raw, 2));
                most = raw > LOWEST_SCORE ? fmaxf(s->most[i], raw * to_log2) : s->most[i];
                scale = exp2_fast(s->most[i] - most);
                s->most[i] = most;
                /*
                 * A pair that has seen nothing yet gets weights of 0, as all positions that are
                 * not seen.
                 */
                against = most > LOWEST_SCORE ? most : 0;
                UNROLL
                for (unsigned d = 0; d < row_chunks<D>::SHARE / 8; d++) {
                        s->sums[d][i * 2] *= scale;
                        s->sums[d][i * 2 + 1] *= scale;
                }
                UNROLL
                for (unsigned j = 0; j < 2 * N; j++) {
                        float *p = &score[j / 2][i * 2 + j % 2];

                        *p = exp2_fast(fmaf(*p, to_log2, -against));
                        sum += *p;
                }
                s->sum[i] = fmaf(s->sum[i], scale, sum);
        }
}

/*
 * Bit j stands for the first number of a lane in column j, bit 16 + j for the second.  Sets the
 * bits of the numbers before `end`, where the positions of the two numbers are 8 j and 8 j + 1.
 */
template <int N> DEVICE uint32_t bits_before(int end)
{
        uint32_t n = end < 0 ? 0 : end > 8 * N ? 8 * N : (uint32_t)end;

        return ((1u << (n + 7) / 8) - 1) | ((1u << (n + 6) / 8) - 1) << 16;
}

/* Makes the sum NaN for pairs that see a position whose bit in `nonfinite` is set. */
template <int N>
DEVICE void poison_sums(float sum[2], const lane_visible *visible, uint32_t nonfinite)
{
        for (unsigned bits = 4; bits < LANES; bits *= 2)
                nonfinite |= shuffle_xor(nonfinite, bits);
        UNROLL
        for (unsigned i = 0; i < 2; i++) {
                int first = visible->first[i], end = first + (int)visible->count[i];

                if (nonfinite & bits_before<N>(end) & ~bits_before<N>(first))
                        sum[i] = float_of(0x7fc00000);
        }
}

/* A pair that sees a V that is not finite becomes NaN through its sum. */
template <int D, int N, bool EDGE, kv_type T>
DEVICE void add_values(running_softmax<D> *s, const kv_columns *kv, const lane_visible *visible,
                       const float weight[N][4])
{
        constexpr int SHARE = row_chunks<D>::SHARE;
        uint32_t nonfinite = KV_HAS_SCALES(T)
                                     ? add_bytes<SHARE, N, EDGE, T>(s->sums, kv, weight)
                                     : add_numbers<SHARE, N, EDGE, T>(s->sums, kv->values, weight);

        if (EDGE)
                poison_sums<N>(s->sum, visible, nonfinite);
}

/* Takes N columns from `position` on.  q is in registers (register_q), or in shared memory (q). */
template <int D, int N, bool EDGE, kv_type T>
DEVICE void take_columns(const attend_job *a, running_softmax<D> *s, const lane_pairs *pairs,
                         const uint32_t (*register_q)[4], const uint8_t *q, kv_columns kv,
                         int position)
{
        const lane_visible visible = visible_of(a, pairs, position);
        float score[N][4] = {};

        static_assert(N % 2 == 0 && 4 * N <= 32, "");
        if (KV_HAS_SCALES(T))
                score_bytes<D, N, T>(score, register_q, q, &kv);
        else
                score_numbers<D, N, T>(score, register_q, q, kv.keys);
        if (a->tanh_scale > 0 || a->slopes)
                softcap_and_slope_scores<N>(a, pairs, position, score);
        weigh<D, N, EDGE>(s, a->to_log2, &visible, score);
        add_values<D, N, EDGE, T>(s, &kv, &visible, score);
}

#endif
