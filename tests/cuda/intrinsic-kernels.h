/*
 * The kernels of test-intrinsics.cc: each instruction of intrinsics.h, once.
 *
 * For a GPU, nvcc compiles them, and another compiler compiles the test (contrib/gpu/build).
 * So they are in a header, which nvcc compiles as a unit of its own and the emulator's test
 * includes.
 */
#ifndef TESTS_CUDA_INTRINSIC_KERNELS_H
#define TESTS_CUDA_INTRINSIC_KERNELS_H

#include "kernels/cuda/intrinsics.h"

struct lanes_args {
        const float *in; /* (warps, 32) */
        float *across;   /* (31, threads) */
        float *from;     /* (32, threads) */
        float *sum, *most;
        uint64_t *wide;
};

struct product_args {
        const uint16_t *a, *b; /* of each warp, (16, 16) and (16, 8) */
        const float *c;        /* (16, 8) */
        float *out;
};

struct load_args {
        uint32_t *out; /* (2, lanes, 4): straight, transposed */
};

#define LOOKS 4u

struct copy_args {
        const uint4 *from; /* (threads, 4) */
        uint4 *out;        /* (threads, looks, 4) */
};

struct count_args {
        const uint4 *weights;
        unsigned *tickets, *sums, *last;
};

/* Inputs and results of conversions. */
struct convert_args {
        uint32_t count;
        const uint32_t *in;         /* (count): bits of anything */
        uint32_t *halves, *bfloats; /* of a float and its negative */
        float *half, *bfloat;       /* from the lower 16 bits */
        /* two bfloats, and two halves, minus the same two in swapped order */
        uint32_t *less, *less_half;
        uint32_t *scaled;   /* two bfloats, times 2^120 and 2^-2 */
        uint32_t *quotient; /* bits of a float divided by 448 */
};

KERNEL(96) lanes(lanes_args a);
KERNEL(64) product_of_bfloats(product_args a);
KERNEL(64) product_of_halves(product_args a);
KERNEL(32) load(load_args a);
KERNEL(40) copies(copy_args a);
KERNEL(32) count(count_args a);
KERNEL(256) convert(convert_args a);

#if defined(__CUDACC__) || !defined(ON_GPU)

KERNEL(96) lanes(lanes_args a)
{
        unsigned me = threadIdx.x, n = blockDim.x;

        for (unsigned bits = 1; bits < LANES; bits++)
                a.across[(bits - 1) * n + me] = shuffle_xor(a.in[me], bits);
        for (unsigned lane = 0; lane < LANES; lane++)
                a.from[lane * n + me] = shuffle_from(a.in[me], lane);
        a.sum[me] = warp_sum(a.in[me]);
        a.most[me] = warp_max(a.in[me]);
        a.wide[me] = shuffle_xor((uint64_t)me << 40 | 5, 3);
}

/* PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type"; i counts numbers. */
DEVICE unsigned a_row(unsigned lane, unsigned i)
{
        return lane / 4 + (i < 2 || (i >= 4 && i < 6) ? 0 : 8);
}

DEVICE unsigned a_column(unsigned lane, unsigned i)
{
        return lane % 4 * 2 + (i & 1) + (i < 4 ? 0 : 8);
}

DEVICE unsigned b_row(unsigned lane, unsigned i)
{
        return lane % 4 * 2 + (i & 1) + (i < 2 ? 0 : 8);
}

DEVICE unsigned c_row(unsigned lane, unsigned i)
{
        return lane / 4 + (i < 2 ? 0 : 8);
}

DEVICE unsigned c_column(unsigned lane, unsigned i)
{
        return lane % 4 * 2 + (i & 1);
}

