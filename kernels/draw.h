/*
 * One random number for one token, the same on every backend.
 *
 * Draws are keyed, not sequential: (seed, sample_index, position) determines the number. So the
 * result of a request does not depend on other requests, on steps that were repeated, or on where
 * it runs. The generator is Philox4x32-10 with key = seed and counter = {position low, position
 * high, sample_index, 0}. The interval (0, 1) is cut into 2^40 equal pieces. The first 40 bits of
 * the output are the number of a piece, and the draw is the middle of that piece.
 *
 * Picking works in this order (ref/pick.c is the definition):
 *     0. A token that is given (pick.given) is the result. Done.
 *     1. temperature 0: the largest logit, the lowest id among equals. Done.
 *     2. Candidates are ordered by (logit descending, id ascending); top_k > 0 keeps the first
 *        top_k of them.
 *     3. p = softmax(logit / temperature) over the kept candidates, in double.
 *     4. top_p < 1 keeps the shortest run from the front whose sum reaches top_p.
 *     5. min_p > 0 keeps those with p >= min_p * p[0]; if there are none, the first one is kept.
 *     6. Of the kept candidates in order of id, the result is the first one at which their
 *        running sum exceeds draw * (sum of the kept).
 *
 * The last step goes by id because that needs no sorting: if nothing is cut, the sums of whole
 * blocks show where the draw falls. Any order is right if draws are fine enough. With draws of
 * only 24 bits, the lowest id would be drawn once in 2^24 times, however unlikely it is.
 */
#ifndef KERNELS_DRAW_H
#define KERNELS_DRAW_H

#include <stdint.h>

#ifdef __CUDACC__
#define DRAW_INLINE static inline __host__ __device__
#else
#define DRAW_INLINE static inline
#endif

DRAW_INLINE void philox_round(uint32_t c[4], const uint32_t k[2])
{
        uint64_t a = (uint64_t)0xD2511F53u * c[0], b = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t c1 = c[1], c3 = c[3];

        c[0] = (uint32_t)(b >> 32) ^ c1 ^ k[0];
        c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ c3 ^ k[1];
        c[3] = (uint32_t)a;
}

DRAW_INLINE void philox(uint32_t c[4], uint64_t seed)
{
        uint32_t k[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };

        for (int i = 0; i < 10; i++) {
                philox_round(c, k);
                k[0] += 0x9E3779B9u;
                k[1] += 0xBB67AE85u;
        }
}

/* The number of the piece of (0, 1): below 2^40. */
DRAW_INLINE uint64_t draw_piece(uint64_t seed, uint32_t sample_index, uint64_t position)
{
        uint32_t c[4] = { (uint32_t)position, (uint32_t)(position >> 32), sample_index, 0 };

        philox(c, seed);
        return (uint64_t)c[0] << 8 | c[1] >> 24;
}

DRAW_INLINE double draw(uint64_t seed, uint32_t sample_index, uint64_t position)
{
        return ((double)draw_piece(seed, sample_index, position) + 0.5) * 0x1p-40;
}

#endif