template <bool HALVES> DEVICE void product(const product_args &args)
{
        unsigned lane = lane_number(), warp = threadIdx.x / LANES;
        uint32_t a[4] = {}, b[2] = {};
        float c[4];

        for (unsigned i = 0; i < 8; i++)
                a[i / 2] |= (uint32_t)args.a[warp * 256 + a_row(lane, i) * 16 + a_column(lane, i)]
                            << i % 2 * 16;
        for (unsigned i = 0; i < 4; i++)
                b[i / 2] |= (uint32_t)args.b[warp * 128 + b_row(lane, i) * 8 + lane / 4]
                            << i % 2 * 16;
        for (unsigned i = 0; i < 4; i++)
                c[i] = args.c[warp * 128 + c_row(lane, i) * 8 + c_column(lane, i)];
        if (HALVES)
                multiply_halves(c, a, b);
        else
                multiply_bfloats(c, a, b);
        for (unsigned i = 0; i < 4; i++)
                args.out[warp * 128 + c_row(lane, i) * 8 + c_column(lane, i)] = c[i];
}

KERNEL(64) product_of_bfloats(product_args a)
{
        product<false>(a);
}

KERNEL(64) product_of_halves(product_args a)
{
        product<true>(a);
}

/* The place of row r of matrix m: scattered. */
DEVICE unsigned place_of(unsigned m, unsigned r)
{
        return (m * 8 + r) * 11 % 32 * 16;
}

/* Number n of row r of matrix m is m*64 + r*8 + n. */
KERNEL(32) load(load_args a)
{
        unsigned lane = lane_number(), m = lane / 8, r = lane % 8;
        uint16_t *row = (uint16_t *)(shared() + place_of(m, r));

        for (unsigned n = 0; n < 8; n++)
                row[n] = (uint16_t)(m * 64 + r * 8 + n);
        warp_sync();
        load_matrices<false>(&a.out[lane * 4], row);
        load_matrices<true>(&a.out[(LANES + lane) * 4], row);
        memset(row, 0, 16); /* allowed: all threads have loaded */
}

DEVICE void look(const copy_args &a, const uint4 *mine, unsigned number)
{
        memcpy(&a.out[(threadIdx.x * LOOKS + number) * 4], mine, 64);
}

/* Batches: {0, 1}, {}, {2}, {3}. */
KERNEL(40) copies(copy_args a)
{
        const uint4 *from = &a.from[threadIdx.x * 4];
        uint4 *mine = (uint4 *)shared() + threadIdx.x * 4;

        async_copy(&mine[0], &from[0], true);
        async_copy(&mine[1], threadIdx.x % 2 ? &from[1] : nullptr, threadIdx.x % 2);
        async_copy_commit();
        async_copy_commit();
        async_copy(&mine[2], &from[2], true);
        async_copy_commit();
        async_copy(&mine[3], &from[3], true);
        async_copy_commit();
        async_copy_wait<4>();
        look(a, mine, 0);
        async_copy_wait<2>(); /* the empty batch counts, too */
        look(a, mine, 1);
        async_copy_wait<1>();
        look(a, mine, 2);
        async_copy_wait<0>();
        look(a, mine, 3);
}

/* The last block to finish adds up the results of all blocks. */
KERNEL(32) count(count_args a)
{
        unsigned sum = 0, block = blockIdx.x;

        if (threadIdx.x)
                return;
        wait_for_predecessor();
        a.sums[block] = load_once(&a.weights[block]).z;
        memory_fence();
        if (atomic_add(a.tickets, 1) + 1 < gridDim.x)
                return;
        for (unsigned i = 0; i < gridDim.x; i++)
                sum += a.sums[i];
        *a.last = sum;
}

KERNEL(256) convert(convert_args a)
{
        for (uint32_t i = threadIdx.x; i < a.count; i += blockDim.x) {
                uint32_t bits = a.in[i];

                a.halves[i] = two_halves(float_of(bits), -float_of(bits));
                a.bfloats[i] = two_bfloats(float_of(bits), -float_of(bits));
                a.half[i] = from_half(bits);
                a.bfloat[i] = from_bfloat(bits);
                a.less[i] = subtract_bfloats(bits, bits >> 16 | bits << 16);
                a.less_half[i] = subtract_halves(bits, bits >> 16 | bits << 16);
                a.scaled[i] = scale_bfloats(bits, 0x3e807b80);
                a.quotient[i] = bits_of(divide(float_of(bits), 448));
        }
}

#endif

#endif
